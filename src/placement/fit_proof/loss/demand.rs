//! What the other lost pods may take of some nodes at most.

use super::{
    super::{
        profile::SpreadRelation,
        room::{Cost, Costs},
    },
    Group, Loss, LostPod,
};

impl Loss<'_> {
    /// The sizes of all lost pods that may come to the nodes of a profile, or to one domain of them.
    pub(super) fn demand(&mut self, costs: &Costs, profile: u32, domain: Option<(u32, u32)>) -> Cost {
        let set = self.proofs.profiles.all[profile as usize].set;
        let memo = (set, costs.mask, domain);
        if let Some(known) = self.demands.get(&memo) {
            return *known;
        }
        let mut demand = Cost::default();
        let mut start = 0;
        while start < self.pods.len() {
            let other = self.pods[start].profile;
            let end = start + self.pods[start..].partition_point(|pod| pod.profile == other);
            demand = demand.plus(self.demand_of(start..end, set, costs, domain));
            start = end;
        }
        self.demands.insert(memo, demand);
        demand
    }

    /// The part of it of the pods of one profile.
    pub(super) fn demand_of(
        &mut self,
        pods: Group,
        set: u32,
        costs: &Costs,
        domain: Option<(u32, u32)>,
    ) -> Cost {
        let profile = self.pods[pods.start].profile;
        let sets = &self.proofs.profiles.sets;
        let own = self.proofs.profiles.all[profile as usize].set;
        if own != set && !sets[own as usize].meets(&sets[set as usize]) {
            return Cost::default();
        }
        let (mut sum, mut most) = (0.0, 0.0_f64);
        for pod in &self.pods[pods.clone()] {
            let size = self.size(pod, costs);
            (sum, most) = (sum + size, most.max(size));
        }
        let count = pods.len() as f64;
        let bound =
            domain.and_then(|domain| self.most_in_domain(profile, domain)).map_or(count, |most| most as f64);
        Cost { weight: sum.min(bound * most), nodes: count.min(bound) }
    }

    /// How many pods of a profile its own spread constraint lets into a domain at most.
    ///
    /// A pod comes in while the count there is below the lowest count and the skew together. The lowest is not above the
    /// mean of the other domains, which have what they had and those pods that do not come here.
    pub(super) fn most_in_domain(&mut self, profile: u32, (key, value): (u32, u32)) -> Option<i64> {
        let relations = self.proofs.profiles.relations(profile, self.snapshot);
        let class = self.proofs.profiles.all[profile as usize].pod_class;
        let limits = |spread: &&SpreadRelation| {
            spread.term.key == key && spread.own == 1 && spread.term.numbers.binary_search(&class).is_ok()
        };
        let spread = relations.spread.iter().find(limits)?;
        let left = self.domains_left(spread);
        let domains = i64::try_from(left.iter().filter(|nodes| **nodes > 0).count()).ok()?;
        if domains < 2 || left[value as usize] == 0 {
            return None;
        }
        let is_domain: Vec<bool> = left.iter().map(|nodes| *nodes > 0).collect();
        let counts = self.staying().spread_counts(spread);
        let here = counts.get(&value).copied().unwrap_or(0);
        let others = counts.iter().filter(|(other, _)| **other != value && is_domain[**other as usize]);
        let others: i64 = others.map(|(_, count)| *count).sum();
        let coming = i64::try_from(self.others(&spread.term, profile)).ok()? + 1;
        let most = ((spread.max_skew - here) * (domains - 1) + others + coming).div_euclid(domains);
        Some(most.clamp(0, coming))
    }

    pub(super) fn size(&self, pod: &LostPod, costs: &Costs) -> f64 {
        self.entry(pod).ask.as_ref().map_or(0.0, |ask| ask.size(&costs.weights, costs.mask))
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::{
        FitProof,
        fixture::{SmallCluster, ZONE, only_on, spread_over},
    };

    #[test]
    fn pods_that_may_not_come_to_a_node_do_not_take_its_room() {
        let others = |zone: &str| {
            let mut small = SmallCluster::new(&["a", "b", "c"]);
            small.pods_with("web", &[0], (600, 10), &only_on(ZONE, "b"));
            small.pods_with("db", &[0], (600, 10), &only_on(ZONE, zone));
            small.prove(&[0])
        };
        assert_eq!(others("c"), FitProof::Pending { pending: 0, pods: 2 });
        assert_eq!(others("b"), FitProof::Short);
    }

    #[test]
    fn a_spread_constraint_bounds_how_many_pods_come_into_a_domain() {
        // Two of the four come into each zone, so that each has room for all that come.
        let spread = |cpu: i64| {
            let mut small = SmallCluster::new(&["a", "b", "c"]);
            small.pods_with("web", &[0, 0, 0, 0], (cpu, 10), &spread_over("web", ZONE));
            small.prove(&[0])
        };
        assert_eq!(spread(300), FitProof::Pending { pending: 0, pods: 4 });
        assert_ne!(spread(501), FitProof::Pending { pending: 0, pods: 4 });
    }
}
