//! What a kubelet reclaims for a signal, in its order, and how far that gets.

use std::{collections::BTreeSet, sync::Arc};

use super::{
    ranking::RankedPod,
    settings::Threshold,
    signal::EvictionSignal,
    stats::{FilesystemLayout, SignalLevel},
};
use crate::cluster::{Node, Pod};

/// What a kubelet frees on the node itself before it evicts a pod (docs/upstream/placement-and-pressure.md#6.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeReclaim {
    DeadContainers,
    UnusedImages,
}

impl NodeReclaim {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::DeadContainers => "dead containers",
            Self::UnusedImages => "unused images",
        }
    }
}

/// What is freed on the node itself for a signal, in order; nothing for memory and process ids.
pub fn node_reclaim(signal: EvictionSignal, layout: FilesystemLayout) -> &'static [NodeReclaim] {
    use EvictionSignal as Signal;
    const BOTH: &[NodeReclaim] = &[NodeReclaim::DeadContainers, NodeReclaim::UnusedImages];
    match (signal, layout) {
        (Signal::Memory | Signal::AllocatableMemory | Signal::Pids, _) => &[],
        (_, FilesystemLayout::Shared) => BOTH,
        (Signal::ImagefsBytes | Signal::ImagefsInodes, FilesystemLayout::DedicatedImages) => BOTH,
        (Signal::ImagefsBytes | Signal::ImagefsInodes, FilesystemLayout::Split) => {
            &[NodeReclaim::UnusedImages]
        }
        (_, FilesystemLayout::DedicatedImages) => &[],
        (_, FilesystemLayout::Split) => &[NodeReclaim::DeadContainers],
    }
}

/// The bytes of the images on a node that none of its pods uses. A kubelet lists at most 50 images, so there may be more.
pub fn unused_images<'a>(node: &Node, pods: impl IntoIterator<Item = &'a Arc<Pod>>) -> i64 {
    let mut used = BTreeSet::new();
    for pod in pods.into_iter().filter(|pod| !pod.is_finished()) {
        let spec = &*pod.scheduling;
        used.extend(spec.images.iter().chain(&*spec.init_images).chain(&*spec.volume_images).cloned());
    }
    let unused = node.images.iter().filter(|image| !image.names.iter().any(|name| used.contains(name)));
    unused.fold(0, |sum, image| sum.saturating_add(image.size_bytes))
}

/// The evictions for one threshold, the first first.
#[derive(Clone, Debug, PartialEq)]
pub struct Reclaim {
    /// The level at which they stop: the threshold and its minimum reclaim.
    pub target: i64,
    pub evictions: Vec<PodReclaim>,
    /// Whether the target is reached; otherwise all pods that may be evicted are, and it is not enough.
    pub reaches_target: bool,
}

/// One eviction, one pass of the kubelet.
#[derive(Clone, Debug, PartialEq)]
pub struct PodReclaim {
    pub pod: RankedPod,
    /// The level of the signal after it.
    pub available: i64,
}

/// Evicts pods in the order of their ranking until the level reaches the threshold with its minimum reclaim. A pod that is
/// exempt is passed over; one whose usage is not known frees nothing.
pub fn reclaim(threshold: &Threshold, level: SignalLevel, ranking: &[RankedPod]) -> Reclaim {
    let target = threshold.target(level.capacity);
    let mut available = level.available;
    let mut evictions = Vec::new();
    let mut waiting = ranking.iter().filter(|pod| pod.exemption.is_none());
    while available < target {
        let Some(pod) = waiting.next() else { break };
        available = available.saturating_add(pod.usage.unwrap_or(0));
        evictions.push(PodReclaim { pod: pod.clone(), available });
    }
    Reclaim { target, evictions, reaches_target: available >= target }
}
