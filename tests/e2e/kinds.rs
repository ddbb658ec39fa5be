//! Compares kordon's answers about many small clusters with what the real control plane then does: Jobs, StatefulSets,
//! templates, pods that are never healthy, spread constraints, preemption, devices, dead and deleted nodes, clocks,
//! volumes, owners and operators of other projects, drains that do not end.
//!
//! Each variant (`kinds/*.yaml`) has nodes and a namespace of its own on one control plane, and all variants run at
//! once. The test first asks kordon the question of the variant. Then it carries out the same action for real, with
//! kubectl or on the simulated kubelets, and compares the outcome of each pod with kordon's answer.
//!
//! Runs only with `KORDON_RUN`, whatever its value. `KORDON_E2E_ONLY` selects variants by a part of their names. With
//! `KORDON_DUMPS=FOLDER`, `NAME.json` has the objects of each variant at the time of the question. If an answer differs
//! from what happened, `NAME.answer` has both.

pub mod comparison;
pub mod history;
mod variant;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use anyhow::{Context, Result};
use futures::{StreamExt, stream};
use k8s_openapi::api::{
    batch::v1::Job,
    core::v1::{Namespace, Node},
};
use kordon_clock::Clock;
use kordon_time::{Span, Timestamp};
use kube::{
    Api, Client, ResourceExt,
    api::{ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::{
    common::program::{Shell, path},
    harness::{
        eventually::eventually,
        kubelets::{Heartbeats, Kubelets},
        objects::create,
        plane::{self, ADMIN, ControllerManager, Options, Plane},
        say,
    },
};
use comparison::Happened;
use history::History;
use variant::Variant;

/// The `tolerationSeconds` that admission adds in this test; the default is 300.
const TOLERATION: u32 = 8;
/// Longest time for which one variant is observed.
const OBSERVED: Span = Span::from_secs(180);
/// Number of variants that run at once. More of them would slow the simulated kubelets down, so that pods start late.
const TRIED_AT_ONCE: usize = 8;
/// Timeout of kubectl drain.
const PATIENCE: &str = "--timeout=25s";
/// Maximum number of kordon and kubectl processes that run at once.
const AT_ONCE: usize = 3;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_happens_is_what_is_said() {
    let Some(binary) = plane::binary("e2e_kinds").unwrap() else { return };
    if std::env::var_os("KORDON_RUN").is_none() {
        say("e2e_kinds: skipped: KORDON_RUN is not set");
        return;
    }
    let only = std::env::var("KORDON_E2E_ONLY").unwrap_or_default();
    let mut variants = variant::all().unwrap();
    variants.retain(|variant| variant.name.contains(&only));
    let options = Options { toleration_seconds: TOLERATION, ..Options::default() };
    let mut plane = Plane::start(&binary, options).await.unwrap();
    let differences = all(&mut plane, &variants).await.unwrap();
    say(&format!("e2e_kinds: {} variants, {} differ", variants.len(), differences.len()));
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// This test needs no control plane.
#[test]
fn every_variant_has_a_name_of_its_own_and_objects_of_known_kinds() {
    let mut names = BTreeSet::new();
    for variant in variant::all().unwrap() {
        for object in variant.place.values().flatten().chain(&variant.with) {
            if object["run"].is_null() {
                variant.object(object).unwrap();
            }
        }
        assert!(names.insert(variant.name.clone()), "{}", variant.name);
    }
}

/// Runs all variants. Returns the differences.
async fn all(plane: &mut Plane, variants: &[Variant]) -> Result<Vec<String>> {
    let client = plane.client();
    let heartbeats = Heartbeats { every: Span::from_secs(3), status_each: 5 };
    let specs = variants.iter().flat_map(Variant::node_specs).collect();
    let kubelets = Kubelets::start(&client, specs, heartbeats).await?;
    let manager = ControllerManager {
        grace_period: Span::from_secs(16),
        startup_grace_period: Span::from_secs(20),
        eviction_rate: 5.0,
        controllers: vec!["*"],
        ..ControllerManager::default()
    };
    plane.start_controller_manager(&manager)?;
    plane.start_scheduler()?;
    let nodes = Api::<Node>::all(client.clone());
    eventually("initialized nodes", Span::from_secs(60), async || {
        plane.check()?;
        let listed = nodes.list(&ListParams::default()).await?;
        Ok((!listed.iter().any(is_not_initialized)).then_some(()))
    })
    .await?;
    let mut flags = manager.flags_of_kordon()?;
    flags.extend(["--kubeconfig".into(), path(&plane.kubeconfig(ADMIN)?).to_owned()]);
    let history = History::start(client.clone());
    let processes = Semaphore::new(AT_ONCE);
    let trial = Trial { plane, client, kubelets, history, flags, processes };
    let tried = variants.iter().map(async |variant| (variant, trial.run(variant).await));
    let mut results = stream::iter(tried).buffered(TRIED_AT_ONCE);
    let mut differences = Vec::new();
    while let Some((variant, result)) = results.next().await {
        match result {
            Ok(found) => {
                differences.extend(found.into_iter().map(|text| format!("{}: {text}", variant.name)))
            }
            Err(error) => differences.push(format!("{}: {error:#}", variant.name)),
        }
    }
    Ok(differences)
}

fn is_not_initialized(node: &Node) -> bool {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default();
    taints.iter().any(|taint| taint.key == "node.kubernetes.io/not-ready")
}

/// One control plane, and everything that the variants share.
struct Trial<'a> {
    plane: &'a Plane,
    client: Client,
    kubelets: Kubelets,
    history: History,
    /// Flags of kordon: the settings of the controllers, and the connection to the cluster.
    flags: Vec<String>,
    processes: Semaphore,
}

/// The result of an action that was carried out for real.
struct Done {
    since: Timestamp,
    /// Whether all parts of the action succeeded.
    is_complete: bool,
}

impl Trial<'_> {
    /// Prepares a variant, asks kordon its question, carries out the action for real, and returns each difference.
    async fn run(&self, variant: &Variant) -> Result<Vec<String>> {
        self.prepare(variant).await.context("preparing it")?;
        self.keep(variant).await?;
        let answer = self.ask(variant).await?;
        let mut found = unexpected(variant, &answer);
        let Done { since, is_complete } = self.act(variant).await?;
        let at_least = since + comparison::lasts(&answer).max(Span::from_secs(variant.lasts.into()));
        self.history.until_quiet(&variant.name, at_least, since + OBSERVED).await;
        let (failed_jobs, failed_indexes) = self.jobs(variant).await?;
        let pods = self.history.of(&variant.name);
        if let Some(node) = variant.ask.strip_prefix("drain ") {
            let node = variant.node(node.split(' ').next().unwrap_or_default());
            let left = pods.values().filter(|seen| seen.is_drained_from(&node)).count();
            if (answer["outcome"] == "completes") != (is_complete && left == 0) {
                let outcome = &answer["outcome"];
                found.push(format!(
                    "the plan {outcome}; the drain ended: {is_complete}, with {left} pods left"
                ));
            }
        }
        let happened = Happened {
            since,
            names_nodes: true,
            pods: &pods,
            failed_jobs: &failed_jobs,
            failed_indexes: &failed_indexes,
        };
        found.extend(comparison::differences(&answer, &variant.name, &happened));
        if !found.is_empty() {
            self.keep_answer(variant, &answer, &format!("{pods:#?}"))?;
        }
        Ok(found)
    }

    /// Creates the objects of a variant, and waits until the cluster has settled.
    async fn prepare(&self, variant: &Variant) -> Result<()> {
        let namespace = serde_json::from_value(json!({"metadata": {"name": variant.name}}))?;
        Api::<Namespace>::all(self.client.clone()).create(&PostParams::default(), &namespace).await?;
        let mut wanted = 0;
        for (place, objects) in &variant.place {
            self.open_only(variant, place).await?;
            for object in objects {
                match object["run"].as_str() {
                    Some(line) => {
                        self.command(variant, line).await?;
                    }
                    None => {
                        let (path, object) = variant.object(object)?;
                        create(&self.client, &path, &object).await?;
                    }
                }
            }
            wanted += variant.pods_of(objects);
            self.settle(variant, usize::try_from(wanted)?).await.with_context(|| place.clone())?;
        }
        for node in variant.nodes.keys() {
            self.cordon(&variant.node(node), false).await?;
        }
        for line in &variant.before {
            self.command(variant, line).await?;
        }
        // Controllers react to changes of pods and nodes within a second.
        tokio::time::sleep(Span::from_secs(3).to_std()).await;
        Ok(())
    }

    /// Cordons all nodes of a variant except this one. If `place` is not a node, uncordons all nodes.
    async fn open_only(&self, variant: &Variant, place: &str) -> Result<()> {
        for node in variant.nodes.keys() {
            let is_closed = variant.nodes.contains_key(place) && node != place;
            self.cordon(&variant.node(node), is_closed).await?;
        }
        Ok(())
    }

    async fn cordon(&self, node: &str, is_cordoned: bool) -> Result<()> {
        let patch = Patch::Merge(json!({"spec": {"unschedulable": is_cordoned}}));
        Api::<Node>::all(self.client.clone()).patch(node, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// Waits until this many pods are on nodes and have been started.
    async fn settle(&self, variant: &Variant, wanted: usize) -> Result<()> {
        let api = Api::<k8s_openapi::api::core::v1::Pod>::namespaced(self.client.clone(), &variant.name);
        eventually(&format!("{wanted} started pods"), Span::from_secs(90), async || {
            let listed = api.list(&ListParams::default()).await?.items;
            let started = listed
                .iter()
                .filter(|pod| pod.status.as_ref().is_some_and(|status| status.start_time.is_some()));
            Ok((started.count() == wanted).then_some(()))
        })
        .await
    }

    /// Asks kordon the question of a variant, and returns the answer.
    async fn ask(&self, variant: &Variant) -> Result<Value> {
        let shell = Shell::new();
        let mut words = variant.command(&variant.ask);
        if !variant.ask.starts_with("forecast") {
            words.insert(0, "plan".into());
        }
        if matches!(words.get(1).map(String::as_str), Some("delete" | "evict")) {
            words.extend(["-n".into(), variant.name.clone()]);
        }
        words.extend(["-o".into(), "json".into()]);
        if ["drain", "delete", "taint", "cordon"].contains(&words[1].as_str()) {
            words.push("--placement=wait".into());
        }
        if !variant.with.is_empty() {
            words.extend(["--with".into(), shell.file("with.json", &list(variant)?)]);
        }
        words.extend(self.flags.iter().cloned());
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let output = {
            let _turn = self.processes.acquire().await?;
            shell.run(&words).await
        };
        serde_json::from_str(&output.out).with_context(|| {
            format!("{}: exit code {}\n{}{}", variant.ask, output.code, output.out, output.err)
        })
    }

    /// Carries out the action that the question asks about.
    async fn act(&self, variant: &Variant) -> Result<Done> {
        let mut done = Vec::new();
        if !variant.with.is_empty() {
            let file = self.plane.folder().join(format!("{}.json", variant.name));
            fs::write(&file, list(variant)?)?;
            let (since, applied) =
                self.kubectl(&["apply", "--server-side", "--force-conflicts", "-f", path(&file)]).await?;
            applied?;
            done.push(Done { since, is_complete: true });
        }
        let lines = match (&variant.then, variant.ask.split_once(' ')) {
            (Some(lines), _) => lines.clone(),
            (None, Some(("drain", _))) => vec![format!("{} {PATIENCE}", variant.ask)],
            (None, Some(("node-failure", node))) => vec![format!("silence {node}")],
            (None, Some((_, _))) => vec![variant.ask.clone()],
            (None, None) => Vec::new(),
        };
        for line in lines {
            done.push(self.command(variant, &line).await?);
        }
        let first = done.first().context("nothing is done")?;
        Ok(Done { since: first.since, is_complete: done.iter().all(|done| done.is_complete) })
    }

    /// Runs one line of a variant: an event of a kubelet, a pause, or a kubectl command. Only a drain may fail.
    async fn command(&self, variant: &Variant, line: &str) -> Result<Done> {
        let words = variant.command(line);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let since = Clock::system().now();
        match words[..] {
            ["silence", node] => drop(self.kubelets.silence(node).await?),
            ["remove", node] => self.kubelets.remove(node).await?,
            ["back", node] => self.kubelets.come_back(node).await?,
            ["wait", seconds] => tokio::time::sleep(Span::from_secs(seconds.parse()?).to_std()).await,
            ["drain", ..] => {
                let (since, drained) = self.kubectl(&words).await?;
                return Ok(Done { since, is_complete: drained.is_ok() });
            }
            _ => {
                let (since, ran) = self.kubectl(&[&["-n", &variant.name], &words[..]].concat()).await?;
                ran?;
                return Ok(Done { since, is_complete: true });
            }
        }
        Ok(Done { since, is_complete: true })
    }

    /// Runs kubectl as soon as fewer than [`AT_ONCE`] processes run. Returns the start time and the output.
    async fn kubectl(&self, words: &[&str]) -> Result<(Timestamp, Result<String>)> {
        let _turn = self.processes.acquire().await?;
        let since = Clock::system().now();
        Ok((since, self.plane.kubectl(words).await))
    }

    /// Returns the reasons of failed Jobs, and the numbers of failed indexes.
    async fn jobs(&self, variant: &Variant) -> Result<(BTreeMap<String, String>, BTreeMap<String, usize>)> {
        let jobs = Api::<Job>::namespaced(self.client.clone(), &variant.name);
        let (mut reasons, mut indexes) = (BTreeMap::new(), BTreeMap::new());
        for job in jobs.list(&ListParams::default()).await? {
            let status = job.status.clone().unwrap_or_default();
            // A Job has failed once it has the condition `FailureTarget`; `Failed` follows when all its pods are gone.
            let failed =
                status.conditions.iter().flatten().find(|condition| condition.type_ == "FailureTarget");
            if let Some(reason) = failed.and_then(|condition| condition.reason.clone()) {
                reasons.insert(job.name_any(), reason);
            }
            if let Some(text) = status.failed_indexes {
                indexes.insert(job.name_any(), count_of_indexes(&text)?);
            }
        }
        Ok((reasons, indexes))
    }

    /// Writes the objects of a variant to a file, if `KORDON_DUMPS` names a folder.
    async fn keep(&self, variant: &Variant) -> Result<()> {
        let Some(folder) = std::env::var_os("KORDON_DUMPS") else { return Ok(()) };
        let label = format!("kordon.test/variant={}", variant.name);
        let mut items = Vec::new();
        let cluster = "priorityclasses,persistentvolumes,storageclasses,csidrivers,volumeattachments,deviceclasses,\
            resourceslices,devicetaintrules";
        let inside = "pods,deployments,replicasets,statefulsets,daemonsets,jobs,cronjobs,poddisruptionbudgets,\
            persistentvolumeclaims,resourcequotas,limitranges,resourceclaims,resourceclaimtemplates";
        for words in [
            vec!["get", "nodes", "-l", &label, "-o", "json"],
            vec!["get", "namespace", &variant.name, "-o", "json"],
            vec!["get", cluster, "-o", "json"],
            vec!["get", inside, "-n", &variant.name, "-o", "json"],
        ] {
            let list: Value = serde_json::from_str(&self.plane.kubectl(&words).await?)?;
            match list["items"].as_array() {
                Some(listed) => items.extend(listed.iter().cloned()),
                None => items.push(list),
            }
        }
        let objects = json!({"apiVersion": "v1", "kind": "List", "items": items});
        fs::write(Path::new(&folder).join(format!("{}.json", variant.name)), format!("{objects:#}\n"))?;
        Ok(())
    }

    /// Writes a wrong answer and what happened to a file, if `KORDON_DUMPS` names a folder.
    fn keep_answer(&self, variant: &Variant, answer: &Value, pods: &str) -> Result<()> {
        let Some(folder) = std::env::var_os("KORDON_DUMPS") else { return Ok(()) };
        let text = format!("{answer:#}\n{pods}\n");
        fs::write(Path::new(&folder).join(format!("{}.answer", variant.name)), text)?;
        Ok(())
    }
}

/// Returns the parts of an answer that differ from what the variant expects.
fn unexpected(variant: &Variant, answer: &Value) -> Vec<String> {
    let mut found: Vec<String> =
        answer["error"].as_str().map(|error| format!("error: {error}")).into_iter().collect();
    let mut outcomes: BTreeMap<String, u64> = BTreeMap::new();
    for pod in comparison::pods(answer).filter(|pod| pod["namespace"] == variant.name.as_str()) {
        *outcomes.entry(pod["outcome"].as_str().unwrap_or_default().to_owned()).or_default() += 1;
    }
    if outcomes != variant.becomes {
        found.push(format!("the answer is {outcomes:?}, right is {:?}", variant.becomes));
    }
    let text = answer.to_string();
    let is_said = |said: &&String| text.contains(&variant.filled(said));
    found.extend(variant.says.iter().filter(|said| !is_said(said)).map(|said| format!("not said: {said}")));
    found.extend(variant.never_says.iter().filter(is_said).map(|said| format!("said: {said}")));
    found
}

/// Returns the text of a file with the objects that the question adds to the cluster or replaces in it.
fn list(variant: &Variant) -> Result<String> {
    let items = variant.with.iter().map(|object| Ok(variant.object(object)?.1));
    let items = items.collect::<Result<Vec<Value>>>()?;
    Ok(json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string())
}

/// Counts the indexes in an index list of a Job's status, such as `0,2-4`.
fn count_of_indexes(text: &str) -> Result<usize> {
    let count = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        anyhow::Ok(last.parse::<usize>()? + 1 - first.parse::<usize>()?)
    };
    text.split(',').filter(|part| !part.is_empty()).map(count).sum()
}
