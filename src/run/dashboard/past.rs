//! Keeps, opens and saves the history, and plays the history or recording that is shown instead of the present.

use super::*;
use crate::{
    app::HistoryState,
    run::history::{self, HistoryError, HistoryReport},
    ui::text,
};

/// The history that is kept, and the player of the history or recording that is shown instead of the present.
pub(super) struct Past {
    /// Player of the history or recording that is shown; `None` if the present is shown.
    pub player: Option<Player>,
    /// History that the session keeps; `None` if it keeps none.
    history: Option<History>,
    opening: Background<Result<OpenedHistory, HistoryError>>,
    saving: Background<Result<SavedHistory, HistoryError>>,
}

/// A history that can be played.
pub(super) struct OpenedHistory {
    player: Player,
    from: Timestamp,
    until: Timestamp,
}

/// A history that was saved as a recording.
pub(super) struct SavedHistory {
    file: String,
    bytes: u64,
}

/// An event of the player or of the history.
pub(super) enum PastEvent {
    /// It is time to make the next moment of the playback.
    Step,
    Played(PlayerEvent),
    Report(HistoryReport),
    Opened(Result<Result<OpenedHistory, HistoryError>, Failed>),
    Saved(Result<Result<SavedHistory, HistoryError>, Failed>),
}

impl Past {
    pub(super) fn new(player: Option<Player>, history: Option<History>) -> Self {
        let (opening, saving) = (Background::new(Duration::ZERO), Background::new(Duration::ZERO));
        Self { player, history, opening, saving }
    }

    /// Waits for the next event, forever if nothing is played and no history is kept. May be dropped and awaited again.
    pub(super) async fn next(&mut self, playback: Option<&Playback>) -> PastEvent {
        let Self { player, history, opening, saving } = self;
        let step = player.as_ref().zip(playback).and_then(|(player, playback)| player.due(playback));
        tokio::select! {
            biased;
            () = at(step) => PastEvent::Step,
            played = next_played(player) => PastEvent::Played(played),
            event = next_of_history(history.as_mut(), opening, saving) => event,
        }
    }

    /// Restarts the clock of the player, so that the time before this call does not count as played.
    pub(super) fn restart_clock(&mut self) {
        if let Some(player) = &mut self.player {
            player.restart_clock();
        }
    }

    /// Searches for notable moments in what is played.
    pub(super) fn start_search(&mut self) {
        if let Some(player) = &mut self.player {
            player.start_search();
        }
    }

    /// Starts to make the next moment of the playback.
    pub(super) fn start_step(&mut self, app: &App) {
        if let (Some(player), Some(playback)) = (&mut self.player, &app.playback) {
            player.start(playback, app.shown());
        }
    }

    /// Sends a message of the watches to the history, before it is applied.
    pub(super) fn keep(&mut self, message: &FeedEvent, now: Timestamp) {
        if let Some(history) = &mut self.history {
            history.on_event(message, now);
        }
    }

    /// Sends the state of the model to the history if a keyframe is due. The model must have applied all messages.
    pub(super) fn keep_state(&mut self, model: &Model, now: Timestamp) {
        if let Some(history) = &mut self.history {
            history.on_applied(model, now);
        }
    }

    /// Whether something is played, or will be once the history has been opened.
    fn is_open(&self) -> bool {
        self.player.is_some() || self.opening.is_running()
    }

    /// Starts to open the history.
    fn open(&mut self, settings: Settings, now: Timestamp) {
        let Some(history) = &mut self.history else { return };
        let kept = history.read(now);
        self.opening.start(move |_| {
            let (player, (from, until)) = history::player_of(&kept()?, &settings)?;
            Ok(OpenedHistory { player, from, until })
        });
    }

    /// Closes the history, because the user does not look at it any more.
    fn close(&mut self) {
        // Dropping the player takes long, because it has a hundred or more copies of the model.
        drop_in_background(self.player.take());
        self.opening = Background::new(Duration::ZERO);
    }

    /// Starts to save the history. Returns false if it is being saved already.
    fn save(&mut self, file: PathBuf, now: Timestamp) -> bool {
        let Some(history) = &mut self.history else { return true };
        if self.saving.is_running() {
            return false;
        }
        let kept = history.read(now);
        self.saving.start(move |_| {
            let shown = visible::text(&file.display().to_string()).into_owned();
            Ok(SavedHistory { file: shown, bytes: history::save(kept()?, &file)? })
        });
        true
    }
}

/// Waits for the next result of the player, forever if nothing is played.
async fn next_played(player: &mut Option<Player>) -> PlayerEvent {
    match player {
        Some(player) => player.next().await,
        None => std::future::pending().await,
    }
}

/// Waits for the next event of the history, forever if none is kept.
async fn next_of_history(
    history: Option<&mut History>,
    opening: &mut Background<Result<OpenedHistory, HistoryError>>,
    saving: &mut Background<Result<SavedHistory, HistoryError>>,
) -> PastEvent {
    let Some(history) = history else { return std::future::pending().await };
    tokio::select! {
        report = history.next_report() => PastEvent::Report(report),
        opened = opening.finished() => PastEvent::Opened(opened),
        saved = saving.finished() => PastEvent::Saved(saved),
    }
}

impl Loop {
    pub(super) fn on_past_event(&mut self, event: PastEvent) {
        match event {
            PastEvent::Step => self.past.start_step(&self.display.app),
            PastEvent::Played(played) => self.on_played(played),
            PastEvent::Report(report) => self.on_history_report(report),
            PastEvent::Opened(Ok(Ok(opened))) => self.on_opened(opened),
            PastEvent::Opened(Ok(Err(error))) => self.end_playback(&format!("no history: {error}")),
            PastEvent::Opened(Err(Failed)) => self.display.report_fault("opening the history failed"),
            PastEvent::Saved(Ok(Ok(SavedHistory { file, bytes }))) => {
                let size = text::bytes(bytes);
                self.display.say(format!("history saved to {file} ({size}): kordon replay {file}"));
            }
            PastEvent::Saved(Ok(Err(error))) => {
                self.display.say(format!("the history was not saved: {error}"));
            }
            PastEvent::Saved(Err(Failed)) => self.display.report_fault("saving the history failed"),
        }
    }

    fn on_history_report(&mut self, report: HistoryReport) {
        let HistoryReport { from, bytes, limit, failure, .. } = report;
        self.display.app.history = match (failure, from) {
            (Some(why), _) => {
                self.display.report_trouble("history", &format!("ended: {why}"));
                HistoryState::Off(why)
            }
            (None, Some(from)) => HistoryState::Kept { from, bytes, limit },
            (None, None) => HistoryState::Loading,
        };
    }

    /// Opens the history if the user has begun to look back, and saves it if the user has asked for that.
    pub(super) fn follow_history(&mut self) {
        let app = &mut self.display.app;
        // A history that could not be read is not opened again.
        let is_wanted = app.playback.as_ref().is_some_and(|playback| playback.fault.is_none());
        let now = self.display.clock.now();
        if app.is_in_history() && is_wanted && !self.past.is_open() {
            self.work.restart();
            self.past.open(app.model.settings.clone(), now);
        }
        if let Some(file) = app.save_to.take()
            && !self.past.save(file, now)
        {
            self.display.say("the history is being saved already".into());
        }
    }

    fn on_opened(&mut self, opened: OpenedHistory) {
        let Some(playback) = self.display.app.playback.as_mut().filter(|_| self.past.player.is_none()) else {
            return;
        };
        let OpenedHistory { player, from, until } = opened;
        (playback.from, playback.until, playback.searched) = (from, until, from);
        playback.target = playback.target.map(|target| target.clamp(from, until));
        self.past.player = Some(player);
        self.display.draw_soon();
    }

    /// Closes the history, because the user does not look at it any more.
    pub(super) fn close_history(&mut self) {
        self.past.close();
        self.work.restart();
    }
}
