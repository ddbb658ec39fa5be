//! What a change of the cluster bears on, judged once for everyone who keeps something up to date by it.

use crate::cluster::Applied;

/// A change as it was applied to the cluster, and what it bears on.
#[derive(Clone, Debug)]
pub struct AppliedChange {
    pub applied: Applied,
    pub impact: Impact,
}

/// What a change bears on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Impact {
    /// Heartbeats only: a Lease, or a node status that says what it said before.
    Heartbeat,
    /// A node: its health, its place in lists, and where pods can be.
    Node,
    /// A pod: evictions, plans, and where pods can be.
    Pod,
    /// The version of a pod only: of what is known of it, everything is as before.
    PodVersion,
    /// Who the controller is.
    Leader,
    /// Any other object that plans and placement read.
    Other,
}

impl AppliedChange {
    pub fn new(applied: Applied) -> Self {
        let impact = Impact::of(&applied);
        Self { applied, impact }
    }
}

impl Impact {
    fn of(applied: &Applied) -> Self {
        match applied {
            Applied::Lease(_) => Self::Heartbeat,
            Applied::Node(delta) => match (&delta.old, &delta.new) {
                (Some(old), Some(new)) if old.differs_only_in_heartbeat(new) => Self::Heartbeat,
                _ => Self::Node,
            },
            Applied::Pod(delta) => match (&delta.old, &delta.new) {
                (Some(old), Some(new)) if old.differs_only_in_version(new) => Self::PodVersion,
                _ => Self::Pod,
            },
            Applied::Leader(..) => Self::Leader,
            Applied::Other => Self::Other,
        }
    }

    /// Whether plans and placements over the cluster may differ after it.
    pub const fn bears_on_plans(self) -> bool {
        match self {
            Self::Node | Self::Pod | Self::Other => true,
            Self::Heartbeat | Self::PodVersion | Self::Leader => false,
        }
    }
}
