//! The resources of a node: what it offers and what its pods request.

use std::sync::Arc;

use super::storage::{claims_of, claims_volumes};
use crate::cluster::{
    Key, Name, Node, Pod, TaintEffect,
    scheduling::{Disk, HostPort, PodVolume, SchedulingSpec},
};

/// The resources of one node.
#[derive(Clone, Debug, Default)]
pub(super) struct NodeResources {
    pub cpu_milli: Share,
    pub memory_bytes: Share,
    pub ephemeral_bytes: Share,
    pub pods: Share,
    /// CPU requests, with a default for containers without one.
    pub assumed_cpu_milli: i64,
    pub assumed_memory_bytes: i64,
    /// Huge pages and extended resources.
    scalars: Vec<(Name, Share)>,
    pub ports: Arc<Vec<HostPort>>,
    pub disks: Arc<Vec<Disk>>,
    /// The claims that its pods use, one for each use.
    pub claims: Arc<Vec<Key>>,
    /// Whether the node exists.
    pub present: bool,
    pub cordoned: bool,
    /// Whether it has NoSchedule or NoExecute taints.
    pub has_hard_taints: bool,
    /// Whether it has PreferNoSchedule taints.
    pub has_soft_taints: bool,
}

/// The use of a node's resources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResourceUse {
    pub cpu_milli: Share,
    pub memory_bytes: Share,
    pub pods: Share,
}

/// What is offered and requested of one resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    pub allocatable: i64,
    pub requested: i64,
}

impl Share {
    /// What is free; negative where the node is overcommitted.
    pub fn free(self) -> i64 {
        self.allocatable.saturating_sub(self.requested)
    }

    /// The part of it that is requested, from 0; above 1 where the node is overcommitted.
    #[expect(clippy::cast_precision_loss, reason = "a share on screen")]
    pub fn part(self) -> f64 {
        if self.allocatable > 0 { self.requested as f64 / self.allocatable as f64 } else { 0.0 }
    }
}

impl NodeResources {
    pub const fn resource_use(&self) -> ResourceUse {
        ResourceUse { cpu_milli: self.cpu_milli, memory_bytes: self.memory_bytes, pods: self.pods }
    }

    /// Updates what the node offers; none if it is gone.
    pub fn set_node(&mut self, node: Option<&Node>) {
        let nothing = Node::default();
        self.present = node.is_some();
        let node = node.unwrap_or(&nothing);
        self.cpu_milli.allocatable = node.allocatable.cpu_milli;
        self.memory_bytes.allocatable = node.allocatable.memory_bytes;
        self.pods.allocatable = node.allocatable.pods;
        self.ephemeral_bytes.allocatable = 0;
        self.scalars.iter_mut().for_each(|(_, share)| share.allocatable = 0);
        for (resource, amount) in node.extended.iter() {
            if *resource == "ephemeral-storage" {
                self.ephemeral_bytes.allocatable = *amount;
            } else {
                self.scalar_mut(resource).allocatable = *amount;
            }
        }
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

    /// The share of a named resource.
    pub fn scalar(&self, resource: &Name) -> Share {
        self.scalars.iter().find(|(name, _)| name == resource).map(|(_, share)| *share).unwrap_or_default()
    }

    fn scalar_mut(&mut self, resource: &Name) -> &mut Share {
        let place = self.scalars.iter().position(|(name, _)| name == resource).unwrap_or_else(|| {
            self.scalars.push((resource.clone(), Share::default()));
            self.scalars.len() - 1
        });
        &mut self.scalars[place].1
    }

    pub fn add(&mut self, pod: &Pod) {
        self.count(&pod.scheduling, 1);
        let spec = &pod.scheduling;
        if !spec.host_ports.is_empty() {
            Arc::make_mut(&mut self.ports).extend(spec.host_ports.iter().cloned());
        }
        if disks(spec).next().is_some() {
            Arc::make_mut(&mut self.disks).extend(disks(spec).cloned());
        }
        if claims_volumes(spec) {
            Arc::make_mut(&mut self.claims).extend(claims_of(pod));
        }
    }

    pub fn remove(&mut self, pod: &Pod) {
        self.count(&pod.scheduling, -1);
        for port in &pod.scheduling.host_ports {
            drop_one(Arc::make_mut(&mut self.ports), port);
        }
        for disk in disks(&pod.scheduling) {
            drop_one(Arc::make_mut(&mut self.disks), disk);
        }
        for claim in claims_of(pod) {
            drop_one(Arc::make_mut(&mut self.claims), &claim);
        }
    }

    fn count(&mut self, spec: &SchedulingSpec, sign: i64) {
        let requests = &spec.requests;
        let add = |sum: &mut i64, amount: i64| *sum = sum.saturating_add(amount.saturating_mul(sign));
        add(&mut self.pods.requested, 1);
        add(&mut self.cpu_milli.requested, requests.cpu_milli);
        add(&mut self.memory_bytes.requested, requests.memory_bytes);
        add(&mut self.ephemeral_bytes.requested, requests.ephemeral_bytes);
        add(&mut self.assumed_cpu_milli, requests.assumed_cpu_milli);
        add(&mut self.assumed_memory_bytes, requests.assumed_memory_bytes);
        for (resource, amount) in &requests.scalars {
            add(&mut self.scalar_mut(resource).requested, *amount);
        }
    }
}

/// The disks that a spec uses without a claim.
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
