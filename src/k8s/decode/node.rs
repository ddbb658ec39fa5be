//! Nodes.

use std::sync::Arc;

use serde::Deserialize;

use super::{
    Decoder, WatchEvent, Wire,
    image::WireImage,
    leaf::{Amounts, LenientBool, LenientList, Quantity, Text, Time, or_default},
    meta::Meta,
    pool::SharedParts,
    protobuf::{Message, NotAMessage, ReadField, WireValue, message},
    requests,
};
use kordon_core::cluster::{Change, Condition, ConditionStatus, Image, Node, Resources, Taint, TaintEffect};

/// Reads nodes.
#[derive(Debug, Default)]
pub struct NodeDecoder {
    pool: SharedParts,
    without_images: bool,
}

impl NodeDecoder {
    /// Skips the images of nodes in protobuf, which make up more than half of a node. Only placement reads them.
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
    let WireNode { metadata, spec, status } = wire;
    let taints: Vec<Taint> = spec.taints.iter().map(|taint| taint.taint(pool)).collect();
    let conditions: Arc<[Condition]> =
        status.conditions.iter().map(|condition| condition.condition(pool)).collect();
    let images: Vec<Image> = status.images.iter().map(|image| pool.image(image)).collect();
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
        cordon_note: metadata.annotations.cordon.clone(),
        drain_claim: metadata.annotations.drain.clone(),
        drained: metadata.annotations.drained.clone(),
    }
}

/// A Node on the wire.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct WireNode<'a> {
    #[serde(borrow, deserialize_with = "or_default")]
    metadata: Meta<'a>,
    #[serde(borrow, deserialize_with = "or_default")]
    spec: Spec<'a>,
    #[serde(borrow, deserialize_with = "or_default")]
    status: Status<'a>,
}

message! { impl<'a> WireNode<'a> { 1 => metadata, 2 => spec, 3 => status } }

impl Wire for WireNode<'_> {
    fn meta(&self) -> &Meta<'_> {
        &self.metadata
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Spec<'a> {
    unschedulable: LenientBool,
    #[serde(borrow)]
    taints: LenientList<WireTaint<'a>>,
}

message! { impl<'a> Spec<'a> { 4 => unschedulable, 5 => taints } }

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct WireTaint<'a> {
    #[serde(borrow)]
    key: Text<'a>,
    #[serde(borrow)]
    value: Text<'a>,
    #[serde(borrow)]
    effect: Text<'a>,
    #[serde(borrow)]
    time_added: Time<'a>,
}

message! { impl<'a> WireTaint<'a> { 1 => key, 2 => value, 3 => effect, 4 => time_added } }

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
            _ => Ok(()),
        }
    }
}

/// A condition of a node or pod on the wire.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct WireCondition<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Text<'a>,
    #[serde(borrow)]
    pub(super) status: Text<'a>,
    #[serde(borrow)]
    pub(super) reason: Text<'a>,
    #[serde(borrow)]
    pub(super) message: Text<'a>,
    #[serde(borrow)]
    last_heartbeat_time: Time<'a>,
    #[serde(borrow)]
    pub(super) last_transition_time: Time<'a>,
}

// Nodes and pods number these fields alike, except for field 3: it is the heartbeat of a node, and is not used for
// pods.
message! {
    impl<'a> WireCondition<'a> {
        1 => kind, 2 => status, 3 => last_heartbeat_time, 4 => last_transition_time, 5 => reason, 6 => message,
    }
}

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

#[derive(Default, Deserialize)]
#[serde(default)]
struct Address<'a> {
    #[serde(rename = "type", borrow)]
    kind: Text<'a>,
    #[serde(borrow)]
    address: Text<'a>,
}

message! { impl<'a> Address<'a> { 1 => kind, 2 => address } }

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct NodeInfo<'a> {
    #[serde(borrow)]
    kubelet_version: Text<'a>,
    #[serde(borrow)]
    kernel_version: Text<'a>,
}

message! { impl<'a> NodeInfo<'a> { 4 => kernel_version, 7 => kubelet_version } }
