//! `kordon maintenance --enforce` on a real control plane: twelve of fifteen nodes, whose kubelets a command restarts: as
//! planned, and while kordon is killed again and again.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    process::Stdio,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use futures::{StreamExt, stream::FuturesUnordered};
use k8s_openapi::api::core::v1::{Node, Pod};
use kordon_core::cluster::{claim::DRAIN, maintenance_note::MAINTENANCE};
use kordon_time::Span;
use kube::{
    Api, ResourceExt,
    api::{ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::{
    common::program::{self, Shell},
    harness::{
        eventually::eventually,
        kubelets::{Heartbeats, Kubelets, NodeSpec, is_ready},
        objects::create,
        plane::{self, ADMIN, ControllerManager, Options, Plane},
    },
};

/// Nodes of the pool that is maintained.
const POOL: usize = 12;

/// All nodes. Without others to land on, pods of a pool have to move twice.
const NODES: usize = 15;

/// Label of the nodes of the pool.
const IN_POOL: &str = "kordon.test/maintained";

const ZONES: [&str; 3] = ["a", "b", "c"];

/// Largest number of nodes in a wave of the pool: no zone loses two nodes at once.
const IN_A_WAVE: usize = 3;
/// Default number of times that kordon is killed; `KORDON_KILLS` sets another number. The more, the sooner it is killed after
/// its start. It is killed less often if the maintenance ends before.
const KILLS: usize = 4;

/// Time for which a machine is silent while it restarts.
const DOWN: Duration = Duration::from_secs(2);

/// By how much of its planned time a maintenance may take more or less time.
const TOLERANCE: f64 = 0.2;

/// Replicas of each Deployment. A budget allows one of them to be unavailable.
const REPLICAS: usize = 4;
const DEPLOYMENTS: usize = 8;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pool_is_maintained_as_planned_and_every_node_once() {
    let Some(binary) = plane::binary("e2e_maintenance").unwrap() else { return };
    let mut plane = Plane::start(&binary, Options { audit: true, ..Options::default() }).await.unwrap();
    plane.scenario("maintenance undisturbed", async |plane| undisturbed(plane).await).await;
}

/// Beside the other test, because each of them mostly waits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_maintenance_is_resumed_and_a_deleted_node_is_emptied() {
    let Some(binary) = plane::binary("e2e_maintenance").unwrap() else { return };
    let mut plane = Plane::start(&binary, Options { audit: true, ..Options::default() }).await.unwrap();
    plane.scenario("maintenance deletes a node", async |plane| deleted(plane).await).await;
    plane.scenario("maintenance killed again and again", async |plane| killed(plane).await).await;
}

/// Starts controllers, nodes and workloads.
async fn start(plane: &mut Plane) -> Result<Kubelets> {
    let controllers = ControllerManager {
        controllers: vec![
            "node-lifecycle-controller",
            "taint-eviction-controller",
            "deployment-controller",
            "replicaset-controller",
            "disruption-controller",
            "daemonset-controller",
            "pod-garbage-collector-controller",
        ],
        ..ControllerManager::default()
    };
    plane.start_controller_manager(&controllers)?;
    plane.start_scheduler()?;
    let client = plane.client();
    let spec = |number: usize| {
        let labels = (number < POOL).then(|| (IN_POOL.to_owned(), "true".to_owned()));
        let labels = labels.into_iter().collect();
        NodeSpec { labels, ..NodeSpec::new(format!("n{number:02}"), ZONES[number % ZONES.len()]) }
    };
    let kubelets = Kubelets::start(&client, (0..NODES).map(spec).collect(), Heartbeats::default()).await?;
    for number in 0..DEPLOYMENTS {
        let name = format!("app-{number}");
        create(&client, "/apis/apps/v1/namespaces/default/deployments", &deployment(&name)).await?;
        let budget = json!({"metadata": {"name": name}, "spec": {
            "maxUnavailable": 1, "selector": {"matchLabels": {"app": name}}}});
        create(&client, "/apis/policy/v1/namespaces/default/poddisruptionbudgets", &budget).await?;
    }
    let daemon = json!({"metadata": {"name": "agent"}, "spec": {
        "selector": {"matchLabels": {"app": "agent"}},
        "template": {"metadata": {"labels": {"app": "agent"}},
            "spec": {"containers": [{"name": "c", "image": "img"}], "tolerations": [{"operator": "Exists"}]}}}});
    create(&client, "/apis/apps/v1/namespaces/default/daemonsets", &daemon).await?;
    settle(plane).await?;
    Ok(kubelets)
}

fn deployment(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {
    "replicas": REPLICAS,
    "selector": {"matchLabels": {"app": name}},
    "template": {"metadata": {"labels": {"app": name}}, "spec": {
        "terminationGracePeriodSeconds": 1,
        "containers": [{"name": "c", "image": "img", "resources": {"requests": {"cpu": "300m"}}}],
        "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {"matchLabels": {"app": name}}}],
    }}}})
}

/// Waits until all pods are Ready.
async fn settle(plane: &Plane) -> Result<()> {
    let pods = Api::<Pod>::default_namespaced(plane.client());
    eventually("settled pods", Span::from_secs(120), async || {
        let listed = pods.list(&ListParams::default()).await?.items;
        let wanted = REPLICAS * DEPLOYMENTS + NODES;
        Ok((listed.len() == wanted && listed.iter().all(is_ready)).then_some(()))
    })
    .await?;
    tokio::time::sleep(Duration::from_secs(3)).await;
    Ok(())
}

/// A folder with a file for each node. The operator's command adds a line to this file to request a restart of the
/// machine.
struct Machines {
    folder: tempfile::TempDir,
    /// Time for which a machine is worked on before it restarts.
    work: Duration,
}

impl Machines {
    fn new(work: Duration) -> Result<Self> {
        Ok(Self { folder: tempfile::tempdir()?, work })
    }

    /// Returns a command that requests a restart of the machine and ends at once, as `reboot` does.
    fn command(&self) -> String {
        format!("sh -c 'echo x >>{}/$1' - {{node}}", program::path(self.folder.path()))
    }

    /// Returns how many restarts of each node were requested.
    fn asked(&self) -> Result<BTreeMap<String, usize>> {
        let mut asked = BTreeMap::new();
        for entry in fs::read_dir(self.folder.path())? {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str()).context("a name")?.to_owned();
            asked.insert(name, fs::read_to_string(&path)?.lines().count());
        }
        Ok(asked)
    }

    /// Restarts machines when the operator's commands request it, until the future ends.
    async fn serve<T>(
        &self,
        plane: &Plane,
        kubelets: &Kubelets,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let mut done: BTreeMap<String, usize> = BTreeMap::new();
        let (mut restarting, mut restarts) = (BTreeSet::new(), FuturesUnordered::new());
        let restarts = async {
            loop {
                for (node, asked) in self.asked()? {
                    let is_due = done.get(&node).copied().unwrap_or_default() < asked;
                    if is_due && restarting.insert(node.clone()) {
                        restarts.push(restart(plane, kubelets, node, asked, self.work));
                    }
                }
                tokio::select! {
                    Some(restarted) = restarts.next() => {
                        let (node, time) = restarted?;
                        restarting.remove(&node);
                        done.insert(node, time);
                    }
                    () = tokio::time::sleep(Duration::from_millis(300)) => {}
                }
            }
        };
        tokio::select! {
            done = work => done,
            failed = restarts => failed,
        }
    }
}

/// Works on a machine and restarts it: its kubelet falls silent for a moment, and comes back with another boot id.
async fn restart(
    plane: &Plane,
    kubelets: &Kubelets,
    node: String,
    time: usize,
    work: Duration,
) -> Result<(String, usize)> {
    tokio::time::sleep(work).await;
    kubelets.silence(&node).await?;
    tokio::time::sleep(DOWN).await;
    let boot = Patch::Merge(
        json!({"status": {"nodeInfo": {"bootID": format!("{node}-{time}-{}", fastrand::u32(..))}}}),
    );
    Api::<Node>::all(plane.client()).patch_status(&node, &PatchParams::default(), &boot).await?;
    kubelets.come_back(&node).await?;
    Ok((node, time))
}

fn words(plane: &Plane, machines: &Machines) -> Result<Vec<String>> {
    let (kubeconfig, exec) = (plane.kubeconfig(ADMIN)?, machines.command());
    let takes = format!("{}s", (machines.work + DOWN).as_secs());
    let place = ["maintenance", "--kubeconfig", program::path(&kubeconfig), "-l", IN_POOL];
    let how =
        ["--max-per-zone", "1", "--settle", "5s", "--work-takes", &takes, "--wait-for", "boot", "-o", "json"];
    Ok(place.iter().chain(&how).chain(&["--exec", &exec]).map(|word| (*word).to_owned()).collect())
}

fn as_words(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}

/// Returns the number of evictions that a budget has refused, according to the API server's audit log.
fn refused_evictions(plane: &Plane) -> Result<usize> {
    let is_refused = |entry: &Value| {
        entry["objectRef"]["subresource"] == "eviction" && entry["responseStatus"]["code"] == 429
    };
    Ok(plane.audit()?.iter().filter(|entry| is_refused(entry)).count())
}

/// Checks that the maintenance left nothing behind: no cordon, no note or claim on a node, and every pod is Ready.
async fn ensure_clean(plane: &Plane) -> Result<()> {
    settle(plane).await?;
    for node in Api::<Node>::all(plane.client()).list(&ListParams::default()).await? {
        let cordoned = node.spec.as_ref().and_then(|spec| spec.unschedulable) == Some(true);
        let is_marked = [MAINTENANCE, DRAIN].iter().any(|key| node.annotations().contains_key(*key));
        ensure!(!cordoned && !is_marked, "left behind: {}", node.name_any());
    }
    Ok(())
}

async fn undisturbed(plane: &mut Plane) -> Result<()> {
    let kubelets = &start(plane).await?;
    let (machines, shell) = (Machines::new(Duration::from_secs(28))?, Shell::new());
    let words = words(plane, &machines)?;
    let plan = shell.run(&as_words(&words)).await;
    ensure!(plan.code == 0, "{}", plan.err);
    let plan: Value = serde_json::from_str(&plan.out)?;
    ensure!(plan["leftOut"] == json!([]), "{plan:#}");
    // Between the waves, a gate measures N-1.
    let measured = shell.home.path().join("measured");
    let status = ["status", "--kubeconfig", &words[2], "--n-1", "-o", "json"];
    let measure = async || -> Result<[u64; 2]> {
        let output = shell.run(&status).await;
        ensure!(output.code == 0, "{}", output.err);
        worst_losses(&serde_json::from_str(&output.out)?)
    };
    let before = measure().await?;
    let gate = format!(
        "sh -c '{} {} >>{}'",
        program::path(&program::path_of_binary()),
        status.join(" "),
        program::path(&measured)
    );
    let run = async {
        let all = [&as_words(&words)[..], &["--gate", &gate, "--enforce", "--yes"]].concat();
        let output = shell.run(&all).await;
        ensure!(output.code == 0, "{}", output.err);
        Ok(serde_json::from_str::<Value>(&output.out)?)
    };
    let report = machines.serve(plane, kubelets, run).await?;
    ensure_clean(plane).await?;
    let asked = machines.asked()?;
    ensure!(asked.len() == POOL && asked.values().all(|times| *times == 1), "{asked:?}");
    ensure!(refused_evictions(plane)? == 0, "a budget made a pod wait");
    let measured = fs::read_to_string(measured)?;
    let measured = serde_json::Deserializer::from_str(&measured).into_iter::<Value>();
    let mut losses = Vec::new();
    for status in measured {
        losses.push(worst_losses(&status?)?);
    }
    losses.push(measure().await?);
    let number = |report: &Value, field: &str| report[field].as_f64().unwrap_or(f64::NAN);
    let (planned, took) = (number(&report, "plannedSeconds"), number(&report, "tookSeconds"));
    let (waves, cost, by_name) =
        (plan["waves"].as_array().map_or(0, Vec::len), &plan["cost"], &plan["byName"]);
    println!(
        "{POOL} of {NODES} nodes in {waves} waves: planned {planned} s, took {took} s; {} pods moved of {} planned; one by \
         one by name: {} s and {} moves; N-1 before {before:?}, then {losses:?}",
        report["moves"], cost["moves"], by_name["takesSeconds"], by_name["moves"],
    );
    ensure!((took / planned - 1.0).abs() <= TOLERANCE, "planned {planned} s, took {took} s");
    ensure!(losses.len() > 1, "there is only one wave: {plan:#}");
    let is_no_worse = |loss: &[u64; 2]| loss[0] <= before[0] && loss[1] <= before[1];
    ensure!(losses.iter().all(is_no_worse), "N-1 before {before:?}, then {losses:?}");
    ensure!(number(&report, "moves") <= number(cost, "moves"), "more pods moved than planned");
    for field in ["takesSeconds", "moves"] {
        ensure!(number(cost, field) < number(by_name, field), "{field} by name: {plan:#}");
    }
    Ok(())
}

/// Returns how many pods the worst loss of a node and of a zone strands, by `kordon status`.
fn worst_losses(status: &Value) -> Result<[u64; 2]> {
    ensure!(status["headroom"].is_object(), "N-1 is not known");
    let worst = |of: &str| status["headroom"][of]["worst"]["nowhere"].as_u64().unwrap_or_default();
    Ok([worst("nodes"), worst("zones")])
}

async fn killed(plane: &mut Plane) -> Result<()> {
    let kubelets = &start(plane).await?;
    let kills: usize = std::env::var("KORDON_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(KILLS);
    let (machines, shell) = (Machines::new(Duration::ZERO)?, Shell::new());
    let words = words(plane, &machines)?;
    let refused = refused_evictions(plane)?;
    let resume = ["maintenance", "--resume", "--kubeconfig", &words[2], "-o", "json"];
    let run = async {
        let mut line = [&as_words(&words)[..], &["--enforce", "--yes"]].concat();
        for kill in 1..=kills {
            let said = shell.home.path().join("said");
            let errors = fs::File::create(&said)?;
            let mut child =
                shell.command(&line).stdout(Stdio::null()).stderr(errors).spawn().context("starts")?;
            let after = Duration::from_millis(2_000 + fastrand::u64(..40_000 / kills as u64));
            match tokio::time::timeout(after, child.wait()).await {
                Err(_) => {
                    child.kill().await?;
                    println!("killed {kill} times, the last time after {after:?}");
                }
                Ok(ended) => {
                    ensure!(ended?.success(), "it failed by itself: {}", fs::read_to_string(&said)?);
                    return Ok(());
                }
            }
            if notes(plane).await?.is_empty() {
                // No node has a note: kordon was killed before the maintenance had begun, or just after the last node
                // was done.
                if !machines.asked()?.is_empty() {
                    return Ok(());
                }
                continue;
            }
            line = [&resume[..], &["--enforce", "--yes"]].concat();
        }
        let output = shell.run(&line).await;
        ensure!(output.code == 0, "{}", output.err);
        Ok(())
    };
    machines.serve(plane, kubelets, run).await?;
    ensure_clean(plane).await?;
    let asked = machines.asked()?;
    println!("restarts that were asked for: {asked:?}");
    ensure!(asked.len() == POOL, "{asked:?}");
    // A command that was running when kordon was killed may run again. A command that is known to have ended does not.
    // The commands of a wave run side by side, so a kill may interrupt all of them.
    ensure!(asked.values().sum::<usize>() <= POOL + kills * IN_A_WAVE, "{asked:?}");
    println!("evictions that a budget refused: {}", refused_evictions(plane)? - refused);
    Ok(())
}

/// Deletes a node whose machine is gone. The garbage collector removes its pods, which are then replaced as the plan
/// says.
async fn deleted(plane: &mut Plane) -> Result<()> {
    let kubelets = &start(plane).await?;
    let shell = Shell::new();
    let kubeconfig = plane.kubeconfig(ADMIN)?;
    let line = ["delete", "node", "n00", "--kubeconfig", program::path(&kubeconfig), "-o", "json"];
    let kinds = async |words: &[&str]| -> Result<Value> {
        let output = shell.run(&[&line[..], words].concat()).await;
        ensure!(output.code == 0, "{}", output.err);
        Ok(serde_json::from_str(&output.out)?)
    };
    kubelets.silence("n00").await?;
    let plan = kinds(&["--placement", "wait"]).await?;
    let replaced = |pod: &&Value| pod["outcome"]["kind"] == "moves" || pod["outcome"] == "moves";
    let planned = plan["pods"].as_array().into_iter().flatten().filter(replaced).count();
    let begun = tokio::time::Instant::now();
    kinds(&["--enforce", "--yes"]).await?;
    let pods = Api::<Pod>::default_namespaced(plane.client());
    let on = |pod: &Pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name.as_deref() == Some("n00"));
    let of_apps = |pod: &&Pod| pod.labels().get("app").is_some_and(|app| app.starts_with("app-"));
    eventually("pods of the deleted node gone", Span::from_secs(120), async || {
        let listed = pods.list(&ListParams::default()).await?.items;
        Ok((!listed.iter().any(on)).then_some(()))
    })
    .await?;
    let took = begun.elapsed().as_secs();
    println!("pods of a deleted node gone after {took} s, planned 40 to 80; {planned} planned to move");
    // The limits are wider than the plan: the program takes time, and the machine may be busy.
    ensure!((38..=90).contains(&took), "gone after {took} s");
    eventually("replacements", Span::from_secs(30), async || {
        let listed = pods.list(&ListParams::default()).await?.items;
        let ready = listed.iter().filter(of_apps).filter(|pod| is_ready(pod)).count();
        Ok((ready == REPLICAS * DEPLOYMENTS).then_some(()))
    })
    .await?;
    let nodes = Api::<Node>::all(plane.client()).list(&ListParams::default()).await?;
    ensure!(nodes.items.len() == NODES - 1, "the node is still there");
    Ok(())
}

async fn notes(plane: &Plane) -> Result<BTreeSet<String>> {
    let nodes = Api::<Node>::all(plane.client()).list(&ListParams::default()).await?;
    Ok(nodes
        .iter()
        .filter(|node| node.annotations().contains_key(MAINTENANCE))
        .map(ResourceExt::name_any)
        .collect())
}
