//! The pods that stay where they are when some nodes are lost, as far as others are compared with them.

use super::profile::{Profiles, Relations, SpreadRelation, TermRelation};
use crate::{
    ordered::{OrderedMap, OrderedSet},
    placement::snapshot::Snapshot,
};

/// The pods of all nodes but the lost ones.
#[derive(Clone, Copy)]
pub(super) struct StayingPods<'a> {
    pub profiles: &'a Profiles,
    pub snapshot: &'a Snapshot,
    /// By node.
    pub is_lost: &'a [bool],
}

impl StayingPods<'_> {
    /// The domains with pods of these classes.
    pub fn values_of_classes(&self, term: &TermRelation) -> OrderedSet<u32> {
        let classes = term.numbers.iter().map(|class| self.snapshot.pod_classes().class(*class));
        let nodes = classes.flat_map(|class| class.on.iter()).map(|presence| presence.node);
        self.values(term.key, nodes)
    }

    /// The domains with pods of these groups.
    pub fn values_of_groups(&self, term: &TermRelation) -> OrderedSet<u32> {
        let groups = term.numbers.iter().map(|group| &self.profiles.groups[*group as usize]);
        let classes = groups.flat_map(|group| &group.affinity_classes);
        let classes = classes.map(|class| self.snapshot.affinity_classes().class(*class));
        let nodes = classes.flat_map(|class| class.on.iter()).map(|presence| presence.node);
        self.values(term.key, nodes)
    }

    fn values(&self, key: u32, nodes: impl Iterator<Item = u32>) -> OrderedSet<u32> {
        let left = nodes.filter(|node| !self.is_lost[*node as usize]);
        left.filter_map(|node| self.profiles.domain(key, node)).collect()
    }

    /// Whether a pod of a node uses one of the ports that are asked for.
    pub fn uses_port(&self, node: u32, relations: &Relations) -> bool {
        let used = self.snapshot.resources(node).ports();
        relations.ports.iter().any(|port| used.iter().any(|used| used.conflicts_with(port)))
    }

    /// The pods that count for a spread constraint by domain, where there are any.
    pub fn spread_counts(&self, spread: &SpreadRelation) -> OrderedMap<u32, i64> {
        let counted = &self.profiles.counted[spread.counted as usize].of_node;
        let mut counts = OrderedMap::new();
        for class in &spread.term.numbers {
            for presence in self.snapshot.pod_classes().class(*class).on.iter() {
                let node = presence.node as usize;
                if counted[node]
                    && !self.is_lost[node]
                    && let Some(value) = self.profiles.domain(spread.term.key, presence.node)
                {
                    *counts.entry(value).or_default() += presence.staying();
                }
            }
        }
        counts
    }
}
