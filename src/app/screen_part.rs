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
    /// A border between panes, by its index in the layout that was drawn.
    Border(usize),
    /// The heading of a column that the list can be sorted by. `column` is the title of the column.
    Heading {
        pane: Pane,
        column: &'static str,
    },
    /// A line of cells that stand for nodes, in the order of the zones. The first cell is `indent` columns from the
    /// left; it stands for `nodes_a_cell` nodes from the index `first` on.
    NodeCells {
        first: usize,
        nodes_a_cell: usize,
        indent: u16,
    },
    /// Commands of the palette, one per line, from the command with this index on.
    Proposals {
        first: usize,
    },
    /// Rows of a list, one per line, from the row with this index on.
    Rows {
        pane: Pane,
        first: usize,
    },
}
