//! Checks of the terminal: kind, colours, size, characters, what stands between it and kordon.

use std::io::IsTerminal;

use super::{super::glyphs::is_utf8, check::DoctorCheck};

/// Smallest size in columns and rows at which every pane has its place.
const SMALLEST: (u16, u16) = (80, 24);

/// Properties of the terminal, according to the environment.
struct TerminalView<V> {
    variable: V,
    /// Columns and rows; `None` if standard output is not a terminal.
    size: Option<(u16, u16)>,
    /// Number of colours by `TERM` and `COLORTERM`.
    colours: u16,
}

/// Checks the terminal of standard output.
pub fn checks() -> Vec<DoctorCheck> {
    let is_terminal = std::io::stdout().is_terminal();
    let view = TerminalView {
        variable: |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty()),
        size: is_terminal.then(crossterm::terminal::size).and_then(Result::ok),
        colours: crossterm::style::available_color_count(),
    };
    view.checks()
}

impl<V: Fn(&str) -> Option<String>> TerminalView<V> {
    fn checks(&self) -> Vec<DoctorCheck> {
        vec![self.kind(), self.colours(), self.size(), self.characters(), self.between(), self.clipboard()]
    }

    fn kind(&self) -> DoctorCheck {
        let id = "terminal.kind";
        let fix = "set TERM to the kind of the terminal, such as xterm-256color; the commands work without";
        match (self.variable)("TERM").as_deref() {
            None => DoctorCheck::warning(id, "TERM is not set", fix),
            Some("dumb") => DoctorCheck::warning(id, "TERM=dumb: the dashboard cannot be drawn", fix),
            Some(term) => DoctorCheck::ok(id, format!("TERM={term}")),
        }
    }

    fn colours(&self) -> DoctorCheck {
        let id = "terminal.colours";
        if (self.variable)("NO_COLOR").is_some() {
            return DoctorCheck::ok(
                id,
                "none, because NO_COLOR is set; every sign has a form besides its colour",
            );
        }
        let by = (self.variable)("COLORTERM")
            .map_or_else(|| "COLORTERM is not set".into(), |by| format!("COLORTERM={by}"));
        match self.colours {
            u16::MAX => DoctorCheck::ok(id, format!("16 million ({by})")),
            256 => DoctorCheck::ok(id, format!("256 ({by}); most themes look best with COLORTERM=truecolor")),
            count => {
                let fix = "set TERM=xterm-256color, or COLORTERM=truecolor if the terminal has all colours";
                DoctorCheck::warning(id, format!("{count} ({by})"), fix)
            }
        }
    }

    fn size(&self) -> DoctorCheck {
        let id = "terminal.size";
        let Some((columns, rows)) = self.size else {
            return DoctorCheck::unknown(id, "standard output is not a terminal");
        };
        let found = format!("{columns} columns, {rows} rows");
        if columns < SMALLEST.0 || rows < SMALLEST.1 {
            let fix = format!("make it {} by {} or larger: some panes are left out", SMALLEST.0, SMALLEST.1);
            return DoctorCheck::warning(id, found, fix);
        }
        DoctorCheck::ok(id, found)
    }

    fn characters(&self) -> DoctorCheck {
        let id = "terminal.characters";
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
            .into_iter()
            .find_map(|name| Some(format!("{name}={}", (self.variable)(name)?)));
        match (locale, is_utf8(&self.variable)) {
            (None, _) => DoctorCheck::ok(id, "no locale is set: UTF-8 is assumed; --ascii draws without"),
            (Some(locale), true) => DoctorCheck::ok(id, format!("UTF-8 ({locale})")),
            (Some(locale), false) => {
                let fix = "set LC_ALL to a UTF-8 locale such as C.UTF-8 if the terminal has these characters";
                DoctorCheck::warning(id, format!("ASCII, because {locale} is not UTF-8"), fix)
            }
        }
    }

    /// Programs between the terminal and kordon, such as tmux.
    fn between(&self) -> DoctorCheck {
        let programs = [("TMUX", "tmux"), ("STY", "screen"), ("SSH_CONNECTION", "SSH")];
        let inside = programs.into_iter().filter(|(name, _)| (self.variable)(name).is_some());
        let inside: Vec<&str> = inside.map(|(_, program)| program).collect();
        let found = if inside.is_empty() { "nothing".into() } else { inside.join(", ") };
        DoctorCheck::ok("terminal.between", format!("between the terminal and kordon: {found}"))
    }

    /// The check of the clipboard. Its result cannot be known: no terminal says whether it accepts OSC 52.
    fn clipboard(&self) -> DoctorCheck {
        let id = "terminal.clipboard";
        let found = "no terminal says whether it lets programs copy (OSC 52)";
        let fix = if (self.variable)("TMUX").is_some() {
            "in tmux: set -g set-clipboard on; try Y in the dashboard"
        } else if (self.variable)("STY").is_some() {
            "screen lets no program copy: use tmux, or the terminal itself"
        } else {
            "try Y in the dashboard; some terminals ask first, or have a setting for it"
        };
        DoctorCheck { fix: Some(fix.into()), ..DoctorCheck::unknown(id, found) }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::check::CheckResult, *};

    fn checked(set: &[(&str, &str)], size: Option<(u16, u16)>, colours: u16) -> Vec<DoctorCheck> {
        let variable =
            |name: &str| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        TerminalView { variable, size, colours }.checks()
    }

    #[test]
    fn a_good_terminal_has_no_warning_and_its_clipboard_stays_unknown() {
        let set = [("TERM", "xterm-kitty"), ("COLORTERM", "truecolor"), ("LANG", "de_DE.UTF-8")];
        let results: Vec<CheckResult> =
            checked(&set, Some((80, 24)), u16::MAX).iter().map(|check| check.result).collect();
        let ok = CheckResult::Ok;
        assert_eq!(results, [ok, ok, ok, ok, ok, CheckResult::Unknown]);
    }

    #[test]
    fn every_lack_of_a_terminal_is_named_with_a_fix() {
        let set = [("TERM", "dumb"), ("LC_ALL", "POSIX"), ("TMUX", "/tmp/1"), ("SSH_CONNECTION", "1")];
        let checks = checked(&set, Some((79, 24)), 8);
        for check in &checks[..4] {
            assert!(check.result == CheckResult::Warning && check.fix.is_some(), "{check:?}");
        }
        assert!(checks[4].found.ends_with("tmux, SSH"), "{:?}", checks[4]);
        assert!(checks[5].fix.as_ref().is_some_and(|fix| fix.contains("set-clipboard on")));
        let none = checked(&[("NO_COLOR", "1")], None, 8);
        assert_eq!(none[1].result, CheckResult::Ok, "NO_COLOR is a wish");
        assert_eq!((none[0].result, none[2].result), (CheckResult::Warning, CheckResult::Unknown));
    }
}
