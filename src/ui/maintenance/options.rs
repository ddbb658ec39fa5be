//! The options of the maintenance sheet, the line in which one is typed, and what is missing to start.

use ratatui::{
    buffer::Buffer,
    layout::{Constraint, Rect},
    widgets::Block,
};

use super::{Runs, Scene};
use crate::{
    app::{
        UserAction,
        commands::COMMANDS,
        maintenance::{MaintenanceOption, MaintenanceRequest, MaintenanceSheet},
    },
    ui::{
        text, text_sheet,
        theme::Role,
        widgets::{field::field, sheet as frame_sheet},
    },
};

/// Space between two options.
const GAP: &str = "  ";

/// Lines with the work on the machines and the other options: key, flag and value of each.
pub fn lines(scene: &Scene, request: &MaintenanceRequest, width: usize) -> Vec<Runs> {
    let (work, others) = MaintenanceOption::ALL.split_at(2);
    let mut lines: Vec<Runs> = work.iter().map(|one| option(scene, request, *one).fitted(width)).collect();
    let mut line = Runs::default();
    for one in others {
        let shown = option(scene, request, *one);
        if line.is_empty() {
            line = shown;
        } else if line.width() + GAP.len() + shown.width() <= width {
            line = line.and(GAP, scene.style(Role::Dim)).join(shown);
        } else {
            lines.push(std::mem::replace(&mut line, shown));
        }
    }
    lines.push(line.fitted(width));
    lines
}

fn option(scene: &Scene, request: &MaintenanceRequest, option: MaintenanceOption) -> Runs {
    let role = if request.value(option).is_empty() { Role::Dim } else { Role::Base };
    let key = key(scene, option);
    // An option without a key is typed as a command.
    let (lead, flag) = match key.as_str() {
        "" => (":", format!("{} ", option.flag())),
        key => (key, format!(" {} ", option.flag())),
    };
    Runs::new(lead, scene.style(Role::Key))
        .and(&flag, scene.style(Role::Dim))
        .and(&shown(request, option), scene.style(role))
}

/// The value of an option. Without a value, a text that says what applies instead.
fn shown(request: &MaintenanceRequest, option: MaintenanceOption) -> String {
    let value = request.value(option);
    if !value.is_empty() {
        return value;
    }
    match option {
        MaintenanceOption::Exec => "no command does the work",
        MaintenanceOption::WaitFor => "nothing shows that others have done it",
        MaintenanceOption::Window => "any time",
        MaintenanceOption::MaxPerZone | MaintenanceOption::MaxDuration => "no limit",
        MaintenanceOption::Gate | MaintenanceOption::WithoutGate => "none",
        MaintenanceOption::Force
        | MaintenanceOption::DeleteEmptydirData
        | MaintenanceOption::Surge
        | MaintenanceOption::AllowPending
        | MaintenanceOption::ControlPlanesTogether
        | MaintenanceOption::AllowWorseLoss => "off",
        MaintenanceOption::Parallel
        | MaintenanceOption::WorkTakes
        | MaintenanceOption::Settle
        | MaintenanceOption::GateTimeout
        | MaintenanceOption::DrainTimeout
        | MaintenanceOption::WorkTimeout
        | MaintenanceOption::OnFailure => "-",
    }
    .into()
}

/// The key that changes an option.
fn key(scene: &Scene, option: MaintenanceOption) -> String {
    let is_it = |action: UserAction| match action {
        UserAction::Maintain(own) => own == option,
        UserAction::Toggle(shared) => MaintenanceOption::from_plan(shared) == Some(option),
        _ => false,
    };
    let command = COMMANDS.iter().find(|command| is_it(command.action));
    command.map_or_else(String::new, |command| scene.app.preferences.keymap.first_key(command))
}

/// The key that starts the maintenance, or what is missing before it can start.
pub fn next_step(scene: &Scene, width: usize) -> Runs {
    let keymap = &scene.app.preferences.keymap;
    let (apply, copy) = (keymap.key_for(UserAction::Apply), keymap.key_for(UserAction::Copy));
    let (text, role) = match scene.app.missing_for_maintenance(scene.now) {
        None => (format!("{apply} carries it out, after a confirmation"), Role::NodeMaintenance),
        Some(missing) => (format!("missing to carry it out: {missing}"), Role::LevelWarning),
    };
    Runs::new(&text, scene.style(role))
        .and(&format!("; {copy} copies the command"), scene.style(Role::Dim))
        .fitted(width)
}

/// ```text
/// ╭ --exec ─ ssh {node} sudo reboot; {node} is the name of the node ─╮
/// │ ssh {node} sudo reb▏                                             │
/// ╰ Enter keeps · Esc leaves ────────────────────────────────────────╯
/// ```
/// Draws the line in which an option is typed, over the sheet. Returns the position of the cursor.
pub fn draw_line(
    scene: &Scene,
    sheet: &MaintenanceSheet,
    width: u16,
    area: Rect,
    buf: &mut Buffer,
) -> Option<(u16, u16)> {
    let line = sheet.line.as_ref()?;
    let area = area.centered(Constraint::Max(width), Constraint::Length(3));
    let room = usize::from(width.saturating_sub(text_sheet::FRAME));
    let title = format!(" --{}: {} ", line.option.flag(), line.option.example());
    let hint = line.fault.clone().unwrap_or_else(|| "Enter keeps · Esc leaves".into());
    let role = if line.fault.is_some() { Role::LevelError } else { Role::Dim };
    let frame = Block::bordered()
        .border_style(scene.style(Role::BorderFocus))
        .title(Runs::new(&text::cut(&title, room), scene.style(Role::TitleFocus)).line())
        .title_bottom(Runs::new(&format!(" {} ", text::cut(&hint, room)), scene.style(role)).line());
    let inner = frame_sheet(frame, scene.style(Role::Base), area, buf);
    (inner.height > 0).then(|| (field(&line.input, scene.style(Role::Input), true, inner, buf), inner.y))
}
