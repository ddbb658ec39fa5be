//! Responses of kubelets (`/stats/summary` and `/configz`) and of metrics.k8s.io.
//!
//! Values that are missing or of another type count as not measured.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::leaf::{Amounts, Int, LenientList, Pairs, Quantity, Text, Time, or_default};
use kordon_core::{
    cluster::{Key, Name, NodeName, ShutdownPeriod, ShutdownPeriods},
    pressure::{
        DiskUsage, EvictionSettings, EvictionSettingsText, Filesystem, NodeStats, PodDisk, PodUsage,
        SignalLevel, UsageMetric,
    },
};
use kordon_time::Span;

/// Reads the measurements in `/stats/summary` (v1alpha1); `None` if the text is not a summary.
pub fn summary(json: &[u8]) -> Option<NodeStats> {
    let WireSummary { node: Some(node), pods } = serde_json::from_slice(json).ok()? else { return None };
    let images = node.runtime.image_fs.as_ref().and_then(WireFilesystem::levels);
    Some(NodeStats {
        measured: node.memory.as_ref().and_then(|memory| memory.time.time()),
        memory: node.memory.as_ref().and_then(WireMemory::level),
        allocatable_memory: node
            .system_containers
            .iter()
            .find(|container| *container.name == *"pods")
            .and_then(|container| container.memory.as_ref()?.level()),
        nodefs: node.fs.as_ref().and_then(WireFilesystem::levels),
        imagefs: images,
        containerfs: node.runtime.container_fs.as_ref().and_then(WireFilesystem::levels),
        pids: node.rlimit.as_ref().and_then(WireLimit::level),
        pods: pods.iter().map(|pod| (pod.pod_ref.key(), pod.usage())).collect(),
    })
}

/// Reads the eviction thresholds in `/configz`; `None` if the text is not a kubelet's configuration.
pub fn settings(json: &[u8]) -> Option<EvictionSettings> {
    let config = configuration(json)?;
    let map = |pairs: &Pairs<'_>| -> BTreeMap<String, String> {
        pairs.0.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
    };
    let graces = config.eviction_soft_grace_period.0.iter();
    Some(EvictionSettings::parse(&EvictionSettingsText {
        hard: map(&config.eviction_hard),
        soft: map(&config.eviction_soft),
        soft_grace: graces.filter_map(|(key, value)| Some((key.to_string(), duration(value)?))).collect(),
        minimum_reclaim: map(&config.eviction_minimum_reclaim),
        transition_period: duration(&config.eviction_pressure_transition_period),
        max_pod_grace: config.eviction_max_pod_grace_period.seconds(),
        pods_are_limited: config.enforce_node_allocatable.iter().any(|what| **what == *"pods"),
    }))
}

/// Reads the periods of graceful node shutdown in `/configz`; `None` if the text is not a kubelet's configuration
/// (upstream `newPodManager`).
pub fn shutdown_periods(json: &[u8]) -> Option<ShutdownPeriods> {
    let config = configuration(json)?;
    let by_priority = config.shutdown_grace_period_by_pod_priority.iter().map(|wire| ShutdownPeriod {
        priority: wire.priority.narrow().unwrap_or_default(),
        time: wire.shutdown_grace_period_seconds.seconds().unwrap_or_default(),
    });
    let by_priority = ShutdownPeriods::by_priority(by_priority);
    if !by_priority.as_slice().is_empty() {
        return Some(by_priority);
    }
    let period = |text: &str| duration(text).unwrap_or_default();
    let critical = period(&config.shutdown_grace_period_critical_pods);
    Some(ShutdownPeriods::new(period(&config.shutdown_grace_period), critical))
}

fn configuration(json: &[u8]) -> Option<WireConfiguration<'_>> {
    serde_json::from_slice::<WireConfigz<'_>>(json).ok()?.kubeletconfig
}

fn duration(text: &str) -> Option<Span> {
    humantime::parse_duration(text).ok().map(Span::from)
}

/// Reads the usage of each node, by node name, from a list of metrics.k8s.io; `None` if the text is not such a list.
pub fn node_metrics(json: &[u8]) -> Option<BTreeMap<NodeName, UsageMetric>> {
    let list: WireMetrics<'_> = serde_json::from_slice(json).ok()?;
    let row = |item: &WireMetric<'_>| {
        Some((NodeName::from(&*item.metadata.name), item.metric([item.usage.as_ref()?])))
    };
    Some(list.items?.iter().filter_map(row).collect())
}

/// Reads the usage of one node from metrics.k8s.io.
pub fn node_metric(json: &[u8]) -> Option<UsageMetric> {
    let item: WireMetric<'_> = serde_json::from_slice(json).ok()?;
    Some(item.metric([item.usage.as_ref()?]))
}

/// Reads the usage of each pod from a list of metrics.k8s.io; `None` if the text is not such a list. The usage of a pod
/// is the sum over its containers.
pub fn pod_metrics(json: &[u8]) -> Option<BTreeMap<Key, UsageMetric>> {
    let list: WireMetrics<'_> = serde_json::from_slice(json).ok()?;
    let row = |item: &WireMetric<'_>| {
        let usage = item.containers.iter().filter_map(|container| container.usage.as_ref());
        (item.metadata.key(), item.metric(usage))
    };
    Some(list.items?.iter().map(row).collect())
}

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct WireSummary<'a> {
    node: Option<WireNodeStats<'a>>,
    pods: LenientList<WirePodStats<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct WireNodeStats<'a> {
    memory: Option<WireMemory<'a>>,
    fs: Option<WireFilesystem>,
    #[serde(deserialize_with = "or_default")]
    runtime: WireRuntime,
    rlimit: Option<WireLimit>,
    system_containers: LenientList<WireContainerStats<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct WireRuntime {
    image_fs: Option<WireFilesystem>,
    container_fs: Option<WireFilesystem>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct WireMemory<'a> {
    time: Time<'a>,
    available_bytes: Int,
    working_set_bytes: Int,
}

impl WireMemory<'_> {
    /// Returns the available memory and the capacity, which is the sum of available and used memory.
    fn level(&self) -> Option<SignalLevel> {
        let (available, used) = (self.available_bytes.0?, self.working_set_bytes.0?);
        Some(SignalLevel { available, capacity: available.saturating_add(used) })
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct WireFilesystem {
    available_bytes: Int,
    capacity_bytes: Int,
    used_bytes: Int,
    inodes_free: Int,
    inodes: Int,
    inodes_used: Int,
}

impl WireFilesystem {
    fn levels(&self) -> Option<Filesystem> {
        let level = |available: Int, capacity: Int| {
            Some(SignalLevel { available: available.0?, capacity: capacity.0? })
        };
        let bytes = level(self.available_bytes, self.capacity_bytes);
        let inodes = level(self.inodes_free, self.inodes);
        (bytes.is_some() || inodes.is_some()).then_some(Filesystem { bytes, inodes })
    }

    fn usage(&self) -> DiskUsage {
        DiskUsage { bytes: self.used_bytes.or(0), inodes: self.inodes_used.or(0) }
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireLimit {
    maxpid: Int,
    curproc: Int,
}

impl WireLimit {
    fn level(&self) -> Option<SignalLevel> {
        let (capacity, used) = (self.maxpid.0?, self.curproc.0?);
        Some(SignalLevel { available: capacity.saturating_sub(used), capacity })
    }
}

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct WirePodStats<'a> {
    #[serde(rename = "podRef", deserialize_with = "or_default")]
    pod_ref: WireReference<'a>,
    containers: LenientList<WireContainerStats<'a>>,
    volume: LenientList<WireVolumeStats<'a>>,
    #[serde(deserialize_with = "or_default")]
    process_stats: WireProcesses,
}

impl WirePodStats<'_> {
    fn usage(&self) -> PodUsage {
        let containers = || self.containers.iter();
        let memory = containers().filter_map(|container| container.memory.as_ref()?.working_set_bytes.0);
        let disk = |of: fn(&WireContainerStats<'_>) -> Option<DiskUsage>| {
            containers().filter_map(of).fold(DiskUsage::default(), DiskUsage::plus)
        };
        let volumes = self.volume.iter().map(|volume| (Name::from(&*volume.name), volume.usage()));
        PodUsage {
            memory_bytes: memory.reduce(i64::saturating_add),
            disk: Some(PodDisk {
                writable: disk(|container| Some(container.rootfs.as_ref()?.usage())),
                logs: disk(|container| Some(container.logs.as_ref()?.usage())),
                volumes: volumes.collect(),
            }),
            processes: self.process_stats.process_count.0,
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct WireReference<'a> {
    name: Text<'a>,
    namespace: Text<'a>,
}

impl WireReference<'_> {
    fn key(&self) -> Key {
        Key::new(&self.namespace, &self.name)
    }
}

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct WireContainerStats<'a> {
    name: Text<'a>,
    memory: Option<WireMemory<'a>>,
    rootfs: Option<WireFilesystem>,
    logs: Option<WireFilesystem>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct WireVolumeStats<'a> {
    name: Text<'a>,
    used_bytes: Int,
    inodes_used: Int,
}

impl WireVolumeStats<'_> {
    fn usage(&self) -> DiskUsage {
        DiskUsage { bytes: self.used_bytes.or(0), inodes: self.inodes_used.or(0) }
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireProcesses {
    process_count: Int,
}

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct WireConfigz<'a> {
    kubeletconfig: Option<WireConfiguration<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct WireConfiguration<'a> {
    eviction_hard: Pairs<'a>,
    eviction_soft: Pairs<'a>,
    eviction_soft_grace_period: Pairs<'a>,
    eviction_minimum_reclaim: Pairs<'a>,
    eviction_pressure_transition_period: Text<'a>,
    eviction_max_pod_grace_period: Int,
    enforce_node_allocatable: LenientList<Text<'a>>,
    shutdown_grace_period: Text<'a>,
    shutdown_grace_period_critical_pods: Text<'a>,
    shutdown_grace_period_by_pod_priority: LenientList<WireShutdownPeriod>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct WireShutdownPeriod {
    priority: Int,
    shutdown_grace_period_seconds: Int,
}

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct WireMetrics<'a> {
    items: Option<Vec<WireMetric<'a>>>,
}

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct WireMetric<'a> {
    #[serde(deserialize_with = "or_default")]
    metadata: WireReference<'a>,
    timestamp: Time<'a>,
    /// Usage of a node; absent in the metrics of a pod.
    usage: Option<Amounts<'a>>,
    /// Usage of a pod's containers; absent in the metrics of a node.
    containers: LenientList<WireContainerMetric<'a>>,
}

impl WireMetric<'_> {
    fn metric<'u, 'a: 'u>(&self, usage: impl IntoIterator<Item = &'u Amounts<'a>>) -> UsageMetric {
        let mut sum = UsageMetric { measured: self.timestamp.time(), ..UsageMetric::default() };
        for amounts in usage {
            let cpu = amounts.amount("cpu").map_or(0, Quantity::milli);
            let memory = amounts.amount("memory").map_or(0, Quantity::units);
            sum.cpu_milli = sum.cpu_milli.saturating_add(cpu);
            sum.memory_bytes = sum.memory_bytes.saturating_add(memory);
        }
        sum
    }
}

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct WireContainerMetric<'a> {
    usage: Option<Amounts<'a>>,
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use kordon_core::pressure::{EvictionSignal, FilesystemLayout};

    fn bytes(value: &Value) -> Vec<u8> {
        value.to_string().into_bytes()
    }

    #[test]
    fn a_summary_has_the_levels_of_the_node_and_the_usage_of_its_pods() {
        let container = json!({
            "name": "c", "memory": {"workingSetBytes": 100}, "rootfs": {"usedBytes": 7, "inodesUsed": 2},
            "logs": {"usedBytes": 5, "inodesUsed": 1},
        });
        let json = json!({
            "node": {
                "nodeName": "n1",
                "memory": {"time": "2026-01-02T03:00:00Z", "availableBytes": 600, "workingSetBytes": 400},
                "fs": {"availableBytes": 50, "capacityBytes": 100, "inodesFree": 5, "inodes": 10},
                "runtime": {"imageFs": {"availableBytes": 70, "capacityBytes": 200}},
                "rlimit": {"maxpid": 1000, "curproc": 10},
                "systemContainers": [
                    {"name": "kubelet", "memory": {"availableBytes": 1, "workingSetBytes": 1}},
                    {"name": "pods", "memory": {"availableBytes": 300, "workingSetBytes": 200}},
                ],
            },
            "pods": [{
                "podRef": {"name": "web", "namespace": "shop", "uid": "u"},
                "containers": [container, container],
                "volume": [{"name": "data", "usedBytes": 11, "inodesUsed": 3}],
                "process_stats": {"process_count": 9},
            }],
        });
        let stats = summary(&bytes(&json)).expect("a summary");
        let level = |signal| stats.level(signal).map(|level| (level.available, level.capacity));
        assert_eq!(level(EvictionSignal::Memory), Some((600, 1000)));
        assert_eq!(level(EvictionSignal::AllocatableMemory), Some((300, 500)));
        assert_eq!(level(EvictionSignal::NodefsInodes), Some((5, 10)));
        assert_eq!(level(EvictionSignal::ImagefsBytes), Some((70, 200)));
        assert_eq!(level(EvictionSignal::ImagefsInodes), None);
        assert_eq!(level(EvictionSignal::Pids), Some((990, 1000)));
        assert_eq!(stats.layout(), FilesystemLayout::DedicatedImages);
        let usage = &stats.pods[&Key::new("shop", "web")];
        assert_eq!((usage.memory_bytes, usage.processes), (Some(200), Some(9)));
        let disk = usage.disk.as_ref().expect("measured");
        let sum = disk.measured(EvictionSignal::NodefsBytes, FilesystemLayout::Shared, &["data".into()]);
        assert_eq!(sum, DiskUsage { bytes: 14 + 10 + 11, inodes: 4 + 2 + 3 });
    }

    #[test]
    fn a_configuration_has_its_thresholds() {
        let json = json!({"kubeletconfig": {
            "evictionHard": {"memory.available": "200Mi"}, "evictionSoft": {"memory.available": "1Gi"},
            "evictionSoftGracePeriod": {"memory.available": "1m30s"},
            "evictionMinimumReclaim": {"memory.available": "500Mi"},
            "evictionPressureTransitionPeriod": "2m0s", "evictionMaxPodGracePeriod": 60,
            "enforceNodeAllocatable": ["pods"],
        }});
        let settings = settings(&bytes(&json)).expect("a configuration");
        let written: Vec<String> = settings.thresholds.iter().map(ToString::to_string).collect();
        let [hard, soft] = ["memory.available<200Mi", "memory.available<1Gi"];
        assert_eq!(written, [hard, soft, "allocatableMemory.available<200Mi"]);
        assert_eq!(settings.thresholds[1].grace(), Span::from_secs(90));
        assert_eq!(settings.transition_period, Span::from_secs(120));
        assert_eq!(settings.max_pod_grace, Span::from_secs(60));
    }

    /// What a kubelet of 1.37 does with these settings: `newPodManager` and `migrateConfig` of
    /// `pkg/kubelet/nodeshutdown/nodeshutdown_manager.go`.
    #[test]
    fn a_configuration_has_the_periods_of_a_shutdown() {
        let by_priority = json!([
            {"priority": 2_000_000_000, "shutdownGracePeriodSeconds": 20},
            {"priority": -5, "shutdownGracePeriodSeconds": 60},
        ]);
        for (requested, critical, by_priority, expected) in [
            ("45s", "15s", json!(null), &[(0, 30), (2_000_000_000, 15)][..]),
            ("1m30s", "0s", json!([]), &[(0, 90), (2_000_000_000, 0)]),
            ("0s", "0s", json!(null), &[]),
            ("0s", "0s", by_priority, &[(-5, 60), (2_000_000_000, 20)]),
        ] {
            let json = json!({"kubeletconfig": {
                "shutdownGracePeriod": requested, "shutdownGracePeriodCriticalPods": critical,
                "shutdownGracePeriodByPodPriority": by_priority,
            }});
            let periods = shutdown_periods(&bytes(&json)).expect("a configuration");
            let read: Vec<(i32, i64)> =
                periods.as_slice().iter().map(|period| (period.priority, period.time.as_secs())).collect();
            assert_eq!(read, expected, "{json}");
        }
    }

    #[test]
    fn metrics_of_pods_are_summed_over_their_containers() {
        let usage = json!({"cpu": "250m", "memory": "100Mi"});
        let pods = json!({"items": [{
            "metadata": {"name": "web", "namespace": "shop"}, "timestamp": "2026-01-02T03:00:00Z",
            "containers": [{"name": "a", "usage": usage}, {"name": "b", "usage": usage}],
        }]});
        let read = pod_metrics(&bytes(&pods)).expect("a list");
        let metric = read[&Key::new("shop", "web")];
        assert_eq!((metric.cpu_milli, metric.memory_bytes), (500, 200 << 20));
        let nodes = json!({"items": [{"metadata": {"name": "n1"}, "usage": usage}, {"metadata": {}}]});
        let read = node_metrics(&bytes(&nodes)).expect("a list");
        assert_eq!(read[&NodeName::from("n1")].cpu_milli, 250);
    }

    #[test]
    fn what_is_no_answer_of_a_kubelet_is_none() {
        for text in ["", "404 page not found", "[]", "{}", "null", "{\"kind\":\"Status\"}"] {
            assert_eq!(summary(text.as_bytes()), None, "{text}");
            assert!(settings(text.as_bytes()).is_none(), "{text}");
            assert_eq!(shutdown_periods(text.as_bytes()), None, "{text}");
            assert_eq!(node_metrics(text.as_bytes()), None, "{text}");
            assert_eq!(pod_metrics(text.as_bytes()), None, "{text}");
        }
    }
}
