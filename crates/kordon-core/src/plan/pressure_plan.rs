//! Effects of node pressure: the pods that a kubelet evicts, in their order, and where their replacements land.

use std::collections::BTreeSet;

use super::{
    failover::{Failover, failover, leave_running_nodes},
    placing_environment::PlacingEnvironment,
};
use crate::{
    cluster::{Cluster, Node, Taint, TaintEffect},
    placement::Snapshot,
    pressure::EvictionOrder,
};
use kordon_time::Timestamp;

/// Returns the outcomes of the pods that a kubelet evicts in this order. The node already has the taint of its
/// condition, so only pods that tolerate the taint land there again.
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
    failover(cluster, evicted, &BTreeSet::new(), PlacingEnvironment::new(cluster, snapshot, now))
}

/// Returns the node with the taint that the controller adds for the condition.
fn tainted(node: &Node, order: &EvictionOrder) -> Node {
    let key = order.signal.condition().taint_key();
    if node.taints.iter().any(|taint| taint.key == *key) {
        return node.clone();
    }
    let taint = Taint { key: key.into(), effect: TaintEffect::NoSchedule, ..Taint::default() };
    Node { taints: node.taints.iter().cloned().chain([taint]).collect(), ..node.clone() }
}
