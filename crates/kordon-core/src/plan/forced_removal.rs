//! Forced removal of terminating pods from nodes that are out of service, and forced detachment of the pods' volumes
//! (docs/upstream/neighbours.md#1, docs/upstream/neighbours.md#4).

use super::{
    environment::{self, Estimate, Quality},
    rules::EvictionRules,
};
use crate::{
    cluster::{Cluster, Node, NodeName},
    engine::{COLLECTED_WITHIN, QUARANTINE},
};
use kordon_time::{Span, Timestamp};

/// Time from a pod's deletion until the pod garbage collector removes it by force from a node out of service. The
/// collector runs every 20 s; the time of its next run is not known.
pub const FORCED_REMOVAL: Estimate = Estimate {
    soonest: Some(Span::ZERO),
    likely: Some(Span::from_secs(10)),
    latest: Some(Span::from_secs(20)),
    quality: Quality::Declared,
};

/// Time from the deletion of a Node until the pod garbage collector removes its pods by force. The collector runs every
/// 20 s, and leaves a missing node in quarantine for 40 s (`gcOrphaned`). A run just before the end of the quarantine
/// is too early; the next run then removes the pods.
pub const COLLECTED: Estimate = Estimate {
    soonest: Some(QUARANTINE),
    likely: Some(Span::from_secs(50)),
    latest: Some(COLLECTED_WITHIN),
    quality: Quality::Declared,
};

/// Returns the bounds of [`COLLECTED`] in words: `40s to 1m20s`.
pub fn collected_within() -> String {
    format!("{QUARANTINE} to {COLLECTED_WITHIN}")
}

/// Time after which the volumes of a pod that is gone are detached by force from a node that is not Ready.
pub const FORCED_DETACH: Span = Span::from_secs(360);

/// Returns whether the pod garbage collector removes terminating pods from the node by force. It does so if the node is
/// not Ready and has the out-of-service taint with any effect.
pub fn removes_by_force(node: &Node, rules: &EvictionRules) -> bool {
    rules.out_of_service && !node.is_ready() && node.is_tainted_out_of_service()
}

/// Returns whether a node has the out-of-service taint, which removes its pods and volumes at once.
pub fn is_out_of_service(cluster: &Cluster, node: &NodeName) -> bool {
    cluster.node(node).is_some_and(|node| node.is_tainted_out_of_service())
}

/// Returns whether the objects of pods stay on a node after their deletion. They do if the kubelet is down and the node
/// is not tainted out-of-service.
pub fn keeps_pods(cluster: &Cluster, node: &NodeName) -> bool {
    !environment::has_running_kubelet(cluster, node) && !is_out_of_service(cluster, node)
}

/// When the volumes of a pod that is gone are detached from its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detachment {
    /// The volumes are detached at once, because the kubelet has unmounted them or the node is out of service.
    AtOnce,
    /// The volumes are detached [`FORCED_DETACH`] after the pod is gone, because no kubelet unmounts them; at once if
    /// the node is out of service (upstream `attachdetach/reconciler`).
    ByForce,
}

impl Detachment {
    /// Returns when the volumes of a pod that is gone at this time are detached.
    pub fn of(self, cluster: &Cluster, node: Option<&NodeName>, gone: Timestamp) -> Timestamp {
        match self {
            Self::ByForce if !node.is_some_and(|node| is_out_of_service(cluster, node)) => {
                gone + FORCED_DETACH
            }
            Self::ByForce | Self::AtOnce => gone,
        }
    }
}

/// Returns when the volumes of a pod that is gone at this time are detached from its node.
pub fn detached(cluster: &Cluster, node: Option<&NodeName>, gone: Timestamp) -> Timestamp {
    if node.is_some_and(|node| keeps_pods(cluster, node)) { gone + FORCED_DETACH } else { gone }
}
