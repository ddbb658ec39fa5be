//! The maintenance that this dashboard carries out, or carried out last: its waves so far, and its latest notices.

use super::{Runs, Scene, WaveLane, text, waves};
use crate::{
    app::{
        UserAction,
        maintenance::{GoneOn, MaintenanceEntry, MaintenanceState},
    },
    ui::theme::Role,
};
use kordon_core::{engine::Severity, operation::OperationNotice, plan::words::counted};
use kordon_time::Span;

/// Maximum number of notices shown.
const NOTICES: usize = 5;

/// Maximum number of lines for the reason why the maintenance has stopped.
const REASON_LINES: usize = 4;

/// ```text
/// maintenance-20261129-… runs for 3m12s: 4 of 9 nodes done, 31 pods moved
/// p pauses it, C cancels it
/// wave   1 ▒▒▒███████┊····· back after 4m12s
/// 03:14:05 node/n-3: is well and back
/// ```
/// Lines about the maintenance of this dashboard; empty if there is none.
pub fn lines(scene: &Scene, width: usize) -> Vec<Runs> {
    let Some(entry) = scene.app.own_maintenance() else { return Vec::new() };
    let mut lines = vec![head(scene, entry).fitted(width)];
    let lanes = lanes(scene, entry);
    match &entry.state {
        MaintenanceState::Ended { says, .. } => {
            let says = match entry.gone_on(&scene.app.model.cluster) {
                Some(GoneOn::Resumed) => "it was resumed elsewhere since then",
                Some(GoneOn::Over) => "it was ended elsewhere since then: no node is in it any more",
                None => says.as_str(),
            };
            let wrapped = text::wrap(says, width.saturating_sub(2), REASON_LINES);
            lines.extend(wrapped.iter().map(|line| Runs::new(&format!("  {line}"), scene.style(Role::Base))));
        }
        MaintenanceState::Running | MaintenanceState::Paused | MaintenanceState::Cancelling => {
            lines.push(keys(scene, entry, &lanes).fitted(width));
        }
    }
    let now = entry.is_running().then_some(scene.now);
    let drawn = waves(&lanes, now, text::clock);
    lines.extend(drawn.iter().map(|line| Runs::new(line, scene.style(Role::Base)).fitted(width)));
    lines.extend(entry.notices.newest(NOTICES).map(|one| notice(scene, one).fitted(width)));
    lines
}

/// Progress in one line: `maintenance-1 runs after 3m12s: 4 of 9 nodes done, 31 pods moved`, `maintenance-1 is paused
/// after 3m12s: 4 of 9 nodes done, 31 pods moved, 2 still terminating`.
fn head(scene: &Scene, entry: &MaintenanceEntry) -> Runs {
    let until = match &entry.state {
        MaintenanceState::Ended { at, .. } => *at,
        _ => scene.now,
    };
    let outcome = &entry.outcome;
    let terminating = match entry.terminating(&scene.app.model) {
        pods if pods > 0 && entry.state == MaintenanceState::Paused => format!(", {pods} still terminating"),
        _ => String::new(),
    };
    let progress = format!(
        " after {}: {} of {} done, {} moved{terminating}",
        Span::from_secs(until.since(entry.began).as_secs()),
        outcome.done(),
        counted(outcome.count(), "node", "nodes"),
        counted(entry.moved(&scene.app.model), "pod", "pods"),
    );
    Runs::new(&entry.id, scene.style(Role::Heading))
        .and(&format!(" {}", entry.state_in_words()), scene.style(role(entry)))
        .and(&progress, scene.style(Role::Base))
}

/// Role of the state of a maintenance.
pub const fn role(entry: &MaintenanceEntry) -> Role {
    match &entry.state {
        MaintenanceState::Running => Role::NodeMaintenance,
        MaintenanceState::Paused | MaintenanceState::Cancelling => Role::LevelWarning,
        MaintenanceState::Ended { kind: Some(kind), .. } if kind.journaled().is_some() => {
            Role::NodeMaintenance
        }
        MaintenanceState::Ended { .. } => Role::LevelError,
    }
}

/// Keys and likely end: `p pauses it, C cancels it; likely ends at 03:20:00`.
fn keys(scene: &Scene, entry: &MaintenanceEntry, lanes: &[WaveLane]) -> Runs {
    let keymap = &scene.app.preferences.keymap;
    let (pause, cancel) = (keymap.key_for(UserAction::Pause), keymap.key_for(UserAction::Cancel));
    let does = if entry.state == MaintenanceState::Paused { "resumes" } else { "pauses" };
    let end = match lanes.last() {
        Some(last) => format!("; likely ends at {}", text::clock(last.ends)),
        None => String::new(),
    };
    Runs::new(&format!("{pause} {does} it, {cancel} cancels it{end}"), scene.style(Role::Dim))
}

/// A lane (row of the chart) for each wave: first the waves that have started, then the planned waves that will start.
fn lanes(scene: &Scene, entry: &MaintenanceEntry) -> Vec<WaveLane> {
    let until = match &entry.state {
        MaintenanceState::Ended { at, .. } => *at,
        _ => scene.now,
    };
    let mut lanes: Vec<WaveLane> =
        entry.outcome.waves().iter().map(|wave| WaveLane::past(wave, until)).collect();
    match entry.state {
        MaintenanceState::Running | MaintenanceState::Paused => {
            let planned: Vec<WaveLane> = entry.outcome.planned.iter().map(WaveLane::from).collect();
            let free = lanes.last().map_or(until, |last| last.ends.max(until));
            let late = planned.first().map_or(Span::ZERO, |first| free.since(first.starts).or_zero());
            lanes.extend(planned.into_iter().map(|lane| lane.later(late)));
        }
        MaintenanceState::Cancelling => {}
        MaintenanceState::Ended { at, .. } => {
            lanes = lanes.into_iter().map(|lane| lane.until(at)).collect();
        }
    }
    lanes
}

fn notice(scene: &Scene, notice: &OperationNotice) -> Runs {
    let OperationNotice { at, level, subject, text: words } = notice;
    let role = match level {
        Severity::Info => Role::Base,
        Severity::Warning => Role::LevelWarning,
        Severity::Error => Role::LevelError,
    };
    let subject = if subject.is_empty() { String::new() } else { format!("{subject}: ") };
    Runs::new(&format!("{} ", text::clock(*at)), scene.style(Role::Dim))
        .and(&format!("{subject}{words}"), scene.style(role))
}
