//! What a command prints for people: lines, and tables whose columns align.
//!
//! On a terminal a table fits its width: equal rows become one line, long cells are cut. Through a pipe, and with
//! `-o wide`, every row is whole.

use std::{fmt, io::IsTerminal};

use crossterm::style::{ContentStyle, Stylize};

use crate::{
    app::Glyphs,
    cluster::ZoneKey,
    model::{StateRole, VerdictLevel},
    ui::{ascii, text},
    visible,
};

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

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub struct PageColumn {
    heading: &'static str,
    /// Its cells are cut if the table is wider than the terminal; if it is still too wide, it is left out.
    is_flexible: bool,
    /// Its cells have the colour of their row.
    is_toned: bool,
}

impl From<&'static str> for PageColumn {
    fn from(heading: &'static str) -> Self {
        Self { heading, is_flexible: false, is_toned: false }
    }
}

/// A column whose cells may be cut.
pub fn flexible(heading: &'static str) -> PageColumn {
    PageColumn { is_flexible: true, ..heading.into() }
}

/// A column with the colour of its row.
pub fn toned(heading: &'static str) -> PageColumn {
    PageColumn { is_toned: true, ..heading.into() }
}

/// A column that is always whole.
pub fn whole(heading: &'static str) -> PageColumn {
    heading.into()
}

/// A row of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageRow<const N: usize> {
    cells: [String; N],
    tone: Emphasis,
}

impl<const N: usize> PageRow<N> {
    pub fn new(cells: [String; N], tone: Emphasis) -> Self {
        Self { cells, tone }
    }
}

impl<const N: usize> From<[String; N]> for PageRow<N> {
    fn from(cells: [String; N]) -> Self {
        Self::new(cells, Emphasis::Plain)
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

    fn colored(&self, tone: Emphasis, text: &str) -> String {
        match tone {
            _ if !self.layout.has_color => text.to_owned(),
            Emphasis::Plain => text.to_owned(),
            tone => tone.style().apply(text).to_string(),
        }
    }

    fn table<const N: usize>(&mut self, columns: &[PageColumn; N], rows: &[PageRow<N>]) {
        let fit = Widths::fit(columns, rows, self.layout.width);
        self.is_shortened |= fit.is_shortened;
        let heading =
            PageRow { cells: columns.map(|column| column.heading.to_owned()), tone: Emphasis::Plain };
        for (place, row) in std::iter::once(&heading).chain(rows).enumerate() {
            let mut line = String::new();
            for (column, (cell, width)) in columns.iter().zip(row.cells.iter().zip(fit.widths)) {
                let Some(width) = width else { continue };
                let cell = text::cut(cell, width);
                let padding = width - text::width(&cell) + 2;
                let tone = if column.is_toned && place > 0 { row.tone } else { Emphasis::Plain };
                // Colour only the text: the end of a line is cut by what can be seen.
                line.push_str(&self.colored(tone, &cell));
                line.extend(std::iter::repeat_n(' ', padding));
            }
            self.text.push_str(line.trim_end());
            self.text.push('\n');
        }
    }
}

impl fmt::Write for Page {
    fn write_str(&mut self, raw: &str) -> fmt::Result {
        self.text.push_str(&visible::lines(raw));
        Ok(())
    }
}

/// The widths of the columns of a table; none for a column that is left out.
struct Widths<const N: usize> {
    widths: [Option<usize>; N],
    is_shortened: bool,
}

/// A flexible column is not cut to less; the first one, with names, has more.
const NARROWEST: usize = 12;
const NARROWEST_NAMES: usize = 20;

impl<const N: usize> Widths<N> {
    /// The widths that a terminal of this width has room for: the widest flexible column is cut first, and if that is not
    /// enough, the last flexible one is left out.
    fn fit(columns: &[PageColumn; N], rows: &[PageRow<N>], width: Option<usize>) -> Self {
        let natural: [usize; N] = std::array::from_fn(|place| {
            let cells = rows.iter().map(|row| text::width(&row.cells[place]));
            cells.chain([text::width(columns[place].heading)]).max().unwrap_or(0)
        });
        let mut widths = natural.map(Some);
        let Some(room) = width else { return Self { widths, is_shortened: false } };
        loop {
            let used = |widths: &[Option<usize>; N]| {
                widths.iter().flatten().map(|width| width + 2).sum::<usize>().saturating_sub(2)
            };
            while used(&widths) > room {
                let can_shrink = |(place, width): (usize, &Option<usize>)| {
                    let least = if place == 0 { NARROWEST_NAMES } else { NARROWEST };
                    let width = width.filter(|width| *width > least && columns[place].is_flexible)?;
                    Some((width, place))
                };
                let Some((width, place)) = widths.iter().enumerate().filter_map(can_shrink).max() else {
                    break;
                };
                widths[place] = Some(width - 1);
            }
            if used(&widths) <= room {
                break;
            }
            let is_left = |place: &usize| columns[*place].is_flexible && widths[*place].is_some();
            let Some(last) = (0..N).rev().find(is_left) else { break };
            widths[last] = None;
            for place in 0..N {
                widths[place] = widths[place].map(|_| natural[place]);
            }
        }
        Self { is_shortened: widths != natural.map(Some), widths }
    }
}

/// Writes a blank line and a table whose columns align by display width; without rows, nothing. On a terminal, rows that
/// follow each other and differ only in their first cell are one: `web-1 and 3 more`.
pub fn section<const N: usize>(
    out: &mut Page,
    columns: [impl Into<PageColumn>; N],
    rows: Vec<impl Into<PageRow<N>>>,
) {
    if rows.is_empty() {
        return;
    }
    let clean = |row: PageRow<N>| PageRow { cells: row.cells.map(|cell| shown(&cell)), ..row };
    let mut rows: Vec<PageRow<N>> = rows.into_iter().map(|row| clean(row.into())).collect();
    if out.folds() && N > 1 {
        let before = rows.len();
        rows = folded(rows);
        out.is_shortened |= rows.len() < before;
    }
    out.text.push('\n');
    out.table(&columns.map(Into::into), &rows);
}

/// The rows with those that follow each other and differ only in their first cell in one.
fn folded<const N: usize>(rows: Vec<PageRow<N>>) -> Vec<PageRow<N>> {
    let says_the_same = |one: &PageRow<N>, other: &PageRow<N>| {
        one.tone == other.tone && one.cells[1..] == other.cells[1..] && !one.cells[0].is_empty()
    };
    let groups = rows.chunk_by(says_the_same);
    let one_row = |group: &[PageRow<N>]| {
        let mut row = group[0].clone();
        if group.len() > 1 {
            row.cells[0] = format!("{} and {} more", row.cells[0], group.len() - 1);
        }
        row
    };
    groups.map(one_row).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    fn page(width: Option<usize>, has_color: bool) -> Page {
        Page::new(Layout { width, has_color, glyphs: Glyphs::Unicode })
    }

    fn rows<const N: usize>(rows: &[[&str; N]]) -> Vec<[String; N]> {
        rows.iter().map(|row| row.map(str::to_owned)).collect()
    }

    #[test]
    fn columns_align_by_display_width_and_hostile_text_stays_text() {
        let mut out = page(None, false);
        section(&mut out, ["NODE", "STATE"], rows(&[["節点", "ok"], ["\x1b[2Jevil", "bad"]]));
        assert_eq!(out.into_text(), "\nNODE      STATE\n節点      ok\n␛[2Jevil  bad\n");
    }

    #[test]
    fn through_a_pipe_every_row_is_whole() {
        let mut out = page(None, false);
        let long = "x".repeat(300);
        section(&mut out, [whole("POD"), flexible("WHY")], rows(&[["a", &long], ["b", &long]]));
        assert_eq!(out.into_text(), format!("\nPOD  WHY\na    {long}\nb    {long}\n"));
    }

    #[test]
    fn on_a_terminal_flexible_columns_are_cut_and_then_left_out_and_the_end_says_so() {
        let table = |width| {
            let mut out = page(Some(width), false);
            let columns = [whole("NODE"), flexible("TAINTS"), flexible("WHY")];
            section(
                &mut out,
                columns,
                rows(&[["node-1", "some-taint:NoExecute", "the kubelet does not renew"]]),
            );
            out.into_text()
        };
        assert!(!table(60).contains('…'), "it fits");
        let cut = table(44);
        assert!(
            cut.lines().nth(2).is_some_and(|line| text::width(line) <= 44 && line.contains('…')),
            "{cut}"
        );
        assert!(cut.ends_with("-o wide prints everything\n"), "{cut}");
        let narrow = table(30);
        assert!(!narrow.contains("WHY") && narrow.contains("some-taint:NoExecute"), "{narrow}");
        assert!(table(3).contains("node-1"), "what cannot be cut stays whole");
    }

    #[test]
    fn on_a_terminal_equal_rows_are_one_line() {
        let all = rows(&[["web-1", "4m"], ["web-2", "4m"], ["web-3", "4m"], ["db-0", "5m"], ["web-4", "4m"]]);
        let mut out = page(Some(80), false);
        section(&mut out, ["POD", "IN"], all);
        let text = out.into_text();
        let lines: Vec<&str> = text.lines().skip(2).take(3).collect();
        assert_eq!(lines, ["web-1 and 2 more  4m", "db-0              5m", "web-4             4m"]);
    }

    #[test]
    fn a_page_of_ascii_has_no_other_characters_than_the_clusters_own() {
        let mut out = Page::new(Layout { glyphs: Glyphs::Ascii, ..Layout::default() });
        out.line(Emphasis::Critical, "✖ 2 nodes down · 3 pods leave");
        section(&mut out, ["POD", "OUTCOME"], rows(&[["café", "→ node-1"]]));
        assert_eq!(out.into_text(), "X 2 nodes down - 3 pods leave\n\nPOD   OUTCOME\ncafé  > node-1\n");
    }

    #[test]
    fn only_toned_columns_have_the_rows_colour_and_only_if_asked_for() {
        let table = |has_color| {
            let mut out = page(None, has_color);
            let row = PageRow::new(["a".into(), "Unknown".into()], Emphasis::Critical);
            section(&mut out, [whole("NODE"), toned("STATE")], vec![row]);
            out.into_text()
        };
        assert_eq!(table(false), "\nNODE  STATE\na     Unknown\n");
        let colored = table(true);
        let cells = colored.lines().nth(2).expect("a row");
        assert!(cells.starts_with("a     \x1b[") && cells.contains("Unknown"), "{cells:?}");
    }
}
