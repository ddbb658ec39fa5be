//! Queue events of a forecast: which nodes compete for the tokens of a zone's rate limiter. Upstream's choice among
//! these nodes is random (docs/upstream/node-lifecycle.md#12.24).

use super::{Engine, queue::QueueChange};
use crate::cluster::{NodeName, ZoneKey};
use kordon_time::Timestamp;

/// An event in a zone's queue during a forecast.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueueEvent {
    /// A node started or stopped waiting, since the zone's rate limiter last had a token.
    Changed { zone: ZoneKey, change: QueueChange },
    /// The zone's rate limiter had a token, and one of the waiting nodes was tainted with it.
    Tainted { zone: ZoneKey, node: NodeName, at: Timestamp },
}

impl Engine {
    /// Returns the oldest queue event of a forecast that was not polled yet.
    pub fn poll_queue_event(&mut self) -> Option<QueueEvent> {
        self.queue_events.pop_front()
    }
}
