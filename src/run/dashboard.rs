//! The loop of the dashboard.
//!
//! Keys have priority and are drawn at once. All messages of the watches are applied. If one changes a row on screen
//! (`app/on_screen.rs`), the next frame draws it, at most 30 times a second. Views and lists are refreshed at most four
//! times a second, and drawn if they have changed ([`Revision`](crate::model::Revision)). The engine is woken at the
//! time that it asks for. While something counts down, a tick once a second always draws. If nothing arrives and
//! nothing counts down, nothing is drawn. A frozen screen is drawn for keys only.

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
    background::{BESIDE, Background, BackgroundAbout, CoreShare, Failed, drop_in_background},
    dashboard_jobs::{OperationsDriver, room},
    events::ShownEvents,
    headroom_slices::HeadroomSlices,
    history::History,
    kubelets::{KubeletReader, LookedAt, UsageAnswer, WantedKubelet},
    moment_search::SearchProgress,
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
        CountedLeaving, EvictionOutcomes, HORIZON, HeadroomSnapshot, Horizon, Model, PendingPods,
        suggestions::Guarding,
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

/// Shortest interval between two draws for data: about 30 a second.
const FRAME: Duration = Duration::from_millis(33);

/// Interval between ticks.
const SECOND: Duration = Duration::from_secs(1);

/// Shortest interval between two refreshes of the views, however much arrives. Until the engine has started, they are
/// refreshed with each frame.
const REFRESH: Duration = Duration::from_millis(250);

/// Share of refreshing and drawing views: they are refreshed less often where that takes long, but at least every
/// [`SLOWEST_REFRESH`].
const REFRESHING: CoreShare = CoreShare::one_in(150);
const SLOWEST_REFRESH: Duration = SECOND;

/// Shortest interval between two forecasts, and between two updates of an open plan.
const FORECAST: Duration = SECOND;

/// Shortest interval between two slices of headroom, which is computed after a change that it depends on.
const HEADROOM: Duration = SECOND;

/// Shortest interval between two predictions of what becomes of evicted pods, and of what would help Pending pods. They
/// are made only after a change that they depend on.
const OUTCOMES: Duration = SECOND;

/// Shortest interval at which operations look at changes: a large cluster reports hundreds of changes a second.
const LOOK: Duration = Duration::from_millis(50);

/// How long watch events are applied before keys are handled again.
const TURN: Duration = Duration::from_millis(1);

/// The dashboard before it is shown.
#[derive(Debug)]
pub struct Dashboard {
    pub app: App,
    /// None if a recording is shown.
    pub links: Option<Links>,
    pub clock: Clock,
    /// Access to the cluster for operations; none if they cannot write.
    pub context: Option<WriteContext>,
    /// Player of the recording that is shown; none if a cluster is shown.
    pub player: Option<Player>,
    /// History that the session keeps; none if it keeps none.
    pub history: Option<History>,
}

impl Dashboard {
    /// Returns a dashboard that shows a session.
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

    /// Sets the history to keep, or the reason why none is kept.
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

    /// Returns a dashboard that shows a recording. There is no cluster: nothing is read from an API server, and nothing
    /// can be written.
    pub fn for_recording(playback: Playback, player: Player, options: AppOptions, clock: Clock) -> Self {
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

/// Shows the dashboard on the terminal until the user quits or the process is terminated. The terminal is always
/// restored.
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

/// Capacity of the queue of keys for the loop. When it is full, reading waits, and the terminal keeps what is typed.
const KEYS: usize = 64;

/// Returns the same events, read in a separate task. Polling crossterm takes a lock that its thread holds while it
/// waits, and the loop polls whenever a watch reports something: hundreds of times a second.
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
        // The stream owns the task that reads.
        let _ = &reading;
        read.poll_recv(context)
    })
}

/// Runs the loop with any surface and source of keys. The loop ends when the keys end.
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

/// Runs the same loop without a terminal until `until`, then draws one frame. Each key is typed at its time.
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

/// State of the loop.
struct Loop {
    app: App,
    feeds: Option<mpsc::Receiver<FeedEvent>>,
    effects: Option<mpsc::Sender<Effect>>,
    outcomes: Option<mpsc::Receiver<(EffectId, Outcome)>>,
    /// Scopes to read for what is open on the screen, such as a plan.
    wanted: watch::Sender<BTreeSet<Scope>>,
    clock: Clock,
    /// Whether the app has changed since the last draw (`undrawn`), refresh (`unrefreshed`) and forecast
    /// (`forecast_is_old`).
    undrawn: bool,
    unrefreshed: bool,
    forecast_is_old: bool,
    next_frame: Instant,
    /// How long the last draw took.
    draw_cost: Duration,
    next_refresh: Instant,
    next_tick: Instant,
    forecast: Background<Forecast>,
    outlook: BackgroundAbout<Horizon, Forecast>,
    plan: BackgroundAbout<PlanRequest, PreviewResult>,
    detail: BackgroundAbout<DetailSubject, DetailResult>,
    events: ShownEvents,
    kubelets: KubeletReader,
    headroom: HeadroomSlices,
    leaving: Background<CountedLeaving>,
    eviction_outcomes: Background<EvictionOutcomes>,
    pending_pods: Background<PendingPods>,
    timing: Background<TimingResult>,
    /// Player of the recording or history that is shown.
    player: Option<Player>,
    keeping: Keeping,
    operations: OperationsDriver,
    /// When operations may next look at changes.
    next_look: Instant,
    /// When figures about the program are next written to the log.
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
            outlook: BackgroundAbout::new(FORECAST),
            plan: BackgroundAbout::new(FORECAST),
            detail: BackgroundAbout::new(FORECAST),
            kubelets: KubeletReader::new(events.clone(), clock),
            events: ShownEvents::new(events),
            headroom: HeadroomSlices::new(HEADROOM),
            leaving: Background::new(REFRESH),
            eviction_outcomes: Background::new(OUTCOMES),
            pending_pods: Background::new(OUTCOMES),
            timing: Background::new(OUTCOMES),
            player,
            keeping: Keeping::new(history),
            operations: OperationsDriver::new(context),
            next_look: now,
            next_vitals: now + vitals::EVERY,
        }
    }

    /// Runs until the user quits, the keys end, or `end` is ready. Returns the app as it is then.
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
            let slice = self.headroom.next_slice();
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
                open = room_for_effect(self.effects.as_ref(), self.app.model.effects.has_next()) => self.on_room(open),
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

    /// Applies all waiting messages of the watches, or as many as fit into `TURN`, so that keys do not wait.
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

    /// Applies a message. Returns false if it has only a new time at which a watch was last heard from, which the next
    /// tick shows.
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
            // The views were refreshed when the engine started.
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
        while self.app.model.effects.has_next()
            && let Some(Ok(permit)) = self.effects.as_ref().map(mpsc::Sender::try_reserve)
            && let Some(effect) = self.app.model.effects.take_next()
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
        // Rounding between the two clocks must not wake the engine before its time over and over.
        let now = self.now();
        // After a pass that finds nothing new, drawing can wait for the next tick.
        if self.app.on_timeout(asked.map_or(now, |asked| asked.max(now))) {
            self.changed();
        }
    }

    fn on_tick(&mut self) {
        self.next_tick = Instant::now() + SECOND;
        // A node may have become silent merely because time passed.
        self.forecast_is_old |= self.app.model.predictions.forecast().is_none();
        self.undrawn = !self.app.is_frozen() || self.app.is_in_history();
        self.refresh();
    }

    fn log_vitals(&mut self) {
        self.next_vitals = Instant::now() + vitals::EVERY;
        vitals::log(&self.app.model, self.now());
    }

    /// Reports that background work panicked.
    fn report_fault(&mut self, what: &str) {
        let text = format!("{what}: this is a fault of kordon");
        self.app.model.journal.trouble(self.now(), "", &text);
        self.changed();
    }

    /// Schedules a draw for a new result about what is shown.
    fn show_result(&mut self) {
        if self.app.playback.is_some() {
            // A recording has no ticks that would arrange the lists.
            self.app.arrange(self.now());
            self.undrawn = true;
        } else {
            self.undrawn |= !self.app.is_frozen();
        }
    }

    /// Returns the model that background work is about, and its time.
    fn worked_on(&mut self) -> (&mut Model, Timestamp) {
        self.app.worked_on(self.clock.now())
    }

    /// Returns the time of what is shown; for a recording, its own time.
    fn now(&self) -> Timestamp {
        self.app.model_time(self.clock.now())
    }

    /// Marks that something has arrived that may be visible.
    fn changed(&mut self) {
        self.undrawn = !self.app.is_frozen();
        self.outdated();
    }

    /// Marks that views and forecasts are out of date.
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

    /// Sets the time of the next refresh, after a refresh that began at `started`.
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

    /// Sends requests to the kubelets of the node that is shown and of nodes that report pressure.
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
            UsageAnswer::Nodes(usage) => self.app.model.measurements.on_usage(usage, now),
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

    /// Sends a request of the operation whose channel has room.
    fn on_request_room(&mut self, room: Option<(OperationId, mpsc::OwnedPermit<Request>)>) {
        if let Some((id, room)) = room
            && let Some(request) = self.app.next_request(&id)
        {
            room.send(request);
        }
    }

    /// Lets operations look at what has changed.
    fn show_changes(&mut self) {
        self.next_look = Instant::now() + LOOK;
        self.app.show_changes(self.now());
        self.outdated();
    }
}

/// Whether a list that the user waits for is now complete, which is shown at once.
fn ends_awaited_list(kind: FeedKind, before: Option<&FeedState>, now: &FeedState) -> bool {
    matches!(kind, FeedKind::Nodes | FeedKind::Leases | FeedKind::Pods)
        && matches!(before, Some(FeedState::Listing { .. }))
        && *now == FeedState::Live
}

/// Sleeps until the moment, forever if there is none.
async fn at(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

/// Waits for the next message; none when the channel closes. Waits forever if there is no channel.
async fn receive<T>(channel: &mut Option<mpsc::Receiver<T>>) -> Option<T> {
    match channel {
        Some(channel) => channel.recv().await,
        None => std::future::pending().await,
    }
}

/// Waits for room in the channel, forever if there is no channel or nothing to send. Returns false if the receiver is
/// gone.
async fn room_for_effect(channel: Option<&mpsc::Sender<Effect>>, wanted: bool) -> bool {
    match channel {
        Some(channel) if wanted => channel.reserve().await.is_ok(),
        Some(_) | None => std::future::pending().await,
    }
}
