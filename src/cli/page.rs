//! Output of a command for people.

use std::{fmt, io::IsTerminal, mem};

use crossterm::style::{ContentStyle, Stylize};

use crate::{
    app::Glyphs,
    model::{StateRole, VerdictLevel},
    ui::{
        ascii,
        exported_table::{ExportFormat, ExportedTable},
        markdown,
    },
};
use kordon_core::{cluster::ZoneKey, visible};

/// Output of a command. All text written to it is sanitized for terminals.
#[derive(Debug, Default)]
pub struct Page {
    text: String,
    layout: Layout,
    /// Whether a table was cut or folded.
    is_shortened: bool,
    /// Start of a line whose rest has not been written yet. Only used in formats for other programs.
    unfinished: String,
    /// Lines about unknown objects that are left out, because the page's format (CSV) has only tables.
    gaps: Vec<String>,
}

/// Layout of a page.
#[derive(Clone, Copy, Debug, Default)]
pub struct Layout {
    /// Width of the terminal in cells. `None` without a terminal, or if nothing may be cut or folded.
    pub width: Option<usize>,
    pub has_color: bool,
    pub glyphs: Glyphs,
    /// Format for other programs; `None` if people read the page.
    pub export: Option<ExportFormat>,
}

impl Layout {
    /// The layout for standard output.
    pub fn for_stdout(is_wide: bool, has_color: bool, glyphs: Glyphs) -> Self {
        let is_cut = !is_wide && std::io::stdout().is_terminal();
        // Without a terminal, asking for the terminal's size would start two processes.
        let size = is_cut.then(crossterm::terminal::size).and_then(Result::ok);
        let width = size.map(|(columns, _)| usize::from(columns)).filter(|width| *width > 0);
        Self { width, has_color, glyphs, export: None }
    }

    /// The layout of tables for other programs: cells are neither cut nor folded, and nothing has a colour.
    pub const fn for_export(format: ExportFormat, glyphs: Glyphs) -> Self {
        Self { width: None, has_color: false, glyphs, export: Some(format) }
    }
}

/// Urgency of text, shown as its colour.
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
    pub const fn for_state(role: StateRole) -> Self {
        match role {
            StateRole::Critical => Self::Critical,
            StateRole::Warning => Self::Warning,
            StateRole::Notice => Self::Notice,
            StateRole::Maintenance => Self::Maintenance,
            StateRole::Ready => Self::Plain,
        }
    }

    pub const fn for_level(level: VerdictLevel) -> Self {
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

    /// Whether rows with the same content are folded into one.
    pub const fn folds(&self) -> bool {
        self.layout.width.is_some()
    }

    /// Width of the terminal in cells; `None` if nothing may be cut or folded.
    pub const fn width(&self) -> Option<usize> {
        self.layout.width
    }

    /// Format for other programs; `None` if people read the page.
    pub const fn export(&self) -> Option<ExportFormat> {
        self.layout.export
    }

    /// Adds a line in a colour. In Markdown it becomes a paragraph; CSV has only tables.
    pub fn line(&mut self, tone: Emphasis, line: &str) {
        match self.layout.export {
            Some(ExportFormat::Csv) => {}
            Some(ExportFormat::Markdown) => self.add_block(&markdown::escaped(line.trim())),
            None => self.colored_line(&self.colored(tone, &visible::text(line))),
        }
    }

    /// Adds a drawing made of characters.
    pub fn drawing(&mut self, lines: &[String]) {
        if self.layout.export == Some(ExportFormat::Markdown) {
            // In Markdown, indented lines are a code block.
            let lines: Vec<String> =
                lines.iter().map(|line| format!("    {}", visible::text(line))).collect();
            return self.add_block(&lines.join("\n"));
        }
        lines.iter().for_each(|line| self.line(Emphasis::Plain, line));
    }

    /// Adds a line that says what is not known.
    pub fn gap(&mut self, line: &str) {
        if self.layout.export == Some(ExportFormat::Csv) {
            self.gaps.push(line.to_owned());
        }
        self.line(Emphasis::Notice, line);
    }

    /// Lines about unknown objects that are left out of the page, because its format has only tables.
    pub fn unprinted_gaps(&self) -> &[String] {
        &self.gaps
    }

    /// Adds a table for other programs.
    pub fn export_table(&mut self, table: &ExportedTable, format: ExportFormat) {
        self.add_block(table.text(format).trim_end());
    }

    /// Adds a paragraph or a table. An empty line separates it from what is before it.
    fn add_block(&mut self, block: &str) {
        if block.is_empty() {
            return;
        }
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(block);
        self.text.push('\n');
    }

    /// Adds a line that is already sanitized and coloured.
    pub fn colored_line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// Records that a table was cut or folded, for a note at the end.
    pub const fn mark_shortened(&mut self) {
        self.is_shortened = true;
    }

    /// The whole text. If something was cut, a final line says how to print everything.
    pub fn into_text(mut self) -> String {
        let unfinished = mem::take(&mut self.unfinished);
        if !unfinished.is_empty() {
            self.line(Emphasis::Plain, &unfinished);
        }
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

    /// Colours a text.
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
        if self.layout.export.is_none() {
            self.text.push_str(&visible::lines(raw));
            return Ok(());
        }
        self.unfinished.push_str(raw);
        while let Some((line, rest)) = self.unfinished.split_once('\n') {
            let (line, rest) = (line.to_owned(), rest.to_owned());
            self.unfinished = rest;
            self.line(Emphasis::Plain, &line);
        }
        Ok(())
    }
}

/// The cell for a missing value.
pub fn none() -> String {
    "-".into()
}

/// Makes text from the cluster safe for a terminal.
pub fn shown(raw: &str) -> String {
    visible::text(raw).into_owned()
}

/// Name of a zone, as `ZoneKey` formats it: `region/zone`.
pub fn zone_name(region: &str, zone: &str) -> String {
    ZoneKey { region: region.into(), zone: zone.into() }.to_string()
}
