//! Sufficient condition under which all pods of a small loss find a node, in any order and on any feasible nodes.
//!
//! If `n` pods are placed, the pods other than a given one are on at most `n - 1` nodes. So the given pod finds a node
//! under two conditions: at least `n` nodes are feasible for it before the first pod is placed, and none of the other
//! pods makes any node but its own infeasible.

use std::sync::Arc;

use crate::{
    cluster::{Cluster, Pod, Selector, scheduling::PodTerms},
    placement::Snapshot,
    plan::{failover::LeavingPod, placing_environment},
};

/// Returns whether the replacements of all these pods are certain to find a node without preemption. The snapshot must
/// contain neither the pods nor their nodes.
pub(super) fn all_fit(snapshot: &mut Snapshot, cluster: &Cluster, pods: &[LeavingPod]) -> bool {
    let replaced = pods.iter().filter(|leaving| leaving.departing.is_replaced());
    let pods: Vec<&Arc<Pod>> = replaced.map(|leaving| &leaving.pod).collect();
    snapshot.node_count() >= pods.len() && pods.iter().all(|pod| fits(snapshot, cluster, pod, &pods))
}

fn fits(snapshot: &mut Snapshot, cluster: &Cluster, pod: &Arc<Pod>, pods: &[&Arc<Pod>]) -> bool {
    let mut others = pods.iter().filter(|other| !Arc::ptr_eq(pod, other));
    if others.any(|other| may_exclude(pod, other)) {
        return false;
    }
    let request = placing_environment::replacement(pod, cluster);
    request.obstacle().is_some() || snapshot.has_nodes_for(&request, pods.len())
}

/// Returns whether `other` may make more nodes infeasible for `pod` than the node that `other` is on. Namespaces are
/// ignored, so the result may also be true for pods that do not affect each other.
fn may_exclude(pod: &Pod, other: &Pod) -> bool {
    let (spec, others) = (&pod.scheduling, &other.scheduling);
    let selects = |selector: &Option<Selector>, pod: &Pod| {
        selector.as_ref().is_some_and(|selector| selector.matches(&pod.labels))
    };
    let requires =
        |terms: &PodTerms, pod: &Pod| terms.required.iter().any(|term| selects(&term.selector, pod));
    requires(&spec.pod_affinity, other)
        || requires(&spec.pod_anti_affinity, other)
        || requires(&others.pod_anti_affinity, pod)
        || spec.spread.iter().any(|spread| spread.hard && selects(&spread.selector, other))
        || spec.volumes.iter().any(|volume| others.volumes.contains(volume))
}
