//! Remedies for budgets that refuse the evictions of an operation.

use std::sync::Arc;

use super::budgets;
use kordon_core::{
    cluster::{Cluster, Key, Pod},
    plan::EvictionRules,
};
use kordon_time::Timestamp;

/// A budget that refuses evictions now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockingBudget {
    pub budget: Key,
    /// State of the budget: `grafana needs 2 healthy, has 2`.
    pub numbers: String,
    /// Changes that would let the budget allow an eviction, the smallest change first.
    pub freed_by: Vec<String>,
}

impl BlockingBudget {
    /// Returns the budgets that refuse the eviction of at least one of these pods, with remedies.
    pub fn find(cluster: &Cluster, pods: &[Key], rules: &EvictionRules, now: Timestamp) -> Vec<Self> {
        let pods: Vec<&Arc<Pod>> = pods.iter().filter_map(|pod| cluster.pod(pod)).collect();
        let refusing = budgets::refusing(cluster, pods, rules, now);
        let of_budget = |refusing: &budgets::RefusingBudget<'_>| {
            let by_itself = (!refusing.is_final).then(|| "one more of its pods is Ready".to_owned());
            let suggestions = budgets::suggestions(std::slice::from_ref(refusing), cluster, rules, now);
            let ways = suggestions.into_iter().map(|suggestion| suggestion.text);
            Self {
                budget: refusing.key().clone(),
                numbers: refusing.numbers.clone(),
                freed_by: by_itself.into_iter().chain(ways).collect(),
            }
        };
        refusing.iter().take(budgets::MOST_BUDGETS).map(of_budget).collect()
    }
}
