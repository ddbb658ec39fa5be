//! A scrollable sheet of lines over the middle of the screen.

use ratatui::{
    buffer::Buffer,
    layout::{Constraint, Rect},
    widgets::Block,
};

use super::{
    Scene, text,
    theme::Role,
    widgets::{segments::Runs, sheet},
};

/// Number of cells by which the frame narrows a sheet.
pub const FRAME: u16 = 4;

/// Draws the lines in a sheet of at most `width` cells, starting at the line with index `scrolled`. Calls `runs` only for
/// the lines that are on screen.
pub fn draw<L>(
    scene: &Scene,
    title: &str,
    (lines, scrolled): (Vec<L>, usize),
    runs: impl Fn(L) -> Runs,
    width: u16,
    area: Rect,
    buf: &mut Buffer,
) {
    let height = u16::try_from(lines.len() + 2).unwrap_or(u16::MAX).min(area.height.saturating_sub(2));
    let area = area.centered(Constraint::Max(width), Constraint::Length(height));
    let frame = Block::bordered()
        .border_style(scene.style(Role::BorderFocus))
        .title(Runs::new(&format!(" {title} "), scene.style(Role::TitleFocus)).line())
        .title_bottom(Runs::new(" Esc closes ", scene.style(Role::Dim)).line());
    let inner = sheet(frame, scene.style(Role::Base), area, buf);
    let first = scrolled.min(lines.len().saturating_sub(usize::from(inner.height)));
    for (y, line) in (inner.y..inner.bottom()).zip(lines.into_iter().skip(first)) {
        text::draw_line(&runs(line).line(), (inner.x, y), inner.width, buf);
    }
}
