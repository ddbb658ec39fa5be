//! The list of themes, while one is chosen.

use tui_input::{Input, InputRequest};

/// The list of themes. The theme under the cursor is shown at once.
#[derive(Clone, Debug)]
pub struct ThemeChooser {
    /// Typed letters. Only themes whose names contain them are listed.
    pub input: Input,
    /// Names of all themes of this terminal.
    names: Vec<String>,
    /// Indices into `names` of the names that contain the typed letters.
    found: Vec<usize>,
    /// Index into `found` of the chosen name.
    cursor: usize,
    /// Index of the theme that was active before the list was opened.
    before: usize,
}

impl ThemeChooser {
    /// Returns the list of themes with the cursor on the theme with index `before`.
    pub(super) fn new(names: Vec<String>, before: usize) -> Self {
        let found = (0..names.len()).collect();
        Self { input: Input::default(), names, found, cursor: before, before }
    }

    /// Names that contain the typed letters.
    pub fn found(&self) -> impl ExactSizeIterator<Item = &str> {
        self.found.iter().map(|place| &*self.names[*place])
    }

    pub const fn cursor(&self) -> usize {
        self.cursor
    }

    /// Index of the theme that was active before the list was opened. It is shown again if no theme is chosen.
    pub(super) const fn before(&self) -> usize {
        self.before
    }

    /// Index of the theme under the cursor. While no theme is listed, index of the theme that was active before the
    /// list was opened.
    pub(super) fn shown(&self) -> usize {
        self.found.get(self.cursor).copied().unwrap_or(self.before)
    }

    pub(super) fn edit(&mut self, request: InputRequest) {
        let shown = self.shown();
        self.input.handle(request);
        let letters = self.input.value().to_lowercase();
        let matches = |place: &usize| self.names[*place].to_lowercase().contains(&letters);
        self.found = (0..self.names.len()).filter(matches).collect();
        self.cursor = self.found.iter().position(|place| *place == shown).unwrap_or(0);
    }

    /// Moves the cursor by this many places, and wraps around at the ends.
    pub(super) fn choose(&mut self, by: isize) {
        let count = self.found.len().max(1);
        self.cursor = self.cursor.wrapping_add_signed(by).wrapping_add(count) % count;
    }
}
