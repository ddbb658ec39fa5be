//! Explanations of a node or pod before, during and after a failure, on a simulated cluster: past steps, future steps,
//! and steps that will not happen.

use kordon_core::{
    cluster::{
        Change, Condition, ConditionStatus, IntOrPercent, Key, KnownHealthChecks, KnownNodeClaims, Labels,
        MaintenanceNote, Node, NodeClaim, NodeHealthCheck, NodeName, ObjectEvent, Pod, PodEnding, PodReady,
        Selector, ShutdownPeriods, StartedRemediation, UnhealthyCondition, Version,
    },
    engine::{Origin, ServerVersion, Settings},
    forecast::Forecast,
    why::{Explainer, Step, Tense, Topic},
};
use kordon_time::{ClusterTime, Span, Timestamp};

use proptest::prelude::*;

use crate::sim::Sim;

/// Creates two zones of six nodes. Each node has a pod that tolerates a failure for five minutes. The first node has
/// one more pod, which tolerates a failure forever.
fn peaceful(settings: &Settings) -> Sim {
    let mut sim = Sim::new();
    for number in 0..12 {
        let node = format!("n{number:02}");
        sim.add_node(&node, ["a", "b"][number % 2], Span::from_millis(700));
        sim.add_pod(&format!("p{number:02}"), &node, Some(300));
    }
    sim.add_pod("stays", "n00", None);
    sim.start_controller(settings.clone(), Span::from_millis(300));
    sim.attach_shadow(settings.clone());
    sim.run(Span::from_secs(60));
    sim
}

fn modern() -> Settings {
    Settings::defaults(ServerVersion::new(1, 36))
}

fn tell(sim: &Sim, of: impl FnOnce(&Explainer<'_>) -> Vec<Step>) -> Vec<Step> {
    let engine = sim.shadow.as_ref().expect("attached");
    let forecast = Forecast::run(engine, &sim.cluster, sim.now, Span::from_secs(1800));
    let (cluster, forecast) = (&sim.cluster, Some(&forecast));
    of(&Explainer {
        engine,
        cluster,
        forecast,
        outcomes: None,
        staying: None,
        preempted: None,
        cordon_waits: &[],
        now: sim.now,
    })
}

fn of_node(sim: &Sim, node: &str) -> Vec<Step> {
    tell(sim, |teller| teller.node(sim.cluster.node(&NodeName::from(node)).expect("a node")))
}

fn of_pod(sim: &Sim, pod: &Key) -> Vec<Step> {
    tell(sim, |teller| teller.pod(sim.cluster.pod(pod).expect("a pod")))
}

fn tense(story: &[Step], topic: Topic) -> Option<Tense> {
    story.iter().find(|step| step.topic == topic).map(|step| step.tense)
}

/// Returns the key of the pod with this name, in whatever namespace it is.
fn key(sim: &Sim, name: &str) -> Key {
    sim.cluster.pods().iter().find(|pod| pod.key.name == *name).expect("a pod").key.clone()
}

#[test]
fn a_node_that_lives_has_nothing_ahead() {
    let story = of_node(&peaceful(&modern()), "n00");
    assert_eq!(tense(&story, Topic::Grace), Some(Tense::Never), "its grace does not run out: {story:?}");
    assert!(story.iter().all(|step| step.tense != Tense::Future), "{story:?}");
}

#[test]
fn the_pods_of_a_deleted_node_go_when_its_explanation_says() {
    let mut sim = peaceful(&modern());
    let name = NodeName::from("n00");
    assert_eq!(tell_deleted(&sim, &name), None, "it exists");
    sim.tell(Change::Node(ObjectEvent::Deleted(name.clone())));
    sim.run(Span::from_secs(25));
    let story = tell_deleted(&sim, &name).expect("its pods are still bound to it");
    let is_collection = |step: &&Step| step.topic == Topic::Eviction && step.at.is_some();
    let at = story.iter().find(is_collection).and_then(|step| step.at).expect("a time");
    assert!(at > sim.now && at.since(sim.now) <= Span::from_secs(80), "{story:?}");
    assert!(story.iter().all(|step| !step.text.contains("latest")), "the deletion was observed: {story:?}");
    sim.run(at.since(sim.now) - Span::from_secs(1));
    assert!(tell_deleted(&sim, &name).is_some(), "a second before, the pods are there");
    sim.run(Span::from_secs(3));
    assert_eq!(tell_deleted(&sim, &name), None, "nothing is left of it");
}

fn tell_deleted(sim: &Sim, name: &NodeName) -> Option<Vec<Step>> {
    let mut told = None;
    tell(sim, |teller| {
        told = teller.deleted_node(name);
        Vec::new()
    });
    told
}

#[test]
fn predicted_steps_happen_in_their_order_and_at_their_time() {
    let mut sim = peaceful(&modern());
    sim.fail("n00");
    sim.run(Span::from_secs(26));
    let reported = of_node(&sim, "n00");
    let order = [
        Topic::Grace,
        Topic::Ready,
        Topic::Endpoints,
        Topic::NoSchedule,
        Topic::Queue,
        Topic::NoExecute,
        Topic::Eviction,
    ];
    let ahead: Vec<Topic> =
        reported.iter().filter(|step| step.tense == Tense::Future).map(|step| step.topic).collect();
    assert_eq!(ahead, order, "{reported:?}");
    let at = |story: &[Step], topic: Topic, tense: Tense| {
        let step = story.iter().find(|step| (step.topic, step.tense) == (topic, tense));
        step.and_then(|step| step.at).unwrap_or_else(|| panic!("no {topic:?} {tense:?} in {story:?}"))
    };
    sim.run(Span::from_secs(60));
    let happened = of_node(&sim, "n00");
    for topic in [Topic::Grace, Topic::NoSchedule, Topic::NoExecute] {
        let (reported, happened) = (at(&reported, topic, Tense::Future), at(&happened, topic, Tense::Past));
        let off = happened.since(reported).as_secs_f64().abs();
        // A monitor period and a second, as in `simulation`.
        assert!(off <= 6.0, "{topic:?} reported for {reported}, was {happened}");
    }
    let pod = of_pod(&sim, &key(&sim, "p00"));
    assert_eq!(tense(&pod, Topic::Toleration), Some(Tense::Present), "{pod:?}");
    assert_eq!(tense(&pod, Topic::Eviction), Some(Tense::Future), "{pod:?}");
    let stays = of_pod(&sim, &key(&sim, "stays"));
    assert_eq!(tense(&stays, Topic::Eviction), Some(Tense::Never), "{stays:?}");
    assert!(stays.iter().any(|step| step.text.contains("never evicted")), "{stays:?}");
}

#[test]
fn a_paused_zone_is_given_as_the_reason_why_nothing_happens() {
    let mut sim = peaceful(&modern());
    for node in ["n00", "n02", "n04", "n06"] {
        sim.fail(node);
    }
    sim.run(Span::from_secs(70));
    let story = of_node(&sim, "n06");
    let queue = story.iter().find(|step| step.topic == Topic::Queue).expect("it waits");
    assert_eq!(queue.tense, Tense::Never, "{story:?}");
    assert!(queue.text.contains("PartialDisruption (4 of 6 not ready)"), "{}", queue.text);
    for number in 0..12 {
        sim.fail(&format!("n{number:02}"));
    }
    sim.run(Span::from_secs(70));
    let story = of_node(&sim, "n06");
    let queue = story.iter().find(|step| step.topic == Topic::Queue).expect("it waits");
    assert!(queue.tense == Tense::Never && queue.text.contains("all zones down"), "{story:?}");
}

#[test]
fn in_legacy_mode_a_node_eviction_takes_the_place_of_the_taint() {
    let mut legacy = Settings::defaults(ServerVersion::new(1, 23));
    legacy.set("enable-taint-manager", "false", Origin::Override).expect("a flag of 1.23");
    let mut sim = peaceful(&legacy);
    sim.fail("n00");
    sim.run(Span::from_secs(70));
    let story = of_node(&sim, "n00");
    assert_eq!(tense(&story, Topic::NodeEviction), Some(Tense::Future), "{story:?}");
    assert_eq!(tense(&story, Topic::NoExecute), None, "{story:?}");
    assert_eq!(tense(&story, Topic::Eviction), Some(Tense::Future), "{story:?}");
    sim.run(Span::from_secs(330));
    let story = of_node(&sim, "n00");
    assert_eq!(tense(&story, Topic::NodeEviction), Some(Tense::Past), "{story:?}");
}

#[test]
fn pending_events_of_a_node_are_those_of_it_among_all() {
    let mut legacy = Settings::defaults(ServerVersion::new(1, 23));
    legacy.set("enable-taint-manager", "false", Origin::Override).expect("a flag of 1.23");
    for settings in [modern(), legacy] {
        let mut sim = peaceful(&settings);
        for node in ["n00", "n01"] {
            sim.fail(node);
        }
        sim.run(Span::from_secs(90));
        let engine = sim.shadow.as_ref().expect("attached");
        let all = engine.evictions(&sim.cluster);
        assert!(!all.is_empty());
        for node in sim.cluster.nodes().iter() {
            let mut among: Vec<_> =
                all.iter().filter(|eviction| eviction.node == node.name).cloned().collect();
            among.sort_by(|a, b| a.pod.cmp(&b.pod));
            let mut on = engine.evictions_on(&sim.cluster, node);
            on.sort_by(|a, b| a.pod.cmp(&b.pod));
            assert_eq!(on, among, "{}", node.name);
        }
    }
}

/// Random events in a cluster: nodes that fall silent or come back, and restarts of the controller. Times are in
/// seconds.
#[derive(Clone, Debug)]
struct History {
    silent: Vec<(i64, usize)>,
    back: Vec<(i64, usize)>,
    restarts: Vec<i64>,
    attach: i64,
}

/// Duration of a history in seconds.
const LENGTH: i64 = 500;

fn histories() -> impl Strategy<Value = History> {
    let events = || prop::collection::vec((0..LENGTH, 0_usize..12), 0..6);
    let restarts = prop::collection::vec(0..LENGTH, 0..3);
    (events(), events(), restarts, 0..LENGTH).prop_map(|(silent, back, restarts, attach)| History {
        silent,
        back,
        restarts,
        attach,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Past steps come first, then those that apply now, then future ones, each by time. The last heartbeat is the
    /// renewal of the Lease. No step comes before its cause, whenever the controller is restarted.
    #[test]
    fn no_effect_stands_before_its_cause(history in histories()) {
        let settings = modern();
        let mut sim = Sim::new();
        for number in 0..12 {
            let node = format!("n{number:02}");
            sim.add_node(&node, ["a", "b"][number % 2], Span::from_millis(700 * number as i64));
            sim.add_pod(&format!("p{number:02}"), &node, Some(60));
        }
        sim.start_controller(settings.clone(), Span::from_millis(300));
        let (mut holder, mut acquired) = ("first".to_owned(), sim.now);
        for second in 0..LENGTH {
            if history.restarts.contains(&second) {
                (holder, acquired) = (format!("holder-{second}"), sim.now);
                sim.start_controller(settings.clone(), Span::from_millis(300));
            }
            sim.lead(&holder, acquired);
            if second == history.attach {
                sim.attach_shadow(settings.clone());
            }
            let at = |(when, _): &&(i64, usize)| *when == second;
            history.silent.iter().filter(at).for_each(|(_, node)| sim.silence(&format!("n{node:02}")));
            history.back.iter().filter(at).for_each(|(_, node)| sim.wake(&format!("n{node:02}")));
            sim.run(Span::from_secs(1));
            if second < history.attach || second % 20 != 0 {
                continue;
            }
            for node in sim.cluster.nodes().iter() {
                let steps = of_node(&sim, &node.name);
                check_order(&steps, &sim, node)?;
            }
        }
    }
}

fn check_order(steps: &[Step], sim: &Sim, node: &Node) -> Result<(), TestCaseError> {
    let group = |step: &Step| match step.tense {
        Tense::Past => 0,
        Tense::Present => 1,
        Tense::Future => 2,
        Tense::Never => 3,
    };
    prop_assert!(steps.windows(2).all(|pair| group(&pair[0]) <= group(&pair[1])), "{steps:#?}");
    for tense in [Tense::Past, Tense::Future] {
        let times: Vec<_> =
            steps.iter().filter(|step| step.tense == tense).filter_map(|step| step.at).collect();
        prop_assert!(times.is_sorted(), "{steps:#?}");
        let in_time = |at: &Timestamp| if tense == Tense::Past { *at <= sim.now } else { *at >= sim.now };
        prop_assert!(times.iter().all(in_time), "now {}: {steps:#?}", sim.now);
    }
    let place = |topic| steps.iter().position(|step| step.topic == topic && step.tense == Tense::Past);
    let heartbeat = place(Topic::Heartbeat).and_then(|place| steps[place].at);
    let renewed = sim.cluster.lease(&node.name).and_then(|lease| lease.renewed);
    prop_assert_eq!(heartbeat, renewed.map(|at| sim.cluster.local(at)));
    if node.ready().is_none_or(|ready| ready.status != ConditionStatus::Unknown) {
        return Ok(());
    }
    let unknown = place(Topic::Ready);
    for (cause, effect) in [
        (place(Topic::Grace), unknown),
        (unknown, place(Topic::NoSchedule)),
        (unknown, place(Topic::NoExecute)),
        (
            place(Topic::Heartbeat)
                .filter(|last| steps[*last].at < unknown.and_then(|place| steps[place].at)),
            unknown,
        ),
    ] {
        if let (Some(cause), Some(effect)) = (cause, effect) {
            prop_assert!(cause < effect, "{steps:#?}");
        }
    }
    Ok(())
}

#[test]
fn a_restart_of_the_controller_is_a_cause_of_its_own() {
    let mut sim = peaceful(&modern());
    let last = sim.now;
    sim.fail("n00");
    sim.run(Span::from_secs(200));
    sim.start_controller(modern(), Span::from_millis(300));
    sim.lead("second", sim.now);
    let restarted = sim.now;
    sim.attach_shadow(modern());
    sim.run(Span::from_secs(10));
    let steps = of_node(&sim, "n00");
    let topics: Vec<(Topic, Option<Timestamp>)> =
        steps.iter().filter(|step| step.tense == Tense::Past).map(|step| (step.topic, step.at)).collect();
    assert_eq!(topics[0], (Topic::Heartbeat, Some(last)));
    assert!(topics.contains(&(Topic::Restart, Some(restarted))), "{steps:#?}");
    let restart = steps.iter().find(|step| step.topic == Topic::Restart).expect("it is in the chain");
    assert!(restart.text.ends_with("grace period started again"), "{}", restart.text);
}

/// Reports the pods as one complete list. After single reports, it is not known whether there are other pods.
fn list_pods(sim: &mut Sim) {
    let pods: Vec<Pod> = sim.cluster.pods().iter().map(|pod| (**pod).clone()).collect();
    let listed = pods.into_iter().map(ObjectEvent::Listed);
    for event in [ObjectEvent::ListStarted].into_iter().chain(listed).chain([ObjectEvent::ListDone]) {
        sim.tell(Change::Pod(event));
    }
}

/// A kubelet that shuts its machine down ends ordinary pods first, then pods of critical priority. The time for each of
/// these groups is in the kubelet's configuration, so only the latest times are known.
#[test]
fn a_shutdown_ends_pods_by_priority_and_by_their_grace_periods_at_the_latest() {
    let mut sim = peaceful(&modern());
    let name = NodeName::from("n00");
    for (pod, priority, grace) in [("p00", 0, 30), ("stays", 2_000_000_000, 10)] {
        let pod = sim.cluster.pod(&key(&sim, pod)).expect("a pod");
        let (version, grace) = (Version(pod.version.0 + 1), Span::from_secs(grace));
        let pod = Pod { priority, grace, version, ..(**pod).clone() };
        sim.tell(Change::Pod(ObjectEvent::Applied(pod)));
    }
    list_pods(&mut sim);
    let story = of_node(&sim, "n00");
    assert_eq!(tense(&story, Topic::Termination), None, "it is not shutting down: {story:?}");
    let node = sim.cluster.node(&name).expect("a node");
    let began = ClusterTime::new(sim.now);
    let stops = Condition {
        kind: "GracefulNodeShutdownInProgress".into(),
        status: ConditionStatus::True,
        last_transition: Some(began),
        ..Condition::default()
    };
    let conditions = node.conditions.iter().cloned().chain([stops]).collect();
    let node = Node { conditions, version: Version(node.version.0 + 1), ..(**node).clone() };
    sim.tell(Change::Node(ObjectEvent::Applied(node)));

    let ends: Vec<(i64, String)> = of_node(&sim, "n00")
        .into_iter()
        .filter(|step| step.topic == Topic::Termination)
        .filter_map(|step| Some((step.at?.since(sim.now).as_secs(), step.text)))
        .collect();
    let [(first, ordinary), (second, critical)] = &ends[..] else { panic!("{ends:?}") };
    assert!((29..=30).contains(first) && (39..=40).contains(second), "{ends:?}");
    assert!(ordinary.contains("1 pod within") && critical.contains("1 critical pod"), "{ends:?}");
    let of_pod = of_pod(&sim, &key(&sim, "stays"));
    let text = |step: &Step| step.text.contains("after all others, within its grace period of 10s or less");
    assert!(of_pod.iter().any(text), "{of_pod:?}");

    let refused = Err("nodes/proxy is forbidden".into());
    sim.tell(Change::ShutdownPeriods(name.clone(), refused));
    let says = |steps: &[Step], words: &str| steps.iter().any(|step| step.text.contains(words));
    let story = of_node(&sim, "n00");
    assert!(says(&story, "configuration: not known (nodes/proxy is forbidden)"), "{story:?}");

    let periods = ShutdownPeriods::new(Span::from_secs(25), Span::from_secs(5));
    sim.tell(Change::ShutdownPeriods(name.clone(), Ok(periods)));
    let story = of_node(&sim, "n00");
    assert!(says(&story, "1 pod within 20s") && says(&story, "1 critical pod within 5s"), "{story:?}");
    assert!(!says(&story, "configuration: not known"), "{story:?}");
    let of_pod = self::of_pod(&sim, &key(&sim, "stays"));
    let less = "after all others, within 5s, as the kubelet is configured: less than its grace period of 10s";
    assert!(says(&of_pod, less), "{of_pod:?}");

    sim.tell(Change::ShutdownPeriods(name, Ok(ShutdownPeriods::default())));
    let story = of_node(&sim, "n00");
    assert!(says(&story, "its kubelet ends no pods when its machine stops"), "{story:?}");
}

#[test]
fn a_pod_that_was_never_ready_has_left_no_endpoints_and_says_what_it_lacks() {
    let mut sim = peaceful(&modern());
    let key = key(&sim, "p00");
    let mut pod = (**sim.cluster.pod(&key).expect("a pod")).clone();
    pod.version = Version(pod.version.0 + 1_000_000);
    pod.ready = Some(PodReady { status: ConditionStatus::False, last_transition: None });
    pod.ending = Some(
        PodEnding {
            trouble: Some("migrate: CrashLoopBackOff".into()),
            unmet_gates: ["example.com/ready".into()].into(),
            ..PodEnding::default()
        }
        .into(),
    );
    sim.tell(Change::Pod(ObjectEvent::Applied(pod)));
    let story = of_pod(&sim, &key);
    let texts: Vec<&str> =
        story.iter().filter(|step| step.topic == Topic::Endpoints).map(|step| &*step.text).collect();
    assert_eq!(
        texts,
        [
            "not ready: its Services send it nothing",
            "readiness gates not met: example.com/ready",
            "not expected to become ready: migrate: CrashLoopBackOff",
        ]
    );
}

#[test]
fn the_pod_of_a_node_that_is_gone_says_what_becomes_of_it() {
    let mut sim = peaceful(&modern());
    sim.tell(Change::Node(ObjectEvent::Deleted("n00".into())));
    let story = of_pod(&sim, &key(&sim, "p00"));
    let says = |words: &str| story.iter().any(|step| step.text.contains(words));
    assert!(says("node n00 is gone") && says("lost: no controller recreates it"), "{story:#?}");
}

#[test]
fn a_pod_on_a_node_that_waits_for_its_maintenance_says_that_the_drain_evicts_it() {
    let mut sim = peaceful(&modern());
    let mut node = (**sim.cluster.node(&"n00".into()).expect("a node")).clone();
    node.version = Version(node.version.0 + 1_000_000);
    let note = MaintenanceNote {
        by: "bob".into(),
        operation: "m1".parse().expect("an id"),
        renewed: sim.now,
        ..MaintenanceNote::default()
    };
    node.maintenance = Some(note.into());
    sim.tell(Change::Node(ObjectEvent::Applied(node)));
    let drain = |sim: &Sim| {
        let story = of_pod(sim, &key(sim, "p00"));
        let step = story.into_iter().find(|step| step.topic == Topic::Drain).expect("a drain");
        (step.tense, step.text)
    };
    let text = "its node waits for its wave in m1, a maintenance of bob: its drain evicts the pod";
    assert_eq!(drain(&sim), (Tense::Future, text.to_owned()));
    sim.run(Span::from_secs(180));
    let node = of_node(&sim, "n00");
    let next = "which was stopped: `kordon maintenance --resume=m1 --enforce` goes on, --release=m1 ends it";
    assert!(node.iter().any(|step| step.text.ends_with(next)), "{node:#?}");
    let (_, text) = drain(&sim);
    assert!(
        text.contains("which was stopped") && text.ends_with("once the maintenance is resumed"),
        "{text}"
    );
}

#[test]
fn a_node_that_is_being_deleted_says_what_keeps_it() {
    let mut sim = peaceful(&modern());
    let mut node = (**sim.cluster.node(&"n00".into()).expect("a node")).clone();
    node.version = Version(node.version.0 + 1_000_000);
    (node.terminating, node.finalizers) = (true, ["karpenter.sh/termination".into()].into());
    sim.tell(Change::Node(ObjectEvent::Applied(node)));
    let story = of_node(&sim, "n00");
    let text = "the Node object is being deleted: kept by karpenter.sh/termination";
    assert!(story.iter().any(|step| step.text == text), "{story:#?}");
}

/// kubernetes-sigs/karpenter 226646810: `pkg/controllers/disruption/queue.go` sets DisruptionReason, and
/// `pkg/controllers/node/termination/controller.go` the conditions of the removal.
#[test]
fn a_node_of_karpenter_says_why_it_is_removed_how_far_that_is_and_when_budgets_no_longer_count() {
    let mut sim = peaceful(&modern());
    let mut node = (**sim.cluster.node(&"n00".into()).expect("a node")).clone();
    node.version = Version(node.version.0 + 1_000_000);
    node.labels = [("karpenter.sh/nodepool".into(), "general".into())].into_iter().collect();
    sim.tell(Change::Node(ObjectEvent::Applied(node)));
    let told = |sim: &mut Sim, claims: KnownNodeClaims| -> Vec<(Tense, String)> {
        sim.tell(Change::NodeClaims(claims.into()));
        let drain = of_node(sim, "n00").into_iter().filter(|step| step.topic == Topic::Drain);
        drain.map(|step| (step.tense, step.text)).collect()
    };
    assert_eq!(told(&mut sim, KnownNodeClaims::NotRead), []);
    let unreadable = told(&mut sim, KnownNodeClaims::Unreadable("nodeclaims is forbidden".into()));
    assert_eq!(
        unreadable,
        [(Tense::Present, "its NodeClaim is not known: nodeclaims is forbidden".to_owned())]
    );
    let unserved = told(&mut sim, KnownNodeClaims::NotServed);
    assert!(unserved[0].1.contains("the server does not serve nodeclaims"), "{unserved:?}");
    let now = sim.now;
    let at = |seconds: i64| Some(ClusterTime::new(now + Span::from_secs(seconds)));
    let condition = |kind: &str, reason: &str| Condition {
        kind: kind.into(),
        status: ConditionStatus::True,
        reason: reason.into(),
        last_transition: at(-60),
        ..Condition::default()
    };
    let claim = NodeClaim {
        name: "general-x7k2p".into(),
        node: "n00".into(),
        deleted: at(-60),
        forced: at(3600),
        conditions: vec![condition("DisruptionReason", "Drifted"), condition("Drained", "Drained")],
    };
    let other = NodeClaim { name: "general-other".into(), node: "n01".into(), ..claim.clone() };
    let removed = told(&mut sim, KnownNodeClaims::Read(vec![other, claim.clone()]));
    let expected = [
        (Tense::Present, "removed by Karpenter because: Drifted (NodeClaim general-x7k2p)"),
        (
            Tense::Present,
            "its NodeClaim general-x7k2p is being deleted: it is drained, and its volumes have to be detached",
        ),
        (
            Tense::Future,
            "its pods are deleted by then, whatever budgets say (terminationGracePeriod of its NodeClaim)",
        ),
    ];
    assert_eq!(removed, expected.map(|(tense, text)| (tense, text.to_owned())));
    let drifted = NodeClaim {
        deleted: None,
        forced: None,
        conditions: vec![condition("Drifted", "NodePoolDrifted")],
        ..claim
    };
    let planned = told(&mut sim, KnownNodeClaims::Read(vec![drifted]));
    let text = "Karpenter may replace it: NodePoolDrifted (NodeClaim general-x7k2p, condition Drifted)";
    assert_eq!(planned, [(Tense::Present, text.to_owned())]);
}

/// A simulation in which the Ready condition of n00 has been Unknown for a minute. The labels and annotations are those
/// of n00.
fn unhealthy(labels: &[(&str, &str)], annotations: Option<Labels>) -> Sim {
    let mut sim = peaceful(&modern());
    let mut node = (**sim.cluster.node(&"n00".into()).expect("a node")).clone();
    node.version = Version(node.version.0 + 1_000_000);
    let ready = Condition {
        kind: "Ready".into(),
        status: ConditionStatus::Unknown,
        last_transition: Some(ClusterTime::new(sim.now + Span::from_secs(-60))),
        ..Condition::default()
    };
    node.conditions = [ready].into();
    node.labels = labels.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
    node.annotations = annotations;
    sim.tell(Change::Node(ObjectEvent::Applied(node)));
    sim
}

/// A NodeHealthCheck that is about to have n00 fenced.
fn workers() -> NodeHealthCheck {
    let unhealthy = UnhealthyCondition {
        kind: "Ready".into(),
        status: ConditionStatus::Unknown,
        lasts: Span::from_secs(300),
    };
    NodeHealthCheck {
        name: "workers".into(),
        unhealthy_conditions: vec![unhealthy],
        remediations: vec!["SelfNodeRemediation".into(), "FenceAgentsRemediation".into()],
        min_healthy: Some(IntOrPercent::Percent(51)),
        observed: 4,
        healthy: 3,
        ..NodeHealthCheck::default()
    }
}

/// What the explanation of n00 says of drains and fencing.
fn of_fencing(sim: &mut Sim, checks: KnownHealthChecks) -> Vec<(Tense, String)> {
    sim.tell(Change::HealthChecks(checks.into()));
    let steps = of_node(sim, "n00").into_iter().filter(|step| step.topic == Topic::Drain);
    steps.map(|step| (step.tense, step.text)).collect()
}

#[test]
fn an_unhealthy_node_says_which_remediation_of_medik8s_fences_it_and_when() {
    let mut sim = unhealthy(&[], None);
    assert_eq!(of_fencing(&mut sim, KnownHealthChecks::NotRead), []);
    assert_eq!(of_fencing(&mut sim, KnownHealthChecks::NotServed), []);
    let text = |tense, text: &str| [(tense, text.to_owned())];
    let unreadable = of_fencing(&mut sim, KnownHealthChecks::Unreadable("forbidden".into()));
    assert_eq!(unreadable, text(Tense::Present, "whether medik8s fences it is not known: forbidden"));
    let next = "fenced by SelfNodeRemediation once Ready is Unknown for 5m00s (NodeHealthCheck workers)";
    assert_eq!(of_fencing(&mut sim, KnownHealthChecks::Read(vec![workers()])), text(Tense::Future, next));
    let at = |seconds: i64| Some(ClusterTime::new(sim.now + Span::from_secs(seconds)));
    let started = |kind: &str, timed_out| StartedRemediation {
        node: "n00".into(),
        kind: kind.into(),
        at: at(-30),
        timed_out,
    };
    let (first, second) = (started("SelfNodeRemediation", None), started("FenceAgentsRemediation", None));
    let late = StartedRemediation { timed_out: at(-10), ..first.clone() };
    let check = |started| KnownHealthChecks::Read(vec![NodeHealthCheck { started, ..workers() }]);
    let running = "being fenced by SelfNodeRemediation (NodeHealthCheck workers)";
    let other = StartedRemediation { node: "n01".into(), ..late.clone() };
    let too_late = "SelfNodeRemediation did not help in time (NodeHealthCheck workers)";
    let escalated = [
        (Tense::Past, too_late.to_owned()),
        (Tense::Present, "being fenced by FenceAgentsRemediation (NodeHealthCheck workers)".to_owned()),
    ];
    let over = check(vec![late.clone(), StartedRemediation { timed_out: at(-5), ..second.clone() }]);
    assert_eq!(of_fencing(&mut sim, check(vec![other, first])), text(Tense::Present, running));
    assert_eq!(of_fencing(&mut sim, check(vec![late, second])), escalated);
    let never = of_fencing(&mut sim, over).pop().expect("a step");
    assert_eq!(never, (Tense::Never, "NodeHealthCheck workers has no remediation left to try".to_owned()));
}

#[test]
fn an_unhealthy_node_says_what_keeps_medik8s_from_fencing_it() {
    let mut sim = unhealthy(&[], None);
    let mut never = |checks: Vec<NodeHealthCheck>| -> String {
        let steps = of_fencing(&mut sim, KnownHealthChecks::Read(checks));
        assert!(matches!(steps[..], [(Tense::Never, _)]), "{steps:?}");
        steps.into_iter().map(|(_, text)| text).collect()
    };
    let others = Selector::parse("pool=other").expect("a selector");
    let none = "medik8s does not fence it: no NodeHealthCheck selects it";
    assert_eq!(never(vec![NodeHealthCheck { selector: others, ..workers() }]), none);
    let none = "NodeHealthCheck workers does not fence it: none of its unhealthyConditions holds";
    assert_eq!(never(vec![NodeHealthCheck { unhealthy_conditions: Vec::new(), ..workers() }]), none);
    let hindered = |why: &str| format!("NodeHealthCheck workers does not start SelfNodeRemediation: {why}");
    let paused = NodeHealthCheck { pause_requests: vec!["upgrade".into()], ..workers() };
    assert_eq!(never(vec![paused]), hindered("it is paused by upgrade"));
    let disabled = NodeHealthCheck { disabled: Some("template not found".into()), ..workers() };
    assert_eq!(never(vec![disabled]), hindered("it is disabled: template not found"));
    let few = NodeHealthCheck { healthy: 2, ..workers() };
    assert_eq!(never(vec![few]), hindered("2 of 4 nodes are healthy, and it needs 3"));
    let few = NodeHealthCheck { min_healthy: None, max_unhealthy: Some(IntOrPercent::Int(0)), ..workers() };
    assert_eq!(never(vec![few]), hindered("3 of 4 nodes are healthy, and it needs 4"));
    let storm = NodeHealthCheck { is_storm: true, ..workers() };
    let many = "too many nodes were unhealthy a short time ago (StormActive)";
    assert_eq!(never(vec![storm]), hindered(many));
}

/// medik8s/self-node-remediation 04f03f8: `isNodeRebootCapable` in
/// `internal/controller/selfnoderemediation_controller.go`.
#[test]
fn a_node_says_by_its_own_label_and_annotation_that_it_is_not_fenced() {
    let label = "remediation.medik8s.io/exclude-from-remediation";
    let mut sim = unhealthy(&[(label, "true")], None);
    let excluded = of_fencing(&mut sim, KnownHealthChecks::Read(vec![workers()]));
    let text = "NodeHealthCheck workers does not start SelfNodeRemediation: the node has the label \
                remediation.medik8s.io/exclude-from-remediation";
    assert_eq!(excluded, [(Tense::Never, text.to_owned())]);
    let key = "is-reboot-capable.self-node-remediation.medik8s.io";
    let of = |value: &str| {
        let annotations: Labels = [(key.into(), value.into())].into_iter().collect();
        of_fencing(&mut unhealthy(&[], Some(annotations)), KnownHealthChecks::Read(vec![workers()]))
    };
    assert_eq!(of("true").len(), 1);
    let text = format!("SelfNodeRemediation does not restart it: its annotation {key} is not true");
    assert_eq!(of("false").last(), Some(&(Tense::Never, text)));
}
