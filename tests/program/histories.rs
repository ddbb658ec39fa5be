//! The history that a dashboard keeps: the part that a frozen screen shows, and the part that is saved. Nothing is
//! written to the cluster while the history is shown.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use kordon::{
    app::{AppOptions, Mode},
    executor::effects::EffectExecutor,
    k8s::connect::Connection,
    model::{ConnectionInfo, ControllerRole, ModelOptions},
    recording::{RecordingEnd, RecordingReader, RingLimits},
    run::{
        self, Dashboard, Session,
        history::{History, HistoryOptions, keyframe_interval},
        record::recording_start,
    },
    ui::snapshot,
};
use kordon_clock::Clock;
use kordon_core::engine::{ServerVersion, Settings};
use kordon_demo::scenario::Scenario;
use kordon_time::{Span, Timestamp};
use tokio_util::sync::CancellationToken;

use crate::{
    common::program::Shell, dashboard_driver::DashboardDriver, dashboard_fixture::typed, harness::Harness,
    scenario_frames::start_demo,
};

const EPOCH: &str = "2026-11-22T03:00:00Z";
const SIZES: [(u16, u16); 2] = [(80, 24), (160, 48)];
const LIMITS: RingLimits = RingLimits { span: Span::from_secs(7200), size: 64 << 20 };

/// Makes a dashboard keep its history in a folder.
fn keeping(dashboard: Dashboard, folder: &Path, limits: RingLimits) -> Dashboard {
    let (model, now) = (&dashboard.app.model, dashboard.clock.now());
    let every = keyframe_interval(limits.span);
    let start = recording_start(&model.settings, &model.connection, every, now);
    let options = HistoryOptions { folder: Some(folder.to_owned()), limits, start };
    let history = History::start(options).map_err(|error| error.to_string());
    dashboard.keeping(history)
}

/// Runs a dashboard with a scenario, types keys at their times, and returns the frame at `until`. All times are in
/// seconds after the start.
async fn frame(
    scenario: &str,
    folder: &Path,
    limits: RingLimits,
    keys: &[(i64, &str)],
    until: i64,
    size: (u16, u16),
) -> String {
    let clock = Clock::new(Timestamp::parse(EPOCH).expect("a time"), 1.0);
    let cancel = CancellationToken::new();
    let _ends_with_us = cancel.clone().drop_guard();
    let (api, _world) = start_demo(Scenario::named(scenario).expect("there is one"), clock, &cancel);
    let connection = ConnectionInfo { context: "demo".into(), ..ConnectionInfo::default() };
    let settings = Settings::defaults(ServerVersion::new(1, 36));
    let options = ModelOptions { connection, settings, role: ControllerRole::Shadow };
    let connection = Connection::embedded(api.client(), "demo");
    let executor = EffectExecutor::Recorder;
    let session = Session::start(&connection, options, false, executor, clock, cancel.clone());
    let dashboard = keeping(Dashboard::over(session, AppOptions::default(), None), folder, limits);
    let start = clock.now();
    let at = |(seconds, keys): &(i64, &str)| {
        let first = start + Span::from_secs(*seconds);
        typed(keys).into_iter().enumerate().map(move |(place, key)| {
            (first + Span::from_millis(20 * i64::try_from(place).expect("few")), key)
        })
    };
    let keys = keys.iter().flat_map(at).collect();
    let drawn = run::headless(dashboard, size, start + Span::from_secs(until), keys).await;
    snapshot::plain(&drawn.expect("it runs"))
}

#[tokio::test(start_paused = true)]
async fn a_frozen_screen_goes_back_to_before_a_node_died_and_returns_to_the_present() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    for size in SIZES {
        let keys = [(100, "f"), (101, "0")];
        let text = frame("silent-node", folder, LIMITS, &keys, 110, size).await;
        assert!(text.contains("HISTORY 1m") && text.contains("all 24 nodes Ready"), "{text}");
        let path = format!("tests/screens/history-silent-node-{}x{}.txt", size.0, size.1);
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
        if std::env::var_os("UPDATE").is_some() {
            fs::write(&path, &text).expect("tests/screens can be written");
        }
        let golden = fs::read_to_string(&path).unwrap_or_default();
        assert!(golden == text, "{} differs; with UPDATE=1 read the difference\n{text}", path.display());
    }
    let size = (160, 48);
    let back = frame("silent-node", folder, LIMITS, &[(100, "f"), (101, "0f")], 103, size).await;
    assert!(back.contains("general-1a-01 Evicting") && !back.contains("HISTORY"), "{back}");
    assert!(back.contains("live"), "{back}");
    assert_eq!(fs::read_dir(folder).expect("a folder").count(), 0, "its files have no names");
}

#[tokio::test(start_paused = true)]
async fn the_history_is_played_and_searched_and_says_why_it_cannot_do_something() {
    let folder = tempfile::tempdir().expect("a folder");
    let size = (200, 50);
    for (keys, expected) in [
        ("f<Left>", "HISTORY 1"),
        ("f,<Right>", "‖ 1x   03:00:10"),
        ("f0]", "general-1a-01 Silent"),
        ("f0p", "▶ 1x"),
        ("f:at 03:00:30<Enter>", "‖ 1x   03:00:30"),
        ("f0cA", "nothing can be written to the past"),
        ("f0R", "nothing can be written to the past"),
        ("f0:enforce<Enter>", "nothing can be written to the past"),
        ("f0:undo<Enter>", "nothing can be written to the past"),
        ("f0y", "it has no whole objects"),
        ("f0d", "a recording has only what watches report"),
        ("<Left>", "f freezes the screen; then ← goes back in the history"),
        ("fp", "← goes back; then p plays"),
        ("f0fi", "MiB): f, then ← goes back"),
    ] {
        let text = frame("silent-node", folder.path(), LIMITS, &[(45, keys)], 47, size).await;
        assert!(text.contains(expected), "{keys}: no {expected:?}\n{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_oldest_is_dropped_by_age() {
    let folder = tempfile::tempdir().expect("a folder");
    let limits = RingLimits { span: Span::from_secs(60), ..LIMITS };
    let text = frame("silent-node", folder.path(), limits, &[(230, "f0")], 232, (160, 48)).await;
    assert!(text.contains("HISTORY 1m") || text.contains("HISTORY 2m"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_history_that_cannot_be_written_ends_with_a_message_and_nothing_else() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let folder = file.path().join("under-a-file");
    let text = frame("silent-node", &folder, LIMITS, &[(60, "f<Left>")], 62, (200, 50)).await;
    assert!(text.contains("no history: cannot write in"), "{text}");
    let text = frame("silent-node", &folder, LIMITS, &[(60, "5z")], 62, (200, 50)).await;
    assert!(text.contains("ended: cannot write in"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_saved_history_is_a_recording_that_only_its_owner_reads() {
    let shell = Shell::new();
    let saved = shell.home.path().join("incident.kordon");
    let file = saved.to_str().expect("text");
    let save = format!(":save {file}<Enter>");
    let folder = tempfile::tempdir().expect("a folder");
    let keys = [(100, &save[..]), (102, &save[..])];
    let text = frame("silent-node", folder.path(), LIMITS, &keys, 101, (200, 50)).await;
    assert!(text.contains("history saved to"), "{text}");
    let again = frame("silent-node", folder.path(), LIMITS, &keys[1..], 103, (200, 50)).await;
    assert!(again.contains("the history was not saved") && again.contains("exists"), "{again}");
    assert_eq!(fs::metadata(&saved).expect("a file").permissions().mode() & 0o777, 0o600);
    let reader = RecordingReader::open(fs::File::open(&saved).expect("a file")).expect("a recording");
    assert_eq!(reader.end(), RecordingEnd::Whole);
    assert_eq!(reader.keyframes().next(), Some(reader.start().at), "it begins with all that there was");
    for (at, expected) in [("1s", "all 24 nodes Ready"), ("-0s", "general-1a-01")] {
        let status = shell.run(&["status", "--recording", file, "--at", at]).await;
        assert!(status.code == 0 && status.out.contains(expected), "{at}: {}{}", status.out, status.err);
    }
    let report = shell.run(&["report", file, "-o", "markdown"]).await;
    assert!(report.code == 0 && report.out.contains("general-1a-01"), "{}{}", report.out, report.err);
    let shown = shell.home.path().join("frame.txt");
    let shown = shown.to_str().expect("text");
    let replayed = shell.run(&["replay", file, "--at", "-1s", "--paused", "--snapshot", shown]).await;
    assert_eq!(replayed.code, 0, "{}", replayed.err);
    let text = fs::read_to_string(shown).expect("a frame");
    assert!(text.contains("REPLAY") && text.contains("general-1a-01 Evicting"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_written_while_the_history_is_shown() {
    let harness = Harness::start(5.0).await;
    let folder = tempfile::tempdir().expect("a folder");
    let cancel = CancellationToken::new();
    let _ends = cancel.clone().drop_guard();
    let dashboard = harness.dashboard(Mode::DryRun, false, cancel).await;
    let dashboard = keeping(dashboard, folder.path(), LIMITS);
    let (driver, keys) = DashboardDriver::new();
    let mut screen = driver.recording.clone();
    let script = async {
        driver.ready().await;
        driver.press(":enforce 12h<Enter>").await;
        driver.wait("ENFORCE").await;
        // Waits for the history, which begins only when all lists are complete. That may be after the first pods are
        // shown.
        driver.press("i").await;
        driver.wait("f, then ← goes back").await;
        driver.press("<Esc>f<Left>").await;
        driver.wait("HISTORY").await;
        driver.press(crate::dashboard_driver::DRAIN_IT).await;
        driver.wait_for_plan().await;
        for key in ["A", "U", "R", "X"] {
            driver.press(key).await;
            driver.wait("nothing can be written to the past").await;
        }
        driver.press("<Esc>f").await;
        driver.wait("ENFORCE").await;
    };
    tokio::select! {
        () = script => {}
        exit = run::run_dashboard(dashboard, &mut screen, keys) => panic!("it exited: {exit:?}\n{}", driver.screen()),
    }
    assert_eq!(harness.server.written(), Vec::<String>::new());
}

/// A limit on file size has the same effect as a full disk: the process can write only some blocks to a file.
#[tokio::test]
async fn a_full_disk_ends_the_history_and_nothing_else() {
    let shell = Shell::new();
    let frame = shell.home.path().join("frame.txt");
    let shown = frame.to_str().expect("text");
    let keys = ["--snapshot", shown, "--size", "120x30", "--after", "10s", "--keys", "5z"];
    let demo = shell.command(&[&["demo", "--nodes", "80", "--pods", "1500"], &keys[..]].concat());
    let demo = demo.as_std();
    let mut limited = tokio::process::Command::new("sh");
    limited.args(["-c", "trap '' XFSZ; ulimit -f 48; exec \"$0\" \"$@\""]).arg(demo.get_program());
    limited.args(demo.get_args()).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    limited.envs(demo.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let ended = limited.output().await.expect("there is a shell");
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    let text = fs::read_to_string(&frame).expect("a frame");
    assert!(text.contains("history") && text.contains("ended: cannot write in"), "{text}");
}
