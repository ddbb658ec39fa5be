//! The pod garbage collector, which force deletes orphaned and finished pods (docs/upstream/neighbours.md#1; upstream
//! `podgc.PodGCController`).

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Engine,
    effect::{Deletion, NodeCheck, Write},
    outbox::{EffectSubject, Outbox},
    view::{Due, PendingEviction},
    why::{Cause, Certainty, Why},
};
use crate::cluster::{Cluster, Delta, Key, Name, Node, NodeName, Phase, Pod};
use kordon_time::{ClusterTime, Span, Timestamp};

/// Time from one pass of the pod garbage collector to the next.
const PERIOD: Span = Span::from_secs(20);
/// How long a node's name must be missing before its pods are orphans.
pub const QUARANTINE: Span = Span::from_secs(40);
/// Maximum time from the deletion of a node to the deletion of its pods: the node goes just after a pass, and its
/// quarantine ends just after a later pass.
pub const COLLECTED_WITHIN: Span = Span::from_secs(80);
/// The reason of a pod that its kubelet evicted under resource pressure.
const EVICTED: &str = "Evicted";

/// The objects that the pod garbage collector has to look at, updated with every change, so that passes with nothing to
/// do can be skipped.
#[derive(Clone, Debug)]
pub struct Collector {
    /// Time of one pass. Every other pass is a whole number of periods away.
    tick: Timestamp,
    /// How well the times of the collector's passes are known.
    certainty: Certainty,
    /// The earliest time of the next pass.
    not_before: Timestamp,
    /// Missing nodes, to which pods are bound although no node has the name, and whether their deletion was observed.
    missing: BTreeMap<NodeName, bool>,
    /// Time at which each missing node's name leaves quarantine; if it is not known since when the node is missing, the
    /// latest time at which its pods are deleted. A name stays in quarantine even if its node comes
    /// back.
    quarantine: BTreeMap<NodeName, Timestamp>,
    /// Latest time at which the pods of missing nodes are deleted, if the cluster's objects are not current.
    latest: Option<Timestamp>,
    /// Nodes with the out-of-service taint.
    out_of_service: BTreeSet<NodeName>,
    /// Terminating pods that were never scheduled.
    unscheduled: BTreeSet<Key>,
    /// Finished pods, in the order in which they are collected.
    finished: BTreeSet<Finished>,
}

/// The order of finished pods: those evicted by their kubelet first, then by age and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Finished {
    by_itself: bool,
    created: ClusterTime,
    name: Name,
    key: Key,
}

impl Finished {
    fn from_pod(pod: &Pod) -> Option<Self> {
        pod.is_finished().then(|| Self {
            by_itself: !(pod.phase == Phase::Failed && pod.reason == *EVICTED),
            created: pod.created,
            name: pod.key.name.clone(),
            key: pod.key.clone(),
        })
    }
}

impl Collector {
    /// Creates the collector's state from the current cluster, with a pass at `tick`.
    pub fn new(cluster: &Cluster, tick: Timestamp, certainty: Certainty, now: Timestamp) -> Self {
        let mut collector = Self {
            tick,
            certainty,
            not_before: tick.max(now),
            missing: BTreeMap::new(),
            quarantine: BTreeMap::new(),
            latest: None,
            out_of_service: BTreeSet::new(),
            unscheduled: BTreeSet::new(),
            finished: BTreeSet::new(),
        };
        for node in cluster.nodes().iter() {
            collector.add_node(node);
        }
        for pod in cluster.pods().iter() {
            collector.add_pod(cluster, pod);
        }
        collector
    }

    /// Takes into account that the objects are as of `at`, before `now`. Nodes that are missing were missing then, so
    /// their pods are deleted within [`COLLECTED_WITHIN`] of `at`, or at once.
    fn set_time_of_objects(&mut self, at: Timestamp, now: Timestamp) {
        let latest = (at + COLLECTED_WITHIN).max(now + Span::from_secs(1));
        (self.tick, self.latest) = (latest, Some(latest));
        self.quarantine.extend(self.missing.keys().map(|node| (node.clone(), latest)));
    }

    /// Prepares for work that a change adds: if no work is due yet, the next pass is the first one at or after `now`.
    /// Earlier passes were skipped because they had no work.
    pub fn on_change(&mut self, threshold: i32, now: Timestamp) {
        if self.next(threshold).is_none_or(|due| due > now) {
            self.not_before = self.not_before.max(now);
        }
    }

    pub fn on_node(&mut self, cluster: &Cluster, delta: &Delta<Node>) {
        match (&delta.old, &delta.new) {
            (_, Some(node)) => self.add_node(node),
            (Some(node), None) => {
                self.out_of_service.remove(&node.name);
                if cluster.load(&node.name).pods > 0 {
                    self.missing.insert(node.name.clone(), true);
                }
            }
            (None, None) => {}
        }
    }

    pub fn on_pod(&mut self, cluster: &Cluster, delta: &Delta<Pod>, out: &mut Outbox) {
        let gone = delta.old.as_ref().filter(|_| delta.new.is_none());
        if let Some(pod) = gone {
            out.forget(&EffectSubject::PodCollected(pod.key.clone()));
        }
        if let Some(pod) = &delta.old {
            self.forget_pod(pod);
        }
        if let Some(pod) = &delta.new {
            self.add_pod(cluster, pod);
        }
    }

    fn add_node(&mut self, node: &Node) {
        self.missing.remove(&node.name);
        if node.is_tainted_out_of_service() {
            self.out_of_service.insert(node.name.clone());
        } else {
            self.out_of_service.remove(&node.name);
        }
    }

    fn add_pod(&mut self, cluster: &Cluster, pod: &Pod) {
        self.finished.extend(Finished::from_pod(pod));
        match &pod.node {
            Some(node) if cluster.node(node).is_none() => {
                let is_deletion_seen = *self.missing.entry(node.clone()).or_default();
                if let Some(latest) = self.latest.filter(|_| !is_deletion_seen) {
                    self.quarantine.entry(node.clone()).or_insert(latest);
                }
            }
            None if pod.termination.is_some() => {
                self.unscheduled.insert(pod.key.clone());
            }
            Some(_) | None => {}
        }
    }

    fn forget_pod(&mut self, pod: &Pod) {
        if let Some(finished) = Finished::from_pod(pod) {
            self.finished.remove(&finished);
        }
        self.unscheduled.remove(&pod.key);
    }

    /// How many finished pods are above the threshold.
    fn excess(&self, threshold: i32) -> usize {
        usize::try_from(threshold)
            .ok()
            .filter(|kept| *kept > 0)
            .map_or(0, |kept| self.finished.len().saturating_sub(kept))
    }

    /// Time of the next pass that may have work; none if there is no work.
    pub fn next(&self, threshold: i32) -> Option<Timestamp> {
        let earliest = self.not_before;
        let at_once =
            self.excess(threshold) > 0 || !self.out_of_service.is_empty() || !self.unscheduled.is_empty();
        let orphans = self.missing.keys().map(|node| self.quarantine.get(node).copied().unwrap_or(earliest));
        let due = orphans.chain(at_once.then_some(earliest)).min()?;
        Some(self.pass_at(due.max(earliest)))
    }

    /// The first pass of the pod garbage collector at or after `at`.
    fn pass_at(&self, at: Timestamp) -> Timestamp {
        let into = at.since(self.tick).as_nanos().rem_euclid(PERIOD.as_nanos());
        if into == 0 { at } else { at + Span::from_nanos(PERIOD.as_nanos() - into) }
    }

    /// Puts newly missing names into quarantine. Returns the names whose quarantine ended while their node was still
    /// missing.
    fn update_quarantine(&mut self, cluster: &Cluster, now: Timestamp) -> Vec<NodeName> {
        self.missing.retain(|node, _| cluster.load(node).pods > 0);
        let over = |until: &Timestamp| *until <= now;
        let mut orphaned: Vec<NodeName> = Vec::new();
        self.quarantine.retain(|node, until| {
            if over(until) && self.missing.contains_key(node) {
                orphaned.push(node.clone());
            }
            !over(until)
        });
        // The quarantine starts at the scheduled time of this pass. If it started at `now` and this pass were late, the
        // quarantine would end after the pass that has to end it.
        let pass = now - Span::from_nanos(now.since(self.tick).as_nanos().rem_euclid(PERIOD.as_nanos()));
        let names: Vec<NodeName> =
            self.missing.keys().filter(|node| !self.quarantine.contains_key(*node)).cloned().collect();
        for node in names {
            let until = match self.certainty(&node) {
                Certainty::Observed | Certainty::Estimated => pass + QUARANTINE,
                Certainty::AtLatest => pass + COLLECTED_WITHIN,
            };
            self.quarantine.insert(node, until);
        }
        orphaned
    }

    /// Names of missing nodes to which pods are still bound.
    pub fn missing(&self, cluster: &Cluster) -> impl Iterator<Item = &NodeName> {
        self.missing.keys().filter(move |node| cluster.load(node).pods > 0)
    }

    /// How well the time is known at which the pods of a missing node are deleted. It is the latest one possible if the
    /// deletion of the node was not observed, because the node may have gone just now, or may have been in quarantine
    /// for some time.
    pub fn certainty(&self, node: &NodeName) -> Certainty {
        let is_shadow = self.certainty != Certainty::Observed;
        let is_deletion_seen = self.missing.get(node).copied().unwrap_or_default();
        if is_shadow && !is_deletion_seen { Certainty::AtLatest } else { self.certainty }
    }

    /// When the pods of missing nodes will be deleted, if the nodes stay missing.
    pub fn pending(&self, cluster: &Cluster) -> Vec<PendingEviction> {
        let mut pending = Vec::new();
        for (node, until) in &self.quarantine {
            if !self.missing.contains_key(node) {
                continue;
            }
            let certainty = self.certainty(node);
            let due = Due::At { at: self.pass_at(*until), certainty };
            let why = Why::from(Cause::Orphaned { node: node.0.clone(), certainty });
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
    /// Time of the next pass of the pod garbage collector that may have work; none if there is no work or the collector
    /// does not run.
    pub(super) fn collecting_due(&self) -> Option<Timestamp> {
        let threshold = self.settings.terminated_pod_gc_threshold.value;
        self.collector.as_ref().and_then(|collector| collector.next(threshold))
    }

    /// Starts the pod garbage collector, if it runs at all, with a pass at `tick`.
    pub(super) fn start_collector(
        &mut self,
        cluster: &Cluster,
        tick: Timestamp,
        certainty: Certainty,
        now: Timestamp,
    ) {
        let runs = self.settings.controllers.value.pod_gc;
        self.collector = runs.then(|| Collector::new(cluster, tick, certainty, now));
    }

    /// Takes into account that the objects of the cluster are as of `at`. Does nothing if they are as of `now`.
    pub fn set_time_of_objects(&mut self, at: Timestamp, now: Timestamp) {
        if let Some(collector) = self.collector.as_mut().filter(|_| at < now) {
            collector.set_time_of_objects(at, now);
        }
    }

    /// One pass of the pod garbage collector (upstream `gc`).
    pub(super) fn collect(&mut self, cluster: &Cluster, now: Timestamp) {
        let Some(collector) = &mut self.collector else { return };
        collector.not_before = now + Span::from_nanos(1);
        let threshold = self.settings.terminated_pod_gc_threshold.value;
        let mut to_delete: Vec<(Key, Cause)> = Vec::new();
        let excess = collector.finished.iter().take(collector.excess(threshold));
        to_delete.extend(excess.map(|pod| (pod.key.clone(), Cause::FinishedBeyond { threshold })));
        if self.rules.collects_out_of_service {
            let nodes = collector.out_of_service.iter().filter_map(|node| cluster.node(node));
            for node in nodes.filter(|node| !node.is_ready()) {
                let terminating = cluster.pods_on(&node.name).filter(|pod| pod.termination.is_some());
                to_delete.extend(terminating.map(|pod| (pod.key.clone(), Cause::OutOfService)));
            }
        }
        for node in collector.update_quarantine(cluster, now) {
            let why = Cause::Orphaned { node: node.0.clone(), certainty: collector.certainty(&node) };
            to_delete.extend(cluster.pods_on(&node).map(|pod| (pod.key.clone(), why.clone())));
        }
        to_delete.extend(collector.unscheduled.iter().map(|key| (key.clone(), Cause::NeverScheduled)));
        for (key, cause) in to_delete {
            self.force_delete(cluster, &key, cause, now);
        }
    }

    /// Force deletes a pod. Only an unfinished orphan gets the condition DisruptionTarget.
    fn force_delete(&mut self, cluster: &Cluster, key: &Key, cause: Cause, now: Timestamp) {
        let Some(pod) = cluster.pod(key) else { return };
        let fail = self.rules.fails_collected && !pod.is_finished();
        let is_orphan = matches!(cause, Cause::Orphaned { .. });
        let disruption_target = fail && is_orphan;
        let node = if is_orphan { NodeCheck::MustBeGone } else { NodeCheck::Skip };
        let write = Write::DeletePod {
            pod: key.clone(),
            uid: pod.uid.clone(),
            node: pod.node.clone().unwrap_or_default(),
            deletion: Deletion::Collected { fail, disruption_target, node },
        };
        self.out.propose(write, cause.into(), now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{Change, ObjectEvent};

    #[test]
    fn a_late_pass_does_not_delay_the_end_of_the_quarantine_by_another_period() {
        let start = Timestamp::from_secs(1_800_000_000);
        let after = |millis| start + Span::from_millis(millis);
        let mut cluster = Cluster::default();
        let pod = Pod { key: Key::new("shop", "orphan"), node: Some("nowhere".into()), ..Pod::default() };
        cluster.apply(Change::Pod(ObjectEvent::Applied(pod)), &mut Vec::new());
        let mut collector = Collector::new(&cluster, start, Certainty::Observed, start);
        assert_eq!(collector.next(0), Some(start));
        assert_eq!(collector.update_quarantine(&cluster, after(50)), []);
        collector.not_before = after(51);
        assert_eq!(collector.next(0), Some(after(40_000)));
        assert_eq!(collector.update_quarantine(&cluster, after(40_001)), ["nowhere".into()]);
    }

    #[test]
    fn the_latest_time_counts_from_the_time_of_the_objects() {
        let now = Timestamp::from_secs(1_800_000_000);
        let pod = Pod { key: Key::new("shop", "orphan"), node: Some("nowhere".into()), ..Pod::default() };
        let mut cluster = Cluster::default();
        let mut early = Collector::new(&cluster, now, Certainty::Estimated, now);
        early.set_time_of_objects(now - Span::from_secs(30), now);
        cluster.apply(Change::Pod(ObjectEvent::Applied(pod.clone())), &mut Vec::new());
        early.add_pod(&cluster, &pod);
        for (age, left) in [(30, 50), (79, 1), (85, 1)] {
            let mut collector = Collector::new(&cluster, now, Certainty::Estimated, now);
            collector.set_time_of_objects(now - Span::from_secs(age), now);
            let latest = now + Span::from_secs(left);
            assert_eq!(collector.next(0), Some(latest), "{age}");
            if age == 30 {
                assert_eq!(early.next(0), Some(latest), "the pod was listed later");
            }
            collector.not_before = latest;
            assert_eq!(collector.update_quarantine(&cluster, latest), ["nowhere".into()], "{age}");
        }
    }

    #[test]
    fn the_latest_time_assumes_that_the_node_went_just_now() {
        let start = Timestamp::from_secs(1_800_000_000);
        let mut cluster = Cluster::default();
        let pod = Pod { key: Key::new("shop", "orphan"), node: Some("nowhere".into()), ..Pod::default() };
        cluster.apply(Change::Pod(ObjectEvent::Applied(pod)), &mut Vec::new());
        let mut collector = Collector::new(&cluster, start, Certainty::Estimated, start);
        assert_eq!(collector.update_quarantine(&cluster, start), []);
        let due = Due::At { at: start + COLLECTED_WITHIN, certainty: Certainty::AtLatest };
        assert_eq!(
            collector.pending(&cluster).iter().map(|eviction| eviction.due).collect::<Vec<_>>(),
            [due]
        );
    }
}
