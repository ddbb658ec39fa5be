//! Evictions that repeat, because the replacement of a pod runs on the node that evicted it.

use super::successor;
use crate::{
    cluster::{Cluster, Pod},
    engine::{Tolerance, no_execute, tolerance},
};
use kordon_time::Span;

/// Returns how long the replacement of a pod would run on the pod's node until the taints of the node evict it. `None`
/// if the taints do not evict the replacement, or if the node does not exist.
pub fn evicted_again_after(cluster: &Cluster, pod: &Pod) -> Option<Span> {
    let node = cluster.node(pod.node.as_ref()?)?;
    match tolerance(&successor::successor(cluster, pod).tolerations, &no_execute(node)) {
        Tolerance::NotTolerated(_) => Some(Span::ZERO),
        Tolerance::For { span, .. } => Some(span),
        Tolerance::Forever => None,
    }
}
