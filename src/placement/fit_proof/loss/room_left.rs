//! The room that the constraints of a pod leave it on the nodes that are left.

use super::{
    super::{
        profile::{Relations, SpreadRelation},
        room::{Cost, Costs},
    },
    FEW, Loss, LostPod,
};
use crate::ordered::OrderedSet;

impl Loss<'_> {
    /// What of the costs is lost.
    pub(super) fn lost_cost(&mut self, question: Option<u32>, costs: &Costs) -> Cost {
        let known = question.and_then(|question| self.lost_costs.get(&question).copied());
        known.unwrap_or_else(|| {
            let lost = self.lost.iter().fold(Cost::default(), |sum, node| sum.plus(costs.node(*node)));
            if let Some(question) = question {
                self.lost_costs.insert(question, lost);
            }
            lost
        })
    }

    /// The costs of a domain without the lost nodes.
    pub(super) fn domain_cost(
        &mut self,
        term: u32,
        value: u32,
        costs: &mut Costs,
        question: Option<u32>,
    ) -> Cost {
        let column = &self.proofs.profiles.keys[term as usize].1;
        let all = costs.domains(term, column).of[value as usize];
        let Some(question) = question.filter(|_| self.lost.len() > FEW) else {
            let lost = self.lost.iter().filter(|node| column.of_node[**node as usize] == value);
            return lost.fold(all, |left, node| left.minus(costs.node(*node)));
        };
        let lost = self.lost_domains.entry((question, term)).or_insert_with(|| {
            let mut lost = vec![Cost::default(); column.values.len()];
            for node in &self.lost {
                if let Some(lost) = lost.get_mut(column.of_node[*node as usize] as usize) {
                    *lost = lost.plus(costs.node(*node));
                }
            }
            lost
        });
        all.minus(lost[value as usize])
    }

    /// The room that is left by affinity and anti-affinity; none if the affinity cannot be answered.
    pub(super) fn room_by_affinity(
        &mut self,
        all: Cost,
        relations: &Relations,
        costs: &mut Costs,
        question: Option<u32>,
        first: &LostPod,
    ) -> Option<Cost> {
        let (profile, own_group) = (first.profile, self.entry(first).group);
        let mut room = all;
        if let Some(affinity) = &relations.affinity {
            let values = self.staying().values_of_classes(&affinity.term);
            if values.is_empty() {
                if !affinity.may_be_first || self.others(&affinity.term, profile) > 0 {
                    return None;
                }
                let column = &self.proofs.profiles.keys[affinity.term.key as usize].1;
                room = room.minus(costs.domains(affinity.term.key, column).absent);
            } else {
                let allowed = values.into_iter().fold(Cost::default(), |sum, value| {
                    sum.plus(self.domain_cost(affinity.term.key, value, costs, question))
                });
                room = room.minus(all.minus(allowed));
            }
        }
        for term in &relations.anti_affinity {
            let values = self.staying().values_of_classes(term);
            room = self.without_domains(room, term.key, values, self.others(term, profile), costs);
        }
        for term in &relations.of_others {
            let values = self.staying().values_of_groups(term);
            let first = term.numbers[0];
            let of_it = self.in_group.get(&first).copied().unwrap_or(0);
            let others = of_it - usize::from(own_group == Some(first));
            room = self.without_domains(room, term.key, values, others, costs);
        }
        Some(room)
    }

    /// Without the nodes whose ports are in use, and one more for each other pod that may use them.
    pub(super) fn room_by_ports(&self, room: Cost, relations: &Relations, costs: &Costs) -> Cost {
        if relations.ports.is_empty() {
            return room;
        }
        let is_used = |node: u32| self.staying().uses_port(node, relations);
        let used = costs.nodes().filter(|node| is_used(*node));
        let blocked = used.fold(Cost::default(), |sum, node| sum.plus(costs.node(node)));
        let others = self.pods.iter().filter(|pod| self.conflicts(pod, relations)).count().saturating_sub(1);
        room.minus(blocked).minus(costs.most.times(others as f64))
    }

    /// Without the domains that are closed now, and one more for each other pod that counts; none if that cannot be
    /// answered. The lowest count never falls while pods are added.
    pub(super) fn room_by_spread(
        &mut self,
        room: Cost,
        spread: &SpreadRelation,
        costs: &mut Costs,
        profile: u32,
    ) -> Option<Cost> {
        let counts = self.staying().spread_counts(spread);
        let left = self.domains_left(spread);
        let domains = left.iter().filter(|nodes| **nodes > 0).count();
        let is_domain = |value: &u32| left[*value as usize] > 0;
        let counted: Vec<i64> =
            counts.iter().filter(|(value, _)| is_domain(value)).map(|(_, count)| *count).collect();
        let is_zero = domains < spread.min_domains || counted.len() < domains;
        let least = if is_zero { 0 } else { counted.iter().copied().min().unwrap_or(0) };
        let is_closed = |count: i64| domains > 0 && count + spread.own - least > spread.max_skew;
        if is_closed(0) {
            return None;
        }
        let closed = counts.into_iter().filter(|(_, count)| is_closed(*count)).map(|(value, _)| value);
        let closed = closed.collect();
        let column = &self.proofs.profiles.keys[spread.term.key as usize].1;
        let absent = costs.domains(spread.term.key, column).absent;
        let more = self.others(&spread.term, profile);
        Some(self.without_domains(room.minus(absent), spread.term.key, closed, more, costs))
    }

    /// Without these domains, and without so many more.
    pub(super) fn without_domains(
        &self,
        room: Cost,
        key: u32,
        values: OrderedSet<u32>,
        more: usize,
        costs: &mut Costs,
    ) -> Cost {
        let domains = costs.domains(key, &self.proofs.profiles.keys[key as usize].1);
        let blocked =
            values.into_iter().fold(Cost::default(), |sum, value| sum.plus(domains.of[value as usize]));
        room.minus(blocked).minus(domains.most.times(more as f64))
    }

    /// How many nodes of each domain are left.
    pub(super) fn domains_left(&mut self, spread: &SpreadRelation) -> &[u32] {
        let profiles = &self.proofs.profiles;
        let counted = &profiles.counted[spread.counted as usize];
        self.domains_left.entry(spread.counted).or_insert_with(|| {
            let mut left = counted.nodes_in.clone();
            for node in self.lost.iter().filter(|node| counted.of_node[**node as usize]) {
                if let Some(value) = profiles.domain(spread.term.key, *node) {
                    left[value as usize] -= 1;
                }
            }
            left
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::{
        FitProof,
        fixture::{HOSTNAME, SmallCluster, ZONE, apart_from, spread_over},
    };

    fn fits(pods: usize) -> FitProof {
        FitProof::Pending { pending: 0, pods }
    }

    #[test]
    fn each_pod_that_is_to_be_apart_takes_one_more_domain() {
        let apart = |nodes: &[&str]| {
            let mut small = SmallCluster::new(nodes);
            small.pods_with("web", &[0, 0], (10, 10), &apart_from("web", HOSTNAME));
            small.prove(&[0])
        };
        assert_eq!(apart(&["a", "a", "a", "a"]), fits(2));
        assert_ne!(apart(&["a", "a"]), fits(2));
    }

    #[test]
    fn a_domain_that_would_break_a_spread_constraint_has_no_room() {
        let spread = |used_in_c: i64| {
            let mut small = SmallCluster::new(&["a", "b", "c"]);
            small.pods_with("web", &[0, 1], (10, 10), &spread_over("web", ZONE));
            small.pods("db", &[2], used_in_c, 10);
            small.prove(&[0])
        };
        assert_eq!(spread(900), fits(1));
        assert_ne!(spread(995), fits(1), "zone b has room, but has one pod already");
    }
}
