//! What a command prints for people.

use std::{fmt, io::IsTerminal};

use crossterm::style::{ContentStyle, Stylize};

use crate::{
    app::Glyphs,
    model::{StateRole, VerdictLevel},
    ui::ascii,
};
use kordon_core::{cluster::ZoneKey, visible};

/// The text that a command prints. All that is written to it is made harmless for a terminal.
#[derive(Debug, Default)]
pub struct Page {
    text: String,
    layout: Layout,
    /// Whether a table was cut or folded.
    is_shortened: bool,
}

/// How a page is printed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Layout {
    /// The width of the terminal in cells; none if it is none, or if everything is to be printed.
    pub width: Option<usize>,
    pub has_color: bool,
    pub glyphs: Glyphs,
}

impl Layout {
    /// The layout for standard output.
    pub fn of_stdout(is_wide: bool, has_color: bool, glyphs: Glyphs) -> Self {
        let is_cut = !is_wide && std::io::stdout().is_terminal();
        // Where there is no terminal, the search for its size starts two processes.
        let size = is_cut.then(crossterm::terminal::size).and_then(Result::ok);
        let width = size.map(|(columns, _)| usize::from(columns)).filter(|width| *width > 0);
        Self { width, has_color, glyphs }
    }
}

/// How urgent something is, by its colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Emphasis {
    #[default]
    Plain,
    Dim,
    Good,
    Maintenance,
    Notice,
    Warning,
    Critical,
}

impl Emphasis {
    pub const fn of_state(role: StateRole) -> Self {
        match role {
            StateRole::Critical => Self::Critical,
            StateRole::Warning => Self::Warning,
            StateRole::Notice => Self::Notice,
            StateRole::Maintenance => Self::Maintenance,
            StateRole::Ready => Self::Plain,
        }
    }

    pub const fn of_level(level: VerdictLevel) -> Self {
        match level {
            VerdictLevel::Healthy => Self::Good,
            VerdictLevel::Notice => Self::Notice,
            VerdictLevel::Warning => Self::Warning,
            VerdictLevel::Critical | VerdictLevel::Disconnected => Self::Critical,
        }
    }

    fn style(self) -> ContentStyle {
        let style = ContentStyle::new();
        match self {
            Self::Plain => style,
            Self::Dim => style.dim(),
            Self::Good => style.green(),
            Self::Maintenance => style.cyan(),
            Self::Notice => style.yellow(),
            Self::Warning => style.yellow().bold(),
            Self::Critical => style.red().bold(),
        }
    }
}

impl Page {
    pub fn new(layout: Layout) -> Self {
        Self { layout, ..Self::default() }
    }

    /// Whether rows that say the same are to be one line.
    pub const fn folds(&self) -> bool {
        self.layout.width.is_some()
    }

    /// The width of the terminal in cells; none if everything is to be printed.
    pub const fn width(&self) -> Option<usize> {
        self.layout.width
    }

    /// A line in a colour.
    pub fn line(&mut self, tone: Emphasis, line: &str) {
        let line = self.colored(tone, &visible::text(line));
        self.text.push_str(&line);
        self.text.push('\n');
    }

    /// A line that is safe for a terminal, in its colours.
    pub fn colored_line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// Says at the end that a table was cut or folded.
    pub const fn mark_shortened(&mut self) {
        self.is_shortened = true;
    }

    /// Everything that was written; at its end, where the rest is if something was cut.
    pub fn into_text(mut self) -> String {
        if self.is_shortened {
            self.line(
                Emphasis::Dim,
                "\u{2026} shortened to the width of the terminal; -o wide prints everything",
            );
        }
        match self.layout.glyphs {
            Glyphs::Unicode => self.text,
            Glyphs::Ascii => ascii::text(&self.text),
        }
    }

    /// The text in a colour.
    pub fn colored(&self, tone: Emphasis, text: &str) -> String {
        match tone {
            _ if !self.layout.has_color => text.to_owned(),
            Emphasis::Plain => text.to_owned(),
            tone => tone.style().apply(text).to_string(),
        }
    }
}

impl fmt::Write for Page {
    fn write_str(&mut self, raw: &str) -> fmt::Result {
        self.text.push_str(&visible::lines(raw));
        Ok(())
    }
}

/// The cell for a missing value.
pub fn none() -> String {
    "-".into()
}

/// Text from the cluster, safe for a terminal.
pub fn shown(raw: &str) -> String {
    visible::text(raw).into_owned()
}

/// `region/zone`, as `ZoneKey` writes it.
pub fn zone_name(region: &str, zone: &str) -> String {
    ZoneKey { region: region.into(), zone: zone.into() }.to_string()
}
