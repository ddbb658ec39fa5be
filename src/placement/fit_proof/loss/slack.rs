//! How much may change elsewhere before a proof perhaps does not hold any more.

use super::{
    super::{
        ask::Ask,
        profile::Relations,
        room::{Cost, Costs},
    },
    Loss, LostPod, ROUNDING, exceeds,
};
use crate::placement::columns::ABSENT;

/// More domains, such as nodes, hardly have enough room each.
const MOST_DOMAINS: usize = 64;

impl Loss<'_> {
    /// The [slack](Self::slack) where each domain of one spread constraint has enough room for all others that may come into
    /// it; none where one has not. `elsewhere` is what other constraints leave no room in.
    pub(super) fn slack_in_each_domain(
        &mut self,
        relations: &Relations,
        tight: usize,
        elsewhere: Cost,
        costs: &mut Costs,
        question: Option<u32>,
        first: &LostPod,
    ) -> Option<u64> {
        let spread = &relations.spread[tight];
        let term = spread.term.key;
        let left = self.domains_left(spread).to_vec();
        let values = (0..).zip(&left).filter(|(_, nodes)| **nodes > 0).map(|(value, _)| value);
        let values: Vec<u32> = values.collect();
        let is_open = spread.own <= spread.max_skew && values.len() >= spread.min_domains;
        if !is_open || values.is_empty() || values.len() > MOST_DOMAINS {
            return None;
        }
        let of_changes = self.cost_of_changes(relations, Some(tight), costs, first);
        let mut slack = u64::MAX;
        for value in values {
            let room = self.domain_cost(term, value, costs, question).minus(elsewhere);
            let demand = self.demand(costs, first.profile, Some((term, value)));
            if !exceeds(room, demand, costs) {
                return None;
            }
            slack = slack.min(of_changes.until_short(room, demand, costs));
        }
        Some(slack)
    }

    /// What changes elsewhere take at most of the room that is left to a pod, or add to what others ask for.
    ///
    /// A node may come to cost nothing, or as much as an empty one. Its cost counts once in all room, once for each constraint
    /// that leaves no room on it, and as that of the largest domain for each pod that may close one. Where domains are single
    /// nodes, the largest costs no more than an empty node however many change. A pod that is counted for a spread
    /// constraint lets one more of the others into a domain. One spread constraint may be left out.
    pub(super) fn cost_of_changes(
        &mut self,
        relations: &Relations,
        left_out: Option<usize>,
        costs: &mut Costs,
        first: &LostPod,
    ) -> CostOfChanges {
        let of_others = relations.of_others.iter().map(|term| {
            let group = self.in_group.get(&term.numbers[0]).copied().unwrap_or(0);
            (term.key, 1, group)
        });
        let anti_affinity =
            relations.anti_affinity.iter().map(|term| (term.key, 1, self.others(term, first.profile)));
        let spread = (0..).zip(&relations.spread).filter(|(place, _)| Some(*place) != left_out);
        let spread = spread.map(|(_, spread)| (spread.term.key, 2, self.others(&spread.term, first.profile)));
        let terms: Vec<(u32, usize, usize)> = of_others.chain(anti_affinity).chain(spread).collect();
        let ports = if relations.ports.is_empty() { 0 } else { 1 + self.pods.len() };
        let mut times = 1 + usize::from(relations.affinity.is_some()) + ports;
        let mut once = Cost::default();
        let empty_node = Cost { weight: costs.most_possible, nodes: 1.0 };
        for (key, of_domains, more) in terms {
            times += of_domains;
            if self.has_single_nodes(key) {
                let most = costs.domains(key, &self.proofs.profiles.keys[key as usize].1).most;
                once = once.plus(empty_node.minus(most).max(Cost::default()).times(more as f64));
            } else {
                times += more;
            }
        }
        let another_pod = Cost { weight: self.largest_size(costs), nodes: 1.0 };
        CostOfChanges { once, each: empty_node.times(times as f64).plus(another_pod) }
    }

    /// Whether no two nodes are in one domain.
    pub(super) fn has_single_nodes(&mut self, key: u32) -> bool {
        let column = &self.proofs.profiles.keys[key as usize].1;
        *self.single_nodes.entry(key).or_insert_with(|| {
            column.of_node.iter().filter(|value| **value != ABSENT).count() <= column.values.len()
        })
    }

    /// No lost pod is larger, of the resources that a pod asks for.
    pub(super) fn largest_size(&mut self, costs: &Costs) -> f64 {
        let Self { proofs, pods, largest, .. } = self;
        let largest = largest.get_or_insert_with(|| {
            let entries = pods.iter().map(|pod| &proofs.entries[pod.node as usize][pod.place as usize]);
            Ask::largest(entries.filter_map(|entry| entry.ask.as_ref()), proofs.resources.len())
        });
        let asked = (0..).zip(largest.iter()).filter(|(resource, _)| costs.mask & (1_u64 << *resource) != 0);
        asked
            .map(|(resource, amount): (usize, _)| costs.weights[resource] * *amount as f64)
            .fold(0.0, f64::max)
    }
}

/// What changes of other nodes and pods take of room at most: something once, and something each.
#[derive(Clone, Copy, Debug)]
pub(super) struct CostOfChanges {
    once: Cost,
    each: Cost,
}

impl CostOfChanges {
    /// How many changes there may be before [`exceeds`] is perhaps not true any more.
    pub(super) fn until_short(self, room: Cost, demand: Cost, costs: &Costs) -> u64 {
        let rounding = 2.0 * ROUNDING * (costs.all.weight + demand.weight.abs());
        let left = room.minus(demand).minus(self.once);
        let by_weight = (left.weight - rounding) / self.each.weight.max(f64::MIN_POSITIVE);
        let by_nodes = (left.nodes - 0.5) / self.each.nodes;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "not negative, and saturates"
        )]
        let changes = by_weight.max(by_nodes).max(0.0) as u64;
        // The last one might leave exactly nothing.
        changes.saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::fixture::SmallCluster;

    /// How many changes a proof of the loss of the first of so many nodes outlasts.
    fn slack(nodes: usize) -> Option<u64> {
        let mut small = SmallCluster::new(&vec!["a"; nodes]);
        small.pods("web", &[0], 100, 100);
        small.with_loss(&[0], |loss| loss.prove().1)
    }

    #[test]
    fn more_room_outlasts_more_changes_and_the_last_node_none() {
        assert_eq!(slack(2), Some(0));
        assert!(slack(20).expect("it fits") > slack(5).expect("it fits"));
        assert!(slack(20).expect("it fits") < 19, "each change may take a node");
    }

    #[test]
    fn what_does_not_fit_has_no_slack() {
        let mut small = SmallCluster::new(&["a", "a"]);
        small.pods("web", &[0], 600, 100);
        small.pods("db", &[1], 600, 100);
        assert_eq!(small.with_loss(&[0], |loss| loss.prove().1), None);
    }
}
