//! Pods that wait for a node: since when, why, and what would help.

use ratatui::{buffer::Buffer, layout::Rect};

use super::{Nothing, column, draw_cause, open, say_nothing, sort_on_click, table_of};
use crate::{
    app::{Pane, PendingColumn},
    k8s::feed::FeedKind,
    model::{PendingAdvice, pending_pods::pending_since},
    ui::{
        Scene,
        column_choice::ColumnChoice,
        text,
        theme::Role,
        widgets::{Cell, Column, TableWidget, Width, segments::Runs},
    },
};
use kordon_core::cluster::{Key, Pod};

/// ```text
/// ─  3 Evictions [6 Pending 2] ─────────────────────────────────────────────────────────────
///     for  pod                why                                  what would help
///   4m12s  shop/web-9c8f-x2x  8 Insufficient cpu                   2 CPU more on n-3
///     12s  shop/db-1          7 Insufficient cpu, 1 unschedulable  uncordon n-4
/// why 8 Insufficient cpu · what would help: 2 CPU more on n-3; a new node with 4 CPU free
/// ```
/// Draws the pods. Returns the number of rows that fit.
pub fn draw(scene: &Scene, area: Rect, buf: &mut Buffer) -> usize {
    let list = &scene.screen.pending.list;
    let inner = open(scene, Pane::Pending, area, facts(scene), buf);
    if list.is_empty() {
        say_nothing(scene, Pane::Pending, nothing(scene), inner, buf);
        return TableWidget::page(inner);
    }
    let why = list.selected().and_then(|key| scene.shown.cluster.pod(key)).map(|pod| why(scene, pod));
    let inner = draw_cause(scene, Pane::Pending, why, inner, buf);
    let page = TableWidget::page(inner);
    let choice = ColumnChoice::new(scene, Pane::Pending);
    let longest_pod = longest_pod(inner.width);
    let shown = choice.columns(columns(scene, longest_pod));
    let table = table_of(scene, Pane::Pending, list, shown, TableWidget::body(inner));
    let cells_of = |row| {
        let pod = list.keys().get(row).and_then(|key| scene.shown.cluster.pod(key));
        pod.map(|pod| choice.cells_of_pod(scene, Some(pod), cells(scene, pod, longest_pod)))
            .unwrap_or_default()
    };
    scene.record(Pane::Pending, &table, cells_of);
    let headings = table.render(inner, buf, cells_of);
    sort_on_click(scene, Pane::Pending, headings);
    page
}

/// Reason why the list of Pending pods is empty.
pub(super) fn nothing(scene: &Scene) -> Nothing {
    super::nothing(scene, FeedKind::Pods, Pane::Pending, "no pod waits for a node")
}

/// Number of pods: `2 wait for a node`. Empty if the pane is one of several tabs, because the tab's title has the
/// number.
fn facts(scene: &Scene) -> Runs {
    let is_tab = scene.slots.iter().any(|slot| slot.active == Pane::Pending && slot.tabs.len() > 1);
    if is_tab {
        return Runs::default();
    }
    match scene.shown.cluster.unscheduled_count() {
        0 => Runs::default(),
        1 => Runs::new("1 waits for a node", scene.style(Role::NodeWarning)),
        pods => Runs::new(&format!("{} wait for a node", text::count(pods)), scene.style(Role::NodeWarning)),
    }
}

/// Maximum width of a pod's name, so that the reason and what would help keep the most of a narrow pane.
const fn longest_pod(width: u16) -> u16 {
    match width {
        0..100 => 20,
        100..150 => 34,
        _ => 48,
    }
}

fn columns(scene: &Scene, longest_pod: u16) -> Vec<Column> {
    let sort = scene.screen.pending.sort;
    vec![
        column(sort, PendingColumn::For, "for", Width::Fit(5, 9)).right(),
        column(sort, PendingColumn::Pod, "pod", Width::Fit(16, longest_pod)),
        column(sort, PendingColumn::Why, "why", Width::Grow(18, 2)),
        Column::plain("what would help", Width::Grow(24, 3)),
    ]
}

fn cells(scene: &Scene, pod: &Pod, longest_pod: u16) -> Vec<Cell> {
    let dim = scene.style(Role::Dim);
    let gaps = scene.shown.pending_gaps();
    let (help, role) = match scene.shown.predictions.pending_advice(&pod.key) {
        Some(advice) => (advice.first().unwrap_or_else(|| "nothing that kordon knows".into()), role(advice)),
        None if gaps.is_empty() => ("working out".into(), Role::FeedBusy),
        None => (format!("not known: {gaps}"), Role::NodeNotice),
    };
    vec![
        Cell::new(
            &text::age(scene.now, pending_since(&scene.shown.cluster, pod)),
            scene.style(Role::NodeWarning),
        ),
        pod_name(scene, &pod.key, longest_pod.into()),
        Cell::new(&text::brief(&pod.pending_cause()), dim),
        Cell::new(&help, scene.style(role)),
    ]
}

/// Namespace and name of a pod in this many cells. A longer name is cut in the middle: pods of one workload differ in
/// their ends.
fn pod_name(scene: &Scene, key: &Key, cells: usize) -> Cell {
    let whole = key.to_string();
    let shown = text::cut_middle(&whole, cells);
    let (namespace, name) = shown.split_once('/').unwrap_or(("", &*shown));
    let slash = if namespace.is_empty() { "" } else { "/" };
    Cell::new(namespace, scene.style(Role::Dim))
        .and(slash, scene.style(Role::Faint))
        .and(name, scene.style(Role::Base))
        .copied_as(&whole)
}

/// Why a pod waits, and all that would help.
fn why(scene: &Scene, pod: &Pod) -> String {
    let cause = pod.pending_cause();
    match scene.shown.predictions.pending_advice(&pod.key).map(|advice| advice.lines()) {
        Some(lines) if !lines.is_empty() => format!("{cause} · what would help: {}", lines.join("; ")),
        Some(_) | None => cause,
    }
}

/// Theme role of advice for a Pending pod.
const fn role(advice: &PendingAdvice) -> Role {
    match advice {
        PendingAdvice::Fits { .. }
        | PendingAdvice::Preempts { .. }
        | PendingAdvice::Waits { .. }
        | PendingAdvice::Unschedulable { .. } => Role::Base,
        PendingAdvice::NotTried { .. } | PendingAdvice::LeftOut => Role::NodeNotice,
    }
}
