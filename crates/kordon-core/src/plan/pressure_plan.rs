//! What node pressure would do: the pods that a kubelet evicts, in their order, and where their replacements land.

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

/// What becomes of the pods that a kubelet evicts in this order. The node has the taint of its condition by then, so
/// that only pods that tolerate it land there again.
///
/// The snapshot is of this cluster.
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

/// The node with the taint that the controller adds for the condition.
fn tainted(node: &Node, order: &EvictionOrder) -> Node {
    let key = order.signal.condition().taint_key();
    if node.taints.iter().any(|taint| taint.key == *key) {
        return node.clone();
    }
    let taint = Taint { key: key.into(), effect: TaintEffect::NoSchedule, ..Taint::default() };
    Node { taints: node.taints.iter().cloned().chain([taint]).collect(), ..node.clone() }
}
