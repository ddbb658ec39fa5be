//! The measured accuracy of forecasts by a shadow (an engine that predicts a controller's writes and writes nothing),
//! for a controller that behaves as the shadow assumes, and for a controller that behaves otherwise.

use std::collections::BTreeSet;

use kordon_core::{
    cluster::{ConditionStatus, NodeName, TaintEffect},
    engine::{Origin, ServerVersion, Settings, Write},
    forecast::{
        Accuracy, EventKind,
        accuracy::{EventCounts, MissReason},
    },
};
use kordon_time::Span;

use crate::sim::Sim;

fn settings() -> Settings {
    Settings::defaults(ServerVersion::new(1, 36))
}

/// Creates twelve nodes in three zones, a controller with these settings, and a shadow engine that predicts the
/// controller with the default settings. Each node has two pods that tolerate a failure for 10 s.
fn watched(controller: Settings) -> Sim {
    let mut sim = Sim::new();
    for number in 0..12 {
        let node = format!("n{number:02}");
        sim.add_node(&node, ["a", "b", "c"][number % 3], Span::from_millis(700 * number as i64));
        sim.add_pod(&format!("p{number:02}"), &node, Some(10));
        sim.add_pod(&format!("q{number:02}"), &node, Some(10));
    }
    sim.start_controller(controller, Span::from_millis(300));
    sim.run(Span::from_secs(60));
    sim.attach_shadow(settings());
    sim.accuracy = Some(Accuracy::new(settings().node_monitor_period.value));
    sim
}

/// Returns the numbers of predicted events, of unforeseeable events, and of missed events.
fn judged(counts: EventCounts) -> (usize, usize, usize) {
    (counts.predicted(), counts.unforeseeable, counts.missed())
}

#[test]
fn what_a_controller_does_to_silent_nodes_and_their_pods_was_predicted() {
    let mut sim = watched(settings());
    for node in ["n00", "n03", "n01"] {
        sim.silence(node);
    }
    sim.run_with_forecasts(120);
    let report = sim.accuracy.expect("given").report();
    assert_eq!(judged(report.kinds[&EventKind::Unknown]), (3, 0, 0), "{report:?}");
    assert_eq!(judged(report.kinds[&EventKind::NoExecute]), (3, 0, 0), "{report:?}");
    assert_eq!(judged(report.kinds[&EventKind::Deletion]), (6, 0, 0), "{report:?}");
    assert_eq!(judged(report.total()), (12, 0, 0));
    assert!(report.worst.is_some_and(|worst| worst <= Span::from_secs(1)), "{report:?}");
    assert!(report.median <= report.worst && report.misses.is_empty());
}

/// Three nodes of a zone become not Ready at once. No forecast can predict the taint of the first node. After it, two
/// nodes are waiting, and it is random which of them is tainted next.
#[test]
fn which_of_two_waiting_nodes_is_tainted_is_chance() {
    let mut sim = watched(settings());
    for number in 0..8 {
        sim.add_node(&format!("x{number}"), "a", Span::from_millis(300 * number));
    }
    sim.run_with_forecasts(30);
    for node in ["n00", "n03", "n06"] {
        sim.post(node, ConditionStatus::False);
    }
    sim.run_with_forecasts(60);
    let report = sim.accuracy.expect("given").report();
    let taints = report.kinds[&EventKind::NoExecute];
    assert_eq!((taints.unforeseeable, taints.by_chance, taints.on_time), (1, 1, 1), "{report:?}");
    assert_eq!(report.most_among, 2, "{report:?}");
}

#[test]
fn what_a_kubelet_posts_could_not_be_known_before() {
    let mut sim = watched(settings());
    sim.run_with_forecasts(20);
    sim.post("n00", ConditionStatus::False);
    sim.run_with_forecasts(30);
    let report = sim.accuracy.expect("given").report();
    assert_eq!(judged(report.kinds[&EventKind::NoExecute]), (0, 1, 0), "{report:?}");
    assert_eq!(judged(report.kinds[&EventKind::Deletion]), (2, 0, 0), "{report:?}");
}

/// The controller's grace period is 30 s; the shadow engine, which predicts the controller, assumes 50 s.
#[test]
fn a_controller_with_other_settings_is_missed_by_name() {
    let mut other = settings();
    other.set("node-monitor-grace-period", "30s", Origin::Override).expect("valid");
    let mut sim = watched(other);
    sim.silence("n04");
    sim.run_with_forecasts(60);
    let report = sim.accuracy.expect("given").report();
    assert_eq!(judged(report.kinds[&EventKind::Unknown]), (0, 0, 1), "{report:?}");
    let miss = &report.misses[0];
    assert_eq!((miss.kind, &miss.node), (EventKind::Unknown, &NodeName::from("n04")));
    assert!(miss.off.is_some_and(|off| off > Span::from_secs(10)), "{miss}");
    assert!(
        miss.to_string().starts_with("Unknown of n04: ")
            && miss.to_string().ends_with(" earlier than predicted")
    );
}

/// Lets a node fall silent under a controller with this grace period in seconds, while the shadow engine that predicts
/// the controller assumes 50 s. Returns the error of the predicted time of Unknown: predicted minus actual time.
fn off_with_grace(grace: i64) -> Span {
    let mut other = settings();
    other.set("node-monitor-grace-period", &format!("{grace}s"), Origin::Override).expect("valid");
    let mut sim = watched(other);
    sim.silence("n04");
    sim.run_with_forecasts(grace + 30);
    let report = sim.accuracy.expect("given").report();
    let miss = report.misses.iter().find(|miss| miss.kind == EventKind::Unknown).expect("missed");
    let off = miss.off.expect("it was predicted for another time");
    let (reason, most) = if off.is_negative() {
        (MissReason::Late, report.latest)
    } else {
        (MissReason::Early, report.earliest)
    };
    assert_eq!(miss.reason, reason, "{report:?}");
    let magnitude = off.max(-off);
    assert!(most >= Some(magnitude) && report.worst >= Some(magnitude), "{report:?}");
    off
}

/// The prediction is off by the difference between the two grace periods, and by up to two monitor periods because the
/// controller and its shadow engine run their passes at different times.
#[test]
fn errors_are_shown_however_large_they_are() {
    for (grace, expected) in [(30, 20), (80, -30), (120, -70)] {
        let off = off_with_grace(grace);
        let apart = off - Span::from_secs(expected);
        let passes = settings().node_monitor_period.value * 2 + Span::from_secs(1);
        assert!(apart <= passes && -apart <= passes, "grace period of {grace} s: off by {off}");
    }
}

/// The controller may taint nodes at a rate that the shadow does not assume, kubelets post their status at random, and
/// nodes come back.
#[test]
fn every_event_is_in_one_class() {
    for seed in 0..8 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut other = settings();
        let rate = ["0.05", "0.1", "1"][random.usize(..3)];
        other.set("node-eviction-rate", rate, Origin::Override).expect("valid");
        let mut sim = watched(other);
        let before = sim.done.len();
        for _ in 0..6 {
            let node = format!("n{:02}", random.usize(..12));
            match random.usize(..4) {
                0 => sim.post(&node, ConditionStatus::False),
                1 => sim.accuracy.as_mut().expect("given").restart(),
                _ => sim.silence(&node),
            }
            sim.run_with_forecasts(random.i64(1..60));
        }
        let written: Vec<&Write> =
            sim.done[before..].iter().map(|effect| &effect.write).filter(|write| is_event(write)).collect();
        // When a node's taint changes, the controller again deletes pods whose deletion has already begun.
        let is_deletion = |write: &&&Write| matches!(write, Write::DeletePod { .. });
        let deleted: BTreeSet<_> = written
            .iter()
            .filter_map(|write| match write {
                Write::DeletePod { pod, .. } => Some(pod),
                _ => None,
            })
            .collect();
        let happened = written.iter().filter(|write| !is_deletion(write)).count() + deleted.len();
        let report = sim.accuracy.as_ref().expect("given").report();
        let total = report.total();
        let reasons: usize = total.reasons().map(|(_, count)| count).sum();
        assert_eq!(reasons, total.missed(), "seed {seed}");
        let parts = total.on_time + total.by_chance + total.unforeseeable + reasons + total.not_compared;
        assert_eq!((parts, total.all()), (happened, happened), "seed {seed}: {report:?}\n{written:#?}");
        assert!(total.missed() >= report.misses.len(), "seed {seed}");
        let outcomes = report.outcomes.counts;
        let deletions = report.kinds.get(&EventKind::Deletion).map_or(0, |counts| counts.all());
        assert_eq!(outcomes.all(), deletions, "seed {seed}: every evicted pod has one outcome");
        let differences: usize = report.outcomes.differences.iter().map(|other| other.pods).sum();
        assert_eq!(differences, outcomes.wrong, "seed {seed}");
    }
}

/// Whether a write of the controller is an event that is compared with forecasts.
fn is_event(write: &Write) -> bool {
    match write {
        Write::MarkUnknown { .. } | Write::DeletePod { .. } => true,
        Write::SwapTaints { add, .. } => add.iter().any(|taint| taint.effect == TaintEffect::NoExecute),
        _ => false,
    }
}

#[test]
fn nothing_is_compared_with_forecasts_from_before_an_outage() {
    let mut sim = watched(settings());
    sim.silence("n00");
    sim.run_with_forecasts(40);
    sim.accuracy.as_mut().expect("given").restart();
    sim.run(Span::from_secs(30));
    let total = sim.accuracy.expect("given").report().total();
    assert_eq!(judged(total), (0, 0, 0));
    assert!(total.not_compared > 0 && total.all() == total.not_compared, "{total:?}");
}
