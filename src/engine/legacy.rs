//! Legacy mode: after its time, all pods of a node that is not ready are deleted, taints or no taints
//! (docs/upstream/node-lifecycle.md#8; upstream with `--enable-taint-manager=false`, up to 1.26).

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use super::{
    Engine,
    effect::{Deletion, EventObject, NODE_LOST, RecordedEvent, Write},
    health::NodeHealth,
    outbox::EffectSubject,
    queue::{Processed, QueueEntry},
    settings::Profile,
    view::{Due, PendingEviction},
    why::{Cause, Why},
};
use crate::{
    cluster::{
        Cluster, ConditionStatus, Delta, Key, Node, NodeName, Pod, SelectorOperator, Uid, WorkloadKind,
        ZoneKey,
    },
    time::{Span, Timestamp},
};

/// How far the eviction of each node has come.
#[derive(Clone, Debug, Default)]
pub struct Legacy {
    /// Upstream's nodeEvictionMap: every node object there is, from its add event on.
    status: BTreeMap<NodeName, EvictionStatus>,
    /// The deletion rounds that are not over: which pods of each node are still to be answered for.
    rounds: BTreeMap<NodeName, BTreeSet<Key>>,
}

/// How far the eviction of a node has come, in upstream's words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum EvictionStatus {
    #[default]
    Unmarked,
    /// It waits in its zone's queue.
    ToBeEvicted,
    /// Its pods have been deleted; those that come later are deleted at once.
    Evicted,
}

impl EvictionStatus {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unmarked => "unmarked",
            Self::ToBeEvicted => "toBeEvicted",
            Self::Evicted => "evicted",
        }
    }
}

impl fmt::Display for EvictionStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Legacy {
    /// A node object was added: its eviction status is unmarked again, also where an older node of the same name
    /// was evicted (docs/upstream/node-lifecycle.md#12.11).
    pub fn register(&mut self, node: &NodeName) {
        self.status.insert(node.clone(), EvictionStatus::Unmarked);
    }

    pub fn unregister(&mut self, node: &NodeName) {
        self.status.remove(node);
        self.rounds.remove(node);
    }

    /// The status of a node; unmarked where it is not registered.
    pub fn status(&self, node: &NodeName) -> EvictionStatus {
        self.status.get(node).copied().unwrap_or_default()
    }

    /// Sets the status of a registered node, and tells what it was; that of another stays nothing.
    fn set(&mut self, node: &NodeName, status: EvictionStatus) -> EvictionStatus {
        self.status.get_mut(node).map(|known| std::mem::replace(known, status)).unwrap_or_default()
    }

    /// A pod of a round is done with. Tells whether that was the last one.
    fn settle(&mut self, node: &NodeName, pod: &Key) -> bool {
        let Some(round) = self.rounds.get_mut(node) else { return false };
        round.remove(pod);
        round.is_empty() && self.rounds.remove(node).is_some()
    }

    /// A copy that runs ahead: what was asked for is taken as done there.
    pub fn run_ahead(&self) -> Self {
        Self { status: self.status.clone(), rounds: BTreeMap::new() }
    }
}

impl Engine {
    /// Takes in that a node object came or went.
    pub(super) fn register(&mut self, delta: &Delta<Node>) {
        if self.rules.profile != Profile::Legacy {
            return;
        }
        match (&delta.old, &delta.new) {
            (None, Some(node)) => self.legacy.register(&node.name),
            (Some(node), None) => self.legacy.unregister(&node.name),
            (Some(_), Some(_)) | (None, None) => {}
        }
    }

    /// Takes every node for registered, as at the start of a controller. Of a shadow, those whose pods are marked lost
    /// have been evicted.
    pub(super) fn register_all(&mut self, cluster: &Cluster) {
        if self.rules.profile != Profile::Legacy {
            return;
        }
        for node in cluster.nodes().iter() {
            self.legacy.register(&node.name);
            if self.shadow.is_some() && cluster.pods_on(&node.name).any(|pod| pod.reason == *NODE_LOST) {
                self.take_for_evicted(node);
            }
        }
    }

    /// Deletes these pods of a node, or lets the node wait for that, once it has not been ready for long enough
    /// (upstream `processNoTaintBaseEviction`).
    ///
    /// A silent node's time counts from its last sign of life, that of one whose kubelet says that it is not ready
    /// from the transition.
    pub(super) fn evict_by_time<'a>(
        &mut self,
        cluster: &Cluster,
        node: &Node,
        ready: ConditionStatus,
        pods: impl Iterator<Item = &'a Arc<Pod>>,
        now: Timestamp,
    ) {
        let Some(record) = self.records.get(&node.name) else { return };
        if ready == ConditionStatus::True {
            return self.cancel_eviction(cluster, node);
        }
        let Some((since, why)) = self.eviction_from(record, node, ready) else { return };
        if now <= since + self.settings.pod_eviction_timeout.value {
            return;
        }
        if self.legacy.status(&node.name) == EvictionStatus::Evicted {
            let why = why.then(Cause::NodeEvicted);
            self.delete_pods(cluster, (&node.name, &node.uid), pods, &why, now);
            return;
        }
        self.legacy.set(&node.name, EvictionStatus::ToBeEvicted);
        self.ensure_zone(node, now).queue.add(&node.name, &node.uid, now);
    }

    /// From when the eviction timeout of a node counts, and why; none where it does not.
    fn eviction_from(
        &self,
        record: &NodeHealth,
        node: &Node,
        ready: ConditionStatus,
    ) -> Option<(Timestamp, Why)> {
        let timeout = Cause::EvictionTimeout { span: self.settings.pod_eviction_timeout.value };
        match ready {
            ConditionStatus::Unknown => {
                Some((record.probe, record.why(&self.settings).then(Cause::Silent).then(timeout)))
            }
            ConditionStatus::False => {
                let reason = node.ready().map(|ready| ready.reason.clone()).unwrap_or_default();
                let posted = Cause::Posted { status: ready, reason };
                Some((record.ready_transition, Why::from(posted).then(timeout)))
            }
            ConditionStatus::True | ConditionStatus::Invalid => None,
        }
    }

    /// Takes a node out of its zone's queue and its eviction back (upstream `cancelPodEviction`).
    pub(super) fn cancel_eviction(&mut self, cluster: &Cluster, node: &Node) {
        if self.legacy.set(&node.name, EvictionStatus::Unmarked) == EvictionStatus::Evicted {
            self.forget_round(cluster, &node.name);
        }
        if let Some(shadow) = &mut self.shadow {
            shadow.expect_nothing(&node.name);
        }
        if let Some(zone) = self.zones.get_mut(&node.zone()) {
            zone.queue.remove(&node.name);
        }
    }

    /// Begins the deletion rounds of nodes that wait, as far as the zones' limiters allow (upstream
    /// `doEvictionPass`). The entry stands also when the node has become ready or changed its zone
    /// (docs/upstream/node-lifecycle.md#8.5).
    pub(super) fn evict_waiting(&mut self, cluster: &Cluster, now: Timestamp) {
        let mut due: Vec<(QueueEntry, ZoneKey, Cause)> = Vec::new();
        for (key, zone) in &mut self.zones {
            let waiting = super::pass::queued(key, zone);
            zone.queue.process(&mut zone.limiter, now, |entry| {
                due.push((entry.clone(), key.clone(), waiting.clone()));
                Processed::Done
            });
        }
        for (entry, zone, waiting) in due {
            let node = cluster.node(&entry.node);
            let ready = node.and_then(|node| node.ready()).map(|ready| ready.status);
            let why = self.records.get(&entry.node).zip(node).zip(ready);
            let why = why.and_then(|((record, node), ready)| self.eviction_from(record, node, ready));
            let why = why.map(|(_, why)| why).unwrap_or_default().then(waiting);
            let why = why.then(Cause::Token { zone: zone.clone() });
            self.begin_round(cluster, &entry, &zone, &why, now);
        }
    }

    /// Deletes all pods of a node; it is taken for evicted unless one of them fails.
    fn begin_round(
        &mut self,
        cluster: &Cluster,
        entry: &QueueEntry,
        zone: &ZoneKey,
        why: &Why,
        now: Timestamp,
    ) {
        self.legacy.set(&entry.node, EvictionStatus::Evicted);
        let pods: Vec<Arc<Pod>> = cluster.pods_on(&entry.node).cloned().collect();
        let asked = self.delete_pods(cluster, (&entry.node, &entry.uid), pods.iter(), why, now);
        if asked.is_empty() {
            self.end_round(cluster, &entry.node);
            return;
        }
        // Of a round that marks no pod lost, nothing would be seen.
        let shows = |key: &Key| cluster.pod(key).is_some_and(|pod| pod.reason != *NODE_LOST);
        if let Some(shadow) = self.shadow.as_mut().filter(|_| asked.iter().any(shows)) {
            shadow.expect_turn(&entry.node, zone, now);
        }
        self.legacy.rounds.insert(entry.node.clone(), asked);
    }

    fn end_round(&mut self, cluster: &Cluster, node: &NodeName) {
        if let Some(node) = cluster.node(node) {
            self.metrics.count_eviction(&node.zone());
        }
    }

    /// Marks a node's pods lost and deletes them, those of DaemonSets and those that are Terminating excepted
    /// (upstream `DeletePods`). Tells which pods something was asked for.
    fn delete_pods<'a>(
        &mut self,
        cluster: &Cluster,
        (node, uid): (&NodeName, &Uid),
        pods: impl Iterator<Item = &'a Arc<Pod>>,
        why: &Why,
        now: Timestamp,
    ) -> BTreeSet<Key> {
        let mut pods = pods.peekable();
        let mut asked = BTreeSet::new();
        if pods.peek().is_some() {
            let text = format!("Node {node} event: Deleting all Pods from Node {node}.");
            let object = EventObject::Node(node.clone(), uid.clone());
            self.eviction_event(object, "DeletingAllPods", text, why, now);
        }
        for pod in pods {
            let mark_lost = (pod.reason != *NODE_LOST).then_some(pod.version);
            let (key, uid, node) = (pod.key.clone(), pod.uid.clone(), node.clone());
            if pod.termination.is_some() || is_daemon(cluster, pod) {
                let Some(version) = mark_lost else { continue };
                let write = Write::MarkPodLost { pod: key.clone(), uid, version, node };
                if self.out.propose(write, why.clone(), now) {
                    asked.insert(key);
                }
                continue;
            }
            let text = format!("Marking for deletion Pod {} from Node {node}", pod.key.name);
            let deletion = Deletion::WithNode { mark_lost };
            let write = Write::DeletePod { pod: key.clone(), uid, node, deletion };
            if self.out.propose(write, why.clone(), now) {
                self.eviction_event(EventObject::Pod(key.clone()), "NodeControllerEviction", text, why, now);
                asked.insert(key);
            }
        }
        asked
    }

    fn eviction_event(
        &mut self,
        object: EventObject,
        reason: &'static str,
        message: String,
        why: &Why,
        now: Timestamp,
    ) {
        let event = || {
            let event = RecordedEvent { object, warning: false, reason, message, source: "node-controller" };
            (event, why.clone())
        };
        self.out.propose_event(event, now);
    }

    /// A pod of a node that is being evicted is done with.
    pub(super) fn on_pod_evicted(&mut self, cluster: &Cluster, node: &NodeName, pod: &Key) {
        if self.legacy.settle(node, pod) {
            self.end_round(cluster, node);
        }
    }

    /// A pod of a node that is being evicted could not be marked or deleted: the node waits again. Outside a round the
    /// next pass tries again by itself.
    pub(super) fn on_pod_not_evicted(&mut self, cluster: &Cluster, node: &NodeName, now: Timestamp) {
        if self.legacy.rounds.remove(node).is_some() {
            self.legacy.set(node, EvictionStatus::ToBeEvicted);
            let uid = cluster.node(node).map(|node| node.uid.clone()).unwrap_or_default();
            self.queue_again(node, &uid, now);
        }
    }

    /// The controller that is shadowed has not begun the round that was foretold: the node is yet to be evicted.
    pub(super) fn take_round_back(&mut self, cluster: &Cluster, node: &NodeName) {
        self.legacy.set(node, EvictionStatus::ToBeEvicted);
        self.forget_round(cluster, node);
    }

    /// What a dry run only recorded of a node's pods may be asked for again another time.
    fn forget_round(&mut self, cluster: &Cluster, node: &NodeName) {
        self.legacy.rounds.remove(node);
        for pod in cluster.pods_on(node) {
            self.out.settle(&EffectSubject::PodDeleted(pod.key.clone()));
            self.out.settle(&EffectSubject::PodLost(pod.key.clone()));
        }
    }

    /// Learns from the controller that is shadowed: a pod that it marked lost shows that the node's turn came.
    pub(super) fn observe_lost(&mut self, cluster: &Cluster, delta: &Delta<Pod>, now: Timestamp) {
        let is_lost = |pod: &Option<Arc<Pod>>| pod.as_ref().is_some_and(|pod| pod.reason == *NODE_LOST);
        let by_another = self.shadow.is_some() && self.rules.profile == Profile::Legacy;
        if !by_another || is_lost(&delta.old) || !is_lost(&delta.new) {
            return;
        }
        let node = delta.new.as_ref().and_then(|pod| pod.node.as_ref()).and_then(|node| cluster.node(node));
        let Some(node) = node else { return };
        self.observe_turn(cluster, &node.name, &node.zone(), now);
        if self.legacy.status(&node.name) == EvictionStatus::Evicted {
            return;
        }
        self.take_for_evicted(node);
        if let Some(zone) = self.zones.get_mut(&node.zone()) {
            zone.limiter.drain(now);
        }
    }

    fn take_for_evicted(&mut self, node: &Node) {
        self.legacy.set(&node.name, EvictionStatus::Evicted);
        if let Some(zone) = self.zones.get_mut(&node.zone()) {
            zone.queue.take_for_processed(&node.name);
        }
    }

    /// The pods of nodes that are not ready, with the first pass at which their eviction is due.
    pub(super) fn pending_with_nodes(&self, cluster: &Cluster) -> Vec<PendingEviction> {
        cluster.nodes().iter().flat_map(|node| self.pending_with(cluster, node)).collect()
    }

    /// The same for one node.
    pub(super) fn pending_with(&self, cluster: &Cluster, node: &Node) -> Vec<PendingEviction> {
        let Some(ready) = node.ready().map(|ready| ready.status) else { return Vec::new() };
        let Some(record) = self.records.get(&node.name) else { return Vec::new() };
        let Some((since, why)) = self.eviction_from(record, node, ready) else { return Vec::new() };
        let at = self.pass_after(since + self.settings.pod_eviction_timeout.value);
        let of = |pod: &Arc<Pod>| {
            let (due, why) = match is_daemon(cluster, pod) {
                true => (Due::Never, Cause::OfDaemonSet.into()),
                false => (Due::At { at, certainty: record.certainty }, why.clone()),
            };
            let (pod, uid, node) = (pod.key.clone(), pod.uid.clone(), node.name.clone());
            PendingEviction { pod, uid, node, due, why }
        };
        cluster.pods_on(&node.name).filter(|pod| pod.termination.is_none()).map(of).collect()
    }

    /// The first pass later than this, as far as passes are known; of the past it may be any.
    fn pass_after(&self, limit: Timestamp) -> Timestamp {
        let period = (self.settings.node_monitor_period.value + super::PASS_TAKES).as_nanos();
        let behind = limit.since(self.next_pass).as_nanos();
        if behind < -period {
            limit
        } else {
            self.next_pass + Span::from_nanos((behind.div_euclid(period) + 1) * period)
        }
    }
}

/// Whether a DaemonSet of the pod's namespace selects it; the owner reference does not count
/// (docs/upstream/node-lifecycle.md#12.39).
///
/// An unreadable selector of any DaemonSet there makes upstream's look-up fail, and the pod is nobody's. Where
/// DaemonSets are not watched, the owner has to do.
fn is_daemon(cluster: &Cluster, pod: &Pod) -> bool {
    let sets = cluster.workloads(WorkloadKind::DaemonSet);
    if !sets.is_synced() {
        let kind = |owner: &crate::cluster::Owner| owner.kind.as_str() == WorkloadKind::DaemonSet.as_str();
        return pod.owner.as_ref().is_some_and(kind);
    }
    let from = Key { namespace: pod.key.namespace.clone(), ..Key::default() };
    let selectors = sets
        .iter_from(&(WorkloadKind::DaemonSet, from))
        .take_while(|set| set.key.namespace == pod.key.namespace)
        .filter_map(|set| set.selector.as_ref());
    let mut selected = false;
    for selector in selectors {
        let readable =
            selector.requirements.iter().all(|requirement| requirement.operator != SelectorOperator::Invalid);
        if !readable {
            return false;
        }
        selected |= !selector.is_empty() && selector.matches(&pod.labels);
    }
    selected && !pod.labels.is_empty()
}
