//! What becomes of every pod that is evicted: worked out beside the loop ([`OutcomesJob`](super::OutcomesJob)), kept in
//! [`Model::outcomes`] until something newer is known, and counted for title, verdict and report.

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
    cluster::{Cluster, Key, NodeName, SortedWalk},
    plan::{OutcomeCounts, OutcomeKind, PodOutcome},
};
use kordon_time::Timestamp;

/// What becomes of the pods that are evicted, at a moment.
#[derive(Clone, Debug)]
pub struct EvictionOutcomes {
    /// The time of the cluster state that it was worked out from.
    pub at: Timestamp,
    pub(super) basis: OutcomesBasis,
    pub(super) by_pod: BTreeMap<Key, PodOutcome>,
    /// The outcomes of pods elsewhere that are preempted.
    pub(super) preempted: OutcomeCounts,
    /// The pods that have nowhere to run, by their node.
    pub(super) nowhere: BTreeMap<NodeName, BTreeMap<Key, OutcomeKind>>,
    /// The pods whose eviction a budget would refuse, the earlier ones granted; none if budgets are not known.
    pub(super) refused: Option<BTreeSet<Key>>,
}

impl EvictionOutcomes {
    /// Those of the pods that leave.
    pub const fn by_pod(&self) -> &BTreeMap<Key, PodOutcome> {
        &self.by_pod
    }

    /// The pods of a node that have nowhere to run; none if there are none.
    pub fn nowhere_on(&self, node: &NodeName) -> Option<&BTreeMap<Key, OutcomeKind>> {
        self.nowhere.get(node)
    }
}

/// What outcomes depend on: while it stays the same, so do they.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OutcomesBasis {
    /// [`Model::plan_changes`].
    pub changes: u64,
    /// [`Forecast::down`](kordon_core::forecast::Forecast::down).
    pub down: BTreeSet<NodeName>,
    /// [`LeavingChanges::pods`](super::leaving::LeavingChanges::pods).
    pub leaving: u64,
}

/// How many evictions there are of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EvictionCounts {
    /// The outcomes of the pods that leave, scheduled and predicted, as far as they are worked out.
    pub outcomes: OutcomeCounts,
    /// Those whose outcome is being worked out.
    pub working_out: usize,
    /// The outcomes of pods elsewhere that are preempted for them.
    pub preempted: OutcomeCounts,
    /// Evictions that a budget would refuse; none if budgets, or the outcomes, are not known.
    pub against_budgets: Option<usize>,
    pub terminating: usize,
    /// The outcomes of terminating pods whose kubelet is down: they hang until it is back.
    pub hanging: OutcomeCounts,
    pub cancelled: usize,
    /// Pods that tolerate the taint without a limit.
    pub never: usize,
}

impl Model {
    /// What becomes of a pod that is evicted; none for one that stays, and while it is worked out.
    pub fn outcome(&self, pod: &Key, row: &EvictionRow) -> Option<Cow<'_, PodOutcome>> {
        match row.state {
            EvictionState::Scheduled { .. } | EvictionState::Predicted { .. } => {
                self.outcomes.as_ref()?.by_pod.get(pod).map(Cow::Borrowed)
            }
            EvictionState::Terminating { .. } => {
                Some(Cow::Owned(PodOutcome::of_terminating(&self.cluster, self.cluster.pod(pod)?)))
            }
            EvictionState::Cancelled { .. } | EvictionState::Never => None,
        }
    }

    /// Whether a budget would refuse the eviction of a pod, which taint eviction ignores; none while that is not known.
    pub fn would_be_refused(&self, pod: &Key) -> Option<bool> {
        Some(self.outcomes.as_ref()?.refused.as_ref()?.contains(pod))
    }

    /// Takes new outcomes, and returns those before.
    pub fn set_outcomes(&mut self, outcomes: EvictionOutcomes) -> Option<Arc<EvictionOutcomes>> {
        let before = self.outcomes.replace(Arc::new(outcomes));
        self.views.counts =
            EvictionCounts::new(&self.cluster, &self.views.leaving.evictions, self.outcomes.as_deref());
        self.outcome_changes += 1;
        self.views.revision.evictions += 1;
        self.results += 1;
        before
    }
}

impl EvictionCounts {
    /// How many pods leave whose deletion has not begun.
    pub fn leaving(&self) -> usize {
        self.outcomes.total() + self.working_out
    }

    /// How many pods will have nowhere to run: those that leave, and those that are preempted for them.
    pub fn will_have_nowhere(&self) -> usize {
        self.outcomes.nowhere() + self.preempted.nowhere()
    }

    /// Counts evictions.
    pub(super) fn new(
        cluster: &Cluster,
        evictions: &BTreeMap<Key, EvictionRow>,
        outcomes: Option<&EvictionOutcomes>,
    ) -> Self {
        let mut counts = Self::default();
        let mut refused = 0;
        let refusals = outcomes.and_then(|outcomes| outcomes.refused.as_ref()).into_iter().flatten();
        let mut refusals = SortedWalk::new(refusals.map(|key| (key, ())));
        let mut by_pod = SortedWalk::new(outcomes.into_iter().flat_map(|outcomes| &outcomes.by_pod));
        for (key, row) in evictions {
            match row.state {
                EvictionState::Scheduled { .. } | EvictionState::Predicted { .. } => {
                    refused += refusals.get(key).map_or(0, |()| 1);
                    match by_pod.get(key) {
                        Some(outcome) => counts.outcomes.add(outcome.kind()),
                        None => counts.working_out += 1,
                    }
                }
                EvictionState::Terminating { kubelet_silent, .. } => {
                    counts.terminating += 1;
                    if let Some(pod) = cluster.pod(key).filter(|_| kubelet_silent) {
                        counts.hanging.add(PodOutcome::of_terminating(cluster, pod).kind());
                    }
                }
                EvictionState::Cancelled { .. } => counts.cancelled += 1,
                EvictionState::Never => counts.never += 1,
            }
        }
        counts.preempted = outcomes.map(|outcomes| outcomes.preempted).unwrap_or_default();
        counts.against_budgets =
            outcomes.is_some_and(|outcomes| outcomes.refused.is_some()).then_some(refused);
        counts
    }
}
