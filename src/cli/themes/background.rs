//! Whether the terminal's background is light.

use std::{
    io::{self, IsTerminal},
    time::Duration,
};

use terminal_colorsaurus::{QueryOptions, ThemeMode, theme_mode};

/// How long the terminal has to answer. A terminal answers at once, but the way to it may be long (SSH).
const LIMIT: Duration = Duration::from_millis(500);

/// Asks the terminal for its colours (OSC 10 and 11). Returns `false` if it does not answer in time, or if there is
/// none.
pub fn is_light() -> bool {
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return false;
    }
    let mut options = QueryOptions::default();
    options.timeout = LIMIT;
    matches!(theme_mode(options), Ok(ThemeMode::Light))
}
