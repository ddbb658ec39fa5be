//! Free resources, and how evenly they are used (NodeResourcesFit, NodeResourcesBalancedAllocation).

use super::{
    super::{filter::Filters, node_resources::Share, rules::Balance},
    MOST,
};

/// The mean of the free percentages of CPU and memory, with defaults for missing requests.
pub(super) fn least_allocated(filters: &Filters<'_>, feasible: &[u32]) -> Vec<i64> {
    let requests = &filters.request.spec.requests;
    let points = |node: &u32| {
        let resources = filters.snapshot.resources(*node);
        let cpu = resources.assumed_cpu_milli.saturating_add(requests.assumed_cpu_milli);
        let memory = resources.assumed_memory_bytes.saturating_add(requests.assumed_memory_bytes);
        let both = [(cpu, resources.cpu_milli.allocatable), (memory, resources.memory_bytes.allocatable)];
        let (mut sum, mut counted) = (0, 0);
        for (wanted, allocatable) in both.into_iter().filter(|(_, allocatable)| *allocatable > 0) {
            counted += 1;
            // Sums of absurd amounts saturate, and may be below zero once some are subtracted again.
            let wanted = wanted.max(0);
            sum += if wanted > allocatable { 0 } else { percent(allocatable - wanted, allocatable) };
        }
        if counted == 0 { 0 } else { sum / counted }
    };
    feasible.iter().map(points).collect()
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
pub(super) fn balanced_allocation(filters: &Filters<'_>, feasible: &[u32]) -> Option<Vec<i64>> {
    let requests = &filters.request.spec.requests;
    let (cpu, memory) = (requests.cpu_milli, requests.memory_bytes);
    let balance = filters.snapshot.rules().balance;
    match balance {
        Balance::After => {}
        Balance::AfterUnlessEmpty | Balance::Difference if cpu == 0 && memory == 0 => return None,
        Balance::AfterUnlessEmpty | Balance::Difference => {}
    }
    let points = |node: &u32| {
        let resources = filters.snapshot.resources(*node);
        let with = balance_of(resources.cpu_milli, cpu, resources.memory_bytes, memory);
        match balance {
            Balance::After | Balance::AfterUnlessEmpty => with,
            Balance::Difference => {
                let without = balance_of(resources.cpu_milli, 0, resources.memory_bytes, 0);
                MOST / 2 + (MOST / 2 + with - without) / 2
            }
        }
    };
    Some(feasible.iter().map(points).collect())
}

/// 100 minus half the difference of the shares in percent; a resource that is not offered does not count.
fn balance_of(cpu: Share, more_cpu: i64, memory: Share, more_memory: i64) -> i64 {
    let share = |share: Share, more: i64| {
        (share.allocatable > 0)
            .then(|| (as_float(share.requested.saturating_add(more)) / as_float(share.allocatable)).min(1.0))
    };
    let deviation = match (share(cpu, more_cpu), share(memory, more_memory)) {
        (Some(cpu), Some(memory)) => ((cpu - memory) / 2.0).abs(),
        _ => 0.0,
    };
    #[expect(clippy::cast_possible_truncation, reason = "between 0 and 100, and upstream truncates")]
    let points = ((1.0 - deviation) * 100.0) as i64;
    points
}

#[expect(clippy::cast_precision_loss, reason = "upstream computes in floats too")]
fn as_float(amount: i64) -> f64 {
    amount as f64
}
