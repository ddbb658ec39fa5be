//! Effects of node pressure: which pods a kubelet evicts, in which order, and where their replacements land.

use super::{
    failover::{Failover, LostNodes, failover, leave_running_nodes},
    placing_environment::PlacingEnvironment,
};
use crate::{
    cluster::{Cluster, Node, Taint, TaintEffect},
    placement::Snapshot,
    pressure::EvictionOrder,
};
use kordon_time::Timestamp;

/// Returns the outcomes of the pods that a kubelet evicts under pressure, in the order of eviction. When the
/// replacements are placed, the node already has the taint of its pressure condition, so only replacements that
/// tolerate this taint land there.
///
/// The snapshot must be of this cluster.
pub fn pressure_failover(
    cluster: &Cluster,
    mut snapshot: Snapshot,
    node: &Node,
    order: &EvictionOrder,
    now: Timestamp,
) -> Failover {
    snapshot.put_node(tainted(node, order).into());
    let evicted = leave_running_nodes(cluster, order.evicted().cloned());
    failover(cluster, evicted, LostNodes::default(), PlacingEnvironment::new(cluster, snapshot, now))
}

/// Returns the node with the taint that the node lifecycle controller adds for the pressure condition.
fn tainted(node: &Node, order: &EvictionOrder) -> Node {
    let key = order.signal.condition().taint_key();
    if node.taints.iter().any(|taint| taint.key == *key) {
        return node.clone();
    }
    let taint = Taint { key: key.into(), effect: TaintEffect::NoSchedule, ..Taint::default() };
    Node { taints: node.taints.iter().cloned().chain([taint]).collect(), ..node.clone() }
}
