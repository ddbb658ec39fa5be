//! Predicted pod outcomes compared with those of the real controllers and the real scheduler, for pods of Deployments,
//! StatefulSets with volumes, DaemonSets, Jobs, and pods with devices.
//!
//! First, nodes fail, come back, are deleted and are tainted, several at a time. `kordon status --watch` runs
//! meanwhile; its last line says how many outcomes were as predicted. Every outcome that differs from its prediction
//! needs a cause that leads to exactly this difference ([`causes`]). Then the test asks kordon what certain actions
//! would do, and carries out one action after the other ([`asked`]); no answer may differ from what happens.
//!
//! Runs only with `KORDON_RUN` (`KORDON_RUN=4m`, `1h`), because the real components do not behave the same twice, and
//! each difference without a cause has to be investigated. Takes the given time, two thirds of it with incidents, and
//! some minutes more. `KORDON_SEED` selects other incidents. `KORDON_E2E_ONLY=asked` asks questions for the whole time.

mod asked;
mod causes;
mod workloads;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    process::Stdio,
};

use anyhow::{Context, Result, ensure};
use fastrand::Rng;
use k8s_openapi::api::core::v1::Pod;
use kordon_clock::Clock;
use kordon_core::forecast::SETTLES;
use kordon_time::{Span, Timestamp};
use kube::{Api, Client, ResourceExt, api::ListParams};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout};

use crate::{
    common::program::{Shell, path},
    harness::{
        kubelets::{Heartbeats, Kubelets},
        plane::{self, ADMIN, ControllerManager, Options, Plane},
        say,
    },
};

use workloads::MAINTENANCE;

const ZONES: [&str; 3] = ["a", "b", "c"];
/// The `tolerationSeconds` that admission adds in this test; the default is 300.
const TOLERATION: u32 = 11;
/// Time between two incidents.
const EVERY: Span = Span::from_secs(25);
/// Time from the moment at which a node is Ready again until all pods of the workloads are Ready.
const RECOVERY: Span = Span::from_secs(20);

/// An incident of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Incident {
    /// The kubelet falls silent, until all outcomes have been read.
    Lost,
    /// The kubelet falls silent, and comes back while its former pods are still Terminating.
    Back,
    /// The kubelet falls silent, and its Node is deleted and registers later.
    Deleted,
    /// The kubelet falls silent, and its node is tainted out-of-service, until it is back.
    OutOfService,
    /// The node has a taint that all pods tolerate for a while.
    Tainted,
}

impl Incident {
    const ALL: [Self; 5] = [Self::Lost, Self::Back, Self::Deleted, Self::OutOfService, Self::Tainted];
    /// Time from the start of an incident until all of its outcomes have been read.
    const LASTS: Span = Span::from_secs(120);

    /// Returns what is done to the node: each act, with its time after the start of the incident.
    fn acts(self) -> Vec<(Span, Act)> {
        let secs = Span::from_secs;
        match self {
            Self::Lost => vec![(Span::ZERO, Act::Lost), (Self::LASTS, Act::Back)],
            Self::Back => vec![(Span::ZERO, Act::Lost), (secs(50), Act::Back)],
            Self::Deleted => {
                vec![(Span::ZERO, Act::Lost), (secs(45), Act::Deleted), (Self::LASTS, Act::JoinedAgain)]
            }
            Self::OutOfService => {
                vec![(Span::ZERO, Act::Lost), (secs(45), Act::OutOfService), (Self::LASTS, Act::InService)]
            }
            Self::Tainted => vec![(Span::ZERO, Act::Tainted), (secs(45), Act::Untainted)],
        }
    }
}

/// Something that is done to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Lost,
    Back,
    Deleted,
    JoinedAgain,
    OutOfService,
    /// The kubelet comes back, and the taint is removed.
    InService,
    Tainted,
    Untainted,
}

impl Act {
    const fn word(self) -> &'static str {
        match self {
            Self::Lost => "was lost",
            Self::Back | Self::InService => "was back",
            Self::Deleted => "was deleted",
            Self::JoinedAgain => "joined again",
            Self::OutOfService => "was tainted out-of-service",
            Self::Tainted => "was tainted",
            Self::Untainted => "was untainted",
        }
    }
}

/// A completed act on a node.
#[derive(Clone, Debug)]
struct Done {
    at: Timestamp,
    node: String,
    act: Act,
}

/// The nodes on which the pods of each name were seen, with the time by which each pod had been placed; by namespace and
/// name of the pod.
type Homes = BTreeMap<String, Vec<(Timestamp, String)>>;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pods_become_what_is_predicted() {
    let Some(binary) = plane::binary("e2e_outcomes").unwrap() else { return };
    let Ok(length) = std::env::var("KORDON_RUN") else {
        say("e2e_outcomes: skipped: KORDON_RUN does not say for how long");
        return;
    };
    let options = Options { toleration_seconds: TOLERATION, ..Options::default() };
    let mut plane = Plane::start(&binary, options).await.unwrap();
    if let Err(error) = compare(&mut plane, &length).await {
        panic!("{error:#}");
    }
}

async fn compare(plane: &mut Plane, length: &str) -> Result<()> {
    let length = humantime::parse_duration(length).context("KORDON_RUN")?;
    let seed = std::env::var("KORDON_SEED").ok().map_or(Ok(1), |text| text.parse()).context("KORDON_SEED")?;
    let mut random = Rng::with_seed(seed);
    let client = plane.client();
    let kubelets = Kubelets::start(&client, workloads::nodes(), Heartbeats::default()).await?;
    let manager = ControllerManager {
        monitor_period: Span::from_secs(2),
        grace_period: Span::from_secs(16),
        startup_grace_period: Span::from_secs(20),
        eviction_rate: 0.5,
        secondary_eviction_rate: 0.3,
        controllers: vec!["*"],
        ..ControllerManager::default()
    };
    plane.start_controller_manager(&manager)?;
    plane.start_scheduler()?;
    workloads::populate(&client).await?;
    workloads::wait_until_ready(&client).await?;
    let kubeconfig = plane.kubeconfig(ADMIN)?;
    let mut flags = manager.flags_of_kordon()?;
    flags.extend(["--kubeconfig".into(), path(&kubeconfig).to_owned()]);
    let only_asked = std::env::var("KORDON_E2E_ONLY").is_ok_and(|only| only == "asked");
    let asked = if only_asked { length } else { length / 3 };
    if !only_asked {
        let player = Player { plane, client: client.clone(), kubelets: &kubelets };
        play(&player, (length - asked).into(), &mut random, &flags).await?;
    }
    plane.check()?;
    let differences = asked::ask(plane, &kubelets, &flags, asked.into(), &mut random).await?;
    plane.check()?;
    ensure!(differences.is_empty(), "with seed {seed}:\n{}", differences.join("\n"));
    Ok(())
}

/// Compares the outcomes of evicted pods with those that `kordon status --watch` predicts, while nodes fail.
async fn play(player: &Player<'_>, length: Span, random: &mut Rng, flags: &[String]) -> Result<()> {
    let shell = Shell::new();
    let line = ["status", "--watch", "-o", "json"];
    let line: Vec<&str> = line.into_iter().chain(flags.iter().map(String::as_str)).collect();
    let mut kordon = Kordon::start(&shell, &line)?;
    kordon.read(Span::from_secs(15)).await?;
    let (done, homes) = player.play(length, random, &mut kordon).await?;
    let last = kordon.last.as_ref().context("kordon has said nothing")?;
    let outcomes = &last["predictions"]["outcomes"];
    let count = |name: &str| outcomes[name].as_u64().unwrap_or_default();
    let record = format!("{done:#?}\n{homes:#?}\n{:#?}\n", kordon.differences);
    fs::write(player.plane.folder().join("outcomes"), record)?;
    let (wrong, explained) = (kordon.differences.len(), causes::explain(&kordon.differences, &done, &homes));
    say(&format!(
        "e2e_outcomes: {length}: {} evicted pods: {} as predicted, {} on another of equal nodes, {} otherwise \
         ({wrong} by name), {} not predicted, {} open; by outcome: {}",
        count("pods"),
        count("right"),
        count("byChance"),
        count("wrong"),
        count("notPredicted"),
        count("open"),
        outcomes["differences"],
    ));
    let (explained, others): (Vec<_>, Vec<_>) = explained.into_iter().partition(|(_, why)| why.is_some());
    for (difference, why) in &explained {
        say(&format!("    {difference}: {}", why.as_deref().unwrap_or_default()));
    }
    for Done { at, node, act } in &done {
        say(&format!("    {at} {node} {}", act.word()));
    }
    let others: Vec<String> = others.into_iter().map(|(difference, _)| difference).collect();
    ensure!(others.is_empty(), "not explained:\n{}", others.join("\n"));
    ensure!(count("wrong") as usize == wrong, "some differences were not named");
    // At least 20 outcomes have to be right, or right by chance. How many outcomes are wrong, not predicted or open
    // depends on how soon the test acts on the nodes.
    ensure!(count("right") + count("byChance") >= 20, "too few evictions");
    Ok(())
}

/// `kordon status --watch`, and the differences that it has reported.
struct Kordon {
    _child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    last: Option<Value>,
    /// Differences by the start of the pod's deletion and the name of the pod.
    differences: BTreeMap<(String, String), Value>,
}

impl Kordon {
    fn start(shell: &Shell, line: &[&str]) -> Result<Self> {
        let mut child = shell.command(line).stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
        let lines = BufReader::new(child.stdout.take().context("its output")?).lines();
        Ok(Self { _child: child, lines, last: None, differences: BTreeMap::new() })
    }

    /// Reads kordon's output for this time.
    async fn read(&mut self, time: Span) -> Result<()> {
        let ends = tokio::time::Instant::now() + time.to_std();
        while let Ok(line) = tokio::time::timeout_at(ends, self.lines.next_line()).await {
            let verdict: Value = serde_json::from_str(&line?.context("kordon has ended")?)?;
            for difference in verdict["predictions"]["outcomes"]["last"].as_array().into_iter().flatten() {
                let text = |field: &str| difference[field].as_str().unwrap_or_default().to_owned();
                self.differences.insert((text("at"), text("pod")), difference.clone());
            }
            self.last = Some(verdict);
        }
        Ok(())
    }
}

struct Player<'a> {
    plane: &'a Plane,
    client: Client,
    kubelets: &'a Kubelets,
}

impl Player<'_> {
    /// Lets nodes fail for this time, and waits for the last outcomes. Returns the completed acts, and the nodes of all
    /// observed pods.
    async fn play(&self, length: Span, random: &mut Rng, kordon: &mut Kordon) -> Result<(Vec<Done>, Homes)> {
        let clock = Clock::system();
        let started = clock.now();
        let mut done: Vec<Done> = Vec::new();
        let mut homes = Homes::new();
        let mut seen_pods = BTreeSet::new();
        // Pending acts on nodes, and the times from which nodes may fail again.
        let mut due: Vec<(Timestamp, String, Act)> = Vec::new();
        let mut busy: BTreeMap<String, Timestamp> = BTreeMap::new();
        let mut next = started;
        loop {
            let now = clock.now();
            if now.since(started) < length && now >= next {
                next = now + EVERY;
                let names = self.kubelets.names();
                let free: Vec<&str> =
                    names.filter(|name| busy.get(*name).is_none_or(|until| *until <= now)).collect();
                let node = random.choice(free).context("every node has failed")?.to_owned();
                let incident = *random.choice(&Incident::ALL).context("an incident")?;
                due.extend(incident.acts().into_iter().map(|(after, act)| (now + after, node.clone(), act)));
                busy.insert(node, now + Incident::LASTS + RECOVERY);
            }
            let (ready, later): (Vec<_>, Vec<_>) = due.into_iter().partition(|(at, ..)| *at <= now);
            due = later;
            for (_, node, act) in ready {
                // The loss of a node counts from the moment at which its kubelet falls silent. Any other act counts
                // from its end.
                let began = clock.now();
                self.act(&node, act).await?;
                let at = if act == Act::Lost { began } else { clock.now() };
                done.push(Done { at, node, act });
            }
            let pods = Api::<Pod>::all(self.client.clone()).list(&ListParams::default()).await?.items;
            // A pod that is new in the list was placed within the second before.
            let now = clock.now();
            for pod in pods {
                let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
                let seen = homes.entry(format!("default/{}", pod.name_any())).or_default();
                if let Some(node) = node.filter(|_| seen_pods.insert(pod.uid())) {
                    seen.push((now, node));
                }
            }
            if due.is_empty() && now.since(started) >= length {
                kordon.read(SETTLES + RECOVERY).await?;
                return Ok((done, homes));
            }
            kordon.read(Span::from_secs(1)).await?;
        }
    }

    async fn act(&self, node: &str, act: Act) -> Result<()> {
        const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";
        let taint =
            async |taint: String| self.plane.kubectl(&["taint", "nodes", node, &taint]).await.map(drop);
        match act {
            Act::Lost => self.kubelets.silence(node).await.map(drop),
            Act::Back => self.kubelets.come_back(node).await,
            Act::Deleted => self.kubelets.remove(node).await,
            Act::JoinedAgain => self.kubelets.rejoin(node).await,
            Act::OutOfService => taint(format!("{OUT_OF_SERVICE}=nodeshutdown:NoExecute")).await,
            Act::InService => {
                taint(format!("{OUT_OF_SERVICE}-")).await?;
                self.kubelets.come_back(node).await
            }
            Act::Tainted => taint(format!("{MAINTENANCE}:NoExecute")).await,
            Act::Untainted => taint(format!("{MAINTENANCE}-")).await,
        }
    }
}
