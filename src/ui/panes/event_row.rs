//! A row with the time, subject and state of an event, for plans and operations.

use ratatui::style::Style;

use crate::ui::widgets::{Cell, Column, Width};

/// ```text
/// ────────────────────────────────────────────────────────────────────────────
///      ~9s  shop/web-x2x     later    leaves after shop/web regains 1 healthy pod
/// ```
/// Cells of a row.
#[derive(Default)]
pub struct EventRow {
    /// Time of the event, or how long the state has lasted.
    pub when: Cell,
    pub subject: Cell,
    /// State of the subject in one word.
    pub state: Cell,
    /// Further text, cut to the space left.
    pub text: Cell,
}

/// Width of the first column.
const WHEN: u16 = 9;

impl EventRow {
    /// Columns of the table; `state` is the width of the longest state.
    pub fn columns(state: u16) -> Vec<Column> {
        vec![
            Column::plain("", Width::Fixed(WHEN)),
            Column::plain("", Width::Fit(14, 44)),
            Column::plain("", Width::Fit(7, state)),
            Column::plain("", Width::Grow(20, 1)),
        ]
    }

    pub fn cells(self) -> Vec<Cell> {
        vec![self.when, self.subject, self.state, self.text]
    }
}

/// Cell of the first column, aligned to the right.
pub fn when(words: &str, style: Style) -> Cell {
    Cell::new(&format!("{words:>width$}", width = usize::from(WHEN)), style)
}
