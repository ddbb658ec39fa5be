//! The pods of one node.

use ratatui::{buffer::Buffer, layout::Rect};

use super::{
    column, draw_cause, draw_nothing, evictions, mark, marked,
    nodes::{WITHOUT_TIME, due_words, sign},
    object_name, open, sort_on_click, table_of,
};
use crate::{
    app::{Pane, PodColumn},
    k8s::feed::FeedKind,
    ui::{
        Scene,
        column_choice::ColumnChoice,
        text,
        theme::Role,
        widgets::{Cell, Column, TableWidget, Width, segments::Runs},
    },
};
use kordon_core::cluster::{Key, LocalVolume, Name, NodeName, Phase, Pod};

/// ```text
/// ─ 2 Pods  on n-3 ○ NodeStatusUnknown · 12 pods ──────────────────────────────────────────────────
///   pod                 ready  phase    eviction  owner                 local data  priority  cpu   mem    age
/// ● shop/web-7d4b9-x2x  yes    Running     4m12s  ReplicaSet web-7d4b9  emptyDir           0  250m  128Mi  4d
/// ○ shop/db-0           no     Running     never  StatefulSet db                          10  1     1.0Gi  4d
/// ```
/// Draws the pods of one node. Returns the number of rows that fit.
pub fn draw(scene: &Scene, area: Rect, buf: &mut Buffer) -> usize {
    let list = &scene.screen.pods.list;
    let Some(node) = &scene.screen.pods_of else { return 0 };
    let inner = open(scene, Pane::Pods, area, facts(scene, node), buf);
    if list.is_empty() {
        draw_nothing(scene, FeedKind::Pods, Pane::Pods, "no pods on this node", inner, buf);
        return TableWidget::page(inner);
    }
    let selected = list.selected().and_then(|key| scene.shown.views.leaving.evictions.get(key));
    let inner = draw_cause(scene, Pane::Pods, selected.map(|row| row.why.to_string()), inner, buf);
    let page = TableWidget::page(inner);
    let choice = ColumnChoice::new(scene, Pane::Pods);
    let has_gates = choice.needs_all() || list.keys().iter().any(|key| !unmet_gates(scene, key).is_empty());
    let shown = choice.columns(columns(scene, has_gates));
    let table = table_of(scene, Pane::Pods, list, shown, TableWidget::body(inner));
    let cells_of = |row| {
        let pod = list.keys().get(row).and_then(|key| scene.shown.cluster.pod(key));
        pod.map(|pod| choice.cells_of_pod(scene, Some(pod), cells(scene, pod, has_gates))).unwrap_or_default()
    };
    scene.record(Pane::Pods, &table, cells_of);
    let headings = table.render(inner, buf, cells_of);
    sort_on_click(scene, Pane::Pods, headings);
    page
}

/// Summary of the node: `on n-3 ✕ Unknown 12s · taint 4s · 12 pods`.
fn facts(scene: &Scene, name: &NodeName) -> Runs {
    let dim = scene.style(Role::Dim);
    let runs = Runs::new("on ", dim).and(name, scene.style(Role::Strong));
    let Some(node) = scene.shown.cluster.node(name) else {
        return runs.and(" (gone)", scene.style(Role::NodeWarning));
    };
    let status = scene.shown.node_status(node);
    let (glyph, role) = sign(status.map(|status| status.state));
    let state = status.map_or(String::new(), |status| status.text(scene.now));
    let mut runs = runs.and(&format!(" {glyph} {state}"), scene.style(role));
    if let Some(due) = scene.shown.views.leaving.next.get(name) {
        let (what, role) = due_words(due);
        let time = |at| format!("{what} {}", text::left(at, scene.now));
        let words = due.at.map_or(WITHOUT_TIME.into(), time);
        runs = runs.and(" · ", scene.style(Role::Faint)).and(&words, scene.style(role));
    }
    let runs = runs
        .and(" · ", scene.style(Role::Faint))
        .and(&format!("{} pods", scene.shown.cluster.load(name).pods), dim);
    marked(scene, runs, Pane::Pods, scene.screen.marked_pods.len())
}

/// The readiness gates of a pod that are not met.
fn unmet_gates<'a>(scene: &Scene<'a>, pod: &Key) -> &'a [Name] {
    scene.shown.cluster.pod(pod).map_or(&[], |pod| pod.unmet_gates())
}

/// Columns of the table. `has_gates` adds the column of unmet readiness gates, which few pods have.
fn columns(scene: &Scene, has_gates: bool) -> Vec<Column> {
    use PodColumn as By;
    let sort = scene.screen.pods.sort;
    let mut columns = vec![
        column(sort, By::Name, "  pod", Width::Fit(18, 56)),
        column(sort, By::Ready, "ready", Width::Fixed(5)),
        column(sort, By::Phase, "phase", Width::Fit(7, 9)).gives_way(3),
        column(sort, By::Due, "eviction", Width::Fit(8, 14)).right(),
        column(sort, By::Owner, "owner", Width::Grow(12, 1)).gives_way(2),
        Column::plain("local data", Width::Fit(10, 28)).gives_way(7),
        column(sort, By::Priority, "priority", Width::Fit(8, 11)).right().gives_way(6),
        column(sort, By::Cpu, "cpu", Width::Fit(4, 6)).right().gives_way(4),
        column(sort, By::Memory, "mem", Width::Fit(5, 6)).right().gives_way(5),
        column(sort, By::Age, "age", Width::Fit(4, 7)).right().gives_way(1),
    ];
    if has_gates {
        columns.insert(2, Column::plain("unmet gates", Width::Fit(11, 30)).gives_way(3));
    }
    columns
}

/// Volumes whose data stays on the node, or is lost with the pod.
fn local_data(pod: &Pod) -> String {
    pod.storage.kinds().map(LocalVolume::as_str).collect::<Vec<_>>().join(", ")
}

fn cells(scene: &Scene, pod: &Pod, has_gates: bool) -> Vec<Cell> {
    let dim = scene.style(Role::Dim);
    let (glyph, role) = match (pod.is_ready(), pod.phase) {
        (true, _) => ("●", Role::NodeReady),
        (false, Phase::Succeeded) => ("✓", Role::Dim),
        (false, Phase::Failed) => ("✗", Role::LevelError),
        (false, Phase::Pending | Phase::Running | Phase::Unknown) => ("○", Role::NodeWarning),
    };
    let eviction = scene.shown.views.leaving.evictions.get(&pod.key);
    // The owner of a static pod is its node.
    let owner = pod.owner.as_ref().filter(|_| !pod.mirror);
    let owner = owner.map_or_else(
        || Cell::new(if pod.mirror { "static pod" } else { "none" }, scene.style(Role::NodeNotice)),
        |owner| Cell::new(owner.kind.as_str(), dim).and(" ", dim).and(&owner.name, dim),
    );
    let mut cells = vec![
        Cell::new(glyph, scene.style(role))
            .join(mark(scene, scene.screen.marked_pods.contains(&pod.key)))
            .join(object_name(scene, &pod.key, Role::Base))
            .copied_as(&pod.key.to_string()),
        Cell::new(if pod.is_ready() { "yes" } else { "no" }, scene.style(role)),
        Cell::new(pod.phase.as_str(), dim),
        eviction.map_or_else(
            || Cell::new("–", scene.style(Role::Faint)),
            |eviction| evictions::time(scene, &eviction.state),
        ),
        owner,
        Cell::new(&local_data(pod), dim),
        Cell::new(&pod.priority.to_string(), dim),
        Cell::new(&text::cores(pod.requests().cpu_milli), dim),
        Cell::new(&text::memory(pod.requests().memory_bytes), dim),
        Cell::new(&scene.age(pod.created), dim),
    ];
    if has_gates {
        let gates: Vec<&str> = pod.unmet_gates().iter().map(Name::as_str).collect();
        cells.insert(2, Cell::new(&gates.join(", "), scene.style(Role::NodeNotice)));
    }
    cells
}
