//! Claims, volumes, storage classes, and the volume limits of nodes.

use serde::Deserialize;

use super::{
    Decoder, WatchEvent, Wire,
    affinity::WireNodeSelector,
    leaf::{Amounts, Int, LenientList, Text, or_default},
    meta::Meta,
    pool::SharedParts,
    protobuf::message,
    workload::WireSelector,
};
use kordon_core::cluster::{
    AccessModes, Change, Claim, CsiNode, Key, Name, Namespace, NodeName, StorageClass, Uid, Volume,
    VolumeProperties,
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
            CsiNode { name: wire.metadata.node_name(pool), version: wire.metadata.version(), limits }
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
        // The annotation is older than the field and takes precedence.
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
        handle: spec.csi.as_ref().map(|csi| (pool.name(&csi.driver), Name::from(&*csi.volume_handle))),
    }
}

/// A PersistentVolumeClaim on the wire.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct WireClaim<'a> {
    #[serde(borrow, deserialize_with = "or_default")]
    metadata: Meta<'a>,
    #[serde(borrow, deserialize_with = "or_default")]
    spec: ClaimSpec<'a>,
    #[serde(borrow, deserialize_with = "or_default")]
    status: Status<'a>,
}

message! { impl<'a> WireClaim<'a> { 1 => metadata, 2 => spec, 3 => status } }

impl Wire for WireClaim<'_> {
    fn meta(&self) -> &Meta<'_> {
        &self.metadata
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ClaimSpec<'a> {
    #[serde(borrow)]
    volume_name: Text<'a>,
    #[serde(borrow)]
    storage_class_name: Text<'a>,
    #[serde(borrow)]
    access_modes: LenientList<Text<'a>>,
    #[serde(borrow)]
    volume_mode: Text<'a>,
    #[serde(borrow)]
    selector: Option<WireSelector<'a>>,
    #[serde(borrow, deserialize_with = "or_default")]
    resources: WireResources<'a>,
}

message! {
    impl<'a> ClaimSpec<'a> {
        1 => access_modes, 2 => resources, 3 => volume_name, 4 => selector, 5 => storage_class_name, 6 => volume_mode,
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireResources<'a> {
    #[serde(borrow)]
    requests: Amounts<'a>,
}

message! { impl<'a> WireResources<'a> { 2 => requests } }

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status<'a> {
    #[serde(borrow)]
    phase: Text<'a>,
}

message! { impl<'a> Status<'a> { 1 => phase } }

/// A PersistentVolume on the wire.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct WirePersistentVolume<'a> {
    #[serde(borrow, deserialize_with = "or_default")]
    metadata: Meta<'a>,
    #[serde(borrow, deserialize_with = "or_default")]
    spec: VolumeSpec<'a>,
    #[serde(borrow, deserialize_with = "or_default")]
    status: Status<'a>,
}

message! { impl<'a> WirePersistentVolume<'a> { 1 => metadata, 2 => spec, 3 => status } }

impl Wire for WirePersistentVolume<'_> {
    fn meta(&self) -> &Meta<'_> {
        &self.metadata
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct VolumeSpec<'a> {
    #[serde(borrow)]
    storage_class_name: Text<'a>,
    #[serde(borrow)]
    capacity: Amounts<'a>,
    #[serde(borrow)]
    access_modes: LenientList<Text<'a>>,
    #[serde(borrow)]
    volume_mode: Text<'a>,
    #[serde(borrow)]
    claim_ref: Option<ClaimRef<'a>>,
    #[serde(borrow, deserialize_with = "or_default")]
    node_affinity: Reach<'a>,
    #[serde(borrow)]
    csi: Option<Csi<'a>>,
}

message! {
    impl<'a> VolumeSpec<'a> {
        1 => capacity, 3 => access_modes, 4 => claim_ref, 6 => storage_class_name, 8 => volume_mode, 9 => node_affinity;
        2 => { 22 => csi }
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ClaimRef<'a> {
    #[serde(borrow)]
    namespace: Text<'a>,
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow)]
    uid: Text<'a>,
}

message! { impl<'a> ClaimRef<'a> { 2 => namespace, 3 => name, 4 => uid } }

#[derive(Default, Deserialize)]
#[serde(default)]
struct Reach<'a> {
    #[serde(borrow)]
    required: Option<WireNodeSelector<'a>>,
}

message! { impl<'a> Reach<'a> { 1 => required } }

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Csi<'a> {
    #[serde(borrow)]
    driver: Text<'a>,
    #[serde(borrow)]
    volume_handle: Text<'a>,
}

message! { impl<'a> Csi<'a> { 1 => driver, 2 => volume_handle } }

/// A StorageClass on the wire.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct WireStorageClass<'a> {
    #[serde(borrow, deserialize_with = "or_default")]
    metadata: Meta<'a>,
    #[serde(borrow)]
    provisioner: Text<'a>,
    #[serde(borrow)]
    volume_binding_mode: Text<'a>,
    #[serde(borrow)]
    allowed_topologies: LenientList<WireTopology<'a>>,
}

message! {
    impl<'a> WireStorageClass<'a> { 1 => metadata, 2 => provisioner, 7 => volume_binding_mode, 8 => allowed_topologies }
}

impl Wire for WireStorageClass<'_> {
    fn meta(&self) -> &Meta<'_> {
        &self.metadata
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct WireTopology<'a> {
    #[serde(borrow)]
    match_label_expressions: LenientList<WireValues<'a>>,
}

message! { impl<'a> WireTopology<'a> { 1 => match_label_expressions } }

impl WireTopology<'_> {
    fn term(&self, pool: &mut SharedParts) -> NodeTerm {
        let requirements = self.match_label_expressions.iter().map(|wire| NodeRequirement {
            key: pool.name(&wire.key),
            operator: NodeOperator::In(wire.values.iter().map(|value| pool.name(value)).collect()),
        });
        NodeTerm { expressions: requirements.collect(), fields: Box::default() }
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireValues<'a> {
    #[serde(borrow)]
    key: Text<'a>,
    #[serde(borrow)]
    values: LenientList<Text<'a>>,
}

message! { impl<'a> WireValues<'a> { 1 => key, 2 => values } }

/// A CSINode on the wire.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct WireCsiNode<'a> {
    #[serde(borrow, deserialize_with = "or_default")]
    metadata: Meta<'a>,
    #[serde(borrow, deserialize_with = "or_default")]
    spec: Drivers<'a>,
}

message! { impl<'a> WireCsiNode<'a> { 1 => metadata, 2 => spec } }

impl Wire for WireCsiNode<'_> {
    fn meta(&self) -> &Meta<'_> {
        &self.metadata
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Drivers<'a> {
    #[serde(borrow)]
    drivers: LenientList<Driver<'a>>,
}

message! { impl<'a> Drivers<'a> { 1 => drivers } }

#[derive(Default, Deserialize)]
#[serde(default)]
struct Driver<'a> {
    #[serde(borrow)]
    name: Text<'a>,
    allocatable: Option<Allocatable>,
}

message! { impl<'a> Driver<'a> { 1 => name, 4 => allocatable } }

#[derive(Default, Deserialize)]
#[serde(default)]
struct Allocatable {
    count: Int,
}

message! { impl<'a> Allocatable { 1 => count } }
