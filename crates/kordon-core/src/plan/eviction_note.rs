//! Notes on the eviction of a pod by a taint: budgets that the eviction ignores, and obstacles to a quick replacement
//! (docs/upstream/neighbours.md#3, docs/upstream/neighbours.md#4).

use std::{collections::BTreeSet, fmt, sync::Arc};

use super::{
    environment::has_running_kubelet,
    forced_removal::is_out_of_service,
    owner::{self, Recreation},
};
use crate::cluster::{
    Cluster, FeedKind, Key, Name, Namespace, NodeName, OwnerKind, Pod, Scope, scheduling::PodVolume,
};

/// A fact about the eviction of a pod by a taint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EvictionNote {
    /// This budget covers the pod. Unlike a drain, taint eviction does not respect budgets.
    BudgetIgnored { budget: Key },
    /// The pod's owner creates no replacement until the old pod is gone.
    WaitsForOldPod,
    /// The pod's owner creates no replacement until the pod's kubelet has ended the pod.
    WaitsForItsEnd,
    /// The volume of this claim is still attached to the old node, and only one node at a time can use it. If
    /// CSIDrivers are not known, `is_assumed` is true: the volume is assumed to be attached.
    VolumeAttached { claim: Name, is_assumed: bool },
    /// The volume of this claim, which only one node at a time can use, is detached at once: the node is out of
    /// service.
    VolumeDetached { claim: Name },
    /// The volume of this claim, which only one node at a time can use, is detached once the pod's kubelet has ended
    /// the pod.
    VolumeReleased { claim: Name },
}

impl EvictionNote {
    /// Returns the notes on the eviction of a pod by a taint.
    pub fn for_pod(cluster: &Cluster, pod: &Pod) -> Vec<Self> {
        let is_removed_by_force =
            |node: &NodeName| is_out_of_service(cluster, node) && !has_running_kubelet(cluster, node);
        if pod.node.as_ref().is_some_and(is_removed_by_force) {
            return Self::for_forced_removal(cluster, pod);
        }
        let ignored =
            cluster.budgets_of(pod).map(|budget| Self::BudgetIgnored { budget: budget.key.clone() });
        let waits = owner::recreation(cluster, pod) == Recreation::WhenGone;
        let is_assumed = !cluster.known(FeedKind::CsiDrivers).is_known();
        let volume = attached_once(cluster, pod).map(|claim| Self::VolumeAttached { claim, is_assumed });
        ignored.chain(waits.then_some(Self::WaitsForOldPod)).chain(volume).collect()
    }

    /// Returns the notes on a pod that the pod garbage collector removes by force from a node out of service.
    pub fn for_forced_removal(cluster: &Cluster, pod: &Pod) -> Vec<Self> {
        let is_deleted = pod.termination.is_none();
        let ignored = cluster.budgets_of(pod).filter(|_| is_deleted);
        let ignored = ignored.map(|budget| Self::BudgetIgnored { budget: budget.key.clone() });
        let volume = attached_once(cluster, pod).map(|claim| Self::VolumeDetached { claim });
        ignored.chain(volume).collect()
    }

    /// Returns the notes on a pod that the pod garbage collector removes by force, because its node is deleted.
    pub fn for_orphan(cluster: &Cluster, pod: &Pod) -> Vec<Self> {
        let removed = |note| match note {
            Self::WaitsForOldPod => Self::WaitsForItsEnd,
            other => other,
        };
        Self::for_pod(cluster, pod).into_iter().map(removed).collect()
    }

    /// Returns the notes on a pod that its kubelet ends.
    pub fn for_running_node(cluster: &Cluster, pod: &Pod) -> Vec<Self> {
        let ended = |note| match note {
            Self::WaitsForOldPod => Self::WaitsForItsEnd,
            Self::VolumeAttached { claim, .. } => Self::VolumeReleased { claim },
            other => other,
        };
        Self::for_pod(cluster, pod).into_iter().map(ended).collect()
    }

    /// Returns the scopes, that is, the sets of objects, that have to be known for the notes on a pod.
    pub fn needs(cluster: &Cluster, pod: &Pod) -> BTreeSet<Scope> {
        let namespace = &pod.key.namespace;
        let owner = pod.owner.as_ref().and_then(|owner| match owner.kind {
            OwnerKind::Workload(kind) => Some(Scope::Workload(kind, key(namespace, &owner.name))),
            OwnerKind::Node | OwnerKind::Other { .. } => None,
        });
        let mut needs: BTreeSet<Scope> =
            owner.into_iter().chain([Scope::BudgetsIn(namespace.clone())]).collect();
        for name in lasting_claims(pod) {
            let claim = key(namespace, name);
            let volume = cluster.claims().get(&claim).map(|claim| claim.volume.clone());
            needs.extend(volume.filter(|volume| !volume.is_empty()).map(Scope::Volume));
            needs.insert(Scope::Claim(claim));
        }
        if attached_once(cluster, pod).is_some() {
            needs.insert(Scope::CsiDrivers);
        }
        needs
    }

    /// Returns all notes on a pod in one line; `None` if there are no notes.
    pub fn line(cluster: &Cluster, pod: &Pod) -> Option<String> {
        let notes: Vec<String> = Self::for_pod(cluster, pod).iter().map(ToString::to_string).collect();
        (!notes.is_empty()).then(|| notes.join("; "))
    }
}

impl fmt::Display for EvictionNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BudgetIgnored { budget } => write!(f, "budget {budget} ignored"),
            Self::WaitsForOldPod => f.write_str(
                "no replacement until the old pod is gone: on a dead node, until that is Ready, deleted or tainted \
                 out-of-service",
            ),
            Self::WaitsForItsEnd => f.write_str("no replacement until the old pod is gone"),
            Self::VolumeReleased { claim } => {
                write!(f, "ReadWriteOnce volume {claim} is detached once the old pod has ended")
            }
            Self::VolumeAttached { claim, is_assumed } => {
                let assumed =
                    if *is_assumed { ", if its driver attaches volumes (CSIDrivers are not known)" } else { "" };
                write!(
                    f,
                    "ReadWriteOnce volume {claim} stays attached{assumed}: detached by force 6m after the old pod is gone, \
                     at once if its node is Ready or tainted out-of-service"
                )
            }
            Self::VolumeDetached { claim } => {
                write!(f, "ReadWriteOnce volume {claim} is detached at once: its node is out of service")
            }
        }
    }
}

/// Returns the first claim of a pod whose volume is attached to nodes and can be used by only one node at a time.
/// Ignores claims and volumes that are not known. Also ignores claims that are being deleted, because no replacement
/// gets their volumes.
pub fn attached_once(cluster: &Cluster, pod: &Pod) -> Option<Name> {
    claims_attached_once(cluster, pod).find(|name| !is_ending(cluster, pod, name)).cloned()
}

fn claims_attached_once<'a>(cluster: &'a Cluster, pod: &'a Pod) -> impl Iterator<Item = &'a Name> {
    let is_attached_once = move |name: &&Name| {
        let Some(claim) = cluster.claims().get(&key(&pod.key.namespace, name)) else { return false };
        let volume = cluster.volumes().get(&claim.volume);
        if volume.is_some_and(|volume| !cluster.is_attached(volume)) {
            return false;
        }
        volume.map_or(claim.requested.modes, |volume| volume.properties.modes).is_single_node()
    };
    lasting_claims(pod).filter(is_attached_once)
}

/// Returns a claim of a pod whose volume another pod still uses on another node, and this other pod. Only one node at
/// a time can use the volume, so the pod does not start before the volume is detached from the other node. `None` if
/// no such claim is known.
pub fn held_volume<'a>(cluster: &'a Cluster, pod: &Pod) -> Option<(Name, &'a Arc<Pod>)> {
    let claim = claims_attached_once(cluster, pod).next()?.clone();
    let uses = |other: &&Arc<Pod>| {
        let is_elsewhere = other.node.is_some() && other.node != pod.node;
        is_elsewhere && !other.is_finished() && lasting_claims(other).any(|name| *name == claim)
    };
    let holder = cluster.pods_in(&pod.key.namespace).find(uses)?;
    Some((claim, holder))
}

/// Returns the claims that still exist after the pod is deleted.
pub fn lasting_claims(pod: &Pod) -> impl Iterator<Item = &Name> {
    pod.scheduling.volumes.iter().filter_map(|volume| match volume {
        PodVolume::Claim(name) => Some(name),
        // A claim that was created for the pod is deleted with the pod.
        PodVolume::OwnClaim { .. } | PodVolume::Disk(_) => None,
    })
}

/// Returns the claims of a pod that are being deleted and disappear once no pod uses them.
pub fn ending_claims<'a>(cluster: &'a Cluster, pod: &'a Pod) -> impl Iterator<Item = &'a Name> {
    lasting_claims(pod).filter(|name| is_ending(cluster, pod, name))
}

/// Whether a claim of a pod is known and is being deleted.
fn is_ending(cluster: &Cluster, pod: &Pod, claim: &Name) -> bool {
    cluster.claims().get(&key(&pod.key.namespace, claim)).is_some_and(|claim| claim.is_terminating)
}

fn key(namespace: &Namespace, name: &Name) -> Key {
    Key { namespace: namespace.clone(), name: name.clone() }
}
