//! The mouse: a click focuses a pane or tab and selects a row, a double click opens the row, the wheel moves through the
//! rows under the pointer. Nothing is confirmed by a click: questions take keys only.

use ratatui::layout::Position;

use super::{App, commands::UserAction, listing::Movement, screen_part::ScreenPart, update::update};
use kordon_time::{Span, Timestamp};

/// Number of rows by which one notch of the wheel moves.
const NOTCH: usize = 3;

/// Maximum time between the clicks of a double click.
const DOUBLE: Span = Span::from_millis(500);

impl App {
    /// Reacts to a click of the left button: the second of two clicks at the same place opens the row there.
    pub fn on_click(&mut self, at: Position, now: Timestamp) {
        let Some((part, line)) = self.part_at(at) else { return };
        let (pane, row) = match part {
            ScreenPart::Tab(pane) | ScreenPart::Pane(pane) => (pane, None),
            ScreenPart::Rows { pane, first } => (pane, Some(first + line)),
        };
        let before = self.screen.last_click.replace((at, now));
        let is_second = before.is_some_and(|(place, then)| place == at && now.since(then) <= DOUBLE);
        if is_second && row.is_some() && self.screen.focus == pane {
            self.screen.last_click = None;
            update(self, UserAction::Enter, now);
            return;
        }
        self.screen.message = None;
        self.screen.focus_on(pane);
        self.screen.before_key(now);
        if let Some(row) = row {
            self.screen.select_row(pane, row);
        }
        self.screen.after_key();
    }

    /// Reacts to one notch of the wheel.
    pub fn on_wheel(&mut self, at: Position, movement: Movement, now: Timestamp) {
        if let Some((ScreenPart::Rows { pane, .. }, _)) = self.part_at(at) {
            self.screen.focus_on(pane);
        }
        for _ in 0..NOTCH {
            update(self, UserAction::Move(movement), now);
        }
    }

    /// The part at a position, and the line within the part; `None` while an overlay covers the panes.
    fn part_at(&self, at: Position) -> Option<(ScreenPart, usize)> {
        if self.screen.overlays.top().is_some_and(|overlay| overlay.pane().is_none()) {
            return None;
        }
        // Parts that were drawn later are on top.
        let target = self.screen.targets.iter().rev().find(|target| target.area.contains(at))?;
        Some((target.part, usize::from(at.y - target.area.y)))
    }
}
