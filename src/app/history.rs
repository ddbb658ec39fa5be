//! What is kept of the session to look back at, as the screen tells it.

use super::App;
use kordon_time::Timestamp;

/// Why nothing is written while the history is shown.
pub const PAST: &str = "history: nothing can be written to the past; f returns to the present";

/// What is kept of the session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum HistoryState {
    /// Nothing: there is no session, or nobody keeps it.
    #[default]
    None,
    /// Nothing yet: it begins when all lists are complete.
    Loading,
    Kept {
        /// When it begins.
        from: Timestamp,
        /// Its size on disk.
        bytes: u64,
        /// The most that it may become.
        limit: u64,
    },
    /// Nothing, and why.
    Off(String),
}

impl App {
    /// Why the screen cannot go back to an earlier moment now; none if it can.
    pub fn why_no_history(&self) -> Option<String> {
        match &self.history {
            HistoryState::None => Some("nothing is played: kordon replay FILE plays a recording".into()),
            HistoryState::Off(why) => Some(format!("no history: {why}")),
            HistoryState::Loading => Some("the history begins when all lists are complete".into()),
            HistoryState::Kept { .. } if !self.is_frozen() => {
                Some("f freezes the screen; then ← goes back in the history".into())
            }
            HistoryState::Kept { .. } => None,
        }
    }

    /// Wants the history to be saved; the loop does it.
    ///
    /// # Errors
    /// There is none, or no file was named.
    pub(super) fn save_history(&mut self, file: &str) -> Result<(), String> {
        match &self.history {
            HistoryState::Kept { .. } if file.is_empty() => {
                Err("name a file that does not exist: save FILE".into())
            }
            HistoryState::Kept { .. } => {
                self.save_to = Some(file.into());
                self.screen.message = Some(format!("saving the history to {file}"));
                Ok(())
            }
            HistoryState::None => Err("no history: this is a recording already".into()),
            HistoryState::Off(why) => Err(format!("no history: {why}")),
            HistoryState::Loading => Err("the history begins when all lists are complete".into()),
        }
    }
}
