//! The proof that a pod stays Pending wherever the others are placed.

use super::{super::Entry, Loss, LostPod};
use crate::ordered::OrderedSet;

impl Loss<'_> {
    /// Whether the pod at a place of a lost node stays Pending wherever the others are placed. Its relations are known.
    pub fn has_no_node(&self, node: u32, place: u32) -> bool {
        let Entry { profile, question, .. } = self.proofs.entries[node as usize][place as usize];
        self.finds_no_node(&LostPod { profile, question, node, place })
    }

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
            && self.staying().values_of_classes(&affinity.term).is_empty()
        {
            return true;
        }
        let Some(ask) = &entry.ask else { return false };
        let may_preempt = !entry.never_preempts && entry.priority > self.proofs.lowest_priority;
        if may_preempt {
            return false;
        }
        let blocked: Vec<(u32, OrderedSet<u32>)> = relations
            .anti_affinity
            .iter()
            .map(|term| (term.key, self.staying().values_of_classes(term)))
            .chain(relations.of_others.iter().map(|term| (term.key, self.staying().values_of_groups(term))))
            .collect();
        let is_apart = |node: u32| {
            let is_blocked = |(key, values): &(u32, OrderedSet<u32>)| {
                self.proofs.profiles.domain(*key, node).is_some_and(|value| values.contains(&value))
            };
            !blocked.iter().any(is_blocked)
        };
        !left().any(|node| {
            self.proofs.room.has(node, ask) && !self.staying().uses_port(node, &relations) && is_apart(node)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::{
        FitProof,
        fixture::{HOSTNAME, SmallCluster, ZONE, apart_from, only_on},
    };

    #[test]
    fn a_pod_whose_nodes_are_all_lost_finds_none_and_one_with_a_node_left_does() {
        let mut small = SmallCluster::new(&["a", "a", "b"]);
        small.pods_with("tied", &[0], (100, 100), &only_on(ZONE, "a"));
        assert_eq!(small.prove(&[0, 1]), FitProof::Pending { pending: 1, pods: 1 });
        assert_eq!(small.prove(&[0]), FitProof::Pending { pending: 0, pods: 1 });
    }

    #[test]
    fn a_pod_that_no_node_has_room_for_now_finds_none_and_one_that_fits_exactly_does() {
        let mut small = SmallCluster::new(&["a", "a", "a"]);
        small.pods("web", &[0], 600, 100);
        small.pods("db", &[1, 2], 401, 100);
        assert_eq!(small.prove(&[0]), FitProof::Pending { pending: 1, pods: 1 });
        let mut small = SmallCluster::new(&["a", "a", "a"]);
        small.pods("web", &[0], 600, 100);
        small.pods("db", &[1, 2], 400, 100);
        assert_eq!(small.prove(&[0]), FitProof::Pending { pending: 0, pods: 1 });
    }

    #[test]
    fn a_pod_that_may_preempt_others_is_not_said_to_find_none() {
        let mut small = SmallCluster::new(&["a", "a"]);
        small.pods("web", &[0], 600, 100);
        small.pods("db", &[1], 600, 100);
        assert_eq!(small.prove(&[0]), FitProof::Pending { pending: 1, pods: 1 });
        let web =
            small.cluster.pods().iter().find(|pod| *pod.labels.get("app").expect("it has one") == *"web");
        let mut important = (**web.expect("it is there")).clone();
        important.priority = 7;
        let change = crate::cluster::Change::Pod(crate::cluster::ObjectEvent::Applied(important));
        small.cluster.apply(change, &mut Vec::new());
        assert_eq!(small.prove(&[0]), FitProof::Short, "one of the two has no node, whichever it is");
    }

    #[test]
    fn pods_that_refuse_it_on_each_node_leave_it_none() {
        let refused = |guards: &[usize]| {
            let mut small = SmallCluster::new(&["a", "a", "a"]);
            small.pods_with("web", &[0], (100, 100), &apart_from("guard", HOSTNAME));
            small.pods("guard", guards, 100, 100);
            small.prove(&[0])
        };
        assert_eq!(refused(&[1, 2]), FitProof::Pending { pending: 1, pods: 1 });
        assert_eq!(refused(&[1]), FitProof::Pending { pending: 0, pods: 1 });
    }
}
