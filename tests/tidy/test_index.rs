//! The index of the tests lists every test program and module.

use std::collections::BTreeSet;

use crate::{
    expect_none,
    repository::{TESTS, file, files},
};

#[test]
fn the_index_of_the_tests_names_every_program_and_module() {
    expect_none(missing(&file("tests/README.md"), &programs()));
}

#[test]
fn a_module_that_the_index_lacks_is_named() {
    let index = "## Engine\n\n| `vectors` |\n\n## Plans\n\n| `plan` |\n";
    let programs = [("engine", "vectors"), ("engine", "plan"), ("plans", "plan"), ("e2e", "outage")];
    let programs: BTreeSet<_> = programs.map(|(program, module)| (program.into(), module.into())).into();
    assert_eq!(
        missing(index, &programs),
        ["tests/README.md: e2e `outage`", "tests/README.md: engine `plan`"]
    );
}

/// Returns the test programs, each with its modules that have tests.
fn programs() -> BTreeSet<(String, String)> {
    let mut found = BTreeSet::new();
    for path in TESTS.into_iter().flat_map(files) {
        let Some((_, inside)) = path.split_once("tests/") else { continue };
        let Some((program, module)) = inside.split_once('/') else { continue };
        if module.contains('/') {
            continue;
        }
        let Some(module) = module.strip_suffix(".rs") else { continue };
        let text = file(&path);
        if text.contains("#[test]") || text.contains("#[tokio::test") {
            found.insert((program.to_owned(), module.to_owned()));
        }
    }
    assert!(found.len() > 20, "too few test modules were found: {found:?}");
    found
}

/// Returns the modules that are missing in the section of their program.
fn missing(index: &str, programs: &BTreeSet<(String, String)>) -> Vec<String> {
    let sections = index.split("\n## ").skip(usize::from(!index.starts_with("## ")));
    let sections: Vec<String> = sections.map(|text| text.trim_start_matches("## ").to_lowercase()).collect();
    let is_named = |program: &str, module: &str| {
        let section = sections.iter().find(|text| text.lines().next() == Some(program));
        section.is_some_and(|text| text.contains(&format!("`{module}`")))
    };
    programs
        .iter()
        .filter(|(program, module)| !is_named(program, module))
        .map(|(program, module)| format!("tests/README.md: {program} `{module}`"))
        .collect()
}
