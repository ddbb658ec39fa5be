//! The help: all commands with their keys, from the command table. Commands that apply to the focused pane come first.

use ratatui::{
    buffer::Buffer,
    layout::{Constraint, Rect},
    widgets::Block,
};

use super::{
    Scene, text,
    theme::Role,
    widgets::{Cell, Column, TableWidget, Width, segments::Runs, sheet},
};
use crate::app::{
    commands::{Command, KeyContext},
    help::{HelpGroup, HelpRow, HelpSheet},
};
use kordon_core::visible;

/// ```text
/// ╭ Keys  Nodes ─────────────────────────────────────╮
/// │ move                                             │
/// │   Enter     Show the pods of the selected node.  │
/// │   ↓ j       Select the next row.                 │
/// │ elsewhere                                        │
/// │   p         Pause the operation, or resume it.   │  in the progress
/// ╰──────────────────────────────────────────────────╯
/// ```
/// Draws the help over the middle of the screen above the footer, scrolled to its first shown row.
pub fn draw(scene: &Scene, help: &HelpSheet, area: Rect, buf: &mut Buffer) {
    let rows = help.rows(scene.app);
    let area = Rect { height: area.height.saturating_sub(1), ..area };
    // The help keeps its height during a search, even if fewer commands match.
    let height = area.height.saturating_sub(1);
    let area =
        area.centered(Constraint::Max(118.min(area.width.saturating_sub(4))), Constraint::Length(height));
    let title = Runs::new(" Keys ", scene.style(Role::TitleFocus))
        .and(&format!(" {} ", scene.screen.focus.title()), scene.style(Role::Accent));
    let title = match help.search.value() {
        "" => title,
        search => title.and(&format!("/{search} "), scene.style(Role::Strong)),
    };
    let bottom = " / searches · Esc closes · no key changes a cluster without a question ";
    let frame = Block::bordered()
        .border_style(scene.style(Role::BorderFocus))
        .title(title.line())
        .title_bottom(Runs::new(bottom, scene.style(Role::Dim)).line());
    let inner = sheet(frame, scene.style(Role::Base), area, buf);
    let page = usize::from(inner.height);
    if rows.is_empty() {
        let words = Runs::new("no command matches (Esc shows all)", scene.style(Role::Dim));
        text::draw_line(&words.line(), (inner.x, inner.y), inner.width, buf);
        return;
    }
    let column = |width, priority| Column::plain("", width).gives_way(priority);
    let table = TableWidget {
        columns: vec![
            column(Width::Fixed(21), 0),
            column(Width::Grow(20, 1), 0),
            column(Width::Fixed(33), 1),
        ],
        refills: false,
        rows: rows.len(),
        first: help.scrolled.min(rows.len().saturating_sub(page)),
        selected: None,
        looks: scene.looks(scene.screen.focus),
    };
    table.render_bare(inner, buf, |row| match &rows[row] {
        HelpRow::Title(group) => vec![Cell::new(group.title(), scene.style(Role::Heading))],
        HelpRow::Command(command, group) => cells(scene, command, *group),
    });
}

fn cells(scene: &Scene, command: &Command, group: HelpGroup) -> Vec<Cell> {
    let context = match (group, command.context) {
        (HelpGroup::Elsewhere, KeyContext::Everywhere) => "nothing to do now".into(),
        (HelpGroup::Elsewhere | HelpGroup::Typing, context) => context.to_string(),
        (HelpGroup::Move | HelpGroup::Look | HelpGroup::Act | HelpGroup::Time | HelpGroup::Session, _) => {
            String::new()
        }
    };
    let keymap = &scene.app.preferences.keymap;
    let keys: Vec<String> = keymap.keys(command).map(|chord| chord.to_string()).collect();
    let keys = if keys.is_empty() { keymap.shortcuts(command) } else { keys };
    let missing = scene.app.missing_right(command.action);
    let (key, base) = if missing.is_some() { (Role::Dim, Role::Dim) } else { (Role::Key, Role::Base) };
    let right = missing.map_or_else(String::new, |missing| format!("({missing}) "));
    let mut cells = vec![
        Cell::new("  ", scene.style(Role::Dim)).and(&keys.join(" "), scene.style(key)),
        Cell::new(&right, scene.style(Role::LevelWarning))
            .and(&visible::text(command.doc).replace('`', ""), scene.style(base)),
    ];
    // Without a column that says where the command applies, the text extends to the edge.
    if !context.is_empty() {
        cells.push(Cell::new(&context, scene.style(Role::Dim)));
    }
    cells
}
