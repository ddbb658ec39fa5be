//! Which nodes compete for a zone's tokens, in a forecast: which of them gets a token is chance upstream
//! (docs/upstream/node-lifecycle.md#12.24).

use super::{Engine, queue::QueueChange};
use crate::cluster::{NodeName, ZoneKey};
use kordon_time::Timestamp;

/// What happens in the queue of a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueueEvent {
    /// Other nodes wait than when the zone last had a token.
    Changed { zone: ZoneKey, change: QueueChange },
    /// The zone's rate limiter had a token, and one of the waiting nodes was tainted with it.
    Tainted { zone: ZoneKey, node: NodeName, at: Timestamp },
}

impl Engine {
    /// What happened in the queues of the zones during a forecast, in order.
    pub fn poll_queue_event(&mut self) -> Option<QueueEvent> {
        self.queue_events.pop_front()
    }
}
