//! The effects of a change of the cluster. They are determined once for all consumers of changes.

use kordon_core::cluster::Applied;

/// A change that was applied to the cluster, with its effects.
#[derive(Clone, Debug)]
pub struct AppliedChange {
    pub applied: Applied,
    pub impact: Impact,
}

/// The part of the model that a change affects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Impact {
    /// Only heartbeats changed: a Lease, or a node status without other changes.
    Heartbeat,
    /// A node changed. This affects its health, its place in lists, and the placement of pods.
    Node,
    /// A pod changed. This affects evictions, plans, and the placement of pods.
    Pod,
    /// Only the status of a pod changed, for example its readiness. This affects evictions and plans, but not
    /// placement, because the pod takes the same room.
    PodStatus,
    /// Only the resource version of a pod changed.
    PodVersion,
    /// The Lease of a controller changed.
    Leader,
    /// Another object that plans and placement read has changed.
    Other,
}

impl AppliedChange {
    pub fn new(applied: Applied) -> Self {
        let impact = Impact::from_applied(&applied);
        Self { applied, impact }
    }
}

impl Impact {
    fn from_applied(applied: &Applied) -> Self {
        match applied {
            Applied::Lease(_) => Self::Heartbeat,
            Applied::Node(delta) => match (&delta.old, &delta.new) {
                (Some(old), Some(new)) if old.differs_only_in_heartbeat(new) => Self::Heartbeat,
                _ => Self::Node,
            },
            Applied::Pod(delta) => match (&delta.old, &delta.new) {
                (Some(old), Some(new)) if old.differs_only_in_version(new) => Self::PodVersion,
                (Some(old), Some(new)) if old.differs_only_in_status(new) => Self::PodStatus,
                _ => Self::Pod,
            },
            Applied::Leader(..) | Applied::KordonLease => Self::Leader,
            Applied::Other => Self::Other,
        }
    }

    /// Whether the change may alter plans.
    pub const fn bears_on_plans(self) -> bool {
        match self {
            Self::Node | Self::Pod | Self::PodStatus | Self::Other => true,
            Self::Heartbeat | Self::PodVersion | Self::Leader => false,
        }
    }

    /// Whether the change may alter the placement of pending pods.
    pub const fn bears_on_placement(self) -> bool {
        match self {
            Self::Node | Self::Pod | Self::Other => true,
            Self::Heartbeat | Self::PodStatus | Self::PodVersion | Self::Leader => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use kordon_core::cluster::{Delta, Phase, Pod, PodUnscheduled, Version};

    #[test]
    fn a_pod_that_takes_the_same_room_does_not_change_where_others_can_be() {
        let impact = |change: &dyn Fn(&mut Pod)| {
            let old = Pod { version: Version(1), phase: Phase::Running, ..Pod::default() };
            let mut new = Pod { version: Version(2), ..old.clone() };
            change(&mut new);
            Impact::from_applied(&Applied::Pod(Delta { old: Some(Arc::new(old)), new: Some(Arc::new(new)) }))
        };
        assert_eq!(impact(&|_| {}), Impact::PodVersion);
        assert_eq!(impact(&|pod| pod.reason = "Unwell".into()), Impact::PodStatus);
        assert_eq!(impact(&|pod| pod.phase = Phase::Unknown), Impact::PodStatus);
        let unscheduled = Arc::new(PodUnscheduled::default());
        assert_eq!(impact(&|pod| pod.unscheduled = Some(unscheduled.clone())), Impact::PodStatus);
        assert_eq!(impact(&|pod| pod.phase = Phase::Failed), Impact::Pod, "it is finished: its room is free");
        assert_eq!(impact(&|pod| pod.node = Some("n".into())), Impact::Pod);
        assert_eq!(impact(&|pod| pod.priority = 7), Impact::Pod);
        assert!(Impact::PodStatus.bears_on_plans() && !Impact::PodStatus.bears_on_placement());
        assert!(!Impact::PodVersion.bears_on_plans());
    }
}
