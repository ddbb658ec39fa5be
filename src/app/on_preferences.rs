//! Applies the preferences of a configuration that changed while the dashboard runs.

use super::{App, Preferences};
use kordon_core::engine::Severity;
use kordon_time::Timestamp;

impl App {
    /// Applies preferences that were read again. If they could not be read, reports why and keeps the preferences in
    /// force. New preferences can forbid writing, but cannot allow it again.
    pub fn on_preferences(&mut self, read: Result<Preferences, String>, now: Timestamp) {
        let text = match read {
            Ok(preferences) => self.apply(preferences, now),
            Err(why) => {
                let text = format!("{why}; the configuration in force stays as it was");
                self.log(now, Severity::Warning, "config", &text);
                text
            }
        };
        self.screen.message = Some(text);
        self.arrange(now);
    }

    /// Applies preferences. Returns a message about them.
    fn apply(&mut self, preferences: Preferences, now: Timestamp) -> String {
        let themed = match preferences
            .theme
            .as_ref()
            .filter(|theme| Some(*theme) != self.preferences.theme.as_ref())
        {
            // The theme `auto` takes effect at the next start, because kordon asks the terminal for its theme only
            // then.
            Some(theme) if theme == "auto" => Ok(()),
            Some(theme) => self.screen.use_theme(theme),
            None => Ok(()),
        };
        let read_only = self.tighten(preferences.read_only.clone(), now);
        if preferences.layout != self.preferences.layout {
            self.screen.layout = preferences.layout.clone();
        }
        self.preferences = preferences;
        let notes = themed.err().into_iter().chain(read_only);
        let notes: Vec<String> = notes.collect();
        // If the file changed because something was kept in it, the message about that stays.
        let kept = self.kept.take().filter(|kept| self.screen.message.as_ref() == Some(kept));
        match (notes.is_empty(), kept) {
            (true, Some(kept)) => kept,
            (true, None) => "the configuration was read again".into(),
            (false, _) => notes.join("; "),
        }
    }
}
