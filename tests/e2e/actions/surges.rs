//! Deployments that a drain scales up while their pods leave, with the real controllers. A service with a single pod
//! always has a Ready pod. In the end the scale is restored, even if the drain was killed.

use std::process::Stdio;

use anyhow::{Context, Result, bail, ensure};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{Node, Pod},
    policy::v1::PodDisruptionBudget,
};
use kordon_time::Span;
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use super::cluster::{
    ClusterSize, OPERATOR, PLANNER, UserShell, create_budget, is_granted_eviction, may_drain, pods, rule,
    start_cluster,
};
use crate::harness::{eventually::eventually, kubelets::is_ready, objects::deployment, plane::Plane};

/// A drain of the node of a single replica, with `--surge`.
const DRAIN: [&str; 5] = ["--surge", "--ignore-daemonsets", "--enforce", "--yes", "-o=json"];

/// One pod under `minAvailable: 1` leaves once the new pod is Ready, and the Deployment is scaled back. A drain that is
/// killed before its end scales the Deployment back after it is resumed. Under an autoscaler, the plan says that the
/// Deployment cannot be scaled up.
pub async fn a_single_replica_moves_without_a_gap(plane: &mut Plane) -> Result<()> {
    let _kubelets = start_cluster(plane, &ClusterSize::PATIENT).await?;
    plane.grant(PLANNER, &may_drain()).await?;
    let scale = rule("apps", "deployments/scale", &["get", "patch"]);
    plane.grant(OPERATOR, &[&may_drain()[..], &[scale]].concat()).await?;
    let client = plane.client();
    let shell = UserShell::new(plane.kubeconfig(OPERATOR)?);
    let deployments = Api::<Deployment>::namespaced(client.clone(), "default");
    let solo = serde_json::from_value(deployment("solo", 1, 2))?;
    deployments.create(&PostParams::default(), &solo).await?;
    create_budget(&client, "solo", "solo", json!(1)).await?;
    let node = settled(&client).await?;

    let may_not_scale = UserShell::new(plane.kubeconfig(PLANNER)?);
    let output = may_not_scale.run(&[&["drain", &node][..], &DRAIN].concat()).await;
    ensure!(output.code == 9 && output.err.contains("deployments/scale"), "{}: {}", output.code, output.err);

    let before = granted(plane)?;
    let output = shell.run(&[&["drain", &node][..], &DRAIN].concat()).await;
    ensure!(output.code == 0, "{}: {}", output.code, output.err);
    let report: Value = serde_json::from_str(&output.out).context("a report")?;
    ensure!(report["surges"][0]["stage"] == "scaledBack", "{report}");
    check_moved(&client, &node).await?;
    // The budget, which needs one healthy pod, has granted the eviction. So another healthy pod existed.
    ensure!(granted(plane)? > before && scaled(plane)? == [2, 1], "{:?}", scaled(plane)?);

    let node = settled(&client).await?;
    // Without a scheduler, the new pod does not start, and the Deployment stays scaled up until the kill.
    plane.stop_scheduler().await?;
    kill_while_scaled_up(&shell, &node, &deployments).await?;
    plane.start_scheduler()?;
    let line = [&["drain", "--resume"][..], &DRAIN[2..]].concat();
    let output = shell.run(&line).await;
    ensure!(output.code == 0, "{}: {}", output.code, output.err);
    check_moved(&client, &node).await?;
    ensure!(
        scaled(plane)?[2..] == [2, 1],
        "scaled up before the kill, and back after it: {:?}",
        scaled(plane)?
    );

    let autoscaler = json!({"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "solo"}, "spec": {"minReplicas": 1, "maxReplicas": 3,
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "solo"}}});
    let autoscalers = Api::<k8s_openapi::api::autoscaling::v1::HorizontalPodAutoscaler>::namespaced(
        client.clone(),
        "default",
    );
    autoscalers.create(&PostParams::default(), &serde_json::from_value(autoscaler)?).await?;
    let node = settled(&client).await?;
    let output = shell.run(&["plan", "drain", &node, "--surge", "--ignore-daemonsets", "-o=json"]).await;
    let plan: Value = serde_json::from_str(&output.out).context("a plan")?;
    ensure!(
        plan["surges"][0]["refusal"] == "autoscaled" && plan["outcome"] == "blocked",
        "{}",
        plan["surges"]
    );
    autoscalers.delete("solo", &DeleteParams::default()).await?;
    Ok(())
}

/// Waits until the only pod of Deployment `solo` is Ready, its budget counts this pod, and the Deployment is settled. A
/// plan does not scale up a Deployment whose ReplicaSet is still being scaled. Returns the pod's node.
async fn settled(client: &Client) -> Result<String> {
    let budgets = Api::<PodDisruptionBudget>::namespaced(client.clone(), "default");
    let deployments = Api::<Deployment>::namespaced(client.clone(), "default");
    eventually("one Ready pod that its budget counts", Span::from_secs(60), async || {
        let deployment = deployments.get("solo").await?;
        let is_settled = deployment.status.is_some_and(|status| {
            status.observed_generation == deployment.metadata.generation && status.replicas == Some(1)
        });
        let healthy = budgets.get("solo").await?.status.map(|status| status.current_healthy);
        let found = solo(client).await?;
        let [pod] = &found[..] else { return Ok(None) };
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
        Ok(node.filter(|_| is_settled && is_ready(pod) && healthy == Some(1)))
    })
    .await
}

async fn solo(client: &Client) -> Result<Vec<Pod>> {
    let mut found = pods(client).await?;
    found.retain(|pod| pod.labels().get("app").is_some_and(|label| label == "solo"));
    Ok(found)
}

/// Checks that the Deployment has one pod again, on another node. Uncordons the first node: the pod may be on the other
/// node of the zone, and a drain does not take a zone's last schedulable node.
async fn check_moved(client: &Client, from: &str) -> Result<()> {
    let deployments = Api::<Deployment>::namespaced(client.clone(), "default");
    let spec = deployments.get("solo").await?.spec.context("a spec")?;
    ensure!(spec.replicas == Some(1), "{:?}", spec.replicas);
    let to = settled(client).await?;
    ensure!(to != from, "it is still on {from}");
    let uncordon = Patch::Merge(json!({"spec": {"unschedulable": false}}));
    Api::<Node>::all(client.clone()).patch(from, &PatchParams::default(), &uncordon).await?;
    Ok(())
}

/// Starts a drain, and kills it when the Deployment is scaled up.
async fn kill_while_scaled_up(shell: &UserShell, node: &str, deployments: &Api<Deployment>) -> Result<()> {
    let words = [&["drain", node, "--kubeconfig", &shell.kubeconfig][..], &DRAIN].concat();
    let mut drain = shell.shell.command(&words);
    let drain = drain.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let scaled_up = eventually("a Deployment that is scaled up", Span::from_secs(60), async || {
        let replicas = deployments.get("solo").await?.spec.and_then(|spec| spec.replicas);
        Ok((replicas == Some(2)).then_some(()))
    });
    // Dropping the future kills the drain.
    tokio::select! {
        scaled_up = scaled_up => scaled_up,
        output = drain.wait_with_output() => bail!("the drain ended, and was not seen scaling up: {:?}", output?),
    }
}

fn granted(plane: &Plane) -> Result<usize> {
    Ok(plane.audit_of(OPERATOR)?.iter().filter(|line| is_granted_eviction(line)).count())
}

/// Returns the replica counts that the operator wrote to `scale` subresources, in order. Only granted writes count.
fn scaled(plane: &Plane) -> Result<Vec<i64>> {
    let is_scale = |line: &&Value| {
        line["verb"] == "patch"
            && line["objectRef"]["subresource"] == "scale"
            && line["responseStatus"]["code"] == 200
    };
    let lines = plane.audit_of(OPERATOR)?;
    let replicas = |line: &Value| line["requestObject"]["spec"]["replicas"].as_i64();
    Ok(lines.iter().filter(is_scale).filter_map(replicas).collect())
}
