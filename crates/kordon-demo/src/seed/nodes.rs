//! The machines of the embedded cluster, and their initial Node and Lease objects.

use serde_json::{Value, json};

use super::{MachineHistory, VERSION, managed_fields::managed};
use crate::random::{RandomSource, uid};
use kordon_time::{Span, Timestamp};

pub const REGION: &str = "eu-central-1";
/// The last letters of the zone names. They are also part of node names.
pub const ZONES: [char; 3] = ['a', 'b', 'c'];
/// The initial kernel of all nodes.
pub const KERNEL: &str = "6.1.0-38-cloud-amd64";

/// One machine.
#[derive(Clone, Debug)]
pub struct Machine {
    /// The name, for example `general-1a-04`: pool, zone, and number within that pool and zone.
    pub name: String,
    pub pool: &'static NodePool,
    /// Index of the machine's zone in `ZONES`.
    pub zone: usize,
    /// Number of the machine within the cluster.
    pub index: usize,
    pub history: MachineHistory,
}

/// A pool of equal machines.
#[derive(Debug)]
pub struct NodePool {
    pub name: &'static str,
    pub instance_type: &'static str,
    pub cores: i64,
    pub memory_gib: i64,
    /// Number of workers of this pool among 20 workers.
    share: i64,
    /// Taint of the pool: key, value and effect.
    pub taint: Option<(&'static str, &'static str, &'static str)>,
}

pub const CONTROL_PLANE: NodePool = NodePool {
    name: "control-plane",
    instance_type: "m7i.xlarge",
    cores: 4,
    memory_gib: 16,
    share: 0,
    taint: Some(("node-role.kubernetes.io/control-plane", "", "NoSchedule")),
};

pub const POOLS: [NodePool; 3] = [
    NodePool {
        name: "general",
        instance_type: "m7i.2xlarge",
        cores: 8,
        memory_gib: 32,
        share: 12,
        taint: None,
    },
    NodePool {
        name: "memory",
        instance_type: "r7i.2xlarge",
        cores: 8,
        memory_gib: 64,
        share: 5,
        taint: None,
    },
    NodePool {
        name: "spot",
        instance_type: "c7i.4xlarge",
        cores: 16,
        memory_gib: 32,
        share: 3,
        taint: Some(("lifecycle.example.com/spot", "true", "PreferNoSchedule")),
    },
];

/// Time without a heartbeat after which a node was marked as Unknown: the grace period, plus the time to the next pass.
const GRACE: Span = Span::from_secs(52);
/// Maximum number of pods on a node, which is the kubelet's default.
pub const MAX_PODS: i64 = 110;

impl Machine {
    /// Creates `count` machines. If there are six or more, three of them run the control plane. All others are workers.
    /// The workers of each pool are spread evenly over the zones.
    pub fn all(count: usize) -> Vec<Self> {
        let control_planes = if count >= 6 { 3 } else { 0 };
        let mut made: Vec<(usize, &'static NodePool)> =
            (0..control_planes).map(|i| (i % 3, &CONTROL_PLANE)).collect();
        made.extend(workers(count - control_planes));
        let width = (count / 3).to_string().len().max(2);
        let mut numbers = std::collections::BTreeMap::new();
        made.into_iter()
            .enumerate()
            .map(|(index, (zone, pool))| {
                let number = numbers.entry((pool.name, zone)).or_insert(0);
                *number += 1;
                let name = format!("{}-1{}-{number:0width$}", pool.name, ZONES[zone]);
                Self { name, pool, zone, index, history: MachineHistory::Healthy }
            })
            .collect()
    }

    pub fn is_control_plane(&self) -> bool {
        self.pool.name == CONTROL_PLANE.name
    }

    pub fn zone_name(&self) -> String {
        format!("{REGION}{}", ZONES[self.zone])
    }

    /// The address of the machine. Each zone has its own network.
    pub fn address(&self) -> String {
        format!("10.{}.{}.{}", self.zone + 1, self.index / 200, self.index % 200 + 10)
    }

    /// Returns the address of the pod with number `slot` on this machine.
    pub fn pod_address(&self, slot: usize) -> String {
        format!("10.{}.{}.{}", 128 + self.index / 256, self.index % 256, slot % 250 + 2)
    }

    pub fn allocatable_cpu_milli(&self) -> i64 {
        self.pool.cores * 1000 - 110
    }

    pub fn allocatable_memory_mib(&self) -> i64 {
        self.pool.memory_gib * 1024 - 1536
    }

    /// The time of the kubelet's last Lease renewal.
    pub fn renewed(&self, random: RandomSource, epoch: Timestamp) -> Timestamp {
        let ago = match self.history {
            MachineHistory::DisconnectedFor(span) => span,
            MachineHistory::UnknownFor(span) => span + GRACE,
            MachineHistory::Healthy | MachineHistory::MemoryPressureFor(_) => {
                Span::from_millis(random.rng(&["renewed", &self.name]).i64(0..10_000))
            }
        };
        epoch - ago
    }

    /// The time of the kubelet's last status write. An unchanged status is written every five minutes.
    pub fn reported(&self, random: RandomSource, epoch: Timestamp) -> Timestamp {
        let ago = Span::from_secs(random.rng(&["reported", &self.name]).i64(0..290));
        match self.history {
            MachineHistory::UnknownFor(_) | MachineHistory::DisconnectedFor(_) => {
                self.renewed(random, epoch) - ago
            }
            MachineHistory::Healthy | MachineHistory::MemoryPressureFor(_) => epoch - ago,
        }
    }

    pub fn uid(&self, random: RandomSource) -> String {
        uid(&mut random.rng(&["uid", "node", &self.name]))
    }
}

fn workers(count: usize) -> impl Iterator<Item = (usize, &'static NodePool)> {
    // The next worker belongs to the pool that is furthest below its share. The shares are therefore right for any
    // number of workers.
    let mut given = [0_i64; POOLS.len()];
    (0..count).map(move |i| {
        let owed = |p: usize| POOLS[p].share * (i as i64 + 1) - 20 * given[p];
        let at = (0..POOLS.len()).max_by_key(|p| (owed(*p), POOLS.len() - p)).expect("there are pools");
        given[at] += 1;
        // Each pool starts one zone after the pool before it, so that a small cluster is balanced.
        ((given[at] as usize - 1 + at) % ZONES.len(), &POOLS[at])
    })
}

/// The Node object of a machine, as written by its kubelet and the controllers.
pub fn node(machine: &Machine, random: RandomSource, epoch: Timestamp) -> Value {
    let mut rng = random.rng(&["node", &machine.name]);
    let made = epoch - Span::from_secs(rng.i64(3 * 86_400..90 * 86_400));
    let heartbeat = machine.reported(random, epoch);
    let mut node = json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": machine.name,
            "uid": machine.uid(random),
            "creationTimestamp": made.to_time(),
            "labels": labels(machine),
            "annotations": {
                "csi.volume.kubernetes.io/nodeid":
                    format!("{{\"ebs.csi.aws.com\":\"i-{:017x}\"}}", rng.u64(..) >> 4),
                "node.alpha.kubernetes.io/ttl": "0",
                "volumes.kubernetes.io/controller-managed-attach-detach": "true",
            },
        },
        "spec": spec(machine, epoch, &mut rng),
        "status": {
            "addresses": [
                {"type": "InternalIP", "address": machine.address()},
                {"type": "InternalDNS", "address": format!("{}.{REGION}.compute.internal", machine.name)},
                {"type": "Hostname", "address": machine.name},
            ],
            "allocatable": resources(machine.allocatable_cpu_milli(), machine.allocatable_memory_mib()),
            "capacity": resources(machine.pool.cores * 1000, machine.pool.memory_gib * 1024),
            "conditions": conditions(machine, made, heartbeat, epoch),
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "images": images(),
            "nodeInfo": {
                "architecture": "amd64",
                "bootID": uid(&mut rng),
                "containerRuntimeVersion": "containerd://2.1.5",
                "kernelVersion": KERNEL,
                "kubeProxyVersion": "",
                "kubeletVersion": VERSION,
                "machineID": format!("{:032x}", rng.u128(..)),
                "operatingSystem": "linux",
                "osImage": "Debian GNU/Linux 12 (bookworm)",
                "systemUUID": uid(&mut rng),
            },
        },
    });
    node["metadata"]["managedFields"] =
        managed(&node, &[("kubelet", "", made), ("kubelet", "status", heartbeat)]);
    node
}

/// The Lease that the machine's kubelet renews in kube-node-lease.
pub fn lease(machine: &Machine, random: RandomSource, epoch: Timestamp) -> Value {
    let mut rng = random.rng(&["lease", &machine.name]);
    let renewed = machine.renewed(random, epoch);
    let mut lease = json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": machine.name,
            "namespace": "kube-node-lease",
            "uid": uid(&mut rng),
            "creationTimestamp": (epoch - Span::from_secs(3 * 86_400)).to_time(),
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Node", "name": machine.name, "uid": machine.uid(random)},
            ],
        },
        "spec": {
            "holderIdentity": machine.name,
            "leaseDurationSeconds": 40,
            "renewTime": renewed.to_micro_time(),
        },
    });
    lease["metadata"]["managedFields"] = managed(&lease, &[("kubelet", "", renewed)]);
    lease
}

fn labels(machine: &Machine) -> Value {
    let zone = machine.zone_name();
    let mut labels = json!({
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/instance-type": machine.pool.instance_type,
        "beta.kubernetes.io/os": "linux",
        "failure-domain.beta.kubernetes.io/region": REGION,
        "failure-domain.beta.kubernetes.io/zone": zone,
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": machine.name,
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": machine.pool.instance_type,
        "topology.kubernetes.io/region": REGION,
        "topology.kubernetes.io/zone": zone,
    });
    if machine.is_control_plane() {
        labels["node-role.kubernetes.io/control-plane"] = json!("");
    } else {
        labels["node-role.kubernetes.io/worker"] = json!("");
        labels["pool"] = json!(machine.pool.name);
    }
    labels
}

fn spec(machine: &Machine, epoch: Timestamp, rng: &mut fastrand::Rng) -> Value {
    let cidr = format!("10.{}.{}.0/24", 128 + machine.index / 256, machine.index % 256);
    let mut taints = Vec::new();
    if let Some((key, value, effect)) = machine.pool.taint {
        taints.push(json!({"key": key, "value": value, "effect": effect}));
    }
    match machine.history {
        MachineHistory::UnknownFor(span) => {
            // The controller adds the NoSchedule taint and the NoExecute taint within a second after Ready has become
            // Unknown.
            let key = "node.kubernetes.io/unreachable";
            let added = (epoch - span).to_time();
            taints.push(json!({"key": key, "effect": "NoSchedule", "timeAdded": added}));
            taints.push(json!({"key": key, "effect": "NoExecute", "timeAdded": added}));
        }
        MachineHistory::MemoryPressureFor(span) => taints.push(json!({
            "key": "node.kubernetes.io/memory-pressure", "effect": "NoSchedule", "timeAdded": (epoch - span).to_time(),
        })),
        MachineHistory::Healthy | MachineHistory::DisconnectedFor(_) => {}
    }
    taints.iter_mut().filter_map(Value::as_object_mut).for_each(|t| t.retain(|_, v| *v != ""));
    let mut spec = json!({
        "podCIDR": cidr,
        "podCIDRs": [cidr],
        "providerID": format!("aws:///{}/i-{:017x}", machine.zone_name(), rng.u64(..) >> 4),
    });
    if !taints.is_empty() {
        spec["taints"] = Value::Array(taints);
    }
    spec
}

fn resources(cpu_milli: i64, memory_mib: i64) -> Value {
    let cpu = if cpu_milli % 1000 == 0 { (cpu_milli / 1000).to_string() } else { format!("{cpu_milli}m") };
    json!({
        "cpu": cpu,
        "ephemeral-storage": "95491281146",
        "hugepages-1Gi": "0",
        "hugepages-2Mi": "0",
        "memory": format!("{}Ki", memory_mib * 1024),
        "pods": MAX_PODS.to_string(),
    })
}

/// Type, reason and message of those conditions that are False on a healthy node.
pub const HEALTHY_CONDITIONS: [(&str, &str, &str); 3] = [
    ("MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
];

fn conditions(machine: &Machine, made: Timestamp, heartbeat: Timestamp, epoch: Timestamp) -> Value {
    let condition = |kind: &str, status: &str, reason: &str, message: &str, since: Timestamp| {
        json!({
            "type": kind, "status": status, "reason": reason, "message": message,
            "lastHeartbeatTime": heartbeat.to_time(), "lastTransitionTime": since.to_time(),
        })
    };
    if let MachineHistory::UnknownFor(span) = machine.history {
        let unknown = |kind: &str| {
            let message = "Kubelet stopped posting node status.";
            condition(kind, "Unknown", "NodeStatusUnknown", message, epoch - span)
        };
        return ["MemoryPressure", "DiskPressure", "PIDPressure", "Ready"].map(unknown).into_iter().collect();
    }
    let mut all: Vec<Value> = HEALTHY_CONDITIONS
        .iter()
        .map(|(kind, reason, message)| match (*kind, machine.history) {
            ("MemoryPressure", MachineHistory::MemoryPressureFor(span)) => {
                let message = "kubelet has insufficient memory available";
                condition(kind, "True", "KubeletHasInsufficientMemory", message, epoch - span)
            }
            _ => condition(kind, "False", reason, message, made),
        })
        .collect();
    all.push(condition("Ready", "True", "KubeletReady", "kubelet is posting ready status", made));
    Value::Array(all)
}

/// Returns the images that each kubelet lists. They are the first few images of the cluster.
fn images() -> Value {
    super::catalogue::SERVICES
        .iter()
        .take(8)
        .zip(30_000_000_u64..)
        .map(|(service, bytes)| json!({"names": [service.image], "sizeBytes": bytes * 3}))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_zone_has_each_pool_and_a_control_plane_node() {
        let machines = Machine::all(24);
        for zone in 0..3 {
            let pools: std::collections::BTreeSet<&str> =
                machines.iter().filter(|m| m.zone == zone).map(|m| m.pool.name).collect();
            assert_eq!(pools.len(), 4, "zone {zone} has {pools:?}");
            let size = machines.iter().filter(|m| m.zone == zone).count();
            assert!((7..=9).contains(&size), "zone {zone} has {size} nodes");
        }
    }

    #[test]
    fn names_and_addresses_are_unique_at_any_size() {
        for count in [0, 1, 2, 5, 6, 24, 190, 5000] {
            let machines = Machine::all(count);
            assert_eq!(machines.len(), count);
            let names: std::collections::BTreeSet<&str> = machines.iter().map(|m| m.name.as_str()).collect();
            let addresses: std::collections::BTreeSet<String> =
                machines.iter().map(Machine::address).collect();
            assert_eq!((names.len(), addresses.len()), (count, count));
        }
    }
}
