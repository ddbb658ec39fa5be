//! A sufficient condition that all pods of a small loss find a node, in whatever order and wherever the scheduler places them.
//!
//! Of `n` pods, the others take room on at most `n - 1` nodes. So a pod finds a node if `n` nodes are feasible for it before the
//! first is placed, and no other of these pods can make a node infeasible on which it is not.

use std::sync::Arc;

use crate::{
    cluster::{Cluster, Pod, Selector, scheduling::PodTerms},
    placement::Snapshot,
    plan::{failover::LeavingPod, placing_environment},
};

/// Whether all replacements of these pods certainly find a node, none by preemption. The snapshot has neither the pods nor their
/// nodes.
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

/// Whether one pod may make a node infeasible for another on which it is not. Namespaces are ignored, so that it may also be true
/// of pods that ignore each other.
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
