//! Persistent volumes, what claims them, and where they can be reached.

use super::{
    labels::{Labels, Selector},
    names::{Key, Name, NodeName, Uid},
    pod::Owner,
    scheduling::NodeTerm,
    table::{TableObject, Version},
};

/// A PersistentVolumeClaim, cut down to what decides over placement.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Claim {
    pub key: Key,
    pub uid: Uid,
    pub version: Version,
    /// `spec.volumeName`: the volume that it has, or is to have; empty while there is none.
    pub volume: Name,
    /// Whether it has its volume for good (annotation `pv.kubernetes.io/bind-completed`).
    pub is_bound: bool,
    /// Whether its volume has gone (`status.phase` Lost).
    pub is_lost: bool,
    /// Whether its deletion has begun.
    pub is_terminating: bool,
    /// The name of its StorageClass; empty where it has none.
    pub class: Name,
    /// The node for which the scheduler has asked for a volume (`volume.kubernetes.io/selected-node`).
    pub selected_node: Option<NodeName>,
    /// The pod that it was made for, where one was.
    pub owner: Option<Owner>,
    /// Which volumes it takes; none takes all.
    pub selector: Option<Selector>,
    pub requested: VolumeProperties,
}

/// A PersistentVolume, cut down to what decides over placement.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Volume {
    pub name: Name,
    pub version: Version,
    pub labels: Labels,
    pub class: Name,
    /// `spec.nodeAffinity`: one of these terms must hold of a node that is to reach it; none where all reach it.
    pub node_affinity: Option<Box<[NodeTerm]>>,
    pub properties: VolumeProperties,
    /// The claim that it is bound to, or kept for; the uid is empty where only the name is known.
    pub claim: Option<(Key, Uid)>,
    /// Whether `status.phase` is Available.
    pub is_available: bool,
    pub is_terminating: bool,
    /// The CSI driver, and what it calls the volume.
    pub handle: Option<(Name, Name)>,
}

/// How large, and what can be done with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VolumeProperties {
    pub bytes: i64,
    pub modes: AccessModes,
    /// Whether it is a raw block device, and no file system.
    pub is_block: bool,
}

/// `accessModes`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccessModes {
    pub read_write_once: bool,
    pub read_only_many: bool,
    pub read_write_many: bool,
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

    /// Whether all of the others are among these.
    pub const fn cover(self, others: Self) -> bool {
        (self.read_write_once || !others.read_write_once)
            && (self.read_only_many || !others.read_only_many)
            && (self.read_write_many || !others.read_write_many)
            && (self.read_write_once_pod || !others.read_write_once_pod)
    }
}

/// A StorageClass.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StorageClass {
    pub name: Name,
    pub version: Version,
    pub provisioner: Name,
    /// Whether volumes are looked for only when a pod needs them (WaitForFirstConsumer).
    pub waits_for_consumer: bool,
    /// `allowedTopologies`: where volumes can be made, one of these; empty for everywhere.
    pub topologies: Box<[NodeTerm]>,
}

impl StorageClass {
    /// Whether volumes are made on demand, or somebody has to make them.
    pub fn provisions(&self) -> bool {
        !self.provisioner.is_empty() && self.provisioner != *"kubernetes.io/no-provisioner"
    }
}

/// A CSINode: how many volumes of each driver a node can have.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CsiNode {
    pub name: NodeName,
    pub version: Version,
    /// By driver; drivers without a limit are left out.
    pub limits: Box<[(Name, i64)]>,
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

impl TableObject for CsiNode {
    type Key = NodeName;
    fn key(&self) -> NodeName {
        self.name.clone()
    }
    fn version(&self) -> Version {
        self.version
    }
}
