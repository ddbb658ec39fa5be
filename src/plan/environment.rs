//! What others do while a plan is carried out: kubelets end pods, controllers and the scheduler bring them back.
//!
//! [`Environment`] is where a prediction of placement comes in ([`super::PlacingEnvironment`]); [`TypicalEnvironment`] does without one.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{landing::Landing, placement_trace::RunTrace};
use crate::{
    cluster::{Cluster, ConditionStatus, Key, Node, NodeName, Pod},
    time::{Span, Timestamp},
};

/// What others do while a plan is carried out. Copied for each run of a simulation.
pub trait Environment: Clone {
    /// How long a pod's object is still there that now has this grace period left. Not asked where the API server
    /// removes it at once (grace 0) or a finalizer holds it.
    fn stop(&self, pod: &Pod, grace: Span) -> Estimate;

    /// Where the replacement of a pod lands, which is being created now. `closed` nodes are cordoned. Asked in the
    /// order in which replacements are created; those before it have landed.
    fn land(&mut self, pod: &Pod, closed: &BTreeSet<NodeName>) -> Landing;

    /// How long after its creation the replacement of a pod is Ready, having landed there.
    fn ready(&self, pod: &Pod, landing: &Landing) -> Estimate;

    /// Of so many pods that end together and may each use up its grace: how many likely do.
    fn stragglers(&self, _pods: usize) -> usize {
        0
    }

    /// The pod's deletion begins: it counts no more where pods are spread, and still holds what it has.
    fn leaving(&mut self, _pod: &Pod) {}

    /// The pod's object is gone: what it held is free.
    fn gone(&mut self, _pod: &Pod) {}

    /// The node is as this says now.
    fn update_node(&mut self, _node: Arc<Node>) {}

    /// Has pods land where they did in another run of the same, with what was weighed there. Runs differ in times; of a
    /// pod one landing is told, and its times belong to that. Who found no node looks for one in each run.
    fn fix_landings(&mut self, _landings: BTreeMap<Key, Landing>, _account: &RunTrace) {}

    /// What was weighed so far, and the nodes that received pods.
    fn trace(&self) -> RunTrace {
        RunTrace::default()
    }
}

/// A span that is not known for certain; none is never.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    pub soonest: Option<Span>,
    pub likely: Option<Span>,
    pub latest: Option<Span>,
    pub quality: Quality,
}

impl Estimate {
    pub const NEVER: Self = Self { soonest: None, likely: None, latest: None, quality: Quality::Certain };

    pub const fn exactly(span: Span) -> Self {
        Self { soonest: Some(span), likely: Some(span), latest: Some(span), quality: Quality::Certain }
    }

    /// Both after one another.
    pub fn and_then(self, next: Self) -> Self {
        let sum = |one: Option<Span>, other: Option<Span>| Some(one? + other?);
        Self {
            soonest: sum(self.soonest, next.soonest),
            likely: sum(self.likely, next.likely),
            latest: sum(self.latest, next.latest),
            quality: self.quality.min(next.quality),
        }
    }

    /// Both at once: until the later has ended.
    pub fn longer(self, other: Self) -> Self {
        let most = |one: Option<Span>, other: Option<Span>| Some(one?.max(other?));
        Self {
            soonest: most(self.soonest, other.soonest),
            likely: most(self.likely, other.likely),
            latest: most(self.latest, other.latest),
            quality: self.quality.min(other.quality),
        }
    }

    pub const fn at(&self, bound: Bound) -> Option<Span> {
        match bound {
            Bound::Soonest => self.soonest,
            Bound::Likely => self.likely,
            Bound::Latest => self.latest,
        }
    }
}

/// Which of its estimates a run goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    Soonest,
    Likely,
    Latest,
}

/// What a span is worth, the best last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Quality {
    Guess,
    /// From what the objects declare (grace periods).
    Declared,
    /// From what others of its kind took.
    Measured,
    /// By the rules of the API.
    Certain,
}

impl Quality {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Guess => "guess",
            Self::Declared => "declared",
            Self::Measured => "measured",
            Self::Certain => "certain",
        }
    }
}

/// What a pod that heeds SIGTERM likely takes to end, where its grace is longer.
const LIKELY_STOP: Span = Span::from_secs(5);
/// One container in so many does not heed SIGTERM and is killed when its grace is over: of one pod that is not likely, of
/// the pods of a node it is. A guess.
const HEEDLESS: usize = 5;
/// What the kubelet needs beyond the grace period: its own least wait, and to post the status.
const KUBELET: Span = Span::from_secs(4);
/// What a container takes to be Ready of which nothing is known.
const GUESSED_READY: Estimate = Estimate {
    soonest: Some(Span::from_secs(1)),
    likely: Some(Span::from_secs(10)),
    latest: Some(Span::from_secs(60)),
    quality: Quality::Guess,
};
/// A pod that took longer than this to become Ready has rather been ready before.
const LONGEST_START: Span = Span::from_secs(600);

/// What usually happens: living kubelets end pods within their grace, and replacements find a node somewhere.
#[derive(Clone, Copy, Debug)]
pub struct TypicalEnvironment<'a> {
    pub cluster: &'a Cluster,
    pub now: Timestamp,
}

impl Environment for TypicalEnvironment<'_> {
    fn stop(&self, pod: &Pod, grace: Span) -> Estimate {
        if pod.node.as_ref().is_some_and(|node| !has_living_kubelet(self.cluster, node)) {
            return Estimate::NEVER;
        }
        let overdue = pod.termination.as_ref().map(|termination| self.now.since(termination.deadline));
        if overdue.is_some_and(|overdue| overdue > KUBELET * 4) {
            // Something holds it that is not seen here, as a volume that cannot be unmounted.
            return Estimate::NEVER;
        }
        let likely = if grace <= LIKELY_STOP { grace } else { LIKELY_STOP };
        let quality = if grace <= LIKELY_STOP { Quality::Declared } else { Quality::Guess };
        let latest = Some(grace + KUBELET);
        Estimate { soonest: Some(Span::ZERO), likely: Some(likely), latest, quality }
    }

    fn land(&mut self, _pod: &Pod, _closed: &BTreeSet<NodeName>) -> Landing {
        Landing::Somewhere
    }

    fn stragglers(&self, pods: usize) -> usize {
        (pods + HEEDLESS / 2) / HEEDLESS
    }

    fn ready(&self, pod: &Pod, landing: &Landing) -> Estimate {
        match landing {
            Landing::Nowhere { .. } => Estimate::NEVER,
            Landing::Node { .. } | Landing::Somewhere => siblings_ready(self.cluster, pod),
        }
    }
}

/// Whether the node's kubelet can be expected to end pods: it is there and not silent.
pub fn has_living_kubelet(cluster: &Cluster, node: &NodeName) -> bool {
    let ready = cluster.node(node).and_then(|node| node.ready());
    ready.is_some_and(|ready| ready.status != ConditionStatus::Unknown)
}

/// What the pod and its siblings took from creation to Ready: the least, the middle and the most of it.
pub fn siblings_ready(cluster: &Cluster, pod: &Pod) -> Estimate {
    let Some(owner) = &pod.owner else { return GUESSED_READY };
    let took = |pod: &Pod| {
        let since = pod.ready.as_ref().filter(|_| pod.is_ready())?.last_transition?;
        Some(since.since(pod.created)).filter(|span| !span.is_negative() && *span <= LONGEST_START)
    };
    let mut spans: Vec<Span> = cluster.pods_owned_by(&owner.uid).filter_map(|pod| took(pod)).collect();
    spans.sort_unstable();
    let (Some(least), Some(most)) = (spans.first(), spans.last()) else { return GUESSED_READY };
    Estimate {
        soonest: Some(*least),
        likely: Some(spans[spans.len() / 2]),
        latest: Some(*most),
        quality: Quality::Measured,
    }
}
