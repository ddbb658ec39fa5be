//! The pod garbage collector: removes by force what nobody else ends any more (docs/upstream/neighbours.md#1; upstream
//! `podgc.PodGCController`).

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Engine,
    effect::{Deletion, Write},
    outbox::{EffectSubject, Outbox},
    view::{Due, PendingEviction},
    why::{Cause, Certainty, Why},
};
use crate::{
    cluster::{Cluster, Delta, Key, Name, Node, NodeName, Phase, Pod},
    time::{Span, Timestamp},
};

/// From the beginning of one pass to that of the next.
const PERIOD: Span = Span::from_secs(20);
/// How long a node's name has to be missing before its pods are orphans.
const QUARANTINE: Span = Span::from_secs(40);
/// An operator's word that a node will not come back by itself.
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";
/// The reason of a pod that its kubelet evicted for want of some resource.
const EVICTED: &str = "Evicted";

/// What the pod garbage collector has to look at. It finds that out as things change, so that a pass with nothing to
/// do need not be made.
#[derive(Clone, Debug)]
pub struct Collector {
    /// A pass; the others lie whole periods from it.
    beat: Timestamp,
    /// Whether the passes' times are seen or guessed.
    certainty: Certainty,
    /// There is no pass before this.
    not_before: Timestamp,
    /// Names that pods are bound to and no node has.
    missing: BTreeSet<NodeName>,
    /// Until when each name is in quarantine. A node that comes back does not leave it.
    quarantine: BTreeMap<NodeName, Timestamp>,
    /// Nodes with the taint.
    out_of_service: BTreeSet<NodeName>,
    /// Pods that are Terminating and were never bound to a node.
    unscheduled: BTreeSet<Key>,
    /// Pods that have finished, in the order in which they are collected.
    finished: BTreeSet<Finished>,
}

/// A finished pod's place: those that their kubelet evicted first, then by age and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Finished {
    by_itself: bool,
    created: Timestamp,
    name: Name,
    key: Key,
}

impl Finished {
    fn of(pod: &Pod) -> Option<Self> {
        pod.is_finished().then(|| Self {
            by_itself: !(pod.phase == Phase::Failed && pod.reason == *EVICTED),
            created: pod.created,
            name: pod.key.name.clone(),
            key: pod.key.clone(),
        })
    }
}

impl Collector {
    /// A collector over what is there, one of whose passes is at `beat`.
    pub fn new(cluster: &Cluster, beat: Timestamp, certainty: Certainty, now: Timestamp) -> Self {
        let mut collector = Self {
            beat,
            certainty,
            not_before: beat.max(now),
            missing: BTreeSet::new(),
            quarantine: BTreeMap::new(),
            out_of_service: BTreeSet::new(),
            unscheduled: BTreeSet::new(),
            finished: BTreeSet::new(),
        };
        for node in cluster.nodes().iter() {
            collector.take_node(node);
        }
        for pod in cluster.pods().iter() {
            collector.take_pod(cluster, pod);
        }
        collector
    }

    pub fn on_node(&mut self, cluster: &Cluster, delta: &Delta<Node>) {
        match (&delta.old, &delta.new) {
            (_, Some(node)) => self.take_node(node),
            (Some(node), None) => {
                self.out_of_service.remove(&node.name);
                if cluster.load(&node.name).pods > 0 {
                    self.missing.insert(node.name.clone());
                }
            }
            (None, None) => {}
        }
    }

    pub fn on_pod(&mut self, cluster: &Cluster, delta: &Delta<Pod>, out: &mut Outbox) {
        let gone = delta.old.as_ref().filter(|_| delta.new.is_none());
        if let Some(pod) = gone {
            out.settle(&EffectSubject::PodCollected(pod.key.clone()));
        }
        if let Some(pod) = &delta.old {
            self.forget_pod(pod);
        }
        if let Some(pod) = &delta.new {
            self.take_pod(cluster, pod);
        }
    }

    fn take_node(&mut self, node: &Node) {
        self.missing.remove(&node.name);
        if node.taints.iter().any(|taint| taint.key == *OUT_OF_SERVICE) {
            self.out_of_service.insert(node.name.clone());
        } else {
            self.out_of_service.remove(&node.name);
        }
    }

    fn take_pod(&mut self, cluster: &Cluster, pod: &Pod) {
        self.finished.extend(Finished::of(pod));
        match &pod.node {
            Some(node) if cluster.node(node).is_none() => {
                self.missing.insert(node.clone());
            }
            None if pod.termination.is_some() => {
                self.unscheduled.insert(pod.key.clone());
            }
            Some(_) | None => {}
        }
    }

    fn forget_pod(&mut self, pod: &Pod) {
        if let Some(finished) = Finished::of(pod) {
            self.finished.remove(&finished);
        }
        self.unscheduled.remove(&pod.key);
    }

    /// How many finished pods are too many.
    fn excess(&self, threshold: i32) -> usize {
        usize::try_from(threshold)
            .ok()
            .filter(|kept| *kept > 0)
            .map_or(0, |kept| self.finished.len().saturating_sub(kept))
    }

    /// The next pass that may find something to do; none where none would.
    pub fn next(&self, threshold: i32) -> Option<Timestamp> {
        let earliest = self.not_before;
        let at_once =
            self.excess(threshold) > 0 || !self.out_of_service.is_empty() || !self.unscheduled.is_empty();
        let orphans = self.missing.iter().map(|node| self.quarantine.get(node).copied().unwrap_or(earliest));
        let due = orphans.chain(at_once.then_some(earliest)).min()?;
        Some(self.pass_at(due.max(earliest)))
    }

    /// The first pass that is not before this.
    fn pass_at(&self, at: Timestamp) -> Timestamp {
        let into = at.since(self.beat).as_nanos().rem_euclid(PERIOD.as_nanos());
        if into == 0 { at } else { at + Span::from_nanos(PERIOD.as_nanos() - into) }
    }

    /// Puts names that are newly missing into quarantine, and tells which have left it without a node.
    fn look_for_nodes(&mut self, cluster: &Cluster, now: Timestamp) -> Vec<NodeName> {
        self.missing.retain(|node| cluster.load(node).pods > 0);
        let over = |until: &Timestamp| *until <= now;
        let mut orphaned: Vec<NodeName> = Vec::new();
        self.quarantine.retain(|node, until| {
            if over(until) && self.missing.contains(node) {
                orphaned.push(node.clone());
            }
            !over(until)
        });
        for node in &self.missing {
            if !self.quarantine.contains_key(node) {
                self.quarantine.insert(node.clone(), now + QUARANTINE);
            }
        }
        orphaned
    }

    /// When the pods of nodes that are missing will be removed, if they stay so.
    pub fn pending(&self, cluster: &Cluster) -> Vec<PendingEviction> {
        let mut pending = Vec::new();
        for (node, until) in &self.quarantine {
            if !self.missing.contains(node) {
                continue;
            }
            let due = Due::At { at: self.pass_at(*until), certainty: self.certainty };
            let why = Why::from(Cause::Orphaned { node: node.0.clone(), certainty: self.certainty });
            pending.extend(cluster.pods_on(node).map(|pod| PendingEviction {
                pod: pod.key.clone(),
                uid: pod.uid.clone(),
                node: node.clone(),
                due,
                why: why.clone(),
            }));
        }
        pending
    }
}

impl Engine {
    /// When the pod garbage collector next has something to do; none where it does not run.
    pub(super) fn collecting_due(&self) -> Option<Timestamp> {
        let threshold = self.settings.terminated_pod_gc_threshold.value;
        self.collector.as_ref().and_then(|collector| collector.next(threshold))
    }

    /// The pod garbage collector begins, if it runs at all, with a pass at `beat`.
    pub(super) fn begin_collecting(
        &mut self,
        cluster: &Cluster,
        beat: Timestamp,
        certainty: Certainty,
        now: Timestamp,
    ) {
        let runs = self.settings.controllers.value.pod_gc;
        self.collector = runs.then(|| Collector::new(cluster, beat, certainty, now));
    }

    /// One pass of the pod garbage collector (upstream `gc`).
    pub(super) fn collect(&mut self, cluster: &Cluster, now: Timestamp) {
        let Some(collector) = &mut self.collector else { return };
        collector.not_before = now + Span::from_nanos(1);
        let threshold = self.settings.terminated_pod_gc_threshold.value;
        let mut doomed: Vec<(Key, Cause)> = Vec::new();
        let excess = collector.finished.iter().take(collector.excess(threshold));
        doomed.extend(excess.map(|pod| (pod.key.clone(), Cause::FinishedBeyond { threshold })));
        if self.rules.collects_out_of_service {
            let nodes = collector.out_of_service.iter().filter_map(|node| cluster.node(node));
            for node in nodes.filter(|node| !node.is_ready()) {
                let terminating = cluster.pods_on(&node.name).filter(|pod| pod.termination.is_some());
                doomed.extend(terminating.map(|pod| (pod.key.clone(), Cause::OutOfService)));
            }
        }
        let certainty = collector.certainty;
        for node in collector.look_for_nodes(cluster, now) {
            let why = Cause::Orphaned { node: node.0.clone(), certainty };
            doomed.extend(cluster.pods_on(&node).map(|pod| (pod.key.clone(), why.clone())));
        }
        doomed.extend(collector.unscheduled.iter().map(|key| (key.clone(), Cause::NeverScheduled)));
        for (key, cause) in doomed {
            self.remove(cluster, &key, cause, now);
        }
    }

    /// Removes a pod by force. Only an orphan is told why, and only if it has not finished.
    fn remove(&mut self, cluster: &Cluster, key: &Key, cause: Cause, now: Timestamp) {
        let Some(pod) = cluster.pod(key) else { return };
        let fail = self.rules.fails_collected && !pod.is_finished();
        let disruption_target = fail && matches!(cause, Cause::Orphaned { .. });
        let write = Write::DeletePod {
            pod: key.clone(),
            uid: pod.uid.clone(),
            node: pod.node.clone().unwrap_or_default(),
            deletion: Deletion::Collected { fail, disruption_target },
        };
        self.out.propose(write, cause.into(), now);
    }
}
