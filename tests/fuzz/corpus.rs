//! Replays the inputs that the fuzzer kept, including those that once failed.

use std::{
    collections::BTreeSet,
    fs, panic,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::targets::{TARGETS, Target};

/// The folder of the inputs; each target has a folder in it.
const CORPUS: &str = "tests/fuzz/corpus";

/// Maximum size of an input in bytes.
const LARGEST: u64 = 8 << 10;

/// Maximum number of inputs of a target.
const MOST: usize = 150;

/// Maximum duration of an input, in a debug build on a busy machine.
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

/// The targets whose inputs are also run with random damage. These targets are fast, and do little but decode.
const DAMAGED: [&str; 4] = ["kubelet", "objects", "protobuf", "recording"];

/// Number of damaged variants of each input.
const DAMAGES: usize = 100;

#[test]
fn damaged_inputs_pass_their_target() {
    let seed = fastrand::u64(..);
    let mut random = fastrand::Rng::with_seed(seed);
    for target in TARGETS.iter().filter(|target| DAMAGED.contains(&target.name)) {
        for path in inputs(target) {
            let whole = fs::read(&path).expect("it was listed");
            for _ in 0..DAMAGES {
                let data = damaged(whole.clone(), &mut random);
                let passed = panic::catch_unwind(|| (target.run)(&data)).is_ok();
                assert!(passed, "{}, seed {seed}: {} as {data:?}", target.name, path.display());
            }
        }
    }
}

/// Damages an input: replaces, removes, repeats or truncates a few bytes. The first two bytes select the format and
/// stay.
fn damaged(mut data: Vec<u8>, random: &mut fastrand::Rng) -> Vec<u8> {
    for _ in 0..random.usize(1..5) {
        if data.len() <= 3 {
            break;
        }
        let at = random.usize(2..data.len());
        match random.u8(0..6) {
            0 => data[at] = random.u8(..),
            1 => data[at] ^= 1 << random.u8(0..8),
            2 => drop(data.remove(at)),
            3 => data.insert(at, *random.choice([0x00, 0x7f, 0x80, 0xff].iter()).expect("there are four")),
            4 => {
                let part = data[at..data.len().min(at + random.usize(1..40))].to_vec();
                let place = random.usize(2..data.len());
                data.splice(place..place, part);
            }
            _ => data.truncate(at),
        }
    }
    data
}

fn inputs(target: &Target) -> BTreeSet<PathBuf> {
    let folder = Path::new(CORPUS).join(target.name);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    entries.map(|entry| entry.expect("readable").path()).collect()
}
