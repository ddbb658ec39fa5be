//! The zones: how many of their nodes are not ready, and the eviction rate of each.

use ratatui::{buffer::Buffer, layout::Rect};

use super::{column, draw_cause, draw_nothing, open, say, sort_on_click, table_of};
use crate::{
    app::{Pane, ZoneColumn, screen_part::ScreenPart},
    k8s::feed::FeedKind,
    model::{
        NodeState, ZoneNodes,
        zone_reason::{RateReason, worst_node, zone_reason},
    },
    ui::{
        Scene,
        column_choice::ColumnChoice,
        node_strip, text,
        theme::Role,
        widgets::{Cell, Column, TableWidget, Width, bar, segments::Runs, table::THUMB},
    },
};
use kordon_core::{
    cluster::ZoneKey,
    engine::{ZoneState, ZoneView, is_every_zone_down},
    plan::words::counted,
};

/// ```text
/// ─ 1 Zones  2 · unhealthy from 55% · 1 disrupted ──────────────────────────────────────────────────────────────────
///   zone  state              not ready                    unhealthy       eviction rate, next slot    nodes
/// ✖ eu/a  FullDisruption     8 of 8 not ready             ━━━━╎━━━━ 100%  0.1/s, in 9s: 1 of 7 nodes  ✕✕✕✕✕✕✕✕
/// ◌ eu/b  Normal, Silent     0 of 8 not ready, 1 Silent   ────╎────   0%  0.1/s normal                ▪▪◌▪▪▪▪▪
/// ```
/// Draws the zones with their nodes, one cell per node. Returns the number of rows that fit. If the nodes of a zone do
/// not fit its line and there is space, they get lines of their own:
/// ```text
/// · eu/b  Normal             0 of 1,666 not ready         ────╎────   0%  0.1/s normal
///   ▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪
/// ```
pub fn draw(scene: &Scene, area: Rect, buf: &mut Buffer) -> usize {
    let inner = open(scene, Pane::Zones, area, facts(scene), buf);
    let list = &scene.screen.zones.list;
    let zones: Vec<ZoneLine> = list.keys().iter().filter_map(|key| ZoneLine::new(scene, key)).collect();
    let selected = list.cursor().and_then(|place| zones.get(place));
    let reason = selected.map(|zone| {
        zone_reason(zone.view, &scene.shown.views.zones, &scene.app.model.settings, zone.silent())
    });
    let inner = draw_cause(scene, Pane::Zones, reason, inner, buf);
    let page = TableWidget::page(inner);
    if zones.is_empty() && scene.app.model.engine.is_none() && scene.shown.cluster.nodes().is_synced() {
        say(scene, "◌", "waiting for the leader Lease", Role::FeedBusy, inner, buf);
        return page;
    }
    if zones.is_empty() {
        draw_nothing(scene, FeedKind::Nodes, Pane::Zones, "no zones: the cluster has no nodes", inner, buf);
        return page;
    }
    let shown = ColumnChoice::new(scene, Pane::Zones).columns(columns(scene, &zones));
    let table = TableWidget {
        rows: zones.len(),
        ..table_of(scene, Pane::Zones, list, shown, TableWidget::body(inner))
    };
    draw_zones(scene, &zones, table, inner, buf);
    page
}

/// Draws the zones with their nodes in the same line or below it.
fn draw_zones(scene: &Scene, zones: &[ZoneLine], table: TableWidget, area: Rect, buf: &mut Buffer) {
    let choice = ColumnChoice::new(scene, Pane::Zones);
    let cells_of =
        |row: usize, nodes_a_cell| choice.own_cells(scene, cells(scene, &zones[row], nodes_a_cell));
    let nodes_column = table.columns.iter().position(|column| column.name == "nodes");
    let nodes_place = nodes_column.and_then(|column| table.place_of(column, area));
    let behind = nodes_place.map_or(0, |(_, width)| usize::from(width));
    let most = zones.iter().map(|zone| zone.states.len()).max().unwrap_or(0);
    scene.record(Pane::Zones, &table, |row| cells_of(row, Some(1)));
    let has_map = nodes_column.is_some() && most > behind;
    let Some(map) = ZoneMap::new(zones, area).filter(|_| has_map) else {
        let nodes_a_cell = most.div_ceil(behind.max(1)).max(1);
        let headings = table.render(area, buf, |row| cells_of(row, Some(nodes_a_cell)));
        sort_on_click(scene, Pane::Zones, headings);
        if let Some((x, width)) = nodes_place {
            for (zone, row) in zones.iter().skip(table.first).zip(TableWidget::body(area).rows()) {
                let column = Rect { x, width, ..row };
                select_on_click(scene, column, zone, NodesInLine { from: 0, nodes_a_cell, indent: 0 });
            }
        }
        return;
    };
    let (lines, selected) = map.lines(zones, table.selected);
    let table = TableWidget { rows: lines.len(), first: 0, selected, ..table };
    let headings = table.render(area, buf, |line| match lines[line] {
        MapLine::Facts(zone) => cells_of(zone, None),
        MapLine::Nodes(zone, first) => vec![map.cells(scene, &zones[zone], first)],
    });
    sort_on_click(scene, Pane::Zones, headings);
    for (line, row) in lines.into_iter().zip(TableWidget::body(area).rows()) {
        let zone = match line {
            MapLine::Facts(zone) | MapLine::Nodes(zone, _) => zone,
        };
        scene.can_click(row, ScreenPart::Rows { pane: Pane::Zones, first: zone });
        if let MapLine::Nodes(_, from) = line {
            let nodes = NodesInLine { from, nodes_a_cell: map.nodes_a_cell, indent: INDENT as u16 };
            select_on_click(scene, row, &zones[zone], nodes);
        }
    }
}

/// The nodes of a zone that a line shows.
#[derive(Clone, Copy)]
struct NodesInLine {
    /// Index of the first of them in the zone.
    from: usize,
    nodes_a_cell: usize,
    /// Width in cells before the first of them.
    indent: u16,
}

/// Makes the cells of a line select their nodes when they are clicked.
fn select_on_click(scene: &Scene, line: Rect, zone: &ZoneLine, nodes: NodesInLine) {
    let NodesInLine { from, nodes_a_cell, indent } = nodes;
    let cells = (zone.states.len() - from).div_ceil(nodes_a_cell);
    let width = u16::try_from(cells).unwrap_or(u16::MAX).saturating_add(indent).min(line.width);
    let first = scene.shown.watchlist.place(&zone.view.key) + from;
    scene.can_click(Rect { width, ..line }, ScreenPart::NodeCells { first, nodes_a_cell, indent });
}

/// A zone with the states of its nodes.
struct ZoneLine<'a> {
    view: &'a ZoneView,
    /// States of the zone's nodes, sorted by the nodes' names.
    states: &'a [NodeState],
}

impl<'a> ZoneLine<'a> {
    fn new(scene: &Scene<'a>, key: &ZoneKey) -> Option<Self> {
        let view = scene.shown.views.zones.iter().find(|zone| zone.key == *key)?;
        let nodes = scene.shown.watchlist.zones().get(key);
        Some(Self { view, states: nodes.map_or(&[], ZoneNodes::states) })
    }

    /// Number of silent nodes in the zone. The zone's state does not include silent nodes yet.
    fn silent(&self) -> usize {
        self.states.iter().filter(|state| **state == NodeState::Silent).count()
    }

    fn worst_node(&self) -> Option<NodeState> {
        worst_node(self.view, self.states)
    }

    /// Glyph of the worst node or, without one, of the zone's state.
    fn sign(&self) -> (&'static str, Role) {
        match self.worst_node() {
            Some(worst) => (worst.glyph(), Role::for_state(worst.role())),
            None => (glyph(self.view.state), state_role(self.view.state)),
        }
    }

    /// State of the zone, with the state of its worst node, whose glyph the zone has: `Normal, Evicting`.
    fn state(&self, scene: &Scene) -> Cell {
        let cell = Cell::new(self.view.state.as_str(), scene.style(state_role(self.view.state)));
        match self.worst_node() {
            Some(worst) => cell
                .and(", ", scene.style(Role::Faint))
                .and(&worst.to_string(), scene.style(Role::for_state(worst.role()))),
            None => cell,
        }
    }
}

/// Indentation in cells of nodes on lines of their own.
const INDENT: usize = 2;

/// Layout of zones whose nodes have lines of their own.
struct ZoneMap {
    width: usize,
    /// Number of nodes that one cell stands for.
    nodes_a_cell: usize,
}

/// A line of the pane: the facts about a zone, or some of its nodes, starting at an index.
#[derive(Clone, Copy)]
enum MapLine {
    Facts(usize),
    Nodes(usize, usize),
}

impl ZoneMap {
    /// Creates the layout with as few nodes per cell as fit; `None` if not even one line of nodes per zone fits.
    fn new(zones: &[ZoneLine], area: Rect) -> Option<Self> {
        let width = usize::from(area.width).checked_sub(INDENT + THUMB).filter(|width| *width > 0)?;
        let room = TableWidget::page(area).checked_sub(zones.len())?;
        let lines =
            |per: usize| zones.iter().map(|zone| zone.states.len().div_ceil(width * per)).sum::<usize>();
        let most = zones.iter().map(|zone| zone.states.len()).max().unwrap_or(0);
        let nodes_a_cell = (1..=most.max(1)).find(|per| lines(*per) <= room)?;
        Some(Self { width, nodes_a_cell })
    }

    /// Lines of the layout, and the index of the selected zone's line.
    fn lines(&self, zones: &[ZoneLine], cursor: Option<usize>) -> (Vec<MapLine>, Option<usize>) {
        let (mut lines, mut selected) = (Vec::new(), None);
        for (place, zone) in zones.iter().enumerate() {
            selected = selected.or((cursor == Some(place)).then_some(lines.len()));
            lines.push(MapLine::Facts(place));
            let step = self.width * self.nodes_a_cell;
            lines.extend((0..zone.states.len()).step_by(step).map(|first| MapLine::Nodes(place, first)));
        }
        (lines, selected)
    }

    fn cells(&self, scene: &Scene, zone: &ZoneLine, first: usize) -> Cell {
        let last = zone.states.len().min(first + self.width * self.nodes_a_cell);
        nodes(
            scene,
            Cell::new(&" ".repeat(INDENT), scene.style(Role::Dim)),
            &zone.states[first..last],
            self.nodes_a_cell,
        )
    }
}

/// Number of zones: `3 · 2 disrupted`.
fn facts(scene: &Scene) -> Runs {
    let zones = &scene.shown.views.zones;
    if zones.is_empty() {
        return Runs::default();
    }
    let disrupted =
        zones.iter().filter(|zone| !matches!(zone.state, ZoneState::Normal | ZoneState::Initial)).count();
    let threshold = 100.0 * scene.app.model.settings.unhealthy_zone_threshold.value;
    let runs = Runs::new(&text::count(zones.len()), scene.style(Role::Dim))
        .and(&format!(" · unhealthy from {threshold:.0}%"), scene.style(Role::Dim));
    if disrupted == 0 {
        return runs;
    }
    if all_down(scene) {
        let words = " · all zones down: evictions paused (master disruption mode)";
        return runs.and(words, scene.style(Role::ZoneFull));
    }
    runs.and(&format!(" · {disrupted} disrupted"), scene.style(Role::ZonePartial))
}

/// Columns of the table. Their widths only depend on the names of the zones and the width of the pane.
fn columns(scene: &Scene, zones: &[ZoneLine]) -> Vec<Column> {
    let sort = scene.screen.zones.sort;
    let longest = zones.iter().map(|zone| text::width(&zone.view.key.short())).max().unwrap_or(0);
    let name = u16::try_from(longest + 2).unwrap_or(u16::MAX).clamp(6, 30);
    let rate = if scene.width(Pane::Zones) >= WITH_REASON { 46 } else { 27 };
    vec![
        column(sort, ZoneColumn::Zone, "  zone", Width::Fixed(name)),
        column(sort, ZoneColumn::State, "state", Width::Fixed(17)).gives_way(2),
        column(sort, ZoneColumn::NotReady, "not ready", Width::Fixed(28)),
        Column::plain("unhealthy", Width::Fixed(14)).gives_way(4),
        column(sort, ZoneColumn::Rate, "eviction rate, next slot", Width::Fixed(rate))
            .named("rate")
            .gives_way(5),
        Column::plain("nodes", Width::Grow(10, 1)).gives_way(3),
    ]
}

/// Minimum width at which the reason of an eviction rate is shown.
const WITH_REASON: u16 = 200;

/// Cells of a zone. If `nodes_a_cell` is set, the last cell shows the zone's nodes.
fn cells(scene: &Scene, zone: &ZoneLine, nodes_a_cell: Option<usize>) -> Vec<Cell> {
    let dim = scene.style(Role::Dim);
    let (sign, sign_role) = zone.sign();
    let view = zone.view;
    let nodes = nodes_a_cell.map(|per| nodes(scene, Cell::default(), zone.states, per));
    vec![
        Cell::new(sign, scene.style(sign_role))
            .and(" ", dim)
            .and(&view.key.short(), scene.style(Role::Base))
            .copied_as(&view.key.short()),
        zone.state(scene).copied_as(view.state.as_str()),
        not_ready(scene, view, zone.silent()),
        share(scene, view),
        rate(scene, view),
        nodes.unwrap_or_default(),
    ]
}

fn nodes(scene: &Scene, before: Cell, states: &[NodeState], nodes_a_cell: usize) -> Cell {
    node_strip::cells(scene, states, nodes_a_cell).fold(before, |cell, (text, style)| cell.and(&text, style))
}

/// Nodes that are not ready: `3 of 10 not ready`, `0 of 10 not ready, 4 Silent`.
fn not_ready(scene: &Scene, zone: &ZoneView, silent: usize) -> Cell {
    let role = if zone.not_ready == 0 { Role::Dim } else { Role::Strong };
    let of = format!(" of {} not ready", text::count(zone.size));
    let cell = Cell::new(&text::count(zone.not_ready), scene.style(role)).and(&of, scene.style(Role::Dim));
    if silent == 0 {
        return cell;
    }
    let silent = format!("{} Silent", text::count(silent));
    cell.and(", ", scene.style(Role::Faint)).and(&silent, scene.style(Role::NodeWarning))
}

/// Width in cells of the bar of nodes that are not ready.
const BAR: usize = 8;

/// Share of nodes that are not ready, with a tick at the unhealthy threshold: `━━━╎────  30%`.
fn share(scene: &Scene, zone: &ZoneView) -> Cell {
    let threshold = scene.app.model.settings.unhealthy_zone_threshold.value;
    let share = zone.unready_share();
    let (fill, rest) = bar(share, BAR);
    let role = if share >= threshold { Role::GaugeHigh } else { Role::GaugeFill };
    let styled =
        fill.chars().map(|cell| (cell, role)).chain(rest.chars().map(|cell| (cell, Role::GaugeRest)));
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "8 cells"
    )]
    let tick = (threshold.clamp(0.0, 1.0) * BAR as f32).round() as usize;
    let mut cell = Cell::default();
    for (place, (letter, role)) in styled.enumerate() {
        if place == tick {
            cell = cell.and("╎", scene.style(Role::Strong));
        }
        cell = cell.and(letter.encode_utf8(&mut [0; 4]), scene.style(role));
    }
    if tick == BAR {
        cell = cell.and("╎", scene.style(Role::Strong));
    }
    cell.and(&format!(" {:>3.0}%", 100.0 * share), scene.style(Role::Base))
}

/// Eviction rate and, if nodes wait, when the next one is tainted:
/// `0.1/s normal`, `0.1/s, in 9s: 1 of 7 nodes`, `0/s stopped, 2 nodes wait`.
fn rate(scene: &Scene, zone: &ZoneView) -> Cell {
    let rate = RateReason::new(zone, &scene.shown.views.zones);
    let role = match rate {
        RateReason::AllZonesDown | RateReason::ZonePaused => Role::ZoneFull,
        RateReason::LargeZonePartlyDown | RateReason::SmallZonePartlyDown => Role::ZonePartial,
        RateReason::OtherZonesHealthy | RateReason::NotDisrupted => Role::Dim,
    };
    let (word, reason) = (rate.word(), rate.text().map(|text| format!(": {text}")).unwrap_or_default());
    let number = if zone.rate > 0.0 { format!("{}/s", zone.rate) } else { "0/s".into() };
    let cell = Cell::new(&number, scene.style(Role::Base));
    let has_reason = scene.width(Pane::Zones) >= WITH_REASON;
    let cell = if has_reason || zone.queue.is_empty() || zone.rate == 0.0 {
        cell.and(" ", scene.style(Role::Dim)).and(word, scene.style(role))
    } else {
        cell
    };
    let cell = if has_reason { cell.and(&reason, scene.style(role)) } else { cell };
    let Some(slot) = slot(scene, zone) else { return cell };
    cell.and(", ", scene.style(Role::Dim)).join(slot)
}

/// When the next waiting node is tainted: `in 9s: 1 of 7 nodes`; `2 nodes wait` if the rate is 0; `None` if no node
/// waits. If a single node waits, its name is shown. If several nodes wait, no name is shown, because upstream takes
/// them in random order.
fn slot(scene: &Scene, zone: &ZoneView) -> Option<Cell> {
    let (dim, unknown) = (scene.style(Role::Dim), scene.style(Role::NodeCritical));
    let waiting = zone.queue.len();
    let (Some(next), true) = (zone.next_token, zone.rate > 0.0) else {
        let words = counted(waiting, "node waits", "nodes wait");
        return (waiting > 0).then(|| Cell::new(&words, unknown));
    };
    let left = text::left(next.max(scene.now), scene.now);
    let at = if left == "now" { left } else { format!("in {left}") };
    let cell = Cell::new(&at, scene.style(Role::CountdownSoon)).and(": ", dim);
    Some(match zone.queue.as_slice() {
        [] => return None,
        [one] => cell.and(one, unknown),
        several => cell.and(&format!("1 of {} nodes", text::count(several.len())), unknown),
    })
}

fn all_down(scene: &Scene) -> bool {
    is_every_zone_down(&scene.shown.views.zones)
}

const fn glyph(state: ZoneState) -> &'static str {
    match state {
        ZoneState::Initial => "◌",
        ZoneState::Normal => "·",
        ZoneState::PartialDisruption => "◐",
        ZoneState::FullDisruption => "✖",
    }
}

const fn state_role(state: ZoneState) -> Role {
    match state {
        ZoneState::Initial => Role::ZoneInitial,
        ZoneState::Normal => Role::ZoneNormal,
        ZoneState::PartialDisruption => Role::ZonePartial,
        ZoneState::FullDisruption => Role::ZoneFull,
    }
}
