//! Actions on the real Kubernetes control plane: what the server answers to our requests, drains that are carried out,
//! killed and resumed, and dry-runs that leave no trace in its audit log.
//!
//! Left out where `tests/control-plane/build` has not been run; with `KORDON_E2E=1` that is a failure.
//! `KORDON_E2E_ONLY` picks scenarios, `KORDON_KILLS` says how often drains are killed, `KORDON_DRY_RUNS` how many
//! commands are tried in dry-run, `KORDON_SEED` which.

mod common;
#[path = "common/program.rs"]
mod program;

use std::{collections::BTreeMap, path::PathBuf, process::Stdio, time::Duration};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{Node, Pod},
    policy::v1::PodDisruptionBudget,
    rbac::v1::PolicyRule,
};
use kordon::{
    cluster::{Key, Uid, mark::DRAIN},
    conduct::{Outcome, Task},
    journal::{Journal, undertakings},
    k8s::errands::{Earnest, carry_out},
    plan::Step,
    time::Span,
};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use common::{
    eventually::eventually,
    kubelets::{Beats, Kubelets, NodeSpec, is_ready},
    plane::{self, ControllerManager, Options, Plane},
    say,
};
use program::Shell;

/// A user that may drain.
const OPERATOR: &str = "operator";

/// The same, but for the right to cordon.
const NO_CORDON: &str = "no-cordon";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn actions_hold_their_promises_on_the_real_control_plane() {
    let Some(binary) = plane::binary("e2e_actions").unwrap() else { return };
    let options = Options {
        audit: true,
        users: vec![OPERATOR, NO_CORDON],
        toleration_seconds: 300,
        ..Options::default()
    };
    let mut plane = Plane::start(&binary, options).await.unwrap();
    plane.scenario("answers are told apart, and a dry-run evicts nobody", answers_are_told_apart).await;
    plane.scenario("a drain without the right to cordon touches no pod", no_cordon_no_drain).await;
    plane.scenario("dry-runs leave no trace but reviews", dry_runs_leave_no_trace).await;
    plane.scenario("killed drains are resumed", killed_drains_are_resumed).await;
}

async fn answers_are_told_apart(plane: &mut Plane) -> Result<()> {
    let _kubelets = inhabited(plane).await?;
    let client = plane.client();
    let all = pods(&client).await?;
    let pod = all.iter().find(|pod| pod.name_any().starts_with("web")).context("a pod")?;
    let (named, uid) = (key(pod), Uid::from(&*pod.uid().unwrap_or_default()));
    let evict = |uid: &Uid| {
        Task::Write(Step::Evict { pod: named.clone(), uid: uid.clone(), grace: Some(Span::from_secs(1)) })
    };
    let delete = Task::Write(Step::Delete { pod: named.clone(), uid: uid.clone(), grace: None });

    for task in [&evict(&uid), &delete] {
        ensure!(carry_out(&client, task, Earnest::DryRun).await == Outcome::Done, "{task}: a dry-run");
        let now = Api::<Pod>::namespaced(client.clone(), "default").get(&named.name).await?;
        ensure!(
            now.uid() == pod.uid() && now.metadata.deletion_timestamp.is_none(),
            "{task}: it was no dry-run"
        );
    }
    // Of a pod without a budget: under one, the failed precondition would have used it up (spec 4.3).
    let free = all.iter().find(|pod| pod.name_any().starts_with("db")).map(key).context("a pod")?;
    let step = Step::Evict { pod: free, uid: "another".into(), grace: None };
    let other = carry_out(&client, &Task::Write(step), Earnest::Yes).await;
    ensure!(other == Outcome::OtherObject, "{other:?}");
    let forbidden = carry_out(&plane.client_of(NO_CORDON).await?, &evict(&uid), Earnest::Yes).await;
    ensure!(matches!(forbidden, Outcome::Forbidden(_)), "{forbidden:?}");

    set_budget(&client, "web", json!("100%")).await?;
    let exhausted = carry_out(&client, &evict(&uid), Earnest::Yes).await;
    let numbers = |text: &str| text.contains("needs 6 healthy pods and has 6 currently");
    ensure!(matches!(&exhausted, Outcome::BudgetExhausted(text) if numbers(text)), "{exhausted:?}");

    create_budget(&client, "web", "second", json!(0)).await?;
    let two = carry_out(&client, &evict(&uid), Earnest::Yes).await;
    ensure!(matches!(&two, Outcome::Refused(text) if text.contains("more than one")), "{two:?}");
    budgets(&client).delete("second", &DeleteParams::default()).await?;
    set_budget(&client, "web", json!(0)).await?;

    let done = carry_out(&client, &evict(&uid), Earnest::Yes).await;
    ensure!(done == Outcome::Done, "{done:?}");
    eventually("the pod is gone", Span::from_secs(20), async || {
        let found = Api::<Pod>::namespaced(client.clone(), "default").get_opt(&named.name).await?;
        Ok(found.is_none().then_some(()))
    })
    .await?;
    let gone = carry_out(&client, &evict(&uid), Earnest::Yes).await;
    ensure!(gone == Outcome::Gone, "{gone:?}");
    Ok(())
}

async fn no_cordon_no_drain(plane: &mut Plane) -> Result<()> {
    let _kubelets = inhabited(plane).await?;
    plane.grant(NO_CORDON, &[reads(), rule("", "pods/eviction", &["create"])]).await?;
    let before = pods(&plane.client()).await?.len();
    let site = Site::new(plane.kubeconfig(NO_CORDON)?);
    let output = site.run(&["drain", "a1", "--enforce", "--yes"]).await;
    ensure!(output.code == 9, "exit code {}: {}", output.code, output.err);
    ensure!(output.err.contains("patch nodes"), "{}", output.err);
    ensure!(!audited(plane, NO_CORDON)?.iter().any(is_granted_eviction), "a pod was touched");
    ensure!(pods(&plane.client()).await?.len() == before);
    Ok(())
}

/// Random commands without `--enforce`, and random keys on the dashboard.
async fn dry_runs_leave_no_trace(plane: &mut Plane) -> Result<()> {
    let _kubelets = inhabited(plane).await?;
    plane.grant(OPERATOR, &may_drain()).await?;
    let site = Site::new(plane.kubeconfig(OPERATOR)?);
    let (count, seed) = (number("KORDON_DRY_RUNS", 12), number("KORDON_SEED", 1));
    let mut chance = fastrand::Rng::with_seed(seed);
    for _ in 0..count {
        let line = random_command(&mut chance);
        let line: Vec<&str> = line.iter().map(String::as_str).collect();
        let output = site.run(&line).await;
        ensure!([0, 5, 6, 7].contains(&output.code), "{line:?}: {} {}", output.code, output.err);
    }
    let lines = audited(plane, OPERATOR)?;
    ensure!(lines.len() > 20, "the audit log has only {} requests of ours", lines.len());
    let wrote: Vec<String> = lines.iter().filter(|line| is_mutation(line)).map(ToString::to_string).collect();
    ensure!(wrote.is_empty(), "seed {seed}: {wrote:#?}");
    say(&format!("e2e_actions: {count} dry-runs, {} requests, none of which writes", lines.len()));
    Ok(())
}

fn random_command(chance: &mut fastrand::Rng) -> Vec<String> {
    let nodes = ["a1", "a2", "b1", "b2", "c1", "c2"];
    let node = nodes[chance.usize(..nodes.len())];
    let words: Vec<String> = match chance.usize(..8) {
        0 => vec!["drain".into(), node.into(), "--force".into(), "--timeout=30s".into()],
        1 => vec!["drain".into(), "a1".into(), "b1".into(), "--parallel=2".into()],
        2 => vec!["cordon".into(), node.into()],
        3 => vec!["taint".into(), "nodes".into(), node.into(), "k=v:NoExecute".into()],
        4 => vec!["label".into(), "nodes".into(), node.into(), "team=blue".into()],
        5 => vec!["evict".into(), "-l".into(), "app=web".into(), "-n".into(), "default".into()],
        6 => vec![
            "delete".into(),
            "-l".into(),
            "app=db".into(),
            "-n".into(),
            "default".into(),
            "--force".into(),
        ],
        _ => {
            const KEYS: [&str; 16] = [
                "c", "u", "r", "t", "x", "e", "l", "<Space>", "j", "k", "<Enter>", "<Esc>", "<Tab>", "<Del>",
                "U", "y",
            ];
            let keys: String = (0..30).map(|_| KEYS[chance.usize(..KEYS.len())]).collect();
            let line = ["--snapshot", "frame.txt", "--after", "3s", "--keys"];
            return line.iter().map(|word| (*word).to_owned()).chain([keys]).collect();
        }
    };
    words
}

/// Drains two nodes again and again, killed at random moments and resumed.
async fn killed_drains_are_resumed(plane: &mut Plane) -> Result<()> {
    let _kubelets = inhabited(plane).await?;
    plane.grant(OPERATOR, &may_drain()).await?;
    let client = plane.client();
    let site = Site::new(plane.kubeconfig(OPERATOR)?);
    let (kills, seed) = (number("KORDON_KILLS", 3), number("KORDON_SEED", 1));
    let mut chance = fastrand::Rng::with_seed(seed);
    let (mut killed, mut round) = (0, 0);
    let pairs = [["a1", "b1"], ["a2", "c1"], ["b2", "c2"]];
    while killed < kills {
        let nodes = pairs[round % pairs.len()];
        let told = format!("seed {seed}, round {round}, {nodes:?}");
        killed += site.drain_with_kills(plane, nodes, &mut chance).await.with_context(|| told.clone())?;
        for node in nodes {
            let on = ListParams::default().fields(&format!("spec.nodeName={node}"));
            let left = Api::<Pod>::all(client.clone()).list(&on).await?;
            ensure!(left.items.is_empty(), "{told}: forgotten on {node}");
            let node = Api::<Node>::all(client.clone()).get(node).await?;
            ensure!(!node.annotations().contains_key(DRAIN), "{told}: a mark is left");
        }
        site.undo_last().await.with_context(|| told.clone())?;
        let nodes = Api::<Node>::all(client.clone()).list(&ListParams::default()).await?;
        ensure!(!nodes.iter().any(cordoned), "{told}: a node is cordoned after undo");
        settled(&client).await?;
        round += 1;
    }
    let mut granted: BTreeMap<String, usize> = BTreeMap::new();
    for line in audited(plane, OPERATOR)? {
        if is_granted_eviction(&line) {
            let uid = &line["requestObject"]["deleteOptions"]["preconditions"]["uid"];
            *granted.entry(uid.as_str().context("an eviction without a uid")?.to_owned()).or_default() += 1;
        }
    }
    let twice: Vec<_> = granted.iter().filter(|(_, count)| **count > 1).collect();
    ensure!(twice.is_empty(), "seed {seed}: evicted more than once: {twice:?}");
    ensure!(!granted.is_empty());
    say(&format!("e2e_actions: {killed} kills in {round} drains, {} pods evicted, each once", granted.len()));
    Ok(())
}

/// The program as a user of the plane.
struct Site {
    shell: Shell,
    kubeconfig: String,
}

impl Site {
    fn new(kubeconfig: PathBuf) -> Self {
        Self { shell: Shell::new(), kubeconfig: program::path(&kubeconfig).to_owned() }
    }

    async fn run(&self, line: &[&str]) -> program::Output {
        self.shell.run(&[&["--kubeconfig", &self.kubeconfig][..], line].concat()).await
    }

    fn journal(&self) -> Journal {
        Journal::within(&self.shell.home.path().join(".local/state/kordon/journal"), OPERATOR)
    }

    async fn drain_with_kills(
        &self,
        plane: &Plane,
        nodes: [&str; 2],
        chance: &mut fastrand::Rng,
    ) -> Result<u64> {
        let begun = kordon::clock::wall();
        let mut line = vec!["drain", nodes[0], nodes[1], "--parallel=2"];
        let mut killed = 0;
        loop {
            let ends = ["--enforce", "--yes", "--kubeconfig", &self.kubeconfig];
            let mut command = self.shell.command(&[&line[..], &ends].concat());
            let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
            let patience = Duration::from_millis(chance.u64(300..2000));
            if killed >= 3 || tokio::time::timeout(patience, child.wait()).await.is_ok() {
                let output =
                    tokio::time::timeout(Duration::from_secs(120), child.wait_with_output()).await??;
                let said = String::from_utf8_lossy(&output.stderr);
                ensure!(output.status.success(), "{:?}: {said}", output.status);
                return Ok(killed);
            }
            child.kill().await?;
            killed += 1;
            let pasts = undertakings(&self.journal().lines()?);
            let nodes = Api::<Node>::all(plane.client()).list(&ListParams::default()).await?;
            for node in nodes.iter().filter(|node| cordoned(node)) {
                let known = pasts.iter().any(|past| past.cordoned().any(|known| **known == *node.name_any()));
                ensure!(known, "{} is cordoned and the journal does not tell of it", node.name_any());
            }
            match pasts.iter().rfind(|past| past.beginning.action == "drain" && past.began >= begun) {
                // Killed before it began: it begins anew.
                None => {}
                Some(past) if past.is_unfinished() => line = vec!["drain", "--resume"],
                // Killed when all was done but the report.
                Some(_) => return Ok(killed),
            }
        }
    }

    async fn undo_last(&self) -> Result<()> {
        let pasts = undertakings(&self.journal().lines()?);
        let last = pasts.iter().rfind(|past| past.beginning.action == "drain").context("a drain")?;
        let output = self.run(&["undo", &last.plan, "--enforce", "--yes"]).await;
        ensure!(output.code == 0, "undo: {}", output.err);
        Ok(())
    }
}

/// Six nodes in three zones, two Deployments on them, one of them under a budget, all ready.
async fn inhabited(plane: &mut Plane) -> Result<Kubelets> {
    let client = plane.client();
    let names = ["a", "b", "c"].into_iter().flat_map(|zone| (1..=2).map(move |number| (zone, number)));
    let specs = names.map(|(zone, number)| NodeSpec::new(format!("{zone}{number}"), zone)).collect();
    let kubelets = Kubelets::start(&client, specs, Beats::default()).await?;
    plane.start_controller_manager(&ControllerManager {
        controllers: vec!["*"],
        ..ControllerManager::default()
    })?;
    plane.start_scheduler()?;
    for (name, replicas) in [("web", 6), ("db", 12)] {
        let deployments = Api::<Deployment>::namespaced(client.clone(), "default");
        deployments
            .create(&PostParams::default(), &serde_json::from_value(deployment(name, replicas))?)
            .await?;
    }
    create_budget(&client, "web", "web", json!(5)).await?;
    settled(&client).await?;
    Ok(kubelets)
}

/// Waits until all pods are ready and the budget allows one to go.
async fn settled(client: &Client) -> Result<()> {
    eventually("ready pods and a budget with room", Span::from_secs(60), async || {
        let pods = pods(client).await?;
        let lives = |pod: &&Pod| pod.metadata.deletion_timestamp.is_none();
        let ready = pods.len() == 18 && pods.iter().filter(lives).filter(|pod| is_ready(pod)).count() == 18;
        let allowed =
            budgets(client).get("web").await?.status.is_some_and(|status| status.disruptions_allowed > 0);
        Ok((ready && allowed).then_some(()))
    })
    .await
}

fn budgets(client: &Client) -> Api<PodDisruptionBudget> {
    Api::namespaced(client.clone(), "default")
}

async fn create_budget(client: &Client, app: &str, name: &str, min_available: Value) -> Result<()> {
    let selector = json!({"matchLabels": {"app": app}});
    let budget =
        json!({"metadata": {"name": name}, "spec": {"minAvailable": min_available, "selector": selector}});
    budgets(client).create(&PostParams::default(), &serde_json::from_value(budget)?).await?;
    Ok(())
}

/// Changes a budget and waits until the disruption controller has seen it.
async fn set_budget(client: &Client, name: &str, min_available: Value) -> Result<()> {
    let patch = Patch::Merge(json!({"spec": {"minAvailable": min_available}}));
    budgets(client).patch(name, &PatchParams::default(), &patch).await?;
    eventually("a budget that was seen", Span::from_secs(20), async || {
        let budget = budgets(client).get(name).await?;
        let seen = budget.status.as_ref().and_then(|status| status.observed_generation);
        Ok((seen == budget.metadata.generation).then_some(()))
    })
    .await
}

async fn pods(client: &Client) -> Result<Vec<Pod>> {
    Ok(Api::<Pod>::namespaced(client.clone(), "default").list(&ListParams::default()).await?.items)
}

fn key(pod: &Pod) -> Key {
    Key::new("default", &pod.name_any())
}

fn cordoned(node: &Node) -> bool {
    node.spec.as_ref().and_then(|spec| spec.unschedulable).unwrap_or(false)
}

fn deployment(name: &str, replicas: u32) -> Value {
    json!({
        "metadata": { "name": name },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": { "app": name } },
            "template": {
                "metadata": { "labels": { "app": name } },
                "spec": { "terminationGracePeriodSeconds": 2, "containers": [{ "name": "c", "image": "img" }] },
            },
        },
    })
}

fn rule(group: &str, resource: &str, verbs: &[&str]) -> PolicyRule {
    PolicyRule {
        api_groups: Some(vec![group.into()]),
        resources: Some(vec![resource.into()]),
        verbs: verbs.iter().map(|verb| (*verb).into()).collect(),
        ..PolicyRule::default()
    }
}

fn reads() -> PolicyRule {
    rule("*", "*", &["get", "list", "watch"])
}

fn may_drain() -> [PolicyRule; 4] {
    [
        reads(),
        rule("", "nodes", &["patch"]),
        rule("", "pods/eviction", &["create"]),
        rule("", "pods", &["delete"]),
    ]
}

/// The requests of a user.
fn audited(plane: &Plane, user: &str) -> Result<Vec<Value>> {
    Ok(plane.audit()?.into_iter().filter(|line| line["user"]["username"] == user).collect())
}

fn is_eviction(line: &Value) -> bool {
    line["verb"] == "create" && line["objectRef"]["subresource"] == "eviction"
}

fn is_granted_eviction(line: &Value) -> bool {
    is_eviction(line) && line["responseStatus"]["code"] == 201
}

/// Whether a request was meant to change something: no read, no review of one's own rights, no dry-run. Of deletions
/// and evictions the body tells, of others the query.
fn is_mutation(line: &Value) -> bool {
    let verb = line["verb"].as_str().unwrap_or_default();
    let resource = line["objectRef"]["resource"].as_str().unwrap_or_default();
    if ["get", "list", "watch"].contains(&verb) || resource.starts_with("selfsubject") {
        return false;
    }
    let body = &line["requestObject"];
    let all = json!(["All"]);
    let by_query = line["requestURI"].as_str().is_some_and(|uri| uri.contains("dryRun=All"));
    let dry = match verb {
        "delete" if !body.is_null() => body["dryRun"] == all,
        "create" if is_eviction(line) => by_query || body["deleteOptions"]["dryRun"] == all,
        _ => by_query,
    };
    !dry
}

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}
