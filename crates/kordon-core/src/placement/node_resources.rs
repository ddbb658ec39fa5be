//! Resources of a node: the amounts that the node offers, and the amounts that its pods request.

use std::sync::Arc;

use super::storage::claims_of;
use crate::cluster::{
    Key, Name, Node, Pod, Requests, TaintEffect,
    scheduling::{Disk, HostPort, PodVolume, SchedulingSpec},
};

/// The resources of one node. Each placement reads this struct for all nodes, so resources that few pods request are in
/// a struct of their own.
#[derive(Clone, Debug, Default)]
pub(super) struct NodeResources {
    pub cpu_milli: Share,
    pub memory_bytes: Share,
    pub pods: Share,
    /// Sum of the CPU requests. Containers without a request count with the scheduler's default.
    pub assumed_cpu_milli: i64,
    pub assumed_memory_bytes: i64,
    rare: Arc<RareResources>,
    /// Cached result of [`NodeResources::balance`]. Most placements read the balance of all nodes.
    balance: i64,
    /// Whether the node exists.
    pub present: bool,
    pub cordoned: bool,
    /// Whether the node has NoSchedule or NoExecute taints.
    pub has_hard_taints: bool,
    /// Whether the node has PreferNoSchedule taints.
    pub has_soft_taints: bool,
}

/// Resources that few pods request.
#[derive(Clone, Debug, Default)]
struct RareResources {
    ephemeral_bytes: Share,
    /// Huge pages and extended resources.
    scalars: Vec<(Name, Share)>,
    ports: Vec<HostPort>,
    disks: Vec<Disk>,
    claims: Vec<Key>,
}

/// CPU, memory and pods of a node: allocatable and requested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResourceUse {
    pub cpu_milli: Share,
    pub memory_bytes: Share,
    pub pods: Share,
}

/// The allocatable and the requested amount of one resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    pub allocatable: i64,
    pub requested: i64,
}

impl Share {
    /// Returns the free amount; negative if the node is overcommitted.
    pub fn free(self) -> i64 {
        self.allocatable.saturating_sub(self.requested)
    }

    /// Returns the requested share of the allocatable amount: 0 if nothing is requested, above 1 if the node is
    /// overcommitted.
    #[expect(clippy::cast_precision_loss, reason = "a share on screen")]
    pub fn part(self) -> f64 {
        if self.allocatable > 0 { self.requested as f64 / self.allocatable as f64 } else { 0.0 }
    }
}

impl NodeResources {
    pub const fn resource_use(&self) -> ResourceUse {
        ResourceUse { cpu_milli: self.cpu_milli, memory_bytes: self.memory_bytes, pods: self.pods }
    }

    /// Updates the allocatable amounts, cordon and taints from the node. `None` means that the node is gone.
    pub fn set_node(&mut self, node: Option<&Node>) {
        let nothing = Node::default();
        self.present = node.is_some();
        let node = node.unwrap_or(&nothing);
        self.cpu_milli.allocatable = node.allocatable.cpu_milli;
        self.memory_bytes.allocatable = node.allocatable.memory_bytes;
        self.pods.allocatable = node.allocatable.pods;
        self.balance = self.balance_with(0, 0);
        Arc::make_mut(&mut self.rare).set_allocatable(&node.extended);
        let has = |soft: bool| {
            node.taints.iter().any(|taint| match taint.effect {
                TaintEffect::NoSchedule | TaintEffect::NoExecute => !soft,
                TaintEffect::PreferNoSchedule => soft,
                TaintEffect::Invalid => false,
            })
        };
        (self.cordoned, self.has_hard_taints, self.has_soft_taints) =
            (node.unschedulable, has(false), has(true));
    }

    pub fn ephemeral_bytes(&self) -> Share {
        self.rare.ephemeral_bytes
    }

    /// Returns the allocatable and the requested amount of an extended resource or of huge pages.
    pub fn scalar(&self, resource: &Name) -> Share {
        let scalars = &self.rare.scalars;
        scalars.iter().find(|(name, _)| name == resource).map(|(_, share)| *share).unwrap_or_default()
    }

    pub fn ports(&self) -> &[HostPort] {
        &self.rare.ports
    }

    pub fn disks(&self) -> &[Disk] {
        &self.rare.disks
    }

    /// The claims that pods on the node use. A claim is repeated for each pod that uses it.
    pub fn claims(&self) -> &[Key] {
        &self.rare.claims
    }

    pub fn add(&mut self, pod: &Pod) {
        self.count(&pod.resources.requests, 1);
        if asks_for_rare(pod) {
            Arc::make_mut(&mut self.rare).add(pod);
        }
    }

    pub fn remove(&mut self, pod: &Pod) {
        self.count(&pod.resources.requests, -1);
        if asks_for_rare(pod) {
            Arc::make_mut(&mut self.rare).remove(pod);
        }
    }

    fn count(&mut self, requests: &Requests, sign: i64) {
        count(&mut self.pods.requested, 1, sign);
        count(&mut self.cpu_milli.requested, requests.cpu_milli, sign);
        count(&mut self.memory_bytes.requested, requests.memory_bytes, sign);
        count(&mut self.assumed_cpu_milli, requests.assumed_cpu_milli, sign);
        count(&mut self.assumed_memory_bytes, requests.assumed_memory_bytes, sign);
        self.balance = self.balance_with(0, 0);
    }

    /// Returns how evenly CPU and memory are used: 100 minus half the difference of the two used percentages. 100 if
    /// the node offers only one of the two.
    #[inline]
    pub fn balance(&self) -> i64 {
        self.balance
    }

    /// Returns the balance of CPU and memory if a pod with these requests were added to the node.
    #[inline]
    pub fn balance_with(&self, cpu_milli: i64, memory_bytes: i64) -> i64 {
        let share = |share: Share, more: i64| {
            (share.allocatable > 0).then(|| {
                (as_float(share.requested.saturating_add(more)) / as_float(share.allocatable)).min(1.0)
            })
        };
        let deviation = match (share(self.cpu_milli, cpu_milli), share(self.memory_bytes, memory_bytes)) {
            (Some(cpu), Some(memory)) => ((cpu - memory) / 2.0).abs(),
            _ => 0.0,
        };
        #[expect(clippy::cast_possible_truncation, reason = "at most 100, and upstream truncates")]
        let points = ((1.0 - deviation) * 100.0) as i64;
        points
    }
}

#[expect(clippy::cast_precision_loss, reason = "upstream computes in floats too")]
fn as_float(amount: i64) -> f64 {
    amount as f64
}

impl RareResources {
    fn set_allocatable(&mut self, amounts: &[(Name, i64)]) {
        self.ephemeral_bytes.allocatable = 0;
        self.scalars.iter_mut().for_each(|(_, share)| share.allocatable = 0);
        for (resource, amount) in amounts {
            if *resource == "ephemeral-storage" {
                self.ephemeral_bytes.allocatable = *amount;
            } else {
                self.scalar_mut(resource).allocatable = *amount;
            }
        }
    }

    fn scalar_mut(&mut self, resource: &Name) -> &mut Share {
        let place = self.scalars.iter().position(|(name, _)| name == resource).unwrap_or_else(|| {
            self.scalars.push((resource.clone(), Share::default()));
            self.scalars.len() - 1
        });
        &mut self.scalars[place].1
    }

    fn add(&mut self, pod: &Pod) {
        self.count(&pod.resources.requests, 1);
        self.ports.extend(pod.scheduling.host_ports.iter().cloned());
        self.disks.extend(disks(&pod.scheduling).cloned());
        self.claims.extend(claims_of(pod));
    }

    fn remove(&mut self, pod: &Pod) {
        self.count(&pod.resources.requests, -1);
        pod.scheduling.host_ports.iter().for_each(|port| drop_one(&mut self.ports, port));
        disks(&pod.scheduling).for_each(|disk| drop_one(&mut self.disks, disk));
        claims_of(pod).for_each(|claim| drop_one(&mut self.claims, &claim));
    }

    fn count(&mut self, requests: &Requests, sign: i64) {
        count(&mut self.ephemeral_bytes.requested, requests.ephemeral_bytes, sign);
        for (resource, amount) in &requests.scalars {
            count(&mut self.scalar_mut(resource).requested, *amount, sign);
        }
    }
}

/// Adds an amount to a sum if `sign` is 1, subtracts it if `sign` is -1.
fn count(sum: &mut i64, amount: i64, sign: i64) {
    *sum = sum.saturating_add(amount.saturating_mul(sign));
}

/// Returns whether a pod changes the [`RareResources`] of its node.
fn asks_for_rare(pod: &Pod) -> bool {
    let (requests, spec) = (&pod.resources.requests, &pod.scheduling);
    requests.ephemeral_bytes != 0
        || !requests.scalars.is_empty()
        || !spec.host_ports.is_empty()
        || !spec.volumes.is_empty()
}

/// Returns the disks that the volumes of a pod name directly, without a claim.
pub(super) fn disks(spec: &SchedulingSpec) -> impl Iterator<Item = &Disk> {
    spec.volumes.iter().filter_map(|volume| match volume {
        PodVolume::Disk(disk) => Some(disk),
        PodVolume::Claim(_) | PodVolume::OwnClaim { .. } => None,
    })
}

fn drop_one<T: PartialEq>(list: &mut Vec<T>, one: &T) {
    if let Some(place) = list.iter().position(|other| other == one) {
        list.swap_remove(place);
    }
}
