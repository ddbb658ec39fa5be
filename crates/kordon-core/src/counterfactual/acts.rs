//! Acts of a controller: nodes declared Unknown and pods evicted, with the time at which each node came back.

use std::collections::BTreeSet;

use crate::{
    cluster::{Key, NodeName, Uid},
    plan::owner::Recreation,
};
use kordon_time::{Span, Timestamp};

/// Acts of a controller, in order of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Acts {
    pub unreachable: Vec<UnreachableNode>,
    pub evicted: Vec<EvictedPod>,
    /// Nodes that were declared Unknown or whose pods were evicted, and that have not come back since.
    open: BTreeSet<NodeName>,
}

/// A node that was declared Unknown.
#[derive(Clone, Debug, PartialEq)]
pub struct UnreachableNode {
    pub node: NodeName,
    pub at: Timestamp,
    /// The last heartbeat before the node was declared Unknown.
    pub silent_since: Timestamp,
    /// First heartbeat at which the node was Ready again; `None` if there was none.
    pub back: Option<Timestamp>,
}

/// A pod that was evicted by a taint.
#[derive(Clone, Debug, PartialEq)]
pub struct EvictedPod {
    pub pod: Key,
    pub uid: Uid,
    pub node: NodeName,
    pub at: Timestamp,
    /// The last heartbeat of the pod's node before the eviction.
    pub silent_since: Timestamp,
    /// First heartbeat after the eviction at which the pod's node was Ready; `None` if there was none.
    pub back: Option<Timestamp>,
    /// Whether and when the pod's owner recreates the pod.
    pub recreation: Recreation,
}

impl UnreachableNode {
    /// The time from the last heartbeat until the node was declared Unknown.
    pub const fn detection(&self) -> Span {
        self.at.since(self.silent_since)
    }
}

impl EvictedPod {
    /// Whether the eviction was unnecessary: the pod's node came back at most `within` after it. With a longer grace
    /// period or toleration, the pod would have stayed.
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

    /// Handles the return of a node. Returns the number of its pods that were evicted at most `close` before the
    /// return.
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

    /// Returns the acts within a time range, both ends included.
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

/// Totals of a controller's acts: how many there were, and how long they took.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ActsTotals {
    pub unreachable: usize,
    pub evicted: usize,
    /// Unnecessary evictions: the pod's node came back within the time given to [`Acts::totals`].
    pub unnecessary: usize,
    /// Evictions for which the recording ends too early to tell whether they were unnecessary. The node was still
    /// silent at the end, and the time given to [`Acts::totals`] was not over.
    pub open: usize,
    /// The time from the last heartbeat until a node was declared Unknown; `None` if no node was declared Unknown.
    pub detection: Option<Spread>,
    /// The time from the last heartbeat until an eviction; `None` without evictions. Unnecessary evictions are left
    /// out.
    pub eviction: Option<Spread>,
}

/// Median and maximum of several durations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    pub median: Span,
    pub longest: Span,
}

impl Acts {
    /// Returns the totals at the end of the recording. An eviction is unnecessary if the pod's node came back within
    /// the time `within` after the eviction.
    pub fn totals(&self, within: Span, end: Timestamp) -> ActsTotals {
        let (unnecessary, others): (Vec<_>, Vec<_>) =
            self.evicted.iter().partition(|pod| pod.is_unnecessary(within));
        let is_open = |pod: &&&EvictedPod| pod.back.is_none() && end.since(pod.at) < within;
        ActsTotals {
            unreachable: self.unreachable.len(),
            evicted: self.evicted.len(),
            unnecessary: unnecessary.len(),
            open: others.iter().filter(is_open).count(),
            detection: Spread::from_spans(self.unreachable.iter().map(UnreachableNode::detection)),
            eviction: Spread::from_spans(others.iter().map(|pod| pod.at.since(pod.silent_since))),
        }
    }
}

impl Spread {
    fn from_spans(spans: impl Iterator<Item = Span>) -> Option<Self> {
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
