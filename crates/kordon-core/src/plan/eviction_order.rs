//! Order in which the pods of a node are evicted.

use std::{cmp::Reverse, collections::BTreeMap, sync::Arc};

use super::{
    budget::BudgetState,
    context::PlanContext,
    environment::Environment,
    eviction::{self, EvictionDecision, FreeEviction},
    landing::Landing,
    owner::{self, Recreation},
};
use crate::cluster::{Cluster, Key, Pod};
use kordon_time::Span;

/// Sorts pods for eviction. kubectl's order is random; this order is better (docs/upstream/operator-actions.md#6.5):
///
/// 1. Pods that are not Ready and use no disruption of their budget, because their eviction may free disruptions.
/// 2. Pods without a budget, and pods that are Pending, finished or terminating.
/// 3. Pods whose eviction uses a disruption of their budget, or is refused.
/// 4. Critical pods that have not finished.
///
/// Within each of these classes, pods whose replacement takes longest come first. Exception: in the third class, pods
/// that are not replaced come last, because the disruptions that they use never come back.
pub(super) fn sort_for_eviction<E: Environment>(
    pods: &mut [Arc<Pod>],
    budgets: &BTreeMap<Key, BudgetState>,
    context: &PlanContext<'_, E>,
) {
    let PlanContext { cluster, environment, rules, .. } = context;
    let rank = |pod: &Arc<Pod>| {
        let class = match eviction::decision(cluster, pod, budgets, rules) {
            _ if pod.is_critical() && !pod.is_finished() => 3,
            EvictionDecision::Free(FreeEviction::UnhealthyAllowed | FreeEviction::HealthyBudget) => 0,
            EvictionDecision::Free(
                FreeEviction::NoBudget
                | FreeEviction::Pending
                | FreeEviction::Finished
                | FreeEviction::Terminating,
            ) => 1,
            EvictionDecision::Costs { .. } | EvictionDecision::Blocked(_) => 2,
        };
        let drains_budget = class == 2 && !returns(cluster, pod);
        let terminates = environment.time_to_terminate(pod, pod.grace).likely;
        let ready = environment.time_to_ready(pod, &Landing::Unknown).likely;
        let replaced = terminates.zip(ready).map_or(Span::MAX, |(terminates, ready)| terminates + ready);
        (class, drains_budget, Reverse(replaced), pod.key.clone())
    };
    pods.sort_by_cached_key(rank);
}

/// Returns whether a controller recreates the pod after it leaves; true if this is not known.
fn returns(cluster: &Cluster, pod: &Pod) -> bool {
    match owner::recreation(cluster, pod) {
        Recreation::Immediately | Recreation::WhenGone => owner::needs_another(cluster, pod),
        Recreation::OnSameNode | Recreation::Unknown => true,
        Recreation::Never(_) => false,
    }
}
