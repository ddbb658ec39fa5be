//! Who owns a pod, as far as plans ask: whether somebody brings it back, and whose scale counts.

use std::sync::Arc;

use crate::cluster::{Cluster, Key, Name, Namespace, Owner, OwnerKind, Pod, Uid, Workload, WorkloadKind};

/// What is known of an owner.
#[derive(Clone, Debug, PartialEq)]
pub enum OwnerLookup {
    There(Arc<Workload>),
    /// No object of that name and uid.
    Gone,
    /// Objects of its kind are not watched, or may not be read.
    Unknown,
}

/// Looks an owner up by name and uid.
pub fn find(cluster: &Cluster, namespace: &Namespace, owner: &Owner) -> OwnerLookup {
    let OwnerKind::Workload(kind) = owner.kind else { return OwnerLookup::Unknown };
    match named(cluster, kind, namespace, &owner.name) {
        Some(workload) if workload.uid == owner.uid => OwnerLookup::There(workload.clone()),
        Some(_) => OwnerLookup::Gone,
        None if cluster.workloads(kind).is_synced() => OwnerLookup::Gone,
        None => OwnerLookup::Unknown,
    }
}

/// Looks a workload up by name alone, as kubectl does.
pub fn named<'a>(
    cluster: &'a Cluster,
    kind: WorkloadKind,
    namespace: &Namespace,
    name: &Name,
) -> Option<&'a Arc<Workload>> {
    let key = Key { namespace: namespace.clone(), name: name.clone() };
    cluster.workloads(kind).get(&(kind, key))
}

/// The workload that a person knows the pod by: a ReplicaSet's Deployment rather than the ReplicaSet.
pub fn workload(cluster: &Cluster, pod: &Pod) -> Option<Arc<Workload>> {
    let OwnerLookup::There(direct) = find(cluster, &pod.key.namespace, pod.owner.as_ref()?) else {
        return None;
    };
    let above = direct.owner.as_ref().map(|owner| find(cluster, &pod.key.namespace, owner));
    match above {
        Some(OwnerLookup::There(above)) => Some(above),
        Some(OwnerLookup::Gone | OwnerLookup::Unknown) | None => Some(direct),
    }
}

/// Whether a pod comes back once it has gone, and when.
#[derive(Clone, Debug, PartialEq)]
pub enum Recreation {
    /// As soon as its deletion is seen.
    AtOnce(Uid),
    /// When the old object has gone: the name cannot exist twice, or its owner waits for it.
    WhenGone(Uid),
    /// On this very node: its DaemonSet cares for no cordon.
    Here,
    Never(NotRecreated),
}

/// Why nobody brings a pod back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NotRecreated {
    /// It has no controller.
    NoOwner,
    /// Its controller is gone.
    OwnerGone,
    /// It has ended already.
    Finished,
    /// Its owner has as many pods as it wants without it.
    ScaledDown,
}

/// Whether a pod's owner makes another one while so many of its pods live. Owners that cannot be seen do.
pub fn creates_replacement(cluster: &Cluster, pod: &Pod, living: i32) -> bool {
    match pod.owner.as_ref().map(|owner| find(cluster, &pod.key.namespace, owner)) {
        Some(OwnerLookup::There(workload)) => workload.replicas.is_none_or(|replicas| living < replicas),
        Some(OwnerLookup::Gone | OwnerLookup::Unknown) | None => true,
    }
}

/// What becomes of a pod that leaves. Owners that cannot be seen are taken for alive.
pub fn recreation(cluster: &Cluster, pod: &Pod) -> Recreation {
    let Some(owner) = &pod.owner else { return Recreation::Never(NotRecreated::NoOwner) };
    let kind = match &owner.kind {
        OwnerKind::Workload(kind) => *kind,
        OwnerKind::Node => return Recreation::Here,
        OwnerKind::Other(_) if pod.is_finished() => return Recreation::Never(NotRecreated::Finished),
        OwnerKind::Other(_) => return Recreation::AtOnce(owner.uid.clone()),
    };
    let found = find(cluster, &pod.key.namespace, owner);
    if found == OwnerLookup::Gone {
        return Recreation::Never(NotRecreated::OwnerGone);
    }
    if pod.is_finished() && kind != WorkloadKind::DaemonSet {
        return Recreation::Never(NotRecreated::Finished);
    }
    match kind {
        WorkloadKind::DaemonSet => Recreation::Here,
        WorkloadKind::StatefulSet => Recreation::WhenGone(owner.uid.clone()),
        WorkloadKind::Job => match found {
            OwnerLookup::There(job) if job.replaces_only_failed => Recreation::WhenGone(owner.uid.clone()),
            OwnerLookup::There(_) | OwnerLookup::Gone | OwnerLookup::Unknown => {
                Recreation::AtOnce(owner.uid.clone())
            }
        },
        WorkloadKind::ReplicaSet | WorkloadKind::Deployment | WorkloadKind::ReplicationController => {
            Recreation::AtOnce(owner.uid.clone())
        }
    }
}
