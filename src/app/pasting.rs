//! Pasted text: it is inserted into an open text input, and never runs anything.

use tui_input::InputRequest;

use super::{
    App,
    pane::{InputTarget, KeyFocus},
};
use kordon_time::Timestamp;

/// Maximum number of characters that are inserted.
const MOST_PASTED: usize = 4_096;

impl App {
    /// Inserts pasted text where something is typed; line breaks and other control characters become spaces. A question
    /// ignores pasted text.
    pub fn on_paste(&mut self, text: &str, now: Timestamp) {
        self.screen.message = None;
        self.screen.before_key(now);
        match self.screen.key_focus() {
            KeyFocus::Input(InputTarget::Answer) => {
                self.screen.message = Some("answers are typed: what was pasted was left out".into());
            }
            KeyFocus::Input(_) => {
                let letters = text.trim_end().chars().take(MOST_PASTED);
                let plain = letters.map(|letter| if letter.is_control() { ' ' } else { letter });
                self.screen.edit_all(plain.map(InputRequest::InsertChar));
                self.arrange(now);
            }
            KeyFocus::Pane(_) | KeyFocus::Maintenance | KeyFocus::Tour => {
                let text = "what was pasted was left out: paste after / (filter) or : (command)";
                self.screen.message = Some(text.into());
            }
        }
        self.screen.after_key();
    }
}
