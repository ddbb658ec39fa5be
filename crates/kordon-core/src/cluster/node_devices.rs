//! Extended resources of nodes, and the devices that drivers publish for nodes.

use std::collections::BTreeMap;

use super::{
    Cluster,
    device::{Device, DeviceId, DeviceNodes, ResourceSlice},
    device_tables::is_extended,
    knowledge::FeedKind,
    names::{Name, NodeName},
    node::Node,
};

/// An extended resource of a node, such as `nvidia.com/gpu`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtendedResource {
    pub name: Name,
    /// Amount of the resource in `status.allocatable`; zero while the resource's device plugin is gone.
    pub allocatable: i64,
    /// Amount that the unfinished pods on the node request, as far as pods are known.
    pub requested: i64,
}

/// The devices that a driver publishes for one node alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeDevices {
    pub driver: Name,
    /// Number of devices in the driver's ResourceSlices.
    pub published: usize,
    /// Whether slices of a pool are missing, so that the driver may have more devices on the node than are known.
    pub is_partial: bool,
    /// Number of devices that are allocated to claims; `None` if claims are unknown.
    pub allocated: Option<AllocatedCount>,
}

/// Numbers of devices that are allocated to claims.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AllocatedCount {
    /// Devices that a claim has for itself.
    pub alone: usize,
    /// Other allocated devices: a claim has only a share of the device, or uses it beside other claims (`adminAccess`).
    pub shared: usize,
}

impl Node {
    /// Whether the node has extended resources. Huge pages do not count.
    pub fn has_extended_resources(&self) -> bool {
        self.extended.iter().any(|(name, _)| is_extended(name))
    }
}

impl Cluster {
    /// The extended resources of a node, by name.
    pub fn extended_resources(&self, node: &Node) -> Vec<ExtendedResource> {
        let of_node = node.extended.iter().filter(|(name, _)| is_extended(name));
        let mut resources: Vec<ExtendedResource> = of_node
            .map(|(name, amount)| ExtendedResource { name: name.clone(), allocatable: *amount, requested: 0 })
            .collect();
        if resources.is_empty() {
            return resources;
        }
        for pod in self.pods_on(&node.name).filter(|pod| !pod.is_finished()) {
            for (name, amount) in &pod.resources.requests.scalars {
                if let Some(resource) = resources.iter_mut().find(|resource| resource.name == *name) {
                    resource.requested = resource.requested.saturating_add(*amount);
                }
            }
        }
        resources.sort_by(|one, other| one.name.cmp(&other.name));
        resources
    }

    /// The devices of each node that only this node can use, by driver; none if ResourceSlices are unknown.
    pub fn node_devices(&self) -> Option<BTreeMap<NodeName, Vec<NodeDevices>>> {
        if !self.known(FeedKind::ResourceSlices).is_known() {
            return None;
        }
        let mut drivers: BTreeMap<(&NodeName, &Name), NodeDevices> = BTreeMap::new();
        let mut places: BTreeMap<DeviceId, &NodeName> = BTreeMap::new();
        let knows_claims = self.known(FeedKind::ResourceClaims).is_known();
        for ((driver, _), slices) in self.devices().pools() {
            let is_partial =
                slices.iter().any(|slice| usize::try_from(slice.slices_in_pool) != Ok(slices.len()));
            for (slice, device) in
                slices.iter().flat_map(|slice| slice.devices.iter().map(move |it| (slice, it)))
            {
                let Some(node) = only_node(slice, device) else { continue };
                let devices = drivers.entry((node, driver)).or_insert_with(|| NodeDevices {
                    driver: driver.clone(),
                    published: 0,
                    is_partial: false,
                    allocated: knows_claims.then(AllocatedCount::default),
                });
                devices.published += 1;
                devices.is_partial |= is_partial;
                places.insert(slice.id(device), node);
            }
        }
        self.count_allocated(&places, &mut drivers);
        let mut nodes: BTreeMap<NodeName, Vec<NodeDevices>> = BTreeMap::new();
        for ((node, _), devices) in drivers {
            nodes.entry(node.clone()).or_default().push(devices);
        }
        Some(nodes)
    }

    /// Counts the allocated devices. A device that several claims have counts once.
    fn count_allocated<'a>(
        &'a self,
        places: &BTreeMap<DeviceId, &'a NodeName>,
        drivers: &mut BTreeMap<(&'a NodeName, &'a Name), NodeDevices>,
    ) {
        let mut is_shared: BTreeMap<&DeviceId, bool> = BTreeMap::new();
        let allocations = self.devices().claims.iter().filter_map(|claim| claim.allocation.as_ref());
        for device in allocations.flat_map(|allocation| &allocation.devices) {
            *is_shared.entry(&device.id).or_insert(true) &= device.leaves_free;
        }
        for (id, is_shared) in is_shared {
            let Some(node) = places.get(id) else { continue };
            let allocated =
                drivers.get_mut(&(*node, &id.driver)).and_then(|devices| devices.allocated.as_mut());
            if let Some(allocated) = allocated {
                allocated.alone += usize::from(!is_shared);
                allocated.shared += usize::from(is_shared);
            }
        }
    }
}

/// Returns the node that alone can use a device; none for devices that several nodes can use.
fn only_node<'a>(slice: &'a ResourceSlice, device: &'a Device) -> Option<&'a NodeName> {
    let nodes = match &slice.nodes {
        DeviceNodes::PerDevice => &device.nodes,
        nodes => nodes,
    };
    match nodes {
        DeviceNodes::Node(node) => Some(node),
        DeviceNodes::Matching(_) | DeviceNodes::All | DeviceNodes::PerDevice | DeviceNodes::None => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::cluster::{
        Change, DeviceChange, Key, ObjectEvent, Phase, Pod, Requests, ResourceClaim, Version,
        device::{AllocatedDevice, DeviceAllocation},
    };

    fn apply(cluster: &mut Cluster, changes: impl IntoIterator<Item = Change>) {
        changes.into_iter().for_each(|change| cluster.apply(change, &mut Vec::new()));
    }

    fn pod(name: &str, phase: Phase, scalars: &[(&str, i64)]) -> Change {
        let scalars = scalars.iter().map(|(name, amount)| (Name::from(*name), *amount)).collect();
        let requests = Requests { scalars, ..Requests::default() };
        Change::Pod(ObjectEvent::Applied(Pod {
            key: Key::new("ml", name),
            node: Some("n1".into()),
            phase,
            resources: Arc::new(requests.into()),
            ..Pod::default()
        }))
    }

    #[test]
    fn requests_of_unfinished_pods_count_and_huge_pages_are_no_extended_resource() {
        let extended: &[(&str, i64)] =
            &[("ephemeral-storage", 9), ("hugepages-2Mi", 4), ("nvidia.com/gpu", 8), ("example.com/nic", 0)];
        let extended = extended.iter().map(|(name, amount)| (Name::from(*name), *amount)).collect();
        let node = Node { name: "n1".into(), extended, ..Node::default() };
        let mut cluster = Cluster::default();
        apply(
            &mut cluster,
            [
                pod("a", Phase::Running, &[("nvidia.com/gpu", 2), ("hugepages-2Mi", 1)]),
                pod("b", Phase::Pending, &[("nvidia.com/gpu", 1), ("example.com/nic", 1)]),
                pod("done", Phase::Succeeded, &[("nvidia.com/gpu", 4)]),
            ],
        );
        let resource = |name: &str, allocatable, requested| ExtendedResource {
            name: name.into(),
            allocatable,
            requested,
        };
        let expected = [resource("example.com/nic", 0, 1), resource("nvidia.com/gpu", 8, 3)];
        assert_eq!(cluster.extended_resources(&node), expected);
        assert!(node.has_extended_resources());
        assert!(!Node::default().has_extended_resources());
    }

    fn slice(
        name: &str,
        nodes: DeviceNodes,
        devices: &[&str],
        slices_in_pool: i64,
        generation: i64,
    ) -> Change {
        let device = |name: &&str| Device { name: Name::from(*name), ..Device::default() };
        let slice = ResourceSlice {
            name: name.into(),
            version: Version(1),
            driver: "gpu.example.com".into(),
            pool: name.split('.').next().expect("a pool").into(),
            generation,
            slices_in_pool,
            nodes,
            devices: devices.iter().map(device).collect(),
            ..ResourceSlice::default()
        };
        Change::Device(DeviceChange::Slice(ObjectEvent::Listed(slice)))
    }

    fn claim(name: &str, devices: &[(&str, bool)]) -> Change {
        let device = |(name, leaves_free): &(&str, bool)| AllocatedDevice {
            id: DeviceId { driver: "gpu.example.com".into(), pool: "n1".into(), device: Name::from(*name) },
            leaves_free: *leaves_free,
            ..AllocatedDevice::default()
        };
        let devices = devices.iter().map(device).collect();
        let allocation = Some(DeviceAllocation { devices, nodes: None });
        let claim = ResourceClaim {
            key: Key::new("ml", name),
            version: Version(1),
            allocation,
            ..ResourceClaim::default()
        };
        Change::Device(DeviceChange::Claim(ObjectEvent::Listed(claim)))
    }

    #[test]
    fn devices_count_for_the_node_that_alone_has_them_and_what_is_unknown_stays_unknown() {
        let node = |name: &str| DeviceNodes::Node(name.into());
        let mut cluster = Cluster::default();
        assert_eq!(cluster.node_devices(), None, "slices are not listed");
        let slice_event = |event| Change::Device(DeviceChange::Slice(event));
        let claim_event = |event| Change::Device(DeviceChange::Claim(event));
        apply(
            &mut cluster,
            [
                slice_event(ObjectEvent::ListStarted),
                slice("n1.old", node("n1"), &["g0", "g9"], 1, 1),
                slice("n1.new", node("n1"), &["g0", "g1", "g2", "g3"], 1, 2),
                slice("n2.first", node("n2"), &["g0"], 2, 1),
                slice("fabric.all", DeviceNodes::All, &["f0"], 1, 1),
                slice_event(ObjectEvent::ListDone),
            ],
        );
        let devices = |published, is_partial, allocated| NodeDevices {
            driver: "gpu.example.com".into(),
            published,
            is_partial,
            allocated,
        };
        let of = |cluster: &Cluster, name: &str| {
            let nodes = cluster.node_devices().expect("slices are known");
            assert_eq!(nodes.len(), 2, "devices of all nodes are of none");
            nodes[&NodeName::from(name)].clone()
        };
        assert_eq!(of(&cluster, "n1"), [devices(4, false, None)], "claims are not listed");
        apply(
            &mut cluster,
            [
                claim_event(ObjectEvent::ListStarted),
                claim("train", &[("g0", false), ("g1", true)]),
                claim("watch", &[("g0", true), ("g2", true)]),
                claim("share", &[("g2", true)]),
                claim_event(ObjectEvent::ListDone),
            ],
        );
        let some = AllocatedCount { alone: 1, shared: 2 };
        assert_eq!(of(&cluster, "n1"), [devices(4, false, Some(some))]);
        assert_eq!(of(&cluster, "n2"), [devices(1, true, Some(AllocatedCount::default()))]);
    }
}
