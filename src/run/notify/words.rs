//! Text of a notice without control characters, formatted for terminals and commands.

use std::fmt::Write as _;

use serde::Serialize;

use crate::model::ChangeNotice;
use kordon_core::visible;
use kordon_time::Timestamp;

/// Maximum lengths of a title and of a text, in characters. Terminals cut longer texts.
const LONGEST_TITLE: usize = 120;
const LONGEST_TEXT: usize = 400;

/// Way to notify a terminal: the bell, or an escape sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TerminalNotice {
    Bell,
    /// Escape sequence OSC 9, for iTerm2, Windows Terminal and Ghostty.
    Osc9,
    /// Escape sequence OSC 777, for urxvt, foot and Ghostty.
    Osc777,
    /// Escape sequence OSC 99, for kitty.
    Osc99,
}

/// A notice as it is sent: every text is one line without control characters. The fields are those of the JSON that a
/// webhook receives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NoticeWords {
    schema: &'static str,
    at: Timestamp,
    kind: &'static str,
    context: String,
    object: String,
    title: String,
    text: String,
    /// Number of notices that the rate limit left out before this one.
    left_out: usize,
}

impl NoticeWords {
    pub fn new(notice: &ChangeNotice, context: &str, left_out: usize, now: Timestamp) -> Self {
        let line = |raw: &str, longest| visible::one_line(raw, longest);
        let context = line(context, LONGEST_TITLE);
        let title = line(&format!("kordon {context}: {}", notice.title), LONGEST_TITLE);
        let mut text = line(&notice.text, LONGEST_TEXT);
        if left_out > 0 {
            let _ = write!(text, " ({left_out} more since the last notice)");
        }
        let object = line(&notice.object, LONGEST_TITLE);
        let (schema, kind) = ("kordon.notice/v1", notice.kind.as_str());
        Self { schema, at: now, kind, context, object, title, text, left_out }
    }

    /// Environment variables for the command that delivers the notice.
    pub fn variables(&self) -> [(&'static str, &str); 5] {
        [
            ("KORDON_TITLE", &self.title),
            ("KORDON_TEXT", &self.text),
            ("KORDON_KIND", self.kind),
            ("KORDON_CONTEXT", &self.context),
            ("KORDON_OBJECT", &self.object),
        ]
    }

    /// Replaces `{title}`, `{text}`, `{kind}`, `{context}` and `{object}` in an argument by texts of the notice.
    /// Placeholders within these texts are not replaced. If only the result begins with a dash, and not the argument, a
    /// space is put before the dash, so that no program takes the result for an option.
    pub fn filled(&self, argument: &str) -> String {
        let (mut filled, mut rest) = (String::new(), argument);
        while let Some(start) = rest.find('{') {
            filled.push_str(&rest[..start]);
            rest = &rest[start..];
            let place = PLACES.into_iter().find(|place| rest.starts_with(place));
            filled.push_str(place.map_or("{", |place| self.value(place)));
            rest = &rest[place.map_or(1, str::len)..];
        }
        filled.push_str(rest);
        let is_option = filled.starts_with('-') && !argument.starts_with('-');
        if is_option { format!(" {filled}") } else { filled }
    }

    fn value(&self, place: &str) -> &str {
        match place {
            "{title}" => &self.title,
            "{text}" => &self.text,
            "{kind}" => self.kind,
            "{context}" => &self.context,
            _ => &self.object,
        }
    }

    /// Returns the bytes that notify a terminal in each of `forms`. tmux passes escape sequences on only if they are
    /// wrapped, and if its option `allow-passthrough` is on.
    pub fn for_terminal(&self, forms: &[TerminalNotice], in_tmux: bool) -> String {
        let (title, text) = (bare(&self.title), bare(&self.text));
        let mut bytes = String::new();
        for form in forms {
            let sequence = match form {
                TerminalNotice::Bell => {
                    bytes.push('\x07');
                    continue;
                }
                // OSC 9 interprets a first word with a digit as another command. Titles begin with `kordon`, so this
                // cannot happen.
                TerminalNotice::Osc9 => format!("\x1b]9;{title}: {text}\x1b\\"),
                TerminalNotice::Osc777 => format!("\x1b]777;notify;{};{text}\x1b\\", title.replace(';', ",")),
                TerminalNotice::Osc99 => {
                    format!("\x1b]99;i=kordon:d=0:p=title;{title}\x1b\\\x1b]99;i=kordon:p=body;{text}\x1b\\")
                }
            };
            match in_tmux {
                true => {
                    let _ = write!(bytes, "\x1bPtmux;{}\x1b\\", sequence.replace('\x1b', "\x1b\x1b"));
                }
                false => bytes.push_str(&sequence),
            }
        }
        bytes
    }
}

const PLACES: [&str; 5] = ["{title}", "{text}", "{kind}", "{context}", "{object}"];

/// Removes the symbols that replace control characters and invisible characters.
fn bare(text: &str) -> String {
    text.chars().filter(|letter| !matches!(letter, '\u{2400}'..='\u{2421}' | '\u{FFFD}')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(title: &str, text: &str, object: &str) -> NoticeWords {
        let notice = ChangeNotice {
            title: title.into(),
            text: text.into(),
            object: object.into(),
            ..ChangeNotice::test()
        };
        NoticeWords::new(&notice, "prod", 0, Timestamp::EPOCH)
    }

    #[test]
    fn what_is_filled_in_is_one_argument_and_never_read_again() {
        let hostile = "$(reboot) `reboot` ; reboot {title} \x1b]0;x\x07\n--yes";
        let words = words("t", hostile, "-rf");
        let shown = "$(reboot) `reboot` ; reboot {title} ␛]0;x␇ --yes";
        assert_eq!(words.filled("{text}"), shown);
        assert_eq!(words.filled("-m={kind}:{context}{"), "-m=test:prod{");
        assert_eq!(words.filled("{object}"), " -rf", "no option");
        assert_eq!(words.filled("{titel} {}"), "{titel} {}", "unknown places stay");
        assert_eq!(words.variables()[1], ("KORDON_TEXT", shown));
    }

    #[test]
    fn a_terminal_gets_no_control_character_but_those_of_the_sequences() {
        let words = words("a;b\x1b\\\x07", "c\u{202e}d\u{9b}\r\ne", "");
        use TerminalNotice::{Bell, Osc9, Osc99, Osc777};
        let all = |form| words.for_terminal(&[form], false);
        assert_eq!(all(Bell), "\x07");
        assert_eq!(all(Osc9), "\x1b]9;kordon prod: a;b\\: cd e\x1b\\");
        assert_eq!(all(Osc777), "\x1b]777;notify;kordon prod: a,b\\;cd e\x1b\\");
        assert_eq!(
            all(Osc99),
            "\x1b]99;i=kordon:d=0:p=title;kordon prod: a;b\\\x1b\\\x1b]99;i=kordon:p=body;cd e\x1b\\"
        );
        assert_eq!(
            words.for_terminal(&[Bell, Osc9], true),
            "\x07\x1bPtmux;\x1b\x1b]9;kordon prod: a;b\\: cd e\x1b\x1b\\\x1b\\"
        );
    }

    #[test]
    fn long_texts_are_cut_and_what_was_left_out_is_counted() {
        let notice = ChangeNotice { text: "x".repeat(10_000), ..ChangeNotice::test() };
        let words = NoticeWords::new(&notice, "c", 7, Timestamp::EPOCH);
        assert!(words.text.ends_with("… (7 more since the last notice)"), "{}", words.text);
        assert!(words.text.chars().count() < LONGEST_TEXT + 50);
    }
}
