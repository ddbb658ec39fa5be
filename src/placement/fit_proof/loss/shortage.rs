//! The proof that not all pods can find a node: more is asked of some resource than is free.

use std::collections::BTreeSet;

use super::{
    super::{
        Entry, Recreated,
        ask::{Ask, VOLUMES},
    },
    Loss, LostPod,
};

impl Loss<'_> {
    /// Whether more is asked of some resource than is free of it, on all nodes or on those of one set.
    pub(super) fn is_too_much(&self, without_node: &BTreeSet<LostPod>) -> bool {
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
        let sets: BTreeSet<u32> = surely.iter().map(|(pod, _)| set_of(pod)).collect();
        sets.into_iter().any(|set| {
            let set = &proofs.profiles.sets[set as usize];
            let nodes: Vec<u32> = set.nodes.iter().copied().filter(left).collect();
            let within: BTreeSet<u32> = (0..)
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
