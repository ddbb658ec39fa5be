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
#[serde(rename_all = "camelCase")]
pub struct PressureReport {
    /// `kordon.pressure/v1`: fields are added, never removed or renamed.
    schema: &'static str,
    pub(super) taken_at: Timestamp,
    pub(super) node: NodeName,
    /// Pressure conditions that are True: `MemoryPressure`, `DiskPressure`, `PIDPressure`.
    pub(super) conditions: Vec<&'static str>,
    pub(super) usage: Option<UsageReport>,
    /// Why usage is unknown.
    pub(super) usage_error: Option<String>,
    /// Source of the thresholds: `kubelet` or `defaults`.
    pub(super) thresholds: &'static str,
    /// Why the kubelet's own thresholds are unknown.
    pub(super) thresholds_error: Option<String>,
    /// Thresholds of the kubelet that could not be parsed.
    pub(super) ignored_thresholds: Vec<String>,
    pub(super) signals: Vec<SignalReport>,
    pub(super) eviction: EvictionOrderReport,
    /// Aspects that placements ignore: `sampled`, `oneSample` and the other words of `kordon plan`.
    pub(super) placement_caveats: Vec<&'static str>,
}

/// Source of usage.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UsageReport {
    /// Source of the measurements: `kubelet`, or `metrics.k8s.io`, which only has the memory of pods.
    pub source: &'static str,
    pub measured_at: Timestamp,
}

/// An eviction signal. Amounts are in bytes, inodes or processes.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SignalReport {
    pub signal: &'static str,
    #[serde(skip)]
    pub measure: EvictionSignal,
    pub available: Option<i64>,
    pub capacity: Option<i64>,
    pub thresholds: Vec<ThresholdReport>,
    /// Distance by which the level is above the nearest threshold. A falling level reaches that threshold first.
    pub distance: Option<i64>,
    /// Time until the level reaches the nearest threshold at the current trend.
    pub reaches_threshold_in_seconds: Option<f64>,
    /// When the kubelet evicts because the signal meets a threshold; null if the signal meets none.
    pub evicts_at: Option<Timestamp>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ThresholdReport {
    /// Value as configured.
    pub value: String,
    /// Level of the signal at the threshold; null if the capacity is unknown.
    pub level: Option<i64>,
    /// Kind of the threshold: `hard` or `soft`.
    pub kind: &'static str,
    pub grace_seconds: f64,
    /// Level at which evictions stop.
    pub target: Option<i64>,
    pub met: Option<bool>,
}

/// The kubelet's actions when a signal falls below its threshold.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct EvictionOrderReport {
    pub signal: &'static str,
    /// Summary in one line.
    #[serde(skip)]
    pub summary: String,
    /// What the kubelet frees on the node before it evicts pods, as text.
    #[serde(skip)]
    pub node_reclaim_words: Option<String>,
    #[serde(skip)]
    pub measure: EvictionSignal,
    /// Condition and taint that are set at once.
    pub condition: &'static str,
    pub taint: String,
    /// Threshold of the signal; null if the signal has no threshold, so that nothing is evicted.
    pub threshold: Option<String>,
    /// Whether the threshold is met now. Otherwise the actions start later, as soon as the threshold is met.
    pub met: bool,
    /// What the kubelet frees on the node before it evicts pods: `dead containers`, `unused images`.
    pub node_reclaim: Vec<&'static str>,
    /// Lower bound of the size of unused images.
    pub unused_image_bytes: i64,
    /// Level at which evictions stop.
    pub target: Option<i64>,
    /// Whether evictions reach the target.
    pub reaches_target: Option<bool>,
    /// All pods on the node in order of eviction.
    pub pods: Vec<RankedPodReport>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RankedPodReport {
    pub namespace: String,
    pub pod: String,
    /// Place from 1. The order of pods with equal places is undefined.
    pub place: usize,
    pub priority: i32,
    pub qos: &'static str,
    pub usage: Option<i64>,
    pub request: i64,
    pub reason: String,
    /// Why the pod is never evicted: `static pod` or `critical priority`.
    pub exempt: Option<&'static str>,
    /// Whether the pod is evicted before the target is reached.
    pub evicted: bool,
    /// Level of the signal after the pod's eviction.
    pub available_after: Option<i64>,
    /// Highest `oom_score_adj` of the pod's containers. When memory runs out, the kernel first kills containers with a
    /// high value.
    pub oom_score_adj: Option<i64>,
    /// Where the replacement lands: `node`, `pending`, `sameNode`, `lost`, `notReplaced` or `unknown`; null if the pod
    /// is not evicted or placements were not computed.
    pub landing: Option<&'static str>,
    pub landing_node: Option<NodeName>,
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
    fn every_field_is_documented() {
        let (text, at) = (|| "x".to_owned(), Timestamp::EPOCH);
        let report = PressureReport {
            schema: "kordon.pressure/v1",
            taken_at: at,
            node: "n".into(),
            conditions: vec!["DiskPressure"],
            usage: Some(UsageReport { source: "kubelet", measured_at: at }),
            usage_error: Some(text()),
            thresholds: "kubelet",
            thresholds_error: Some(text()),
            ignored_thresholds: vec![text()],
            signals: vec![SignalReport {
                signal: "memory.available",
                measure: EvictionSignal::Memory,
                available: Some(1),
                capacity: Some(2),
                thresholds: vec![ThresholdReport {
                    value: text(),
                    level: Some(1),
                    kind: "hard",
                    grace_seconds: 0.0,
                    target: Some(1),
                    met: Some(false),
                }],
                distance: Some(1),
                reaches_threshold_in_seconds: Some(1.0),
                evicts_at: Some(at),
            }],
            eviction: EvictionOrderReport {
                signal: "memory.available",
                summary: text(),
                node_reclaim_words: Some(text()),
                measure: EvictionSignal::Memory,
                condition: "MemoryPressure",
                taint: text(),
                threshold: Some(text()),
                met: true,
                node_reclaim: vec!["unused images"],
                unused_image_bytes: 1,
                target: Some(1),
                reaches_target: Some(true),
                pods: vec![RankedPodReport {
                    namespace: text(),
                    pod: text(),
                    place: 1,
                    priority: 0,
                    qos: "Burstable",
                    usage: Some(1),
                    request: 1,
                    reason: text(),
                    exempt: Some("static pod"),
                    evicted: true,
                    available_after: Some(1),
                    oom_score_adj: Some(1),
                    landing: Some("node"),
                    landing_node: Some("m".into()),
                    landing_reason: Some(text()),
                }],
            },
            placement_caveats: vec!["sampled"],
        };
        documented::check(&report, include_str!("../../../docs/reference/pressure.md"));
    }
}
