//! A replayed model knows at every moment as much as the live model knew at that time. Also tests the commands that
//! record and read recordings.

use std::{collections::BTreeMap, io::Cursor};

use kordon::{
    cli::StatusReport,
    executor::effects::EffectExecutor,
    k8s::{
        connect::Connection,
        feed::{FeedEvent, FeedHealth, FeedState},
    },
    model::{ConnectionInfo, ControllerRole, Model, ModelOptions},
    recording::{EntrySource, RecordingReader, RecordingStart, RecordingWriter, Redactor},
    run::{
        Session,
        moment_search::MomentSearch,
        replay::{Replay, look_after},
    },
};
use kordon_clock::Clock;
use kordon_core::{
    cluster::{Change, FeedKind, LeaderLease, Node, ObjectEvent},
    engine::{EffectId, FullDisruptionPolicy, Outcome, ServerVersion, Settings},
};
use kordon_demo::scenario::Scenario;
use kordon_time::{ClusterTime, Span, Timestamp};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::{
    common::{
        live_session::{pass_time, record_live},
        program::Shell,
    },
    scenario_frames::start_demo,
};

const EPOCH: Timestamp = Timestamp::from_secs(1_800_000_000);
const VERSION: ServerVersion = ServerVersion::new(1, 36);

/// A recording, and the reports of the live model at some moments while it was made.
pub struct LiveSession {
    pub file: Vec<u8>,
    reports: Vec<(Timestamp, Value)>,
    /// The live models at the moments of `reports`.
    pub models: Vec<(Timestamp, Model)>,
}

#[tokio::test(start_paused = true)]
async fn a_replayed_model_knows_what_the_live_one_knew() {
    for scenario in ["default", "zone-outage", "restart"] {
        let live = LiveSession::run(scenario, Span::from_secs(600)).await;
        let mut replay = live.replay();
        let mut keyframes = replay.reader().keyframes();
        assert!(keyframes.by_ref().count() >= 4, "{scenario}");
        drop(keyframes);
        for (at, report) in &live.reports {
            assert_same(report, &report_at(&mut replay, *at), &format!("{scenario} at {at}"));
        }
        // Jumps back and forth. Before each keyframe, the replay keeps a checkpoint (the state at that moment), and
        // starts each jump at one.
        let mut random = fastrand::Rng::with_seed(3);
        for _ in 0..20 {
            let (at, report) = &live.reports[random.usize(..live.reports.len())];
            assert_same(report, &report_at(&mut replay, *at), &format!("{scenario} back at {at}"));
        }
        // Jumps in a second replay, whose only checkpoints are those of a search for notable moments. A jump without a
        // checkpoint starts at a keyframe.
        let found = MomentSearch::new(live.replay()).advance(|| false);
        let mut replay = live.replay().without_run_up();
        replay.add_checkpoints(found.checkpoints, found.until);
        for _ in 0..20 {
            let (at, report) = &live.reports[random.usize(..live.reports.len())];
            assert_same(report, &report_at(&mut replay, *at), &format!("{scenario} after a search at {at}"));
        }
    }
}

/// On a busy machine, wake-ups are late and can cover several events, and the result of an effect arrives even later.
#[tokio::test(start_paused = true)]
async fn a_busy_machine_knows_what_a_replay_knows() {
    for scenario in ["flapping", "zone-outage", "restart"] {
        let live = LiveSession::run(scenario, Span::from_secs(600)).await;
        let mut replay = live.replay();
        for seed in 0..2 {
            for (at, report) in live.heard_by_a_busy_machine(seed) {
                let replayed = report_at(&mut replay, at);
                assert_same(&report, &replayed, &format!("{scenario}, seed {seed}, at {at}"));
            }
        }
    }
}

impl LiveSession {
    /// Returns the reports of a model on a busy machine. This model gets the messages of the live model's watches, and
    /// reports at the same moments as the live model.
    fn heard_by_a_busy_machine(&self, seed: u64) -> Vec<(Timestamp, Value)> {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut reader = RecordingReader::open(Cursor::new(&self.file[..])).expect("a recording");
        let (start, settings) = (reader.start().clone(), reader.start().settings());
        let mut model = Model::new(options(&settings), start.at);
        let mut look = look_after(start.at);
        let mut unanswered: BTreeMap<Timestamp, Vec<EffectId>> = BTreeMap::new();
        let mut moments = self.reports.iter().map(|(at, _)| *at).peekable();
        let mut reports = Vec::new();
        while let Some(entry) = reader.next_entry().expect("it is whole") {
            while let Some(moment) = moments.next_if(|moment| *moment < entry.at) {
                pass_time(&mut model, &mut look, moment);
                reports.push((moment, report(&model, moment)));
            }
            if entry.source != EntrySource::Watch {
                continue;
            }
            pass_time(&mut model, &mut look, entry.at);
            model.on_watch_event(entry.event, entry.at);
            while let Some(effect) = model.effects.take_next() {
                let answered = entry.at + Span::from_millis(random.i64(0..4000));
                unanswered.entry(answered).or_default().push(effect.id);
            }
            let later = unanswered.split_off(&entry.at);
            for id in std::mem::replace(&mut unanswered, later).into_values().flatten() {
                model.on_outcome(id, Outcome::Recorded, entry.at);
            }
        }
        assert_eq!(reports.len(), self.reports.len());
        reports
    }

    /// Watches a scenario for some time, as a dashboard does, and records it.
    pub async fn run(scenario: &str, duration: Span) -> Self {
        let clock = Clock::new(EPOCH, 1.0);
        let cancel = CancellationToken::new();
        let _ends_with_us = cancel.clone().drop_guard();
        let scenario = Scenario::named(scenario).expect("a scenario");
        let (api, _world) = start_demo(scenario, clock, &cancel);
        let settings = Settings::defaults(VERSION);
        let session = Session::start(
            &Connection::embedded(api.client(), "demo"),
            options(&settings),
            false,
            EffectExecutor::Recorder,
            clock,
            cancel.clone(),
        );
        let mut start = RecordingStart::new(&settings, Span::from_secs(120), clock.now());
        start.context = "demo".into();
        let mut file = Vec::new();
        let writer = RecordingWriter::start(&mut file, start, None).expect("memory");
        let moments = (0..).map(|number| EPOCH + Span::from_millis(17_345 + number * 23_457));
        let models = record_live(session, writer, moments, EPOCH + duration).await;
        let reports = models.iter().map(|(at, model)| (*at, report(model, *at))).collect();
        Self { file, reports, models }
    }

    pub fn replay(&self) -> Replay<Cursor<&[u8]>> {
        let reader = RecordingReader::open(Cursor::new(&self.file[..])).expect("a recording");
        let settings = reader.start().settings();
        assert_eq!(settings, Settings::defaults(VERSION));
        Replay::new(reader, settings)
    }
}

fn options(settings: &Settings) -> ModelOptions {
    let connection = ConnectionInfo { context: "demo".into(), ..ConnectionInfo::default() };
    ModelOptions { connection, settings: settings.clone(), role: ControllerRole::Shadow }
}

/// Returns the output of `kordon status -o json`.
fn report(model: &Model, at: Timestamp) -> Value {
    let mut model = model.clone();
    model.run_forecast(at);
    model.run_outcomes(None, at);
    serde_json::to_value(StatusReport::new(&model, at)).expect("plain data")
}

fn report_at(replay: &mut Replay<Cursor<&[u8]>>, at: Timestamp) -> Value {
    replay.seek(at).expect("it is whole");
    assert_eq!(replay.at(), at);
    report(replay.model(), at)
}

/// Asserts that two reports are equal; otherwise names the first field that differs.
fn assert_same(live: &Value, replayed: &Value, place: &str) {
    match (live, replayed) {
        (Value::Object(live), Value::Object(replayed)) => {
            assert_eq!(live.keys().collect::<Vec<_>>(), replayed.keys().collect::<Vec<_>>(), "{place}");
            for (name, value) in live {
                assert_same(value, &replayed[name], &format!("{place}.{name}"));
            }
        }
        (Value::Array(live), Value::Array(replayed)) => {
            assert_eq!(live.len(), replayed.len(), "{place}: {live:?} {replayed:?}");
            for (number, (live, replayed)) in live.iter().zip(replayed).enumerate() {
                assert_same(live, replayed, &format!("{place}[{number}]"));
            }
        }
        (live, replayed) => assert_eq!(live, replayed, "{place}"),
    }
}

/// Otherwise, a replay predicts evictions that `kordon controller --full-disruption=pause` does not do.
#[test]
fn a_replay_has_what_the_lease_of_kordon_states() {
    let end = EPOCH + Span::from_secs(130);
    let lease = |holder: &str, full_disruption: Option<&str>| LeaderLease {
        holder: holder.into(),
        renewed: Some(ClusterTime::new(end)),
        duration: Some(Span::from_secs(15)),
        full_disruption: full_disruption.map(Into::into),
        ..LeaderLease::default()
    };
    let policy = |own: Option<LeaderLease>, redactor: Option<&Redactor>| {
        let start = RecordingStart::new(&Settings::defaults(VERSION), Span::from_secs(120), EPOCH);
        let mut file = Vec::new();
        let mut writer = RecordingWriter::start(&mut file, start, redactor).expect("memory");
        let node = Node { name: "n".into(), ..Node::default() };
        let lists = vec![
            Change::Node(ObjectEvent::ListStarted),
            Change::Node(ObjectEvent::Listed(node)),
            Change::Node(ObjectEvent::ListDone),
            Change::Lease(ObjectEvent::ListStarted),
            Change::Lease(ObjectEvent::ListDone),
            Change::Leader(Some(lease("n1_1f6d", None))),
        ];
        writer.event(&FeedEvent::Changes(lists), EPOCH).expect("memory");
        let state = FeedState::Live;
        let live = FeedHealth { state, last_heard: None, relists: 0, requests: 1, bytes: 10 };
        for kind in [FeedKind::Nodes, FeedKind::Leases, FeedKind::Leader] {
            writer.event(&FeedEvent::Health(kind, live.clone()), EPOCH).expect("memory");
        }
        if let Some(own) = own {
            writer.event(&FeedEvent::Changes(vec![Change::KordonLease(Some(own))]), EPOCH).expect("memory");
        }
        writer.finish(end).expect("memory");
        let reader = RecordingReader::open(Cursor::new(&file[..])).expect("a recording");
        let settings = reader.start().settings();
        let mut replay = Replay::new(reader, settings);
        replay.seek(end).expect("it is whole");
        replay.model().settings.full_disruption.value
    };
    assert_eq!(policy(None, None), FullDisruptionPolicy::Evict, "as in a recording of an older version");
    let own = lease("n2_kordon-x", Some("pause"));
    assert_eq!(policy(Some(own.clone()), None), FullDisruptionPolicy::Pause);
    assert_eq!(policy(Some(own), Some(&Redactor::default())), FullDisruptionPolicy::Pause, "redacted");
}

#[tokio::test]
async fn a_demo_is_recorded_and_asked_about_afterwards() {
    let shell = Shell::new();
    let file = shell.home.path().join("incident.kordon");
    let file = file.to_str().expect("text");
    let record = ["demo", "--record", file, "--record-for", "4m", "--speed", "20"];
    let recorded = shell.run(&record).await;
    assert_eq!(recorded.code, 0, "{}", recorded.err);
    assert!(recorded.out.contains("of demo") && recorded.out.contains("keyframes  "), "{}", recorded.out);
    let again = shell.run(&record).await;
    assert!(again.code == 1 && again.err.contains("creating"), "a file is never overwritten: {}", again.err);

    let json = async |line: &[&str]| {
        let output = shell.run(&[line, &["--recording", file, "-o", "json"]].concat()).await;
        assert_eq!(output.code, 0, "{line:?}: {}", output.err);
        serde_json::from_str::<Value>(&output.out).expect("a report")
    };
    let (early, late) = (json(&["status", "--at", "-40s"]).await, json(&["status"]).await);
    assert_eq!(early["cluster"]["context"], "demo");
    let taken_at =
        |report: &Value| Timestamp::parse(report["takenAt"].as_str().expect("text")).expect("a time");
    assert_eq!(taken_at(&late).since(taken_at(&early)), Span::from_secs(40));
    let node = early["nodes"][0]["name"].as_str().expect("a name");
    let frame = shell.home.path().join("frame.txt");
    let shown = frame.to_str().expect("text");
    let replay = ["replay", file, "--at", "1m", "--speed", "10", "--snapshot", shown, "--after", "12s"];
    let replayed = shell.run(&replay).await;
    assert_eq!(replayed.code, 0, "{}", replayed.err);
    let text = std::fs::read_to_string(&frame).expect("a frame");
    assert!(text.contains("REPLAY") && text.contains("+3m"), "a minute, and two at tenfold speed:\n{text}");
    for (format, expected) in
        [("markdown", "# Incident on demo"), ("html", "<svg"), ("json", "kordon.incident/v1")]
    {
        let report = shell.run(&["report", file, "-o", format, "--from", "30s"]).await;
        assert_eq!(report.code, 0, "{format}: {}", report.err);
        assert!(report.out.contains(expected), "{format}: {}", report.out);
    }
    let frame = shell.home.path().join("other.txt");
    let shown = frame.to_str().expect("text");
    let other = "node-monitor-grace-period=20s";
    let replay = [
        "replay",
        file,
        "--at",
        "2m",
        "--with",
        other,
        "--snapshot",
        shown,
        "--after",
        "1s",
        "--size",
        "160x48",
    ];
    let replayed = shell.run(&replay).await;
    assert_eq!(replayed.code, 0, "{}", replayed.err);
    let text = std::fs::read_to_string(&frame).expect("a frame");
    assert!(text.contains(&format!("REPLAY with {other}")), "it says that this did not happen:\n{text}");
    let tuned = shell.run(&["tune", file, "--with", other, "-o", "json"]).await;
    assert_eq!(tuned.code, 0, "{}", tuned.err);
    let tuned = tuned.json();
    assert_eq!(tuned["schema"], "kordon.tune/v1");
    let present: Vec<bool> = tuned["settings"]
        .as_array()
        .expect("rows")
        .iter()
        .filter_map(|row| row["present"].as_bool())
        .collect();
    assert_eq!(present, [true, false], "{tuned}");
    let refused = shell.run(&["tune", file, "--with", "grace=20s"]).await;
    assert!(
        refused.code == 2 && refused.err.contains("no flag of the node lifecycle controller"),
        "{}",
        refused.err
    );
    assert!(json(&["why", "node", node, "--at", "-20s"]).await["steps"].is_array());
    assert_eq!(json(&["forecast", "--at", "-1m"]).await["schema"], "kordon.forecast/v1");
    let failure = json(&["plan", "node-failure", node, "--after", "1m", "--at", "-10s"]).await;
    assert_eq!(failure["schema"], "kordon.forecast/v1");

    for (line, code, text) in [
        (&["status", "--recording", file, "--at", "1h"][..], 2, "is not in the recording"),
        (&["status", "--recording", file, "--at", "0s"], 4, "were not listed yet"),
        (&["status", "--recording", file, "--context", "c"], 2, "--recording asks no cluster"),
        (&["status", "--recording", "/dev/null"], 1, "not a recording"),
        (&["status", "--recording", file, "--watch"], 2, "cannot be used with"),
        (&["status", "--recording", file, "--no-pods"], 2, "cannot be used with"),
        (&["status", "--at", "1m"], 2, "--recording"),
        (&["replay", file, "--at", "1h"], 2, "is not in the recording"),
        (&["report", file, "--from", "3m", "--to", "1m"], 2, "--to is before --from"),
        (&["replay", "/dev/null"], 1, "not a recording"),
        (&["replay", file, "--context", "c"], 2, "kordon replay asks no cluster"),
        (&["replay", file, "--speed", "0"], 2, "not a speed"),
    ] {
        let output = shell.run(line).await;
        assert!(output.code == code && output.err.contains(text), "{line:?}: {} {}", output.code, output.err);
    }
}
