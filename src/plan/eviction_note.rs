//! What to know of the eviction of a pod by a taint: what it ignores, and what keeps the pod from running again soon
//! (docs/upstream/neighbours.md#3, docs/upstream/neighbours.md#4).

use std::fmt;

use super::owner::{self, Recreation};
use crate::cluster::{Cluster, Key, Name, Pod, scheduling::PodVolume};

/// What to know of the eviction of a pod by a taint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EvictionNote {
    /// This budget covers the pod: a drain would ask it, the taint does not.
    BudgetIgnored { budget: Key },
    /// Its owner creates no replacement while the old pod exists.
    WaitsForOldPod,
    /// A volume that only one node may use at a time stays attached to the old node: that of this claim.
    VolumeAttached { claim: Name },
}

impl EvictionNote {
    /// The notes on a pod.
    pub fn of(cluster: &Cluster, pod: &Pod) -> Vec<Self> {
        let ignored =
            cluster.budgets_of(pod).map(|budget| Self::BudgetIgnored { budget: budget.key.clone() });
        let waits = owner::recreation(cluster, pod) == Recreation::WhenGone;
        let volume = attached_once(cluster, pod).map(|claim| Self::VolumeAttached { claim });
        ignored.chain(waits.then_some(Self::WaitsForOldPod)).chain(volume).collect()
    }

    /// All notes on a pod in one line; none if there are none.
    pub fn line(cluster: &Cluster, pod: &Pod) -> Option<String> {
        let notes: Vec<String> = Self::of(cluster, pod).iter().map(ToString::to_string).collect();
        (!notes.is_empty()).then(|| notes.join("; "))
    }
}

impl fmt::Display for EvictionNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BudgetIgnored { budget } => write!(f, "budget {budget} ignored by taint eviction"),
            Self::WaitsForOldPod => f.write_str(
                "no replacement until the old pod is gone: on a dead node, until that is Ready, deleted or tainted \
                 out-of-service",
            ),
            Self::VolumeAttached { claim } => write!(
                f,
                "ReadWriteOnce volume {claim} stays attached: detached by force 6m after the old pod is gone, at once if \
                 its node is Ready or tainted out-of-service"
            ),
        }
    }
}

/// The first claim of a pod whose volume can be attached to one node at a time, as far as claims and volumes are known.
pub fn attached_once(cluster: &Cluster, pod: &Pod) -> Option<Name> {
    let is_attached_once = |name: &&Name| {
        let key = Key { namespace: pod.key.namespace.clone(), name: (*name).clone() };
        let Some(claim) = cluster.claims().get(&key) else { return false };
        let volume = cluster.volumes().get(&claim.volume);
        volume.map_or(claim.requested.modes, |volume| volume.properties.modes).is_single_node()
    };
    let claims = pod.scheduling.volumes.iter().filter_map(|volume| match volume {
        PodVolume::Claim(name) => Some(name),
        // A claim made for the pod is deleted with it.
        PodVolume::OwnClaim { .. } | PodVolume::Disk(_) => None,
    });
    claims.into_iter().find(is_attached_once).cloned()
}
