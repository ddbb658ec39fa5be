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

/// The targets whose inputs are damaged at random in every run: they take little time, and do little but decode.
const DAMAGED: [&str; 4] = ["kubelet", "objects", "protobuf", "recording"];

/// How often each of their inputs is damaged.
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

/// With a few of its bytes replaced, removed, repeated or truncated, after the two that say what it is.
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
