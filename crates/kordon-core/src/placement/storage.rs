//! Claims, volumes, storage classes, CSINodes, CSIDrivers and CSIStorageCapacities, in the form in which placement looks
//! them up.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use crate::cluster::{
    Claim, Cluster, CsiDriver, CsiNode, Key, Labels, Name, NodeName, ObjectEvent, Pod, Requirement, Selector,
    SelectorOperator, StorageCapacity, StorageClass, Table, Uid, Volume,
    scheduling::{PodVolume, SchedulingSpec},
};

/// Tables of claims, volumes, storage classes, CSINodes, CSIDrivers and CSIStorageCapacities.
#[derive(Clone, Debug, Default)]
pub(super) struct Storage {
    claims: Table<Claim>,
    volumes: Table<Volume>,
    classes: Table<StorageClass>,
    csi_nodes: Table<CsiNode>,
    csi_drivers: Table<CsiDriver>,
    capacities: Table<StorageCapacity>,
    /// Claims that were deleted and that a StatefulSet creates again. Their volumes do not exist yet.
    recreated: BTreeSet<Key>,
}

/// Identity of a volume, as its driver knows it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Handle {
    Volume(Name),
    /// The volume that will be provisioned for this claim.
    Claim(Key),
}

/// The nodes that have room for a new volume.
#[derive(Clone, Debug)]
pub(super) enum StorageRoom {
    /// The scheduler does not compare the volume with the capacity of the storage.
    Everywhere,
    On(NodeSelectors),
    /// The objects that say it are not known.
    Unknown,
}

/// Selectors of nodes, of which one must match. Most select by one label, and there may be one for each node.
#[derive(Clone, Debug, Default)]
pub(super) struct NodeSelectors {
    /// The values that are selected by one label alone, by its key.
    by_label: BTreeMap<Name, BTreeSet<Name>>,
    others: Vec<Selector>,
}

impl NodeSelectors {
    fn new<'a>(selectors: impl Iterator<Item = &'a Selector>) -> Self {
        let mut sorted = Self::default();
        for selector in selectors {
            match &selector.requirements[..] {
                [Requirement { key, operator: SelectorOperator::In(values) }] => {
                    sorted.by_label.entry(key.clone()).or_default().extend(values.iter().cloned());
                }
                _ => sorted.others.push(selector.clone()),
            }
        }
        sorted
    }

    pub fn match_any(&self, labels: &Labels) -> bool {
        let has = |(key, values): (&Name, &BTreeSet<Name>)| {
            labels.get(key).is_some_and(|value| values.contains(value))
        };
        self.by_label.iter().any(has) || self.others.iter().any(|selector| selector.matches(labels))
    }
}

impl Storage {
    pub fn from_cluster(cluster: &Cluster) -> Self {
        Self {
            claims: cluster.claims().clone(),
            volumes: cluster.volumes().clone(),
            classes: cluster.storage_classes().clone(),
            csi_nodes: cluster.csi_nodes().clone(),
            csi_drivers: cluster.csi_drivers().clone(),
            capacities: cluster.storage_capacities().clone(),
            recreated: BTreeSet::new(),
        }
    }

    pub fn delete_claim(&mut self, key: &Key) {
        self.claims.apply(ObjectEvent::Deleted(key.clone()), |_| {});
    }

    /// Replaces a claim by a new claim that has the same spec and no volume yet.
    pub fn recreate_claim(&mut self, key: &Key) {
        let renew = |claim: &mut Claim| {
            *claim = Claim {
                uid: Uid::default(),
                volume: Name::default(),
                is_bound: false,
                is_lost: false,
                is_terminating: false,
                selected_node: None,
                ..claim.clone()
            };
        };
        self.claims.change(key, renew, |_| {});
        self.recreated.insert(key.clone());
    }

    pub fn is_recreated(&self, claim: &Key) -> bool {
        self.recreated.contains(claim)
    }

    /// Returns whether claims, volumes, storage classes and CSINodes have all been listed. Before that, an object that
    /// is not found may still exist.
    pub fn is_known(&self) -> bool {
        self.claims.is_synced()
            && self.volumes.is_synced()
            && self.classes.is_synced()
            && self.csi_nodes.is_synced()
    }

    pub fn claim(&self, key: &Key) -> Option<&Arc<Claim>> {
        self.claims.get(key)
    }

    pub fn volume(&self, name: &Name) -> Option<&Arc<Volume>> {
        self.volumes.get(name)
    }

    pub fn class(&self, name: &Name) -> Option<&Arc<StorageClass>> {
        self.classes.get(name)
    }

    pub fn volumes_of<'a>(&'a self, class: &'a Name) -> impl Iterator<Item = &'a Arc<Volume>> {
        self.volumes.iter().filter(move |volume| volume.class == *class)
    }

    /// Returns how many volumes of each CSI driver the node can attach.
    pub fn limits(&self, node: &NodeName) -> &[(Name, i64)] {
        self.csi_nodes.get(node).map_or(&[], |node| &node.limits)
    }

    /// Returns whether pods with volumes of this CSI driver only run on nodes that have the driver.
    pub fn must_be_on_node(&self, driver: &Name) -> bool {
        self.csi_drivers.get(driver).is_some_and(|driver| driver.must_be_on_node)
    }

    /// Returns which nodes have room for a new volume of this class and size (upstream `hasEnoughCapacity`).
    pub fn room_for(&self, class: &StorageClass, bytes: i64) -> StorageRoom {
        let driver = self.csi_drivers.get(&class.provisioner);
        match driver {
            None if !self.csi_drivers.is_synced() => StorageRoom::Unknown,
            Some(driver) if driver.publishes_capacity && !self.capacities.is_synced() => StorageRoom::Unknown,
            Some(driver) if driver.publishes_capacity && bytes > 0 => {
                let has_room = |capacity: &&Arc<StorageCapacity>| {
                    capacity.class == class.name && capacity.largest_bytes.is_some_and(|most| most >= bytes)
                };
                let enough = self.capacities.iter().filter(has_room);
                StorageRoom::On(NodeSelectors::new(enough.filter_map(|capacity| capacity.nodes.as_ref())))
            }
            Some(_) | None => StorageRoom::Everywhere,
        }
    }

    /// Returns whether the node has this CSI driver.
    pub fn has_driver(&self, node: &NodeName, driver: &Name) -> bool {
        self.csi_nodes.get(node).is_some_and(|node| node.drivers.contains(driver))
    }

    /// Returns the driver and the identity of a claim's volume; `None` if no driver attaches the volume.
    pub fn handle(&self, claim: &Key) -> Option<(Name, Handle)> {
        let found = self.claim(claim)?;
        if let Some(volume) = self.volume(&found.volume) {
            let (driver, handle) = volume.handle.clone()?;
            return Some((driver, Handle::Volume(handle)));
        }
        let class = self.class(&found.class).filter(|class| class.provisions())?;
        Some((class.provisioner.clone(), Handle::Claim(claim.clone())))
    }
}

/// Returns whether a pod spec uses at least one claim.
pub(super) fn claims_volumes(spec: &SchedulingSpec) -> bool {
    spec.volumes.iter().any(|volume| !matches!(volume, PodVolume::Disk(_)))
}

/// Returns the claims that a pod uses.
pub(super) fn claims_of(pod: &Pod) -> impl Iterator<Item = Key> {
    let key = |name: Name| Key { namespace: pod.key.namespace.clone(), name };
    pod.scheduling.volumes.iter().filter_map(move |volume| match volume {
        PodVolume::Claim(name) => Some(key(name.clone())),
        PodVolume::OwnClaim { volume, .. } => Some(key(own_claim(&pod.key.name, volume))),
        PodVolume::Disk(_) => None,
    })
}

/// Returns the name of the claim that is created for an ephemeral volume of a pod.
pub(super) fn own_claim(pod: &str, volume: &str) -> Name {
    format!("{pod}-{volume}").into()
}
