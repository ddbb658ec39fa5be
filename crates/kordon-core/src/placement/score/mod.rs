//! Scores of the default profile. They decide which of the feasible nodes is best.

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

/// Maximum points of one score plugin.
const MOST: i64 = 100;
/// Number of nodes that a ranking lists.
const RANKED: usize = 10;

/// Points that one score plugin gives to the feasible nodes, from 0 to 100.
#[derive(Default)]
enum Points {
    /// The plugin is skipped, which has the same effect as zero points.
    #[default]
    Skipped,
    /// All nodes have the same number of points.
    Equal(i64),
    /// Points of each feasible node, in the order of the nodes.
    Each(Vec<i64>),
}

impl Points {
    fn of(&self, place: usize) -> i64 {
        match self {
            Self::Skipped => 0,
            Self::Equal(points) => *points,
            Self::Each(points) => points[place],
        }
    }
}

/// Feasible nodes, ranked by their scores.
pub(super) struct Ranking {
    /// The nodes with the highest total score.
    pub best: Vec<u32>,
    /// The `RANKED` nodes with the highest total scores, best first.
    pub first: Vec<Scored>,
}

impl Ranking {
    pub fn new(filters: &Filters<'_>, feasible: &[u32]) -> Self {
        let parts = match feasible {
            // The scheduler computes no scores if only one node is feasible.
            [_] => Scorer::ALL.map(|_| Points::Skipped),
            _ => points(filters, feasible),
        };
        let totals = totals(&parts, feasible.len());
        let most = range(&totals).map_or(0, |(_, most)| most);
        let rank = |node: u32| filters.snapshot.rank_of(node);
        let best = feasible
            .iter()
            .zip(&totals)
            .filter(|(_, total)| **total == most)
            .map(|(node, _)| *node)
            .collect();
        let scored = |place: usize| Scored {
            node: filters.snapshot.node(feasible[place]).name.clone(),
            total: totals[place],
            parts: std::array::from_fn(|scorer| parts[scorer].of(place) * Scorer::ALL[scorer].weight()),
        };
        let first = first_places(&totals, |place| rank(feasible[place])).into_iter().map(scored).collect();
        Self { best, first }
    }
}

/// Returns the points of each score plugin, in the order of [`Scorer::ALL`].
fn points(filters: &Filters<'_>, feasible: &[u32]) -> [Points; Scorer::ALL.len()] {
    let (mut least_allocated, mut balanced_allocation) = resources::points(filters, feasible);
    Scorer::ALL.map(|scorer| match scorer {
        Scorer::LeastAllocated => std::mem::take(&mut least_allocated),
        Scorer::BalancedAllocation => std::mem::take(&mut balanced_allocation),
        Scorer::Taints => taints::points(filters, feasible),
        Scorer::NodeAffinity => node_affinity::points(filters, feasible),
        Scorer::Spread => spread::points(filters, feasible),
        Scorer::PodAffinity => pod_affinity::points(filters, feasible),
        Scorer::Images => images::points(filters, feasible),
    })
}

/// Returns the weighted sum of the points of each node.
fn totals(parts: &[Points; Scorer::ALL.len()], nodes: usize) -> Vec<i64> {
    let mut equal = 0;
    let mut totals = vec![0; nodes];
    for (scorer, points) in Scorer::ALL.iter().zip(parts) {
        match points {
            Points::Skipped => {}
            Points::Equal(points) => equal += points * scorer.weight(),
            Points::Each(points) => {
                totals.iter_mut().zip(points).for_each(|(total, points)| *total += points * scorer.weight());
            }
        }
    }
    if equal > 0 {
        totals.iter_mut().for_each(|total| *total += equal);
    }
    totals
}

/// Returns the indexes of the `RANKED` highest totals, highest first. Equal totals are ordered by the rank of their
/// nodes.
fn first_places(totals: &[i64], rank: impl Fn(usize) -> u32) -> Vec<usize> {
    let mut first: Vec<(Reverse<i64>, u32, usize)> = Vec::with_capacity(RANKED + 1);
    // Fast path: skips totals that are lower than the lowest of the `RANKED` totals found so far.
    let mut least = i64::MIN;
    for (place, total) in totals.iter().enumerate() {
        if *total < least {
            continue;
        }
        let key = (Reverse(*total), rank(place), place);
        let at = first.partition_point(|other| *other < key);
        if at < RANKED {
            first.insert(at, key);
            first.truncate(RANKED);
        }
        if let Some((Reverse(total), ..)) = first.get(RANKED - 1) {
            least = *total;
        }
    }
    first.into_iter().map(|(.., place)| place).collect()
}

/// Returns the lowest and the highest value; `None` for an empty slice. Faster than [`Iterator::max`], because several
/// values are compared at a time.
fn range(values: &[i64]) -> Option<(i64, i64)> {
    let first = *values.first()?;
    Some(values.iter().fold((first, first), |(low, high), value| (low.min(*value), high.max(*value))))
}

/// Converts each value to a percentage of the highest value (upstream `DefaultNormalizeScore`).
fn share_of_highest(raw: &mut [i64]) {
    let highest = range(raw).map_or(0, |(_, highest)| highest);
    if highest > 0 {
        raw.iter_mut().for_each(|raw| *raw = MOST * *raw / highest);
    }
}
