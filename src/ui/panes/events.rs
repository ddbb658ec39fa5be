//! The Events of the cluster, folded by object and reason.

use ratatui::{buffer::Buffer, layout::Rect};

use super::{
    Nothing, column, draw_full_text, journal::sign, no_match, open, say_nothing, sort_on_click, table_of,
};
use crate::{
    app::{EventColumn, Pane, event_list::EventListView, filter_fields::event_type},
    ui::{
        Scene,
        column_choice::ColumnChoice,
        text,
        theme::Role,
        widgets::{Cell, Column, TableWidget, Width, segments::Runs},
    },
};
use kordon_core::{cluster::ReportedEvent, engine::Severity, plan::words::counted};
use kordon_time::{ClusterTime, Timestamp};

/// ```text
/// ─ 2 Events  214 · 12 Warnings ───────────────────────────────────────────────────────────────────
///   last  type       reason            object             count  message                  source
///     4s  Warning  ▲ FailedScheduling  Pod shop/web-1        12  0/30 nodes are availab…  default-sched…
///    52s  Normal   • NodeNotReady      Node n-3               1  Node n-3 status is now…  node-controll…
/// FailedScheduling · 0/30 nodes are available: 3 Insufficient cpu, 27 node(s) didn't match …
/// ```
/// Draws the Events. Returns the number of rows that fit.
pub fn draw(scene: &Scene, area: Rect, buf: &mut Buffer) -> usize {
    let Some(view) = scene.screen.overlays.event_list() else { return 0 };
    let inner = open(scene, Pane::Events, area, facts(scene, view), buf);
    if view.list.is_empty() {
        say_nothing(scene, Pane::Events, nothing(scene, view), inner, buf);
        return TableWidget::page(inner);
    }
    let row = |place: usize| view.list.keys().get(place).and_then(|key| view.row(key));
    let selected = view.list.cursor().and_then(row).map(|row| full_text(scene, row));
    let inner = draw_full_text(scene, Pane::Events, selected, inner, buf);
    let page = TableWidget::page(inner);
    let choice = ColumnChoice::new(scene, Pane::Events);
    let shown = choice.columns(columns(view));
    let table = table_of(scene, Pane::Events, &view.list, shown, TableWidget::body(inner));
    let cells_of =
        |place| row(place).map(|row| choice.own_cells(scene, cells(scene, row))).unwrap_or_default();
    scene.record(Pane::Events, &table, cells_of);
    let headings = table.render(inner, buf, cells_of);
    sort_on_click(scene, Pane::Events, headings);
    page
}

/// Number of rows: `214 · 12 Warnings · the newest 10,000 Events`.
fn facts(scene: &Scene, view: &EventListView) -> Runs {
    let (dim, faint) = (scene.style(Role::Dim), scene.style(Role::Faint));
    if !view.is_listed() {
        return Runs::default();
    }
    let warnings = view.rows().filter(|row| row.event.is_warning).count();
    let mut runs = Runs::new(&text::count(view.rows().len()), dim);
    if warnings > 0 {
        let words = counted(warnings, "Warning", "Warnings");
        runs = runs.and(" · ", faint).and(&words, scene.style(Role::LevelWarning));
    }
    if view.left_out() > 0 {
        let words = format!("{} older Events left out", text::count(view.left_out()));
        runs = runs.and(" · ", faint).and(&words, scene.style(Role::NodeNotice));
    }
    runs
}

/// A note about Events that are outdated.
pub(super) fn note(scene: &Scene) -> Option<Runs> {
    let view = scene.screen.overlays.event_list().filter(|view| view.is_listed())?;
    Some(Runs::new(&format!("as before: {}", view.failure()?), scene.style(Role::FeedBroken)))
}

/// Reason why the list of Events is empty.
fn nothing(scene: &Scene, view: &EventListView) -> Nothing {
    match view.failure() {
        Some(why) if !view.is_listed() => ("✗", format!("Events unknown: {why}"), Role::FeedBroken),
        None if !view.is_listed() => ("◌", "listing Events".into(), Role::FeedBusy),
        _ if !scene.screen.filter(Pane::Events).is_empty() => no_match(scene, Pane::Events),
        _ => ("○", "the cluster has no Events".into(), Role::Dim),
    }
}

fn columns(view: &EventListView) -> Vec<Column> {
    use EventColumn as By;
    let sort = view.sort;
    vec![
        column(sort, By::Last, "last", Width::Fit(5, 7)).right(),
        column(sort, By::Type, "type", Width::Fixed(7)).gives_way(3),
        column(sort, By::Reason, "  reason", Width::Fit(12, 26)),
        column(sort, By::Object, "object", Width::Fit(14, 44)),
        column(sort, By::Count, "count", Width::Fit(5, 7)).right().gives_way(2),
        Column::plain("message", Width::Grow(16, 3)),
        column(sort, By::Source, "source", Width::Grow(10, 1)).gives_way(4),
    ]
}

fn cells(scene: &Scene, ReportedEvent { about, event, .. }: &ReportedEvent) -> Vec<Cell> {
    let dim = scene.style(Role::Dim);
    let (glyph, role) = sign(if event.is_warning { Severity::Warning } else { Severity::Info });
    let last = local(scene, event.last).map_or("?".into(), |last| text::age(scene.now, last));
    let namespace = Some(&about.namespace).filter(|namespace| !namespace.is_empty());
    let mut object = Cell::new(&about.kind, dim).and(" ", dim);
    if let Some(namespace) = namespace {
        object = object.and(namespace, dim).and("/", scene.style(Role::Faint));
    }
    vec![
        Cell::new(&last, dim),
        Cell::new(event_type(event.is_warning), dim),
        Cell::new(glyph, scene.style(role))
            .and(" ", dim)
            .and(&event.reason, scene.style(if event.is_warning { role } else { Role::Base }))
            .copied_as(&event.reason),
        object.and(&about.name, scene.style(Role::Base)),
        Cell::new(&text::count(usize::try_from(event.count).unwrap_or(usize::MAX)), dim),
        Cell::new(&text::brief(&event.message), scene.style(Role::Base)),
        Cell::new(&event.source, dim),
    ]
}

fn local(scene: &Scene, at: Option<ClusterTime>) -> Option<Timestamp> {
    at.map(|at| scene.shown.cluster.local(at))
}

/// Full text of the selected row: `FailedScheduling ×12 since 5m · 0/30 nodes are available … · default-scheduler`.
fn full_text(scene: &Scene, ReportedEvent { event, .. }: &ReportedEvent) -> String {
    let times = if event.count > 1 { format!(" ×{}", event.count) } else { String::new() };
    let since = local(scene, event.first).filter(|_| event.count > 1);
    let since = since.map_or(String::new(), |first| format!(" since {}", text::age(scene.now, first)));
    let parts = [event.message.clone(), event.source.to_string()].into_iter().filter(|part| !part.is_empty());
    let parts: String = parts.map(|part| format!(" · {part}")).collect();
    format!("{}{times}{since}{parts}", event.reason)
}
