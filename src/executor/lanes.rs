//! Items in lanes.

use std::collections::{BTreeMap, VecDeque};

/// Items that wait, by lane. Of each lane one item is in flight at a time.
pub(super) struct Lanes<L, I> {
    /// The items of each lane that wait. A lane is here while any item of it waits or is in flight.
    lanes: BTreeMap<L, VecDeque<I>>,
    /// The lanes with items that wait and none in flight, the one that has waited longest first.
    ready: VecDeque<L>,
    waiting: usize,
}

impl<L, I> Default for Lanes<L, I> {
    fn default() -> Self {
        Self { lanes: BTreeMap::new(), ready: VecDeque::new(), waiting: 0 }
    }
}

impl<L: Clone + Ord, I> Lanes<L, I> {
    /// The number of items that wait.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    pub fn add(&mut self, lane: L, item: I) {
        self.waiting += 1;
        let is_new = !self.lanes.contains_key(&lane);
        self.lanes.entry(lane.clone()).or_default().push_back(item);
        if is_new {
            self.ready.push_back(lane);
        }
    }

    /// The next item to start, and its lane.
    pub fn next(&mut self) -> Option<(L, I)> {
        let lane = self.ready.pop_front()?;
        let item = self.lanes.get_mut(&lane)?.pop_front()?;
        self.waiting -= 1;
        Some((lane, item))
    }

    /// The item of this lane that was in flight is finished.
    pub fn finished(&mut self, lane: &L) {
        match self.lanes.get(lane) {
            Some(waiting) if !waiting.is_empty() => self.ready.push_back(lane.clone()),
            Some(_) => _ = self.lanes.remove(lane),
            None => {}
        }
    }
}
