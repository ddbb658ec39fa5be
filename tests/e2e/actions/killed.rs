//! Drains that are killed at random moments and resumed, several at a time over one journal, in a cluster whose pods move:
//! no pod is evicted twice, none is forgotten, and no node is left cordoned that the journal does not know of.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    process::Stdio,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{Node, Pod};
use kordon::{
    cluster::claim::DRAIN,
    journal::JournaledOperation,
    time::{Span, Timestamp},
};
use kube::{Api, Client, ResourceExt, api::DeleteParams};

use super::site::{
    OPERATOR, Site, Size, cordoned, inhabited, is_granted_eviction, may_drain, nodes, number, pods, pods_on,
    settled,
};
use crate::harness::{eventually::eventually, plane::Plane, say};

/// One node of each zone is never drained, or replacements would find no place.
const SIZE: Size = Size { nodes_per_zone: 5, web: 12, db: 48, grace: Span::from_secs(60) };

/// Drains at a time. Lane 1 drains a1 and b1, then b1 and c1, then c1 and a1; lane 2 a2 and b2, and so on.
const LANES: usize = 4;

/// Kills of one drain at most: it has to end some time.
const KILLS_EACH: u64 = 4;

/// Scenario 69: A drain that is killed and started again resumes from its journal with the pods that are left.
pub async fn killed_drains_are_resumed(plane: &mut Plane) -> Result<()> {
    let _kubelets = inhabited(plane, &SIZE).await?;
    plane.grant(OPERATOR, &may_drain()).await?;
    let client = plane.client();
    let tally =
        Tally { wanted: number("KORDON_KILLS", 6), seed: number("KORDON_SEED", 1), ..Tally::default() };
    let site = Site::new(plane.kubeconfig(OPERATOR)?);
    let lanes =
        (1..=LANES).map(|number| Lane { site: &site, client: &client, tally: &tally, number }.drive());
    let driven = async { futures::future::try_join_all(lanes).await.map(drop) };
    tokio::select! {
        ended = driven => ended?,
        failed = stir(&client, &tally) => failed?,
    }
    settled(&client, &SIZE).await?;
    for node in nodes(&client).await? {
        let name = node.name_any();
        ensure!(
            !cordoned(&node) && !node.annotations().contains_key(DRAIN),
            "{name} is left cordoned or marked"
        );
    }
    let mut granted: BTreeMap<String, usize> = BTreeMap::new();
    for line in plane.audit_of(OPERATOR)?.iter().filter(|line| is_granted_eviction(line)) {
        let uid = &line["requestObject"]["deleteOptions"]["preconditions"]["uid"];
        *granted.entry(uid.as_str().context("an eviction without a uid")?.to_owned()).or_default() += 1;
    }
    let twice: Vec<_> = granted.iter().filter(|(_, count)| **count > 1).collect();
    let seed = tally.seed;
    ensure!(twice.is_empty(), "seed {seed}: evicted more than once: {twice:?}");
    ensure!(!granted.is_empty());
    let [kills, amid, drains] =
        [&tally.kills, &tally.amid, &tally.drains].map(|count| count.load(Ordering::Relaxed));
    say(&format!(
        "e2e_actions: {kills} kills in {drains} drains, {amid} of them after the drain had written; {} pods evicted, each once",
        granted.len()
    ));
    ensure!(amid * 4 >= kills, "only {amid} of {kills} kills came in the middle: they prove little");
    Ok(())
}

/// What all lanes have done together.
#[derive(Default)]
struct Tally {
    wanted: u64,
    seed: u64,
    kills: AtomicU64,
    /// Kills after the drain had begun, by its journal.
    amid: AtomicU64,
    drains: AtomicU64,
}

/// Deletes a pod now and then, so that nodes that were drained are filled again while others are being drained.
async fn stir(client: &Client, tally: &Tally) -> Result<()> {
    let mut chance = fastrand::Rng::with_seed(tally.seed);
    loop {
        let mut db = pods(client).await?;
        db.retain(|pod| pod.name_any().starts_with("db") && pod.metadata.deletion_timestamp.is_none());
        if let Some(pod) = chance.choice(&db) {
            let gone = Api::<Pod>::namespaced(client.clone(), "default")
                .delete(&pod.name_any(), &DeleteParams::default())
                .await;
            // Somebody was quicker.
            ensure!(
                gone.is_ok() || matches!(gone, Err(kube::Error::Api(ref status)) if status.is_not_found())
            );
        }
        tokio::time::sleep(Duration::from_millis(700)).await;
    }
}

/// Somebody who drains the same few nodes again and again.
struct Lane<'a> {
    site: &'a Site,
    client: &'a Client,
    tally: &'a Tally,
    number: usize,
}

impl Lane<'_> {
    async fn drive(self) -> Result<()> {
        let seed = self.tally.seed;
        let mut chance = fastrand::Rng::with_seed(seed ^ self.number as u64);
        for round in 0.. {
            if self.tally.kills.load(Ordering::Relaxed) >= self.tally.wanted {
                break;
            }
            let zones = [["a", "b"], ["b", "c"], ["c", "a"]][round % 3];
            let nodes = zones.map(|zone| format!("{zone}{}", self.number));
            let told = || format!("seed {seed}, lane {}, round {round}, {nodes:?}", self.number);
            self.round([&nodes[0], &nodes[1]], &mut chance).await.with_context(told)?;
            let Tally { kills, drains, .. } = self.tally;
            let (kills, drains) = (kills.load(Ordering::Relaxed), drains.load(Ordering::Relaxed));
            say(&format!("e2e_actions: {kills} kills in {drains} drains so far"));
        }
        Ok(())
    }

    /// Drains two nodes, however often that is cut off, looks at what is left, and undoes it.
    async fn round(&self, nodes: [&str; 2], chance: &mut fastrand::Rng) -> Result<()> {
        eventually("pods to drain", Span::from_secs(120), async || {
            let (one, other) = (pods_on(self.client, nodes[0]).await?, pods_on(self.client, nodes[1]).await?);
            Ok((!one.is_empty() && !other.is_empty()).then_some(()))
        })
        .await?;
        let plan = self.drain(nodes, chance).await?;
        self.tally.drains.fetch_add(1, Ordering::Relaxed);
        for node in nodes {
            let left: Vec<String> =
                pods_on(self.client, node).await?.iter().map(ResourceExt::name_any).collect();
            ensure!(left.is_empty(), "forgotten on {node}: {left:?}");
            let node = Api::<Node>::all(self.client.clone()).get(node).await?;
            ensure!(
                cordoned(&node) && !node.annotations().contains_key(DRAIN),
                "not cordoned, or still marked"
            );
        }
        let output = self.site.run(&["undo", &plan, "--enforce", "--yes"]).await;
        ensure!(output.code == 0, "undo: {}", output.err);
        for node in nodes {
            let node = Api::<Node>::all(self.client.clone()).get(node).await?;
            ensure!(!cordoned(&node), "cordoned after undo");
        }
        Ok(())
    }

    /// Drains until it is done, and tells the plan's name.
    async fn drain(&self, nodes: [&str; 2], chance: &mut fastrand::Rng) -> Result<String> {
        let begun = kordon::clock::wall();
        let mut line = vec!["drain".to_owned(), nodes[0].into(), nodes[1].into(), "--parallel=2".into()];
        let mut killed = 0;
        loop {
            let mut words: Vec<&str> = line.iter().map(String::as_str).collect();
            words.extend(["--enforce", "--yes", "--kubeconfig", &self.site.kubeconfig]);
            let said = self.site.shell.home.path().join(format!("said-{}", self.number));
            let mut command = self.site.shell.command(&words);
            let mut child = command.stdout(Stdio::null()).stderr(File::create(&said)?).spawn()?;
            let is_left = killed >= KILLS_EACH
                || tokio::select! {
                    _ = child.wait() => true,
                    due = self.kill_is_due(nodes, begun, chance) => due.map(|()| false)?,
                };
            if is_left {
                let ended = tokio::time::timeout(Duration::from_secs(180), child.wait()).await;
                let said = fs::read_to_string(&said)?;
                let status = ended.with_context(|| format!("it does not end: {said}"))??;
                ensure!(status.success(), "{status:?}: {said}");
                return Ok(self
                    .past(nodes, begun)?
                    .context("a drain that is not in the journal")?
                    .id
                    .to_string());
            }
            child.kill().await?;
            killed += 1;
            self.tally.kills.fetch_add(1, Ordering::Relaxed);
            self.check_cordons().await?;
            match self.past(nodes, begun)? {
                // Killed before it began: it begins anew.
                None => {}
                Some(past) => {
                    self.tally.amid.fetch_add(1, Ordering::Relaxed);
                    if !past.is_unfinished() {
                        // Killed when all was done but the report.
                        return Ok(past.id.to_string());
                    }
                    line = vec!["drain".into(), format!("--resume={}", past.id)];
                }
            }
        }
    }

    /// Waits until it is time to kill: mostly a while after the drain is in the journal, for how long it takes to begin
    /// is the machine's affair; now and then at any moment.
    async fn kill_is_due(
        &self,
        nodes: [&str; 2],
        begun: Timestamp,
        chance: &mut fastrand::Rng,
    ) -> Result<()> {
        if chance.u8(..4) > 0 {
            eventually("a drain that began", Span::from_secs(120), async || {
                Ok(self.past(nodes, begun)?.map(drop))
            })
            .await?;
        }
        tokio::time::sleep(Duration::from_millis(chance.u64(..2500))).await;
        Ok(())
    }

    /// The drain of these nodes that began since.
    fn past(&self, nodes: [&str; 2], begun: Timestamp) -> Result<Option<JournaledOperation>> {
        let is_it = |past: &JournaledOperation| {
            let of: Vec<&str> = past.start.nodes.iter().map(|(node, _)| &**node).collect();
            past.start.action == "drain" && past.started >= begun && of == nodes
        };
        Ok(self.site.pasts()?.into_iter().rfind(is_it))
    }

    /// Every node that is cordoned now, the journal tells of in a plan that was not undone. It is read before and after the
    /// nodes: what others uncordon in between stands in the one, and what they cordon in the other.
    async fn check_cordons(&self) -> Result<()> {
        let mut pasts = self.site.pasts()?;
        let nodes = nodes(self.client).await?;
        pasts.extend(self.site.pasts()?);
        for node in nodes.iter().filter(|node| cordoned(node)) {
            let name = node.name_any();
            let tells =
                |past: &JournaledOperation| !past.undone && past.cordoned().any(|known| **known == *name);
            ensure!(pasts.iter().any(tells), "{name} is cordoned and the journal does not tell of it");
        }
        Ok(())
    }
}
