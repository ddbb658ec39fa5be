//! What becomes of the pods of nodes that are lost: which of them find a node among the others, and which stay Pending.
//!
//! N-1 ([`super::headroom()`]), what-ifs and forecasts all ask [`failover`], so that they say the same.

use std::{collections::VecDeque, sync::Arc};

use super::{
    environment::{Bound, Environment},
    landing::Landing,
    owner::{self, Recreation},
    placement_trace::{PreemptedPod, RunTrace},
    replacement::LivePods,
};
use crate::{
    cluster::{Cluster, NodeName, Pod},
    ordered::OrderedSet,
    time::Span,
};

/// What becomes of the pods of lost nodes.
#[derive(Clone, Debug)]
pub struct Failover {
    /// Those that a controller recreates elsewhere in the order in which they were placed, and the others among them.
    pub pods: Vec<FailoverPod>,
    pub trace: RunTrace,
}

/// A pod of a lost node.
#[derive(Clone, Debug)]
pub struct FailoverPod {
    pub pod: Arc<Pod>,
    pub outcome: FailoverOutcome,
}

/// What becomes of a pod.
#[derive(Clone, Debug, PartialEq)]
pub enum FailoverOutcome {
    /// A controller recreates it, and the scheduler looks for a node among those that are left.
    Recreated {
        created: CreationTime,
        landing: Landing,
        /// From its creation until it is likely Ready; none is never.
        time_to_ready: Option<Span>,
    },
    /// It runs again once its node does: its DaemonSet keeps it there, or it is a static pod.
    OnSameNode,
    /// No controller recreates it.
    Lost,
}

/// When a controller creates the replacement of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CreationTime {
    /// When the deletion of the old pod starts.
    AtDeletion,
    /// When the old pod is gone.
    WhenGone,
}

impl Failover {
    /// How many pods stay Pending: pods of the lost nodes, and pods that these preempt elsewhere.
    pub fn pending(&self) -> usize {
        let pending = self.pods.iter().filter(|pod| pod.landing().is_some_and(Landing::is_pending));
        pending.count() + self.preempted_pending().count()
    }

    /// How many pods a controller recreates elsewhere.
    pub fn recreated(&self) -> usize {
        self.pods.iter().filter(|pod| pod.landing().is_some()).count()
    }

    /// The pods that are preempted and find no other node.
    fn preempted_pending(&self) -> impl Iterator<Item = &PreemptedPod> {
        let placements = self.trace.placements.values();
        placements
            .flat_map(|trace| &trace.preempts)
            .filter(|pod| pod.landing.as_ref().is_some_and(Landing::is_pending))
    }
}

impl FailoverPod {
    /// Where its replacement lands; none if it has none elsewhere.
    pub const fn landing(&self) -> Option<&Landing> {
        match &self.outcome {
            FailoverOutcome::Recreated { landing, .. } => Some(landing),
            FailoverOutcome::OnSameNode | FailoverOutcome::Lost => None,
        }
    }
}

/// The pods that no longer run when these nodes are lost. Those that are terminating have been replaced, or will be.
pub fn pods_of(cluster: &Cluster, nodes: &OrderedSet<NodeName>) -> Vec<Arc<Pod>> {
    let runs = |pod: &&Arc<Pod>| pod.termination.is_none() && !pod.is_finished();
    nodes.iter().flat_map(|node| cluster.pods_on(node)).filter(runs).cloned().collect()
}

/// What becomes of these pods once all of them are deleted and `lost` nodes take no pods. The environment has the
/// cluster as it is.
///
/// When each is deleted depends on rates, tolerations and chance, and is not asked here: those of high priority are
/// placed first; of equals, first those whose controllers do not wait for the old pod, then by name.
pub fn failover<E: Environment>(
    cluster: &Cluster,
    pods: &[Arc<Pod>],
    lost: &OrderedSet<NodeName>,
    environment: E,
) -> Failover {
    failover_of_first(usize::MAX, cluster, pods, lost, environment).0
}

/// The same of the first `most` pods alone in the order in which they are placed, and the others, of which nothing is
/// said.
pub fn failover_of_first<E: Environment>(
    most: usize,
    cluster: &Cluster,
    pods: &[Arc<Pod>],
    lost: &OrderedSet<NodeName>,
    environment: E,
) -> (Failover, Vec<Arc<Pod>>) {
    let mut run = FailoverRun::new(pods, Arc::new(lost.clone()), environment);
    while let Some(pod) = run.running.pop_front() {
        run.delete(cluster, pod);
    }
    let others = run.waiting.split_off(most.min(run.waiting.len()));
    while run.advance(cluster) {}
    (run.finish(), others.into_iter().map(|(_, pod)| pod).collect())
}

/// A failover that places one pod at a time.
#[derive(Clone, Debug)]
pub struct FailoverRun<E> {
    environment: E,
    live_pods: LivePods,
    /// Pods that are still to be deleted: all of them are before the first is placed.
    running: VecDeque<Arc<Pod>>,
    lost: Arc<OrderedSet<NodeName>>,
    /// Once all are deleted in the order in which they are placed.
    waiting: VecDeque<(Recreation, Arc<Pod>)>,
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
    pub fn new(pods: &[Arc<Pod>], lost: Arc<OrderedSet<NodeName>>, mut environment: E) -> Self {
        environment.on_loss(&lost);
        let running = pods.iter().cloned().collect();
        let (live_pods, waiting) = (LivePods::default(), VecDeque::new());
        Self { environment, live_pods, running, lost, waiting, placed: Vec::new() }
    }

    /// Deletes the next pod or places the next; false if there is none. The cluster is the same each time.
    pub fn advance(&mut self, cluster: &Cluster) -> bool {
        if let Some(pod) = self.running.pop_front() {
            self.delete(cluster, pod);
            return true;
        }
        let Some((recreation, pod)) = self.waiting.pop_front() else { return false };
        if let Some(outcome) = self.outcome(cluster, &pod, recreation) {
            self.placed.push(FailoverPod { pod, outcome });
        }
        true
    }

    fn delete(&mut self, cluster: &Cluster, pod: Arc<Pod>) {
        self.live_pods.on_deletion(cluster, &pod);
        if pod.node.as_ref().is_some_and(|node| !self.lost.contains(node)) {
            self.environment.on_gone(&pod);
        }
        self.waiting.push_back((owner::recreation(cluster, &pod), pod));
        if self.running.is_empty() {
            self.waiting.make_contiguous().sort_by(|(one, pod), (other, next)| {
                let waits = |recreation: &Recreation| *recreation == Recreation::WhenGone;
                let by_wait = waits(one).cmp(&waits(other));
                next.priority.cmp(&pod.priority).then(by_wait).then(pod.key.cmp(&next.key))
            });
        }
    }

    /// The result once all pods are placed.
    pub fn finish(self) -> Failover {
        Failover { pods: self.placed, trace: self.environment.trace() }
    }

    /// What becomes of a pod; none if it has finished, or where its owner has enough pods without it.
    fn outcome(&mut self, cluster: &Cluster, pod: &Pod, recreation: Recreation) -> Option<FailoverOutcome> {
        match recreation {
            Recreation::Immediately => self.recreated(cluster, pod, CreationTime::AtDeletion),
            Recreation::WhenGone => self.recreated(cluster, pod, CreationTime::WhenGone),
            Recreation::OnSameNode => Some(FailoverOutcome::OnSameNode),
            Recreation::Never(_) => (!pod.is_finished()).then_some(FailoverOutcome::Lost),
        }
    }

    fn recreated(&mut self, cluster: &Cluster, pod: &Pod, created: CreationTime) -> Option<FailoverOutcome> {
        if !self.live_pods.recreate(cluster, pod) {
            return None;
        }
        let landing = self.environment.land(pod, &OrderedSet::new());
        let time_to_ready = match landing {
            Landing::Pending { .. } => None,
            Landing::Node { .. } | Landing::Unknown => {
                self.environment.time_to_ready(pod, &landing).at(Bound::Likely)
            }
        };
        Some(FailoverOutcome::Recreated { created, landing, time_to_ready })
    }
}
