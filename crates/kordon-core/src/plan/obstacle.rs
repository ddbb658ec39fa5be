//! Obstacles that prevent the end of a removal.

use std::{collections::BTreeSet, fmt};

use super::{eviction::EvictionBlock, simulation::RunResult};
use crate::cluster::{Key, Pod};

/// The reason why a removal never ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemovalObstacle {
    /// A budget blocks the removal. `others` is the number of other budgets that block it too.
    Budget { budget: Key, others: usize },
    /// This pod stays Terminating: its kubelet does not run, a finalizer holds it, or its deletion is overdue.
    Terminating(Key),
    /// The eviction of this pod is refused, but not because of a budget.
    Refused(Key),
}

impl RemovalObstacle {
    /// Returns why a simulated removal never ends: a budget that blocks one of these pods or, if there is no such
    /// budget, a pod whose removal does not end. Budgets come first because the operator can relax them.
    pub(super) fn from_run<'a>(run: &RunResult, pods: impl IntoIterator<Item = &'a Pod>) -> Option<Self> {
        let (mut budgets, mut first) = (BTreeSet::new(), None);
        let open = |pod: &Pod| run.pods.get(&pod.key).filter(|result| result.end.is_none());
        for (pod, result) in pods.into_iter().filter_map(|pod| Some((&pod.key, open(pod)?))) {
            let block = result.block.as_ref().filter(|_| result.leaves.is_none());
            match block.map(EvictionBlock::budget) {
                Some(Some(budget)) => _ = budgets.insert(budget.clone()),
                Some(None) => _ = first.get_or_insert_with(|| Self::Refused(pod.clone())),
                None => _ = first.get_or_insert_with(|| Self::Terminating(pod.clone())),
            }
        }
        let others = budgets.len().saturating_sub(1);
        budgets.pop_first().map(|budget| Self::Budget { budget, others }).or(first)
    }
}

impl fmt::Display for RemovalObstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Budget { budget, others: 0 } => write!(f, "blocked by {budget}"),
            Self::Budget { budget, others } => write!(f, "blocked by {budget} and {others} more"),
            Self::Terminating(pod) => write!(f, "{pod} stays Terminating"),
            Self::Refused(pod) => write!(f, "the eviction of {pod} is refused"),
        }
    }
}
