//! Score for preferred pod affinity and anti-affinity, both of the new pod and of existing pods (InterPodAffinity).

use std::{collections::BTreeMap, sync::Arc};

use super::{
    super::{
        columns::{ABSENT, LabelColumn},
        filter::Filters,
    },
    MOST, Points,
};
use crate::cluster::{Name, scheduling::PodTerm};

/// Weight of the required affinity of an existing pod (`hardPodAffinityWeight`).
const REQUIRED_WEIGHT: i64 = 1;

/// Adds up the weights of all preferences for a node. The points are this sum, scaled so that the lowest sum becomes 0
/// and the highest 100. Skipped if there are no preferences.
pub(super) fn points(filters: &Filters<'_>, feasible: &[u32]) -> Points {
    let mut sums = Sums { filters, by_key: BTreeMap::new() };
    sums.add_own_terms();
    sums.add_terms_of_existing();
    if sums.by_key.is_empty() {
        return Points::Skipped;
    }
    let mut raw = vec![0; feasible.len()];
    for (column, weights) in sums.by_key.values() {
        for (raw, node) in raw.iter_mut().zip(feasible) {
            let place = column.of_node[*node as usize];
            *raw += weights.get(place as usize).copied().unwrap_or_default();
        }
    }
    between_lowest_and_highest(&mut raw);
    Points::Each(raw)
}

#[expect(clippy::cast_precision_loss, reason = "upstream computes in floats too")]
#[expect(clippy::cast_possible_truncation, reason = "between 0 and 100, and upstream truncates")]
fn between_lowest_and_highest(raw: &mut [i64]) {
    let Some((lowest, highest)) = super::range(raw) else { return };
    let range = highest - lowest;
    for raw in raw {
        // Fast path: most nodes have the lowest or the highest sum. These need no division.
        *raw = match *raw - lowest {
            0 => 0,
            above if above == range => MOST,
            above => (MOST as f64 * (above as f64 / range as f64)) as i64,
        };
    }
}

/// Sums of the weights of preferences, by topology key and domain.
struct Sums<'f, 's> {
    filters: &'f Filters<'s>,
    by_key: BTreeMap<&'f Name, (Arc<LabelColumn>, Vec<i64>)>,
}

impl<'f> Sums<'f, '_> {
    /// Adds the weights of the pod's own preferences.
    fn add_own_terms(&mut self) {
        let (snapshot, request) = (self.filters.snapshot, self.filters.request);
        let near = request.spec.pod_affinity.preferred.iter().map(|term| (1, term));
        let apart = request.spec.pod_anti_affinity.preferred.iter().map(|term| (-1, term));
        for (sign, (weight, term)) in near.chain(apart) {
            let Some(selector) = &term.selector else { continue };
            let scope = snapshot.namespaces().scope(term, &request.namespace);
            for (_, pod_class) in snapshot.pod_classes().selected(&scope, selector) {
                let pods = pod_class.on.iter().map(|presence| (presence.node, presence.all));
                self.add(term, sign * i64::from(*weight), pods);
            }
        }
    }

    /// Adds the weights of existing pods' preferences and required affinity, as far as they select the pod.
    fn add_terms_of_existing(&mut self) {
        let (snapshot, request) = (self.filters.snapshot, self.filters.request);
        for (_, affinity_class) in snapshot.affinity_classes().concerning(&request.namespace, &request.labels)
        {
            let required =
                affinity_class.spec.pod_affinity.required.iter().map(|term| (REQUIRED_WEIGHT, term));
            let near = affinity_class.spec.pod_affinity.preferred.iter();
            let near = near.map(|(weight, term)| (i64::from(*weight), term));
            let apart = affinity_class.spec.pod_anti_affinity.preferred.iter();
            let apart = apart.map(|(weight, term)| (-i64::from(*weight), term));
            for (weight, term) in required.chain(near).chain(apart) {
                let namespaces = snapshot.namespaces();
                if namespaces.selects(term, &affinity_class.namespace, &request.namespace, &request.labels) {
                    let pods = affinity_class.on.iter().map(|presence| (presence.node, presence.all));
                    self.add(term, weight, pods);
                }
            }
        }
    }

    fn add(&mut self, term: &'f PodTerm, weight: i64, pods: impl Iterator<Item = (u32, u32)>) {
        let (column, weights) = self.by_key.entry(&term.topology_key).or_insert_with(|| {
            let column = self.filters.snapshot.column(&term.topology_key).clone();
            let weights = vec![0; column.values.len()];
            (column, weights)
        });
        for (node, count) in pods {
            let place = column.of_node[node as usize];
            if place != ABSENT {
                weights[place as usize] += weight * i64::from(count);
            }
        }
    }
}
