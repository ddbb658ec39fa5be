//! Claims, volumes, storage classes, and the volume limits of nodes.

use serde::{Deserialize, de::IgnoredAny};

use super::{
    Decoder, WatchEvent,
    affinity::WireNodeSelector,
    has_metadata,
    leaf::{Amounts, Flag, Int, LenientBool, LenientList, Quantity, Text, or_default},
    meta::Meta,
    pool::SharedParts,
    protobuf::{message, wire},
    selector::WireSelector,
};
use kordon_core::cluster::{
    AccessModes, Change, Claim, CsiDriver, CsiNode, Key, Name, Namespace, NodeName, StorageCapacity,
    StorageClass, Uid, Volume, VolumeProperties,
    scheduling::{NodeOperator, NodeRequirement, NodeTerm},
};

/// Reads PersistentVolumeClaims.
#[derive(Debug, Default)]
pub struct ClaimDecoder(SharedParts);

/// Reads PersistentVolumes.
#[derive(Debug, Default)]
pub struct VolumeDecoder(SharedParts);

/// Reads StorageClasses.
#[derive(Debug, Default)]
pub struct StorageClassDecoder(SharedParts);

/// Reads CSINodes.
#[derive(Debug, Default)]
pub struct CsiNodeDecoder(SharedParts);

/// Reads CSIDrivers.
#[derive(Debug, Default)]
pub struct CsiDriverDecoder(SharedParts);

/// Reads CSIStorageCapacities.
#[derive(Debug, Default)]
pub struct StorageCapacityDecoder(SharedParts);

impl Decoder for ClaimDecoder {
    type Wire<'a> = WireClaim<'a>;

    fn change(&mut self, event: WatchEvent<WireClaim<'_>>) -> Option<Change> {
        Some(Change::Claim(event.map(|wire| claim(&wire, &mut self.0))))
    }

    fn tidy(&mut self) {
        self.0.tidy();
    }
}

impl Decoder for VolumeDecoder {
    type Wire<'a> = WirePersistentVolume<'a>;

    fn change(&mut self, event: WatchEvent<WirePersistentVolume<'_>>) -> Option<Change> {
        Some(Change::Volume(event.map(|wire| volume(&wire, &mut self.0))))
    }

    fn tidy(&mut self) {
        self.0.tidy();
    }
}

impl Decoder for StorageClassDecoder {
    type Wire<'a> = WireStorageClass<'a>;

    fn change(&mut self, event: WatchEvent<WireStorageClass<'_>>) -> Option<Change> {
        let pool = &mut self.0;
        Some(Change::StorageClass(event.map(|wire| StorageClass {
            name: pool.name(&wire.metadata.name),
            version: wire.metadata.version(),
            provisioner: pool.name(&wire.provisioner),
            waits_for_consumer: *wire.volume_binding_mode == *"WaitForFirstConsumer",
            topologies: wire.allowed_topologies.iter().map(|topology| topology.term(pool)).collect(),
        })))
    }

    fn tidy(&mut self) {
        self.0.tidy();
    }
}

impl Decoder for CsiNodeDecoder {
    type Wire<'a> = WireCsiNode<'a>;

    fn change(&mut self, event: WatchEvent<WireCsiNode<'_>>) -> Option<Change> {
        let pool = &mut self.0;
        Some(Change::CsiNode(event.map(|wire| {
            let limited = wire.spec.drivers.iter().filter_map(|driver| {
                let limit = driver.allocatable.as_ref()?.count.0?;
                Some((pool.name(&driver.name), limit))
            });
            let limits = limited.collect();
            let drivers = wire.spec.drivers.iter().map(|driver| pool.name(&driver.name)).collect();
            CsiNode { name: wire.metadata.node_name(pool), version: wire.metadata.version(), limits, drivers }
        })))
    }

    fn tidy(&mut self) {
        self.0.tidy();
    }
}

impl Decoder for CsiDriverDecoder {
    type Wire<'a> = WireCsiDriver<'a>;

    fn change(&mut self, event: WatchEvent<WireCsiDriver<'_>>) -> Option<Change> {
        Some(Change::CsiDriver(event.map(|wire| CsiDriver {
            name: self.0.name(&wire.metadata.name),
            version: wire.metadata.version(),
            attaches: wire.spec.attach_required.0 != Some(false),
            must_be_on_node: wire.spec.prevent_pod_scheduling_if_missing.0,
            publishes_capacity: wire.spec.storage_capacity.0,
        })))
    }

    fn tidy(&mut self) {
        self.0.tidy();
    }
}

impl Decoder for StorageCapacityDecoder {
    type Wire<'a> = WireStorageCapacity<'a>;

    fn change(&mut self, event: WatchEvent<WireStorageCapacity<'_>>) -> Option<Change> {
        let pool = &mut self.0;
        Some(Change::StorageCapacity(event.map(|wire| {
            let sizes = [&wire.maximum_volume_size, &wire.capacity];
            StorageCapacity {
                key: wire.metadata.key(pool),
                version: wire.metadata.version(),
                class: pool.name(&wire.storage_class_name),
                nodes: wire.node_topology.as_ref().map(|selector| selector.selector(pool)),
                largest_bytes: sizes.into_iter().find(|size| !size.text().is_empty()).map(Quantity::units),
            }
        })))
    }

    fn tidy(&mut self) {
        self.0.tidy();
    }
}

fn claim(wire: &WireClaim<'_>, pool: &mut SharedParts) -> Claim {
    let WireClaim { metadata, spec, status } = wire;
    let marks = &metadata.annotations;
    Claim {
        key: metadata.key(pool),
        uid: metadata.uid(),
        version: metadata.version(),
        volume: pool.name(&spec.volume_name),
        is_bound: marks.bound,
        is_lost: *status.phase == *"Lost",
        is_terminating: metadata.deletion_timestamp.is_present(),
        // The annotation for the storage class is older than the field, and takes precedence.
        class: marks.storage_class.clone().unwrap_or_else(|| pool.name(&spec.storage_class_name)),
        selected_node: marks.selected_node.clone().map(NodeName),
        owner: metadata.owner(pool),
        selector: spec.selector.as_ref().map(|selector| selector.selector(pool)),
        requested: VolumeProperties {
            bytes: spec.resources.requests.amount("storage").map_or(0, |amount| amount.units()),
            modes: AccessModes::parse(spec.access_modes.iter().map(|mode| &**mode)),
            is_block: *spec.volume_mode == *"Block",
        },
    }
}

fn volume(wire: &WirePersistentVolume<'_>, pool: &mut SharedParts) -> Volume {
    let WirePersistentVolume { metadata, spec, status } = wire;
    let class = metadata.annotations.storage_class.clone();
    let reach = spec.node_affinity.required.as_ref();
    let claim = spec.claim_ref.as_ref().map(|claim| {
        let key = Key { namespace: Namespace(pool.name(&claim.namespace)), name: pool.name(&claim.name) };
        (key, Uid::from(&*claim.uid))
    });
    Volume {
        name: pool.name(&metadata.name),
        version: metadata.version(),
        labels: pool.labels(&metadata.labels),
        class: class.unwrap_or_else(|| pool.name(&spec.storage_class_name)),
        node_affinity: reach.map(|selector| selector.terms(pool)),
        properties: VolumeProperties {
            bytes: spec.capacity.amount("storage").map_or(0, |amount| amount.units()),
            modes: AccessModes::parse(spec.access_modes.iter().map(|mode| &**mode)),
            is_block: *spec.volume_mode == *"Block",
        },
        claim,
        is_available: *status.phase == *"Available",
        is_terminating: metadata.deletion_timestamp.is_present(),
        needs_no_attachment: spec.needs_no_attachment(),
        handle: spec.csi.as_ref().map(|csi| (pool.name(&csi.driver), Name::from(&*csi.volume_handle))),
    }
}

wire! {
    /// A PersistentVolumeClaim on the wire.
    pub struct WireClaim<'a> {
        #[serde(deserialize_with = "or_default")]
        metadata: Meta<'a> = 1,
        #[serde(deserialize_with = "or_default")]
        spec: ClaimSpec<'a> = 2,
        #[serde(deserialize_with = "or_default")]
        status: Status<'a> = 3,
    }
}

has_metadata!(WireClaim);

wire! {
    struct ClaimSpec<'a> {
        volume_name: Text<'a> = 3,
        storage_class_name: Text<'a> = 5,
        access_modes: LenientList<Text<'a>> = 1,
        volume_mode: Text<'a> = 6,
        selector: Option<WireSelector<'a>> = 4,
        #[serde(deserialize_with = "or_default")]
        resources: WireResources<'a> = 2,
    }
}

wire! {
    struct WireResources<'a> {
        requests: Amounts<'a> = 2,
    }
}

wire! {
    struct Status<'a> {
        phase: Text<'a> = 1,
    }
}

wire! {
    /// A PersistentVolume on the wire.
    pub struct WirePersistentVolume<'a> {
        #[serde(deserialize_with = "or_default")]
        metadata: Meta<'a> = 1,
        #[serde(deserialize_with = "or_default")]
        spec: VolumeSpec<'a> = 2,
        #[serde(deserialize_with = "or_default")]
        status: Status<'a> = 3,
    }
}

has_metadata!(WirePersistentVolume);

wire! {
    struct VolumeSpec<'a> {
        storage_class_name: Text<'a> = 6,
        capacity: Amounts<'a> = 1,
        access_modes: LenientList<Text<'a>> = 3,
        volume_mode: Text<'a> = 8,
        claim_ref: Option<ClaimRef<'a>> = 4,
        #[serde(deserialize_with = "or_default")]
        node_affinity: Reach<'a> = 9,
        csi: Option<Csi<'a>>,
        host_path: Option<IgnoredAny>,
        glusterfs: Option<IgnoredAny>,
        nfs: Option<IgnoredAny>,
        cephfs: Option<IgnoredAny>,
        azure_file: Option<IgnoredAny>,
        quobyte: Option<IgnoredAny>,
        local: Option<IgnoredAny>,
        ; 2 => { 3 => host_path, 4 => glusterfs, 5 => nfs, 9 => cephfs, 13 => azure_file, 15 => quobyte, 20 => local, 22 => csi }
    }
}

impl VolumeSpec<'_> {
    /// Whether the volume is of a kind whose plugin attaches nothing (upstream `FindAttachablePluginBySpec`).
    fn needs_no_attachment(&self) -> bool {
        let Self { host_path, glusterfs, nfs, cephfs, azure_file, quobyte, local, .. } = self;
        [host_path, glusterfs, nfs, cephfs, azure_file, quobyte, local].into_iter().any(Option::is_some)
    }
}

wire! {
    struct ClaimRef<'a> {
        namespace: Text<'a> = 2,
        name: Text<'a> = 3,
        uid: Text<'a> = 4,
    }
}

wire! {
    struct Reach<'a> {
        required: Option<WireNodeSelector<'a>> = 1,
    }
}

wire! {
    struct Csi<'a> {
        driver: Text<'a> = 1,
        volume_handle: Text<'a> = 2,
    }
}

wire! {
    /// A StorageClass on the wire.
    pub struct WireStorageClass<'a> {
        #[serde(deserialize_with = "or_default")]
        metadata: Meta<'a> = 1,
        provisioner: Text<'a> = 2,
        volume_binding_mode: Text<'a> = 7,
        allowed_topologies: LenientList<WireTopology<'a>> = 8,
    }
}

has_metadata!(WireStorageClass);

wire! {
    struct WireTopology<'a> {
        match_label_expressions: LenientList<WireValues<'a>> = 1,
    }
}

impl WireTopology<'_> {
    fn term(&self, pool: &mut SharedParts) -> NodeTerm {
        let requirements = self.match_label_expressions.iter().map(|wire| NodeRequirement {
            key: pool.name(&wire.key),
            operator: NodeOperator::In(wire.values.iter().map(|value| pool.name(value)).collect()),
        });
        NodeTerm { expressions: requirements.collect(), fields: Box::default() }
    }
}

wire! {
    struct WireValues<'a> {
        key: Text<'a> = 1,
        values: LenientList<Text<'a>> = 2,
    }
}

wire! {
    /// A CSINode on the wire.
    pub struct WireCsiNode<'a> {
        #[serde(deserialize_with = "or_default")]
        metadata: Meta<'a> = 1,
        #[serde(deserialize_with = "or_default")]
        spec: Drivers<'a> = 2,
    }
}

has_metadata!(WireCsiNode);

wire! {
    struct Drivers<'a> {
        drivers: LenientList<Driver<'a>> = 1,
    }
}

wire! {
    struct Driver<'a> {
        name: Text<'a> = 1,
        allocatable: Option<Allocatable> = 4,
    }
}

wire! {
    /// A CSIDriver on the wire.
    pub struct WireCsiDriver<'a> {
        #[serde(deserialize_with = "or_default")]
        metadata: Meta<'a> = 1,
        #[serde(deserialize_with = "or_default")]
        spec: DriverSpec = 2,
    }
}

has_metadata!(WireCsiDriver);

wire! {
    /// A CSIStorageCapacity on the wire.
    pub struct WireStorageCapacity<'a> {
        #[serde(deserialize_with = "or_default")]
        metadata: Meta<'a> = 1,
        node_topology: Option<WireSelector<'a>> = 2,
        storage_class_name: Text<'a> = 3,
        capacity: Quantity<'a> = 4,
        maximum_volume_size: Quantity<'a> = 5,
    }
}

has_metadata!(WireStorageCapacity);

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct DriverSpec {
    attach_required: Flag,
    storage_capacity: LenientBool,
    prevent_pod_scheduling_if_missing: LenientBool,
}

message! { impl<'a> DriverSpec { 1 => attach_required, 4 => storage_capacity, 11 => prevent_pod_scheduling_if_missing } }

#[derive(Default, Deserialize)]
#[serde(default)]
struct Allocatable {
    count: Int,
}

message! { impl<'a> Allocatable { 1 => count } }
