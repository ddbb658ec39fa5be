//! Checks the documents of the repository.

use std::fs;

use crate::{
    expect_none,
    layers::{CORE, PROGRAM},
    repository::{file, files},
};

#[test]
fn the_repository_names_no_machine_and_no_registry() {
    // Each banned name is joined from two parts at run time, so that this file does not contain it.
    let banned =
        [["/wo", "rk/"], ["/ro", "ot/"], ["/ho", "me/"], ["proxy.go", "lang.org"], ["index.crates", ".io"]]
            .map(|p| p.concat());
    expect_none(files(".").into_iter().filter(|path| path != "./Cargo.lock").flat_map(|path| {
        let text =
            fs::read(&path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
        let found = banned.iter().filter(|word| text.contains(&**word)).cloned().collect::<Vec<_>>();
        found.into_iter().map(move |word| format!("{path}: {word}"))
    }));
}

#[test]
fn the_repository_has_what_a_newcomer_looks_for() {
    for name in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE"] {
        assert!(!file(name).trim().is_empty(), "{name} is empty");
    }
    let readme = file("README.md");
    for command in ["cargo run --release -- demo", "cargo test"] {
        assert!(readme.contains(command), "README.md does not name `{command}`");
    }
    let architecture = file("ARCHITECTURE.md");
    for layer in PROGRAM.into_iter().chain(CORE) {
        assert!(architecture.contains(&format!("`{layer}`")), "ARCHITECTURE.md does not speak of `{layer}`");
    }
}

/// The figures of kordon's memory in README.md are those of the smaller cluster in `docs/performance.md`, with their
/// date.
#[test]
fn the_readme_has_the_measured_memory() {
    let (readme, measured) = (file("README.md"), file("docs/performance.md"));
    let row = |page: &str, start: &str| {
        let row = page.lines().find(|line| line.starts_with(start));
        row.unwrap_or_else(|| panic!("no row {start:?}")).to_owned()
    };
    let stated = row(&readme, "| Memory on 5,000 nodes and 150,000 pods |");
    for what in ["| resident memory with everything loaded |", "| resident memory at its peak under load |"] {
        let row = row(&measured, what);
        let figure = row.split('|').nth(2).expect("a cell").trim();
        assert!(stated.contains(figure), "README.md does not say {figure}: {stated}");
    }
    let (_, date) = measured.split_once("the smaller cluster on ").expect("a date");
    let date = date.split(',').next().expect("a date");
    assert!(stated.contains(date), "README.md does not say {date}: {stated}");
}
