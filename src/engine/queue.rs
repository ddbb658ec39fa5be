//! The queue of nodes that wait for their NoExecute taint (docs/upstream/node-lifecycle.md#6; upstream
//! `RateLimitedTimedQueue`).

use std::collections::{BTreeMap, BTreeSet};

use super::limiter::Limiter;
use crate::{
    cluster::{NodeName, Uid},
    time::{Span, Timestamp},
};

/// Nodes in the order of their time, each known at most once.
///
/// A name stays *known* after it was processed, and is not taken again until [`Queue::remove`]: that is what makes a
/// node be tainted once and not in every pass.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    /// By time; among equals by arrival. Upstream's heap leaves the order of equals open.
    waiting: BTreeMap<(Timestamp, u64), QueueEntry>,
    places: BTreeMap<NodeName, (Timestamp, u64)>,
    known: BTreeSet<NodeName>,
    arrivals: u64,
}

/// A node that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueEntry {
    pub node: NodeName,
    pub uid: Uid,
    pub added: Timestamp,
}

/// What came of processing an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Processed {
    Done,
    /// Not done; to be tried again after so long.
    RetryAfter(Span),
}

impl Queue {
    /// Lets a node wait, unless it is known already. Tells whether it now waits by this call.
    pub fn add(&mut self, node: &NodeName, uid: &Uid, now: Timestamp) -> bool {
        if !self.known.insert(node.clone()) {
            return false;
        }
        self.push(QueueEntry { node: node.clone(), uid: uid.clone(), added: now }, now);
        true
    }

    /// Forgets a node altogether. Tells whether it was known.
    pub fn remove(&mut self, node: &NodeName) -> bool {
        self.stop_waiting(node);
        self.known.remove(node)
    }

    /// Lets a node that was processed wait again: what came of it turned out to be a failure.
    pub fn again(&mut self, node: &NodeName, uid: &Uid, now: Timestamp) {
        self.remove(node);
        self.add(node, uid, now);
    }

    /// Lets a node wait anew, behind those that wait: what upstream makes of one that it finds in want of its taint
    /// in pass after pass.
    pub fn wait(&mut self, node: &NodeName, uid: &Uid, now: Timestamp) {
        let Some(place) = self.places.get_mut(node) else { return self.again(node, uid, now) };
        let mut entry = self.waiting.remove(place).expect("it has a place");
        entry.added = now;
        self.arrivals += 1;
        *place = (now, self.arrivals);
        self.waiting.insert(*place, entry);
    }

    /// Whether some node's time is this.
    pub fn came_at(&self, at: Timestamp) -> bool {
        self.waiting.range((at, 0)..=(at, u64::MAX)).next().is_some()
    }

    /// Does for the nodes that a pass at `now` left out what it did for the others that wait: together they wait anew
    /// in order of their names.
    pub fn wait_together(&mut self, left_out: impl Fn(&NodeName) -> bool, now: Timestamp) {
        for (node, place) in &mut self.places {
            if place.0 == now || left_out(node) {
                let mut entry = self.waiting.remove(place).expect("it has a place");
                entry.added = now;
                self.arrivals += 1;
                *place = (now, self.arrivals);
                self.waiting.insert(*place, entry);
            }
        }
    }

    /// Takes a node for processed: it does not wait, and is known.
    pub fn take_for_processed(&mut self, node: &NodeName) {
        self.stop_waiting(node);
        self.known.insert(node.clone());
    }

    /// Takes a node out of the waiting ones, and keeps it known.
    pub fn stop_waiting(&mut self, node: &NodeName) {
        if let Some(place) = self.places.remove(node) {
            self.waiting.remove(&place);
        }
    }

    /// Whether the node waits or was processed and not removed since.
    pub fn knows(&self, node: &NodeName) -> bool {
        self.known.contains(node)
    }

    pub fn is_waiting(&self, node: &NodeName) -> bool {
        self.places.contains_key(node)
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The nodes that wait, in the order in which they would be processed.
    pub fn waiting(&self) -> impl Iterator<Item = &QueueEntry> {
        self.waiting.values()
    }

    /// When the first of the waiting nodes may be processed as far as its own time goes.
    pub fn head_at(&self) -> Option<Timestamp> {
        self.waiting.keys().next().map(|(at, _)| *at)
    }

    /// Processes waiting nodes while the limiter gives tokens (upstream `Try`).
    ///
    /// The token is taken before the time of the head is looked at, so that a head that is not due costs one.
    pub fn process(
        &mut self,
        limiter: &mut Limiter,
        now: Timestamp,
        mut act: impl FnMut(&QueueEntry) -> Processed,
    ) {
        while let Some((&place, head)) = self.waiting.iter().next() {
            if !limiter.try_accept(now) || now < place.0 {
                return;
            }
            match act(head) {
                Processed::Done => {
                    let node = head.node.clone();
                    self.stop_waiting(&node);
                }
                Processed::RetryAfter(wait) => {
                    let entry = self.waiting.remove(&place).expect("it is the head");
                    self.push(entry, now + wait + Span::from_nanos(1));
                }
            }
        }
    }

    fn push(&mut self, entry: QueueEntry, at: Timestamp) {
        self.arrivals += 1;
        self.places.insert(entry.node.clone(), (at, self.arrivals));
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
        for (place, name) in (1..).zip(names) {
            assert!(queue.add(&NodeName::from(*name), &Uid::from("u"), at(place)));
        }
        queue
    }

    fn process(queue: &mut Queue, now: Timestamp, result: impl Fn(&str) -> Processed) -> Vec<String> {
        let mut seen = Vec::new();
        // A token is there at every call: a fresh bucket each time round would hide the loop's own stops.
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
    fn an_empty_queue_takes_no_token() {
        let mut limiter = Limiter::full(0.1, at(0));
        Queue::default().process(&mut limiter, at(0), |_| Processed::Done);
        assert!(limiter.try_accept(at(0)));
    }
}
