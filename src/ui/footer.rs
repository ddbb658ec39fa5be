//! The footer: what the keys do here, or the filter that is being typed.

use ratatui::{buffer::Buffer, layout::Rect, text::Span};

use super::{
    Scene, text,
    theme::Role,
    widgets::segments::{Runs, Segments},
};
use crate::app::{Command, commands::COMMANDS};

/// ```text
///  Tab pane  Enter pods  / filter  s sort  z zoom  w wide  f freeze  T theme  ? help  q quit
///  /zone:a ready:no▏                                          5 shown   Enter keep  Esc clear
/// ```
/// Tells where the cursor belongs while a filter is typed.
pub fn draw(scene: &Scene, area: Rect, buf: &mut Buffer) -> Option<(u16, u16)> {
    let typing = scene.screen.input.is_some();
    let mut line = Segments::default();
    let hints = COMMANDS.iter().filter(|command| !command.hint.is_empty() && applies(scene, command));
    for (place, command) in hints.enumerate() {
        let key = command.keys.first().map(ToString::to_string).unwrap_or_default();
        let runs = Runs::new(&key, scene.style(Role::Key)).and(" ", scene.style(Role::Dim));
        let runs = runs.and(command.hint, scene.style(Role::Dim));
        // Help and quit stay longest: they lead to all others.
        let least = matches!(command.name, "help" | "quit");
        let priority = if least { 1 } else { 2 + u8::try_from(place).unwrap_or(200) };
        line = if typing { line.right(priority, runs) } else { line.left(priority, runs) };
    }
    if scene.app.frozen.is_some() {
        let text = format!(" FROZEN at {} ", text::clock(scene.now));
        line = line.right(0, Runs::new(&text, scene.style(Role::ModeReadOnly)));
    }
    let inner = Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area };
    line.render(inner, &Span::styled("  ", scene.style(Role::Dim)), buf);
    draw_input(scene, inner, buf)
}

/// Draws the filter over the left half.
fn draw_input(scene: &Scene, area: Rect, buf: &mut Buffer) -> Option<(u16, u16)> {
    let input = scene.screen.input.as_ref()?;
    let width = area.width / 2;
    let room = usize::from(width.saturating_sub(3));
    let skipped = input.visual_scroll(room);
    let cleaned = text::clean(input.value());
    let visible: String = cleaned.chars().skip(skipped).collect();
    let style = scene.style(Role::Input);
    buf.set_style(Rect { width, ..area }, style);
    buf.set_string(area.x, area.y, " ".repeat(usize::from(width)), style);
    buf.set_string(area.x, area.y, "/", scene.style(Role::Key));
    buf.set_stringn(area.x + 1, area.y, visible, room, style);
    let cursor = input.visual_cursor().saturating_sub(skipped).min(room);
    Some((area.x + 1 + u16::try_from(cursor).unwrap_or(0), area.y))
}

fn applies(scene: &Scene, command: &Command) -> bool {
    command.place.is_here(scene.screen.focus, scene.screen.typing())
}
