//! The page of scenarios.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use crate::repository::files;

/// How many scenarios docs/upstream/operator-actions.md#10 has.
const SCENARIOS: u32 = 70;

/// Remade by `UPDATE=1 cargo test --test tidy`.
#[test]
fn every_numbered_scenario_has_a_test_and_the_page_names_it() {
    let mut found: BTreeMap<u32, BTreeSet<String>> = BTreeMap::new();
    for file in files("tests").into_iter().filter(|path| path.ends_with(".rs")) {
        let text = fs::read_to_string(&file).expect("readable");
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        for (place, line) in lines.iter().enumerate() {
            let numbers = line.strip_prefix("/// ").map(leading_numbers).unwrap_or_default();
            let name = lines[place..].iter().find_map(|line| {
                let rest = line.split_once("fn ")?.1;
                rest.split(['(', '<']).next().map(str::to_owned)
            });
            for number in numbers {
                let test = name.clone().expect("a number stands above a test");
                found.entry(number).or_default().insert(format!("`{test}` ({file})"));
            }
        }
    }
    let missing: Vec<u32> = (1..=SCENARIOS).filter(|number| !found.contains_key(number)).collect();
    assert!(missing.is_empty(), "no test has these numbers in its comment: {missing:?}");
    let mut page = String::from(
        "# Scenarios\n\nWhat operators do to nodes, and the tests that show what comes of it. Made from the numbers in the \
         comments of the tests by\n`tests/tidy`; run it with `UPDATE=1` after a change.\n\n| scenario | shown by |\n| --- | --- |\n",
    );
    for (number, tests) in &found {
        let tests: Vec<&str> = tests.iter().map(String::as_str).collect();
        page.push_str(&format!("| {number} | {} |\n", tests.join(", ")));
    }
    let path = "docs/scenarios.md";
    if std::env::var_os("UPDATE").is_some() {
        fs::write(path, &page).expect("written");
    }
    assert_eq!(fs::read_to_string(path).unwrap_or_default(), page, "docs/scenarios.md: UPDATE=1 remakes it");
}

/// The numbers that a comment begins with, as in "16, 19: what it is about".
fn leading_numbers(comment: &str) -> Vec<u32> {
    let words = comment.split([',', ':']).map(str::trim);
    words.map_while(|word| word.parse().ok()).filter(|number| (1..=SCENARIOS).contains(number)).collect()
}
