//! Notes on the eviction of a pod by a taint: budgets that the eviction ignores, and obstacles to a quick replacement
//! (docs/upstream/neighbours.md#3, docs/upstream/neighbours.md#4).

use std::{collections::BTreeSet, fmt, sync::Arc};

use super::{
    environment::has_running_kubelet,
    forced_removal::{FORCED_DETACH, is_out_of_service},
    owner::{self, Recreation},
};
use crate::cluster::{
    Cluster, FeedKind, Key, Name, Namespace, NodeName, Phase, Pod, Scope, VolumeAttachment,
    scheduling::PodVolume,
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
    /// The pod's replacement exists already, and starts on this node once it gets the pod's volume.
    ReplacementWaits { replacement: Key, node: NodeName },
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
        let mut needs = Self::needs_of_replacement(cluster, pod);
        needs.insert(Scope::BudgetsIn(pod.key.namespace.clone()));
        if attached_once(cluster, pod).is_some() {
            needs.insert(Scope::Whole(FeedKind::CsiDrivers));
        }
        needs
    }

    /// Returns the scopes that decide whether a pod is recreated and where its volumes can be reached.
    pub fn needs_of_replacement(cluster: &Cluster, pod: &Pod) -> BTreeSet<Scope> {
        let namespace = &pod.key.namespace;
        let owner = pod.owner.as_ref().and_then(|owner| owner::scope(namespace, owner));
        let mut needs: BTreeSet<Scope> = owner.into_iter().collect();
        for name in lasting_claims(pod) {
            let claim = key(namespace, name);
            let volume = cluster.claims().get(&claim).map(|claim| claim.volume.clone());
            needs.extend(volume.filter(|volume| !volume.is_empty()).map(Scope::Volume));
            needs.insert(Scope::Claim(claim));
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
                    "ReadWriteOnce volume {claim} stays attached{assumed}: detached by force {FORCED_DETACH} after the \
                     old pod is gone, at once if its node is Ready or tainted out-of-service"
                )
            }
            Self::VolumeDetached { claim } => {
                write!(f, "ReadWriteOnce volume {claim} is detached at once: its node is out of service")
            }
            Self::ReplacementWaits { replacement, node } => {
                write!(f, "{replacement} on {node} starts once it gets the volume")
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

/// A volume that a pod waits for. Only one node at a time can use the volume, so the pod does not start before the
/// volume is detached from another node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldVolume {
    pub claim: Name,
    /// The node to which the volume is attached.
    pub node: NodeName,
    /// The pod that uses the volume there; `None` if that pod is gone.
    pub holder: Option<Key>,
    /// The VolumeAttachment of the volume to another node; `None` if none is known.
    pub attachment: Option<VolumeAttachment>,
}

/// Returns the claim of the volume for which a pod may wait because it is attached to another node: the pod has a node
/// and is starting. `None` if the pod has no such claim.
pub fn awaited_claim(cluster: &Cluster, pod: &Pod) -> Option<Name> {
    let is_starting = pod.lives() && pod.phase == Phase::Pending && pod.node.is_some();
    attached_once(cluster, pod).filter(|_| is_starting)
}

/// Returns the volume of a pod that is still attached to another node: a pod there uses it, the kubelet there has not
/// unmounted it, or it has a VolumeAttachment to that node. `None` if no such volume is known.
pub fn held_volume(cluster: &Cluster, pod: &Pod) -> Option<HeldVolume> {
    claims_attached_once(cluster, pod).find_map(|claim| held_volume_of(cluster, pod, claim))
}

/// Returns the volume of this claim if it is still attached to another node than that of the pod.
fn held_volume_of(cluster: &Cluster, pod: &Pod, claim: &Name) -> Option<HeldVolume> {
    let uses = |other: &&Arc<Pod>| {
        let is_elsewhere = other.node.is_some() && other.node != pod.node;
        is_elsewhere && !other.is_finished() && lasting_claims(other).any(|name| name == claim)
    };
    let attachment = attachment_elsewhere(cluster, pod, claim).cloned();
    let (node, holder) = match cluster.pods_in(&pod.key.namespace).find(uses) {
        Some(holder) => (holder.node.clone(), Some(holder.key.clone())),
        None => (attached_to(cluster, pod, claim), None),
    };
    let node = node.or_else(|| attachment.as_ref().map(|attachment| attachment.node.clone()))?;
    Some(HeldVolume { claim: claim.clone(), node, holder, attachment })
}

/// Returns the VolumeAttachment of a claim's volume to another node than that of the pod.
fn attachment_elsewhere<'a>(cluster: &'a Cluster, pod: &Pod, claim: &Name) -> Option<&'a VolumeAttachment> {
    let volume = &cluster.claims().get(&key(&pod.key.namespace, claim))?.volume;
    let mut attachments = cluster.volume_attachments().of_volume(volume).filter(|_| !volume.is_empty());
    attachments.find(|attachment| pod.node.as_ref() != Some(&attachment.node))
}

/// Returns the node that is not Ready and still uses the volume of a pod's claim (upstream
/// `attachdetach/reconciler`: a volume in use is not detached before 6 min have passed). `None` if no other node does.
fn attached_to(cluster: &Cluster, pod: &Pod, claim: &Name) -> Option<NodeName> {
    let claim = cluster.claims().get(&key(&pod.key.namespace, claim))?;
    let handle = cluster.volumes().get(&claim.volume)?.handle.as_ref()?;
    let mut others = cluster.nodes().iter().filter(|node| pod.node.as_ref() != Some(&node.name));
    Some(others.find(|node| node.held_volumes.contains(handle))?.name.clone())
}

/// Returns the replacement of a pod that exists already, but starts only once a volume of the pod is detached from the
/// pod's node: a starting pod of the same owner on another node. `None` if no such pod is known.
pub(super) fn waiting_replacement<'a>(cluster: &'a Cluster, pod: &Pod) -> Option<&'a Arc<Pod>> {
    let claim = attached_once(cluster, pod)?;
    let waits = |other: &&Arc<Pod>| {
        let is_elsewhere = other.node.is_some() && other.node != pod.node;
        let is_starting = other.lives() && other.phase == Phase::Pending;
        is_elsewhere && is_starting && lasting_claims(other).any(|name| *name == claim)
    };
    cluster.pods_owned_by(&pod.owner.as_ref()?.uid).find(waits)
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
