//! The nodes: for each node, its state according to the controller, how long it has been in that state, and its next
//! event.

use std::{collections::BTreeMap, sync::Arc};

use ratatui::{buffer::Buffer, layout::Rect};

use super::{column, draw_cause, draw_nothing, mark as mark_of, marked, open, sort_on_click, table_of};
use crate::{
    app::{ChosenColumn, NodeColumn, Pane, filter_fields, groups::NodeRow},
    k8s::feed::FeedKind,
    model::{NextEvent, NextEventKind, NodeState, NodeStateView, StateRole},
    ui::{
        Scene,
        column_choice::ColumnChoice,
        node_strip, text,
        theme::Role,
        widgets::{Cell, Column, TableWidget, Width, bar, segments::Runs, strip},
    },
};
use kordon_core::{
    cluster::{
        AllocatedCount, ConditionStatus, CordonOrigin, ExtendedResource, Node, NodeDevices, NodeLoad,
        NodeName, Scope, Taint, TaintEffect, ZoneKey,
    },
    engine::{Certainty, Confidence, NodeView, Silence, heartbeats::KEPT},
    plan::words::counted,
    pressure::UsageMetric,
};
use kordon_time::{Span, Timestamp};

/// ```text
/// ─ 2 Nodes  30 · 1 Evicting · 1 Silent · 28 Ready ───────────────────────────────────────────────────────────────
///   node      state         heartbeat  renewals       grace          next                        zone  pods  cpu req
/// ✖ n-3 ⇅4    Evicting 12s      1m24s  ▂▂▂▂▂▂▂▂▂▂▂▂█  expired 34s    ━━━━━ 1 of 7 pods in 5s     a       12     62%
/// ◌ n-2       Silent 33s          33s  ▂▂▂▂▂▂▂▂▂▂▂▂▆  ━━──── 17s     ━━─── Unknown in 17s        b       12     44%
/// ▪ n-1       Ready 4d2h           3s  ▂▂▂▂▂▂▂▂▂▂▂▂▁                                             a       14     70%
///   … 27 more, all Ready
/// why  lease renewed 03:12:05 → node-monitor-grace-period 50s → …
/// ```
/// Draws the nodes. Returns the number of rows that fit. Number and widths of the columns depend on the width of the
/// pane and the longest names, never on other content.
pub fn draw(scene: &Scene, area: Rect, buf: &mut Buffer) -> usize {
    let list = &scene.screen.nodes.list;
    let inner = open(scene, Pane::Nodes, area, facts(scene), buf);
    if list.is_empty() {
        draw_nothing(scene, FeedKind::Nodes, Pane::Nodes, "the cluster has no nodes", inner, buf);
        return TableWidget::page(inner);
    }
    let inner = draw_cause(scene, Pane::Nodes, why(scene), inner, buf);
    let inner = draw_rest(scene, inner, buf);
    let page = TableWidget::page(inner);
    let choice = ColumnChoice::new(scene, Pane::Nodes);
    let is_wide = scene.screen.wide || choice.needs_all();
    let rare = RareColumns::new(scene, is_wide, choice.needs_all());
    let shown = choice.columns(columns(scene, is_wide, &rare));
    let table = table_of(scene, Pane::Nodes, list, shown, TableWidget::body(inner));
    let table = TableWidget { refills: is_wide, ..table };
    let cells_of = |node: &Arc<Node>, zones: ZoneNaming| {
        let all = cells(scene, node, zones, is_wide, &rare);
        choice.cells(scene, all, |chosen| label_or_annotation(node, chosen))
    };
    let cells = |row: usize, zones: ZoneNaming| match &list.keys()[row] {
        NodeRow::Node(name) => {
            scene.shown.cluster.node(name).map(|node| cells_of(node, zones)).unwrap_or_default()
        }
        NodeRow::Group(name) => vec![group(scene, name)],
    };
    let zones = ZoneNaming::that_fits(scene, &table, inner);
    let state = |row: usize| list.keys()[row].node().and_then(|name| scene.shown.watchlist.state(name));
    let tint = |row| state(row).map(|state| scene.style(Role::for_row(state.role()))).unwrap_or_default();
    scene.record(Pane::Nodes, &table, |row| cells(row, ZoneNaming::Whole));
    let headings = table.render_tinted(inner, buf, |row| cells(row, zones), tint);
    sort_on_click(scene, Pane::Nodes, headings);
    page
}

/// ```text
///   … 11 more, all Ready
/// ```
/// If all rows below the page are Ready nodes, replaces the last row of the page with a note that says so. Returns the
/// area that remains for the rows.
fn draw_rest(scene: &Scene, area: Rect, buf: &mut Buffer) -> Rect {
    let list = &scene.screen.nodes.list;
    let page = TableWidget::page(area).saturating_sub(1);
    let first = list.first_shown(page) + page;
    let rest = list.len().saturating_sub(first);
    if page < 3 || rest < 2 || first < scene.screen.ready_from {
        return area;
    }
    let text = format!("  … {} more, all Ready", text::count(rest));
    buf.set_stringn(area.x, area.bottom() - 1, text, area.width.into(), scene.style(Role::Dim));
    Rect { height: area.height - 1, ..area }
}

/// Nodes by state: `30 · 3 Unknown · 2 NotReady · 25 Ready`. With a filter, also the number of shown nodes.
fn facts(scene: &Scene) -> Runs {
    let nodes = scene.shown.cluster.nodes();
    if nodes.is_empty() {
        return Runs::default();
    }
    let shown = scene.screen.listed_count();
    let runs = if shown < nodes.len() {
        Runs::new(&text::count(nodes.len()), scene.style(Role::Dim))
            .and(&format!(" · {} shown", text::count(shown)), scene.style(Role::Accent))
    } else {
        node_strip::counts(scene)
    };
    marked(scene, runs, Pane::Nodes, scene.screen.marked_nodes.len())
}

/// Value of a label or annotation; `?` for an annotation in a recording, because recordings have no annotations.
fn label_or_annotation(node: &Node, chosen: &ChosenColumn) -> Option<String> {
    match chosen {
        ChosenColumn::Own(_) => None,
        ChosenColumn::Label(key) => node.label(key).map(ToString::to_string),
        ChosenColumn::Annotation(key) => match &node.annotations {
            Some(annotations) => annotations.get(key).map(ToString::to_string),
            None => Some("?".into()),
        },
    }
}

/// Columns of the wide table that are left out if they are empty for all nodes.
struct RareColumns {
    has_extended: bool,
    has_devices: bool,
    /// Devices of each node; `None` if they are not known.
    devices: Option<BTreeMap<NodeName, Vec<NodeDevices>>>,
}

/// Widths of the columns of extended resources (`gpu 3/8, nic 0/1` is cut) and of devices (`gpu.nvidia.com 2/8` fits).
const EXTENDED: u16 = 14;
const DEVICES: u16 = 19;

impl RareColumns {
    /// Decides which rare columns the table has. With `needs_all` it has all of them, because the columns to show are
    /// then selected by their index among all columns.
    fn new(scene: &Scene, is_wide: bool, needs_all: bool) -> Self {
        let cluster = &scene.shown.cluster;
        let devices = is_wide.then(|| cluster.node_devices()).flatten();
        let has_extended = || cluster.nodes().iter().any(|node| node.has_extended_resources());
        Self {
            has_extended: needs_all || is_wide && has_extended(),
            has_devices: needs_all || devices.as_ref().is_some_and(|devices| !devices.is_empty()),
            devices,
        }
    }

    fn columns(&self) -> impl Iterator<Item = Column> {
        let column = |title, width| Column::plain(title, Width::Fixed(width));
        let extended = self.has_extended.then(|| column("extended", EXTENDED).gives_way(12));
        extended.into_iter().chain(self.has_devices.then(|| column("devices", DEVICES).gives_way(13)))
    }

    /// Width of the columns of extended resources and devices, with the gaps before them. The column of taints is
    /// narrower by this width.
    fn width(&self) -> u16 {
        let room = |has: bool, width: u16| if has { width + 2 } else { 0 };
        room(self.has_extended, EXTENDED) + room(self.has_devices, DEVICES)
    }

    fn cells(&self, scene: &Scene, line: &NodeLine) -> impl Iterator<Item = Cell> {
        let extended = self.has_extended.then(|| extended(scene, line));
        extended.into_iter().chain(self.has_devices.then(|| self.devices_of(scene, &line.node.name)))
    }

    /// Devices by driver, as in `gpu.example.com 2/8`: the number allocated to claims, and the number that is
    /// published.
    fn devices_of(&self, scene: &Scene, node: &NodeName) -> Cell {
        let Some(devices) = &self.devices else { return Cell::new("?", scene.style(Role::Dim)) };
        let Some(drivers) = devices.get(node) else { return Cell::new("–", scene.style(Role::Faint)) };
        let mut cell = Cell::default();
        for NodeDevices { driver, published, is_partial, allocated } in drivers {
            let allocated = match allocated {
                Some(AllocatedCount { alone, shared: 0 }) => alone.to_string(),
                Some(AllocatedCount { alone, shared }) => format!("{alone}+{shared} shared"),
                None => "?".into(),
            };
            let more = if *is_partial { "+" } else { "" };
            let words = format!("{driver} {allocated}/{published}{more}");
            cell = gap(cell, scene).and(&words, scene.style(Role::Base));
        }
        cell
    }
}

/// Extended resources, as in `gpu 3/8`: the requested and the allocatable amount.
fn extended(scene: &Scene, line: &NodeLine) -> Cell {
    let resources = scene.shown.cluster.extended_resources(line.node);
    if resources.is_empty() {
        return Cell::new("–", scene.style(Role::Faint));
    }
    let mut cell = Cell::default();
    for ExtendedResource { name, allocatable, requested } in &resources {
        let requested = if line.knows_pods { requested.to_string() } else { "?".into() };
        let short = name.rsplit('/').next().unwrap_or(name);
        cell = gap(cell, scene).and(&format!("{short} {requested}/{allocatable}"), scene.style(Role::Base));
    }
    cell
}

fn columns(scene: &Scene, is_wide: bool, rare: &RareColumns) -> Vec<Column> {
    use NodeColumn as By;
    let width = scene.width(Pane::Nodes);
    let sort = scene.screen.nodes.sort;
    let name = u16::try_from(scene.shown.watchlist.longest_name()).unwrap_or(u16::MAX);
    // Space for the sign and the mark before the name, and for the badges after the name.
    let name = name.saturating_add(5).clamp(14, width / 4 + 2);
    let (heartbeat, state, next) = match width {
        _ if !has_bars(width) => (Width::Fixed(6), 14, 20),
        200.. if !is_wide => (Width::Fixed(9), 15, 36),
        _ => (Width::Fixed(9), 15, 30),
    };
    // If space is short, the wide table drops the column `renewals` before any other column of the narrow table. The
    // columns that only the wide table has, but for the CPU in use, and whole names of zones give way before whole
    // taints do, and these give way before the narrow table's columns.
    let (renewals, cpu) = if is_wide { (16, 8) } else { (8, 9) };
    let zone = column(sort, By::Zone, "zone", Width::Fixed(ZoneNaming::Short.width(scene))).gives_way(2);
    let zone = if is_wide { zone.whole(ZoneNaming::Whole.width(scene), 14) } else { zone };
    let last = if has_bars(width) { "heartbeat" } else { "last" };
    let mut columns = vec![
        column(sort, By::Name, "  node", Width::Fixed(name)),
        column(sort, By::State, "state", Width::Fixed(state)),
        column(sort, By::Heartbeat, last, heartbeat).named("heartbeat").right().gives_way(5),
        Column::plain("renewals", Width::Fixed(KEPT as u16 + 1)).gives_way(renewals),
        Column::plain("grace", Width::Fixed(14)).gives_way(4),
        column(sort, By::Due, "next", Width::Fixed(next)),
        zone,
        column(sort, By::Pods, "pods", Width::Fixed(6)).right().gives_way(3),
        column(sort, By::Cpu, "cpu req", Width::Fixed(7)).right().gives_way(cpu),
        column(sort, By::Memory, "mem req", Width::Fixed(7)).right().gives_way(10),
    ];
    if is_wide {
        let used = |title, name| Column::plain(title, Width::Fixed(7)).named(name).right();
        columns.insert(columns.len() - 1, used("cpu use", "cpu used").gives_way(9));
        columns.push(used("mem use", "mem used").gives_way(12));
        columns.extend(rare.columns());
        columns.extend([
            Column::plain("terminating", Width::Fixed(11)).right().gives_way(17),
            column(sort, By::Roles, "roles", Width::Fixed(14)).gives_way(19),
            Column::plain("probe", Width::Fixed(9)).gives_way(20),
            column(sort, By::Address, "address", Width::Fixed(15)).gives_way(21),
            column(sort, By::Version, "kubelet", Width::Fixed(9)).gives_way(18),
            column(sort, By::Kernel, "kernel", Width::Fixed(20)).gives_way(23),
            column(sort, By::Kind, "type", Width::Fixed(14)).gives_way(22),
            column(sort, By::Age, "age", Width::Fixed(6)).right().gives_way(15),
        ]);
    }
    let taints = column(sort, By::Taints, "taints", Width::Grow(14, 2)).gives_way(7);
    columns.extend([
        taints.whole(WHOLE_TAINTS - rare.width(), 11),
        column(sort, By::Conditions, "conditions", Width::Fixed(14)).gives_way(8),
        Column::plain("reason", Width::Fixed(18)).gives_way(24),
        Column::plain("message", Width::Grow(24, 1)).gives_way(25),
    ]);
    columns
}

/// How the column of zones names them.
#[derive(Clone, Copy, Debug)]
enum ZoneNaming {
    /// Without the prefix that all zones share, as in the node strip.
    Short,
    Whole,
}

impl ZoneNaming {
    /// The longest names that the drawn column has room for.
    fn that_fits(scene: &Scene, table: &TableWidget, area: Rect) -> Self {
        let place = table.columns.iter().position(|column| column.name == "zone");
        let width = place.and_then(|place| table.width_of(place, area)).unwrap_or(0);
        if scene.screen.wide && width >= Self::Whole.width(scene) { Self::Whole } else { Self::Short }
    }

    fn name(self, scene: &Scene, zone: &ZoneKey) -> String {
        match self {
            Self::Short => scene.shown.watchlist.zone_names().short(zone),
            Self::Whole => zone.short(),
        }
    }

    /// Width of the column for these names.
    fn width(self, scene: &Scene) -> u16 {
        let names = scene.shown.views.zones.iter().map(|zone| text::width(&self.name(scene, &zone.key)));
        u16::try_from(names.max().unwrap_or(0)).unwrap_or(u16::MAX).clamp(4, 20)
    }
}

/// Width for the two taints that the controller sets, with their age: `unreachable:NoExecute 59m59s, NoSchedule`.
const WHOLE_TAINTS: u16 = 40;

/// Whether the pane is wide enough for whole words in headings, and for a bar in the column `next`.
const fn has_bars(width: u16) -> bool {
    width >= 110
}

/// A node with its state. Each part is looked up once for all cells of the row.
struct NodeLine<'a> {
    node: &'a Node,
    status: Option<NodeStateView>,
    health: Option<NodeView>,
    silence: Option<Silence>,
    load: NodeLoad,
    /// Whether all pods of the node are known. If not, the load only counts the pods known so far.
    knows_pods: bool,
}

impl<'a> NodeLine<'a> {
    fn new(scene: &Scene, node: &'a Node) -> Self {
        let shown = scene.shown;
        Self {
            node,
            status: shown.node_status(node),
            health: shown.health(node),
            silence: shown.silence(node),
            load: shown.cluster.load(&node.name),
            knows_pods: shown.cluster.knows(&Scope::PodsOn(node.name.clone())),
        }
    }

    fn role(&self) -> Option<StateRole> {
        self.status.map(|status| status.state.role())
    }

    fn grace_period(&self, scene: &Scene) -> Span {
        let of_all = scene.app.model.settings.node_monitor_grace_period.value;
        self.health.as_ref().map_or(of_all, |health| health.grace)
    }
}

fn cells(scene: &Scene, node: &Node, zones: ZoneNaming, is_wide: bool, rare: &RareColumns) -> Vec<Cell> {
    let line = &NodeLine::new(scene, node);
    let dim = scene.style(Role::Dim);
    let (requested, allocatable) = (&line.load.requested, &node.allocatable);
    let mut cells = vec![
        name(scene, line),
        state(scene, line),
        heartbeat(scene, line),
        renewals(scene, line),
        grace(scene, line),
        next(scene, line),
        Cell::new(&zones.name(scene, &node.zone()), dim),
        pods(scene, line),
        share(scene, line, requested.cpu_milli, allocatable.cpu_milli),
        share(scene, line, requested.memory_bytes, allocatable.memory_bytes),
    ];
    if is_wide {
        let usage = scene.shown.measurements.usage(&node.name);
        let used = |amount: fn(&UsageMetric) -> i64, of: i64| match usage {
            Some(usage) => share(scene, line, amount(usage), of),
            None => Cell::new("–", scene.style(Role::Faint)),
        };
        cells.insert(cells.len() - 1, used(|usage| usage.cpu_milli, allocatable.cpu_milli));
        cells.push(used(|usage| usage.memory_bytes, allocatable.memory_bytes));
        cells.extend(rare.cells(scene, line));
        cells.extend([
            terminating(scene, line),
            Cell::new(&node.roles().collect::<Vec<_>>().join(","), dim),
            probe(scene, line),
            Cell::new(&node.address, dim),
            Cell::new(&node.kubelet_version, dim),
            Cell::new(&node.kernel_version, dim),
            Cell::new(filter_fields::instance_type(node).map_or("", |name| name.as_str()), dim),
            Cell::new(&scene.age(node.created), dim),
        ]);
    }
    let not_ready = node.ready().filter(|ready| ready.status != ConditionStatus::True);
    cells.extend([
        taints(scene, node),
        conditions(scene, node),
        Cell::new(not_ready.map_or("", |ready| ready.reason.as_str()), dim),
        Cell::new(not_ready.map_or("", |ready| ready.message.as_str()), dim),
    ]);
    cells
}

/// Header row of a group of nodes: `▾ ✖ eu-1/a  10 nodes · 2 Evicting · 8 Ready · 43 pods`.
fn group(scene: &Scene, name: &str) -> Cell {
    let (dim, faint) = (scene.style(Role::Dim), scene.style(Role::Faint));
    let Some(group) = scene.screen.groups.get(name) else { return Cell::default() };
    let sign = if scene.screen.groups.is_folded(name) { "▸" } else { "▾" };
    let mut cell = Cell::new(sign, dim).and(" ", dim);
    if let Some(worst) = group.counts.keys().next() {
        cell = cell.and(worst.glyph(), scene.style(Role::for_state(worst.role()))).and(" ", dim);
    }
    cell = cell.and(name, scene.style(Role::Strong)).and("  ", dim);
    cell = cell.and(&counted(group.nodes.len(), "node", "nodes"), dim);
    for (state, count) in &group.counts {
        let text = format!("{} {state}", text::count(*count));
        cell = cell.and(" · ", faint).and(&text, scene.style(Role::for_state(state.role())));
    }
    cell.and(" · ", faint).and(&counted(group.pods, "pod", "pods"), dim)
}

/// Name of a node with the glyph of its state: `✕ n-3 ⇅4`. Badges follow: `⇅` with the number of times that the node
/// went down or came back, `⊘` if the node is cordoned and its state does not say so, `✗` if the node is being deleted.
fn name(scene: &Scene, line: &NodeLine) -> Cell {
    let node = line.node;
    let (glyph, role) = sign(line.status.map(|status| status.state));
    let is_calm = line.role().is_none_or(|role| role >= StateRole::Maintenance);
    let named = scene.style(if is_calm { Role::Base } else { Role::Strong });
    let is_marked = scene.screen.marked_nodes.contains(&node.name);
    let mut cell = Cell::new(glyph, scene.style(role)).join(mark_of(scene, is_marked)).and(&node.name, named);
    if let Some(flaps) = scene.shown.watchlist.flaps(&node.name, scene.now) {
        cell = cell.and(&format!(" ⇅{flaps}"), scene.style(Role::NodeWarning));
    }
    if node.unschedulable && line.role() != Some(StateRole::Maintenance) {
        cell = cell.and(" ⊘", scene.style(Role::NodeMaintenance));
    }
    let cell = if node.terminating { cell.and(" ✗", scene.style(Role::NodeWarning)) } else { cell };
    cell.copied_as(&node.name)
}

/// Glyph and theme role of a node's state; `·` while the state is unknown.
pub fn sign(state: Option<NodeState>) -> (&'static str, Role) {
    state.map_or(("·", Role::Dim), |state| (state.glyph(), Role::for_state(state.role())))
}

/// State and its duration: `Unknown 12s`.
fn state(scene: &Scene, line: &NodeLine) -> Cell {
    let Some(status) = line.status else { return Cell::new("–", scene.style(Role::Faint)) };
    let text = status.text(scene.now);
    let (word, rest) = text.split_at(status.state.as_str().len());
    let role = match status.state.role() {
        StateRole::Ready => Role::Dim,
        role => Role::for_state(role),
    };
    Cell::new(word, scene.style(role)).and(rest, scene.style(Role::Dim))
}

/// Age of the last heartbeat.
fn heartbeat(scene: &Scene, line: &NodeLine) -> Cell {
    let known = line.silence.map(|silence| silence.heartbeat);
    let Some(last) = known.or_else(|| scene.shown.last_heartbeat(line.node)) else {
        return Cell::new("–", scene.style(Role::Faint));
    };
    let since = scene.now.since(last);
    let role = match &line.silence {
        Some(silence) if !is_disconnected(scene) => heartbeat_role(silence, since, line.grace_period(scene)),
        Some(_) | None => Role::Dim,
    };
    Cell::new(" ", scene.style(Role::Faint)).and(&text::age(scene.now, last), scene.style(role))
}

/// Whether data about nodes and Leases is outdated.
fn is_disconnected(scene: &Scene) -> bool {
    matches!(scene.shown.views.confidence, Some(Confidence::Disconnected { .. }))
}

/// Rest of the grace period, for a node whose heartbeat is late: `━━──── 17s`, `expired 1m14s`.
fn grace(scene: &Scene, line: &NodeLine) -> Cell {
    let faint = scene.style(Role::Faint);
    let Some(health) = &line.health else { return Cell::new("–", faint) };
    match scene.shown.views.confidence {
        Some(Confidence::Disconnected { .. }) => return Cell::new("?", faint),
        Some(Confidence::NoController { .. }) => return Cell::new("–", faint),
        Some(Confidence::Live | Confidence::Assumed) | None => {}
    }
    let expires = scene.shown.grace_ends(line.node).unwrap_or_else(|| health.expires());
    if expires <= scene.now {
        let since = format!(" {}", text::age(scene.now, expires));
        return Cell::new("expired", scene.style(Role::HeartbeatLost)).and(&since, scene.style(Role::Dim));
    }
    // After a recent heartbeat the rest of the grace period does not matter yet.
    if !line.silence.is_some_and(|silence| silence.is_late(scene.now)) {
        return Cell::default();
    }
    time_bar(scene, expires, health.grace, 6).and(" ", faint).join(scene.countdown(expires, false))
}

/// Bar of the time left until `at`, as a share of the duration `of`.
fn time_bar(scene: &Scene, at: Timestamp, of: Span, cells: usize) -> Cell {
    let left = at.since(scene.now).or_zero();
    #[expect(clippy::cast_possible_truncation, reason = "a share")]
    let (fill, rest) = bar((left.as_secs_f64() / of.as_secs_f64().max(1.0)) as f32, cells);
    Cell::new(&fill, scene.style(Role::GaugeFill)).and(&rest, scene.style(Role::GaugeRest))
}

/// Intervals between the last heartbeats as bars, and the time since the last one. While the node is late, bars of
/// intervals that were in time are dim.
fn renewals(scene: &Scene, line: &NodeLine) -> Cell {
    let grace = line.grace_period(scene);
    let engine = scene.shown.engine.as_ref();
    let gaps: Vec<Span> =
        engine.into_iter().flat_map(|engine| engine.heartbeats().intervals(&line.node.name)).collect();
    let missing = KEPT - gaps.len();
    let cell = Cell::new(&"·".repeat(missing), scene.style(Role::Faint));
    let Some(silence) = &line.silence else { return cell };
    let is_heard = scene.now <= silence.late_from;
    let interval = |cell: Cell, gap: Span| {
        #[expect(clippy::cast_possible_truncation, reason = "a share of a few seconds")]
        let bar = strip((gap.or_zero().as_secs_f64() / grace.as_secs_f64().max(1.0)) as f32);
        let role = match heartbeat_role(silence, gap, grace) {
            Role::HeartbeatOk if !is_heard => Role::Dim,
            role => role,
        };
        cell.and(bar.encode_utf8(&mut [0; 4]), scene.style(role))
    };
    let cell = gaps.into_iter().fold(cell, interval);
    if is_disconnected(scene) {
        return cell.and("?", scene.style(Role::Dim));
    }
    interval(cell, scene.now.since(silence.heartbeat))
}

/// Theme role of an interval between heartbeats: late from [`Silence::late_from`] on, lost after the grace period.
fn heartbeat_role(silence: &Silence, gap: Span, grace: Span) -> Role {
    if gap <= silence.late_from.since(silence.heartbeat) {
        Role::HeartbeatOk
    } else if gap <= grace {
        Role::HeartbeatLate
    } else {
        Role::HeartbeatLost
    }
}

/// Next event of the node: `━━─── Unknown in 17s`, `━──── 1 of 7 pods in 5s`. If chance decides which of the waiting
/// nodes is tainted then, nothing counts down for this node, so it has no bar: `taint in ~4s, 14 % chance`, or on a
/// narrow screen `taint ~4s, maybe`. A node without a next event shows who cordoned or drains it.
fn next(scene: &Scene, line: &NodeLine) -> Cell {
    let next = &scene.shown.views.leaving.next;
    let Some(due) = next.get(&line.node.name) else { return cordon(scene, line.node) };
    let (what, role) = due_words(due);
    let dim = scene.style(Role::Dim);
    let Some(at) = due.at else { return Cell::new(WITHOUT_TIME, scene.style(role)) };
    let of = match due.what {
        NextEventKind::Unknown => line.health.as_ref().map_or(SHORT, |health| health.grace),
        NextEventKind::Taint => SHORT,
        NextEventKind::Evict { .. } => LONG,
    };
    let is_broad = has_bars(scene.width(Pane::Nodes));
    let chance = due.chance.as_ref().filter(|chance| chance.among.len() > 1);
    let has_bar = is_broad && chance.is_none();
    let bar = if has_bar { time_bar(scene, at, of, 5).and(" ", dim) } else { Cell::default() };
    let preposition = if at > scene.now && (is_broad || chance.is_none()) { " in " } else { " " };
    let cell =
        bar.and(&what, scene.style(role)).and(preposition, dim).join(scene.countdown(at, due.estimated));
    match chance {
        Some(chance) if is_broad => cell.and(&format!(", {} chance", chance.percent()), dim),
        Some(_) => cell.and(", maybe", dim),
        None => cell,
    }
}

/// What a node waits for whose taint has no time: its zone's rate limiter gives it no token within the forecast.
pub const WITHOUT_TIME: &str = "needs eviction slot";

/// If at least this time is left until a node's next event, the bar of the event is full: `SHORT` for a taint, `LONG`
/// for an eviction. `LONG` is the default toleration of the controller's taints.
const SHORT: Span = Span::from_secs(60);
const LONG: Span = Span::from_secs(300);

/// Text and theme role of a node's next event: `Unknown`, `taint`, `1 of 7 pods`.
pub fn due_words(due: &NextEvent) -> (String, Role) {
    let role = match due.what {
        NextEventKind::Unknown => Role::NodeCritical,
        NextEventKind::Taint => Role::TaintNoExecute,
        NextEventKind::Evict { .. } => Role::EvictionTerminating,
    };
    (due.what.words(), role)
}

fn pods(scene: &Scene, line: &NodeLine) -> Cell {
    let unfinished = line.load.unfinished();
    let role = if unfinished == 0 { Role::Dim } else { Role::Base };
    pod_count(scene, line, unfinished, role)
}

/// Number of the node's pods that are terminating; empty if none is.
fn terminating(scene: &Scene, line: &NodeLine) -> Cell {
    match line.load.terminating {
        0 if line.knows_pods => Cell::default(),
        terminating => pod_count(scene, line, terminating, Role::EvictionTerminating),
    }
}

/// A number of the node's pods: `8`; `8+` while not all pods are known, `–` while none is.
fn pod_count(scene: &Scene, line: &NodeLine, pods: usize, role: Role) -> Cell {
    if !line.knows_pods && line.load.pods == 0 {
        return Cell::new("–", scene.style(Role::Faint));
    }
    let cell = Cell::new(&pods.to_string(), scene.style(role));
    if line.knows_pods { cell } else { cell.and("+", scene.style(Role::Dim)) }
}

/// Share of allocatable resources: `62%`.
fn share(scene: &Scene, line: &NodeLine, used: i64, of: i64) -> Cell {
    let percent = used.saturating_mul(100).checked_div(of).filter(|_| line.knows_pods);
    let Some(percent) = percent else {
        return Cell::new("–", scene.style(Role::Faint));
    };
    let role = if percent >= 90 { Role::GaugeHigh } else { Role::Base };
    Cell::new(&percent.to_string(), scene.style(role)).and("%", scene.style(Role::Dim))
}

fn conditions(scene: &Scene, node: &Node) -> Cell {
    let mut cell = Cell::default();
    for condition in node.problems() {
        cell = gap(cell, scene).and(&condition.kind, scene.style(Role::NodeNotice));
    }
    cell
}

/// Taints without their common prefix, NoExecute taints first. If a taint differs from the one before it only in its
/// effect, the effect stands for it: `unreachable:NoExecute 12s, NoSchedule`.
fn taints(scene: &Scene, node: &Node) -> Cell {
    let mut taints: Vec<&Taint> = node.taints.iter().collect();
    taints.sort_by_key(|taint| taint.effect != TaintEffect::NoExecute);
    let mut cell = Cell::default();
    let mut before: Option<&Taint> = None;
    for taint in taints {
        let role = match taint.effect {
            TaintEffect::NoExecute => Role::TaintNoExecute,
            TaintEffect::NoSchedule | TaintEffect::PreferNoSchedule | TaintEffect::Invalid => {
                Role::TaintNoSchedule
            }
        };
        cell = gap(cell, scene);
        if before.replace(taint).is_some_and(|it| (&it.key, &it.value) == (&taint.key, &taint.value)) {
            cell = cell.and(taint.effect.as_str(), scene.style(role));
            continue;
        }
        cell = cell.and(&text::brief(&taint.to_string()), scene.style(role));
        if let Some(added) = taint.time_added {
            cell = cell.and(&format!(" {}", scene.age(added)), scene.style(Role::Dim));
        }
    }
    cell
}

/// Who drains the node, and who cordoned it, with the reason and the time left: `1h59m left · alice: new kernel`.
fn cordon(scene: &Scene, node: &Node) -> Cell {
    let mut cell = Cell::default();
    if let Some(claim) = &node.drain_claim {
        let role = if claim.is_fresh(scene.now) { Role::NodeMaintenance } else { Role::LevelWarning };
        cell = gap(cell, scene).and(&claim.text(scene.now), scene.style(role));
    }
    let Some(note) = node.cordon() else { return cell };
    cell = gap(cell, scene);
    if let Some(left) = note.time_left(scene.now) {
        let role = if note.is_expired(scene.now) { Role::LevelWarning } else { Role::NodeMaintenance };
        cell = cell.and(&left, scene.style(role)).and(" · ", scene.style(Role::Faint));
    }
    cell.and(&note.who(), scene.style(Role::Dim))
}

fn gap(cell: Cell, scene: &Scene) -> Cell {
    if cell.is_empty() { cell } else { cell.and(", ", scene.style(Role::Faint)) }
}

/// The controller's probeTimestamp as a time of day.
fn probe(scene: &Scene, line: &NodeLine) -> Cell {
    let Some(health) = &line.health else { return Cell::default() };
    Cell::new(mark(health.certainty), scene.style(Role::Faint))
        .and(&text::clock(health.probe), scene.style(Role::Dim))
}

/// Sign before a time that shows how certain the time is.
pub const fn mark(known: Certainty) -> &'static str {
    match known {
        Certainty::Observed => "",
        Certainty::Estimated => "~",
        Certainty::AtLatest => "≤",
    }
}

/// Why the selected node is in its state, or why its next event happens.
fn why(scene: &Scene) -> Option<String> {
    let name = scene.screen.selected_node()?;
    if let Some(due) = scene.shown.views.leaving.next.get(name) {
        return Some(due.why.to_string());
    }
    let node = scene.shown.cluster.node(name)?;
    let not_ready = node.ready().filter(|ready| ready.status != ConditionStatus::True);
    if let Some(ready) = not_ready {
        return Some(format!("{}: {}", ready.reason, ready.message));
    }
    let claim = node.drain_claim.as_ref().map(|claim| claim.text(scene.now));
    let noted = || Some(format!("cordoned {}", node.cordon()?.text(scene.now)));
    let origin = || Some(format!("cordoned by {}", CordonOrigin::find(&scene.shown.cluster, node)?.by?));
    claim.or_else(noted).or_else(origin)
}
