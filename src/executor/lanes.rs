//! A queue with lanes: items of one lane are executed one after the other.

use std::collections::{BTreeMap, VecDeque};

/// Waiting items, grouped by lane. At most one item of each lane is in flight.
pub(super) struct Lanes<L, I> {
    /// Waiting items of each lane. The map has a lane while an item of the lane waits or is in flight.
    lanes: BTreeMap<L, VecDeque<I>>,
    /// Lanes that have waiting items but none in flight. The lane that has waited longest is first.
    ready: VecDeque<L>,
    waiting: usize,
}

impl<L, I> Default for Lanes<L, I> {
    fn default() -> Self {
        Self { lanes: BTreeMap::new(), ready: VecDeque::new(), waiting: 0 }
    }
}

impl<L: Clone + Ord, I> Lanes<L, I> {
    /// Number of waiting items.
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

    /// Removes and returns the next item to start, with its lane.
    pub fn next(&mut self) -> Option<(L, I)> {
        let lane = self.ready.pop_front()?;
        let item = self.lanes.get_mut(&lane)?.pop_front()?;
        self.waiting -= 1;
        Some((lane, item))
    }

    /// Records that the lane's item in flight has finished.
    pub fn finished(&mut self, lane: &L) {
        match self.lanes.get(lane) {
            Some(waiting) if !waiting.is_empty() => self.ready.push_back(lane.clone()),
            Some(_) => _ = self.lanes.remove(lane),
            None => {}
        }
    }
}
