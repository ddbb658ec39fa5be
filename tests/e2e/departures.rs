//! Pods that leave for every reason that the real components have, and kordon's report of each: in a session that saw
//! them leave, and afterwards in `kordon why pod`.
//!
//! A finalizer keeps each pod, so that its departure can be explained.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::{
    apps::v1::Deployment, batch::v1::Job, core::v1::Node, core::v1::Pod, scheduling::v1::PriorityClass,
};
use kordon_core::cluster::Key;
use kordon_time::Span;
use kube::{
    Api, Client, ResourceExt,
    api::{ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::common::program::{self, Shell};
use crate::harness::{
    eventually::eventually,
    kubelets::{Heartbeats, Kubelets, NodeSpec, is_ready},
    observer::Observer,
    plane::{self, ADMIN, ControllerManager, Options, Plane},
};

/// Finalizer that keeps the pods.
const FINALIZER: &str = "kordon.test/keep";

/// Each reason has a node of its own, so that a pod leaves only for the reason of its node.
const NODES: [&str; 7] = ["drained", "preempted", "tainted", "deleted", "jobs", "users", "scaled"];

/// The expected report of a departure: the pod, the kind of departure, the certainty of this kind, and text of its
/// evidence.
struct Named {
    pod: String,
    kind: &'static str,
    certainty: &'static str,
    evidence: &'static str,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_departure_is_named_with_its_evidence() {
    let Some(binary) = plane::binary("e2e_departures").unwrap() else { return };
    let mut plane = Plane::start(&binary, Options::default()).await.unwrap();
    plane.scenario("every departure is named with its evidence", departures_are_named).await;
}

async fn departures_are_named(plane: &mut Plane) -> Result<()> {
    let client = plane.client();
    let specs = NODES.map(|name| NodeSpec::new(name, "a")).into();
    let kubelets = Kubelets::start(&client, specs, Heartbeats::default()).await?;
    let manager = ControllerManager {
        controllers: vec!["*"],
        grace_period: Span::from_secs(40),
        ..ControllerManager::default()
    };
    plane.start_controller_manager(&manager)?;
    plane.start_scheduler()?;
    wait_until_schedulable(&client).await?;
    create_pods(&client).await?;
    let mut observer = Observer::start(client.clone(), manager.settings()?);
    observer
        .wait_until("the engine", Span::from_secs(20).to_std(), |state| state.confidence.is_some())
        .await?;

    // The node `deleted` is removed first, because its pod takes longest to leave: the pod garbage collector waits for
    // 40 s.
    kubelets.remove("deleted").await?;
    let drain = ["drain", "drained", "--force", "--ignore-daemonsets", "--timeout=5s"];
    ensure!(plane.kubectl(&drain).await.is_err(), "the finalizer keeps the pod, and the drain waits for it");
    pods(&client).create(&PostParams::default(), &urgent()?).await?;
    plane.kubectl(&["taint", "node", "tainted", "maintenance=now:NoExecute"]).await?;
    plane.kubectl(&["delete", "pod", "users", "--wait=false"]).await?;
    plane.kubectl(&["scale", "deployment", "scaled", "--replicas=1"]).await?;
    let job = end_containers(&client, "app=jobs", "Succeeded", ("Completed", 0)).await?;
    let killed = end_containers(&client, "app=killed", "Failed", ("OOMKilled", 137)).await?;

    let scaled = removed(&client, "app=scaled", Span::from_secs(30)).await?;
    for name in ["drained", "preempted", "tainted", "users"] {
        removed(&client, &format!("app={name}"), Span::from_secs(30)).await?;
    }
    removed(&client, "app=deleted", Span::from_secs(120)).await?;

    let named = [
        ("drained", "apiEviction", "certain", "DisruptionTarget: EvictionByEvictionAPI"),
        ("preempted", "preemption", "certain", "DisruptionTarget: PreemptionByScheduler"),
        ("tainted", "taintEviction", "certain", "DisruptionTarget: DeletionByTaintManager"),
        ("deleted", "podGarbageCollection", "certain", "DisruptionTarget: DeletionByPodGC"),
        (&job, "jobCompletion", "certain", "pod of Job jobs"),
        ("users", "deletion", "likely", "deleted through the API, and nothing else explains it"),
        (&scaled, "scaleDown", "certain", "Event SuccessfulDelete from replicaset-controller"),
        (&killed, "oomKill", "certain", "OOMKilled, exit code 137"),
    ];
    let named =
        named.map(|(pod, kind, certainty, evidence)| Named { pod: pod.into(), kind, certainty, evidence });
    for named in &named {
        check_why(plane, named).await?;
    }
    check_pressure(plane).await?;
    check_session(observer, &named).await
}

/// The nodes have no real kubelets, and there is no metrics server. `kordon plan pressure` still succeeds, and says why
/// usage and thresholds are unknown.
async fn check_pressure(plane: &Plane) -> Result<()> {
    let kubeconfig = plane.kubeconfig(ADMIN)?;
    let arguments = ["--kubeconfig", program::path(&kubeconfig), "plan", "pressure", "users", "-o", "json"];
    let output = Shell::new().run(&arguments).await;
    ensure!(output.code == 0, "{}", output.err);
    let report: Value = serde_json::from_str(&output.out)?;
    let why = |field: &str| report[field].as_str().is_some_and(|why| !why.is_empty());
    ensure!(report["usage"].is_null() && why("usageError"), "{report:#}");
    ensure!(report["thresholds"] == "defaults" && why("thresholdsError"), "{report:#}");
    println!("pressure without kubelets: {}; {}", report["usageError"], report["thresholdsError"]);
    Ok(())
}

/// Checks the report of `kordon why pod` on a pod.
async fn check_why(plane: &Plane, named: &Named) -> Result<()> {
    let kubeconfig = plane.kubeconfig(ADMIN)?;
    let Named { pod, kind, certainty, evidence } = named;
    let pod = format!("default/{pod}");
    let arguments = ["--kubeconfig", program::path(&kubeconfig), "why", "pod", &pod, "-o", "json"];
    let output = Shell::new().run(&arguments).await;
    ensure!(output.code == 0, "{pod}: {}", output.err);
    let report: Value = serde_json::from_str(&output.out)?;
    let departure = &report["departure"];
    ensure!(departure["kind"] == *kind && departure["certainty"] == *certainty, "{pod}: {departure:#}");
    let texts = departure["evidence"].as_array().context("evidence")?;
    let says = |text: &Value| {
        text["agrees"] == true && text["text"].as_str().is_some_and(|text| text.contains(evidence))
    };
    ensure!(texts.iter().any(says), "{pod}: {departure:#}");
    Ok(())
}

/// Checks the report of a session that has seen the pods leave.
async fn check_session(observer: Observer, all: &[Named]) -> Result<()> {
    let model = observer.finish().await?;
    for Named { pod, kind, .. } in all {
        let entry = model.departures.of_pod(&Key::new("default", pod));
        let entry = entry.with_context(|| format!("{pod}: no departure"))?;
        ensure!(entry.departure.kind.as_str() == *kind, "{pod}: {entry:#?}");
    }
    Ok(())
}

async fn wait_until_schedulable(client: &Client) -> Result<()> {
    let nodes = Api::<Node>::all(client.clone());
    eventually("nodes without taints", Span::from_secs(20), async || {
        let tainted = |node: &Node| node.spec.as_ref().is_some_and(|spec| spec.taints.is_some());
        Ok((!nodes.list(&ListParams::default()).await?.iter().any(tainted)).then_some(()))
    })
    .await
}

/// Creates a pod on each node, and waits until they are ready.
async fn create_pods(client: &Client) -> Result<()> {
    let new = PostParams::default();
    for name in ["drained", "preempted", "tainted", "deleted", "users"] {
        pods(client).create(&new, &serde_json::from_value(pod(name, name, json!({})))?).await?;
    }
    let once = json!({ "restartPolicy": "Never" });
    pods(client).create(&new, &serde_json::from_value(pod("killed", "users", once.clone()))?).await?;
    let job = json!({ "metadata": { "name": "jobs" }, "spec": { "template": pod("jobs", "jobs", once) } });
    Api::<Job>::namespaced(client.clone(), "default").create(&new, &serde_json::from_value(job)?).await?;
    let deployment = json!({ "metadata": { "name": "scaled" }, "spec": {
        "replicas": 2,
        "selector": { "matchLabels": { "app": "scaled" } },
        "template": pod("scaled", "scaled", json!({})),
    }});
    let deployments = Api::<Deployment>::namespaced(client.clone(), "default");
    deployments.create(&new, &serde_json::from_value(deployment)?).await?;
    let class = json!({ "metadata": { "name": "urgent" }, "value": 1000 });
    Api::<PriorityClass>::all(client.clone()).create(&new, &serde_json::from_value(class)?).await?;
    eventually("ready pods", Span::from_secs(30), async || {
        let listed = pods(client).list(&ListParams::default()).await?;
        Ok((listed.items.len() == 9 && listed.iter().all(is_ready)).then_some(()))
    })
    .await
}

/// A pod for one node. The pod `preempted` is so large that a node has room for only one pod of its size.
fn pod(name: &str, node: &str, more: Value) -> Value {
    let cpu = if name == "preempted" { "3" } else { "100m" };
    let mut spec = json!({
        "nodeSelector": { "kubernetes.io/hostname": node },
        "terminationGracePeriodSeconds": 2,
        "containers": [{ "name": "c", "image": "img", "resources": { "requests": { "cpu": cpu } } }],
    });
    for (key, value) in more.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    json!({ "metadata": { "name": name, "labels": { "app": name }, "finalizers": [FINALIZER] }, "spec": spec })
}

/// A pod of high priority that needs the room of the pod `preempted`.
fn urgent() -> Result<Pod> {
    let mut urgent = pod("preempted", "preempted", json!({ "priorityClassName": "urgent" }));
    urgent["metadata"] = json!({ "name": "urgent" });
    Ok(serde_json::from_value(urgent)?)
}

/// Posts, as a kubelet would, that the container of a pod ended. Returns the name of the pod.
async fn end_containers(client: &Client, label: &str, phase: &str, how: (&str, i32)) -> Result<String> {
    let found = pods(client).list(&ListParams::default().labels(label)).await?;
    let name = found.items.first().context("a pod")?.name_any();
    let (reason, code) = how;
    let ended = json!({ "exitCode": code, "reason": reason, "finishedAt": kordon_clock::wall().to_time() });
    let status = json!({ "phase": phase, "containerStatuses": [{
        "name": "c", "image": "img", "imageID": "", "ready": false, "restartCount": 0,
        "state": { "terminated": ended },
    }]});
    let patch = Patch::Strategic(json!({ "status": status }));
    pods(client).patch_status(&name, &PatchParams::default(), &patch).await?;
    Ok(name)
}

/// Waits until a pod with this label is being removed, and returns its name.
async fn removed(client: &Client, label: &str, within: Span) -> Result<String> {
    eventually(&format!("a pod with {label} that is removed"), within, async || {
        let listed = pods(client).list(&ListParams::default().labels(label)).await?;
        let removed = listed.iter().find(|pod| pod.metadata.deletion_timestamp.is_some());
        Ok(removed.map(ResourceExt::name_any))
    })
    .await
}

fn pods(client: &Client) -> Api<Pod> {
    Api::namespaced(client.clone(), "default")
}
