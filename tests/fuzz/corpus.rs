//! Replays the inputs that the fuzzer kept, and the ones that once broke something.

use std::{
    collections::BTreeSet,
    fs, panic,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::targets::{TARGETS, Target};

/// The folders of the inputs, one for each target.
const CORPUS: &str = "tests/fuzz/corpus";

/// The largest input that is kept, in bytes.
const LARGEST: u64 = 8 << 10;

/// The most inputs that are kept of a target.
const MOST: usize = 150;

/// No input may take longer, in a debug build on a busy machine.
const LONGEST: Duration = Duration::from_secs(10);

#[test]
fn every_kept_input_passes_its_target() {
    let mut failed = Vec::new();
    for target in TARGETS {
        for path in inputs(target) {
            let data = fs::read(&path).expect("it was listed");
            let started = tokio::time::Instant::now();
            if panic::catch_unwind(|| (target.run)(&data)).is_err() {
                failed.push(format!("{}: {}", target.name, path.display()));
            }
            let took = started.elapsed();
            assert!(took < LONGEST, "{} takes {took:?}", path.display());
        }
    }
    assert!(
        failed.is_empty(),
        "cargo run --release --manifest-path fuzz/Cargo.toml TARGET FILE\n{failed:#?}"
    );
}

#[test]
fn every_target_has_a_small_corpus_and_every_corpus_a_target() {
    for target in TARGETS {
        let inputs = inputs(target);
        assert!((1..=MOST).contains(&inputs.len()), "{}: {} inputs", target.name, inputs.len());
        for path in inputs {
            let size = fs::metadata(&path).expect("it was listed").len();
            assert!(size <= LARGEST, "{} has {size} bytes", path.display());
        }
    }
    let folders = fs::read_dir(CORPUS).expect("the folder of inputs");
    let folders: BTreeSet<String> =
        folders.map(|entry| entry.expect("readable").file_name().to_string_lossy().into_owned()).collect();
    assert_eq!(folders, TARGETS.iter().map(|target| target.name.to_owned()).collect());
}

fn inputs(target: &Target) -> BTreeSet<PathBuf> {
    let folder = Path::new(CORPUS).join(target.name);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    entries.map(|entry| entry.expect("readable").path()).collect()
}
