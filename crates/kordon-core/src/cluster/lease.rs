//! Leases: the heartbeats of nodes, and the leader of the controller managers.

use minicbor::{Decode, Encode};

use super::{
    encoding::EncodingContext,
    names::{Name, NodeName},
    table::{TableObject, Version},
};
use kordon_time::{ClusterTime, Span};

/// A Lease in the namespace kube-node-lease. It has the name of its node.
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
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
    fn share_parts(&mut self, predecessor: &Self) {
        self.node.clone_from(&predecessor.node);
    }
}

/// The Lease kube-system/kube-controller-manager: whether a controller manager runs, and since when.
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{Change, Cluster, Node, ObjectEvent};

    #[test]
    fn a_node_and_its_lease_have_one_name_in_memory() {
        let node = |version| Node { name: "n".into(), version: Version(version), ..Node::default() };
        let lease = |version| Lease { node: "n".into(), version: Version(version), ..Lease::default() };
        let lists =
            [Change::Node(ObjectEvent::Listed(node(1))), Change::Lease(ObjectEvent::Listed(lease(1)))];
        for order in [[0, 1], [1, 0]] {
            let mut cluster = Cluster::default();
            let changed =
                [Change::Node(ObjectEvent::Applied(node(2))), Change::Lease(ObjectEvent::Applied(lease(2)))];
            for change in order.map(|which: usize| lists[which].clone()).into_iter().chain(changed) {
                cluster.apply(change, &mut Vec::new());
            }
            let [node, lease] = [
                &cluster.node(&"n".into()).expect("it is listed").name,
                &cluster.lease(&"n".into()).expect("it is listed").node,
            ];
            assert!(std::ptr::eq(node.as_ptr(), lease.as_ptr()), "{order:?}");
        }
    }
}
