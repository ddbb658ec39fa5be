//! Whether output uses Unicode glyphs, or ASCII on terminals that cannot show others.

use crate::app::Glyphs;

/// Glyphs according to the flag `--ascii`. Without the flag, ASCII on a terminal whose locale is not UTF-8, otherwise
/// Unicode.
pub fn glyphs(ascii: Option<bool>, is_terminal: bool) -> Glyphs {
    let locale = || is_terminal && !is_utf8(|name| std::env::var(name).ok());
    if ascii.unwrap_or_else(locale) { Glyphs::Ascii } else { Glyphs::Unicode }
}

/// Whether the environment's locale is UTF-8 or unset.
pub fn is_utf8(variable: impl Fn(&str) -> Option<String>) -> bool {
    let set = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(variable).find(|text| !text.is_empty());
    set.is_none_or(|locale| {
        let locale = locale.to_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_locale_that_is_set_and_not_utf8_asks_for_ascii() {
        let utf8 = |set: &[(&str, &str)]| {
            is_utf8(|name| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
        };
        assert!(utf8(&[]) && utf8(&[("LANG", "de_DE.UTF-8")]) && utf8(&[("LC_ALL", ""), ("LANG", "C.utf8")]));
        assert!(!utf8(&[("LANG", "C")]) && !utf8(&[("LC_ALL", "POSIX"), ("LANG", "de_DE.UTF-8")]));
    }

    #[test]
    fn a_pipe_has_all_characters_unless_the_flag_says_otherwise() {
        assert_eq!(glyphs(None, false), Glyphs::Unicode);
        assert_eq!((glyphs(Some(true), false), glyphs(Some(false), true)), (Glyphs::Ascii, Glyphs::Unicode));
    }
}
