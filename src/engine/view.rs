//! What the engine knows, for the screen and the command line: read only, computed when asked.

use super::{
    legacy::EvictionStatus,
    why::{Certainty, HeartbeatSource, Why},
    zone::ZoneState,
};
use crate::{
    cluster::{Key, NodeName, Uid, ZoneKey},
    time::{Span, Timestamp},
};

/// When the engine must be woken or something falls due, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Deadline {
    pub at: Timestamp,
    pub why: Why,
}

/// What the controller believes of a node.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeView {
    /// When the last sign of life was noticed: upstream's probeTimestamp.
    pub probe: Timestamp,
    pub heartbeat_source: HeartbeatSource,
    pub certainty: Certainty,
    /// The grace period in force: startup grace where the node has no Ready condition.
    pub grace: Span,
    pub zone: ZoneKey,
    /// Where the node stands on its way to the NoExecute taint, or in legacy mode to losing its pods.
    pub stage: NodeStage,
    /// How far its eviction has come, in legacy mode.
    pub eviction: Option<EvictionStatus>,
}

impl NodeView {
    /// From when a pass finds the node silent; it does so at the first one *after* this.
    pub fn expires(&self) -> Timestamp {
        self.probe + self.grace
    }
}

/// Where a node stands on its way to the NoExecute taint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NodeStage {
    /// Nothing is due.
    Healthy,
    /// Not ready, and waiting in its zone's queue for the taint (in legacy mode for the deletion of its pods).
    Queued,
    /// The engine has asked for the taint; it is not seen on the node yet.
    Requested,
    /// It carries the NoExecute taint that belongs to its state.
    Tainted,
    /// Legacy mode: its pods have been deleted.
    Evicted,
}

/// What the controller believes of a zone.
#[derive(Clone, Debug, PartialEq)]
pub struct ZoneView {
    pub key: ZoneKey,
    pub state: ZoneState,
    /// Nodes that count: those not excluded from disruption.
    pub size: usize,
    pub not_ready: usize,
    /// Nodes given the NoExecute taint per second; 0 is none.
    pub rate: f32,
    /// The nodes that wait, by name: upstream's order among them is chance.
    pub queue: Vec<NodeName>,
    /// When the next token is there; none where the rate is 0.
    pub next_token: Option<Timestamp>,
}

impl ZoneView {
    /// The share of counted nodes that are not ready, from 0 to 1.
    #[expect(clippy::cast_precision_loss, reason = "zones have far fewer than 2^24 nodes")]
    pub fn unready_share(&self) -> f32 {
        if self.size == 0 { 0.0 } else { self.not_ready as f32 / self.size as f32 }
    }
}

/// A pod on a node with NoExecute taints.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingEviction {
    pub pod: Key,
    pub uid: Uid,
    pub node: NodeName,
    pub due: Due,
    pub why: Why,
}

impl PendingEviction {
    /// Soonest first, those that never fall due last.
    pub(super) fn order(&self) -> (Timestamp, NodeName, Key) {
        (self.due.at().unwrap_or(Timestamp::MAX), self.node.clone(), self.pod.clone())
    }
}

/// When a pending eviction falls due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    At {
        at: Timestamp,
        certainty: Certainty,
    },
    /// Its tolerations have no limit, or legacy mode spares it.
    Never,
}

impl Due {
    /// The time, where there is one.
    pub const fn at(self) -> Option<Timestamp> {
        match self {
            Self::At { at, .. } => Some(at),
            Self::Never => None,
        }
    }
}
