//! Applies the preferences of a configuration that changed while the dashboard runs.

use super::{Aliases, App, Preferences};
use kordon_core::engine::Severity;
use kordon_time::Timestamp;

impl App {
    /// Applies preferences that were read again, or reports why they could not be read; those in force then stay.
    /// Writing can be forbidden that way, but not allowed again.
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

    /// Applies preferences. Returns what to say of it.
    fn apply(&mut self, preferences: Preferences, now: Timestamp) -> String {
        let Preferences { theme, keymap, aliases, columns, views, mark, read_only } = preferences;
        let themed = match theme.filter(|_| theme != self.preferred_theme) {
            Some(theme) => self.screen.use_theme(theme.as_str()),
            None => Ok(()),
        };
        self.preferred_theme = theme;
        self.keymap = keymap;
        self.aliases = Aliases::new(aliases);
        (self.columns, self.views, self.mark) = (columns, views, mark);
        let read_only = self.tighten(read_only, now);
        let notes = themed.err().into_iter().chain(read_only);
        let notes: Vec<String> = notes.collect();
        if notes.is_empty() { "the configuration was read again".into() } else { notes.join("; ") }
    }
}
