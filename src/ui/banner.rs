//! The line under the header that tells of a drain that was cut off, until it is answered.

use ratatui::{buffer::Buffer, layout::Rect, text::Span};

use super::{
    Scene, text,
    theme::Role,
    widgets::segments::{Runs, Segments},
};
use crate::app::{Mode, operations::past_title};

/// ```text
/// ▲ drain general-1a-02 was cut off  began 10:31:02 by alice@desk       R resume (:enforce first)  U undo  X dismiss
/// ```
pub fn draw(scene: &Scene, area: Rect, buf: &mut Buffer) {
    let Some(past) = scene.app.acts.unfinished.front() else { return };
    let dim = scene.style(Role::Dim);
    let key = |key: &str, words: &str| {
        Runs::new(key, scene.style(Role::Key)).and(" ", dim).and(words, scene.style(Role::Base))
    };
    let more = match scene.app.acts.unfinished.len() {
        1 => String::new(),
        all => format!(" and {} more", text::count(all - 1)),
    };
    let needs = if scene.app.mode == Mode::Enforce { "" } else { " (:enforce first)" };
    let began = format!("began {} by {}", text::clock(past.started), past.start.by);
    let what = Runs::new("▲ ", scene.style(Role::LevelWarning))
        .and(&past_title(past), scene.style(Role::Strong))
        .and(" was cut off", scene.style(Role::LevelWarning))
        .and(&more, scene.style(Role::LevelWarning));
    let line = Segments::default()
        .left(0, what)
        .left(3, Runs::new(&began, dim))
        .right(0, key("R", "resume").and(needs, dim))
        .right(1, key("U", "undo"))
        .right(1, key("X", "dismiss"));
    let area = Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area };
    line.render(area, &Span::styled("  ", dim), buf);
}
