//! The configuration of the kubelets, as `/configz` shows it.

use serde_json::{Map, Value, json};

use crate::objects::memory_kib;
use kordon_time::Span;

/// An eviction threshold. It is met while less of the signal is available than `quantity`.
#[derive(Clone, Copy, Debug)]
pub struct DemoThreshold {
    pub signal: &'static str,
    /// An amount of the signal, or a percentage of its capacity.
    quantity: &'static str,
}

impl DemoThreshold {
    const fn new(signal: &'static str, quantity: &'static str) -> Self {
        Self { signal, quantity }
    }

    /// Returns the threshold in the unit of the signal: bytes, inodes or processes.
    pub fn bytes(&self, capacity: i64) -> i64 {
        match self.quantity.strip_suffix('%') {
            Some(percent) => capacity * percent.parse::<i64>().unwrap_or(0) / 100,
            None => memory_kib(self.quantity).unwrap_or(0) * 1024,
        }
    }
}

pub const SOFT_MEMORY: DemoThreshold = DemoThreshold::new("memory.available", "1536Mi");
pub const SOFT_DISK: DemoThreshold = DemoThreshold::new("nodefs.available", "20%");
pub const SOFT_PROCESSES: DemoThreshold = DemoThreshold::new("pid.available", "10%");
/// The hard memory threshold. The memory that is not allocatable includes this amount.
pub const HARD_MEMORY: DemoThreshold = DemoThreshold::new("memory.available", "512Mi");

const HARD: [DemoThreshold; 6] = [
    HARD_MEMORY,
    DemoThreshold::new("nodefs.available", "10%"),
    DemoThreshold::new("nodefs.inodesFree", "5%"),
    DemoThreshold::new("imagefs.available", "15%"),
    DemoThreshold::new("imagefs.inodesFree", "5%"),
    DemoThreshold::new("pid.available", "5%"),
];
/// The soft thresholds. Each has the time for which it must be met before pods are evicted.
const SOFT: [(DemoThreshold, Grace); 3] = [
    (SOFT_MEMORY, Grace { text: "1m30s", span: Span::from_secs(90) }),
    (SOFT_DISK, Grace { text: "2m0s", span: Span::from_secs(120) }),
    (SOFT_PROCESSES, Grace { text: "1m30s", span: Span::from_secs(90) }),
];
/// Minimum reclaim: once a threshold is met, evictions reclaim this amount beyond the threshold.
const MINIMUM_RECLAIM: [DemoThreshold; 2] =
    [DemoThreshold::new("memory.available", "512Mi"), DemoThreshold::new("nodefs.available", "1Gi")];

/// Time for which a condition stays True after its threshold was met for the last time.
pub const TRANSITION_PERIOD: Span = Span::from_secs(300);
/// Maximum grace period, in seconds, of pods that are evicted because of a soft threshold.
pub const MAX_POD_GRACE_SECONDS: i64 = 30;

/// The grace period of a soft threshold.
#[derive(Clone, Copy, Debug)]
struct Grace {
    text: &'static str,
    span: Span,
}

/// A threshold with its grace period and minimum reclaim.
#[derive(Clone, Copy, Debug)]
pub struct EvictionRule {
    pub threshold: DemoThreshold,
    /// Time for which a soft threshold must be met; None for a hard threshold.
    pub grace: Option<Span>,
    /// Minimum reclaim: the amount to reclaim beyond the threshold; None if there is no such amount.
    reclaim: Option<DemoThreshold>,
}

impl EvictionRule {
    /// Returns the minimum reclaim, an amount beyond the threshold, in the unit of the signal.
    pub fn reclaim(&self, capacity: i64) -> i64 {
        self.reclaim.map_or(0, |reclaim| reclaim.bytes(capacity))
    }
}

/// Returns all thresholds. Hard thresholds come before soft ones, and memory comes first.
pub fn rules() -> Vec<EvictionRule> {
    let reclaim = |signal: &str| MINIMUM_RECLAIM.into_iter().find(|reclaim| reclaim.signal == signal);
    let rule = |threshold: DemoThreshold, grace| EvictionRule {
        threshold,
        grace,
        reclaim: reclaim(threshold.signal),
    };
    let allocatable = DemoThreshold { signal: "allocatableMemory.available", ..HARD_MEMORY };
    let hard = HARD.into_iter().chain([allocatable]).map(|threshold| rule(threshold, None));
    let soft = SOFT.into_iter().map(|(threshold, grace)| rule(threshold, Some(grace.span)));
    let mut all: Vec<EvictionRule> = hard.chain(soft).collect();
    all.sort_by_key(|rule| !rule.threshold.signal.to_lowercase().contains("memory"));
    all
}

/// The response to `/configz`: the effective configuration of the kubelet (kubelet.config.k8s.io/v1beta1).
pub fn configz() -> Value {
    let parts = [general(), resources(), eviction()];
    let fields: Map<String, Value> = parts.into_iter().filter_map(into_map).flatten().collect();
    json!({"kubeletconfig": fields})
}

fn into_map(value: Value) -> Option<Map<String, Value>> {
    match value {
        Value::Object(map) => Some(map),
        _ => None,
    }
}

fn general() -> Value {
    json!({
        "enableServer": true,
        "staticPodPath": "/etc/kubernetes/manifests",
        "syncFrequency": "1m0s",
        "fileCheckFrequency": "20s",
        "address": "0.0.0.0",
        "port": 10250,
        "authentication": {
            "x509": {"clientCAFile": "/etc/kubernetes/pki/ca.crt"},
            "webhook": {"enabled": true, "cacheTTL": "2m0s"},
            "anonymous": {"enabled": false},
        },
        "eventRecordQPS": 50,
        "eventBurst": 100,
        "oomScoreAdj": -999,
        "clusterDomain": "cluster.local",
        "clusterDNS": ["10.96.0.10"],
        "nodeStatusUpdateFrequency": "10s",
        "nodeStatusReportFrequency": "5m0s",
        "nodeLeaseDurationSeconds": 40,
        "shutdownGracePeriod": "0s",
        "shutdownGracePeriodCriticalPods": "0s",
        "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
    })
}

fn resources() -> Value {
    json!({
        "imageMinimumGCAge": "2m0s",
        "imageMaximumGCAge": "0s",
        "imageGCHighThresholdPercent": 85,
        "imageGCLowThresholdPercent": 80,
        "volumeStatsAggPeriod": "1m0s",
        "cgroupsPerQOS": true,
        "cgroupDriver": "systemd",
        "cpuManagerPolicy": "none",
        "memoryManagerPolicy": "None",
        "topologyManagerPolicy": "none",
        "maxPods": 110,
        "podPidsLimit": -1,
        "failSwapOn": true,
        "memorySwap": {},
        "containerLogMaxSize": "10Mi",
        "containerLogMaxFiles": 5,
        "systemReserved": {"cpu": "50m", "memory": "512Mi"},
        "kubeReserved": {"cpu": "60m", "memory": "512Mi"},
        "enforceNodeAllocatable": ["pods"],
        "localStorageCapacityIsolation": true,
    })
}

fn eviction() -> Value {
    let quantities = |thresholds: &[DemoThreshold]| -> Value {
        let pair = |threshold: &DemoThreshold| (threshold.signal.to_owned(), json!(threshold.quantity));
        Value::Object(thresholds.iter().map(pair).collect())
    };
    let graces: Map<String, Value> =
        SOFT.iter().map(|(threshold, grace)| (threshold.signal.to_owned(), json!(grace.text))).collect();
    json!({
        "evictionHard": quantities(&HARD),
        "evictionSoft": quantities(&SOFT.map(|(threshold, _)| threshold)),
        "evictionSoftGracePeriod": graces,
        "evictionPressureTransitionPeriod": "5m0s",
        "evictionMaxPodGracePeriod": MAX_POD_GRACE_SECONDS,
        "evictionMinimumReclaim": quantities(&MINIMUM_RECLAIM),
        "mergeDefaultEvictionSettings": false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_is_a_quantity_or_a_percentage_of_the_capacity() {
        assert_eq!(SOFT_MEMORY.bytes(0), 1536 << 20);
        assert_eq!(SOFT_DISK.bytes(1000), 200);
        assert_eq!(rules()[0].threshold.signal, "memory.available");
    }
}
