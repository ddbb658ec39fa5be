//! The queue of nodes that wait for their NoExecute taint (docs/upstream/node-lifecycle.md#6; upstream
//! `RateLimitedTimedQueue`).

use std::collections::{BTreeMap, BTreeSet};

use super::limiter::Limiter;
use crate::cluster::{NodeName, Uid};
use kordon_time::{Span, Timestamp};

/// Nodes sorted by time, each known at most once.
///
/// A node stays *known* after it was processed, and cannot be added again until [`Queue::remove`] removes it. A node is
/// therefore tainted once, and not in every pass.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    /// Waiting nodes by time; equal times by arrival. Upstream's heap does not define the order of equal times.
    waiting: BTreeMap<(Timestamp, u64), QueueEntry>,
    positions: BTreeMap<NodeName, (Timestamp, u64)>,
    known: BTreeSet<NodeName>,
    arrivals: u64,
    /// Nodes that started or stopped waiting since the last call of [`Queue::changes`]; none before the first call.
    changed: Option<BTreeSet<NodeName>>,
}

/// A node that started or stopped waiting in a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueueChange {
    /// The node waits now, for the first time or again.
    Waits(NodeName),
    /// The node does not wait any more.
    StopsWaiting(NodeName),
}

/// A waiting node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueEntry {
    pub node: NodeName,
    pub uid: Uid,
    pub added: Timestamp,
}

/// The result of processing a node of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Processed {
    Done,
    /// The node stays in the queue, and is processed again after this time.
    RetryAfter(Span),
}

impl Queue {
    /// Adds a node, unless it is known already. Returns whether this call added it.
    pub fn add(&mut self, node: &NodeName, uid: &Uid, now: Timestamp) -> bool {
        if !self.known.insert(node.clone()) {
            return false;
        }
        self.push(QueueEntry { node: node.clone(), uid: uid.clone(), added: now }, now);
        true
    }

    /// Removes a node, so that it is no longer known. Returns whether it was known.
    pub fn remove(&mut self, node: &NodeName) -> bool {
        self.stop_waiting(node);
        self.known.remove(node)
    }

    /// Adds a processed node again after a failure.
    pub fn requeue(&mut self, node: &NodeName, uid: &Uid, now: Timestamp) {
        self.remove(node);
        self.add(node, uid, now);
    }

    /// Adds a node behind all others, even if it already waits. Upstream does this in every pass with a node that still
    /// lacks its taint.
    pub fn move_to_back(&mut self, node: &NodeName, uid: &Uid, now: Timestamp) {
        let Some(position) = self.positions.get_mut(node) else {
            self.known.insert(node.clone());
            return self.push(QueueEntry { node: node.clone(), uid: uid.clone(), added: now }, now);
        };
        let mut entry = self.waiting.remove(position).expect("it has a position");
        entry.added = now;
        self.arrivals += 1;
        *position = (now, self.arrivals);
        self.waiting.insert(*position, entry);
    }

    /// Whether a node waits in the queue with exactly the time `at`.
    pub fn has_entry_at(&self, at: Timestamp) -> bool {
        self.waiting.range((at, 0)..=(at, u64::MAX)).next().is_some()
    }

    /// Moves nodes to the back of the queue, sorted by name: the nodes that the pass at `now` left out, and the nodes
    /// that it requeued.
    pub fn requeue_together(&mut self, left_out: impl Fn(&NodeName) -> bool, now: Timestamp) {
        for (node, position) in &mut self.positions {
            if position.0 == now || left_out(node) {
                let mut entry = self.waiting.remove(position).expect("it has a position");
                entry.added = now;
                self.arrivals += 1;
                *position = (now, self.arrivals);
                self.waiting.insert(*position, entry);
            }
        }
    }

    /// Marks a node as processed: known, and not waiting.
    pub fn mark_processed(&mut self, node: &NodeName) {
        self.stop_waiting(node);
        self.known.insert(node.clone());
    }

    /// Removes a node from the waiting ones; it stays known.
    pub fn stop_waiting(&mut self, node: &NodeName) {
        if let Some(position) = self.positions.remove(node) {
            self.waiting.remove(&position);
            self.on_changed(node);
        }
    }

    /// Whether the node waits, or was processed and not removed since.
    pub fn knows(&self, node: &NodeName) -> bool {
        self.known.contains(node)
    }

    /// Whether the queue [knows](Queue::knows) any node.
    pub fn knows_any(&self) -> bool {
        !self.known.is_empty()
    }

    pub fn is_waiting(&self, node: &NodeName) -> bool {
        self.positions.contains_key(node)
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The waiting nodes, in the order in which they would be processed.
    pub fn waiting(&self) -> impl Iterator<Item = &QueueEntry> {
        self.waiting.values()
    }

    /// The time of the first waiting node: no node can be processed earlier.
    pub fn head_at(&self) -> Option<Timestamp> {
        self.waiting.keys().next().map(|(at, _)| *at)
    }

    /// Returns the nodes that started or stopped waiting since the last call, sorted by name. The first call returns
    /// all waiting nodes and starts the recording of changes.
    pub fn changes(&mut self) -> Vec<QueueChange> {
        let changed = self.changed.replace(BTreeSet::new());
        let changed = changed.unwrap_or_else(|| self.positions.keys().cloned().collect());
        let change = |node| match self.is_waiting(&node) {
            true => QueueChange::Waits(node),
            false => QueueChange::StopsWaiting(node),
        };
        changed.into_iter().map(change).collect()
    }

    /// Processes waiting nodes while the limiter has tokens (upstream `Try`).
    ///
    /// A token is taken before the time of the first entry is checked, so an entry that is not due yet costs a token.
    pub fn process(
        &mut self,
        limiter: &mut Limiter,
        now: Timestamp,
        act: impl FnMut(&QueueEntry) -> Processed,
    ) {
        self.process_others(|_| false, limiter, now, act);
    }

    /// Like [`Queue::process`], but skips the nodes for which `is_held` returns true. Skipped nodes keep their places
    /// and cost no token.
    pub fn process_others(
        &mut self,
        is_held: impl Fn(&NodeName) -> bool,
        limiter: &mut Limiter,
        now: Timestamp,
        mut act: impl FnMut(&QueueEntry) -> Processed,
    ) {
        while let Some((&position, head)) = self.waiting.iter().find(|(_, entry)| !is_held(&entry.node)) {
            if !limiter.try_accept(now) || now < position.0 {
                return;
            }
            match act(head) {
                Processed::Done => {
                    let node = head.node.clone();
                    self.stop_waiting(&node);
                }
                Processed::RetryAfter(wait) => {
                    let entry = self.waiting.remove(&position).expect("it is the head");
                    self.push(entry, now + wait + Span::from_nanos(1));
                }
            }
        }
    }

    fn on_changed(&mut self, node: &NodeName) {
        if let Some(changed) = &mut self.changed {
            changed.insert(node.clone());
        }
    }

    fn push(&mut self, entry: QueueEntry, at: Timestamp) {
        self.on_changed(&entry.node);
        self.arrivals += 1;
        self.positions.insert(entry.node.clone(), (at, self.arrivals));
        self.waiting.insert((at, self.arrivals), entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNLIMITED: f32 = 1e9;

    fn at(millis: i64) -> Timestamp {
        Timestamp::EPOCH + Span::from_millis(millis)
    }

    fn filled(names: &[&str]) -> Queue {
        let mut queue = Queue::default();
        for (position, name) in (1..).zip(names) {
            assert!(queue.add(&NodeName::from(*name), &Uid::from("u"), at(position)));
        }
        queue
    }

    fn process(queue: &mut Queue, now: Timestamp, result: impl Fn(&str) -> Processed) -> Vec<String> {
        let mut seen = Vec::new();
        // The rate limiter always has a token, so only the queue's own conditions end the processing.
        let mut limiter = Limiter::full(UNLIMITED, Timestamp::EPOCH);
        queue.process(&mut limiter, now, |entry| {
            seen.push(entry.node.to_string());
            result(&entry.node)
        });
        seen
    }

    fn drain(queue: &mut Queue, now: i64, result: impl Fn(&str) -> Processed + Copy) -> Vec<String> {
        (0..10).flat_map(|step| process(queue, at(now) + Span::from_nanos(step * 10), result)).collect()
    }

    #[test]
    fn nodes_are_processed_in_the_order_of_their_times() {
        let mut queue = filled(&["first", "second", "third"]);
        assert!(queue.remove(&"second".into()));
        assert_eq!(drain(&mut queue, 10, |_| Processed::Done), ["first", "third"]);
    }

    #[test]
    fn a_processed_node_stays_known_until_removed() {
        let mut queue = filled(&["first"]);
        assert_eq!(drain(&mut queue, 10, |_| Processed::Done), ["first"]);
        assert!(!queue.add(&"first".into(), &Uid::from("u"), at(11)));
        assert!(queue.remove(&"first".into()), "known, though it no longer waits");
        assert!(queue.add(&"first".into(), &Uid::from("u"), at(12)));
    }

    #[test]
    fn a_held_node_keeps_its_place_and_costs_no_token() {
        let mut queue = filled(&["first", "second", "third"]);
        let mut limiter = Limiter::full(0.1, Timestamp::EPOCH);
        let mut process = |held: &[&str], now: i64| {
            let mut seen = Vec::new();
            let is_held = |node: &NodeName| held.contains(&&*node.to_string());
            queue.process_others(is_held, &mut limiter, at(now), |entry| {
                seen.push(entry.node.to_string());
                Processed::Done
            });
            seen
        };
        assert_eq!(process(&["first", "second", "third"], 10), [""; 0]);
        assert_eq!(process(&["first", "third"], 20), ["second"], "the token is still there");
        assert_eq!(process(&[], 20_000), ["first"]);
    }

    #[test]
    fn a_node_that_must_wait_lets_the_others_pass() {
        let mut queue = filled(&["first", "second", "third"]);
        let wait = |name: &str| match name {
            "second" => Processed::RetryAfter(Span::from_millis(2)),
            _ => Processed::Done,
        };
        assert_eq!(drain(&mut queue, 5, wait), ["first", "second", "third"]);
        assert_eq!(
            queue.head_at(),
            Some(at(7) + Span::from_nanos(11)),
            "2 ms and a nanosecond after its turn"
        );
        assert_eq!(drain(&mut queue, 8, |_| Processed::Done), ["second"]);
    }

    #[test]
    fn a_head_that_is_not_due_costs_a_token() {
        let mut queue = filled(&["first"]);
        let mut limiter = Limiter::full(0.1, at(0));
        queue.process(&mut limiter, at(0), |_| Processed::Done);
        assert!(!queue.is_empty(), "its time is 1 ms");
        assert!(!limiter.try_accept(at(1)));
    }

    #[test]
    fn changes_tell_who_began_or_stopped_to_wait_since_the_last_call() {
        let mut queue = filled(&["a", "b", "c"]);
        let waits = |node: &str| QueueChange::Waits(node.into());
        let stops = |node: &str| QueueChange::StopsWaiting(node.into());
        assert_eq!(queue.changes(), [waits("a"), waits("b"), waits("c")]);
        drain(&mut queue, 1, |_| Processed::Done);
        queue.remove(&"b".into());
        queue.add(&"d".into(), &Uid::from("u"), at(9));
        assert_eq!(queue.changes(), [stops("a"), stops("b"), waits("d")]);
        queue.remove(&"a".into());
        assert_eq!(queue.changes(), [], "it did not wait");
    }

    #[test]
    fn an_empty_queue_takes_no_token() {
        let mut limiter = Limiter::full(0.1, at(0));
        Queue::default().process(&mut limiter, at(0), |_| Processed::Done);
        assert!(limiter.try_accept(at(0)));
    }
}
