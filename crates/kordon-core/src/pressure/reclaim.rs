//! What a kubelet reclaims for an eviction signal, in which order, and with what effect.

use std::{collections::BTreeSet, sync::Arc};

use super::{
    ranking::RankedPod,
    settings::Threshold,
    signal::EvictionSignal,
    stats::{FilesystemLayout, SignalLevel},
};
use crate::cluster::{Node, Pod};

/// Something that a kubelet frees on the node before it evicts a pod (docs/upstream/placement-and-pressure.md#6.5).
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

/// What the kubelet frees on the node for a signal, in order; empty for memory and process ids.
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

/// Total size in bytes of the node's images that none of its pods uses. The real size may be larger, because a kubelet
/// lists at most 50 images.
pub fn unused_images<'a>(node: &Node, pods: impl IntoIterator<Item = &'a Arc<Pod>>) -> i64 {
    let mut used = BTreeSet::new();
    for pod in pods.into_iter().filter(|pod| !pod.is_finished()) {
        let spec = &*pod.scheduling;
        used.extend(spec.images.iter().chain(&*spec.init_images).chain(&*spec.volume_images).cloned());
    }
    let unused = node.images.iter().filter(|image| !image.names.iter().any(|name| used.contains(name)));
    unused.fold(0, |sum, image| sum.saturating_add(image.size_bytes))
}

/// The evictions for one threshold, in order.
#[derive(Clone, Debug, PartialEq)]
pub struct Reclaim {
    /// The level at which evictions stop: the threshold plus its minimum reclaim.
    pub target: i64,
    pub evictions: Vec<PodReclaim>,
    /// Whether the evictions reach the target. If not, the level is below the target even after the eviction of all
    /// pods that may be evicted.
    pub reaches_target: bool,
}

/// One eviction, made by one pass of the kubelet.
#[derive(Clone, Debug, PartialEq)]
pub struct PodReclaim {
    pub pod: RankedPod,
    /// The level of the signal after the eviction.
    pub available: i64,
}

/// Evicts pods in the order of the ranking until the level reaches the threshold plus its minimum reclaim. Exempt pods
/// are skipped. Pods with unknown usage free nothing.
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        cluster::{Image, Key, KubeletSpec, PodResources, SchedulingSpec},
        pressure::{DiskUsage, NodeStats, PodDisk, PodUsage, Standing, ThresholdKind, ThresholdValue, rank},
    };

    /// A pod for the tests: priority, whether it is a mirror pod, request, and usage in bytes and in inodes or
    /// processes; `None` for unknown usage.
    type BriefPod = (i32, bool, i64, Option<(i64, i64)>);

    fn a_pod() -> impl Strategy<Value = BriefPod> {
        let priority = prop_oneof![Just(0), Just(100), Just(-5), Just(2_000_000_000)];
        let usage = prop::option::weighted(0.8, (0_i64..400, 0_i64..50));
        (priority, prop::bool::weighted(0.1), prop_oneof![Just(0), 0_i64..300], usage)
    }

    fn node_of(pods: &[BriefPod]) -> (Vec<Arc<Pod>>, NodeStats) {
        let mut stats = NodeStats::default();
        let mut all = Vec::new();
        for (number, (priority, mirror, request, usage)) in pods.iter().enumerate() {
            let kubelet = KubeletSpec {
                memory_request_bytes: *request,
                ephemeral_request_bytes: request / 2,
                ..KubeletSpec::default()
            };
            let key = Key::new("default", &format!("p{number}"));
            let resources = Arc::new(PodResources { kubelet, ..PodResources::default() });
            let pod =
                Pod { key: key.clone(), priority: *priority, mirror: *mirror, resources, ..Pod::default() };
            all.push(Arc::new(pod));
            if let Some((bytes, number)) = *usage {
                let writable = DiskUsage { bytes, inodes: number };
                let disk = Some(PodDisk { writable, ..PodDisk::default() });
                let usage = PodUsage { memory_bytes: Some(bytes), disk, processes: Some(number) };
                stats.pods.insert(key, usage);
            }
        }
        (all, stats)
    }

    fn a_threshold(signal: EvictionSignal) -> impl Strategy<Value = Threshold> {
        (0_i64..1000, prop::option::of(0_i64..500)).prop_map(move |(level, more)| Threshold {
            signal,
            kind: ThresholdKind::Hard,
            value: ThresholdValue::Amount(level),
            minimum_reclaim: more.map(ThresholdValue::Amount),
        })
    }

    proptest! {
        #[test]
        fn a_ranking_has_every_pod_once_in_an_order_that_does_not_depend_on_theirs(
            pods in prop::collection::vec(a_pod(), 0..12),
            signal in prop::sample::select(&EvictionSignal::ALL[..]),
            shift in 0_usize..12,
        ) {
            let (all, stats) = node_of(&pods);
            let ranking = rank(&all, &stats, signal, FilesystemLayout::Shared);
            let mut shifted = all.clone();
            shifted.rotate_left(shift.min(all.len()));
            prop_assert_eq!(&ranking, &rank(&shifted, &stats, signal, FilesystemLayout::Shared));
            let names: BTreeSet<_> = ranking.iter().map(|ranked| ranked.pod.key.clone()).collect();
            prop_assert_eq!(names.len(), all.len());
            for (number, pair) in ranking.windows(2).enumerate() {
                let [one, next] = pair else { unreachable!("pairs") };
                prop_assert!(next.place == one.place || next.place == number + 2);
                prop_assert!(one.standing <= next.standing);
                if one.standing == next.standing {
                    prop_assert!(one.pod.priority <= next.pod.priority);
                }
            }
        }

        #[test]
        fn reclaiming_reaches_the_target_with_no_pod_too_many_and_spares_who_is_exempt(
            pods in prop::collection::vec(a_pod(), 0..12),
            threshold in a_threshold(EvictionSignal::Memory),
            available in 0_i64..1500,
        ) {
            let (all, stats) = node_of(&pods);
            let ranking = rank(&all, &stats, EvictionSignal::Memory, FilesystemLayout::Shared);
            let level = SignalLevel { available, capacity: 10_000 };
            let reclaim = reclaim(&threshold, level, &ranking);
            prop_assert!(reclaim.evictions.iter().all(|eviction| eviction.pod.exemption.is_none()));
            let before_each = std::iter::once(available).chain(reclaim.evictions.iter().map(|one| one.available));
            for (before, eviction) in before_each.zip(&reclaim.evictions) {
                prop_assert!(before < reclaim.target, "one too many: {:?}", eviction.pod.pod.key);
                prop_assert_eq!(eviction.available - before, eviction.pod.usage.unwrap_or(0));
            }
            let reached = reclaim.evictions.last().map_or(available, |last| last.available);
            prop_assert_eq!(reclaim.reaches_target, reached >= reclaim.target);
            let evictable = ranking.iter().filter(|pod| pod.exemption.is_none());
            let evicted = reclaim.evictions.iter().map(|eviction| &eviction.pod);
            if reclaim.reaches_target {
                prop_assert!(evictable.zip(evicted).all(|(one, other)| one == other));
            } else {
                prop_assert!(evictable.eq(evicted));
            }
        }
    }

    #[test]
    fn usage_above_request_goes_before_priority_and_priority_before_the_amount() {
        let pods = [
            (0, false, 100, Some((600, 0))),
            (0, false, 100, Some((150, 0))),
            (1000, false, 100, Some((600, 0))),
            (1000, false, 100, Some((150, 0))),
            (0, false, 400, Some((200, 0))),
            (0, false, 900, Some((100, 0))),
            (1000, false, 400, Some((200, 0))),
            (1000, false, 900, Some((100, 0))),
        ];
        let (all, stats) = node_of(&pods);
        let ranking = rank(&all, &stats, EvictionSignal::Memory, FilesystemLayout::Shared);
        let names: Vec<&str> = ranking.iter().map(|ranked| &*ranked.pod.key.name).collect();
        assert_eq!(names, ["p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7"]);
        assert_eq!(ranking[4].standing, Standing::WithinRequest);
        assert_eq!(ranking[0].reason(), "uses 600, 500 above its request");
    }

    #[test]
    fn disk_is_reclaimed_on_the_node_first() {
        use FilesystemLayout::{DedicatedImages, Shared, Split};
        let words = |signal, layout| {
            node_reclaim(signal, layout).iter().map(|kind| kind.as_str()).collect::<Vec<_>>().join(", ")
        };
        for (signal, layout, freed) in [
            (EvictionSignal::Memory, Shared, ""),
            (EvictionSignal::Pids, Split, ""),
            (EvictionSignal::NodefsBytes, Shared, "dead containers, unused images"),
            (EvictionSignal::NodefsBytes, DedicatedImages, ""),
            (EvictionSignal::ImagefsInodes, DedicatedImages, "dead containers, unused images"),
            (EvictionSignal::ImagefsBytes, Split, "unused images"),
            (EvictionSignal::ContainerfsBytes, Split, "dead containers"),
        ] {
            assert_eq!(words(signal, layout), freed, "{signal} {layout:?}");
        }
    }

    #[test]
    fn an_image_is_unused_if_no_active_pod_names_it() {
        let image = |names: &[&str], size_bytes| Image { names: names.iter().copied().collect(), size_bytes };
        let images = [image(&["web:1", "web@sha256:ab"], 100), image(&["old:1"], 30)];
        let node = Node { images: images.into(), ..Node::default() };
        let spec = SchedulingSpec { images: ["web:1".into()].into(), ..SchedulingSpec::default() };
        let pod = Arc::new(Pod { scheduling: Arc::new(spec), ..Pod::default() });
        assert_eq!(unused_images(&node, [&pod]), 30);
        assert_eq!(unused_images(&node, []), 130);
    }
}
