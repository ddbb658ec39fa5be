//! The mouse: a click focuses a pane or tab, selects a row or the node of a cell, or sorts by a heading. A double click
//! opens the row. A click on a command of the palette types its name. A border between panes can be dragged. The wheel
//! moves through the rows under the pointer, and leaves the focus where it is. A click never confirms anything:
//! questions take keys only.

use ratatui::layout::Position;

use super::{
    App, Pane,
    commands::UserAction,
    groups::NodeRow,
    listing::{ListUse, Movement},
    overlays::Overlay,
    screen_part::{MouseTarget, ScreenPart},
    update::update,
};
use kordon_time::{Span, Timestamp};

/// Number of rows by which one notch of the wheel moves.
const NOTCH: usize = 3;

/// Maximum time between the clicks of a double click.
const DOUBLE: Span = Span::from_millis(500);

impl App {
    /// Reacts to a click of the left button at the time `clicked`: it focuses a pane or tab, selects a row, sorts by a
    /// heading, or selects the node of a cell. The second of two clicks at the same place opens the row there.
    pub fn on_click(&mut self, at: Position, clicked: Timestamp, now: Timestamp) {
        let Some(MouseTarget { area, part }) = self.target_at(at) else { return };
        let before = self.screen.last_click.replace((at, clicked));
        let is_second = before.is_some_and(|(place, then)| place == at && clicked.since(then) <= DOUBLE);
        if let ScreenPart::Rows { pane, .. } = part
            && is_second
            && self.screen.focus == pane
        {
            self.screen.last_click = None;
            update(self, UserAction::Enter, now);
            return;
        }
        self.screen.message = None;
        if let ScreenPart::Proposals { first } = part {
            let palette = self.screen.overlays.palette_mut();
            palette.into_iter().for_each(|palette| palette.take(first + usize::from(at.y - area.y)));
            return;
        }
        self.screen.record_place();
        self.screen.before_key(now);
        match part {
            ScreenPart::Tab(pane) | ScreenPart::Pane(pane) => self.screen.focus_on(pane),
            ScreenPart::Rows { pane, first } => {
                self.screen.focus_on(pane);
                self.screen.select_row(pane, first + usize::from(at.y - area.y));
            }
            ScreenPart::Proposals { .. } => {}
            ScreenPart::Border(index) => {
                self.screen.dragged = Some(index);
                self.pane_at(at).into_iter().for_each(|pane| self.screen.focus_on(pane));
            }
            ScreenPart::Heading { pane, column } => {
                self.screen.focus_on(pane);
                let sorted = self.screen.sort_mut(pane).map_or(Ok(()), |sort| sort.by(column));
                self.screen.message = sorted.err();
                self.arrange(now);
            }
            ScreenPart::NodeCells { first, nodes_a_cell, indent } => {
                let cell = usize::from((at.x - area.x).saturating_sub(indent));
                self.select_node_at(first + cell * nodes_a_cell, nodes_a_cell, now);
            }
        }
        self.screen.record_place();
        self.screen.after_key();
    }

    /// Reacts to the mouse being moved with its left button down: a border that was clicked moves with the mouse.
    pub fn on_drag(&mut self, at: Position) {
        if let Some(index) = self.screen.dragged {
            self.screen.drag_border(index, at);
            self.say_how_to_keep_layout();
        }
    }

    /// Reacts to the release of the left button.
    pub const fn on_release(&mut self) {
        self.screen.dragged = None;
    }

    /// Reacts to one notch of the wheel: the rows of the pane under the pointer move. The focus stays where it is.
    pub fn on_wheel(&mut self, at: Position, movement: Movement, now: Timestamp) {
        let under = self.target_at(at).and_then(|target| match target.part {
            ScreenPart::Pane(pane) | ScreenPart::Heading { pane, .. } | ScreenPart::Rows { pane, .. } => {
                Some(pane)
            }
            // The cells of the strip are in no pane.
            ScreenPart::NodeCells { .. } => self.pane_at(at),
            ScreenPart::Tab(_) | ScreenPart::Border(_) | ScreenPart::Proposals { .. } => None,
        });
        let Some(pane) = under.filter(|pane| *pane != self.screen.focus) else {
            for _ in 0..NOTCH {
                update(self, UserAction::Move(movement), now);
            }
            return;
        };
        self.screen.on_list_use(pane, ListUse::Key);
        for _ in 0..NOTCH {
            self.screen.step_in(pane, movement);
        }
        self.arrange(now);
        self.screen.after_key();
    }

    /// The part of the screen at a position; `None` while an overlay covers the panes, except for the commands of the
    /// palette.
    fn target_at(&self, at: Position) -> Option<MouseTarget> {
        let top = self.screen.overlays.top();
        let covers = top.is_some_and(|overlay| overlay.pane().is_none());
        let is_palette = matches!(top, Some(Overlay::Palette(_)));
        let is_reachable = |part: &ScreenPart| match part {
            ScreenPart::Proposals { .. } => is_palette,
            _ => !covers,
        };
        // Parts of the screen that were drawn later are on top.
        let mut targets = self.screen.targets.iter().rev();
        targets.find(|target| target.area.contains(at) && is_reachable(&target.part)).copied()
    }

    /// The pane whose area a position is in.
    fn pane_at(&self, at: Position) -> Option<Pane> {
        let mut targets = self.screen.targets.iter().rev().filter(|target| target.area.contains(at));
        targets.find_map(|target| match target.part {
            ScreenPart::Pane(pane) => Some(pane),
            _ => None,
        })
    }

    /// Selects the node with the most urgent state among the nodes that a clicked cell stands for.
    fn select_node_at(&mut self, first: usize, count: usize, now: Timestamp) {
        let Some(node) = self.shown().watchlist.worst_from(first, count).cloned() else { return };
        self.screen.leave_node();
        self.screen.overlays.close_views();
        self.screen.focus_on(Pane::Nodes);
        self.arrange(now);
        let row = NodeRow::Node(node);
        if self.screen.nodes.list.keys().contains(&row) {
            self.screen.nodes.list.select(&row);
        } else if let NodeRow::Node(node) = row {
            self.screen.message = Some(format!("{node} is in a folded group, or does not pass the filter"));
        }
    }
}
