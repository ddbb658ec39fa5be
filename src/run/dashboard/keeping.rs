//! The part of the dashboard's loop that keeps, opens and saves the history.

use super::*;
use crate::{
    app::HistoryState,
    run::history::{self, HistoryError, HistoryReport},
    ui::text,
};

/// The history that is kept, and the background work on it.
pub(super) struct Keeping {
    /// None if no history is kept.
    pub history: Option<History>,
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

/// An event of the history.
pub(super) enum HistoryEvent {
    Report(HistoryReport),
    Opened(Result<Result<OpenedHistory, HistoryError>, Failed>),
    Saved(Result<Result<SavedHistory, HistoryError>, Failed>),
}

impl Keeping {
    pub(super) fn new(history: Option<History>) -> Self {
        let (opening, saving) = (Background::new(Duration::ZERO), Background::new(Duration::ZERO));
        Self { history, opening, saving }
    }

    /// Waits for the next event of the history, forever if there is none. May be dropped and awaited again.
    pub(super) async fn next(&mut self) -> HistoryEvent {
        let Some(history) = &mut self.history else { return std::future::pending().await };
        tokio::select! {
            report = history.next_report() => HistoryEvent::Report(report),
            opened = self.opening.finished() => HistoryEvent::Opened(opened),
            saved = self.saving.finished() => HistoryEvent::Saved(saved),
        }
    }
}

impl Loop {
    pub(super) fn on_history_event(&mut self, event: HistoryEvent) {
        match event {
            HistoryEvent::Report(report) => self.on_history_report(report),
            HistoryEvent::Opened(Ok(Ok(opened))) => self.on_opened(opened),
            HistoryEvent::Opened(Ok(Err(error))) => self.end_playback(&format!("no history: {error}")),
            HistoryEvent::Opened(Err(Failed)) => self.report_fault("opening the history failed"),
            HistoryEvent::Saved(Ok(Ok(SavedHistory { file, bytes }))) => {
                let size = text::bytes(bytes);
                self.say(format!("history saved to {file} ({size}): kordon replay {file}"));
            }
            HistoryEvent::Saved(Ok(Err(error))) => self.say(format!("the history was not saved: {error}")),
            HistoryEvent::Saved(Err(Failed)) => self.report_fault("saving the history failed"),
        }
    }

    fn on_history_report(&mut self, report: HistoryReport) {
        let HistoryReport { from, bytes, limit, failure, .. } = report;
        self.app.history = match (failure, from) {
            (Some(why), _) => {
                let text = format!("ended: {why}");
                self.app.model.journal.trouble(self.now(), "history", &text);
                self.changed();
                HistoryState::Off(why)
            }
            (None, Some(from)) => HistoryState::Kept { from, bytes, limit },
            (None, None) => HistoryState::Loading,
        };
    }

    /// Sends a message of the watches to the history, before it is applied.
    pub(super) fn keep(&mut self, message: &FeedEvent, now: Timestamp) {
        if let Some(history) = &mut self.keeping.history {
            history.on_event(message, now);
        }
    }

    /// Sends what is known to the history, if a keyframe is due. All messages must have been applied.
    pub(super) fn keep_state(&mut self) {
        let now = self.clock.now();
        if let Some(history) = &mut self.keeping.history {
            history.on_applied(&self.app.model, now);
        }
    }

    /// Opens the history if the user has begun to look back, and saves it if the user has asked for that.
    pub(super) fn follow_history(&mut self) {
        let is_open = self.player.is_some() || self.keeping.opening.is_running();
        // A history that cannot be read is not tried again.
        let is_wanted = self.app.playback.as_ref().is_some_and(|playback| playback.fault.is_none());
        if self.app.is_in_history() && is_wanted && !is_open {
            self.open_history();
        }
        if let Some(file) = self.app.save_to.take() {
            self.save_history(file);
        }
    }

    fn open_history(&mut self) {
        self.drop_work();
        let Some(history) = &mut self.keeping.history else { return };
        let (kept, settings) = (history.read(self.clock.now()), self.app.model.settings.clone());
        self.keeping.opening.start(move |_| {
            let (player, (from, until)) = history::player_of(&kept()?, &settings)?;
            Ok(OpenedHistory { player, from, until })
        });
    }

    fn on_opened(&mut self, opened: OpenedHistory) {
        let Some(playback) = self.app.playback.as_mut().filter(|_| self.player.is_none()) else { return };
        let OpenedHistory { player, from, until } = opened;
        (playback.from, playback.until, playback.searched) = (from, until, from);
        playback.target = playback.target.map(|target| target.clamp(from, until));
        self.player = Some(player);
        self.undrawn = true;
    }

    /// Closes the history, because the user does not look at it any more.
    pub(super) fn close_history(&mut self) {
        // The player has a hundred copies of the model and more.
        drop_in_background(self.player.take());
        self.keeping.opening = Background::new(Duration::ZERO);
        self.drop_work();
    }

    fn save_history(&mut self, file: PathBuf) {
        let Some(history) = &mut self.keeping.history else { return };
        if self.keeping.saving.is_running() {
            return self.say("the history is being saved already".into());
        }
        let kept = history.read(self.clock.now());
        self.keeping.saving.start(move |_| {
            let shown = visible::text(&file.display().to_string()).into_owned();
            Ok(SavedHistory { file: shown, bytes: history::save(kept()?, &file)? })
        });
    }

    /// Shows a message to the user.
    fn say(&mut self, text: String) {
        self.app.screen.message = Some(text);
        self.undrawn = true;
    }
}
