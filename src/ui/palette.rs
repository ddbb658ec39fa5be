//! The command palette: commands that match the typed text, over the lower part of the screen.

use ratatui::{buffer::Buffer, layout::Rect, widgets::Block};

use super::{
    Scene,
    theme::Role,
    widgets::{Cell, Column, TableWidget, Width, segments::Runs, sheet},
};
use crate::app::{Command, palette::Palette, screen_part::ScreenPart};
use kordon_core::visible;

/// Maximum number of commands shown at a time.
const MOST: usize = 12;

/// ```text
/// ╭ Commands ──────────────────────────────────────────────────────────╮
/// │ enforce [LIFETIME]  Allow plans to be applied, for 15m or the …    │
/// │ drain               Plan to drain the marked nodes, …            r  │
/// ╰ Enter runs · Tab completes · Esc closes ───────────────────────────╯
/// :en▏
/// ```
/// Draws the list right above the line in which the command is typed.
pub fn draw(scene: &Scene, palette: &Palette, footer: Rect, area: Rect, buf: &mut Buffer) {
    let rows = palette.found.len();
    let shown = rows.clamp(1, MOST).min(usize::from(area.height.saturating_sub(6)));
    let height = u16::try_from(shown + 2).unwrap_or(u16::MAX);
    let area = Rect { y: footer.y.saturating_sub(height), height, ..area };
    let frame = Block::bordered()
        .border_style(scene.style(scene.border(true)))
        .title(Runs::new(" Commands ", scene.style(Role::TitleFocus)).line())
        .title_bottom(Runs::new(" Enter runs · Tab completes · Esc closes ", scene.style(Role::Dim)).line());
    let inner = sheet(frame, scene.style(Role::Base), area, buf);
    if rows == 0 {
        buf.set_stringn(
            inner.x,
            inner.y,
            "no command matches",
            usize::from(inner.width),
            scene.style(Role::Dim),
        );
        return;
    }
    let column = |width, priority| Column::plain("", width).gives_way(priority);
    let first = (palette.chosen + 1).saturating_sub(shown);
    scene.can_click(inner, ScreenPart::Proposals { first });
    let table = TableWidget {
        columns: vec![
            column(Width::Fit(10, 24), 0),
            column(Width::Grow(20, 1), 0),
            column(Width::Fit(1, 10), 1),
        ],
        refills: false,
        rows,
        first,
        selected: Some(palette.chosen),
        looks: scene.looks(scene.screen.focus),
    };
    table.render_bare(inner, buf, |row| cells(scene, palette, palette.found[row]));
}

fn cells(scene: &Scene, palette: &Palette, command: &Command) -> Vec<Cell> {
    let applies = palette.applies(command);
    let missing = scene.app.missing_right(command.action);
    let stands_out = applies && missing.is_none();
    let (name, doc) = if stands_out { (Role::Key, Role::Base) } else { (Role::Dim, Role::Dim) };
    let takes = command.takes.unwrap_or_default();
    let keys: Vec<String> =
        scene.app.preferences.keymap.keys(command).map(|chord| chord.to_string()).collect();
    let place = if applies { String::new() } else { format!("{}: ", command.context) };
    let right = missing.map_or_else(String::new, |missing| format!("({missing}) "));
    vec![
        Cell::new(command.name, scene.style(name)).and(&format!(" {takes}"), scene.style(Role::Dim)),
        Cell::new(&place, scene.style(Role::Dim))
            .and(&right, scene.style(Role::LevelWarning))
            .and(&visible::text(command.doc).replace('`', ""), scene.style(doc)),
        Cell::new(&keys.join(" "), scene.style(Role::Dim)),
    ]
}
