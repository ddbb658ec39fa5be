//! Environment of a simulated plan: a model of the kubelets, which end pods, and of the controllers and the scheduler,
//! which replace the pods.
//!
//! [`TypicalEnvironment`] does not compute placements; [`super::PlacingEnvironment`] does.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    landing::Landing,
    owner,
    placement_trace::{PlacementTrace, RunTrace},
};
use crate::cluster::{Cluster, ConditionStatus, Key, Node, NodeName, Pod, Termination};
use kordon_time::{ClusterTime, Span, Timestamp};

/// A model of kubelets, controllers and the scheduler while a plan is applied. Each run of a simulation has its own
/// copy.
pub trait Environment: Clone {
    /// Returns how long a terminating pod still exists. `grace` is its remaining grace period. Not called if the API
    /// server removes the pod immediately (grace 0), or if a finalizer holds the pod.
    fn time_to_terminate(&self, pod: &Pod, grace: Span) -> Estimate;

    /// Returns where the replacement of a pod lands if the replacement is created now. `closed` nodes are cordoned.
    /// Replacements that were created earlier have already landed.
    fn land(&mut self, pod: &Pod, closed: &BTreeSet<NodeName>) -> Landing;

    /// Places an existing Pending pod on one of these nodes, which have room now. Returns whether the pod fits; always
    /// false if placements are not computed.
    fn place_waiting(&mut self, _pod: &Pod, _nodes: &BTreeSet<NodeName>) -> bool {
        false
    }

    /// Returns the cordoned nodes that would take a Pending pod if they were uncordoned, sorted; empty if placements
    /// are not computed.
    fn takers_if_uncordoned(&mut self, _pod: &Pod) -> Vec<NodeName> {
        Vec::new()
    }

    /// Returns the time from the creation of a pod's replacement until it is Ready.
    fn time_to_ready(&self, pod: &Pod, landing: &Landing) -> Estimate;

    /// Returns the shares of pods that outlast their likely termination time.
    fn stragglers(&self) -> Stragglers {
        Stragglers::default()
    }

    /// Called when a pod's deletion starts. The pod no longer counts for topology spread, but still uses its resources.
    fn on_deletion(&mut self, _pod: &Pod) {}

    /// Called when a pod's object is gone, so that its resources are free.
    fn on_gone(&mut self, _pod: &Pod) {}

    fn on_node_change(&mut self, _node: Arc<Node>) {}

    /// Called when these nodes fail. The objects of the nodes and of their pods stay, but the nodes take no more pods.
    fn on_failure(&mut self, _nodes: &BTreeSet<NodeName>) {}

    /// Called when a failed node is back and takes pods again.
    fn on_recovery(&mut self, _node: &NodeName) {}

    /// Called when the objects of these nodes are deleted.
    fn on_removal(&mut self, _nodes: &BTreeSet<NodeName>) {}

    /// Makes replacements land where they landed in another run of the same simulation. The runs of a plan then differ
    /// only in times, and the plan shows one landing for each pod. Replacements that stayed Pending are placed again in
    /// each run.
    fn fix_landings(&mut self, _landings: BTreeMap<Key, Landing>, _trace: &RunTrace) {}

    /// Returns how replacements have been placed so far.
    fn trace(&self) -> RunTrace {
        RunTrace::default()
    }

    /// Returns how the replacement of a pod was placed; `None` if placements are not computed.
    fn trace_of(&self, _pod: &Key) -> Option<Arc<PlacementTrace>> {
        None
    }
}

/// An estimated duration. A value of `None` means that the duration never ends.
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

    /// Returns the sum of two estimates: the duration `next` starts when the duration `self` ends.
    pub fn and_then(self, next: Self) -> Self {
        let sum = |one: Option<Span>, other: Option<Span>| Some(one? + other?);
        Self {
            soonest: sum(self.soonest, next.soonest),
            likely: sum(self.likely, next.likely),
            latest: sum(self.latest, next.latest),
            quality: self.quality.min(next.quality),
        }
    }

    /// Returns the shorter of two estimated durations that start at the same time.
    pub fn shorter(self, other: Self) -> Self {
        let least = |one: Option<Span>, other: Option<Span>| one.into_iter().chain(other).min();
        Self {
            soonest: least(self.soonest, other.soonest),
            likely: least(self.likely, other.likely),
            latest: least(self.latest, other.latest),
            quality: self.quality.min(other.quality),
        }
    }

    /// Returns the longer of two estimated durations that start at the same time.
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

/// Shares of pods, from 0 to 1, that outlast their likely termination time. Zero by default.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stragglers {
    /// Share of pods that ignore SIGTERM and are killed at the end of their grace period.
    pub use_up_grace: f64,
    /// Share of pods that finish their work after SIGTERM. They end between their likely end and the end of their grace
    /// period; all times in between are equally likely.
    pub use_part_of_grace: f64,
}

impl Stragglers {
    /// Returns the probability that a pod still exists between its likely end (`share` 0) and the end of its grace
    /// period (`share` 1).
    pub fn remain_after(&self, share: f64) -> f64 {
        if share >= 1.0 { 0.0 } else { self.use_up_grace + self.use_part_of_grace * (1.0 - share.max(0.0)) }
    }
}

/// Which value of each [`Estimate`] a simulated run uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    Soonest,
    Likely,
    Latest,
}

/// Reliability of an estimated duration, from the worst to the best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Quality {
    Guess,
    /// The duration is a field of an object, for example a grace period.
    Declared,
    /// The duration was measured on pods of the same owner.
    Measured,
    /// The duration follows from the rules of the API.
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

/// Likely time from SIGTERM to the end of a pod that handles this signal, unless its grace period is shorter. A pod
/// that has already been terminating for longer is likely to use its whole grace period.
const LIKELY_TERMINATION: Span = Span::from_secs(5);
/// Guessed shares of stragglers, that is, of pods that outlast their likely termination time. A single pod is unlikely
/// to be a straggler, but a node with many pods is likely to have one.
const STRAGGLERS: Stragglers = Stragglers { use_up_grace: 0.2, use_part_of_grace: 0.2 };
/// Time that the kubelet takes in addition to the grace period, for its minimum wait and the update of the status.
const KUBELET: Span = Span::from_secs(4);
/// Assumed time to Ready if neither the pod nor another pod of its owner shows how long it takes.
const GUESSED_READY: Estimate = Estimate {
    soonest: Some(Span::from_secs(1)),
    likely: Some(Span::from_secs(10)),
    latest: Some(Span::from_secs(60)),
    quality: Quality::Guess,
};
/// Maximum time from the binding of a pod until its kubelet accepts it; measured on the pods of `tests/cases`.
const ACCEPTED: Span = Span::from_secs(3);
/// Maximum plausible time from the start of a pod to Ready. If the Ready condition changed later than this, the pod
/// has probably been Ready before.
const LONGEST_START: Span = Span::from_secs(600);

/// Maximum time by which a pod seems Ready before its start, because times are rounded to seconds and the clocks of
/// kubelets differ a little.
const ROUNDED: Span = Span::from_secs(2);

/// Typical behaviour: running kubelets end pods within their grace period, and each replacement finds a node.
#[derive(Clone, Copy, Debug)]
pub struct TypicalEnvironment<'a> {
    pub cluster: &'a Cluster,
    pub now: Timestamp,
}

impl Environment for TypicalEnvironment<'_> {
    fn time_to_terminate(&self, pod: &Pod, grace: Span) -> Estimate {
        if pod.node.as_ref().is_some_and(|node| !has_running_kubelet(self.cluster, node)) {
            return Estimate::NEVER;
        }
        let overdue = pod
            .termination
            .as_ref()
            .map(|termination| self.now.since(self.cluster.local(termination.deadline)));
        if overdue.is_some_and(|overdue| overdue > KUBELET * 4) {
            // Something that kordon does not see keeps the pod, such as a volume that cannot be unmounted.
            return Estimate::NEVER;
        }
        let started =
            |termination: &Termination| self.cluster.local(termination.deadline) - termination.grace;
        let since = pod.termination.as_ref().map(|termination| self.now.since(started(termination)));
        // After the pre-stop sleep, the kubelet sends SIGTERM (`executePreStopHook`), unless the grace period ends
        // first and the kubelet kills the pod.
        let sleep =
            Span::from_secs(pod.resources.kubelet.pre_stop_sleep.into()) - since.unwrap_or(Span::ZERO);
        let sleeps = sleep.or_zero().min(grace);
        let ignores_signal = sleep + LIKELY_TERMINATION < Span::ZERO;
        let uses_grace = grace <= sleeps + LIKELY_TERMINATION || ignores_signal;
        let likely = if uses_grace { grace } else { sleeps + LIKELY_TERMINATION };
        let quality = if uses_grace { Quality::Declared } else { Quality::Guess };
        Estimate { soonest: Some(sleeps), likely: Some(likely), latest: Some(grace + KUBELET), quality }
    }

    fn land(&mut self, pod: &Pod, _closed: &BTreeSet<NodeName>) -> Landing {
        match owner::named_node(self.cluster, pod) {
            Some(node) => Landing::Node { node, why: "its template names the node".into() },
            None => Landing::Unknown,
        }
    }

    fn stragglers(&self) -> Stragglers {
        STRAGGLERS
    }

    fn time_to_ready(&self, pod: &Pod, landing: &Landing) -> Estimate {
        match landing {
            Landing::Pending { .. } | Landing::Rejected { .. } => Estimate::NEVER,
            Landing::Node { .. } | Landing::Unknown => siblings_ready(self.cluster, pod),
        }
    }
}

/// Returns whether the node exists and its Ready condition is not Unknown, so that its kubelet is expected to end pods.
pub fn has_running_kubelet(cluster: &Cluster, node: &NodeName) -> bool {
    let ready = cluster.node(node).and_then(|node| node.ready());
    ready.is_some_and(|ready| ready.status != ConditionStatus::Unknown)
}

/// Time to Ready of a replacement that probably never becomes Ready: the pod that it replaces keeps failing, or none of
/// its owner's other pods is Ready and one of them keeps failing.
const NOT_EXPECTED: Estimate =
    Estimate { soonest: Some(Span::from_secs(1)), likely: None, latest: None, quality: Quality::Guess };

/// Returns the time from which the start of a pod is measured: its creation or, if this is later, three seconds before
/// its kubelet accepted it. The time for which the pod was Pending is left out, because it says nothing about other
/// pods.
pub(super) fn start_of(cluster: &Cluster, pod: &Pod) -> ClusterTime {
    let accepted = pod.started.map(|at| cluster.stated_by_kubelet(pod, at));
    accepted.map_or(pod.created, |accepted| (accepted - ACCEPTED).max(pod.created))
}

/// Returns how long the pods of the same owner took to become Ready from their start (`start_of`): minimum, median and
/// maximum. A replacement is not expected to become Ready if the pod keeps failing, or if none of its owner's other
/// pods is Ready and one of them keeps failing.
pub fn siblings_ready(cluster: &Cluster, pod: &Pod) -> Estimate {
    if pod.trouble().is_some() {
        return NOT_EXPECTED;
    }
    let Some(owner) = &pod.owner else { return GUESSED_READY };
    let took = |pod: &Pod| {
        let since = pod.ready.as_ref().filter(|_| pod.is_ready())?.last_transition?;
        let span = cluster.stated_by_kubelet(pod, since).since(start_of(cluster, pod));
        (-ROUNDED..=LONGEST_START).contains(&span).then(|| span.or_zero())
    };
    let mut spans: Vec<Span> = cluster.pods_owned_by(&owner.uid).filter_map(|pod| took(pod)).collect();
    spans.sort_unstable();
    let (Some(least), Some(most)) = (spans.first(), spans.last()) else {
        let mut siblings = cluster.pods_owned_by(&owner.uid);
        return if siblings.any(|pod| pod.trouble().is_some()) { NOT_EXPECTED } else { GUESSED_READY };
    };
    Estimate {
        soonest: Some(*least),
        likely: Some(spans[spans.len() / 2]),
        latest: Some(*most),
        quality: Quality::Measured,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{
        Change, Condition, KubeletSpec, Lease, ObjectEvent, Owner, OwnerKind, PodEnding, PodReady,
        PodResources, READY, WorkloadKind,
    };

    /// Kubernetes 1.37 `kubelet/kuberuntime/kuberuntime_container.go`, `killContainer`, and
    /// `kubelet/lifecycle/handlers.go`,
    /// `runSleepHandler`: the sleep is part of the grace period.
    #[test]
    fn no_pod_ends_before_its_pre_stop_sleep_is_over() {
        let kubelet = KubeletSpec { pre_stop_sleep: 120, ..KubeletSpec::default() };
        let resources = PodResources { kubelet, ..PodResources::default() };
        let pod = Pod { node: Some("n1".into()), resources: resources.into(), ..Pod::default() };
        let ready = Condition { kind: READY.into(), status: ConditionStatus::True, ..Condition::default() };
        let node = Node { name: "n1".into(), conditions: [ready].into(), ..Node::default() };
        let mut cluster = Cluster::default();
        cluster.apply(Change::Node(ObjectEvent::Applied(node)), &mut Vec::new());
        let now = Timestamp::from_secs(1000);
        let environment = TypicalEnvironment { cluster: &cluster, now };
        let ends = |pod: &Pod, grace: i64| {
            let takes = environment.time_to_terminate(pod, Span::from_secs(grace));
            [takes.soonest, takes.likely, takes.latest].map(|span| span.map(Span::as_secs))
        };
        assert_eq!(ends(&pod, 180), [Some(120), Some(125), Some(184)]);
        assert_eq!(ends(&pod, 30), [Some(30), Some(30), Some(34)], "killed while it sleeps");
        let left = |seconds: i64| {
            let deadline = ClusterTime::new(now + Span::from_secs(seconds));
            let termination = Some(Termination { deadline, grace: Span::from_secs(180) }.into());
            ends(&Pod { termination, ..pod.clone() }, seconds)
        };
        assert_eq!(left(160), [Some(100), Some(105), Some(164)], "it has slept for 20 s");
        assert_eq!(left(50), [Some(0), Some(50), Some(54)], "it has ignored SIGTERM for 10 s");
    }

    #[test]
    fn the_replacement_of_a_pod_that_fails_again_and_again_is_not_counted_on() {
        let owner = Owner {
            kind: OwnerKind::Workload(WorkloadKind::ReplicaSet),
            name: "web".into(),
            uid: "web".into(),
        };
        let pod = |name: &str| Pod {
            key: Key::new("shop", name),
            owner: Some(owner.clone().into()),
            ..Pod::default()
        };
        let since = Some(ClusterTime::new(Timestamp::EPOCH + Span::from_secs(7)));
        let ready = Some(PodReady { status: ConditionStatus::True, last_transition: since });
        let ending = PodEnding { trouble: Some("CrashLoopBackOff".into()), ..PodEnding::default() };
        let crashing = Pod { ending: Some(ending.into()), ..pod("web-a") };
        let mut cluster = Cluster::default();
        for pod in [crashing.clone(), Pod { ready: ready.clone(), ..pod("web-b") }] {
            cluster.apply(Change::Pod(ObjectEvent::Applied(pod)), &mut Vec::new());
        }
        assert_eq!(siblings_ready(&cluster, &crashing), NOT_EXPECTED, "although its sibling is Ready");
        assert_eq!(siblings_ready(&cluster, &pod("web-b")).likely, Some(Span::from_secs(7)));
        let started = Some(ClusterTime::new(Timestamp::EPOCH + Span::from_secs(5)));
        let waited = Pod { ready, started, ..pod("web-b") };
        cluster.apply(Change::Pod(ObjectEvent::Applied(waited)), &mut Vec::new());
        assert_eq!(
            siblings_ready(&cluster, &pod("web-b")).likely,
            Some(Span::from_secs(5)),
            "without Pending"
        );
    }

    #[test]
    fn the_time_to_ready_is_measured_by_one_clock() {
        let owner = Owner {
            kind: OwnerKind::Workload(WorkloadKind::ReplicaSet),
            name: "web".into(),
            uid: "web".into(),
        };
        let at = |seconds: i64| ClusterTime::new(Timestamp::EPOCH + Span::from_secs(100_000 + seconds));
        let likely = |clock: i64| {
            let by_kubelet = |seconds: i64| at(seconds + clock);
            let pod = Pod {
                key: Key::new("shop", "web-a"),
                node: Some("n1".into()),
                owner: Some(owner.clone().into()),
                created: at(0),
                started: Some(by_kubelet(4)),
                ready: Some(PodReady { status: ConditionStatus::True, last_transition: Some(by_kubelet(7)) }),
                ..Pod::default()
            };
            let lease = Lease {
                node: "n1".into(),
                renewed: Some(by_kubelet(60)),
                written: Some(at(60)),
                ..Lease::default()
            };
            let mut cluster = Cluster::default();
            cluster.apply(Change::Pod(ObjectEvent::Applied(pod.clone())), &mut Vec::new());
            cluster.apply(Change::Lease(ObjectEvent::Applied(lease)), &mut Vec::new());
            siblings_ready(&cluster, &pod).likely
        };
        for clock in [0, -28_800, 3600] {
            assert_eq!(likely(clock), Some(Span::from_secs(6)), "a clock {clock} s ahead");
        }
    }
}
