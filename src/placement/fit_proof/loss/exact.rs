//! Proofs by the exact amounts that pods ask for, and by weights for one loss.

use super::{
    super::{
        ask::{Ask, ResourceNumber},
        room::Costs,
    },
    Loss, LostPod,
};
use crate::ordered::OrderedMap;

impl Loss<'_> {
    /// Whether each of these fits, by weights for this loss and by the exact amounts.
    pub(super) fn fit_exactly(&mut self, pods: &[LostPod]) -> bool {
        self.lost_costs.clear();
        self.lost_domains.clear();
        self.demands.clear();
        let mut best: OrderedMap<(u32, u64), Vec<f64>> = OrderedMap::new();
        let mut rounded: OrderedMap<u32, Costs> = OrderedMap::new();
        for pod in pods {
            let Some(ask) = self.entry(pod).ask.clone() else { return false };
            let set = self.proofs.profiles.all[pod.profile as usize].set;
            let weights = match best.get(&(set, ask.mask())) {
                Some(weights) => weights.clone(),
                None => {
                    let weights = self.best_weights(set, &ask);
                    best.insert((set, ask.mask()), weights.clone());
                    weights
                }
            };
            let place = self.pods.binary_search(pod).expect("it is one of them");
            let group = place..place + 1;
            let mut costs = rounded.remove(&pod.question).unwrap_or_else(|| {
                self.proofs.costs_of(set, &self.proofs.questions[pod.question as usize].ask, weights.clone())
            });
            let fits = self.fits(&group, &mut costs, Some(pod.question));
            rounded.insert(pod.question, costs);
            if !fits && !self.fits(&group, &mut self.proofs.costs_of(set, &ask, weights), None) {
                return false;
            }
        }
        true
    }

    /// Weights by which the room that is left is large beside what is asked of it.
    pub(super) fn best_weights(&mut self, set: u32, ask: &Ask) -> Vec<f64> {
        let nodes: Vec<u32> = self.proofs.profiles.sets[set as usize]
            .nodes
            .iter()
            .filter(|node| !self.is_lost[**node as usize])
            .copied()
            .collect();
        let mask = ask.mask();
        let asked: Vec<(ResourceNumber, i64)> = ask.amounts().collect();
        let asks: Vec<&Ask> = self.pods.iter().filter_map(|pod| self.entry(pod).ask.as_ref()).collect();
        let ratio = |weights: &[f64]| {
            let cost: f64 = nodes.iter().map(|node| self.proofs.room.cost(*node, &asked, weights)).sum();
            let size: f64 = asks.iter().map(|ask| ask.size(weights, mask)).sum();
            cost / size.max(f64::MIN_POSITIVE)
        };
        let mut weights = self.proofs.room.weights(nodes.iter().copied());
        let mut best = ratio(&weights);
        for factor in [4.0, 2.0, 1.4, 1.15] {
            for (resource, _) in &asked {
                for factor in [factor, 1.0 / factor] {
                    let mut other = weights.clone();
                    other[usize::from(*resource)] *= factor;
                    let found = ratio(&other);
                    if found > best {
                        (weights, best) = (other, found);
                    }
                }
            }
        }
        weights
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::{FitProof, fixture::SmallCluster};

    #[test]
    fn what_only_the_exact_amounts_show_is_proved_by_them() {
        // Rounded up to 768 the pod would not fit.
        let mut small = SmallCluster::new(&["a", "a"]);
        small.pods("web", &[0], 520, 10);
        small.pods("db", &[1], 480, 10);
        assert_eq!(small.prove(&[0]), FitProof::Pending { pending: 0, pods: 1 });
    }

    #[test]
    fn pods_that_fit_in_one_order_only_are_not_proved() {
        // The small ones may take the room of the large one.
        let mut small = SmallCluster::new(&["a", "a", "a"]);
        small.pods("large", &[0], 500, 10);
        small.pods("small", &[0, 0], 200, 10);
        small.pods("db", &[1, 2], 400, 10);
        assert_eq!(small.prove(&[0]), FitProof::Open);
    }

    #[test]
    fn a_resource_of_which_little_is_free_is_weighed_for_the_loss() {
        // Most CPU is free, and memory only on the nodes that are left.
        let mut small = SmallCluster::new(&["a", "a", "a", "a"]);
        small.pods("web", &[0, 0], 10, 200);
        small.pods("db", &[1, 2, 3], 10, 500);
        assert_eq!(small.prove(&[0]), FitProof::Pending { pending: 0, pods: 2 });
    }
}
