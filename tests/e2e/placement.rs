//! Placement compared with the real kube-scheduler, while a cluster fills and while nodes are drained: each decision is
//! compared with kordon's prediction for the same cluster at the same moment.
//!
//! `KORDON_PLACEMENT_SIZE` multiplies the pods. `KORDON_SEED` selects other requests and other nodes to drain.

mod as_planned;
mod history;
mod population;
mod replay;
mod scheduler_log;

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{Node, PersistentVolumeClaim, Pod};
use kordon_core::engine::ServerVersion;
use kordon_time::Span;
use kube::{Api, Client, ResourceExt, api::ListParams};
use serde_json::Value;

use crate::common::program::{self, Shell};
use crate::harness::{
    eventually::eventually,
    kubelets::{Heartbeats, Kubelets},
    objects::create,
    plane::{self, ADMIN, ControllerManager, Options, Plane},
    say,
};
use as_planned::PlannedLanding;
use history::History;
use replay::{ActualOutcome, Attempt, replay};

const NODES: usize = 60;
const DRAINED: usize = 10;
/// Number of differences that are printed in full.
const SHOWN: usize = 12;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_real_scheduler_places_pods_as_predicted() {
    let Some(binary) = plane::binary("e2e_placement").unwrap() else { return };
    let mut plane = Plane::start(&binary, Options::default()).await.unwrap();
    if let Err(error) = compare(&mut plane).await {
        panic!("{error:#}");
    }
}

async fn compare(plane: &mut Plane) -> Result<()> {
    let started = kordon_clock::wall();
    let (times, seed) = (number("KORDON_PLACEMENT_SIZE", 1), number("KORDON_SEED", 1));
    let mut rng = fastrand::Rng::with_seed(seed as u64);
    let client = plane.client();
    let history = History::start(&client);
    // Kubelets send only Leases as heartbeats, because status updates would count as changes of nodes.
    let heartbeats = Heartbeats { every: Span::from_secs(8), status_each: u32::MAX };
    let kubelets = Kubelets::start(&client, population::nodes(NODES), heartbeats).await?;
    plane.start_controller_manager(&ControllerManager {
        grace_period: Span::from_secs(40),
        startup_grace_period: Span::from_secs(60),
        controllers: vec!["*"],
        ..ControllerManager::default()
    })?;
    wait_until_schedulable(&client).await?;
    plane.start_scheduler_with(&scheduler_log::FLAGS)?;

    for node in kubelets.names() {
        let (path, object) = population::csi_node(node);
        create(&client, path, &object).await?;
    }
    let workloads = populate(&client, times, &mut rng).await?;
    let pods: usize = workloads.iter().map(|workload| workload.pods).sum();
    wait_until_scheduled(&client, pods).await?;

    let drained = to_drain(&kubelets, &mut rng);
    let shell = Shell::new();
    let kubeconfig = plane.kubeconfig(ADMIN)?;
    let connected = ["--kubeconfig", program::path(&kubeconfig)];
    let nodes: Vec<&str> = drained.iter().map(String::as_str).collect();
    let how = ["--ignore-daemonsets", "--parallel=3"];
    let plan = shell.run(&[&connected[..], &["plan", "drain"], &nodes, &how, &["-o", "json"]].concat()).await;
    let plan: Value = serde_json::from_str(&plan.out).with_context(|| format!("the plan: {}", plan.err))?;
    let before = pods_by_name(&client).await?;
    let drain_started = kordon_clock::wall();
    let done = shell.run(&[&connected[..], &["drain"], &nodes, &how, &["--enforce", "--yes"]].concat()).await;
    ensure!(done.code == 0, "the drain ended with {}: {}{}", done.code, done.out, done.err);
    wait_until_scheduled(&client, pods).await?;
    let after = pods_by_name(&client).await?;
    plane.stop_scheduler().await?;

    let scheduler_log = scheduler_log::read(&plane.scheduler_log()?, started);
    let changes = history.changes()?;
    let (attempts, drain) = replay(changes.clone(), &scheduler_log, plane::VERSION, drain_started)?;
    let (filling, draining): (Vec<Attempt>, Vec<Attempt>) =
        attempts.into_iter().partition(|attempt| attempt.at < drain_started);
    let filled = summarize("while the cluster filled", &filling);
    let replaced = summarize(&format!("while {DRAINED} of {NODES} nodes were drained"), &draining);
    let landings = drain.landings(plane::VERSION).map_err(|pod| anyhow::anyhow!("{pod} replaces no pod"))?;
    let (right, wrong): (Vec<&PlannedLanding>, Vec<&PlannedLanding>) =
        landings.iter().partition(|landing| landing.is_as_planned());
    say(&format!(
        "e2e_placement: in the environment of plans: {} of {} as planned",
        right.len(),
        landings.len()
    ));
    wrong.iter().take(SHOWN).for_each(|landing| say(&landing.words()));
    let [planned, created] = replacements(&plan, &before, &after);
    // Also predicts by the rules of 1.35, which compute some scores differently. If fewer of these predictions are
    // correct, it is no coincidence that the predictions by the current rules agree.
    let (older, _) = replay(changes, &scheduler_log, ServerVersion::new(1, 35), drain_started)?;
    let older: Vec<&Attempt> =
        older.iter().filter(|attempt| matches!(attempt.real, ActualOutcome::Bound(_))).collect();
    say(&format!("e2e_placement: by the rules of 1.35: {} of {}", predicted(&older), older.len()));
    ensure!(filling.len() > 300 * times && draining.len() > 30 * times, "too few placements");
    ensure!(filled + replaced == 0, "{} wrong predictions (seed {seed})", filled + replaced);
    ensure!(wrong.is_empty(), "{} landings are not as planned (seed {seed})", wrong.len());
    ensure!(planned == created, "planned {planned:?}, created {created:?} (seed {seed})");
    Ok(())
}

/// Waits until the controllers have removed the taint that new nodes get.
async fn wait_until_schedulable(client: &Client) -> Result<()> {
    eventually("nodes without taints of the controller", Span::from_secs(60), async || {
        let nodes = Api::<Node>::all(client.clone()).list(&ListParams::default()).await?;
        let tainted = |node: &Node| {
            let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
            taints.into_iter().flatten().any(|taint| taint.key.starts_with("node.kubernetes.io/"))
        };
        Ok((!nodes.iter().any(tainted)).then_some(()))
    })
    .await
}

async fn populate(
    client: &Client,
    times: usize,
    rng: &mut fastrand::Rng,
) -> Result<Vec<population::Workload>> {
    for (path, object) in population::prerequisites() {
        create(client, path, &object).await?;
    }
    wait_until_bound(client).await?;
    let mut workloads = population::workloads(times, rng);
    rng.shuffle(&mut workloads);
    for workload in &workloads {
        create(client, workload.path, &workload.object).await?;
    }
    Ok(workloads)
}

/// Waits until all claims are bound that can be bound without a pod. The scheduler's log does not say when the
/// scheduler saw a change of a claim, so no claim may change during an attempt to place its pod.
async fn wait_until_bound(client: &Client) -> Result<()> {
    eventually("claims that are bound at once", Span::from_secs(60), async || {
        let claims = Api::<PersistentVolumeClaim>::namespaced(client.clone(), "default");
        let claims = claims.list(&ListParams::default()).await?.items;
        let is_bound = |claim: &PersistentVolumeClaim| {
            claim.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Bound")
        };
        let is_done = |name: &&str| claims.iter().any(|claim| claim.name_any() == **name && is_bound(claim));
        Ok(population::BOUND_AT_ONCE.iter().all(is_done).then_some(()))
    })
    .await
}

/// Waits until all pods exist, none is terminating, and each has a node or is unschedulable.
async fn wait_until_scheduled(client: &Client, pods: usize) -> Result<()> {
    eventually("pods that are on a node or unschedulable", Span::from_secs(180), async || {
        let all = Api::<Pod>::all(client.clone()).list(&ListParams::default()).await?.items;
        let of_daemon_set = |pod: &Pod| pod.owner_references().iter().any(|owner| owner.kind == "DaemonSet");
        let there = all.iter().filter(|pod| !of_daemon_set(pod)).count();
        let is_leaving = all.iter().any(|pod| pod.metadata.deletion_timestamp.is_some());
        let is_settled = all.iter().all(|pod| node_of(pod).is_some() || is_refused(pod));
        Ok((there == pods && is_settled && !is_leaving).then_some(()))
    })
    .await
}

fn is_refused(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let mut conditions = conditions.filter(|condition| condition.type_ == "PodScheduled");
    conditions.any(|condition| condition.reason.as_deref() == Some("Unschedulable"))
}

/// Returns random nodes to drain, but never `n13`, the only node of its zone.
fn to_drain(kubelets: &Kubelets, rng: &mut fastrand::Rng) -> Vec<String> {
    let mut names: Vec<String> = kubelets.names().filter(|name| *name != "n13").map(str::to_owned).collect();
    rng.shuffle(&mut names);
    names.truncate(DRAINED);
    names
}

async fn pods_by_name(client: &Client) -> Result<BTreeMap<String, Pod>> {
    let all = Api::<Pod>::all(client.clone()).list(&ListParams::default()).await?.items;
    let name = |pod: &Pod| format!("{}/{}", pod.namespace().unwrap_or_default(), pod.name_any());
    Ok(all.into_iter().map(|pod| (name(&pod), pod)).collect())
}

fn node_of(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref()
}

/// Prints how many attempts agree. Returns how many do not.
fn summarize(when: &str, attempts: &[Attempt]) -> usize {
    let (placed, unschedulable): (Vec<&Attempt>, Vec<&Attempt>) =
        attempts.iter().partition(|attempt| matches!(attempt.real, ActualOutcome::Bound(_)));
    let known = |of: fn(&Attempt) -> Option<bool>| {
        let known: Vec<bool> = placed.iter().filter_map(|attempt| of(attempt)).collect();
        format!("{} of {}", known.iter().filter(|agrees| **agrees).count(), known.len())
    };
    let best: usize = placed.iter().map(|attempt| attempt.best()).sum();
    let for_the_same_reasons =
        unschedulable.iter().filter(|attempt| attempt.wrong_reasons().is_empty()).count();
    say(&format!(
        "e2e_placement: {when}: {} of {} placements as predicted ({best} best nodes for them all), the same feasible nodes \
         in {}, the same scores in {}; {} of {} unschedulable as predicted, {for_the_same_reasons} for the same reasons",
        predicted(&placed),
        placed.len(),
        known(Attempt::feasible_agrees),
        known(Attempt::scores_agree),
        predicted(&unschedulable),
        unschedulable.len(),
    ));
    let differs = |attempt: &&&Attempt| !attempt.is_predicted() || attempt.scores_agree() == Some(false);
    placed.iter().filter(differs).take(SHOWN).for_each(|attempt| say(&attempt.tables()));
    unschedulable
        .iter()
        .flat_map(|attempt| attempt.wrong_reasons())
        .take(SHOWN)
        .for_each(|wrong| say(&wrong));
    attempts.len() - predicted(&placed) - predicted(&unschedulable)
}

fn predicted(attempts: &[&Attempt]) -> usize {
    attempts.iter().filter(|attempt| attempt.is_predicted()).count()
}

/// Returns two counts of pods by owner: the pods that the plan replaces, and the pods that were created.
fn replacements(
    plan: &Value,
    before: &BTreeMap<String, Pod>,
    after: &BTreeMap<String, Pod>,
) -> [BTreeMap<String, usize>; 2] {
    let (mut planned, mut created) = (BTreeMap::new(), BTreeMap::new());
    for pod in plan["pods"].as_array().into_iter().flatten() {
        if let (Some(owner), Some("moves" | "pending" | "preempts")) =
            (pod["ownerName"].as_str(), pod["outcome"].as_str())
        {
            *planned.entry(owner.to_owned()).or_default() += 1;
        }
    }
    for (name, pod) in after {
        let is_new = before.get(name).is_none_or(|old| old.uid() != pod.uid());
        if let Some(owner) = pod.owner_references().first().filter(|_| is_new) {
            *created.entry(owner.name.clone()).or_default() += 1;
        }
    }
    [planned, created]
}

fn number(name: &str, otherwise: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}
