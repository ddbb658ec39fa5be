//! The other pods that a lost pod is compared with, and where they are.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    super::profile::{Relations, SpreadRelation, TermRelation},
    Loss, LostPod,
};

impl Loss<'_> {
    /// How many lost pods a term selects, without a pod of this profile itself.
    pub(super) fn others(&self, term: &TermRelation, profile: u32) -> usize {
        let own = self.proofs.profiles.all[profile as usize].pod_class;
        let is_in = |class: &u32| self.in_class.get(class).copied().unwrap_or(0);
        let all: usize = term.numbers.iter().map(is_in).sum();
        all - usize::from(term.numbers.binary_search(&own).is_ok())
    }

    /// The domains with pods of these classes.
    pub(super) fn values_of_classes(&self, term: &TermRelation) -> BTreeSet<u32> {
        let classes = term.numbers.iter().map(|class| self.snapshot.pod_classes().class(*class));
        let nodes = classes.flat_map(|class| class.on.iter()).map(|presence| presence.node);
        self.values(term.key, nodes)
    }

    /// The domains with pods of these groups.
    pub(super) fn values_of_groups(&self, term: &TermRelation) -> BTreeSet<u32> {
        let groups = term.numbers.iter().map(|group| &self.proofs.profiles.groups[*group as usize]);
        let classes = groups.flat_map(|group| &group.affinity_classes);
        let classes = classes.map(|class| self.snapshot.affinity_classes().class(*class));
        let nodes = classes.flat_map(|class| class.on.iter()).map(|presence| presence.node);
        self.values(term.key, nodes)
    }

    pub(super) fn values(&self, key: u32, nodes: impl Iterator<Item = u32>) -> BTreeSet<u32> {
        let left = nodes.filter(|node| !self.is_lost[*node as usize]);
        left.filter_map(|node| self.proofs.profiles.domain(key, node)).collect()
    }

    pub(super) fn uses_port(&self, node: u32, relations: &Relations) -> bool {
        let used = self.snapshot.resources(node).ports();
        relations.ports.iter().any(|port| used.iter().any(|used| used.conflicts_with(port)))
    }

    pub(super) fn conflicts(&self, pod: &LostPod, relations: &Relations) -> bool {
        let residents = &self.proofs.residents[pod.node as usize];
        let ports = &residents[pod.place as usize].pod.scheduling.host_ports;
        ports.iter().any(|port| relations.ports.iter().any(|own| own.conflicts_with(port)))
    }

    /// The pods that count for a spread constraint by domain, where there are any.
    pub(super) fn spread_counts(&self, spread: &SpreadRelation) -> BTreeMap<u32, i64> {
        let counted = &self.proofs.profiles.counted[spread.counted as usize].of_node;
        let mut counts = BTreeMap::new();
        for class in &spread.term.numbers {
            for presence in self.snapshot.pod_classes().class(*class).on.iter() {
                let node = presence.node as usize;
                if counted[node]
                    && !self.is_lost[node]
                    && let Some(value) = self.proofs.profiles.domain(spread.term.key, presence.node)
                {
                    *counts.entry(value).or_default() += presence.staying();
                }
            }
        }
        counts
    }
}
