//! Nodes: the state that the controller has of each, since when, and what happens next.

use ratatui::{buffer::Buffer, layout::Rect};

use super::{column, draw_cause, draw_nothing, mark as mark_of, marked, open, plain};
use crate::{
    app::{NodeColumn, Pane, order},
    cluster::{ConditionStatus, Node, NodeLoad, Scope, Taint, TaintEffect},
    engine::{Certainty, Confidence, NodeView, Silence, heartbeats::KEPT},
    k8s::feed::FeedKind,
    model::{NextEvent, NextEventKind, StateRole},
    time::Span,
    ui::{
        Scene, node_strip, text,
        theme::Role,
        widgets::{Cell, Column, TableWidget, Width, segments::Runs, strip},
    },
};

/// ```text
/// ─ 2 Nodes  30 · 1 Unknown · 29 Ready ──────────────────────────────────────────────────────────────────
///   node        state         heartbeat    grace  renewals       next             zone  pods  cpu  mem  taints
/// ✕ n-3 ⇅4      Unknown 12s         62s  expired  ▂▂▂▂▂▂▂▂▂▂▂▂█  NoExecute ~4s    a       12  62%  31%  …
/// ▪ n-1         Ready 4d2h           3s      47s  ▂▂▂▂▂▂▂▂▂▂▂▂▁  –                a       14  70%  44%
/// why  lease renewed 03:12:05 → node-monitor-grace-period 50s → …
/// ```
/// Draws each node; returns how many rows there is room for.
pub fn draw(scene: &Scene, area: Rect, buf: &mut Buffer) -> usize {
    let list = &scene.screen.nodes.list;
    let inner = open(scene, Pane::Nodes, area, facts(scene), buf);
    if list.is_empty() {
        draw_nothing(scene, FeedKind::Nodes, Pane::Nodes, "the cluster has no nodes", inner, buf);
        return TableWidget::page(inner);
    }
    let inner = draw_cause(scene, Pane::Nodes, why(scene), inner, buf);
    let page = TableWidget::page(inner);
    let table = TableWidget {
        columns: columns(scene),
        rows: list.len(),
        first: list.first_shown(page),
        selected: list.cursor(),
        looks: scene.looks(Pane::Nodes),
    };
    table.render(inner, buf, |row| {
        let node = list.keys().get(row).and_then(|name| scene.shown.cluster.node(name));
        node.map(|node| cells(scene, node)).unwrap_or_default()
    });
    page
}

/// `30 · 3 Unknown · 2 NotReady · 25 Ready`; under a filter how many are shown.
fn facts(scene: &Scene) -> Runs {
    let nodes = scene.shown.cluster.nodes();
    if nodes.is_empty() {
        return Runs::default();
    }
    let shown = scene.screen.nodes.list.len();
    let runs = if shown < nodes.len() {
        Runs::new(&text::count(nodes.len()), scene.style(Role::Dim))
            .and(&format!(" · {} shown", text::count(shown)), scene.style(Role::Accent))
    } else {
        node_strip::counts(scene)
    };
    marked(scene, runs, scene.screen.marked_nodes.len())
}

fn columns(scene: &Scene) -> Vec<Column> {
    use NodeColumn as By;
    let sort = scene.screen.nodes.sort;
    let mut columns = vec![
        column(sort, By::Name, "  node", Width::Fit(12, 42)),
        column(sort, By::State, "state", Width::Fit(9, 16)),
        column(sort, By::Heartbeat, "heartbeat", Width::Fit(9, 9)).right(),
        plain("grace", Width::Fit(5, 7)).right().gives_way(1),
        plain("renewals", Width::Fixed(13)).gives_way(6),
        column(sort, By::Due, "next", Width::Fit(6, 38)),
        column(sort, By::Zone, "zone", Width::Fit(4, 24)).gives_way(2),
        column(sort, By::Pods, "pods", Width::Fit(4, 5)).right().gives_way(4),
        column(sort, By::Cpu, "cpu", Width::Fit(4, 6)).right().gives_way(7),
        column(sort, By::Memory, "mem", Width::Fit(4, 6)).right().gives_way(8),
        column(sort, By::Conditions, "conditions", Width::Fit(10, 26)).gives_way(9),
    ];
    if scene.screen.wide {
        columns.extend([
            column(sort, By::Roles, "roles", Width::Fit(5, 16)).gives_way(11),
            plain("probe", Width::Fixed(9)).gives_way(12),
            column(sort, By::Address, "address", Width::Fit(7, 39)).gives_way(13),
            column(sort, By::Version, "kubelet", Width::Fit(7, 16)).gives_way(14),
            column(sort, By::Kind, "type", Width::Fit(4, 16)).gives_way(15),
            column(sort, By::Age, "age", Width::Fit(4, 7)).right().gives_way(16),
            column(sort, By::Taints, "taints", Width::Grow(30, 2)).gives_way(5),
            plain("message", Width::Grow(12, 1)).gives_way(17),
        ]);
    } else {
        columns.push(column(sort, By::Taints, "taints", Width::Grow(14, 1)).gives_way(5));
    }
    columns
}

fn cells(scene: &Scene, node: &Node) -> Vec<Cell> {
    let health = scene.shown.health(node);
    let health = health.as_ref();
    let load = scene.shown.cluster.load(&node.name);
    let dim = scene.style(Role::Dim);
    let mut cells = vec![
        name(scene, node),
        state(scene, node),
        heartbeat(scene, node, health),
        grace(scene, node, health),
        renewals(scene, node, health),
        next(scene, node),
        Cell::new(&node.zone().short(), dim),
        pods(scene, node, load),
        share(scene, node, load.requested.cpu_milli, node.allocatable.cpu_milli),
        share(scene, node, load.requested.memory_bytes, node.allocatable.memory_bytes),
        conditions(scene, node),
    ];
    if scene.screen.wide {
        let message = node.ready().filter(|ready| ready.status != ConditionStatus::True);
        cells.extend([
            Cell::new(&node.roles().collect::<Vec<_>>().join(","), dim),
            probe(scene, health),
            Cell::new(&node.address, dim),
            Cell::new(&node.kubelet_version, dim),
            Cell::new(order::instance_type(node).map_or("", |name| name.as_str()), dim),
            Cell::new(&scene.age(node.created), dim),
            taints(scene, node),
            Cell::new(message.map_or("", |ready| ready.message.as_str()), dim),
        ]);
    } else {
        cells.push(taints(scene, node));
    }
    cells
}

/// `✕ n-3 ⇅4`: the glyph of its state and the name; behind it how often it went down or came back, `⊘` where it is cordoned
/// and its state does not say so, `✗` where it is being deleted.
fn name(scene: &Scene, node: &Node) -> Cell {
    let state = scene.shown.watchlist.state(&node.name);
    let (glyph, role) = sign(scene, node);
    let is_calm = state.is_none_or(|state| state.role() >= StateRole::Maintenance);
    let named = scene.style(if is_calm { Role::Base } else { Role::Strong });
    let is_marked = scene.screen.marked_nodes.contains(&node.name);
    let mut cell = Cell::new(glyph, scene.style(role)).join(mark_of(scene, is_marked)).and(&node.name, named);
    if let Some(flaps) = scene.shown.watchlist.flaps(&node.name, scene.now) {
        cell = cell.and(&format!(" ⇅{flaps}"), scene.style(Role::NodeWarning));
    }
    if node.unschedulable && state.is_none_or(|state| state.role() != StateRole::Maintenance) {
        cell = cell.and(" ⊘", scene.style(Role::NodeMaintenance));
    }
    if node.terminating { cell.and(" ✗", scene.style(Role::NodeWarning)) } else { cell }
}

/// The glyph of a node's state, and its role; `·` while its state is not known.
pub fn sign(scene: &Scene, node: &Node) -> (&'static str, Role) {
    let state = scene.shown.watchlist.state(&node.name);
    state.map_or(("·", Role::Dim), |state| (state.glyph(), Role::of_state(state.role())))
}

/// `Unknown 12s`
fn state(scene: &Scene, node: &Node) -> Cell {
    let Some(status) = scene.shown.node_status(node) else {
        return Cell::new("–", scene.style(Role::Faint));
    };
    let text = status.text(scene.now);
    let (word, rest) = text.split_at(status.state.as_str().len());
    let role = match status.state.role() {
        StateRole::Ready => Role::Dim,
        role => Role::of_state(role),
    };
    Cell::new(word, scene.style(role)).and(rest, scene.style(Role::Dim))
}

/// The age of the last heartbeat.
fn heartbeat(scene: &Scene, node: &Node, health: Option<&NodeView>) -> Cell {
    let Some(silence) = scene.shown.silence(node) else {
        return Cell::new("none", scene.style(Role::Dim));
    };
    let since = scene.now.since(silence.heartbeat);
    let role =
        if is_disconnected(scene) { Role::Dim } else { heartbeat_role(scene, &silence, since, health) };
    Cell::new(" ", scene.style(Role::Faint)).and(&text::age(scene.now, silence.heartbeat), scene.style(role))
}

/// Whether what is known of nodes and Leases is old.
fn is_disconnected(scene: &Scene) -> bool {
    matches!(scene.shown.views.confidence, Some(Confidence::Disconnected { .. }))
}

/// What is left of the grace period.
fn grace(scene: &Scene, node: &Node, health: Option<&NodeView>) -> Cell {
    let Some(health) = health else { return Cell::new("–", scene.style(Role::Faint)) };
    match scene.shown.views.confidence {
        Some(Confidence::Disconnected { .. }) => return Cell::new("?", scene.style(Role::Faint)),
        Some(Confidence::NoController { .. }) => return Cell::new("–", scene.style(Role::Faint)),
        Some(Confidence::Live | Confidence::Assumed) | None => {}
    }
    if health.expires() <= scene.now {
        return Cell::new("expired", scene.style(Role::HeartbeatLost));
    }
    // After a recent heartbeat, the grace period counts down to nothing yet.
    let late = scene.shown.views.next.get(&node.name).is_some_and(|due| due.what == NextEventKind::Unknown);
    if late {
        return scene.countdown(health.expires(), false);
    }
    Cell::new(&text::left(health.expires(), scene.now), scene.style(Role::Dim))
}

/// The intervals between the last renewals, and at the end the time since the last one.
fn renewals(scene: &Scene, node: &Node, health: Option<&NodeView>) -> Cell {
    let grace =
        health.map_or(scene.app.model.settings.node_monitor_grace_period.value, |health| health.grace);
    let grace = grace.as_secs_f64().max(1.0);
    let mut cell = Cell::default();
    let engine = scene.shown.engine.as_ref();
    let gaps: Vec<Span> =
        engine.into_iter().flat_map(|engine| engine.heartbeats().intervals(&node.name)).collect();
    let missing = KEPT - gaps.len();
    cell = cell.and(&"·".repeat(missing), scene.style(Role::Faint));
    let Some(silence) = scene.shown.silence(node) else { return cell };
    let mut bar = |cell: Cell, gap: Span| {
        #[expect(clippy::cast_possible_truncation, reason = "a share of a few seconds")]
        let bar = strip((gap.or_zero().as_secs_f64() / grace) as f32);
        cell.and(bar.encode_utf8(&mut [0; 4]), scene.style(heartbeat_role(scene, &silence, gap, health)))
    };
    cell = gaps.into_iter().fold(cell, &mut bar);
    if is_disconnected(scene) {
        return cell.and("?", scene.style(Role::Faint));
    }
    bar(cell, scene.now.since(silence.heartbeat))
}

/// The style of a time without a heartbeat: late from [`Silence::late_from`] on, lost when the grace period is over.
fn heartbeat_role(scene: &Scene, silence: &Silence, gap: Span, health: Option<&NodeView>) -> Role {
    let grace =
        health.map_or(scene.app.model.settings.node_monitor_grace_period.value, |health| health.grace);
    if gap <= silence.late_from.since(silence.heartbeat) {
        Role::HeartbeatOk
    } else if gap <= grace {
        Role::HeartbeatLate
    } else {
        Role::HeartbeatLost
    }
}

/// `NoExecute ~1m10s`, `NoExecute 33 % ~1m10s`: what happens to the node next; where nothing does, who works on it.
fn next(scene: &Scene, node: &Node) -> Cell {
    let Some(due) = scene.shown.views.next.get(&node.name) else {
        let cordon = cordon(scene, node);
        return if cordon.is_empty() { Cell::new("–", scene.style(Role::Faint)) } else { cordon };
    };
    let (what, role) = due_words(due);
    let cell = Cell::new(&what, scene.style(role)).and(" ", scene.style(Role::Dim));
    let cell = match &due.chance {
        Some(chance) => cell.and(&format!("{} ", chance.percent()), scene.style(Role::Dim)),
        None => cell,
    };
    match due.at {
        Some(at) => cell.join(scene.countdown(at, due.estimated)),
        None => cell.and("queued", scene.style(Role::Dim)),
    }
}

/// What happens next, in a word, and how it looks.
pub fn due_words(due: &NextEvent) -> (String, Role) {
    match due.what {
        NextEventKind::Unknown => ("Unknown".into(), Role::NodeCritical),
        NextEventKind::Taint => ("NoExecute".into(), Role::TaintNoExecute),
        NextEventKind::Evict(1) => ("1 pod".into(), Role::EvictionTerminating),
        NextEventKind::Evict(pods) => (format!("{} pods", text::count(pods)), Role::EvictionTerminating),
    }
}

/// Whether the pods of a node are known. Those of the others count as far as they have come.
fn knows_pods(scene: &Scene, node: &Node) -> bool {
    scene.shown.cluster.knows(&Scope::PodsOn(node.name.clone()))
}

fn pods(scene: &Scene, node: &Node, load: NodeLoad) -> Cell {
    let is_known = knows_pods(scene, node);
    if !is_known && load.pods == 0 {
        return Cell::new("–", scene.style(Role::Faint));
    }
    let terminating = match load.terminating {
        0 => Cell::default(),
        terminating => Cell::new(&format!("-{terminating} "), scene.style(Role::EvictionTerminating)),
    };
    let cell = terminating
        .and(&load.pods.to_string(), scene.style(if load.pods == 0 { Role::Faint } else { Role::Base }));
    if is_known { cell } else { cell.and("+", scene.style(Role::Faint)) }
}

/// Requests as a share of what is allocatable: `62%`.
fn share(scene: &Scene, node: &Node, used: i64, of: i64) -> Cell {
    let percent = used.saturating_mul(100).checked_div(of).filter(|_| knows_pods(scene, node));
    let Some(percent) = percent else {
        return Cell::new("–", scene.style(Role::Faint));
    };
    let role = if percent >= 90 { Role::GaugeHigh } else { Role::Base };
    Cell::new(&percent.to_string(), scene.style(role)).and("%", scene.style(Role::Faint))
}

fn conditions(scene: &Scene, node: &Node) -> Cell {
    let mut cell = Cell::default();
    for condition in node.problems() {
        cell = gap(cell, scene).and(&condition.kind, scene.style(Role::NodeNotice));
    }
    cell
}

/// `unreachable:NoExecute 12s`: without their common prefix, those that evict pods first.
fn taints(scene: &Scene, node: &Node) -> Cell {
    let mut taints: Vec<&Taint> = node.taints.iter().collect();
    taints.sort_by_key(|taint| taint.effect != TaintEffect::NoExecute);
    let mut cell = Cell::default();
    for taint in taints {
        let role = match taint.effect {
            TaintEffect::NoExecute => Role::TaintNoExecute,
            TaintEffect::NoSchedule | TaintEffect::PreferNoSchedule | TaintEffect::Invalid => {
                Role::TaintNoSchedule
            }
        };
        cell = gap(cell, scene).and(&text::brief(&taint.to_string()), scene.style(role));
        if let Some(added) = taint.time_added {
            cell = cell.and(&format!(" {}", scene.age(added)), scene.style(Role::Dim));
        }
    }
    cell
}

/// `1h59m left · alice: new kernel`: who drains the node; who cordoned it, why and for how long.
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

/// probeTimestamp as a time of day.
fn probe(scene: &Scene, health: Option<&NodeView>) -> Cell {
    let Some(health) = health else { return Cell::default() };
    Cell::new(mark(health.certainty), scene.style(Role::Faint))
        .and(&text::clock(health.probe), scene.style(Role::Dim))
}

/// The sign of an estimate.
pub const fn mark(known: Certainty) -> &'static str {
    match known {
        Certainty::Observed => "",
        Certainty::Estimated => "~",
        Certainty::AtLatest => "≤",
    }
}

/// Why the selected node is in its state, or what happens to it next.
fn why(scene: &Scene) -> Option<String> {
    let name = scene.screen.nodes.list.selected()?;
    if let Some(due) = scene.shown.views.next.get(name) {
        return Some(due.why.to_string());
    }
    let node = scene.shown.cluster.node(name)?;
    let not_ready = node.ready().filter(|ready| ready.status != ConditionStatus::True);
    if let Some(ready) = not_ready {
        return Some(format!("{}: {}", ready.reason, ready.message));
    }
    let claim = node.drain_claim.as_ref().map(|claim| claim.text(scene.now));
    claim.or_else(|| Some(format!("cordoned {}", node.cordon()?.text(scene.now))))
}
