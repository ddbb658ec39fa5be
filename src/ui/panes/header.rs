//! The header: the cluster, how fresh its data is, its verdict, and its nodes as a strip.

use ratatui::{buffer::Buffer, layout::Rect, text::Span as Run};

use crate::{
    app::{
        Mode, Playback, UserAction,
        maintenance::{MaintenanceEntry, MaintenanceState},
    },
    k8s::feed::{FeedHealth, FeedKind, FeedState},
    model::{ClusterVerdict, VerdictLevel},
    ui::{
        Scene,
        mark::mark,
        node_strip, text,
        theme::Role,
        widgets::segments::{Runs, Segments},
    },
};
use kordon_core::engine::{Confidence, Origin};

/// ```text
///  PRODUCTION  prod-eu   v1.36.3   sre@example.com   ▶ drain n-3 3/8 (o shows it)           grace 40s (override)   DRY-RUN   live 0s
///  ✖ zone b down (8 of 8) · 44 to be evicted, next in 1m12s
///  a ▪▪▪▪▪▪▪▪  b ✖✖✖✖✖✖✖✖  c ▪▪◌▪▪▪▪▪                                  24 · 8 Unknown · 1 Silent · 15 Ready
/// ─ 1 Zones …
/// ```
/// Draws as many of the three lines as fit.
pub fn draw(scene: &Scene, area: Rect, buf: &mut Buffer) {
    let line =
        |row: u16| Rect { x: area.x + 1, y: area.y + row, width: area.width.saturating_sub(2), height: 1 };
    identity(scene).render(line(0), &Run::styled("   ", scene.style(Role::Dim)), buf);
    if area.height > 1 {
        let area = line(1);
        verdict_line(scene, scene.verdict, usize::from(area.width)).render(
            area,
            &Run::styled(SEPARATOR, scene.style(Role::Faint)),
            buf,
        );
    }
    if area.height > 2 {
        node_strip::draw(scene, line(2), buf);
    }
}

/// Release without its build: `v1.36.3` for `v1.36.3-eks-1a2b3c` and `v1.36.3+k3s1`.
fn short_release(release: &str) -> &str {
    release.split(['-', '+']).next().unwrap_or(release)
}

fn identity(scene: &Scene) -> Segments {
    let facts = &scene.app.model.connection;
    let dim = scene.style(Role::Dim);
    let version = facts.server_version.as_deref().map_or("version unknown", short_release);
    let name = if facts.context.is_empty() { &facts.server } else { &facts.context };
    let (badge, badge_role) = mode(scene);
    let (fresh, role) = freshness(scene);
    let mark = mark(scene).map_or_else(Runs::default, |(word, style)| Runs::new(&word, style).and(" ", dim));
    let mut line = Segments::default()
        .left(0, mark.and(name, scene.style(Role::Strong)))
        .left(4, Runs::new(version, scene.style(Role::Accent)))
        .left(5, Runs::new(facts.identity.as_deref().unwrap_or_default(), dim))
        .left(1, in_progress(scene))
        .left(2, watches(scene));
    for (flag, value, origin) in overridden(scene) {
        let runs = Runs::new(flag, dim).and(&format!(" {value}"), scene.style(Role::Strong));
        line = line.right(6, runs.and(&format!(" ({})", origin.as_str()), scene.style(Role::Faint)));
    }
    line.right(0, Runs::new(&badge, scene.style(badge_role))).right(0, Runs::new(&fresh, scene.style(role)))
}

/// Separator of the parts of the verdict.
const SEPARATOR: &str = " · ";

/// The verdict: `✖ zone b down (8 of 8) · 44 to be evicted, next in 1m12s`. If the cells are few, parts are shorter, and
/// the last parts are left out.
fn verdict_line(scene: &Scene, verdict: &ClusterVerdict, cells: usize) -> Segments {
    let role = level_role(verdict.level);
    let glyph = verdict.level.glyph();
    let fits = |parts: &[&str]| text::width(&format!("{glyph} {}", parts.join(SEPARATOR))) <= cells;
    let mut line = Segments::default();
    for (priority, part) in (0..=u8::MAX).zip(verdict.parts_for(fits)) {
        let runs = match priority {
            0 => Runs::new(&format!("{glyph} {part}"), scene.style(role)),
            _ => Runs::new(part, scene.style(Role::Base)),
        };
        line = line.left(priority, runs);
    }
    line
}

/// Theme role of a verdict's level.
pub const fn level_role(level: VerdictLevel) -> Role {
    match level {
        VerdictLevel::Healthy => Role::VerdictHealthy,
        VerdictLevel::Notice => Role::VerdictNotice,
        VerdictLevel::Warning => Role::VerdictWarning,
        VerdictLevel::Critical => Role::VerdictCritical,
        VerdictLevel::Disconnected => Role::VerdictDisconnected,
    }
}

/// Text of the mode: what may be written, and for how long. During playback of the history, the text is the age of the
/// shown moment.
pub fn mode(scene: &Scene) -> (String, Role) {
    if scene.app.is_in_history() {
        return (format!(" HISTORY {} ago ", text::age(scene.present, scene.now)), Role::ModeReplay);
    }
    match (scene.app.operations.mode, scene.app.operations.enforced_until) {
        (Mode::DryRun, _) => (" DRY-RUN ".into(), Role::ModeDryRun),
        (Mode::ReadOnly, _) => (" READ-ONLY ".into(), Role::ModeReadOnly),
        (Mode::Replay, _) => {
            let title = scene.app.playback.as_ref().map_or_else(|| "REPLAY".into(), Playback::title);
            (format!(" {title} "), Role::ModeReplay)
        }
        (Mode::Enforce, None) => (" ENFORCE ".into(), Role::ModeEnforce),
        (Mode::Enforce, Some(until)) => {
            (format!(" ENFORCE {} ", text::left(until, scene.now)), Role::ModeEnforce)
        }
    }
}

/// Summary of the operations in progress.
fn in_progress(scene: &Scene) -> Runs {
    let elsewhere: Vec<&str> = scene
        .app
        .elsewhere
        .iter()
        .filter(|other| other.is_busy())
        .map(|other| other.context.as_str())
        .collect();
    let runs = in_progress_here(scene);
    if elsewhere.is_empty() {
        return runs;
    }
    let words = format!("▶ operations in {} (:ctx)", elsewhere.join(", "));
    runs.and(" ", scene.style(Role::Dim)).and(&words, scene.style(Role::FeedBusy))
}

fn in_progress_here(scene: &Scene) -> Runs {
    let running: Vec<_> = scene.app.operations.running().collect();
    let maintenance = scene.app.operations.running_maintenance();
    let words = match running[..] {
        [] => return maintenance.map_or_else(Runs::default, |entry| maintained(scene, entry)),
        _ if maintenance.is_some() => format!("{} operations", running.len() + 1),
        [one] if one.operation.is_paused() => format!("{} is paused", one.title),
        [one] => {
            let count = one.progress.count();
            let pods = if count.total() > 0 { format!(" {count}") } else { String::new() };
            format!("{}{pods}", one.title)
        }
        _ => format!("{} operations", running.len()),
    };
    let words = if scene.app.operations.quitting { format!("{words}, then quits") } else { words };
    Runs::new("▶ ", scene.style(Role::FeedBusy))
        .and(&words, scene.style(Role::FeedBusy))
        .join(shown_by(scene, UserAction::Progress))
}

/// The key that shows what runs: ` (o shows it)`.
fn shown_by(scene: &Scene, action: UserAction) -> Runs {
    let key = scene.app.preferences.keymap.key_for(action);
    Runs::new(&format!(" ({key} shows it)"), scene.style(Role::Faint))
}

/// Progress of a maintenance: `▶ maintenance 3 of 12 nodes (m shows it)`.
fn maintained(scene: &Scene, entry: &MaintenanceEntry) -> Runs {
    let words = match (&entry.state, scene.app.operations.quitting) {
        (_, true) => "maintenance stops, then quits".into(),
        (MaintenanceState::Paused, false) => "maintenance is paused".into(),
        (MaintenanceState::Cancelling, false) => "maintenance stops".into(),
        (MaintenanceState::Running | MaintenanceState::Ended { .. }, false) => {
            format!("maintenance {} of {} nodes", entry.outcome.done(), entry.outcome.count())
        }
    };
    Runs::new("▶ ", scene.style(Role::FeedBusy))
        .and(&words, scene.style(Role::FeedBusy))
        .join(shown_by(scene, UserAction::Maintenance))
}

/// Freshness of the shown state: `live 0s`, `disconnected 12s`. The verdict says what a lost connection means.
pub fn freshness(scene: &Scene) -> (String, Role) {
    if scene.app.playback.is_some() {
        // Times in a recording have no age from now, so other words are used.
        return replayed_freshness(scene);
    }
    match scene.shown.views.confidence {
        None => ("starting".into(), Role::FeedBusy),
        Some(Confidence::Live) => (format!("live{}", last_event(scene)), Role::FeedLive),
        Some(Confidence::Assumed) => {
            (format!("live{}, controller assumed", last_event(scene)), Role::FeedBusy)
        }
        Some(Confidence::Disconnected { since }) => {
            (format!("disconnected {}", text::age(scene.now, since)), Role::FeedBroken)
        }
        Some(Confidence::NoController { since }) => {
            (format!("no controller {}", text::age(scene.now, since)), Role::FeedBroken)
        }
    }
}

/// Freshness at a moment of a recording or of the history.
fn replayed_freshness(scene: &Scene) -> (String, Role) {
    match scene.shown.views.confidence {
        None => ("no lists yet".into(), Role::FeedBusy),
        Some(Confidence::Live) => ("connected".into(), Role::FeedLive),
        Some(Confidence::Assumed) => ("connected, controller assumed".into(), Role::FeedBusy),
        Some(Confidence::Disconnected { since }) => {
            (format!("disconnected {}", text::age(scene.now, since)), Role::FeedBroken)
        }
        Some(Confidence::NoController { since }) => {
            (format!("no controller {}", text::age(scene.now, since)), Role::FeedBroken)
        }
    }
}

/// Age of the last message of any watch: ` 1s`.
fn last_event(scene: &Scene) -> String {
    let last = scene.shown.feeds.iter().filter_map(|(_, health)| health.last_heard).max();
    last.map_or(String::new(), |last| format!(" {}", text::age(scene.now, last)))
}

/// Controller settings that a flag or kordon's configuration overrides.
fn overridden(scene: &Scene) -> impl Iterator<Item = (&'static str, String, Origin)> {
    let rows = scene.app.model.settings.rows().into_iter();
    rows.filter(|(.., origin)| matches!(origin, Origin::Override | Origin::Configuration))
}

/// Watches that do not show the present state. A single watch is shown with its state, several watches as a number.
/// Forbidden kinds, and kinds that are missing in the files, are counted separately.
fn watches(scene: &Scene) -> Runs {
    let is_forbidden = |health: &FeedHealth| matches!(health.state, FeedState::Forbidden { .. });
    let (refused, others): (Vec<_>, Vec<_>) =
        scene.shown.feeds.iter().partition(|(_, health)| is_forbidden(health));
    let (absent, forbidden): (Vec<_>, Vec<_>) =
        refused.into_iter().partition(|(_, health)| health.state.is_absent());
    let unwell: Vec<(FeedKind, &FeedHealth)> = others
        .into_iter()
        .filter(|(_, health)| !matches!(health.state, FeedState::Live | FeedState::Off))
        .collect();
    let mut runs = match unwell.as_slice() {
        [] => Runs::default(),
        [(kind, health)] => watch(scene, *kind, health),
        several => {
            let broken = several.iter().filter(|(_, health)| is_broken(&health.state)).count();
            let listing = several.len() - broken;
            let (glyph, words, role) = match broken {
                0 => ("◌", format!("{listing} watches listing"), Role::FeedBusy),
                broken => ("✗", format!("{broken} watches failing"), Role::FeedBroken),
            };
            Runs::new(glyph, scene.style(role)).and(&format!(" {words}"), scene.style(role))
        }
    };
    if !forbidden.is_empty() {
        let gap = if runs.is_empty() { "" } else { "   " };
        let words = match forbidden.as_slice() {
            [(kind, _)] => format!(" no permission to list {kind}"),
            several => format!(" no permission to list {} kinds (i)", several.len()),
        };
        runs = runs
            .and(gap, scene.style(Role::Dim))
            .and("✗", scene.style(Role::FeedBroken))
            .and(&words, scene.style(Role::Dim));
    }
    if !absent.is_empty() {
        let gap = if runs.is_empty() { "" } else { "   " };
        let words = match absent.as_slice() {
            [(kind, _)] => format!("{gap}{kind} not in the files"),
            several => format!("{gap}{} kinds not in the files (i)", several.len()),
        };
        runs = runs.and(&words, scene.style(Role::Dim));
    }
    runs
}

/// State of a watch: `● nodes 2s`, `◌ pods 61,500 of 150,000`.
pub fn watch(scene: &Scene, kind: FeedKind, health: &FeedHealth) -> Runs {
    let heard = health.last_heard.map_or("–".into(), |heard| text::age(scene.now, heard));
    let (glyph, words, role) = match &health.state {
        FeedState::Off => ("○", "not watched".into(), Role::Dim),
        FeedState::Connecting => ("◌", "connecting".into(), Role::FeedBusy),
        FeedState::Listing { received, expected } => {
            let of = expected.map_or(String::new(), |expected| format!(" of {}", text::count(expected)));
            ("◌", format!("{}{of}", text::count(*received)), Role::FeedBusy)
        }
        FeedState::Live => ("●", heard, Role::FeedLive),
        FeedState::Broken { .. } => ("✗", format!("stale {heard}"), Role::FeedBroken),
        state if state.is_absent() => ("○", "not in the files".into(), Role::Dim),
        FeedState::Forbidden { .. } => ("✗", "forbidden".into(), Role::FeedBroken),
    };
    let words_role = if role == Role::FeedLive { Role::Dim } else { role };
    Runs::new(glyph, scene.style(role))
        .and(&format!(" {kind} "), scene.style(Role::Base))
        .and(&words, scene.style(words_role))
}

const fn is_broken(state: &FeedState) -> bool {
    matches!(state, FeedState::Broken { .. } | FeedState::Forbidden { .. })
}

#[cfg(test)]
mod tests {
    use super::short_release;

    #[test]
    fn a_release_is_short_in_the_header_and_keeps_its_patch() {
        let short = ["v1.36.3", "v1.36.3-eks-1a2b3c", "v1.33.1+k3s1"].map(short_release);
        assert_eq!(short, ["v1.36.3", "v1.36.3", "v1.33.1"]);
    }
}
