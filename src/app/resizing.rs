//! Resizes and moves panes by keys and the mouse.

use ratatui::layout::Position;

use super::{
    App, Screen,
    commands::UserAction,
    pane_layout::{PaneMove, PanePlace, PaneSide, PaneSize},
};

/// Number of lines or cells by which a key moves a border.
const STEP: (i16, i16) = (2, 5);

impl Screen {
    /// Makes the focused pane larger or smaller.
    ///
    /// # Errors
    /// The pane has no border that can be moved that way; the text says so.
    pub(super) fn resize(&mut self, side: PaneSide, size: PaneSize) -> Result<(), String> {
        let Some((border, is_behind)) = self.drawn_layout.border_of(self.focus, side) else {
            return Err("this pane has no border to move that way here".into());
        };
        let step = if side == PaneSide::Height { STEP.0 } else { STEP.1 };
        let grows = size == PaneSize::Larger;
        let step = if grows == is_behind { step } else { -step };
        match self.layout.move_border(border, border.at.saturating_add_signed(step)) {
            true => Ok(()),
            false => Err("the border cannot be moved further that way".into()),
        }
    }

    /// Whether the focused pane can be resized in this direction.
    pub(super) fn can_resize(&self, side: PaneSide) -> bool {
        self.drawn_layout.border_of(self.focus, side).is_some()
    }

    /// Moves a border to the position of the mouse.
    pub(super) fn drag_border(&mut self, index: usize, at: Position) {
        if let Some(border) = self.drawn_layout.borders.get(index) {
            let wanted = if border.is_horizontal() { at.y } else { at.x };
            self.layout.move_border(border, wanted);
        }
    }

    /// The place to which the focused pane moves in this direction; `None` if there is no further place in this
    /// direction.
    pub(super) fn next_pane_place(&self, to: PaneMove) -> Option<PanePlace> {
        let places = &self.drawn_layout.places;
        let place = self.layout.place(self.focus)?;
        // On a narrow screen the middle and the right column are one place.
        let present = places.iter().rposition(|known| *known <= place)?;
        let next = match to {
            PaneMove::Back => present.checked_sub(1)?,
            PaneMove::On => present + 1,
        };
        places.get(next).copied()
    }
}

impl App {
    /// Makes the focused pane larger or smaller, and says how to keep the new layout.
    pub(super) fn resize_pane(&mut self, side: PaneSide, size: PaneSize) {
        match self.screen.resize(side, size) {
            Ok(()) => self.say_how_to_keep_layout(),
            Err(why) => self.screen.message = Some(why),
        }
    }

    /// Moves the focused pane to its next place, and says how to keep the new layout.
    pub(super) fn move_pane(&mut self, to: PaneMove) {
        let focus = self.screen.focus;
        match self.screen.next_pane_place(to) {
            Some(place) => {
                self.screen.layout.move_to(focus, place);
                self.say_how_to_keep_layout();
            }
            None if self.screen.layout.place(focus).is_none() => {
                self.screen.message = Some("the pane in the middle stays there".into());
            }
            None if self.screen.drawn_layout.places.is_empty() => {
                self.screen.message =
                    Some("here all panes are tabs: on a larger screen they can be moved".into());
            }
            None => self.screen.message = Some("this pane is at the edge already".into()),
        }
    }

    /// Goes back to the layout of the configuration.
    pub(super) fn reset_layout(&mut self) {
        self.screen.layout = self.preferences.layout.clone();
    }

    pub(super) fn say_how_to_keep_layout(&mut self) {
        let reset = self.preferences.keymap.key_for(UserAction::ResetLayout);
        self.screen.message = Some(format!("{reset} resets the panes; :save-layout keeps them"));
    }

    /// Whether the layout differs from that of the configuration.
    pub(super) fn has_own_layout(&self) -> bool {
        self.screen.layout != self.preferences.layout
    }
}
