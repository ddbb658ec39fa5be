//! The proof that a pod stays Pending wherever the others are placed.

use std::collections::BTreeSet;

use super::{Loss, LostPod};

impl Loss<'_> {
    /// Whether a pod stays Pending wherever the others are placed, and without preempting any.
    pub(super) fn finds_no_node(&self, pod: &LostPod) -> bool {
        let entry = self.entry(pod);
        let profile = &self.proofs.profiles.all[pod.profile as usize];
        let Some(relations) = self.proofs.profiles.known_relations(pod.profile) else { return false };
        let left = || {
            let nodes = self.proofs.profiles.sets[profile.set as usize].nodes.iter().copied();
            nodes.filter(|node| !self.is_lost[*node as usize])
        };
        if left().next().is_none() {
            return true;
        }
        if let Some(affinity) = &relations.affinity
            && relations.is_modelled
            && !affinity.may_be_first
            && self.others(&affinity.term, pod.profile) == 0
            && self.values_of_classes(&affinity.term).is_empty()
        {
            return true;
        }
        let Some(ask) = &entry.ask else { return false };
        let may_preempt = !entry.never_preempts && entry.priority > self.proofs.lowest_priority;
        if may_preempt {
            return false;
        }
        let blocked: Vec<(u32, BTreeSet<u32>)> = relations
            .anti_affinity
            .iter()
            .map(|term| (term.key, self.values_of_classes(term)))
            .chain(relations.of_others.iter().map(|term| (term.key, self.values_of_groups(term))))
            .collect();
        let is_apart = |node: u32| {
            let is_blocked = |(key, values): &(u32, BTreeSet<u32>)| {
                self.proofs.profiles.domain(*key, node).is_some_and(|value| values.contains(&value))
            };
            !blocked.iter().any(is_blocked)
        };
        !left().any(|node| {
            self.proofs.room.has(node, ask) && !self.uses_port(node, &relations) && is_apart(node)
        })
    }
}
