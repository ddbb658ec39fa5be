//! Outages of nodes and their cost. The outages and the affected pods are the same for all settings. The evictions
//! differ, so the cost is computed twice: with the evictions of the recorded controller and with those of the engine.

use std::collections::{BTreeMap, BTreeSet};

use super::acts::Acts;
use crate::{
    cluster::{Cluster, ConditionStatus, Key, NodeName, Uid},
    plan::owner::{self, Recreation},
};
use kordon_time::{Span, Timestamp};

/// Assumed time until a replacement is Ready, if no pod of the recording became Ready.
pub const START: Span = Span::from_secs(10);

/// A period in which a node was silent or reported that it is not ready.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedOutage {
    pub node: NodeName,
    /// The node's last heartbeat before the outage, or the time at which the node reported that it is not ready.
    pub from: Timestamp,
    pub end: OutageEnd,
    /// Whether the kubelet was silent. A silent kubelet ends no pods during the outage.
    is_silent: bool,
    /// The pods that ran on the node at the start. Static pods and pods of DaemonSets are left out, because they run on
    /// no other node.
    pub pods: Vec<AffectedPod>,
}

/// How an outage ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutageEnd {
    /// The node came back: a heartbeat arrived, and the node was Ready.
    Back(Timestamp),
    /// The node was deleted.
    Deleted(Timestamp),
    /// The outage was still open at the end of the recording.
    Open(Timestamp),
}

/// A pod on a node with an outage.
#[derive(Clone, Debug, PartialEq)]
pub struct AffectedPod {
    pub pod: Key,
    pub uid: Uid,
    /// Whether and when the pod's owner recreates the pod.
    recreation: Recreation,
    /// Whether the pod exists in the engine's cluster (the model).
    is_here: bool,
}

/// The cost of outages.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Paid {
    /// The outages that ended with the return of the node.
    pub ended: OutageCost,
    /// The blips (short outages) among the ended outages.
    pub blips: OutageCost,
    /// The outages that did not end with the return of the node: the node was deleted, or it was still away when the
    /// recording ended.
    pub not_ended: OutageCost,
}

/// The cost of several outages.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OutageCost {
    pub outages: usize,
    /// Number of pods on the nodes with outages. A pod counts once for each outage.
    pub pods: usize,
    /// The time in which pods of nodes with outages ran nowhere, summed over pods.
    pub nowhere: Span,
    /// The number of evicted pods of nodes with outages.
    pub moves: usize,
}

/// The controller whose evictions are used to compute the cost of outages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Whose<'a> {
    /// The recorded controller, with its acts.
    Recorded(&'a Acts),
    /// The engine, with its acts.
    Engine(&'a Acts),
}

/// Rules for counting the cost of outages.
#[derive(Clone, Copy, Debug)]
pub struct CostScope {
    /// Start of the period for which costs are counted. An outage counts if it overlaps the period and its node had
    /// pods.
    pub from: Timestamp,
    pub until: Timestamp,
    /// Outages shorter than this are blips.
    pub blip: Span,
    /// Time after the end of an outage. An eviction within this time still belongs to the outage, because the
    /// controller works in passes.
    pub passes: Span,
    /// The time that a replacement takes until it is Ready.
    pub start: Span,
    /// The end of the recording.
    pub end: Timestamp,
}

/// Derives the outages of nodes from the recorded heartbeats.
#[derive(Clone, Debug, Default)]
pub(super) struct OutageTracker {
    ended: Vec<RecordedOutage>,
    /// Nodes that send heartbeats but are not Ready, with the start of their outage.
    not_well: BTreeMap<NodeName, OutageStart>,
    /// End of the last gap in the recording. Heartbeats in the gap are not known.
    gap: Option<Timestamp>,
    /// Pods that were created and are not Ready yet.
    starting: BTreeSet<Uid>,
    /// Times from the creation of a pod until it was Ready.
    starts: Vec<Span>,
}

/// When an outage started, and whether the node was silent.
#[derive(Clone, Copy, Debug)]
pub(super) struct OutageStart {
    pub from: Timestamp,
    pub is_silent: bool,
}

impl RecordedOutage {
    /// The length of the outage. An outage that did not end counts up to the end of the recording.
    pub const fn length(&self) -> Span {
        self.end.at().since(self.from)
    }
}

impl OutageEnd {
    pub const fn at(self) -> Timestamp {
        match self {
            Self::Back(at) | Self::Deleted(at) | Self::Open(at) => at,
        }
    }
}

impl OutageTracker {
    /// Handles a heartbeat of a node at `at`; the previous heartbeat was at `before`. A silence longer than `least` is
    /// an outage. `posted` is the status of the Ready condition that the kubelet posted last. Returns the start of the
    /// outage that ends with this heartbeat.
    pub fn on_heard(
        &mut self,
        node: &NodeName,
        before: Option<Timestamp>,
        at: Timestamp,
        least: Span,
        posted: Option<ConditionStatus>,
    ) -> Option<OutageStart> {
        let silent = self.silence(before, at, least);
        match posted {
            Some(ConditionStatus::True) => self.not_well.remove(node).map_or(silent, |start| {
                Some(OutageStart { is_silent: start.is_silent || silent.is_some(), ..start })
            }),
            Some(_) => {
                let start = silent.unwrap_or(OutageStart { from: at, is_silent: false });
                self.not_well.entry(node.clone()).or_insert(start).is_silent |= silent.is_some();
                None
            }
            None => {
                if let Some(silent) = silent {
                    self.not_well.entry(node.clone()).or_insert(silent);
                }
                None
            }
        }
    }

    /// Start of the outage if the silence from `before` to `at` counts as one; `None` if the silence is at most `least`
    /// long or a gap in the recording explains it.
    fn silence(&self, before: Option<Timestamp>, at: Timestamp, least: Span) -> Option<OutageStart> {
        let from = before.filter(|before| at.since(*before) > least)?;
        let is_gap = |gap: Timestamp| from <= gap && gap <= at && gap.since(from) <= least;
        (!self.gap.is_some_and(is_gap)).then_some(OutageStart { from, is_silent: true })
    }

    /// Handles the deletion of a node. Returns the start of the outage that ends with the deletion.
    pub fn on_gone(
        &mut self,
        node: &NodeName,
        heard: Option<Timestamp>,
        at: Timestamp,
        least: Span,
    ) -> Option<OutageStart> {
        let silent = self.silence(heard, at, least);
        self.not_well.remove(node).or(silent)
    }

    pub fn on_gap(&mut self, at: Timestamp) {
        self.gap = Some(at);
    }

    pub fn on_pod_created(&mut self, pod: &Uid) {
        self.starting.insert(pod.clone());
    }

    /// Records that a pod became Ready, with the time since its creation.
    pub fn on_pod_ready(&mut self, pod: &Uid, after: Span) {
        if self.starting.remove(pod) {
            self.starts.push(after);
        }
    }

    pub fn on_pod_gone(&mut self, pod: &Uid) {
        self.starting.remove(pod);
    }

    pub fn on_ended(&mut self, outage: RecordedOutage) {
        self.ended.push(outage);
    }

    pub fn ended(&self) -> &[RecordedOutage] {
        &self.ended
    }

    /// The open outages, with their starts. `heard` has the last heartbeat of each node.
    pub fn open<'a>(
        &'a self,
        heard: impl Iterator<Item = (&'a NodeName, Timestamp)> + 'a,
        now: Timestamp,
        least: Span,
    ) -> impl Iterator<Item = (&'a NodeName, OutageStart)> + 'a {
        heard.filter_map(move |(node, heard)| {
            let silent = self.silence(Some(heard), now, least);
            Some((node, self.not_well.get(node).copied().or(silent)?))
        })
    }

    /// The median time from the creation of a pod until it was Ready; `None` if no pod was observed from its creation
    /// until Ready.
    pub fn start(&self) -> Option<Span> {
        let mut starts = self.starts.clone();
        starts.sort_unstable();
        starts.get(starts.len() / 2).copied()
    }
}

/// The outage of a node, with its pods from the recorded cluster.
pub(super) fn outage(
    (node, start, end): (&NodeName, OutageStart, OutageEnd),
    (recorded, cluster): (&Cluster, &Cluster),
    happened: &Acts,
) -> RecordedOutage {
    let OutageStart { from, is_silent } = start;
    let mut pods: Vec<AffectedPod> = recorded
        .pods_on(node)
        .filter(|pod| cluster.local(pod.created) <= from && !pod.is_finished())
        .filter_map(|pod| {
            let recreation = owner::recreation(cluster, pod);
            let is_here = cluster.pod(&pod.key).is_some_and(|here| here.uid == pod.uid);
            let (pod, uid) = (pod.key.clone(), pod.uid.clone());
            (recreation != Recreation::OnSameNode).then_some(AffectedPod { pod, uid, recreation, is_here })
        })
        .collect();
    // Add evicted pods that are already gone from the recorded cluster.
    let evicted = happened.evicted.iter().rev().take_while(|act| act.at >= from);
    for act in evicted.filter(|act| act.node == *node && act.recreation != Recreation::OnSameNode) {
        if !pods.iter().any(|pod| pod.uid == act.uid) {
            let is_here = cluster.pod(&act.pod).is_some_and(|here| here.uid == act.uid);
            let (pod, uid) = (act.pod.clone(), act.uid.clone());
            pods.push(AffectedPod { pod, uid, recreation: act.recreation, is_here });
        }
    }
    RecordedOutage { node: node.clone(), from, end, is_silent, pods }
}

impl Paid {
    /// Computes the cost of outages. `whose` selects the evictions that count: those of the recorded controller or of
    /// the engine.
    pub fn new<'a>(
        outages: impl Iterator<Item = &'a RecordedOutage>,
        whose: Whose<'_>,
        scope: &CostScope,
    ) -> Self {
        let acts = match whose {
            Whose::Recorded(acts) | Whose::Engine(acts) => acts,
        };
        let evicted: BTreeMap<&Uid, Timestamp> =
            acts.evicted.iter().rev().map(|act| (&act.uid, act.at)).collect();
        let mut paid = Self::default();
        for outage in outages.filter(|outage| scope.counts(outage) && !outage.pods.is_empty()) {
            let mut cost = OutageCost { outages: 1, pods: outage.pods.len(), ..OutageCost::default() };
            for pod in &outage.pods {
                let at = evicted.get(&pod.uid).copied();
                let is_of_it = |at: &Timestamp| outage.from <= *at && *at <= outage.end.at() + scope.passes;
                let moved = at.filter(is_of_it);
                // Whether the pod left the node before the outage, or was never on it.
                let is_elsewhere = moved.is_none()
                    && (at.is_some_and(|at| at < outage.from)
                        || matches!(whose, Whose::Engine(_)) && at.is_none() && !pod.is_here);
                cost.moves += usize::from(moved.is_some());
                if !is_elsewhere {
                    let runs = runs_again(outage, pod, moved, scope);
                    cost.nowhere = cost.nowhere + runs.since(outage.from).or_zero();
                }
            }
            match outage.end {
                OutageEnd::Back(_) => {
                    paid.ended.add(&cost);
                    if outage.length() < scope.blip {
                        paid.blips.add(&cost);
                    }
                }
                OutageEnd::Deleted(_) | OutageEnd::Open(_) => paid.not_ended.add(&cost),
            }
        }
        paid
    }
}

/// The time at which a pod or its replacement runs again. `moved` is the time of the pod's eviction.
fn runs_again(
    outage: &RecordedOutage,
    pod: &AffectedPod,
    moved: Option<Timestamp>,
    scope: &CostScope,
) -> Timestamp {
    let end = outage.end.at();
    // The time at which the pod's object is gone.
    let gone = match (moved, outage.end) {
        (None, OutageEnd::Back(_)) => return end,
        (None, OutageEnd::Open(_)) => return scope.end,
        (None, OutageEnd::Deleted(_)) => end,
        (Some(moved), _) if pod.recreation == Recreation::Immediately || !outage.is_silent => moved,
        // An evicted pod is gone when its kubelet is back and ends it, or when it is deleted with its node.
        (Some(_), OutageEnd::Back(_) | OutageEnd::Deleted(_)) => end,
        (Some(_), OutageEnd::Open(_)) => return scope.end,
    };
    match pod.recreation {
        Recreation::Immediately | Recreation::WhenGone => (gone + scope.start).min(scope.end),
        Recreation::OnSameNode | Recreation::Never(_) | Recreation::Unknown => scope.end,
    }
}

impl CostScope {
    fn counts(&self, outage: &RecordedOutage) -> bool {
        outage.from <= self.until && outage.end.at() >= self.from
    }
}

impl OutageCost {
    fn add(&mut self, other: &Self) {
        self.outages += other.outages;
        self.pods += other.pods;
        self.nowhere = self.nowhere + other.nowhere;
        self.moves += other.moves;
    }
}
