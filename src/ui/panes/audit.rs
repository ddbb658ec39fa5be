//! The audit: what would hinder drains now, grouped by cause, with what would be lost and what would help.

use ratatui::{buffer::Buffer, layout::Rect};

use super::{Nothing, column, draw_cause, open, say_nothing, sort_on_click, table_of};
use crate::{
    app::{AuditColumn, Pane},
    k8s::feed::FeedKind,
    model::{Finding, FindingSeverity, audit::nothing_found},
    ui::{
        Scene,
        column_choice::ColumnChoice,
        text,
        theme::Role,
        widgets::{Cell, Column, TableWidget, Width, segments::Runs},
    },
};

/// Maximum number of nodes named in the line about the selected finding.
const NAMED: usize = 8;

/// ```text
/// ─ 9 Audit  21 of 24 nodes can be drained, 2 are blocked, 1 may never end ─────────────────────────
///   object                       cause                                       pods  nodes  what
/// ✗ PodDisruptionBudget data/db  Budgets that can never allow an eviction       3      3  needs 3 healthy pods, and has 3 at most
/// ▲ Deployment shop/cache        Data that is lost with its pod                 4      4  emptyDir data is lost
/// why needs 3 healthy pods, and has 3 at most · StatefulSet db gets a pod more: kubectl scale … · on n-1, n-2, n-3
/// ```
/// Draws the findings. Returns the number of rows that fit.
pub fn draw(scene: &Scene, area: Rect, buf: &mut Buffer) -> usize {
    let list = &scene.screen.audit.list;
    let inner = open(scene, Pane::Audit, area, facts(scene), buf);
    if list.is_empty() {
        say_nothing(scene, Pane::Audit, nothing(scene), inner, buf);
        return TableWidget::page(inner);
    }
    let selected = list.selected().and_then(|id| find(scene, id));
    let inner = draw_cause(scene, Pane::Audit, selected.map(why), inner, buf);
    let page = TableWidget::page(inner);
    let choice = ColumnChoice::new(scene, Pane::Audit);
    let shown = choice.columns(columns(scene));
    let table = table_of(scene, Pane::Audit, list, shown, TableWidget::body(inner));
    let cells_of = |row| {
        let finding = list.keys().get(row).and_then(|id: &String| find(scene, id));
        finding.map(|finding| choice.own_cells(scene, cells(scene, finding))).unwrap_or_default()
    };
    scene.record(Pane::Audit, &table, cells_of);
    let headings = table.render(inner, buf, cells_of);
    sort_on_click(scene, Pane::Audit, headings);
    page
}

fn find<'a>(scene: &'a Scene, id: &str) -> Option<&'a Finding> {
    scene.shown.predictions.audit()?.audit.findings.iter().find(|finding| finding.id() == id)
}

/// Reason why the list of findings is empty.
pub(super) fn nothing(scene: &Scene) -> Nothing {
    let Some(known) = scene.shown.predictions.audit() else {
        return ("◌", "planning the drain of each node".into(), Role::FeedBusy);
    };
    let unknown = known.audit.total().unknown;
    let text = nothing_found(unknown, 0);
    if unknown > 0 {
        return ("?", text.into(), Role::NodeNotice);
    }
    super::nothing(scene, FeedKind::Pods, Pane::Audit, text)
}

/// How many nodes can be drained, and since when that is known.
fn facts(scene: &Scene) -> Runs {
    let Some(known) = scene.shown.predictions.audit() else { return Runs::default() };
    let total = known.audit.total();
    let role = if total.drains == total.nodes { Role::Dim } else { Role::NodeWarning };
    let age = format!("as of {}", text::clock(known.at));
    Runs::new(&total.text(), scene.style(role))
        .and(" · ", scene.style(Role::Faint))
        .and(&age, scene.style(Role::Dim))
}

fn columns(scene: &Scene) -> Vec<Column> {
    use AuditColumn as By;
    let sort = scene.screen.audit.sort;
    vec![
        column(sort, By::Object, "  object", Width::Fit(18, 48)),
        column(sort, By::Cause, "cause", Width::Fit(18, 46)).gives_way(2),
        column(sort, By::Pods, "pods", Width::Fit(4, 7)).right().gives_way(3),
        column(sort, By::Nodes, "nodes", Width::Fit(5, 7)).right(),
        Column::plain("what", Width::Grow(12, 3)).gives_way(1),
    ]
}

fn cells(scene: &Scene, finding: &Finding) -> Vec<Cell> {
    let dim = scene.style(Role::Dim);
    let (sign, role) = match finding.severity() {
        FindingSeverity::Error => ("✗", Role::NodeWarning),
        FindingSeverity::Warning => ("▲", Role::NodeNotice),
        FindingSeverity::Note => ("·", Role::Dim),
    };
    vec![
        Cell::new(sign, scene.style(role))
            .and(" ", dim)
            .and(&finding.subject.to_string(), scene.style(Role::Base))
            .copied_as(&finding.subject.to_string()),
        Cell::new(finding.kind.title(), scene.style(role)),
        Cell::new(&text::count(finding.pods.len()), dim),
        Cell::new(&text::count(finding.nodes.len()), scene.style(Role::Base)),
        Cell::new(&finding.text, dim),
    ]
}

/// The cause, what would help, and the nodes that the cause concerns.
fn why(finding: &Finding) -> String {
    let named: Vec<String> = finding.nodes.iter().take(NAMED).map(ToString::to_string).collect();
    let more = match finding.nodes.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let fix = finding.fixes.first().map(|fix| match &fix.command {
        Some(command) => format!("{}: {command}", fix.text),
        None => fix.text.clone(),
    });
    let place = format!("on {}{more}", named.join(", "));
    [finding.text.clone()].into_iter().chain(fix).chain([place]).collect::<Vec<_>>().join(" · ")
}
