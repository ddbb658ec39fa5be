//! The engine's state for the screen and the command line: read only, computed on request.

use super::{
    eviction_status::EvictionStatus,
    why::{Certainty, HeartbeatSource, Why},
    zone::ZoneState,
};
use crate::cluster::{Key, NodeName, Uid, ZoneKey};
use kordon_time::{Span, Timestamp};

/// When the engine must be woken, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Deadline {
    pub at: Timestamp,
    pub why: Why,
}

/// The controller's state of a node.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeView {
    /// When the controller noticed the last heartbeat: upstream's probeTimestamp.
    pub probe: Timestamp,
    pub heartbeat_source: HeartbeatSource,
    pub certainty: Certainty,
    /// The grace period in force: the startup grace period if the node has no Ready condition.
    pub grace: Span,
    pub zone: ZoneKey,
    /// How far the node is on its way to the NoExecute taint, or in legacy mode to the deletion of its pods.
    pub stage: NodeStage,
    /// Legacy mode: the node's eviction status.
    pub eviction: Option<EvictionStatus>,
}

impl NodeView {
    /// When the grace period ends; the first pass *after* this finds the node silent.
    pub fn expires(&self) -> Timestamp {
        self.probe + self.grace
    }
}

/// How far a node is on its way to the NoExecute taint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NodeStage {
    /// No taint is due.
    Healthy,
    /// Not ready, in its zone's queue for the taint (in legacy mode for the deletion of its pods).
    Queued,
    /// The engine requested the taint; the node does not have it yet.
    Requested,
    /// The node has the NoExecute taint of its state.
    Tainted,
    /// Legacy mode: the node's pods have been deleted.
    Evicted,
}

/// How long the engine's answer about a node is valid while the node, its Lease and its pods do not change. Ordered
/// from the soonest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Expiry {
    /// The answer may change whenever the engine does anything.
    AnyTime,
    /// The answer may change from this time on.
    At(Timestamp),
    /// The answer is valid until the node, its Lease, its pods or the leader of the controllers changes.
    OnChange,
}

/// Whether pods are leaving a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeavingPods {
    /// Whether a pod is terminating, or a time is set for its eviction.
    pub any: bool,
    pub expiry: Expiry,
}

/// The controller's state of a zone.
#[derive(Clone, Debug, PartialEq)]
pub struct ZoneView {
    pub key: ZoneKey,
    pub state: ZoneState,
    /// The state that a pass would find now.
    pub next_state: ZoneState,
    /// Number of nodes now, without those excluded from disruption.
    pub size: usize,
    pub not_ready: usize,
    /// The eviction rate: nodes tainted NoExecute per second; 0 is none.
    pub rate: f32,
    /// The waiting nodes, sorted by name: upstream's order among them is random.
    pub queue: Vec<NodeName>,
    /// When the next token is available; none if the rate is 0.
    pub next_token: Option<Timestamp>,
}

impl ZoneView {
    /// Whether two views of a zone show the same. The next token is compared only while nodes wait for it, because
    /// otherwise its time moves with the clock.
    pub fn says_the_same(&self, other: &Self) -> bool {
        let next_token = if self.queue.is_empty() { self.next_token } else { other.next_token };
        *self == Self { next_token, ..other.clone() }
    }

    /// Whether a pass now would find another state than the controller's last pass did. False for an empty zone and for
    /// the state Initial.
    pub fn is_outdated(&self) -> bool {
        self.size > 0 && self.state != ZoneState::Initial && self.state != self.next_state
    }

    /// The share of counted nodes that are not ready, from 0 to 1.
    #[expect(clippy::cast_precision_loss, reason = "zones have far fewer than 2^24 nodes")]
    pub fn unready_share(&self) -> f32 {
        if self.size == 0 { 0.0 } else { self.not_ready as f32 / self.size as f32 }
    }
}

/// The pending eviction of a pod. It is never due if the pod tolerates the taints of its node.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingEviction {
    pub pod: Key,
    pub uid: Uid,
    pub node: NodeName,
    pub due: Due,
    pub why: Why,
}

impl PendingEviction {
    /// Sort key: soonest first, evictions that are never due last.
    pub(super) fn order(&self) -> (Timestamp, NodeName, Key) {
        (self.due.at().unwrap_or(Timestamp::MAX), self.node.clone(), self.pod.clone())
    }
}

/// When a pending eviction is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    At {
        at: Timestamp,
        certainty: Certainty,
    },
    /// The pod tolerates the taints without a time limit, or belongs to a DaemonSet in legacy mode.
    Never,
}

impl Due {
    /// Time at which the eviction is due; none if it is never due.
    pub const fn at(self) -> Option<Timestamp> {
        match self {
            Self::At { at, .. } => Some(at),
            Self::Never => None,
        }
    }
}
