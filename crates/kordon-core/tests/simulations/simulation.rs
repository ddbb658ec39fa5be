//! The engine as a controller and as its shadow (an engine that only predicts), on simulated clusters: the controller
//! does what its shadow predicts.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use kordon_core::{
    cluster::{
        AccessModes, Change, Claim, ConditionStatus, FeedKind, Key, Known, NodeName, ObjectEvent, Owner,
        OwnerKind, SchedulingSpec, TaintEffect, Termination, Version, VolumeProperties, Workload,
        WorkloadKind, WorkloadStage, scheduling::PodVolume,
    },
    engine::{
        Cause, Certainty, Confidence, Deletion, Due, Effect, Engine, NodeStage, Origin, ServerVersion,
        Settings, WatchHealth, Write, ZoneState,
    },
    forecast::{
        self, Assumptions, DeletedRange, EventRanges, Forecast, ForecastKind, ForecastStart, Incident,
        IncidentKind,
    },
    plan::{Cancellation, TypicalEnvironment},
    why::{Explainer, Step},
};
use kordon_time::{ClusterTime, Span, Timestamp};
use proptest::prelude::*;

use crate::sim::{RENEWAL, Sim, marks_unknown};

/// How long in advance an effect has to be predicted.
const NOTICE: Span = Span::from_secs(5);
/// A node counts as silent this long after its last renewal: half of its grace period of 50 s, and a second.
const SILENT_AFTER: Span = Span::from_secs(26);
/// Allowed error of a prediction: a monitor period and a second.
const TOLERANCE: Span = Span::from_secs(6);
const HOUR: Span = Span::from_secs(3600);

fn settings() -> Settings {
    Settings::defaults(ServerVersion::new(1, 36))
}

/// Creates this many Ready nodes in three zones, one pod on each node, and a controller. Runs them for a minute without
/// failures.
fn peaceful(nodes: usize, settings: &Settings) -> Sim {
    peaceful_with_clock(nodes, settings, Span::ZERO)
}

/// Like [`peaceful`], with the cluster's clock ahead of kordon's by this much.
fn peaceful_with_clock(nodes: usize, settings: &Settings, ahead: Span) -> Sim {
    let mut sim = Sim::new();
    sim.set_clock(ahead);
    sim.measure_clock();
    for number in 0..nodes {
        let zone = ["a", "b", "c"][number % 3];
        sim.add_node(&format!("n{number:02}"), zone, Span::from_millis(700 * number as i64 % 10_000));
        sim.add_pod(&format!("p{number:02}"), &format!("n{number:02}"), Some(300));
    }
    sim.start_controller(settings.clone(), Span::from_millis(300));
    sim.run(Span::from_secs(60));
    sim
}

fn what(effect: &Effect) -> Option<ForecastKind> {
    Some(match &effect.write {
        Write::MarkUnknown { node, .. } => ForecastKind::Unknown { node: node.clone() },
        Write::SwapTaints { node, add, .. } => {
            let taint = add.iter().find(|taint| taint.effect == TaintEffect::NoExecute)?;
            ForecastKind::NoExecute { node: node.clone(), key: taint.key.clone() }
        }
        Write::DeletePod { pod, node, deletion: Deletion::Collected { .. }, .. } => {
            ForecastKind::Removed { pod: pod.clone(), node: node.clone() }
        }
        Write::DeletePod { pod, node, .. } => ForecastKind::Deleted { pod: pod.clone(), node: node.clone() },
        Write::SetLabels { .. }
        | Write::MarkPodNotReady { .. }
        | Write::MarkPodLost { .. }
        | Write::RecordEvent(_) => return None,
    })
}

#[test]
fn a_silent_node_goes_through_every_stage_in_order() {
    let mut sim = peaceful(6, &settings());
    let stage = |sim: &Sim| {
        let node = sim.cluster.node(&"n00".into()).expect("added");
        sim.shadow.as_ref().expect("attached").node_view(node).expect("known").stage
    };
    sim.attach_shadow(settings());
    assert_eq!(stage(&sim), NodeStage::Healthy);
    sim.silence("n00");
    let mut stages = BTreeSet::new();
    for _ in 0..700 {
        sim.run(Span::from_millis(100));
        stages.insert(stage(&sim));
    }
    assert!(stages.contains(&NodeStage::Healthy) && stages.contains(&NodeStage::Tainted), "{stages:?}");
    let shadow = sim.shadow.as_ref().expect("attached");
    let pending = shadow.evictions(&sim.cluster);
    assert_eq!(pending.len(), 1);
    assert!(matches!(pending[0].due, Due::At { certainty: Certainty::Observed, .. }));
    let why = pending[0].why.to_string();
    assert!(why.contains("unreachable:NoExecute") && why.contains("tolerated for 5m00s"), "{why}");
}

/// Lets these nodes fall silent under a controller with these flags, while the shadow engine that predicts it assumes
/// upstream's defaults. Returns the shadow's notices that name a flag.
fn mismatches(flags: &[(&str, &str)], lost: &[&str]) -> Vec<String> {
    let mut theirs = settings();
    for (flag, text) in flags {
        theirs.set(flag, text, Origin::Cluster).expect("a good flag");
    }
    let mut sim = peaceful(24, &theirs);
    sim.attach_shadow(settings());
    sim.run(Span::from_secs(30));
    for node in lost {
        sim.silence(node);
    }
    sim.run(Span::from_secs(150));
    sim.notices
        .iter()
        .map(|notice| notice.text.clone())
        .filter(|text| text.contains("would explain"))
        .collect()
}

#[test]
fn a_controller_that_differs_from_its_settings_is_reported_with_the_flag_that_would_explain_it() {
    let lost = ["n00", "n03", "n06"];
    assert_eq!(mismatches(&[], &lost), Vec::<String>::new());
    for (flag, text) in [
        ("node-monitor-grace-period", "20s"),
        ("node-monitor-grace-period", "100s"),
        ("node-eviction-rate", "1"),
    ] {
        let reported = mismatches(&[(flag, text)], &lost);
        assert_eq!(reported.len(), 1, "{flag}={text}: {reported:?}");
        assert!(reported[0].contains(&format!("--{flag}=")), "{flag}={text}: {reported:?}");
    }
    let most = ["n00", "n03", "n06", "n09", "n12", "n15"];
    let reported = mismatches(&[("unhealthy-zone-threshold", "0.95")], &most);
    assert!(reported.iter().any(|text| text.contains("--unhealthy-zone-threshold")), "{reported:?}");
}

#[test]
fn a_node_back_before_its_grace_ends_keeps_its_pods() {
    let mut sim = peaceful(6, &settings());
    sim.silence("n00");
    sim.run(Span::from_secs(35));
    sim.wake("n00");
    sim.run(HOUR);
    assert!(sim.done.iter().filter_map(what).next().is_none());
}

#[test]
fn a_node_back_before_its_pods_time_is_up_keeps_them() {
    let mut sim = peaceful(6, &settings());
    sim.silence("n00");
    sim.run(Span::from_secs(200));
    sim.wake("n00");
    sim.run(HOUR);
    let happened: Vec<ForecastKind> = sim.done.iter().filter_map(what).collect();
    assert_eq!(happened.len(), 2, "Unknown and the taint, no deletion: {happened:?}");
    assert!(sim.cluster.nodes().iter().all(|node| node.taints.is_empty()));
}

#[test]
fn when_everything_is_down_nothing_is_evicted() {
    let mut sim = peaceful(6, &settings());
    (0..6).for_each(|number| sim.silence(&format!("n{number:02}")));
    sim.run(HOUR);
    let deleted = sim.done.iter().filter(|effect| matches!(effect.write, Write::DeletePod { .. })).count();
    assert_eq!(deleted, 0);
    let zones = sim.controller.as_ref().expect("started").zones(sim.now);
    assert!(zones.iter().all(|zone| zone.state == ZoneState::FullDisruption && zone.rate == 0.0));
}

#[test]
fn a_shadow_does_not_predict_taints_that_exist() {
    let mut sim = peaceful(6, &settings());
    ["n00", "n03"].iter().for_each(|node| sim.silence(node));
    sim.run(Span::from_secs(120));
    sim.attach_shadow(settings());
    sim.run(Span::from_secs(20));
    let shadow = sim.shadow.as_ref().expect("attached");
    let forecast = Forecast::run(shadow, &sim.cluster, sim.now, HOUR);
    assert!(
        forecast.steps.iter().all(|step| matches!(step.kind, ForecastKind::Deleted { .. })),
        "{:?}",
        forecast.steps
    );
    assert_eq!(forecast.steps.len(), 2);
    assert!(shadow.zones(sim.now).iter().all(|zone| zone.queue.is_empty()));
}

#[test]
fn a_forecast_that_was_cancelled_predicts_nothing_more() {
    let mut sim = peaceful(6, &settings());
    sim.attach_shadow(settings());
    sim.run(Span::from_secs(20));
    sim.silence("n00");
    sim.run(Span::from_secs(60));
    let engine = sim.shadow.as_ref().expect("attached");
    let steps = |cancellation: &Cancellation| {
        let start = ForecastStart { engine, cluster: &sim.cluster, now: sim.now };
        Forecast::until_cancelled(start, &Assumptions::default(), HOUR, cancellation).steps.len()
    };
    let cancellation = Cancellation::default();
    assert!(steps(&cancellation) > 0);
    cancellation.cancel();
    assert_eq!(steps(&cancellation), 0);
}

#[test]
fn a_forecast_between_the_passes_of_shadow_and_controller_is_complete() {
    for phase in [400, 1300, 2600, 3900, 4700] {
        let mut sim = peaceful(24, &settings());
        sim.run(Span::from_millis(phase));
        sim.attach_shadow(settings());
        sim.run(Span::from_secs(20));
        for node in ["n03", "n09", "n15"] {
            sim.silence(node);
        }
        assert_eq!(predict_each_taint(&mut sim, &format!("phase {phase}")), 3);
    }
}

#[test]
fn a_node_whose_taint_is_swapped_costs_no_token_again() {
    for phase in [400, 1300, 2600, 3900, 4700] {
        let mut slow = settings();
        slow.node_eviction_rate.value = 0.05;
        let mut sim = peaceful(24, &slow);
        sim.run(Span::from_millis(phase));
        sim.attach_shadow(slow);
        sim.run(Span::from_secs(20));
        sim.post("n00", ConditionStatus::False);
        sim.silence("n00");
        sim.run(Span::from_secs(6));
        // n03 is found silent soon after n00. If the change of n00's taint from not-ready to unreachable took a token
        // of the zone's rate limiter, n03 would have to wait.
        sim.fail("n03");
        sim.run(SILENT_AFTER);
        assert_eq!(predict_each_taint(&mut sim, &format!("phase {phase}")), 2);
    }
}

/// Runs for two minutes. Asserts that the forecasts of the shadow engine, from 15 s before the first NoExecute taint
/// on, contain all later NoExecute taints. Taints that replace another taint do not count. Returns the number of taints
/// that count.
fn predict_each_taint(sim: &mut Sim, reported: &str) -> usize {
    let mut forecasts = Vec::new();
    for _ in 0..1200 {
        sim.run(Span::from_millis(100));
        let shadow = sim.shadow.as_ref().expect("attached");
        forecasts.push(Forecast::run(shadow, &sim.cluster, sim.now, Span::from_secs(120)));
    }
    let is_taint = |what: &ForecastKind| matches!(what, ForecastKind::NoExecute { .. });
    let is_swap =
        |effect: &Effect| matches!(&effect.write, Write::SwapTaints { remove, .. } if !remove.is_empty());
    let tainted = |effect: &&Effect| what(effect).is_some_and(|what| is_taint(&what)) && !is_swap(effect);
    let real: Vec<Timestamp> = sim.done.iter().filter(tainted).map(|effect| effect.at).collect();
    for forecast in forecasts.iter().filter(|forecast| forecast.made + Span::from_secs(15) > real[0]) {
        let ahead = real.iter().filter(|at| **at > forecast.made);
        let swapped = |step: &&forecast::ForecastStep| step.why.0.contains(&Cause::Swapped);
        let steps = forecast.steps.iter().filter(|step| is_taint(&step.kind) && !swapped(step));
        let mut predicted = steps.map(|step| step.at);
        for at in ahead {
            let next = predicted.next();
            let off = next.map(|next| next.since(*at).max(at.since(next)));
            let made = forecast.made;
            assert!(off.is_some_and(|off| off <= TOLERANCE), "{reported}: {next:?} for {at} at {made}");
        }
    }
    real.len()
}

#[test]
fn a_disconnected_shadow_marks_no_node_and_says_so() {
    let mut sim = peaceful(6, &settings());
    sim.attach_shadow(settings());
    sim.shadow_sees = false;
    let since = sim.now;
    let shadow = sim.shadow.as_mut().expect("attached");
    shadow.handle_watch_health(&sim.cluster, WatchHealth::Disconnected { since }, sim.now);
    sim.run(HOUR);
    assert!(sim.recorded.iter().filter_map(marks_unknown).next().is_none());
    let shadow = sim.shadow.as_mut().expect("attached");
    assert_eq!(shadow.confidence(sim.now), Confidence::Disconnected { since });
    assert_eq!(Forecast::run(shadow, &sim.cluster, sim.now, HOUR).steps, []);
    shadow.handle_watch_health(&sim.cluster, WatchHealth::Live, sim.now);
    sim.shadow_sees = true;
    sim.run(HOUR);
    assert!(sim.recorded.iter().filter_map(marks_unknown).next().is_none(), "all of them live");
}

#[test]
fn the_eviction_of_a_pod_that_terminates_is_not_reported_as_cancelled() {
    let mut sim = peaceful(6, &settings());
    sim.attach_shadow(settings());
    for name in ["stays", "leaves"] {
        sim.add_pod(name, "n00", Some(300));
    }
    sim.add_taint("n00");
    let mut pod = (**sim.cluster.pod(&Key::new("default", "leaves")).expect("there")).clone();
    pod.version = Version(pod.version.0 + 100);
    let deadline = ClusterTime::new(sim.now + pod.grace);
    pod.termination = Some(Termination { deadline, grace: pod.grace }.into());
    sim.tell(Change::Pod(ObjectEvent::Applied(pod)));
    let mut node = (**sim.cluster.node(&"n00".into()).expect("there")).clone();
    node.version = Version(node.version.0 + 100);
    node.taints = std::iter::empty().collect();
    sim.tell(Change::Node(ObjectEvent::Applied(node)));
    let is_told = |pod: &str| {
        let text = format!("eviction of pod default/{pod} cancelled");
        sim.notices.iter().any(|notice| notice.text == text)
    };
    assert_eq!((is_told("stays"), is_told("leaves")), (true, false), "{:?}", sim.notices);
}

#[test]
fn without_a_leader_nothing_is_predicted() {
    let mut sim = peaceful(6, &settings());
    sim.lead("first", sim.now - Span::from_secs(60));
    sim.attach_shadow(settings());
    sim.controller = None;
    let last_renewal = sim.now;
    sim.silence("n00");
    sim.run(Span::from_secs(120));
    let shadow = sim.shadow.as_ref().expect("attached");
    assert_eq!(shadow.confidence(sim.now), Confidence::NoController { since: last_renewal });
    assert_eq!(Forecast::run(shadow, &sim.cluster, sim.now, HOUR).steps, []);
    assert!(sim.notices.iter().any(|notice| notice.text.contains("no evictions")));
    sim.lead("second", sim.now);
    let shadow = sim.shadow.as_ref().expect("attached");
    let forecast = Forecast::run(shadow, &sim.cluster, sim.now, HOUR);
    let unknown = forecast.of_node(&"n00".into()).next().expect("predicted");
    assert!(matches!(unknown.kind, ForecastKind::Unknown { .. }));
    let grace = unknown.at.since(sim.now);
    assert!(
        grace >= Span::from_secs(50) && grace <= Span::from_secs(56),
        "another whole grace period: {grace}"
    );
}

/// Runs the simulation for this many seconds with a leader that renews its Lease every two seconds.
fn run_led(sim: &mut Sim, acquired: Timestamp, seconds: i64) {
    for _ in 0..seconds / 2 {
        sim.lead("first", acquired);
        sim.run(Span::from_secs(2));
    }
}

#[test]
fn a_controller_that_was_paused_goes_on_as_predicted() {
    let mut sim = peaceful(15, &settings());
    let acquired = sim.now;
    sim.lead("first", acquired);
    sim.attach_shadow(settings());
    run_led(&mut sim, acquired, 20);
    sim.silence("n00");
    run_led(&mut sim, acquired, 30);
    // The controller pauses. Its shadow engine notices the failure of n01 and the taint of n05 before it knows of the
    // pause.
    sim.pause_controller();
    sim.run(Span::from_secs(5));
    sim.fail("n01");
    sim.add_taint("n05");
    sim.run(Span::from_secs(25));
    sim.fail("n02");
    sim.run(Span::from_secs(30));
    let before = sim.done.len();
    sim.lead("first", acquired);
    sim.resume_controller();
    let resumed = sim.now;
    run_led(&mut sim, acquired, 2);
    let shadow = sim.shadow.as_ref().expect("attached");
    let forecast = Forecast::run(shadow, &sim.cluster, sim.now, Span::from_secs(500));
    run_led(&mut sim, acquired, 500);

    let done = &sim.done[before..];
    let unknown = |node: &str| {
        let marks = |effect: &&Effect| marks_unknown(effect) == Some(&node.into());
        done.iter().find(marks).map(|effect| effect.at).expect("it is silent")
    };
    assert!(unknown("n00").since(resumed) < Span::from_secs(1), "the first pass comes at once");
    let happened: Vec<(Timestamp, ForecastKind)> = done
        .iter()
        .filter(|effect| effect.at > forecast.made)
        .filter_map(|effect| Some((effect.at, what(effect)?)))
        .collect();
    let count = |is: &dyn Fn(&ForecastKind) -> bool| happened.iter().filter(|(_, kind)| is(kind)).count();
    assert_eq!(count(&|kind| matches!(kind, ForecastKind::Unknown { .. })), 2, "n01 and n02");
    assert!(count(&|kind| matches!(kind, ForecastKind::Deleted { .. })) >= 4, "of all four nodes");
    for (at, kind) in happened {
        let step = forecast.steps.iter().find(|step| step.kind == kind);
        let off = step.map(|step| abs(step.at.since(at)));
        assert!(off.is_some_and(|off| off <= TOLERANCE), "{kind:?} at {at}: predicted {step:?}");
    }
}

#[test]
fn nothing_stays_of_a_pod_that_is_gone() {
    let mut sim = peaceful(12, &settings());
    sim.attach_shadow(settings());
    sim.silence("n00");
    sim.run(Span::from_secs(120));
    let remembers = |sim: &Sim| format!("{:?}", sim.shadow).contains("p00");
    assert!(remembers(&sim), "its eviction is pending");
    sim.tell(Change::Pod(ObjectEvent::Deleted(Key::new("default", "p00"))));
    sim.run(Span::from_secs(60));
    assert!(!remembers(&sim), "{:#?}", sim.shadow);
}

#[test]
fn from_1_37_a_controller_that_was_paused_marks_nodes_in_its_second_pass() {
    let marked_after = |minor: u32, paused: i64| {
        let settings = Settings::defaults(ServerVersion::new(1, minor));
        let mut sim = peaceful(6, &settings);
        let acquired = sim.now;
        sim.attach_shadow(settings);
        sim.lead("first", acquired);
        sim.silence("n00");
        sim.pause_controller();
        sim.run(Span::from_secs(paused));
        sim.lead("first", acquired);
        let shadow = sim.shadow.as_ref().expect("attached");
        let forecast = Forecast::run(shadow, &sim.cluster, sim.now, HOUR);
        forecast.of_node(&"n00".into()).next().expect("it is silent").at.since(sim.now).as_secs()
    };
    assert_eq!((marked_after(36, 70), marked_after(37, 70)), (0, 5));
    // After a pause that is shorter than the grace period, no node seems silent.
    assert_eq!(marked_after(37, 40), marked_after(36, 40));
}

#[test]
fn pods_leave_their_endpoints_when_a_forecast_says_so() {
    let mut sim = peaceful(12, &settings());
    sim.add_pod("more", "n00", Some(300));
    sim.attach_shadow(settings());
    sim.run(Span::from_secs(30));
    ["n00", "n03"].iter().for_each(|node| sim.silence(node));
    sim.run(SILENT_AFTER);
    let forecast =
        Forecast::run(sim.shadow.as_ref().expect("attached"), &sim.cluster, sim.now, Span::from_secs(300));
    let leave = |node: &str| forecast.of_node(&node.into()).map(|step| step.not_ready).next();
    assert_eq!((leave("n00"), leave("n03")), (Some(2), Some(1)));
    sim.run(Span::from_secs(300));
    for step in forecast.steps.iter().filter(|step| matches!(step.kind, ForecastKind::Unknown { .. })) {
        let marked = sim.done.iter().filter(|effect| {
            matches!(&effect.write, Write::MarkPodNotReady { node, .. } if node == step.kind.node())
                && abs(effect.at.since(step.at)) < TOLERANCE
        });
        assert_eq!(marked.count(), step.not_ready, "{step:?}");
    }
}

/// Gives a pod a ReplicaSet as its owner, and a claim. Only one node at a time can use the volume of the claim.
fn with_volume(sim: &mut Sim, pod: &str) {
    let key = sim.cluster.pods().iter().find(|known| known.key.name == *pod).expect("added").key.clone();
    let claim = Key { namespace: key.namespace.clone(), name: "data".into() };
    let modes = AccessModes { read_write_once: true, ..AccessModes::default() };
    let requested = VolumeProperties { modes, ..VolumeProperties::default() };
    sim.tell(Change::Claim(ObjectEvent::Applied(Claim { key: claim, requested, ..Claim::default() })));
    let mut pod = (**sim.cluster.pod(&key).expect("added")).clone();
    let replica_set = Workload {
        kind: WorkloadKind::ReplicaSet,
        key: Key { namespace: key.namespace.clone(), name: "web".into() },
        uid: "web".into(),
        version: Version(1),
        replicas: Some(1),
        selector: None,
        owner: None,
        replaces_only_failed: false,
        is_recreated: false,
        reboot_locks: Vec::new(),
        stateful: None,
        job: None,
        template: None,
        stage: WorkloadStage::Active,
    };
    let kind = OwnerKind::Workload(replica_set.kind);
    pod.owner = Some(Owner { kind, name: "web".into(), uid: "web".into() }.into());
    sim.tell(Change::Workload(replica_set.kind, ObjectEvent::Applied(replica_set)));
    let volumes = [PodVolume::Claim("data".into())].into();
    pod.scheduling = Arc::new(SchedulingSpec { volumes, ..SchedulingSpec::default() });
    pod.version = Version(pod.version.0 + 1_000_000);
    sim.tell(Change::Pod(ObjectEvent::Applied(pod)));
    for kind in [FeedKind::Workloads(WorkloadKind::ReplicaSet), FeedKind::Claims] {
        sim.tell(Change::Known(kind, Known::Live));
    }
}

#[test]
fn a_pod_with_a_read_write_once_volume_starts_only_once_that_is_detached() {
    let mut sim = peaceful(12, &settings());
    with_volume(&mut sim, "p00");
    sim.attach_shadow(settings());
    sim.run(Span::from_secs(30));
    let now = sim.now;
    let successor = |incidents: &[(i64, IncidentKind)]| {
        let incident = |(after, kind): &(i64, IncidentKind)| Incident {
            at: now + Span::from_secs(*after),
            node: "n00".into(),
            kind: *kind,
        };
        let assumptions = Assumptions { incidents: incidents.iter().map(incident).collect() };
        let shadow = sim.shadow.as_ref().expect("attached");
        let forecast = Forecast::under(&assumptions, shadow, &sim.cluster, now, HOUR);
        let environment = TypicalEnvironment { cluster: &sim.cluster, now };
        let succession = forecast.successors(&assumptions, &sim.cluster, environment);
        let found = succession.successors.into_iter().find(|successor| &*successor.of.name == "p00");
        let found = found.expect("it is evicted");
        let since = |at: Option<Timestamp>| at.map(|at| at.since(now).as_secs());
        let removed = forecast.steps.iter().find(|step| matches!(step.kind, ForecastKind::Removed { .. }));
        (since(found.evicted), since(found.ready), since(removed.map(|step| step.at)), found.why())
    };

    let (evicted, ready, _, why) = successor(&[(0, IncidentKind::Fails)]);
    assert!(evicted.is_some_and(|at| (350..380).contains(&at)), "{evicted:?}");
    assert_eq!(ready, None, "its kubelet never ends the old pod: {why}");
    assert!(why.contains("volume data is held"), "{why}");

    let (_, ready, ..) = successor(&[(0, IncidentKind::Fails), (1000, IncidentKind::Recovers)]);
    assert_eq!(ready, Some(1000), "detached when the node is back");

    let just_before = evicted.expect("it is evicted") - 1;
    let (evicted, ready, ..) = successor(&[(0, IncidentKind::Fails), (just_before, IncidentKind::Recovers)]);
    if let Some(evicted) = evicted {
        assert_eq!(ready, Some(evicted + 5), "its kubelet is back and ends the old pod");
    }

    let (_, ready, removed, _) = successor(&[(0, IncidentKind::Fails), (1000, IncidentKind::Removed)]);
    assert_eq!(ready, removed.map(|removed| removed + 360), "detached by force 6m after the pod is gone");
}

#[test]
fn equal_inputs_give_equal_outputs() {
    let run = || {
        let mut sim = peaceful(12, &settings());
        sim.attach_shadow(settings());
        ["n00", "n03", "n04"].iter().for_each(|node| sim.silence(node));
        sim.run(Span::from_secs(600));
        (sim.done, sim.recorded, sim.notices)
    };
    assert_eq!(run(), run());
}

#[test]
fn up_to_1_33_a_shadow_queues_a_node_one_pass_after_it_was_found_silent() {
    let settings = Settings::defaults(ServerVersion::new(1, 28));
    let mut sim = peaceful(20, &settings);
    sim.silence("n09");
    sim.silence("n15");
    sim.run(Span::from_secs(90));
    sim.attach_shadow(settings);
    sim.run(Span::from_secs(133));
    // One pass finds n18 silent, and the next one n00 too. The evictions of the zone then stop, so n18 is not tainted.
    sim.silence("n18");
    sim.run(Span::from_secs(7));
    sim.silence("n00");
    sim.run(Span::from_secs(60));
    let tainted = |effects: &[Effect]| -> Vec<String> {
        let is_no_execute = |effect: &&Effect| matches!(what(effect), Some(ForecastKind::NoExecute { .. }));
        effects.iter().filter(is_no_execute).map(|effect| effect.write.object()).collect()
    };
    assert_eq!(tainted(&sim.done), ["node/n15", "node/n09"]);
    assert_eq!(tainted(&sim.recorded), [""; 0], "the shadow predicts no further taint");
}

/// A random cluster: which of its nodes fall silent and when, and when the shadow engine is started. Times are in
/// seconds.
#[derive(Debug, Clone)]
struct Scenario {
    nodes: usize,
    minor: u32,
    silent: BTreeMap<usize, i64>,
    bears: Vec<Option<i64>>,
    attach: i64,
}

fn scenarios() -> impl Strategy<Value = Scenario> {
    let bears = prop_oneof![Just(None), Just(Some(300)), (0_i64..120).prop_map(Some)];
    (6_usize..24).prop_flat_map(move |nodes| {
        let silent = prop::collection::btree_map(0..nodes, 0_i64..300, 0..=nodes / 2);
        (Just(nodes), 28_u32..37, silent, prop::collection::vec(bears.clone(), nodes), 0_i64..400).prop_map(
            |(nodes, minor, silent, bears, attach)| Scenario { nodes, minor, silent, bears, attach },
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn the_controller_does_what_a_shadow_predicts(scenario in scenarios()) {
        let settings = Settings::defaults(ServerVersion::new(1, scenario.minor));
        let mut sim = peaceful(scenario.nodes, &settings);
        for (number, bears) in scenario.bears.iter().enumerate() {
            sim.add_pod(&format!("q{number:02}"), &format!("n{number:02}"), *bears);
        }
        let mut forecasts: Vec<Forecast> = Vec::new();
        for second in 0..900 {
            for (number, _) in scenario.silent.iter().filter(|(_, at)| **at == second) {
                sim.silence(&format!("n{number:02}"));
            }
            if second == scenario.attach {
                sim.attach_shadow(settings.clone());
            }
            sim.run(Span::from_secs(1));
            if let Some(shadow) = sim.shadow.as_ref().filter(|_| second % 30 == 0) {
                forecasts.push(Forecast::run(shadow, &sim.cluster, sim.now, Span::from_secs(600)));
            }
        }
        // From the moment at which all failing nodes are silent, forecasts have to be complete.
        let quiet = scenario.silent.values().max().copied().unwrap_or(0) + SILENT_AFTER.as_secs();
        let settled = sim.now - Span::from_secs(900 - quiet);
        compare(&sim.done, &forecasts, settled)?;
    }
}

/// A random cluster, and faults of its kubelets.
#[derive(Debug, Clone)]
struct RandomFaults {
    nodes: usize,
    minor: u32,
    /// For each fault: the second at which it happens, the number of its node, and the fault.
    fates: Vec<(i64, usize, NodeFault)>,
    /// For each node, how many seconds its additional pod tolerates a failure; `None` means forever.
    bears: Vec<Option<i64>>,
}

#[derive(Debug, Clone, Copy)]
enum NodeFault {
    Silent,
    Posts(ConditionStatus),
}

/// Seconds during which faults happen.
const TURMOIL: i64 = 240;

fn random_faults() -> impl Strategy<Value = RandomFaults> {
    let fate = prop_oneof![
        3 => Just(NodeFault::Silent),
        1 => Just(NodeFault::Posts(ConditionStatus::True)),
        1 => Just(NodeFault::Posts(ConditionStatus::False)),
    ];
    let bears = prop_oneof![Just(None), Just(Some(300)), (0_i64..120).prop_map(Some)];
    (3_usize..18).prop_flat_map(move |nodes| {
        let fates = prop::collection::vec((0..TURMOIL, 0..nodes, fate.clone()), 0..nodes * 2);
        (Just(nodes), 19_u32..37, fates, prop::collection::vec(bears.clone(), nodes))
            .prop_map(|(nodes, minor, fates, bears)| RandomFaults { nodes, minor, fates, bears })
    })
}

impl RandomFaults {
    fn settings(&self) -> Settings {
        Settings::defaults(ServerVersion::new(1, self.minor))
    }

    fn begin(&self) -> Sim {
        self.begin_with_clock(Span::ZERO)
    }

    fn begin_with_clock(&self, ahead: Span) -> Sim {
        let mut sim = peaceful_with_clock(self.nodes, &self.settings(), ahead);
        for (number, bears) in self.bears.iter().enumerate() {
            sim.add_pod(&format!("q{number:02}"), &format!("n{number:02}"), *bears);
        }
        sim
    }

    /// Applies the faults of this second, and runs the simulation for that second.
    fn apply(&self, second: i64, sim: &mut Sim) {
        for (_, number, fate) in self.fates.iter().filter(|(at, ..)| *at == second) {
            let node = format!("n{number:02}");
            match fate {
                NodeFault::Silent => sim.silence(&node),
                NodeFault::Posts(readiness) => sim.post(&node, *readiness),
            }
        }
        sim.run(Span::from_secs(1));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_controllers_own_engine_predicts_to_the_instant(faults in random_faults()) {
        let mut sim = faults.begin();
        // Runs until every node without heartbeats counts as silent.
        (0..TURMOIL + SILENT_AFTER.as_secs()).for_each(|second| faults.apply(second, &mut sim));
        let engine = sim.controller.as_ref().expect("started");
        let forecast = Forecast::run(engine, &sim.cluster, sim.now, Span::from_secs(600));
        sim.run(Span::from_secs(600));
        let mut predicted: Vec<_> = forecast.steps.into_iter().map(|step| (step.at, step.kind)).collect();
        // A Terminating pod may be deleted again because of another taint, which forecasts do not contain.
        let mut deleted = BTreeSet::new();
        let mut happened = Vec::new();
        for (at, what) in sim.done.iter().filter_map(|effect| Some((effect.at, what(effect)?))) {
            let is_new = !matches!(what, ForecastKind::Deleted { .. }) || deleted.insert(what.clone());
            if is_new && at > forecast.made {
                happened.push((at, what));
            }
        }
        predicted.sort();
        happened.sort();
        prop_assert_eq!(predicted, happened);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(50))]

    #[test]
    fn under_random_faults_no_probe_runs_backwards_and_every_effect_has_its_why(faults in random_faults()) {
        let mut sim = faults.begin();
        sim.attach_shadow(faults.settings());
        let probes = |sim: &Sim| -> Vec<[Option<Timestamp>; 2]> {
            let of = |engine: &Option<Engine>, node| Some(engine.as_ref()?.node_view(node)?.probe);
            sim.cluster.nodes().iter().map(|node| [&sim.controller, &sim.shadow].map(|e| of(e, node))).collect()
        };
        let mut before = probes(&sim);
        for second in 0..TURMOIL + 400 {
            faults.apply(second, &mut sim);
            let after = probes(&sim);
            prop_assert!(before.iter().zip(&after).all(|(before, after)| (0..2).all(|e| before[e] <= after[e])));
            before = after;
        }
        for effect in sim.done.iter().chain(&sim.recorded) {
            prop_assert!(!effect.why.0.is_empty(), "{effect:?}");
        }
    }

    #[test]
    fn the_same_faults_give_the_same_effects(faults in random_faults()) {
        let run = || {
            let mut sim = faults.begin();
            sim.attach_shadow(faults.settings());
            (0..TURMOIL + 200).for_each(|second| faults.apply(second, &mut sim));
            (sim.done, sim.recorded, sim.notices)
        };
        prop_assert_eq!(run(), run());
    }
}

/// Differences between the clocks of the cluster and of kordon, in seconds.
const DIFFERENCES: [i64; 6] = [-300, -3, 0, 3, 28, 300];

/// Starts a shadow engine at this second. Returns, for every ten seconds, its forecast, its confidence, and the
/// explanations of all nodes and pods.
fn answers(faults: &RandomFaults, ahead: Span, attach: i64) -> Vec<(Forecast, Confidence, Vec<Vec<Step>>)> {
    let mut sim = faults.begin_with_clock(ahead);
    let led_since = sim.now - Span::from_secs(30);
    let mut answers = Vec::new();
    for second in 0..TURMOIL + 100 {
        sim.lead("only", led_since);
        if second == attach {
            sim.attach_shadow(faults.settings());
        }
        faults.apply(second, &mut sim);
        let Some(engine) = sim.shadow.as_ref().filter(|_| second % 10 == 0) else { continue };
        let (cluster, now) = (&sim.cluster, sim.now);
        let forecast = Forecast::run(engine, cluster, now, Span::from_secs(600));
        let explainer = Explainer {
            engine,
            cluster,
            forecast: Some(&forecast),
            outcomes: None,
            staying: None,
            preempted: None,
            cordon_waits: &[],
            now,
        };
        let nodes = cluster.nodes().iter().map(|node| explainer.node(node));
        let steps = nodes.chain(cluster.pods().iter().map(|pod| explainer.pod(pod))).collect();
        answers.push((forecast, engine.confidence(now), steps));
    }
    answers
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn clocks_apart_change_no_prediction_and_no_explanation(
        faults in random_faults(),
        attach in 0..TURMOIL,
        ahead in prop::sample::select(&DIFFERENCES[..]),
    ) {
        let same = answers(&faults, Span::ZERO, attach);
        let apart = answers(&faults, Span::from_secs(ahead), attach);
        for (same, apart) in same.iter().zip(&apart) {
            prop_assert_eq!(&same.0, &apart.0, "{} s ahead, at {}", ahead, same.0.made);
            prop_assert_eq!(&same.1, &apart.1, "{} s ahead, at {}", ahead, same.0.made);
            prop_assert_eq!(&same.2, &apart.2, "{} s ahead, at {}", ahead, same.0.made);
        }
    }

    /// The cluster's clock jumps, and is measured again some seconds later. It jumps back by 3 s at most. After a jump
    /// back by more than a renewal interval, the controller sees no heartbeats; such a jump is a failure of the
    /// cluster, not of the measurement.
    #[test]
    fn the_controller_does_what_a_shadow_predicts_also_when_the_clock_jumps(
        mut scenario in scenarios(),
        jump in (0_i64..300, 0_i64..60),
        from in prop::sample::select(&DIFFERENCES[..]),
        by in prop::sample::select(&[-3_i64, 3, 28, 300][..]),
    ) {
        let (jumps, measured) = (jump.0, jump.0 + jump.1);
        scenario.attach = 0;
        let settings = Settings::defaults(ServerVersion::new(1, scenario.minor));
        let mut sim = peaceful_with_clock(scenario.nodes, &settings, Span::from_secs(from));
        sim.attach_shadow(settings);
        let led_since = sim.now - Span::from_secs(30);
        let mut forecasts: Vec<Forecast> = Vec::new();
        for second in 0..900 {
            if second == jumps {
                sim.set_clock(Span::from_secs(from + by));
            }
            if second == measured {
                sim.measure_clock();
            }
            for (number, _) in scenario.silent.iter().filter(|(_, at)| **at == second) {
                sim.silence(&format!("n{number:02}"));
            }
            if second % 2 == 0 {
                sim.lead("only", led_since);
            }
            sim.run(Span::from_secs(1));
            let shadow = sim.shadow.as_ref().expect("attached");
            prop_assert_eq!(shadow.confidence(sim.now), Confidence::Live);
            if second % 30 == 0 {
                forecasts.push(Forecast::run(shadow, &sim.cluster, sim.now, Span::from_secs(600)));
            }
        }
        let quiet = scenario.silent.values().max().copied().unwrap_or(0) + SILENT_AFTER.as_secs();
        compare(&sim.done, &forecasts, sim.now - Span::from_secs(900 - quiet))?;
    }
}

/// Compares every forecast made after `settled` with the effects that happened at least [`NOTICE`] later.
fn compare(done: &[Effect], forecasts: &[Forecast], settled: Timestamp) -> Result<(), TestCaseError> {
    let happened: Vec<(Timestamp, ForecastKind)> =
        done.iter().filter_map(|effect| Some((effect.at, what(effect)?))).collect();
    let last = forecasts.last().map(|forecast| forecast.made);
    for forecast in forecasts.iter().filter(|forecast| forecast.made >= settled) {
        let from = forecast.made + NOTICE;
        for (at, what) in happened.iter().filter(|(at, _)| *at >= from && *at + TOLERANCE < forecast.until) {
            let predicted = forecast.steps.iter().filter(|step| step.kind == *what);
            let nearest = predicted.map(|step| abs(step.at.since(*at))).min();
            prop_assert!(
                nearest.is_some_and(|off| off <= TOLERANCE),
                "{what:?} at {at}, predicted at {} off by {nearest:?}",
                forecast.made
            );
        }
        for step in forecast.steps.iter().filter(|step| step.at >= from && Some(step.at + TOLERANCE) < last) {
            prop_assert!(happened.iter().any(|(_, what)| *what == step.kind), "{step:?} did not happen");
        }
    }
    Ok(())
}

fn abs(span: Span) -> Span {
    if span.is_negative() { -span } else { span }
}

#[test]
fn a_forecast_assumes_that_a_node_stays_silent_once_it_is() {
    let mut sim = peaceful(6, &settings());
    sim.attach_shadow(settings());
    sim.silence("n00");
    let predicted = |sim: &Sim| {
        let shadow = sim.shadow.as_ref().expect("attached");
        let forecast = Forecast::run(shadow, &sim.cluster, sim.now, HOUR);
        forecast.of_node(&NodeName::from("n00")).count()
    };
    assert_eq!(predicted(&sim), 0, "it may yet renew");
    sim.run(RENEWAL * 2);
    assert_eq!(predicted(&sim), 0, "late, not silent");
    sim.run(RENEWAL);
    assert_eq!(predicted(&sim), 3, "Unknown, the taint, one pod");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Each incident has a node, the second of the node's last heartbeat, and the number of seconds until the node is
    /// back, if it comes back.
    #[test]
    fn predictions_come_true_with_their_assumptions(
        incidents in prop::collection::btree_map(0_usize..24, (0_i64..60, prop::option::of(20_i64..500)), 1..12),
    ) {
        let mut sim = peaceful(24, &settings());
        sim.attach_shadow(settings());
        sim.run(Span::from_secs(30));
        let (begin, horizon) = (sim.now, Span::from_secs(900));
        let mut script = Vec::new();
        for (node, (fails, back)) in incidents {
            let node = format!("n{node:02}");
            let fails = begin + Span::from_secs(fails);
            script.push((fails, IncidentKind::Fails, node.clone()));
            script.extend(back.map(|back| (fails + Span::from_secs(back), IncidentKind::Recovers, node)));
        }
        script.sort_by_key(|(at, ..)| *at);
        let incident = |(at, what, node): &(Timestamp, IncidentKind, String)| {
            Incident { at: *at, node: NodeName::from(node.as_str()), kind: *what }
        };
        let assumptions = Assumptions { incidents: script.iter().map(incident).collect() };
        let shadow = sim.shadow.as_ref().expect("attached");
        let forecast = Forecast::under(&assumptions, shadow, &sim.cluster, begin, horizon);

        sim.done.clear();
        for (at, what, node) in &script {
            sim.run(at.since(sim.now));
            match what {
                IncidentKind::Fails => sim.fail(node),
                IncidentKind::Recovers => sim.wake(node),
                IncidentKind::Removed => unreachable!("not in the script"),
            }
        }
        sim.run((begin + horizon).since(sim.now));
        let mut happened: BTreeMap<ForecastKind, Vec<Timestamp>> = BTreeMap::new();
        for effect in &sim.done {
            if let Some(what) = what(effect) {
                happened.entry(what).or_default().push(effect.at);
            }
        }
        let mut predicted: BTreeMap<ForecastKind, Vec<Timestamp>> = BTreeMap::new();
        for step in &forecast.steps {
            predicted.entry(step.kind.clone()).or_default().push(step.at);
        }
        // Effects may or may not happen if they are near the horizon, or near the time at which their node is back.
        // Such effects are not compared.
        let at_the_edge = |what: &ForecastKind, at: Timestamp| {
            let back = |(when, happens, node): &(Timestamp, IncidentKind, String)| {
                *happens == IncidentKind::Recovers && **what.node() == **node && abs(at.since(*when)) <= TOLERANCE
            };
            at + TOLERANCE >= begin + horizon || script.iter().any(back)
        };
        for (what, times) in happened.iter_mut().chain(predicted.iter_mut()) {
            times.retain(|at| !at_the_edge(what, *at));
        }
        happened.retain(|_, times| !times.is_empty());
        predicted.retain(|_, times| !times.is_empty());
        let keys = |all: &BTreeMap<ForecastKind, Vec<Timestamp>>| all.keys().cloned().collect::<Vec<_>>();
        prop_assert_eq!(keys(&predicted), keys(&happened), "script {:?}", script);
        let (happened, predicted) = (by_slots(&happened), by_slots(&predicted));
        for (what, times) in &happened {
            let off: Vec<Span> = times.iter().zip(&predicted[what]).map(|(a, b)| abs(*a - *b)).collect();
            prop_assert!(off.iter().all(|off| *off <= TOLERANCE) && times.len() == predicted[what].len(), "{what}: {:?} predicted, {times:?} happened, script {script:?}", predicted[what]);
        }
    }
}

/// Returns the times of steps without the names of tainted nodes, because it is random which waiting node of a zone
/// gets which token of the zone's rate limiter. Taints are listed by zone, with times since the epoch. Deletions have
/// times since their node's taint.
fn by_slots(steps: &BTreeMap<ForecastKind, Vec<Timestamp>>) -> BTreeMap<String, Vec<Span>> {
    let tainted = |node: &NodeName, by: Timestamp| {
        let taints = steps.iter().filter(|(kind, _)| matches!(kind, ForecastKind::NoExecute { .. }));
        let times = taints.filter(|(kind, _)| kind.node() == node).flat_map(|(_, times)| times);
        times.filter(|at| **at <= by).max().copied()
    };
    let mut slots: BTreeMap<String, Vec<Span>> = BTreeMap::new();
    for (kind, times) in steps {
        for at in times {
            let (what, since) = match kind {
                ForecastKind::NoExecute { node, key } => {
                    let zone = node.trim_start_matches('n').parse::<usize>().expect("a number") % 3;
                    (format!("{key} in zone {zone}"), Timestamp::EPOCH)
                }
                ForecastKind::Deleted { node, .. } | ForecastKind::Removed { node, .. } => {
                    (format!("{kind:?}"), tainted(node, *at).unwrap_or(Timestamp::EPOCH))
                }
                ForecastKind::Unknown { .. } | ForecastKind::Ended { .. } => {
                    (format!("{kind:?}"), Timestamp::EPOCH)
                }
            };
            slots.entry(what).or_default().push(at.since(since));
        }
    }
    slots.values_mut().for_each(|times| times.sort());
    slots
}

/// Runs a zone in which four nodes fail together and a fifth later. The controller handles the waiting nodes in a new
/// random order every second. Returns the forecast, the range of deleted pods, and the steps that happened with their
/// times.
fn failures_in_random_order(
    random: &mut fastrand::Rng,
) -> (Forecast, DeletedRange, BTreeSet<(ForecastKind, Timestamp)>) {
    let mut sim = Sim::new();
    for number in 0..12 {
        sim.add_node(&format!("n{number:02}"), "a", Span::from_millis(700 * number));
        for pod in 0..=number {
            let bears = if pod % 2 == 0 { 30 } else { 60 };
            sim.add_pod(&format!("p{number:02}-{pod}"), &format!("n{number:02}"), Some(bears));
        }
    }
    sim.start_controller(settings(), Span::from_millis(300));
    sim.run(Span::from_secs(60));
    sim.attach_shadow(settings());
    sim.run(Span::from_secs(30));
    for node in ["n00", "n01", "n02", "n03"] {
        sim.silence(node);
    }
    sim.run(Span::from_secs(42) - SILENT_AFTER);
    sim.silence("n04");
    sim.run(SILENT_AFTER);
    let shadow = sim.shadow.as_ref().expect("attached");
    let forecast = Forecast::run(shadow, &sim.cluster, sim.now, Span::from_secs(75));
    let range = forecast.deleted(&sim.cluster);
    let mut order: Vec<NodeName> = (0..12).map(|number| NodeName::from(&*format!("n{number:02}"))).collect();
    for _ in 0..75 {
        random.shuffle(&mut order);
        sim.controller.as_mut().expect("started").set_order(order.clone());
        sim.run(Span::from_secs(1));
    }
    let happened = sim.done.iter().filter_map(|effect| Some((what(effect)?, effect.at))).collect();
    (forecast, range, happened)
}

/// Upstream gives a token of the zone's rate limiter to any of the waiting nodes. The share of random orders in which a
/// step happens at its forecast time equals its probability, and the numbers of deleted pods agree with the forecast's
/// least, most and average.
#[test]
fn the_chance_of_a_step_is_the_share_of_the_orders_in_which_it_happens_then() {
    const RUNS: usize = 400;
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut forecast, mut range) = (Forecast::default(), DeletedRange::default());
    let mut seen: BTreeMap<(ForecastKind, Timestamp), usize> = BTreeMap::new();
    let mut deleted: Vec<usize> = Vec::new();
    for _ in 0..RUNS {
        let (predicted, of_order, happened) = failures_in_random_order(&mut random);
        let is_deleted =
            |(kind, _): &&(ForecastKind, Timestamp)| matches!(kind, ForecastKind::Deleted { .. });
        deleted.push(happened.iter().filter(is_deleted).count());
        happened.into_iter().for_each(|step| *seen.entry(step).or_default() += 1);
        (forecast, range) = (predicted, of_order);
    }
    let by_chance = forecast.steps.iter().filter(|step| step.chance.is_some()).count();
    assert!(by_chance > 10, "{:?}", forecast.steps);
    for step in &forecast.steps {
        let near = |(kind, at): &&(ForecastKind, Timestamp)| {
            *kind == step.kind && at.since(step.at).as_secs_f64().abs() < 2.0
        };
        let seen: usize = seen.iter().filter(|(key, _)| near(key)).map(|(_, times)| times).sum();
        let (share, stated) =
            (seen as f64 / RUNS as f64, step.chance.as_ref().map_or(1.0, |chance| chance.probability));
        let deviation = (stated * (1.0 - stated) / RUNS as f64).sqrt();
        assert!((share - stated).abs() <= 4.5 * deviation + 1e-9, "{share} of the orders: {step:?}");
    }
    assert!(range.least < range.most, "{range:?}");
    assert!(
        deleted.iter().all(|deleted| (range.least..=range.most).contains(deleted)),
        "{range:?} {deleted:?}"
    );
    let mean = deleted.iter().sum::<usize>() as f64 / RUNS as f64;
    assert!((mean - range.expected).abs() < 0.5, "{mean} pods on average, {range:?}");
}

#[test]
fn where_upstream_is_random_about_a_taint_a_forecast_says_may() {
    let lost: Vec<NodeName> = (0..6).map(|number| NodeName::from(&*format!("n{:02}", 3 * number))).collect();
    let chances = |version| {
        let settings = Settings::defaults(version);
        let mut sim = peaceful(24, &settings);
        sim.attach_shadow(settings);
        sim.run(Span::from_secs(30));
        let shadow = sim.shadow.as_ref().expect("attached");
        let assumptions = Assumptions::failing(lost.clone(), sim.now);
        let forecast = Forecast::under(&assumptions, shadow, &sim.cluster, sim.now, HOUR);
        let tainted =
            forecast.steps.iter().filter(|step| matches!(step.kind, ForecastKind::NoExecute { .. })).count();
        assert_eq!(tainted, 0, "six of eight at once stop the zone");
        forecast.uncertain_taints
    };
    let chances_now = chances(ServerVersion::new(1, 36));
    assert_eq!(chances_now.len(), 1, "{chances_now:?}");
    assert_eq!((chances_now[0].at_most, chances_now[0].among.len()), (1, 6));
    assert_eq!(chances(ServerVersion::new(1, 33)), [], "there nodes wait only from the pass after");
}

/// Replacements are placed in the order of all eviction timers. So a forecast also has to know the timers that end
/// after its horizon.
#[test]
fn a_forecast_knows_the_timers_that_fire_after_its_end() {
    let mut sim = Sim::new();
    for number in 0..4 {
        sim.add_node(&format!("n{number}"), "a", Span::from_millis(700));
    }
    sim.add_pod("soon", "n0", Some(30));
    sim.add_pod("later", "n0", Some(7200));
    sim.start_controller(settings(), Span::from_millis(300));
    sim.attach_shadow(settings());
    sim.run(Span::from_secs(60));
    sim.fail("n0");
    sim.run(Span::from_secs(60));
    let engine = sim.shadow.as_ref().expect("attached");
    let due: BTreeMap<Key, Timestamp> = engine
        .evictions(&sim.cluster)
        .into_iter()
        .filter_map(|eviction| Some((eviction.pod, eviction.due.at()?)))
        .collect();
    assert_eq!(due.len(), 2);
    let forecast = Forecast::run(engine, &sim.cluster, sim.now, Span::from_secs(600));
    let later: BTreeMap<Key, Timestamp> = due.into_iter().filter(|(_, at)| *at > forecast.until).collect();
    assert_eq!(later.len(), 1);
    assert_eq!(forecast.later, later);
}

/// A shadow that was attached a moment ago does not know when the controller makes its passes.
#[test]
fn what_happens_is_within_the_ranges_of_a_shadow_that_has_seen_no_pass() {
    for phase in [0, 400, 1300, 2600, 3900, 4700] {
        let mut sim = peaceful(24, &settings());
        for node in ["n03", "n09", "n15"] {
            sim.silence(node);
        }
        sim.run(SILENT_AFTER + Span::from_millis(1000 + phase));
        let shadow = Engine::attach(settings(), &sim.cluster, sim.now);
        let forecast = Forecast::run(&shadow, &sim.cluster, sim.now, HOUR);
        let ranges = EventRanges::new(&forecast, &settings(), &sim.cluster);
        sim.done.clear();
        sim.run(Span::from_secs(600));
        let mut deletions: BTreeMap<Key, Timestamp> = BTreeMap::new();
        let mut unknown = 0;
        for effect in &sim.done {
            match what(effect) {
                Some(ForecastKind::Unknown { node }) => {
                    let range = ranges.unknown(&node).expect("predicted");
                    let happens = range.first..=range.last;
                    assert!(happens.contains(&effect.at), "phase {phase}: {} not in {happens:?}", effect.at);
                    assert!(range.last.since(range.first) <= Span::from_secs(7), "{happens:?}");
                    unknown += 1;
                }
                Some(ForecastKind::Deleted { pod, .. }) => _ = deletions.insert(pod, effect.at),
                _ => {}
            }
        }
        assert_eq!((unknown, deletions.len()), (3, 3), "phase {phase}");
        let first = deletions.values().min().expect("three");
        let range = ranges.first(deletions.iter().map(|(pod, at)| (pod, *at))).expect("predicted");
        assert!((range.first..=range.last).contains(first), "phase {phase}: {first} not in {range:?}");
    }
}
