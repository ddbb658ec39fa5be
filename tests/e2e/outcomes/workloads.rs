//! The workloads of the test: pods of every controller, some of them with volumes or devices.

use anyhow::Result;
use k8s_openapi::api::core::v1::Pod;
use kordon_time::Span;
use kube::{Api, Client, ResourceExt, api::ListParams};
use serde_json::{Value, json};

use super::{TOLERATION, ZONES};
use crate::harness::{
    eventually::eventually,
    kubelets::{NodeSpec, is_ready},
    objects::{create, deployment},
};

pub const NAMESPACE: &str = "default";
/// The name of the DaemonSet.
pub const AGENT: &str = "agent";
pub const NODES_PER_ZONE: usize = 6;
/// The key of a NoExecute taint that all pods tolerate for [`TOLERATION`] seconds.
pub const MAINTENANCE: &str = "example.com/maintenance";
/// Name of the driver of the devices, of their class, and of the template of claims.
pub const DEVICES: &str = "gpu.example.com";
/// Number of nodes in each zone that have a device.
const DEVICES_PER_ZONE: usize = 3;
const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";
/// Number of pods that are not of a DaemonSet.
const PODS: usize = 18 + 51 + 9 + 6 + 8 + 7;

/// Returns the nodes, the same number in each zone.
pub fn nodes() -> Vec<NodeSpec> {
    let of_zone = |zone: &'static str| {
        (1..=NODES_PER_ZONE).map(move |number| NodeSpec::new(format!("{zone}{number}"), zone))
    };
    ZONES.into_iter().flat_map(of_zone).collect()
}

/// Creates the workloads, and what they need.
pub async fn populate(client: &Client) -> Result<()> {
    let budget = json!({
        "metadata": {"name": "web"},
        "spec": {"minAvailable": 17, "selector": {"matchLabels": {"app": "web"}}},
    });
    create(client, "/apis/policy/v1/namespaces/default/poddisruptionbudgets", &budget).await?;
    create_volumes(client).await?;
    create_devices(client).await?;
    let mut large = deployment("large", 51, 2);
    // Three of these pods fit on a node, 54 in the cluster. With 51 of them, most nodes have no room for another.
    large["spec"]["template"]["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "1200m"}});
    let mut train = deployment("train", 7, 2);
    let spec = &mut train["spec"]["template"]["spec"];
    spec["resourceClaims"] = json!([{"name": "gpu", "resourceClaimTemplateName": DEVICES}]);
    spec["containers"][0]["resources"] = json!({"claims": [{"name": "gpu"}]});
    let mut agent = deployment(AGENT, 1, 2);
    agent["spec"]["replicas"].take();
    let claim = json!([{
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": "waits", "resources": {"requests": {"storage": "1Gi"}},
        },
    }]);
    let mut disk = stateful_set("disk", 6);
    disk["spec"]["volumeClaimTemplates"] = claim;
    disk["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] =
        json!([{"name": "data", "mountPath": "/data"}]);
    for (group, mut object) in [
        ("deployments", deployment("web", 18, 2)),
        ("deployments", large),
        ("deployments", train),
        ("statefulsets", stateful_set("db", 9)),
        ("statefulsets", disk),
        ("daemonsets", agent),
    ] {
        tolerate_maintenance(&mut object);
        create(client, &format!("/apis/apps/v1/namespaces/default/{group}"), &object).await?;
    }
    create_job(client).await
}

/// Creates the Job. Its pods never finish by themselves.
pub async fn create_job(client: &Client) -> Result<()> {
    let mut job = json!({
        "metadata": {"name": "report"},
        "spec": {
            "parallelism": 8, "completions": 8, "backoffLimit": 1000, "podReplacementPolicy": "TerminatingOrFailed",
            "template": {
                "metadata": {"labels": {"app": "report"}},
                "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "img"}]},
            },
        },
    });
    tolerate_maintenance(&mut job);
    create(client, JOBS, &job).await
}

/// Waits until every pod that the workloads should have is Ready.
pub async fn wait_until_ready(client: &Client) -> Result<()> {
    let pods = PODS + ZONES.len() * NODES_PER_ZONE;
    let all = async || Api::<Pod>::all(client.clone()).list(&ListParams::default()).await;
    let lives = |pod: &&Pod| pod.metadata.deletion_timestamp.is_none();
    let waited = eventually("ready pods", Span::from_secs(180), async || {
        let ready = all().await?.iter().filter(lives).filter(|pod| is_ready(pod)).count();
        Ok((ready == pods).then_some(()))
    });
    if let Err(error) = waited.await {
        let others = all().await?.items.into_iter().filter(|pod| !is_ready(pod));
        let others: Vec<String> = others.map(|pod| format!("{}: {:?}", pod.name_any(), pod.status)).collect();
        return Err(error.context(format!("{} of {pods} are not Ready: {others:#?}", others.len())));
    }
    Ok(())
}

fn stateful_set(name: &str, replicas: u32) -> Value {
    let mut object = deployment(name, replicas, 2);
    object["spec"]["serviceName"] = json!(name);
    object["spec"]["podManagementPolicy"] = json!("Parallel");
    object
}

fn tolerate_maintenance(workload: &mut Value) {
    workload["spec"]["template"]["spec"]["tolerations"] = json!([{
        "key": MAINTENANCE, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": TOLERATION,
    }]);
}

/// Creates two volumes in each zone, which wait for a pod.
async fn create_volumes(client: &Client) -> Result<()> {
    let class = json!({
        "metadata": {"name": "waits"}, "provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer",
    });
    create(client, "/apis/storage.k8s.io/v1/storageclasses", &class).await?;
    for (number, zone) in ZONES.into_iter().cycle().take(6).enumerate() {
        let term = json!({"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]});
        let volume = json!({
            "metadata": {"name": format!("volume-{number}")},
            "spec": {
                "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "waits",
                "hostPath": {"path": "/data"},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [term]}]}},
            },
        });
        create(client, "/api/v1/persistentvolumes", &volume).await?;
    }
    Ok(())
}

/// Creates nine devices, one on each of nine nodes, and a template for claims to one of them.
async fn create_devices(client: &Client) -> Result<()> {
    let class = json!({
        "metadata": {"name": DEVICES},
        "spec": {"selectors": [{"cel": {"expression": format!("device.driver == '{DEVICES}'")}}]},
    });
    create(client, "/apis/resource.k8s.io/v1/deviceclasses", &class).await?;
    let request = json!({"name": "gpu", "exactly": {"deviceClassName": DEVICES}});
    let template =
        json!({"metadata": {"name": DEVICES}, "spec": {"spec": {"devices": {"requests": [request]}}}});
    create(client, "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates", &template).await?;
    for node in nodes_with_devices() {
        let slice = json!({
            "metadata": {"name": node},
            "spec": {
                "driver": DEVICES, "nodeName": node, "devices": [{"name": "gpu-0"}],
                "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            },
        });
        create(client, "/apis/resource.k8s.io/v1/resourceslices", &slice).await?;
    }
    Ok(())
}

/// The nodes that have a device.
pub fn nodes_with_devices() -> impl Iterator<Item = String> {
    ZONES.into_iter().flat_map(|zone| (1..=DEVICES_PER_ZONE).map(move |number| format!("{zone}{number}")))
}

/// The rule that taints the device of a node.
pub fn device_taint_rule(node: &str) -> Value {
    json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "DeviceTaintRule",
        "metadata": {"name": node},
        "spec": {
            "deviceSelector": {"driver": DEVICES, "pool": node},
            "taint": {"key": "example.com/broken", "effect": "NoExecute"},
        },
    })
}
