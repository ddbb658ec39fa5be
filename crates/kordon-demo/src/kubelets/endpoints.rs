//! The HTTP endpoints of kubelets (`/stats/summary`, `/configz`), and the metrics server that reads them.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    Connection, Kubelets, config,
    usage::{ContainerSample, CpuSample, DiskSample, MachineSample, MemorySample, PodSample, VolumeSample},
};
use crate::{
    api::forward::{ForwardFailure, ForwardTarget, ForwardedRequest},
    objects::{Key, Node, Object, Pod, VolumeSource},
};
use kordon_time::{Span, Timestamp};

/// Interval at which the metrics server reads the kubelets, in seconds.
const SCRAPE_SECONDS: i64 = 15;
/// The size of the demo's persistent volumes.
const CLAIM_BYTES: i64 = 20 << 30;

impl Kubelets {
    pub(super) fn on_request(&self, request: ForwardedRequest) {
        let answer = match &request.target {
            ForwardTarget::Kubelet { node, path } => self.kubelet_answer(node, path),
            ForwardTarget::NodeMetrics(nodes) => {
                Ok(nodes.iter().filter_map(|node| self.node_metrics(node)).collect())
            }
            ForwardTarget::PodMetrics(pods) => Ok(pods
                .iter()
                .filter_map(|(namespace, name)| {
                    self.pod_metrics(&Key { namespace: namespace.clone(), name: name.clone() })
                })
                .collect()),
        };
        // Sending fails if the client has disconnected.
        let _ = request.reply.send(answer);
    }

    fn kubelet_answer(&self, node: &str, path: &str) -> Result<Value, ForwardFailure> {
        if !self.answers(node) {
            return Err(ForwardFailure::Unreachable);
        }
        match path {
            "/stats/summary" => {
                let now = self.clock.now();
                let (node, sample) = self.sample(node, now).ok_or(ForwardFailure::Unreachable)?;
                Ok(summary(node, &sample, now))
            }
            "/configz" => Ok(config::configz()),
            _ => Err(ForwardFailure::NoSuchPath),
        }
    }

    fn answers(&self, node: &str) -> bool {
        self.kubelets.get(node).is_some_and(|kubelet| kubelet.connection == Connection::Up)
    }

    /// Returns the node and the usage of a machine; None if the machine has no known Node object.
    pub(super) fn sample(&self, name: &str, now: Timestamp) -> Option<(&Arc<Node>, MachineSample<'_>)> {
        let node = self.nodes.object(&Key { namespace: String::new(), name: name.to_owned() })?;
        let kubelet = self.kubelets.get(name)?;
        let pods = kubelet.pods.iter().filter_map(|key| self.pods.object(key)).map(|pod| &**pod);
        let mut sample = MachineSample::new(node, pods, &kubelet.leaks, self.random, now);
        for condition in &kubelet.pressures {
            sample.add_cause(condition, now);
        }
        Some((node, sample))
    }

    /// Returns the time at which the metrics server has last read the kubelets.
    fn scraped(&self) -> Timestamp {
        let now = self.clock.now();
        now - Span::from_nanos(now.as_nanos() % (SCRAPE_SECONDS * 1_000_000_000))
    }

    fn node_metrics(&self, name: &str) -> Option<Value> {
        let at = self.scraped();
        if !self.answers(name) {
            return None;
        }
        let (node, sample) = self.sample(name, at)?;
        Some(json!({
            "kind": "NodeMetrics",
            "apiVersion": "metrics.k8s.io/v1beta1",
            "metadata": {
                "name": name,
                "labels": node.metadata.labels,
                "creationTimestamp": self.clock.now().to_time(),
            },
            "timestamp": at.to_time(),
            "window": "15.033s",
            "usage": quantities(sample.cpu, sample.memory()),
        }))
    }

    fn pod_metrics(&self, key: &Key) -> Option<Value> {
        let at = self.scraped();
        let pod = self.pods.object(key).filter(|pod| self.answers(&pod.spec.node_name))?;
        let has_leaks = |node: &str| self.kubelets.get(node).is_some_and(|kubelet| !kubelet.leaks.is_empty());
        let sample = if has_leaks(&pod.spec.node_name) {
            let (_, machine) = self.sample(&pod.spec.node_name, at)?;
            machine.pods.into_iter().find(|sample| sample.pod.uid() == pod.uid())?
        } else {
            PodSample::new(pod, self.random, at)?
        };
        // A pod has no metrics until the metrics server has read each of its containers.
        if sample.containers.is_empty() || sample.containers.iter().any(|container| container.started > at) {
            return None;
        }
        let container = |container: &ContainerSample| json!({"name": container.name, "usage": quantities(container.cpu, container.memory)});
        Some(json!({
            "kind": "PodMetrics",
            "apiVersion": "metrics.k8s.io/v1beta1",
            "metadata": {
                "name": key.name,
                "namespace": key.namespace,
                "labels": pod.metadata.labels,
                "creationTimestamp": self.clock.now().to_time(),
            },
            "timestamp": at.to_time(),
            "window": "15.033s",
            "containers": sample.containers.iter().map(container).collect::<Vec<_>>(),
        }))
    }
}

fn quantities(cpu: CpuSample, memory: MemorySample) -> Value {
    json!({"cpu": format!("{}n", cpu.nano_cores), "memory": format!("{}Ki", memory.working_set / 1024)})
}

/// The response to `/stats/summary` (stats/v1alpha1).
fn summary(node: &Node, sample: &MachineSample, now: Timestamp) -> Value {
    let at = now.to_time();
    let booted = node.metadata.creation_timestamp.as_ref().map(|time| time.0.to_string()).unwrap_or_default();
    let pods_memory = memory(sample.pods_memory(), sample.pods_memory_limit(), &at);
    let system = |name: &str, used: MemorySample| {
        json!({"name": name, "startTime": booted, "memory": memory(used, 0, &at),
            "cpu": {"time": at, "usageNanoCores": 18_000_000, "usageCoreNanoSeconds": 0}})
    };
    let pods: Vec<Value> = sample.pods.iter().map(|pod| pod_stats(pod, sample, &at)).collect();
    json!({
        "node": {
            "nodeName": node.name(),
            "systemContainers": [
                system("kubelet", sample.kubelet),
                system("runtime", sample.runtime),
                {"name": "pods", "startTime": booted, "cpu": cpu(sample.cpu, &at), "memory": pods_memory},
            ],
            "startTime": booted,
            "cpu": cpu(sample.cpu, &at),
            "memory": memory(sample.memory(), sample.memory_capacity, &at),
            "fs": filesystem(sample, sample.disk_used, &at),
            "runtime": {
                "imageFs": filesystem(sample, sample.images, &at),
                "containerFs": filesystem(sample, sample.images, &at),
            },
            "rlimit": {"time": at, "maxpid": sample.max_processes, "curproc": sample.processes},
            "swap": {"time": at, "swapAvailableBytes": 0, "swapUsageBytes": 0},
        },
        "pods": pods,
    })
}

fn pod_stats(sample: &PodSample, machine: &MachineSample, at: &str) -> Value {
    let pod: &Pod = sample.pod;
    let limits = sample.containers.iter().map(|container| container.memory_limit);
    // The pod's cgroup has a memory limit only if all containers of the pod have one.
    let limit = if limits.clone().all(|limit| limit > 0) { limits.sum() } else { 0 };
    let containers: Vec<Value> = sample
        .containers
        .iter()
        .map(|container| {
            json!({
                "name": container.name,
                "startTime": container.started.to_time(),
                "cpu": cpu(container.cpu, at),
                "memory": memory(container.memory, container.memory_limit, at),
                "rootfs": filesystem(machine, container.layer, at),
                "logs": filesystem(machine, container.logs, at),
                "swap": {"time": at, "swapUsageBytes": 0},
            })
        })
        .collect();
    let volumes: Vec<Value> =
        sample.volumes.iter().filter_map(|volume| volume_stats(volume, pod, machine, at)).collect();
    json!({
        "podRef": {
            "name": pod.metadata.name,
            "namespace": pod.metadata.namespace,
            "uid": pod.uid(),
        },
        "startTime": pod.status.start_time,
        "containers": containers,
        "cpu": cpu(sample.cpu(), at),
        "memory": memory(sample.memory, limit, at),
        "volume": volumes,
        "ephemeral-storage": filesystem(machine, sample.disk(), at),
        "process_stats": {"process_count": sample.processes},
        "swap": {"time": at, "swapUsageBytes": 0},
    })
}

/// Returns the usage of a volume; None if kubelets do not measure the usage of this kind of volume.
fn volume_stats(sample: &VolumeSample, pod: &Pod, machine: &MachineSample, at: &str) -> Option<Value> {
    let mut stats = match sample.volume.source() {
        VolumeSource::EmptyDir | VolumeSource::ConfigMap => filesystem(machine, sample.used, at),
        VolumeSource::InMemory => {
            let size = DiskSample { bytes: machine.memory_capacity, inodes: 4_000_000 };
            of_filesystem(size, sample.used, at)
        }
        VolumeSource::Claim(claim) => {
            let size = DiskSample { bytes: CLAIM_BYTES, inodes: CLAIM_BYTES / 16384 };
            let mut stats = of_filesystem(size, sample.used, at);
            stats["pvcRef"] = json!({"name": claim, "namespace": pod.metadata.namespace});
            stats
        }
        VolumeSource::Other => return None,
    };
    stats["name"] = json!(sample.volume.name);
    Some(stats)
}

fn cpu(sample: CpuSample, at: &str) -> Value {
    json!({"time": at, "usageNanoCores": sample.nano_cores, "usageCoreNanoSeconds": sample.core_nano_seconds})
}

/// Returns the statistics of memory. `limit` is in bytes; 0 means that there is no limit.
fn memory(sample: MemorySample, limit: i64, at: &str) -> Value {
    let mut stats = json!({
        "time": at,
        "usageBytes": sample.usage,
        "workingSetBytes": sample.working_set,
        "rssBytes": sample.rss,
        "pageFaults": sample.usage / 4096,
        "majorPageFaults": sample.usage / (4096 * 1000),
    });
    if limit > 0 {
        stats["availableBytes"] = json!((limit - sample.working_set).max(0));
    }
    stats
}

/// Returns the statistics of usage on the machine's only filesystem.
fn filesystem(machine: &MachineSample, used: DiskSample, at: &str) -> Value {
    let (size, free) = (machine.disk_capacity, machine.disk_available());
    json!({
        "time": at,
        "availableBytes": free.bytes,
        "capacityBytes": size.bytes,
        "usedBytes": used.bytes,
        "inodesFree": free.inodes,
        "inodes": size.inodes,
        "inodesUsed": used.inodes,
    })
}

/// Returns the statistics of usage on a separate filesystem of this size.
fn of_filesystem(size: DiskSample, used: DiskSample, at: &str) -> Value {
    json!({
        "time": at,
        "availableBytes": (size.bytes - used.bytes).max(0),
        "capacityBytes": size.bytes,
        "usedBytes": used.bytes,
        "inodesFree": (size.inodes - used.inodes).max(0),
        "inodes": size.inodes,
        "inodesUsed": used.inodes,
    })
}
