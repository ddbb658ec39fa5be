//! Outcomes of all evicted pods. They are computed in the background ([`OutcomesJob`](super::OutcomesJob)), kept in
//! [`Predictions`](super::Predictions) until newer ones arrive, and counted for title, verdict and report.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    Model,
    eviction::{EvictionRow, EvictionState},
};
use kordon_core::{
    cluster::{Cluster, Key, NodeName, Pod, ZoneKey},
    plan::{
        OutcomeCounts, OutcomeKind, PodOutcome, PreemptedFor, StuckReason, TerminatingPods,
        environment::has_running_kubelet, outcome::tolerates_fencing,
    },
    pressure::EvictionSignal,
};
use kordon_time::Timestamp;

/// Outcomes of the evicted pods at a point in time.
#[derive(Clone, Debug)]
pub struct EvictionOutcomes {
    /// Time of the cluster state from which the outcomes were computed.
    pub at: Timestamp,
    pub(super) basis: OutcomesBasis,
    pub(super) by_pod: BTreeMap<Key, PodOutcome>,
    /// Outcomes of the pods on nodes that are down whose deletion does not begin within the forecast.
    pub(super) staying: BTreeMap<Key, PodOutcome>,
    /// Outcomes of the pods that kubelets evict under pressure.
    pub(super) by_kubelets: BTreeMap<Key, PodOutcome>,
    /// The pods that replacements preempt on other nodes.
    pub(super) preempted: BTreeMap<Key, PreemptedFor>,
    /// The pods that have nowhere to run, by their node.
    pub(super) nowhere: BTreeMap<NodeName, BTreeMap<Key, OutcomeKind>>,
    /// Pods whose eviction a budget would refuse if all earlier evictions had been granted; `None` if budgets are
    /// unknown.
    pub(super) refused: Option<BTreeSet<Key>>,
}

impl EvictionOutcomes {
    /// Outcomes of the pods that leave.
    pub const fn by_pod(&self) -> &BTreeMap<Key, PodOutcome> {
        &self.by_pod
    }

    /// Outcomes of the pods on nodes that are down whose deletion does not begin within the forecast.
    pub const fn staying(&self) -> &BTreeMap<Key, PodOutcome> {
        &self.staying
    }

    /// The pods that replacements preempt on other nodes.
    pub const fn preempted(&self) -> &BTreeMap<Key, PreemptedFor> {
        &self.preempted
    }

    /// Whether a budget would refuse the eviction of a pod; `None` if budgets are unknown.
    pub(super) fn would_be_refused(&self, pod: &Key) -> Option<bool> {
        Some(self.refused.as_ref()?.contains(pod))
    }

    /// Returns the pods of a node that have nowhere to run; `None` if there are none.
    pub fn nowhere_on(&self, node: &NodeName) -> Option<&BTreeMap<Key, OutcomeKind>> {
        self.nowhere.get(node)
    }
}

/// Inputs of the outcomes: equal inputs mean equal outcomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OutcomesBasis {
    /// Number of changes of the cluster that plans depend on ([`Model::plan_changes`]).
    pub changes: u64,
    /// The nodes that are down at the end of the forecast ([`Forecast::down`](kordon_core::forecast::Forecast::down)).
    pub down: BTreeSet<NodeName>,
    /// The zones whose evictions are paused at the end of the forecast
    /// ([`Forecast::paused_zones`](kordon_core::forecast::Forecast::paused_zones)).
    pub paused: BTreeSet<ZoneKey>,
    /// Number of changes of the leaving pods ([`LeavingChanges::pods`](super::leaving::LeavingChanges::pods)).
    pub leaving: u64,
    /// The pods that kubelets evict under pressure, in order, by signal.
    pub kubelets: BTreeMap<NodeName, (EvictionSignal, Vec<Key>)>,
}

/// Number of evictions of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EvictionCounts {
    /// Outcomes of the pods that leave, whether scheduled or predicted. Outcomes that are still being computed are
    /// missing.
    pub outcomes: OutcomeCounts,
    /// Number of pods that leave and whose outcome is still being computed.
    pub working_out: usize,
    /// Outcomes of the pods that are preempted on other nodes to make room for replacements.
    pub preempted: OutcomeCounts,
    /// Outcomes of the pods of lost nodes that will have nowhere to run, although nothing evicts them within the forecast.
    pub staying: OutcomeCounts,
    /// Number of evictions that a budget would refuse; `None` if budgets or outcomes are unknown.
    pub against_budgets: Option<usize>,
    pub terminating: usize,
    /// Outcomes of the hanging pods: pods of nodes whose kubelet is down, if the pods are terminating or nothing evicts
    /// them. They stay on their nodes until the kubelets are back.
    pub hanging: OutcomeCounts,
    /// Number of the hanging pods (see `hanging`) whose replacements are Pending.
    pub pending_replacements: usize,
    /// Number of nodes with at least one hanging pod (see `hanging`) whose outcome is `Stuck`.
    pub stuck_on: usize,
    /// Number of hanging pods (see `hanging`) that nothing evicts, even if their node is tainted out-of-service.
    pub unfenced: usize,
    /// Number of hanging pods (see `hanging`) that finalizers keep even if their node is tainted out-of-service.
    pub held: usize,
    pub cancelled: usize,
    /// Number of pods that are never evicted (`EvictionState::Never`).
    pub never: usize,
    /// Number of pods in `never` that are stuck: nothing runs in their place, now or once their node is down.
    pub never_stuck: usize,
}

impl Model {
    /// Returns the outcome of an evicted pod. `None` if the eviction was cancelled, or while the outcome is still being
    /// computed.
    pub fn outcome(&self, pod: &Key, row: &EvictionRow) -> Option<Cow<'_, PodOutcome>> {
        match row.state {
            EvictionState::Scheduled { .. } | EvictionState::Predicted { .. } => {
                self.predictions.outcomes_by_pod()?.get(pod).map(Cow::Borrowed)
            }
            EvictionState::Terminating { .. } => {
                Some(Cow::Owned(PodOutcome::for_terminating(&self.cluster, self.cluster.pod(pod)?)))
            }
            EvictionState::Never => {
                let outcomes = self.predictions.outcomes().map(|outcomes| &**outcomes);
                Some(never_evicted(&self.cluster, self.cluster.pod(pod)?, outcomes))
            }
            EvictionState::ByKubelet { .. } => {
                self.predictions.outcomes()?.by_kubelets.get(pod).map(Cow::Borrowed)
            }
            EvictionState::Cancelled { .. } => None,
        }
    }

    /// Returns how many pods have nowhere to run now; `None` if pods are not known.
    pub fn nowhere_now(&self) -> Option<usize> {
        self.eviction_gaps().is_empty().then(|| self.views.nowhere_now())
    }

    /// Returns how many more pods will have nowhere to run; `None` while that is not known or not predicted.
    pub fn nowhere_predicted(&self) -> Option<usize> {
        let is_known = self.eviction_gaps().is_empty() && self.views.counts.working_out == 0;
        self.views.nowhere_predicted().filter(|_| is_known)
    }

    /// Stores new outcomes of the evicted pods, and returns the previous ones.
    pub fn set_outcomes(&mut self, outcomes: EvictionOutcomes) -> Option<Arc<EvictionOutcomes>> {
        let counts = EvictionCounts::new(&self.cluster, &self.views.leaving.evictions, Some(&outcomes));
        self.views.set_counts(counts);
        self.predictions.set_outcomes(outcomes)
    }
}

impl EvictionCounts {
    /// Number of hanging pods that are stuck until their node is back or fenced.
    pub fn stuck(&self) -> usize {
        self.hanging.of(OutcomeKind::Stuck)
    }

    /// Number of pods that leave and whose deletion has not begun.
    pub fn leaving(&self) -> usize {
        self.outcomes.total() + self.working_out
    }

    /// Outcomes of the pods that will have nowhere to run: leaving pods, pods that are preempted for their replacements,
    /// and pods that stay on nodes that will be lost.
    pub fn future_nowhere(&self) -> OutcomeCounts {
        (self.outcomes + self.preempted).only_nowhere() + self.staying
    }

    /// Number of pods that will have nowhere to run.
    pub fn will_have_nowhere(&self) -> usize {
        self.future_nowhere().total()
    }

    /// Number of pods that hang on a node whose kubelet is down, but whose replacements have a node.
    pub fn replaced(&self) -> usize {
        self.hanging.of(OutcomeKind::Replaced).saturating_sub(self.pending_replacements)
    }

    /// Counts the evictions by state and outcome.
    pub(super) fn new(
        cluster: &Cluster,
        evictions: &BTreeMap<Key, EvictionRow>,
        outcomes: Option<&EvictionOutcomes>,
    ) -> Self {
        let mut counts = Self::default();
        let (mut refused, mut stuck_on) = (0, BTreeSet::new());
        let mut terminating = TerminatingPods::new(cluster);
        let mut stuck_already = BTreeSet::new();
        for (key, row) in evictions {
            match row.state {
                EvictionState::Scheduled { .. } | EvictionState::Predicted { .. } => {
                    let is_refused = outcomes.and_then(|outcomes| outcomes.would_be_refused(key));
                    refused += usize::from(is_refused == Some(true));
                    match outcomes.and_then(|outcomes| outcomes.by_pod.get(key)) {
                        Some(outcome) => counts.outcomes.count(outcome.kind()),
                        None => counts.working_out += 1,
                    }
                }
                EvictionState::Terminating { kubelet_silent, .. } => {
                    counts.terminating += 1;
                    if let Some(pod) = cluster.pod(key).filter(|_| kubelet_silent) {
                        let outcome = terminating.outcome(pod);
                        counts.hanging.count(outcome.kind());
                        counts.pending_replacements +=
                            usize::from(matches!(outcome, PodOutcome::Replaced { is_pending: true, .. }));
                        counts.held +=
                            usize::from(matches!(outcome, PodOutcome::Stuck(StuckReason::Finalizers { .. })));
                        stuck_on.extend((outcome.kind() == OutcomeKind::Stuck).then_some(&row.node));
                    }
                }
                // The verdict counts them by itself: how many leave is not known.
                EvictionState::ByKubelet { .. } => {}
                EvictionState::Cancelled { .. } => counts.cancelled += 1,
                EvictionState::Never => {
                    counts.never += 1;
                    let Some(pod) = stuck_pod(cluster, key, outcomes) else { continue };
                    counts.never_stuck += 1;
                    if !has_running_kubelet(cluster, &row.node) {
                        counts.hanging.count(OutcomeKind::Stuck);
                        stuck_on.insert(&row.node);
                        counts.unfenced += usize::from(tolerates_fencing(pod));
                        stuck_already.insert(key);
                    }
                }
            }
        }
        let staying = outcomes.into_iter().flat_map(|outcomes| &outcomes.staying);
        let is_counted =
            |key: &Key| !stuck_already.contains(key) && cluster.pod(key).is_some_and(|pod| pod.lives());
        let staying = staying.filter(|(key, _)| is_counted(key)).map(|(_, outcome)| outcome.kind());
        counts.staying = staying.collect::<OutcomeCounts>().only_nowhere();
        counts.stuck_on = stuck_on.len();
        let preempted = outcomes.into_iter().flat_map(|outcomes| outcomes.preempted.values());
        counts.preempted = preempted.map(|pod| OutcomeKind::for_preempted(&pod.victim)).collect();
        counts.against_budgets =
            outcomes.is_some_and(|outcomes| outcomes.refused.is_some()).then_some(refused);
        counts
    }
}

/// Returns a pod that nothing evicts, if it is stuck.
fn stuck_pod<'a>(
    cluster: &'a Cluster,
    pod: &Key,
    outcomes: Option<&EvictionOutcomes>,
) -> Option<&'a Arc<Pod>> {
    let is_stuck = |pod: &&Arc<Pod>| never_evicted(cluster, pod, outcomes).kind() == OutcomeKind::Stuck;
    cluster.pod(pod).filter(|pod| pod.lives()).filter(is_stuck)
}

/// Returns the outcome of a pod that nothing evicts: the one of the forecast or, until that is computed, the one that
/// follows from the current state of its node.
fn never_evicted<'a>(
    cluster: &Cluster,
    pod: &Pod,
    outcomes: Option<&'a EvictionOutcomes>,
) -> Cow<'a, PodOutcome> {
    match outcomes.and_then(|outcomes| outcomes.staying.get(&pod.key)) {
        Some(outcome) => Cow::Borrowed(outcome),
        None => Cow::Owned(PodOutcome::for_never_evicted(cluster, pod)),
    }
}
