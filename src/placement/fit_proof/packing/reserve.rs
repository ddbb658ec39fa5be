//! Whether a packing leaves room for more.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    super::{FitProofs, ask::Ask},
    load::Load,
};
use crate::placement::snapshot::Snapshot;

/// More domains, such as nodes, need not have room each.
const MOST_DOMAINS: usize = 64;

/// What packed pods ask for at most, by the nodes that they may run on, and over which domains of these they are spread.
#[derive(Debug, Default)]
pub(super) struct Reserve {
    /// By node set, then by resource.
    largest: BTreeMap<u32, Vec<i64>>,
    /// Node sets and labels.
    domains: BTreeSet<(u32, u32)>,
    /// Node sets and constraints that were seen.
    seen: BTreeSet<(u32, u32)>,
}

impl Reserve {
    pub fn add(&mut self, profile: u32, ask: &Ask, proofs: &mut FitProofs, snapshot: &Snapshot) {
        let set = proofs.profiles.all[profile as usize].set;
        let largest = self.largest.entry(set).or_insert_with(|| vec![0; proofs.resources.len()]);
        for (resource, amount) in ask.amounts() {
            let most = &mut largest[usize::from(resource)];
            *most = amount.max(*most);
        }
        if self.seen.insert((set, proofs.profiles.constraints_of(profile))) {
            let keys = proofs.profiles.topology_keys(profile, snapshot);
            self.domains.extend(keys.into_iter().map(|key| (set, key)));
        }
    }

    /// Whether enough nodes have room for one more pod that asks for the most of everything.
    pub fn is_left(&self, proofs: &FitProofs, load: &Load, is_lost: &[bool]) -> bool {
        self.largest.iter().all(|(set, largest)| {
            let nodes = proofs.profiles.sets[*set as usize].nodes.iter().copied();
            let nodes: Vec<(u32, bool)> = nodes
                .filter(|node| !is_lost[*node as usize])
                .map(|node| (node, load.has_room_for_all(&proofs.room, node, largest)))
                .collect();
            let mut keys = self.domains.range((*set, 0)..=(*set, u32::MAX)).map(|(_, key)| *key);
            Share::of(nodes.iter().map(|(_, has_room)| *has_room)).is_enough()
                && keys.all(|key| is_left_in_domains(proofs, key, &nodes))
        })
    }
}

/// The same in each domain of a label.
fn is_left_in_domains(proofs: &FitProofs, key: u32, nodes: &[(u32, bool)]) -> bool {
    let mut shares: BTreeMap<u32, Share> = BTreeMap::new();
    for (node, has_room) in nodes {
        if let Some(value) = proofs.profiles.domain(key, *node) {
            shares.entry(value).or_default().add(*has_room);
        }
    }
    shares.len() > MOST_DOMAINS || shares.values().all(|share| share.is_enough())
}

/// How many nodes there are, and how many of them have room.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    all: usize,
    with_room: usize,
}

impl Share {
    fn of(nodes: impl Iterator<Item = bool>) -> Self {
        let mut share = Self::default();
        nodes.for_each(|has_room| share.add(has_room));
        share
    }

    fn add(&mut self, has_room: bool) {
        self.all += 1;
        self.with_room += usize::from(has_room);
    }

    /// Half of them, and of few nodes nearly all.
    fn is_enough(self) -> bool {
        self.with_room >= self.all.div_ceil(2).max(self.all.min(4))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_many_nodes_is_enough_and_of_four_it_is_not() {
        let is_enough = |all, with_room| Share { all, with_room }.is_enough();
        assert!(is_enough(100, 50) && !is_enough(100, 49));
        assert!(is_enough(4, 4) && !is_enough(4, 3));
        assert!(is_enough(5, 4) && !is_enough(5, 3));
    }
}
