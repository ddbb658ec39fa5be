//! Nodes.

use std::sync::Arc;

use serde::Deserialize;

use super::{
    Decoder, WatchEvent, has_metadata,
    image::WireImage,
    leaf::{Amounts, LenientBool, LenientList, Pairs, Quantity, Text, Time, or_default},
    managed_fields::FieldManagers,
    meta::Meta,
    pool::SharedParts,
    protobuf::{Fields, Message, NotAMessage, ReadField, WireValue, wire},
    requests,
};
use kordon_core::cluster::{
    Change, Condition, ConditionStatus, Image, Name, Node, Resources, Taint, TaintEffect,
};

/// Reads nodes.
#[derive(Debug, Default)]
pub struct NodeDecoder {
    pool: SharedParts,
    without_images: bool,
}

impl NodeDecoder {
    /// Returns a decoder that skips the images of nodes in protobuf. Images make up more than half of a node, and only
    /// placement reads them.
    pub fn without_images() -> Self {
        Self { without_images: true, ..Self::default() }
    }
}

impl Decoder for NodeDecoder {
    type Wire<'a> = WireNode<'a>;

    fn blank<'a>(&self) -> WireNode<'a> {
        let status = Status { without_images: self.without_images, ..Status::default() };
        WireNode { status, ..WireNode::default() }
    }

    fn change(&mut self, event: WatchEvent<WireNode<'_>>) -> Option<Change> {
        Some(Change::Node(event.map(|wire| node(&wire, &mut self.pool))))
    }

    fn tidy(&mut self) {
        self.pool.tidy();
    }
}

/// Reads one node; `None` if it cannot be read.
pub fn read(json: &[u8]) -> Option<Node> {
    let wire: WireNode<'_> = serde_json::from_slice(json).ok()?;
    Some(node(&wire, &mut SharedParts::default()))
}

fn node(wire: &WireNode<'_>, pool: &mut SharedParts) -> Node {
    let WireNode { metadata, spec, status, metadata_bytes } = wire;
    let managers = FieldManagers::read(&metadata.managed_fields, metadata_bytes);
    let taints: Vec<Taint> = spec.taints.iter().map(|taint| taint.taint(pool)).collect();
    let conditions: Arc<[Condition]> =
        status.conditions.iter().map(|condition| condition.condition(pool)).collect();
    let images: Vec<Image> = status.images.iter().map(|image| pool.image(image)).collect();
    let finalizers: Vec<Name> = metadata.finalizers.iter().map(|text| pool.name(text)).collect();
    let declared: Vec<Name> = status.declared_features.iter().map(|text| pool.name(text)).collect();
    let address = status.addresses.iter().find(|address| *address.kind == *"InternalIP");
    Node {
        name: metadata.node_name(pool),
        uid: metadata.uid(),
        version: metadata.version(),
        created: metadata.created(),
        labels: pool.labels(&metadata.labels),
        unschedulable: spec.unschedulable.0,
        taints: pool.taints(&taints),
        conditions,
        allocatable: resources(&status.allocatable),
        memory_capacity_bytes: status.capacity.amount("memory").map_or(0, Quantity::units),
        extended: pool.amounts(&requests::extended(&status.allocatable)),
        images: pool.images(&images),
        address: (*address.map_or(Text::default(), |address| address.address.clone())).into(),
        kubelet_version: pool.name(&status.node_info.kubelet_version),
        kernel_version: pool.name(&status.node_info.kernel_version),
        terminating: metadata.deletion_timestamp.is_present(),
        finalizers: pool.names(&finalizers),
        held_volumes: status.held_volumes(pool),
        declared_features: pool.names(&declared),
        cordon_note: metadata.annotations.cordon.clone(),
        drain_claim: metadata.annotations.drain.clone(),
        drained: metadata.annotations.drained.clone(),
        maintenance: metadata.annotations.maintenance.clone(),
        boot_id: (*status.node_info.boot_id).into(),
        marks: marks(&metadata.annotations.marks),
        unschedulable_by: managers.of_unschedulable().filter(|_| spec.unschedulable.0).map(Arc::new),
        heartbeat_written: managers.heartbeat_written(),
        // kured's lock is not in the Node object. It is read from kured's DaemonSet.
        reboot_lock: None,
        annotations: Some(pool.annotations(&wire.annotations())),
    }
}

/// Returns the annotations of other projects, sorted by key. JSON and protobuf have different orders of annotations;
/// sorted, they are equal.
fn marks(found: &[(Name, Name)]) -> Arc<[(Name, Name)]> {
    if found.is_empty() {
        return Arc::default();
    }
    let mut marks = found.to_vec();
    marks.sort_unstable();
    marks.into()
}

/// A Node on the wire.
#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub struct WireNode<'a> {
    #[serde(deserialize_with = "or_default")]
    metadata: Meta<'a>,
    #[serde(deserialize_with = "or_default")]
    spec: Spec<'a>,
    #[serde(deserialize_with = "or_default")]
    status: Status<'a>,
    /// The metadata in protobuf, unread.
    #[serde(skip)]
    metadata_bytes: &'a [u8],
}

impl<'a> Message<'a> for WireNode<'a> {
    fn field(&mut self, number: u64, value: WireValue<'a>) -> Result<(), NotAMessage> {
        match (number, value) {
            (1, WireValue::Bytes(bytes)) => {
                self.metadata_bytes = bytes;
                self.metadata.read(value)
            }
            (2, _) => self.spec.read(value),
            (3, _) => self.status.read(value),
            _ => Ok(()),
        }
    }
}

impl WireNode<'_> {
    /// Returns all annotations of the node, not only those that kordon knows.
    fn annotations(&self) -> Pairs<'_> {
        const ANNOTATIONS: u64 = 12;
        if !self.metadata.annotations.json.is_empty() {
            return serde_json::from_str(self.metadata.annotations.json).unwrap_or_default();
        }
        let (mut fields, mut pairs) = (Fields(self.metadata_bytes), Pairs::default());
        while let Ok(Some((number, value))) = fields.next() {
            if number == ANNOTATIONS {
                // An annotation that cannot be read is left out, like all unreadable entries of a node.
                let _ = pairs.read(value);
            }
        }
        pairs
    }
}

has_metadata!(WireNode);

wire! {
    struct Spec<'a> {
        unschedulable: LenientBool = 4,
        taints: LenientList<WireTaint<'a>> = 5,
    }
}

wire! {
    pub(super) struct WireTaint<'a> {
        key: Text<'a> = 1,
        value: Text<'a> = 2,
        effect: Text<'a> = 3,
        time_added: Time<'a> = 4,
    }
}

impl WireTaint<'_> {
    fn taint(&self, pool: &mut SharedParts) -> Taint {
        Taint {
            key: pool.name(&self.key),
            value: pool.name(&self.value),
            effect: TaintEffect::parse(&self.effect),
            time_added: self.time_added.time(),
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status<'a> {
    #[serde(borrow)]
    conditions: LenientList<WireCondition<'a>>,
    #[serde(borrow, deserialize_with = "or_default")]
    allocatable: Amounts<'a>,
    #[serde(borrow, deserialize_with = "or_default")]
    capacity: Amounts<'a>,
    #[serde(borrow)]
    images: LenientList<WireImage<'a>>,
    #[serde(borrow)]
    addresses: LenientList<Address<'a>>,
    #[serde(borrow, deserialize_with = "or_default")]
    node_info: NodeInfo<'a>,
    #[serde(borrow)]
    volumes_in_use: LenientList<Text<'a>>,
    #[serde(borrow)]
    volumes_attached: LenientList<AttachedVolume<'a>>,
    #[serde(borrow)]
    declared_features: LenientList<Text<'a>>,
    /// Whether images in protobuf are skipped.
    #[serde(skip)]
    without_images: bool,
}

impl<'a> Message<'a> for Status<'a> {
    fn field(&mut self, number: u64, value: WireValue<'a>) -> Result<(), NotAMessage> {
        match number {
            1 => self.capacity.read(value),
            2 => self.allocatable.read(value),
            4 => self.conditions.read(value),
            5 => self.addresses.read(value),
            7 => self.node_info.read(value),
            8 if !self.without_images => self.images.read(value),
            9 => self.volumes_in_use.read(value),
            10 => self.volumes_attached.read(value),
            14 => self.declared_features.read(value),
            _ => Ok(()),
        }
    }
}

impl Status<'_> {
    /// Returns the CSI volumes that are attached to the node and in use by its kubelet, by driver and handle. Empty for
    /// a Ready node, whose kubelet unmounts the volumes of pods that are gone.
    fn held_volumes(&self, pool: &mut SharedParts) -> Arc<[(Name, Name)]> {
        let is_ready = |condition: &WireCondition<'_>| {
            *condition.kind == *"Ready" && ConditionStatus::parse(&condition.status) == ConditionStatus::True
        };
        if self.conditions.iter().any(is_ready) {
            return Arc::default();
        }
        let is_in_use =
            |volume: &&AttachedVolume<'_>| self.volumes_in_use.iter().any(|name| **name == *volume.name);
        let held = self.volumes_attached.iter().filter(is_in_use).filter_map(|volume| {
            let (driver, handle) = volume.name.strip_prefix("kubernetes.io/csi/")?.split_once('^')?;
            Some((pool.name(driver), Name::from(handle)))
        });
        held.collect()
    }
}

wire! {
    /// A condition of a node or pod on the wire.
    pub(super) struct WireCondition<'a> {
        #[serde(rename = "type")]
        pub(super) kind: Text<'a> = 1,
        pub(super) status: Text<'a> = 2,
        pub(super) reason: Text<'a> = 5,
        pub(super) message: Text<'a> = 6,
        last_heartbeat_time: Time<'a> = 3,
        pub(super) last_transition_time: Time<'a> = 4,
    }
}

// The fields of a condition have the same numbers in nodes and pods, except field 3: in a node it is the heartbeat, and
// in a pod it is not used.

impl WireCondition<'_> {
    fn condition(&self, pool: &mut SharedParts) -> Condition {
        Condition {
            kind: pool.name(&self.kind),
            status: ConditionStatus::parse(&self.status),
            reason: pool.name(&self.reason),
            message: pool.name(&self.message),
            last_heartbeat: self.last_heartbeat_time.time(),
            last_transition: self.last_transition_time.time(),
        }
    }
}

/// The resources of `status.allocatable` that every view shows.
fn resources(allocatable: &Amounts<'_>) -> Resources {
    let units = |resource| allocatable.amount(resource).map_or(0, Quantity::units);
    Resources {
        cpu_milli: allocatable.amount("cpu").map_or(0, Quantity::milli),
        memory_bytes: units("memory"),
        pods: units("pods"),
    }
}

wire! {
    struct AttachedVolume<'a> {
        name: Text<'a> = 1,
    }
}

wire! {
    struct Address<'a> {
        #[serde(rename = "type")]
        kind: Text<'a> = 1,
        address: Text<'a> = 2,
    }
}

wire! {
    struct NodeInfo<'a> {
        #[serde(rename = "bootID")]
        boot_id: Text<'a> = 3,
        kernel_version: Text<'a> = 4,
        kubelet_version: Text<'a> = 7,
    }
}
