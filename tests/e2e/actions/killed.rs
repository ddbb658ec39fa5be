//! Drains that are killed at random moments and resumed, several at a time with one journal, while pods move: no pod is
//! evicted twice, none is forgotten, and every cordoned node is in the journal.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    process::Stdio,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{Node, Pod};
use kordon::journal::JournaledOperation;
use kordon_core::cluster::claim::DRAIN;
use kordon_time::{Span, Timestamp};
use kube::{Api, Client, ResourceExt, api::DeleteParams};

use super::cluster::{
    ClusterSize, OPERATOR, UserShell, env_number, is_granted_eviction, may_drain, nodes, pods, pods_on,
    start_cluster, wait_until_ready,
};
use crate::{
    common::program::is_cordoned,
    harness::{eventually::eventually, plane::Plane, say},
};

/// One node of each zone is never drained, so that replacements fit.
const SIZE: ClusterSize = ClusterSize { nodes_per_zone: 5, web: 12, db: 48, grace: Span::from_secs(60) };

/// Number of concurrent sequences of drains, called lanes. Lane 1 drains a1 and b1, then b1 and c1, then c1 and a1;
/// lane 2 does so with a2, b2 and c2, and so on.
const LANES: usize = 4;

/// Maximum number of kills of one drain, so that it completes.
const KILLS_EACH: u64 = 4;

/// Scenario 69: A drain that is killed and started again resumes from its journal with the pods that are left.
pub async fn killed_drains_are_resumed(plane: &mut Plane) -> Result<()> {
    let _kubelets = start_cluster(plane, &SIZE).await?;
    plane.grant(OPERATOR, &may_drain()).await?;
    let client = plane.client();
    let totals = Totals {
        wanted: env_number("KORDON_KILLS", 6),
        seed: env_number("KORDON_SEED", 1),
        ..Totals::default()
    };
    let shell = UserShell::new(plane.kubeconfig(OPERATOR)?);
    let lanes =
        (1..=LANES).map(|number| Lane { user: &shell, client: &client, totals: &totals, number }.run());
    let driven = async { futures::future::try_join_all(lanes).await.map(drop) };
    tokio::select! {
        ended = driven => ended?,
        failed = delete_pods_at_random(&client, &totals) => failed?,
    }
    wait_until_ready(&client, &SIZE).await?;
    for node in nodes(&client).await? {
        let name = node.name_any();
        ensure!(
            !is_cordoned(&node) && !node.annotations().contains_key(DRAIN),
            "{name} is still cordoned or claimed"
        );
    }
    let mut granted: BTreeMap<String, usize> = BTreeMap::new();
    for line in plane.audit_of(OPERATOR)?.iter().filter(|line| is_granted_eviction(line)) {
        let uid = &line["requestObject"]["deleteOptions"]["preconditions"]["uid"];
        *granted.entry(uid.as_str().context("an eviction without a uid")?.to_owned()).or_default() += 1;
    }
    let twice: Vec<_> = granted.iter().filter(|(_, count)| **count > 1).collect();
    let seed = totals.seed;
    ensure!(twice.is_empty(), "seed {seed}: evicted more than once: {twice:?}");
    ensure!(!granted.is_empty());
    let [kills, during_drain, drains] =
        [&totals.kills, &totals.during_drain, &totals.drains].map(|count| count.load(Ordering::Relaxed));
    say(&format!(
        "e2e_actions: {kills} kills in {drains} drains, {during_drain} of them after the drain had started; {} pods evicted, each once",
        granted.len()
    ));
    ensure!(
        during_drain * 4 >= kills,
        "only {during_drain} of {kills} kills were during a drain: too few to show anything"
    );
    Ok(())
}

/// Options and totals that all concurrent sequences of drains share.
#[derive(Default)]
struct Totals {
    wanted: u64,
    seed: u64,
    kills: AtomicU64,
    /// Number of kills after the drain had started, according to its journal.
    during_drain: AtomicU64,
    drains: AtomicU64,
}

/// Deletes random pods of `db`, so that nodes that were drained earlier get new pods.
async fn delete_pods_at_random(client: &Client, totals: &Totals) -> Result<()> {
    let mut rng = fastrand::Rng::with_seed(totals.seed);
    loop {
        let mut db = pods(client).await?;
        db.retain(|pod| pod.name_any().starts_with("db") && pod.metadata.deletion_timestamp.is_none());
        if let Some(pod) = rng.choice(&db) {
            let gone = Api::<Pod>::namespaced(client.clone(), "default")
                .delete(&pod.name_any(), &DeleteParams::default())
                .await;
            // The pod may be gone already.
            ensure!(
                gone.is_ok() || matches!(gone, Err(kube::Error::Api(ref status)) if status.is_not_found())
            );
        }
        tokio::time::sleep(Duration::from_millis(700)).await;
    }
}

/// One sequence of drains, always of the same few nodes.
struct Lane<'a> {
    user: &'a UserShell,
    client: &'a Client,
    totals: &'a Totals,
    number: usize,
}

impl Lane<'_> {
    async fn run(self) -> Result<()> {
        let seed = self.totals.seed;
        let mut rng = fastrand::Rng::with_seed(seed ^ self.number as u64);
        for round in 0.. {
            if self.totals.kills.load(Ordering::Relaxed) >= self.totals.wanted {
                break;
            }
            let zones = [["a", "b"], ["b", "c"], ["c", "a"]][round % 3];
            let nodes = zones.map(|zone| format!("{zone}{}", self.number));
            let context = || format!("seed {seed}, lane {}, round {round}, {nodes:?}", self.number);
            self.round([&nodes[0], &nodes[1]], &mut rng).await.with_context(context)?;
            let Totals { kills, drains, .. } = self.totals;
            let (kills, drains) = (kills.load(Ordering::Relaxed), drains.load(Ordering::Relaxed));
            say(&format!("e2e_actions: {kills} kills in {drains} drains so far"));
        }
        Ok(())
    }

    /// Drains two nodes, resuming after each kill, checks the result, and undoes it.
    async fn round(&self, nodes: [&str; 2], rng: &mut fastrand::Rng) -> Result<()> {
        eventually("pods to drain", Span::from_secs(120), async || {
            let (one, other) = (pods_on(self.client, nodes[0]).await?, pods_on(self.client, nodes[1]).await?);
            Ok((!one.is_empty() && !other.is_empty()).then_some(()))
        })
        .await?;
        let plan = self.drain(nodes, rng).await?;
        self.totals.drains.fetch_add(1, Ordering::Relaxed);
        for node in nodes {
            let left: Vec<String> =
                pods_on(self.client, node).await?.iter().map(ResourceExt::name_any).collect();
            ensure!(left.is_empty(), "forgotten on {node}: {left:?}");
            let node = Api::<Node>::all(self.client.clone()).get(node).await?;
            ensure!(
                is_cordoned(&node) && !node.annotations().contains_key(DRAIN),
                "not cordoned, or still claimed"
            );
        }
        let output = self.user.run(&["undo", &plan, "--enforce", "--yes"]).await;
        ensure!(output.code == 0, "undo: {}", output.err);
        for node in nodes {
            let node = Api::<Node>::all(self.client.clone()).get(node).await?;
            ensure!(!is_cordoned(&node), "cordoned after undo");
        }
        Ok(())
    }

    /// Drains until the operation is complete. Returns its id.
    async fn drain(&self, nodes: [&str; 2], rng: &mut fastrand::Rng) -> Result<String> {
        let started = kordon_clock::wall();
        let mut line = vec!["drain".to_owned(), nodes[0].into(), nodes[1].into(), "--parallel=2".into()];
        let mut killed = 0;
        loop {
            let mut words: Vec<&str> = line.iter().map(String::as_str).collect();
            words.extend(["--enforce", "--yes", "--kubeconfig", &self.user.kubeconfig]);
            let stderr = self.user.shell.home.path().join(format!("said-{}", self.number));
            let mut command = self.user.shell.command(&words);
            let mut child = command.stdout(Stdio::null()).stderr(File::create(&stderr)?).spawn()?;
            let is_left = killed >= KILLS_EACH
                || tokio::select! {
                    _ = child.wait() => true,
                    due = self.kill_is_due(nodes, started, rng) => due.map(|()| false)?,
                };
            if is_left {
                let ended = tokio::time::timeout(Duration::from_secs(180), child.wait()).await;
                let stderr = fs::read_to_string(&stderr)?;
                let status = ended.with_context(|| format!("it does not end: {stderr}"))??;
                ensure!(status.success(), "{status:?}: {stderr}");
                return Ok(self
                    .operation(nodes, started)?
                    .context("a drain that is not in the journal")?
                    .id
                    .to_string());
            }
            child.kill().await?;
            killed += 1;
            self.totals.kills.fetch_add(1, Ordering::Relaxed);
            self.check_cordons().await?;
            match self.operation(nodes, started)? {
                // The drain was killed before it had started, so it is started again.
                None => {}
                Some(operation) => {
                    self.totals.during_drain.fetch_add(1, Ordering::Relaxed);
                    if !operation.is_unfinished() {
                        // The drain was complete when it was killed; only its report was missing.
                        return Ok(operation.id.to_string());
                    }
                    line = vec!["drain".into(), format!("--resume={}", operation.id)];
                }
            }
        }
    }

    /// Waits for a random time, after which the next kill is due. In three of four cases, the wait begins when the
    /// drain is in the journal, because the time until that moment depends on the machine. In the fourth case, it
    /// begins at once.
    async fn kill_is_due(&self, nodes: [&str; 2], started: Timestamp, rng: &mut fastrand::Rng) -> Result<()> {
        if rng.u8(..4) > 0 {
            eventually("a drain in the journal", Span::from_secs(120), async || {
                Ok(self.operation(nodes, started)?.map(drop))
            })
            .await?;
        }
        tokio::time::sleep(Duration::from_millis(rng.u64(..2500))).await;
        Ok(())
    }

    /// Returns the drain of these nodes that began after `started`.
    fn operation(&self, nodes: [&str; 2], started: Timestamp) -> Result<Option<JournaledOperation>> {
        let is_it = |operation: &JournaledOperation| {
            let of: Vec<&str> = operation.start.nodes.iter().map(|(node, _)| &**node).collect();
            operation.start.action == "drain" && operation.started >= started && of == nodes
        };
        Ok(self.user.operations()?.into_iter().rfind(is_it))
    }

    /// Checks that every cordoned node is in the journal, in an operation that was not undone. The journal is read
    /// before and after the nodes: a concurrent drain or undo may uncordon a node after the first reading of the
    /// journal, or cordon a node before the second reading.
    async fn check_cordons(&self) -> Result<()> {
        let mut operations = self.user.operations()?;
        let nodes = nodes(self.client).await?;
        operations.extend(self.user.operations()?);
        for node in nodes.iter().filter(|node| is_cordoned(node)) {
            let name = node.name_any();
            let records_it = |operation: &JournaledOperation| {
                !operation.undone && operation.cordoned().any(|known| **known == *name)
            };
            ensure!(operations.iter().any(records_it), "{name} is cordoned and not in the journal");
        }
        Ok(())
    }
}
