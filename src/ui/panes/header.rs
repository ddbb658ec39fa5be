//! The header: the cluster and what may be written to it, the active controller and its settings, the watches.

use ratatui::{buffer::Buffer, layout::Rect, text::Span as Run};

use crate::{
    app::Mode,
    engine::{Confidence, Origin},
    k8s::feed::{FeedHealth, FeedKind, FeedState},
    model::{ControllerRole, Leadership},
    time::Span,
    ui::{
        Scene, text,
        theme::Role,
        widgets::segments::{Runs, Segments},
    },
};

/// From this difference of clocks on it is shown: renewTime and timeAdded come from other clocks than ours.
const CLOCK_DIFFERENCE: Span = Span::from_secs(2);

/// ```text
///  DRY-RUN  nothing is written   prod-eu   v1.36.3   https://…   as admin                     ✔ live 1s
/// controller kcm-1 renewed 1s ago, leader for 4d2h   monitor period 5s   grace 50s   …   defaults of 1.36
/// watches  ● nodes 2s  ● leases 0s  ◌ pods 61,500 of 150,000  ● 8 more   12 requests  48.1 MiB  server clock +3s
/// ─ 1 Zones …
/// ```
/// Draws as many of the three lines as there is room for.
pub fn draw(scene: &Scene, area: Rect, buf: &mut Buffer) {
    let gap = Run::styled("   ", scene.style(Role::Dim));
    let lines = [place(scene, area.width), controller(scene), watches(scene)];
    // On two lines, a watch that is not live matters more than settings.
    let lines: Vec<Segments> = match area.height {
        2 => lines
            .into_iter()
            .enumerate()
            .filter(|(line, _)| *line != if is_any_watch_unwell(scene) { 1 } else { 2 })
            .map(|(_, line)| line)
            .collect(),
        _ => lines.into(),
    };
    for (y, line) in (area.y..area.bottom()).zip(lines) {
        line.render(Rect { x: area.x + 1, y, width: area.width.saturating_sub(2), height: 1 }, &gap, buf);
    }
}

fn place(scene: &Scene, width: u16) -> Segments {
    let facts = &scene.app.model.connection;
    let dim = scene.style(Role::Dim);
    let (badge, words, role) = mode(scene);
    let version = facts.server_version.as_deref().unwrap_or("version unknown");
    let identity = facts.identity.as_deref();
    let (mark, confidence, confidence_role) = confidence(scene);
    // On a narrow screen the name of the cluster matters more than the consequence.
    let confidence =
        if width < 100 { confidence.split(": ").next().unwrap_or_default() } else { &confidence };
    Segments::default()
        .left(0, Runs::new(&badge, scene.style(role)))
        .left(6, Runs::new(words, dim))
        .left(1, in_progress(scene))
        .left(1, Runs::new(&facts.context, scene.style(Role::Strong)))
        .left(2, Runs::new(version, scene.style(Role::Accent)))
        .left(4, Runs::new(&facts.server, dim))
        .left(
            3,
            identity
                .map_or(Runs::default(), |name| Runs::new("as ", scene.style(Role::Faint)).and(name, dim)),
        )
        .right(0, Runs::new(&format!("{mark} {confidence}"), scene.style(confidence_role)))
}

/// What may be written, and for how long.
fn mode(scene: &Scene) -> (String, &'static str, Role) {
    match (scene.app.operations.mode, scene.app.operations.enforced_until) {
        (Mode::DryRun, _) => (" DRY-RUN ".into(), "nothing is written", Role::ModeDryRun),
        (Mode::ReadOnly, _) => (" READ-ONLY ".into(), "writes are locked out", Role::ModeReadOnly),
        (Mode::Enforce, None) => (" ENFORCE ".into(), "effects are written", Role::ModeEnforce),
        (Mode::Enforce, Some(until)) => {
            let left = text::left(until, scene.now);
            (format!(" ENFORCE {left} "), "plans can be applied", Role::ModeEnforce)
        }
    }
}

/// Operations in progress, in short.
fn in_progress(scene: &Scene) -> Runs {
    let running: Vec<_> = scene.app.operations.running().collect();
    let words = match running[..] {
        [] => return Runs::default(),
        [one] if one.operation.is_paused() => format!("{} is paused", one.title),
        [one] => {
            let (gone, _, left) = one.progress.pods_by_fate();
            let pods = if gone + left > 0 { format!(" {gone}/{}", gone + left) } else { String::new() };
            format!("{}{pods}", one.title)
        }
        _ => format!("{} operations", running.len()),
    };
    let words = if scene.app.operations.quitting { format!("{words}, then quits") } else { words };
    Runs::new("▶ ", scene.style(Role::FeedBusy))
        .and(&words, scene.style(Role::FeedBusy))
        .and(" (o)", scene.style(Role::Faint))
}

/// How far predictions can be trusted, in words.
pub fn confidence(scene: &Scene) -> (&'static str, String, Role) {
    match scene.shown.views.confidence {
        None => ("◌", "starting".into(), Role::FeedBusy),
        Some(Confidence::Assumed) => ("◌", "no leader Lease: controller assumed".into(), Role::FeedBusy),
        Some(Confidence::Live) => ("✔", format!("live{}", last_event(scene)), Role::FeedLive),
        Some(Confidence::Disconnected { since }) => {
            ("✗", format!("disconnected {}: states frozen", text::age(scene.now, since)), Role::FeedBroken)
        }
        Some(Confidence::NoController { since }) => (
            "✗",
            format!("no active kube-controller-manager for {}: no evictions", text::age(scene.now, since)),
            Role::FeedBroken,
        ),
    }
}

/// ` 1s`: the age of the last event of any watch.
fn last_event(scene: &Scene) -> String {
    let last = scene.shown.feeds.iter().filter_map(|(_, health)| health.last_heard).max();
    last.map_or(String::new(), |last| format!(" {}", text::age(scene.now, last)))
}

fn controller(scene: &Scene) -> Segments {
    let dim = scene.style(Role::Dim);
    let mut line = Segments::default().left(0, who(scene));
    for (priority, name, value, origin) in settings(scene) {
        let role = if origin == Origin::Default { Role::Base } else { Role::Strong };
        let mark = match origin {
            Origin::Default => "",
            Origin::Cluster => " (cluster)",
            Origin::Configuration => " (configuration)",
            Origin::Override => " (override)",
        };
        let runs = Runs::new(name, dim).and(" ", dim).and(&value, scene.style(role));
        line = line.left(priority, runs.and(mark, scene.style(Role::Faint)));
    }
    let settings = &scene.app.model.settings;
    let all_default = settings.rows().iter().all(|(.., origin)| *origin == Origin::Default);
    let note = if all_default { format!("defaults of {}", settings.version) } else { String::new() };
    line.right(8, Runs::new(&note, scene.style(Role::Faint)))
}

/// The active controller.
fn who(scene: &Scene) -> Runs {
    let dim = scene.style(Role::Dim);
    let name = Runs::new("controller ", scene.style(Role::Heading));
    if scene.app.model.role == ControllerRole::Controller {
        return name.and("kordon itself", scene.style(Role::Strong));
    }
    let leader = match scene.shown.leadership() {
        Leadership::Held(leader) => leader,
        Leadership::Released => return name.and("the Lease has no holder", scene.style(Role::FeedBroken)),
        Leadership::NoLease => {
            return name.and("no Lease: leader election may be off", scene.style(Role::FeedBusy));
        }
        Leadership::Forbidden => return name.and("the Lease may not be read", scene.style(Role::FeedBroken)),
        Leadership::Unknown => return name.and("unknown", dim),
    };
    // The holder's identity is its host name and a UUID.
    let host = leader.holder.split('_').next().unwrap_or_default();
    let mut runs = name.and(host, scene.style(Role::Base));
    if let Some(renewed) = leader.renewed {
        let renewed = scene.shown.cluster.local(renewed);
        let late = scene.now.since(renewed) > leader.duration.unwrap_or(Span::from_secs(15));
        let role = if late { Role::FeedBroken } else { Role::Dim };
        runs = runs.and(&format!(" renewed {} ago", text::age(scene.now, renewed)), scene.style(role));
    }
    match leader.acquired {
        Some(acquired) => runs.and(&format!(", leader for {}", scene.age(acquired)), dim),
        None => runs,
    }
}

/// The controller's settings in short, with the priority of each on a narrow screen.
fn settings(scene: &Scene) -> [(u8, &'static str, String, Origin); 6] {
    let settings = &scene.app.model.settings;
    let (period, grace) = (settings.node_monitor_period, settings.node_monitor_grace_period);
    let startup = settings.node_startup_grace_period;
    let (rate, secondary) = (settings.node_eviction_rate, settings.secondary_node_eviction_rate);
    let (large, threshold) = (settings.large_cluster_size_threshold, settings.unhealthy_zone_threshold);
    let rates = format!("{}/s ({}/s when disrupted)", rate.value, secondary.value);
    [
        (2, "monitor period", period.value.to_string(), period.origin),
        (1, "grace", grace.value.to_string(), grace.origin),
        (7, "startup grace", startup.value.to_string(), startup.origin),
        (3, "eviction rate", rates, rate.origin.max(secondary.origin)),
        (6, "large zone", format!("> {} nodes", large.value), large.origin),
        (5, "unhealthy threshold", format!("{:.0}%", 100.0 * threshold.value), threshold.origin),
    ]
}

fn watches(scene: &Scene) -> Segments {
    let dim = scene.style(Role::Dim);
    let mut line = Segments::default().left(0, Runs::new("watches", scene.style(Role::Heading)));
    let is_main = |kind| matches!(kind, FeedKind::Nodes | FeedKind::Leases | FeedKind::Pods);
    let is_forbidden = |health: &FeedHealth| matches!(health.state, FeedState::Forbidden { .. });
    let allowed = || scene.shown.feeds.iter().filter(|(_, health)| !is_forbidden(health));
    for (kind, health) in allowed().filter(|(kind, _)| is_main(*kind)) {
        line = line.left(1, watch(scene, kind, health));
    }
    let forbidden = scene.shown.feeds.iter().filter(|(_, health)| is_forbidden(health));
    let forbidden: Vec<String> = forbidden.map(|(kind, _)| kind.to_string()).collect();
    if !forbidden.is_empty() {
        let words = format!(" no permission to list {}", forbidden.join(", "));
        line = line.left(1, Runs::new("✗", scene.style(Role::FeedBroken)).and(&words, dim));
    }
    let others = || allowed().filter(|(kind, _)| !is_main(*kind));
    let live = others().filter(|(_, health)| health.state == FeedState::Live).count();
    let unwell: Vec<_> =
        others().filter(|(_, health)| !matches!(health.state, FeedState::Live | FeedState::Off)).collect();
    match unwell.as_slice() {
        [] => {}
        [(kind, health)] => line = line.left(2, watch(scene, *kind, health)),
        several => {
            let broken = several.iter().any(|(_, health)| is_broken(&health.state));
            let (glyph, role) = if broken { ("✗", Role::FeedBroken) } else { ("◌", Role::FeedBusy) };
            let words = format!(" {} others {}", several.len(), if broken { "failing" } else { "listing" });
            line = line.left(2, Runs::new(glyph, scene.style(role)).and(&words, scene.style(role)));
        }
    }
    if live > 0 {
        line = line.left(3, Runs::new("●", scene.style(Role::FeedLive)).and(&format!(" {live} more"), dim));
    }
    let (requests, bytes) = scene.shown.feeds.traffic();
    let relists = scene.shown.feeds.relists();
    if relists > 0 {
        line = line.right(4, Runs::new(&format!("{relists} relists"), dim));
    }
    line = line.right(
        5,
        Runs::new(&format!("{} requests", text::count(usize::try_from(requests).unwrap_or(usize::MAX))), dim),
    );
    line = line.right(6, Runs::new(&text::bytes(bytes), dim));
    match scene.shown.feeds.clock_difference {
        Some(difference) if difference > CLOCK_DIFFERENCE || difference < -CLOCK_DIFFERENCE => {
            let sign = if difference.is_negative() { "" } else { "+" };
            let text = format!("server clock {sign}{difference}");
            line.right(1, Runs::new(&text, scene.style(Role::FeedBusy)))
        }
        Some(_) | None => line,
    }
}

fn watch(scene: &Scene, kind: FeedKind, health: &FeedHealth) -> Runs {
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

/// Whether a watch that should be live is not.
fn is_any_watch_unwell(scene: &Scene) -> bool {
    scene.shown.feeds.iter().any(|(_, health)| !matches!(health.state, FeedState::Live | FeedState::Off))
}
