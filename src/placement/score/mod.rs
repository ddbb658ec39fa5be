//! Which of the feasible nodes is best: the scores of the default profile.

mod images;
mod node_affinity;
mod pod_affinity;
mod resources;
mod spread;
mod taints;

use std::cmp::Reverse;

use super::{
    filter::Filters,
    outcome::{Scored, Scorer},
};
use crate::cluster::NodeName;

/// The maximum score of one scorer.
const MOST: i64 = 100;
/// The length of a ranking.
const RANKED: usize = 10;

/// The best nodes by name, and the ranking.
pub(super) fn rank(filters: &Filters<'_>, feasible: &[u32]) -> (Vec<NodeName>, Vec<Scored>) {
    let name = |node: u32| filters.snapshot.node(node).name.clone();
    // The scheduler does not score a single node.
    let parts: Vec<Option<Vec<i64>>> = match feasible {
        [_] => vec![None; Scorer::ALL.len()],
        _ => Scorer::ALL.iter().map(|scorer| points(*scorer, filters, feasible)).collect(),
    };
    let mut totals = vec![0; feasible.len()];
    for (scorer, points) in Scorer::ALL.iter().zip(&parts) {
        for (total, points) in totals.iter_mut().zip(points.iter().flatten()) {
            *total += points * scorer.weight();
        }
    }
    let most = totals.iter().copied().max().unwrap_or_default();
    let mut places: Vec<usize> = (0..feasible.len()).collect();
    let best_first = |place: &usize| (Reverse(totals[*place]), filters.snapshot.rank_of(feasible[*place]));
    if places.len() > RANKED {
        places.select_nth_unstable_by_key(RANKED, best_first);
        places.truncate(RANKED);
    }
    places.sort_unstable_by_key(best_first);
    let scored = |place: &usize| Scored {
        node: name(feasible[*place]),
        total: totals[*place],
        parts: std::array::from_fn(|scorer| {
            parts[scorer].as_ref().map_or(0, |points| points[*place] * Scorer::ALL[scorer].weight())
        }),
    };
    let ranking = places.iter().map(scored).collect();
    let mut best: Vec<u32> =
        feasible.iter().zip(&totals).filter(|(_, total)| **total == most).map(|(node, _)| *node).collect();
    best.sort_unstable_by_key(|node| filters.snapshot.rank_of(*node));
    let best = best.into_iter().map(name).collect();
    (best, ranking)
}

/// The points of each node by one scorer, 0 to 100; none if it is skipped.
fn points(scorer: Scorer, filters: &Filters<'_>, feasible: &[u32]) -> Option<Vec<i64>> {
    match scorer {
        Scorer::LeastAllocated => Some(resources::least_allocated(filters, feasible)),
        Scorer::BalancedAllocation => resources::balanced_allocation(filters, feasible),
        Scorer::Taints => Some(taints::points(filters, feasible)),
        Scorer::NodeAffinity => node_affinity::points(filters, feasible),
        Scorer::Spread => spread::points(filters, feasible),
        Scorer::PodAffinity => pod_affinity::points(filters, feasible),
        Scorer::Images => Some(images::points(filters, feasible)),
    }
}

/// Scales to percentages of the highest (upstream's `DefaultNormalizeScore`).
fn share_of_highest(raw: &mut [i64]) {
    let highest = raw.iter().copied().max().unwrap_or_default();
    if highest > 0 {
        raw.iter_mut().for_each(|raw| *raw = MOST * *raw / highest);
    }
}
