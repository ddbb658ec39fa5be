//! A large, busy cluster on loopback, to load clients with: `cargo run --release --example large_cluster -- --help`.
//!
//! It serves the embedded API with nodes, their leases and pods of about 7 KB each, renews leases and changes pods at
//! a given rate, and ends when its standard input does. The first line it prints is its address.

use std::{io::Read, time::Duration};

use clap::Parser;
use kordon::{
    clock::Clock,
    demo::api::{Api, ApiOptions},
};
use kube::api::{Api as Objects, DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

/// Serves a large cluster on loopback until standard input ends.
#[derive(Parser)]
struct Arguments {
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: std::net::SocketAddr,
    #[arg(long, default_value_t = 5000)]
    nodes: usize,
    #[arg(long, default_value_t = 150_000)]
    pods: usize,
    /// Lease renewals a second.
    #[arg(long, default_value_t = 0)]
    renewals: u32,
    /// Pod status changes a second.
    #[arg(long, default_value_t = 0)]
    changes: u32,
    /// Bytes of a pod, about.
    #[arg(long, default_value_t = 7000)]
    pod_bytes: usize,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let api = Api::new(Clock::system(), ApiOptions { history_bytes: 256 << 20, ..ApiOptions::default() });
    seed(&api, &arguments);
    let listener = tokio::net::TcpListener::bind(arguments.listen).await?;
    println!("http://{}", listener.local_addr()?);
    let stop = CancellationToken::new();
    let ended = stop.clone();
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        ended.cancel();
    });
    tokio::select! {
        served = api.serve(listener, stop) => served?,
        () = renew(&api, &arguments) => {}
        () = change(&api, &arguments) => {}
    }
    Ok(())
}

fn seed(api: &Api, arguments: &Arguments) {
    for i in 0..arguments.nodes {
        api.load("nodes", node(i));
        api.load("leases", lease(i));
    }
    let filler = filler(arguments.pod_bytes);
    for i in 0..arguments.pods {
        api.load("pods", pod(i, arguments.nodes.max(1), &filler));
    }
}

async fn renew(api: &Api, arguments: &Arguments) {
    let leases: Objects<DynamicObject> = Objects::namespaced_with(
        api.client(),
        "kube-node-lease",
        &ApiResource::from_gvk(&GroupVersionKind::gvk("coordination.k8s.io", "v1", "Lease")),
    );
    let clock = Clock::system();
    each(arguments.renewals, async |i| {
        let patch = json!({"spec": {"renewTime": clock.now().to_micro_time()}});
        patch_one(&leases, &format!("node-{:05}", i % arguments.nodes.max(1)), patch).await;
    })
    .await;
}

async fn change(api: &Api, arguments: &Arguments) {
    let pods: Objects<DynamicObject> = Objects::namespaced_with(
        api.client(),
        "default",
        &ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Pod")),
    );
    each(arguments.changes, async |i| {
        let patch = json!({"metadata": {"annotations": {"change": i.to_string()}}});
        patch_one(&pods, &format!("pod-{:06}", (i * 7919) % arguments.pods.max(1)), patch).await;
    })
    .await;
}

async fn patch_one(objects: &Objects<DynamicObject>, name: &str, patch: Value) {
    if let Err(error) = objects.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await {
        eprintln!("{name} was not changed: {error}");
    }
}

/// Does something this many times a second, without end.
async fn each(per_second: u32, mut act: impl AsyncFnMut(usize)) {
    if per_second == 0 {
        return std::future::pending().await;
    }
    // Timers are no finer than a millisecond: rounds, each of as many as are due.
    let mut round = interval(Duration::from_millis(10));
    round.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let begun = round.tick().await;
    let mut done = 0;
    loop {
        let due = round.tick().await.duration_since(begun).as_millis() * u128::from(per_second) / 1000;
        while (done as u128) < due {
            act(done).await;
            done += 1;
        }
    }
}

fn node(i: usize) -> Value {
    let name = format!("node-{i:05}");
    let conditions: Vec<Value> = [
        ("MemoryPressure", "False", "KubeletHasSufficientMemory"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID"),
        ("Ready", "True", "KubeletReady"),
    ]
    .into_iter()
    .map(|(kind, status, reason)| {
        json!({"type": kind, "status": status, "reason": reason, "message": "as it should be",
            "lastHeartbeatTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z"})
    })
    .collect();
    json!({"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name,
            "topology.kubernetes.io/region": "r1", "topology.kubernetes.io/zone": format!("r1-{}", ["a", "b", "c"][i % 3]),
            "node.kubernetes.io/instance-type": "m.large", "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}},
        "spec": {"podCIDR": "10.0.0.0/24", "providerID": format!("demo:///{name}")},
        "status": {"capacity": {"cpu": "16", "memory": "64Gi", "pods": "110"},
            "allocatable": {"cpu": "15500m", "memory": "60Gi", "pods": "110"}, "conditions": conditions,
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "Hostname", "address": name}],
            "nodeInfo": {"kubeletVersion": "v1.36.3", "osImage": "Debian", "kernelVersion": "6.12",
                "containerRuntimeVersion": "containerd://2.1", "architecture": "amd64", "operatingSystem": "linux"}}})
}

fn lease(i: usize) -> Value {
    let name = format!("node-{i:05}");
    json!({"metadata": {"name": name, "namespace": "kube-node-lease"},
        "spec": {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": "2026-01-01T00:00:00.000000Z"}})
}

fn pod(i: usize, nodes: usize, filler: &Value) -> Value {
    let set = format!("app-{:04}-7c5ddbdf54", i / 30);
    json!({"metadata": {"name": format!("pod-{i:06}"), "namespace": "default",
            "labels": {"app": format!("app-{:04}", i / 30), "pod-template-hash": "7c5ddbdf54"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": set,
                "uid": format!("00000000-0000-4000-8000-{:012}", i / 30), "controller": true, "blockOwnerDeletion": true}],
            "managedFields": filler},
        "spec": {"nodeName": format!("node-{:05}", i % nodes), "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30, "schedulerName": "default-scheduler", "priority": 0,
            "containers": [{"name": "main", "image": "registry.example/app:1.2.3",
                "resources": {"requests": {"cpu": "250m", "memory": "512Mi"}, "limits": {"memory": "512Mi"}}}],
            "tolerations": [
                {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
                {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}]},
        "status": {"phase": "Running", "qosClass": "Burstable", "podIP": "10.1.0.1", "startTime": "2026-01-01T00:00:00Z",
            "conditions": [
                {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"},
                {"type": "ContainersReady", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"},
                {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
            "containerStatuses": [{"name": "main", "ready": true, "restartCount": 0, "image": "registry.example/app:1.2.3",
                "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}]}})
}

/// managedFields as deep and as long as real ones: what makes most of a pod's bytes.
fn filler(pod_bytes: usize) -> Value {
    let mut fields = serde_json::Map::new();
    let mut length = 0;
    while length + 1700 < pod_bytes {
        let name = format!("k:{{\"name\":\"VARIABLE_{:03}\"}}", fields.len());
        let field = json!({".": {}, "f:name": {}, "f:value": {}, "f:valueFrom": {"f:configMapKeyRef": {}}});
        length += name.len() + 80;
        fields.insert(name, field);
    }
    json!([{"manager": "kube-controller-manager", "operation": "Update", "apiVersion": "v1",
        "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {"f:containers": {"k:{\"name\":\"main\"}": {"f:env": fields}}}}}])
}
