//! Keys of the flag `--keys`, typed before a snapshot of the screen is taken: `jj<Enter>`, `/zone:a<Enter>`.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Parses keys: letters stand for themselves, other keys are names in angle brackets.
pub fn keys(text: &str) -> Result<Vec<KeyEvent>, String> {
    let mut keys = Vec::new();
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let (code, length) = match rest.strip_prefix('<').and_then(|rest| rest.split_once('>')) {
            Some((name, _)) => (named(name)?, name.len() + 2),
            None => (KeyCode::Char(letter), letter.len_utf8()),
        };
        keys.push(KeyEvent::new(code, KeyModifiers::NONE));
        rest = &rest[length..];
    }
    Ok(keys)
}

fn named(name: &str) -> Result<KeyCode, String> {
    const NAMES: [(&str, KeyCode); 15] = [
        ("Enter", KeyCode::Enter),
        ("Esc", KeyCode::Esc),
        ("Tab", KeyCode::Tab),
        ("BackTab", KeyCode::BackTab),
        ("Space", KeyCode::Char(' ')),
        ("Backspace", KeyCode::Backspace),
        ("Del", KeyCode::Delete),
        ("Up", KeyCode::Up),
        ("Down", KeyCode::Down),
        ("PageUp", KeyCode::PageUp),
        ("PageDown", KeyCode::PageDown),
        ("Home", KeyCode::Home),
        ("End", KeyCode::End),
        ("Left", KeyCode::Left),
        ("Right", KeyCode::Right),
    ];
    let found = NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
    found.map(|(_, code)| *code).ok_or_else(|| {
        let names: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
        format!("unknown key <{name}>; known keys are {}", names.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_and_named_keys_mix() {
        let codes: Vec<KeyCode> = keys("j<enter>ä<").expect("keys").into_iter().map(|key| key.code).collect();
        let expected = [KeyCode::Char('j'), KeyCode::Enter, KeyCode::Char('ä'), KeyCode::Char('<')];
        assert_eq!(codes, expected);
        assert!(keys("<Meta>").expect_err("unknown").contains("PageDown"));
    }
}
