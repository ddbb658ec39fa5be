//! The parts of the screen that can be clicked, as they were last drawn.

use ratatui::layout::Rect;

use super::pane::Pane;

/// A part of the screen that can be clicked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MouseTarget {
    pub area: Rect,
    pub part: ScreenPart,
}

/// What a part of the screen shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScreenPart {
    Pane(Pane),
    /// The title of a tab.
    Tab(Pane),
    /// Rows of a list, one a line, from the row with this index.
    Rows {
        pane: Pane,
        first: usize,
    },
}
