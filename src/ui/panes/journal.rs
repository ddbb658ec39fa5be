//! The journal: decisions, writes and errors.

use ratatui::{buffer::Buffer, layout::Rect};

use super::{Nothing, draw_full_text, open, plain, say};
use crate::{
    app::Pane,
    engine::Severity,
    model::JournalEntry,
    ui::{
        Scene, text,
        theme::Role,
        widgets::{Cell, TableWidget, Width, segments::Runs},
    },
};

/// ```text
/// ─ 5 Journal  21 ─────────────────────────────────────────
/// 03:12:45  • node/n-3 conditions marked Unknown
/// 03:12:40  ▲ watch/pods broken: connection reset  ×3
/// ```
/// Draws the entries, newest first; returns how many rows there is room for.
pub fn draw(scene: &Scene, area: Rect, buf: &mut Buffer) -> usize {
    let list = &scene.screen.journal;
    let journal = &scene.shown.journal;
    let facts = Runs::new(&text::count(journal.len()), scene.style(Role::Dim));
    let inner = open(scene, Pane::Journal, area, facts, buf);
    let selected = list.selected().and_then(|number| journal.entry(*number));
    let inner = draw_full_text(scene, Pane::Journal, selected.map(full_text), inner, buf);
    let page = usize::from(inner.height);
    if list.is_empty() {
        let (glyph, text, role) = nothing();
        say(scene, glyph, &text, role, inner, buf);
        return page;
    }
    let table = TableWidget {
        columns: vec![plain("", Width::Fixed(8)), plain("", Width::Grow(20, 1))],
        rows: list.len(),
        first: list.first_shown(page),
        selected: list.cursor(),
        looks: scene.looks(Pane::Journal),
    };
    table.render_bare(inner, buf, |row| {
        let entry = list.keys().get(row).and_then(|number| journal.entry(*number));
        entry.map(|entry| cells(scene, entry)).unwrap_or_default()
    });
    page
}

/// Why there is none.
pub(super) fn nothing() -> Nothing {
    ("○", "no entries yet".into(), Role::Dim)
}

fn cells(scene: &Scene, entry: &JournalEntry) -> Vec<Cell> {
    let dim = scene.style(Role::Dim);
    let (glyph, role) = match entry.level {
        Severity::Info => ("•", Role::LevelInfo),
        Severity::Warning => ("▲", Role::LevelWarning),
        Severity::Error => ("✗", Role::LevelError),
    };
    let mut what = Cell::new(glyph, scene.style(role)).and(" ", dim);
    if !entry.subject.is_empty() {
        what = what.and(&entry.subject, scene.style(Role::Accent));
    }
    if entry.others > 0 {
        what = what.and(&format!(" and {} more", text::count(entry.others)), scene.style(Role::Strong));
    }
    if !entry.subject.is_empty() {
        what = what.and(" ", dim);
    }
    what = what.and(&text::brief(&entry.text), scene.style(Role::Base));
    if entry.times > 1 {
        what = what.and(&format!("  ×{}", text::count(entry.times)), scene.style(Role::Strong));
    }
    vec![Cell::new(&text::clock(entry.last), dim), what]
}

/// The full text of the selected entry.
fn full_text(entry: &JournalEntry) -> String {
    let why = entry.why.to_string();
    let why = if why.is_empty() { String::new() } else { format!(" ← {why}") };
    format!("{} {}{why}", entry.subject, entry.text).trim_start().into()
}
