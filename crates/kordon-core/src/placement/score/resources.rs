//! Scores for free resources (NodeResourcesFit) and for balanced use of CPU and memory
//! (NodeResourcesBalancedAllocation).

use super::{
    super::{filter::Filters, node_resources::NodeResources, rules::Balance},
    MOST, Points,
};
use crate::cluster::Requests;

/// Returns the points for free resources and the points for balanced use. Computes both in one pass over the nodes.
pub(super) fn points(filters: &Filters<'_>, feasible: &[u32]) -> (Points, Points) {
    let snapshot = filters.snapshot;
    let requests = &filters.request.resources.requests;
    let balance = snapshot.rules().balance;
    let is_skipped = match balance {
        Balance::After => false,
        Balance::AfterUnlessEmpty | Balance::Difference => {
            requests.cpu_milli == 0 && requests.memory_bytes == 0
        }
    };
    let mut least = Vec::with_capacity(feasible.len());
    let mut balanced = Vec::with_capacity(if is_skipped { 0 } else { feasible.len() });
    for node in feasible {
        let resources = snapshot.resources(*node);
        least.push(least_allocated(requests, resources));
        if !is_skipped {
            balanced.push(balanced_allocation(requests, resources, balance));
        }
    }
    (Points::Each(least), if is_skipped { Points::Skipped } else { Points::Each(balanced) })
}

/// Returns the mean of the free percentages of CPU and memory. For containers without requests, the scheduler's
/// defaults count.
fn least_allocated(requests: &Requests, resources: &NodeResources) -> i64 {
    let cpu = resources.assumed_cpu_milli.saturating_add(requests.assumed_cpu_milli);
    let memory = resources.assumed_memory_bytes.saturating_add(requests.assumed_memory_bytes);
    let cpu = free_percent(cpu, resources.cpu_milli.allocatable);
    let memory = free_percent(memory, resources.memory_bytes.allocatable);
    match (cpu, memory) {
        (Some(cpu), Some(memory)) => (cpu + memory) / 2,
        (one, other) => one.or(other).unwrap_or(0),
    }
}

/// Returns the free percentage of a resource; `None` if the node does not offer the resource.
#[inline]
fn free_percent(wanted: i64, allocatable: i64) -> Option<i64> {
    if allocatable <= 0 {
        return None;
    }
    // Sums of extreme amounts saturate, so subtracting amounts from them later can make them negative.
    let wanted = wanted.max(0);
    Some(if wanted > allocatable { 0 } else { percent(allocatable - wanted, allocatable) })
}

/// Returns `part * 100 / whole`, rounded down, without overflow. `part` must be between 0 and `whole`.
fn percent(part: i64, whole: i64) -> i64 {
    // Float division takes a third of the time of integer division. It is used where its result is exact: for `whole`
    // below 2^46. Floats represent both numbers exactly there. A quotient that is not an integer differs from the next
    // integer by more than 1 / 2^46, and the rounding error of quotients below 128 is at most 1 / 2^47.
    const EXACT: i64 = 1 << 46;
    if whole < EXACT {
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            reason = "exact, see above"
        )]
        return ((part * MOST) as f64 / whole as f64) as i64;
    }
    let hundredths = i128::from(part) * i128::from(MOST) / i128::from(whole);
    i64::try_from(hundredths).expect("a part is not more than the whole")
}

/// Returns the balance of CPU and memory use with the pod on the node. For [`Balance::Difference`], returns how much
/// the pod improves the balance.
fn balanced_allocation(requests: &Requests, resources: &NodeResources, balance: Balance) -> i64 {
    let with = resources.balance_with(requests.cpu_milli, requests.memory_bytes);
    match balance {
        Balance::After | Balance::AfterUnlessEmpty => with,
        Balance::Difference => MOST / 2 + (MOST / 2 + with - resources.balance()) / 2,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn percentages_are_rounded_down_as_integers_are(
            (whole, part) in prop_oneof![1..2_000_i64, 1..1_i64 << 46, (1_i64 << 45)..i64::MAX]
                .prop_flat_map(|whole| (Just(whole), 0..=whole)),
            hundredths in 0..=100_i64,
        ) {
            // Also tests the values of `part` at which the percentage changes, and their neighbours.
            let border = i64::try_from(i128::from(whole) * i128::from(hundredths) / 100).expect("small");
            for part in [part, border, (border + 1).min(whole), (border - 1).max(0)] {
                prop_assert_eq!(i128::from(percent(part, whole)), i128::from(part) * 100 / i128::from(whole));
            }
        }
    }
}
