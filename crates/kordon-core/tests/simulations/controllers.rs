//! Legacy mode (evictions without taints), the pod garbage collector and metrics, on simulated clusters.

use kordon_core::{
    cluster::{
        Change, ConditionStatus, Key, Node, NodeName, ObjectEvent, Phase, Pod, Taint, TaintEffect,
        Termination, Uid, Version,
    },
    engine::{
        Deletion, Due, Effect, EvictionStatus, NodeStage, NodeView, Origin, Outcome, ServerVersion, Settings,
        Write,
    },
    forecast::{Forecast, ForecastKind},
};
use kordon_time::{ClusterTime, Span, Timestamp};

use crate::sim::{Sim, marks_unknown};

const HOUR: Span = Span::from_secs(3600);

fn settings(minor: u32, flags: &[(&str, &str)]) -> Settings {
    let mut settings = Settings::defaults(ServerVersion::new(1, minor));
    for (flag, text) in flags {
        assert_eq!(settings.set(flag, text, Origin::Cluster), Ok(true), "{flag}");
    }
    settings
}

fn legacy() -> Settings {
    settings(26, &[("enable-taint-manager", "false")])
}

/// Creates six nodes in three zones, one pod on each node, and a controller. Runs them for a minute without failures.
fn peaceful(settings: &Settings) -> Sim {
    let mut sim = Sim::new();
    for number in 0..6 {
        let zone = ["a", "b", "c"][number % 3];
        sim.add_node(&format!("n{number}"), zone, Span::from_secs(1));
        sim.add_pod(&format!("p{number}"), &format!("n{number}"), Some(300));
    }
    sim.start_controller(settings.clone(), Span::from_millis(300));
    sim.run(Span::from_secs(60));
    sim
}

fn health(sim: &Sim, node: &str) -> NodeView {
    let node = sim.cluster.node(&node.into()).expect("a node of ours");
    sim.controller.as_ref().expect("started").node_view(node).expect("known")
}

/// Returns the time and kind of each pod's deletion.
fn deletions(sim: &Sim) -> Vec<(String, Deletion, Timestamp)> {
    let of = |effect: &Effect| match &effect.write {
        Write::DeletePod { pod, deletion, .. } => Some((pod.name.to_string(), *deletion, effect.at)),
        _ => None,
    };
    sim.done.iter().filter_map(of).collect()
}

#[test]
fn a_restart_of_the_controller_does_not_renew_the_grace_period_of_an_unknown_node() {
    let settings = settings(36, &[]);
    let mut sim = peaceful(&settings);
    let grace_ends = |sim: &Sim| {
        let node = sim.cluster.node(&"n0".into()).expect("a node of ours");
        let controller = sim.controller.as_ref().expect("started");
        controller.grace_ends(&sim.cluster, node).expect("known")
    };
    sim.silence("n0");
    sim.run(Span::from_secs(100));
    let before = grace_ends(&sim);
    assert_eq!(before, health(&sim, "n0").expires());
    sim.start_controller(settings, Span::from_millis(300));
    sim.run(Span::from_secs(1));
    assert!(health(&sim, "n0").expires() > sim.now, "the restarted controller counts it again");
    // A pass notices a heartbeat up to 5 s later.
    let earlier = before.since(grace_ends(&sim));
    assert!(Span::ZERO <= earlier && earlier <= Span::from_secs(6), "{earlier}");
}

#[test]
fn in_legacy_mode_a_silent_node_loses_its_pods_after_the_timeout_and_no_taint_evicts() {
    let mut sim = peaceful(&legacy());
    let silent = sim.now;
    sim.silence("n0");
    sim.run(Span::from_secs(100));
    assert_eq!(health(&sim, "n0").eviction, Some(EvictionStatus::Unmarked));
    let pending = sim.controller.as_ref().expect("started").evictions(&sim.cluster);
    let [due] = &pending[..] else { panic!("one pod's time runs: {pending:?}") };
    sim.run(Span::from_secs(300));
    let deleted = deletions(&sim);
    let [(pod, Deletion::WithNode { mark_lost: Some(_) }, at)] = &deleted[..] else { panic!("{deleted:?}") };
    // The last renewal of the Lease was up to 10 s before the silence, and a pass noticed it up to 5 s later. After the
    // pod eviction timeout, the node waits for the next pass and then in the queue.
    let after = at.since(silent).as_secs_f64();
    assert!(pod == "p0" && (290.0..=311.0).contains(&after), "{pod} after {after} s");
    let Due::At { at: predicted, .. } = due.due else { panic!("{due:?}") };
    assert!(at.since(predicted) < Span::from_secs(1), "reported {predicted:?}, was {at:?}");
    assert_eq!(health(&sim, "n0").eviction, Some(EvictionStatus::Evicted));
    assert_eq!(health(&sim, "n0").stage, NodeStage::Evicted);
    assert!(
        sim.cluster
            .nodes()
            .iter()
            .all(|node| { node.taints.iter().all(|taint| taint.effect != TaintEffect::NoExecute) })
    );
    sim.wake("n0");
    sim.run(Span::from_secs(10));
    assert_eq!(health(&sim, "n0").eviction, Some(EvictionStatus::Unmarked));
}

#[test]
fn in_legacy_mode_a_node_back_before_the_timeout_keeps_its_pods() {
    let mut sim = peaceful(&legacy());
    sim.silence("n0");
    sim.run(Span::from_secs(200));
    sim.wake("n0");
    sim.run(HOUR);
    assert_eq!(deletions(&sim), []);
}

#[test]
fn in_legacy_mode_a_pod_that_lands_on_an_evicted_node_goes_at_once() {
    let mut sim = peaceful(&legacy());
    sim.silence("n0");
    sim.run(Span::from_secs(400));
    sim.add_pod("late", "n0", None);
    assert_eq!(deletions(&sim).last().map(|(pod, _, at)| (pod.clone(), *at)), Some(("late".into(), sim.now)));
}

#[test]
fn in_legacy_mode_a_conflict_keeps_the_node_queued_and_the_pod_is_deleted_again() {
    let mut sim = peaceful(&legacy());
    sim.silence("n0");
    sim.run(Span::from_secs(280));
    let mut engine = sim.controller.take().expect("started");
    let mut asked = Vec::new();
    let mut now = sim.now;
    while asked.len() < 2 {
        now = now.max(engine.poll_timeout().expect("a pass").at);
        assert!(now.since(sim.now) < HOUR, "asked for {asked:?}");
        engine.handle_timeout(&sim.cluster, now);
        while let Some(effect) = engine.poll_effect() {
            let conflicts = matches!(effect.write, Write::DeletePod { .. }) && asked.is_empty();
            if let Write::DeletePod { .. } = effect.write {
                asked.push(now);
            }
            let outcome = if conflicts { Outcome::Conflict } else { Outcome::Done };
            engine.handle_outcome(&sim.cluster, effect.id, outcome, now);
            let node = sim.cluster.node(&"n0".into()).expect("added");
            if conflicts {
                assert_eq!(
                    engine.node_view(node).and_then(|health| health.eviction),
                    Some(EvictionStatus::ToBeEvicted)
                );
                assert_eq!(engine.metrics().zones[&node.zone()].evictions, 0, "the round is not over");
            }
        }
    }
    assert!(asked[1].since(asked[0]) >= Span::from_secs(9), "the zone gives a token every 10 s: {asked:?}");
    let zone = sim.cluster.node(&"n0".into()).expect("added").zone();
    assert_eq!(engine.metrics().zones[&zone].evictions, 1);
}

/// Lets these nodes fall silent under a controller with a shadow (an engine that only predicts), and stops the
/// controller 100 s later. Then runs the simulation for `after`.
fn shadow_of_a_dumb_controller(silent: &[&str], after: Span) -> Sim {
    let mut sim = peaceful(&legacy());
    sim.attach_shadow(legacy());
    for node in silent {
        sim.silence(node);
    }
    sim.run(Span::from_secs(100));
    sim.controller = None;
    sim.run(after);
    sim
}

fn reported(sim: &Sim, node: &str) -> Option<EvictionStatus> {
    let node = sim.cluster.node(&node.into()).expect("a node of ours");
    sim.shadow.as_ref().expect("attached").node_view(node).expect("known").eviction
}

#[test]
fn a_legacy_shadow_gives_up_on_a_round_that_never_comes_and_predicts_another() {
    let mut sim = shadow_of_a_dumb_controller(&["n0"], Span::ZERO);
    sim.run(Span::from_secs(300));
    let predicted: Vec<Timestamp> = sim
        .recorded
        .iter()
        .filter(|effect| matches!(effect.write, Write::DeletePod { .. }))
        .map(|effect| effect.at)
        .collect();
    assert!(predicted.len() >= 2, "{predicted:?}");
    for turns in predicted.windows(2) {
        let apart = turns[1].since(turns[0]).as_secs_f64();
        assert!((9.9..=25.0).contains(&apart), "each turn takes a token of the zone: {predicted:?}");
    }
}

#[test]
fn a_legacy_shadow_lets_a_node_wait_again_where_another_of_its_zone_came_first() {
    let mut sim = shadow_of_a_dumb_controller(&["n0", "n3"], Span::from_secs(190));
    while reported(&sim, "n0") != Some(EvictionStatus::Evicted)
        && reported(&sim, "n3") != Some(EvictionStatus::Evicted)
    {
        sim.run(Span::from_secs(1));
    }
    let (expected, other, pod) = match reported(&sim, "n0") {
        Some(EvictionStatus::Evicted) => ("n0", "n3", "p3"),
        _ => ("n3", "n0", "p0"),
    };
    let mut lost = (**sim.cluster.pod(&Key::new("default", pod)).expect("added")).clone();
    lost.reason = "NodeLost".into();
    lost.version = Version(1 << 40);
    sim.tell(Change::Pod(ObjectEvent::Applied(lost)));
    assert_eq!(reported(&sim, other), Some(EvictionStatus::Evicted));
    assert_eq!(reported(&sim, expected), Some(EvictionStatus::ToBeEvicted));
}

#[test]
fn the_forecast_continues_when_a_node_object_is_removed_and_comes_true() {
    let mut sim = peaceful(&settings(36, &[]));
    sim.tell(Change::Node(ObjectEvent::Deleted("n0".into())));
    let removed = sim.now;
    sim.run(Span::from_secs(1));
    let controller = sim.controller.as_ref().expect("started");
    let forecast = Forecast::run(controller, &sim.cluster, sim.now, Span::from_secs(120));
    let predicted = forecast.steps.iter().find_map(|step| match &step.kind {
        ForecastKind::Removed { pod, .. } => Some((pod.name.to_string(), step.at)),
        _ => None,
    });
    sim.run(Span::from_secs(119));
    let deleted = deletions(&sim);
    let [(pod, Deletion::Collected { fail: true, disruption_target: true, .. }, at)] = &deleted[..] else {
        panic!("{deleted:?}")
    };
    assert_eq!(predicted, Some((pod.clone(), *at)));
    let after = at.since(removed).as_secs_f64();
    assert!((40.0..=60.0).contains(&after), "{after} s");
    assert!(sim.cluster.pod(&Key::new("default", "p0")).is_none(), "its grace of 30 s counts for nothing");
}

#[test]
fn a_node_back_within_the_quarantine_keeps_its_pods() {
    let mut sim = peaceful(&settings(36, &[]));
    let node = (**sim.cluster.node(&"n0".into()).expect("added")).clone();
    sim.tell(Change::Node(ObjectEvent::Deleted("n0".into())));
    sim.run(Span::from_secs(35));
    sim.tell(Change::Node(ObjectEvent::Applied(Node { version: Version(1 << 40), ..node })));
    sim.wake("n0");
    sim.run(Span::from_secs(300));
    assert_eq!(deletions(&sim), []);
}

#[test]
fn terminating_pods_of_a_node_out_of_service_are_removed_and_the_others_are_not() {
    let mut sim = peaceful(&settings(36, &[]));
    sim.silence("n0");
    sim.add_pod("stays", "n0", None);
    sim.run(Span::from_secs(500));
    let evicted = sim.cluster.pod(&Key::new("default", "p0")).expect("nobody ends it").clone();
    assert!(evicted.termination.is_some());
    let mut node = (**sim.cluster.node(&"n0".into()).expect("added")).clone();
    let mark = Taint { key: "node.kubernetes.io/out-of-service".into(), ..Taint::default() };
    node.taints = node.taints.iter().cloned().chain([mark]).collect();
    node.version = Version(1 << 40);
    sim.tell(Change::Node(ObjectEvent::Applied(node)));
    sim.run(Span::from_secs(21));
    assert!(sim.cluster.pod(&evicted.key).is_none());
    assert!(sim.cluster.pod(&Key::new("default", "stays")).is_some());
}

/// A pod whose deletion has started. If `node` is `None`, the pod was never scheduled.
fn terminating(name: &str, node: Option<&str>, now: Timestamp) -> Pod {
    Pod {
        key: Key::new("default", name),
        uid: Uid::from(name),
        version: Version(1 << 40),
        node: node.map(NodeName::from),
        phase: Phase::Pending,
        grace: Span::from_secs(30),
        termination: Some(Termination { deadline: ClusterTime::new(now), grace: Span::from_secs(30) }.into()),
        ..Pod::default()
    }
}

#[test]
fn what_becomes_collectable_after_passes_without_work_waits_for_the_next_pass() {
    type Work = (&'static str, fn(&mut Sim));
    let works: [Work; 4] = [
        ("a pod deleted before it was bound", |sim| {
            let pod = terminating("never", None, sim.now);
            sim.tell(Change::Pod(ObjectEvent::Applied(pod)));
        }),
        ("the same while a node is in quarantine", |sim| {
            sim.tell(Change::Node(ObjectEvent::Deleted("n1".into())));
            sim.run(Span::from_secs(20));
            let pod = terminating("never", None, sim.now);
            sim.tell(Change::Pod(ObjectEvent::Applied(pod)));
        }),
        ("a node out of service", |sim| {
            sim.post("n0", ConditionStatus::False);
            let pod = terminating("stuck", Some("n0"), sim.now);
            sim.tell(Change::Pod(ObjectEvent::Applied(pod)));
            let mut node = (**sim.cluster.node(&"n0".into()).expect("added")).clone();
            let mark = Taint { key: "node.kubernetes.io/out-of-service".into(), ..Taint::default() };
            node.taints = node.taints.iter().cloned().chain([mark]).collect();
            node.version = Version(1 << 40);
            sim.tell(Change::Node(ObjectEvent::Applied(node)));
        }),
        ("finished pods above the threshold", |sim| {
            for name in ["one", "two"] {
                let pod = Pod {
                    phase: Phase::Succeeded,
                    termination: None,
                    ..terminating(name, Some("n0"), sim.now)
                };
                sim.tell(Change::Pod(ObjectEvent::Applied(pod)));
            }
        }),
    ];
    for (what, work) in works {
        let mut sim = peaceful(&settings(36, &[("terminated-pod-gc-threshold", "1")]));
        let start = sim.now - Span::from_secs(60) + Span::from_millis(300);
        sim.run(Span::from_secs(7));
        sim.attach_shadow(settings(36, &[("terminated-pod-gc-threshold", "1")]));
        work(&mut sim);
        let changed = sim.now;
        let engine = sim.controller.as_ref().expect("started");
        let forecast = Forecast::run(engine, &sim.cluster, sim.now, Span::from_secs(60));
        let predicted = forecast.steps.iter().find(|step| matches!(step.kind, ForecastKind::Removed { .. }));
        sim.run(Span::from_secs(21));
        let collected = |deletion: &Deletion| matches!(deletion, Deletion::Collected { .. });
        let first = deletions(&sim).into_iter().find(|(_, deletion, _)| collected(deletion));
        let removed = first.unwrap_or_else(|| panic!("{what}: nothing")).2;
        let into = removed.since(start).as_nanos() % Span::from_secs(20).as_nanos();
        assert!(
            into == 0 && removed > changed,
            "{what}: removed {} after the change",
            removed.since(changed)
        );
        assert_eq!(predicted.map(|step| step.at), Some(removed), "{what}");
    }
}

#[test]
fn finished_pods_beyond_the_threshold_and_unscheduled_terminating_ones_are_collected() {
    let mut sim = peaceful(&settings(36, &[("terminated-pod-gc-threshold", "2")]));
    let pod = |name: &str, phase, age: i64| Pod {
        key: Key::new("default", name),
        uid: Uid::from(name),
        version: Version(1 << 40),
        created: ClusterTime::new(Timestamp::from_secs(1_767_000_000 - age)),
        node: Some(NodeName::from("n0")),
        phase,
        ..Pod::default()
    };
    let evicted = Pod { reason: "Evicted".into(), ..pod("evicted", Phase::Failed, 1) };
    let never = Pod {
        node: None,
        termination: Some(
            Termination { deadline: ClusterTime::new(sim.now), grace: Span::from_secs(30) }.into(),
        ),
        ..pod("never", Phase::Pending, 1)
    };
    let finished = [("old", 30), ("older", 40), ("new", 10)];
    let finished = finished.map(|(name, age)| pod(name, Phase::Succeeded, age));
    for pod in finished.into_iter().chain([evicted, never]) {
        sim.tell(Change::Pod(ObjectEvent::Applied(pod)));
    }
    sim.run(Span::from_secs(21));
    let mut names: Vec<String> = deletions(&sim).into_iter().map(|(pod, ..)| pod).collect();
    names.sort();
    assert_eq!(names, ["evicted", "never", "older"]);
    let reported =
        |deletion: Deletion| matches!(deletion, Deletion::Collected { disruption_target: false, .. });
    assert!(
        deletions(&sim).iter().all(|(_, deletion, _)| reported(*deletion)),
        "only orphans are reported why"
    );
}

#[test]
fn without_the_collector_nothing_is_collected() {
    let mut sim = peaceful(&settings(36, &[("controllers", "*,-podgc")]));
    sim.tell(Change::Node(ObjectEvent::Deleted("n0".into())));
    sim.run(HOUR);
    assert_eq!(deletions(&sim), []);
}

#[test]
fn without_the_taint_eviction_controller_nodes_are_tainted_and_pods_stay() {
    let mut sim = peaceful(&settings(36, &[("controllers", "*,-taint-eviction-controller")]));
    sim.silence("n0");
    sim.run(HOUR);
    let node = sim.cluster.node(&"n0".into()).expect("added");
    assert!(node.taints.iter().any(|taint| taint.effect == TaintEffect::NoExecute));
    assert_eq!(deletions(&sim), []);
}

#[test]
fn metrics_count_zones_taintings_and_deletions() {
    let mut sim = peaceful(&settings(36, &[]));
    sim.silence("n0");
    sim.run(Span::from_secs(500));
    let zone = sim.cluster.node(&"n0".into()).expect("added").zone();
    let metrics = sim.controller.as_ref().expect("started").metrics();
    let row = metrics.zones[&zone];
    assert_eq!((row.size, row.unhealthy, row.health(), row.evictions), (2, 1, 50.0, 1));
    assert_eq!(metrics.zones.values().map(|zone| zone.evictions).sum::<u64>(), 1);
    assert_eq!((metrics.pod_deletions, metrics.pod_deletion_delay.count), (1, 1));
    assert!(metrics.pod_deletion_delay.sum < 1.0, "it was deleted when it was due");
}

/// Upstream empties a zone without ready nodes at the normal rate (kubernetes#70501). With `--full-disruption=pause`,
/// no pod leaves such a zone, not even from a node that was tainted before the zone's last node failed.
#[test]
fn a_zone_that_is_wholly_down_is_emptied_or_kept_as_the_setting_says() {
    let taints_left_in_b = |policy: &str| {
        let mut sim = peaceful(&settings(36, &[("full-disruption", policy)]));
        let in_b: Vec<NodeName> = sim
            .cluster
            .nodes()
            .iter()
            .filter(|node| node.zone().zone == *"b")
            .map(|node| node.name.clone())
            .collect();
        assert!(in_b.len() > 1 && in_b.len() < sim.cluster.nodes().len());
        let tainted = |sim: &Sim| {
            let has_taint = |node: &&NodeName| {
                let node = sim.cluster.node(node).expect("a node of ours");
                node.taints.iter().any(|taint| taint.effect == TaintEffect::NoExecute)
            };
            in_b.iter().filter(has_taint).count()
        };
        sim.silence(&in_b[0]);
        sim.run(Span::from_secs(90));
        assert_eq!(tainted(&sim), 1, "one node failed");
        in_b[1..].iter().for_each(|node| sim.silence(node));
        sim.run(Span::from_secs(400));
        let down = tainted(&sim);
        sim.wake(&in_b[0]);
        sim.run(Span::from_secs(60));
        let says_paused = |effect: &&Effect| matches!(&effect.write, Write::RecordEvent(event) if event.reason == "EvictionsPaused");
        (down, tainted(&sim), in_b.len(), sim.done.iter().filter(says_paused).count())
    };
    let (down, after, all, events) = taints_left_in_b("evict");
    assert_eq!((down, after, events), (all, all - 1, 0));
    let (down, after, all, events) = taints_left_in_b("pause");
    assert_eq!((down, after), (0, all - 1), "evictions go on once a node is ready");
    assert_eq!(events, all, "an event for each node of the zone");
}

/// Quirk 12 (docs/upstream/node-lifecycle.md#12.12): up to 1.37, a Node inherits the health of a deleted Node with the
/// same name.
#[test]
fn a_node_of_the_name_of_a_deleted_one_has_its_own_startup_grace_from_1_38_on() {
    let unknown_after = |minor| {
        let mut sim = peaceful(&settings(minor, &[]));
        let name = NodeName::from("n0");
        let before = (**sim.cluster.node(&name).expect("a node of ours")).clone();
        sim.silence("n0");
        sim.tell(Change::Node(ObjectEvent::Deleted(name.clone())));
        sim.tell(Change::Lease(ObjectEvent::Deleted(name.clone())));
        sim.run(Span::from_secs(120));
        let created = sim.now;
        sim.tell(Change::Node(ObjectEvent::Applied(Node {
            uid: Uid::from("second"),
            version: Version(1 << 40),
            created: ClusterTime::new(created),
            conditions: [].into(),
            ..before
        })));
        sim.run(Span::from_secs(120));
        let marked = |effect: &&Effect| marks_unknown(effect) == Some(&name) && effect.at >= created;
        let effect = sim.done.iter().find(marked).expect("it never posts its status");
        effect.at.since(created).as_secs_f64()
    };
    // Up to 1.37, the first pass after the creation counts the silence from the deleted Node's last heartbeat. So the
    // silence exceeds the startup grace period of 60 s.
    assert!((0.0..=5.1).contains(&unknown_after(37)), "after {} s", unknown_after(37));
    assert!((60.0..=65.2).contains(&unknown_after(38)), "after {} s", unknown_after(38));
}
