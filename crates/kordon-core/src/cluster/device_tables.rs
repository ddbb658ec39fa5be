//! The tables of devices, and which pods need them.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    Cluster, Node, Pod,
    device::{DeviceClass, DeviceTaintRule, ResourceClaim, ResourceClaimTemplate, ResourceSlice},
    knowledge::FeedKind,
    names::{Key, Name, Namespace},
    scope::ScopeRead,
    table::{ObjectEvent, Table},
    uid::Uid,
};

/// The objects of the [kinds of devices](FeedKind::DEVICES), and the templates of claims.
#[derive(Clone, Debug, Default)]
pub struct DeviceTables {
    pub classes: Table<DeviceClass>,
    pub claims: Table<ResourceClaim>,
    pub slices: Table<ResourceSlice>,
    pub rules: Table<DeviceTaintRule>,
    pub templates: Table<ResourceClaimTemplate>,
}

/// A change of a device object, as its watch reported it.
#[derive(Clone, Debug)]
pub enum DeviceChange {
    Class(ObjectEvent<DeviceClass>),
    Claim(ObjectEvent<ResourceClaim>),
    Slice(ObjectEvent<ResourceSlice>),
    Rule(ObjectEvent<DeviceTaintRule>),
    Template(ObjectEvent<ResourceClaimTemplate>),
}

impl DeviceTables {
    /// Returns the ResourceSlices of each pool of devices, by driver and name of the pool. Contains only slices of the
    /// pool's newest generation, because older slices do not count.
    pub fn pools(&self) -> BTreeMap<(&Name, &Name), Vec<&Arc<ResourceSlice>>> {
        let mut pools: BTreeMap<(&Name, &Name), Vec<&Arc<ResourceSlice>>> = BTreeMap::new();
        for slice in self.slices.iter() {
            let slices = pools.entry((&slice.driver, &slice.pool)).or_default();
            if slices.first().is_some_and(|other| other.generation < slice.generation) {
                slices.clear();
            }
            if slices.first().is_none_or(|other| other.generation == slice.generation) {
                slices.push(slice);
            }
        }
        pools
    }

    /// Applies a change, and calls `on_change` for each object that it changed.
    pub(super) fn apply(&mut self, change: DeviceChange, mut on_change: impl FnMut()) {
        match change {
            DeviceChange::Class(event) => self.classes.apply(event, |_| on_change()),
            DeviceChange::Claim(event) => self.claims.apply(event, |_| on_change()),
            DeviceChange::Slice(event) => self.slices.apply(event, |_| on_change()),
            DeviceChange::Rule(event) => self.rules.apply(event, |_| on_change()),
            DeviceChange::Template(event) => self.templates.apply(event, |_| on_change()),
        }
    }

    /// Number of objects of a kind; `None` for a kind without a table here.
    pub(super) fn count(&self, kind: FeedKind) -> Option<usize> {
        Some(match kind {
            FeedKind::DeviceClasses => self.classes.len(),
            FeedKind::ResourceClaims => self.claims.len(),
            FeedKind::ResourceSlices => self.slices.len(),
            FeedKind::DeviceTaintRules => self.rules.len(),
            FeedKind::ClaimTemplates => self.templates.len(),
            _ => return None,
        })
    }

    /// Whether a kind has been listed; `None` for a kind without a table here.
    pub(super) fn is_listed(&self, kind: FeedKind) -> Option<bool> {
        Some(match kind {
            FeedKind::DeviceClasses => self.classes.is_synced(),
            FeedKind::ResourceClaims => self.claims.is_synced(),
            FeedKind::ResourceSlices => self.slices.is_synced(),
            FeedKind::DeviceTaintRules => self.rules.is_synced(),
            FeedKind::ClaimTemplates => self.templates.is_synced(),
            _ => return None,
        })
    }

    /// Returns a deletion for each known object that a read of its whole kind did not find.
    pub(super) fn gone_since(&self, kind: FeedKind, read: &ScopeRead) -> Vec<DeviceChange> {
        let named = |name: &Name| Key::new("", name);
        match kind {
            FeedKind::DeviceClasses => {
                let gone = read.gone(&self.classes, |_| true, |class| named(&class.name));
                gone.map(|key| DeviceChange::Class(ObjectEvent::Deleted(key))).collect()
            }
            FeedKind::ResourceClaims => {
                let gone = read.gone(&self.claims, |_| true, |claim| claim.key.clone());
                gone.map(|key| DeviceChange::Claim(ObjectEvent::Deleted(key))).collect()
            }
            FeedKind::ResourceSlices => {
                let gone = read.gone(&self.slices, |_| true, |slice| named(&slice.name));
                gone.map(|key| DeviceChange::Slice(ObjectEvent::Deleted(key))).collect()
            }
            FeedKind::DeviceTaintRules => {
                let gone = read.gone(&self.rules, |_| true, |rule| named(&rule.name));
                gone.map(|key| DeviceChange::Rule(ObjectEvent::Deleted(key))).collect()
            }
            FeedKind::ClaimTemplates => {
                let gone = read.gone(&self.templates, |_| true, |template| template.key.clone());
                gone.map(|key| DeviceChange::Template(ObjectEvent::Deleted(key))).collect()
            }
            FeedKind::Nodes
            | FeedKind::Leases
            | FeedKind::Pods
            | FeedKind::Budgets
            | FeedKind::Workloads(_)
            | FeedKind::PriorityClasses
            | FeedKind::Namespaces
            | FeedKind::Services
            | FeedKind::Claims
            | FeedKind::Volumes
            | FeedKind::StorageClasses
            | FeedKind::CsiNodes
            | FeedKind::Quotas
            | FeedKind::Leader
            | FeedKind::CronJobs
            | FeedKind::StorageCapacities
            | FeedKind::CsiDrivers => Vec::new(),
        }
    }
}

/// Numbers of pods that request something that devices may provide. Templates of workloads count like pods, because a
/// new pod may request what no pod requests yet.
#[derive(Clone, Debug, Default)]
pub(super) struct DeviceDemand {
    /// Number of pods with `spec.resourceClaims`.
    claiming: usize,
    /// Number of pods that get claims from templates.
    templated: usize,
    /// Number of pods that request each extended resource.
    extended: BTreeMap<Name, usize>,
}

impl DeviceDemand {
    /// Updates the numbers after a pod, or the template of a workload, changed.
    pub(super) fn follow(&mut self, old: Option<&Pod>, new: Option<&Pod>) {
        if let Some(pod) = old {
            self.claiming -= usize::from(pod.scheduling.claims_devices);
            self.templated -= usize::from(pod.gets_claims_from_templates());
            for resource in extended_resources(pod) {
                if let Some(pods) = self.extended.get_mut(resource) {
                    *pods -= 1;
                }
            }
        }
        if let Some(pod) = new {
            self.claiming += usize::from(pod.scheduling.claims_devices);
            self.templated += usize::from(pod.gets_claims_from_templates());
            for resource in extended_resources(pod) {
                *self.extended.entry(resource.clone()).or_default() += 1;
            }
        }
        if old.is_some() {
            self.extended.retain(|_, pods| *pods > 0);
        }
    }

    /// Whether some pod gets claims from templates.
    pub(super) const fn needs_templates(&self) -> bool {
        self.templated > 0
    }

    /// Whether some pod may need devices: it has a resource claim, or it requests an extended resource that some node
    /// does not have. On such a node, devices may provide the resource (upstream `noderesources/fit.go`).
    pub(super) fn needs_devices(&self, nodes: &Table<Node>) -> bool {
        let is_missing = |resource: &Name| !nodes.iter().all(|node| node.has_extended(resource));
        self.claiming > 0 || self.extended.keys().any(is_missing)
    }
}

/// The pods that claim devices, by namespace and uid, because claims refer to their pods by uid. The pods of a
/// namespace are collected when the first of them is looked up.
#[derive(Default)]
pub struct Claimants(BTreeMap<Namespace, BTreeMap<Uid, Arc<Pod>>>);

impl Claimants {
    /// Returns the pod with this uid, if it claims devices.
    pub fn pod(&mut self, cluster: &Cluster, namespace: &Namespace, uid: &Uid) -> Option<&Arc<Pod>> {
        let pods = self.0.entry(namespace.clone()).or_insert_with(|| {
            let pods = cluster.pods_in(namespace).filter(|pod| pod.scheduling.claims_devices);
            pods.map(|pod| (pod.uid.clone(), pod.clone())).collect()
        });
        pods.get(uid)
    }
}

/// Returns the extended resources of which a pod requests more than zero. Huge pages are not extended resources.
pub fn extended_resources(pod: &Pod) -> impl Iterator<Item = &Name> {
    let requests = pod.resources.requests.scalars.iter();
    requests.filter(|(name, amount)| *amount > 0 && is_extended(name)).map(|(name, _)| name)
}

/// Whether this is the name of an extended resource (upstream `IsDRAExtendedResourceName`).
pub fn is_extended(resource: &str) -> bool {
    let is_native =
        !resource.contains('/') || resource.contains("kubernetes.io/") && !resource.starts_with(CLASS_PREFIX);
    !is_native && !resource.starts_with("requests.")
}

/// Prefix of the resource name that each DeviceClass provides implicitly. The name of the class follows.
pub const CLASS_PREFIX: &str = "deviceclass.resource.kubernetes.io/";
