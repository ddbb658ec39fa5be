//! The dashboard with a recording. At every moment it shows what the live dashboard knew at that time, whatever jumps
//! led to the moment.

use std::{fs, io::Cursor, path::Path};

use kordon::{
    app::{
        App, AppOptions, Mode,
        playback::{Playback, PlaybackKind},
    },
    model::{HORIZON, Model, MomentKind, NodeState},
    recording::RecordingReader,
    run::{
        self, Dashboard, Surface, VirtualTyping,
        moment_search::{MomentSearch, end_note},
        player::{Player, RecordingSource, StepKind},
        replay::Replay,
    },
    ui::snapshot,
};
use kordon_clock::Clock;
use kordon_core::forecast::Forecast;
use kordon_time::{Span, Timestamp};
use ratatui::{Terminal, backend::TestBackend};

use crate::{dashboard_fixture::typed, replays::LiveSession};

const SIZES: [(u16, u16); 3] = [(80, 24), (160, 48), (220, 60)];

/// Pause between keys.
const KEY: Span = Span::from_millis(20);

fn replay_of(file: &[u8]) -> Replay<Box<dyn RecordingSource>> {
    let source: Box<dyn RecordingSource> = Box::new(Cursor::new(file.to_vec()));
    let reader = RecordingReader::open(source).expect("a recording");
    let settings = reader.start().settings();
    Replay::new(reader, settings)
}

/// Creates a playback of a file, paused at its start.
fn playback_of(file: &[u8]) -> Playback {
    let replay = replay_of(file);
    let (from, until) = (replay.reader().start().at, replay.reader().until());
    let mut playback = Playback::new(PlaybackKind::Recording, (from, until), from);
    playback.is_paused = true;
    playback.fault = end_note(replay.reader().end()).map(Into::into);
    playback
}

fn options() -> AppOptions {
    AppOptions { mode: Mode::Replay, ..AppOptions::default() }
}

/// Plays a recording while keys are typed. Returns the frame a second after the last key.
async fn frame(file: &[u8], keys: &str, size: (u16, u16)) -> String {
    let player = Player::new(replay_of(file), replay_of(file));
    let dashboard = Dashboard::for_recording(playback_of(file), player, options(), Clock::system());
    let times = std::iter::successors(Some(KEY), |at| Some(*at + KEY));
    let keys: Vec<_> = times.zip(typed(keys)).collect();
    let until = keys.last().map_or(Span::ZERO, |(at, _)| *at) + Span::from_secs(1);
    let frame = run::replay_frame(dashboard, size, VirtualTyping { keys, until }).await.expect("it runs");
    snapshot::plain(&frame)
}

/// Returns the keys that jump to a moment.
fn going_to(at: Timestamp) -> String {
    format!(":at {}<Enter>", at.to_micro_time())
}

/// Returns the frame of a dashboard that has watched the cluster itself, instead of replaying the recording.
fn live_frame(model: &Model, at: Timestamp, file: &[u8], size: (u16, u16)) -> String {
    let mut model = model.clone();
    model.refresh_nodes(at);
    if let Some(engine) = model.engine.clone().filter(|_| model.is_abnormal()) {
        let cluster = &model.cluster;
        model.set_forecast(Forecast::run(&engine, cluster, at, HORIZON).with_chart(&engine, cluster));
    }
    model.refresh(at);
    model.run_outcomes(None, at);
    model.run_pending(None);
    let mut app = App::new(model, options());
    let mut playback = playback_of(file);
    let mut search = MomentSearch::new(replay_of(file));
    let found = search.advance(|| false);
    (playback.at, playback.moments, playback.searched) = (at, found.moments, found.until);
    app.playback = Some(playback);
    app.arrange(at);
    let mut terminal = Terminal::new(TestBackend::new(size.0, size.1)).expect("a buffer");
    terminal.draw_app(&app, at).expect("memory");
    let drawn = terminal.draw_app(&app, at).expect("memory");
    app.screen.drawn(&drawn.rows);
    app.arrange(at);
    terminal.draw_app(&app, at).expect("memory");
    snapshot::plain(terminal.backend().buffer())
}

#[tokio::test(start_paused = true)]
async fn what_is_shown_at_a_moment_is_what_the_live_dashboard_knew_then() {
    let live = LiveSession::run("zone-outage", Span::from_secs(400)).await;
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..6 {
        let (at, model) = &live.models[random.usize(..live.models.len())];
        // The moment is rounded to microseconds, the precision of a typed time.
        let at = Timestamp::from_nanos(at.as_nanos() / 1000 * 1000);
        let by_way_of = random.pick(&["", "$", "$0", "$[[[", "]]]}"]);
        let replayed = frame(&live.file, &format!("{by_way_of}{}g", going_to(at)), (160, 48)).await;
        let expected = live_frame(model, at, &live.file, (160, 48));
        assert!(replayed == expected, "at {at} by way of {by_way_of:?}:\n{replayed}\nlive:\n{expected}");
    }
}

/// If the search has not reached a moment yet, only the time since the last keyframe is played, so that the moment is
/// shown at once.
#[tokio::test(start_paused = true)]
async fn a_moment_that_is_shown_before_the_search_has_passed_there_is_completed_afterwards() {
    let live = LiveSession::run("zone-outage", Span::from_secs(400)).await;
    let file = &live.file;
    let (at, expected) = live.models.last().expect("there are some");
    for is_paused in [true, false] {
        let mut playback = playback_of(file);
        let mut player = Player::new(replay_of(file), replay_of(file));
        playback.go_to(*at);
        player.start(&playback, &player.first_model());
        let shown = player.next_step().await.expect("it does not panic");
        let shown = player.on_step(shown);
        let model = shown.model.expect("it is whole");
        let keyframe = replay_of(file).reader().keyframes().take_while(|keyframe| keyframe <= at).last();
        assert_eq!(shown.known_from, keyframe, "it begins there");
        assert!(model.journal.len() < expected.journal.len(), "what happened before is not known");
        (playback.at, playback.target, playback.is_paused) = (shown.at, None, is_paused);
        playback.known_from = shown.known_from;
        let text = drawn(&model, &playback);
        assert!(text.contains("reading what happened before 08:06:0"), "{text}");
        assert_eq!(player.due(&playback).is_some(), !is_paused, "nothing is better known yet");

        player.start_search();
        let found = player.next_found().await.expect("it does not panic");
        assert!(found.is_done, "no time passes meanwhile");
        player.add_checkpoints(found.checkpoints, found.until);
        assert!(player.due(&playback).is_some(), "it is shown again");
        player.start(&playback, &model);
        let completed = player.next_step().await.expect("it does not panic");
        let completed = player.on_step(completed);
        assert_eq!((completed.at, completed.known_from), (*at, None));
        assert_eq!(completed.kind, StepKind::Jumped, "nothing of what was shown holds");
        let model = completed.model.expect("it is whole");
        let entries = |model: &Model| model.journal.entries().cloned().collect::<Vec<_>>();
        assert_eq!(entries(&model), entries(expected));
        let departures =
            |model: &Model| model.departures.newest().map(|(_, entry)| entry.clone()).collect::<Vec<_>>();
        assert_eq!(departures(&model), departures(expected));
        assert_eq!(player.due(&playback).is_some(), !is_paused, "once");
    }
}

/// Returns the frame of a moment.
fn drawn(model: &Model, playback: &Playback) -> String {
    let mut app = App::new(model.clone(), options());
    app.playback = Some(playback.clone());
    app.arrange(playback.at);
    let mut terminal = Terminal::new(TestBackend::new(160, 48)).expect("a buffer");
    terminal.draw_app(&app, playback.at).expect("memory");
    snapshot::plain(terminal.backend().buffer())
}

#[tokio::test(start_paused = true)]
async fn a_dashboard_that_runs_comes_to_show_what_it_shows_after_the_search() {
    let live = LiveSession::run("zone-outage", Span::from_secs(400)).await;
    let file = &live.file;
    let (at, _) = live.models.last().expect("there are some");
    let mut playback = playback_of(file);
    playback.go_to(*at);
    let clock = Clock::new(playback.from, 1.0);
    let player = Player::new(replay_of(file), replay_of(file));
    let dashboard = Dashboard::for_recording(playback, player, options(), clock);
    let size = (160, 48);
    let until = clock.now() + Span::from_secs(30);
    let settled = run::headless(dashboard, size, until, Vec::new()).await.expect("it runs");
    let settled = snapshot::plain(&settled);
    let expected = frame(file, &going_to(*at), size).await;
    assert!(settled == expected, "{settled}\nexpected:\n{expected}");
}

trait Pick {
    fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T;
}

impl Pick for fastrand::Rng {
    fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.usize(..of.len())]
    }
}

#[tokio::test(start_paused = true)]
async fn a_replay_says_what_happened_when_and_never_writes() {
    let live = LiveSession::run("zone-outage", Span::from_secs(400)).await;
    let file = &live.file;
    let found = MomentSearch::new(replay_of(file)).advance(|| false);
    let kinds: Vec<MomentKind> = found.moments.iter().map(|moment| moment.kind).collect();
    for state in [NodeState::Silent, NodeState::Unknown, NodeState::Evicting] {
        assert!(kinds.contains(&MomentKind::Node(state)), "{state}: {kinds:?}");
    }
    assert!(kinds.iter().any(|kind| matches!(kind, MomentKind::Zone(_))), "{kinds:?}");
    assert!(found.moments.is_sorted_by_key(|moment| moment.at), "{:?}", found.moments);

    for size in SIZES {
        let text = frame(file, "]]", size).await;
        assert!(text.contains(" REPLAY "), "{text}");
        let path = format!("tests/screens/replay-zone-outage-{}x{}.txt", size.0, size.1);
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
        let text = frame(file, ":at 3m<Enter>", size).await;
        if std::env::var_os("UPDATE").is_some() {
            fs::write(&path, &text).expect("tests/screens can be written");
        }
        let golden = fs::read_to_string(&path).unwrap_or_default();
        assert!(golden == text, "{} differs; with UPDATE=1 read the difference\n{text}", path.display());
    }
    // The rows are new after the jump, so none is under the cursor before `j`.
    for (keys, expected) in [
        ("$jcA", "nothing can be written to a recording"),
        ("$U", "nothing can be written to a recording"),
        ("$R", "nothing can be written to a recording"),
        ("$:enforce<Enter>", "nothing can be written to a recording"),
        ("$jy", "a recording has no whole objects"),
        ("$f", "p pauses a recording"),
        ("$jd<End>", "a recording has only what watches report"),
        ("$]", "no notable moment after this"),
        ("$jrD", "replay: as of then"),
        ("$:at 12h<Enter>", "is not in it"),
    ] {
        let text = frame(file, keys, (200, 60)).await;
        assert!(text.contains(expected), "{keys}: no {expected:?}\n{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn time_passes_as_fast_as_is_asked_for_and_stops_at_the_end() {
    let live = LiveSession::run("default", Span::from_secs(130)).await;
    for (keys, expected) in [
        ("p", "▶ 1x   08:00:01"),
        (">>>p", "▶ 10x  08:00:10"),
        (":speed 100<Enter>p", "▶ 100x 08:01:40"),
        (":speed 1000<Enter>p", "‖ 1000x 08:02:10"),
        (".", "‖ 1x   08:01:00"),
        ("}", "‖ 1x   08:02:10"),
    ] {
        let text = frame(&live.file, keys, (120, 30)).await;
        assert!(text.contains(expected), "{keys}: no {expected:?}\n{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_file_that_was_cut_anywhere_is_played_as_far_as_it_goes() {
    let live = LiveSession::run("silent-node", Span::from_secs(200)).await;
    let mut random = fastrand::Rng::with_seed(5);
    let mut shown = 0;
    for _ in 0..12 {
        let cut = &live.file[..random.usize(..live.file.len())];
        if RecordingReader::open(Cursor::new(cut)).is_err() {
            continue;
        }
        let text = frame(cut, "$", (160, 48)).await;
        assert!(text.contains("ends abruptly"), "{text}");
        shown += 1;
    }
    assert!(shown > 6, "most of them can be opened");
}
