//! Measurements of a kubelet: the levels of its node, and the usage of each pod.

use std::collections::BTreeMap;

use super::signal::EvictionSignal;
use crate::cluster::{Key, Name};
use kordon_time::ClusterTime;

/// The measurements of one node at one time. A value that was not reported is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeStats {
    /// The time at which the kubelet measured the node's memory.
    pub measured: Option<ClusterTime>,
    pub memory: Option<SignalLevel>,
    /// Memory of the cgroup of all pods.
    pub allocatable_memory: Option<SignalLevel>,
    /// The filesystem of the kubelet's directory.
    pub nodefs: Option<Filesystem>,
    /// The filesystem of the image store.
    pub imagefs: Option<Filesystem>,
    /// The filesystem of the containers' writable layers.
    pub containerfs: Option<Filesystem>,
    pub pids: Option<SignalLevel>,
    pub pods: BTreeMap<Key, PodUsage>,
}

impl NodeStats {
    /// The level of a signal: capacity and available amount; `None` for a signal that is not measured.
    pub fn level(&self, signal: EvictionSignal) -> Option<SignalLevel> {
        match signal {
            EvictionSignal::Memory => self.memory,
            EvictionSignal::AllocatableMemory => self.allocatable_memory,
            EvictionSignal::NodefsBytes => self.nodefs?.bytes,
            EvictionSignal::NodefsInodes => self.nodefs?.inodes,
            EvictionSignal::ImagefsBytes => self.imagefs?.bytes,
            EvictionSignal::ImagefsInodes => self.imagefs?.inodes,
            EvictionSignal::ContainerfsBytes => self.containerfs?.bytes,
            EvictionSignal::ContainerfsInodes => self.containerfs?.inodes,
            EvictionSignal::Pids => self.pids,
        }
    }

    /// The signals that are measured, with their levels.
    pub fn levels(&self) -> impl Iterator<Item = (EvictionSignal, SignalLevel)> {
        EvictionSignal::ALL.into_iter().filter_map(|signal| Some((signal, self.level(signal)?)))
    }

    /// Returns which filesystems are separate. A kubelet compares the devices of filesystems, but reports only their
    /// sizes. Here, two filesystems of equal size and usage therefore count as one.
    pub fn layout(&self) -> FilesystemLayout {
        let (Some(nodefs), Some(imagefs)) = (self.nodefs, self.imagefs) else {
            return FilesystemLayout::Shared;
        };
        match self.containerfs {
            _ if nodefs.is_same(imagefs) => FilesystemLayout::Shared,
            Some(containerfs) if !containerfs.is_same(imagefs) => FilesystemLayout::Split,
            Some(_) | None => FilesystemLayout::DedicatedImages,
        }
    }
}

/// Capacity of the resource that a signal measures, and the available amount of this resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SignalLevel {
    /// Available amount, in the unit of the capacity: bytes, inodes or process ids.
    pub available: i64,
    pub capacity: i64,
}

/// Capacity and available amount of a filesystem, in bytes and in inodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Filesystem {
    pub bytes: Option<SignalLevel>,
    pub inodes: Option<SignalLevel>,
}

impl Filesystem {
    /// Whether two reports may describe the same filesystem: their capacities are equal, and their available amounts
    /// differ by at most 1 % of the capacity. The reports are read seconds apart.
    fn is_same(self, other: Self) -> bool {
        let is_close = |own: Option<SignalLevel>, other: Option<SignalLevel>| match (own, other) {
            (Some(own), Some(other)) => {
                own.capacity == other.capacity
                    && own.available.abs_diff(other.available) <= own.capacity.unsigned_abs() / 100
            }
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        is_close(self.bytes, other.bytes) && is_close(self.inodes, other.inodes)
    }
}

/// Which filesystems of a node are separate (docs/upstream/placement-and-pressure.md#6.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilesystemLayout {
    /// One filesystem for everything.
    Shared,
    /// One filesystem for images and writable layers, another for the rest.
    DedicatedImages,
    /// One filesystem for images, another for writable layers and the rest.
    Split,
}

/// The usage of one pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodUsage {
    /// The working set of the pod's containers, in bytes.
    pub memory_bytes: Option<i64>,
    /// Disk usage as the kubelet reports it; `None` if only metrics.k8s.io was read.
    pub disk: Option<PodDisk>,
    pub processes: Option<i64>,
}

/// Usage of a node or pod from metrics.k8s.io: an average over some seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsageMetric {
    pub cpu_milli: i64,
    /// The working set of the node or pod, in bytes.
    pub memory_bytes: i64,
    pub measured: Option<ClusterTime>,
}

/// Disk usage of one pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodDisk {
    /// The writable layers of the pod's containers.
    pub writable: DiskUsage,
    /// The logs of the pod's containers.
    pub logs: DiskUsage,
    /// The pod's measured volumes, by name.
    pub volumes: BTreeMap<Name, DiskUsage>,
}

impl PodDisk {
    /// The usage that counts for a disk signal: the usage on the signal's filesystem. Of the pod's volumes, only local
    /// ones count.
    pub fn measured(
        &self,
        signal: EvictionSignal,
        layout: FilesystemLayout,
        local_volumes: &[Name],
    ) -> DiskUsage {
        let of_images = matches!(signal, EvictionSignal::ImagefsBytes | EvictionSignal::ImagefsInodes);
        let local = || self.volumes.iter().filter(|(name, _)| local_volumes.contains(name));
        let data = || local().fold(self.logs, |sum, (_, usage)| sum.plus(*usage));
        match layout {
            FilesystemLayout::Shared => self.writable.plus(data()),
            FilesystemLayout::DedicatedImages if of_images => self.writable,
            FilesystemLayout::DedicatedImages => data(),
            FilesystemLayout::Split if of_images => DiskUsage::default(),
            FilesystemLayout::Split => self.writable.plus(data()),
        }
    }
}

/// Used disk space in bytes, and number of used inodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskUsage {
    pub bytes: i64,
    pub inodes: i64,
}

impl DiskUsage {
    pub const fn plus(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_add(other.bytes),
            inodes: self.inodes.saturating_add(other.inodes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filesystem(available: i64, capacity: i64) -> Option<Filesystem> {
        Some(Filesystem { bytes: Some(SignalLevel { available, capacity }), inodes: None })
    }

    #[test]
    fn filesystems_of_another_size_are_apart() {
        let layout = |nodefs, imagefs, containerfs| {
            NodeStats { nodefs, imagefs, containerfs, ..NodeStats::default() }.layout()
        };
        let root = filesystem(500, 1000);
        assert_eq!(layout(root, None, None), FilesystemLayout::Shared);
        assert_eq!(layout(root, filesystem(495, 1000), None), FilesystemLayout::Shared, "read later");
        assert_eq!(layout(root, filesystem(100, 1000), None), FilesystemLayout::DedicatedImages);
        assert_eq!(layout(root, filesystem(500, 2000), None), FilesystemLayout::DedicatedImages);
        let images = filesystem(500, 2000);
        assert_eq!(layout(root, images, images), FilesystemLayout::DedicatedImages);
        assert_eq!(layout(root, images, root), FilesystemLayout::Split);
    }
}
