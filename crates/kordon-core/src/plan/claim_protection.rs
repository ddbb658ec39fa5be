//! Claims that are being deleted and disappear with the last pod that uses them (upstream of 1.37,
//! `pkg/controller/volume/pvcprotection`).

use super::eviction_note::{ending_claims, lasting_claims};
use crate::{
    cluster::{Cluster, Key, Name, Pod},
    placement::SchedulingRequest,
};

/// Returns the claims of a pod that are deleted once the pod is gone. Their deletion has started, and all other pods
/// that use them are gone or have no node: the finalizer `kubernetes.io/pvc-protection` then no longer holds them
/// (upstream `podUsesPVCForDeletion`).
pub(super) fn released_claims(cluster: &Cluster, pod: &Pod, is_gone: impl Fn(&Key) -> bool) -> Vec<Key> {
    let namespace = &pod.key.namespace;
    let key = |name: &Name| Key { namespace: namespace.clone(), name: name.clone() };
    let is_held = |name: &&Name| {
        cluster.pods_in(namespace).any(|other| {
            let is_user = other.key != pod.key && other.node.is_some() && !is_gone(&other.key);
            is_user && lasting_claims(other).any(|used| used == *name)
        })
    };
    ending_claims(cluster, pod).filter(|name| !is_held(name)).map(key).collect()
}

/// Returns whether the pod's StatefulSet creates this claim again after the claim is deleted. The claim's name shows
/// whether it was made from `volumeClaimTemplates` (upstream `getPersistentVolumeClaimName`,
/// `createPersistentVolumeClaims`).
pub(super) fn is_recreated(pod: &Pod, claim: &Key) -> bool {
    SchedulingRequest::keeps_name_of(pod)
        && claim.name.strip_suffix(pod.key.name.as_str()).is_some_and(|template| template.ends_with('-'))
}
