//! The dashboard's frames of each demo scenario, 30, 120 and 360 seconds after its start: golden files of the real loop
//! with the embedded cluster, its controller and scheduler, on a virtual clock. At these times and 75 seconds after the
//! start, all counts of pods that the frame, the commands and the metrics state are equal.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::Path,
};

use crossterm::event::Event;
use futures::{StreamExt, stream};
use kordon::{
    app::{App, AppOptions, ThemeChoice},
    executor::effects::EffectExecutor,
    k8s::connect::Connection,
    model::{ConnectionInfo, ControllerRole, Model, ModelOptions},
    run::{self, Dashboard, Session, Surface, controller::Controller, demo_scheduler::PlacementScheduler},
    ui::{Drawn, snapshot},
};
use kordon_clock::Clock;
use kordon_core::engine::{ServerVersion, Settings};
use kordon_demo::{
    api::{Api, ApiOptions},
    scenario::{SCENARIOS, Scenario},
    world::{Scheduling, World, WorldOptions},
};
use kordon_time::{Span, Timestamp};
use ratatui::{Terminal, backend::TestBackend, buffer::Buffer, style::Color};
use tokio_util::sync::CancellationToken;

use crate::{
    screens::expect_picture,
    stated_counts::{PaneRows, StatedCounts, counts_to_be_evicted},
};

pub const EPOCH: &str = "2026-11-22T03:00:00Z";
const VERSION: ServerVersion = ServerVersion::new(1, 36);

/// Times of the frames, in seconds after the start.
const TIMES: [i64; 3] = [30, 120, 360];
/// Sizes of all frames. The first one determines selection and scrolling.
const SIZES: [(u16, u16); 2] = [(160, 48), (80, 24)];
/// Additional sizes of two scenarios.
const MORE_SIZES: [(u16, u16); 2] = [(120, 40), (220, 60)];
const IN_MORE_SIZES: [&str; 2] = ["default", "zone-outage"];

/// Times at which counts are compared, in seconds after the start.
const COUNTED: [i64; 4] = [30, 75, 120, 360];
/// Size of the frames in which counts are compared: their titles and notes are not cut.
const COUNTED_SIZE: (u16, u16) = (220, 60);

/// Frames by time and size.
type Frames = BTreeMap<(i64, (u16, u16)), Buffer>;

/// Text that the first lines of a scenario's frames contain after 30, 120 and 360 seconds. It describes the worst state
/// in the cluster. After `|` stands the text in a narrow frame.
const WORST: [(&str, [&str; 3]); 15] = [
    (
        "default",
        [
            "node general-1b-01 Evicting",
            "nodes general-1b-01 and memory-1c-01 Evicting|2 of 24 nodes Evicting",
            "3 of 24 nodes Evicting",
        ],
    ),
    ("healthy", ["all 24 nodes Ready", "all 24 nodes Ready", "all 24 nodes Ready"]),
    (
        "silent-node",
        ["node general-1a-01 Silent", "node general-1a-01 Evicting", "node general-1a-01 Evicting"],
    ),
    ("flapping", ["node memory-1b-01 NotReady", "node memory-1b-01 Evicting", "node general-1a-01 flaps"]),
    ("zone-outage", ["zone b: no heartbeat from any ", "zone b down (8 of 8)", "zone b down (8 of 8)"]),
    (
        "partial-disruption",
        [
            "zone a: 3 of 63 nodes Silent",
            "zone a: 7 of 63 nodes Evicting",
            "one more node tainted every 1m40s",
        ],
    ),
    (
        "full-outage",
        [
            "no heartbeat from any ",
            "no node reports: every zone is down (24 of 24 nodes)",
            "all 24 nodes Ready",
        ],
    ),
    ("kernel-upgrade", ["Draining", "drain of memory-1b-01 (4 of 7 pods gone) blocked", "Draining"]),
    ("stuck-statefulset", ["4 pods stuck on a dead node|4 pods stuck until it is back or deleted"; 3]),
    (
        "blocked-drain",
        [
            "drain of memory-1b-01 (3 of 7 pods gone) blocked",
            "drain of memory-1b-01 (5 of 7 pods gone) blocked",
            "drain of memory-1b-01 (6 of 7 pods gone) blocked",
        ],
    ),
    (
        "restart",
        [
            "no active kube-controller-manager",
            "nodes general-1a-01 and general-1b-01 Evicting|2 of 24 nodes Evicting",
            "nodes general-1a-01 and general-1b-01 Evicting|2 of 24 nodes Evicting",
        ],
    ),
    ("quota", ["Draining", "Drained", "Drained"]),
    ("memory-pressure", ["all 24 nodes Ready", "Pressure", "Pressure"]),
    ("preemption", ["11 pods Pending 30s", "10 pods Pending 2m00s", "10 pods Pending 6m00s"]),
    ("departures", ["7 pods Pending 30s", "Evicting", "6 pods Pending"]),
];

/// A frame, and what was known and listed at its time.
struct CountedFrame {
    model: Model,
    now: Timestamp,
    text: String,
    panes: PaneRows,
}

impl CountedFrame {
    fn new(app: &App, now: Timestamp, frame: &Buffer) -> Self {
        let screen = &app.screen;
        let panes = PaneRows {
            evictions: screen.evictions.list.keys().to_vec(),
            pending: screen.pending.list.keys().to_vec(),
            lanes: screen.forecast.lanes.clone(),
        };
        Self { model: app.model.clone(), now, text: snapshot::plain(frame), panes }
    }

    /// Returns the counts that differ: between the parts of the frame, and between all commands at its time. The forecast
    /// of the frame may be a second old, and the commands compute their own.
    fn wrong(&self) -> Vec<String> {
        let mut shown = StatedCounts::new(&self.model, self.now);
        shown.compare_frame(&self.text, &self.panes);
        let mut model = self.model.clone();
        model.run_forecast(self.now);
        model.run_outcomes(None, self.now);
        let mut asked = StatedCounts::new(&model, self.now);
        asked.compare_reports();
        asked.compare_forecast();
        shown.into_wrong().into_iter().chain(asked.into_wrong()).collect()
    }
}

/// A screen that keeps the last frame before each time, in each size.
struct FrameSurface {
    started: Timestamp,
    sizes: Vec<(u16, u16)>,
    frames: Frames,
    counted: BTreeMap<i64, CountedFrame>,
    /// Result of the last draw, from which the app learns the number of rows in each pane.
    drawn: Option<Drawn>,
}

impl Surface for FrameSurface {
    fn draw_app(&mut self, app: &App, now: Timestamp) -> io::Result<Drawn> {
        let draw = |size: (u16, u16)| {
            let mut terminal = Terminal::new(TestBackend::new(size.0, size.1)).expect("a buffer");
            let drawn = terminal.draw_app(app, now)?;
            Ok::<_, io::Error>((drawn, terminal.backend().buffer().clone()))
        };
        let after = now.since(self.started);
        let is_near = |at: &&i64| after <= Span::from_secs(**at) && after > Span::from_secs(**at - 5);
        if let Some(at) = COUNTED.iter().find(is_near) {
            let (_, frame) = draw(COUNTED_SIZE)?;
            self.counted.insert(*at, CountedFrame::new(app, now, &frame));
        }
        if let Some(at) = TIMES.iter().find(is_near) {
            for size in &self.sizes {
                self.frames.insert((*at, *size), draw(*size)?.1);
            }
        } else if let Some(drawn) = &self.drawn {
            // Frames at other times are not kept, so they are not drawn. The last result is enough, because no keys are
            // typed.
            return Ok(drawn.clone());
        }
        let drawn = draw(SIZES[0])?.0;
        self.drawn = Some(drawn.clone());
        Ok(drawn)
    }

    fn repaint(&mut self) -> io::Result<()> {
        Ok(())
    }

    async fn suspend(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Starts the cluster of a scenario with its controller and scheduler, as `kordon demo` does.
pub fn start_demo(scenario: &'static Scenario, clock: Clock, cancel: &CancellationToken) -> (Api, World) {
    start_demo_with(&Settings::defaults(VERSION), scenario, clock, cancel)
}

/// Like [`start_demo`], with these settings of the controller.
pub fn start_demo_with(
    settings: &Settings,
    scenario: &'static Scenario,
    clock: Clock,
    cancel: &CancellationToken,
) -> (Api, World) {
    let api = Api::new(clock, ApiOptions::default());
    let options = WorldOptions { scenario, scheduling: Scheduling::External, ..WorldOptions::default() };
    let world = World::start(&api, clock, &options, cancel.clone());
    let connection = |user: &str| Connection::embedded(api.client_as(user), "demo");
    let term = |identity: &str| Controller {
        connection: connection("system:kordon-controller"),
        settings: settings.clone(),
        clock,
        identity: identity.into(),
    };
    match scenario.controller_away {
        None => tokio::spawn(term("kordon-demo").run(cancel.clone())),
        Some(away) => {
            tokio::spawn(term("kordon-demo").run_until_replaced(term("kordon-demo-2"), away, cancel.clone()))
        }
    };
    let scheduler = PlacementScheduler { connection: connection("system:kordon-scheduler"), clock };
    tokio::spawn(scheduler.run(cancel.clone()));
    (api, world)
}

/// Opens the dashboard of a demo cluster, as `kordon demo` does.
pub fn open_dashboard(api: &Api, clock: Clock, cancel: &CancellationToken) -> Dashboard {
    let info = ConnectionInfo {
        context: "demo".into(),
        server: "demo".into(),
        identity: Some("demo-user".into()),
        server_version: Some("v1.36.3".into()),
        objects_at: None,
    };
    let options = ModelOptions {
        connection: info,
        settings: Settings::defaults(VERSION),
        role: ControllerRole::Shadow,
    };
    let session = Session::start(
        &Connection::embedded(api.client(), "demo"),
        options,
        false,
        EffectExecutor::Recorder,
        clock,
        cancel.clone(),
    );
    let themes = ThemeChoice::bundled();
    Dashboard::over(session, AppOptions { themes, ..AppOptions::default() }, None)
}

/// Plays a scenario as `kordon demo` does, and returns the screen with its frames.
async fn play(scenario: &'static Scenario) -> FrameSurface {
    let clock = Clock::new(Timestamp::parse(EPOCH).expect("a time"), 1.0);
    let cancel = CancellationToken::new();
    let (api, _world) = start_demo(scenario, clock, &cancel);
    let dashboard = open_dashboard(&api, clock, &cancel);
    let mut sizes = SIZES.to_vec();
    sizes.extend(MORE_SIZES.iter().filter(|_| IN_MORE_SIZES.contains(&scenario.name)));
    let started = clock.now();
    let (frames, counted) = (Frames::new(), BTreeMap::new());
    let mut screen = FrameSurface { started, sizes, frames, counted, drawn: None };
    // The dashboard exits when its stream of keys ends.
    let end = clock.sleep_until(started + Span::from_secs(361));
    let keys = Box::pin(stream::once(end).filter_map(async |()| None::<io::Result<Event>>));
    run::run_dashboard(dashboard, &mut screen, keys).await.expect("it runs");
    cancel.cancel();
    screen
}

/// Compares a scenario with its golden files, which `UPDATE=1` rewrites.
async fn expect_frames(name: &str) {
    let FrameSurface { frames, counted, .. } = play(Scenario::named(name).expect("there is one")).await;
    if name == "default" {
        expect_picture("dashboard", &frames[&(TIMES[1], SIZES[0])]);
    }
    let worst = WORST.iter().find(|(of, _)| *of == name).expect("what it shows is in the table").1;
    let mut wrong = Vec::new();
    for ((at, (width, height)), frame) in &frames {
        let file = format!("scenario-{name}-{at}s-{width}x{height}");
        let text = without_age(&snapshot::plain(frame));
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/screens").join(format!("{file}.txt"));
        if std::env::var_os("UPDATE").is_some() {
            fs::write(&path, &text).expect("tests/screens can be written");
        }
        if fs::read_to_string(&path).unwrap_or_default() != text {
            wrong.push(format!("{file} differs; with UPDATE=1 read the difference\n{text}"));
        }
        let place = TIMES.iter().position(|time| time == at).expect("one of them");
        let head: String = text.lines().take(2).collect::<Vec<_>>().join("\n");
        if name == "stuck-statefulset" && !text.contains("stuck with its n") {
            wrong.push(format!("{file} shows no pod of a StatefulSet that is stuck:\n{text}"));
        }
        if tells_how_long_stuck(&text) {
            wrong.push(format!("{file} tells of a time beside `stuck`, which is an outcome:\n{text}"));
        }
        if let Some(numbers) = different_counts(&text) {
            wrong.push(format!("{file} tells of {numbers:?} pods to be evicted:\n{text}"));
        }
        if head.lines().any(|line| line.contains('…') || line.matches("all nodes: ").count() > 1) {
            wrong.push(format!("{file} cuts the verdict, or names its subject twice:\n{head}"));
        }
        if !worst[place].split('|').any(|text| head.contains(text)) {
            wrong.push(format!("{file} does not say {:?}:\n{head}", worst[place]));
        }
    }
    for (at, frame) in &counted {
        wrong.extend(frame.wrong().into_iter().map(|count| format!("{name} at {at} s, {count}")));
    }
    assert_eq!(counted.len(), COUNTED.len());
    assert_eq!(frames.len(), TIMES.len() * if IN_MORE_SIZES.contains(&name) { 4 } else { 2 });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Replaces the age of the newest event in a frame by `live 0s`. The age varies, because work on real threads may end
/// before or after an event.
fn without_age(frame: &str) -> String {
    (1..10).fold(frame.to_owned(), |text, age| text.replacen(&format!(" live {age}s"), " live 0s", 1))
}

/// Whether a frame has a time after the word `stuck`: `stuck 6m30s`.
fn tells_how_long_stuck(frame: &str) -> bool {
    let mut after = frame.match_indices("stuck ").map(|(place, word)| &frame[place + word.len()..]);
    after.any(|after| after.starts_with(|letter: char| letter.is_ascii_digit()))
}

/// Returns the different counts of pods to be evicted in a frame; `None` if all counts are equal. The header, the
/// evictions and the forecast have to show the same count.
fn different_counts(frame: &str) -> Option<BTreeSet<&str>> {
    let numbers: BTreeSet<&str> = counts_to_be_evicted(frame).collect();
    (numbers.len() > 1).then_some(numbers)
}

macro_rules! scenario_frames {
    ($($test:ident: $name:literal,)*) => {
        $(
            #[tokio::test(start_paused = true)]
            async fn $test() {
                expect_frames($name).await;
            }
        )*

        #[test]
        fn every_scenario_has_frames() {
            let shown = [$($name),*];
            assert!(SCENARIOS.iter().all(|scenario| shown.contains(&scenario.name)));
        }
    };
}

scenario_frames! {
    default_opens_on_an_incident_in_full_swing: "default",
    healthy_is_calm: "healthy",
    silent_node_is_seen_before_the_controller_says_so: "silent-node",
    flapping_is_counted: "flapping",
    zone_outage_shows_the_zone: "zone-outage",
    partial_disruption_slows_evictions_down: "partial-disruption",
    full_outage_pauses_evictions: "full-outage",
    kernel_upgrade_can_be_followed: "kernel-upgrade",
    stuck_statefulset_waits_for_its_old_pods: "stuck-statefulset",
    blocked_drain_does_not_end: "blocked-drain",
    restart_of_the_controller_gives_new_grace: "restart",
    quota_refuses_replacements: "quota",
    memory_pressure_comes_before_its_evictions: "memory-pressure",
    preemption_leaves_pods_pending: "preemption",
    departures_of_every_kind_at_once: "departures",
}

/// The first line is ignored: it shows the freshness of the watches, which is green while they are live.
#[tokio::test(start_paused = true)]
async fn in_a_full_outage_nothing_is_green_that_is_not_ready_and_heard_from() {
    let frames = play(Scenario::named("full-outage").expect("there is one")).await.frames;
    for ((at, size), frame) in frames.iter().filter(|((at, _), _)| *at == 120) {
        let area = frame.area;
        let cells = (1..area.height).flat_map(|y| (0..area.width).map(move |x| (x, y)));
        let green: String = cells
            .filter(|place| frame[*place].symbol() != " " && is_green(frame[*place].fg))
            .map(|place| frame[place].symbol().to_owned())
            .collect();
        assert!(
            green.is_empty(),
            "after {at} s in {size:?} these are green: {green}\n{}",
            snapshot::plain(frame)
        );
    }
}

fn is_green(colour: Color) -> bool {
    match colour {
        Color::Green | Color::LightGreen => true,
        Color::Rgb(red, green, blue) => {
            u16::from(green) * 10 > u16::from(red) * 12 && u16::from(green) * 10 > u16::from(blue) * 12
        }
        _ => false,
    }
}
