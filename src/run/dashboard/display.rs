//! The app, and the times at which it is drawn and its views are refreshed.

use super::*;

/// Shortest interval between two draws that show new data: about 30 a second.
const FRAME: Duration = Duration::from_millis(33);

/// Interval between ticks.
pub(super) const SECOND: Duration = Duration::from_secs(1);

/// Shortest interval between two refreshes of the views, no matter how many changes arrive. Until the engine has
/// started, the views are refreshed with each frame.
pub(super) const REFRESH: Duration = Duration::from_millis(250);

/// Share of a core that may be used to refresh and draw views. If a refresh takes long, the pause after it is longer,
/// up to [`SLOWEST_REFRESH`], or even longer if the limit of [`BESIDE`] requires it.
const REFRESHING: CoreShare = CoreShare::one_in(150);
const SLOWEST_REFRESH: Duration = SECOND;

/// Shortest interval at which operations look at changes: a large cluster reports hundreds of changes a second.
const LOOK: Duration = Duration::from_millis(50);

/// The app, with the times of its next draw, refresh and tick.
pub(super) struct Display {
    pub app: App,
    pub clock: Clock,
    pace: Pace,
}

/// What has changed since the last draw and refresh, and when the next draw, refresh and tick are due.
struct Pace {
    /// Whether the app has changed since the last draw (`undrawn`), refresh (`unrefreshed`) and forecast
    /// (`forecast_is_old`).
    undrawn: bool,
    unrefreshed: bool,
    forecast_is_old: bool,
    next_frame: Instant,
    /// Duration of the last draw.
    draw_cost: Duration,
    next_refresh: Instant,
    next_tick: Instant,
    /// Earliest time at which operations look at changes again.
    next_look: Instant,
    /// Time at which figures about the program are next written to the log.
    next_vitals: Instant,
}

/// An event that is due for the app.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DisplayEvent {
    /// The engine or an operation asked to be woken at this time.
    Waking(Option<Timestamp>),
    /// It is time for operations to look at the changes of the cluster.
    Look,
    Refresh,
    Frame,
    Vitals,
}

impl Pace {
    fn new() -> Self {
        let now = Instant::now();
        Self {
            undrawn: true,
            unrefreshed: true,
            forecast_is_old: true,
            next_frame: now,
            draw_cost: Duration::ZERO,
            next_refresh: now,
            next_tick: now + SECOND,
            next_look: now,
            next_vitals: now + vitals::EVERY,
        }
    }
}

impl Display {
    pub(super) fn new(app: App, clock: Clock) -> Self {
        Self { app, clock, pace: Pace::new() }
    }

    /// Returns the time of the model that is shown. For a recording, this is a time in the recording.
    pub(super) fn now(&self) -> Timestamp {
        self.app.model_time(self.clock.now())
    }

    /// Returns the model that background work is about, and its time.
    pub(super) fn worked_on(&mut self) -> (&mut Model, Timestamp) {
        self.app.worked_on(self.clock.now())
    }

    /// Waits for the next event. May be dropped and awaited again.
    pub(super) fn next(&self) -> impl Future<Output = DisplayEvent> + use<> {
        let pace = &self.pace;
        let waking = self.waking();
        let woken = waking.map(|at| self.clock.instant(at));
        let look = self.app.operations.has_changed().then_some(pace.next_look);
        let refresh = pace.unrefreshed.then_some(pace.next_refresh);
        let frame = pace.undrawn.then_some(pace.next_frame);
        let vitals = tracing::enabled!(tracing::Level::DEBUG).then_some(pace.next_vitals);
        async move {
            tokio::select! {
                biased;
                () = at(woken) => DisplayEvent::Waking(waking),
                () = at(look) => DisplayEvent::Look,
                () = at(refresh) => DisplayEvent::Refresh,
                () = at(frame) => DisplayEvent::Frame,
                () = at(vitals) => DisplayEvent::Vitals,
            }
        }
    }

    /// Time at which the engine must be woken; none for a recording, which wakes its own engine.
    fn waking(&self) -> Option<Timestamp> {
        if self.app.is_replay() { None } else { self.app.poll_timeout() }
    }

    /// Waits for the next tick, forever if nothing counts down.
    pub(super) fn next_tick(&self) -> impl Future<Output = ()> + use<> {
        at(self.app.counts_down().then_some(self.pace.next_tick))
    }

    /// Schedules a draw.
    pub(super) const fn draw_soon(&mut self) {
        self.pace.undrawn = true;
    }

    /// Schedules a draw if what is shown has changed.
    pub(super) const fn draw_if(&mut self, has_changed: bool) {
        self.pace.undrawn |= has_changed;
    }

    /// Schedules a draw for a new result about what is shown.
    pub(super) fn show_result(&mut self) {
        if self.app.playback.is_some() {
            // A recording has no ticks, so its lists must be brought up to date here.
            self.app.arrange(self.now());
            self.draw_soon();
        } else {
            self.draw_if(!self.app.is_frozen());
        }
    }

    /// Marks the screen, the views and the forecast as out of date, because something visible may have changed.
    pub(super) const fn changed(&mut self) {
        self.pace.undrawn = !self.app.is_frozen();
        self.outdated();
    }

    /// Marks that views and forecasts are out of date.
    pub(super) const fn outdated(&mut self) {
        self.pace.unrefreshed = true;
        self.pace.forecast_is_old = true;
    }

    /// Marks that views are out of date.
    pub(super) const fn refresh_soon(&mut self) {
        self.pace.unrefreshed = true;
    }

    /// Whether the known state of the cluster may have changed since the last forecast started.
    pub(super) const fn is_forecast_old(&self) -> bool {
        self.pace.forecast_is_old
    }

    pub(super) const fn on_forecast_started(&mut self) {
        self.pace.forecast_is_old = false;
    }

    /// Shows a message to the user.
    pub(super) fn say(&mut self, text: String) {
        self.app.screen.message = Some(text);
        self.draw_soon();
    }

    /// Writes an error about a subject to the journal.
    pub(super) fn report_trouble(&mut self, subject: &str, text: &str) {
        let now = self.now();
        self.app.model.journal.trouble(now, subject, text);
        self.changed();
    }

    /// Reports that background work panicked.
    pub(super) fn report_fault(&mut self, what: &str) {
        self.report_trouble("", &format!("{what}: this is a fault of kordon"));
    }

    pub(super) fn draw(&mut self, surface: &mut impl Surface) -> Result<(), RunError> {
        let started = Instant::now();
        let drawn = surface.draw_app(&self.app, self.now()).map_err(RunError::Draw)?;
        self.app.screen.drawn(&drawn.rows);
        self.app.screen.targets = drawn.targets;
        self.app.screen.drawn_layout = drawn.layout;
        self.app.screen.size = drawn.size;
        self.pace.undrawn = false;
        let now = Instant::now();
        self.pace.draw_cost = now - started;
        self.pace.next_frame = now + FRAME;
        Ok(())
    }

    /// Schedules the draws and refreshes that are needed after an event of the watches was applied. `started` is the
    /// time at which applying it began.
    pub(super) fn on_watch_reaction(&mut self, reaction: WatchReaction, started: Instant) {
        self.draw_if(reaction.is_shown);
        if reaction.ends_list {
            self.pace.next_frame = Instant::now();
        }
        if reaction.has_started {
            self.refreshed_since(started);
        }
    }

    /// Wakes the engine and the operations at the time for which they asked.
    pub(super) fn on_waking(&mut self, asked: Option<Timestamp>) {
        // The loop sleeps until an instant on tokio's clock, which is rounded. `now` may therefore be slightly before
        // the time that the engine asked for. Without `max`, the engine would be woken too early again and again.
        let now = self.now();
        // If the due timeouts have not changed what is shown, drawing can wait for the next tick.
        if self.app.on_timeout(asked.map_or(now, |asked| asked.max(now))) {
            self.changed();
        }
    }

    /// Lets operations look at the changes of the cluster.
    pub(super) fn look(&mut self) {
        self.pace.next_look = Instant::now() + LOOK;
        self.app.show_changes(self.now());
        self.outdated();
    }

    /// Schedules a draw, because the times on the screen have changed. The views are refreshed next.
    pub(super) fn on_tick(&mut self) {
        self.pace.next_tick = Instant::now() + SECOND;
        // A node may have become silent merely because time passed.
        self.pace.forecast_is_old |= self.app.model.predictions.forecast().is_none();
        self.pace.undrawn = !self.app.is_frozen() || self.app.is_in_history();
    }

    /// Refreshes the views. If many pods are leaving, their views are computed in the background instead.
    pub(super) fn refresh(&mut self) {
        let now = self.now();
        let has_changed =
            if self.app.model.leaves_many() { self.app.refresh_nodes(now) } else { self.app.refresh(now) };
        self.draw_if(has_changed);
        self.pace.unrefreshed = false;
    }

    /// Sets the time of the next refresh, after a refresh that began at `started`.
    pub(super) fn refreshed_since(&mut self, started: Instant) {
        let cost = started.elapsed();
        let pace = if self.app.model.engine.is_some() {
            REFRESHING.pause_after(cost + self.pace.draw_cost).clamp(REFRESH, SLOWEST_REFRESH)
        } else {
            FRAME
        };
        self.pace.next_refresh = Instant::now() + pace.max(BESIDE.pause_after(cost));
    }

    /// Stores an answer of a kubelet or of metrics.k8s.io.
    pub(super) fn on_usage(&mut self, answer: UsageAnswer) {
        let now = self.now();
        match answer {
            UsageAnswer::Kubelet(node, report) => {
                self.app.model.on_kubelet_report(&node, *report, now);
                if self.app.shown_node().as_ref() == Some(&node) {
                    self.app.arrange(now);
                }
            }
            UsageAnswer::Nodes(usage) => self.app.model.measurements.on_usage(usage, now),
        }
        self.draw_soon();
    }

    /// Writes figures about the program to the log.
    pub(super) fn log_vitals(&mut self) {
        self.pace.next_vitals = Instant::now() + vitals::EVERY;
        vitals::log(&self.app.model, self.now());
    }
}
