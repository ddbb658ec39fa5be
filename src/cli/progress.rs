//! Progress of a long computation, on a terminal.

use std::{
    cell::Cell,
    io::{IsTerminal as _, Write as _, stderr},
};

use kordon_clock::Clock;
use kordon_time::{Span, Timestamp};

/// Time between two changes of the line.
const EVERY: Span = Span::from_millis(500);

/// A line on standard error that shows the progress of a computation, if standard error is a terminal. Dropping this
/// value erases the line.
pub struct ProgressLine {
    clock: Clock,
    is_on_terminal: bool,
    changed: Cell<Timestamp>,
    has_text: Cell<bool>,
}

impl ProgressLine {
    pub fn new() -> Self {
        let clock = Clock::system();
        let changed = Cell::new(clock.now());
        Self { clock, is_on_terminal: stderr().is_terminal(), changed, has_text: Cell::new(false) }
    }

    /// Shows a text, unless the line has just changed.
    pub fn show(&self, text: impl FnOnce() -> String) {
        if self.is_on_terminal && self.clock.now() >= self.changed.get() + EVERY {
            let _ = write!(stderr(), "\r{} \x1b[K", text());
            self.changed.set(self.clock.now());
            self.has_text.set(true);
        }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if self.has_text.get() {
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }
}
