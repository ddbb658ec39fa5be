//! Conformance: kordon against recordings of the real components.
//!
//! Reads `tests/vectors/`, or the folder that `KORDON_VECTORS` names, with a folder per kind of recording. One test
//! per kind, named as the folder; each prints how many agree and the first differences of each that does not.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use serde::de::DeserializeOwned;

use crate::{
    common::placements,
    drains,
    lifecycle::{Recording, Seen},
};

/// Recordings that cannot agree yet, by file name, and why.
const KNOWN_DIFFERENCES: [(&str, &str); 0] = [];

/// Differences shown of a recording.
const SHOWN: usize = 5;

#[test]
fn lifecycle() {
    judge("lifecycle", "lifecycle", |recording: &Recording| recording.differences(&recording.play()));
}

/// What upstream answered differently from run to run: every run is one that chance could have made.
#[test]
fn varying() {
    judge("varying", "lifecycle-varying", |recording: &Recording| {
        let runs = recording.runs();
        let unexplained =
            (0..).zip(&runs).filter_map(|(number, run)| Some((number, run.explanation().err()?)));
        unexplained
            .flat_map(|(number, differences): (usize, Vec<String>)| {
                differences.into_iter().map(move |text| format!("run {number}: {text}"))
            })
            .collect()
    });
}

#[test]
fn drain() {
    judge("drain", "drain", drains::Recording::differences);
}

/// Judges every recording of a folder, tells how many agree, and fails if one does not that is not known to.
fn judge<R: DeserializeOwned>(kind: &str, folder: &str, differences: impl Fn(&R) -> Vec<String>) {
    let Some(judged) = files::<R>(folder) else { return println!("{kind}: 0 of 0 recordings agree") };
    let of = judged.len();
    let mut differing = BTreeMap::new();
    for (name, recording) in judged {
        let differences = differences(&recording);
        if !differences.is_empty() {
            differing.insert(name, differences);
        }
    }
    println!("{kind}: {} of {of} recordings agree", of - differing.len());
    let mut unexpected = 0;
    for (name, differences) in &differing {
        let known = KNOWN_DIFFERENCES.iter().find(|(known, _)| known == name);
        unexpected += usize::from(known.is_none());
        println!("  {name}{}", known.map_or(String::new(), |(_, reason)| format!(" (known: {reason})")));
        differences.iter().take(SHOWN).for_each(|difference| println!("    {difference}"));
    }
    assert_eq!(unexpected, 0, "recordings that differ");
}

#[test]
fn placement() {
    judge("placement", "placement", placements::Recording::differences);
}

#[test]
fn a_wrong_recorded_drain_does_not_agree() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/drain");
    let right: drains::Recording = read(&own.join("pdb--min-available-one-at-a-time.json"));
    assert_eq!(right.differences(), Vec::<String>::new());
    let wrong = |change: fn(&mut drains::Recorded)| {
        let mut wrong = right.clone();
        change(&mut wrong.recorded);
        wrong.differences().len()
    };
    assert_eq!(wrong(|recorded| recorded.drain.seconds += 6.0), 1);
    assert_eq!(wrong(|recorded| recorded.drain.left.clear()), 1);
    assert_eq!(wrong(|recorded| recorded.drain.stayed.clear()), 1);
    assert_eq!(wrong(|recorded| recorded.evict.values_mut().for_each(|answer| answer.code = 429)), 2);
}

#[test]
fn a_wrong_recorded_placement_does_not_agree() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/placement");
    let wrongs = [
        ("score--image-locality.json", "node:n2", None),
        ("modern--preempt--later-start-goes.json", "nominated:n1 victims:old", None),
        ("modern--preempt--later-start-goes.json", "unschedulable", None),
        ("fit--none.json", "unschedulable", Some("0/2 nodes are available: 1 Insufficient cpu.")),
    ];
    for (name, outcome, message) in wrongs {
        let mut recording: placements::Recording = read(&own.join(name));
        assert_eq!(recording.differences(), Vec::<String>::new(), "{name}");
        recording.recorded.results[0].outcomes = BTreeMap::from([(outcome.into(), 12)]);
        recording.recorded.results[0].message = message.map(Into::into);
        assert_eq!(recording.differences().len(), 1, "{name}, as if it had been {outcome}");
    }
}

#[test]
fn a_wrong_recording_does_not_agree() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/lifecycle");
    for name in ["taint--silent-node.json", "modern--daemonset-pods.json", "modern--rate-limited.json"] {
        let right: Recording = read(&own.join(name));
        let ours = right.play();
        assert_eq!(right.differences(&ours), Vec::<String>::new(), "{name}");
        let a_deletion =
            right.recorded.effects.iter().position(|seen| seen.effect == "pod-delete").expect("one");
        let wrong = |change: fn(&mut Vec<Seen>, usize)| {
            let mut wrong = right.clone();
            change(&mut wrong.recorded.effects, a_deletion);
            wrong.differences(&ours)
        };
        let shifted = wrong(|effects, deletion| effects[deletion].t += 5.0);
        let dropped = wrong(|effects, deletion| drop(effects.remove(deletion)));
        let added = wrong(|effects, deletion| effects.push(effects[deletion].clone()));
        for (what, differences) in [("shifted", shifted), ("dropped", dropped), ("added", added)] {
            assert_eq!(differences.len(), 1, "{name}, one deletion {what}: {differences:?}");
        }
    }
}

#[test]
fn a_wrong_run_is_not_explained() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/lifecycle-varying");
    for name in ["modern--partial-large-zone.json", "modern--single-node-cluster.json"] {
        let runs = read::<Recording>(&own.join(name)).runs();
        let a_deletion =
            |run: &Recording| run.recorded.effects.iter().position(|seen| seen.effect == "pod-delete");
        let (right, deletion) = runs
            .iter()
            .find_map(|run| Some((run, a_deletion(run)?)))
            .expect("a run in which a pod is deleted");
        assert!(right.explanation().is_ok(), "{name}");
        let wrong = |change: fn(&mut Vec<Seen>, usize)| {
            let mut wrong = right.clone();
            change(&mut wrong.recorded.effects, deletion);
            wrong.explanation()
        };
        let shifted = wrong(|effects, deletion| effects[deletion].t += 5.0);
        let dropped = wrong(|effects, deletion| drop(effects.remove(deletion)));
        let added = wrong(|effects, deletion| effects.push(effects[deletion].clone()));
        let untainted = wrong(|effects, _| effects.retain(|seen| !seen.is_no_execute_added()));
        for (what, explained) in
            [("shifted", shifted), ("dropped", dropped), ("added", added), ("without its taint", untainted)]
        {
            assert!(explained.is_err(), "{name}, one deletion {what}: {explained:?}");
        }
    }
}

/// The recordings of a kind by file name; none where there is no folder of that kind.
fn files<R: DeserializeOwned>(kind: &str) -> Option<BTreeMap<String, R>> {
    let own = || Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors");
    let root = std::env::var_os("KORDON_VECTORS").map_or_else(own, PathBuf::from);
    assert!(root.is_dir(), "{} is no folder of recordings", root.display());
    let entries = std::fs::read_dir(root.join(kind)).ok()?;
    let paths = entries.map(|entry| entry.expect("a readable folder").path());
    let json = paths.filter(|path| path.extension().is_some_and(|extension| extension == "json"));
    let named =
        |path: PathBuf| (path.file_name().expect("a file").to_string_lossy().into_owned(), read(&path));
    Some(json.map(named).collect())
}

fn read<R: DeserializeOwned>(path: &Path) -> R {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
