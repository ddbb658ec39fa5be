//! Cases for each kind of departure: one for each source of evidence, strongest first, and some that are uncertain.

use std::sync::Arc;

use super::{
    DepartureCertainty::{self, Certain, Likely, Possible},
    DepartureKind::{self, *},
    EvidenceSource, PodDeparture, PodPresence, departed_at,
};
use crate::cluster::{
    Change, Cluster, ClusterEvent, Condition, ConditionStatus, ContainerExit, DrainClaim, FeedKind, Key,
    Known, NamespaceObject, Node, ObjectEvent, Owner, OwnerKind, Phase, Pod, PodEnding, READY, Taint,
    TaintEffect, Termination, Toleration, TolerationOperator, Workload, WorkloadKind, WorkloadStage,
};
use kordon_time::{ClusterTime, Span, Timestamp};

const NOW: Timestamp = Timestamp::from_secs(1_800_000_000);

/// Start of the pod's deletion, in seconds relative to `NOW`.
const DELETED: i64 = -20;

fn at(secs: i64) -> ClusterTime {
    ClusterTime::new(NOW + Span::from_secs(secs))
}

/// A pod and its cluster.
struct Case {
    pod: Pod,
    node: Option<Node>,
    workloads: Vec<Workload>,
    siblings: Vec<Pod>,
    namespace_ends: bool,
    events: Vec<ClusterEvent>,
    presence: PodPresence,
}

impl Case {
    /// A running pod of a ReplicaSet that wants two pods and has two.
    fn running() -> Self {
        let pod = |name: &str| Pod {
            key: Key::new("shop", name),
            uid: name.into(),
            created: at(-5000),
            node: Some("a".into()),
            owner: Some(Arc::new(Owner {
                kind: OwnerKind::Workload(WorkloadKind::ReplicaSet),
                name: "web".into(),
                uid: "rs".into(),
            })),
            phase: Phase::Running,
            ..Pod::default()
        };
        let ready = Condition { kind: READY.into(), status: ConditionStatus::True, ..Condition::default() };
        Self {
            pod: pod("web-1"),
            node: Some(Node { name: "a".into(), conditions: [ready].into(), ..Node::default() }),
            workloads: vec![workload(WorkloadKind::ReplicaSet, "web", 2)],
            siblings: vec![pod("web-2")],
            namespace_ends: false,
            events: Vec::new(),
            presence: PodPresence::Present,
        }
    }

    fn terminating() -> Self {
        let grace = Span::from_secs(30);
        let mut case = Self::running();
        case.pod.termination = Some(Termination { deadline: at(DELETED) + grace, grace }.into());
        case
    }

    fn finished(phase: Phase, reason: &str, message: &str, exits: &[(&str, i32, i64)]) -> Self {
        let mut case = Self::running();
        (case.pod.phase, case.pod.reason) = (phase, reason.into());
        let exits = exits.iter().map(|(reason, code, secs)| ContainerExit {
            container: "app".into(),
            reason: (*reason).into(),
            code: *code,
            at: Some(at(*secs)),
            restarted: false,
        });
        let ending = PodEnding { message: message.into(), exits: exits.collect(), ..PodEnding::default() };
        case.pod.ending = Some(ending.into());
        case
    }

    fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    fn condition(self, reason: &str) -> Self {
        self.with(|case| {
            case.pod.disruption_target = Some(reason.into());
            let ending = case.pod.ending.take().map_or_else(PodEnding::default, |ending| (*ending).clone());
            case.pod.ending = Some(PodEnding { disrupted: Some(at(DELETED)), ..ending }.into());
        })
    }

    fn deleted(self) -> Self {
        self.with(|case| case.pod.termination = Self::terminating().pod.termination)
    }

    fn gone(self) -> Self {
        self.with(|case| case.presence = PodPresence::Gone)
    }

    fn event(self, reason: &str, source: &str, message: &str) -> Self {
        self.with(|case| {
            case.events.push(ClusterEvent {
                reason: reason.into(),
                source: source.into(),
                message: message.into(),
                count: 1,
                ..ClusterEvent::default()
            });
        })
    }

    fn taint(self, key: &str, added: i64) -> Self {
        self.with(|case| {
            let taint = Taint {
                key: key.into(),
                effect: TaintEffect::NoExecute,
                time_added: Some(at(added)),
                ..Taint::default()
            };
            case.node.as_mut().expect("a node").taints = [taint].into();
        })
    }

    fn tolerating(self, seconds: Option<i64>) -> Self {
        self.with(|case| {
            let operator = TolerationOperator::Exists;
            case.pod.tolerations = [Toleration { operator, seconds, ..Toleration::default() }].into();
        })
    }

    fn not_ready(self) -> Self {
        self.with(|case| case.node.as_mut().expect("a node").conditions = [].into())
    }

    fn set_owner_kind(&mut self, kind: OwnerKind) {
        Arc::make_mut(self.pod.owner.as_mut().expect("an owner")).kind = kind;
    }

    fn owner(self, kind: WorkloadKind, stage: WorkloadStage) -> Self {
        self.with(|case| {
            case.set_owner_kind(OwnerKind::Workload(kind));
            case.workloads = vec![Workload { stage, ..workload(kind, "web", 2) }];
        })
    }

    fn cluster(&self) -> Cluster {
        let mut cluster = Cluster::default();
        let known = [FeedKind::Pods, FeedKind::Nodes, FeedKind::Namespaces];
        let kinds = WorkloadKind::ALL.map(FeedKind::Workloads);
        let lists = |kind: WorkloadKind| {
            let of_kind = self.workloads.iter().filter(move |workload| workload.kind == kind).cloned();
            let listed = of_kind.map(ObjectEvent::Listed);
            let events = [ObjectEvent::ListStarted].into_iter().chain(listed).chain([ObjectEvent::ListDone]);
            events.map(move |event| Change::Workload(kind, event))
        };
        let pods =
            self.siblings.iter().chain(Some(&self.pod).filter(|_| self.presence == PodPresence::Present));
        let pods = pods.cloned().map(ObjectEvent::Listed);
        let nodes = self.node.iter().cloned().map(ObjectEvent::Listed);
        let namespace = NamespaceObject {
            name: "shop".into(),
            terminating: self.namespace_ends,
            ..NamespaceObject::default()
        };
        let changes = std::iter::once(Change::Node(ObjectEvent::ListStarted))
            .chain(nodes.map(Change::Node))
            .chain([Change::Node(ObjectEvent::ListDone), Change::Pod(ObjectEvent::ListStarted)])
            .chain(pods.map(Change::Pod))
            .chain([Change::Pod(ObjectEvent::ListDone)])
            .chain([Change::Namespace(ObjectEvent::Applied(namespace))])
            .chain(WorkloadKind::ALL.into_iter().flat_map(lists))
            .chain(known.into_iter().chain(kinds).map(|kind| Change::Known(kind, Known::Live)));
        changes.for_each(|change| cluster.apply(change, &mut Vec::new()));
        cluster
    }

    fn departure(&self) -> Option<PodDeparture> {
        PodDeparture::new(&self.pod, self.presence, &self.cluster(), &self.events)
    }
}

fn workload(kind: WorkloadKind, name: &str, replicas: i32) -> Workload {
    Workload {
        kind,
        key: Key::new("shop", name),
        uid: "rs".into(),
        version: Default::default(),
        replicas: Some(replicas),
        selector: None,
        owner: None,
        replaces_only_failed: false,
        is_recreated: false,
        reboot_locks: Vec::new(),
        stateful: None,
        job: None,
        template: None,
        stage: WorkloadStage::Active,
    }
}

/// Checks the kind of departure, its certainty, and the source of the strongest evidence.
fn check(cases: Vec<(&str, Case, DepartureKind, DepartureCertainty, EvidenceSource)>) {
    for (name, case, kind, certainty, source) in cases {
        let departure = case.departure().unwrap_or_else(|| panic!("{name}: no departure"));
        let found = (departure.kind, departure.certainty, departure.evidence[0].source);
        assert_eq!(found, (kind, certainty, source), "{name}: {departure:#?}");
        assert!(departure.evidence[0].agrees, "{name}");
    }
}

const LOW: &str = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 80Mi.";
const TOO_MUCH: &str = "Pod ephemeral local storage usage exceeds the total limit of containers 1Gi. ";

#[test]
fn who_removed_it_says_so_in_the_condition() {
    use EvidenceSource::Condition;
    let by = |reason: &str| Case::terminating().condition(reason);
    check(vec![
        ("a drain", by("EvictionByEvictionAPI"), ApiEviction, Certain, Condition),
        ("a taint", by("DeletionByTaintManager"), TaintEviction, Certain, Condition),
        ("a device", by("DeletionByDeviceTaintManager"), DeviceTaintEviction, Certain, Condition),
        ("the collector", by("DeletionByPodGC"), GarbageCollection, Certain, Condition),
        ("the scheduler", by("PreemptionByScheduler"), Preemption, Certain, Condition),
        ("the scheduler of 1.25", by("PreemptionByKubeScheduler"), Preemption, Certain, Condition),
        ("a kubelet that says no more", by("TerminationByKubelet"), NodePressure, Likely, Condition),
        ("somebody unknown", by("ByAnOperator"), Deletion, Possible, Condition),
        (
            "the collector, after it failed",
            by("DeletionByPodGC").with(|case| case.pod.phase = Phase::Failed),
            GarbageCollection,
            Certain,
            Condition,
        ),
    ]);
}

#[test]
fn a_kubelet_says_in_the_status_what_it_did() {
    use EvidenceSource::{Condition, Status};
    let failed =
        |reason: &str, message: &str| Case::finished(Phase::Failed, reason, message, &[("Error", 137, -20)]);
    check(vec![
        ("pressure", failed("Evicted", LOW), NodePressure, Certain, Status),
        (
            "pressure, with its condition",
            failed("Evicted", LOW).condition("TerminationByKubelet"),
            NodePressure,
            Certain,
            Condition,
        ),
        ("its own limit of storage", failed("Evicted", TOO_MUCH), StorageLimit, Certain, Status),
        (
            "an emptyDir",
            failed("Evicted", "Usage of EmptyDir volume \"tmp\" exceeds the limit \"1Gi\". "),
            StorageLimit,
            Certain,
            Status,
        ),
        (
            "a critical pod",
            failed("Preempting", "Preempted in order to admit critical pod")
                .condition("TerminationByKubelet"),
            Preemption,
            Certain,
            Condition,
        ),
        (
            "a shutdown",
            failed("Terminated", "Pod was terminated in response to imminent node shutdown.")
                .condition("TerminationByKubelet"),
            NodeShutdown,
            Certain,
            Condition,
        ),
        (
            "not admitted: no room",
            failed("OutOfcpu", "Pod was rejected: Node didn't have enough resource: cpu"),
            Rejection,
            Certain,
            Status,
        ),
        (
            "not admitted under pressure",
            failed("Evicted", "Pod was rejected: The node had condition: [DiskPressure]. "),
            Rejection,
            Certain,
            Status,
        ),
        (
            "not admitted, before 1.28",
            failed("Evicted", "The node had condition: [MemoryPressure]. "),
            Rejection,
            Certain,
            Status,
        ),
        ("not admitted: affinity", failed("NodeAffinity", ""), Rejection, Certain, Status),
        ("its time was over", failed("DeadlineExceeded", ""), Failure, Certain, Status),
        (
            "pressure, then its StatefulSet deletes it",
            failed("Evicted", LOW).deleted(),
            NodePressure,
            Certain,
            Status,
        ),
    ]);
}

#[test]
fn containers_tell_how_they_ended_and_a_kill_for_memory_is_no_eviction() {
    use EvidenceSource::Container;
    let done = || Case::finished(Phase::Succeeded, "", "", &[("Completed", 0, -60)]);
    let failed = |exits: &[(&str, i32, i64)]| Case::finished(Phase::Failed, "", "", exits);
    check(vec![
        ("a Job", done().owner(WorkloadKind::Job, WorkloadStage::Active), JobCompletion, Certain, Container),
        (
            "a Job that is deleted later",
            done().owner(WorkloadKind::Job, WorkloadStage::Finished).deleted(),
            JobCompletion,
            Certain,
            Container,
        ),
        ("without a Job", done().with(|case| case.pod.owner = None), Completion, Certain, Container),
        ("an OOM kill", failed(&[("OOMKilled", 137, -60)]), OomKill, Certain, Container),
        (
            "an OOM kill beside containers that end with it",
            failed(&[("Error", 143, -60), ("OOMKilled", 137, -60)]),
            OomKill,
            Certain,
            Container,
        ),
        ("a failure", failed(&[("Error", 1, -60)]), Failure, Certain, Container),
        ("a kill by somebody", failed(&[("Error", 137, -60)]), Failure, Possible, Container),
        ("nothing is known", failed(&[]), Failure, Possible, Container),
    ]);
}

#[test]
fn containers_that_end_because_of_the_deletion_are_no_completion_and_no_failure() {
    use EvidenceSource::{Condition, Deletion as Deleted};
    let ended = |phase, code| Case::finished(phase, "", "", &[("x", code, -15)]).deleted();
    check(vec![
        ("SIGTERM", ended(Phase::Succeeded, 0), Deletion, Likely, Deleted),
        ("SIGKILL", ended(Phase::Failed, 137), Deletion, Likely, Deleted),
        (
            "a drain",
            ended(Phase::Failed, 143).condition("EvictionByEvictionAPI"),
            ApiEviction,
            Certain,
            Condition,
        ),
    ]);
}

#[test]
fn events_tell_where_the_status_does_not() {
    use EvidenceSource::Event;
    let event =
        |reason: &str, source: &str, message: &str| Case::terminating().event(reason, source, message);
    let marking = "Marking for deletion Pod shop/web-1";
    check(vec![
        (
            "preempted",
            event("Preempted", "default-scheduler", "Preempted by pod 1 on node a"),
            Preemption,
            Certain,
            Event,
        ),
        ("pressure", event("Evicted", "kubelet", LOW), NodePressure, Certain, Event),
        ("storage", event("Evicted", "kubelet", TOO_MUCH), StorageLimit, Certain, Event),
        ("an autoscaler", event("Evicted", "karpenter", "Evicted pod: Drifted"), ApiEviction, Likely, Event),
        (
            "a taint",
            event("TaintManagerEviction", "taint-eviction-controller", marking),
            TaintEviction,
            Likely,
            Event,
        ),
        (
            "its ReplicaSet",
            event("SuccessfulDelete", "replicaset-controller", "Deleted pod: web-1"),
            ScaleDown,
            Certain,
            Event,
        ),
        (
            "its StatefulSet",
            event(
                "SuccessfulDelete",
                "statefulset-controller",
                "delete Pod web-1 in StatefulSet web successful",
            ),
            ScaleDown,
            Likely,
            Event,
        ),
        (
            "its DaemonSet",
            event("SuccessfulDelete", "daemonset-controller", "Deleted pod: web-1"),
            Deletion,
            Likely,
            Event,
        ),
    ]);
    let other = event("SuccessfulDelete", "replicaset-controller", "Deleted pod: web-11").departure();
    let cancelled = event("TaintManagerEviction", "x", "Cancelling deletion of Pod shop/web-1").departure();
    for departure in [other, cancelled] {
        assert_eq!(departure.map(|departure| departure.kind), Some(Deletion));
    }
}

#[test]
fn circumstances_explain_what_nobody_states() {
    use EvidenceSource::{Deletion as Deleted, Drain, Node, Owner};
    let claimed = |renewed: i64| {
        let operation = "drain-1".parse().expect("an id");
        let renewed = NOW + Span::from_secs(renewed);
        let claim = DrainClaim { by: "alice".into(), operation, renewed, ..DrainClaim::default() };
        Case::terminating().with(|case| case.node.as_mut().expect("a node").drain_claim = Some(claim.into()))
    };
    let replicas = |replicas| Case::terminating().with(|case| case.workloads[0].replicas = Some(replicas));
    let unreachable = "node.kubernetes.io/unreachable";
    check(vec![
        ("a user", Case::terminating(), Deletion, Likely, Deleted),
        ("a user, by force", Case::running().gone(), Deletion, Likely, Deleted),
        (
            "nobody knows its owner",
            Case::terminating().with(|case| {
                case.set_owner_kind(OwnerKind::other("Rollout", "argoproj.io"));
            }),
            Deletion,
            Possible,
            Deleted,
        ),
        ("fewer replicas", replicas(1), ScaleDown, Likely, Owner),
        ("no replicas", replicas(0), ScaleDown, Likely, Owner),
        (
            "a replacement is no surplus",
            Case::terminating().with(|case| {
                let new = Pod {
                    key: Key::new("shop", "web-3"),
                    uid: "3".into(),
                    created: at(DELETED + 1),
                    ..case.pod.clone()
                };
                case.siblings.push(Pod { termination: None, ..new });
            }),
            Deletion,
            Likely,
            Deleted,
        ),
        (
            "its owner is gone",
            Case::terminating().with(|case| case.workloads.clear()),
            Deletion,
            Likely,
            Owner,
        ),
        (
            "its owner is being deleted",
            Case::terminating().owner(WorkloadKind::ReplicaSet, WorkloadStage::Deleting),
            Deletion,
            Likely,
            Owner,
        ),
        (
            "its namespace is being deleted",
            Case::terminating().with(|case| case.namespace_ends = true),
            Deletion,
            Likely,
            Owner,
        ),
        (
            "its Job is over",
            Case::terminating().owner(WorkloadKind::Job, WorkloadStage::Finished),
            JobCompletion,
            Likely,
            Owner,
        ),
        (
            "a taint that it does not tolerate",
            Case::terminating().taint("maintenance", -25),
            TaintEviction,
            Likely,
            Node,
        ),
        (
            "a toleration that is over",
            Case::terminating().taint(unreachable, DELETED - 300).tolerating(Some(300)),
            TaintEviction,
            Likely,
            Node,
        ),
        (
            "a toleration that was over long before",
            Case::terminating().taint(unreachable, -900).tolerating(Some(300)),
            TaintEviction,
            Possible,
            Node,
        ),
        (
            "a toleration that still holds",
            Case::terminating().taint(unreachable, -60).tolerating(Some(300)),
            Deletion,
            Likely,
            Deleted,
        ),
        (
            "a toleration for all time",
            Case::terminating().taint(unreachable, -900).tolerating(None),
            Deletion,
            Likely,
            Deleted,
        ),
        (
            "no node, and it is gone",
            Case::running().with(|case| case.node = None).gone(),
            GarbageCollection,
            Likely,
            Node,
        ),
        (
            "no node, and it is terminating",
            Case::terminating().with(|case| case.node = None),
            GarbageCollection,
            Possible,
            Node,
        ),
        ("a drain that deletes", claimed(-30), Deletion, Likely, Drain),
        ("a drain that was interrupted long ago", claimed(-900), Deletion, Likely, Deleted),
    ]);
}

#[test]
fn the_collector_ends_on_an_out_of_service_node_what_the_taint_began() {
    let taint = "node.kubernetes.io/out-of-service";
    let marked = || Case::terminating().condition("DeletionByTaintManager").taint(taint, -600);
    check(vec![
        ("its kubelet is down", marked().not_ready(), OutOfService, Likely, EvidenceSource::Node),
        (
            "the collector has failed it",
            marked().not_ready().with(|case| case.pod.phase = Phase::Failed),
            OutOfService,
            Certain,
            EvidenceSource::Node,
        ),
        ("its kubelet is back", marked(), TaintEviction, Certain, EvidenceSource::Condition),
        (
            "its node was marked after the deletion began",
            marked().taint(taint, -2).not_ready(),
            TaintEviction,
            Certain,
            EvidenceSource::Condition,
        ),
    ]);
}

#[test]
fn evidence_that_contradicts_is_named_and_makes_the_kind_less_certain() {
    let preempted = ("Preempted", "default-scheduler", "Preempted by pod 1 on node a");
    let with =
        |case: Case, (reason, source, message): (&str, &str, &str)| case.event(reason, source, message);
    let both =
        with(Case::terminating().condition("EvictionByEvictionAPI"), preempted).departure().expect("gone");
    assert_eq!(
        (both.kind, both.certainty),
        (ApiEviction, Likely),
        "the condition counts more than the Event"
    );
    let last = both.evidence.last().expect("evidence");
    assert_eq!((last.source, last.agrees), (EvidenceSource::Event, false), "{both:#?}");
    assert!(last.text.contains("Preempted by pod 1"), "{}", last.text);

    let agree =
        with(Case::terminating().condition("PreemptionByScheduler"), preempted).departure().expect("gone");
    assert_eq!((agree.kind, agree.certainty, agree.evidence.len()), (Preemption, Certain, 2));
    assert!(agree.evidence.iter().all(|evidence| evidence.agrees));

    let taint =
        Case::terminating().taint("maintenance", -25).with(|case| case.workloads[0].replicas = Some(0));
    let torn = taint.departure().expect("gone");
    assert_eq!(
        (torn.kind, torn.certainty),
        (TaintEviction, Possible),
        "an owner with too many explains it as well"
    );
    assert!(
        torn.evidence.iter().any(|evidence| !evidence.agrees && evidence.source == EvidenceSource::Owner)
    );

    let stale = Case::terminating().condition("EvictionByEvictionAPI").with(|case| {
        let ending = PodEnding { disrupted: Some(at(DELETED - 600)), ..PodEnding::default() };
        case.pod.ending = Some(ending.into());
    });
    let stale = stale.departure().expect("gone");
    assert_eq!((stale.kind, stale.certainty), (ApiEviction, Likely));
    assert_eq!(
        stale.reason(),
        "condition DisruptionTarget: EvictionByEvictionAPI, set 10m00s before the deletion"
    );
}

#[test]
fn a_pod_that_stays_has_no_departure_though_a_container_was_killed_for_memory() {
    let mut case = Case::running().condition("EvictionByEvictionAPI");
    assert_eq!(case.departure(), None, "announced, and not deleted yet");
    assert_eq!(PodDeparture::oom_kill(&case.pod), None);
    let exit = ContainerExit {
        container: "app".into(),
        reason: "OOMKilled".into(),
        code: 137,
        at: Some(at(-60)),
        restarted: true,
    };
    case.pod.ending = Some(PodEnding { exits: [exit].into(), ..PodEnding::default() }.into());
    assert_eq!(case.departure(), None);
    let (killed, when) = PodDeparture::oom_kill(&case.pod).expect("killed");
    assert_eq!((killed.kind, killed.certainty, when), (OomKill, Certain, Some(at(-60))));
    assert!(killed.reason().contains("not evicted"), "{}", killed.reason());
    case.pod.termination = Case::terminating().pod.termination;
    case.pod.disruption_target = None;
    assert_eq!(
        case.departure().map(|departure| departure.kind),
        Some(Deletion),
        "killed before, deleted now"
    );
}

#[test]
fn events_alone_classify_a_pod_that_is_gone() {
    let key = Key::new("shop", "web-1");
    let of = |case: Case| PodDeparture::from_events(&key, &case.events).map(|departure| departure.kind);
    assert_eq!(of(Case::running().event("Killing", "kubelet", "Stopping container app")), None);
    assert_eq!(of(Case::running().event("Evicted", "kubelet", LOW)), Some(NodePressure));
}

#[test]
fn a_departure_is_dated_by_the_deletion_or_by_the_end_before_it() {
    let when = |case: Case| departed_at(&case.pod, &Cluster::default()).map(|at| at.since(NOW).as_secs());
    assert_eq!(when(Case::terminating()), Some(DELETED));
    assert_eq!(when(Case::finished(Phase::Succeeded, "", "", &[("Completed", 0, -60)])), Some(-60));
    assert_eq!(when(Case::finished(Phase::Succeeded, "", "", &[("Completed", 0, -60)]).deleted()), Some(-60));
    assert_eq!(when(Case::running()), None);
}

#[test]
fn kinds_have_distinct_words() {
    let words: std::collections::BTreeSet<&str> = DepartureKind::ALL.map(DepartureKind::as_str).into();
    let titles: std::collections::BTreeSet<&str> = DepartureKind::ALL.map(DepartureKind::title).into();
    assert_eq!((words.len(), titles.len()), (DepartureKind::ALL.len(), DepartureKind::ALL.len()));
}
