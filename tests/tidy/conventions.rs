//! Conventions that neither the compiler nor clippy checks.

use std::path::Path;

use crate::{
    expect_none,
    repository::{PACKAGES, file, library, sources, tests},
    source::Source,
};

#[test]
fn every_source_file_says_what_it_is() {
    expect_none(library().iter().filter(|s| !s.text.starts_with("//! ")).map(|s| s.path.clone()));
}

#[test]
fn no_file_is_a_drawer_for_odds_and_ends() {
    const DRAWERS: [&str; 8] =
        ["utils", "util", "helpers", "helper", "constants", "consts", "misc", "manager"];
    let stems = library().into_iter().chain(tests());
    expect_none(stems.map(|source| source.path).filter(|path| {
        Path::new(path).components().any(|part| {
            let part = part.as_os_str().to_string_lossy();
            DRAWERS.contains(&part.strip_suffix(".rs").unwrap_or(&part))
        })
    }));
}

#[test]
fn every_pane_shows_what_it_draws() {
    let drawn = |source: &Source| {
        source.text.lines().any(|line| line.trim_start().starts_with("//") && line.contains(['│', '─', '┌']))
    };
    let is_pane = |source: &Source| !source.path.ends_with("/mod.rs");
    expect_none(sources("src/ui/panes").iter().filter(|s| is_pane(s) && !drawn(s)).map(|s| s.path.clone()));
}

#[test]
fn lints_that_replace_memory_stay_on() {
    let (manifest, clippy) = (file("Cargo.toml"), file("clippy.toml"));
    assert!(manifest.contains("unsafe_code = \"forbid\""));
    for lint in ["dbg_macro", "todo", "iter_over_hash_type"] {
        assert!(manifest.contains(&format!("{lint} = \"warn\"")), "{lint}");
    }
    for library in PACKAGES.map(|folder| file(&format!("{folder}/lib.rs"))) {
        for lint in ["unwrap_used", "panic", "print_stdout", "print_stderr"] {
            assert!(library.contains(&format!("clippy::{lint}")), "{lint}");
        }
    }
    for package in manifests() {
        assert!(package.contains("[lints]\nworkspace = true"));
    }
    for method in
        ["std::time::Instant::now", "std::time::SystemTime::now", "chrono::Utc::now", "std::process::exit"]
    {
        assert!(clippy.contains(&format!("\"{method}\"")), "{method}");
    }
}

#[test]
fn every_dependency_has_its_reason_and_no_default_features() {
    // Crates that have no default features.
    const PLAIN: [&str; 5] = ["humantime", "kordon-core", "kordon-demo", "kordon-clock", "kordon-time"];
    let (mut section, mut reason, mut wrong) = (String::new(), false, Vec::new());
    for line in manifests().iter().flat_map(|manifest| manifest.lines()).map(str::trim) {
        if line.starts_with('[') {
            (section, reason) = (line.into(), false);
        } else if line.is_empty() {
            reason = false;
        } else if line.starts_with('#') {
            reason = true;
        } else if section == "[dependencies]" || section == "[workspace.dependencies]" {
            let name = line.split([' ', '=', '.']).next().unwrap_or_default();
            if !reason {
                wrong.push(format!("{name}: say above it why it is needed"));
            }
            let is_inherited = line.contains("workspace = true");
            if !line.contains("default-features = false") && !is_inherited && !PLAIN.contains(&name) {
                wrong.push(format!("{name}: default-features = false"));
            }
        }
    }
    expect_none(wrong);
}

/// Returns the manifests of all packages.
fn manifests() -> Vec<String> {
    PACKAGES.iter().map(|folder| file(&format!("{}Cargo.toml", folder.trim_end_matches("src")))).collect()
}
