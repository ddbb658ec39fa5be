//! Score for nodes that the pod prefers (NodeAffinity).

use super::{
    super::filter::{Filters, TermMatch},
    Points,
};

/// Adds up the weights of the terms that match a node. The points are this sum as a percentage of the highest sum.
pub(super) fn points(filters: &Filters<'_>, feasible: &[u32]) -> Points {
    let preferred = &filters.request.spec.preferred_nodes;
    if preferred.is_empty() {
        return Points::Skipped;
    }
    let mut raw = vec![0; feasible.len()];
    for (weight, term) in preferred {
        let term = TermMatch::new(filters.snapshot, term);
        for (raw, node) in raw.iter_mut().zip(feasible) {
            if term.matches(*node) {
                *raw += i64::from(*weight);
            }
        }
    }
    super::share_of_highest(&mut raw);
    Points::Each(raw)
}
