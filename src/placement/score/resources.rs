//! Free resources, and how evenly they are used (NodeResourcesFit, NodeResourcesBalancedAllocation).

use super::{
    super::{filter::Filters, node_resources::NodeResources, rules::Balance},
    MOST, Points,
};
use crate::cluster::Requests;

/// The points for free resources, and those for even use: the resources of each node are read once for both.
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

/// The mean of the free percentages of CPU and memory, with defaults for missing requests.
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

/// None if the node offers nothing of it.
fn free_percent(wanted: i64, allocatable: i64) -> Option<i64> {
    if allocatable <= 0 {
        return None;
    }
    // Sums of absurd amounts saturate, and may be below zero once some are subtracted again.
    let wanted = wanted.max(0);
    Some(if wanted > allocatable { 0 } else { percent(allocatable - wanted, allocatable) })
}

/// `part * 100 / whole`, without overflow.
fn percent(part: i64, whole: i64) -> i64 {
    match part.checked_mul(MOST) {
        Some(product) => product / whole,
        None => {
            let hundredths = i128::from(part) * i128::from(MOST) / i128::from(whole);
            i64::try_from(hundredths).expect("a part is not more than the whole")
        }
    }
}

/// How equal the used shares of CPU and memory are, with the pod on the node.
fn balanced_allocation(requests: &Requests, resources: &NodeResources, balance: Balance) -> i64 {
    let with = resources.balance_with(requests.cpu_milli, requests.memory_bytes);
    match balance {
        Balance::After | Balance::AfterUnlessEmpty => with,
        Balance::Difference => MOST / 2 + (MOST / 2 + with - resources.balance()) / 2,
    }
}
