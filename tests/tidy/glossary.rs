//! The glossary refers only to names that exist in the code.

use std::collections::BTreeSet;

use crate::{
    expect_none,
    repository::{file, library},
};

#[test]
fn the_glossary_names_only_what_the_code_has() {
    let sources = library();
    let words: BTreeSet<&str> =
        sources.iter().flat_map(|source| &source.tokens).map(|token| &*token.text).collect();
    expect_none(unknown_names(&file("docs/glossary.md"), &words));
}

#[test]
fn the_reader_of_the_glossary_takes_the_names_of_the_middle_column() {
    let page =
        "| term | in code | meaning |\n| --- | --- | --- |\n| a `b` | `Known`, `Gone` | see `Other` |\n";
    assert_eq!(unknown_names(page, &BTreeSet::from(["Known"])), ["a `b`: Gone"]);
    let without = "| term | in code | meaning |\n| --- | --- | --- |\n| a | none | b |\n";
    assert_eq!(unknown_names(without, &BTreeSet::new()), ["a: no name"]);
}

/// Returns the terms whose names in the middle column do not exist in the code, with these names. A term without a name
/// counts too.
fn unknown_names(page: &str, words: &BTreeSet<&str>) -> Vec<String> {
    let rows = page.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| ")?.split(" | ");
        Some((cells.next()?, cells.next()?))
    });
    let rows = rows.filter(|(term, _)| !matches!(*term, "term" | "---"));
    rows.flat_map(|(term, names)| {
        let names: Vec<&str> = names.split('`').skip(1).step_by(2).collect();
        let missing =
            names.iter().filter(|name| !words.contains(**name)).map(|name| format!("{term}: {name}"));
        let none = names.is_empty().then(|| format!("{term}: no name"));
        missing.chain(none).collect::<Vec<_>>()
    })
    .collect()
}
