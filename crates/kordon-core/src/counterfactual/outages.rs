//! Outages of nodes, and what people pay for them: the same outages and the same pods whatever the settings, each pod with what the
//! recorded controller did to it and what the engine did.

use std::collections::{BTreeMap, BTreeSet};

use super::acts::Acts;
use crate::{
    cluster::{Cluster, ConditionStatus, Key, NodeName, Uid},
    plan::owner::{self, Recreation},
};
use kordon_time::{Span, Timestamp};

/// How long a replacement takes until it is Ready, where the recording has none that became Ready.
pub const START: Span = Span::from_secs(10);

/// A stretch of time in which a node was silent, or said that it is not ready.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedOutage {
    pub node: NodeName,
    /// Its last heartbeat before that, or when it said that it is not ready.
    pub from: Timestamp,
    pub end: OutageEnd,
    /// Whether its kubelet was silent, and ended no pod meanwhile.
    is_silent: bool,
    /// The pods that ran on it when it began, without those of DaemonSets and static pods, which run on no other node.
    pub pods: Vec<AffectedPod>,
}

/// How an outage ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutageEnd {
    /// The node was heard from and well.
    Back(Timestamp),
    /// The node was deleted.
    Deleted(Timestamp),
    /// It had not ended when the recording did.
    Open(Timestamp),
}

/// A pod on a node that had an outage.
#[derive(Clone, Debug, PartialEq)]
pub struct AffectedPod {
    pub pod: Key,
    pub uid: Uid,
    /// Whether and when its owner recreates it.
    recreation: Recreation,
    /// Whether the engine's cluster had it.
    is_here: bool,
}

/// What people paid for outages.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Paid {
    /// The outages that ended because the node was back.
    pub ended: OutageCost,
    /// Those of them that were shorter than a blip.
    pub blips: OutageCost,
    /// The outages whose node did not come back before it was deleted, or the recording ended.
    pub not_ended: OutageCost,
}

/// The cost of several outages.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OutageCost {
    pub outages: usize,
    /// The pods on their nodes; one counts in every outage.
    pub pods: usize,
    /// The time in which those ran nowhere, summed over pods.
    pub nowhere: Span,
    /// How many of them were evicted.
    pub moves: usize,
}

/// Whose evictions are meant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Whose<'a> {
    /// The recorded controller's.
    Recorded(&'a Acts),
    /// The engine's.
    Engine(&'a Acts),
}

/// How the cost of outages is counted.
#[derive(Clone, Copy, Debug)]
pub struct CostScope {
    /// Outages that overlap this time count, of nodes with pods.
    pub from: Timestamp,
    pub until: Timestamp,
    /// Outages shorter than this are blips.
    pub blip: Span,
    /// An eviction may come this long after the end of the outage: the controller's passes are apart.
    pub passes: Span,
    /// How long a replacement takes until it is Ready.
    pub start: Span,
    /// The end of the recording.
    pub end: Timestamp,
}

/// Follows the outages of nodes through what is recorded of them.
#[derive(Clone, Debug, Default)]
pub(super) struct OutageTracker {
    ended: Vec<RecordedOutage>,
    /// The nodes that were heard from and are not well, with the starts of their outages.
    not_well: BTreeMap<NodeName, OutageStart>,
    /// The end of the last gap of the recording: heartbeats before the gap are known, those within it are not.
    gap: Option<Timestamp>,
    /// The pods that were created and not Ready yet.
    starting: BTreeSet<Uid>,
    /// How long pods took from their creation until they were Ready.
    starts: Vec<Span>,
}

/// The start of an outage.
#[derive(Clone, Copy, Debug)]
pub(super) struct OutageStart {
    pub from: Timestamp,
    pub is_silent: bool,
}

impl RecordedOutage {
    /// How long it lasted, or had lasted when the recording ended.
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
    /// A node was heard from, last before that at `before`; a longer silence than `least` is an outage. `posted` is the last status of
    /// Ready that its kubelet posted. Returns the start of the outage that ends with it.
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

    /// The outage that a silence is, unless it is a gap of the recording.
    fn silence(&self, before: Option<Timestamp>, at: Timestamp, least: Span) -> Option<OutageStart> {
        let from = before.filter(|before| at.since(*before) > least)?;
        let is_gap = |gap: Timestamp| from <= gap && gap <= at && gap.since(from) <= least;
        (!self.gap.is_some_and(is_gap)).then_some(OutageStart { from, is_silent: true })
    }

    /// The node is gone. Returns the start of the outage that ends with it.
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

    /// A pod is Ready, so long after its creation.
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

    /// The nodes whose outage has not ended, with its start: of all that were heard from, and when last.
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

    /// The median time that a pod took from its creation until it was Ready; none if none was observed.
    pub fn start(&self) -> Option<Span> {
        let mut starts = self.starts.clone();
        starts.sort_unstable();
        starts.get(starts.len() / 2).copied()
    }
}

/// The outage of a node whose pods are recorded.
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
    // What was evicted may be gone already.
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
    /// What outages cost with the evictions of the recorded controller, or with those of the engine.
    pub fn of<'a>(
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
                // It left the node before, or never was on it.
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

/// When a pod, or what replaces it, runs again. `moved` is when it was evicted.
fn runs_again(
    outage: &RecordedOutage,
    pod: &AffectedPod,
    moved: Option<Timestamp>,
    scope: &CostScope,
) -> Timestamp {
    let end = outage.end.at();
    // When its object is gone.
    let gone = match (moved, outage.end) {
        (None, OutageEnd::Back(_)) => return end,
        (None, OutageEnd::Open(_)) => return scope.end,
        (None, OutageEnd::Deleted(_)) => end,
        (Some(moved), _) if pod.recreation == Recreation::Immediately || !outage.is_silent => moved,
        // Its kubelet ends it once it is back, or its object goes with the node.
        (Some(_), OutageEnd::Back(_) | OutageEnd::Deleted(_)) => end,
        (Some(_), OutageEnd::Open(_)) => return scope.end,
    };
    match pod.recreation {
        Recreation::Immediately | Recreation::WhenGone => (gone + scope.start).min(scope.end),
        Recreation::OnSameNode | Recreation::Never(_) => scope.end,
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
