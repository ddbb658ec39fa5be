//! Zones: how many of their nodes are not ready, and how fast nodes are evicted in each.

use std::collections::BTreeMap;

use ratatui::{buffer::Buffer, layout::Rect};

use super::{column, draw_cause, draw_nothing, open, plain, say};
use crate::{
    app::{Pane, ZoneColumn},
    cluster::{Known, ZoneKey},
    engine::{ZoneState, ZoneView},
    k8s::feed::FeedKind,
    model::{ControllerRole, KnownHeadroom, Model, NodeState, cluster_verdict::is_every_zone_down},
    ui::{
        Scene, text,
        theme::Role,
        widgets::{Cell, Column, TableWidget, Width, bar, segments::Runs},
    },
};

/// ```text
/// ─ 1 Zones  2 · 1 disrupted · N-1: losing zone eu/a leaves 12 pods Pending ────────────────────────────────────────
///   zone  state              not ready  of threshold         eviction rate                      queue  next eviction slot
/// ● eu/a  Normal               1 of 10  ━━────── 10% / 55%   0.1/s normal                           2  in 4s: one of n-3, n-7
/// ◐ eu/b  PartialDisruption    6 of 10  ━━━━━━━━ 60% / 55%   0/s stopped: zone partly down          1  none while stopped: n-9
/// ```
/// Draws each zone; returns how many rows there is room for.
pub fn draw(scene: &Scene, area: Rect, buf: &mut Buffer) -> usize {
    let zones = &scene.shown.views.zones;
    let inner = open(scene, Pane::Zones, area, facts(scene), buf);
    let selected = scene.screen.zones.list.selected();
    let selected = selected.and_then(|key| zones.iter().find(|zone| zone.key == *key));
    let silent = silent_nodes(scene.shown);
    let silent = |zone: &ZoneView| silent.get(&zone.key).copied().unwrap_or(0);
    let reason = selected.map(|zone| reason(scene, zone, silent(zone)));
    let inner = draw_cause(scene, Pane::Zones, reason, inner, buf);
    let page = TableWidget::page(inner);
    if zones.is_empty() && scene.app.model.engine.is_none() && scene.shown.cluster.nodes().is_synced() {
        say(scene, "◌", "waiting for the leader Lease", Role::FeedBusy, inner, buf);
        return page;
    }
    let list = &scene.screen.zones.list;
    if list.is_empty() {
        draw_nothing(scene, FeedKind::Nodes, Pane::Zones, "no zones yet", inner, buf);
        return page;
    }
    let table = TableWidget {
        columns: columns(scene),
        rows: list.len(),
        first: list.first_shown(page),
        selected: list.cursor(),
        looks: scene.looks(Pane::Zones),
    };
    table.render(inner, buf, |row| {
        let zone = zones.iter().find(|zone| zone.key == list.keys()[row]);
        zone.map(|zone| cells(scene, zone, silent(zone))).unwrap_or_default()
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
        return headroom(scene, runs);
    }
    if all_down(scene) {
        let words = " · all zones down: evictions paused (master disruption mode)";
        return runs.and(words, scene.style(Role::ZoneFull));
    }
    headroom(scene, runs.and(&format!(" · {disrupted} disrupted"), scene.style(Role::ZonePartial)))
}

/// ` · N-1 ok: nodes, zones`, or that this is likely; nothing while it cannot be known.
fn headroom(scene: &Scene, runs: Runs) -> Runs {
    let faint = scene.style(Role::Faint);
    let headroom = match scene.shown.known_headroom(scene.now) {
        KnownHeadroom::Known(headroom) => headroom,
        KnownHeadroom::Computing => return runs.and(" · N-1: computing", faint),
        KnownHeadroom::Withheld if is_closed(scene) => return runs.and(" · N-1 unknown", faint),
        KnownHeadroom::Withheld => return runs,
    };
    let mut words = headroom.to_string();
    if words.is_empty() {
        return runs;
    }
    if !scene.shown.is_headroom_definite() {
        words.insert_str(0, "likely ");
    }
    let role = if headroom.is_enough() { Role::Dim } else { Role::ZonePartial };
    runs.and(" · ", faint).and(&words, scene.style(role))
}

/// Whether nodes or pods are not to come: they may not be listed, or are not read.
fn is_closed(scene: &Scene) -> bool {
    let gaps = scene.shown.headroom_gaps();
    gaps.0.iter().any(|gap| gap.known != Known::NotListed)
}

fn columns(scene: &Scene) -> Vec<Column> {
    let sort = scene.screen.zones.sort;
    vec![
        column(sort, ZoneColumn::Zone, "  zone", Width::Fit(10, 30)),
        column(sort, ZoneColumn::State, "state", Width::Fit(6, 17)).gives_way(1),
        column(sort, ZoneColumn::NotReady, "not ready", Width::Fit(9, 25)),
        plain("of threshold", Width::Fixed(19)).gives_way(4),
        column(sort, ZoneColumn::Rate, "eviction rate", Width::Fit(13, 38)).gives_way(2),
        column(sort, ZoneColumn::Queue, "queue", Width::Fit(5, 6)).right(),
        plain("next eviction slot", Width::Grow(18, 1)).gives_way(3),
    ]
}

/// How many nodes of each zone are silent, which the zone's state does not tell yet.
fn silent_nodes(shown: &Model) -> BTreeMap<ZoneKey, usize> {
    let mut zones = BTreeMap::new();
    let silent = shown.watchlist.notable().filter(|(_, state)| *state == NodeState::Silent);
    for node in silent.filter_map(|(name, _)| shown.cluster.node(name)) {
        *zones.entry(node.zone()).or_default() += 1;
    }
    zones
}

fn cells(scene: &Scene, zone: &ZoneView, silent: usize) -> Vec<Cell> {
    let dim = scene.style(Role::Dim);
    let role = state_role(zone.state);
    let (sign, sign_role) = match zone.state {
        ZoneState::Normal | ZoneState::Initial if silent > 0 => {
            (NodeState::Silent.glyph(), Role::of_state(NodeState::Silent.role()))
        }
        state => (glyph(state), role),
    };
    vec![
        Cell::new(sign, scene.style(sign_role)).and(" ", dim).and(&zone.key.short(), scene.style(Role::Base)),
        Cell::new(zone.state.as_str(), scene.style(role)),
        not_ready(scene, zone, silent),
        share(scene, zone),
        rate(scene, zone),
        queue_length(scene, zone),
        slot(scene, zone),
    ]
}

/// `3 of 10`, `0 of 10, 4 Silent`
fn not_ready(scene: &Scene, zone: &ZoneView, silent: usize) -> Cell {
    let role = if zone.not_ready == 0 { Role::Dim } else { Role::Strong };
    let cell = Cell::new(&text::count(zone.not_ready), scene.style(role))
        .and(" of ", scene.style(Role::Faint))
        .and(&text::count(zone.size), scene.style(Role::Base));
    if silent == 0 {
        return cell;
    }
    let silent = format!("{} Silent", text::count(silent));
    cell.and(", ", scene.style(Role::Faint)).and(&silent, scene.style(Role::NodeWarning))
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

/// The present rate and the reason for it.
fn rate(scene: &Scene, zone: &ZoneView) -> Cell {
    let (why, role) = match zone.state {
        _ if all_down(scene) => ("paused: all zones down", Role::ZoneFull),
        ZoneState::PartialDisruption if zone.rate > 0.0 => {
            ("reduced: large zone partly down", Role::ZonePartial)
        }
        ZoneState::PartialDisruption => ("stopped: small zone partly down", Role::ZonePartial),
        ZoneState::FullDisruption => ("normal: other zones healthy", Role::Dim),
        ZoneState::Normal | ZoneState::Initial => ("normal", Role::Dim),
    };
    let number = if zone.rate > 0.0 { format!("{}/s ", zone.rate) } else { "0/s ".into() };
    Cell::new(&number, scene.style(Role::Base)).and(why, scene.style(role))
}

fn all_down(scene: &Scene) -> bool {
    is_every_zone_down(&scene.shown.views.zones)
}

/// Why the zone has its state and rate, and what would change them.
fn reason(scene: &Scene, zone: &ZoneView, silent: usize) -> String {
    let settings = &scene.app.model.settings;
    let (not_ready, size) = (zone.not_ready, zone.size);
    let threshold = 100.0 * settings.unhealthy_zone_threshold.value;
    let large = settings.large_cluster_size_threshold.value;
    if all_down(scene) {
        return "no node is ready in any zone (master disruption mode): the controller removes its NoExecute taints and \
                evicts no pods; once any node is ready again, every node gets a fresh grace period"
            .into();
    }
    match zone.state {
        ZoneState::Initial => "new: the next monitor pass decides its state".into(),
        ZoneState::Normal if not_ready > 0 => format!(
            "{not_ready} of {size} nodes are not ready: fewer than {threshold:.0}%, or fewer than 3; queued nodes get \
             their NoExecute taint at the normal rate"
        ),
        ZoneState::Normal if silent > 0 => format!(
            "all nodes are Ready as far as anyone has said, but {silent} of {size} are silent: the controller declares each \
             Unknown when its grace period is over"
        ),
        ZoneState::Normal => "all nodes are ready".into(),
        ZoneState::PartialDisruption if zone.rate > 0.0 => format!(
            "{not_ready} of {size} nodes are not ready: at least {threshold:.0}%; a zone of more than {large} nodes \
             continues at the secondary rate"
        ),
        ZoneState::PartialDisruption => format!(
            "{not_ready} of {size} nodes are not ready: at least {threshold:.0}%; in a zone of at most {large} nodes no \
             node gets a NoExecute taint until fewer are not ready"
        ),
        ZoneState::FullDisruption => format!(
            "none of its {size} nodes is ready, but nodes of other zones are: its nodes get their NoExecute taint at the \
             normal rate"
        ),
    }
}

fn queue_length(scene: &Scene, zone: &ZoneView) -> Cell {
    let role = if zone.queue.is_empty() { Role::Faint } else { Role::Strong };
    Cell::new(&text::count(zone.queue.len()), scene.style(role))
}

/// `in 9s: one of n-3, n-7`: when the next node gets its taint, and the nodes that wait for it. Upstream takes them in
/// random order: one name means that only one waits, or that kordon is the controller.
fn slot(scene: &Scene, zone: &ZoneView) -> Cell {
    if zone.queue.is_empty() {
        return Cell::new("–", scene.style(Role::Faint));
    }
    let (dim, unknown) = (scene.style(Role::Dim), scene.style(Role::NodeCritical));
    let names: Vec<&str> = zone.queue.iter().map(|node| &**node).collect();
    let (Some(next), true) = (zone.next_token, zone.rate > 0.0) else {
        let word = if all_down(scene) { "paused" } else { "stopped" };
        let none = Cell::new(&format!("none while {word}: "), scene.style(state_role(zone.state)));
        return none.and(&names.join(", "), unknown);
    };
    let left = text::left(next.max(scene.now), scene.now);
    let at = if left == "now" { left } else { format!("in {left}") };
    let cell = Cell::new(&at, scene.style(Role::CountdownSoon)).and(": ", dim);
    match names.as_slice() {
        [one] => cell.and(one, unknown),
        _ if scene.app.model.role == ControllerRole::Controller => cell.and(&names.join(", "), unknown),
        several => cell.and("one of ", dim).and(&several.join(", "), unknown),
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
