//! The loop of the dashboard.
//!
//! Keys have priority and are drawn at once. All messages of the watches are applied. If a message changes a row on
//! screen (`app/on_screen.rs`), the next frame draws the row, at most 30 times a second. Views and lists are refreshed
//! at most four times a second, and drawn if they have changed ([`Revision`](crate::model::Revision)). The engine is
//! woken at the time that it asks for. While something counts down, a tick once a second always draws. If nothing
//! arrives and nothing counts down, nothing is drawn. A frozen screen is drawn for keys only.

mod contexts;
mod display;
mod link;
mod past;
mod playing;
mod taking_along;
mod work;

use std::{collections::BTreeSet, future::Future, io, path::PathBuf, sync::Arc, time::Duration};

use crossterm::event::{Event, KeyEvent, KeyEventKind, MouseButton, MouseEvent, MouseEventKind};
use futures::{Stream, StreamExt, stream};
use ratatui::{Terminal, backend::TestBackend, buffer::Buffer, layout::Position};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::{mpsc, watch},
    time::{Instant, sleep_until},
};
use tokio_util::task::AbortOnDropHandle;

use super::{
    background::{BESIDE, Background, BackgroundAbout, CoreShare, Failed, drop_in_background},
    dashboard_jobs::{OperationEvent, OperationsDriver},
    events::{ListedEvents, ShownEvents},
    headroom_slices::HeadroomSlices,
    history::History,
    kubelets::{KubeletReader, LookedAt, UsageAnswer, WantedKubelet},
    moment_search::SearchProgress,
    notify::{Notifier, NotifyOptions},
    player::{PlayedMoment, Player, PlayerEvent, StepKind, StepResult},
    preferences_file::{PreferencesFile, PreferencesReader, ReadPreferences, next_read},
    read_once::{
        KordonLeaseReader, PlannedAutoscalers, ShownHealthChecks, ShownNodeClaims, ShownOperatorSettings,
        ShownVolumeAttachments,
    },
    session::{Links, Session},
    surface::Surface,
    tty, vitals,
};
use crate::{
    app::{
        App, AppOptions, HistoryState, Movement, Playback, Reaction, WatchReaction,
        detail::{DetailResult, DetailSubject, SubjectReport},
        maintenance::{MaintenanceRequest, MaintenanceResult},
        preview::{PlanRequest, PreviewResult},
        timing::TimingResult,
    },
    executor::{guards, write_context::WriteContext},
    k8s::feed::FeedEvent,
    model::{
        BudgetList, CountedLeaving, Effects, EvictionOutcomes, HORIZON, HeadroomSnapshot, Horizon,
        KnownAudit, Model, PendingPods, suggestions::Guarding,
    },
};
use kordon_clock::Clock;
use kordon_core::{
    cluster::{Change, Cluster, EventSubject, EventsOfCluster, Scope},
    engine::{Effect, EffectId, Engine, Outcome, Settings},
    forecast::{Assumptions, Forecast, ForecastStart},
    plan::Cancellation,
    visible,
};
use kordon_time::{Span, Timestamp};

pub use contexts::ContextOpener;
use contexts::{ContextOpening, End, RunningCount};
use display::{Display, DisplayEvent};
use link::{ClusterLink, ExecutorEnded, LinkEvent};
use past::Past;
use playing::finish_work;
pub use playing::{VirtualTyping, replay_frame};
use work::Work;

/// Maximum time for which watch events are applied before keys are handled again.
const TURN: Duration = Duration::from_millis(1);

/// Everything that a dashboard needs before it is shown.
#[derive(Debug)]
pub struct Dashboard {
    pub app: App,
    /// The session's connections to the cluster; none if a recording is shown.
    pub links: Option<Links>,
    pub clock: Clock,
    /// Write access to the cluster for operations; `None` if operations cannot write.
    pub context: Option<WriteContext>,
    /// Player of the recording that is shown; none if a cluster is shown.
    pub player: Option<Player>,
    /// History that the session keeps; none if the session keeps no history.
    pub history: Option<History>,
    /// File of the preferences, which is read again when it changes; none if there is no folder for it.
    pub preferences: Option<PreferencesFile>,
    /// The receivers of notifications, and the changes that they are notified of.
    pub notify: NotifyOptions,
    /// Opens other contexts; `None` if there are no other contexts.
    pub opener: Option<ContextOpener>,
}

impl Dashboard {
    /// Returns a dashboard that shows a session.
    pub fn over(session: Session, options: AppOptions, context: Option<WriteContext>) -> Self {
        let Session { model, links, clock, .. } = session;
        Self {
            app: App::new(model, options),
            links: Some(links),
            clock,
            context,
            player: None,
            history: None,
            preferences: None,
            notify: NotifyOptions::default(),
            opener: None,
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
        Self {
            app,
            links: None,
            clock,
            context: None,
            player: Some(player),
            history: None,
            preferences: None,
            notify: NotifyOptions::default(),
            opener: None,
        }
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
pub async fn terminal(dashboard: Dashboard, mouse: bool) -> Result<(), RunError> {
    let listen = |kind| signal(kind).map_err(RunError::Enter);
    let mut ends =
        [listen(SignalKind::terminate())?, listen(SignalKind::hangup())?, listen(SignalKind::interrupt())?];
    let mut tty = tty::Tty::enter(mouse).map_err(RunError::Enter)?;
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

/// Returns a stream of the events that a separate task reads from `events`. A poll of crossterm's stream takes a lock
/// that crossterm's own thread holds while it waits for input. Without the task, the loop would poll crossterm's stream
/// whenever a watch reports something: hundreds of times a second.
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
        // The stream owns the task that reads the events, so the task ends with the stream.
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
    contexts::run_contexts(dashboard, surface, keys).await
}

/// Runs the dashboard's loop without a terminal until `until`, then draws one frame. Each key is typed at its time.
pub async fn headless(
    dashboard: Dashboard,
    size: (u16, u16),
    until: Timestamp,
    keys: Vec<(Timestamp, KeyEvent)>,
) -> Result<Buffer, RunError> {
    let clock = dashboard.clock;
    let waits = clock.running();
    let typed = stream::iter(keys).then(move |(at, key)| async move {
        waits.sleep_until(at).await;
        Ok(Event::Key(key))
    });
    let mut keys = Box::pin(typed.chain(stream::pending()));
    let mut screen = Terminal::new(TestBackend::new(size.0, size.1)).expect("a buffer cannot fail");
    let mut shown = Loop::new(dashboard);
    shown.run(&mut screen, &mut keys, waits.sleep_until(until)).await?;
    let mut app = shown.display.app;
    let now = app.model_time(clock.now());
    if !app.is_frozen() {
        app.refresh(now);
    }
    finish_work(&mut app, now);
    screen.draw_app(&app, now).map_err(RunError::Draw)?;
    Ok(screen.backend().buffer().clone())
}

/// The dashboard's loop: the app, and everything that the loop waits for.
struct Loop {
    display: Display,
    link: ClusterLink,
    work: Work,
    past: Past,
    operations: OperationsDriver,
    notifier: Notifier,
    /// Opens other contexts; `None` if there are no other contexts.
    opener: Option<ContextOpener>,
    opening: ContextOpening,
    /// File of the configuration, to which views are added; none if there is no folder for it.
    preferences: Option<PathBuf>,
    /// Reads the configuration again when its file changes.
    reader: Option<PreferencesReader>,
    /// Number of running operations, for the dashboards of other contexts.
    running: RunningCount,
}

/// What the loop does after an event.
enum Next {
    GoOn,
    Leave,
}

impl Loop {
    fn new(dashboard: Dashboard) -> Self {
        let Dashboard { mut app, links, clock, context, player, history, preferences, notify, opener } =
            dashboard;
        if context.is_none() {
            app.operations.locked.get_or_insert_with(|| "there is no place for a journal".into());
        }
        if !app.is_replay() {
            app.find_interrupted();
            app.rights.ask();
        }
        Self {
            display: Display::new(app, clock),
            preferences: preferences.as_ref().map(|file| file.path.clone()),
            link: ClusterLink::new(links, clock),
            reader: preferences.map(PreferencesReader::start),
            work: Work::new(),
            past: Past::new(player, history),
            operations: OperationsDriver::new(context),
            notifier: Notifier::new(notify),
            opener,
            opening: ContextOpening::default(),
            running: RunningCount::default(),
        }
    }

    /// Runs until the user quits or goes to another context, the keys end, or `end` is ready.
    async fn run(
        &mut self,
        surface: &mut impl Surface,
        keys: &mut (impl Stream<Item = io::Result<Event>> + Unpin),
        end: impl Future<Output = ()>,
    ) -> Result<End, RunError> {
        tokio::pin!(end);
        loop {
            self.follow_history();
            self.past.start_search();
            self.operations.start_jobs(&mut self.display.app, self.display.clock);
            self.link.follow(&self.display.app);
            self.count_running();
            if self.display.app.operations.may_quit() {
                return Ok(End::Quit);
            }
            if let Some(end) = self.follow_context() {
                return Ok(end);
            }
            let app = &self.display.app;
            let channels = self.operations.channels(app.with_requests());
            let (has_effects, may_end) = (app.model.effects.has_next(), !self.is_seeking());
            tokio::select! {
                biased;
                event = keys.next() => match event {
                    Some(event) => match self.on_event(event.map_err(RunError::Keys)?, surface).await? {
                        Next::GoOn => {}
                        Next::Leave => return Ok(End::Quit),
                    },
                    None => return Ok(End::Quit),
                },
                () = &mut end, if may_end => return Ok(End::Quit),
                (name, opened) = self.opening.next() => {
                    if let Some(end) = self.on_context(&name, opened) {
                        return Ok(end);
                    }
                }
                event = self.operations.next(channels) => self.on_operation_event(event),
                event = self.past.next(app.playback.as_ref()) => self.on_past_event(event),
                event = self.display.next() => self.on_display_event(event, surface)?,
                event = self.work.next() => self.work.on_event(event, &mut self.display),
                event = self.link.next(has_effects) => self.on_link_event(event),
                () = self.display.next_tick() => {
                    self.display.on_tick();
                    self.refresh();
                    self.notify(surface)?;
                }
                why = self.notifier.next_failure() => self.display.report_trouble("notify", &why),
                read = next_read(&mut self.reader) => self.on_preferences(read),
            }
        }
    }

    /// Handles an event of the mouse. The mouse can neither quit the dashboard nor confirm anything.
    fn on_mouse(&mut self, event: MouseEvent, surface: &mut impl Surface) -> Result<Next, RunError> {
        let at = Position::new(event.column, event.row);
        let (clicked, now) = (self.display.clock.now(), self.display.now());
        let app = &mut self.display.app;
        match event.kind {
            MouseEventKind::Down(MouseButton::Left) => app.on_click(at, clicked, now),
            MouseEventKind::Drag(MouseButton::Left) => app.on_drag(at),
            MouseEventKind::Up(MouseButton::Left) => {
                app.on_release();
                return Ok(Next::GoOn);
            }
            MouseEventKind::ScrollDown => app.on_wheel(at, Movement::Down, now),
            MouseEventKind::ScrollUp => app.on_wheel(at, Movement::Up, now),
            _ => return Ok(Next::GoOn),
        }
        self.work.start_after_key(&mut self.display);
        self.display.draw(surface)?;
        Ok(Next::GoOn)
    }

    async fn on_event(&mut self, event: Event, surface: &mut impl Surface) -> Result<Next, RunError> {
        let key = match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => key,
            Event::Resize(..) => {
                self.display.draw(surface)?;
                return Ok(Next::GoOn);
            }
            Event::Mouse(mouse) => return self.on_mouse(mouse, surface),
            Event::Paste(text) => {
                let now = self.display.now();
                self.display.app.on_paste(&text, now);
                self.display.draw(surface)?;
                return Ok(Next::GoOn);
            }
            Event::Key(_) | Event::FocusGained | Event::FocusLost => return Ok(Next::GoOn),
        };
        let (typed, now) = (self.display.clock.now(), self.display.now());
        let app = &mut self.display.app;
        let was_playing = app.playback.as_ref().is_some_and(Playback::is_playing);
        match app.on_key(key, typed, now) {
            Reaction::Draw => {}
            Reaction::Thaw(before) => self.on_thaw(before),
            Reaction::Repaint => surface.repaint().map_err(RunError::Draw)?,
            Reaction::Copy(text) => surface.copy(&text).map_err(RunError::Draw)?,
            Reaction::Suspend => surface.suspend().await.map_err(RunError::Draw)?,
            Reaction::Quit => return Ok(Next::Leave),
        }
        self.take_along(surface)?;
        self.test_notice(surface)?;
        if !was_playing {
            self.past.restart_clock();
        }
        self.work.start_after_key(&mut self.display);
        self.display.draw(surface)?;
        Ok(Next::GoOn)
    }

    fn on_display_event(&mut self, event: DisplayEvent, surface: &mut impl Surface) -> Result<(), RunError> {
        match event {
            DisplayEvent::Waking(asked) => self.display.on_waking(asked),
            DisplayEvent::Look => self.display.look(),
            DisplayEvent::Refresh => {
                self.refresh();
                self.notify(surface)?;
            }
            DisplayEvent::Frame => self.display.draw(surface)?,
            DisplayEvent::Vitals => self.display.log_vitals(),
        }
        Ok(())
    }

    /// Notifies the user of changes in the cluster since the previous refresh.
    fn notify(&mut self, surface: &mut impl Surface) -> Result<(), RunError> {
        let Display { app, clock, .. } = &self.display;
        let sequences = self.notifier.look(&app.model, clock.now());
        sequences.map_or(Ok(()), |sequences| surface.notify(&sequences)).map_err(RunError::Draw)
    }

    /// Applies a configuration that was read again, or shows what is wrong with it.
    fn on_preferences(&mut self, read: ReadPreferences) {
        let now = self.display.now();
        let preferences = read.map(|read| {
            self.notifier.change(read.notify);
            read.preferences
        });
        self.display.app.on_preferences(preferences, now);
        self.display.draw_soon();
    }

    /// Sends a test notice, if the user asked for one.
    fn test_notice(&mut self, surface: &mut impl Surface) -> Result<(), RunError> {
        let Display { app, clock, .. } = &mut self.display;
        if !std::mem::take(&mut app.test_notice) {
            return Ok(());
        }
        let sent = self.notifier.test(&app.model.connection.context, clock.now());
        app.screen.message = Some(sent.as_ref().map_or_else(ToString::to_string, |_| "sent a notice".into()));
        sent.map_or(Ok(()), |sequences| surface.notify(&sequences)).map_err(RunError::Draw)
    }

    /// Brings the views up to date, and starts the background work that depends on them.
    fn refresh(&mut self) {
        let started = Instant::now();
        if self.display.app.model.leaves_many() {
            self.work.start_leaving(&mut self.display);
        }
        self.display.refresh();
        self.operations.show(&self.display.app.model);
        self.work.start_forecast(&mut self.display);
        self.work.start(&mut self.display);
        if let Some(snapshot) = self.display.app.take_unneeded_snapshot() {
            drop_in_background(snapshot);
        }
        self.display.refreshed_since(started);
    }

    fn on_link_event(&mut self, event: LinkEvent) {
        let now = self.display.now();
        match event {
            LinkEvent::Subject(subject, report) => {
                self.display.app.on_subject_report(&subject, report, now);
                self.display.draw_soon();
            }
            LinkEvent::Events(events) => {
                self.display.app.on_cluster_events(events, now);
                self.display.draw_soon();
            }
            LinkEvent::Read(change) => {
                let changes = vec![change];
                if let [Change::KordonLease(_)] = &changes[..] {
                    self.past.keep(&FeedEvent::Changes(changes.clone()), now);
                }
                self.display.app.model.apply(changes, now);
                self.display.changed();
            }
            LinkEvent::Outcome(Some((id, outcome))) => {
                self.display.app.model.on_outcome(id, outcome, now);
                self.display.changed();
            }
            LinkEvent::Room(Ok(())) => self.link.send_effects(&mut self.display.app.model.effects),
            LinkEvent::Outcome(None) | LinkEvent::Room(Err(ExecutorEnded)) => self.on_executor_ended(),
            LinkEvent::Kubelets => self.link.ask_kubelets(&self.display.app),
            LinkEvent::Usage(answer) => self.display.on_usage(answer),
            LinkEvent::Feed(Some(message)) => self.on_feed(message),
            LinkEvent::Feed(None) => {
                self.link.on_watches_ended();
                let text = "the watches have ended: what is shown does not change any more";
                self.display.report_trouble("", text);
            }
        }
    }

    /// Applies all waiting messages of the watches, or as many as fit into `TURN`, so that keys do not wait.
    fn on_feed(&mut self, first: FeedEvent) {
        let Self { display, link, past, .. } = self;
        let started = Instant::now();
        let mut has_news = false;
        let mut next = Some(first);
        while let Some(message) = next {
            let (now, started_this) = (display.clock.now(), Instant::now());
            past.keep(&message, now);
            if display.app.model.pass_time(now) {
                display.changed();
            }
            let reaction = display.app.on_watch_event(message, now);
            display.on_watch_reaction(reaction, started_this);
            has_news |= reaction.has_news;
            next = if started.elapsed() < TURN { link.waiting_message() } else { None };
        }
        past.keep_state(&display.app.model, display.clock.now());
        if has_news {
            display.outdated();
        }
    }

    fn on_executor_ended(&mut self) {
        if self.link.on_executor_ended() {
            self.display.report_trouble("", "the executor has ended: effects are not executed any more");
        }
        self.display.changed();
    }

    fn on_operation_event(&mut self, event: OperationEvent) {
        let now = self.display.now();
        match event {
            OperationEvent::Result(Ok(result)) => self.display.app.on_job_result(*result, now),
            OperationEvent::Result(Err(Failed)) => {
                self.display.report_fault("a step towards an operation failed");
            }
            OperationEvent::Room(room) => {
                if let Some((id, room)) = room
                    && let Some(request) = self.display.app.next_request(&id)
                {
                    room.send(request);
                }
                return;
            }
        }
        self.display.changed();
    }
}

/// Sleeps until `moment`; forever if it is `None`.
async fn at(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
