//! What becomes of pods that leave their nodes, once the replacements of all have been placed one after the other.
//!
//! N-1 ([`super::headroom()`]), what-ifs and forecasts all ask [`failover`], which decides each outcome by
//! [`super::outcome`].

use std::{
    collections::{BTreeSet, VecDeque},
    sync::Arc,
};

use super::{
    environment::{Bound, Environment},
    gaps::failover_gaps,
    landing::Landing,
    outcome::{Departing, OutcomeCounts, OutcomeKind, PlacedReplacement, PodOutcome},
    owner::Recreation,
    placement_trace::{PreemptedPod, RunTrace},
    replacement::LivePods,
};
use crate::cluster::{Cluster, Key, NodeName, Pod};
use kordon_time::{Span, Timestamp};

/// A pod that leaves its node.
#[derive(Clone, Debug)]
pub struct LeavingPod {
    pub pod: Arc<Pod>,
    pub departing: Departing,
    /// When its replacement is created; none where that is not asked, or not known.
    pub created: Option<Timestamp>,
}

/// What becomes of pods that leave, each with exactly one outcome.
#[derive(Clone, Debug)]
pub struct Failover {
    /// In the order in which their replacements were placed.
    pub pods: Vec<FailoverPod>,
    pub trace: RunTrace,
}

/// What becomes of a pod.
#[derive(Clone, Debug)]
pub struct FailoverPod {
    pub pod: Arc<Pod>,
    /// How it left.
    pub departing: Departing,
    pub outcome: PodOutcome,
    /// Where its replacement lands; none where none is placed.
    pub landing: Option<Landing>,
    /// From the creation of its replacement until that is likely Ready; none is never, or not worked out.
    pub time_to_ready: Option<Span>,
}

impl FailoverPod {
    fn without_replacement(LeavingPod { pod, departing, .. }: LeavingPod, outcome: PodOutcome) -> Self {
        Self { pod, departing, outcome, landing: None, time_to_ready: None }
    }
}

impl Failover {
    /// How many pods have which outcome, without those that are preempted elsewhere.
    pub fn counts(&self) -> OutcomeCounts {
        self.pods.iter().map(|pod| pod.outcome.kind()).collect()
    }

    /// The outcomes of all pods that leave a node: those of [`Self::counts`], and those that are preempted for them.
    pub fn all_counts(&self) -> OutcomeCounts {
        let pods = self.pods.iter().map(|pod| pod.outcome.kind());
        pods.chain(preempted(&self.trace).map(|(_, kind)| kind)).collect()
    }
}

/// The pods that are preempted, and what becomes of them.
pub fn preempted(trace: &RunTrace) -> impl Iterator<Item = (&Key, OutcomeKind)> {
    let outcome = |pod: &PreemptedPod| match &pod.landing {
        Some(Landing::Node { .. }) => OutcomeKind::Moves,
        Some(Landing::Pending { .. }) => OutcomeKind::Pending,
        Some(Landing::Unknown) => OutcomeKind::Unknown,
        None => OutcomeKind::Lost,
    };
    let placements = trace.placements.values();
    placements.flat_map(|placement| &placement.preempts).map(move |pod| (&pod.pod, outcome(pod)))
}

/// The pods that no longer run when these nodes are lost. Those that are terminating have been replaced, or will be.
pub fn pods_of(cluster: &Cluster, nodes: &BTreeSet<NodeName>) -> Vec<Arc<Pod>> {
    let runs = |pod: &&Arc<Pod>| pod.termination.is_none() && !pod.is_finished();
    nodes.iter().flat_map(|node| cluster.pods_on(node)).filter(runs).cloned().collect()
}

/// The pods of nodes that are lost and do not come back, as they leave.
pub fn leave_lost_nodes(cluster: &Cluster, nodes: &BTreeSet<NodeName>) -> Vec<LeavingPod> {
    leave(cluster, pods_of(cluster, nodes), Departing::from_lost_node)
}

/// The pods of nodes that are deleted, as they leave: the pod garbage collector removes their objects.
pub fn leave_deleted_nodes(cluster: &Cluster, nodes: &BTreeSet<NodeName>) -> Vec<LeavingPod> {
    leave_running_nodes(cluster, pods_of(cluster, nodes))
}

/// Pods that are deleted on nodes with a running kubelet.
pub fn leave_running_nodes(cluster: &Cluster, pods: impl IntoIterator<Item = Arc<Pod>>) -> Vec<LeavingPod> {
    leave(cluster, pods, Departing::from_running_node)
}

fn leave(
    cluster: &Cluster,
    pods: impl IntoIterator<Item = Arc<Pod>>,
    departing: impl Fn(&Cluster, &Pod, bool) -> Departing,
) -> Vec<LeavingPod> {
    let is_known = failover_gaps(cluster).unknown().is_empty();
    let leaving =
        |pod: Arc<Pod>| LeavingPod { departing: departing(cluster, &pod, is_known), pod, created: None };
    pods.into_iter().map(leaving).collect()
}

/// What becomes of these pods once all of them have left and `lost` nodes take no pods. The environment has the
/// cluster as it is.
///
/// Replacements are placed in the order in which they are created, where that is known, the others after them. Of equals,
/// those of high priority are first, then those whose controllers do not wait for the old pod, then by name.
pub fn failover<E: Environment>(
    cluster: &Cluster,
    pods: Vec<LeavingPod>,
    lost: &BTreeSet<NodeName>,
    environment: E,
) -> Failover {
    failover_of_first(usize::MAX, cluster, pods, lost, environment)
}

/// The same, where only the replacements of the first `most` pods are placed; the others are
/// [left out](PodOutcome::LeftOut).
pub fn failover_of_first<E: Environment>(
    most: usize,
    cluster: &Cluster,
    pods: Vec<LeavingPod>,
    lost: &BTreeSet<NodeName>,
    environment: E,
) -> Failover {
    let mut run = FailoverRun::new(pods, Arc::new(lost.clone()), environment);
    while let Some(pod) = run.running.pop_front() {
        run.delete(cluster, pod);
    }
    let others = run.waiting.split_off(most.min(run.waiting.len()));
    while run.advance(cluster) {}
    let mut failover = run.finish();
    let left_out = |leaving| FailoverPod::without_replacement(leaving, PodOutcome::LeftOut);
    failover.pods.extend(others.into_iter().map(left_out));
    failover
}

/// A failover that places one pod at a time.
#[derive(Clone, Debug)]
pub struct FailoverRun<E> {
    environment: E,
    live_pods: LivePods,
    /// Pods that are still to be deleted: all of them are before the first is placed.
    running: VecDeque<LeavingPod>,
    lost: Arc<BTreeSet<NodeName>>,
    /// Once all are deleted in the order in which they are placed.
    waiting: VecDeque<LeavingPod>,
    placed: Vec<FailoverPod>,
}

impl<E> FailoverRun<E> {
    /// The same in another form of its environment.
    pub fn map_environment<F>(self, map: impl FnOnce(E) -> F) -> FailoverRun<F> {
        let Self { environment, live_pods, running, lost, waiting, placed } = self;
        FailoverRun { environment: map(environment), live_pods, running, lost, waiting, placed }
    }
}

impl<E: Environment> FailoverRun<E> {
    /// The start of [`failover`].
    pub fn new(pods: Vec<LeavingPod>, lost: Arc<BTreeSet<NodeName>>, mut environment: E) -> Self {
        environment.on_loss(&lost);
        let (live_pods, waiting) = (LivePods::default(), VecDeque::new());
        Self { environment, live_pods, running: pods.into(), lost, waiting, placed: Vec::new() }
    }

    /// Deletes the next pod or places the next; false if there is none. The cluster is the same each time.
    pub fn advance(&mut self, cluster: &Cluster) -> bool {
        if let Some(pod) = self.running.pop_front() {
            self.delete(cluster, pod);
            return true;
        }
        let Some(leaving) = self.waiting.pop_front() else { return false };
        let placed = self.place(cluster, leaving);
        self.placed.push(placed);
        true
    }

    fn delete(&mut self, cluster: &Cluster, leaving: LeavingPod) {
        let pod = &leaving.pod;
        if leaving.departing.is_deleted {
            self.live_pods.on_deletion(cluster, pod);
        }
        if pod.node.as_ref().is_some_and(|node| !self.lost.contains(node)) {
            self.environment.on_gone(pod);
        }
        self.waiting.push_back(leaving);
        if self.running.is_empty() {
            let waits = |leaving: &LeavingPod| leaving.departing.recreation == Recreation::WhenGone;
            self.waiting.make_contiguous().sort_by(|one, other| {
                let created = |leaving: &LeavingPod| leaving.created.unwrap_or(Timestamp::MAX);
                let by_time = created(one).cmp(&created(other));
                let by_priority = other.pod.priority.cmp(&one.pod.priority);
                let by_name = one.pod.key.cmp(&other.pod.key);
                by_time.then(by_priority).then(waits(one).cmp(&waits(other))).then(by_name)
            });
        }
    }

    /// The result once all pods are placed.
    pub fn finish(self) -> Failover {
        Failover { pods: self.placed, trace: self.environment.trace() }
    }

    /// Places the replacement of a pod, if there is one, and decides what becomes of the pod.
    fn place(&mut self, cluster: &Cluster, leaving: LeavingPod) -> FailoverPod {
        let LeavingPod { pod, departing, .. } = &leaving;
        if !departing.is_replaced() || !self.live_pods.recreate(cluster, pod) {
            let outcome = departing.decide(pod, None);
            return FailoverPod::without_replacement(leaving, outcome);
        }
        let landing = self.environment.land(pod, &BTreeSet::new());
        let time_to_ready = match landing {
            Landing::Pending { .. } => None,
            Landing::Node { .. } | Landing::Unknown => {
                self.environment.time_to_ready(pod, &landing).at(Bound::Likely)
            }
        };
        let trace = self.environment.trace_of(&pod.key);
        let replacement = PlacedReplacement { landing: &landing, trace: trace.as_deref(), ready: None };
        let outcome = departing.decide(pod, Some(replacement));
        let LeavingPod { pod, departing, .. } = leaving;
        FailoverPod { pod, departing, outcome, landing: Some(landing), time_to_ready }
    }
}
