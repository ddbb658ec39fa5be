//! The banner below the header: an interrupted drain that the operator has not decided on yet.

use ratatui::{buffer::Buffer, layout::Rect, text::Span};

use super::{
    Scene, text,
    theme::Role,
    widgets::segments::{Runs, Segments},
};
use crate::app::Mode;

/// Draws the oldest interrupted drain with the keys for it:
/// ```text
/// ▲ drain general-1a-02 was interrupted  started 10:31:02 by alice@desk   R resume (:enforce first)  U undo  X dismiss
/// ```
pub fn draw(scene: &Scene, area: Rect, buf: &mut Buffer) {
    let Some(prior) = scene.app.operations.interrupted.front() else { return };
    let dim = scene.style(Role::Dim);
    let key = |key: &str, words: &str| {
        Runs::new(key, scene.style(Role::Key)).and(" ", dim).and(words, scene.style(Role::Base))
    };
    let more = match scene.app.operations.interrupted.len() {
        1 => String::new(),
        all => format!(" and {} more", text::count(all - 1)),
    };
    let needs = if scene.app.operations.mode == Mode::Enforce { "" } else { " (:enforce first)" };
    let started = format!("started {} by {}", text::clock(prior.started_at), prior.by);
    let what = Runs::new("▲ ", scene.style(Role::LevelWarning))
        .and(&prior.title, scene.style(Role::Strong))
        .and(" was interrupted", scene.style(Role::LevelWarning))
        .and(&more, scene.style(Role::LevelWarning));
    let line = Segments::default()
        .left(0, what)
        .left(3, Runs::new(&started, dim))
        .right(0, key("R", "resume").and(needs, dim))
        .right(1, key("U", "undo"))
        .right(1, key("X", "dismiss"));
    let area = Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area };
    line.render(area, &Span::styled("  ", dim), buf);
}
