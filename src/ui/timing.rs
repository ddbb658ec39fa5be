//! The timing sheet: how soon a dead node is noticed and its pods run elsewhere, in this cluster and with other
//! profiles.

use std::convert::identity;

use ratatui::{buffer::Buffer, layout::Rect};

use super::{
    Scene, text, text_sheet,
    theme::Role,
    widgets::{range_axis, range_bar, segments::Runs},
};
use crate::app::timing::{THIS_CLUSTER, TimingResult, TimingSheet};
use kordon_core::{
    engine::Profile,
    timing::{HeartbeatKind, Timing, TimingProfile, TimingRange},
};
use kordon_time::Span;

/// Maximum width of the timing sheet in cells.
const WIDEST: u16 = 120;

/// Number of cells of a row before its bar.
const BEFORE_BAR: usize = 46;

/// ```text
/// ╭ Timing ──────────────────────────────────────────────────────────────────────╮
/// │ from a node's death     best   typical     worst   0s      2m00s   4m00s     │
/// │ ▶ this cluster · heartbeat 10s (Lease) · grace 50s · period 5s               │
/// │   Unknown                40s       48s     1m00s    ├●┤                      │
/// │   pods deleted         5m40s     5m48s     6m00s                       ├●┤   │
/// │   blip of a node: 5m30s evicts nothing · 40s is not noticed                  │
/// │   writes/min: 6 status · 180 Lease · etcd +130.3 KiB/min                     │
/// ╰ Esc closes ──────────────────────────────────────────────────────────────────╯
/// ```
/// Draws the sheet over the middle of the screen.
pub fn draw(scene: &Scene, sheet: &TimingSheet, area: Rect, buf: &mut Buffer) {
    let width = WIDEST.min(area.width.saturating_sub(2));
    let lines = match &sheet.result {
        Some(result) => lines(scene, result, usize::from(width.saturating_sub(text_sheet::FRAME))),
        None => vec![Runs::new("working it out\u{2026}", scene.style(Role::Dim))],
    };
    text_sheet::draw(scene, "Timing", (lines, sheet.scrolled), identity, width, area, buf);
}

fn lines(scene: &Scene, result: &TimingResult, width: usize) -> Vec<Runs> {
    let ranges = |timing: &Timing| rows(timing).into_iter().filter_map(|(_, range)| range);
    let end = result.timings.iter().flat_map(ranges).map(|range| range.worst).max();
    let axis = Axis { end: end.unwrap_or(Span::from_secs(1)), cells: width.saturating_sub(BEFORE_BAR) };
    let heading = row("from a node's death", ["best", "typical", "worst"].map(str::to_owned));
    let heading = Runs::new(&heading, scene.style(Role::Heading))
        .and(&range_axis(axis.end, axis.cells), scene.style(Role::Dim));
    let of_profile = |timing: &Timing| profile_lines(scene, timing, axis, width);
    let mut lines = vec![heading];
    lines.extend(result.timings.iter().flat_map(of_profile));
    if let Some(Timing { profile: TimingProfile { toleration, pod_startup, .. }, .. }) =
        result.timings.first()
    {
        let note = format!(
            "{} nodes · assumed: toleration {toleration}, pod startup {pod_startup} · `kordon timing` has more: blips of zones, other flags",
            text::count(result.nodes())
        );
        lines.push(Runs::new(&text::cut(&note, width), scene.style(Role::Dim)));
    }
    lines
}

/// Time axis of the bars, and its width.
#[derive(Clone, Copy)]
struct Axis {
    end: Span,
    cells: usize,
}

fn profile_lines(scene: &Scene, timing: &Timing, axis: Axis, width: usize) -> Vec<Runs> {
    let is_own = timing.profile.name == THIS_CLUSTER;
    let (strong, dim) = (scene.style(Role::Strong), scene.style(Role::Dim));
    let (mark, name) = if is_own { ("▶ ", Role::TitleFocus) } else { ("  ", Role::Heading) };
    let head = Runs::new(&format!("{mark}{}", timing.profile.name), scene.style(name));
    let flags = flags(timing).into_iter().fold(head, |head, flag| head.and(&format!(" · {flag}"), dim));
    let mut lines = vec![flags.fitted(width)];
    for (what, range) in rows(timing) {
        let style = if is_own { strong } else { scene.style(Role::Base) };
        let line = match range {
            None => Runs::new(&row(what, ["never", "-", "-"].map(str::to_owned)), style),
            Some(range) => {
                let spans = [range.best, range.typical, range.worst];
                Runs::new(&row(what, spans.map(text::nearest_second)), style)
                    .and(&range_bar(spans, axis.end, axis.cells), style)
            }
        };
        lines.push(line);
    }
    lines.push(Runs::new("    ", dim).join(risk(scene, timing)).fitted(width));
    lines.push(Runs::new("    ", dim).join(load(scene, timing)).fitted(width));
    lines
}

fn row(what: &str, [best, typical, worst]: [String; 3]) -> String {
    format!("    {what:<16}{best:>6}  {typical:>7}  {worst:>6}   ")
}

/// What happens after a node's death, in order. The taint is absent in legacy mode.
fn rows(timing: &Timing) -> [(&'static str, Option<TimingRange>); 4] {
    let death = &timing.death;
    [
        ("Unknown", death.unknown),
        ("taint", death.tainted),
        ("pods deleted", death.deleted),
        ("replaced", death.replaced),
    ]
}

/// Flags that affect the timing, most important first.
fn flags(timing: &Timing) -> Vec<String> {
    let (settings, kubelet) = (&timing.profile.settings, &timing.profile.kubelet);
    let kind = match kubelet.heartbeat {
        HeartbeatKind::Lease => "Lease",
        HeartbeatKind::Status => "status",
    };
    let mut flags = vec![
        format!("heartbeat {} ({kind})", kubelet.interval()),
        format!("grace {}", settings.node_monitor_grace_period.value),
        format!("period {}", settings.node_monitor_period.value),
        format!("{} heartbeats in grace", timing.profile.heartbeats_in_grace()),
    ];
    if timing.profile.settings.rules().profile == Profile::Legacy {
        flags.insert(2, format!("eviction timeout {}", settings.pod_eviction_timeout.value));
    }
    flags
}

/// Longest network outages of a node without consequences:
/// `blip of a node: 5m30s evicts nothing · 40s is not noticed`.
fn risk(scene: &Scene, timing: &Timing) -> Runs {
    let longest = |span: Option<Span>| span.map_or_else(|| "any length".into(), |span| span.to_string());
    let (base, dim) = (scene.style(Role::Base), scene.style(Role::Dim));
    Runs::new("blip of a node: ", dim)
        .and(&longest(timing.harmless.without_eviction), base)
        .and(" evicts nothing", dim)
        .and(" · ", dim)
        .and(&longest(timing.harmless.without_unknown), base)
        .and(" is not noticed", dim)
}

fn load(scene: &Scene, timing: &Timing) -> Runs {
    let (base, dim) = (scene.style(Role::Base), scene.style(Role::Dim));
    let load = &timing.load;
    Runs::new("writes/min: ", dim)
        .and(&text::rounded(load.status_writes_per_minute), base)
        .and(" status", dim)
        .and(" · ", dim)
        .and(&text::rounded(load.lease_writes_per_minute[1]), base)
        .and(" Lease", dim)
        .and(" · etcd +", dim)
        .and(&text::rounded_bytes(load.etcd_bytes_per_minute), base)
        .and("/min", dim)
}
