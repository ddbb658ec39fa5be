//! Usage of containers, pods and machines: memory, CPU, disk, inodes and processes.
//!
//! No usage is stored. Each number is computed from the seed, the object's uid and the time. It changes slowly around a
//! mean. The mean is below the request for most pods, and above it for a few.

use std::{collections::BTreeMap, f64::consts::TAU};

use fastrand::Rng;

use super::config;
use crate::{
    objects::{Container, MountedVolume, Node, Object, Pod, VolumeSource, cpu_milli, memory_kib},
    random::RandomSource,
};
use kordon_time::Timestamp;

/// Usage of the containers of one pod.
#[derive(Clone, Debug)]
pub struct PodSample<'a> {
    pub pod: &'a Pod,
    pub containers: Vec<ContainerSample<'a>>,
    pub volumes: Vec<VolumeSample<'a>>,
    /// Memory of the pod's cgroup: its containers and its sandbox.
    pub memory: MemorySample,
    pub processes: i64,
}

/// Usage of one container.
#[derive(Clone, Debug)]
pub struct ContainerSample<'a> {
    pub name: &'a str,
    pub started: Timestamp,
    pub memory: MemorySample,
    /// Memory limit in bytes; 0 if the container has no limit.
    pub memory_limit: i64,
    pub cpu: CpuSample,
    /// Disk usage of the writable layer.
    pub layer: DiskSample,
    pub logs: DiskSample,
}

/// Memory in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemorySample {
    pub working_set: i64,
    /// Memory in use, including page cache that the kernel can drop.
    pub usage: i64,
    pub rss: i64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuSample {
    /// CPU usage in billionths of a core.
    pub nano_cores: i64,
    /// CPU time since the start, in billionths of a core second.
    pub core_nano_seconds: i64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskSample {
    pub bytes: i64,
    pub inodes: i64,
}

#[derive(Clone, Debug)]
pub struct VolumeSample<'a> {
    pub volume: &'a MountedVolume,
    pub used: DiskSample,
}

/// Memory that the first container of a pod takes and never returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLeak {
    pub since: Timestamp,
    pub bytes_per_second: i64,
    /// Memory in bytes that the machine has left when the leak stops.
    pub leaves: i64,
}

/// Usage and capacity of one machine.
#[derive(Clone, Debug)]
pub struct MachineSample<'a> {
    pub pods: Vec<PodSample<'a>>,
    /// Memory of the machine, in bytes.
    pub memory_capacity: i64,
    pub allocatable_memory: i64,
    pub kubelet: MemorySample,
    pub runtime: MemorySample,
    /// Memory of the processes outside the kubelet, the container runtime and the pods.
    pub other: MemorySample,
    pub disk_capacity: DiskSample,
    pub disk_used: DiskSample,
    /// The part of `disk_used` that images take up. Images are on the same filesystem.
    pub images: DiskSample,
    pub max_processes: i64,
    pub processes: i64,
    pub cpu: CpuSample,
}

const MIB: i64 = 1 << 20;
const GIB: i64 = 1 << 30;
const PAGE: i64 = 4096;
/// Memory of a pod's sandbox.
const SANDBOX: MemorySample = MemorySample { working_set: MIB / 2, usage: MIB / 2, rss: MIB / 16 };

impl<'a> PodSample<'a> {
    /// Returns the usage of a running pod; None if the pod does not run.
    pub fn new(pod: &'a Pod, random: RandomSource, now: Timestamp) -> Option<Self> {
        if pod.status.phase != "Running" {
            return None;
        }
        let mut rng = random.rng(&["usage", pod.uid()]);
        let start = Timestamp::parse(&pod.status.start_time).unwrap_or(now);
        let containers: Vec<ContainerSample> = pod
            .spec
            .containers
            .iter()
            .filter_map(|container| {
                let status = pod.status.container_statuses.iter().find(|is| is.name == container.name);
                let started = match status {
                    // A container that waits for its restart has no start time. It uses nothing, so it is left out.
                    Some(status) => Timestamp::parse(status.started_at())?,
                    None => start,
                };
                Some(ContainerSample::new(container, started, &mut rng, now))
            })
            .collect();
        let volumes =
            pod.spec.volumes.iter().map(|volume| VolumeSample::new(volume, &mut rng, now)).collect();
        let memory = containers.iter().fold(SANDBOX, |sum, container| sum.plus(container.memory));
        let processes = 1 + containers.len() as i64 * rng.i64(2..30);
        Some(Self { pod, containers, volumes, memory, processes })
    }

    /// Disk usage that counts against ephemeral storage: writable layers, logs and local volumes.
    pub fn disk(&self) -> DiskSample {
        let containers = self.containers.iter().map(|container| container.layer.plus(container.logs));
        let volumes = self.volumes.iter().filter(|volume| volume.is_local()).map(|volume| volume.used);
        containers.chain(volumes).fold(DiskSample::default(), DiskSample::plus)
    }

    pub fn cpu(&self) -> CpuSample {
        self.containers.iter().fold(CpuSample::default(), |sum, container| sum.plus(container.cpu))
    }
}

impl<'a> ContainerSample<'a> {
    /// Whether the container has reached its memory limit.
    pub fn is_out_of_memory(&self) -> bool {
        self.memory_limit > 0 && self.memory.working_set >= self.memory_limit
    }

    fn new(container: &'a Container, started: Timestamp, rng: &mut Rng, now: Timestamp) -> Self {
        let resources = &container.resources;
        let memory = |text: Option<&String>| text.and_then(|text| memory_kib(text)).unwrap_or(0) * 1024;
        let (request, limit) =
            (memory(resources.requests.get("memory")), memory(resources.limits.get("memory")));
        let cores = resources.requests.get("cpu").and_then(|text| cpu_milli(text)).unwrap_or(0);
        let age = now.since(started).or_zero().as_secs_f64();
        let middle = typical_memory(request, limit, rng) as f64;
        let working_set = slowly(middle, 0.03 + 0.06 * rng.f64(), rng, now) * warm_up(age);
        let working_set = if limit > 0 { working_set.min(limit as f64 * 0.97) } else { working_set };
        let cache = 1.05 + 0.3 * rng.f64();
        let memory = MemorySample {
            working_set: working_set as i64 / PAGE * PAGE,
            usage: (working_set * cache) as i64,
            rss: (working_set * (0.7 + 0.2 * rng.f64())) as i64,
        };
        let cores = if cores == 0 { 5 + rng.i64(0..60) } else { cores } as f64 * 1e6;
        let mean = cores * (0.08 + 0.6 * rng.f64());
        let cpu = CpuSample {
            nano_cores: slowly(mean, 0.35, rng, now) as i64,
            core_nano_seconds: (mean * age) as i64,
        };
        let layer = DiskSample { bytes: rng.i64(32..900) * 1024, inodes: rng.i64(8..60) };
        // A log is rotated at 10 MiB, and the kubelet keeps five files.
        let written = (age * (20.0 + 400.0 * rng.f64())) as i64;
        let logs = DiskSample {
            bytes: 4096 + if written < 50 * MIB { written } else { 40 * MIB + written % (10 * MIB) },
            inodes: 1 + (written / (10 * MIB)).min(4),
        };
        Self { name: &container.name, started, memory, memory_limit: limit, cpu, layer, logs }
    }
}

impl MemorySample {
    fn for_system(middle: f64, rng: &mut Rng, now: Timestamp) -> Self {
        let working_set = slowly(middle, 0.05, rng, now) as i64 / PAGE * PAGE;
        Self { working_set, usage: working_set + working_set / 3, rss: working_set * 3 / 4 }
    }

    pub fn plus(self, other: Self) -> Self {
        Self {
            working_set: self.working_set + other.working_set,
            usage: self.usage + other.usage,
            rss: self.rss + other.rss,
        }
    }
}

impl CpuSample {
    fn plus(self, other: Self) -> Self {
        Self {
            nano_cores: self.nano_cores + other.nano_cores,
            core_nano_seconds: self.core_nano_seconds + other.core_nano_seconds,
        }
    }
}

impl DiskSample {
    pub fn plus(self, other: Self) -> Self {
        Self { bytes: self.bytes + other.bytes, inodes: self.inodes + other.inodes }
    }
}

impl<'a> VolumeSample<'a> {
    fn new(volume: &'a MountedVolume, rng: &mut Rng, now: Timestamp) -> Self {
        let used = match volume.source() {
            VolumeSource::EmptyDir => {
                let middle = (20 + rng.i64(0..280)) * MIB;
                let bytes = slowly(middle as f64, 0.2, rng, now) as i64;
                DiskSample { bytes, inodes: 4 + bytes / (2 * MIB) }
            }
            VolumeSource::Claim(_) => {
                let bytes = rng.i64(GIB..12 * GIB);
                DiskSample { bytes, inodes: 11 + bytes / (4 * MIB) }
            }
            VolumeSource::ConfigMap => DiskSample { bytes: 4096, inodes: 5 },
            VolumeSource::InMemory => DiskSample { bytes: 12288, inodes: 9 },
            VolumeSource::Other => DiskSample::default(),
        };
        Self { volume, used }
    }

    /// Whether the volume is on the machine's disk.
    fn is_local(&self) -> bool {
        match self.volume.source() {
            VolumeSource::EmptyDir | VolumeSource::ConfigMap => true,
            VolumeSource::Claim(_) | VolumeSource::InMemory | VolumeSource::Other => false,
        }
    }
}

impl<'a> MachineSample<'a> {
    /// Returns the usage of a machine with these pods. `leaks` are the memory leaks, by the uid of the pod.
    pub fn new(
        node: &Node,
        pods: impl Iterator<Item = &'a Pod>,
        leaks: &BTreeMap<String, MemoryLeak>,
        random: RandomSource,
        now: Timestamp,
    ) -> Self {
        let pods: Vec<PodSample> = pods.filter_map(|pod| PodSample::new(pod, random, now)).collect();
        let mut rng = random.rng(&["machine", node.name()]);
        let bytes = |list: &BTreeMap<String, String>, resource: &str| {
            list.get(resource).and_then(|text| memory_kib(text)).unwrap_or(0) * 1024
        };
        let memory_capacity = bytes(&node.status.capacity, "memory");
        let allocatable_memory = bytes(&node.status.allocatable, "memory");
        let disk_bytes = bytes(&node.status.capacity, "ephemeral-storage");
        let mib = |least: i64, most: i64, rng: &mut Rng| (rng.i64(least..most) * MIB) as f64;
        let (kubelet, runtime, other) =
            (mib(90, 140, &mut rng), mib(80, 190, &mut rng), mib(260, 430, &mut rng));
        let kubelet = MemorySample::for_system(kubelet, &mut rng, now);
        let runtime = MemorySample::for_system(runtime, &mut rng, now);
        let other = MemorySample::for_system(other, &mut rng, now);
        let images = DiskSample { bytes: rng.i64(9 * GIB..24 * GIB), inodes: rng.i64(120_000..400_000) };
        let system = DiskSample { bytes: rng.i64(4 * GIB..7 * GIB), inodes: rng.i64(90_000..130_000) };
        let disk_used = pods.iter().map(PodSample::disk).fold(images.plus(system), DiskSample::plus);
        let processes = pods.iter().map(|pod| pod.processes).sum::<i64>() + rng.i64(380..620);
        let cpu = pods.iter().map(PodSample::cpu).fold(CpuSample::default(), CpuSample::plus);
        let daemons = CpuSample { nano_cores: slowly(6e7, 0.4, &mut rng, now) as i64, core_nano_seconds: 0 };
        let mut sample = Self {
            memory_capacity,
            allocatable_memory,
            kubelet,
            runtime,
            other,
            disk_capacity: DiskSample { bytes: disk_bytes, inodes: disk_bytes / 16384 },
            disk_used,
            images,
            // The limit on processes is Linux's default for threads-max.
            max_processes: memory_capacity / (8 * 16384),
            processes,
            cpu: cpu.plus(daemons),
            pods,
        };
        sample.add_leaks(leaks, now);
        sample
    }

    fn add_leaks(&mut self, leaks: &BTreeMap<String, MemoryLeak>, now: Timestamp) {
        for place in 0..self.pods.len() {
            let free = self.memory_available();
            let pod = &mut self.pods[place];
            let (Some(leak), Some(container)) = (leaks.get(pod.pod.uid()), pod.containers.first_mut()) else {
                continue;
            };
            let age = now.since(leak.since.max(container.started)).or_zero().as_secs_f64();
            let taken = (age * leak.bytes_per_second as f64) as i64;
            let taken = taken.min((free - leak.leaves).max(0)) / PAGE * PAGE;
            let allowed = match container.memory_limit {
                0 => taken,
                limit => taken.min(limit - container.memory.working_set),
            };
            let more = MemorySample { working_set: allowed, usage: allowed, rss: allowed };
            container.memory = container.memory.plus(more);
            pod.memory = pod.memory.plus(more);
        }
    }

    /// The working set of all pods.
    pub fn pods_memory(&self) -> MemorySample {
        self.pods.iter().fold(MemorySample::default(), |sum, pod| sum.plus(pod.memory))
    }

    /// The working set of the machine.
    pub fn memory(&self) -> MemorySample {
        self.pods_memory().plus(self.kubelet).plus(self.runtime).plus(self.other)
    }

    pub fn memory_available(&self) -> i64 {
        (self.memory_capacity - self.memory().working_set).max(0)
    }

    pub fn disk_available(&self) -> DiskSample {
        DiskSample {
            bytes: (self.disk_capacity.bytes - self.disk_used.bytes).max(0),
            inodes: (self.disk_capacity.inodes - self.disk_used.inodes).max(0),
        }
    }

    /// Adds the usage of a process outside pods, or of files, to explain a pressure that the kubelet reports because of
    /// a fault. The usage moves the signal around its soft threshold. The signal never stays below the threshold for
    /// the whole grace period.
    pub fn add_cause(&mut self, condition: &str, now: Timestamp) {
        let is_below = now.as_nanos() / 1_000_000_000 % 80 < 60;
        let near = |threshold: i64| threshold + if is_below { -threshold / 12 } else { threshold / 15 };
        match condition {
            "MemoryPressure" => {
                let target = near(config::SOFT_MEMORY.bytes(self.memory_capacity));
                let more = (self.memory_available() - target).max(0);
                let process = MemorySample { working_set: more, usage: more, rss: more };
                self.other = self.other.plus(process);
            }
            "DiskPressure" => {
                let target = near(config::SOFT_DISK.bytes(self.disk_capacity.bytes));
                self.disk_used.bytes += (self.disk_available().bytes - target).max(0);
            }
            _ => {
                let target = near(config::SOFT_PROCESSES.bytes(self.max_processes));
                self.processes += (self.max_processes - self.processes - target).max(0);
            }
        }
    }
}

/// Returns the mean of a container's working set, in bytes.
fn typical_memory(request: i64, limit: i64, rng: &mut Rng) -> i64 {
    let share = rng.f64();
    let of_request = |share: f64| (request as f64 * share) as i64;
    match (request, limit) {
        (0, _) => 24 * MIB + (share * 200.0) as i64 * MIB,
        (_, 1..) if limit <= request => of_request(0.35 + 0.5 * share),
        // The mean is above the request for about one in seven containers.
        _ => of_request(0.45 + 0.75 * share * share),
    }
}

/// Returns the fraction of its usual memory that a container uses. `age` is the age of the container in seconds.
fn warm_up(age: f64) -> f64 {
    0.3 + 0.7 * (age / 90.0).min(1.0)
}

/// Returns a value that varies around `middle` by up to the fraction `share`. The period is random, from 5 to 25
/// minutes.
fn slowly(middle: f64, share: f64, rng: &mut Rng, now: Timestamp) -> f64 {
    let period = 300.0 + 1200.0 * rng.f64();
    let seconds = now.as_nanos() as f64 / 1e9;
    middle * (1.0 + share * ((seconds / period + rng.f64()) * TAU).sin())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use kordon_time::Span;

    #[test]
    fn a_container_stays_below_its_limit_and_changes_slowly() {
        let random = RandomSource::new(3);
        for number in 0..200 {
            let pod = pod(number, json!({"requests": {"memory": "256Mi"}, "limits": {"memory": "256Mi"}}));
            let start = Timestamp::from_secs(1_800_000_000);
            let mut before = memory(&pod, random, start);
            for second in (10..3600).step_by(10) {
                let now = memory(&pod, random, start + Span::from_secs(second));
                assert!(now < 256 * MIB, "pod {number} uses {now} after {second} s");
                assert!((now - before).abs() < 8 * MIB, "pod {number}: {before} to {now} in ten seconds");
                before = now;
            }
        }
    }

    #[test]
    fn a_few_containers_without_limits_are_above_their_requests_and_most_are_below() {
        let (random, now) = (RandomSource::new(5), Timestamp::from_secs(1_800_000_000));
        let over = (0..500)
            .map(|number| pod(number, json!({"requests": {"memory": "100Mi"}})))
            .filter(|pod| memory(pod, random, now) > 100 * MIB)
            .count();
        assert!((25..125).contains(&over), "{over} of 500");
    }

    #[test]
    fn the_same_seed_and_time_give_the_same_usage() {
        let now = Timestamp::from_secs(1_800_000_000);
        let pod = pod(1, json!({}));
        assert_eq!(memory(&pod, RandomSource::new(1), now), memory(&pod, RandomSource::new(1), now));
        assert_ne!(memory(&pod, RandomSource::new(1), now), memory(&pod, RandomSource::new(2), now));
    }

    fn memory(pod: &Pod, random: RandomSource, now: Timestamp) -> i64 {
        PodSample::new(pod, random, now).expect("it runs").memory.working_set
    }

    fn pod(number: usize, resources: Value) -> Pod {
        serde_json::from_value(json!({
            "metadata": {"name": "p", "namespace": "d", "uid": format!("uid-{number}")},
            "spec": {"containers": [{"name": "app", "resources": resources}]},
            "status": {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"},
        }))
        .expect("a pod")
    }
}
