//! The loop of the dashboard.
//!
//! Keys come first and are drawn at once. What the watches report is applied as a whole; where it shows in a row on screen
//! (`app/on_screen.rs`) it is drawn with the next frame, at most 30 times a second. Views and lists follow at most four times
//! a second, and are drawn where they have changed ([`Revision`](crate::model::Revision)). The engine is woken when it asks
//! for it. While something counts down there is a tick once a second, which always draws; when nothing arrives and nothing
//! counts down, nothing is drawn. A frozen screen is drawn for keys only.

mod beside;
mod keeping;
mod playing;

use std::{collections::BTreeSet, future::Future, io, path::PathBuf, time::Duration};

use crossterm::event::{Event, KeyEvent, KeyEventKind};
use futures::{Stream, StreamExt, stream};
use ratatui::{Terminal, backend::TestBackend, buffer::Buffer};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::{mpsc, watch},
    time::{Instant, sleep_until},
};
use tokio_util::task::AbortOnDropHandle;

use super::{
    background::{BESIDE, Background, CoreShare, Failed, drop_in_background},
    events::ShownEvents,
    history::History,
    kubelets::{KubeletReader, LookedAt, UsageAnswer, WantedKubelet},
    moment_search::SearchProgress,
    operations::{OperationsDriver, room},
    player::{PlayedMoment, Player, PlayerEvent, StepKind, StepResult},
    session::{Links, Session},
    surface::Surface,
    tty, vitals,
};
use crate::{
    app::{
        App, AppOptions, HistoryState, Playback, Reaction, commands,
        detail::{DetailResult, DetailSubject, SubjectReport},
        operations::JobResult,
        preview::{PlanRequest, PreviewResult},
        timing::TimingResult,
        update,
    },
    executor::{guards, write_context::WriteContext},
    k8s::feed::{FeedEvent, FeedKind, FeedState},
    model::{
        CountedLeaving, EvictionOutcomes, HORIZON, HeadroomProgress, HeadroomSnapshot, Horizon, Model,
        PendingPods, suggestions::Guarding,
    },
};
use kordon_clock::Clock;
use kordon_core::{
    cluster::{Cluster, EventSubject, OperationId, Scope},
    engine::{Effect, EffectId, Engine, Outcome},
    forecast::{Assumptions, Forecast, ForecastStart},
    operation::Request,
    plan::Cancellation,
    visible,
};
use kordon_time::{Span, Timestamp};

use keeping::Keeping;
pub use playing::{VirtualTyping, replay_frame};
use playing::{finish_work, next_played};

/// Between two draws for data: about 30 a second.
const FRAME: Duration = Duration::from_millis(33);

/// Between two ticks.
const SECOND: Duration = Duration::from_secs(1);

/// Views are refreshed at most this often, however much arrives. Until the first list of nodes is complete they are refreshed
/// with each frame.
const REFRESH: Duration = Duration::from_millis(250);

/// Share of refreshing and drawing views: they are refreshed less often where that takes long, but at least every
/// [`SLOWEST_REFRESH`].
const REFRESHING: CoreShare = CoreShare::one_in(150);
const SLOWEST_REFRESH: Duration = SECOND;

/// Forecasts are made, and an open plan follows the cluster, at most this often.
const FORECAST: Duration = SECOND;

/// Between two slices of headroom, at least: it is worked out after a change that it depends on.
const HEADROOM: Duration = SECOND;

/// What becomes of the pods that are evicted, and what would help those that are Pending, is worked out at most this often,
/// and only after a change that it depends on.
const OUTCOMES: Duration = SECOND;

/// Operations look at what has changed at most this often: a large cluster reports hundreds of changes a second.
const LOOK: Duration = Duration::from_millis(50);

/// How long watch events are applied before keys get their turn again.
const TURN: Duration = Duration::from_millis(1);

/// The dashboard before it is shown.
#[derive(Debug)]
pub struct Dashboard {
    pub app: App,
    /// None of a recording.
    pub links: Option<Links>,
    pub clock: Clock,
    /// Where operations write; none if they cannot.
    pub context: Option<WriteContext>,
    /// What plays the recording that is shown; none of a cluster.
    pub player: Option<Player>,
    /// What the session keeps to look back at; none if nothing.
    pub history: Option<History>,
}

impl Dashboard {
    /// Puts a screen over a session.
    pub fn over(session: Session, options: AppOptions, context: Option<WriteContext>) -> Self {
        let Session { model, links, clock, passes: _ } = session;
        Self {
            app: App::new(model, options),
            links: Some(links),
            clock,
            context,
            player: None,
            history: None,
        }
    }

    /// The same, and what the watches report is kept; or it is not, for that reason.
    #[must_use]
    pub fn keeping(mut self, history: Result<History, String>) -> Self {
        match history {
            Ok(history) => {
                self.app.history = HistoryState::Loading;
                self.history = Some(history);
            }
            Err(why) => self.app.history = HistoryState::Off(why),
        }
        self
    }

    /// A screen over a recording. There is no cluster: nothing is asked, and nothing can be written.
    pub fn of_recording(playback: Playback, player: Player, options: AppOptions, clock: Clock) -> Self {
        let mut app = App::new(player.first_model(), options);
        app.playback = Some(playback);
        app.operations.locked = Some("a recording cannot be written to".into());
        Self { app, links: None, clock, context: None, player: Some(player), history: None }
    }
}

/// Why the dashboard failed.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("setting up the terminal: {0}")]
    Enter(#[source] io::Error),
    #[error("drawing on the terminal: {0}")]
    Draw(#[source] io::Error),
    #[error("reading keys from the terminal: {0}")]
    Keys(#[source] io::Error),
}

/// Shows the dashboard on the terminal until the user quits or the process is terminated. The terminal is restored on every
/// way out.
///
/// # Errors
/// The terminal cannot be set up, written to or read from.
pub async fn terminal(dashboard: Dashboard) -> Result<(), RunError> {
    let listen = |kind| signal(kind).map_err(RunError::Enter);
    let mut ends =
        [listen(SignalKind::terminate())?, listen(SignalKind::hangup())?, listen(SignalKind::interrupt())?];
    let mut tty = tty::Tty::enter().map_err(RunError::Enter)?;
    let keys = read_beside(crossterm::event::EventStream::new());
    let terminated = futures::future::select_all(ends.iter_mut().map(|end| Box::pin(end.recv())));
    tokio::select! {
        left = run_dashboard(dashboard, &mut tty, keys) => left,
        // Dropping the terminal restores it.
        _ = terminated => Ok(()),
    }
}

/// Keys that were read and wait for the loop. When it is full, reading waits, and the terminal keeps what is typed.
const KEYS: usize = 64;

/// The same events, read in a task of their own. Asking crossterm takes a lock that its own thread holds while it waits, and
/// the loop asks whenever a watch reports something: hundreds of times a second.
fn read_beside<S>(mut events: S) -> impl Stream<Item = S::Item> + Unpin
where
    S: Stream<Item: Send> + Send + Unpin + 'static,
{
    let (typed, mut read) = mpsc::channel(KEYS);
    let reading = AbortOnDropHandle::new(tokio::spawn(async move {
        while let Some(event) = events.next().await {
            if typed.send(event).await.is_err() {
                return;
            }
        }
    }));
    stream::poll_fn(move |context| {
        // The stream owns its reader.
        let _ = &reading;
        read.poll_recv(context)
    })
}

/// The loop, over any surface and source of keys. When the keys end, so does it.
///
/// # Errors
/// The surface cannot be drawn on, or reading keys fails.
pub async fn run_dashboard(
    dashboard: Dashboard,
    surface: &mut impl Surface,
    keys: impl Stream<Item = io::Result<Event>> + Unpin,
) -> Result<(), RunError> {
    Loop::new(dashboard).run(surface, keys, std::future::pending()).await.map(drop)
}

/// Runs the same loop without a terminal until `until`, and draws one frame then. `keys` are typed on the way, at
/// their times.
///
/// # Errors
/// As [`run_dashboard`].
pub async fn headless(
    dashboard: Dashboard,
    size: (u16, u16),
    until: Timestamp,
    keys: Vec<(Timestamp, KeyEvent)>,
) -> Result<Buffer, RunError> {
    let clock = dashboard.clock;
    let typed = stream::iter(keys).then(move |(at, key)| async move {
        clock.sleep_until(at).await;
        Ok(Event::Key(key))
    });
    let keys = Box::pin(typed.chain(stream::pending()));
    let mut screen = Terminal::new(TestBackend::new(size.0, size.1)).expect("a buffer cannot fail");
    let mut app = Loop::new(dashboard).run(&mut screen, keys, clock.sleep_until(until)).await?;
    let now = app.model_time(clock.now());
    if !app.is_frozen() {
        app.refresh(now);
    }
    finish_work(&mut app, now);
    screen.draw_app(&app, now).map_err(RunError::Draw)?;
    Ok(screen.backend().buffer().clone())
}

/// The loop's own state, beside the app.
struct Loop {
    app: App,
    feeds: Option<mpsc::Receiver<FeedEvent>>,
    effects: Option<mpsc::Sender<Effect>>,
    outcomes: Option<mpsc::Receiver<(EffectId, Outcome)>>,
    /// What is to be read for the open plan.
    wanted: watch::Sender<BTreeSet<Scope>>,
    clock: Clock,
    /// Whether the app has changed since the last draw, and since the last refresh and forecast.
    undrawn: bool,
    unrefreshed: bool,
    forecast_is_old: bool,
    next_frame: Instant,
    /// How long the last draw took.
    draw_cost: Duration,
    next_refresh: Instant,
    next_tick: Instant,
    forecast: Background<Forecast>,
    outlook: Background<Forecast>,
    /// What runs, or ran last, looks so far ahead.
    looks_ahead: Option<Horizon>,
    plan: Background<PreviewResult>,
    /// What runs, or ran last, is of this request.
    planned: Option<PlanRequest>,
    detail: Background<DetailResult>,
    /// What runs, or ran last, is about this.
    detailed: Option<DetailSubject>,
    events: ShownEvents,
    kubelets: KubeletReader,
    headroom: Background<(HeadroomProgress, Option<HeadroomSnapshot>)>,
    /// Its work so far, while none of it runs.
    headroom_progress: HeadroomProgress,
    /// Whether its last slice left more to do.
    headroom_goes_on: bool,
    leaving: Background<CountedLeaving>,
    eviction_outcomes: Background<EvictionOutcomes>,
    pending_pods: Background<PendingPods>,
    timing: Background<TimingResult>,
    /// What plays the recording or history that is shown.
    player: Option<Player>,
    keeping: Keeping,
    operations: OperationsDriver,
    /// When operations may look at what has changed again.
    next_look: Instant,
    /// When the program next writes about itself to the log.
    next_vitals: Instant,
}

/// What the loop does after an event.
enum Next {
    GoOn,
    Leave,
}

impl Loop {
    fn new(dashboard: Dashboard) -> Self {
        let Dashboard { mut app, links, clock, context, player, history } = dashboard;
        let (mut feeds, mut effects, mut outcomes, mut events) = (None, None, None, None);
        let mut wanted = watch::Sender::default();
        if let Some(links) = links {
            (feeds, effects, outcomes) = (Some(links.feeds), Some(links.effects), Some(links.outcomes));
            (wanted, events) = (links.wanted, links.events);
        }
        let now = Instant::now();
        if context.is_none() {
            app.operations.locked.get_or_insert_with(|| "there is no place for a journal".into());
        }
        if !app.is_replay() {
            app.find_interrupted();
        }
        Self {
            app,
            feeds,
            effects,
            outcomes,
            wanted,
            clock,
            undrawn: true,
            unrefreshed: true,
            forecast_is_old: true,
            next_frame: now,
            draw_cost: Duration::ZERO,
            next_refresh: now,
            next_tick: now + SECOND,
            forecast: Background::new(FORECAST),
            outlook: Background::new(FORECAST),
            looks_ahead: None,
            plan: Background::new(FORECAST),
            planned: None,
            detail: Background::new(FORECAST),
            detailed: None,
            kubelets: KubeletReader::new(events.clone(), clock),
            events: ShownEvents::new(events),
            headroom: Background::new(HEADROOM),
            headroom_progress: HeadroomProgress::default(),
            headroom_goes_on: false,
            leaving: Background::new(REFRESH),
            eviction_outcomes: Background::new(OUTCOMES),
            pending_pods: Background::new(OUTCOMES),
            timing: Background::new(OUTCOMES),
            player,
            keeping: Keeping::of(history),
            operations: OperationsDriver::new(context),
            next_look: now,
            next_vitals: now + vitals::EVERY,
        }
    }

    /// Runs until the user leaves, the keys end, or `end` comes; gives the app back as it is then.
    async fn run(
        mut self,
        surface: &mut impl Surface,
        mut keys: impl Stream<Item = io::Result<Event>> + Unpin,
        end: impl Future<Output = ()>,
    ) -> Result<App, RunError> {
        tokio::pin!(end);
        loop {
            self.follow_history();
            self.start_search();
            self.operations.start_jobs(&mut self.app, self.clock);
            self.tell_wanted();
            self.events.follow(self.app.shown_object());
            self.kubelets.look_at(self.looked_at());
            if self.app.operations.may_quit() {
                return Ok(self.app);
            }
            let channels = self.operations.channels(self.app.with_requests());
            let look = self.app.operations.has_changed().then_some(self.next_look);
            let waking = self.waking().map(|at| (at, self.clock.instant(at)));
            let step = self.step_due();
            let may_end = !self.is_seeking();
            let frame = self.undrawn.then_some(self.next_frame);
            let refresh = self.unrefreshed.then_some(self.next_refresh);
            let tick = self.app.counts_down().then_some(self.next_tick);
            let slice = self.headroom_goes_on.then(|| self.headroom.due()).flatten();
            let vitals = tracing::enabled!(tracing::Level::DEBUG).then_some(self.next_vitals);
            tokio::select! {
                biased;
                event = keys.next() => match event {
                    Some(event) => match self.on_event(event.map_err(RunError::Keys)?, surface).await? {
                        Next::GoOn => {}
                        Next::Leave => return Ok(self.app),
                    },
                    None => return Ok(self.app),
                },
                () = &mut end, if may_end => return Ok(self.app),
                result = self.operations.next_result() => self.on_job_result(result),
                room = room(channels) => self.on_request_room(room),
                () = at(waking.map(|(_, instant)| instant)) => self.on_waking(waking.map(|(at, _)| at)),
                () = at(step) => self.start_step(),
                played = next_played(&mut self.player) => self.on_played(played),
                event = self.keeping.next() => self.on_history_event(event),
                () = at(look) => self.show_changes(),
                () = at(refresh) => self.refresh(),
                () = at(frame) => self.draw(surface)?,
                plan = self.plan.finished() => self.on_plan(plan),
                detail = self.detail.finished() => self.on_detail(detail),
                (subject, report) = self.events.next() => self.on_subject_report(&subject, report),
                forecast = self.forecast.finished() => self.on_forecast(forecast),
                outlook = self.outlook.finished() => self.on_outlook(outlook),
                headroom = self.headroom.finished() => self.on_headroom(headroom),
                leaving = self.leaving.finished() => self.on_leaving(leaving),
                outcomes = self.eviction_outcomes.finished() => self.on_eviction_outcomes(outcomes),
                pending = self.pending_pods.finished() => self.on_pending_pods(pending),
                timing = self.timing.finished() => self.on_timing(timing),
                outcome = receive(&mut self.outcomes) => self.on_outcome(outcome),
                open = room_for_effect(self.effects.as_ref(), self.app.model.has_effects()) => self.on_room(open),
                () = at(slice) => self.start_headroom(),
                () = sleep_until(self.kubelets.due) => self.ask_kubelets(),
                answer = self.kubelets.next() => self.on_usage(answer),
                () = at(vitals) => self.log_vitals(),
                message = receive(&mut self.feeds) => self.on_feed(message),
                () = at(tick) => self.on_tick(),
            }
        }
    }

    fn tell_wanted(&self) {
        let wanted = self.app.wanted_scopes();
        self.wanted.send_if_modified(|current| {
            let has_changed = *current != wanted;
            *current = wanted;
            has_changed
        });
    }

    async fn on_event(&mut self, event: Event, surface: &mut impl Surface) -> Result<Next, RunError> {
        let key = match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => key,
            Event::Resize(..) => {
                self.draw(surface)?;
                return Ok(Next::GoOn);
            }
            Event::Key(_) | Event::FocusGained | Event::FocusLost | Event::Mouse(_) | Event::Paste(_) => {
                return Ok(Next::GoOn);
            }
        };
        let Some(action) = commands::action(key, self.app.screen.key_focus()) else {
            self.app.on_unknown_key(key);
            self.draw(surface)?;
            return Ok(Next::GoOn);
        };
        let was_playing = self.app.playback.as_ref().is_some_and(Playback::is_playing);
        let now = self.now();
        match update(&mut self.app, action, now) {
            Reaction::Draw => {}
            Reaction::Thaw(before) => self.on_thaw(before),
            Reaction::Repaint => surface.repaint().map_err(RunError::Draw)?,
            Reaction::Suspend => surface.suspend().await.map_err(RunError::Draw)?,
            Reaction::Quit => return Ok(Next::Leave),
        }
        if !was_playing && let Some(player) = &mut self.player {
            player.restart_clock();
        }
        self.start_plan();
        self.start_detail();
        self.start_outlook();
        self.start_timing();
        self.draw(surface)?;
        Ok(Next::GoOn)
    }

    fn draw(&mut self, surface: &mut impl Surface) -> Result<(), RunError> {
        let started = Instant::now();
        let drawn = surface.draw_app(&self.app, self.now()).map_err(RunError::Draw)?;
        self.app.screen.drawn(&drawn.rows);
        self.undrawn = false;
        let now = Instant::now();
        self.draw_cost = now - started;
        self.next_frame = now + FRAME;
        Ok(())
    }

    /// Applies what the watches have reported, all of it unless that takes so long that keys would wait.
    fn on_feed(&mut self, message: Option<FeedEvent>) {
        let Some(message) = message else {
            self.feeds = None;
            let now = self.now();
            self.app.model.journal.trouble(
                now,
                "",
                "the watches have ended: what is shown does not change any more",
            );
            return self.changed();
        };
        let started = Instant::now();
        let mut has_news = self.apply(message);
        while started.elapsed() < TURN
            && let Some(message) = self.feeds.as_mut().and_then(|feeds| feeds.try_recv().ok())
        {
            has_news |= self.apply(message);
        }
        self.keep_state();
        if has_news {
            self.outdated();
        }
    }

    /// Applies a message. Returns whether it says more than when a watch was last heard from, which shows with the next tick.
    fn apply(&mut self, message: FeedEvent) -> bool {
        let now = self.clock.now();
        self.keep(&message, now);
        let (has_news, ends_list) = match &message {
            FeedEvent::Health(kind, health) => {
                let before = self.app.model.feeds.state(*kind);
                (before != Some(&health.state), ends_awaited_list(*kind, before, &health.state))
            }
            _ => (true, false),
        };
        let (started, had_engine) = (Instant::now(), self.app.model.engine.is_some());
        if self.app.model.pass_time(now) {
            self.changed();
        }
        self.undrawn |= self.app.on_watch_event(message, now);
        if ends_list {
            self.next_frame = Instant::now();
        }
        if !had_engine && self.app.model.engine.is_some() {
            // Views were brought up to date with it.
            self.refreshed_since(started);
        }
        has_news
    }

    fn on_outcome(&mut self, outcome: Option<(EffectId, Outcome)>) {
        let Some((id, outcome)) = outcome else { return self.on_executor_gone() };
        self.app.on_outcome(id, outcome, self.now());
        self.changed();
    }

    /// Sends as many effects as there is room for.
    fn on_room(&mut self, open: bool) {
        if !open {
            return self.on_executor_gone();
        }
        while self.app.model.has_effects()
            && let Some(Ok(permit)) = self.effects.as_ref().map(mpsc::Sender::try_reserve)
            && let Some(effect) = self.app.model.next_effect()
        {
            permit.send(effect);
        }
    }

    fn on_executor_gone(&mut self) {
        if self.outcomes.take().is_some() {
            let now = self.now();
            self.app.model.journal.trouble(
                now,
                "",
                "the executor has ended: effects are not executed any more",
            );
        }
        self.effects = None;
        self.changed();
    }

    fn on_waking(&mut self, asked: Option<Timestamp>) {
        // Rounding between the two clocks must not wake the engine before its time, again and again.
        let now = self.now();
        // A pass that finds nothing new shows nothing new: the next tick will do.
        if self.app.on_timeout(asked.map_or(now, |asked| asked.max(now))) {
            self.changed();
        }
    }

    fn on_tick(&mut self) {
        self.next_tick = Instant::now() + SECOND;
        // A node may have fallen silent by nothing but time.
        self.forecast_is_old |= self.app.model.forecast.is_none();
        self.undrawn = !self.app.is_frozen() || self.app.is_in_history();
        self.refresh();
    }

    fn log_vitals(&mut self) {
        self.next_vitals = Instant::now() + vitals::EVERY;
        vitals::log(&self.app.model, self.now());
    }

    /// Work beside the loop panicked.
    fn report_fault(&mut self, what: &str) {
        let text = format!("{what}: this is a fault of kordon");
        self.app.model.journal.trouble(self.now(), "", &text);
        self.changed();
    }

    /// What was worked out of what is shown is to be drawn.
    fn show_result(&mut self) {
        if self.app.playback.is_some() {
            // No tick comes to arrange it.
            self.app.arrange(self.now());
            self.undrawn = true;
        } else {
            self.undrawn |= !self.app.is_frozen();
        }
    }

    /// The model that results are of, and its time.
    fn worked_on(&mut self) -> (&mut Model, Timestamp) {
        self.app.worked_on(self.clock.now())
    }

    /// The time of what is shown: of a recording, its own.
    fn now(&self) -> Timestamp {
        self.app.model_time(self.clock.now())
    }

    /// Something has come in that may show.
    fn changed(&mut self) {
        self.undrawn = !self.app.is_frozen();
        self.outdated();
    }

    /// Something has come in that views and forecasts are to follow.
    const fn outdated(&mut self) {
        self.unrefreshed = true;
        self.forecast_is_old = true;
    }

    fn refresh(&mut self) {
        let started = Instant::now();
        let now = self.now();
        self.undrawn |= if self.app.model.leaves_many() {
            self.start_leaving();
            self.app.refresh_nodes(now)
        } else {
            self.app.refresh(now)
        };
        self.unrefreshed = false;
        self.start_forecast();
        self.start_jobs();
        if let Some(snapshot) = self.app.take_unneeded_snapshot() {
            drop_in_background(snapshot);
        }
        self.refreshed_since(started);
    }

    /// Views are up to date; that was begun at this moment.
    fn refreshed_since(&mut self, started: Instant) {
        let cost = started.elapsed();
        let pace = if self.app.model.engine.is_some() {
            REFRESHING.pause_after(cost + self.draw_cost).clamp(REFRESH, SLOWEST_REFRESH)
        } else {
            FRAME
        };
        self.next_refresh = Instant::now() + pace.max(BESIDE.pause_after(cost));
    }

    fn on_subject_report(&mut self, subject: &EventSubject, report: SubjectReport) {
        self.app.on_subject_report(subject, report, self.now());
        self.undrawn = true;
    }

    /// Asks the kubelet of the node that is shown, and those of nodes that report pressure.
    fn ask_kubelets(&mut self) {
        let shown = self.app.shown_node();
        let model = &self.app.model;
        let under_pressure =
            if self.app.is_frozen() { BTreeSet::new() } else { model.nodes_under_pressure() };
        let wanted = shown.into_iter().chain(under_pressure).filter_map(|name| {
            let node = model.cluster.node(&name)?.clone();
            let pods = model.cluster.pods_on(&name).map(|pod| pod.key.clone()).collect();
            Some(WantedKubelet { node, pods })
        });
        self.kubelets.ask(wanted.collect());
    }

    fn looked_at(&self) -> LookedAt {
        let usage = self.app.screen.wide && !self.app.is_frozen();
        LookedAt { node: self.app.shown_node(), usage }
    }

    fn on_usage(&mut self, answer: UsageAnswer) {
        let now = self.now();
        match answer {
            UsageAnswer::Kubelet(node, report) => {
                self.app.model.on_kubelet_report(&node, *report);
                if self.app.shown_node().as_ref() == Some(&node) {
                    self.app.arrange(now);
                }
            }
            UsageAnswer::Nodes(usage) => self.app.model.on_node_usage(usage, now),
        }
        self.undrawn = true;
    }
}

impl Loop {
    fn on_job_result(&mut self, result: Result<JobResult, Failed>) {
        match result {
            Ok(result) => self.app.on_job_result(result, self.now()),
            Err(Failed) => self.report_fault("a step towards an operation failed"),
        }
        self.changed();
    }

    /// Sends a request of an operation.
    fn on_request_room(&mut self, room: Option<(OperationId, mpsc::OwnedPermit<Request>)>) {
        if let Some((id, room)) = room
            && let Some(request) = self.app.next_request(&id)
        {
            room.send(request);
        }
    }

    /// Lets operations see what has changed.
    fn show_changes(&mut self) {
        self.next_look = Instant::now() + LOOK;
        self.app.show_changes(self.now());
        self.outdated();
    }
}

/// Whether a list has become complete that somebody waits for: that is shown at once.
fn ends_awaited_list(kind: FeedKind, before: Option<&FeedState>, now: &FeedState) -> bool {
    matches!(kind, FeedKind::Nodes | FeedKind::Leases | FeedKind::Pods)
        && matches!(before, Some(FeedState::Listing { .. }))
        && *now == FeedState::Live
}

/// Sleeps until the moment; forever where there is none.
async fn at(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

/// The next message; forever none once the channel has been closed.
async fn receive<T>(channel: &mut Option<mpsc::Receiver<T>>) -> Option<T> {
    match channel {
        Some(channel) => channel.recv().await,
        None => std::future::pending().await,
    }
}

/// Waits for room in the channel, where there is something to send; false once the receiver is gone.
async fn room_for_effect(channel: Option<&mpsc::Sender<Effect>>, wanted: bool) -> bool {
    match channel {
        Some(channel) if wanted => channel.reserve().await.is_ok(),
        Some(_) | None => std::future::pending().await,
    }
}
