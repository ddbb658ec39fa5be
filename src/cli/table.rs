//! Tables for people. Each column is declared once, with its heading, cells, rank and alignment.
//!
//! On a terminal a table fits the width: long cells are cut, then columns of the lowest rank are left out. A key column
//! is neither cut nor left out; a long key gets a line of its own. Essential columns are cut before one of them is left
//! out. In a pipe and with `-o wide`, every row is complete.

use super::page::{Emphasis, Page, none, shown};
use crate::ui::{exported_table::ExportedTable, text};

/// A table with a row for each `R`.
///
/// [`key`](Self::key), [`essential`](Self::essential), [`useful`](Self::useful) and [`detail`](Self::detail) add a
/// column on the right; [`flexible`](Self::flexible), [`right`](Self::right) and [`toned`](Self::toned) change the last
/// column.
#[must_use]
pub struct PageTable<'a, R> {
    rows: &'a [R],
    columns: Vec<PageColumn<'a, R>>,
    is_folded: bool,
    has_blanks: bool,
}

/// Colour of a row's cell.
type Tone<'a, R> = Box<dyn Fn(&R) -> Emphasis + 'a>;

struct PageColumn<'a, R> {
    head: &'static str,
    rank: Rank,
    /// Whether cells of the column may be cut before whole columns are left out.
    is_flexible: bool,
    is_right: bool,
    cell: Box<dyn Fn(&R) -> PageCell + 'a>,
    tone: Option<Tone<'a, R>>,
}

/// Importance of a column. On a narrow terminal, the last ranks are left out first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// Column that identifies the row.
    Key,
    /// Column with the facts for which people print the table.
    Essential,
    Useful,
    Detail,
}

/// Lines of a cell. A row has as many lines as its longest cell.
pub struct PageCell(Vec<String>);

impl From<String> for PageCell {
    fn from(text: String) -> Self {
        Self(vec![text])
    }
}

impl From<&'static str> for PageCell {
    fn from(text: &'static str) -> Self {
        text.to_owned().into()
    }
}

impl From<Vec<String>> for PageCell {
    fn from(lines: Vec<String>) -> Self {
        Self(lines)
    }
}

impl<'a, R> PageTable<'a, R> {
    pub const fn new(rows: &'a [R]) -> Self {
        Self { rows, columns: Vec::new(), is_folded: false, has_blanks: false }
    }

    /// Folds adjacent rows on a terminal if they only differ in the last key: `web-1 and 3 more`.
    pub fn folded(self) -> Self {
        Self { is_folded: true, ..self }
    }

    /// Leaves cells without text blank, as in a drawing. Other tables print `-` there.
    pub fn with_blanks(self) -> Self {
        Self { has_blanks: true, ..self }
    }

    /// Adds a column that identifies the row.
    pub fn key<C: Into<PageCell>>(self, head: &'static str, cell: impl Fn(&R) -> C + 'a) -> Self {
        self.column(head, Rank::Key, cell)
    }

    /// Adds a column that is the reason to print the table.
    pub fn essential<C: Into<PageCell>>(self, head: &'static str, cell: impl Fn(&R) -> C + 'a) -> Self {
        self.column(head, Rank::Essential, cell)
    }

    /// Adds a column of medium importance: on a narrow terminal, it is left out before the essential columns.
    pub fn useful<C: Into<PageCell>>(self, head: &'static str, cell: impl Fn(&R) -> C + 'a) -> Self {
        self.column(head, Rank::Useful, cell)
    }

    /// Adds a column of low importance: on a narrow terminal, it is left out first.
    pub fn detail<C: Into<PageCell>>(self, head: &'static str, cell: impl Fn(&R) -> C + 'a) -> Self {
        self.column(head, Rank::Detail, cell)
    }

    fn column<C: Into<PageCell>>(
        mut self,
        head: &'static str,
        rank: Rank,
        cell: impl Fn(&R) -> C + 'a,
    ) -> Self {
        let cell = Box::new(move |row: &R| cell(row).into());
        self.columns.push(PageColumn { head, rank, is_flexible: false, is_right: false, cell, tone: None });
        self
    }

    /// Allows cells of the last column to be cut.
    pub fn flexible(self) -> Self {
        self.changed(|column| column.is_flexible = true)
    }

    /// Aligns the last column to the right.
    pub fn right(self) -> Self {
        self.changed(|column| column.is_right = true)
    }

    /// Gives the cells of the last column a colour.
    pub fn toned(self, tone: impl Fn(&R) -> Emphasis + 'a) -> Self {
        self.changed(|column| column.tone = Some(Box::new(tone)))
    }

    fn changed(mut self, change: impl FnOnce(&mut PageColumn<'a, R>)) -> Self {
        if let Some(column) = self.columns.last_mut() {
            change(column);
        }
        self
    }

    /// Writes a blank line and the table; without rows writes nothing, or in CSV the headings.
    pub fn print(self, out: &mut Page) {
        let Self { rows, columns, is_folded, has_blanks } = self;
        let mut rows: Vec<_> = rows.iter().map(|row| TableRow::new(row, &columns)).collect();
        if let Some(format) = out.export() {
            return out.export_table(&exported(&columns, &rows), format);
        }
        if !has_blanks {
            rows.iter_mut().for_each(TableRow::fill_blanks);
        }
        let key = columns.iter().rposition(|column| column.rank == Rank::Key);
        if let Some(key) = key.filter(|_| is_folded && out.folds()) {
            let before = rows.len();
            rows = folded(rows, key);
            if rows.len() < before {
                out.mark_shortened();
            }
        }
        write(out, &columns, rows);
    }
}

#[derive(Clone, PartialEq, Eq)]
struct TableRow {
    /// Lines of each cell, safe for a terminal.
    cells: Vec<Vec<String>>,
    tones: Vec<Emphasis>,
}

impl TableRow {
    fn new<R>(row: &R, columns: &[PageColumn<'_, R>]) -> Self {
        let lines = |cell: PageCell| cell.0.iter().map(|line| shown(line)).collect();
        let tone = |column: &PageColumn<'_, R>| column.tone.as_ref().map(|tone| tone(row));
        Self {
            cells: columns.iter().map(|column| lines((column.cell)(row))).collect(),
            tones: columns.iter().map(|column| tone(column).unwrap_or_default()).collect(),
        }
    }

    /// Writes `-` into cells without text.
    fn fill_blanks(&mut self) {
        for lines in self.cells.iter_mut().filter(|lines| lines.iter().all(String::is_empty)) {
            *lines = vec![none()];
        }
    }

    fn width(&self, place: usize) -> usize {
        self.cells[place].iter().map(|line| text::width(line)).max().unwrap_or(0)
    }
}

fn exported<'a, R>(columns: &[PageColumn<'_, R>], rows: &'a [TableRow]) -> ExportedTable<'a> {
    ExportedTable {
        heads: columns.iter().map(|column| column.head).collect(),
        rows: rows.iter().map(|row| row.cells.iter().map(Vec::as_slice).collect()).collect(),
    }
}

/// Merges adjacent rows that only differ in the cell `key`.
fn folded(rows: Vec<TableRow>, key: usize) -> Vec<TableRow> {
    let says_the_same = |one: &TableRow, other: &TableRow| {
        let mut one = one.clone();
        one.cells[key].clone_from(&other.cells[key]);
        one == *other && one.cells.iter().all(|lines| lines.len() == 1)
    };
    let one_row = |group: &[TableRow]| {
        let mut row = group[0].clone();
        if group.len() > 1 {
            row.cells[key] = vec![format!("{} and {} more", row.cells[key][0], group.len() - 1)];
        }
        row
    };
    rows.chunk_by(says_the_same).map(one_row).collect()
}

fn write<R>(out: &mut Page, columns: &[PageColumn<'_, R>], rows: Vec<TableRow>) {
    if rows.is_empty() {
        return;
    }
    let fit = Fit::new(columns, &rows, out.width());
    if fit.is_shortened {
        out.mark_shortened();
    }
    out.line(Emphasis::Plain, "");
    let head = TableRow {
        cells: columns.iter().map(|column| vec![column.head.to_owned()]).collect(),
        tones: vec![Emphasis::Plain; columns.len()],
    };
    for row in std::iter::once(&head).chain(&rows) {
        let lines = row.cells.iter().map(Vec::len).max().unwrap_or(0);
        (0..lines).for_each(|line| write_line(out, columns, &fit.widths, row, line));
    }
}

/// Writes one line of a row. A key that is wider than its column gets a line of its own, and the other cells follow on
/// the next line.
fn write_line<R>(
    out: &mut Page,
    columns: &[PageColumn<'_, R>],
    widths: &[Option<usize>],
    row: &TableRow,
    number: usize,
) {
    let mut line = String::new();
    let (mut start, mut written) = (0, 0);
    for (place, column) in columns.iter().enumerate() {
        let Some(width) = widths[place] else { continue };
        let cell = row.cells[place].get(number).map_or("", String::as_str);
        let cell = if column.rank == Rank::Key { cell.into() } else { text::cut(cell, width) };
        let wide = text::width(&cell);
        let before = if column.is_right { width.saturating_sub(wide) } else { 0 };
        // A line must not end with spaces or colour codes. So spaces are only added before text, and only text is
        // coloured.
        if !cell.is_empty() {
            if written > start {
                line.push('\n');
                written = 0;
            }
            line.extend(std::iter::repeat_n(' ', start + before - written));
            line.push_str(&out.colored(row.tones[place], &cell));
            written = start + before + wide + GAP;
            line.push_str("  ");
        }
        start += width + GAP;
    }
    let line = line.lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
    out.colored_line(&line);
}

/// Width of the gap between two columns, in terminal cells.
const GAP: usize = 2;

/// Minimum width of a flexible column.
const NARROWEST: usize = 14;

/// Keys longer than this get a line of their own if the table is too wide.
const NARROWEST_KEY: usize = 12;

/// Widths of a table's columns.
struct Fit {
    /// Width of each column in cells; `None` for a column that is left out.
    widths: Vec<Option<usize>>,
    /// Whether anything is cut or left out.
    is_shortened: bool,
}

impl Fit {
    /// Computes the widths for a terminal of width `room`. Cells are cut first, then columns of low rank are left out.
    /// If that is not enough, long keys get lines of their own, then essential columns are cut.
    fn new<R>(columns: &[PageColumn<'_, R>], rows: &[TableRow], room: Option<usize>) -> Self {
        let natural = |(place, column): (usize, &PageColumn<'_, R>)| {
            rows.iter().map(|row| row.width(place)).chain([text::width(column.head)]).max().unwrap_or(0)
        };
        let natural: Vec<usize> = columns.iter().enumerate().map(natural).collect();
        let Some(room) = room else {
            return Self { widths: natural.into_iter().map(Some).collect(), is_shortened: false };
        };
        Self::within(columns, &natural, room, Rank::Useful).unwrap_or_else(|| {
            let narrowed = |(column, width): (&PageColumn<'_, R>, &usize)| match column.rank {
                Rank::Key => (*width).min(NARROWEST_KEY.max(text::width(column.head))),
                Rank::Essential | Rank::Useful | Rank::Detail => *width,
            };
            let narrowed: Vec<usize> = columns.iter().zip(&natural).map(narrowed).collect();
            let whole = Self::within(columns, &narrowed, room, Rank::Useful);
            let fit = whole.or_else(|| Self::essential_only(columns, &narrowed, room));
            fit.or_else(|| Self::within(columns, &narrowed, room, Rank::Essential)).unwrap_or_else(|| {
                let only_keys = |(column, width): (&PageColumn<'_, R>, usize)| {
                    Some(width).filter(|_| column.rank == Rank::Key)
                };
                Self { widths: columns.iter().zip(narrowed).map(only_keys).collect(), is_shortened: true }
            })
        })
    }

    /// Widths of only the keys and essential columns, all of which may be cut; `None` if they do not fit.
    fn essential_only<R>(columns: &[PageColumn<'_, R>], natural: &[usize], room: usize) -> Option<Self> {
        let shown = |(column, width): (&PageColumn<'_, R>, &usize)| match column.rank {
            Rank::Key | Rank::Essential => Some(*width),
            Rank::Useful | Rank::Detail => None,
        };
        let whole = columns.iter().zip(natural).map(shown).collect();
        let widths = cut(columns, whole, room, |column| column.rank == Rank::Essential);
        (used(&widths) <= room).then_some(Self { widths, is_shortened: true })
    }

    /// Widths that fit if columns of this rank and lower ones may be left out; `None` if no widths fit.
    fn within<R>(
        columns: &[PageColumn<'_, R>],
        natural: &[usize],
        room: usize,
        least_important: Rank,
    ) -> Option<Self> {
        let mut is_shown = vec![true; columns.len()];
        loop {
            let shown = natural.iter().zip(&is_shown).map(|(width, is_shown)| is_shown.then_some(*width));
            let whole: Vec<Option<usize>> = shown.collect();
            let widths = cut(columns, whole.clone(), room, |column| column.is_flexible);
            if used(&widths) <= room {
                let is_shortened = widths != whole || is_shown.contains(&false);
                return Some(Self { widths, is_shortened });
            }
            let droppable = |place: &usize| is_shown[*place] && columns[*place].rank >= least_important;
            let last =
                (0..columns.len()).filter(droppable).max_by_key(|place| (columns[*place].rank, *place))?;
            is_shown[last] = false;
        }
    }
}

/// Width of a line in cells.
fn used(widths: &[Option<usize>]) -> usize {
    widths.iter().flatten().map(|width| width + GAP).sum::<usize>().saturating_sub(GAP)
}

/// Cuts columns, the widest first, until the widths fit or none can be cut. `may_be_cut` chooses the columns.
fn cut<R>(
    columns: &[PageColumn<'_, R>],
    mut widths: Vec<Option<usize>>,
    room: usize,
    may_be_cut: impl Fn(&PageColumn<'_, R>) -> bool,
) -> Vec<Option<usize>> {
    while used(&widths) > room {
        let can_shrink = |(place, width): (usize, &Option<usize>)| {
            let column = &columns[place];
            let least = NARROWEST.max(text::width(column.head));
            let width = width.filter(|width| *width > least && may_be_cut(column))?;
            Some((width, place))
        };
        let Some((width, place)) = widths.iter().enumerate().filter_map(can_shrink).max() else { break };
        widths[place] = Some(width - 1);
    }
    widths
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{app::Glyphs, cli::page::Layout};

    fn page(width: Option<usize>, has_color: bool) -> Page {
        Page::new(Layout { width, has_color, ..Layout::default() })
    }

    #[test]
    fn columns_align_by_display_width_and_hostile_text_stays_text() {
        let mut out = page(None, false);
        PageTable::new(&[("節点", "ok", 7), ("\x1b[2Jevil", "bad", 110)])
            .key("NODE", |row| row.0)
            .essential("STATE", |row| row.1)
            .useful("PODS", |row| row.2.to_string())
            .right()
            .print(&mut out);
        assert_eq!(
            out.into_text(),
            "\nNODE      STATE  PODS\n節点      ok        7\n␛[2Jevil  bad     110\n"
        );
    }

    #[test]
    fn through_a_pipe_every_row_is_whole() {
        let mut out = page(None, false);
        let long = "x".repeat(300);
        let why = PageTable::new(&["a", "b"]).folded().key("POD", |name| *name);
        why.essential("WHY", |_| long.clone()).flexible().print(&mut out);
        assert_eq!(out.into_text(), format!("\nPOD  WHY\na    {long}\nb    {long}\n"));
    }

    /// Output for a pod with this name on a terminal of this width.
    fn narrow(name: &'static str, width: usize) -> String {
        let mut out = page(Some(width), false);
        PageTable::new(&[name])
            .key("POD", |name| *name)
            .detail("TAINTS", |_| "some-taint:NoExecute")
            .flexible()
            .essential("VERDICT", |_| "it leaves at once")
            .flexible()
            .useful("LEAVES", |_| "12s")
            .print(&mut out);
        out.into_text()
    }

    const SHORTENED: &str = "… shortened to the width of the terminal; -o wide prints everything\n";

    #[test]
    fn on_a_terminal_cells_are_cut_and_then_columns_left_out_by_rank_and_the_end_says_so() {
        let whole = "\nPOD    TAINTS                VERDICT            LEAVES\n\
                     web-1  some-taint:NoExecute  it leaves at once  12s\n";
        assert_eq!(narrow("web-1", 60), whole);
        let cut =
            "\nPOD    TAINTS           VERDICT         LEAVES\nweb-1  some-taint:NoE…  it leaves at …  12s\n";
        assert_eq!(narrow("web-1", 46), format!("{cut}{SHORTENED}"));
        let without_details = "\nPOD    VERDICT            LEAVES\nweb-1  it leaves at once  12s\n";
        assert_eq!(narrow("web-1", 32), format!("{without_details}{SHORTENED}"));
        let essential = "\nPOD    VERDICT\nweb-1  it leaves at once\n";
        assert_eq!(narrow("web-1", 24), format!("{essential}{SHORTENED}"));
        assert_eq!(narrow("web-1", 3), format!("\nPOD\nweb-1\n{SHORTENED}"), "the key is never cut");
    }

    #[test]
    fn a_key_that_leaves_no_room_for_what_matters_has_a_line_of_its_own() {
        let table = "\nPOD           VERDICT            LEAVES\nmonitoring/prometheus-agent-0\n              \
                     it leaves at once  12s\n";
        assert_eq!(narrow("monitoring/prometheus-agent-0", 40), format!("{table}{SHORTENED}"));
    }

    #[test]
    fn essential_columns_are_cut_before_one_of_them_is_left_out() {
        let mut out = page(Some(48), false);
        PageTable::new(&["general-1a-01"])
            .key("NODE", |name| *name)
            .useful("ZONE", |_| "eu-central-1a")
            .essential("DRAIN", |_| "drains in ~42s with --delete-emptydir-data")
            .essential("FIRST CAUSE", |_| "Deployment batch/image-resize")
            .flexible()
            .print(&mut out);
        let table = "\nNODE          DRAIN             FIRST CAUSE\ngeneral-1a-01\n              \
                     drains in ~42s …  Deployment batc…\n";
        assert_eq!(out.into_text(), format!("{table}{SHORTENED}"));
    }

    #[test]
    fn on_a_terminal_equal_rows_of_a_folded_table_are_one_line() {
        let all = [("web-1", "4m"), ("web-2", "4m"), ("web-3", "4m"), ("db-0", "5m"), ("web-4", "4m")];
        let table = || PageTable::new(&all).key("POD", |row| row.0).essential("IN", |row| row.1);
        let mut out = page(Some(80), false);
        table().folded().print(&mut out);
        let text = out.into_text();
        let lines: Vec<&str> = text.lines().skip(2).take(3).collect();
        assert_eq!(lines, ["web-1 and 2 more  4m", "db-0              5m", "web-4             4m"]);
        let mut out = page(Some(80), false);
        table().print(&mut out);
        assert_eq!(out.into_text().lines().count(), 7, "other tables have a line for each row");
    }

    #[test]
    fn lines_below_a_cell_stay_in_its_column() {
        let mut out = page(None, false);
        PageTable::new(&["a", "b"])
            .key("POD", |name| *name)
            .essential("LANDS ON", |_| vec!["Pending".to_owned(), "to place it: add a node".to_owned()])
            .useful("READY IN", |_| "-")
            .print(&mut out);
        let row = |name| format!("{name}    Pending                  -\n     to place it: add a node\n");
        let head = "\nPOD  LANDS ON                 READY IN\n";
        assert_eq!(out.into_text(), format!("{head}{}{}", row("a"), row("b")));
    }

    #[test]
    fn a_page_of_ascii_has_no_other_characters_than_the_clusters_own() {
        let mut out = Page::new(Layout { glyphs: Glyphs::Ascii, ..Layout::default() });
        out.line(Emphasis::Critical, "✖ 2 nodes down · 3 pods leave");
        PageTable::new(&[()]).key("POD", |()| "café").essential("OUTCOME", |()| "→ node-1").print(&mut out);
        assert_eq!(out.into_text(), "X 2 nodes down - 3 pods leave\n\nPOD   OUTCOME\ncafé  > node-1\n");
    }

    #[test]
    fn only_toned_columns_have_a_colour_and_only_if_asked_for() {
        let print = |has_color| {
            let mut out = page(None, has_color);
            let nodes = PageTable::new(&[()]).key("NODE", |()| "a").essential("STATE", |()| "Unknown");
            nodes.toned(|()| Emphasis::Critical).print(&mut out);
            out.into_text()
        };
        assert_eq!(print(false), "\nNODE  STATE\na     Unknown\n");
        let colored = print(true);
        let cells = colored.lines().nth(2).expect("a row");
        assert!(cells.starts_with("a     \x1b[") && cells.contains("Unknown"), "{cells:?}");
    }
}
