//! The proof that not all pods can find a node: more is asked of some resource than is free.

use super::{
    super::{
        Entry, Recreated,
        ask::{Ask, VOLUMES},
    },
    Loss, LostPod,
};
use crate::ordered::OrderedSet;

impl Loss<'_> {
    /// Whether more is asked than is free, so that not all pods find a node.
    pub fn is_short(&self) -> bool {
        self.is_too_much(&OrderedSet::new())
    }

    /// Whether more is asked of some resource than is free of it, on all nodes or on those of one set.
    pub(super) fn is_too_much(&self, without_node: &OrderedSet<LostPod>) -> bool {
        let proofs = &*self.proofs;
        let surely: Vec<(&LostPod, &Ask)> = self
            .pods
            .iter()
            .filter(|pod| proofs.recreated(self.entry(pod)) == Recreated::All && !without_node.contains(pod))
            .filter_map(|pod| Some((pod, self.entry(pod).ask.as_ref()?)))
            .collect();
        let highest = self.highest_priority();
        let left = |node: &u32| !self.is_lost[*node as usize];
        if highest > proofs.lowest_priority {
            let nodes: Vec<u32> = self.snapshot.node_numbers().filter(left).collect();
            let may_vanish =
                |entry: &&Entry| entry.priority < highest && proofs.recreated(entry) == Recreated::None;
            let vanishing = nodes.iter().flat_map(|node| &proofs.entries[*node as usize]).filter(may_vanish);
            let Some(vanishing) = vanishing.map(|entry| entry.ask.as_ref()).collect::<Option<Vec<_>>>()
            else {
                return false;
            };
            return self.exceeds_free(surely.iter().map(|(_, ask)| *ask), &nodes, &vanishing);
        }
        let set_of = |pod: &LostPod| proofs.profiles.all[pod.profile as usize].set;
        let sets: OrderedSet<u32> = surely.iter().map(|(pod, _)| set_of(pod)).collect();
        sets.into_iter().any(|set| {
            let set = &proofs.profiles.sets[set as usize];
            let nodes: Vec<u32> = set.nodes.iter().copied().filter(left).collect();
            let within: OrderedSet<u32> = (0..)
                .zip(&proofs.profiles.sets)
                .filter(|(_, other)| other.is_within(set))
                .map(|(number, _)| number)
                .collect();
            let asks = surely.iter().filter(|(pod, _)| within.contains(&set_of(pod))).map(|(_, ask)| *ask);
            self.exceeds_free(asks, &nodes, &[])
        })
    }

    /// Whether more is asked of some resource than is free on these nodes once those that vanish are gone.
    pub(super) fn exceeds_free<'e>(
        &self,
        asks: impl Iterator<Item = &'e Ask>,
        nodes: &[u32],
        vanishing: &[&Ask],
    ) -> bool {
        let mut sums = vec![0_i128; self.proofs.resources.len()];
        let mut add = |ask: &Ask, sign: i128| {
            ask.amounts()
                .for_each(|(resource, amount)| sums[usize::from(resource)] += sign * i128::from(amount));
        };
        asks.for_each(|ask| add(ask, 1));
        vanishing.iter().for_each(|ask| add(ask, -1));
        for node in nodes {
            for (sum, free) in sums.iter_mut().zip(self.proofs.room.free(*node)) {
                *sum -= i128::from((*free).max(0));
            }
        }
        sums[usize::from(VOLUMES)] = 0;
        sums.iter().any(|sum| *sum > 0)
    }

    /// The highest priority of the pods that may preempt others.
    pub(super) fn highest_priority(&self) -> i32 {
        let preempting = self.pods.iter().map(|pod| self.entry(pod)).filter(|entry| !entry.never_preempts);
        preempting.map(|entry| entry.priority).max().unwrap_or(i32::MIN)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::fixture::{SmallCluster, ZONE, only_on};

    /// Whether it is proved that two pods of this CPU are too much for two nodes on which so much is used.
    fn is_short(cpu: i64, used: i64) -> bool {
        let mut small = SmallCluster::new(&["a", "b", "b"]);
        small.pods("web", &[0, 0], cpu, 10);
        small.pods("db", &[1, 2], used, 10);
        small.with_loss(&[0], |loss| loss.is_short())
    }

    #[test]
    fn more_than_is_free_is_too_much_and_as_much_as_is_free_is_not() {
        assert!(is_short(401, 600));
        assert!(!is_short(400, 600));
    }

    #[test]
    fn what_is_free_elsewhere_does_not_count_for_pods_that_may_not_run_there() {
        let mut small = SmallCluster::new(&["a", "a", "b"]);
        small.pods_with("tied", &[0, 0], (501, 10), &only_on(ZONE, "a"));
        assert!(small.with_loss(&[0], |loss| loss.is_short()));
        let mut small = SmallCluster::new(&["a", "a", "b"]);
        small.pods_with("tied", &[0], (501, 10), &only_on(ZONE, "a"));
        small.pods("free", &[0], 501, 10);
        assert!(!small.with_loss(&[0], |loss| loss.is_short()));
    }
}
