//! A sufficient condition under which all pods of a lost node or zone with few pods find another node, in any order and
//! on any feasible nodes.
//!
//! Consider one of `n` pods. The other pods are placed on at most `n - 1` nodes. The pod therefore finds a node if two
//! conditions hold. First, at least `n` nodes are feasible for the pod before any of the `n` pods is placed. Second,
//! each of the other pods can make infeasible only the node on which it is placed.

use std::sync::Arc;

use crate::{
    cluster::{Cluster, Pod, Selector, scheduling::PodTerms},
    placement::Snapshot,
    plan::{LeavingPod, owner, placing_environment},
};

/// Returns true if the replacements of all these pods are certain to find a node without preemption, false if one of
/// them may not. `snapshot` must already have the loss: the nodes of the pods have failed, and the pods that are
/// deleted are terminating.
pub(super) fn all_fit(snapshot: &mut Snapshot, cluster: &Cluster, pods: &[LeavingPod]) -> bool {
    let replaced = pods.iter().filter(|leaving| leaving.departing.is_replaced());
    let pods: Vec<&Arc<Pod>> = replaced.map(|leaving| &leaving.pod).collect();
    snapshot.node_count() >= pods.len() && pods.iter().all(|pod| fits(snapshot, cluster, pod, &pods))
}

fn fits(snapshot: &mut Snapshot, cluster: &Cluster, pod: &Arc<Pod>, pods: &[&Arc<Pod>]) -> bool {
    // The scheduler does not place a pod whose template names a node.
    if owner::named_node(cluster, pod).is_some() {
        return false;
    }
    let mut others = pods.iter().filter(|other| !Arc::ptr_eq(pod, other));
    let share_devices = |other: &Pod| snapshot.concerns_devices(pod) && snapshot.concerns_devices(other);
    if others.any(|other| may_exclude(pod, other) || share_devices(other)) {
        return false;
    }
    let request = placing_environment::replacement(pod, cluster);
    request.obstacle().is_none() && snapshot.has_nodes_for(&request, pods.len())
}

/// Returns whether placing `other` on one node can make other nodes infeasible for `pod`. Ignores namespaces, so
/// the result can be true for pods that do not affect each other.
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
