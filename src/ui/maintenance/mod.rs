//! The maintenance sheet: the progress of maintenances, and the options and waves of a maintenance of the marked nodes.

mod moves;
mod options;
mod own;
mod risks;

use ratatui::{buffer::Buffer, layout::Rect};

use super::{
    Scene, text, text_sheet,
    theme::Role,
    widgets::{WaveLane, segments::Runs, waves},
};
use crate::app::{UserAction, maintenance::MaintenanceSheet};
use kordon_core::{
    cluster::{MaintenanceNote, MaintenanceNotes, MaintenanceStage},
    maintenance::{MaintenanceCost, MaintenancePlan, knows_enough},
    operation::Guards,
    plan::words::counted,
};
use moves::WaveLine;

/// Maximum width of the maintenance sheet in cells.
const WIDEST: u16 = 110;

/// Maximum number of lines for the reason why a node is left out.
const REASON_LINES: usize = 3;

/// A line of the sheet.
enum SheetLine<'a> {
    Text(Runs),
    Wave(WaveLine<'a>),
}

/// ```text
/// ╭ Maintenance ─────────────────────────────────────────────────────────────────╮
/// │ maintenance-20261129-… by alice@desk: 4 nodes left                            │
/// │   general-1a-02  ▒▒▒·········  draining                                       │
/// │ 3 nodes in 2 waves, 19m: 24 pods move                                         │
/// │ wave   1 ▒▒▒██████████·································· 2 nodes, 16 moves    │
/// │ wave   2 ··············▒▒▒██████████                     1 node, 8 moves      │
/// │ the work: x exec ssh {node} sudo reboot · W wait-for boot                     │
/// │ N parallel auto · Z max-per-zone - · t work-takes 5m · …                      │
/// │ A carries it out                                                              │
/// │ wave   1 n1, n2                                                               │
/// ╰ Esc closes ──────────────────────────────────────────────────────────────────╯
/// ```
/// Draws the sheet over the middle of the screen. Returns the position of the cursor while an option is typed.
pub fn draw(scene: &Scene, sheet: &MaintenanceSheet, area: Rect, buf: &mut Buffer) -> Option<(u16, u16)> {
    let width = WIDEST.min(area.width.saturating_sub(2));
    let cells = usize::from(width.saturating_sub(text_sheet::FRAME));
    let mut lines = own::lines(scene, cells);
    let stopped = stopped(scene);
    for notes in MaintenanceNotes::all(&scene.shown.cluster) {
        lines.extend(progress(scene, &notes, stopped.as_ref(), cells));
    }
    if !lines.is_empty() {
        lines.push(Runs::default());
    }
    lines.extend(planned(scene, sheet, cells));
    let mut lines: Vec<SheetLine> = lines.into_iter().map(SheetLine::Text).collect();
    if let Some(plan) = sheet.plan() {
        lines.extend(moves::lines(plan).map(SheetLine::Wave));
        lines.extend(assumptions(scene, sheet, cells).into_iter().map(SheetLine::Text));
    }
    let runs = |line: SheetLine| match line {
        SheetLine::Text(runs) => runs,
        SheetLine::Wave(line) => line.runs(scene, cells),
    };
    text_sheet::draw(scene, "Maintenance", (lines, sheet.scrolled), runs, width, area, buf);
    options::draw_line(scene, sheet, width, area, buf)
}

/// Progress of a maintenance: a line for each remaining node, and the keys for it if it is the one that was `stopped`.
fn progress(
    scene: &Scene,
    notes: &MaintenanceNotes,
    stopped: Option<&MaintenanceNotes>,
    width: usize,
) -> Vec<Runs> {
    let left = counted(notes.nodes.len(), "node", "nodes");
    let (state, role) = state(scene, notes);
    let head = Runs::new(&notes.operation, scene.style(Role::Heading))
        .and(&format!(" by {}: ", notes.by), scene.style(Role::Base))
        .and(state, scene.style(role))
        .and(&format!(", {left} left"), scene.style(Role::Base));
    let widest = notes.nodes.keys().map(|node| node.chars().count()).max().unwrap_or_default();
    let node = |(node, note): (&kordon_core::cluster::NodeName, &MaintenanceNote)| {
        Runs::new(&format!("  {node:<widest$}  "), scene.style(Role::Base))
            .and(bar(note.stage), scene.style(Role::NodeMaintenance))
            .and(&format!("  {}", note.stage.text()), scene.style(Role::Dim))
            .fitted(width)
    };
    let is_it = stopped.is_some_and(|stopped| stopped.operation == notes.operation);
    let keys = is_it.then(|| stopped_keys(scene).fitted(width));
    std::iter::once(head.fitted(width)).chain(keys).chain(notes.nodes.iter().map(node)).collect()
}

/// The maintenance that was stopped and that the keys resume or release; `None` if there is none.
fn stopped(scene: &Scene) -> Option<MaintenanceNotes> {
    let app = scene.app;
    let can_act = app.may_have_stopped_maintenance() && app.would_act(UserAction::Resume);
    can_act.then(|| app.stopped_maintenance(scene.now)).flatten()
}

/// Keys for the maintenance that was stopped: `R resumes it, U ends it and uncordons its nodes`.
fn stopped_keys(scene: &Scene) -> Runs {
    let keymap = &scene.app.preferences.keymap;
    let (resume, release) = (keymap.key_for(UserAction::Resume), keymap.key_for(UserAction::Undo));
    let text = format!("  {resume} resumes it, {release} ends it and uncordons its nodes");
    Runs::new(&text, scene.style(Role::Dim))
}

/// The state of a maintenance in words, and its role. This dashboard knows the state of a maintenance that it runs or
/// ran, unless another process has resumed it. For others, the notes on their nodes show it.
fn state(scene: &Scene, notes: &MaintenanceNotes) -> (&'static str, Role) {
    let ours = scene.app.operations.maintenances.iter().find(|entry| entry.id == notes.operation);
    if let Some(entry) = ours.filter(|entry| entry.gone_on(&scene.app.model.cluster).is_none()) {
        return (entry.state_in_words(), own::role(entry));
    }
    match (notes.is_running(scene.now), notes.paused()) {
        (true, None) => ("runs", Role::NodeMaintenance),
        (true, Some(_)) => ("is paused", Role::LevelWarning),
        (false, _) => ("was stopped", Role::NodeWarning),
    }
}

/// The steps of a node: its drain, the work on its machine, and its return.
const fn bar(stage: MaintenanceStage) -> &'static str {
    match stage {
        MaintenanceStage::Waiting => "············",
        MaintenanceStage::Draining => "▒▒▒▒········",
        MaintenanceStage::Working | MaintenanceStage::Awaited => "▒▒▒▒████····",
        MaintenanceStage::Returning => "▒▒▒▒████▓▓▓▓",
    }
}

/// The waves of the nodes for which the sheet was opened, without what each wave does.
fn planned(scene: &Scene, sheet: &MaintenanceSheet, width: usize) -> Vec<Runs> {
    let (base, dim) = (scene.style(Role::Base), scene.style(Role::Dim));
    if sheet.request.nodes.is_empty() {
        return match scene.app.own_maintenance() {
            Some(_) => Vec::new(),
            None => {
                let text = "Mark nodes by Space, then m shows in which waves they can be maintained.";
                vec![Runs::new(text, dim)]
            }
        };
    }
    let Some(plan) = sheet.plan() else {
        let text = match knows_enough(&scene.shown.cluster) {
            true => in_progress(scene, sheet),
            false => "the waves are not known: not everything is known that they depend on".into(),
        };
        let mut lines = vec![Runs::new(&text, dim).fitted(width)];
        lines.extend(options::lines(scene, &sheet.request, width));
        return lines;
    };
    let mut lines = vec![Runs::new(&summary(plan), scene.style(Role::Heading)).fitted(width)];
    let MaintenanceCost { takes, moves, .. } = plan.by_name;
    if plan.cost().nodes > 1 {
        let text = format!("one after the other by name: {}, {moves} moves", text::nearest_second(takes));
        lines.push(Runs::new(&text, dim).fitted(width));
    }
    lines.extend(risks::warnings(scene, plan, sheet.request.drain_timeout, width));
    let lanes: Vec<WaveLane> = plan.waves.iter().map(WaveLane::from).collect();
    lines.extend(waves(&lanes, None, text::clock).iter().map(|line| Runs::new(line, base).fitted(width)));
    lines.extend(options::lines(scene, &sheet.request, width));
    lines.push(options::next_step(scene, width));
    for (number, wave) in plan.waves.iter().enumerate() {
        let nodes: Vec<&str> = wave.nodes.iter().map(|node| &**node).collect();
        let line = format!("wave {:>3} {}", number + 1, nodes.join(", "));
        lines.push(Runs::new(&line, base).fitted(width));
    }
    lines.extend(risks::losses(scene, plan, width));
    lines.extend(risks::surges(scene, plan, width));
    for (node, reason) in &plan.left_out {
        lines.push(Runs::new(&format!("left out: {node}"), scene.style(Role::NodeWarning)).fitted(width));
        let reasons = text::wrap(&reason.to_string(), width.saturating_sub(2), REASON_LINES);
        lines.extend(reasons.iter().map(|line| Runs::new(&format!("  {line}"), base)));
    }
    lines
}

/// What is being computed: `working out the waves of 3 nodes, and N-1 of 30 nodes after each wave…`.
fn in_progress(scene: &Scene, sheet: &MaintenanceSheet) -> String {
    let all = scene.shown.cluster.nodes().len();
    let nodes = counted(sheet.request.nodes.len(), "node", "nodes");
    let losses = match sheet.request.options(Guards::default(), all, scene.now).keeps_headroom {
        true => format!(", and N-1 of {} after each wave", counted(all, "node", "nodes")),
        false => String::new(),
    };
    format!("working out the waves of {nodes}{losses}\u{2026}")
}

/// The assumptions under which the waves were computed.
fn assumptions(scene: &Scene, sheet: &MaintenanceSheet, width: usize) -> Vec<Runs> {
    let nodes = scene.shown.cluster.nodes().len();
    let assumptions = sheet.request.options(Guards::default(), nodes, scene.now).assumptions();
    let dim = scene.style(Role::Dim);
    assumptions.iter().map(|text| Runs::new(&format!("assumed: {text}"), dim).fitted(width)).collect()
}

/// Summary of the waves: `3 nodes in 2 waves, 19m: 24 pods move`.
pub fn summary(plan: &MaintenancePlan) -> String {
    if plan.waves.is_empty() {
        return "no wave is possible now".into();
    }
    let MaintenanceCost { nodes, takes, moves, moved_again, data_lost: _ } = plan.cost();
    let again = match moved_again {
        0 => String::new(),
        again => format!(", {again} of them again"),
    };
    format!(
        "{} in {}, {}: {}{again}",
        counted(nodes, "node", "nodes"),
        counted(plan.waves.len(), "wave", "waves"),
        text::nearest_second(takes),
        counted(moves, "pod moves", "pods move"),
    )
}
