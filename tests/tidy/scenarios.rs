//! The page of scenarios, generated from comments on the tests that show them.
//!
//! Such a comment has one sentence for each scenario: `/// Scenario 16: A DaemonSet's pod …`. The sentence is the same
//! in every test. It ends at the next scenario, at an empty line, or with the comment.

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
};

use crate::{expect_none, repository::tests, source::Source};

/// Numbers of the scenarios in docs/upstream/operator-actions.md#10.
const SCENARIOS: std::ops::RangeInclusive<u32> = 1..=70;

const PAGE: &str = "docs/scenarios.md";

/// `UPDATE=1 cargo test --test tidy` regenerates the page.
#[test]
fn every_scenario_has_a_test_and_the_page_names_it() {
    let scenarios = Scenarios::of(&tests());
    expect_none(scenarios.wrong());
    let page = scenarios.page();
    if env::var_os("UPDATE").is_some() {
        fs::write(PAGE, &page).expect("written");
    }
    assert_eq!(fs::read_to_string(PAGE).unwrap_or_default(), page, "{PAGE}: UPDATE=1 remakes it");
}

#[test]
fn the_reader_of_scenarios_takes_sentences_and_the_names_of_their_tests() {
    let one = "/// Scenario 1: A sentence
               /// of two lines.
               /// Scenario 2: Another.
               ///
               /// What else is to be said.
               #[test]
               fn one_test() {}

               /// Scenario 2: Another.
               async fn another<T>() {}";
    let two =
        "/// Scenario 1: A sentence that differs.\nfn a_third() {}\n/// Scenario 71: Nothing.\nfn b() {}";
    let scenarios = Scenarios::of(&[Source::parse("one.rs", one), Source::parse("two.rs", two)]);
    let of = |number| &scenarios.found[&number];
    assert_eq!(
        of(1).sentences.iter().collect::<Vec<_>>(),
        ["A sentence of two lines.", "A sentence that differs."]
    );
    assert_eq!(of(1).tests.iter().collect::<Vec<_>>(), ["`a_third` (two.rs)", "`one_test` (one.rs)"]);
    assert_eq!(of(2).sentences.len(), 1);
    assert_eq!(of(2).tests.iter().collect::<Vec<_>>(), ["`another` (one.rs)", "`one_test` (one.rs)"]);
    let wrong = scenarios.wrong();
    assert_eq!(wrong[0], "scenario 1 has 2 sentences");
    assert_eq!(wrong[1], "scenario 3 has no test");
    assert_eq!(wrong.last().map(String::as_str), Some("there is no scenario 71"));
}

/// The scenarios in the comments of the tests.
#[derive(Default)]
struct Scenarios {
    found: BTreeMap<u32, Scenario>,
}

/// One scenario: the sentences in its tests, which have to be equal, and the tests.
#[derive(Default)]
struct Scenario {
    sentences: BTreeSet<String>,
    tests: BTreeSet<String>,
}

impl Scenarios {
    fn of(sources: &[Source]) -> Self {
        let mut scenarios = Self::default();
        for source in sources.iter().filter(|source| !source.path.starts_with("tests/tidy/")) {
            let lines: Vec<&str> = source.text.lines().map(str::trim).collect();
            for (place, line) in lines.iter().enumerate() {
                let Some((number, start)) = start_of(line) else { continue };
                let rest = lines[place + 1..].iter().map_while(|line| line.strip_prefix("/// "));
                let rest = rest.take_while(|line| start_of(&format!("/// {line}")).is_none());
                let sentence = std::iter::once(start).chain(rest).collect::<Vec<_>>().join(" ");
                let test = lines[place..].iter().find_map(|line| {
                    let rest = line.split_once("fn ")?.1;
                    rest.split(['(', '<']).next()
                });
                let scenario = scenarios.found.entry(number).or_default();
                scenario.sentences.insert(sentence);
                scenario.tests.extend(test.map(|test| format!("`{test}` ({})", source.path)));
            }
        }
        scenarios
    }

    fn wrong(&self) -> Vec<String> {
        let of = |number: u32| match self.found.get(&number).map(|scenario| scenario.sentences.len()) {
            Some(1) => None,
            Some(count) => Some(format!("scenario {number} has {count} sentences")),
            None => Some(format!("scenario {number} has no test")),
        };
        let unknown = self.found.keys().filter(|number| !SCENARIOS.contains(number));
        SCENARIOS
            .filter_map(of)
            .chain(unknown.map(|number| format!("there is no scenario {number}")))
            .collect()
    }

    fn page(&self) -> String {
        let mut page = String::from(
            "# Scenarios\n\n\
             What operators do to nodes, what then happens, and the tests that show it. The numbers are those of\n\
             [operator-actions.md](upstream/operator-actions.md#10). Made from the comments of the tests: \
             `UPDATE=1 cargo test --test tidy`\n\
             remakes it.\n\n\
             | | scenario | shown by |\n| --- | --- | --- |\n",
        );
        for (number, Scenario { sentences, tests }) in &self.found {
            let sentence = sentences.first().map_or("", String::as_str);
            let tests: Vec<&str> = tests.iter().map(String::as_str).collect();
            let link = format!("[{number}](upstream/operator-actions.md#10.{number})");
            page.push_str(&format!("| {link} | {sentence} | {} |\n", tests.join(", ")));
        }
        page
    }
}

/// Parses the first line of a scenario: returns its number and the start of its sentence.
fn start_of(line: &str) -> Option<(u32, &str)> {
    let (number, sentence) = line.strip_prefix("/// Scenario ")?.split_once(": ")?;
    Some((number.parse().ok()?, sentence))
}
