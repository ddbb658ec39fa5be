//! Access to the files of the repository.

use std::{collections::BTreeSet, fs, path::PathBuf};

use crate::source::Source;

/// Returns the Rust files in a folder.
pub fn sources(folder: &str) -> Vec<Source> {
    files(folder).into_iter().filter(|path| path.ends_with(".rs")).map(|path| Source::read(&path)).collect()
}

/// Source folders of the program and of the packages below it.
pub const PACKAGES: [&str; 5] = [
    "src",
    "crates/kordon-core/src",
    "crates/kordon-demo/src",
    "crates/kordon-clock/src",
    "crates/kordon-time/src",
];

/// Folders of test programs.
pub const TESTS: [&str; 3] = ["tests", "crates/kordon-core/tests", "crates/kordon-demo/tests"];

/// Returns the Rust files of the program and of the packages below it, without their tests.
pub fn library() -> Vec<Source> {
    PACKAGES.into_iter().flat_map(sources).collect()
}

/// Returns the Rust files of all tests.
pub fn tests() -> Vec<Source> {
    TESTS.into_iter().flat_map(sources).collect()
}

/// Returns the documents of the repository that people read.
pub fn documents() -> Vec<String> {
    let read = |path: &str| path.ends_with(".md") && !path.starts_with("tests/vectors/");
    files(".")
        .into_iter()
        .map(|path| path.trim_start_matches("./").to_owned())
        .filter(|path| read(path))
        .collect()
}

/// Returns all files in a folder of the repository, sorted. Build output and git's own files are left out.
pub fn files(folder: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut folders = vec![PathBuf::from(folder)];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for path in entries.map(|entry| entry.expect("a folder can be read").path()) {
            // In a linked worktree, `.git` is a file.
            let left_out = [".git", "target"].iter().any(|name| path.ends_with(name));
            match path.is_dir() {
                _ if left_out => {}
                true => folders.push(path),
                false => _ = found.insert(path.to_string_lossy().replace('\\', "/")),
            }
        }
    }
    found
}

/// Reads a file of the repository. Tests run in the root of the repository.
pub fn file(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"))
}
