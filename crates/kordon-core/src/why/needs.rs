//! Scopes (sets of objects that can be read alone) that must be known for an explanation, besides nodes, Leases and the
//! controller's Lease.
//!
//! | scope | needed for |
//! | --- | --- |
//! | pods of the node | its evictions, and the number of pods that leave endpoints when it becomes Unknown |
//! | finished pods | whether pod garbage collection removes a finished pod: it keeps a fixed number of them |
//! | the pod; its budgets, owner and volumes | its eviction, and what the eviction ignores |
//! | the namespace of the pod | whether it is being deleted: the API server then refuses the pod's eviction |
//! | CSIDrivers | whether its ReadWriteOnce volume is attached to the node |
//! | budgets of the pods on a node that is drained or cordoned | what blocks the drain |
//! | pods of a budget that refuses an eviction, and their owners | what would make the budget allow the eviction |
//! | pods of the namespace of a starting pod with a ReadWriteOnce volume | which pod still holds the volume |
//! | claims, slices, classes and taint rules of devices | whether a taint of a device evicts a pod that claims it |
//! | owners of the finished pods on a node under pressure, and their pods | whether the node rejects pods again and again |
//! | DaemonSets | kured's lock, if a pod of kured is on the node |
//! | all pods, DaemonSets | legacy mode, in which the pods of a node show whether it is marked as evicted |
//!
//! Read the scopes that are not [known](Cluster::knows), and ask again until all scopes are known.

use std::collections::BTreeSet;

use crate::{
    cluster::{
        Cluster, FeedKind, ForeignDrain, Key, Node, NodeName, Phase, Pod, Scope, Selector, WorkloadKind,
    },
    engine::{Profile, Settings},
    placement::SchedulerRules,
    plan::{self, EvictionNote, eviction_note::attached_once},
    pressure::PressureCondition,
};

/// The scopes (sets of objects) that must be known to explain a node.
pub fn of_node(node: &NodeName, cluster: &Cluster, settings: &Settings) -> BTreeSet<Scope> {
    let mut needs = of_its_pods(node, settings);
    needs.extend(cluster.pods_on(node).flat_map(|pod| of_devices(pod, settings)));
    if cluster.pods_on(node).any(|pod| is_kept_by_number(pod, settings)) {
        needs.insert(Scope::FinishedPods);
    }
    if cluster.node(node).is_some_and(|node| !PressureCondition::reported(node).is_empty()) {
        let finished = cluster.pods_on(node).filter(|pod| pod.is_finished());
        needs.extend(plan::needs::of_owners(cluster, finished.map(|pod| &**pod)));
    }
    if cluster.pods_on(node).any(|pod| is_of_kured(pod)) {
        needs.insert(Scope::Workloads(WorkloadKind::DaemonSet));
    }
    if cluster.node(node).is_some_and(|node| is_drained(node)) {
        let drained = || cluster.workload_pods(node);
        needs.extend(drained().map(|pod| Scope::BudgetsIn(pod.key.namespace.clone())));
        needs.extend(plan::needs::of_refusals(cluster, drained().map(|pod| &**pod)));
    }
    needs
}

/// The scopes (sets of objects) that must be known to explain a pod.
pub fn of_pod(pod: &Key, cluster: &Cluster, settings: &Settings) -> BTreeSet<Scope> {
    let mut needs = match settings.rules().profile {
        Profile::Taint => [Scope::Pod(pod.clone())].into(),
        Profile::Legacy => in_legacy_mode(),
    };
    let Some(pod) = cluster.pod(pod) else { return needs };
    needs.extend(pod.node.iter().flat_map(|node| of_its_pods(node, settings)));
    needs.extend(EvictionNote::needs(cluster, pod));
    needs.insert(Scope::Namespace(pod.key.namespace.clone()));
    needs.extend(of_devices(pod, settings));
    needs.extend(plan::needs::of_refusals(cluster, std::iter::once(&**pod)));
    if pod.phase == Phase::Pending && pod.node.is_some() && attached_once(cluster, pod).is_some() {
        needs.insert(Scope::PodsWith(Some(pod.key.namespace.clone()), Selector::default()));
    }
    // Once too many pods have finished, pod garbage collection may remove this pod, or a finished pod of its node that
    // is still Ready. A removed pod does not leave endpoints when the node becomes Unknown, so the number of finished
    // pods matters.
    let neighbours = pod.node.iter().flat_map(|node| cluster.pods_on(node)).map(|pod| &**pod);
    let mut decided_by_number = neighbours.filter(|pod| pod.is_ready()).chain([&**pod]);
    if decided_by_number.any(|pod| is_kept_by_number(pod, settings)) {
        needs.insert(Scope::FinishedPods);
    }
    needs
}

/// Whether the node is cordoned, or somebody drains it.
pub(super) fn is_drained(node: &Node) -> bool {
    node.unschedulable || node.drain_claim.is_some() || ForeignDrain::removes_pods(node)
}

/// Whether the pod belongs to kured's DaemonSet, recognized by its usual name.
fn is_of_kured(pod: &Pod) -> bool {
    pod.is_of_daemon_set() && pod.owner.as_ref().is_some_and(|owner| owner.name.contains("kured"))
}

/// The scopes (sets of objects) that show whether a taint of a device evicts the pod.
fn of_devices(pod: &Pod, settings: &Settings) -> impl Iterator<Item = Scope> + use<> {
    let is_served = settings.version >= SchedulerRules::FIRST_WITH_DEVICES;
    let needs = is_served && pod.scheduling.claims_devices;
    FeedKind::DEVICES.into_iter().filter(move |_| needs).map(Scope::Whole)
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

/// Whether pod garbage collection removes the pod once too many pods have finished.
fn is_kept_by_number(pod: &Pod, settings: &Settings) -> bool {
    let collects = settings.controllers.value.pod_gc && settings.terminated_pod_gc_threshold.value > 0;
    collects && pod.is_finished()
}
