//! What other settings would have done with the recorded heartbeats.
//!
//! A recording has the acts of kubelets, people and other controllers, and the reactions of the node lifecycle and
//! taint eviction controllers to them. [`Counterfactual`] filters the recorded changes on their way to the cluster of a
//! model: it passes the acts on and removes the reactions. The reactions come instead from the model's engine, which
//! runs with other settings.
//!
//! ```text
//!  recorded change --> [ Counterfactual ] --> change --> Cluster of the model --> Engine
//!                        |     ^      ^                        ^                    |
//!                        v     |      '---- what happened since ----- write <-------'
//!                recorded Cluster
//! ```
//!
//! The filter removes four reactions: conditions become Unknown, the node lifecycle controller changes its taints, pods
//! are marked not ready because their node is not ready, and taints evict pods. It adapts what followed from these
//! reactions:
//!
//! - A pod that was evicted in the recording stays until the engine evicts it. Its replacement is left out until then.
//! - A pod that only the engine evicts ends after its grace period. If its kubelet is silent, the grace period starts
//!   when the kubelet is back. Nobody replaces the pod.
//! - A node that only the engine marked Unknown gets its status from its kubelet with the next heartbeat.
//!
//! Some of these changes make a result uncertain. Such cases are counted ([`Uncertainty`]).

mod acts;
mod alternative;
mod nodes;
mod outages;
mod pods;
mod replacements;
mod uncertainty;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

pub use acts::{Acts, ActsTotals, EvictedPod, Spread, UnreachableNode};
pub use alternative::{Alternative, BadAlternative, DEFAULT_TOLERATION, DefaultTolerations};
pub use outages::{AffectedPod, CostScope, OutageCost, OutageEnd, Paid, RecordedOutage, START, Whose};
pub use uncertainty::{Uncertainties, Uncertainty};

use crate::{
    cluster::{
        Applied, Change, Cluster, ConditionStatus, Delta, Key, LeaderLease, Lease, Node, NodeName,
        ObjectEvent, Pod, TableObject, Version,
    },
    engine::{Settings, Write},
};
use kordon_time::{Span, Timestamp};
use outages::{OutageStart, OutageTracker};
use replacements::Replacements;

/// Validity of a leader's Lease that states no duration.
const LEADER_DURATION: Span = Span::from_secs(15);

/// Replaces the reactions of the recorded controllers with those of an engine. The caller passes in each recorded
/// change, and each write of the engine before it is applied.
#[derive(Clone, Debug)]
pub struct Counterfactual {
    settings: Settings,
    tolerations: DefaultTolerations,
    /// Length of a silence after which a node counts as having an outage.
    least_silence: Span,
    /// The nodes, Leases and pods as recorded.
    recorded: Cluster,
    /// The status of the Ready condition that each kubelet posted last, by node.
    posted: BTreeMap<NodeName, ConditionStatus>,
    /// The last heartbeat of each node.
    heard: BTreeMap<NodeName, Timestamp>,
    /// The pods that the engine marked not ready, in their state before the mark.
    marked: BTreeMap<Key, Arc<Pod>>,
    /// The pods that the engine evicted, with the time at which the pod's kubelet ends it.
    ending: BTreeMap<Key, Timestamp>,
    /// The evicted pods on silent nodes, by node. The kubelet of the node ends them when it is back.
    held: BTreeMap<NodeName, BTreeSet<Key>>,
    replacements: Replacements,
    /// Pods that the engine has evicted and the recording has not, with the time of the eviction.
    evicted_here: BTreeMap<Key, Timestamp>,
    /// Interval between renewals of the leader's Lease.
    leader_renews_every: Option<Span>,
    outages: OutageTracker,
    happened: Acts,
    would: Acts,
    uncertain: Uncertainties,
}

impl Counterfactual {
    pub fn new(alternative: &Alternative) -> Self {
        Self {
            settings: alternative.settings.clone(),
            tolerations: alternative.tolerations,
            least_silence: alternative.least_silence,
            recorded: Cluster::default(),
            posted: BTreeMap::new(),
            heard: BTreeMap::new(),
            marked: BTreeMap::new(),
            ending: BTreeMap::new(),
            held: BTreeMap::new(),
            replacements: Replacements::default(),
            evicted_here: BTreeMap::new(),
            leader_renews_every: None,
            outages: OutageTracker::default(),
            happened: Acts::default(),
            would: Acts::default(),
            uncertain: Uncertainties::default(),
        }
    }

    /// The acts of the recorded controllers.
    pub fn happened(&self) -> &Acts {
        &self.happened
    }

    /// The acts of the engine, which replace those of the recorded controllers.
    pub fn would(&self) -> &Acts {
        &self.would
    }

    /// The reasons why the acts of the engine are uncertain.
    pub fn uncertain(&self) -> Uncertainties {
        let mut uncertain = self.uncertain.clone();
        uncertain.add(Uncertainty::ReplacementMissing, self.evicted_here.len());
        uncertain
    }

    /// The outages up to the end of the recording. `cluster` is the model's cluster at the end.
    pub fn outages(&self, cluster: &Cluster, end: Timestamp) -> Vec<RecordedOutage> {
        let heard = self.heard.iter().map(|(node, heard)| (node, *heard));
        let open = self.outages.open(heard, end, self.least_silence);
        let open = open.map(|(node, start)| self.outage((node, start, OutageEnd::Open(end)), cluster));
        self.outages.ended().iter().cloned().chain(open).collect()
    }

    /// Median time from the creation of a pod until it is Ready; `None` if no pod was observed from its creation until
    /// Ready.
    pub fn start(&self) -> Option<Span> {
        self.outages.start()
    }

    /// Converts a recorded change into the changes of the model's cluster. `cluster` is the model's cluster before the
    /// change.
    pub fn on_change(&mut self, change: Change, cluster: &Cluster, now: Timestamp) -> Vec<Change> {
        match change {
            Change::Node(event) => self.on_node_event(event, cluster, now),
            Change::Pod(event) => self.on_pod_event(event, cluster, now),
            Change::Lease(event) => self.on_lease_event(event, cluster, now),
            Change::Leader(Some(leader)) => vec![Change::Leader(Some(self.on_leader(leader)))],
            other => vec![other],
        }
    }

    /// Handles a write of the engine. `cluster` is the model's cluster before the write.
    pub fn on_write(&mut self, write: &Write, cluster: &Cluster, now: Timestamp) {
        match write {
            Write::MarkUnknown { node, .. } => self.on_engine_unknown(node, cluster, now),
            Write::MarkPodNotReady { pod, .. } => {
                if let Some(pod) = cluster.pod(pod) {
                    self.marked.entry(pod.key.clone()).or_insert_with(|| pod.clone());
                }
            }
            Write::DeletePod { pod, uid, deletion, .. } => {
                let pod = cluster.pod(pod).filter(|pod| pod.uid == *uid && pod.termination.is_none());
                if let Some(pod) = pod {
                    self.on_engine_deletion(pod, *deletion, cluster, now);
                }
            }
            Write::SwapTaints { .. }
            | Write::SetLabels { .. }
            | Write::MarkPodLost { .. }
            | Write::RecordEvent(_) => {}
        }
    }

    /// Returns changes that add replacements to the model's cluster, once they are no longer left out.
    pub fn settle(&mut self, cluster: &Cluster) -> Vec<Change> {
        let released = self.replacements.release(|key| cluster.pod(key).is_none());
        let pods = released.into_iter().filter_map(|key| self.recorded.pod(&key).cloned());
        pods.map(|pod| Change::Pod(ObjectEvent::Applied(self.as_created(&pod, cluster)))).collect()
    }

    /// Handles a gap in the recording. What happened during the gap is unknown.
    pub fn on_gap(&mut self, now: Timestamp) {
        self.uncertain.add(Uncertainty::Gap, 1);
        self.outages.on_gap(now);
    }

    /// The time of the next [`Counterfactual::on_timeout`].
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        self.ending.values().min().copied()
    }

    /// Lets kubelets end the evicted pods that are due.
    pub fn on_timeout(&mut self, cluster: &Cluster, now: Timestamp) -> Vec<Change> {
        let due: Vec<Key> =
            self.ending.iter().filter(|(_, end)| **end <= now).map(|(key, _)| key.clone()).collect();
        let mut changes = Vec::new();
        for key in due {
            self.ending.remove(&key);
            let Some(pod) = cluster.pod(&key).filter(|pod| pod.termination.is_some()) else { continue };
            // Skip pods that are terminating in the recording too: the recording also contains the end of these pods.
            let recorded = self.recorded.pod(&key).filter(|recorded| recorded.uid == pod.uid);
            if recorded.is_none_or(|recorded| recorded.termination.is_none()) {
                self.forget_pod(&key);
                changes.push(Change::Pod(ObjectEvent::Deleted(key)));
            }
        }
        changes
    }

    fn on_lease_event(
        &mut self,
        event: ObjectEvent<Lease>,
        cluster: &Cluster,
        now: Timestamp,
    ) -> Vec<Change> {
        let mut changes = vec![Change::Lease(event.clone())];
        for applied in self.record(Change::Lease(event)) {
            let Applied::Lease(Delta { old, new: Some(lease) }) = applied else { continue };
            let Some(heartbeat) = lease.heartbeat() else { continue };
            if old.is_some_and(|old| old.renewed >= lease.renewed) {
                continue;
            }
            self.on_heartbeat(&lease.node, cluster.local(heartbeat).min(now), cluster, now);
            changes.extend(self.assumed_post(&lease.node, cluster, now));
        }
        changes
    }

    /// Returns the leader's Lease with a shorter duration, so that it expires soon after the last renewal. A controller
    /// that is gone does nothing, although its Lease stays valid for a while.
    fn on_leader(&mut self, leader: LeaderLease) -> LeaderLease {
        for applied in self.record(Change::Leader(Some(leader.clone()))) {
            let Applied::Leader(Some(before), Some(_)) = applied else { continue };
            if before.holder == leader.holder
                && let (Some(before), Some(renewed)) = (before.renewed, leader.renewed)
                && renewed > before
            {
                self.leader_renews_every = Some(renewed.since(before));
            }
        }
        let soon = self.leader_renews_every.map(|every| every * 2 + Span::from_secs(1));
        let duration = leader.duration.unwrap_or(LEADER_DURATION);
        LeaderLease { duration: Some(soon.map_or(duration, |soon| soon.min(duration))), ..leader }
    }

    /// Handles a heartbeat of a kubelet: a Lease renewal or a node status.
    fn on_heartbeat(&mut self, name: &NodeName, at: Timestamp, cluster: &Cluster, now: Timestamp) {
        let before = self.heard.get(name).copied();
        if before.is_some_and(|before| at <= before) {
            return;
        }
        self.heard.insert(name.clone(), at);
        let before = before.filter(|_| cluster.leases().is_synced());
        self.observe_outage(name, before, at, cluster);
        if let Some(before) = before {
            let silence = at.since(before);
            let grace = self.settings.node_monitor_grace_period.value;
            let is_close = silence > grace && silence <= grace + self.passes();
            self.uncertain.add(Uncertainty::NearDeadline, usize::from(is_close));
        }
        if self.posted.get(name) == Some(&ConditionStatus::True) {
            self.on_back(name, at, cluster, now);
        }
        for key in self.held.remove(name).into_iter().flatten() {
            if let Some(pod) = cluster.pod(&key) {
                self.ending.insert(key, now + pod.grace);
            }
        }
    }

    /// Handles a heartbeat of a node that is Ready.
    fn on_back(&mut self, name: &NodeName, at: Timestamp, cluster: &Cluster, now: Timestamp) {
        let passes = self.passes();
        self.happened.on_back(name, at, passes);
        let close = self.would.on_back(name, at, passes);
        self.uncertain.add(Uncertainty::NearDeadline, close + self.nearly_evicted(name, cluster, now));
    }

    /// Handles the deletion of a node. Later heartbeats under the same name come from a new node.
    fn on_node_gone(&mut self, name: &NodeName, cluster: &Cluster, now: Timestamp) {
        self.posted.remove(name);
        let heard = self.heard.remove(name).filter(|_| cluster.leases().is_synced());
        if let Some(start) = self.outages.on_gone(name, heard, now, self.least_silence) {
            let outage = self.outage((name, start, OutageEnd::Deleted(now)), cluster);
            self.outages.on_ended(outage);
        }
    }

    /// Handles a heartbeat of a node at `at`. `before` is the time of the node's previous heartbeat, if known.
    fn observe_outage(
        &mut self,
        name: &NodeName,
        before: Option<Timestamp>,
        at: Timestamp,
        cluster: &Cluster,
    ) {
        let posted = self.posted.get(name).copied();
        if let Some(start) = self.outages.on_heard(name, before, at, self.least_silence, posted) {
            let outage = self.outage((name, start, OutageEnd::Back(at)), cluster);
            self.outages.on_ended(outage);
        }
    }

    fn outage(&self, what: (&NodeName, OutageStart, OutageEnd), cluster: &Cluster) -> RecordedOutage {
        outages::outage(what, (&self.recorded, cluster), &self.happened)
    }

    /// Maximum time by which the phase of the controller's passes can shift a decision: two monitor periods.
    fn passes(&self) -> Span {
        self.settings.node_monitor_period.value * 2
    }

    /// Applies a change to the recorded cluster.
    fn record(&mut self, change: Change) -> Vec<Applied> {
        let mut applied = Vec::new();
        self.recorded.apply(change, &mut applied);
        applied
    }

    /// The last heartbeat of the node; without one, its creation.
    fn silent_since(&self, node: &NodeName, cluster: &Cluster, now: Timestamp) -> Timestamp {
        let created = || cluster.node(node).map(|node| cluster.local(node.created));
        self.heard.get(node).copied().or_else(created).unwrap_or(now).min(now)
    }
}

/// Position of a recorded event in a watch's list of objects. The watch's first list is passed on as a list, its later
/// lists as changes.
enum ListStage {
    Started,
    Listed,
    Done,
    /// The event is a change outside a list.
    Changed,
}

impl ListStage {
    fn after<T: TableObject>(event: &ObjectEvent<T>) -> Self {
        match event {
            ObjectEvent::ListStarted => Self::Started,
            ObjectEvent::Listed(_) => Self::Listed,
            ObjectEvent::ListDone => Self::Done,
            ObjectEvent::Prefetched(_) | ObjectEvent::Applied(_) | ObjectEvent::Deleted(_) => Self::Changed,
        }
    }
}

/// Returns a version that is newer than the version of `known`.
fn next_version<T: TableObject>(object: &T, known: &T) -> Version {
    Version(object.version().0.max(known.version().0 + 1))
}

/// Returns the node if its uid is that of `other`.
fn same_node<'a>(node: Option<&'a Arc<Node>>, other: &Node) -> Option<&'a Arc<Node>> {
    node.filter(|node| node.uid == other.uid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        cluster::{
            Condition, Lease, Owner, OwnerKind, PodReady, READY, Taint, TaintEffect, Termination, Uid,
            Version, WorkloadKind,
        },
        engine::{
            DELETION_BY_TAINT, Deletion, LeaseCheck, Origin, ServerVersion, UNREACHABLE, UnknownCondition,
        },
        forecast::apply_write,
    };
    use kordon_time::ClusterTime;

    const START: Timestamp = Timestamp::from_secs(1_800_000_000);

    /// A cluster that receives only the changes that the counterfactual lets through.
    struct Fixture {
        layer: Counterfactual,
        cluster: Cluster,
        version: u64,
    }

    #[test]
    fn what_the_controller_wrote_is_left_out_and_what_others_wrote_is_kept() {
        let mut fixture = Fixture::new();
        let cordoned = Node {
            unschedulable: true,
            taints: [taint(UNREACHABLE, TaintEffect::NoExecute), taint("gpu", TaintEffect::NoSchedule)]
                .into(),
            ..node(ConditionStatus::Unknown, 0)
        };
        fixture.record(Change::Node(ObjectEvent::Applied(cordoned)), 60);
        let known = fixture.node();
        assert!(known.is_ready() && known.unschedulable, "{known:?}");
        assert_eq!(known.taints.iter().map(ToString::to_string).collect::<Vec<_>>(), ["gpu:NoSchedule"]);
        assert_eq!(fixture.layer.happened().unreachable.len(), 1);
        let totals = fixture.layer.uncertain().count(Uncertainty::NodeRemoved);
        assert_eq!(totals, 0, "it was cordoned at the moment at which it was Unknown, not after");
        // The kubelet is back. In the model's cluster it was never away, so the node's status has not changed since the
        // start.
        fixture.record(Change::Node(ObjectEvent::Applied(node(ConditionStatus::True, 90))), 90);
        let ready = fixture.node().ready().cloned().expect("posted");
        assert_eq!((ready.last_heartbeat, ready.last_transition), (Some(at(90)), Some(at(0))));
    }

    #[test]
    fn an_evicted_pod_stays_and_its_replacement_is_left_out_until_the_engine_evicts_it() {
        let mut fixture = Fixture::new();
        fixture.record(Change::Pod(ObjectEvent::Applied(evicted("web-1"))), 100);
        fixture.record(Change::Pod(ObjectEvent::Applied(pod("web-2"))), 101);
        fixture.record(Change::Pod(ObjectEvent::Deleted(key("web-1"))), 130);
        assert!(fixture.cluster.pod(&key("web-1")).is_some_and(|pod| pod.termination.is_none()));
        assert!(fixture.cluster.pod(&key("web-2")).is_none());
        assert_eq!(fixture.layer.uncertain().count(Uncertainty::ReplacementLeftOut), 1);
        fixture.write(&fixture.unknown(), 200);
        fixture.write(&fixture.eviction("web-1"), 200);
        assert!(fixture.cluster.pod(&key("web-1")).is_some_and(|pod| pod.termination.is_some()));
        assert!(fixture.cluster.pod(&key("web-2")).is_some(), "it replaces it now");
        // The pod's node is silent, so the pod ends 30 s after the node is back.
        assert_eq!(fixture.layer.poll_timeout(), None);
        fixture.record(renewal(300), 300);
        assert_eq!(fixture.layer.poll_timeout(), Some(START + Span::from_secs(330)));
        fixture.time(330);
        assert!(fixture.cluster.pod(&key("web-1")).is_none());
    }

    #[test]
    fn a_pod_that_only_the_engine_evicts_is_not_brought_back_by_the_recording() {
        let mut fixture = Fixture::new();
        fixture.write(&fixture.unknown(), 40);
        fixture.write(&fixture.tainted(), 40);
        fixture.write(&fixture.eviction("web-1"), 50);
        assert_eq!(fixture.layer.uncertain().count(Uncertainty::ReplacementMissing), 1);
        fixture.record(renewal(60), 60);
        fixture.time(90);
        assert!(fixture.cluster.pod(&key("web-1")).is_none());
        fixture.record(Change::Pod(ObjectEvent::Applied(Pod { priority: 7, ..pod("web-1") })), 95);
        assert!(fixture.cluster.pod(&key("web-1")).is_none());
    }

    #[test]
    fn a_kubelet_posts_its_status_with_its_next_heartbeat_where_only_the_engine_marked_its_node() {
        let mut fixture = Fixture::new();
        fixture.write(&fixture.unknown(), 40);
        let not_ready = Write::MarkPodNotReady {
            pod: key("web-1"),
            uid: Uid::from("web-1"),
            version: Version(0),
            node: "n".into(),
        };
        fixture.write(&not_ready, 40);
        assert!(!fixture.node().is_ready());
        fixture.record(renewal(45), 45);
        let ready = fixture.node().ready().cloned().expect("posted");
        assert_eq!((ready.status, ready.last_transition), (ConditionStatus::True, Some(at(45))));
        assert!(fixture.cluster.pod(&key("web-1")).is_some_and(|pod| pod.is_ready()), "as its kubelet posts");
        assert_eq!(fixture.layer.uncertain().count(Uncertainty::PostAssumed), 1);
        let [unreachable] = &fixture.layer.would().unreachable[..] else { panic!("one node") };
        assert_eq!(unreachable.detection(), Span::from_secs(40));
        assert_eq!(unreachable.back, Some(START + Span::from_secs(45)));
    }

    #[test]
    fn a_node_that_somebody_deletes_while_it_is_unknown_only_in_the_recording_is_uncertain() {
        for (recorded, uncertain) in [(ConditionStatus::Unknown, 1), (ConditionStatus::True, 0)] {
            let mut fixture = Fixture::new();
            fixture.record(Change::Node(ObjectEvent::Applied(node(recorded, 60))), 60);
            fixture.record(Change::Node(ObjectEvent::Deleted("n".into())), 70);
            assert!(fixture.cluster.node(&"n".into()).is_none(), "it is deleted here too");
            assert_eq!(fixture.layer.uncertain().count(Uncertainty::NodeRemoved), uncertain, "{recorded}");
        }
    }

    #[test]
    fn a_recorded_object_is_never_older_than_what_the_engine_wrote() {
        let mut fixture = Fixture::new();
        for secs in 40..60 {
            fixture.write(&fixture.unknown(), secs);
        }
        fixture.record(Change::Node(ObjectEvent::Applied(node(ConditionStatus::False, 61))), 61);
        assert_eq!(fixture.node().ready().map(|ready| ready.status), Some(ConditionStatus::False));
    }

    impl Fixture {
        /// A Ready node with a pod of a ReplicaSet.
        fn new() -> Self {
            let mut settings = Settings::defaults(ServerVersion::new(1, 36));
            settings.set("node-monitor-grace-period", "40s", Origin::Override).expect("a duration");
            let layer = Counterfactual::new(&Alternative::new(settings));
            let mut fixture = Self { layer, cluster: Cluster::default(), version: 0 };
            let node = node(ConditionStatus::True, 0);
            for event in [ObjectEvent::ListStarted, ObjectEvent::Listed(node), ObjectEvent::ListDone] {
                fixture.record(Change::Node(event), 0);
            }
            for event in [ObjectEvent::ListStarted, ObjectEvent::Listed(pod("web-1")), ObjectEvent::ListDone]
            {
                fixture.record(Change::Pod(event), 0);
            }
            for event in [ObjectEvent::ListStarted, ObjectEvent::ListDone] {
                fixture.record(Change::Lease(event), 0);
            }
            fixture
        }

        /// Passes a recorded change through the filter.
        fn record(&mut self, mut change: Change, secs: i64) {
            self.version += 1;
            match &mut change {
                Change::Node(ObjectEvent::Applied(node)) => node.version = Version(self.version),
                Change::Pod(ObjectEvent::Applied(pod)) => pod.version = Version(self.version),
                _ => {}
            }
            let changes = self.layer.on_change(change, &self.cluster, START + Span::from_secs(secs));
            self.apply(changes);
        }

        fn write(&mut self, write: &Write, secs: i64) {
            let now = START + Span::from_secs(secs);
            self.layer.on_write(write, &self.cluster, now);
            apply_write(&mut self.cluster, write, now, &mut Vec::new());
            self.apply(Vec::new());
        }

        fn time(&mut self, secs: i64) {
            let changes = self.layer.on_timeout(&self.cluster, START + Span::from_secs(secs));
            self.apply(changes);
        }

        fn apply(&mut self, changes: Vec<Change>) {
            let mut applied = Vec::new();
            changes.into_iter().for_each(|change| self.cluster.apply(change, &mut applied));
            let released = self.layer.settle(&self.cluster);
            released.into_iter().for_each(|change| self.cluster.apply(change, &mut applied));
        }

        fn node(&self) -> Arc<Node> {
            self.cluster.node(&"n".into()).expect("it stays").clone()
        }

        fn unknown(&self) -> Write {
            let condition = UnknownCondition {
                kind: READY.into(),
                reason: "NodeStatusUnknown".into(),
                message: "".into(),
                last_heartbeat: Some(at(0)),
                last_transition: at(40),
            };
            Write::MarkUnknown {
                node: "n".into(),
                uid: Uid::default(),
                version: self.node().version,
                conditions: vec![condition],
                lease: LeaseCheck::Skip,
            }
        }

        fn tainted(&self) -> Write {
            let add = vec![taint(UNREACHABLE, TaintEffect::NoExecute)];
            let (version, remove) = (self.node().version, Vec::new());
            Write::SwapTaints { node: "n".into(), uid: Uid::default(), version, add, remove }
        }

        fn eviction(&self, name: &str) -> Write {
            let deletion = Deletion::ByTaint { disruption_target: true };
            Write::DeletePod { pod: key(name), uid: Uid::from(name), node: "n".into(), deletion }
        }
    }

    fn at(secs: i64) -> ClusterTime {
        ClusterTime::new(START + Span::from_secs(secs))
    }

    fn key(name: &str) -> Key {
        Key::new("shop", name)
    }

    fn taint(key: &str, effect: TaintEffect) -> Taint {
        Taint { key: key.into(), effect, time_added: Some(at(60)), ..Taint::default() }
    }

    /// A node whose Ready condition has this status since second `posted`. The controller has set the status if it is
    /// Unknown; otherwise the kubelet has.
    fn node(status: ConditionStatus, posted: i64) -> Node {
        let reason = if status == ConditionStatus::Unknown { "NodeStatusUnknown" } else { "Kubelet" };
        let ready = Condition {
            kind: READY.into(),
            status,
            reason: reason.into(),
            last_heartbeat: Some(at(posted)),
            last_transition: Some(at(posted)),
            ..Condition::default()
        };
        Node { name: "n".into(), created: at(0), conditions: [ready].into(), ..Node::default() }
    }

    fn pod(name: &str) -> Pod {
        let owner = Owner {
            kind: OwnerKind::Workload(WorkloadKind::ReplicaSet),
            name: "set".into(),
            uid: Uid::from("set"),
        };
        let ready = PodReady { status: ConditionStatus::True, last_transition: None };
        Pod {
            key: key(name),
            uid: Uid::from(name),
            node: Some("n".into()),
            owner: Some(owner.into()),
            grace: Span::from_secs(30),
            ready: Some(ready),
            ..Pod::default()
        }
    }

    fn evicted(name: &str) -> Pod {
        let termination = Termination { deadline: at(130), grace: Span::from_secs(30) };
        Pod {
            disruption_target: Some(DELETION_BY_TAINT.into()),
            termination: Some(termination.into()),
            ..pod(name)
        }
    }

    fn renewal(secs: i64) -> Change {
        let lease = Lease { node: "n".into(), renewed: Some(at(secs)), ..Lease::default() };
        Change::Lease(ObjectEvent::Applied(lease))
    }
}
