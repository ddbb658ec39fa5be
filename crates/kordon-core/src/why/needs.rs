//! What an explanation rests on: the parts of the cluster that have to be read for it, apart from nodes, Leases and the
//! controller's own Lease.
//!
//! | scope | what for |
//! | --- | --- |
//! | pods of the node | its evictions; how many pods leave endpoints when it becomes Unknown |
//! | finished pods | whether the pod garbage collector removes a finished pod: it keeps a number of them |
//! | the pod; its budgets, owner and volumes | its eviction, and what that ignores |
//! | budgets of the pods of a node that is drained | what blocks the drain |
//! | pods of a budget that refuses, their owners | how it would allow an eviction |
//! | all pods, DaemonSets | legacy mode: which nodes are marked evicted is seen from their pods |
//!
//! Read what is not [known](Cluster::knows), and ask again until everything is.

use std::collections::BTreeSet;

use crate::{
    cluster::{Cluster, Key, NodeName, Pod, Scope, WorkloadKind},
    engine::{Profile, Settings},
    plan::{self, EvictionNote},
};

/// The scopes that the explanation of a node needs.
pub fn of_node(node: &NodeName, cluster: &Cluster, settings: &Settings) -> BTreeSet<Scope> {
    let mut needs = of_its_pods(node, settings);
    if cluster.pods_on(node).any(|pod| is_kept_by_number(pod, settings)) {
        needs.insert(Scope::FinishedPods);
    }
    if cluster.node(node).is_some_and(|node| node.drain_claim.is_some()) {
        let drained = || cluster.workload_pods(node);
        needs.extend(drained().map(|pod| Scope::BudgetsIn(pod.key.namespace.clone())));
        needs.extend(plan::needs::of_refusals(cluster, drained().map(|pod| &**pod)));
    }
    needs
}

/// The scopes that the explanation of a pod needs.
pub fn of_pod(pod: &Key, cluster: &Cluster, settings: &Settings) -> BTreeSet<Scope> {
    let mut needs = match settings.rules().profile {
        Profile::Taint => [Scope::Pod(pod.clone())].into(),
        Profile::Legacy => in_legacy_mode(),
    };
    let Some(pod) = cluster.pod(pod) else { return needs };
    needs.extend(pod.node.iter().flat_map(|node| of_its_pods(node, settings)));
    needs.extend(EvictionNote::needs(cluster, pod));
    needs.extend(plan::needs::of_refusals(cluster, std::iter::once(&**pod)));
    // A Ready pod that is removed before does not leave endpoints when the node becomes Unknown.
    let neighbours = pod.node.iter().flat_map(|node| cluster.pods_on(node)).map(|pod| &**pod);
    let mut decided_by_number = neighbours.filter(|pod| pod.is_ready()).chain([&**pod]);
    if decided_by_number.any(|pod| is_kept_by_number(pod, settings)) {
        needs.insert(Scope::FinishedPods);
    }
    needs
}

fn of_its_pods(node: &NodeName, settings: &Settings) -> BTreeSet<Scope> {
    match settings.rules().profile {
        Profile::Taint => [Scope::PodsOn(node.clone())].into(),
        Profile::Legacy => in_legacy_mode(),
    }
}

fn in_legacy_mode() -> BTreeSet<Scope> {
    [Scope::Pods, Scope::Workloads(WorkloadKind::DaemonSet)].into()
}

/// Whether the pod garbage collector removes the pod once too many have finished.
fn is_kept_by_number(pod: &Pod, settings: &Settings) -> bool {
    let collects = settings.controllers.value.pod_gc && settings.terminated_pod_gc_threshold.value > 0;
    collects && pod.is_finished()
}
