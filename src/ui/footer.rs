//! The footer: keys that apply here, or the filter or command being typed.

use ratatui::{buffer::Buffer, layout::Rect, text::Span};
use tui_input::Input;

use super::{
    Scene, text,
    theme::Role,
    widgets::{
        field::field,
        segments::{Runs, Segments},
    },
};
use crate::app::{UserAction, commands::COMMANDS, overlays::Overlay};

/// ```text
///  Tab pane  Enter pods  / filter  s sort  z zoom  w wide  f freeze  T theme  ? help  q quit
///  /zone:a ready:no▏                                                    Enter keep  Esc clear
///  :enforce 1y▏                                             1y is not a time such as 30s, 15m or 1h30m
/// ```
/// Draws the footer. Returns the position of the cursor while a filter or command is typed.
pub fn draw(scene: &Scene, area: Rect, buf: &mut Buffer) -> Option<(u16, u16)> {
    let typed = typed_line(scene);
    let typing = typed.is_some();
    let mut line = Segments::default();
    let fault = scene.screen.overlays.palette().and_then(|palette| palette.fault.clone());
    let candidates = scene.app.filter_candidates();
    let fault = fault.or_else(|| scene.app.typed_filter_fault(&candidates));
    let proposals = proposals(&candidates).filter(|_| fault.is_none() && scene.screen.message.is_none());
    if let Some(words) = &proposals {
        // The words are the hint of the key that completes. They take the room of the other hints.
        let key = scene.app.preferences.keymap.key_for(UserAction::Complete);
        let room = usize::from(area.width / 2).saturating_sub(4 + text::width(&key));
        let runs = Runs::new(&key, scene.style(Role::Key)).and(" ", scene.style(Role::Dim));
        line = line.right(1, runs.and(&text::cut(words, room), scene.style(Role::Dim)));
    }
    let inner = Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area };
    let message = fault.as_ref().or(scene.screen.message.as_ref());
    let taken = typed.map_or(0, |(_, input)| input_width(input, message, inner.width));
    if let Some(message) = message {
        let gap = if typing { 2 } else { 0 };
        let room = usize::from(inner.width - taken).saturating_sub(gap);
        let runs = Runs::new(&text::cut(message, room), scene.style(Role::LevelWarning));
        line = if typing { line.right(1, runs) } else { line.left(0, runs) };
    }
    let hints = COMMANDS.iter().filter(|command| !command.hint.is_empty() && scene.app.offers(command));
    for (place, command) in hints.enumerate() {
        let key = scene.app.preferences.keymap.first_key(command);
        // If the user lacks the right for a key, the key is not highlighted. The help, and pressing the key, name the
        // missing right.
        let is_missing = scene.app.missing_right(command.action).is_some();
        let role = if is_missing { Role::Dim } else { Role::Key };
        let runs = Runs::new(&key, scene.style(role)).and(" ", scene.style(Role::Dim));
        let returns =
            command.action == UserAction::Freeze && (scene.app.is_frozen() || scene.app.is_in_history());
        let hint = match command.action {
            UserAction::Freeze if scene.app.is_in_history() => "live",
            UserAction::Freeze if returns => "resume",
            UserAction::Pause if scene.app.resumes_by_pause() => "resume",
            _ => command.hint,
        };
        let runs = runs.and(hint, scene.style(Role::Dim));
        if command.action == UserAction::Complete && proposals.is_some() {
            continue;
        }
        // If space is short, help and quit are dropped last, because help leads to all other commands. While the screen is
        // frozen, the key that returns to the present is also dropped last.
        let is_kept = returns || matches!(command.name, "help" | "quit");
        // During playback, the keys of the playback come first.
        let plays = scene.app.playback.is_some() && command.action.is_of_playback();
        let priority = match (is_kept, plays) {
            (true, _) => 1,
            (false, true) => 2,
            (false, false) => 3 + u8::try_from(place).unwrap_or(200),
        };
        line = match (typing, &scene.screen.message) {
            (true, _) if fault.is_some() => line,
            (false, None) => line.left(priority, runs),
            (true, _) | (false, Some(_)) => line.right(priority, runs),
        };
    }
    if scene.app.is_frozen() && !scene.app.is_in_history() {
        let text = format!(" FROZEN at {} ", text::clock(scene.now));
        line = line.right(0, Runs::new(&text, scene.style(Role::ModeReadOnly)));
    }
    let room = Rect { x: inner.x + taken, width: inner.width - taken, ..inner };
    line.render(room, &Span::styled("  ", scene.style(Role::Dim)), buf);
    draw_input(scene, typed?, Rect { width: taken, ..inner }, buf)
}

/// Width of the typed filter or command: the left half of the footer, or less beside a message that needs more than the
/// right half.
fn input_width(input: &Input, message: Option<&String>, room: u16) -> u16 {
    let cells = |width: usize| u16::try_from(width).unwrap_or(u16::MAX);
    let needed = cells(text::width(input.value()) + 3);
    let left = message.map_or(room, |message| room.saturating_sub(cells(text::width(message) + 2)));
    left.max(needed).min(room / 2)
}

/// Maximum number of words that are proposed.
const PROPOSALS: usize = 30;

/// Words that may complete the last word of the typed filter; `None` if there are none.
fn proposals(words: &[String]) -> Option<String> {
    let shown = &words[..words.len().min(PROPOSALS)];
    (!shown.is_empty()).then(|| shown.join(" "))
}

/// The filter or command being typed, with the sign before it.
fn typed_line<'a>(scene: &Scene<'a>) -> Option<(&'static str, &'a Input)> {
    scene.screen.overlays.iter().rev().find_map(|overlay| match overlay {
        Overlay::Palette(palette) => Some((":", &palette.input)),
        Overlay::Filter(input) => Some(("/", input)),
        Overlay::Help(sheet) if sheet.is_typing => Some(("/", &sheet.search)),
        Overlay::Detail(_)
        | Overlay::Plan(_)
        | Overlay::Progress(_)
        | Overlay::Events(_)
        | Overlay::Question(_)
        | Overlay::Help(_)
        | Overlay::Info(_)
        | Overlay::Timing(_)
        | Overlay::Maintenance(_)
        | Overlay::Tour(_)
        | Overlay::Themes(_) => None,
    })
}

/// Draws the typed filter or command.
fn draw_input(
    scene: &Scene,
    (lead, input): (&str, &Input),
    area: Rect,
    buf: &mut Buffer,
) -> Option<(u16, u16)> {
    let style = scene.style(Role::Input);
    buf.set_style(area, style);
    buf.set_string(area.x, area.y, " ".repeat(usize::from(area.width)), style);
    buf.set_string(area.x, area.y, lead, scene.style(Role::Key));
    let room = Rect { x: area.x + 1, width: area.width.saturating_sub(2), height: 1, ..area };
    Some((field(input, style, false, room, buf), area.y))
}
