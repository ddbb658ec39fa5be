//! What becomes of every pod that is evicted: worked out beside the loop ([`OutcomesJob`](super::OutcomesJob)), kept in
//! [`Model::outcomes`] until something newer is known, and counted for title, verdict and report.

use std::{borrow::Cow, sync::Arc};

use super::{
    Model,
    eviction::{EvictionRow, EvictionState},
};
use crate::{
    cluster::{Key, NodeName, SortedWalk},
    forecast::{EvictionOutcome, OutcomeClass, Unreplaced},
    ordered::{OrderedMap, OrderedSet},
    time::Timestamp,
};

/// What becomes of the pods that are evicted, at a moment.
#[derive(Clone, Debug)]
pub struct EvictionOutcomes {
    /// The time of the cluster state that it was worked out from.
    pub at: Timestamp,
    pub(super) basis: OutcomesBasis,
    pub(super) by_pod: OrderedMap<Key, EvictionOutcome>,
    /// The pods in whose place nothing runs, by their node.
    pub(super) unreplaced: OrderedMap<NodeName, OrderedMap<Key, Unreplaced>>,
    /// The pods whose eviction a budget would refuse, the earlier ones granted; none if budgets are not known.
    pub(super) refused: Option<OrderedSet<Key>>,
}

impl EvictionOutcomes {
    /// Those of the pods that leave.
    pub const fn by_pod(&self) -> &OrderedMap<Key, EvictionOutcome> {
        &self.by_pod
    }

    /// The pods of a node in whose place nothing runs, and why; none if there are none.
    pub fn unreplaced_on(&self, node: &NodeName) -> Option<&OrderedMap<Key, Unreplaced>> {
        self.unreplaced.get(node)
    }
}

/// What outcomes depend on: while it stays the same, so do they.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OutcomesBasis {
    /// [`Model::plan_changes`].
    pub changes: u64,
    /// [`Forecast::down`](crate::forecast::Forecast::down).
    pub down: OrderedSet<NodeName>,
    /// [`LeavingChanges::pods`](super::leaving::LeavingChanges::pods).
    pub leaving: u64,
}

/// How many evictions there are of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EvictionCounts {
    /// Pods that leave: scheduled and predicted. The counts up to `working_out` add up to it.
    pub leaving: usize,
    pub moves: usize,
    pub pending: usize,
    /// Those whose replacement a quota refuses.
    pub refused: usize,
    /// Those that wait for their old node.
    pub stuck: usize,
    pub lost: usize,
    /// Those that run again on the same node, or whose controller needs no other.
    pub not_replaced: usize,
    pub not_known: usize,
    pub left_out: usize,
    pub working_out: usize,
    /// Evictions that a budget would refuse; none if budgets, or the outcomes, are not known.
    pub against_budgets: Option<usize>,
    pub terminating: usize,
    pub cancelled: usize,
    /// Pods that tolerate the taint without a limit.
    pub never: usize,
}

impl Model {
    /// What becomes of a pod that is evicted; none for one that stays, and while it is worked out.
    pub fn outcome(&self, pod: &Key, row: &EvictionRow) -> Option<Cow<'_, EvictionOutcome>> {
        match row.state {
            EvictionState::Scheduled { .. } | EvictionState::Predicted { .. } => {
                self.outcomes.as_ref()?.by_pod.get(pod).map(Cow::Borrowed)
            }
            EvictionState::Terminating { .. } => {
                Some(Cow::Owned(EvictionOutcome::of_terminating(&self.cluster, self.cluster.pod(pod)?)))
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
        self.views.counts = EvictionCounts::of(&self.views.leaving.evictions, self.outcomes.as_deref());
        self.outcome_changes += 1;
        self.views.revision.evictions += 1;
        self.results += 1;
        before
    }
}

impl EvictionCounts {
    /// Counts evictions.
    pub(super) fn of(evictions: &OrderedMap<Key, EvictionRow>, outcomes: Option<&EvictionOutcomes>) -> Self {
        let mut counts = Self::default();
        let mut refused = 0;
        let refusals = outcomes.and_then(|outcomes| outcomes.refused.as_ref()).into_iter().flatten();
        let mut refusals = SortedWalk::new(refusals.map(|key| (key, ())));
        let mut by_pod = SortedWalk::new(outcomes.into_iter().flat_map(|outcomes| &outcomes.by_pod));
        for (key, row) in evictions {
            let of_state = match row.state {
                EvictionState::Scheduled { .. } | EvictionState::Predicted { .. } => {
                    refused += refusals.get(key).map_or(0, |()| 1);
                    let outcome = by_pod.get(key);
                    *counts.of_class(outcome.map(EvictionOutcome::class)) += 1;
                    &mut counts.leaving
                }
                EvictionState::Terminating { .. } => &mut counts.terminating,
                EvictionState::Cancelled { .. } => &mut counts.cancelled,
                EvictionState::Never => &mut counts.never,
            };
            *of_state += 1;
        }
        counts.against_budgets =
            outcomes.is_some_and(|outcomes| outcomes.refused.is_some()).then_some(refused);
        counts
    }

    /// The count of a class of outcomes; none is worked out now.
    const fn of_class(&mut self, class: Option<OutcomeClass>) -> &mut usize {
        match class {
            None => &mut self.working_out,
            Some(OutcomeClass::Moves) => &mut self.moves,
            Some(OutcomeClass::Unreplaced(Unreplaced::Pending)) => &mut self.pending,
            Some(OutcomeClass::Unreplaced(Unreplaced::Refused)) => &mut self.refused,
            Some(OutcomeClass::Unreplaced(Unreplaced::Stuck)) => &mut self.stuck,
            Some(OutcomeClass::Unreplaced(Unreplaced::Lost)) => &mut self.lost,
            Some(OutcomeClass::NotReplaced) => &mut self.not_replaced,
            Some(OutcomeClass::Unknown) => &mut self.not_known,
            Some(OutcomeClass::LeftOut) => &mut self.left_out,
        }
    }
}
