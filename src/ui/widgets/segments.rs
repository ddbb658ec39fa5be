//! A line of several pieces. When space is short, the least important ones are dropped.

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::Style,
    text::{Line, Span},
};

use crate::ui::text;
use kordon_core::visible;

/// Pieces on the left and on the right of one line.
#[derive(Clone, Debug, Default)]
pub struct Segments {
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug)]
struct Piece {
    /// Priority of the piece. Pieces of priority 0 are never dropped; of the others, the highest number is dropped
    /// first.
    priority: u8,
    right: bool,
    spans: Vec<Span<'static>>,
}

/// Styled text of one piece.
#[derive(Clone, Debug, Default)]
pub struct Runs(Vec<Span<'static>>);

impl Runs {
    pub fn new(text: &str, style: Style) -> Self {
        Self::default().and(text, style)
    }

    /// Appends text. Invisible characters are replaced with visible ones.
    #[must_use]
    pub fn and(mut self, text: &str, style: Style) -> Self {
        self.0.push(Span::styled(visible::text(text).into_owned(), style));
        self
    }

    /// Appends other styled texts.
    #[must_use]
    pub fn join(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Width of the styled texts in cells.
    pub fn width(&self) -> usize {
        text::width_of(&self.0)
    }

    /// Drops the last parts until the rest fits `cells`. Parts begin with ` · `.
    #[must_use]
    pub fn fitted(mut self, cells: usize) -> Self {
        while self.width() > cells
            && let Some(part) = self.0.iter().rposition(|span| span.content.starts_with(" · "))
        {
            self.0.truncate(part);
            self.0.push(Span::raw(" "));
        }
        self
    }

    pub fn line(self) -> Line<'static> {
        Line::from(self.0)
    }
}

impl Segments {
    #[must_use]
    pub fn left(mut self, priority: u8, runs: Runs) -> Self {
        self.pieces.push(Piece { priority, right: false, spans: runs.0 });
        self
    }

    #[must_use]
    pub fn right(mut self, priority: u8, runs: Runs) -> Self {
        self.pieces.push(Piece { priority, right: true, spans: runs.0 });
        self
    }

    /// Draws the line with `gap` between pieces.
    pub fn render(mut self, area: Rect, gap: &Span<'static>, buf: &mut Buffer) {
        if area.is_empty() {
            return;
        }
        let width = usize::from(area.width);
        while self.width(gap) > width
            && let Some(least) = self.pieces.iter().map(|piece| piece.priority).max().filter(|most| *most > 0)
        {
            let place = self.pieces.iter().rposition(|piece| piece.priority == least);
            self.pieces.remove(place.expect("the maximum is among them"));
        }
        let side = |right: bool| {
            let mut spans = Vec::new();
            for piece in self.pieces.iter().filter(|piece| piece.right == right && !piece.spans.is_empty()) {
                if !spans.is_empty() {
                    spans.push(gap.clone());
                }
                spans.extend(piece.spans.iter().cloned());
            }
            Line::from(spans)
        };
        let (left, right) = (side(false), side(true));
        let kept = u16::try_from(text::width_of(&right.spans)).unwrap_or(u16::MAX).min(area.width);
        let end = area.right() - kept;
        text::draw_line(&right, (end, area.y), kept, buf);
        let free = area.width - kept;
        let left = cut_line(left, usize::from(free.saturating_sub(u16::from(kept > 0))));
        text::draw_line(&left, (area.x, area.y), free, buf);
    }

    fn width(&self, gap: &Span<'static>) -> usize {
        let pieces: usize = self.pieces.iter().map(|piece| text::width_of(&piece.spans)).sum();
        pieces + text::width(&gap.content) * self.pieces.len().saturating_sub(1)
    }
}

/// Cuts the line to this many cells, with `…` at the cut.
pub fn cut_line(line: Line<'static>, cells: usize) -> Line<'static> {
    if text::width_of(&line.spans) <= cells {
        return line;
    }
    let mut room = cells;
    let mut spans = Vec::new();
    for span in line.spans {
        let width = text::width(&span.content);
        // Further text may follow a text that fits exactly. In that case the last cell of the fitting text becomes `…`.
        if width < room {
            room -= width;
            spans.push(span);
            continue;
        }
        let kept = text::cut(&format!("{}{}", span.content, "  "), room).into_owned();
        spans.push(Span::styled(kept, span.style));
        break;
    }
    Line::from(spans)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(width: u16) -> String {
        let style = Style::default();
        let line = Segments::default()
            .left(0, Runs::new("DRY-RUN", style))
            .left(2, Runs::new("server", style))
            .left(1, Runs::new("context", style))
            .right(0, Runs::new("live", style));
        let area = Rect::new(0, 0, width, 1);
        let mut buf = Buffer::empty(area);
        line.render(area, &Span::raw(" "), &mut buf);
        buf.content.iter().map(|cell| cell.symbol()).collect()
    }

    #[test]
    fn parts_that_do_not_fit_are_left_out_whole() {
        let runs = |cells| {
            let style = Style::default();
            let runs =
                Runs::new("30", style).and(" · ", style).and("4 Evicting", style).and(" · 2 more", style);
            let spans = runs.fitted(cells).0;
            spans.iter().map(|span| span.content.to_string()).collect::<String>()
        };
        assert_eq!([24, 23, 15, 5].map(runs), ["30 · 4 Evicting · 2 more", "30 · 4 Evicting ", "30 ", "30 "]);
    }

    #[test]
    fn the_least_important_pieces_are_dropped_first() {
        assert_eq!(drawn(30), "DRY-RUN server context    live");
        assert_eq!(drawn(22), "DRY-RUN context   live");
        assert_eq!(drawn(14), "DRY-RUN   live");
        assert_eq!(drawn(9), "DRY… live");
        assert_eq!(drawn(2), "li");
        assert_eq!(drawn(0), "");
    }
}
