//! Which nodes compete for a zone's token, in a forecast: which of them gets it is chance upstream
//! (docs/upstream/node-lifecycle.md#12.24).

use super::{Engine, queue::Queue};
use crate::{
    cluster::{NodeName, ZoneKey},
    time::Timestamp,
};

/// A token of a zone's rate limiter, and the nodes that waited for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaintTurn {
    pub at: Timestamp,
    pub zone: ZoneKey,
    /// The node that was tainted with it here.
    pub node: NodeName,
    /// All nodes that waited for it, this one included.
    pub waiting: Vec<NodeName>,
}

impl Engine {
    /// A token that a forecast gave to one of the waiting nodes.
    pub fn poll_taint_turn(&mut self) -> Option<TaintTurn> {
        self.turns.pop_front()
    }
}

/// The nodes that wait in a queue.
pub(super) fn waiting(queue: &Queue) -> Vec<NodeName> {
    queue.waiting().map(|entry| entry.node.clone()).collect()
}
