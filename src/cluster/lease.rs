//! Leases: the heartbeats of nodes, and the leader of the controller managers.

use super::{
    names::{Name, NodeName},
    table::{TableObject, Version},
};
use crate::time::{ClusterTime, Span};

/// A Lease of the namespace kube-node-lease; its name is the node's.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lease {
    pub node: NodeName,
    pub version: Version,
    /// `spec.renewTime`, by the kubelet's clock.
    pub renewed: Option<ClusterTime>,
    /// `spec.leaseDurationSeconds`.
    pub duration: Option<Span>,
}

impl TableObject for Lease {
    type Key = NodeName;
    fn key(&self) -> NodeName {
        self.node.clone()
    }
    fn version(&self) -> Version {
        self.version
    }
}

/// The Lease kube-system/kube-controller-manager: whether a controller manager runs, and since when.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LeaderLease {
    pub version: Version,
    /// `spec.holderIdentity`; empty if it was released.
    pub holder: Name,
    /// `spec.acquireTime`: when this holder started.
    pub acquired: Option<ClusterTime>,
    pub renewed: Option<ClusterTime>,
    pub duration: Option<Span>,
}
