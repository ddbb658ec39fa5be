//! Volumes of the embedded cluster: disks, each in one zone, and shares, which all zones can mount.

use serde_json::{Value, json};

use super::{
    SeedOwner, SeedWorkload,
    catalogue::{CatalogueKind, CatalogueVolume},
    nodes::Machine,
    pods::{PodSeed, pod_name},
    workloads::object_uid,
};
use crate::random::RandomSource;
use kordon_time::{Span, Timestamp};

/// Storage class of disks. A disk can be attached to one node in its zone.
pub const DISKS: &str = "gp3";
/// Storage class of shares. A share can be mounted by many nodes.
const SHARES: &str = "efs";

const DISK_DRIVER: &str = "ebs.csi.aws.com";
/// Maximum number of disks that can be attached to a node.
const DISKS_A_NODE: u32 = 25;
const ZONE: &str = "topology.kubernetes.io/zone";

/// Generates the storage objects of one cluster.
#[derive(Clone, Copy, Debug)]
pub struct StorageSeed {
    pub random: RandomSource,
    pub epoch: Timestamp,
}

impl StorageSeed {
    pub fn classes(self) -> [Value; 2] {
        let class = |name: &str, provisioner: &str, mode: &str| {
            let object = json!({
                "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
                "provisioner": provisioner, "volumeBindingMode": mode, "reclaimPolicy": "Delete",
                "allowVolumeExpansion": true,
            });
            self.with_identity(object)
        };
        [class(DISKS, DISK_DRIVER, "WaitForFirstConsumer"), class(SHARES, "efs.csi.aws.com", "Immediate")]
    }

    /// Returns the CSINode of a machine. It has the number of volumes that can be attached to the machine.
    pub fn csi_node(self, machine: &Machine) -> Value {
        self.with_identity(json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": machine.name},
            "spec": {"drivers": [{
                "name": DISK_DRIVER, "nodeID": machine.name, "topologyKeys": [ZONE],
                "allocatable": {"count": DISKS_A_NODE},
            }]},
        }))
    }

    /// Returns the claim of an initial pod, and the claim's volume. Each pod of a StatefulSet has its own disk, in the
    /// zone of the pod. All pods of a Deployment share one volume.
    pub fn of_pod(self, seed: &PodSeed, workload: &SeedWorkload, machine: Option<&Machine>) -> Vec<Value> {
        let SeedOwner::Service(service) = &workload.owner else { return Vec::new() };
        let (name, class, mode, size) = match (service.volume, service.kind) {
            (CatalogueVolume::Claim, CatalogueKind::StatefulSet) => {
                let pod = pod_name(workload, seed, machine, self.random);
                (format!("data-{pod}"), DISKS, "ReadWriteOnce", "50Gi")
            }
            (CatalogueVolume::Claim, CatalogueKind::Deployment) if seed.ordinal == 0 => {
                (format!("{}-data", service.name), SHARES, "ReadWriteMany", "100Gi")
            }
            _ => return Vec::new(),
        };
        // A disk is created in the zone of the first node that needs it. A pod without a node has no disk yet.
        let zone = machine.map(Machine::zone_name).filter(|_| class == DISKS);
        let is_bound = class == SHARES || zone.is_some();
        let mut claim = self.claim(&workload.namespace, &name, class, mode, size);
        if !is_bound {
            return vec![claim];
        }
        let uid = claim["metadata"]["uid"].clone();
        let volume = format!("pvc-{}", uid.as_str().unwrap_or_default());
        claim["spec"]["volumeName"] = json!(volume);
        claim["metadata"]["annotations"] =
            json!({"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"});
        claim["status"] = json!({"phase": "Bound", "accessModes": [mode], "capacity": {"storage": size}});
        let claim_ref = json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": workload.namespace, "name": name,
            "uid": uid,
        });
        let driver = if class == DISKS { DISK_DRIVER } else { "efs.csi.aws.com" };
        let mut object = json!({
            "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": volume},
            "spec": {
                "accessModes": [mode], "capacity": {"storage": size}, "storageClassName": class,
                "persistentVolumeReclaimPolicy": "Delete", "volumeMode": "Filesystem", "claimRef": claim_ref,
                "csi": {"driver": driver, "volumeHandle": volume.replace("pvc-", "vol-")},
            },
            "status": {"phase": "Bound"},
        });
        if let Some(zone) = zone {
            object["spec"]["nodeAffinity"] = json!({"required": {"nodeSelectorTerms": [
                {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]},
            ]}});
        }
        vec![claim, self.with_identity(object)]
    }

    fn claim(self, namespace: &str, name: &str, class: &str, mode: &str, size: &str) -> Value {
        self.with_identity(json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"namespace": namespace, "name": name},
            "spec": {
                "accessModes": [mode], "storageClassName": class, "volumeMode": "Filesystem",
                "resources": {"requests": {"storage": size}},
            },
            "status": {"phase": "Pending"},
        }))
    }

    fn with_identity(self, mut object: Value) -> Value {
        let text = |at: &str| object.pointer(at).and_then(Value::as_str).unwrap_or_default();
        let uid = object_uid(self.random, text("/kind"), text("/metadata/namespace"), text("/metadata/name"));
        object["metadata"]["uid"] = json!(uid);
        object["metadata"]["creationTimestamp"] =
            json!((self.epoch - Span::from_secs(30 * 86_400)).to_time());
        object
    }
}
