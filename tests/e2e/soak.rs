//! Runs the dashboard for hours: the program on a pseudo terminal, connected to a constantly changing cluster over a
//! link that is cut, half open, throttled or down, and whose API server answers with errors.
//!
//! Asserts that its memory does not grow, that no watch is lost and that no task is left over: at the end the screen
//! shows what the API server has.
//!
//! Takes three minutes with 60 nodes. `KORDON_RUN=2h` runs for the given time with 500 nodes, and also compares the
//! memory in the last minutes with that after ten minutes. `KORDON_SEED` selects other churn and faults.
//! `KORDON_SOAK_LOG` names a file for the program's log; without it the log is deleted at the end.

mod churn;
mod observation;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::coordination::v1::Lease;
use kordon_time::Span;
use kube::{Api, Client, api::ListParams};
use serde_json::json;
use tokio::time::{Instant, sleep, sleep_until};

use crate::{
    common::{program::Shell, terminal::Terminal},
    harness::{
        eventually::eventually,
        kubelets::{Heartbeats, Kubelets, NodeSpec},
        plane::{self, ControllerManager, Options, Plane},
        proxy::{Faults, Proxy},
        say,
    },
};
use churn::{Churn, Workloads};
use observation::{Log, Usage, Vitals};

/// Share by which memory may grow from the baseline to the end.
const GROWTH: f64 = 0.05;
/// Start and end of the baseline in minutes. Memory at the end of the test is compared with memory in the baseline.
const BASELINE: (f64, f64) = (8.0, 12.0);
/// Length of the period at the end whose memory is compared with the baseline, in minutes.
const LAST: f64 = 4.0;
/// Number of additional tasks, threads or files that are allowed after the faults are over: some connections are kept
/// open for a while.
const SLACK: u64 = 3;
/// Time in which idle threads of the runtime end. The runtime keeps an idle thread for ten seconds.
const IDLE_THREADS: Duration = Duration::from_secs(20);
/// Times for outages that last longer than the API server keeps old versions: the interval between two of them, and the
/// time before the end of the run in which none begins.
const OUTAGES: (Duration, Duration) = (Duration::from_secs(1500), Duration::from_secs(600));

/// Size and pace of the run.
struct Soak {
    length: Duration,
    nodes: usize,
    workloads: Workloads,
    heartbeats: Heartbeats,
    /// Factor for the duration of faults and the time between them: 1 in a long run, less in a short one.
    pace: f64,
    seed: u64,
}

impl Soak {
    fn from_environment() -> Result<Self> {
        let seed =
            std::env::var("KORDON_SEED").ok().map_or(Ok(1), |text| text.parse()).context("KORDON_SEED")?;
        Ok(match std::env::var("KORDON_RUN") {
            Ok(text) => Self {
                length: humantime::parse_duration(&text).context("KORDON_RUN")?,
                nodes: 500,
                workloads: Workloads { deployments: 20, replicas: 50 },
                heartbeats: Heartbeats { every: Span::from_secs(10), status_each: 6 },
                pace: 1.0,
                seed,
            },
            Err(_) => Self {
                length: Duration::from_secs(60),
                nodes: 60,
                workloads: Workloads { deployments: 5, replicas: 20 },
                heartbeats: Heartbeats { every: Span::from_secs(5), status_each: 6 },
                pace: 0.15,
                seed,
            },
        })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_dashboard_runs_for_hours() {
    let Some(binary) = plane::binary("e2e_soak").unwrap() else { return };
    let options = Options { toleration_seconds: 30, ..Options::default() };
    let mut plane = Plane::start(&binary, options).await.unwrap();
    if let Err(error) = soak(&mut plane).await {
        panic!("{error:#}");
    }
}

async fn soak(plane: &mut Plane) -> Result<()> {
    let soak = Soak::from_environment()?;
    let client = plane.client();
    let specs = (1..=soak.nodes).map(|number| NodeSpec::new(format!("n{number:03}"), zone(number)));
    let kubelets = Arc::new(Kubelets::start(&client, specs.collect(), soak.heartbeats).await?);
    start_controllers(plane)?;
    churn::create_workloads(&client, soak.workloads).await?;
    let proxy = Proxy::start(client.clone()).await?;
    let mut dashboard = Dashboard::start(&proxy.url)?;
    say(&format!("e2e_soak: {} nodes for {:?}, seed {}", soak.nodes, soak.length, soak.seed));

    let quiet = dashboard.wait_until_equal(&client).await?;
    let before = dashboard.usage()?;
    say(&format!("e2e_soak: at the start: {}", describe(&before, &quiet)));
    let churn = Churn::start(&client, kubelets.clone(), soak.workloads, soak.seed);
    let samples = run(plane, &soak, &proxy, churn, &mut dashboard).await?;

    for kind in churn::other_kinds() {
        kind.create(&client, "marker").await?;
    }
    let settled = dashboard.wait_until_equal(&client).await?;
    let rows = dashboard.wait_until_rows_are(&client).await?;
    let mut after = dashboard.usage()?;
    let until = Instant::now() + IDLE_THREADS;
    while after.threads > before.threads + SLACK && Instant::now() < until {
        sleep(Duration::from_secs(1)).await;
        after = dashboard.usage()?;
    }
    say(&format!(
        "e2e_soak: at the end: {}; {rows} rows as the API server has them",
        describe(&after, &settled)
    ));
    ensure!(settled.tasks <= quiet.tasks + SLACK, "{} tasks, {} at the start", settled.tasks, quiet.tasks);
    ensure!(after.threads <= before.threads + SLACK, "{after:?}, at the start {before:?}");
    ensure!(after.files as u64 <= before.files as u64 + SLACK, "{after:?}, at the start {before:?}");
    compare_memory(&samples, soak.length)?;
    dashboard.quit()
}

const ZONES: [&str; 5] = ["a", "b", "c", "d", "e"];

fn zone(number: usize) -> &'static str {
    ZONES[number % ZONES.len()]
}

/// Starts the controllers with upstream's defaults, which kordon assumes too.
fn start_controllers(plane: &mut Plane) -> Result<()> {
    plane.start_controller_manager(&ControllerManager {
        monitor_period: Span::from_secs(5),
        grace_period: Span::from_secs(50),
        startup_grace_period: Span::from_secs(60),
        eviction_rate: 0.1,
        secondary_eviction_rate: 0.01,
        leader_elect: true,
        controllers: vec![
            "node-lifecycle-controller",
            "taint-eviction-controller",
            "pod-garbage-collector-controller",
            "deployment-controller",
            "replicaset-controller",
            "disruption-controller",
        ],
        ..ControllerManager::default()
    })?;
    plane.start_scheduler()
}

/// Times in minutes from the start, and the memory in use in bytes.
type Samples = Vec<(f64, u64)>;

/// Causes faults for the length of the run, and measures during this time. All faults are over when this function
/// returns.
async fn run(
    plane: &mut Plane,
    soak: &Soak,
    proxy: &Proxy,
    mut churn: Churn,
    dashboard: &mut Dashboard,
) -> Result<Samples> {
    let started = Instant::now();
    let ends = started + soak.length;
    let mut samples = Samples::new();
    let measuring = async {
        for tick in 1u32.. {
            sleep_until(started + Duration::from_secs(10) * tick).await;
            let usage = dashboard.usage()?;
            let minutes = started.elapsed().as_secs_f64() / 60.0;
            samples.push((minutes, usage.memory));
            dashboard.use_it(tick);
            if tick.is_multiple_of(6) {
                churn.check()?;
                plane.check()?;
                let vitals = dashboard.log.vitals()?;
                say(&format!("e2e_soak: {minutes:>5.1} min: {}", describe(&usage, &vitals)));
                if tick.is_multiple_of(60) {
                    say(&format!("e2e_soak: {:?}", proxy.tally()));
                }
            }
        }
        anyhow::Ok(())
    };
    tokio::select! {
        () = make_trouble(soak, proxy, started, ends) => {}
        failed = measuring => failed?,
    }
    proxy.set(Faults::default());
    say(&format!("e2e_soak: {:?}", proxy.tally()));
    churn.finish().await?;
    Ok(samples)
}

/// A fault of the link.
#[derive(Clone, Copy, Debug)]
enum Fault {
    CutOne,
    CutAll,
    HalfOpen,
    AllHalfOpen,
    Throttled,
    Failing,
    Expired,
    Down,
}

const FAULTS: [Fault; 12] = [
    Fault::CutOne,
    Fault::CutOne,
    Fault::CutAll,
    Fault::HalfOpen,
    Fault::HalfOpen,
    Fault::AllHalfOpen,
    Fault::Throttled,
    Fault::Throttled,
    Fault::Failing,
    Fault::Expired,
    Fault::Expired,
    Fault::Down,
];

/// Causes all faults in random order, again and again. From time to time, also causes an outage so long that the API
/// server no longer keeps the versions from before the outage.
async fn make_trouble(soak: &Soak, proxy: &Proxy, started: Instant, ends: Instant) {
    let mut rng = fastrand::Rng::with_seed(soak.seed);
    let mut next_outage = started + OUTAGES.0;
    let mut deck = Vec::new();
    while Instant::now() < ends {
        let pause = soak.pace * (5.0 + 25.0 * rng.f64());
        sleep(Duration::from_secs_f64(pause)).await;
        let now = Instant::now();
        if now >= next_outage && now + OUTAGES.1 < ends {
            next_outage = now + OUTAGES.0;
            say("e2e_soak: the link is down for four minutes");
            proxy.set(Faults { down: true, ..Faults::default() });
            proxy.cut_all();
            sleep(Duration::from_secs(240)).await;
            proxy.set(Faults::default());
            continue;
        }
        if deck.is_empty() {
            deck = FAULTS.to_vec();
            rng.shuffle(&mut deck);
        }
        let lasts = Duration::from_secs_f64(soak.pace * (5.0 + 20.0 * rng.f64()));
        if let Some(fault) = deck.pop() {
            play(fault, lasts, proxy, &mut rng).await;
        }
    }
}

async fn play(fault: Fault, lasts: Duration, proxy: &Proxy, rng: &mut fastrand::Rng) {
    let faults = match fault {
        Fault::CutOne => return proxy.cut(1, rng),
        Fault::CutAll => return proxy.cut_all(),
        Fault::HalfOpen => return proxy.silence(3, rng),
        Fault::AllHalfOpen => return proxy.silence(usize::MAX, rng),
        Fault::Throttled => Faults { throttled: 0.7, ..Faults::default() },
        Fault::Failing => Faults { failing: 0.5, ..Faults::default() },
        Fault::Expired => Faults { expired: 0.8, ..Faults::default() },
        Fault::Down => Faults { down: true, ..Faults::default() },
    };
    proxy.set(faults);
    // Connections are cut, because only new requests can be refused.
    proxy.cut_all();
    sleep(lasts).await;
    proxy.set(Faults::default());
}

fn describe(usage: &Usage, vitals: &Vitals) -> String {
    let mib = mebibytes(usage.memory);
    let Vitals { tasks, journal, requests, warnings, .. } = vitals;
    let relists: u64 = vitals.watches.values().map(|watch| watch.relists).sum();
    let ages: Vec<String> = ["nodes", "leases", "pods"]
        .iter()
        .filter_map(|kind| vitals.watches.get(*kind).map(|watch| format!("{kind} {} s", watch.age)))
        .collect();
    let oldest = vitals.watches.values().map(|watch| watch.age).max().unwrap_or_default();
    let not_live: Vec<String> = vitals
        .watches
        .iter()
        .filter(|(_, watch)| watch.state != "live")
        .map(|(kind, watch)| format!("{kind} {}", watch.state))
        .collect();
    format!(
        "{mib:.1} MiB, {} threads, {} files, {tasks} tasks, {journal} journal entries, {requests} requests, {relists} relists, \
         {warnings} warnings; age {}, oldest {oldest} s; not live: {}",
        usage.threads,
        usage.files,
        ages.join(", "),
        if not_live.is_empty() { "none".into() } else { not_live.join(", ") },
    )
}

#[expect(clippy::cast_precision_loss, reason = "for people")]
fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// Fails if memory in the last minutes is larger than after ten minutes. A short run is not compared.
fn compare_memory(samples: &Samples, length: Duration) -> Result<()> {
    let end = length.as_secs_f64() / 60.0;
    let median = |from: f64, to: f64| {
        let mut within: Vec<u64> =
            samples.iter().filter(|(at, _)| (from..to).contains(at)).map(|(_, memory)| *memory).collect();
        within.sort_unstable();
        within.get(within.len() / 2).copied()
    };
    let most = samples.iter().map(|(_, memory)| *memory).max().context("nothing was measured")?;
    let last = median(end - LAST, f64::INFINITY).context("nothing was measured")?;
    let baseline = median(BASELINE.0, BASELINE.1).filter(|_| end > BASELINE.1 + LAST);
    let Some(baseline) = baseline else {
        say(&format!(
            "e2e_soak: memory {:.1} MiB at the end, {:.1} at most",
            mebibytes(last),
            mebibytes(most)
        ));
        return Ok(());
    };
    let growth = mebibytes(last) / mebibytes(baseline) - 1.0;
    say(&format!(
        "e2e_soak: memory {:.1} MiB after ten minutes, {:.1} at the end ({:+.1} %), {:.1} at most",
        mebibytes(baseline),
        mebibytes(last),
        growth * 100.0,
        mebibytes(most)
    ));
    ensure!(growth <= GROWTH, "memory has grown by {:.1} %", growth * 100.0);
    Ok(())
}

/// The program on a pseudo terminal.
struct Dashboard {
    terminal: Terminal,
    process: u32,
    log: Log,
    _shell: Shell,
}

/// The rows and columns of the screen.
const SIZE: (u16, u16) = (48, 160);

impl Dashboard {
    fn start(server: &str) -> Result<Self> {
        let shell = Shell::new();
        let kubeconfig = shell.kubeconfig(server, json!({}));
        let kept = std::env::var_os("KORDON_SOAK_LOG").map(PathBuf::from);
        let log = kept.unwrap_or_else(|| shell.home.path().join("log"));
        let path = log.to_str().context("the name of the log is no text")?;
        let command = shell.under_terminal(&["--kubeconfig", &kubeconfig, "--log", path]);
        let mut terminal = Terminal::with(command);
        terminal.resize(SIZE.0, SIZE.1);
        let process = terminal.child.process_id().context("the program has ended")?;
        Ok(Self { terminal, process, log: Log::new(Path::new(path)), _shell: shell })
    }

    fn usage(&self) -> Result<Usage> {
        Usage::of(self.process)
    }

    /// Types what a user types from time to time: keys for another pane, an explanation, a plan.
    fn use_it(&mut self, tick: u32) {
        self.terminal.forget_raw();
        let keys = ["2j", "d", "\x1b", "3j", "4k", "2j", "r", "\x1b", "2", "x", "\x1b", "5"];
        self.terminal.type_in(keys[tick as usize % keys.len()]);
    }

    /// Waits until all watches are live and the program has as many objects of each kind as the API server.
    async fn wait_until_equal(&self, client: &Client) -> Result<Vitals> {
        let mut seen = 0;
        let mut differs = String::new();
        let waited = eventually("as many objects as the API server has", Span::from_secs(400), async || {
            let vitals = self.log.vitals()?;
            if vitals.written == seen {
                return Ok(None);
            }
            seen = vitals.written;
            differs = differences(&vitals, client).await?.join(", ");
            Ok(differs.is_empty().then_some(vitals))
        })
        .await;
        waited.with_context(|| format!("differences: {differs}\n{}", self.terminal.text()))
    }

    /// Waits until the Nodes pane has a row for each node with its state and its pods. Returns the number of rows.
    async fn wait_until_rows_are(&mut self, client: &Client) -> Result<usize> {
        let nodes = churn::nodes(client).await?.len();
        let rows = u16::try_from(nodes + 30)?;
        self.terminal.resize(rows, 200);
        // Closes open views first, one for each key press.
        for _ in 0..3 {
            self.terminal.type_in("\x1b");
            sleep(Duration::from_millis(500)).await;
        }
        self.terminal.type_in("2z");
        let mut differs = String::new();
        let waited = eventually("the rows of the nodes", Span::from_secs(180), async || {
            sleep(Duration::from_secs(2)).await;
            let mut wanted = churn::nodes(client).await?;
            let mut shown = observation::node_rows(&self.terminal.text());
            wanted.sort_unstable();
            shown.sort_unstable();
            let missing = wanted.iter().filter(|row| !shown.contains(row));
            differs = format!(
                "{} rows of {}; missing: {:?}",
                shown.len(),
                wanted.len(),
                missing.take(8).collect::<Vec<_>>()
            );
            Ok((shown == wanted).then_some(wanted.len()))
        })
        .await;
        waited.with_context(|| format!("{differs}\n{}", self.terminal.text()))
    }

    fn quit(mut self) -> Result<()> {
        self.terminal.type_in("q");
        let status = self.terminal.end();
        ensure!(status.success(), "the dashboard ended with {status:?}");
        Ok(())
    }
}

/// Describes the differences between the program and the API server.
async fn differences(vitals: &Vitals, client: &Client) -> Result<Vec<String>> {
    let mut wanted: Vec<(&str, usize)> = Vec::new();
    for kind in churn::other_kinds() {
        wanted.push((kind.watch, kind.count(client).await?));
    }
    let nodes = churn::nodes(client).await?;
    let leases = Api::<Lease>::namespaced(client.clone(), "kube-node-lease");
    wanted.extend([
        ("nodes", nodes.len()),
        ("leases", leases.list_metadata(&ListParams::default()).await?.items.len()),
        ("pods", churn::count_pods(client).await?),
        ("controller lease", 1),
    ]);
    let mut differences = Vec::new();
    for (kind, count) in wanted {
        match vitals.watches.get(kind) {
            Some(watch) if watch.state == "live" && watch.objects == count => {}
            Some(watch) => differences.push(format!("{kind}: {watch:?}, the server has {count}")),
            None => differences.push(format!("{kind}: no watch")),
        }
    }
    Ok(differences)
}
