//! Records the real control plane twice, while nodes fail and recover at random and the controller manager is killed,
//! replaced and paused: with `kordon record`, and in a session with watches of its own, as a dashboard does. At random
//! moments, the test keeps what the session knows: the output of `kordon status`, and the journal.
//!
//! Asserts that a replay of the session's recording knows exactly the same at these moments. A replay of the file of
//! `kordon record` has to know the same facts, apart from the difference in time between two watches. That file has to
//! be smaller than a tenth of the JSON that the API server sent for it. If it is truncated at any place, the rest has
//! to be playable to its end.
//!
//! Takes three minutes with 20 moments. `KORDON_RUN=30m` records for the given time with 100 moments. `KORDON_SEED`
//! selects another script of incidents and other moments. `KORDON_RECORDINGS=FOLDER` keeps both files and the session's
//! knowledge; if an earlier run has kept them, they are checked again, and nothing is recorded.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    io::{BufReader, Cursor},
    path::{Path, PathBuf},
    sync::atomic::Ordering,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use kordon::{
    cli::StatusReport,
    executor::effects::EffectExecutor,
    k8s::connect::Connection,
    model::{ConnectionInfo, ControllerRole, Model, ModelOptions},
    recording::{RecordingError, RecordingReader, RecordingStart, RecordingWriter},
    run::{Session, replay::Replay},
};
use kordon_clock::Clock;
use kordon_core::engine::Settings;
use kordon_time::{Span, Timestamp};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::{
    common::{live_session::record_live, program::Shell},
    harness::{
        incident_player::IncidentPlayer,
        kubelets::{Heartbeats, Kubelets, NodeSpec},
        plane::{self, ControllerManager, Options, Plane},
        proxy::{Faults, Proxy},
        say,
        script::{self, ScheduledAction, Zone},
    },
};

/// Zone a is large by the controller's `--large-cluster-size-threshold`, the other two are small.
const ZONES: [Zone; 3] =
    [Zone { name: "a", nodes: 26 }, Zone { name: "b", nodes: 20 }, Zone { name: "c", nodes: 14 }];
/// The `tolerationSeconds` that admission adds in this test; the default is 300.
const TOLERATION: u32 = 11;
/// Maximum difference between the times at which two watches, and their shadow controllers, notice a change: a monitor
/// period and half a second.
const APART: Span = Span::from_millis(2500);
/// Maximum size of the file, as a share of the JSON that the API server sent.
const SHARE: f64 = 0.1;

/// Time before the first incident.
const CALM: Span = Span::from_secs(10);

/// Names of the files: the session's recording, that of `kordon record`, and what the session knew.
const OWN: &str = "session.kordon";
const PROGRAM: &str = "program.kordon";
const LIVE: &str = "live.json";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replay_knows_what_a_live_session_knew() {
    let Some(binary) = plane::binary("e2e_recording").unwrap() else { return };
    let options = Options { toleration_seconds: TOLERATION, ..Options::default() };
    let kept = std::env::var_os("KORDON_RECORDINGS").map(PathBuf::from);
    let result = match kept.as_deref().filter(|folder| folder.join(LIVE).exists()) {
        Some(folder) => replayed_again(folder),
        None => {
            let mut plane = Plane::start(&binary, options).await.unwrap();
            recorded_and_replayed(&mut plane, kept.as_deref()).await
        }
    };
    if let Err(error) = result {
        panic!("{error:#}");
    }
}

/// Checks the recordings of an earlier run again.
fn replayed_again(folder: &Path) -> Result<()> {
    let live: Vec<(Timestamp, Value)> =
        serde_json::from_slice::<Vec<(String, Value)>>(&fs::read(folder.join(LIVE))?)?
            .into_iter()
            .map(|(at, view)| Ok((Timestamp::parse(&at).context("a time")?, view)))
            .collect::<Result<_>>()?;
    let settings = manager().settings()?;
    equals(&folder.join(OWN), &settings, &live)?;
    has_the_same_facts(&folder.join(PROGRAM), &settings, &live)?;
    plays_wherever_it_is_cut(&folder.join(PROGRAM), &settings, seed()?)
}

fn seed() -> Result<u64> {
    std::env::var("KORDON_SEED").ok().map_or(Ok(1), |text| text.parse()).context("KORDON_SEED")
}

fn manager() -> ControllerManager {
    ControllerManager {
        monitor_period: Span::from_secs(2),
        grace_period: Span::from_secs(16),
        startup_grace_period: Span::from_secs(20),
        eviction_rate: 0.15,
        secondary_eviction_rate: 0.08,
        large_cluster_threshold: 22,
        ..ControllerManager::default()
    }
    .with_short_lease()
}

async fn recorded_and_replayed(plane: &mut Plane, kept: Option<&Path>) -> Result<()> {
    let length = match std::env::var("KORDON_RUN") {
        Ok(text) => humantime::parse_duration(&text).context("KORDON_RUN")?.into(),
        Err(_) => Span::from_secs(120),
    };
    let (seed, manager) = (seed()?, manager());
    let client = plane.client();
    let specs = ZONES.iter().flat_map(|zone| zone.names().map(|name| NodeSpec::new(name, zone.name)));
    let kubelets = Kubelets::start(&client, specs.collect(), Heartbeats::default()).await?;
    let player = IncidentPlayer::new(client.clone(), kubelets);
    player.fill().await?;
    plane.start_controller_manager(&manager)?;

    let shell = Shell::new();
    let folder = kept.unwrap_or(shell.home.path());
    let (settings, started) = (manager.settings()?, Clock::system().now());
    let (own, program) = (folder.join(OWN), folder.join(PROGRAM));
    let moments = random_moments(started, length, seed);
    let (known, json, ()) = tokio::try_join!(
        watch(client.clone(), &settings, &own, moments, started + length),
        record(client, &shell, &program, length),
        play(plane, &manager, seed, length, &player),
    )?;
    let live: Vec<_> = known.iter().map(|(at, model)| (*at, view(model, *at))).collect();
    if kept.is_some() {
        fs::write(folder.join(LIVE), serde_json::to_vec(&live)?)?;
    }
    equals(&own, &settings, &live)?;
    has_the_same_facts(&program, &settings, &live)?;
    let size = fs::metadata(&program)?.len();
    let share = size as f64 / json as f64;
    say(&format!("e2e_recording: {size} bytes for {json} bytes of JSON: {:.1} %", share * 100.0));
    ensure!(share < SHARE, "the file is {:.1} % of the JSON", share * 100.0);
    plays_wherever_it_is_cut(&program, &settings, seed)
}

/// Returns random moments between the end of the first lists and the end of the run.
fn random_moments(started: Timestamp, length: Span, seed: u64) -> Vec<Timestamp> {
    let mut random = fastrand::Rng::with_seed(seed);
    let count = (length.as_secs() / 18).clamp(20, 100);
    // Moments are in whole milliseconds, as in the files.
    let started = Timestamp::from_nanos(started.as_nanos() / 1_000_000 * 1_000_000);
    let mut moment = || started + Span::from_millis(random.i64(10_000..length.as_nanos() / 1_000_000 - 1000));
    let mut moments: Vec<_> = (0..count).map(|_| moment()).collect();
    moments.sort();
    moments
}

/// Runs a session that records the messages of its watches. Returns the session's knowledge at these moments.
async fn watch(
    client: kube::Client,
    settings: &Settings,
    file: &Path,
    moments: Vec<Timestamp>,
    ends: Timestamp,
) -> Result<Vec<(Timestamp, Model)>> {
    let clock = Clock::system();
    let cancel = CancellationToken::new();
    let _ends_with_us = cancel.clone().drop_guard();
    let connection = ConnectionInfo { context: "here".into(), ..ConnectionInfo::default() };
    let options = ModelOptions { connection, settings: settings.clone(), role: ControllerRole::Shadow };
    let session = Session::start(
        &Connection::embedded(client, "here"),
        options,
        false,
        EffectExecutor::Recorder,
        clock,
        cancel.clone(),
    );
    let mut start = RecordingStart::new(settings, Span::from_secs(120), clock.now());
    start.context = "here".into();
    let writer = RecordingWriter::start(File::create_new(file)?, start, None)?;
    Ok(record_live(session, writer, moments, ends).await)
}

/// Runs `kordon record` through a proxy that allows only JSON. Returns the number of bytes that the proxy sent to the
/// program.
async fn record(client: kube::Client, shell: &Shell, file: &Path, length: Span) -> Result<u64> {
    let proxy = Proxy::start(client).await?;
    proxy.set(Faults { json: true, ..Faults::default() });
    let kubeconfig = shell.kubeconfig(&proxy.url, json!({}));
    let (file, length) = (file.to_str().context("a path that is text")?, format!("{}s", length.as_secs()));
    let output = shell.run(&["record", file, "--for", &length, "--kubeconfig", &kubeconfig]).await;
    ensure!(output.code == 0, "{}", output.err);
    say(&format!("e2e_recording: kordon record\n{}", output.out));
    Ok(proxy.tally().sent.load(Ordering::Relaxed))
}

/// Plays random incidents until the end. Before the first one, both watches have seen so many renewals that they know
/// the nodes' own renewal interval: from then on, they agree on when a node is silent.
async fn play(
    plane: &mut Plane,
    manager: &ControllerManager,
    seed: u64,
    length: Span,
    player: &IncidentPlayer,
) -> Result<()> {
    tokio::time::sleep(CALM.to_std()).await;
    let length = length - CALM;
    let script = script::write(&ZONES, seed, length);
    say(&format!("e2e_recording: {length} of incidents, seed {seed}: {} actions", script.len()));
    let clock = Clock::system();
    let (started, mut played) = (clock.now(), 0);
    while clock.now() < started + length {
        let scheduled = |scheduled: &&ScheduledAction| started + scheduled.at <= clock.now();
        let count = script[played..].iter().take_while(scheduled).count();
        player.play(&script[played..played + count], plane, manager).await?;
        played += count;
        plane.revive_controller_manager(manager)?;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    ensure!(played > 0, "no incident fits into {length}");
    Ok(())
}

/// Returns the output of `kordon status -o json`, and the journal.
fn view(model: &Model, at: Timestamp) -> Value {
    let mut model = model.clone();
    let entry = |entry: &kordon::model::JournalEntry| json!({ "at": entry.at, "last": entry.last, "text": entry.words(), "times": entry.times });
    let journal: Vec<_> = model.journal.entries().map(entry).collect();
    model.run_forecast(at);
    model.run_outcomes(None, at);
    let status = serde_json::to_value(StatusReport::new(&model, at)).expect("plain data");
    json!({ "status": status, "journal": journal })
}

/// Compares everything that a replay of the session's own events knows with what the session knew.
fn equals(file: &Path, settings: &Settings, live: &[(Timestamp, Value)]) -> Result<()> {
    let mut replay = open(file, settings)?;
    for (at, live) in live {
        replay.seek(*at)?;
        let mut differences = Vec::new();
        differ(live, &view(replay.model(), *at), "", &mut differences);
        ensure!(differences.is_empty(), "at {at}: {differences:#?}");
    }
    say(&format!("e2e_recording: all that was known at {} moments is replayed", live.len()));
    Ok(())
}

/// Compares the facts that the session knew with the facts in a replay of another watch's events. The session and the
/// replay may learn of a change at times that differ by [`APART`].
fn has_the_same_facts(file: &Path, settings: &Settings, live: &[(Timestamp, Value)]) -> Result<()> {
    let mut replay = open(file, settings)?;
    let mut facts_at = |moment: Timestamp| -> Result<BTreeMap<String, Value>> {
        replay.seek(moment)?;
        Ok(facts(&view(replay.model(), moment)))
    };
    let mut at_once = 0;
    for (at, live) in live {
        let (live, replayed) = (facts(live), facts_at(*at)?);
        let is_other = |subject: &&String| live.get(*subject) != replayed.get(*subject);
        let mut others: BTreeSet<&String> = live.keys().chain(replayed.keys()).filter(is_other).collect();
        at_once += usize::from(others.is_empty());
        let mut before = None;
        for step in if others.is_empty() { 0..0 } else { -10..11 } {
            let nearby = facts_at(*at + Span::from_nanos(APART.as_nanos() / 10 * step))?;
            let earlier = before.as_ref().unwrap_or(&nearby);
            others.retain(|subject| {
                let fact = live.get(*subject);
                fact != nearby.get(*subject) && !is_between(fact, earlier.get(*subject), nearby.get(*subject))
            });
            before = Some(nearby);
        }
        let describe =
            |subject| format!("{subject}: {:?}, replayed {:?}", live.get(subject), replayed.get(subject));
        let others: Vec<_> = others.into_iter().map(describe).collect();
        ensure!(others.is_empty(), "at {at}, and {APART} before and after: {others:#?}");
    }
    say(&format!(
        "e2e_recording: kordon record knows the same, at {at_once} of {} moments at once, at the others within {APART}",
        live.len()
    ));
    Ok(())
}

/// Whether a number lies between its values at two moments. The pods of a node leave within milliseconds of each other,
/// so one watch may see a number that the other watch has skipped.
fn is_between(number: Option<&Value>, one: Option<&Value>, other: Option<&Value>) -> bool {
    let value = |value: Option<&Value>| value.and_then(Value::as_i64);
    match (value(number), value(one), value(other)) {
        (Some(number), Some(one), Some(other)) => one.min(other) <= number && number <= one.max(other),
        _ => false,
    }
}

fn open(file: &Path, settings: &Settings) -> Result<Replay<BufReader<File>>> {
    Ok(Replay::new(RecordingReader::open(BufReader::new(File::open(file)?))?, settings.clone()))
}

/// Returns the facts about each node, zone, evicted pod and watch in a view, without times. Each field and each taint
/// is a separate fact, because fields change milliseconds after each other.
fn facts(view: &Value) -> BTreeMap<String, Value> {
    const ROWS: [(&str, &[&str], &[&str]); 4] = [
        ("nodes", &["name"], &["zone", "state", "unschedulable", "pods", "terminatingPods"]),
        ("zones", &["zone"], &["state", "nodes", "notReady"]),
        ("evictions", &["namespace", "pod"], &["node", "state"]),
        ("watches", &["kind"], &["state"]),
    ];
    let mut facts = BTreeMap::new();
    // Without a controller, each zone keeps the state of the controller's last pass. The shadow controllers of the two
    // watches expect that pass at different times, so the zones are not compared.
    let is_frozen = view["status"]["controller"]["confidence"]["state"] == "noController";
    for (table, names, fields) in ROWS {
        if table == "zones" && is_frozen {
            continue;
        }
        for row in view["status"][table].as_array().into_iter().flatten() {
            let name: Vec<_> = names.iter().filter_map(|name| row[name].as_str()).collect();
            let subject = format!("{table} {}", name.join("/"));
            // Late counts as Ready: whether a node is Late depends only on the clock, and each watch measures the clock
            // difference separately.
            let value = |field: &&str| if row[field] == "Late" { "Ready".into() } else { row[field].clone() };
            facts.extend(fields.iter().map(|field| (format!("{subject}, {field}"), value(field))));
            facts.insert(format!("{subject}, Ready"), row["ready"]["status"].clone());
            for taint in row["taints"].as_array().into_iter().flatten() {
                facts.insert(format!("{subject}, taint {}:{}", taint["key"], taint["effect"]), true.into());
            }
        }
    }
    facts
}

/// Collects the places at which two values differ.
fn differ(live: &Value, replayed: &Value, place: &str, differences: &mut Vec<String>) {
    match (live, replayed) {
        (Value::Object(live), Value::Object(replayed)) => {
            for (name, value) in live {
                differ(value, &replayed[name], &format!("{place}.{name}"), differences);
            }
        }
        (Value::Array(live), Value::Array(replayed)) if live.len() == replayed.len() => {
            for (number, (live, replayed)) in live.iter().zip(replayed).enumerate() {
                differ(live, replayed, &format!("{place}[{number}]"), differences);
            }
        }
        (live, replayed) if live != replayed => {
            differences.push(format!("{place}: {live}, replayed {replayed}"));
        }
        _ => {}
    }
}

/// Truncates a file at random places and plays the rest.
fn plays_wherever_it_is_cut(file: &Path, settings: &Settings, seed: u64) -> Result<()> {
    let whole = fs::read(file)?;
    let mut random = fastrand::Rng::with_seed(seed);
    let mut played = 0;
    for _ in 0..50 {
        let cut = &whole[..random.usize(..whole.len())];
        let reader = match RecordingReader::open(Cursor::new(cut)) {
            // The file was truncated within its first block.
            Err(RecordingError::NotARecording | RecordingError::Empty) if cut.len() < 4096 => continue,
            reader => reader.with_context(|| format!("cut after {} bytes", cut.len()))?,
        };
        let until = reader.until();
        let mut replay = Replay::new(reader, settings.clone());
        replay.seek(until).with_context(|| format!("cut after {} bytes", cut.len()))?;
        ensure!(replay.damaged().next().is_none(), "cut after {} bytes", cut.len());
        played += 1;
    }
    say(&format!("e2e_recording: {played} of 50 cut files played to their ends"));
    ensure!(played > 40, "only {played} of 50 cut files could be opened");
    Ok(())
}
