//! Conformance of kordon with recordings of the real components.
//!
//! Reads `tests/vectors/`, or the folder that `KORDON_VECTORS` names, which has one folder for each kind of recording.
//! There is one test for each kind. It prints how many recordings agree. For each recording that does not agree, it
//! prints the first differences. A kind without recordings is an error.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use serde::de::DeserializeOwned;

use crate::{
    common::{
        lifecycle::{LifecycleRecording, RecordedEffect},
        placements,
        recordings::{own, read, recordings, root},
    },
    drains,
    rankings::{PressureRecording, RecordedPod},
};

/// The kinds of recordings, each a folder.
const KINDS: [&str; 5] = ["drain", "lifecycle", "lifecycle-varying", "placement", "pressure"];

/// Maximum number of differences that are printed for a recording.
const SHOWN: usize = 5;

#[test]
fn lifecycle() {
    check("lifecycle", |recording: &LifecycleRecording| recording.differences(&recording.play()));
}

/// Scenarios in which upstream's runs differed. For each recorded run, the test finds random choices of upstream that
/// lead to this run.
#[test]
fn varying() {
    check("lifecycle-varying", |recording: &LifecycleRecording| {
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
    check("drain", drains::DrainRecording::differences);
}

#[test]
fn placement() {
    check("placement", placements::PlacementRecording::differences);
}

/// Each file of the kind `pressure` has a list of recordings.
#[test]
fn pressure() {
    let lists =
        recordings::<Vec<PressureRecording>>(&root(), "pressure").unwrap_or_else(|error| panic!("{error}"));
    let recordings = lists.into_values().flatten().map(|recording| (recording.name.clone(), recording));
    compare("pressure", &recordings.collect(), PressureRecording::differences);
}

#[test]
fn every_folder_of_recordings_is_compared() {
    let entries = fs::read_dir(own("")).expect("a readable folder");
    let folders = entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("text"));
    assert_eq!(folders.collect::<BTreeSet<_>>(), KINDS.map(String::from).into());
}

#[test]
fn a_kind_without_recordings_is_an_error() {
    let root = tempfile::tempdir().expect("a folder");
    let load = |root: &Path| recordings::<LifecycleRecording>(root, "lifecycle").map(|loaded| loaded.len());
    let error = |root: &Path| load(root).expect_err("no recordings");
    assert!(error(&root.path().join("nowhere")).contains("nowhere/lifecycle: No such file"));
    assert!(error(root.path()).contains("/lifecycle: No such file"));
    let kind = root.path().join("lifecycle");
    fs::create_dir(&kind).expect("created");
    assert!(error(root.path()).contains("lifecycle: no recordings (*.json)"));
    fs::write(kind.join("README.md"), "").expect("written");
    assert!(error(root.path()).contains("lifecycle: no recordings (*.json)"));
    fs::write(kind.join("broken.json"), "{").expect("written");
    assert!(error(root.path()).contains("broken.json: EOF"));
    fs::remove_file(kind.join("broken.json")).expect("removed");
    let name = "taint--silent-node.json";
    fs::copy(own("lifecycle").join(name), kind.join(name)).expect("copied");
    assert_eq!(load(root.path()), Ok(1));
}

#[test]
fn a_wrong_recorded_drain_does_not_agree() {
    let folder = own("drain");
    let right: drains::DrainRecording =
        read(&folder.join("pdb--min-available-one-at-a-time.json")).expect("a recording");
    assert_eq!(right.differences(), Vec::<String>::new());
    let wrong = |change: fn(&mut drains::Recorded)| {
        let mut wrong = right.clone();
        change(&mut wrong.recorded);
        wrong.differences().len()
    };
    assert_eq!(wrong(|recorded| recorded.drain.seconds += 5.0), 1);
    assert_eq!(wrong(|recorded| recorded.drain.seconds -= 1.0), 1, "kubectl was done before the plan is");
    assert_eq!(wrong(|recorded| recorded.drain.left.clear()), 1);
    assert_eq!(wrong(|recorded| recorded.drain.stayed.clear()), 1);
    assert_eq!(wrong(|recorded| recorded.evict.values_mut().for_each(|answer| answer.code = 429)), 2);
}

#[test]
fn a_wrong_recorded_placement_does_not_agree() {
    let folder = own("placement");
    let wrongs = [
        ("score--image-locality.json", "node:n2", None),
        ("modern--preempt--later-start-goes.json", "nominated:n1 victims:old", None),
        ("modern--preempt--later-start-goes.json", "unschedulable", None),
        ("fit--none.json", "unschedulable", Some("0/2 nodes are available: 1 Insufficient cpu.")),
    ];
    for (name, outcome, message) in wrongs {
        let mut recording: placements::PlacementRecording = read(&folder.join(name)).expect("a recording");
        assert_eq!(recording.differences(), Vec::<String>::new(), "{name}");
        recording.recorded.results[0].outcomes = BTreeMap::from([(outcome.into(), 12)]);
        recording.recorded.results[0].message = message.map(Into::into);
        assert_eq!(recording.differences().len(), 1, "{name}, as if it had been {outcome}");
    }
}

#[test]
fn a_wrong_recorded_ranking_does_not_agree() {
    let all: Vec<PressureRecording> =
        read(&own("pressure").join("pressure.json")).expect("a list of recordings");
    let right = all.first().expect("one");
    assert_eq!(right.differences(), Vec::<String>::new());
    let wrong = |change: fn(&mut PressureRecording)| {
        let mut wrong = right.clone();
        change(&mut wrong);
        wrong.differences().len()
    };
    fn order_of(recording: &mut PressureRecording) -> &mut Vec<Vec<String>> {
        recording.recorded.first_evicted_first.get_mut("memory.available").expect("a ranking")
    }
    fn first_pod(recording: &mut PressureRecording) -> &mut RecordedPod {
        recording.recorded.pods.values_mut().next().expect("a pod")
    }
    assert_eq!(wrong(|recording| order_of(recording).swap(0, 1)), 1);
    assert_eq!(wrong(|recording| drop(order_of(recording).remove(0))), 1);
    assert_eq!(wrong(|recording| order_of(recording)[0].push("other".into())), 1);
    assert_eq!(wrong(|recording| first_pod(recording).critical = true), 1);
    assert_eq!(wrong(|recording| first_pod(recording).oom_score_adj[0] += 1), 1);
    assert_eq!(wrong(|recording| first_pod(recording).qos = "BestEffort".into()), 1);
}

#[test]
fn a_wrong_recording_does_not_agree() {
    let folder = own("lifecycle");
    for name in ["taint--silent-node.json", "modern--daemonset-pods.json", "modern--rate-limited.json"] {
        let right: LifecycleRecording = read(&folder.join(name)).expect("a recording");
        let ours = right.play();
        assert_eq!(right.differences(&ours), Vec::<String>::new(), "{name}");
        let a_deletion =
            right.recorded.effects.iter().position(|seen| seen.effect == "pod-delete").expect("one");
        let wrong = |change: fn(&mut Vec<RecordedEffect>, usize)| {
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
    let folder = own("lifecycle-varying");
    for name in ["modern--partial-large-zone.json", "modern--single-node-cluster.json"] {
        let runs = read::<LifecycleRecording>(&folder.join(name)).expect("a recording").runs();
        let a_deletion = |run: &LifecycleRecording| {
            run.recorded.effects.iter().position(|seen| seen.effect == "pod-delete")
        };
        let (right, deletion) = runs
            .iter()
            .find_map(|run| Some((run, a_deletion(run)?)))
            .expect("a run in which a pod is deleted");
        assert!(right.explanation().is_ok(), "{name}");
        let wrong = |change: fn(&mut Vec<RecordedEffect>, usize)| {
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

/// Compares all recordings of one kind with what kordon computes. Each file of this kind has one recording.
fn check<R: DeserializeOwned>(kind: &str, differences: impl Fn(&R) -> Vec<String>) {
    let recordings = recordings::<R>(&root(), kind).unwrap_or_else(|error| panic!("{error}"));
    compare(kind, &recordings, differences);
}

/// Compares recordings with what kordon computes, and prints how many agree. Fails if a recording differs.
fn compare<R>(kind: &str, recordings: &BTreeMap<String, R>, differences: impl Fn(&R) -> Vec<String>) {
    let mut differing = BTreeMap::new();
    for (name, recording) in recordings {
        let differences = differences(recording);
        if !differences.is_empty() {
            differing.insert(name, differences);
        }
    }
    let of = recordings.len();
    println!("{kind}: {} of {of} recordings agree", of - differing.len());
    for (name, differences) in &differing {
        println!("  {name}");
        differences.iter().take(SHOWN).for_each(|difference| println!("    {difference}"));
    }
    assert!(differing.is_empty(), "{} recordings differ", differing.len());
}
