//! Whether a packing leaves room for more.

use super::{
    super::{FitProofs, ask::Ask},
    load::Load,
};
use crate::ordered::{OrderedMap, OrderedSet};

/// More domains, such as nodes, need not have room each.
const MOST_DOMAINS: usize = 64;

/// What constraints of packed pods take of the nodes that they may run on; kept from one repair to the next.
#[derive(Clone, Debug, Default)]
pub(super) struct Narrowing {
    /// Node sets and labels: each domain must have room.
    domains: OrderedSet<(u32, u32)>,
    /// By node set: the most nodes that one pod may not come to because of other pods.
    closed: OrderedMap<u32, usize>,
}

impl Narrowing {
    /// A pod may not come to some domains of a label, each of a few nodes if there are many.
    pub fn add(&mut self, set: u32, key: u32, domains: usize, closed_nodes: usize) {
        if domains > MOST_DOMAINS {
            let closed = self.closed.entry(set).or_default();
            *closed = closed_nodes.max(*closed);
        } else {
            self.domains.insert((set, key));
        }
    }
}

/// What packed pods ask for at most, by the nodes that they may run on.
#[derive(Debug, Default)]
pub(super) struct Reserve {
    /// By node set, then by resource.
    largest: OrderedMap<u32, Vec<i64>>,
}

impl Reserve {
    pub fn add(&mut self, profile: u32, ask: &Ask, proofs: &FitProofs) {
        let set = proofs.profiles.all[profile as usize].set;
        let largest = self.largest.entry(set).or_insert_with(|| vec![0; proofs.resources.len()]);
        for (resource, amount) in ask.amounts() {
            let most = &mut largest[usize::from(resource)];
            *most = amount.max(*most);
        }
    }

    /// Whether enough nodes have room for one more pod that asks for the most of everything.
    pub fn is_left(&self, proofs: &FitProofs, load: &Load, is_lost: &[bool], narrowing: &Narrowing) -> bool {
        self.largest.iter().all(|(set, largest)| {
            let nodes = proofs.profiles.sets[*set as usize].nodes.iter().copied();
            let nodes: Vec<(u32, bool)> = nodes
                .filter(|node| !is_lost[*node as usize])
                .map(|node| (node, load.has_room_for_all(&proofs.room, node, largest)))
                .collect();
            let mut keys = narrowing.domains.range((*set, 0)..=(*set, u32::MAX)).map(|(_, key)| *key);
            let share = Share::of(nodes.iter().map(|(_, has_room)| *has_room));
            share.without(narrowing.closed.get(set).copied().unwrap_or(0)).is_enough()
                && keys.all(|key| is_left_in_domains(proofs, key, &nodes))
        })
    }
}

/// The same in each domain of a label.
fn is_left_in_domains(proofs: &FitProofs, key: u32, nodes: &[(u32, bool)]) -> bool {
    let mut shares: OrderedMap<u32, Share> = OrderedMap::new();
    for (node, has_room) in nodes {
        if let Some(value) = proofs.profiles.domain(key, *node) {
            shares.entry(value).or_default().add(*has_room);
        }
    }
    shares.values().all(|share| share.is_enough())
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

    /// If so many of those with room are closed to a pod.
    fn without(self, closed: usize) -> Self {
        Self { with_room: self.with_room.saturating_sub(closed), ..self }
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
        let closed = |closed| Share { all: 100, with_room: 80 }.without(closed).is_enough();
        assert!(closed(30) && !closed(31));
    }
}
