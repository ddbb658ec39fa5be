//! Eviction signals and the node conditions that they set (docs/upstream/placement-and-pressure.md#6.1).

use std::fmt;

use crate::{
    cluster::{ConditionStatus, Node, quantity},
    engine::condition_taint_key,
};

/// A quantity that a kubelet measures and compares with thresholds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EvictionSignal {
    /// Memory of the node.
    Memory,
    /// Memory of the cgroup of all pods.
    AllocatableMemory,
    /// Disk of the kubelet's directory.
    NodefsBytes,
    NodefsInodes,
    /// Disk of the image store, if it is a separate filesystem.
    ImagefsBytes,
    ImagefsInodes,
    /// Disk of the containers' writable layers, if it is separate from the disk of the images.
    ContainerfsBytes,
    ContainerfsInodes,
    /// Process ids.
    Pids,
}

impl EvictionSignal {
    /// All signals, in display order. The memory signals come first, because a kubelet acts on them first.
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

    /// Parses the name of a signal, for example `memory.available`.
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

    /// The node condition that is True while a threshold of the signal is met.
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

    /// Whether the signal is measured in bytes. Other signals count inodes or process ids.
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

    /// An amount of the signal for display, for example `512Mi` or `5476531`.
    pub fn amount(self, amount: i64) -> String {
        if self.is_in_bytes() { quantity::amount("memory", amount) } else { amount.to_string() }
    }
}

impl fmt::Display for EvictionSignal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A node condition that a kubelet sets under pressure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PressureCondition {
    Memory,
    Disk,
    Pid,
}

impl PressureCondition {
    pub const ALL: [Self; 3] = [Self::Memory, Self::Disk, Self::Pid];

    /// The type of the condition, for example `MemoryPressure`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Memory => "MemoryPressure",
            Self::Disk => "DiskPressure",
            Self::Pid => "PIDPressure",
        }
    }

    /// The pressure conditions that a node reports as True.
    pub fn reported(node: &Node) -> Vec<Self> {
        // The status is checked first, because in most nodes only Ready is True. This avoids comparing names.
        let is_true = |kind: &Self| {
            let mut conditions = node.conditions.iter();
            conditions.any(|condition| {
                condition.status == ConditionStatus::True && *condition.kind == *kind.as_str()
            })
        };
        Self::ALL.into_iter().filter(is_true).collect()
    }

    /// The condition for the resource in a kubelet's message about an evicted pod. The message has the form `The node
    /// was low on resource: memory. …` (upstream's `signalToResource`).
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
