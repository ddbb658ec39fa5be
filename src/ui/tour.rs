//! A step of the tour: a box beside the thing that it explains, which is highlighted.

use ratatui::{buffer::Buffer, layout::Rect, style::Modifier, widgets::Block};

use super::{
    Scene,
    layout::ScreenLayout,
    panes::header,
    text,
    theme::Role,
    widgets::{segments::Runs, sheet},
};
use crate::app::{
    Pane, UserAction,
    commands::{COMMANDS, TypedCommand},
    preview::PlanKind,
    screen_part::ScreenPart,
    tour::TourStep,
};

/// Maximum width in cells of the box with a step of the tour.
const WIDTH: u16 = 66;

/// ```text
///  ✖ node general-1b-01 Evicting 30s · 3 pods will be stuck                    <- highlighted
/// ╭ Tour 2 of 6  The verdict ────────────────────────────────╮
/// │ The worst thing first, then what comes next and when …   │
/// ╰ Enter next · p back · Esc ends ──────────────────────────╯
/// ```
/// Draws a step over the panes.
pub fn draw(scene: &Scene, step: TourStep, layout: &ScreenLayout, area: Rect, buf: &mut Buffer) {
    let anchor = anchor(scene, step, layout, buf).intersection(area);
    buf.set_style(anchor, scene.style(Role::Strong).add_modifier(Modifier::REVERSED));
    let width = WIDTH.min(area.width.saturating_sub(2));
    let lines = text::wrap(&words(scene, step, layout), usize::from(width.saturating_sub(4)), usize::MAX);
    let height = u16::try_from(lines.len()).unwrap_or(u16::MAX).saturating_add(2).min(area.height);
    let place = beside(anchor, (width, height), area);
    let title = Runs::new(
        &format!(" Tour {} of {} ", step.number(), TourStep::ALL.len()),
        scene.style(Role::TitleFocus),
    )
    .and(&format!(" {} ", step.title()), scene.style(Role::Accent));
    let frame = Block::bordered()
        .border_style(scene.style(Role::BorderFocus))
        .title(title.line())
        .title_bottom(Runs::new(bottom(step), scene.style(Role::Dim)).line());
    let inner = sheet(frame, scene.style(Role::Base), place, buf);
    for (y, line) in (inner.y..inner.bottom()).zip(&lines) {
        buf.set_stringn(inner.x, y, line, usize::from(inner.width), scene.style(Role::Base));
    }
}

fn bottom(step: TourStep) -> &'static str {
    match (step.previous(), step.next()) {
        (None, _) => " Enter next · Esc ends the tour ",
        (Some(_), Some(_)) => " Enter next · p back · Esc ends the tour ",
        (Some(_), None) => " Enter ends the tour · p back ",
    }
}

/// Area of a box of this size: below the explained part of the screen (`anchor`) if there is room, else above it.
fn beside(anchor: Rect, (width, height): (u16, u16), area: Rect) -> Rect {
    let below = anchor.bottom();
    let y = if below + height <= area.bottom() { below } else { anchor.y.saturating_sub(height).max(area.y) };
    let x = anchor.x.min(area.right().saturating_sub(width)).max(area.x);
    Rect { x, y, width, height }.intersection(area)
}

/// The part of the screen that a step of the tour explains.
fn anchor(scene: &Scene, step: TourStep, layout: &ScreenLayout, buf: &Buffer) -> Rect {
    let line = |row: u16| Rect { y: layout.header.y + row, height: 1, ..layout.header };
    match step {
        TourStep::Strip if layout.header.height > 2 => line(2),
        TourStep::Strip => nodes(scene, layout),
        TourStep::Verdict => line(1),
        TourStep::Why => selected_row(scene).unwrap_or_else(|| nodes(scene, layout)),
        TourStep::Plan => layout.footer,
        TourStep::Enforce => cells_with(&header::mode(scene).0, line(0), buf),
        TourStep::Freeze => cells_with(&header::freshness(scene).0, line(0), buf),
    }
}

/// First line of the area in which the nodes are shown.
fn nodes(scene: &Scene, layout: &ScreenLayout) -> Rect {
    let slot = layout.slots.iter().find(|slot| slot.tabs.contains(&scene.screen.node_pane()));
    slot.or(layout.slots.first()).map_or(layout.header, |slot| Rect { height: 1, ..slot.area })
}

/// The row of the selected node, if it is on screen.
fn selected_row(scene: &Scene) -> Option<Rect> {
    let cursor = scene.screen.nodes.list.cursor()?;
    scene.targets.borrow().iter().find_map(|target| match target.part {
        ScreenPart::Rows { pane: Pane::Nodes, first } => {
            let below = u16::try_from(cursor.checked_sub(first)?).ok()?;
            (below < target.area.height).then(|| Rect { y: target.area.y + below, height: 1, ..target.area })
        }
        _ => None,
    })
}

/// The cells of a line that show this text; the whole line if it does not contain the text.
fn cells_with(wanted: &str, line: Rect, buf: &Buffer) -> Rect {
    let width = u16::try_from(text::width(wanted)).unwrap_or(u16::MAX);
    let starts = line.x..line.right().saturating_sub(width.saturating_sub(1));
    let mut starts = starts.filter(|x| {
        let cells: String = (*x..x + width).map(|x| buf[(x, line.y)].symbol()).collect();
        cells == wanted
    });
    starts.next_back().map_or(line, |x| Rect { x, width, ..line })
}

/// The text of a step, with the keys of this session.
fn words(scene: &Scene, step: TourStep, layout: &ScreenLayout) -> String {
    let key = |action| scene.app.preferences.keymap.key_for(action);
    let plan = |kind| key(UserAction::Plan(kind));
    // Several commands can have the same action, each in different panes, so the key is found by the command's name.
    let named = |name: &str| {
        let command = COMMANDS.iter().find(|command| command.name == name);
        command.map_or_else(String::new, |command| scene.app.preferences.keymap.first_key(command))
    };
    match step {
        TourStep::Strip if layout.header.height > 2 => "Each cell is a node, grouped by zone. Calm nodes recede; \
            the others differ in sign and colour. At the end of the line stands how many nodes are in which state."
            .into(),
        TourStep::Strip => "Each node is a row with a sign and a state, the worst first; this line counts them. On a \
            terminal with 26 rows, a strip above it shows all nodes at once, one cell each."
            .into(),
        TourStep::Verdict => "The worst thing first, then what comes next and when, then the consequence. It is green \
            only if nothing is wrong and everything that it rests on has been read."
            .into(),
        TourStep::Why => format!(
            "{} on a row says why it is in its state, what happens next, and what you can do. {} shows the pods of a \
             node.",
            named("detail"),
            named("pods")
        ),
        TourStep::Plan => format!(
            "{} plans a cordon, {} a drain, {} a taint, {} what follows if a node fails: for the selected row, or for the marked ones. A \
             plan shows which pods leave, where they go, and what blocks them. It writes nothing.",
            plan(PlanKind::Cordon),
            plan(PlanKind::Drain),
            plan(PlanKind::Taint),
            plan(PlanKind::Failure)
        ),
        TourStep::Enforce => format!(
            "This says what may be written: nothing in dry-run. :enforce allows it for 15 minutes; then {} applies the open \
             plan, after a question. {} undoes it.",
            key(UserAction::Apply),
            key(UserAction::Undo)
        ),
        TourStep::Freeze => format!(
            "This says how old the newest news is. {} freezes the screen, and the arrows go back in time; {} again returns to \
             the present. {} lists all keys, {} shows this tour again.",
            key(UserAction::Freeze),
            key(UserAction::Freeze),
            key(UserAction::Help),
            tour_command(scene)
        ),
    }
}

/// How to start the tour: its key, or else the command to type.
fn tour_command(scene: &Scene) -> String {
    match scene.app.preferences.keymap.key_for(UserAction::Typed(TypedCommand::Tour)) {
        key if key.is_empty() => ":tour".into(),
        key => key,
    }
}
