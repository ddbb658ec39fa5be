//! A row about something at a time, as plans and operations have them.

use ratatui::style::Style;

use super::plain;
use crate::ui::widgets::{Cell, Column, Width};

/// ```text
/// ────────────────────────────────────────────────────────────────────────────
///      ~9s  shop/web-x2x     later    leaves after 1 recovery of shop/web
/// ```
/// The cells of one row.
#[derive(Default)]
pub struct EventRow {
    /// When it happens, or how long it has lasted.
    pub when: Cell,
    pub subject: Cell,
    /// One word about the subject.
    pub state: Cell,
    /// The rest, as far as there is room.
    pub text: Cell,
}

/// The width of the first column.
const WHEN: u16 = 9;

impl EventRow {
    /// The columns of the table; `state` is the width of its longest word.
    pub fn columns(state: u16) -> Vec<Column> {
        vec![
            plain("", Width::Fixed(WHEN)),
            plain("", Width::Fit(14, 44)),
            plain("", Width::Fit(7, state)),
            plain("", Width::Grow(20, 1)),
        ]
    }

    pub fn cells(self) -> Vec<Cell> {
        vec![self.when, self.subject, self.state, self.text]
    }
}

/// The words of the first column, to the right.
pub fn when(words: &str, style: Style) -> Cell {
    Cell::new(&format!("{words:>width$}", width = usize::from(WHEN)), style)
}
