//! What a plan that is applied now knows of silent nodes.

use std::borrow::Cow;

use super::{environment::has_running_kubelet, rules::EvictionRules};
use crate::cluster::{Change, Cluster, Condition, ConditionStatus, Node, ObjectEvent, READY};
use kordon_time::Timestamp;

/// Returns the cluster in which silent nodes are Unknown already, as the controller will set them: their kubelets end
/// no pods and start none. Their taints stay as they are, because the controller adds taints only later.
pub(super) fn without_silent_kubelets<'a>(
    cluster: &'a Cluster,
    rules: &EvictionRules,
    now: Timestamp,
) -> Cow<'a, Cluster> {
    let mut without = Cow::Borrowed(cluster);
    for name in rules.silent_nodes(cluster, now) {
        if let Some(node) = cluster.node(&name).filter(|_| has_running_kubelet(cluster, &name)) {
            let change = Change::Node(ObjectEvent::Applied(unknown(node)));
            without.to_mut().apply(change, &mut Vec::new());
        }
    }
    without
}

fn unknown(node: &Node) -> Node {
    let unless_ready = |condition: &Condition| {
        let is_ready = condition.kind == *READY;
        let status = if is_ready { ConditionStatus::Unknown } else { condition.status };
        Condition { status, ..condition.clone() }
    };
    Node { conditions: node.conditions.iter().map(unless_ready).collect(), ..node.clone() }
}
