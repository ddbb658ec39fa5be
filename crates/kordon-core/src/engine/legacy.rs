//! Legacy mode: all pods of a node that is not ready are deleted after a timeout, without taints
//! (docs/upstream/node-lifecycle.md#8; upstream with `--enable-taint-manager=false`, up to 1.26).

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    Engine,
    effect::{Deletion, EventObject, NODE_LOST, RecordedEvent, Write},
    eviction_status::EvictionStatus,
    health::NodeHealth,
    outbox::EffectSubject,
    queue::{Processed, QueueEntry},
    settings::Profile,
    view::{Due, PendingEviction},
    why::{Cause, Why},
};
use crate::cluster::{
    Cluster, ConditionStatus, Delta, Key, Node, NodeName, Pod, Scope, SelectorOperator, Uid, WorkloadKind,
    ZoneKey,
};
use kordon_time::{Span, Timestamp};

/// Eviction statuses of the nodes, and the deletion rounds in progress. A deletion round deletes all pods of a node.
#[derive(Clone, Debug, Default)]
pub struct Legacy {
    /// The eviction status of each node object, from its add event on (upstream `nodeEvictionMap`).
    status: BTreeMap<NodeName, EvictionStatus>,
    /// Deletion rounds by node. Each entry holds the pods of the round with a write that has no outcome yet.
    rounds: BTreeMap<NodeName, BTreeSet<Key>>,
}

impl Legacy {
    /// Registers an added node object as not evicted (unmarked), even if an older node of the same name was evicted
    /// (docs/upstream/node-lifecycle.md#12.11).
    pub fn register(&mut self, node: &NodeName) {
        self.status.insert(node.clone(), EvictionStatus::Unmarked);
    }

    pub fn unregister(&mut self, node: &NodeName) {
        self.status.remove(node);
        self.rounds.remove(node);
    }

    /// The eviction status of a node; unmarked if the node is not registered.
    pub fn status(&self, node: &NodeName) -> EvictionStatus {
        self.status.get(node).copied().unwrap_or_default()
    }

    /// Sets the eviction status of a registered node and returns the old one. Ignores nodes that are not registered.
    fn set(&mut self, node: &NodeName, status: EvictionStatus) -> EvictionStatus {
        self.status.get_mut(node).map(|known| std::mem::replace(known, status)).unwrap_or_default()
    }

    /// Removes a pod from its node's deletion round. Returns whether it was the last pod of the round.
    fn finish_pod(&mut self, node: &NodeName, pod: &Key) -> bool {
        let Some(round) = self.rounds.get_mut(node) else { return false };
        round.remove(pod);
        round.is_empty() && self.rounds.remove(node).is_some()
    }

    /// Returns a copy for a forecast, which assumes that requested deletions are done.
    pub fn forecast_copy(&self) -> Self {
        Self { status: self.status.clone(), rounds: BTreeMap::new() }
    }
}

impl Engine {
    /// Handles a node object that was added or deleted.
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

    /// Registers every node, as at the start of a controller.
    pub(super) fn register_nodes(&mut self, cluster: &Cluster) {
        if self.rules.profile == Profile::Legacy {
            cluster.nodes().iter().for_each(|node| self.legacy.register(&node.name));
        }
    }

    /// Registers every node. If the engine shadows a controller, a node counts as evicted if any of its pods is marked
    /// NodeLost.
    pub(super) fn register_all(&mut self, cluster: &Cluster) {
        self.register_nodes(cluster);
        if self.rules.profile == Profile::Legacy && self.shadow.is_some() {
            let is_lost = |node: &&Arc<Node>| cluster.pods_on(&node.name).any(|pod| pod.reason == *NODE_LOST);
            cluster.nodes().iter().filter(is_lost).for_each(|node| self.mark_evicted(node));
        }
    }

    /// Evicts `pods` from a node that has not been ready for longer than the timeout (upstream
    /// `processNoTaintBaseEviction`): deletes them if the node was evicted before, and queues the node otherwise.
    /// Cancels the eviction of a ready node.
    ///
    /// With Ready=Unknown the timeout starts at the last heartbeat, with Ready=False at the transition.
    pub(super) fn evict_after_timeout<'a>(
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
        let Some((since, why)) = self.timeout_start(record, node, ready) else { return };
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

    /// When the eviction timeout of a node starts, and why; none if Ready is neither Unknown nor False.
    fn timeout_start(
        &self,
        record: &NodeHealth,
        node: &Node,
        ready: ConditionStatus,
    ) -> Option<(Timestamp, Why)> {
        let timeout = Cause::EvictionTimeout { span: self.settings.pod_eviction_timeout.value };
        match ready {
            ConditionStatus::Unknown => {
                let silent = record.why(&self.settings, self.heartbeats.last(&node.name)).then(Cause::Silent);
                Some((record.probe, silent.then(timeout)))
            }
            ConditionStatus::False => {
                let reason = node.ready().map(|ready| ready.reason.clone()).unwrap_or_default();
                let posted = Cause::Posted { status: ready, reason };
                Some((record.ready_transition, Why::from(posted).then(timeout)))
            }
            ConditionStatus::True | ConditionStatus::Invalid => None,
        }
    }

    /// Cancels a node's eviction and removes the node from its zone's queue (upstream `cancelPodEviction`).
    pub(super) fn cancel_eviction(&mut self, cluster: &Cluster, node: &Node) {
        if self.legacy.set(&node.name, EvictionStatus::Unmarked) == EvictionStatus::Evicted {
            self.forget_round(cluster, &node.name);
        }
        if let Some(shadow) = &mut self.shadow {
            shadow.stop_expecting(&node.name);
        }
        if let Some(zone) = self.zones.get_mut(&node.zone()) {
            zone.queue.remove(&node.name);
        }
    }

    /// Starts the deletion rounds of waiting nodes, as far as the zones' rate limiters allow (upstream
    /// `doEvictionPass`). A queued node is evicted even if it has become ready or changed its zone
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
            let why =
                self.why_queued(cluster, &entry.node).then(waiting).then(Cause::Token { zone: zone.clone() });
            self.start_round(cluster, &entry, &zone, &why, now);
        }
    }

    /// Why a waiting node was queued for its eviction; empty if the node is ready again or gone.
    fn why_queued(&self, cluster: &Cluster, node: &NodeName) -> Why {
        let timeout = || {
            let (record, node) = (self.records.get(node)?, cluster.node(node)?);
            self.timeout_start(record, node, node.ready()?.status)
        };
        timeout().map(|(_, why)| why).unwrap_or_default()
    }

    /// Deletes all pods of a node and marks the node evicted. If a deletion fails, the mark is removed.
    fn start_round(
        &mut self,
        cluster: &Cluster,
        entry: &QueueEntry,
        zone: &ZoneKey,
        why: &Why,
        now: Timestamp,
    ) {
        self.legacy.set(&entry.node, EvictionStatus::Evicted);
        let pods: Vec<Arc<Pod>> = cluster.pods_on(&entry.node).cloned().collect();
        let requested = self.delete_pods(cluster, (&entry.node, &entry.uid), pods.iter(), why, now);
        if requested.is_empty() {
            self.finish_round(cluster, &entry.node);
            return;
        }
        // Expect the controller's deletion round only if it marks a pod NodeLost, because the engine cannot observe
        // other rounds of another controller.
        let shows = |key: &Key| cluster.pod(key).is_some_and(|pod| pod.reason != *NODE_LOST);
        if let Some(shadow) = self.shadow.as_mut().filter(|_| requested.iter().any(shows)) {
            shadow.expect_turn(&entry.node, zone, now);
        }
        self.legacy.rounds.insert(entry.node.clone(), requested);
    }

    fn finish_round(&mut self, cluster: &Cluster, node: &NodeName) {
        if let Some(node) = cluster.node(node) {
            self.metrics.count_eviction(&node.zone());
        }
    }

    /// Marks pods of a node NodeLost and deletes them; pods of DaemonSets and Terminating pods are only marked
    /// (upstream `DeletePods`). Returns the pods for which a write was requested.
    fn delete_pods<'a>(
        &mut self,
        cluster: &Cluster,
        (node, uid): (&NodeName, &Uid),
        pods: impl Iterator<Item = &'a Arc<Pod>>,
        why: &Why,
        now: Timestamp,
    ) -> BTreeSet<Key> {
        let mut pods = pods.peekable();
        let mut requested = BTreeSet::new();
        if pods.peek().is_some() {
            let text = format!("Node {node} event: Deleting all Pods from Node {node}.");
            let object = EventObject::Node(node.clone(), uid.clone());
            self.eviction_event(object, "DeletingAllPods", text, why, now);
        }
        for pod in pods {
            let stays = pod.termination.is_some() || is_daemon(cluster, pod);
            let is_requested = match stays {
                true => self.mark_lost(pod, node, why, now),
                false => self.delete_pod(pod, node, why, now),
            };
            if is_requested {
                requested.insert(pod.key.clone());
            }
        }
        requested
    }

    /// Marks a pod NodeLost, unless it is marked already. Returns whether the write was requested.
    fn mark_lost(&mut self, pod: &Pod, node: &NodeName, why: &Why, now: Timestamp) -> bool {
        let (key, uid, version) = (pod.key.clone(), pod.uid.clone(), pod.version);
        let write = Write::MarkPodLost { pod: key, uid, version, node: node.clone() };
        pod.reason != *NODE_LOST && self.out.propose(write, why.clone(), now)
    }

    /// Deletes a pod, which is first marked NodeLost if it is not marked yet. Returns whether the write was requested.
    fn delete_pod(&mut self, pod: &Pod, node: &NodeName, why: &Why, now: Timestamp) -> bool {
        let (key, uid) = (pod.key.clone(), pod.uid.clone());
        let deletion = Deletion::WithNode { mark_lost: (pod.reason != *NODE_LOST).then_some(pod.version) };
        let write = Write::DeletePod { pod: key.clone(), uid, node: node.clone(), deletion };
        let is_requested = self.out.propose(write, why.clone(), now);
        if is_requested {
            let text = format!("Marking for deletion Pod {} from Node {node}", key.name);
            self.eviction_event(EventObject::Pod(key), "NodeControllerEviction", text, why, now);
        }
        is_requested
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

    /// Handles a finished write to a pod of a node that is being evicted.
    pub(super) fn on_pod_evicted(&mut self, cluster: &Cluster, node: &NodeName, pod: &Key) {
        if self.legacy.finish_pod(node, pod) {
            self.finish_round(cluster, node);
        }
    }

    /// Handles a failed write to a pod of a node that is being evicted. If the node's deletion round is in progress,
    /// the round ends and the node is queued again. Outside a round, the next pass tries again.
    pub(super) fn on_pod_not_evicted(&mut self, cluster: &Cluster, node: &NodeName, now: Timestamp) {
        if self.legacy.rounds.remove(node).is_some() {
            self.legacy.set(node, EvictionStatus::ToBeEvicted);
            let uid = cluster.node(node).map(|node| node.uid.clone()).unwrap_or_default();
            self.requeue(node, &uid, now);
        }
    }

    /// Reverts a predicted deletion of all pods of a node, because the controller that the engine shadows did not start
    /// it: the node still waits for its eviction.
    pub(super) fn revert_round(&mut self, cluster: &Cluster, node: &NodeName) {
        self.legacy.set(node, EvictionStatus::ToBeEvicted);
        self.forget_round(cluster, node);
    }

    /// Forgets a node's deletion round, and the writes to its pods that a dry run recorded, so that they can be
    /// requested again.
    fn forget_round(&mut self, cluster: &Cluster, node: &NodeName) {
        self.legacy.rounds.remove(node);
        for pod in cluster.pods_on(node) {
            self.out.forget(&EffectSubject::PodDeleted(pod.key.clone()));
            self.out.forget(&EffectSubject::PodLost(pod.key.clone()));
        }
    }

    /// Observes a pod that the shadowed controller marked NodeLost: the mark shows that the controller is evicting the
    /// node.
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
        self.mark_evicted(node);
        if let Some(zone) = self.zones.get_mut(&node.zone()) {
            zone.limiter.drain(now);
        }
    }

    fn mark_evicted(&mut self, node: &Node) {
        self.legacy.set(&node.name, EvictionStatus::Evicted);
        if let Some(zone) = self.zones.get_mut(&node.zone()) {
            zone.queue.mark_processed(&node.name);
        }
    }

    /// Pending evictions of the pods on nodes that are not ready, due at the first pass after the timeout.
    pub(super) fn pending_on_nodes(&self, cluster: &Cluster) -> Vec<PendingEviction> {
        cluster.nodes().iter().flat_map(|node| self.pending_on_node(cluster, node)).collect()
    }

    /// Pending evictions of the pods on one node; none if the node is ready.
    pub(super) fn pending_on_node(&self, cluster: &Cluster, node: &Node) -> Vec<PendingEviction> {
        let Some(ready) = node.ready().map(|ready| ready.status) else { return Vec::new() };
        let Some(record) = self.records.get(&node.name) else { return Vec::new() };
        let Some((since, why)) = self.timeout_start(record, node, ready) else { return Vec::new() };
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

    /// Returns the time of the first pass after `limit`; `limit` itself if that pass has already been made.
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

/// Whether a DaemonSet of the pod's namespace selects the pod. The owner reference does not count
/// (docs/upstream/node-lifecycle.md#12.39).
///
/// An invalid selector of any DaemonSet in the namespace makes upstream's lookup fail, so that no DaemonSet selects the
/// pod. If DaemonSets are not watched, the owner reference decides.
fn is_daemon(cluster: &Cluster, pod: &Pod) -> bool {
    let sets = cluster.workloads(WorkloadKind::DaemonSet);
    if !cluster.knows(&Scope::Workloads(WorkloadKind::DaemonSet)) {
        let kind = |owner: &crate::cluster::Owner| owner.kind.as_str() == WorkloadKind::DaemonSet.as_str();
        return pod.owner.as_deref().is_some_and(kind);
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
