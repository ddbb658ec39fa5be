//! Zones: how many of their nodes are down, and how fast the others follow.

use ratatui::{buffer::Buffer, layout::Rect};

use super::{column, draw_nothing, explain, open, plain, say, zone_name};
use crate::{
    app::{Pane, ZoneColumn},
    engine::{ZoneState, ZoneView},
    k8s::feed::FeedKind,
    model::ControllerRole,
    time::Span,
    ui::{
        Scene, text,
        theme::Role,
        widgets::{Cell, Column, TableWidget, Width, bar, segments::Runs},
    },
};

/// ```text
/// ─ 1 Zones  2 · 1 disrupted · can lose any node, not zone eu/a (12 Pending) ───────────────────────
///   zone  state              not ready  of threshold         taints nodes at              queue  next slots  waiting
/// ● eu/a  Normal               1 of 10  ━━────── 10% / 55%   0.1/s full rate                  2  4s 14s      any of n-3 n-7
/// ◐ eu/b  PartialDisruption    6 of 10  ━━━━━━━━ 60% / 55%   0/s stopped: at most 50 nodes    1  none while stopped  n-9
/// ```
/// Draws each zone; tells how many rows there is room for.
pub fn draw(scene: &Scene, area: Rect, buf: &mut Buffer) -> usize {
    let zones = &scene.shown.views.zones;
    let inner = open(scene, Pane::Zones, area, facts(scene), buf);
    let selected = scene.screen.zones.list.selected();
    let selected = selected.and_then(|key| zones.iter().find(|zone| zone.key == *key));
    let inner = explain(scene, Pane::Zones, selected.map(|zone| reason(scene, zone)), inner, buf);
    let page = TableWidget::page(inner);
    if zones.is_empty() && scene.app.model.engine.is_none() && scene.shown.cluster.nodes().is_synced() {
        say(scene, "◌", "waiting to hear who leads the controllers", Role::FeedBusy, inner, buf);
        return page;
    }
    let list = &scene.screen.zones.list;
    if list.is_empty() {
        draw_nothing(scene, FeedKind::Nodes, Pane::Zones, "no zone has been seen yet", inner, buf);
        return page;
    }
    let table = TableWidget {
        columns: columns(scene),
        rows: list.len(),
        first: list.first_shown(page),
        selected: Some(list.place()),
        looks: scene.looks(Pane::Zones),
    };
    table.render(inner, buf, |row| {
        let zone = zones.iter().find(|zone| zone.key == list.keys()[row]);
        zone.map(|zone| cells(scene, zone)).unwrap_or_default()
    });
    page
}

/// `3 · 2 disrupted`
fn facts(scene: &Scene) -> Runs {
    let zones = &scene.shown.views.zones;
    if zones.is_empty() {
        return Runs::default();
    }
    let disrupted =
        zones.iter().filter(|zone| !matches!(zone.state, ZoneState::Normal | ZoneState::Initial)).count();
    let runs = Runs::new(&text::count(zones.len()), scene.style(Role::Dim));
    if disrupted == 0 {
        return spare(scene, runs);
    }
    if all_down(scene) {
        let words = " · every zone is down: the controller doubts itself and evicts nobody";
        return runs.and(words, scene.style(Role::ZoneFull));
    }
    spare(scene, runs.and(&format!(" · {disrupted} disrupted"), scene.style(Role::ZonePartial)))
}

/// ` · can lose any node, any zone`, with its age where that is no longer sure.
fn spare(scene: &Scene, runs: Runs) -> Runs {
    let faint = scene.style(Role::Faint);
    let Some(spare) = &scene.shown.headroom else {
        let soon = scene.shown.plan_revision().is_some();
        return if soon { runs.and(" · working out what it can lose", faint) } else { runs };
    };
    let words = spare.headroom.in_short();
    if words.is_empty() {
        return runs;
    }
    let role = if spare.headroom.is_enough() { Role::Dim } else { Role::ZonePartial };
    let runs = runs.and(" · ", faint).and(&format!("can lose {words}"), scene.style(role));
    match scene.shown.headroom_is_from(scene.now) {
        Some(at) => runs.and(&format!(" ({} ago)", text::age(scene.now, at)), faint),
        None => runs,
    }
}

fn columns(scene: &Scene) -> Vec<Column> {
    let sort = scene.screen.zones.sort;
    vec![
        column(sort, ZoneColumn::Zone, "  zone", Width::Fit(10, 30)),
        column(sort, ZoneColumn::State, "state", Width::Fit(6, 17)).gives_way(1),
        column(sort, ZoneColumn::NotReady, "not ready", Width::Fit(9, 13)).right(),
        plain("of threshold", Width::Fixed(19)).gives_way(4),
        column(sort, ZoneColumn::Rate, "taints nodes at", Width::Fit(15, 34)).gives_way(2),
        column(sort, ZoneColumn::Queue, "queue", Width::Fit(5, 6)).right(),
        plain("next slots", Width::Fit(10, 18)).gives_way(3),
        plain("waiting", Width::Grow(8, 1)).gives_way(5),
    ]
}

fn cells(scene: &Scene, zone: &ZoneView) -> Vec<Cell> {
    let dim = scene.style(Role::Dim);
    let role = state_role(zone.state);
    vec![
        Cell::new(glyph(zone.state), scene.style(role))
            .and(" ", dim)
            .and(&zone_name(&zone.key), scene.style(Role::Base)),
        Cell::new(zone.state.as_str(), scene.style(role)),
        not_ready(scene, zone),
        share(scene, zone),
        rate(scene, zone),
        queue_length(scene, zone),
        slots(scene, zone),
        waiting(scene, zone),
    ]
}

/// `3 of 10`
fn not_ready(scene: &Scene, zone: &ZoneView) -> Cell {
    let role = if zone.not_ready == 0 { Role::Dim } else { Role::Strong };
    Cell::new(&text::count(zone.not_ready), scene.style(role))
        .and(" of ", scene.style(Role::Faint))
        .and(&text::count(zone.size), scene.style(Role::Base))
}

/// `━━━━──── 30% of 55%`: the bar is full at the threshold.
fn share(scene: &Scene, zone: &ZoneView) -> Cell {
    let threshold = scene.app.model.settings.unhealthy_zone_threshold.value;
    let share = zone.unready_share();
    let (fill, rest) = bar(if threshold > 0.0 { share / threshold } else { share }, 8);
    let role = if share >= threshold { Role::GaugeHigh } else { Role::GaugeFill };
    Cell::new(&fill, scene.style(role))
        .and(&rest, scene.style(Role::GaugeRest))
        .and(&format!(" {:>3.0}%", 100.0 * share), scene.style(Role::Base))
        .and(&format!(" / {:.0}%", 100.0 * threshold), scene.style(Role::Faint))
}

/// The rate in force, and why it is what it is.
fn rate(scene: &Scene, zone: &ZoneView) -> Cell {
    let settings = &scene.app.model.settings;
    let large = i64::from(settings.large_cluster_size_threshold.value);
    let (why, role) = match zone.state {
        _ if all_down(scene) => ("stopped: every zone is down".into(), Role::ZoneFull),
        ZoneState::PartialDisruption if zone.rate > 0.0 => {
            (format!("slowed: over {large} nodes"), Role::ZonePartial)
        }
        ZoneState::PartialDisruption => (format!("stopped: at most {large} nodes"), Role::ZonePartial),
        ZoneState::FullDisruption => ("full rate: other zones live".into(), Role::Dim),
        ZoneState::Normal | ZoneState::Initial => ("full rate".into(), Role::Dim),
    };
    let number = if zone.rate > 0.0 { format!("{}/s ", zone.rate) } else { "0/s ".into() };
    Cell::new(&number, scene.style(Role::Base)).and(&why, scene.style(role))
}

/// Upstream's master disruption mode: every zone that counts any node is fully disrupted.
fn all_down(scene: &Scene) -> bool {
    let mut counted = scene.shown.views.zones.iter().filter(|zone| zone.size > 0).peekable();
    counted.peek().is_some() && counted.all(|zone| zone.state == ZoneState::FullDisruption)
}

/// Why the zone has its state and its rate, and what would change it.
fn reason(scene: &Scene, zone: &ZoneView) -> String {
    let settings = &scene.app.model.settings;
    let (not_ready, size) = (zone.not_ready, zone.size);
    let threshold = 100.0 * settings.unhealthy_zone_threshold.value;
    let large = settings.large_cluster_size_threshold.value;
    if all_down(scene) {
        return "no node is ready in any zone (master disruption mode): the controller takes its NoExecute taints off and \
                evicts nobody; once any node is ready again, every node gets a fresh grace period"
            .into();
    }
    match zone.state {
        ZoneState::Initial => "it has been seen, and the next monitor pass judges it".into(),
        ZoneState::Normal if not_ready > 0 => format!(
            "{not_ready} of {size} not ready are fewer than {threshold:.0} %, or fewer than three: its waiting nodes get \
             their NoExecute taints at the full rate"
        ),
        ZoneState::Normal => "all its nodes are ready".into(),
        ZoneState::PartialDisruption if zone.rate > 0.0 => format!(
            "{not_ready} of {size} not ready reach {threshold:.0} %: with more than {large} nodes it goes on at the \
             secondary rate, until fewer are not ready"
        ),
        ZoneState::PartialDisruption => format!(
            "{not_ready} of {size} not ready reach {threshold:.0} %: with at most {large} nodes nobody gets a NoExecute \
             taint, until fewer are not ready"
        ),
        ZoneState::FullDisruption => format!(
            "none of its {size} nodes is ready, while other zones have nodes that are: it is emptied at the full rate"
        ),
    }
}

fn queue_length(scene: &Scene, zone: &ZoneView) -> Cell {
    let role = if zone.queue.is_empty() { Role::Faint } else { Role::Strong };
    Cell::new(&text::count(zone.queue.len()), scene.style(role))
}

/// `4s 14s 24s`: when the next nodes get their taint.
fn slots(scene: &Scene, zone: &ZoneView) -> Cell {
    if zone.queue.is_empty() {
        return Cell::new("–", scene.style(Role::Faint));
    }
    let (Some(first), true) = (zone.next_token, zone.rate > 0.0) else {
        return Cell::new("none while stopped", scene.style(state_role(zone.state)));
    };
    let apart = Span::from_secs_f64(1.0 / f64::from(zone.rate));
    let mut cell = Cell::default();
    for place in 0..zone.queue.len().min(3) {
        let at = first.max(scene.now) + apart * i64::try_from(place).unwrap_or(0);
        let gap = if place > 0 { " " } else { "" };
        let role = if place == 0 { Role::CountdownSoon } else { Role::Dim };
        cell = cell.and(gap, scene.style(Role::Dim)).and(&text::left(at, scene.now), scene.style(role));
    }
    cell
}

/// Who competes for the slots. Upstream's order among waiting nodes is chance: one name says who is next only
/// where one waits, or where kordon decides.
fn waiting(scene: &Scene, zone: &ZoneView) -> Cell {
    let names: Vec<&str> = zone.queue.iter().map(|node| &**node).collect();
    let sure = scene.app.model.role == ControllerRole::Controller || names.len() == 1;
    match names.as_slice() {
        [] => Cell::default(),
        _ if sure => Cell::new(&names.join(" "), scene.style(Role::NodeUnknown)),
        _ => {
            Cell::new("any of ", scene.style(Role::Dim)).and(&names.join(" "), scene.style(Role::NodeUnknown))
        }
    }
}

pub const fn glyph(state: ZoneState) -> &'static str {
    match state {
        ZoneState::Initial => "◌",
        ZoneState::Normal => "●",
        ZoneState::PartialDisruption => "◐",
        ZoneState::FullDisruption => "○",
    }
}

pub const fn state_role(state: ZoneState) -> Role {
    match state {
        ZoneState::Initial => Role::ZoneInitial,
        ZoneState::Normal => Role::ZoneNormal,
        ZoneState::PartialDisruption => Role::ZonePartial,
        ZoneState::FullDisruption => Role::ZoneFull,
    }
}
