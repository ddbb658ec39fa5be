//! A key with its modifiers: read from the terminal, written in the help, parsed from the configuration.

use std::{fmt, str::FromStr};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// A key, optionally with Ctrl or Alt. Shift is part of the letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chord {
    pub code: KeyCode,
    pub ctrl: bool,
    pub alt: bool,
}

impl Chord {
    pub const fn key(code: KeyCode) -> Self {
        Self { code, ctrl: false, alt: false }
    }

    pub const fn letter(letter: char) -> Self {
        Self::key(KeyCode::Char(letter))
    }

    pub const fn ctrl(letter: char) -> Self {
        Self { ctrl: true, ..Self::letter(letter) }
    }

    pub const fn ctrl_key(code: KeyCode) -> Self {
        Self { ctrl: true, ..Self::key(code) }
    }

    pub const fn alt(code: KeyCode) -> Self {
        Self { alt: true, ..Self::key(code) }
    }

    /// Character that the key types; `None` for keys that type no character, and with Ctrl or Alt.
    pub const fn typed(self) -> Option<char> {
        match self {
            Self { code: KeyCode::Char(letter), ctrl: false, alt: false } => Some(letter),
            _ => None,
        }
    }
}

impl From<KeyEvent> for Chord {
    fn from(event: KeyEvent) -> Self {
        let has = |modifier| event.modifiers.contains(modifier);
        let code = match event.code {
            // Some terminals report Shift-Tab as Tab with Shift, others as a key of its own.
            KeyCode::Tab if has(KeyModifiers::SHIFT) => KeyCode::BackTab,
            code => code,
        };
        Self { code, ctrl: has(KeyModifiers::CONTROL), alt: has(KeyModifiers::ALT) }
    }
}

impl From<Chord> for KeyEvent {
    fn from(chord: Chord) -> Self {
        let mut modifiers = KeyModifiers::NONE;
        modifiers.set(KeyModifiers::CONTROL, chord.ctrl);
        modifiers.set(KeyModifiers::ALT, chord.alt);
        Self::new(chord.code, modifiers)
    }
}

/// Names of keys that are not characters. The help uses these names, and the configuration may use them.
const NAMES: &[(KeyCode, &str, &[&str])] = &[
    (KeyCode::Char(' '), "Space", &["space"]),
    (KeyCode::Up, "↑", &["up"]),
    (KeyCode::Down, "↓", &["down"]),
    (KeyCode::Left, "←", &["left"]),
    (KeyCode::Right, "→", &["right"]),
    (KeyCode::PageUp, "PgUp", &["pgup", "pageup"]),
    (KeyCode::PageDown, "PgDn", &["pgdn", "pagedown"]),
    (KeyCode::Home, "Home", &["home"]),
    (KeyCode::End, "End", &["end"]),
    (KeyCode::Insert, "Ins", &["ins", "insert"]),
    (KeyCode::Delete, "Del", &["del", "delete"]),
    (KeyCode::Backspace, "Backspace", &["backspace"]),
    (KeyCode::Enter, "Enter", &["enter", "return"]),
    (KeyCode::Esc, "Esc", &["esc", "escape"]),
    (KeyCode::Tab, "Tab", &["tab"]),
    (KeyCode::BackTab, "Shift-Tab", &["shift-tab", "backtab"]),
];

impl fmt::Display for Chord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.ctrl {
            f.write_str("Ctrl-")?;
        }
        if self.alt {
            f.write_str("Alt-")?;
        }
        let name = NAMES.iter().find(|(code, ..)| *code == self.code);
        match (name, self.code) {
            (Some((_, name, _)), _) => f.write_str(name),
            (None, KeyCode::Char(letter)) if self.ctrl => write!(f, "{}", letter.to_ascii_uppercase()),
            (None, code) => write!(f, "{code}"),
        }
    }
}

/// Error of a text that does not name a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a key such as d, D, ctrl-d, alt-left, f5, space or pgdn")]
pub struct ChordError(String);

impl FromStr for Chord {
    type Err = ChordError;

    /// Parses a key as the configuration names it: `d`, `D`, `ctrl-d`, `alt-left`, `f5`, `space`, `pgdn`.
    fn from_str(text: &str) -> Result<Self, ChordError> {
        let fault = || ChordError(text.to_owned());
        let mut chord = Self::key(KeyCode::Null);
        let mut name = text;
        loop {
            if let Some(rest) = without(name, "ctrl-").filter(|_| !chord.ctrl) {
                (chord.ctrl, name) = (true, rest);
            } else if let Some(rest) = without(name, "alt-").filter(|_| !chord.alt) {
                (chord.alt, name) = (true, rest);
            } else {
                break;
            }
        }
        chord.code = code(name).ok_or_else(fault)?;
        if let (KeyCode::Char(letter), true) = (chord.code, chord.ctrl) {
            // Terminals do not distinguish Ctrl with a capital letter from Ctrl with a small one.
            chord.code = KeyCode::Char(letter.to_ascii_lowercase());
        }
        Ok(chord)
    }
}

/// Returns the text after a modifier such as `ctrl-`. The case of the modifier does not matter.
fn without<'a>(text: &'a str, modifier: &str) -> Option<&'a str> {
    let (head, rest) = text.split_at_checked(modifier.len())?;
    head.eq_ignore_ascii_case(modifier).then_some(rest)
}

fn code(name: &str) -> Option<KeyCode> {
    let mut letters = name.chars();
    if let (Some(letter), None) = (letters.next(), letters.next()) {
        return (!letter.is_control()).then_some(KeyCode::Char(letter));
    }
    let lower = name.to_lowercase();
    let named = NAMES.iter().find(|(_, _, names)| names.contains(&lower.as_str()));
    let function = || {
        let number = lower.strip_prefix('f')?.parse::<u8>().ok()?;
        (1..=12).contains(&number).then_some(KeyCode::F(number))
    };
    named.map(|(code, ..)| *code).or_else(function)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        text.parse::<Chord>().map_or_else(|error| error.to_string(), |chord| chord.to_string())
    }

    #[test]
    fn keys_are_parsed_as_they_are_written() {
        for (text, expected) in [
            ("d", "d"),
            ("D", "D"),
            ("-", "-"),
            ("é", "é"),
            ("Ctrl-D", "Ctrl-D"),
            ("ctrl-d", "Ctrl-D"),
            ("ctrl--", "Ctrl--"),
            ("alt-left", "Alt-←"),
            ("ctrl-alt-x", "Ctrl-Alt-X"),
            ("Space", "Space"),
            ("PageDown", "PgDn"),
            ("f5", "F5"),
            ("shift-tab", "Shift-Tab"),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_key_is_an_error_that_names_it() {
        for text in ["", "ctrl-", "dd", "f13", "f0", "hyper-x", "ctrl-ctrl-d", "\u{7}"] {
            assert!(text.parse::<Chord>().is_err(), "{text:?}");
        }
        assert!(shown("dd").starts_with("\"dd\" is not a key such as d,"));
    }
}
