//! The nodes that have pods of one class (a group of pods that placement treats alike), with the number of such pods on
//! each node.

use smallvec::SmallVec;

/// Number of pods of one pod class or affinity class on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Presence {
    pub node: u32,
    pub all: u32,
    /// Number of terminating pods; `all` includes them.
    pub terminating: u32,
}

impl Presence {
    /// Returns the number of pods that are not terminating.
    pub fn staying(self) -> i64 {
        i64::from(self.all - self.terminating)
    }
}

/// The nodes with pods of one pod class or affinity class, ascending.
#[derive(Clone, Debug, Default)]
pub(super) struct PresenceList {
    /// Entries by node. One entry is stored inline, because classes whose pods are all on one node are common.
    on: SmallVec<[Presence; 1]>,
}

impl PresenceList {
    pub fn is_empty(&self) -> bool {
        self.on.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = Presence> + Clone + use<'_> {
        self.on.iter().copied()
    }

    /// Adds a pod without keeping the list sorted, which is faster for many pods. The caller has to call
    /// [`PresenceList::sort`] afterwards.
    pub fn push(&mut self, node: u32, is_terminating: bool) {
        self.on.push(Presence { node, all: 1, terminating: u32::from(is_terminating) });
    }

    pub fn sort(&mut self) {
        self.on.sort_unstable_by_key(|presence| presence.node);
        self.on.dedup_by(|later, earlier| {
            let same = later.node == earlier.node;
            if same {
                earlier.all += later.all;
                earlier.terminating += later.terminating;
            }
            same
        });
        self.on.shrink_to_fit();
    }

    pub fn add(&mut self, node: u32, is_terminating: bool) {
        let place = self.on.partition_point(|presence| presence.node < node);
        if self.on.get(place).is_none_or(|presence| presence.node != node) {
            self.on.insert(place, Presence { node, all: 0, terminating: 0 });
        }
        self.on[place].all += 1;
        self.on[place].terminating += u32::from(is_terminating);
    }

    /// Removes a pod of the class from a node. The pod must have been added before.
    pub fn remove(&mut self, node: u32, is_terminating: bool) {
        let place = self.on.partition_point(|presence| presence.node < node);
        self.on[place].all -= 1;
        self.on[place].terminating -= u32::from(is_terminating);
        if self.on[place].all == 0 {
            self.on.remove(place);
        }
    }
}
