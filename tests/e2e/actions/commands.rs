//! The commands that kordon prints, run in a shell with the real kubectl: first as a dry run that changes nothing, then
//! for real. Each must do what kordon says.

use std::{collections::BTreeSet, time::Duration};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::{
    apps::v1::{Deployment, StatefulSet},
    core::v1::{Namespace, Node, Pod},
};
use kordon_time::Span;
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, PostParams},
};
use serde_json::{Value, json};

use super::cluster::{
    ClusterSize, UserShell, budgets, create_budget, nodes, pods, pods_on, set_budget, start_cluster,
};
use crate::harness::{
    eventually::eventually,
    kubelets::{CONTAINER, Kubelets},
    objects::deployment,
    plane::{ADMIN, Plane},
};

/// Runs the printed commands for nodes, workloads and budgets, and checks their effects.
pub async fn printed_commands_do_what_they_claim(plane: &mut Plane) -> Result<()> {
    let kubelets = start_cluster(plane, &ClusterSize::SMALL).await?;
    let kordon = UserShell::new(plane.kubeconfig(ADMIN)?);
    nodes_are_changed(plane, &kordon).await?;
    pods_and_what_they_belong_to_are_changed(plane, &kordon).await?;
    nodes_are_drained(plane, &kordon).await?;
    what_a_budget_keeps_is_let_go(plane, &kordon).await?;
    a_node_is_drained_without_evictions(plane, &kordon).await?;
    what_hangs_on_a_silent_node_is_removed(plane, &kordon, &kubelets).await
}

async fn nodes_are_changed(plane: &Plane, kordon: &UserShell) -> Result<()> {
    let all = Api::<Node>::all(plane.client());
    let spec = async || Ok::<_, anyhow::Error>(all.get("a1").await?.spec.context("a node has one")?);

    run(plane, &of_why(kordon, &["node", "a1"], "cordon").await?).await?;
    ensure!(spec().await?.unschedulable == Some(true));
    run(plane, &of_why(kordon, &["node", "a1"], "uncordon").await?).await?;
    ensure!(spec().await?.unschedulable != Some(true));
    run(plane, &of_plan(kordon, &["cordon", "a1", "b1"]).await?).await?;
    ensure!(spec().await?.unschedulable == Some(true));
    run(plane, &of_plan(kordon, &["uncordon", "a1", "b1"]).await?).await?;
    ensure!(spec().await?.unschedulable != Some(true));

    let taints = async || {
        let taints = spec().await?.taints.unwrap_or_default();
        let text = |taint: &k8s_openapi::api::core::v1::Taint| {
            format!("{}={}:{}", taint.key, taint.value.clone().unwrap_or_default(), taint.effect)
        };
        // kubectl adds several taints in random order, so they are compared as sets.
        Ok::<_, anyhow::Error>(taints.iter().map(text).collect::<BTreeSet<_>>())
    };
    let set = |taints: &[&str]| taints.iter().map(ToString::to_string).collect::<BTreeSet<_>>();
    run(plane, &of_plan(kordon, &["taint", "nodes", "a1", "team=a:NoSchedule", "x:NoExecute"]).await?)
        .await?;
    ensure!(taints().await? == set(&["x=:NoExecute", "team=a:NoSchedule"]), "{:?}", taints().await?);
    let line = ["taint", "a1", "team=b:NoSchedule", "--overwrite"];
    run(plane, &of_plan(kordon, &line).await?).await?;
    run(plane, &of_plan(kordon, &["taint", "a1", "x:NoExecute-"]).await?).await?;
    ensure!(taints().await? == set(&["team=b:NoSchedule"]), "{:?}", taints().await?);
    run(plane, &of_plan(kordon, &["taint", "a1", "team-"]).await?).await?;
    ensure!(taints().await?.is_empty());

    let label = async || Ok::<_, anyhow::Error>(all.get("a1").await?.labels().get("team").cloned());
    run(plane, &of_plan(kordon, &["label", "nodes", "a1", "team=a"]).await?).await?;
    ensure!(label().await?.as_deref() == Some("a"));
    run(plane, &of_plan(kordon, &["label", "a1", "team=b", "--overwrite"]).await?).await?;
    ensure!(label().await?.as_deref() == Some("b"));
    run(plane, &of_plan(kordon, &["label", "a1", "team-"]).await?).await?;
    ensure!(label().await?.is_none());

    let note = async || Ok::<_, anyhow::Error>(all.get("a1").await?.annotations().get(NOTE).cloned());
    let text = "disk swap, until noon";
    run(plane, &of_plan(kordon, &["annotate", "nodes", "a1", &format!("{NOTE}={text}")]).await?).await?;
    ensure!(note().await?.as_deref() == Some(text), "{:?}", note().await?);
    let line = ["annotate", "a1", &format!("{NOTE}=done"), "--overwrite"];
    run(plane, &of_plan(kordon, &line).await?).await?;
    ensure!(note().await?.as_deref() == Some("done"));
    run(plane, &of_plan(kordon, &["annotate", "a1", &format!("{NOTE}-")]).await?).await?;
    ensure!(note().await?.is_none());
    Ok(())
}

async fn pods_and_what_they_belong_to_are_changed(plane: &Plane, kordon: &UserShell) -> Result<()> {
    let client = plane.client();
    set_budget(&client, "web", json!(6)).await?;
    let web = pod_of(&client, "web").await?;
    run(plane, &wait_for_why(kordon, &["pod", &web], "scaleUp").await?).await?;
    let deployments = Api::<Deployment>::namespaced(client.clone(), "default");
    ensure!(deployments.get("web").await?.spec.and_then(|spec| spec.replicas) == Some(7));
    // The budget requires all seven pods, so it refuses evictions. Its numbers depend on whether the seventh pod is
    // Ready.
    set_budget(&client, "web", json!(7)).await?;
    wait_for_healthy(&client, "web", 7).await?;
    run(plane, &wait_for_why(kordon, &["pod", &web], "relaxBudget").await?).await?;
    let budget = budgets(&client).get("web").await?;
    let least = budget.spec.and_then(|spec| spec.min_available);
    ensure!(least == Some(k8s_openapi::apimachinery::pkg::util::intstr::IntOrString::Int(6)), "{least:?}");

    let of_default = Api::<Pod>::namespaced(client.clone(), "default");
    run(plane, &of_why(kordon, &["pod", &web], "delete").await?).await?;
    ensure!(of_default.get_opt(&web).await?.is_none(), "{web} is still there");

    create_pod(&client, "default", "held", "b1", &["example.com/held"]).await?;
    of_default.delete("held", &DeleteParams::default().grace_period(1)).await?;
    run(plane, &wait_for_why(kordon, &["pod", "held"], "removeFinalizers").await?).await?;
    eventually("a pod that is gone without its finalizers", Span::from_secs(10), async || {
        Ok(of_default.get_opt("held").await?.is_none().then_some(()))
    })
    .await
}

async fn nodes_are_drained(plane: &Plane, kordon: &UserShell) -> Result<()> {
    let client = plane.client();
    set_budget(&client, "web", json!(1)).await?;
    let apps = async |node: &str| {
        let pods = pods_on(&client, node).await?;
        let apps: Vec<String> = pods.iter().filter_map(|pod| pod.labels().get("app").cloned()).collect();
        Ok::<_, anyhow::Error>(apps)
    };
    let before = apps("c1").await?;
    let line = ["drain", "c1", "--pod-selector=app in (db)", "--grace-period=1", "--timeout=25s"];
    run(plane, &of_plan(kordon, &line).await?).await?;
    let web = before.iter().filter(|app| *app == "web").count();
    ensure!(apps("c1").await? == vec!["web"; web], "{before:?}, then {:?}", apps("c1").await?);
    run(plane, &of_why(kordon, &["node", "c1"], "drain").await?).await?;
    ensure!(apps("c1").await?.is_empty(), "{:?}", apps("c1").await?);
    Ok(())
}

/// Budgets refuse the evictions of three pods: a pod of a StatefulSet, a pod that is never Ready, and a pod that two
/// budgets protect.
async fn what_a_budget_keeps_is_let_go(plane: &Plane, kordon: &UserShell) -> Result<()> {
    let client = plane.client();
    let sets = Api::<StatefulSet>::namespaced(client.clone(), "default");
    let mut store = deployment("store", 2, 2);
    store["spec"]["serviceName"] = "store".into();
    sets.create(&PostParams::default(), &serde_json::from_value(store)?).await?;
    create_budget(&client, "store", "store", json!(2)).await?;
    wait_for_healthy(&client, "store", 2).await?;
    run(plane, &wait_for_why(kordon, &["pod", "store-0"], "scaleUp").await?).await?;
    ensure!(sets.get("store").await?.spec.and_then(|spec| spec.replicas) == Some(3));

    let mut sick = deployment("sick", 1, 2);
    sick["spec"]["template"]["metadata"]["labels"][CONTAINER] = "unready".into();
    let deployments = Api::<Deployment>::namespaced(client.clone(), "default");
    deployments.create(&PostParams::default(), &serde_json::from_value(sick)?).await?;
    create_budget(&client, "sick", "sick", json!(1)).await?;
    let pod = eventually("a pod that runs", Span::from_secs(20), async || {
        let found = pods(&client).await?.into_iter().find(|pod| pod.name_any().starts_with("sick"));
        let runs =
            |pod: &Pod| pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running");
        Ok(found.filter(runs).map(|pod| pod.name_any()))
    })
    .await?;
    run(plane, &wait_for_why(kordon, &["pod", &pod], "alwaysAllow").await?).await?;
    let policy = budgets(&client).get("sick").await?.spec.and_then(|spec| spec.unhealthy_pod_eviction_policy);
    ensure!(policy.as_deref() == Some("AlwaysAllow"), "{policy:?}");

    create_budget(&client, "store", "store-2", json!(1)).await?;
    run(plane, &wait_for_why(kordon, &["pod", "store-0"], "deleteBudget").await?).await?;
    let left = budgets(&client).list(&ListParams::default()).await?;
    let left: BTreeSet<String> = left.iter().map(ResourceExt::name_any).collect();
    ensure!(left == BTreeSet::from(["sick", "store", "web"].map(str::to_owned)), "{left:?}");

    for (name, kind) in [("store", "statefulsets"), ("sick", "deployments")] {
        plane
            .shell(&format!("kubectl delete {kind}/{name} pdb/{name} -n default --cascade=foreground"))
            .await?;
    }
    Ok(())
}

/// A budget refuses every eviction from the node, and a finalizer holds a pod there.
async fn a_node_is_drained_without_evictions(plane: &Plane, kordon: &UserShell) -> Result<()> {
    let client = plane.client();
    set_budget(&client, "web", json!("100%")).await?;
    let listed = pods(&client).await?;
    let protected = listed.iter().filter(|pod| pod.name_any().starts_with("web"));
    let mut nodes = protected.filter_map(|pod| pod.spec.as_ref()?.node_name.clone());
    let node =
        nodes.find(|node| ["a2", "b1", "b2"].contains(&&**node)).context("a node with a pod of web")?;
    create_pod(&client, "default", "stale", &node, &["example.com/held"]).await?;
    let of_default = Api::<Pod>::namespaced(client.clone(), "default");
    of_default.delete("stale", &DeleteParams::default().grace_period(1)).await?;
    // kubectl skips a pod if its deletion is overdue by more than `--skip-wait-for-delete-timeout`, in whole seconds.
    tokio::time::sleep(Duration::from_secs(4)).await;
    let line = ["drain", &node, "--disable-eviction", "--skip-wait-for-delete-timeout=1", "--timeout=25s"];
    let command = of_plan(kordon, &line).await?;
    for flag in ["--disable-eviction", "--skip-wait-for-delete-timeout=1"] {
        ensure!(command.contains(flag), "{command}");
    }
    run(plane, &command).await?;
    let left: Vec<String> = pods_on(&client, &node).await?.iter().map(ResourceExt::name_any).collect();
    ensure!(left == ["stale"], "{left:?}");
    run(plane, &wait_for_why(kordon, &["pod", "stale"], "removeFinalizers").await?).await?;
    run(plane, &of_plan(kordon, &["uncordon", &node]).await?).await?;
    set_budget(&client, "web", json!(1)).await
}

/// Pods in two namespaces stay Terminating on a node whose kubelet does not confirm their deletion. A command that did
/// not force each deletion would wait for the kubelet.
async fn what_hangs_on_a_silent_node_is_removed(
    plane: &Plane,
    kordon: &UserShell,
    kubelets: &Kubelets,
) -> Result<()> {
    let client = plane.client();
    let namespace = serde_json::from_value(json!({"metadata": {"name": "other"}}))?;
    Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &namespace).await?;
    let places = [("default", "one"), ("default", "two"), ("other", "three"), ("other", "four")];
    for (namespace, name) in places {
        create_pod(&client, namespace, name, "a1", &[]).await?;
    }
    kubelets.silence("a1").await?;
    for (namespace, name) in [places[0], places[2]] {
        let pods = Api::<Pod>::namespaced(client.clone(), namespace);
        pods.delete(name, &DeleteParams::default().grace_period(1)).await?;
    }
    let is_gone = async |(namespace, name): (&str, &str)| {
        let pod = Api::<Pod>::namespaced(client.clone(), namespace).get_opt(name).await?;
        Ok::<_, anyhow::Error>(pod.is_none())
    };
    run(plane, &wait_for_why(kordon, &["node", "a1"], "forceDelete").await?).await?;
    ensure!(is_gone(places[0]).await? && is_gone(places[2]).await?, "some hang");
    ensure!(!is_gone(places[1]).await? && !is_gone(places[3]).await?, "the others are left alone");
    run(plane, &of_plan(kordon, &["delete", "two", "other/four", "-n", "default", "--force"]).await?).await?;
    ensure!(is_gone(places[1]).await? && is_gone(places[3]).await?, "some hang");

    let is_out_of_service = async || {
        let node = Api::<Node>::all(client.clone()).get("a1").await?;
        let taints = node.spec.and_then(|spec| spec.taints).unwrap_or_default();
        Ok::<_, anyhow::Error>(taints.iter().any(|taint| taint.key == "node.kubernetes.io/out-of-service"))
    };
    run(plane, &of_why(kordon, &["node", "a1"], "outOfService").await?).await?;
    ensure!(is_out_of_service().await?);
    kubelets.come_back("a1").await?;
    run(plane, &wait_for_why(kordon, &["node", "a1"], "backInService").await?).await?;
    ensure!(!is_out_of_service().await?);

    kubelets.silence("c2").await?;
    run(plane, &wait_for_why(kordon, &["node", "c2"], "deleteNode").await?).await?;
    ensure!(!nodes(&client).await?.iter().any(|node| node.name_any() == "c2"));
    Ok(())
}

/// Creates a pod that is bound to a node, and waits until it runs.
async fn create_pod(
    client: &Client,
    namespace: &str,
    name: &str,
    node: &str,
    finalizers: &[&str],
) -> Result<()> {
    let pods = Api::<Pod>::namespaced(client.clone(), namespace);
    let pod = serde_json::from_value(json!({
        "metadata": {"name": name, "finalizers": finalizers},
        "spec": {"nodeName": node, "containers": [{"name": "c", "image": "img"}]},
    }))?;
    // A new namespace gets its service account only after a moment.
    eventually("a namespace with a service account", Span::from_secs(20), async || {
        Ok(pods.create(&PostParams::default(), &pod).await.is_ok().then_some(()))
    })
    .await?;
    eventually("a pod that runs", Span::from_secs(20), async || {
        let phase = pods.get(name).await?.status.and_then(|status| status.phase);
        Ok((phase.as_deref() == Some("Running")).then_some(()))
    })
    .await
}

/// Waits until a budget counts this many healthy pods.
async fn wait_for_healthy(client: &Client, budget: &str, pods: i32) -> Result<()> {
    eventually("healthy pods", Span::from_secs(30), async || {
        let healthy = budgets(client).get(budget).await?.status.map(|status| status.current_healthy);
        Ok((healthy == Some(pods)).then_some(()))
    })
    .await
}

async fn pod_of(client: &Client, app: &str) -> Result<String> {
    let found = pods(client).await?.into_iter().find(|pod| pod.name_any().starts_with(app));
    Ok(found.context("a pod")?.name_any())
}

/// Returns the kubectl command for an operation.
async fn of_plan(kordon: &UserShell, line: &[&str]) -> Result<String> {
    let output = kordon.run(&[&["plan"][..], line, &["-o", "json"]].concat()).await;
    let plan: Value = serde_json::from_str(&output.out).with_context(|| output.err)?;
    Ok(plan["command"].as_str().context("a command")?.to_owned())
}

/// Returns the command of an action that `kordon why` suggests. If the action is not suggested, the inner error is the
/// whole output of `kordon why`.
async fn find_in_why(kordon: &UserShell, about: &[&str], action: &str) -> Result<Result<String, String>> {
    let output = kordon.run(&[&["why"][..], about, &["-n", "default", "-o", "json"]].concat()).await;
    let why: Value = serde_json::from_str(&output.out).with_context(|| output.err)?;
    let actions = why["actions"].as_array().context("actions")?;
    let found = actions.iter().find(|found| found["action"] == action);
    Ok(found.and_then(|found| found["command"].as_str()).map(str::to_owned).ok_or_else(|| why.to_string()))
}

async fn of_why(kordon: &UserShell, about: &[&str], action: &str) -> Result<String> {
    let found = find_in_why(kordon, about, action).await?;
    found.map_err(|why| anyhow::anyhow!("no {action} for {about:?}: {why}"))
}

/// Waits until `kordon why` suggests an action, and returns its command.
async fn wait_for_why(kordon: &UserShell, about: &[&str], action: &str) -> Result<String> {
    eventually("the suggestion", Span::from_secs(40), async || {
        Ok(find_in_why(kordon, about, action).await?.ok())
    })
    .await
}

/// Runs a command in a shell: first as a server-side dry run, which the server has to accept, then for real.
async fn run(plane: &Plane, command: &str) -> Result<()> {
    ensure!(command.starts_with("kubectl "), "{command}");
    let before = State::read(plane).await?;
    let dry = format!("kubectl() {{ command kubectl \"$@\" --dry-run=server; }}; {command}");
    let printed = plane.shell(&dry).await?;
    let is_quiet = QUIET.iter().any(|quiet| command.starts_with(quiet));
    ensure!(is_quiet || printed.contains("server dry run"), "{command}: {printed}");
    let after = State::read(plane).await?;
    ensure!(before.wanted == after.wanted, "{command}: it was not a dry run");
    ensure!(before.alive.is_subset(&after.alive), "{command}: it was not a dry run");
    plane.shell(command).await.map(drop)
}

/// Key of a node annotation that no controller writes.
const NOTE: &str = "example.com/note";

/// Commands for which kubectl 1.37.1 prints nothing in a server-side dry run.
const QUIET: [&str; 2] = ["kubectl taint ", "kubectl patch "];

/// The part of the cluster's state that commands may change and controllers do not change.
struct State {
    /// Labels, annotation [`NOTE`], cordons and taints of the nodes, and specs of the budgets.
    wanted: Value,
    /// Uids of the pods that are not being deleted.
    alive: BTreeSet<String>,
}

impl State {
    async fn read(plane: &Plane) -> Result<Self> {
        let client = plane.client();
        let of_node = |node: Node| {
            let spec = node.spec.clone().unwrap_or_default();
            let mut taints = spec.taints.unwrap_or_default();
            taints.retain(|taint| !CONTROLLERS_TAINTS.contains(&&*taint.key));
            json!([node.name_any(), node.labels(), node.annotations().get(NOTE), spec.unschedulable, taints])
        };
        let nodes: Vec<Value> = nodes(&client).await?.into_iter().map(of_node).collect();
        let all = Api::<Pod>::all(client.clone()).list(&ListParams::default()).await?.items;
        let alive = all.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
        let budgets = budgets(&client).list(&ListParams::default()).await?.items;
        let budgets: Vec<Value> = budgets.into_iter().map(|budget| json!(budget.spec)).collect();
        Ok(Self { wanted: json!([nodes, budgets]), alive: alive.filter_map(ResourceExt::uid).collect() })
    }
}

const CONTROLLERS_TAINTS: [&str; 3] =
    ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable", "node.kubernetes.io/unschedulable"];
