//! Persistent volumes, their claims, and the nodes that can reach them.

use minicbor::{Decode, Encode};

use super::{
    encoding::EncodingContext,
    labels::{Labels, Selector},
    names::{Key, Name, NodeName},
    owner::Owner,
    scheduling::NodeTerm,
    table::{TableObject, Version},
    uid::Uid,
};

/// A PersistentVolumeClaim, cut down to what decides placement.
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct Claim {
    #[n(0)]
    pub key: Key,
    #[n(1)]
    pub uid: Uid,
    #[n(2)]
    pub version: Version,
    /// `spec.volumeName`: the volume to which the claim is or will be bound; empty until a volume is chosen.
    #[n(3)]
    pub volume: Name,
    /// Whether the binding is complete (annotation `pv.kubernetes.io/bind-completed`).
    #[n(4)]
    pub is_bound: bool,
    /// Whether the claim's volume was lost (`status.phase` Lost).
    #[n(5)]
    pub is_lost: bool,
    /// Whether the claim's deletion has started.
    #[n(6)]
    pub is_terminating: bool,
    /// The name of the claim's StorageClass; empty if there is none.
    #[n(7)]
    pub class: Name,
    /// The node for which the scheduler requested a volume (`volume.kubernetes.io/selected-node`).
    #[n(8)]
    pub selected_node: Option<NodeName>,
    /// The pod for which the claim was created, if any.
    #[n(9)]
    pub owner: Option<Owner>,
    /// Selector of the volumes that the claim accepts; `None` accepts all volumes.
    #[n(10)]
    pub selector: Option<Selector>,
    #[n(11)]
    pub requested: VolumeProperties,
}

/// A PersistentVolume, cut down to what decides placement.
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct Volume {
    #[n(0)]
    pub name: Name,
    #[n(1)]
    pub version: Version,
    #[n(2)]
    pub labels: Labels,
    #[n(3)]
    pub class: Name,
    /// `spec.nodeAffinity`: nodes that match one of these terms can reach the volume. `None` if all nodes can reach it.
    #[n(4)]
    pub node_affinity: Option<Box<[NodeTerm]>>,
    #[n(5)]
    pub properties: VolumeProperties,
    /// The claim that the volume is bound to or reserved for; the uid is empty if only the name is known.
    #[n(6)]
    pub claim: Option<(Key, Uid)>,
    /// Whether `status.phase` is Available.
    #[n(7)]
    pub is_available: bool,
    #[n(8)]
    pub is_terminating: bool,
    /// The CSI driver, and the driver's handle of the volume.
    #[n(9)]
    pub handle: Option<(Name, Name)>,
    /// True if no controller attaches the volume to nodes, as with a local or NFS volume. False in recordings of
    /// earlier formats.
    #[cbor(n(10), default)]
    pub needs_no_attachment: bool,
}

/// Capacity, access modes and volume mode that a volume has or a claim requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct VolumeProperties {
    #[n(0)]
    pub bytes: i64,
    #[n(1)]
    pub modes: AccessModes,
    /// Whether the volume is a raw block device, not a file system.
    #[n(2)]
    pub is_block: bool,
}

/// `accessModes`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct AccessModes {
    #[n(0)]
    pub read_write_once: bool,
    #[n(1)]
    pub read_only_many: bool,
    #[n(2)]
    pub read_write_many: bool,
    #[n(3)]
    pub read_write_once_pod: bool,
}

impl AccessModes {
    pub fn parse<'t>(texts: impl Iterator<Item = &'t str>) -> Self {
        let mut modes = Self::default();
        for text in texts {
            match text {
                "ReadWriteOnce" => modes.read_write_once = true,
                "ReadOnlyMany" => modes.read_only_many = true,
                "ReadWriteMany" => modes.read_write_many = true,
                "ReadWriteOncePod" => modes.read_write_once_pod = true,
                _ => {}
            }
        }
        modes
    }

    /// Whether these access modes let only one node at a time use a volume.
    pub const fn is_single_node(self) -> bool {
        (self.read_write_once || self.read_write_once_pod) && !self.read_only_many && !self.read_write_many
    }

    /// Whether these access modes include all modes of `others`.
    pub const fn cover(self, others: Self) -> bool {
        (self.read_write_once || !others.read_write_once)
            && (self.read_only_many || !others.read_only_many)
            && (self.read_write_many || !others.read_write_many)
            && (self.read_write_once_pod || !others.read_write_once_pod)
    }
}

/// A StorageClass.
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct StorageClass {
    #[n(0)]
    pub name: Name,
    #[n(1)]
    pub version: Version,
    #[n(2)]
    pub provisioner: Name,
    /// Whether `volumeBindingMode` is WaitForFirstConsumer.
    #[n(3)]
    pub waits_for_consumer: bool,
    /// `allowedTopologies`: volumes can be created where one of these terms matches; empty for no restriction.
    #[n(4)]
    pub topologies: Box<[NodeTerm]>,
}

impl StorageClass {
    /// Whether volumes are provisioned on demand.
    pub fn provisions(&self) -> bool {
        !self.provisioner.is_empty() && self.provisioner != *"kubernetes.io/no-provisioner"
    }
}

/// A CSINode: which CSI drivers a node has, and how many volumes of each it can attach.
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct CsiNode {
    #[n(0)]
    pub name: NodeName,
    #[n(1)]
    pub version: Version,
    /// Maximum number of volumes that the node can attach, by driver; drivers without a limit are left out.
    #[n(2)]
    pub limits: Box<[(Name, i64)]>,
    /// The CSI drivers on the node. Empty in recordings of older releases.
    #[cbor(n(3), default)]
    pub drivers: Box<[Name]>,
}

/// A CSIDriver: how its volumes are used.
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct CsiDriver {
    #[n(0)]
    pub name: Name,
    #[n(1)]
    pub version: Version,
    /// `spec.attachRequired`: whether a controller attaches the volumes to nodes.
    #[n(2)]
    pub attaches: bool,
    /// `spec.preventPodSchedulingIfMissing`: whether pods with its volumes only run on nodes that have the driver. False
    /// in recordings of older releases.
    #[cbor(n(3), default)]
    pub must_be_on_node: bool,
    /// `spec.storageCapacity`: whether the scheduler compares new volumes with the driver's CSIStorageCapacities. False
    /// in recordings of older releases.
    #[cbor(n(4), default)]
    pub publishes_capacity: bool,
}

/// A CSIStorageCapacity: how large a new volume of a StorageClass can be on some nodes.
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct StorageCapacity {
    #[n(0)]
    pub key: Key,
    #[n(1)]
    pub version: Version,
    #[n(2)]
    pub class: Name,
    /// `nodeTopology`: selector of the nodes; `None` for no node.
    #[n(3)]
    pub nodes: Option<Selector>,
    /// Size of the largest new volume (`maximumVolumeSize`, else `capacity`); `None` if there can be none.
    #[n(4)]
    pub largest_bytes: Option<i64>,
}

impl TableObject for Claim {
    type Key = Key;
    fn key(&self) -> Key {
        self.key.clone()
    }
    fn version(&self) -> Version {
        self.version
    }
}

impl TableObject for Volume {
    type Key = Name;
    fn key(&self) -> Name {
        self.name.clone()
    }
    fn version(&self) -> Version {
        self.version
    }
}

impl TableObject for StorageClass {
    type Key = Name;
    fn key(&self) -> Name {
        self.name.clone()
    }
    fn version(&self) -> Version {
        self.version
    }
}

impl TableObject for CsiDriver {
    type Key = Name;
    fn key(&self) -> Name {
        self.name.clone()
    }
    fn version(&self) -> Version {
        self.version
    }
}

impl TableObject for StorageCapacity {
    type Key = Key;
    fn key(&self) -> Key {
        self.key.clone()
    }
    fn version(&self) -> Version {
        self.version
    }
}

impl TableObject for CsiNode {
    type Key = NodeName;
    fn key(&self) -> NodeName {
        self.name.clone()
    }
    fn version(&self) -> Version {
        self.version
    }
}
