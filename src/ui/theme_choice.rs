//! The list of themes, in a corner. The rest of the screen shows the theme under the cursor.

use ratatui::{buffer::Buffer, layout::Rect, widgets::Block};

use super::{
    Scene, text,
    theme::Role,
    widgets::{segments::Runs, sheet},
};
use crate::app::ThemeChooser;

/// Width of the list of themes in cells.
const WIDTH: u16 = 34;
/// Maximum number of themes shown at a time.
const MOST: u16 = 10;

/// ```text
///                                        ╭ Themes  /sol ─────────────────╮
///                                        │   solarized-dark              │
///                                        │ ▸ solarized-light             │
///                                        ╰ Enter keeps · Esc as before ──╯
/// ```
/// Draws the list right above the footer.
pub fn draw(scene: &Scene, chooser: &ThemeChooser, footer: Rect, area: Rect, buf: &mut Buffer) {
    let width = WIDTH.min(area.width);
    let names = u16::try_from(chooser.found().len()).unwrap_or(u16::MAX);
    // The list keeps its height while the user types, even if fewer themes match.
    let shown = MOST.min(area.height.saturating_sub(6));
    let height = shown + 2;
    let place = Rect { x: area.right() - width, y: footer.y.saturating_sub(height), width, height };
    let title = Runs::new(" Themes ", scene.style(Role::TitleFocus));
    let title = match chooser.input.value() {
        "" => title,
        letters => title.and(&format!(" /{} ", text::cut(letters, 16)), scene.style(Role::Strong)),
    };
    let frame = Block::bordered()
        .border_style(scene.style(Role::BorderFocus))
        .title(title.line())
        .title_bottom(Runs::new(" Enter keeps · Esc as before ", scene.style(Role::Dim)).line());
    let inner = sheet(frame, scene.style(Role::Base), place, buf);
    if names == 0 {
        let words = "no theme has these letters";
        buf.set_stringn(inner.x, inner.y, words, usize::from(inner.width), scene.style(Role::Dim));
        return;
    }
    let first = (chooser.cursor() + 1).saturating_sub(usize::from(shown));
    let rows = chooser.found().enumerate().skip(first);
    for (y, (row, name)) in (inner.y..inner.bottom()).zip(rows) {
        let is_chosen = row == chooser.cursor();
        let style = scene.style(if is_chosen { Role::Strong } else { Role::Base });
        let line = format!("{} {name}", if is_chosen { "▸" } else { " " });
        buf.set_stringn(inner.x, y, &line, usize::from(inner.width), style);
        if is_chosen {
            buf.set_style(Rect { y, height: 1, ..inner }, scene.style(Role::Selected));
        }
    }
}
