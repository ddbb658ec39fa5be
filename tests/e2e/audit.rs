//! Compares `kordon audit` with what `kubectl drain` then does to each node, for one family of findings after the other:
//! half of the families on one control plane, half on another.
//!
//! With `KORDON_DUMPS=FOLDER` it also writes the objects of each family to `audit-FAMILY.json`, and what kubectl did to
//! each node to `audit-FAMILY.drains.json`: the inputs of `tests/program/audit.rs`.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context, Result, bail, ensure};
use k8s_openapi::api::core::v1::Pod;
use kordon_time::Span;
use kube::{
    Api, Client, ResourceExt,
    api::{ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::{
    common::program::{self, Shell},
    control_plane::start_controllers,
    harness::{
        eventually::eventually,
        kubelets::{CONTAINER, CRASHES, Heartbeats, Kubelets, NodeSpec, is_ready},
        objects::create,
        plane::{self, ADMIN, ControllerManager, Options, Plane},
    },
};

/// A test cluster for one family of findings: its nodes, its objects, and its number of pods once it has settled.
struct Family {
    name: &'static str,
    nodes: &'static [&'static str],
    objects: Vec<(&'static str, Value)>,
    pods: usize,
}

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
const PODS: &str = "/api/v1/namespaces/default/pods";
const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";
const CLAIMS: &str = "/api/v1/namespaces/default/persistentvolumeclaims";
const VOLUMES: &str = "/api/v1/persistentvolumes";

/// Kinds of objects that a dump has.
const DUMPED: &str = "nodes,namespaces,pods,deployments,replicasets,statefulsets,daemonsets,replicationcontrollers,jobs,\
    cronjobs,poddisruptionbudgets,services,persistentvolumes,persistentvolumeclaims,storageclasses,csinodes,\
    resourcequotas,priorityclasses,leases,validatingwebhookconfigurations,mutatingwebhookconfigurations";

/// Timeout of kubectl drain. Pods here end within a second.
const PATIENCE: &str = "--timeout=15s";

fn families() -> Vec<Family> {
    let two = |mut pod: Value| {
        pod["spec"]["replicas"] = json!(2);
        pod
    };
    vec![
        Family {
            name: "budgets",
            nodes: &["full", "twice", "fine"],
            objects: vec![
                (DEPLOYMENTS, two(near("full", "full", json!({})))),
                (BUDGETS, budget("full", "full", json!({"minAvailable": 2}))),
                (DEPLOYMENTS, two(near("twice", "twice", json!({})))),
                (BUDGETS, budget("twice-a", "twice", json!({"minAvailable": 1}))),
                (BUDGETS, budget("twice-b", "twice", json!({"maxUnavailable": 1}))),
                (DEPLOYMENTS, two(near("fine", "fine", json!({})))),
                (BUDGETS, budget("fine", "fine", json!({"maxUnavailable": 1}))),
            ],
            pods: 6,
        },
        Family {
            name: "health",
            nodes: &["crash", "allowed", "well"],
            objects: vec![
                (DEPLOYMENTS, two(crashing(near("crash", "crash", json!({}))))),
                (BUDGETS, budget("crash", "crash", json!({"minAvailable": 1}))),
                (DEPLOYMENTS, crashing(near("allowed", "allowed", json!({})))),
                (
                    BUDGETS,
                    budget(
                        "allowed",
                        "allowed",
                        json!({"minAvailable": 1, "unhealthyPodEvictionPolicy": "AlwaysAllow"}),
                    ),
                ),
                (DEPLOYMENTS, near("well", "well", json!({}))),
            ],
            pods: 4,
        },
        Family {
            name: "losses",
            nodes: &["bare", "scratch", "job", "once"],
            objects: vec![
                (PODS, bare("bare", "bare")),
                (
                    DEPLOYMENTS,
                    near("scratch", "scratch", json!({"volumes": [{"name": "scratch", "emptyDir": {}}]})),
                ),
                (JOBS, job("job", 0)),
                (JOBS, job("once", 3)),
            ],
            pods: 4,
        },
        Family {
            name: "places",
            nodes: &["named", "only", "tolerant", "spare"],
            objects: vec![
                (DEPLOYMENTS, near("named", "named", json!({"nodeName": "named"}))),
                (
                    DEPLOYMENTS,
                    near("only", "only", json!({"nodeSelector": {"kubernetes.io/hostname": "only"}})),
                ),
                (
                    DEPLOYMENTS,
                    near(
                        "tolerant",
                        "tolerant",
                        json!({"tolerations": [{"operator": "Exists"}], "nodeSelector": {"kubernetes.io/hostname": "tolerant"}}),
                    ),
                ),
            ],
            pods: 3,
        },
        Family {
            name: "volumes",
            nodes: &["disk", "free"],
            objects: vec![
                (VOLUMES, local_volume("disk")),
                (CLAIMS, claim("disk")),
                (
                    DEPLOYMENTS,
                    near(
                        "disk",
                        "disk",
                        json!({"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "disk"}}]}),
                    ),
                ),
                (DEPLOYMENTS, near("free", "free", json!({}))),
            ],
            pods: 2,
        },
        Family {
            name: "held",
            nodes: &["finalizer", "calm"],
            objects: vec![(DEPLOYMENTS, finalized(near("finalizer", "finalizer", json!({}))))],
            pods: 1,
        },
    ]
}

/// A Deployment of one pod that prefers this node.
fn near(name: &str, node: &str, more: Value) -> Value {
    let mut spec = json!({
        "terminationGracePeriodSeconds": 1,
        "containers": [{"name": "c", "image": "img"}],
        "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{
            "weight": 100,
            "preference": {"matchExpressions": [
                {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]},
        }]}},
    });
    let more = more.as_object().expect("fields of a pod's spec").clone();
    spec.as_object_mut().expect("an object").extend(more);
    json!({
        "metadata": {"name": name},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": spec},
        },
    })
}

fn crashing(mut deployment: Value) -> Value {
    deployment["spec"]["template"]["metadata"]["labels"][CONTAINER] = json!(CRASHES);
    deployment
}

fn finalized(mut deployment: Value) -> Value {
    deployment["spec"]["template"]["metadata"]["finalizers"] = json!(["kordon.test/keep"]);
    deployment
}

fn budget(name: &str, app: &str, rule: Value) -> Value {
    let mut budget = json!({"metadata": {"name": name}, "spec": {"selector": {"matchLabels": {"app": app}}}});
    let rule = rule.as_object().expect("fields of a budget's spec").clone();
    budget["spec"].as_object_mut().expect("an object").extend(rule);
    budget
}

fn bare(name: &str, node: &str) -> Value {
    let mut pod = near(name, node, json!({}))["spec"]["template"].take();
    pod["metadata"]["name"] = json!(name);
    pod
}

fn job(name: &str, backoff_limit: u32) -> Value {
    let mut template = near(name, name, json!({"restartPolicy": "Never"}))["spec"]["template"].take();
    template["metadata"] = json!({});
    json!({"metadata": {"name": name}, "spec": {"backoffLimit": backoff_limit, "template": template}})
}

fn local_volume(node: &str) -> Value {
    json!({"metadata": {"name": node}, "spec": {
        "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "local",
        "local": {"path": "/data"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
            {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}]}},
    }})
}

fn claim(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {
        "accessModes": ["ReadWriteOnce"], "storageClassName": "local", "volumeName": name,
        "resources": {"requests": {"storage": "1Gi"}}}})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubectl_drain_does_to_each_node_what_the_audit_says() {
    let Some(binary) = plane::binary("e2e_audit").unwrap() else { return };
    let audited = async |families: Vec<Family>| {
        let mut plane = Plane::start(&binary, Options::default()).await.unwrap();
        for family in families {
            let name = format!("audit: {}", family.name);
            plane.scenario(&name, async |plane| drains_as_audited(plane, &family).await).await;
        }
    };
    let mut first = families();
    let second = first.split_off(first.len() / 2);
    tokio::join!(audited(first), audited(second));
}

async fn drains_as_audited(plane: &mut Plane, family: &Family) -> Result<()> {
    let client = plane.client();
    let specs = family.nodes.iter().map(|name| NodeSpec::new(*name, "a")).collect();
    let _kubelets = Kubelets::start(&client, specs, Heartbeats::default()).await?;
    let manager = ControllerManager { controllers: vec!["*"], ..ControllerManager::default() };
    start_controllers(plane, &manager).await?;
    plane.start_scheduler()?;
    for (path, object) in &family.objects {
        create(&client, path, object).await?;
    }
    settle(plane, family.pods).await?;

    let live = audit(plane, &[]).await?;
    let dump = plane.kubectl(&["get", DUMPED, "-A", "-o", "json"]).await?;
    let file = plane.folder().join("dump.json");
    fs::write(&file, &dump)?;
    let file = program::path(&file).to_owned();
    let read = audit_with(&["--from", &file, "--complete"]).await?;
    ensure!(said(&live) == said(&read), "live: {live:#}\nfrom a dump: {read:#}");

    let mut drains = BTreeMap::new();
    for node in family.nodes {
        settle(plane, family.pods).await.with_context(|| format!("before the drain of {node}"))?;
        let said = audit(plane, &[node]).await?;
        let done = drain(plane, node).await?;
        check(&said["nodes"][0], &done).with_context(|| format!("{said:#}\n{done:?}"))?;
        drains.insert(*node, done.report());
        plane.kubectl(&["uncordon", node]).await?;
        restore(plane, family).await?;
    }
    keep(family, &dump, &json!(drains))
}

/// What kubectl drain did to a node.
#[derive(Debug)]
struct Drained {
    /// The refusal of kubectl without `--force` and `--delete-emptydir-data`; empty if kubectl does not refuse.
    refused: String,
    /// Whether `kubectl drain --force --delete-emptydir-data` ended before its timeout.
    ends: bool,
    /// Whether the node is empty after the drain.
    is_empty: bool,
    /// Number of pods that find no node after the drain.
    pending: usize,
}

impl Drained {
    fn report(&self) -> Value {
        let flags = ["--force", "--delete-emptydir-data"];
        let needs: Vec<&str> = flags.into_iter().filter(|flag| self.refused.contains(flag)).collect();
        json!({"needs": needs, "ends": self.ends, "isEmpty": self.is_empty, "pending": self.pending})
    }
}

async fn drain(plane: &Plane, node: &str) -> Result<Drained> {
    // If kubectl refuses, no pod leaves. A dry run shows whether it would refuse.
    let dry = plane.kubectl(&["drain", node, "--ignore-daemonsets", "--dry-run=client"]).await;
    let refused = dry.err().map(|error| error.to_string()).unwrap_or_default();
    let flags = ["drain", node, "--ignore-daemonsets", "--force", "--delete-emptydir-data", PATIENCE];
    let ends = plane.kubectl(&flags).await.is_ok();
    tokio::time::sleep(Span::from_secs(3).to_std()).await;
    let pods = Api::<Pod>::all(plane.client()).list(&ListParams::default()).await?.items;
    let on = |pod: &&Pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name.as_deref() == Some(node));
    let is_finished = |pod: &Pod| phase(pod).is_some_and(|phase| phase == "Failed" || phase == "Succeeded");
    let is_pending = |pod: &&Pod| phase(pod) == Some("Pending") && pod.metadata.deletion_timestamp.is_none();
    Ok(Drained {
        refused,
        ends,
        is_empty: pods.iter().filter(on).all(is_finished),
        pending: pods.iter().filter(is_pending).filter(|pod| !on(pod)).count(),
    })
}

fn phase(pod: &Pod) -> Option<&str> {
    pod.status.as_ref()?.phase.as_deref()
}

/// Compares the audit of a node with what kubectl did to it.
fn check(said: &Value, done: &Drained) -> Result<()> {
    let needs: Vec<&str> = said["needs"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    ensure!(needs.is_empty() == done.refused.is_empty(), "what kubectl refuses");
    for flag in needs {
        ensure!(done.refused.contains(flag), "kubectl does not ask for {flag}");
    }
    let completes = said["prospect"] == "completes";
    ensure!(completes == (done.ends && done.is_empty), "whether the drain empties the node");
    ensure!(!completes || said["pending"] == done.pending, "replacements that find no node");
    Ok(())
}

/// The parts of a report that are the same for a live cluster and for its dump. Times are left out.
fn said(report: &Value) -> Value {
    let nodes = report["nodes"].as_array().into_iter().flatten();
    let nodes: Vec<Value> = nodes
        .map(|node| json!([node["node"], node["prospect"], node["needs"], node["pods"], node["findings"]]))
        .collect();
    let findings = report["findings"].as_array().into_iter().flatten();
    let findings: Vec<Value> =
        findings.map(|finding| json!([finding["id"], finding["pods"], finding["says"]])).collect();
    json!([nodes, findings])
}

async fn audit(plane: &Plane, more: &[&str]) -> Result<Value> {
    let kubeconfig = plane.kubeconfig(ADMIN)?;
    let place = ["--kubeconfig", program::path(&kubeconfig)];
    audit_with(&[&place[..], more].concat()).await
}

async fn audit_with(arguments: &[&str]) -> Result<Value> {
    let words = [&["audit", "-o", "json", "--fail-on", "never"], arguments].concat();
    let output = Shell::new().run(&words).await;
    ensure!(output.code == 0, "{}", output.err);
    Ok(serde_json::from_str(&output.out)?)
}

/// Waits until all pods are on nodes and run, and budgets are computed.
async fn settle(plane: &Plane, wanted: usize) -> Result<()> {
    let pods = Api::<Pod>::default_namespaced(plane.client());
    eventually("settled pods", Span::from_secs(60), async || {
        let listed = pods.list(&ListParams::default()).await?.items;
        let runs = |pod: &&Pod| {
            let crashes = pod.labels().contains_key(CONTAINER) && phase(pod) == Some("Running");
            pod.metadata.deletion_timestamp.is_none() && (is_ready(pod) || crashes)
        };
        Ok((listed.iter().filter(runs).count() == wanted).then_some(()))
    })
    .await?;
    // The disruption controller follows the pods within a second.
    tokio::time::sleep(Span::from_secs(2).to_std()).await;
    Ok(())
}

/// Recreates the pods that a drain has lost, and sends workloads back to the nodes that they prefer.
async fn restore(plane: &Plane, family: &Family) -> Result<()> {
    let client = plane.client();
    plane.kubectl(&["delete", "jobs", "--all", "--cascade=foreground"]).await?;
    plane.kubectl(&["delete", "pods", "-l", "app", "--grace-period=1", "--wait=false"]).await?;
    let pods = Api::<Pod>::default_namespaced(client.clone());
    for pod in pods.list(&ListParams::default()).await?.items {
        if pod.metadata.deletion_timestamp.is_some() && !pod.finalizers().is_empty() {
            let none = Patch::Merge(json!({"metadata": {"finalizers": null}}));
            pods.patch(&pod.name_any(), &PatchParams::default(), &none).await?;
        }
    }
    for (path, object) in family.objects.iter().filter(|(path, _)| [PODS, JOBS].contains(path)) {
        recreate(&client, path, object).await?;
    }
    Ok(())
}

async fn recreate(client: &Client, path: &str, object: &Value) -> Result<()> {
    eventually("an object again", Span::from_secs(20), async || match create(client, path, object).await {
        Ok(()) => Ok(Some(())),
        Err(error) if format!("{error:#}").contains("AlreadyExists") => Ok(None),
        Err(error) => bail!("{error:#}"),
    })
    .await
}

/// Writes the objects of a family, and what kubectl did to its nodes, to files in the folder `KORDON_DUMPS`.
fn keep(family: &Family, dump: &str, drains: &Value) -> Result<()> {
    let Some(folder) = std::env::var_os("KORDON_DUMPS") else { return Ok(()) };
    let folder = Path::new(&folder);
    let mut objects: Value = serde_json::from_str(dump)?;
    objects["metadata"] = json!({});
    fs::write(folder.join(format!("audit-{}.json", family.name)), format!("{objects:#}\n"))?;
    fs::write(folder.join(format!("audit-{}.drains.json", family.name)), format!("{drains:#}\n"))?;
    Ok(())
}
