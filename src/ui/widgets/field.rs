//! An input line.

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::{Modifier, Style},
};
use tui_input::Input;

use kordon_core::visible;

/// Draws the part of the text around the cursor that fits, and the cursor itself if `cursor` is set. Returns the
/// cursor's column.
pub fn field(input: &Input, style: Style, cursor: bool, area: Rect, buf: &mut Buffer) -> u16 {
    let room = usize::from(area.width.saturating_sub(1));
    if cursor {
        buf.set_style(area, style);
    }
    let skipped = input.visual_scroll(room);
    let visible: String = visible::text(input.value()).chars().skip(skipped).collect();
    buf.set_stringn(area.x, area.y, visible, room, style);
    let column = input.visual_cursor().saturating_sub(skipped).min(room);
    let column = area.x + u16::try_from(column).unwrap_or(0);
    if cursor && let Some(cell) = buf.cell_mut((column, area.y)) {
        cell.set_style(Style::new().add_modifier(Modifier::REVERSED));
    }
    column
}
