//! Pressure on a node, for programs (`docs/reference/pressure.md`).

use serde::Serialize;

use crate::model::{NodePressure, SignalPressure};
use kordon_core::{
    cluster::{NodeName, Pod},
    placement::Caveat,
    plan::Failover,
    pressure::{EvictionOrder, EvictionSignal, RankedPod, Threshold, oom_score_adj},
};
use kordon_time::Timestamp;

/// Pressure on a node. Every field is always present; unknown values are null.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PressureReport {
    /// `kordon.pressure/v1`: fields are added, never removed or renamed.
    schema: &'static str,
    /// When the report was made.
    pub(super) taken_at: Timestamp,
    /// The node.
    pub(super) node: NodeName,
    /// The pressure conditions that are True: `MemoryPressure`, `DiskPressure`, `PIDPressure`.
    pub(super) conditions: Vec<&'static str>,
    /// Where usage comes from; `null` if usage is unknown.
    pub(super) usage: Option<UsageReport>,
    /// Why usage is unknown.
    pub(super) usage_error: Option<String>,
    /// Source of the thresholds: `kubelet` (its own) or `defaults` (of its release).
    pub(super) thresholds: &'static str,
    /// Why the kubelet's own thresholds are unknown.
    pub(super) thresholds_error: Option<String>,
    /// Thresholds of the kubelet that could not be parsed, as configured.
    pub(super) ignored_thresholds: Vec<String>,
    pub(super) signals: Vec<SignalReport>,
    pub(super) eviction: EvictionOrderReport,
    /// Aspects that the placements of replacements ignore, in the words of `pods[].placement.caveats[]` of [`kordon
    /// plan`](plan.md#pods); empty in `kordon why`.
    pub(super) placement_caveats: Vec<&'static str>,
}

/// Source of usage.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub(super) struct UsageReport {
    /// The source of the usage: `kubelet`, or `metrics.k8s.io`, which only has the memory of pods.
    pub source: &'static str,
    /// When usage was measured.
    pub measured_at: Timestamp,
}

/// An eviction signal. Amounts are in bytes, inodes or processes.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub(super) struct SignalReport {
    /// The signal: `memory.available`, `allocatableMemory.available`, `nodefs.available`, `nodefs.inodesFree`,
    /// `imagefs.available`, `imagefs.inodesFree`, `containerfs.available`, `containerfs.inodesFree` or `pid.available`.
    pub signal: &'static str,
    #[serde(skip)]
    pub measure: EvictionSignal,
    /// The available amount, in bytes, inodes or processes.
    pub available: Option<i64>,
    /// The capacity, in bytes, inodes or processes.
    pub capacity: Option<i64>,
    pub thresholds: Vec<ThresholdReport>,
    /// Distance of the signal's level from the threshold that is met first; negative if the level is below that
    /// threshold.
    pub distance: Option<i64>,
    /// When the signal's level reaches the threshold that is met first, if it goes on to fall as in the last ten
    /// minutes.
    pub reaches_threshold_in_seconds: Option<f64>,
    /// The latest time at which the kubelet evicts pods because a threshold of the signal is met; `null` if none is
    /// met.
    pub evicts_at: Option<Timestamp>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub(super) struct ThresholdReport {
    /// The threshold as configured.
    pub value: String,
    /// Level of the signal at the threshold; `null` if the capacity is unknown.
    pub level: Option<i64>,
    /// Kind of the threshold: `hard` or `soft`.
    pub kind: &'static str,
    /// How long the threshold must be met before the kubelet evicts.
    pub grace_seconds: f64,
    /// Level of the signal at which evictions stop.
    pub target: Option<i64>,
    /// Whether the threshold is met.
    pub met: Option<bool>,
}

/// The kubelet's actions when a signal falls below its threshold.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub(super) struct EvictionOrderReport {
    /// The signal that the eviction is for.
    pub signal: &'static str,
    /// Summary of the evictions in one line.
    #[serde(skip)]
    pub summary: String,
    /// What the kubelet frees on the node before it evicts pods, as text.
    #[serde(skip)]
    pub node_reclaim_words: Option<String>,
    #[serde(skip)]
    pub measure: EvictionSignal,
    /// The node condition that the kubelet sets at once.
    pub condition: &'static str,
    /// The taint that the controller adds for this node condition.
    pub taint: String,
    /// The threshold that is met first; `null` if the signal has no threshold, so that nothing is evicted.
    pub threshold: Option<String>,
    /// Whether a threshold of the signal is met now. Otherwise the kubelet acts as soon as one is met.
    pub met: bool,
    /// What the kubelet frees on the node before it evicts pods: `dead containers`, `unused images`.
    pub node_reclaim: Vec<&'static str>,
    /// The size of the unused images that the node lists.
    pub unused_image_bytes: i64,
    /// The level of the signal at which evictions stop.
    pub target: Option<i64>,
    /// Whether evictions raise the signal to the level at which they stop.
    pub reaches_target: Option<bool>,
    /// All pods on the node in the order of eviction.
    pub pods: Vec<RankedPodReport>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub(super) struct RankedPodReport {
    /// The pod's namespace.
    pub namespace: String,
    /// The pod's name.
    pub pod: String,
    /// The pod's place in the order of eviction, from 1; pods with the same place are evicted in any order.
    pub place: usize,
    /// The pod's priority.
    pub priority: i32,
    /// The pod's QoS class, which does not decide the order.
    pub qos: &'static str,
    /// The pod's usage of the resource that is short; `null` if unknown.
    pub usage: Option<i64>,
    /// The pod's request for the resource that is short.
    pub request: i64,
    /// Why the pod has its place in the order of eviction, as text.
    pub reason: String,
    /// Why the pod is never evicted: `static pod` or `critical priority`.
    pub exempt: Option<&'static str>,
    /// Whether the pod is evicted before the signal reaches the level at which evictions stop.
    pub evicted: bool,
    /// Level of the signal after the pod's eviction.
    pub available_after: Option<i64>,
    /// The highest `oom_score_adj` of the pod's containers. When memory runs out, the kernel first kills containers
    /// with a high value.
    pub oom_score_adj: Option<i64>,
    /// Where the replacement lands: `node`, `pending`, `rejected` (the kubelet of the node that its template names
    /// rejects it), `sameNode` (its DaemonSet recreates it there), `lost` (no controller recreates it), `notReplaced`
    /// or `unknown`; `null` if the pod is not evicted, and in `kordon why`.
    pub landing: Option<&'static str>,
    /// The node that the replacement lands on.
    pub landing_node: Option<NodeName>,
    /// Why the replacement lands on this node, or why on none.
    pub landing_reason: Option<String>,
}

impl PressureReport {
    pub fn new(node: &NodeName, pressure: &NodePressure, at: Timestamp) -> Self {
        Self {
            schema: "kordon.pressure/v1",
            taken_at: at,
            node: node.clone(),
            conditions: pressure.conditions.iter().map(|condition| condition.as_str()).collect(),
            usage: pressure.usage.as_ref().ok().map(|(source, measured_at)| UsageReport {
                source: source.as_str(),
                measured_at: *measured_at,
            }),
            usage_error: pressure.usage.as_ref().err().cloned(),
            thresholds: if pressure.assumed_thresholds.is_some() { "defaults" } else { "kubelet" },
            thresholds_error: pressure.assumed_thresholds.clone(),
            ignored_thresholds: pressure.ignored_thresholds.clone(),
            signals: pressure.signals.iter().map(SignalReport::new).collect(),
            eviction: EvictionOrderReport::new(pressure),
            placement_caveats: Vec::new(),
        }
    }

    /// Adds the placements of the evicted pods' replacements.
    pub fn add_landings(&mut self, failover: &Failover) {
        self.placement_caveats = failover.trace.caveats().into_iter().map(Caveat::word).collect();
        for row in self.eviction.pods.iter_mut().filter(|row| row.evicted) {
            let is_it = |pod: &Pod| *pod.key.namespace == *row.namespace && *pod.key.name == *row.pod;
            let Some(found) = failover.pods.iter().find(|other| is_it(&other.pod)) else { continue };
            row.landing = Some(match &found.landing {
                Some(landing) => {
                    row.landing_node = landing.node().cloned();
                    row.landing_reason = landing.why().map(ToString::to_string);
                    landing.word()
                }
                None => found.outcome.kind().word(),
            });
        }
    }
}

impl SignalReport {
    fn new(pressure: &SignalPressure) -> Self {
        Self {
            signal: pressure.signal.as_str(),
            measure: pressure.signal,
            available: pressure.level.map(|level| level.available),
            capacity: pressure.level.map(|level| level.capacity),
            thresholds: pressure.thresholds.iter().map(|one| ThresholdReport::new(one, pressure)).collect(),
            distance: pressure.distance(),
            reaches_threshold_in_seconds: pressure.reaches_threshold.map(|span| span.as_secs_f64()),
            evicts_at: pressure.evicts.as_ref().map(|(_, at)| *at),
        }
    }
}

impl ThresholdReport {
    fn new(threshold: &Threshold, pressure: &SignalPressure) -> Self {
        Self {
            value: threshold.value.words(threshold.signal),
            level: pressure.level.map(|level| threshold.level(level.capacity)),
            kind: threshold.kind.as_str(),
            grace_seconds: threshold.grace().as_secs_f64(),
            target: pressure.level.map(|level| threshold.target(level.capacity)),
            met: pressure.level.map(|level| threshold.is_met(level)),
        }
    }
}

impl EvictionOrderReport {
    fn new(pressure: &NodePressure) -> Self {
        let order = &pressure.order;
        let condition = order.signal.condition();
        let reclaim = order.reclaim.as_ref();
        Self {
            signal: order.signal.as_str(),
            summary: order.summary(),
            node_reclaim_words: order.node_reclaim_words(),
            measure: order.signal,
            condition: condition.as_str(),
            taint: format!("{}:NoSchedule", condition.taint_key()),
            threshold: order.threshold.as_ref().map(ToString::to_string),
            met: order.is_met,
            node_reclaim: order.node_reclaim.iter().map(|kind| kind.as_str()).collect(),
            unused_image_bytes: order.unused_image_bytes,
            target: reclaim.map(|reclaim| reclaim.target),
            reaches_target: reclaim.map(|reclaim| reclaim.reaches_target),
            pods: order.ranking.iter().map(|pod| RankedPodReport::new(pod, order, pressure)).collect(),
        }
    }
}

impl RankedPodReport {
    fn new(ranked: &RankedPod, order: &EvictionOrder, pressure: &NodePressure) -> Self {
        let RankedPod { pod, place, usage, request, exemption, .. } = ranked;
        let kubelet = &pod.resources.kubelet;
        let available_after = order.available_after(&pod.key);
        let scores = |capacity| {
            kubelet.containers.iter().map(move |one| oom_score_adj(pod, one, capacity, pressure.rules))
        };
        Self {
            namespace: pod.key.namespace.to_string(),
            pod: pod.key.name.to_string(),
            place: *place,
            priority: pod.priority,
            qos: kubelet.qos.as_str(),
            usage: *usage,
            request: *request,
            reason: ranked.reason(),
            exempt: exemption.map(|exemption| exemption.as_str()),
            evicted: available_after.is_some(),
            available_after,
            oom_score_adj: pressure.memory_capacity.and_then(|capacity| scores(capacity).max()),
            landing: None,
            landing_node: None,
            landing_reason: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::documented;

    #[test]
    fn the_page_documents_every_field() {
        documented::check::<PressureReport>("pressure");
    }
}
