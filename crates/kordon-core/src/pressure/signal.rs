//! Eviction signals, and the condition that each of them sets (docs/upstream/placement-and-pressure.md#6.1).

use std::fmt;

use crate::{
    cluster::{ConditionStatus, quantity},
    engine::condition_taint_key,
};

/// Something that a kubelet measures and compares with thresholds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EvictionSignal {
    /// Memory of the node.
    Memory,
    /// Memory of the cgroup that all pods share.
    AllocatableMemory,
    /// Disk of the kubelet's directory.
    NodefsBytes,
    NodefsInodes,
    /// Disk of the image store, where that is another one.
    ImagefsBytes,
    ImagefsInodes,
    /// Disk of the containers' writable layers, where that is apart from the images.
    ContainerfsBytes,
    ContainerfsInodes,
    /// Process ids.
    Pids,
}

impl EvictionSignal {
    /// All of them, in the order in which they are listed. Those of memory come first, as a kubelet acts on them first.
    pub const ALL: [Self; 9] = [
        Self::Memory,
        Self::AllocatableMemory,
        Self::NodefsBytes,
        Self::NodefsInodes,
        Self::ImagefsBytes,
        Self::ImagefsInodes,
        Self::ContainerfsBytes,
        Self::ContainerfsInodes,
        Self::Pids,
    ];

    /// The signal of a name such as `memory.available`.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|signal| signal.as_str() == name)
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Memory => "memory.available",
            Self::AllocatableMemory => "allocatableMemory.available",
            Self::NodefsBytes => "nodefs.available",
            Self::NodefsInodes => "nodefs.inodesFree",
            Self::ImagefsBytes => "imagefs.available",
            Self::ImagefsInodes => "imagefs.inodesFree",
            Self::ContainerfsBytes => "containerfs.available",
            Self::ContainerfsInodes => "containerfs.inodesFree",
            Self::Pids => "pid.available",
        }
    }

    /// The condition that is True while a threshold of the signal is met.
    pub const fn condition(self) -> PressureCondition {
        match self {
            Self::Memory | Self::AllocatableMemory => PressureCondition::Memory,
            Self::NodefsBytes
            | Self::NodefsInodes
            | Self::ImagefsBytes
            | Self::ImagefsInodes
            | Self::ContainerfsBytes
            | Self::ContainerfsInodes => PressureCondition::Disk,
            Self::Pids => PressureCondition::Pid,
        }
    }

    /// Whether it is measured in bytes; otherwise it counts inodes or process ids.
    pub const fn is_in_bytes(self) -> bool {
        match self {
            Self::Memory
            | Self::AllocatableMemory
            | Self::NodefsBytes
            | Self::ImagefsBytes
            | Self::ContainerfsBytes => true,
            Self::NodefsInodes | Self::ImagefsInodes | Self::ContainerfsInodes | Self::Pids => false,
        }
    }

    /// An amount of what it measures, for people: `512Mi`, `5476531`.
    pub fn amount(self, amount: i64) -> String {
        if self.is_in_bytes() { quantity::amount("memory", amount) } else { amount.to_string() }
    }
}

impl fmt::Display for EvictionSignal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A condition of a node that a kubelet sets under pressure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PressureCondition {
    Memory,
    Disk,
    Pid,
}

impl PressureCondition {
    pub const ALL: [Self; 3] = [Self::Memory, Self::Disk, Self::Pid];

    /// The type of the condition.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Memory => "MemoryPressure",
            Self::Disk => "DiskPressure",
            Self::Pid => "PIDPressure",
        }
    }

    /// The condition that a kubelet's message about an evicted pod tells of: `The node was low on resource: memory. …`
    /// (upstream's `signalToResource`).
    pub fn from_message(message: &str) -> Option<Self> {
        let resource = message.strip_prefix("The node was low on resource: ")?;
        match resource.split(['.', ' ']).next()? {
            "memory" => Some(Self::Memory),
            "ephemeral-storage" | "inodes" => Some(Self::Disk),
            "pids" => Some(Self::Pid),
            _ => None,
        }
    }

    /// The key of the NoSchedule taint that the controller adds for the condition.
    pub fn taint_key(self) -> &'static str {
        condition_taint_key(self.as_str(), ConditionStatus::True).expect("it adds one for every pressure")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pressure_has_its_taint() {
        let keys = PressureCondition::ALL.map(PressureCondition::taint_key);
        let taints = ["memory-pressure", "disk-pressure", "pid-pressure"];
        assert_eq!(keys.map(str::to_owned), taints.map(|name| format!("node.kubernetes.io/{name}")));
    }
}
