//! Checks that each file which `tests/habits.md` names has the tests that are listed with it.

use crate::{expect_none, repository::file};

/// Returns the test names of a row that their file does not have. A row has names in backticks; each group of names is
/// followed by its file in brackets.
fn missing(row: &str, read: impl Fn(&str) -> String) -> Vec<String> {
    let (mut missing, mut names) = (Vec::new(), Vec::new());
    for part in row.split_inclusive(['`', ')']) {
        let text = part.trim_end_matches(['`', ')']);
        let is_name = part.ends_with('`')
            && !text.is_empty()
            && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
        if is_name {
            names.push(text);
        } else if let Some((_, path)) = text.rsplit_once('(').filter(|_| part.ends_with(')')) {
            if path.ends_with(".rs") {
                let source = read(path);
                let is_absent = |name: &&str| !source.contains(*name);
                missing.extend(
                    names.iter().filter(|name| is_absent(name)).map(|name| format!("{name} ({path})")),
                );
            }
            names.clear();
        }
    }
    missing
}

#[test]
fn every_test_that_a_habit_names_is_in_its_file() {
    let text = file("tests/habits.md");
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("| ")).collect();
    assert!(rows.len() > 100, "{} rows", rows.len());
    expect_none(rows.into_iter().flat_map(|row| missing(row, file)));
}

#[test]
fn a_name_that_its_file_does_not_have_is_found() {
    let read = |path: &str| if path == "a.rs" { "fn one() {}".to_owned() } else { String::new() };
    let row = "| sorts | `one` (a.rs), `two`, `one` (b.rs) | `Ctrl-F` (not a file)";
    assert_eq!(missing(row, read), ["two (b.rs)", "one (b.rs)"]);
}
