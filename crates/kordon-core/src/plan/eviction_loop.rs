//! Evictions that repeat, because the replacement of a pod runs on the node that evicted it.

use std::collections::BTreeMap;

use super::{placing_environment::recovered, successor};
use crate::{
    cluster::{Cluster, NodeName, Pod},
    engine::{Tolerance, no_execute, tolerance},
};
use kordon_time::{Span, Timestamp};

/// Returns how long the replacement of a pod would run on the pod's node until the taints of the node evict it. `None`
/// if the taints do not evict the replacement, or if the node does not exist. `back` has the nodes that are Ready again
/// when the replacement lands, as in [`Forecast::recovered`](crate::forecast::Forecast::recovered): the controller
/// removes its taints from them.
pub fn evicted_again_after(
    cluster: &Cluster,
    pod: &Pod,
    back: &BTreeMap<NodeName, Timestamp>,
) -> Option<Span> {
    let node = cluster.node(pod.node.as_ref()?)?;
    let taints = if back.contains_key(&node.name) { no_execute(&recovered(node)) } else { no_execute(node) };
    match tolerance(&successor::successor(cluster, pod).tolerations, &taints) {
        Tolerance::NotTolerated(_) => Some(Span::ZERO),
        Tolerance::For { span, .. } => Some(span),
        Tolerance::Forever => None,
    }
}
