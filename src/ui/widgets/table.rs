//! A table that only asks for the rows it shows.

use std::borrow::Cow;

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::{Modifier, Style},
    text::{Line, Span},
};

use super::segments::cut_line;
use crate::ui::text;
use kordon_core::visible;

/// Number of cells beside a table that are reserved for the scroll thumb.
pub const THUMB: usize = 2;

/// Cells between columns.
const GAP: u16 = 2;

/// A column of a table.
#[derive(Clone, Debug)]
pub struct Column {
    /// Name by which the configuration chooses the column.
    pub name: &'static str,
    pub title: Cow<'static, str>,
    pub width: Width,
    pub right: bool,
    /// Priority of the column. Columns of priority 0 are never dropped; of the others, the highest number is dropped
    /// first.
    pub priority: u8,
    /// Width at which no text is cut, and the priority of that width; `None` if the column has one width. Like a column
    /// of this priority, the width gives way to the column's [width](Self::width).
    pub whole: Option<(u16, u8)>,
    /// Arrow that shows the sort direction, if the table is sorted by this column.
    pub sorted: Option<&'static str>,
    /// Title of the column by which a click on the heading sorts the table.
    pub sorts_by: Option<&'static str>,
}

impl Column {
    /// A column that is never dropped and that the table cannot be sorted by.
    pub const fn plain(title: &'static str, width: Width) -> Self {
        Self::new(title.trim_ascii(), Cow::Borrowed(title), width)
    }

    /// A column whose heading is only known at run time.
    pub const fn titled(title: Cow<'static, str>, width: Width) -> Self {
        Self::new("", title, width)
    }

    const fn new(name: &'static str, title: Cow<'static, str>, width: Width) -> Self {
        Self { name, title, width, right: false, priority: 0, whole: None, sorted: None, sorts_by: None }
    }

    /// Sets the [name](Self::name) of a column whose name is not its heading.
    #[must_use]
    pub fn named(self, name: &'static str) -> Self {
        Self { name, ..self }
    }

    /// Aligns the column to the right, for numbers.
    #[must_use]
    pub fn right(self) -> Self {
        Self { right: true, ..self }
    }

    /// Sets the [priority](Self::priority): the higher it is, the sooner the column is dropped.
    #[must_use]
    pub fn gives_way(self, priority: u8) -> Self {
        Self { priority, ..self }
    }

    /// Sets the [width at which no text is cut](Self::whole), and the priority of that width.
    #[must_use]
    pub fn whole(self, width: u16, priority: u8) -> Self {
        Self { whole: Some((width, priority)), ..self }
    }
}

/// Width of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    Fixed(u16),
    /// Width of the widest cell on the page, within these bounds.
    Fit(u16, u16),
    /// Minimum width, and weight for the distribution of spare cells.
    Grow(u16, u16),
}

/// Content of a table cell.
#[derive(Clone, Debug, Default)]
pub struct Cell {
    spans: Vec<Span<'static>>,
    /// Text for copies and exports; `None` if it is the drawn text.
    copied: Option<String>,
}

impl Cell {
    pub fn new(text: &str, style: Style) -> Self {
        Self::default().and(text, style)
    }

    /// Appends text. Invisible characters are replaced with visible ones.
    #[must_use]
    pub fn and(mut self, text: &str, style: Style) -> Self {
        if !text.is_empty() {
            self.spans.push(Span::styled(visible::text(text).into_owned(), style));
        }
        self
    }

    /// Appends another cell's content.
    #[must_use]
    pub fn join(mut self, other: Self) -> Self {
        self.spans.extend(other.spans);
        self
    }

    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Sets the text for copies and exports, for a cell that is drawn with signs beside its value.
    #[must_use]
    pub fn copied_as(self, text: &str) -> Self {
        Self { copied: Some(visible::text(text).into_owned()), ..self }
    }

    /// The text for copies and exports.
    pub fn text(&self) -> String {
        if let Some(copied) = &self.copied {
            return copied.clone();
        }
        let text: String = self.spans.iter().map(|span| span.content.as_ref()).collect();
        text.trim().to_owned()
    }

    fn width(&self) -> usize {
        text::width_of(&self.spans)
    }
}

/// The drawn area of a heading that sorts the table by its column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heading {
    pub area: Rect,
    /// Title of the column.
    pub column: &'static str,
}

/// Styles of a table.
#[derive(Clone, Copy, Debug)]
pub struct Looks {
    pub heading: Style,
    pub sorted: Style,
    pub selected: Style,
    pub thumb: Style,
}

/// A table of `rows` rows that shows those from `first` on.
#[derive(Clone, Debug)]
pub struct TableWidget {
    pub columns: Vec<Column>,
    /// Whether dropped columns are shown after all where a wider column has left room for them.
    pub refills: bool,
    pub rows: usize,
    pub first: usize,
    pub selected: Option<usize>,
    pub looks: Looks,
}

impl TableWidget {
    /// Number of rows that fit below the heading.
    pub fn page(area: Rect) -> usize {
        usize::from(Self::body(area).height)
    }

    /// The area of the rows, below the heading.
    pub fn body(area: Rect) -> Rect {
        let heading = area.height.min(1);
        Rect { y: area.y + heading, height: area.height - heading, ..area }
    }

    /// Left edge and width of a column in this area, for tables whose widths do not depend on cells; `None` if the
    /// column does not fit.
    pub fn place_of(&self, column: usize, area: Rect) -> Option<(u16, u16)> {
        self.places(without_thumb(area), &[]).get(column).copied().flatten()
    }

    /// Width of a column in this area, as for [`place_of`](Self::place_of).
    pub fn width_of(&self, column: usize, area: Rect) -> Option<u16> {
        self.place_of(column, area).map(|(_, width)| width)
    }

    /// ```text
    ///   node ↑      zone   heartbeat
    ///   node-1      a             3s
    ///   node-2      b             5s ┃
    /// ```
    /// Draws the table. Asks `row` for the cells of each visible row, in the order of the columns. In a row with fewer
    /// cells than columns, the last cell extends to the edge. The last cell of a line is for the scroll thumb, which
    /// shows the position of the page in a long list. Returns the headings that sort the table when they are clicked.
    pub fn render(&self, area: Rect, buf: &mut Buffer, row: impl FnMut(usize) -> Vec<Cell>) -> Vec<Heading> {
        self.render_with(area, 1, buf, row, |_| Style::new())
    }

    /// Draws the table without a heading.
    pub fn render_bare(&self, area: Rect, buf: &mut Buffer, row: impl FnMut(usize) -> Vec<Cell>) {
        self.render_with(area, 0, buf, row, |_| Style::new());
    }

    /// Draws the table with a tint for each row.
    pub fn render_tinted(
        &self,
        area: Rect,
        buf: &mut Buffer,
        row: impl FnMut(usize) -> Vec<Cell>,
        tint: impl Fn(usize) -> Style,
    ) -> Vec<Heading> {
        self.render_with(area, 1, buf, row, tint)
    }

    fn render_with(
        &self,
        area: Rect,
        heading: u16,
        buf: &mut Buffer,
        row: impl FnMut(usize) -> Vec<Cell>,
        tint: impl Fn(usize) -> Style,
    ) -> Vec<Heading> {
        let mut headings = Vec::new();
        if area.is_empty() {
            return headings;
        }
        let page = usize::from(area.height.saturating_sub(heading));
        let last = self.rows.min(self.first + page);
        let cells: Vec<Vec<Cell>> = (self.first..last).map(row).collect();
        let top = area.y + heading;
        self.draw_thumb(area, top, page, buf);
        let edge = area.right();
        let area = without_thumb(area);
        let places = self.places(area, &cells);
        for (column, place) in self.columns.iter().zip(&places).filter(|_| heading > 0) {
            if let Some((x, width)) = *place {
                self.draw_heading(column, Rect::new(x, area.y, width, 1), edge, buf);
                let area = Rect::new(x, area.y, width, 1);
                headings.extend(column.sorts_by.map(|column| Heading { area, column }));
            }
        }
        for (line, cells) in cells.into_iter().enumerate() {
            let y = top + u16::try_from(line).unwrap_or(u16::MAX);
            let spanning = spanning(&cells, self.columns.len());
            for (number, cell) in cells.into_iter().enumerate() {
                if let (Some(column), Some(Some((x, width)))) = (self.columns.get(number), places.get(number))
                {
                    let width = if spanning == Some(number) { area.right() - x } else { *width };
                    draw_cell(cell, column.right && spanning.is_none(), Rect::new(*x, y, width, 1), buf);
                }
            }
            let tint = tint(self.first + line);
            if tint != Style::new() {
                buf.set_style(Rect::new(area.x, y, area.width, 1), tint);
            }
            if self.selected == Some(self.first + line) {
                buf.set_style(Rect::new(area.x, y, area.width, 1), self.looks.selected);
            }
        }
        headings
    }

    /// Draws the scroll thumb if the list is longer than the page. Its column stays free beside a short list, so that
    /// columns do not move when rows are added.
    fn draw_thumb(&self, area: Rect, first_line: u16, page: usize, buf: &mut Buffer) {
        if self.rows <= page || page == 0 || area.width < 3 {
            return;
        }
        let size = (page * page / self.rows).max(1);
        let top = (self.first * (page - size)).checked_div(self.rows - page).unwrap_or(0).min(page - size);
        for line in top..top + size {
            let y = first_line + u16::try_from(line).unwrap_or(0);
            buf.set_string(area.right() - 1, y, "┃", self.looks.thumb);
        }
    }

    /// Draws the heading of a column. Where the arrow of a sorted column does not fit, it takes the first cell of the gap
    /// behind the column, so that no column moves or is dropped because the table is sorted by another.
    fn draw_heading(&self, column: &Column, area: Rect, edge: u16, buf: &mut Buffer) {
        let Some(sign) = column.sorted else {
            return draw_cell(Cell::new(&column.title, self.looks.heading), column.right, area, buf);
        };
        let fits = text::width(&column.title) + text::width(sign) <= usize::from(area.width);
        let (sign, width) = if fits { (sign, area.width) } else { (sign.trim_start(), area.width + 1) };
        let title = self.looks.sorted.add_modifier(Modifier::BOLD);
        let cell = Cell::new(&column.title, title).and(sign, self.looks.sorted);
        draw_cell(cell, column.right, Rect { width: width.min(edge - area.x), ..area }, buf);
    }

    /// Start and width of each column; `None` for dropped columns.
    fn places(&self, area: Rect, cells: &[Vec<Cell>]) -> Vec<Option<(u16, u16)>> {
        let mut widths = Widths {
            columns: &self.columns,
            wanted: (0..self.columns.len()).map(|place| self.wanted(place, cells)).collect(),
            kept: vec![true; self.columns.len()],
            whole: vec![true; self.columns.len()],
        };
        widths.shrink(area.width);
        if self.refills {
            widths.refill(area.width);
        }
        let spare = area.width.saturating_sub(widths.total());
        let wanted: Vec<u16> = (0..self.columns.len()).map(|place| widths.of(place)).collect();
        self.lay(area, &wanted, &widths.kept, spare)
    }

    fn lay(&self, area: Rect, wanted: &[u16], kept: &[bool], spare: u16) -> Vec<Option<(u16, u16)>> {
        let weight = |place: usize| match self.columns[place].width {
            Width::Grow(_, weight) if kept[place] => weight,
            Width::Grow(..) | Width::Fixed(_) | Width::Fit(..) => 0,
        };
        let weights: u16 = (0..kept.len()).map(weight).sum();
        let mut x = area.x;
        let mut places = Vec::with_capacity(kept.len());
        for (place, wanted) in wanted.iter().enumerate() {
            if !kept[place] || x >= area.right() {
                places.push(None);
                continue;
            }
            let share = u32::from(spare) * u32::from(weight(place)) / u32::from(weights.max(1));
            let width = (wanted + u16::try_from(share).unwrap_or(0)).min(area.right() - x);
            places.push((width > 0).then_some((x, width)));
            x = x.saturating_add(width + GAP);
        }
        places
    }

    /// Width of a column before spare cells are distributed.
    fn wanted(&self, place: usize, cells: &[Vec<Cell>]) -> u16 {
        let column = &self.columns[place];
        let heading = text::width(&column.title) + column.sorted.map_or(0, text::width);
        match column.width {
            Width::Fixed(width) | Width::Grow(width, _) => width,
            Width::Fit(least, most) => {
                let fits = |row: &&Vec<Cell>| spanning(row, self.columns.len()) != Some(place);
                let own = cells.iter().filter(fits).filter_map(|row| row.get(place));
                let widest = own.map(Cell::width).max().unwrap_or(0);
                u16::try_from(widest.max(heading)).unwrap_or(u16::MAX).clamp(least, most)
            }
        }
    }
}

/// The columns that are shown, and their widths before spare cells are distributed.
struct Widths<'a> {
    columns: &'a [Column],
    /// Widths of the columns, apart from their [whole widths](Column::whole).
    wanted: Vec<u16>,
    kept: Vec<bool>,
    /// Whether a column has its whole width, if it has one.
    whole: Vec<bool>,
}

impl Widths<'_> {
    fn of(&self, place: usize) -> u16 {
        match self.columns[place].whole {
            Some((width, _)) if self.whole[place] => width.max(self.wanted[place]),
            Some(_) | None => self.wanted[place],
        }
    }

    fn total(&self) -> u16 {
        let kept = (0..self.kept.len()).filter(|place| self.kept[*place]);
        kept.map(|place| self.of(place) + GAP).sum::<u16>().saturating_sub(GAP)
    }

    /// Priority of what a column gives up first: its whole width, then its place. 0 means that it gives up nothing.
    fn priority(&self, place: usize) -> u8 {
        match self.columns[place].whole {
            _ if !self.kept[place] => 0,
            Some((_, priority)) if self.whole[place] => priority,
            Some(_) | None => self.columns[place].priority,
        }
    }

    /// Gives up whole widths and columns, by priority, until the others fit.
    fn shrink(&mut self, room: u16) {
        while self.total() > room
            && let Some(least) = (0..self.kept.len())
                .filter(|place| self.priority(*place) > 0)
                .max_by_key(|place| self.priority(*place))
        {
            if self.columns[least].whole.is_some() && self.whole[least] {
                self.whole[least] = false;
            } else {
                self.kept[least] = false;
            }
        }
    }

    /// Takes dropped columns back, by priority, if they fit.
    fn refill(&mut self, room: u16) {
        let mut dropped: Vec<usize> = (0..self.kept.len()).filter(|place| !self.kept[*place]).collect();
        dropped.sort_by_key(|place| self.columns[*place].priority);
        for place in dropped {
            self.kept[place] = true;
            self.kept[place] = self.total() <= room;
        }
    }
}

/// The area without the cells that are reserved for the scroll thumb.
fn without_thumb(area: Rect) -> Rect {
    let thumb = if area.width < 3 { 0 } else { THUMB as u16 };
    Rect { width: area.width - thumb, ..area }
}

/// Index of the cell that extends to the edge, in a row with fewer cells than columns.
const fn spanning(row: &[Cell], columns: usize) -> Option<usize> {
    if row.len() < columns { row.len().checked_sub(1) } else { None }
}

fn draw_cell(cell: Cell, right: bool, area: Rect, buf: &mut Buffer) {
    let line = cut_line(Line::from(cell.spans), usize::from(area.width));
    let free = || usize::from(area.width).saturating_sub(text::width_of(&line.spans));
    let indent = if right { u16::try_from(free()).unwrap_or(0) } else { 0 };
    text::draw_line(&line, (area.x + indent, area.y), area.width - indent, buf);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(width: u16, height: u16, rows: usize, first: usize) -> (Vec<String>, Vec<usize>) {
        let column = |title: &'static str, width, right, priority| Column {
            right,
            priority,
            ..Column::plain(title, width)
        };
        let plain = Style::default();
        let table = TableWidget {
            columns: vec![
                column("name", Width::Grow(6, 1), false, 0),
                column("zone", Width::Fit(4, 8), false, 2),
                column("age", Width::Fixed(4), true, 1),
            ],
            refills: false,
            rows,
            first,
            selected: None,
            looks: Looks { heading: plain, sorted: plain, selected: plain, thumb: plain },
        };
        let area = Rect::new(0, 0, width, height);
        let mut buf = Buffer::empty(area);
        let mut asked = Vec::new();
        table.render(area, &mut buf, |row| {
            asked.push(row);
            [format!("node-{row}"), "eu-1a".into(), format!("{row}s")]
                .map(|text| Cell::new(&text, plain))
                .into()
        });
        let lines = buf
            .content
            .chunks(usize::from(width))
            .map(|line| line.iter().map(|cell| cell.symbol()).collect());
        (lines.collect(), asked)
    }

    #[test]
    fn only_visible_rows_are_asked_for_however_long_the_list() {
        let (lines, asked) = drawn(24, 3, 1_000_000, 500_000);
        assert_eq!(asked, [500_000, 500_001]);
        assert_eq!(lines.len(), 3);
        assert!(lines[1].ends_with('┃') || lines[2].ends_with('┃'), "{lines:?}");
    }

    #[test]
    fn columns_are_dropped_by_priority_and_numbers_are_aligned_right() {
        assert_eq!(drawn(26, 2, 1, 0).0, ["name         zone    age  ", "node-0       eu-1a    0s  "]);
        assert_eq!(drawn(16, 2, 1, 0).0, ["name       age  ", "node-0      0s  "]);
        assert_eq!(drawn(10, 2, 1, 0).0, ["name      ", "node-0    "]);
        assert_eq!(drawn(7, 2, 1, 0).0, ["name   ", "node…  "]);
    }

    #[test]
    fn a_whole_width_gives_way_before_a_column_and_dropped_columns_come_back_where_they_fit() {
        let plain = Style::default();
        let titles = |width: u16, refills| -> Vec<(&'static str, u16)> {
            let columns = vec![
                Column::plain("name", Width::Fixed(6)),
                Column::plain("zone", Width::Fixed(2)).gives_way(1).whole(9, 3),
                Column::plain("taints", Width::Fixed(12)).gives_way(2),
                Column::plain("age", Width::Fixed(4)).gives_way(4),
            ];
            let looks = Looks { heading: plain, sorted: plain, selected: plain, thumb: plain };
            let table = TableWidget { columns, refills, rows: 1, first: 0, selected: None, looks };
            let area = Rect::new(0, 0, width + THUMB as u16, 2);
            let shown = |place: usize| Some((table.columns[place].name, table.width_of(place, area)?));
            (0..4).filter_map(shown).collect()
        };
        let all = [("name", 6), ("zone", 9), ("taints", 12), ("age", 4)];
        assert_eq!(titles(37, true), all);
        assert_eq!(titles(36, true), all[..3], "age does not fit");
        assert_eq!(titles(30, true), [("name", 6), ("zone", 2), ("taints", 12), ("age", 4)]);
        assert_eq!(titles(30, false), [("name", 6), ("zone", 2), ("taints", 12)]);
        assert_eq!(titles(20, true), [("name", 6), ("zone", 2), ("age", 4)]);
    }

    #[test]
    fn sorting_by_a_narrow_column_drops_and_moves_no_other() {
        let heading = |sorted| {
            let plain = Style::default();
            let columns = vec![
                Column { sorted, ..Column::plain("zone", Width::Fixed(4)) },
                Column { sorted, ..Column::plain("pods", Width::Fixed(4)).right() },
                Column { sorted, ..Column::plain("age", Width::Fixed(5)).right().gives_way(1) },
            ];
            let looks = Looks { heading: plain, sorted: plain, selected: plain, thumb: plain };
            let table = TableWidget { columns, refills: false, rows: 1, first: 0, selected: None, looks };
            let area = Rect::new(0, 0, 17 + THUMB as u16, 1);
            let mut buf = Buffer::empty(area);
            table.render(area, &mut buf, |_| Vec::new());
            buf.content.iter().map(|cell| cell.symbol()).collect::<String>()
        };
        assert_eq!(heading(None), "zone  pods    age  ");
        assert_eq!(heading(Some(" ↑")), "zone↑ pods↑ age ↑  ");
    }

    #[test]
    fn no_size_is_too_small_to_draw() {
        for width in 1..12 {
            for height in 1..4 {
                for rows in [0, 1, 5] {
                    drawn(width, height, rows, 0);
                }
            }
        }
    }
}
