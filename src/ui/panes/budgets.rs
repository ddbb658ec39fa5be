//! PodDisruptionBudgets: how many pods each budget lets go now, which nodes it blocks, and who drains nodes with its
//! pods.

use std::collections::BTreeSet;

use ratatui::{buffer::Buffer, layout::Rect};

use super::{Nothing, column, draw_cause, object_name, open, say_nothing, sort_on_click, table_of};
use crate::{
    app::{BudgetColumn, Pane},
    k8s::feed::FeedKind,
    model::{BudgetRoom, BudgetRow},
    ui::{
        Scene,
        column_choice::ColumnChoice,
        text,
        theme::Role,
        widgets::{Cell, Column, TableWidget, Width, segments::Runs},
    },
};
use kordon_core::{cluster::NodeName, plan::words::counted};

/// ```text
/// ─ 8 Budgets  4 · 2 let no pod go ───────────────────────────────────────────────────────────────────
///   budget        room                                       healthy  rule            pods  blocks          drains
/// ✗ data/db       never: needs 3 of 3                        3 of 3   minAvailable 3     3  3 nodes: n-1 …  n-3 by ann, blocked 2m
/// ◌ shop/cart     none, until 1 more is healthy              1 of 2   minAvailable 2     2  1 node: n-2
/// · shop/web      1 pod may leave                            4 of 3   minAvailable 3     4
/// why data/db refuses 3 pods: data/db-0, data/db-1, data/db-2 · scale its workload up, or relax the budget
/// ```
/// Draws the budgets. Returns the number of rows that fit.
pub fn draw(scene: &Scene, area: Rect, buf: &mut Buffer) -> usize {
    let list = &scene.screen.budgets.list;
    let inner = open(scene, Pane::Budgets, area, facts(scene), buf);
    if list.is_empty() {
        say_nothing(scene, Pane::Budgets, nothing(scene), inner, buf);
        return TableWidget::page(inner);
    }
    let selected = list.selected().and_then(|key| scene.shown.predictions.budgets()?.get(key));
    let inner = draw_cause(scene, Pane::Budgets, selected.map(why), inner, buf);
    let page = TableWidget::page(inner);
    let choice = ColumnChoice::new(scene, Pane::Budgets);
    let shown = choice.columns(columns(scene));
    let table = table_of(scene, Pane::Budgets, list, shown, TableWidget::body(inner));
    let cells_of = |row| {
        let row = list.keys().get(row).and_then(|key| scene.shown.predictions.budgets()?.get(key));
        row.map(|row| choice.own_cells(scene, cells(scene, row))).unwrap_or_default()
    };
    scene.record(Pane::Budgets, &table, cells_of);
    let headings = table.render(inner, buf, cells_of);
    sort_on_click(scene, Pane::Budgets, headings);
    page
}

/// Reason why the list of budgets is empty.
pub(super) fn nothing(scene: &Scene) -> Nothing {
    let is_working = scene.shown.predictions.budgets().is_none() && !scene.shown.cluster.budgets().is_empty();
    if is_working {
        return ("◌", "working out the budgets".into(), Role::FeedBusy);
    }
    super::nothing(scene, FeedKind::Budgets, Pane::Budgets, "the cluster has no PodDisruptionBudgets")
}

/// Number of budgets: `4 · 2 let no pod go`.
fn facts(scene: &Scene) -> Runs {
    let Some(budgets) = scene.shown.predictions.budgets() else { return Runs::default() };
    let all = budgets.rows().count();
    let closed = budgets.rows().filter(|row| !row.refused.is_empty()).count();
    let runs = Runs::new(&text::count(all), scene.style(Role::Dim));
    match closed {
        0 => runs,
        closed => {
            let words = counted(closed, "lets no pod go", "let no pod go");
            runs.and(" · ", scene.style(Role::Faint)).and(&words, scene.style(Role::NodeNotice))
        }
    }
}

fn columns(scene: &Scene) -> Vec<Column> {
    use BudgetColumn as By;
    let sort = scene.screen.budgets.sort;
    vec![
        column(sort, By::Name, "  budget", Width::Fit(14, 40)),
        column(sort, By::Room, "room", Width::Fit(16, 48)),
        Column::plain("healthy", Width::Fit(7, 11)).gives_way(3),
        Column::plain("rule", Width::Fit(14, 20)).gives_way(5),
        column(sort, By::Pods, "pods", Width::Fit(4, 7)).right().gives_way(4),
        column(sort, By::Blocks, "blocks", Width::Grow(10, 2)).gives_way(1),
        column(sort, By::Drains, "drains", Width::Grow(10, 2)).gives_way(2),
    ]
}

fn cells(scene: &Scene, row: &BudgetRow) -> Vec<Cell> {
    let dim = scene.style(Role::Dim);
    let (sign, role) = sign(row);
    let numbers = &row.numbers;
    let blocks = match row.blocks.len() {
        0 => String::new(),
        nodes => format!("{}: {}", counted(nodes, "node", "nodes"), names(&row.blocks)),
    };
    let drains: Vec<String> = row.drains.iter().map(|drain| drain.text(scene.now)).collect();
    let is_blocked = row.drains.iter().any(|drain| drain.blocked_since.is_some());
    let drain_role = if is_blocked { Role::NodeWarning } else { Role::NodeMaintenance };
    vec![
        Cell::new(sign, scene.style(role))
            .and(" ", dim)
            .join(object_name(scene, &row.key, Role::Base))
            .copied_as(&row.key.to_string()),
        Cell::new(&row.room.to_string(), scene.style(role)),
        Cell::new(&format!("{} of {}", numbers.healthy, numbers.desired), dim),
        Cell::new(if row.rule.is_empty() { "–" } else { &row.rule }, dim),
        Cell::new(&text::count(row.pods.len()), dim),
        Cell::new(&blocks, scene.style(Role::Base)),
        Cell::new(&drains.join(", "), scene.style(drain_role)),
    ]
}

/// Sign and theme role of a budget. Only budgets that refuse evictions stand out.
fn sign(row: &BudgetRow) -> (&'static str, Role) {
    match row.room {
        BudgetRoom::Never(_) if row.refused.is_empty() => ("·", Role::Dim),
        BudgetRoom::Never(_) => ("✗", Role::NodeWarning),
        BudgetRoom::After(_) | BudgetRoom::Operator(_) | BudgetRoom::NotComputed => ("◌", Role::NodeNotice),
        BudgetRoom::Unknown(_) => ("?", Role::NodeNotice),
        BudgetRoom::Now(_) if !row.refused.is_empty() => ("✗", Role::NodeWarning),
        BudgetRoom::Now(_) | BudgetRoom::NoPods => ("·", Role::Dim),
    }
}

fn names(nodes: &BTreeSet<NodeName>) -> String {
    nodes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// What the budget refuses, and what would help.
fn why(row: &BudgetRow) -> String {
    let mut parts = vec![format!("{}: {}", row.key, row.room)];
    if !row.refused.is_empty() {
        let pods: Vec<String> = row.refused.iter().map(|pod| pod.name.to_string()).collect();
        parts.push(format!("would refuse {}: {}", counted(pods.len(), "pod", "pods"), pods.join(", ")));
    }
    if !row.shares_with.is_empty() {
        let others: Vec<String> = row.shares_with.iter().map(|key| key.name.to_string()).collect();
        let words = "selects pods of the budget too: their evictions are refused, whatever the budgets allow";
        parts.push(format!("{} {words}", others.join(", ")));
    }
    if let BudgetRoom::Never(pattern) = &row.room {
        parts.push(pattern.advice().to_owned());
    }
    parts.join(" · ")
}
