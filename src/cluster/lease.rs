//! Leases: the heartbeats of nodes, and the leader of the controller managers.

use minicbor::{Decode, Encode};

use super::{
    encoding::Dictionary,
    names::{Name, NodeName},
    table::{TableObject, Version},
};
use crate::time::{ClusterTime, Span};

/// A Lease of the namespace kube-node-lease; its name is the node's.
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode)]
#[cbor(context_bound = "AsMut<Dictionary>")]
pub struct Lease {
    #[n(0)]
    pub node: NodeName,
    #[n(1)]
    pub version: Version,
    /// `spec.renewTime`, by the kubelet's clock.
    #[n(2)]
    pub renewed: Option<ClusterTime>,
    /// `spec.leaseDurationSeconds`.
    #[n(3)]
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
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode)]
#[cbor(context_bound = "AsMut<Dictionary>")]
pub struct LeaderLease {
    #[n(0)]
    pub version: Version,
    /// `spec.holderIdentity`; empty if it was released.
    #[n(1)]
    pub holder: Name,
    /// `spec.acquireTime`: when this holder started.
    #[n(2)]
    pub acquired: Option<ClusterTime>,
    #[n(3)]
    pub renewed: Option<ClusterTime>,
    #[n(4)]
    pub duration: Option<Span>,
}
