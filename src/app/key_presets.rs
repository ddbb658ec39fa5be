//! Presets of keys: kordon's own, and those for users of k9s or vim.

use crossterm::event::KeyCode;
use schemars::JsonSchema;
use serde::Deserialize;

use super::chord::Chord;

/// A preset of keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum KeyPreset {
    #[default]
    Default,
    K9s,
    Vim,
}

/// Commands to which the preset gives other keys than the command table does.
type Changes = &'static [(&'static str, &'static [Chord])];

/// Changes for both k9s and vim. Capital letters sort by a column, so commands on those letters have other keys.
const SHARED: Changes = &[
    ("last", &[Chord::letter('G'), Chord::key(KeyCode::End)]),
    ("next-grouping", &[Chord::letter('b')]),
    ("mark-all", &[Chord::letter('*')]),
    ("sort-direction", &[Chord::ctrl('s')]),
    ("next-theme", &[Chord::ctrl('t')]),
    ("resume", &[Chord::ctrl('p')]),
];

const K9S: Changes = &[
    ("previous-place", &[Chord::letter('['), Chord::letter('-'), Chord::ctrl('o')]),
    ("next-place", &[Chord::letter(']')]),
    ("previous-moment", &[Chord::letter('(')]),
    ("next-moment", &[Chord::letter(')')]),
    ("palette", &[Chord::letter(':'), Chord::ctrl('a')]),
    ("mark-range", &[Chord::ctrl(' '), Chord::letter('v')]),
    ("wide", &[Chord::letter('w'), Chord::ctrl('w')]),
    ("delete", &[Chord::key(KeyCode::Delete), Chord::ctrl('k')]),
    ("redraw", &[Chord::ctrl('l'), Chord::ctrl('r')]),
    ("namespace", &[Chord::letter('0')]),
    ("start", &[Chord::letter('^')]),
    ("export", &[Chord::ctrl('s')]),
    ("sort-direction", &[Chord::ctrl('x')]),
];

const VIM: Changes = &[("mark-range", &[Chord::letter('v'), Chord::letter('V')])];

impl KeyPreset {
    pub const ALL: &[Self] = &[Self::Default, Self::K9s, Self::Vim];

    /// Name of the preset in the configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::K9s => "k9s",
            Self::Vim => "vim",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|preset| preset.as_str() == text)
    }

    /// Keys of a command that differ from the command table.
    pub(super) fn keys(self, command: &str) -> Option<&'static [Chord]> {
        let changes: [Changes; 2] = match self {
            Self::Default => [&[], &[]],
            Self::K9s => [K9S, SHARED],
            Self::Vim => [VIM, SHARED],
        };
        let found = changes.into_iter().flatten().find(|(name, _)| *name == command);
        found.map(|(_, keys)| *keys)
    }

    /// Whether capital letters sort by a column.
    pub(super) const fn sorts_by_letter(self) -> bool {
        !matches!(self, Self::Default)
    }

    /// Whether digits before a move repeat it, as in `5j`.
    pub(super) const fn has_counts(self) -> bool {
        !matches!(self, Self::Default)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::commands::COMMANDS;

    #[test]
    fn one_key_goes_back_in_every_preset() {
        let back = COMMANDS.iter().find(|command| command.name == "previous-place").expect("a command");
        for preset in KeyPreset::ALL {
            let keys = preset.keys(back.name).unwrap_or(back.keys);
            assert!(keys.contains(&Chord::ctrl('o')), "{preset:?}");
        }
    }

    #[test]
    fn presets_change_commands_that_exist() {
        for (name, _) in [SHARED, K9S, VIM].into_iter().flatten() {
            assert!(COMMANDS.iter().any(|command| command.name == *name), "{name}");
        }
    }
}
