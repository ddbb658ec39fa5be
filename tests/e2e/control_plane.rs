//! The behaviour of the real controllers without kordon, on which kordon's predictions are based.

use anyhow::{Context, Result, bail, ensure};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{Node, Pod},
    policy::v1::PodDisruptionBudget,
    rbac::v1::PolicyRule,
};
use kordon_core::timing::{ClusterSize, DeathTimes, Harmless, HeartbeatKind, KubeletFlags, TimingProfile};
use kordon_time::{Span, Timestamp};
use kube::{
    Api, Client, ResourceExt,
    api::{ListParams, PostParams},
};
use serde_json::{Value, json};

use crate::{
    encodings::both_encodings_mean_the_same,
    harness::{
        self,
        effect_watcher::{EffectKind, EffectWatcher, PodName},
        eventually::eventually,
        kubelets::{Heartbeats, Kubelets, NodeSpec},
        objects::deployment,
        plane::{self, ControllerManager, Options, Plane},
    },
};

/// The `tolerationSeconds` that admission adds in this test; the default is 300.
pub const TOLERATION: u32 = 4;

/// A user with no rights except those that a scenario grants.
const VIEWER: &str = "viewer";

/// One control plane runs all scenarios in turn, because starting it takes about as long as a scenario.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_real_control_plane_behaves_as_assumed() {
    let Some(binary) = plane::binary("e2e").unwrap() else { return };
    let options =
        Options { toleration_seconds: TOLERATION, audit: true, users: vec![VIEWER], ..Options::default() };
    let mut plane = Plane::start(&binary, options).await.unwrap();

    plane.scenario("both encodings mean the same objects", both_encodings_mean_the_same).await;
    plane.scenario("silent node is marked, tainted and emptied", silent_node_is_emptied).await;
    plane.scenario("node back in time keeps its pods", node_back_in_time_keeps_its_pods).await;
    plane
        .scenario("flags take as long, and blips do, what timing says", flags_take_as_long_as_timing_says)
        .await;
    plane.scenario("node that reports not ready is tainted immediately", not_ready_is_believed_at_once).await;
    plane.scenario("all components survive an outage of the API server", api_server_outage_is_survived).await;
    plane.scenario("drained deployment moves within its budget", drained_deployment_moves).await;
    plane.scenario("user without rights is rejected, and audited", user_without_rights_is_refused).await;
}

pub async fn silent_node_is_emptied(plane: &mut Plane) -> Result<()> {
    let client = plane.client();
    let kubelets = three_zones(&client, 3).await?;
    let (usual, patient) =
        (pod("usual", "a1", None), pod("patient", "a1", Some(json!([{ "operator": "Exists" }]))));
    create_running(&client, &[usual, patient]).await?;
    let manager = ControllerManager::default();
    start_controllers(plane, &manager).await?;
    let mut watcher = EffectWatcher::start(&client).await?;

    let last_beat = kubelets.silence("a1").await?;
    let unknown = watcher.wait_for_effect(&EffectKind::unknown("a1"), Span::from_secs(15)).await?;
    let silent = unknown.since(last_beat);
    // One monitor pass sees the last heartbeat up to a period late, and another pass sees the end of the grace period
    // up to a period late.
    let latest = manager.grace_period + manager.monitor_period * 2 + Span::from_secs(1);
    ensure!(manager.grace_period <= silent && silent <= latest, "Unknown after {silent:?}");
    let tainted = watcher.wait_for_effect(&EffectKind::unreachable_taint("a1"), Span::from_secs(5)).await?;
    let deleted =
        watcher.wait_for_effect(&EffectKind::PodDeleted(on("a1", "usual")), Span::from_secs(10)).await?;
    let tolerated = deleted.since(tainted);
    let [least, most] = [-1, 1].map(|off| Span::from_secs(i64::from(TOLERATION) + off)); // the timeAdded of a taint has whole seconds
    ensure!(least <= tolerated && tolerated <= most, "deleted {tolerated:?} after the taint\n{watcher}");
    ensure!(watcher.time_of(&EffectKind::PodNotReady(on("a1", "patient"))).is_some(), "{watcher}");

    kubelets.come_back("a1").await?;
    watcher.wait_for_effect(&ready("a1"), Span::from_secs(5)).await?;
    watcher.wait_for_effect(&unreachable_taint_removed("a1"), Span::from_secs(10)).await?;
    watcher.wait_for_effect(&EffectKind::PodGone(on("a1", "usual")), Span::from_secs(5)).await?;
    watcher.wait_for_effect(&EffectKind::PodReady(on("a1", "patient")), Span::from_secs(5)).await?;
    let others = watcher.effects().into_iter().find(|effect| effect.kind.node() != Some("a1"));
    ensure!(others.is_none(), "something happened elsewhere: {others:?}\n{watcher}");
    ensure!(watcher.time_of(&EffectKind::PodDeleted(on("a1", "patient"))).is_none(), "{watcher}");
    Ok(())
}

/// Nodes a1 and b1 fall silent together. The pod of a1 is deleted. b1 comes back before the deletion of its pod is due.
pub async fn node_back_in_time_keeps_its_pods(plane: &mut Plane) -> Result<()> {
    let client = plane.client();
    let kubelets = three_zones(&client, 3).await?;
    create_running(&client, &[pod("lost", "a1", None), pod("saved", "b1", None)]).await?;
    start_controllers(plane, &ControllerManager::default()).await?;
    let mut watcher = EffectWatcher::start(&client).await?;

    kubelets.silence("b1").await?;
    kubelets.silence("a1").await?;
    watcher.wait_for_effect(&EffectKind::unreachable_taint("b1"), Span::from_secs(15)).await?;
    kubelets.come_back("b1").await?;
    let saved = watcher.wait_for_effect(&unreachable_taint_removed("b1"), Span::from_secs(10)).await?;
    let lost =
        watcher.wait_for_effect(&EffectKind::PodDeleted(on("a1", "lost")), Span::from_secs(20)).await?;
    let due = watcher.time_of(&EffectKind::unreachable_taint("b1")).context("tainted")?
        + Span::from_secs(TOLERATION.into());
    ensure!(saved < due, "the node was back too late to show anything\n{watcher}");
    let after_both = lost.max(due) + Span::from_secs(1);
    sleep_until(after_both).await;
    ensure!(watcher.time_of(&EffectKind::PodDeleted(on("b1", "saved"))).is_none(), "{watcher}");
    Ok(())
}

/// Two nodes die. One comes back before its pods are evicted, the other before it becomes Unknown.
pub async fn flags_take_as_long_as_timing_says(plane: &mut Plane) -> Result<()> {
    const TOLERATES: Span = Span::from_secs(12);
    let client = plane.client();
    let kubelets = three_zones(&client, 3).await?;
    let pods = ["a1", "b1", "c1", "c2"].map(|node| {
        let tolerations = json!([{
            "key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute",
            "tolerationSeconds": TOLERATES.as_secs(),
        }]);
        pod(node, node, Some(tolerations))
    });
    create_running(&client, &pods).await?;
    let (period, grace_period) = (Span::from_secs(2), Span::from_secs(7));
    let manager = ControllerManager { monitor_period: period, grace_period, ..ControllerManager::default() };
    let profile = timing_profile(&manager, TOLERATES)?;
    let size = ClusterSize { nodes: 9, pods_per_node: 1, zones: 3 };
    let Harmless { without_unknown: Some(quiet), without_eviction: Some(safe) } =
        Harmless::new(&profile, size)
    else {
        bail!("nothing is ever evicted with these flags");
    };
    start_controllers(plane, &manager).await?;
    let mut watcher = EffectWatcher::start(&client).await?;

    let mut beats = Vec::new();
    for node in ["a1", "b1", "c1", "c2"] {
        beats.push(kubelets.silence(node).await?);
    }
    sleep_until(beats[3] + quiet - period).await;
    kubelets.come_back("c2").await?;
    sleep_until(beats[2] + safe - period).await;
    kubelets.come_back("c1").await?;
    for (node, last_beat) in [("a1", beats[0]), ("b1", beats[1])] {
        let deleted = EffectKind::PodDeleted(on(node, node));
        watcher.wait_for_effect(&deleted, Span::from_secs(30)).await?;
        let effects = [EffectKind::unknown(node), EffectKind::unreachable_taint(node), deleted];
        let times: Option<Vec<Timestamp>> = effects.iter().map(|effect| watcher.time_of(effect)).collect();
        let times = times.with_context(|| format!("{node} is not Unknown and tainted\n{watcher}"))?;
        ensure!(times.is_sorted(), "{node}: {times:?}\n{watcher}");
        for (what, (at, [least, most])) in
            ["Unknown", "taint", "deletion"].into_iter().zip(times.iter().zip(expected(&profile, size)?))
        {
            let took = at.since(last_beat);
            // Allows 1 s less, because a taint's timeAdded has whole seconds, and 3 s more, because a busy machine may
            // be late.
            let is_right = least - Span::from_secs(1) <= took && took <= most + Span::from_secs(3);
            ensure!(is_right, "{what} of {node} after {took:?} instead of {least:?} to {most:?}\n{watcher}");
        }
    }
    ensure!(
        watcher.time_of(&EffectKind::unknown("c2")).is_none(),
        "a blip of {quiet:?} was noticed\n{watcher}"
    );
    ensure!(watcher.time_of(&EffectKind::unknown("c1")).is_some(), "a blip was not noticed\n{watcher}");
    sleep_until(beats[2] + grace_period + TOLERATES + period * 3).await;
    for node in ["c1", "c2"] {
        let is_deleted = watcher.time_of(&EffectKind::PodDeleted(on(node, node))).is_some();
        ensure!(!is_deleted, "a blip shorter than {safe:?} evicted the pod of {node}\n{watcher}");
    }
    Ok(())
}

/// Builds kordon's timing profile from the controller manager's flags and the intervals of the simulated kubelets.
fn timing_profile(manager: &ControllerManager, toleration: Span) -> Result<TimingProfile> {
    let Heartbeats { every, status_each } = Heartbeats::default();
    let kubelet = KubeletFlags {
        heartbeat: HeartbeatKind::Lease,
        status_update_frequency: every,
        status_report_frequency: every * i64::from(status_each),
        lease_duration: every * 4,
    };
    let settings = manager.settings()?;
    let defaults = TimingProfile::defaults(plane::VERSION, HeartbeatKind::Lease);
    Ok(TimingProfile { kubelet, toleration, settings, ..defaults })
}

/// Returns three pairs of a shortest and a longest time, counted from the last heartbeat of a node: until the node is
/// Unknown, until it is tainted, and until its pod is deleted.
fn expected(profile: &TimingProfile, size: ClusterSize) -> Result<[[Span; 2]; 3]> {
    let DeathTimes { unknown: Some(unknown), tainted: Some(tainted), deleted: Some(deleted), .. } =
        DeathTimes::new(profile, size)
    else {
        bail!("nothing happens to a dead node with these flags");
    };
    // `range.best` is the case of a node that dies just before its next heartbeat.
    Ok([unknown, tainted, deleted].map(|range| [range.best + profile.kubelet.interval(), range.worst]))
}

pub async fn not_ready_is_believed_at_once(plane: &mut Plane) -> Result<()> {
    let client = plane.client();
    let kubelets = three_zones(&client, 2).await?;
    create_running(&client, &[pod("usual", "c1", None)]).await?;
    let manager = ControllerManager { grace_period: Span::from_secs(30), ..ControllerManager::default() };
    start_controllers(plane, &manager).await?;
    let mut watcher = EffectWatcher::start(&client).await?;

    kubelets.post("c1", "Ready", "False").await?;
    let not_ready = |effect: &str| EffectKind::TaintAdded {
        node: "c1".into(),
        key: "node.kubernetes.io/not-ready".into(),
        effect: effect.into(),
    };
    watcher.wait_for_effect(&not_ready("NoSchedule"), Span::from_secs(5)).await?;
    watcher.wait_for_effect(&not_ready("NoExecute"), Span::from_secs(5)).await?;
    // The kubelet is still running, so it finishes deleted pods.
    watcher.wait_for_effect(&EffectKind::PodDeleted(on("c1", "usual")), Span::from_secs(10)).await?;
    watcher.wait_for_effect(&EffectKind::PodGone(on("c1", "usual")), Span::from_secs(5)).await?;
    ensure!(watcher.time_of(&EffectKind::unknown("c1")).is_none(), "{watcher}");
    Ok(())
}

pub async fn api_server_outage_is_survived(plane: &mut Plane) -> Result<()> {
    let client = plane.client();
    let kubelets = three_zones(&client, 3).await?;
    let manager = ControllerManager { grace_period: Span::from_secs(12), ..ControllerManager::default() };
    start_controllers(plane, &manager).await?;
    let mut watcher = EffectWatcher::start(&client).await?;

    plane.kill_api_server()?;
    let nodes = Api::<Node>::all(client.clone());
    ensure!(nodes.list(&ListParams::default()).await.is_err(), "a killed API server answers");
    plane.start_api_server().await?;

    kubelets.silence("b2").await?;
    watcher.wait_for_effect(&EffectKind::unknown("b2"), Span::from_secs(30)).await?;
    ensure!(
        watcher.time_of(&EffectKind::unknown("a1")).is_none(),
        "the outage was longer than the grace period\n{watcher}"
    );
    plane.check()?;
    Ok(())
}

pub async fn drained_deployment_moves(plane: &mut Plane) -> Result<()> {
    let client = plane.client();
    let _kubelets = three_zones(&client, 1).await?;
    let manager = ControllerManager { controllers: vec!["*"], ..ControllerManager::default() };
    start_controllers(plane, &manager).await?;
    plane.start_scheduler()?;
    let deployments = Api::<Deployment>::namespaced(client.clone(), "default");
    deployments.create(&PostParams::default(), &serde_json::from_value(deployment("web", 3, 30))?).await?;
    let budgets = Api::<PodDisruptionBudget>::namespaced(client.clone(), "default");
    budgets.create(&PostParams::default(), &serde_json::from_value(budget("web", 1))?).await?;
    eventually("a ready deployment with a budget", Span::from_secs(30), async || {
        let ready = deployments.get("web").await?.status.and_then(|status| status.ready_replicas) == Some(3);
        let allowed = budgets.get("web").await?.status.is_some_and(|status| status.disruptions_allowed == 1);
        Ok((ready && allowed).then_some(()))
    })
    .await?;
    let mut watcher = EffectWatcher::start(&client).await?;

    let printed = plane.kubectl(&["drain", "a1", "--ignore-daemonsets", "--timeout=40s"]).await?;
    ensure!(printed.contains("node/a1 drained"), "{printed}");
    watcher
        .wait_until("a replacement that is ready elsewhere", Span::from_secs(20), |effects| {
            let moved =
                |kind: &EffectKind| matches!(kind, EffectKind::PodReady(pod) if pod.node.as_deref() != Some("a1"));
            effects.iter().find(|effect| moved(&effect.kind)).map(drop)
        })
        .await?;
    ensure!(watcher.time_of(&EffectKind::Cordoned { node: "a1".into() }).is_some(), "{watcher}");
    let left = Api::<Pod>::all(client).list(&ListParams::default().fields("spec.nodeName=a1")).await?;
    ensure!(
        left.items.is_empty(),
        "pods on a drained node: {:?}",
        left.iter().map(Pod::name_any).collect::<Vec<_>>()
    );
    Ok(())
}

async fn user_without_rights_is_refused(plane: &mut Plane) -> Result<()> {
    let nodes_only = PolicyRule {
        api_groups: Some(vec![String::new()]),
        resources: Some(vec!["nodes".into()]),
        verbs: vec!["list".into()],
        ..PolicyRule::default()
    };
    plane.grant(VIEWER, &[nodes_only]).await?;
    let client = plane.client_of(VIEWER).await?;
    Api::<Node>::all(client.clone()).list(&ListParams::default()).await?;
    match Api::<Pod>::all(client).list(&ListParams::default()).await {
        Err(kube::Error::Api(status)) => ensure!(status.is_forbidden(), "{status:?}"),
        other => bail!("not an answer of the API server: {other:?}"),
    }
    let codes: Vec<(String, i64)> = plane.audit()?.iter().filter_map(|line| code_for(line, VIEWER)).collect();
    ensure!(codes.iter().any(|(path, code)| path.starts_with("/api/v1/nodes") && *code == 200), "{codes:?}");
    ensure!(codes.iter().any(|(path, code)| path.starts_with("/api/v1/pods") && *code == 403), "{codes:?}");
    Ok(())
}

/// Returns the path and the status code of a request in the audit log; `None` if the request is of another user.
fn code_for(line: &Value, user: &str) -> Option<(String, i64)> {
    (line["user"]["username"] == user).then_some(())?;
    Some((line["requestURI"].as_str()?.to_string(), line["responseStatus"]["code"].as_i64()?))
}

/// Starts kubelets for nodes `a1`, `a2`, … in zone a, `b1`, … in zone b, `c1`, … in zone c.
pub async fn three_zones(client: &Client, in_each: usize) -> Result<Kubelets> {
    let names = ["a", "b", "c"].into_iter().flat_map(|zone| (1..=in_each).map(move |number| (zone, number)));
    let specs = names.map(|(zone, number)| NodeSpec::new(format!("{zone}{number}"), zone)).collect();
    Kubelets::start(client, specs, Heartbeats::default()).await
}

/// Starts the controllers and waits until they have removed the taint that new nodes get.
pub async fn start_controllers(plane: &mut Plane, settings: &ControllerManager) -> Result<()> {
    plane.start_controller_manager(settings)?;
    let nodes = Api::<Node>::all(plane.client());
    eventually("nodes without taints", Span::from_secs(20), async || {
        plane.check()?;
        let tainted = |node: &Node| node.spec.as_ref().is_some_and(|spec| spec.taints.is_some());
        let listed = nodes.list(&ListParams::default()).await?;
        Ok((!listed.iter().any(tainted)).then_some(()))
    })
    .await
}

/// Creates pods in the namespace default and waits until they are ready.
pub async fn create_running(client: &Client, pods: &[Value]) -> Result<()> {
    let api = Api::<Pod>::namespaced(client.clone(), "default");
    for pod in pods {
        api.create(&PostParams::default(), &serde_json::from_value(pod.clone())?).await?;
    }
    eventually("ready pods", Span::from_secs(10), async || {
        let listed = api.list(&ListParams::default()).await?;
        Ok(listed.iter().all(harness::kubelets::is_ready).then_some(()))
    })
    .await
}

pub fn pod(name: &str, node: &str, tolerations: Option<Value>) -> Value {
    json!({
        "metadata": { "name": name },
        "spec": {
            "nodeName": node,
            "tolerations": tolerations.unwrap_or(json!([])),
            "containers": [{ "name": "c", "image": "img" }],
        },
    })
}

fn budget(app: &str, max_unavailable: u32) -> Value {
    json!({
        "metadata": { "name": app },
        "spec": { "maxUnavailable": max_unavailable, "selector": { "matchLabels": { "app": app } } },
    })
}

/// Returns the name of a pod in namespace default.
pub fn on(node: &str, name: &str) -> PodName {
    PodName { namespace: "default".into(), name: name.into(), node: Some(node.into()) }
}

fn ready(node: &str) -> EffectKind {
    EffectKind::Condition { node: node.into(), condition: "Ready".into(), status: "True".into() }
}

fn unreachable_taint_removed(node: &str) -> EffectKind {
    let (key, effect) = ("node.kubernetes.io/unreachable".into(), "NoExecute".into());
    EffectKind::TaintRemoved { node: node.into(), key, effect }
}

/// Waits in real time, to show that something does not happen.
async fn sleep_until(at: Timestamp) {
    kordon_clock::Clock::system().sleep_until(at).await;
}
