//! Nothing on the screen moves by itself: the dashboard's real loop with demo clusters, for ten minutes of paused time.

use std::{collections::BTreeSet, io, time::Duration};

use crossterm::event::Event;
use futures::channel::mpsc;
use kordon::{
    app::{App, AppOptions},
    executor::effects::EffectExecutor,
    k8s::connect::Connection,
    model::{ConnectionInfo, ControllerRole, ModelOptions},
    run::{self, Dashboard, Session, Surface, controller::Controller},
    ui::{Drawn, snapshot},
};
use kordon_clock::Clock;
use kordon_core::engine::{ServerVersion, Settings};
use kordon_demo::{
    api::{Api, ApiOptions},
    scenario::Scenario,
    world::{World, WorldOptions},
};
use kordon_time::{Span, Timestamp};
use ratatui::{Terminal, backend::TestBackend};
use tokio_util::sync::CancellationToken;

use crate::{dashboard_driver::shows_pods, dashboard_fixture::typed};

const SIZE: (u16, u16) = (160, 48);
/// Interval between checked frames; checking every frame would take minutes.
const BETWEEN_FRAMES: Span = Span::from_millis(3_300);
const PLAYED: Duration = Duration::from_secs(600);

#[tokio::test(start_paused = true)]
async fn in_ten_minutes_of_the_default_scenario_nothing_moves_by_itself() {
    play("default").await;
}

#[tokio::test(start_paused = true)]
async fn in_ten_minutes_of_a_zone_outage_nothing_moves_by_itself() {
    play("zone-outage").await;
}

async fn play(scenario: &str) {
    let clock = Clock::new(Timestamp::parse("2026-11-21T03:00:00Z").expect("a time"), 1.0);
    let api = Api::new(clock, ApiOptions::default());
    let cancel = CancellationToken::new();
    let _ends = cancel.clone().drop_guard();
    let scenario = Scenario::named(scenario).expect("there is one");
    let options = WorldOptions { scenario, ..WorldOptions::default() };
    let _world = World::start(&api, clock, &options, cancel.clone());
    let settings = Settings::defaults(ServerVersion::new(1, 36));
    let controller = Controller {
        connection: Connection::embedded(api.client_as("system:kordon-controller"), "demo"),
        settings: settings.clone(),
        clock,
        identity: "kordon-demo".into(),
    };
    tokio::spawn(controller.run(cancel.clone()));
    let connection = Connection::embedded(api.client(), "demo");
    let options =
        ModelOptions { connection: ConnectionInfo::default(), settings, role: ControllerRole::Shadow };
    let session =
        Session::start(&connection, options, false, EffectExecutor::Recorder, clock, cancel.clone());
    let dashboard = Dashboard::over(session, AppOptions::default(), None);
    let (keys, keyboard) = mpsc::unbounded();
    let mut screen = GeometryScreen::default();
    let operator = async {
        // The user selects the third node.
        tokio::time::sleep(Duration::from_secs(20)).await;
        for key in typed("jj") {
            keys.unbounded_send(Ok(Event::Key(key))).expect("the loop runs");
        }
        tokio::time::sleep(PLAYED).await;
    };
    tokio::select! {
        () = operator => {}
        exit = run::run_dashboard(dashboard, &mut screen, keyboard) => panic!("it exited: {exit:?}"),
    }
    screen.check();
}

/// A screen that keeps the geometry of every checked frame.
#[derive(Default)]
struct GeometryScreen {
    looked_at: Option<Timestamp>,
    drawn: Drawn,
    frames: usize,
    seen: Vec<Geometry>,
    /// Nodes that were selected after the keys were typed.
    selected: BTreeSet<Option<String>>,
}

/// The parts of a frame that must not move.
#[derive(Clone, PartialEq, Eq)]
struct Geometry {
    /// Corners of all panes.
    corners: Vec<(usize, usize, char)>,
    /// Headings of zones and nodes, with their line numbers.
    headings: Vec<(usize, String)>,
    screen: String,
}

impl Geometry {
    fn of(screen: String) -> Self {
        let is_corner = |letter: &char| matches!(letter, '╭' | '╮' | '╰' | '╯');
        let lines = || screen.lines().enumerate();
        let corners = lines().flat_map(|(y, line)| {
            let letters = line.chars().enumerate().filter(|(_, letter)| is_corner(letter));
            letters.map(move |(x, letter)| (x, y, letter)).collect::<Vec<_>>()
        });
        let is_heading = |line: &&str| line.contains("  zone  ") || line.contains("  node  ");
        let headings = lines().filter(|(_, line)| line.starts_with('│') && is_heading(line));
        Self {
            corners: corners.collect(),
            headings: headings.map(|(y, line)| (y, line.to_owned())).take(2).collect(),
            screen: screen.clone(),
        }
    }

    fn is_same(&self, other: &Self) -> bool {
        (&self.corners, &self.headings) == (&other.corners, &other.headings)
    }

    /// Whether the only difference is that panes have opened below the nodes. Above these panes, nothing may have moved
    /// except the lower edge of the nodes.
    fn opened(&self, after: &Self) -> bool {
        let above = |geometry: &Self| -> Vec<_> {
            let nodes = geometry.headings.last().map_or(0, |(y, _)| *y);
            geometry.corners.iter().filter(|(_, y, _)| *y < nodes).copied().collect()
        };
        self.headings == after.headings
            && above(self) == above(after)
            && self.corners.len() < after.corners.len()
    }
}

impl GeometryScreen {
    fn check(&self) {
        assert!(self.frames > 150, "{} frames", self.frames);
        let [first, rest @ ..] = self.seen.as_slice() else { panic!("no frame") };
        assert_eq!(first.headings.len(), 2, "zones and nodes in\n{}", first.screen);
        let mut before = first;
        for (moved, after) in rest.iter().enumerate() {
            let may_open = moved == 0 && before.opened(after);
            assert!(may_open, "something moved, from\n{}\nto\n{}", before.screen, after.screen);
            before = after;
        }
        assert_eq!(self.selected.len(), 1, "another node was selected: {:?}", self.selected);
        assert!(!self.selected.contains(&None));
    }
}

impl Surface for GeometryScreen {
    fn draw_app(&mut self, app: &App, now: Timestamp) -> io::Result<Drawn> {
        if self.looked_at.is_some_and(|last| now.since(last) < BETWEEN_FRAMES) {
            return Ok(self.drawn.clone());
        }
        self.looked_at = Some(now);
        let mut terminal = Terminal::new(TestBackend::new(SIZE.0, SIZE.1)).expect("a buffer");
        self.drawn = terminal.draw_app(app, now)?;
        let screen = snapshot::plain(terminal.backend().buffer());
        if !shows_pods(&screen) {
            return Ok(self.drawn.clone());
        }
        self.frames += 1;
        if self.frames > 10 {
            self.selected.insert(app.screen.selected_node().map(ToString::to_string));
        }
        let geometry = Geometry::of(screen);
        if self.seen.last().is_none_or(|last| !last.is_same(&geometry)) {
            self.seen.push(geometry);
        }
        Ok(self.drawn.clone())
    }

    fn repaint(&mut self) -> io::Result<()> {
        Ok(())
    }

    async fn suspend(&mut self) -> io::Result<()> {
        Ok(())
    }
}
