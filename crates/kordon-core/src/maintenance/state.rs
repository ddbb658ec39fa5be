//! The predicted cluster between waves. Replacements run where the plan of a wave has placed them.

use std::{collections::BTreeSet, sync::Arc};

use crate::{
    cluster::{
        Change, Cluster, ConditionStatus, Key, Node, NodeName, ObjectEvent, Phase, Pod, PodReady,
        TaintEffect, Uid, Version,
    },
    placement::{SchedulingRequest, Snapshot},
    plan::{
        Environment, EvictionRules, Landing, OutcomeKind, PlacingEnvironment, Plan, PodOutcome, PodPlan,
        PreemptedPod, TypicalEnvironment, failover, likely_ready, owner, placing_environment::tainted,
        successor,
    },
};
use kordon_time::Timestamp;

/// A cluster at the start of a wave.
#[derive(Clone, Debug)]
pub(super) struct WaveState {
    pub cluster: Cluster,
    /// Replacements of earlier waves, by uid.
    moved: BTreeSet<Uid>,
    /// Number of replacements so far, from which the names of replacements are made.
    made: usize,
}

impl WaveState {
    /// Creates the state before the first wave. Taints the nodes that are silent now, so that nothing moves to them.
    /// Which nodes will be silent during a later wave is not known.
    pub fn new(cluster: &Cluster, rules: EvictionRules, now: Timestamp) -> Self {
        let mut state = Self { cluster: cluster.clone(), moved: BTreeSet::new(), made: 0 };
        for node in rules.silent_nodes(cluster, now).iter().filter_map(|name| cluster.node(name)) {
            let version = Version(node.version.0 + 1);
            let node = Node { version, ..tainted(node, &[TaintEffect::NoSchedule]) };
            state.apply(Change::Node(ObjectEvent::Applied(node)));
        }
        state
    }

    /// Whether a pod is the replacement of a pod that left in an earlier wave.
    pub fn has_moved(&self, uid: &Uid) -> bool {
        self.moved.contains(uid)
    }

    /// Returns the cluster with these nodes cordoned.
    pub fn with_cordoned<'a>(&self, nodes: impl IntoIterator<Item = &'a NodeName>) -> Cluster {
        let mut cluster = self.cluster.clone();
        for node in nodes.into_iter().filter_map(|name| self.cluster.node(name)) {
            let version = Version(node.version.0 + 1);
            let cordoned = Node { unschedulable: true, version, ..(**node).clone() };
            cluster.apply(Change::Node(ObjectEvent::Applied(cordoned)), &mut Vec::new());
        }
        cluster
    }

    /// Returns the state at `until`, after the drains of a plan: the drained nodes are back, and schedulable if they
    /// were before.
    pub fn after(&self, plan: &Plan, rules: EvictionRules, until: Timestamp) -> Self {
        let mut after = self.clone();
        for row in &plan.pods {
            let Some(pod) = self.cluster.pod(&row.pod).cloned() else { continue };
            let leaves = row.gone.likely.is_some();
            if !leaves {
                continue;
            }
            after.remove(&pod);
            if let Some(node) = new_node(row) {
                after.add_replacement(&pod, node, row.ready_again.is_some());
            } else if let Some(own) = row.node.as_ref().filter(|_| is_pending(row)) {
                // The replacement is Pending until the drained node is back, and then runs there.
                after.add_replacement(&pod, own, pod.is_ready());
            }
            row.preempted().for_each(|preempted| after.move_preempted(preempted));
        }
        after.end_terminations(rules, plan.made, until);
        after.end_starts(plan.made, until);
        after
    }

    /// Removes a pod that a replacement preempts, and adds the preempted pod's own replacement.
    fn move_preempted(&mut self, preempted: &PreemptedPod) {
        let Some(pod) = self.cluster.pod(&preempted.pod).cloned() else { return };
        self.remove(&pod);
        if let Some(Landing::Node { node, .. }) = &preempted.landing {
            self.add_replacement(&pod, node, pod.is_ready());
        }
    }

    /// Removes the pods that their kubelets likely end between `from` and `until`, and adds the replacements that their
    /// owners create then. A replacement that its owner creates at the start of the deletion already exists.
    fn end_terminations(&mut self, rules: EvictionRules, from: Timestamp, until: Timestamp) {
        let cluster = self.cluster.clone();
        let ended: Vec<&Arc<Pod>> =
            cluster.pods().iter().filter(|pod| ends(&cluster, pod, from, until)).collect();
        if ended.is_empty() {
            return;
        }
        let comes_again = |pod: &Pod| {
            failover::is_waited_for(&cluster, pod)
                && owner::created_after(&cluster, pod)
                    .all(|lower| lower.pod.is_some_and(|pod| pod.is_ready()))
        };
        ended.iter().for_each(|pod| self.remove(pod));
        let without = self.cluster.clone();
        let mut again = ended.into_iter().filter(|pod| comes_again(pod)).peekable();
        if again.peek().is_none() {
            return;
        }
        let snapshot = Snapshot::new(&without, rules.version);
        let mut environment = PlacingEnvironment::new(&without, snapshot, from);
        for pod in again {
            let landing = environment.land(pod, &BTreeSet::new());
            let is_ready = environment.time_to_ready(pod, &landing).likely.is_some();
            if let Landing::Node { node, .. } = &landing {
                self.add_replacement(pod, node, is_ready);
            }
        }
    }

    /// Makes pods Ready that were starting at `from` and are likely Ready at `until`.
    fn end_starts(&mut self, from: Timestamp, until: Timestamp) {
        let cluster = self.cluster.clone();
        let environment = TypicalEnvironment { cluster: &cluster, now: from };
        let starts = |pod: &&Arc<Pod>| {
            pod.node.is_some()
                && likely_ready(&cluster, pod, &environment, from).is_some_and(|ready| ready <= until)
        };
        for pod in cluster.pods().iter().filter(starts) {
            let ready = Some(PodReady { status: ConditionStatus::True, last_transition: None });
            let version = Version(pod.version.0 + 1);
            let started = Pod { ready, version, phase: Phase::Running, ..(**pod).clone() };
            self.apply(Change::Pod(ObjectEvent::Applied(started)));
        }
    }

    fn remove(&mut self, pod: &Pod) {
        self.apply(Change::Pod(ObjectEvent::Deleted(pod.key.clone())));
    }

    /// Adds a replacement of `pod` to this node. A replacement that is not Ready keeps the old pod's `ending`, which
    /// says why it is not Ready.
    fn add_replacement(&mut self, pod: &Arc<Pod>, node: &NodeName, is_ready: bool) {
        self.made += 1;
        let name = if SchedulingRequest::keeps_name_of(pod) {
            pod.key.name.clone()
        } else {
            format!("{}-{}", pod.key.name, self.made).into()
        };
        let status = if is_ready { ConditionStatus::True } else { ConditionStatus::False };
        let uid: Uid = format!("{}-{}", pod.uid, self.made).as_str().into();
        let new = Pod {
            key: Key { name, ..pod.key.clone() },
            uid: uid.clone(),
            node: Some(node.clone()),
            phase: if is_ready { Phase::Running } else { pod.phase },
            ready: Some(PodReady { status, last_transition: None }),
            termination: None,
            disruption_target: None,
            nominated: None,
            ending: pod.ending.clone().filter(|_| !is_ready),
            unscheduled: None,
            ..successor::successor(&self.cluster, pod).into_owned()
        };
        self.moved.insert(uid);
        self.apply(Change::Pod(ObjectEvent::Applied(new)));
    }

    fn apply(&mut self, change: Change) {
        self.cluster.apply(change, &mut Vec::new());
    }
}

/// The node on which a replacement of the pod runs after the drains; `None` if there is none.
fn new_node(row: &PodPlan) -> Option<&NodeName> {
    match (&row.outcome, &row.landing) {
        (PodOutcome::Moves { node, .. }, _) => Some(node),
        // A pod that was already terminating is created again by its owner once it is gone.
        (PodOutcome::WaitsForOldPod, Some(Landing::Node { node, .. })) => Some(node),
        _ => None,
    }
}

/// Whether the kubelet of a terminating pod likely ends it between `from` and `until`.
fn ends(cluster: &Cluster, pod: &Pod, from: Timestamp, until: Timestamp) -> bool {
    let Some(termination) = pod.termination.as_ref().filter(|_| !pod.is_held()) else { return false };
    let grace = cluster.local(termination.deadline).since(from).or_zero();
    let takes = TypicalEnvironment { cluster, now: from }.time_to_terminate(pod, grace);
    takes.likely.is_some_and(|takes| from + takes <= until)
}

/// Whether the replacement of a pod finds no node for now.
pub(super) fn is_pending(row: &PodPlan) -> bool {
    row.outcome.kind() == OutcomeKind::Pending
}
