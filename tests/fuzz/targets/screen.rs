//! Fuzz targets: the dashboard with arbitrary data of a server, and with arbitrary keys.

use std::{cell::RefCell, sync::Arc};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use kordon::{
    app::{App, AppOptions, Reaction},
    k8s::{
        decode::Encoding,
        feed::{FeedEvent, FeedHealth, FeedState},
    },
    model::{ConnectionInfo, ControllerRole, Model, ModelOptions},
    ui,
};
use kordon_core::{
    cluster::{Change, FeedKind},
    engine::{Outcome, ServerVersion, Settings},
    placement::Snapshot,
    plan::{Action, DrainOptions, Plan},
    visible,
};
use kordon_time::{Span, Timestamp};
use ratatui::{Terminal, backend::TestBackend};

use super::{assert_harmless, objects};
use crate::dashboard_fixture::{DashboardFixture, START};

/// Each line of the input begins with a letter. After `t` comes a number: that many seconds pass. After `k` come keys,
/// which are typed. Any other letter stands for a kind of object, and is followed by an event of the watch of this
/// kind.
pub fn cluster(data: &[u8]) {
    let mut lying = Lying::new();
    for line in data.split(|byte| *byte == b'\n').take(40) {
        match line {
            [b't', seconds @ ..] => {
                let seconds = std::str::from_utf8(seconds).ok().and_then(|text| text.parse::<u16>().ok());
                lying.pass(Span::from_secs(seconds.unwrap_or(1).into()));
            }
            [b'k', keys @ ..] => lying.press(keys),
            [kind, event @ ..] => lying.tell(*kind, event),
            [] => {}
        }
    }
    lying.pass(Span::from_secs(60));
    lying.ask();
}

/// A dashboard whose server sends arbitrary data.
struct Lying {
    app: App,
    now: Timestamp,
}

impl Lying {
    fn new() -> Self {
        let connection = ConnectionInfo {
            context: "here".into(),
            server: "https://10.0.0.1".into(),
            identity: None,
            server_version: None,
            objects_at: None,
        };
        let settings = Settings::defaults(ServerVersion::new(1, 36));
        let options = ModelOptions { connection, settings, role: ControllerRole::Shadow };
        let mut app = App::new(Model::new(options, START), AppOptions::default());
        for kind in FeedKind::ALL {
            let state = FeedState::Live;
            let health = FeedHealth { state, last_heard: Some(START), relists: 0, requests: 1, bytes: 1 };
            app.on_watch_event(FeedEvent::Health(kind, health), START);
        }
        app.on_watch_event(FeedEvent::Changes(empty_lists()), START);
        app.refresh(START);
        Self { app, now: START }
    }

    fn tell(&mut self, kind: u8, event: &[u8]) {
        let Some(kind) = objects::kind_of(kind) else { return };
        let changes = objects::changes(kind, Encoding::Json, b'w', event);
        self.app.on_watch_event(FeedEvent::Changes(changes), self.now);
    }

    /// Lets time pass: the engine does what is due, and the screen is drawn.
    fn pass(&mut self, span: Span) {
        let end = self.now + span;
        for _ in 0..100 {
            while let Some(effect) = self.app.model.effects.take_next() {
                assert_harmless(&visible::text(&effect.why.to_string()));
                self.app.model.on_outcome(effect.id, Outcome::Recorded, self.now);
            }
            let Some(at) = self.app.poll_timeout().filter(|at| *at <= end) else { break };
            self.now = self.now.max(at);
            self.app.on_timeout(self.now);
        }
        self.now = end;
        let model = &mut self.app.model;
        model.run_forecast(self.now);
        if let (Some(engine), Some(forecast)) = (&model.engine, model.predictions.forecast().cloned()) {
            let forecast = Arc::unwrap_or_clone(forecast).with_chart(engine, &model.cluster);
            model.set_forecast(forecast);
        }
        self.app.refresh(self.now);
        draw(&mut self.app, self.now, (120, 40));
    }

    fn press(&mut self, keys: &[u8]) {
        for byte in keys {
            press(&mut self.app, *byte, self.now);
        }
        draw(&mut self.app, self.now, (90, 24));
    }

    /// Computes everything that can be computed for an object: headroom, explanations and plans.
    fn ask(&mut self) {
        if let Some(job) = self.app.model.next_headroom_job(self.now) {
            self.app.model.predictions.set_headroom(job.work());
        }
        let Self { app, now } = self;
        let (cluster, version) = (&app.model.cluster, ServerVersion::new(1, 36));
        if let Some(explainer) = app.model.explainer(*now) {
            cluster.nodes().iter().take(3).for_each(|node| drop(explainer.node(node)));
            cluster.pods().iter().take(3).for_each(|pod| drop(explainer.pod(pod)));
        }
        let nodes: Vec<_> = cluster.nodes().iter().take(3).map(|node| node.name.clone()).collect();
        let options = DrainOptions { force: true, ignore_daemonsets: true, ..DrainOptions::default() };
        let pods = cluster.pods().iter().take(3).map(|pod| pod.key.clone()).collect();
        for action in [
            Action::Drain { nodes: nodes.clone(), options },
            Action::Cordon { nodes: nodes.clone() },
            Action::Uncordon { nodes },
            Action::Evict { pods, options: kordon_core::plan::RemovalOptions::default() },
        ] {
            let snapshot = Some(Snapshot::new(cluster, version));
            if let Ok(plan) = Plan::over(action, cluster, snapshot, version, *now) {
                let _ = (plan.summary(), plan.prospect());
            }
        }
        draw(app, *now, (200, 60));
    }
}

fn empty_lists() -> Vec<Change> {
    use kordon_core::cluster::ObjectEvent::{ListDone, ListStarted};
    let mut lists = Vec::new();
    macro_rules! empty {
        ($($change:expr),+ $(,)?) => {$(
            lists.push($change(ListStarted));
            lists.push($change(ListDone));
        )+};
    }
    empty!(
        Change::Node,
        Change::Lease,
        Change::Pod,
        Change::Budget,
        Change::PriorityClass,
        Change::Namespace,
        Change::Service,
        Change::Claim,
        Change::Volume,
        Change::StorageClass,
        Change::CsiNode,
        Change::CsiDriver,
    );
    for kind in kordon_core::cluster::WorkloadKind::ALL {
        lists.push(Change::Workload(kind, ListStarted));
        lists.push(Change::Workload(kind, ListDone));
    }
    lists
}

thread_local! {
    /// Fixtures that [`prepare`] has created for the inputs.
    static READY: RefCell<Vec<Option<DashboardFixture>>> = const { RefCell::new(Vec::new()) };
}

/// Creates the fixtures.
pub fn prepare() {
    READY.with_borrow_mut(|ready| *ready = (0..3).map(|number| Some(fixture(number))).collect());
}

fn fixture(number: u8) -> DashboardFixture {
    match number {
        0 => DashboardFixture::incident(),
        1 => DashboardFixture::maintenance(),
        _ => DashboardFixture::well(),
    }
}

/// Input: a byte that selects the cluster, then one byte for each event: a key, or from 0xC0 on another event.
pub fn keys(data: &[u8]) {
    let Some((first, keys)) = data.split_first() else { return };
    let number = first % 3;
    let ready = READY.with_borrow_mut(|ready| ready.get_mut(usize::from(number)).and_then(Option::take));
    let mut fixture = ready.unwrap_or_else(|| fixture(number));
    let mut size = (120, 40);
    for byte in keys.iter().take(60) {
        match byte {
            0xC0..=0xDF => size = (u16::from(byte - 0xC0) * 7 + 1, size.1),
            0xE0..=0xEF => size = (size.0, u16::from(byte - 0xE0) * 4 + 1),
            0xF0..=0xF3 => fixture.run(i64::from(byte - 0xF0) * 5 + 1),
            0xF4..=0xF7 => fixture.serve(),
            0xF8..=0xFB => fixture.reap(),
            byte => press(&mut fixture.app, *byte, fixture.now),
        }
        fixture.plan();
        draw(&mut fixture.app, fixture.now, size);
    }
}

/// Types a key.
fn press(app: &mut App, byte: u8, now: Timestamp) {
    let (Reaction::Draw
    | Reaction::Thaw(_)
    | Reaction::Repaint
    | Reaction::Copy(_)
    | Reaction::Suspend
    | Reaction::Quit) = app.on_key(key(byte), now, now);
}

/// Returns the key for a byte. A byte up to 0x7F is what a terminal sends for that key. Bytes above 0x7F stand for keys
/// for which a terminal sends several bytes.
fn key(byte: u8) -> KeyEvent {
    let plain = |code| KeyEvent::new(code, KeyModifiers::NONE);
    match byte {
        b'\r' | b'\n' => plain(KeyCode::Enter),
        b'\t' => plain(KeyCode::Tab),
        0x1B => plain(KeyCode::Esc),
        0x7F => plain(KeyCode::Backspace),
        0x01..=0x1A => KeyEvent::new(KeyCode::Char(char::from(byte - 1 + b'a')), KeyModifiers::CONTROL),
        0x20..=0x7E => plain(KeyCode::Char(char::from(byte))),
        0x80 => plain(KeyCode::Up),
        0x81 => plain(KeyCode::Down),
        0x82 => plain(KeyCode::Left),
        0x83 => plain(KeyCode::Right),
        0x84 => plain(KeyCode::Home),
        0x85 => plain(KeyCode::End),
        0x86 => plain(KeyCode::PageUp),
        0x87 => plain(KeyCode::PageDown),
        0x88 => plain(KeyCode::Delete),
        0x89 => plain(KeyCode::Insert),
        0x8A => plain(KeyCode::BackTab),
        0x8B => plain(KeyCode::Null),
        0x8C..=0x97 => plain(KeyCode::F(byte - 0x8B)),
        0x98 => plain(KeyCode::Char('\u{202e}')),
        0x99 => plain(KeyCode::Char('\u{301}')),
        0x9A => plain(KeyCode::Char('節')),
        0x9B => plain(KeyCode::Char('\u{1b}')),
        _ => KeyEvent::new(KeyCode::Char(char::from(byte)), KeyModifiers::ALT),
    }
}

/// Draws the screen, and checks every cell.
fn draw(app: &mut App, now: Timestamp, (width, height): (u16, u16)) {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal in memory");
    let mut drawn = ui::Drawn::default();
    terminal.draw(|frame| drawn = ui::draw(frame, app, now)).expect("it cannot fail");
    app.screen.drawn(&drawn.rows);
    let text: String =
        terminal.backend().buffer().content().iter().map(ratatui::buffer::Cell::symbol).collect();
    assert_harmless(&text);
}
