//! A framed sheet over everything drawn before.

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::Style,
    widgets::{Block, BorderType, Clear, Widget},
};

/// Clears the area and frames it. Returns the area for text, which leaves one cell on the left and on the right.
pub fn sheet(frame: Block, base: Style, area: Rect, buf: &mut Buffer) -> Rect {
    Clear.render(area, buf);
    buf.set_style(area, base);
    let frame = frame.border_type(BorderType::Rounded);
    let inner = frame.inner(area);
    frame.render(area, buf);
    Rect { x: inner.x + 1, width: inner.width.saturating_sub(2), ..inner }
}
