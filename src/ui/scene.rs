//! Inputs that all panes are drawn from.

use std::cell::RefCell;

use ratatui::{
    layout::Rect,
    style::{Modifier, Style},
};

use super::{
    layout::Slot,
    shown_rows::ShownRows,
    text,
    theme::{Role, Theme},
    widgets::{Cell, Column, TableWidget, Urgency, table::Looks},
};
use crate::{
    app::{
        App, Mode, Pane, Screen,
        screen_part::{MouseTarget, ScreenPart},
    },
    model::{ClusterVerdict, Model},
};
use kordon_core::engine::Confidence;
use kordon_time::{ClusterTime, Span, Timestamp};

/// Time left below which a countdown is bold.
const IMMINENT: Span = Span::from_secs(10);

/// State, theme and time of one frame.
#[derive(Clone, Copy, Debug)]
pub struct Scene<'a> {
    pub app: &'a App,
    pub screen: &'a Screen,
    /// The shown model: the present one, or the one that the user has frozen.
    pub shown: &'a Model,
    /// Time of the shown model.
    pub now: Timestamp,
    /// Present time, even if an earlier moment is shown.
    pub present: Timestamp,
    pub verdict: &'a ClusterVerdict,
    /// Styles of the theme, by role.
    pub styles: &'a [Style],
    /// Whether panes have full frames instead of only a rule above them.
    pub framed: bool,
    /// Areas of the panes, each for one pane or for several as tabs.
    pub slots: &'a [Slot],
    /// Parts drawn so far that can be clicked.
    pub targets: &'a RefCell<Vec<MouseTarget>>,
    /// The pane whose rows are recorded as text, and where the text is stored.
    pub recorder: Option<(Pane, &'a RefCell<ShownRows>)>,
}

impl<'a> Scene<'a> {
    /// Time since a moment on the cluster's clock, measured by the clock of this machine.
    pub fn age(&self, of: ClusterTime) -> String {
        text::age(self.now, self.shown.cluster.local(of))
    }

    /// Records the rows of a pane's table, if this pane is to be recorded.
    pub fn record(&self, pane: Pane, table: &TableWidget, mut row: impl FnMut(usize) -> Vec<Cell>) {
        let Some((_, rows)) = self.recorder.filter(|(wanted, _)| *wanted == pane) else { return };
        // Two columns may have the same heading, and some have none. Their names differ.
        let head = |column: &Column| match column.name {
            "" => column.title.trim().to_owned(),
            name => name.to_owned(),
        };
        let heads: Vec<String> = table.columns.iter().map(head).collect();
        *rows.borrow_mut() = ShownRows {
            heads: if heads.iter().any(|head| !head.is_empty()) { heads } else { Vec::new() },
            rows: (0..table.rows).map(|place| row(place).iter().map(Cell::text).collect()).collect(),
            selected: table.selected,
        };
    }

    /// Records that a part of the screen can be clicked.
    pub fn can_click(&self, area: Rect, part: ScreenPart) {
        self.targets.borrow_mut().push(MouseTarget { area, part });
    }

    pub fn new(
        app: &'a App,
        verdict: &'a ClusterVerdict,
        targets: &'a RefCell<Vec<MouseTarget>>,
        now: Timestamp,
    ) -> Self {
        Self {
            app,
            screen: &app.screen,
            shown: app.shown(),
            now: app.shown_at(now),
            present: app.model_time(now),
            verdict,
            styles: Theme::styles_of(app.screen.theme()),
            framed: true,
            slots: &[],
            targets,
            recorder: None,
        }
    }

    /// Width of a pane; 0 if it is not shown.
    pub fn width(&self, pane: Pane) -> u16 {
        let slot = self.slots.iter().find(|slot| slot.active == pane);
        slot.map_or(0, |slot| slot.area.width)
    }

    pub fn style(&self, role: Role) -> Style {
        self.styles[role as usize]
    }

    /// Theme role of frames, which have another colour in enforce mode.
    pub fn border(&self, focused: bool) -> Role {
        match (self.app.operations.mode, focused) {
            // The history is read-only, so its frames look the same in every mode.
            (_, true) if self.app.is_in_history() => Role::BorderFocus,
            (_, false) if self.app.is_in_history() => Role::Border,
            (Mode::Enforce, true) => Role::BorderFocusEnforce,
            (Mode::Enforce, false) => Role::BorderEnforce,
            (Mode::DryRun | Mode::ReadOnly | Mode::Replay, true) => Role::BorderFocus,
            (Mode::DryRun | Mode::ReadOnly | Mode::Replay, false) => Role::Border,
        }
    }

    /// Styles of a pane's table.
    pub fn looks(&self, pane: Pane) -> Looks {
        let focused = self.screen.focus == pane;
        Looks {
            heading: self.style(Role::Heading),
            sorted: self.style(Role::HeadingSorted),
            selected: self.style(if focused { Role::Selected } else { Role::SelectedUnfocused }),
            thumb: self.style(self.border(focused)),
        }
    }

    /// Time left, coloured by urgency, with `~` before an estimate. The text is dim if predictions cannot be trusted.
    pub fn countdown(&self, at: Timestamp, estimated: bool) -> Cell {
        let firm = self.shown.views.confidence.is_none_or(Confidence::allows_predictions);
        let style = self.style(match Urgency::new(at, self.now) {
            _ if !firm => Role::Dim,
            Urgency::Far => Role::CountdownFar,
            Urgency::Soon => Role::CountdownSoon,
            Urgency::Near => Role::CountdownNear,
        });
        let is_imminent = firm && at.since(self.now) < IMMINENT;
        let style = if is_imminent { style.add_modifier(Modifier::BOLD) } else { style };
        let mark = if estimated { "~" } else { "" };
        Cell::new(mark, self.style(Role::Dim)).and(&text::left(at, self.now), style)
    }
}
