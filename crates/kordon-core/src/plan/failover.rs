//! Outcomes of all pods that leave certain nodes. The pods' replacements are placed one after the other.
//!
//! N-1 ([`super::headroom()`]), what-ifs and forecasts all call [`failover`], which uses [`super::outcome`] for each
//! pod.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use super::{
    departure::Departure,
    environment::{Bound, Environment},
    gaps::failover_gaps,
    job_failures::JobConsequences,
    landing::Landing,
    leaving_pod::{LeavingPod, sort_for_placement},
    outcome::{Departing, PlacedReplacement, PodOutcome},
    outcome_kind::{OutcomeCounts, OutcomeKind},
    owner::{self, NotRecreated, Recreation},
    placement_trace::{PreemptedPod, RunTrace},
    replacement::LivePods,
    successor,
};
use crate::{
    cluster::{Cluster, Key, NodeName, Pod},
    engine::{Tolerance, no_execute, tolerance},
};
use kordon_time::{Span, Timestamp};

/// Nodes that are lost before the first replacement is placed. They take no pods until they are back.
#[derive(Clone, Debug, Default)]
pub struct LostNodes {
    /// Nodes that fail and do not come back. The Node objects remain, and so do the Pod objects that nothing removes. A
    /// failed node remains a domain of spread constraints.
    pub failed: Arc<BTreeSet<NodeName>>,
    /// Nodes whose objects are deleted.
    pub removed: BTreeSet<NodeName>,
    /// Nodes that fail, with the time at which they take pods again.
    pub recovering: BTreeMap<NodeName, Timestamp>,
}

impl LostNodes {
    /// Creates the lost nodes from nodes that fail and do not come back.
    pub fn failed(nodes: Arc<BTreeSet<NodeName>>) -> Self {
        Self { failed: nodes, ..Self::default() }
    }

    fn stays_with_its_pods(&self, node: &NodeName) -> bool {
        self.failed.contains(node) || self.recovering.contains_key(node)
    }
}

/// The outcomes of leaving pods, one for each pod.
#[derive(Clone, Debug)]
pub struct Failover {
    /// Pods in the order in which their replacements were placed.
    pub pods: Vec<FailoverPod>,
    pub trace: RunTrace,
}

/// The outcome of one leaving pod.
#[derive(Clone, Debug)]
pub struct FailoverPod {
    pub pod: Arc<Pod>,
    /// The circumstances under which the pod leaves.
    pub departing: Departing,
    pub outcome: PodOutcome,
    /// Where the replacement lands; `None` if the pod is not replaced.
    pub landing: Option<Landing>,
    /// Time at which the replacement lands, if it is Pending until a node is back.
    pub landed: Option<Timestamp>,
    /// Likely time from the creation of the replacement until it is Ready; `None` if it never is, or if times are not
    /// computed.
    pub time_to_ready: Option<Span>,
}

impl FailoverPod {
    fn without_replacement(LeavingPod { pod, departing, .. }: LeavingPod, outcome: PodOutcome) -> Self {
        Self { pod, departing, outcome, landing: None, landed: None, time_to_ready: None }
    }
}

impl Failover {
    /// Returns the number of leaving pods with each outcome. Pods that are preempted on other nodes are not counted.
    pub fn counts(&self) -> OutcomeCounts {
        self.pods.iter().map(|pod| pod.outcome.kind()).collect()
    }

    /// Returns the number of pods with each outcome, including pods that the replacements preempt.
    pub fn all_counts(&self) -> OutcomeCounts {
        let pods = self.pods.iter().map(|pod| pod.outcome.kind());
        pods.chain(preempted(&self.trace).map(|(_, victim)| OutcomeKind::for_preempted(victim))).collect()
    }
}

/// Returns the preempted pods, each with the pod for whose replacement it makes room.
pub fn preempted(trace: &RunTrace) -> impl Iterator<Item = (&Key, &PreemptedPod)> {
    trace.placements.iter().flat_map(|(pod, placement)| {
        let victims = placement.preempts.iter();
        victims.map(move |victim| (victim.preempted_for(pod), victim))
    })
}

/// Returns the pods that stop running when these nodes are lost. Terminating pods are left out, because they stop
/// anyway.
pub fn pods_of(cluster: &Cluster, nodes: &BTreeSet<NodeName>) -> Vec<Arc<Pod>> {
    let runs = |pod: &&Arc<Pod>| pod.lives();
    nodes.iter().flat_map(|node| cluster.pods_on(node)).filter(runs).cloned().collect()
}

/// Creates a [`LeavingPod`] for each pod of these nodes, which fail and do not come back.
pub fn leave_lost_nodes(cluster: &Cluster, nodes: &BTreeSet<NodeName>) -> Vec<LeavingPod> {
    leave(cluster, pods_of(cluster, nodes), Departing::from_lost_node)
}

/// Returns whether a terminating pod is replaced once its object is gone.
pub fn is_waited_for(cluster: &Cluster, pod: &Pod) -> bool {
    pod.termination.is_some()
        && owner::recreation(cluster, pod) == Recreation::WhenGone
        && owner::needs_another(cluster, pod)
}

/// Creates a [`LeavingPod`] for each of these pods, which are deleted while the kubelet of their node is running.
pub fn leave_running_nodes(cluster: &Cluster, pods: impl IntoIterator<Item = Arc<Pod>>) -> Vec<LeavingPod> {
    leave(cluster, pods, Departing::from_running_node)
}

fn leave(
    cluster: &Cluster,
    pods: impl IntoIterator<Item = Arc<Pod>>,
    departing: impl Fn(&Cluster, &Pod, bool) -> Departing,
) -> Vec<LeavingPod> {
    let is_known = failover_gaps(cluster).unknown().is_empty();
    let mut leaving: Vec<LeavingPod> = pods
        .into_iter()
        .map(|pod| LeavingPod { departing: departing(cluster, &pod, is_known), pod, created: None })
        .collect();
    // All pods leave at the same time, and the result does not depend on what time this is.
    let leaves = Timestamp::EPOCH;
    let departures = leaving.iter().filter(|leaving| leaving.departing.is_deleted).map(|leaving| Departure {
        pod: leaving.pod.clone(),
        leaves,
        gone: leaving.departing.is_gone.then_some(leaves),
        unready: None,
    });
    let jobs = JobConsequences::new(cluster, &departures.collect::<Vec<_>>());
    for LeavingPod { pod, departing, .. } in &mut leaving {
        if let Some(failure) = jobs.failure(&pod.key) {
            let never = Recreation::Never(NotRecreated::JobFails(failure));
            *departing = departing.clone().with_recreation(cluster, pod, never);
        }
    }
    leaving
}

/// Computes the outcomes of these pods, all of which leave before the first replacement is placed. No pod lands on
/// `lost` nodes before they are back. The environment must have the present state of the cluster.
///
/// Replacements are placed in the order of their creation; those of one moment by priority, and in turns by controller.
/// When a node is back, the replacements that are Pending are placed again.
pub fn failover<E: Environment>(
    cluster: &Cluster,
    pods: Vec<LeavingPod>,
    lost: LostNodes,
    environment: E,
) -> Failover {
    failover_of_first(usize::MAX, cluster, pods, lost, environment)
}

/// Like [`failover`], but places only the first `most` replacements. The outcome of the other pods is [left
/// out](PodOutcome::LeftOut).
pub fn failover_of_first<E: Environment>(
    most: usize,
    cluster: &Cluster,
    pods: Vec<LeavingPod>,
    lost: LostNodes,
    environment: E,
) -> Failover {
    let mut run = FailoverRun::new(pods, lost, environment);
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

/// A Pending pod that the scheduler tries again.
enum Retried<'a> {
    /// A pod that was Pending before the failure. Among pods of equal priority it is tried before replacements, because
    /// it has waited longer.
    Earlier(&'a Pod),
    /// A replacement, by its index in `FailoverRun::placed`.
    Replacement(usize),
}

/// A failover in steps. Each step deletes one pod, or places one replacement.
#[derive(Clone, Debug)]
pub struct FailoverRun<E> {
    environment: E,
    live_pods: LivePods,
    /// Pods that are still to be deleted. All pods are deleted before the first replacement is placed.
    running: VecDeque<LeavingPod>,
    lost: LostNodes,
    /// Nodes that are not back yet, with the time at which they come back; the latest first.
    recoveries: Vec<(Timestamp, NodeName)>,
    /// Terminating pods on nodes that are not back yet. The kubelet of a node ends them once the node is back.
    hanging: Vec<Arc<Pod>>,
    /// Pods that still run when their replacements are created. They use their resources until their kubelets end them.
    ending: Vec<Arc<Pod>>,
    /// Nodes that pods have left since the scheduler last tried the Pending pods.
    freed: BTreeSet<NodeName>,
    /// Pods that were Pending before the failure and have taken the room of a leaving pod.
    arrived: BTreeSet<Key>,
    /// Deleted pods whose replacements have not been placed yet. They are sorted into the order of placement when the
    /// last pod has been deleted.
    waiting: VecDeque<LeavingPod>,
    placed: Vec<FailoverPod>,
}

impl<E> FailoverRun<E> {
    /// Converts the environment of the failover to another type, for example to store the failover without a reference
    /// to the cluster.
    pub fn map_environment<F>(self, map: impl FnOnce(E) -> F) -> FailoverRun<F> {
        let Self {
            environment,
            live_pods,
            running,
            lost,
            recoveries,
            hanging,
            ending,
            freed,
            arrived,
            waiting,
            placed,
        } = self;
        FailoverRun {
            environment: map(environment),
            live_pods,
            running,
            lost,
            recoveries,
            hanging,
            ending,
            freed,
            arrived,
            waiting,
            placed,
        }
    }
}

impl<E: Environment> FailoverRun<E> {
    /// Creates a failover of which no step has run. See [`failover`] for the arguments.
    pub fn new(pods: Vec<LeavingPod>, lost: LostNodes, mut environment: E) -> Self {
        environment.on_failure(&lost.failed);
        environment.on_failure(&lost.recovering.keys().cloned().collect());
        environment.on_removal(&lost.removed);
        let mut recoveries: Vec<(Timestamp, NodeName)> =
            lost.recovering.iter().map(|(node, at)| (*at, node.clone())).collect();
        recoveries.sort_by(|one, other| other.cmp(one));
        Self {
            environment,
            live_pods: LivePods::default(),
            running: pods.into(),
            lost,
            recoveries,
            hanging: Vec::new(),
            ending: Vec::new(),
            freed: BTreeSet::new(),
            arrived: BTreeSet::new(),
            waiting: VecDeque::new(),
            placed: Vec::new(),
        }
    }

    /// Deletes the next pod, places the next replacement, lets the next node come back, or ends the pods that are still
    /// running. Returns false if the run is complete. All calls need the same cluster.
    pub fn advance(&mut self, cluster: &Cluster) -> bool {
        if let Some(pod) = self.running.pop_front() {
            self.delete(cluster, pod);
            return true;
        }
        let created =
            self.waiting.front().map_or(Timestamp::MAX, |next| next.created.unwrap_or(Timestamp::MAX));
        if let Some((at, node)) = self.recoveries.pop_if(|(at, _)| *at <= created) {
            self.recover(cluster, &node, at);
            return true;
        }
        match self.waiting.pop_front() {
            Some(leaving) => {
                let placed = self.place(cluster, leaving);
                self.placed.push(placed);
            }
            None if self.ending.is_empty() => return false,
            None => self.end(cluster),
        }
        true
    }

    fn delete(&mut self, cluster: &Cluster, leaving: LeavingPod) {
        let pod = &leaving.pod;
        if leaving.departing.is_deleted && pod.termination.is_none() {
            self.live_pods.on_deletion(cluster, pod);
        }
        match &pod.node {
            Some(node) if self.lost.stays_with_its_pods(node) => {
                if leaving.departing.is_deleted {
                    self.environment.on_deletion(pod);
                }
                if self.lost.recovering.contains_key(node) {
                    self.hanging.push(pod.clone());
                } else if leaving.departing.is_gone {
                    self.environment.on_gone(pod);
                }
            }
            // The replacement is created when the pod's deletion starts, while the pod still runs.
            Some(_) if leaving.departing.recreation == Recreation::Immediately => {
                self.environment.on_deletion(pod);
                self.ending.push(pod.clone());
            }
            // The pod's DaemonSet or kubelet creates the pod again on this node, so the pod frees no room.
            Some(_) if leaving.departing.comes_back() => {}
            Some(node) => {
                self.environment.on_gone(pod);
                self.freed.insert(node.clone());
            }
            None => {}
        }
        self.waiting.push_back(leaving);
        if self.running.is_empty() {
            // Pods that are gone before their replacements are created have freed room. Pods that were Pending before
            // the failure take this room before any replacement is placed.
            self.retry_pending(cluster, None);
            let waiting = std::mem::take(&mut self.waiting);
            self.waiting = sort_for_placement(waiting.into(), cluster).into();
        }
    }

    /// Lets a node come back at this time: its kubelet ends its terminating pods, and it takes pods again.
    fn recover(&mut self, cluster: &Cluster, node: &NodeName, at: Timestamp) {
        self.environment.on_recovery(node);
        for pod in self.hanging.extract_if(.., |pod| pod.node.as_ref() == Some(node)) {
            self.environment.on_gone(&pod);
        }
        self.freed.insert(node.clone());
        self.retry_pending(cluster, Some(at));
    }

    /// Ends the pods that still ran when their replacements were placed.
    fn end(&mut self, cluster: &Cluster) {
        for pod in std::mem::take(&mut self.ending) {
            self.environment.on_gone(&pod);
            self.freed.extend(pod.node.clone());
        }
        self.retry_pending(cluster, None);
    }

    /// Lets the scheduler try all Pending pods again: replacements on all nodes, and pods that were Pending before the
    /// failure on the nodes that have more room now. `at` is the time at which a node came back; `None` if no node came
    /// back.
    fn retry_pending(&mut self, cluster: &Cluster, at: Option<Timestamp>) {
        let earlier = self.waiting_before(cluster);
        let freed = std::mem::take(&mut self.freed);
        let earlier = earlier.into_iter().map(|pod| (Reverse(pod.priority), Retried::Earlier(pod)));
        let is_unplaced = |pod: &FailoverPod| pod.landing.as_ref().is_some_and(Landing::has_nowhere_to_run);
        let replacements = self.placed.iter().enumerate().filter(|(_, pod)| is_unplaced(pod));
        let replacements = replacements
            .map(|(place, pod)| (successor::by_priority(cluster, &pod.pod), Retried::Replacement(place)));
        let mut pending: Vec<(Reverse<i32>, Retried)> = earlier.chain(replacements).collect();
        pending.sort_by_key(|(priority, _)| *priority);
        for (_, pod) in pending {
            match pod {
                Retried::Earlier(pod) => self.place_earlier(cluster, pod, &freed),
                Retried::Replacement(place) => {
                    let (pod, departing) =
                        (self.placed[place].pod.clone(), self.placed[place].departing.clone());
                    let landing = self.environment.land(&pod, &BTreeSet::new());
                    if !landing.has_nowhere_to_run() {
                        self.placed[place] =
                            FailoverPod { landed: at, ..self.landed(pod, departing, landing) };
                    }
                }
            }
        }
    }

    /// Returns the pods that were Pending before the failure and still are, in the order in which the scheduler tries
    /// them; empty if no node has more room. Nominated pods are left out, because preemption has already made room for
    /// them, and the scheduler reserves this room.
    fn waiting_before<'a>(&self, cluster: &'a Cluster) -> Vec<&'a Arc<Pod>> {
        if self.freed.is_empty() {
            return Vec::new();
        }
        let mut waiting = successor::scheduling_queue(cluster);
        waiting.retain(|pod| pod.nominated.is_none() && !self.arrived.contains(&pod.key));
        waiting
    }

    /// Places a pod that was Pending before the failure on one of these nodes, if it fits. Leaves out nodes whose
    /// taints the pod tolerates only for a limited time, because the pod would not stay there.
    fn place_earlier(&mut self, cluster: &Cluster, pod: &Pod, freed: &BTreeSet<NodeName>) {
        let stays_on = |name: &&NodeName| {
            let node = cluster.node(name);
            node.is_none_or(|node| tolerance(&pod.tolerations, &no_execute(node)) == Tolerance::Forever)
        };
        let nodes = freed.iter().filter(stays_on).cloned().collect();
        if self.environment.place_waiting(pod, &nodes) {
            self.arrived.insert(pod.key.clone());
        }
    }

    /// Returns the outcomes of all leaving pods. All steps must have run.
    pub fn finish(self) -> Failover {
        Failover { pods: self.placed, trace: self.environment.trace() }
    }

    /// Places the replacement of a pod, if the pod is replaced, and decides the pod's outcome.
    fn place(&mut self, cluster: &Cluster, leaving: LeavingPod) -> FailoverPod {
        let LeavingPod { pod, departing, .. } = &leaving;
        if !departing.is_replaced() || !self.live_pods.recreate(cluster, pod) {
            let is_removed = pod.node.as_ref().is_some_and(|node| self.lost.removed.contains(node));
            let outcome = departing.decide(pod, None);
            let outcome = if is_removed { outcome.without_node() } else { outcome };
            return FailoverPod::without_replacement(leaving, outcome);
        }
        let landing = self.environment.land(pod, &BTreeSet::new());
        let LeavingPod { pod, departing, .. } = leaving;
        self.landed(pod, departing, landing)
    }

    /// Decides the outcome of a pod whose replacement has been placed.
    fn landed(&self, pod: Arc<Pod>, departing: Departing, landing: Landing) -> FailoverPod {
        let time_to_ready = match landing {
            Landing::Pending { .. } | Landing::Rejected { .. } => None,
            Landing::Node { .. } | Landing::Unknown => {
                self.environment.time_to_ready(&pod, &landing).at(Bound::Likely)
            }
        };
        let trace = self.environment.trace_of(&pod.key);
        let replacement = PlacedReplacement { landing: &landing, trace: trace.as_deref(), ready: None };
        let outcome = departing.decide(&pod, Some(replacement));
        FailoverPod { pod, departing, outcome, landing: Some(landing), landed: None, time_to_ready }
    }
}
