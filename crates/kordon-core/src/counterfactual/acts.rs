//! What a controller did: nodes declared Unknown and pods evicted, with when the nodes were back.

use std::collections::BTreeSet;

use crate::{
    cluster::{Key, NodeName, Uid},
    plan::owner::Recreation,
};
use kordon_time::{Span, Timestamp};

/// What a controller did, in order of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Acts {
    pub unreachable: Vec<UnreachableNode>,
    pub evicted: Vec<EvictedPod>,
    /// The nodes that were not back since.
    open: BTreeSet<NodeName>,
}

/// A node that was declared Unknown.
#[derive(Clone, Debug, PartialEq)]
pub struct UnreachableNode {
    pub node: NodeName,
    pub at: Timestamp,
    /// When it was last heard from before that.
    pub silent_since: Timestamp,
    /// When it was heard from again and was well; none if it never was.
    pub back: Option<Timestamp>,
}

/// A pod that was evicted by a taint.
#[derive(Clone, Debug, PartialEq)]
pub struct EvictedPod {
    pub pod: Key,
    pub uid: Uid,
    pub node: NodeName,
    pub at: Timestamp,
    /// When its node was last heard from before that.
    pub silent_since: Timestamp,
    /// When its node was heard from again and was well; none if it never was.
    pub back: Option<Timestamp>,
    /// Whether and when its owner recreates it.
    pub recreation: Recreation,
}

impl UnreachableNode {
    /// How long it was silent until it was declared Unknown.
    pub const fn detection(&self) -> Span {
        self.at.since(self.silent_since)
    }
}

impl EvictedPod {
    /// Whether its node was back within this time: with more patience it would have stayed.
    pub fn is_unnecessary(&self, within: Span) -> bool {
        self.back.is_some_and(|back| back.since(self.at) <= within)
    }
}

impl Acts {
    pub(super) fn on_unreachable(&mut self, act: UnreachableNode) {
        self.open.insert(act.node.clone());
        self.unreachable.push(act);
    }

    pub(super) fn on_evicted(&mut self, act: EvictedPod) {
        self.open.insert(act.node.clone());
        self.evicted.push(act);
    }

    /// A node is back. Returns of how many pods the eviction came just before that, at most `close`.
    pub(super) fn on_back(&mut self, node: &NodeName, at: Timestamp, close: Span) -> usize {
        if !self.open.remove(node) {
            return 0;
        }
        for unreachable in self.unreachable.iter_mut().rev().filter(|act| act.node == *node) {
            unreachable.back.get_or_insert(at);
        }
        let mut just_before = 0;
        for evicted in self.evicted.iter_mut().rev().filter(|act| act.node == *node && act.back.is_none()) {
            evicted.back = Some(at);
            just_before += usize::from(at.since(evicted.at) <= close);
        }
        just_before
    }

    /// Those of a stretch of time.
    #[must_use]
    pub fn within(&self, from: Timestamp, until: Timestamp) -> Self {
        let is_in = |at: Timestamp| from <= at && at <= until;
        Self {
            unreachable: self.unreachable.iter().filter(|act| is_in(act.at)).cloned().collect(),
            evicted: self.evicted.iter().filter(|act| is_in(act.at)).cloned().collect(),
            open: BTreeSet::new(),
        }
    }
}

/// What a controller did, in numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ActsTotals {
    pub unreachable: usize,
    pub evicted: usize,
    /// Evictions from nodes that were back within a time.
    pub unnecessary: usize,
    /// Evictions from nodes that have been silent since, for less than that time: whether they were necessary is open.
    pub open: usize,
    /// From the last heartbeat until a node was declared Unknown; none without any.
    pub detection: Option<Spread>,
    /// From the last heartbeat until the eviction of a pod from a node that did not come back in that time.
    pub eviction: Option<Spread>,
}

/// The middle and the last of several times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    pub median: Span,
    pub longest: Span,
}

impl Acts {
    /// What was done, by the end of the recording: nodes that are back `within` this time did not have to be evicted.
    pub fn totals(&self, within: Span, end: Timestamp) -> ActsTotals {
        let (unnecessary, others): (Vec<_>, Vec<_>) =
            self.evicted.iter().partition(|pod| pod.is_unnecessary(within));
        let is_open = |pod: &&&EvictedPod| pod.back.is_none() && end.since(pod.at) < within;
        ActsTotals {
            unreachable: self.unreachable.len(),
            evicted: self.evicted.len(),
            unnecessary: unnecessary.len(),
            open: others.iter().filter(is_open).count(),
            detection: Spread::of(self.unreachable.iter().map(UnreachableNode::detection)),
            eviction: Spread::of(others.iter().map(|pod| pod.at.since(pod.silent_since))),
        }
    }
}

impl Spread {
    fn of(spans: impl Iterator<Item = Span>) -> Option<Self> {
        let mut sorted: Vec<Span> = spans.collect();
        sorted.sort_unstable();
        let longest = *sorted.last()?;
        Some(Self { median: sorted[sorted.len() / 2], longest })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_eviction_was_not_necessary_if_the_node_was_back_soon_after() {
        let at = |secs: i64| Timestamp::from_secs(1_800_000_000 + secs);
        let evicted = |node: &str, secs: i64| EvictedPod {
            pod: Key::new("d", node),
            uid: Uid::default(),
            node: node.into(),
            at: at(secs),
            silent_since: at(0),
            back: None,
            recreation: Recreation::Immediately,
        };
        let mut acts = Acts::default();
        for (node, secs) in [("soon", 340), ("late", 350), ("dead", 360), ("open", 1700)] {
            acts.on_evicted(evicted(node, secs));
        }
        let passes = Span::from_secs(10);
        assert_eq!(acts.on_back(&"soon".into(), at(345), passes), 1, "five seconds after");
        assert_eq!(acts.on_back(&"late".into(), at(700), passes), 0);
        let totals = acts.totals(Span::from_secs(300), at(1800));
        assert_eq!((totals.evicted, totals.unnecessary, totals.open), (4, 1, 1));
        let eviction = totals.eviction.expect("three");
        assert_eq!((eviction.median, eviction.longest), (Span::from_secs(360), Span::from_secs(1700)));
        assert_eq!(acts.within(at(355), at(1800)).evicted.len(), 2);
    }
}
