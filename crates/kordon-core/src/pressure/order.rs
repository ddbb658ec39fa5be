//! What a kubelet would do about one signal of its node: which pods it evicts, in which order, and with what effect.

use std::sync::Arc;

use super::{
    ranking::{RankedPod, rank},
    reclaim::{NodeReclaim, Reclaim, node_reclaim, reclaim, unused_images},
    settings::{EvictionSettings, Threshold},
    signal::EvictionSignal,
    stats::{NodeStats, SignalLevel},
};
use crate::cluster::{Key, Node, Pod};

/// The evictions that pressure on one signal causes.
#[derive(Clone, Debug, PartialEq)]
pub struct EvictionOrder {
    pub signal: EvictionSignal,
    /// Current level of the signal; `None` if the signal is not measured.
    pub level: Option<SignalLevel>,
    /// The highest threshold of the signal, which is met first; `None` if the signal has no threshold and nothing is
    /// evicted.
    pub threshold: Option<Threshold>,
    /// Whether the threshold is met now. If the threshold is not met, `reclaim` assumes a level just below it.
    pub is_met: bool,
    /// What the kubelet frees on the node before it evicts any pod.
    pub node_reclaim: &'static [NodeReclaim],
    /// Minimum total size of unused images, in bytes; zero if images are not reclaimed for this signal.
    pub unused_image_bytes: i64,
    /// The pods that the kubelet has accepted, in order of eviction.
    pub ranking: Vec<RankedPod>,
    /// The predicted evictions; `None` if the signal has no level or no threshold.
    pub reclaim: Option<Reclaim>,
}

impl EvictionOrder {
    pub fn new<'a>(
        node: &Node,
        pods: impl IntoIterator<Item = &'a Arc<Pod>> + Clone,
        stats: &NodeStats,
        settings: &EvictionSettings,
        signal: EvictionSignal,
    ) -> Self {
        let (layout, level) = (stats.layout(), stats.level(signal));
        let capacity = level.map_or(0, |level| level.capacity);
        let threshold = settings.of(signal).max_by_key(|threshold| threshold.level(capacity)).cloned();
        // Pods that the kubelet has not accepted yet are not ranked. Under pressure the kubelet may reject them.
        let is_accepted = |pod: &&'a Arc<Pod>| pod.started.is_some() || stats.pods.contains_key(&pod.key);
        let ranking = rank(pods.clone().into_iter().filter(is_accepted), stats, signal, layout);
        let node_reclaim = node_reclaim(signal, layout);
        let frees_images = node_reclaim.contains(&NodeReclaim::UnusedImages) && signal.is_in_bytes();
        let is_met = level.zip(threshold.as_ref()).is_some_and(|(level, threshold)| threshold.is_met(level));
        let start = |level: SignalLevel, threshold: &Threshold| match is_met {
            true => level,
            false => SignalLevel { available: threshold.level(level.capacity).saturating_sub(1), ..level },
        };
        let reclaim = level
            .zip(threshold.as_ref())
            .map(|(level, threshold)| reclaim(threshold, start(level, threshold), &ranking));
        Self {
            signal,
            level,
            is_met,
            node_reclaim,
            unused_image_bytes: if frees_images { unused_images(node, pods) } else { 0 },
            ranking,
            reclaim,
            threshold,
        }
    }

    /// The evicted pods, in order.
    pub fn evicted(&self) -> impl Iterator<Item = &Arc<Pod>> {
        self.reclaim.iter().flat_map(|reclaim| &reclaim.evictions).map(|eviction| &eviction.pod.pod)
    }

    /// Returns the level of the signal after the eviction of a pod; `None` if the pod is not evicted.
    pub fn available_after(&self, pod: &Key) -> Option<i64> {
        let mut evictions = self.reclaim.iter().flat_map(|reclaim| &reclaim.evictions);
        evictions.find(|eviction| eviction.pod.pod.key == *pod).map(|eviction| eviction.available)
    }

    /// Describes what the kubelet frees on the node before it evicts pods, for example `dead containers and unused
    /// images (at least 343Mi)`; `None` for memory and process ids.
    pub fn node_reclaim_words(&self) -> Option<String> {
        let kinds: Vec<&str> = self.node_reclaim.iter().map(|kind| kind.as_str()).collect();
        let size = match self.unused_image_bytes {
            0 => String::new(),
            bytes => format!(" (at least {})", self.signal.amount(bytes)),
        };
        (!kinds.is_empty()).then(|| format!("{}{size}", kinds.join(" and ")))
    }

    /// Describes the evictions in one line, for example `if memory.available falls below 512Mi: 2 pods evicted, until
    /// 512Mi is available`.
    pub fn summary(&self) -> String {
        let Self { signal, threshold, reclaim, is_met, .. } = self;
        let Some(threshold) = threshold else {
            return format!("{signal} has no threshold: nothing is evicted for it");
        };
        let value = threshold.value.words(*signal);
        let when = match is_met {
            true => format!("{signal} is below {value}"),
            false => format!("if {signal} falls below {value}"),
        };
        let Some(reclaim) = reclaim else { return format!("{when}: its level is not known") };
        let pods = match reclaim.evictions.len() {
            1 => "1 pod".to_owned(),
            several => format!("{several} pods"),
        };
        let target = signal.amount(reclaim.target);
        match reclaim.reaches_target {
            true => format!("{when}: {pods} evicted, until {target} is available"),
            false => format!("{when}: {pods} evicted, and {target} is not reached"),
        }
    }
}
