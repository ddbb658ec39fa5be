//! State of the session's history, as the screen shows it.

use super::App;
use kordon_time::Timestamp;

/// Message if the user tries to write while the history is shown.
pub const PAST: &str = "history: nothing can be written to the past; f returns to the present";

/// State of the history that the session keeps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum HistoryState {
    /// No history: there is no session, or it keeps no history.
    #[default]
    None,
    /// No history yet: it begins when the lists of all objects are complete.
    Loading,
    Kept {
        /// Start of the history.
        from: Timestamp,
        /// Size of the history on disk, in bytes.
        bytes: u64,
        /// Maximum size of the history on disk, in bytes.
        limit: u64,
    },
    /// No history, with the reason.
    Off(String),
}

impl App {
    /// Why the screen cannot go back to an earlier moment now; `None` if it can go back.
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

    /// Asks the event loop to save the history to a file.
    ///
    /// # Errors
    /// There is no history, it has not begun, or no file was named.
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
