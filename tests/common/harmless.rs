//! Characters that must never reach a terminal, defined independently of the program.
#![allow(dead_code, reason = "each test program uses its part")]

/// Text with everything that a terminal interprets, reorders or hides: an escape sequence that sets the window title,
/// one that clears the screen, C1 and C0 controls, line breaks, bidirectional overrides and isolates, zero-width
/// characters, a tag, a line separator.
pub const HOSTILE: &str =
    "\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m\u{7f}\r\n\t\u{202e}\u{2066}\u{200b}\u{feff}\u{e0041}\u{2028}!";

/// Panics if a text has characters that control a terminal, or that make the text look different from what it is.
///
/// This check does not use the program's own rule for harmful characters, so the tests find gaps in that rule.
pub fn assert_harmless(text: &str) {
    if let Some(letter) = text.chars().find(is_harmful) {
        let at = text.find(letter).unwrap_or_default();
        let around: String =
            text[..at].chars().rev().take(60).collect::<Vec<_>>().into_iter().rev().collect();
        panic!("U+{:04X} after {around:?} of {text}", u32::from(letter), text = text.escape_debug());
    }
}

fn is_harmful(letter: &char) -> bool {
    letter.is_control() && *letter != '\n'
        || matches!(u32::from(*letter),
            0xAD | 0x61C | 0x200B..=0x200F | 0x2028..=0x202E | 0x2060..=0x206F | 0xFE00..=0xFE0F | 0xFEFF
            | 0xE0000..=0xE0FFF)
}
