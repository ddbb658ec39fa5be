//! kordon as the controller of a real control plane, with exactly the rights of `deploy/`.
//!
//! `KORDON_RUN` (as in `10m`) sets for how long the test kills two controllers in turn.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kordon_clock::Clock;
use kordon_time::{Span, Timestamp};
use kube::{
    Api, ResourceExt,
    api::{ListParams, PostParams},
};
use serde_json::Value;

use crate::{
    common::program::path_of_binary,
    control_plane::{
        TOLERATION, api_server_outage_is_survived, create_running, drained_deployment_moves,
        node_back_in_time_keeps_its_pods, not_ready_is_believed_at_once, on, pod, silent_node_is_emptied,
        start_controllers, three_zones,
    },
    harness::{
        component::Component,
        effect_watcher::{EffectKind, EffectWatcher},
        eventually::eventually,
        plane::{self, ControllerManager, LIFECYCLE, Lifecycle, Options, Plane},
    },
};

/// The service account of `deploy/controller`.
pub const CONTROLLER: &str = "system:serviceaccount:kordon:kordon-controller";
/// Users with the same rights, so that two controllers can be distinguished.
const FIRST: &str = "kordon-first";
const SECOND: &str = "kordon-second";
const VIEWER: &str = "viewer";
const OPERATOR: &str = "operator";
const EXPORTER: &str = "system:serviceaccount:kordon:kordon-exporter";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kordon_does_what_the_real_controllers_do() {
    let Some(binary) = plane::binary("e2e_controller").unwrap() else { return };
    let users = vec![CONTROLLER, FIRST, SECOND, VIEWER, OPERATOR, EXPORTER];
    let lifecycle = Lifecycle::Kordon { user: CONTROLLER };
    let options =
        Options { toleration_seconds: TOLERATION, audit: true, users, lifecycle, ..Options::default() };
    let mut plane = Plane::start(&binary, options).await.unwrap();
    apply_roles(&plane).await.unwrap();

    // The first five scenarios also run with the real controllers, with the same expectations.
    plane.scenario("silent node is marked, tainted and emptied by kordon", silent_node_is_emptied).await;
    plane.scenario("node back in time keeps its pods under kordon", node_back_in_time_keeps_its_pods).await;
    plane.scenario("kordon taints a node that reports not ready", not_ready_is_believed_at_once).await;
    plane.scenario("kordon survives an outage of the API server", api_server_outage_is_survived).await;
    plane.scenario("drained deployment moves beside kordon", drained_deployment_moves).await;
    plane.scenario("kordon collects the pods of a deleted node", pods_of_a_deleted_node_are_collected).await;
    plane.scenario("kordon writes what it may and nothing else", every_write_was_permitted).await;
    plane.scenario("each role is enough for what it is for", each_role_is_enough).await;
    plane.scenario("two controllers, killed in turn", two_controllers_killed_in_turn).await;
}

/// Applies every kustomization of `deploy/`, and binds its roles to the test's users as well.
async fn apply_roles(plane: &Plane) -> Result<()> {
    for role in ["viewer", "operator", "exporter", "controller"] {
        apply_role(plane, role).await?;
    }
    for (user, role) in [(VIEWER, "kordon-viewer"), (OPERATOR, "kordon-operator")] {
        bind(plane, user, role).await?;
    }
    for user in [FIRST, SECOND] {
        bind(plane, user, "kordon-controller").await?;
        for namespace in ["kube-node-lease", "kube-system"] {
            let name = format!("test-{user}");
            let user = format!("--user={user}");
            plane
                .kubectl(&[
                    "create",
                    "rolebinding",
                    &name,
                    "--role=kordon-controller",
                    &user,
                    "-n",
                    namespace,
                ])
                .await?;
        }
    }
    Ok(())
}

/// Applies one kustomization of `deploy/`.
pub async fn apply_role(plane: &Plane, role: &str) -> Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy").join(role).display().to_string();
    plane.kubectl(&["apply", "-k", &folder]).await.map(drop)
}

async fn bind(plane: &Plane, user: &str, role: &str) -> Result<()> {
    let (name, role, user) =
        (format!("test-{user}"), format!("--clusterrole={role}"), format!("--user={user}"));
    plane.kubectl(&["create", "clusterrolebinding", &name, &role, &user]).await.map(drop)
}

async fn pods_of_a_deleted_node_are_collected(plane: &mut Plane) -> Result<()> {
    let client = plane.client();
    let kubelets = three_zones(&client, 1).await?;
    create_running(&client, &[pod("orphan", "a1", None)]).await?;
    start_controllers(plane, &lifecycle_manager()).await?;
    let mut watcher = EffectWatcher::start(&client).await?;
    kubelets.remove("a1").await?;
    // The pod garbage collector checks every 20 s, and deletes pods after a quarantine of 40 s. One check may come just
    // before the quarantine is over.
    let gone =
        watcher.wait_for_effect(&EffectKind::PodGone(on("a1", "orphan")), Span::from_secs(110)).await?;
    let removed = watcher.time_of(&EffectKind::NodeGone { node: "a1".into() }).context("the node is gone")?;
    ensure!(gone.since(removed) >= Span::from_secs(38), "before the quarantine was over\n{watcher}");
    let reasons = event_reasons(plane).await?;
    ensure!(reasons.contains_key("RemovingNode") && reasons.contains_key("RegisteredNode"), "{reasons:?}");
    Ok(())
}

/// Checks that the earlier scenarios had no request for which the controller lacks the right.
async fn every_write_was_permitted(plane: &mut Plane) -> Result<()> {
    let lines = plane.audit_of(CONTROLLER)?;
    ensure!(lines.len() > 100, "only {} requests", lines.len());
    let is_refused = |line: &&Value| line["responseStatus"]["code"] == 403;
    let what = |line: &Value| {
        let of = &line["objectRef"];
        format!("{} {} {}/{}", line["verb"], of["namespace"], of["resource"], of["subresource"])
    };
    let allowed: BTreeSet<String> = lines.iter().filter(|line| !is_refused(line)).map(what).collect();
    // An API server that has just started refuses all users until it has read its roles.
    let refused: Vec<&Value> =
        lines.iter().filter(is_refused).filter(|line| !allowed.contains(&what(line))).collect();
    ensure!(refused.is_empty(), "{refused:#?}");
    Ok(())
}

async fn each_role_is_enough(plane: &mut Plane) -> Result<()> {
    let client = plane.client();
    let _kubelets = three_zones(&client, 2).await?;
    start_controllers(plane, &lifecycle_manager()).await?;
    create_running(&client, &[pod("web", "a1", None)]).await?;
    for (user, line, code) in [
        (VIEWER, &["status"][..], 0),
        (VIEWER, &["cordon", "a1", "--enforce", "--yes"][..], 9),
        (EXPORTER, &["status"][..], 0),
        (EXPORTER, &["evict", "web", "--enforce", "--yes"][..], 9),
        (OPERATOR, &["drain", "a1", "--force", "--enforce", "--yes"][..], 0),
        (OPERATOR, &["uncordon", "a1", "--enforce", "--yes"][..], 0),
    ] {
        let output = run_kordon(plane, user, line).await?;
        ensure!(output.status.code() == Some(code), "{user}: {line:?}: {output:?}");
    }
    let refused = |line: &&Value| {
        let user = line["user"]["username"].as_str().unwrap_or_default();
        [VIEWER, OPERATOR, EXPORTER].contains(&user) && line["responseStatus"]["code"] == 403
    };
    let lines = plane.audit()?;
    let refused: Vec<&Value> = lines.iter().filter(refused).map(|line| &line["requestURI"]).collect();
    // The roles do not include reading measurements from kubelets and metrics servers.
    let unexpected: Vec<_> =
        refused.iter().filter(|uri| !uri.to_string().contains("metrics.k8s.io")).collect();
    ensure!(unexpected.is_empty(), "{unexpected:#?}");
    Ok(())
}

async fn run_kordon(plane: &Plane, user: &str, line: &[&str]) -> Result<std::process::Output> {
    let mut command = std::process::Command::new(path_of_binary());
    command.args(line).env_clear().env("HOME", plane.folder()).env("KUBECONFIG", plane.kubeconfig(user)?);
    Ok(tokio::task::spawn_blocking(move || command.output()).await??)
}

/// Nodes fall silent one after the other and come back, while every 20 s the leader is killed and started again.
async fn two_controllers_killed_in_turn(plane: &mut Plane) -> Result<()> {
    let client = plane.client();
    let kubelets = three_zones(&client, 4).await?;
    let manager = ControllerManager::default();
    let controllers = &LIFECYCLE[..2];
    let start = |plane: &Plane, user: &'static str| plane.start_kordon(user, user, &manager, controllers);
    let mut running: BTreeMap<&'static str, Component> = BTreeMap::new();
    for user in [FIRST, SECOND] {
        running.insert(user, start(plane, user)?);
    }
    let length: Duration = match std::env::var("KORDON_RUN") {
        Ok(text) => humantime::parse_duration(&text)?,
        Err(_) => Duration::from_secs(60),
    };
    let clock = Clock::system();
    let (begun, ends) = (clock.now(), clock.now() + Span::from(length));
    let pods = Api::<Pod>::namespaced(client.clone(), "default");
    let names: Vec<String> = kubelets.names().map(str::to_owned).collect();
    let (mut next_kill, mut kills, mut round) = (begun + Span::from_secs(20), 0, 0);
    while clock.now() < ends {
        let node = &names[round % names.len()];
        let name = format!("victim-{round}");
        pods.create(&PostParams::default(), &serde_json::from_value(pod(&name, node, None))?).await?;
        kubelets.silence(node).await?;
        if clock.now() >= next_kill {
            let before = leader(&client).await?;
            let user = if kills % 2 == 0 { FIRST } else { SECOND };
            let user = running.keys().copied().find(|user| leads(plane, user, &before)).unwrap_or(user);
            running.get_mut(user).context("it runs")?.kill()?;
            eventually("another leader", Span::from_secs(30), async || {
                Ok((leader(&client).await? != before).then_some(()))
            })
            .await?;
            running.insert(user, start(plane, user)?);
            (next_kill, kills) = (next_kill + Span::from_secs(20), kills + 1);
        }
        let evicted = |pod: Option<Pod>| pod.is_none_or(|pod| pod.metadata.deletion_timestamp.is_some());
        eventually(&format!("the eviction of {name} from {node}"), Span::from_secs(60), async || {
            Ok(evicted(pods.get_opt(&name).await?).then_some(()))
        })
        .await?;
        kubelets.come_back(node).await?;
        round += 1;
    }
    ensure!(kills > 0 && round > 2, "{kills} kills, {round} evictions");
    for mut component in running.into_values() {
        component.stop().await?;
    }
    only_one_wrote_at_any_time(plane, begun, kills)?;
    each_pod_was_deleted_once(plane, round)
}

/// Whether this user's controller holds the Lease, according to its log.
fn leads(plane: &Plane, user: &str, holder: &str) -> bool {
    let log = std::fs::read_to_string(plane.folder().join(format!("{user}.log"))).unwrap_or_default();
    !holder.is_empty() && log.contains(&format!("as {holder}: writes from now on"))
}

/// Returns the holder of kordon's Lease; empty if there is none.
pub async fn leader(client: &kube::Client) -> Result<String> {
    let leases = Api::<k8s_openapi::api::coordination::v1::Lease>::namespaced(client.clone(), "kube-system");
    let lease = leases.get_opt("kordon-controller").await?;
    Ok(lease.and_then(|lease| lease.spec?.holder_identity).unwrap_or_default())
}

/// Checks the order of the writers in the audit log: with each kill, the Lease changes hands at most once.
fn only_one_wrote_at_any_time(plane: &Plane, begun: Timestamp, kills: usize) -> Result<()> {
    let mut writes: Vec<(Timestamp, String)> = Vec::new();
    for line in plane.audit()? {
        let user = line["user"]["username"].as_str().unwrap_or_default();
        let is_write = matches!(line["verb"].as_str(), Some("patch" | "update" | "create" | "delete"));
        let is_lease = line["objectRef"]["resource"] == "leases";
        let is_review = line["objectRef"]["apiGroup"] == "authentication.k8s.io";
        let at = line["requestReceivedTimestamp"].as_str().and_then(Timestamp::parse);
        if let Some(at) = at.filter(|at| *at >= begun)
            && [FIRST, SECOND].contains(&user)
            && is_write
            && !is_lease
            && !is_review
        {
            writes.push((at, user.to_owned()));
        }
    }
    writes.sort();
    let changes = writes.windows(2).filter(|pair| pair[0].1 != pair[1].1).count();
    ensure!(changes > 0, "nobody took over: {} writes", writes.len());
    ensure!(changes <= kills, "{changes} changes of writers with {kills} kills");
    Ok(())
}

fn each_pod_was_deleted_once(plane: &Plane, pods: usize) -> Result<()> {
    let mut deletions: BTreeMap<String, usize> = BTreeMap::new();
    for line in plane.audit()? {
        let user = line["user"]["username"].as_str().unwrap_or_default();
        let is_done = line["responseStatus"]["code"].as_i64().is_some_and(|code| code < 300);
        let object = &line["objectRef"];
        if [FIRST, SECOND].contains(&user)
            && line["verb"] == "delete"
            && object["resource"] == "pods"
            && is_done
        {
            *deletions.entry(object["name"].as_str().unwrap_or_default().to_owned()).or_default() += 1;
        }
    }
    ensure!(deletions.len() == pods, "{pods} pods, and deletions of {deletions:?}");
    let twice: Vec<_> = deletions.iter().filter(|(_, count)| **count > 1).collect();
    ensure!(twice.is_empty(), "deleted twice: {twice:?}");
    Ok(())
}

fn lifecycle_manager() -> ControllerManager {
    ControllerManager { controllers: LIFECYCLE.to_vec(), ..ControllerManager::default() }
}

/// Returns the number of Events for each reason.
async fn event_reasons(plane: &Plane) -> Result<BTreeMap<String, usize>> {
    let events = Api::<k8s_openapi::api::core::v1::Event>::all(plane.client());
    let mut reasons = BTreeMap::new();
    for event in events.list(&ListParams::default()).await? {
        let reason = event.reason.clone().unwrap_or_else(|| event.name_any());
        *reasons.entry(reason).or_default() += 1;
    }
    Ok(reasons)
}
