//! Taints of devices: which pods the device taint eviction controller deletes, and when (upstream
//! `pkg/controller/devicetainteviction`). This controller runs in kube-controller-manager beside the other controllers
//! and reads claims, not nodes.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    settings::ServerVersion,
    why::{Cause, Why},
};
use crate::cluster::{
    Cluster, DeviceTaintRule, Key, Name, Pod, ResourceClaim,
    device::{AllocatedDevice, DeviceId, DeviceTaint, DeviceTaintEffect, DeviceTaintSelector},
    device_tables::Claimants,
};
use kordon_time::{ClusterTime, Span, Timestamp};

/// The first release in which taints of devices evict pods by default (gate `DRADeviceTaints`).
pub const DEVICE_TAINTS: ServerVersion = ServerVersion::new(1, 36);

/// The first release in which DeviceTaintRules are in effect by default (gate `DRADeviceTaintRules`).
pub const DEVICE_TAINT_RULES: ServerVersion = ServerVersion::new(1, 37);

/// A pod that is deleted because of a taint of its device.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceEviction {
    pub pod: Arc<Pod>,
    /// Time of the deletion: when the taint was added, or when the shortest toleration ends.
    pub at: Timestamp,
    pub why: Why,
}

/// What a DeviceTaintRule without an effect would do if its effect were NoExecute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaintRulePreview {
    pub rule: Name,
    /// Whether the rule selects every device.
    pub selects_all: bool,
    /// Number of published devices that the rule selects.
    pub published: usize,
    /// Number of allocated devices that the rule selects. A device counts once for each claim that it is allocated to.
    pub allocated: usize,
    /// The pods that would be deleted, at once or when their tolerations end.
    pub pods: Vec<Key>,
}

impl TaintRulePreview {
    /// Number of namespaces of the pods that the rule would delete.
    pub fn namespaces(&self) -> usize {
        self.pods.iter().map(|pod| &pod.namespace).collect::<BTreeSet<_>>().len()
    }
}

/// Returns the pods that a taint of their devices evicts, in the order of their names. Pods that are being deleted
/// already are left out, as are pods whose devices provide an extended resource, because the controller looks at
/// `spec.resourceClaims` only.
pub fn device_evictions(cluster: &Cluster, version: ServerVersion) -> Vec<DeviceEviction> {
    let devices = cluster.devices();
    if version < DEVICE_TAINTS || devices.claims.is_empty() {
        return Vec::new();
    }
    let in_effect = |rule: &&Arc<DeviceTaintRule>| {
        version >= DEVICE_TAINT_RULES && rule.taint.effect == DeviceTaintEffect::NoExecute
    };
    let rules: Vec<&DeviceTaintRule> = devices.rules.iter().filter(in_effect).map(|rule| &**rule).collect();
    let evicting = EvictingTaints { of_slices: taints_of_slices(cluster), rules };
    let evictions = evicting.evictions(cluster).into_values();
    evictions
        .map(|(pod, taint)| {
            let mut why = Why::from(Cause::DeviceTainted {
                device: taint.device,
                taint: taint.taint.key.clone(),
                by: taint.by,
                since: taint.taint.time_added.map(|at| cluster.local(at)).unwrap_or_default(),
            });
            why = match taint.tolerated {
                Some(span) => why.then(Cause::Tolerated { key: taint.taint.key, span }),
                None => why.then(Cause::NotTolerated { taint: taint.taint.key }),
            };
            DeviceEviction { pod, at: cluster.local(taint.at), why }
        })
        .collect()
}

/// Returns what each DeviceTaintRule without an effect would do. The status of such a rule says the same, but as of the
/// rule's creation.
pub fn taint_rule_previews(cluster: &Cluster, version: ServerVersion) -> Vec<TaintRulePreview> {
    let devices = cluster.devices();
    if version < DEVICE_TAINT_RULES {
        return Vec::new();
    }
    let is_preview = |rule: &&Arc<DeviceTaintRule>| rule.taint.effect == DeviceTaintEffect::None;
    let previews = devices.rules.iter().filter(is_preview).map(|rule| {
        let evicting = EvictingTaints { of_slices: BTreeMap::new(), rules: vec![&**rule] };
        let allocations = devices.claims.iter().filter_map(|claim| claim.allocation.as_ref());
        let allocated = allocations.flat_map(|allocation| &allocation.devices);
        TaintRulePreview {
            rule: rule.name.clone(),
            selects_all: rule.selector == Some(DeviceTaintSelector::default()),
            published: published(cluster).filter(|(id, ..)| rule.selects(id)).count(),
            allocated: allocated.filter(|device| rule.selects(&device.id)).count(),
            pods: evicting.evictions(cluster).into_keys().collect(),
        }
    });
    previews.collect()
}

/// The devices of the newest generation of each pool, with the name of their slice and their taints.
fn published(cluster: &Cluster) -> impl Iterator<Item = (DeviceId, &Name, &[DeviceTaint])> {
    let current = cluster.devices().pools().into_values().flatten();
    current
        .flat_map(|slice| slice.devices.iter().map(|device| (slice.id(device), &slice.name, &*device.taints)))
}

/// Returns the NoExecute taints that drivers set, by device.
fn taints_of_slices(cluster: &Cluster) -> BTreeMap<DeviceId, Vec<(Name, DeviceTaint)>> {
    let is_evicting = |taint: &&DeviceTaint| taint.effect == DeviceTaintEffect::NoExecute;
    let tainted = published(cluster).filter(|(.., taints)| taints.iter().any(|taint| is_evicting(&taint)));
    let with_slice = tainted.map(|(id, slice, taints)| {
        let taints = taints.iter().filter(is_evicting);
        (id, taints.map(|taint| (slice.clone(), taint.clone())).collect())
    });
    with_slice.collect()
}

/// The device taints that evict pods, from slices and from DeviceTaintRules.
struct EvictingTaints<'a> {
    /// Taints that drivers set in slices, by device, with the name of the slice.
    of_slices: BTreeMap<DeviceId, Vec<(Name, DeviceTaint)>>,
    /// Taints of DeviceTaintRules. Each rule counts as if its effect were NoExecute.
    rules: Vec<&'a DeviceTaintRule>,
}

/// A taint that evicts the pods of a claim.
#[derive(Clone, Debug)]
struct ClaimEviction {
    at: ClusterTime,
    device: Name,
    taint: DeviceTaint,
    by: Name,
    tolerated: Option<Span>,
}

impl EvictingTaints<'_> {
    /// Returns the pods that are evicted, each with the taint that evicts it first.
    fn evictions(&self, cluster: &Cluster) -> BTreeMap<Key, (Arc<Pod>, ClaimEviction)> {
        let mut evictions: BTreeMap<Key, (Arc<Pod>, ClaimEviction)> = BTreeMap::new();
        if self.of_slices.is_empty() && self.rules.is_empty() {
            return evictions;
        }
        let mut pods = Claimants::default();
        for claim in cluster.devices().claims.iter() {
            let Some(eviction) = self.of_claim(claim) else { continue };
            for uid in &claim.reserved_for {
                let Some(pod) = pods.pod(cluster, &claim.key.namespace, uid) else { continue };
                if pod.termination.is_some() || pod.node.is_none() || !uses(pod, claim) {
                    continue;
                }
                let known = evictions.get(&pod.key);
                if known.is_none_or(|(_, known)| eviction.at < known.at) {
                    evictions.insert(pod.key.clone(), (pod.clone(), eviction.clone()));
                }
            }
        }
        evictions
    }

    /// Returns the taint that first evicts the pods of a claim (upstream `claimEvictionTime`).
    fn of_claim(&self, claim: &ResourceClaim) -> Option<ClaimEviction> {
        let devices = claim.allocation.iter().flat_map(|allocation| &allocation.devices);
        devices.flat_map(|device| self.of_device(device)).min_by_key(|eviction| eviction.at)
    }

    fn of_device<'a>(&'a self, device: &'a AllocatedDevice) -> impl Iterator<Item = ClaimEviction> + 'a {
        let of_slices = self.of_slices.get(&device.id).into_iter().flatten();
        let of_slices = of_slices.map(|(slice, taint)| (format!("ResourceSlice {slice}"), taint.clone()));
        let of_rules = self.rules.iter().filter(move |rule| rule.selects(&device.id)).map(|rule| {
            let taint = DeviceTaint { effect: DeviceTaintEffect::NoExecute, ..rule.taint.clone() };
            (format!("DeviceTaintRule {}", rule.name), taint)
        });
        of_slices.chain(of_rules).filter_map(move |(by, taint)| {
            let tolerated = match tolerance(device, &taint) {
                DeviceTolerance::Forever => return None,
                DeviceTolerance::For(span) => Some(span),
                DeviceTolerance::None => None,
            };
            let at = taint.time_added? + tolerated.unwrap_or_default();
            let id = &device.id;
            let name = format!("{}/{}/{}", id.driver, id.pool, id.device);
            Some(ClaimEviction { at, device: name.as_str().into(), taint, by: by.as_str().into(), tolerated })
        })
    }
}

/// How long a device's claim tolerates a taint.
enum DeviceTolerance {
    None,
    For(Span),
    Forever,
}

/// Returns how long the claim of a device tolerates a taint. Only tolerations that name the effect NoExecute count. If
/// several of them have a time limit, the shortest one applies.
fn tolerance(device: &AllocatedDevice, taint: &DeviceTaint) -> DeviceTolerance {
    let matching = device.tolerations.iter().filter(|toleration| {
        toleration.effect == Some(DeviceTaintEffect::NoExecute) && toleration.tolerates(taint)
    });
    let mut shortest: Option<i64> = None;
    for toleration in matching {
        let Some(seconds) = toleration.seconds else { return DeviceTolerance::Forever };
        let seconds = seconds.max(0);
        shortest = Some(shortest.map_or(seconds, |shortest| shortest.min(seconds)));
    }
    shortest.map_or(DeviceTolerance::None, |seconds| DeviceTolerance::For(Span::from_secs(seconds)))
}

/// Whether one of the pod's `spec.resourceClaims` refers to the claim.
fn uses(pod: &Pod, claim: &ResourceClaim) -> bool {
    pod.scheduling.device_claims.iter().any(|entry| match (&entry.claim, &claim.owner) {
        (Some(name), _) => *name == claim.key.name,
        (None, Some(owner)) => owner.uid == pod.uid && owner.entry == entry.entry,
        (None, None) => false,
    })
}
