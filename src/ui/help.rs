//! The help: every command with its keys, from the command table.

use ratatui::{buffer::Buffer, layout::Rect, widgets::Block};

use super::{
    Scene,
    theme::Role,
    widgets::{Cell, Column, TableWidget, Width, segments::Runs, sheet},
};
use crate::{
    app::commands::{COMMANDS, KeyContext},
    visible,
};

/// ```text
/// ╭ Keys ───────────────────────────────────────────╮
/// │  ↓ j         Select the next row.                │
/// │  Enter       Show the pods of the selected node. │  in the nodes
/// ╰──────────────────────────────────────────────────╯
/// ```
/// Draws the table over the middle of the screen, from the row that it is scrolled to.
pub fn draw(scene: &Scene, scrolled: usize, area: Rect, buf: &mut Buffer) {
    let rows = COMMANDS.len();
    let height = u16::try_from(rows + 2).unwrap_or(u16::MAX).min(area.height.saturating_sub(2));
    let area = area.centered(
        ratatui::layout::Constraint::Max(118.min(area.width.saturating_sub(4))),
        ratatui::layout::Constraint::Length(height),
    );
    let title = Runs::new(" Keys ", scene.style(Role::TitleFocus)).line();
    let frame = Block::bordered().border_style(scene.style(Role::BorderFocus)).title(title).title_bottom(
        Runs::new(" Esc closes · no key changes a cluster without a question ", scene.style(Role::Dim))
            .line(),
    );
    let inner = sheet(frame, scene.style(Role::Base), area, buf);
    let page = usize::from(inner.height);
    let column = |width, priority| Column { title: "", width, right: false, priority, sorted: None };
    let table = TableWidget {
        columns: vec![
            column(Width::Fit(6, 19), 0),
            column(Width::Grow(20, 1), 0),
            column(Width::Fit(10, 33), 1),
        ],
        rows,
        first: scrolled.min(rows.saturating_sub(page)),
        selected: None,
        looks: scene.looks(scene.screen.focus),
    };
    table.render_bare(inner, buf, |row| {
        let command = &COMMANDS[row];
        let keys = command.shortcuts();
        let context = if command.context == KeyContext::Everywhere {
            String::new()
        } else {
            command.context.to_string()
        };
        vec![
            Cell::new(&keys.join(" "), scene.style(Role::Key)),
            Cell::new(&visible::text(command.doc).replace('`', ""), scene.style(Role::Base)),
            Cell::new(&context, scene.style(Role::Dim)),
        ]
    });
}
