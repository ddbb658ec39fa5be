//! The part of the dashboard's loop that plays a recording or the history.

use super::{work::own_guards, *};

/// Input for one frame of a recording: the keys to type, and when to draw.
#[derive(Debug)]
pub struct VirtualTyping {
    /// Keys, each with the time from the start until it is typed.
    pub keys: Vec<(Span, KeyEvent)>,
    /// Time from the start until the frame is drawn.
    pub until: Span,
}

/// Plays a recording without a terminal, and draws one frame at the end. Never waits, because the viewer's time is
/// virtual.
///
/// # Errors
/// As [`run_dashboard`].
pub async fn replay_frame(
    dashboard: Dashboard,
    size: (u16, u16),
    typing: VirtualTyping,
) -> Result<Buffer, RunError> {
    let mut screen = Terminal::new(TestBackend::new(size.0, size.1)).expect("a buffer cannot fail");
    let mut looped = Loop::new(dashboard);
    looped.search_all().await;
    let mut passed = Span::ZERO;
    for (after, key) in typing.keys {
        looped.let_pass((after - passed).or_zero()).await;
        passed = passed.max(after);
        if let Next::Leave = looped.on_event(Event::Key(key), &mut screen).await? {
            break;
        }
        looped.show_target().await;
    }
    looped.let_pass((typing.until - passed).or_zero()).await;
    let mut app = looped.display.app;
    let now = app.model_time(Timestamp::EPOCH);
    finish_work(&mut app, now);
    screen.draw_app(&app, now).map_err(RunError::Draw)?;
    Ok(screen.backend().buffer().clone())
}

/// Does, at once and on this thread, the background work whose results are shown.
pub(super) fn finish_work(app: &mut App, now: Timestamp) {
    if let Some(job) = app.next_plan(now) {
        app.planned(job.work(), now);
    }
    if let Some(job) = app.next_timing_job() {
        app.on_timing(job.work());
    }
    if let Some(job) = app.next_maintenance_job(now) {
        app.on_maintenance(job.work(own_guards(app.preferences.guards.as_ref()).unwrap_or_default()));
    }
    let is_worked_on = !app.is_frozen() || app.is_in_history();
    let is_audit_shown = app.screen.shows_audit();
    if is_worked_on {
        let (model, now) = app.worked_on(now);
        model.run_outcomes(None, now);
        model.run_pending(None);
        model.run_budgets(now);
        if is_audit_shown {
            model.run_audit(now);
        }
    }
    if let Some(job) = app.next_detail_job(now) {
        app.on_detail_result(job.work(&own_guards(app.preferences.guards.as_ref())), now);
    }
    if is_worked_on {
        app.arrange(now);
    }
}

impl Loop {
    /// Whether the user has selected a moment that is not shown yet.
    pub(super) fn is_seeking(&self) -> bool {
        self.display.app.playback.as_ref().is_some_and(|playback| playback.target.is_some())
    }

    pub(super) fn on_played(&mut self, played: PlayerEvent) {
        match played {
            PlayerEvent::Step(step) => self.on_step(step),
            PlayerEvent::Found(found) => self.on_found(found),
        }
    }

    fn on_step(&mut self, step: Result<StepResult, Failed>) {
        let (Some(player), true) = (&mut self.past.player, self.display.app.playback.is_some()) else {
            return;
        };
        let Ok(step) = step else {
            self.past.player = None;
            return self.end_playback("playing failed: this is a fault of kordon");
        };
        let PlayedMoment { at, model, kind, known_from } = player.on_step(step);
        let model = match model {
            Ok(model) => *model,
            Err(error) => return self.end_playback(&error.to_string()),
        };
        // The user may have selected another moment in the meantime. That moment is shown next instead.
        if kind == StepKind::Continued && self.is_seeking() {
            return drop_in_background(model);
        }
        if kind == StepKind::Jumped {
            self.work.restart();
        }
        drop_in_background(self.display.app.show_moment(model, at));
        if let Some(playback) = &mut self.display.app.playback {
            playback.known_from = known_from;
        }
        self.display.draw_soon();
        self.start_work();
    }

    fn on_found(&mut self, found: Result<SearchProgress, Failed>) {
        match found {
            Ok(progress) => {
                let Some(playback) = &mut self.display.app.playback else { return };
                let has_changed = playback.moments.len() != progress.moments.len() || progress.is_done;
                (playback.moments, playback.searched) = (progress.moments, progress.until);
                self.display.draw_if(has_changed);
                if let Some(player) = &mut self.past.player {
                    player.add_checkpoints(progress.checkpoints, progress.until);
                }
            }
            Err(Failed) => self.display.report_fault("searching for notable moments failed"),
        }
    }

    /// Closes the history when the screen shows the present again.
    pub(super) fn on_thaw(&mut self, before: Box<Model>) {
        drop_in_background(before);
        if self.display.app.playback.take().is_some() {
            self.close_history();
        }
    }

    /// Ends playing because of an error. Shows why, and keeps the current moment.
    pub(super) fn end_playback(&mut self, why: &str) {
        if let Some(playback) = &mut self.display.app.playback {
            (playback.is_paused, playback.target) = (true, None);
            playback.fault = Some(why.to_owned());
        }
        self.display.say(why.to_owned());
    }

    /// Starts the background work about the moment that is shown.
    fn start_work(&mut self) {
        if self.display.worked_on().0.leaves_many() {
            self.work.start_leaving(&mut self.display);
        }
        self.work.start(&mut self.display);
    }

    /// Searches the whole recording for notable moments.
    async fn search_all(&mut self) {
        self.past.start_search();
        while let Some(player) = self.past.player.as_mut().filter(|player| player.is_searching()) {
            let found = player.next_found().await;
            self.on_found(found);
            self.past.start_search();
        }
        self.show_target().await;
    }

    /// Shows the moment that the user has selected.
    async fn show_target(&mut self) {
        while self.is_seeking() {
            self.past.start_step(&self.display.app);
            let Some(player) = &mut self.past.player else { return };
            let step = player.next_step().await;
            self.on_step(step);
        }
    }

    /// Advances the playback by `span` of the viewer's virtual time.
    async fn let_pass(&mut self, span: Span) {
        self.show_target().await;
        let (Some(player), Some(playback)) = (&mut self.past.player, &self.display.app.playback) else {
            return;
        };
        if playback.is_playing() && span > Span::ZERO {
            player.start_after(span.to_std(), playback, self.display.app.shown());
            let step = player.next_step().await;
            self.on_step(step);
        }
    }
}
