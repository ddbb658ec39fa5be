//! Recordings of the kubelet's own functions: the order in which it evicts pods, QoS classes, and OOM scores.

use std::{collections::BTreeMap, sync::Arc};

use kordon::k8s::decode::pod::PodDecoder;
use kordon_core::{
    cluster::{Cluster, Pod},
    engine::ServerVersion,
    pressure::{
        DiskUsage, EvictionSignal, Exemption, FilesystemLayout, KubeletRules, NodeStats, PodDisk, PodUsage,
        oom_score_adj, rank,
    },
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::common::placements;

/// One recording: the pods of a node, their usage, and the kubelet's ranking of them.
#[derive(Clone, Debug, Deserialize)]
pub struct PressureRecording {
    pub name: String,
    pods: Vec<BriefPod>,
    /// Memory capacity of the node in bytes.
    memory_capacity: i64,
    pub recorded: RecordedRankings,
}

#[derive(Clone, Debug, Deserialize)]
pub struct RecordedRankings {
    version: String,
    /// Groups of equally ranked pods by eviction signal, first evicted first. The suffix ` with imagefs` stands for a
    /// node with a separate filesystem for images.
    pub first_evicted_first: BTreeMap<String, Vec<Vec<String>>>,
    pub pods: BTreeMap<String, RecordedPod>,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct RecordedPod {
    /// Whether the pod is critical and so never evicted.
    pub critical: bool,
    /// The `oom_score_adj` of each container.
    pub oom_score_adj: Vec<i64>,
    pub qos: String,
}

#[derive(Clone, Debug, Deserialize)]
struct BriefPod {
    name: String,
    priority: Option<i64>,
    containers: Vec<BriefContainer>,
    /// Bytes in the pod's emptyDir; `None` without one.
    emptydir: Option<i64>,
    emptydir_inodes: i64,
    processes: i64,
    /// Whether the kubelet has stats of the pod.
    stats: bool,
    /// Memory overhead of the pod's runtime class.
    overhead: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
struct BriefContainer {
    name: String,
    requests: Value,
    limits: Value,
    memory: i64,
    rootfs: i64,
    logs: i64,
    rootfs_inodes: i64,
    logs_inodes: i64,
}

impl PressureRecording {
    /// Describes the differences between kordon's predictions and the recording; empty if they agree.
    pub fn differences(&self) -> Vec<String> {
        let cluster = self.cluster();
        let pods: Vec<Arc<Pod>> = cluster.pods().iter().cloned().collect();
        let mut differences = self.differences_of_order(&pods);
        let rules =
            KubeletRules::for_version(ServerVersion::parse(&self.recorded.version).expect("a version"));
        for pod in &pods {
            let kubelet = &pod.resources.kubelet;
            let scores = kubelet
                .containers
                .iter()
                .map(|container| oom_score_adj(pod, container, self.memory_capacity, rules));
            let ours = RecordedPod {
                critical: Exemption::from_pod(pod).is_some(),
                oom_score_adj: scores.collect(),
                qos: kubelet.qos.as_str().into(),
            };
            let seen = &self.recorded.pods[&*pod.key.name];
            if *seen != ours {
                differences.push(format!("{}: seen {seen:?}, predicted {ours:?}", pod.key.name));
            }
        }
        differences
    }

    fn differences_of_order(&self, pods: &[Arc<Pod>]) -> Vec<String> {
        let stats = self.stats(pods);
        let difference = |(name, seen): (&String, &Vec<Vec<String>>)| {
            let (signal, layout) = match name.strip_suffix(" with imagefs") {
                Some(signal) => (signal, FilesystemLayout::DedicatedImages),
                None => (&**name, FilesystemLayout::Shared),
            };
            let signal = EvictionSignal::parse(signal).expect("a signal");
            let mut ours: BTreeMap<usize, Vec<String>> = BTreeMap::new();
            for ranked in rank(pods, &stats, signal, layout) {
                ours.entry(ranked.place).or_default().push(ranked.pod.key.name.to_string());
            }
            let ours: Vec<Vec<String>> = ours.into_values().collect();
            let mut seen = seen.clone();
            seen.iter_mut().for_each(|group| group.sort());
            (seen != ours).then(|| format!("{name}: seen {seen:?}, predicted {ours:?}"))
        };
        self.recorded.first_evicted_first.iter().filter_map(difference).collect()
    }

    fn cluster(&self) -> Cluster {
        let mut cluster = Cluster::default();
        let pods = self.pods.iter().map(BriefPod::object).collect();
        placements::list(&mut cluster, &mut PodDecoder::default(), pods);
        cluster
    }

    fn stats(&self, pods: &[Arc<Pod>]) -> NodeStats {
        let measured = self.pods.iter().filter(|pod| pod.stats);
        let usage = measured.map(|pod| {
            let key = pods.iter().map(|known| &known.key).find(|key| *key.name == *pod.name);
            (key.expect("one of them").clone(), pod.usage())
        });
        NodeStats { pods: usage.collect(), ..NodeStats::default() }
    }
}

impl BriefPod {
    /// Builds the pod as the API server returns it.
    fn object(&self) -> Value {
        let containers: Vec<Value> = self.containers.iter().map(BriefContainer::object).collect();
        let volumes = self.emptydir.map(|_| json!([{"name": "data", "emptyDir": {}}]));
        let overhead = self.overhead.as_ref().map(|memory| json!({"memory": memory}));
        json!({
            "metadata": {"name": self.name, "namespace": "default", "uid": self.name},
            "spec": {
                "containers": containers, "volumes": volumes, "overhead": overhead,
                "priority": self.priority, "nodeName": "n",
            },
            "status": {"phase": "Running"},
        })
    }

    fn usage(&self) -> PodUsage {
        let sum = |of: fn(&BriefContainer) -> i64| self.containers.iter().map(of).sum();
        let volume = |bytes| ("data".into(), DiskUsage { bytes, inodes: self.emptydir_inodes });
        PodUsage {
            memory_bytes: Some(sum(|container| container.memory)),
            disk: Some(PodDisk {
                writable: DiskUsage {
                    bytes: sum(|container| container.rootfs),
                    inodes: sum(|container| container.rootfs_inodes),
                },
                logs: DiskUsage {
                    bytes: sum(|container| container.logs),
                    inodes: sum(|container| container.logs_inodes),
                },
                volumes: self.emptydir.map(volume).into_iter().collect(),
            }),
            processes: Some(self.processes),
        }
    }
}

impl BriefContainer {
    fn object(&self) -> Value {
        json!({
            "name": self.name, "image": "img",
            "resources": {"requests": self.requests, "limits": self.limits},
        })
    }
}
