//! Sanitizes text from outside for display: every character is visible and stays where it was written.
//!
//! Messages, annotations, names and errors come from servers, files, programs and users. They may contain escape
//! sequences, bidirectional overrides and invisible characters. None of these may reach a screen, table, log, file or
//! prompt, so all code that prints text from outside uses the functions of this module.

use std::borrow::Cow;

use unicode_width::UnicodeWidthChar;

/// Replaces characters that are invisible or change where other characters appear.
const REPLACEMENT: char = '\u{FFFD}';

/// Maximum number of combining marks (accents) per character. With more marks, a character would extend into other
/// lines.
const MARKS: usize = 2;

/// Makes all characters visible, in one line. Control characters become their pictures (`␛`); bidirectional overrides,
/// zero-width characters and the like become `�`.
pub fn text(raw: &str) -> Cow<'_, str> {
    if is_plain(raw) {
        return Cow::Borrowed(raw);
    }
    let mut marks = 0;
    let visible = raw.chars().map(|letter| match letter {
        '\0'..='\u{1F}' => char::from_u32(0x2400 + u32::from(letter)).unwrap_or(REPLACEMENT),
        '\u{7F}' => '␡',
        letter if is_deceptive(letter) => REPLACEMENT,
        letter if letter.width() == Some(0) => {
            marks += 1;
            if marks > MARKS { REPLACEMENT } else { letter }
        }
        letter => {
            marks = 0;
            letter
        }
    });
    Cow::Owned(visible.collect())
}

/// Makes all characters visible and keeps line breaks.
pub fn lines(raw: &str) -> String {
    raw.split('\n').map(text).collect::<Vec<_>>().join("\n")
}

/// Makes text visible in one line. If the text is longer than `longest` characters, keeps that many and adds `…`. Line
/// breaks and tabs become spaces.
pub fn one_line(raw: &str, longest: usize) -> String {
    let raw = raw.trim_end();
    let cut = raw.char_indices().nth(longest).map(|(end, _)| end);
    let spaced = raw[..cut.unwrap_or(raw.len())].replace(['\n', '\t'], " ");
    let end = if cut.is_some() { "…" } else { "" };
    format!("{}{end}", text(&spaced))
}

/// Escapes invisible characters in JSON (`\u001b`). The meaning of the JSON does not change.
pub fn json(raw: &str) -> Cow<'_, str> {
    // In JSON, only strings can contain invisible characters. The rest is visible ASCII and white space.
    if !raw.chars().any(is_hidden_in_json) {
        return Cow::Borrowed(raw);
    }
    let mut visible = String::with_capacity(raw.len() + 16);
    for letter in raw.chars() {
        if is_hidden_in_json(letter) {
            letter
                .encode_utf16(&mut [0; 2])
                .iter()
                .for_each(|unit| visible.push_str(&format!("\\u{unit:04x}")));
        } else {
            visible.push(letter);
        }
    }
    Cow::Owned(visible)
}

/// Whether a character has to be escaped in JSON. Control characters below U+0020 are left out, because serializers
/// already escape them.
fn is_hidden_in_json(letter: char) -> bool {
    letter >= '\u{7F}' && is_deceptive(letter)
}

/// Whether a text has only plain characters, as nearly all text on screen does. Plain characters are visible, take one
/// cell, and look the same next to any other.
pub fn is_plain(text: &str) -> bool {
    text.chars().all(is_plain_letter)
}

/// Whether a character is ASCII, an arrow, mathematical sign, box, block, shape, tick, cross, or one of `·`, `–`, `…`.
const fn is_plain_letter(letter: char) -> bool {
    matches!(letter,
        ' '..='~' | '·' | '–' | '…'
        | '\u{2190}'..='\u{22FF}' | '\u{2500}'..='\u{25FC}' | '\u{2713}'..='\u{2718}')
}

/// Whether a character is invisible or changes where other characters appear.
fn is_deceptive(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}'
            | '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}'
            | '\u{2060}'..='\u{206F}' | '\u{3164}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFA0}'
            | '\u{FFF0}'..='\u{FFFB}' | '\u{13430}'..='\u{1345F}' | '\u{1BCA0}'..='\u{1BCA3}'
            | '\u{1D173}'..='\u{1D17A}' | '\u{E0000}'..='\u{E0FFF}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_shown_instead() {
        assert_eq!(text("web-1"), "web-1");
        assert_eq!(text("\x1b[2Jgone\r\n\x07\x7f"), "␛[2Jgone␍␊␇␡");
        assert_eq!(text("\u{9b}31m"), "�31m", "C1 as well");
        assert_eq!(text("abc\u{202e}def\u{2066}\u{200b}\u{feff}"), "abc�def���");
        assert_eq!(text("größe 節点"), "größe 節点", "honest letters stay");
        assert_eq!(text("e\u{301}"), "e\u{301}", "so do accents");
        assert_eq!(text("z\u{301}\u{302}\u{303}\u{304}"), "z\u{301}\u{302}��", "but no towers of them");
        assert_eq!(lines("a\x1b\nb\u{202e}"), "a␛\nb�");
    }

    #[test]
    fn plain_characters_are_visible_and_take_one_cell() {
        let plain: Vec<char> = ('\0'..=char::MAX).filter(|letter| is_plain_letter(*letter)).collect();
        assert!(plain.len() > 700);
        let other = plain.iter().find(|letter| is_deceptive(**letter) || letter.width() != Some(1));
        assert_eq!(other, None);
        assert!(is_plain("✖▪▪◌ n-1 …") && !is_plain("節点") && !is_plain("✔\u{FE0F}"));
    }

    #[test]
    fn one_line_stays_one_line_and_short() {
        assert_eq!(one_line("a\u{1b}[2Jb\r\nc\u{202e}\n", 400), "a␛[2Jb␍ c�");
        assert_eq!(one_line(&"x".repeat(1000), 400).chars().count(), 401);
        assert_eq!(one_line("ab", 2), "ab");
    }

    #[test]
    fn json_means_the_same_without_hidden_characters() {
        let said = "a\u{1b}\u{9b}\u{202e}\u{200b}\u{e0041}\u{7f}é節";
        let raw = serde_json::to_string(said).expect("a string");
        let visible = json(&raw);
        assert_eq!(visible, "\"a\\u001b\\u009b\\u202e\\u200b\\udb40\\udc41\\u007fé節\"");
        assert_eq!(serde_json::from_str::<String>(&visible).expect("JSON"), said);
        assert!(matches!(json("{\n  \"a\": \"é\"\n}"), Cow::Borrowed(_)));
    }
}
