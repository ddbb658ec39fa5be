//! Placement of the replacements in a plan. Each placement takes the earlier placements into account, and an
//! unschedulable replacement has a reason.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use kordon_core::{
    cluster::{
        AccessModes, Change, Claim, JobLimits, Key, Name, NodeName, ObjectEvent, Pod, Requests, Resources,
        SchedulingSpec, Volume, VolumeProperties, WorkloadKind, scheduling::PodVolume,
    },
    engine::ServerVersion,
    placement::{Constraint, Reason, SchedulingRequest, Snapshot, SnapshotLease},
    plan::{
        Action, Cancellation, DrainOptions, EvictionRules, Headroom, Landing, LostNodes, OutcomeKind,
        PlacingEnvironment, Plan, PlanJob, PodOutcome, PodPlan, Prospect, RemovalOptions, TaintEdits,
        Warning,
        failover::{failover, leave_running_nodes},
        headroom,
    },
};

use kordon_time::Span;

use crate::plan_fixture::{NEWEST, NOW, PlanFixture, least, of, own, taint, terminating, tolerates};

#[test]
fn replacements_land_where_there_is_room_and_each_sees_the_ones_before() {
    let mut fixture = roomy(&[("n1", 2), ("n2", 1), ("n3", 1)]);
    replicas(&mut fixture, "web", &["n1", "n1"], 1);
    let plan = drain(&fixture, &["n1"]);
    let landed: BTreeSet<&str> = plan.pods.iter().filter_map(node).collect();
    assert_eq!(landed, ["n2", "n3"].into());
    assert_eq!((plan.totals.placed, plan.totals.pending), (2, 0));
    let loads: Vec<_> = plan
        .receivers
        .iter()
        .map(|receiver| {
            (&*receiver.node, receiver.before.cpu_milli.requested, receiver.after.cpu_milli.requested)
        })
        .collect();
    assert_eq!(loads, [("n2", 0, 1000), ("n3", 0, 1000)]);
}

/// Kubernetes 1.37 `plugins/nodedeclaredfeatures/nodedeclaredfeatures.go`, `Filter`.
#[test]
fn a_pod_lands_where_the_feature_that_it_requires_is_declared() {
    let mut fixture = roomy(&[("n1", 4), ("n2", 4), ("n3", 4)]);
    let feature = || Name::from("RestartAllContainersOnContainerExits");
    replicas(&mut fixture, "web", &["n1"], 1);
    fixture.pod("web-0", "n1", |pod| {
        let required_features = [feature()].into();
        pod.scheduling = SchedulingSpec { required_features, ..SchedulingSpec::default() }.into();
    });
    fixture.node("n3", |node| node.declared_features = [feature()].into());
    let plan = drain(&fixture, &["n1"]);
    assert_eq!(node(of(&plan, "web-0")), Some("n3"));
    let pod = fixture.cluster.pod(&Key::new("default", "web-0")).expect("a pod");
    let request = SchedulingRequest::from_pod(pod, &fixture.cluster);
    let refusals = |minor| Snapshot::new(&fixture.cluster, ServerVersion::new(1, minor)).refusals(&request);
    assert_eq!(refusals(36), [(Reason::FeatureMissing(feature()), 2)].into());
    assert_eq!(refusals(35), BTreeMap::new(), "off by default");
}

#[test]
fn a_receiver_counts_the_pods_that_come_without_the_plan() {
    let mut fixture = roomy(&[("n1", 4), ("n2", 4)]);
    fixture.owner(WorkloadKind::StatefulSet, "db", 2);
    for (name, node) in [("db-0", "n1"), ("db-1", "n2")] {
        fixture.pod(name, node, |pod| own(pod, WorkloadKind::StatefulSet, "db"));
    }
    fixture.pod("db-1", "n2", |pod| terminating(pod, 20));
    fixture.budget("db", |budget| budget.min_available = least(1)).sync();
    replicas(&mut fixture, "web", &["n1"], 1);
    let plan = drain(&fixture, &["n1"]);
    let receivers: Vec<_> =
        plan.receivers.iter().map(|receiver| (&*receiver.node, receiver.others)).collect();
    assert_eq!(receivers, [("n2", 1)], "db-1 comes back whether or not n1 is drained");
}

#[test]
fn a_plan_that_was_cancelled_places_nothing_more_and_gives_its_snapshot_back() {
    let mut fixture = roomy(&[("n1", 2), ("n2", 1), ("n3", 1)]);
    replicas(&mut fixture, "web", &["n1", "n1"], 1);
    let work = |cancellation: &Cancellation| {
        let job = PlanJob {
            action: Action::Drain { nodes: vec!["n1".into()], options: DrainOptions::default() },
            cluster: fixture.cluster.clone(),
            rules: EvictionRules::for_version(NEWEST),
            snapshot: Some(SnapshotLease::default()),
            now: NOW,
        };
        let result = job.work_until(cancellation);
        (result.plan.expect("the node is there").totals.placed, result.snapshot.is_some())
    };
    let cancellation = Cancellation::default();
    assert_eq!(work(&cancellation), (2, true));
    cancellation.clone().cancel();
    assert_eq!(work(&cancellation), (0, true));
}

#[test]
fn pods_without_a_node_stay_pending_with_reasons_and_what_would_help() {
    let mut fixture = roomy(&[("n1", 2), ("n2", 1), ("n3", 4)]);
    fixture.node("n3", |node| node.taints = [taint("team=x:NoSchedule")].into());
    replicas(&mut fixture, "web", &["n1"], 2);
    let plan = drain(&fixture, &["n1"]);
    let pod = of(&plan, "web-0");
    assert!(matches!(pod.landing, Some(Landing::Pending { .. })), "{:?}", pod.landing);
    assert_eq!(pod.ready_again, None);
    assert_eq!((plan.totals.placed, plan.totals.pending), (0, 1));
    let judgement = pod.placement.as_ref().expect("it was judged");
    let counted = [(Reason::Insufficient("cpu".into()), 1), (Reason::Cordoned, 1), (Reason::Taints, 1)];
    assert_eq!(judgement.reasons, counted.into());
    let help = judgement.help.as_ref().expect("it is pending");
    let lifts: Vec<_> = help.lifts.iter().map(|lift| (lift.constraint, names(&lift.nodes))).collect();
    assert_eq!(lifts, [(Constraint::Taints, vec!["n3"])], "the node that is drained is no help");
    let nearest = help.nearest.as_ref().expect("n2 lacks nothing but room");
    assert_eq!((&*nearest.node, &nearest.lacks), ("n2", &vec![("cpu".into(), 1000)]));
    assert_eq!(
        help.lines(),
        [
            "fits n3 without the taints it does not tolerate",
            "nearest: n2 lacks 1 CPU",
            "needs a node with 2 CPU free",
        ]
    );
}

#[test]
fn a_statefulset_finds_the_room_that_its_pod_left_and_a_replicaset_waits_for_it() {
    let mut fixture = roomy(&[("n1", 2)]);
    fixture.owner(WorkloadKind::StatefulSet, "db", 1);
    fixture.pod("db-0", "n1", |pod| {
        own(pod, WorkloadKind::StatefulSet, "db");
        asks(pod, 2);
    });
    assert_eq!(node(of(&evict(&fixture, &["db-0"]), "db-0")), Some("n1"));

    let mut fixture = roomy(&[("n1", 2)]);
    replicas(&mut fixture, "web", &["n1"], 2);
    let plan = evict(&fixture, &["web-0"]);
    let web = of(&plan, "web-0");
    assert_eq!(node(web), Some("n1"), "once the old one is gone");
    let starts = web.ready_again.expect("it is Ready").since(web.gone.likely.expect("it is gone"));
    assert_eq!(starts, Span::ZERO, "the old one holds its room until it is gone");
}

#[test]
fn daemons_come_back_where_they_were_and_bare_pods_nowhere() {
    let mut fixture = roomy(&[("n1", 4), ("n2", 4)]);
    fixture.owner(WorkloadKind::DaemonSet, "agent", 2);
    fixture.pod("agent-0", "n1", |pod| own(pod, WorkloadKind::DaemonSet, "agent"));
    fixture.pod("bare", "n1", |_| {});
    let plan = evict(&fixture, &["agent-0", "bare"]);
    assert_eq!(node(of(&plan, "agent-0")), Some("n1"));
    assert_eq!(of(&plan, "bare").landing, None);
    assert!(of(&plan, "bare").lost.is_some());
}

#[test]
fn a_replacement_of_high_priority_preempts_a_pod_whose_replacement_is_in_the_plan() {
    let mut fixture = roomy(&[("n1", 2), ("n2", 2)]);
    replicas(&mut fixture, "web", &["n1"], 2);
    fixture.pod("web-0", "n1", |pod| pod.priority = 1000);
    replicas(&mut fixture, "batch", &["n2"], 2);
    let plan = drain(&fixture, &["n1"]);
    let pod = of(&plan, "web-0");
    assert_eq!(node(pod), Some("n2"));
    let judgement = pod.placement.as_ref().expect("it was judged");
    let [preempted] = judgement.preempts.as_slice() else { panic!("{judgement:?}") };
    assert_eq!(&*preempted.pod.name, "batch-0");
    assert!(matches!(preempted.landing, Some(Landing::Pending { .. })), "{preempted}");
    assert_eq!(plan.totals.preempted, 1);
}

/// Kubernetes 1.37 `pkg/scheduler/framework/plugins/noderesources/fit.go`, `isSchedulableAfterPodEvent`: after a pod is
/// deleted, the scheduler tries other pods again.
#[test]
fn what_a_pending_replacement_lacks_is_what_is_left_after_a_preemption() {
    let preempting = |cores: i64| {
        let mut fixture = roomy(&[("n1", 8), ("n2", 4)]);
        replicas(&mut fixture, "early", &["n1"], cores);
        replicas(&mut fixture, "web", &["n1"], 2);
        fixture.pod("web-0", "n1", |pod| pod.priority = 1000);
        replicas(&mut fixture, "batch", &["n2"], 4);
        drain(&fixture, &["n1"])
    };
    let plan = preempting(2);
    assert_eq!(of(&plan, "web-0").preempted().map(|pod| &*pod.pod.name).collect::<Vec<_>>(), ["batch-0"]);
    assert_eq!(node(of(&plan, "early-0")), Some("n2"), "batch-0 leaves room for it, too");
    let plan = preempting(3);
    let early = of(&plan, "early-0").placement.clone().expect("it was judged");
    let nearest =
        early.help.as_ref().and_then(|help| help.nearest.clone()).expect("n2 lacks nothing but room");
    assert_eq!((&*nearest.node, &nearest.lacks), ("n2", &vec![("cpu".into(), 1000)]));
}

#[test]
fn pods_that_a_taint_deletes_land_elsewhere() {
    let mut fixture = roomy(&[("n1", 4), ("n2", 4)]);
    replicas(&mut fixture, "web", &["n1", "n1"], 1);
    let edits = TaintEdits::parse(["gone=x:NoExecute"], false).expect("a taint");
    let plan = plan(&fixture, Action::Taint { nodes: vec!["n1".into()], edits });
    assert_eq!(plan.pods.iter().filter_map(node).collect::<Vec<_>>(), ["n2", "n2"]);
    assert_eq!(plan.receivers[0].after.pods.requested, 2);
}

/// A DaemonSet creates no pod for a node with a taint that its pods do not tolerate. If they tolerate the taint for a
/// limited time, it creates a new pod at once (Kubernetes 1.37 `pkg/controller/daemon/daemon_controller.go`,
/// `nodeShouldRunDaemonPod`).
#[test]
fn a_daemon_that_a_taint_deletes_comes_back_only_if_it_tolerates_the_taint_for_a_while() {
    let mut fixture = roomy(&[("n1", 4), ("n2", 4)]);
    for (daemon, tolerated) in [("agent", None), ("log", Some(10))] {
        fixture.owner(WorkloadKind::DaemonSet, daemon, 1);
        fixture.pod(&format!("{daemon}-0"), "n1", |pod| {
            own(pod, WorkloadKind::DaemonSet, daemon);
            if tolerated.is_some() {
                tolerates(pod, "gone", tolerated);
            }
        });
    }
    let edits = TaintEdits::parse(["gone=x:NoExecute"], false).expect("a taint");
    let plan = plan(&fixture, Action::Taint { nodes: vec!["n1".into()], edits });
    assert_eq!(of(&plan, "agent-0").outcome.kind(), OutcomeKind::NotRecreated);
    assert_eq!(of(&plan, "log-0").outcome.kind(), OutcomeKind::SameNode);
    let again = |warning: &Warning| matches!(warning, Warning::EvictedAgain { pods: 1, .. });
    assert!(plan.warnings.iter().any(again), "{:?}", plan.warnings);
}

/// Kubernetes 1.37 `pkg/kubelet/lifecycle/predicate.go`, `generalFilter`.
#[test]
fn a_taint_does_not_empty_a_node_that_the_template_of_its_pods_names() {
    let mut fixture = roomy(&[("n1", 4), ("n2", 4)]);
    replicas(&mut fixture, "web", &["n1"], 1);
    fixture.change_workload(WorkloadKind::ReplicaSet, "web", |workload| {
        workload.template = Some(Box::new(Pod { node: Some("n1".into()), ..Pod::default() }));
    });
    let edits = TaintEdits::parse(["gone=x:NoExecute"], false).expect("a taint");
    let plan = plan(&fixture, Action::Taint { nodes: vec!["n1".into()], edits });
    let again = |warning: &Warning| matches!(warning, Warning::EvictedAgain { pods: 1, .. });
    assert!(plan.warnings.iter().any(again), "{:?}", plan.warnings);
    assert_eq!(plan.prospect(), Prospect::Stalls);
}

/// A drain has ended before the back-off is over, so it evicts the pod once.
#[test]
fn a_pod_of_a_job_whose_template_names_the_node_comes_back_after_the_back_off() {
    let mut fixture = roomy(&[("n1", 4), ("n2", 4)]);
    fixture.workload(WorkloadKind::Job, "train", 1, |workload| {
        workload.job = Some(JobLimits { backoff_limit: 6, ..JobLimits::default() }.into());
        workload.template = Some(Box::new(Pod { node: Some("n1".into()), ..Pod::default() }));
    });
    fixture.pod("train-0", "n1", |pod| own(pod, WorkloadKind::Job, "train"));
    let warnings: Vec<String> = drain(&fixture, &["n1"]).warnings.iter().map(ToString::to_string).collect();
    let back =
        "this drain does not empty n1: 1 pod comes back after 10s, because its template names the node";
    assert!(warnings.iter().any(|warning| warning == back), "{warnings:?}");
}

#[test]
fn the_same_snapshot_gives_the_same_landings() {
    let mut fixture = roomy(&[("n1", 8), ("n2", 4), ("n3", 4), ("n4", 4)]);
    replicas(&mut fixture, "web", &["n1", "n1", "n1", "n1", "n1"], 1);
    assert_eq!(drain(&fixture, &["n1"]), drain(&fixture, &["n1"]));
}

/// Creates nodes with this many cores, and room for 10 pods each.
pub fn roomy(nodes: &[(&str, i64)]) -> PlanFixture {
    let names: Vec<&str> = nodes.iter().map(|(name, _)| *name).collect();
    let mut fixture = PlanFixture::new(&names);
    for (name, cores) in nodes {
        let allocatable = Resources { cpu_milli: cores * 1000, memory_bytes: 8 << 30, pods: 10 };
        fixture.node(name, |node| node.allocatable = allocatable);
    }
    fixture
}

/// Adds a ReplicaSet whose pods request this many cores.
pub fn replicas(fixture: &mut PlanFixture, name: &str, on: &[&str], cores: i64) {
    fixture.replica_set(name, i32::try_from(on.len()).expect("few"), on);
    for (place, node) in on.iter().enumerate() {
        fixture.pod(&format!("{name}-{place}"), node, |pod| asks(pod, cores));
    }
}

pub fn asks(pod: &mut Pod, cores: i64) {
    let requests = Requests { cpu_milli: cores * 1000, ..Requests::default() };
    pod.resources = Arc::new(requests.into());
}

pub fn plan(fixture: &PlanFixture, action: Action) -> Plan {
    let snapshot = Snapshot::new(&fixture.cluster, NEWEST);
    let placing = PlacingEnvironment::new(&fixture.cluster, snapshot, NOW);
    Plan::new(action, &fixture.cluster, &placing, NEWEST, NOW).expect("everything named is there")
}

pub fn drain(fixture: &PlanFixture, nodes: &[&str]) -> Plan {
    let nodes = nodes.iter().map(|node| NodeName::from(*node)).collect();
    plan(fixture, Action::Drain { nodes, options: DrainOptions::default() })
}

pub fn evict(fixture: &PlanFixture, pods: &[&str]) -> Plan {
    let pods = pods.iter().map(|pod| Key::new("default", pod)).collect();
    plan(fixture, Action::Evict { pods, options: RemovalOptions::default() })
}

pub fn node(pod: &PodPlan) -> Option<&str> {
    match pod.landing.as_ref()? {
        Landing::Node { node, .. } => Some(node),
        Landing::Unknown | Landing::Pending { .. } | Landing::Rejected { .. } => None,
    }
}

fn names(nodes: &[NodeName]) -> Vec<&str> {
    nodes.iter().map(|node| &**node).collect()
}

#[test]
fn an_uncordon_names_the_pending_pods_that_it_places() {
    let mut fixture = roomy(&[("n1", 2), ("n2", 1)]);
    fixture.node("n1", |node| {
        node.unschedulable = true;
        node.taints = [taint("node.kubernetes.io/unschedulable:NoSchedule")].into();
    });
    for (name, cores, priority) in [("large", 3, 9), ("first", 2, 5), ("second", 2, 1), ("small", 1, 0)] {
        fixture.pod(name, "", |pod| {
            pod.node = None;
            pod.priority = priority;
            asks(pod, cores);
        });
    }
    let plan = plan(&fixture, Action::Uncordon { nodes: vec!["n1".into()] });
    let arrivals: Vec<_> = plan.arrivals.iter().map(|arrival| (&*arrival.pod.name, &*arrival.node)).collect();
    // `large` fits on no node, and `second` does not fit once `first` is on n1. `small` does not need the uncordon of
    // n1, because it fits on n2.
    assert_eq!(arrivals, [("first", "n1")]);
    let taken: Vec<_> =
        plan.receivers.iter().map(|receiver| (&*receiver.node, receiver.after.cpu_milli.requested)).collect();
    assert_eq!(taken, [("n1", 2000)]);
}

#[test]
fn headroom_names_the_node_and_the_zone_whose_loss_strands_most_pods() {
    let mut fixture = roomy(&[("n1", 4), ("n2", 4), ("n3", 1)]);
    for (node, zone) in [("n1", "a"), ("n2", "b"), ("n3", "b")] {
        let zone = (Name::from("topology.kubernetes.io/zone"), Name::from(zone));
        fixture.node(node, |node| node.labels = [zone].into());
    }
    replicas(&mut fixture, "web", &["n1", "n1", "n1"], 1);
    assert_eq!(reported(&fixture), "N-1 ok: nodes, zones");

    replicas(&mut fixture, "api", &["n2", "n2"], 1);
    let snapshot = Snapshot::new(&fixture.cluster, NEWEST);
    let found = headroom(&fixture.cluster, &snapshot, |_| true).expect("it went on");
    let (nodes, zones) = (&found.nodes, &found.zones);
    assert_eq!((nodes.tried, nodes.short), (3, 0), "three of n1 fit beside two on n2 and one on n3");
    assert_eq!((zones.tried, zones.short), (2, 1));
    let worst = zones.worst.as_ref().expect("n1 has room for one of zone b's two");
    assert_eq!((worst.outcomes.of(OutcomeKind::Pending), worst.outcomes.nowhere(), worst.pods), (1, 1, 2));
    assert!(!found.is_enough());
    assert_eq!(words(&found), "N-1 ok: nodes; losing zone b would strand 1 pod (1 Pending)");

    // Adds two pods to n2: a pod of a StatefulSet, which is stuck if the node is lost, and a pod that nobody recreates.
    fixture.owner(WorkloadKind::StatefulSet, "db", 1);
    fixture.pod("db-0", "n2", |pod| own(pod, WorkloadKind::StatefulSet, "db"));
    fixture.pod("bare", "n2", |_| {});
    assert_eq!(
        reported(&fixture),
        "N-1: losing n2 would strand 2 pods (1 lost, 1 stuck), losing zone b would strand 3 pods (1 lost, 1 stuck, 1 Pending)"
    );
}

#[test]
fn headroom_stops_when_it_is_cancelled() {
    let fixture = roomy(&[("n1", 4), ("n2", 4)]);
    assert_eq!(headroom(&fixture.cluster, &Snapshot::new(&fixture.cluster, NEWEST), |_| false), None);
}

fn reported(fixture: &PlanFixture) -> String {
    let snapshot = Snapshot::new(&fixture.cluster, NEWEST);
    words(&headroom(&fixture.cluster, &snapshot, |_| true).expect("it went on"))
}

fn words(headroom: &Headroom) -> String {
    headroom.clause(None, NOW, ToString::to_string).expect("there is something to lose").text
}

/// Kubernetes 1.37.1 `pkg/controller/volume/attachdetach/reconciler/reconciler.go`, `attachDesiredVolumes`: a
/// ReadWriteOnce volume is not attached to a second node. The scheduler checks only ReadWriteOncePod
/// (`plugins/volumerestrictions`).
#[test]
fn of_two_pods_that_share_a_volume_of_one_node_one_does_not_start_elsewhere() {
    let mut fixture = roomy(&[("n1", 4), ("n2", 1), ("n3", 1)]);
    replicas(&mut fixture, "wordpress", &["n1", "n1"], 1);
    let claim = Claim {
        key: Key::new("default", "files"),
        requested: VolumeProperties {
            modes: AccessModes { read_write_once: true, ..AccessModes::default() },
            ..VolumeProperties::default()
        },
        volume: "files".into(),
        is_bound: true,
        ..Claim::default()
    };
    let volume = Volume { name: "files".into(), properties: claim.requested, ..Volume::default() };
    fixture.cluster.apply(Change::Claim(ObjectEvent::Applied(claim)), &mut Vec::new());
    fixture.cluster.apply(Change::Volume(ObjectEvent::Applied(volume)), &mut Vec::new());
    for name in ["wordpress-0", "wordpress-1"] {
        fixture.pod(name, "n1", |pod| {
            let volumes = [PodVolume::Claim("files".into())].into();
            pod.scheduling = SchedulingSpec { volumes, ..(*pod.scheduling).clone() }.into();
        });
    }
    let plan = drain(&fixture, &["n1"]);
    let stuck: Vec<&PodPlan> =
        plan.pods.iter().filter(|row| row.outcome.kind() == OutcomeKind::Stuck).collect();
    let [second] = stuck[..] else { panic!("{:?}", plan.pods) };
    let first = plan.pods.iter().find(|row| row.pod != second.pod).expect("another pod");
    assert_ne!(node(first), node(second), "the scheduler sends them to two nodes");
    assert!(first.ready_again.is_some() && second.ready_again.is_none());
    let text = format!("volume files is attached to {}", node(first).expect("a node"));
    assert!(second.outcome.to_string().contains(&text), "{}", second.outcome);
}

/// Kubernetes 1.37.1 `pkg/controller/replicaset/replica_set.go`, `syncReplicaSet`: terminating pods are not active, so
/// the replacement is created, and placed, while the old pod still uses its node.
#[test]
fn a_pod_on_a_running_node_keeps_its_room_until_its_replacement_is_placed() {
    let outcome = |cores: i64| {
        let mut fixture = roomy(&[("n1", cores), ("n2", 2)]);
        replicas(&mut fixture, "web", &["n1"], 1);
        replicas(&mut fixture, "other", &["n2"], 1);
        let pod = fixture.cluster.pod(&Key::new("default", "web-0")).expect("it is there").clone();
        let leaving = leave_running_nodes(&fixture.cluster, [pod]);
        let snapshot = Snapshot::new(&fixture.cluster, NEWEST);
        let placing = PlacingEnvironment::new(&fixture.cluster, snapshot, NOW);
        failover(&fixture.cluster, leaving, LostNodes::default(), placing).pods.remove(0).outcome
    };
    let PodOutcome::Moves { among, .. } = outcome(2) else { panic!("{:?}", outcome(2)) };
    assert_eq!(among.len(), 2, "with the old pod, n1 is as full as n2");
    let PodOutcome::Moves { node, .. } = outcome(1) else { panic!("{:?}", outcome(1)) };
    assert_eq!(&*node, "n2", "there is room on n1 only once the old pod is gone");
}

#[test]
fn a_replacement_without_a_node_takes_the_room_of_the_old_pod_once_that_is_gone() {
    let mut fixture = roomy(&[("n1", 1), ("n2", 1)]);
    replicas(&mut fixture, "web", &["n1"], 1);
    replicas(&mut fixture, "other", &["n2"], 1);
    let pod = fixture.cluster.pod(&Key::new("default", "web-0")).expect("it is there").clone();
    let leaving = leave_running_nodes(&fixture.cluster, [pod]);
    let placing = PlacingEnvironment::new(&fixture.cluster, Snapshot::new(&fixture.cluster, NEWEST), NOW);
    let failover = failover(&fixture.cluster, leaving, LostNodes::default(), placing);
    assert_eq!(failover.pods[0].outcome.kind(), OutcomeKind::SameNode, "{:?}", failover.pods[0].outcome);
}
