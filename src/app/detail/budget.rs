//! Rows of the detail of a budget: its room, the nodes and drains that it holds up, and the pods that it selects.

use std::sync::Arc;

use super::{Detail, DetailContext, DetailRow, Tone, rows::fact};
use crate::model::{BudgetRoom, BudgetRow, DrainUnderBudget};
use kordon_core::{
    cluster::{Budget, Cluster, Key},
    plan::words::counted,
};
use kordon_time::Timestamp;

/// Maximum number of pods that are listed. Pods whose eviction would be refused come first.
const MOST_PODS: usize = 100;

pub fn rows(budget: &Arc<Budget>, detail: &Detail, context: &DetailContext<'_>) -> Vec<DetailRow> {
    let DetailContext { model, now, .. } = *context;
    let row = model.predictions.budgets().and_then(|list| list.get(&budget.key));
    let mut rows = vec![DetailRow::section("budget")];
    match row {
        Some(row) => rows.extend(facts(budget, row, now)),
        None => rows.push(fact("room", "working out")),
    }
    rows.extend(detail.suggestion_rows(context));
    rows.extend(row.into_iter().flat_map(|row| pods(row, &model.cluster)));
    rows.extend(detail.timeline_rows(model));
    rows.extend(detail.annotation_rows());
    rows
}

fn facts(budget: &Budget, row: &BudgetRow, now: Timestamp) -> Vec<DetailRow> {
    let marked = |name: &str, text: String, is_marked: bool| DetailRow::Fact {
        name: name.into(),
        at: None,
        text,
        tone: if is_marked { Tone::Marked } else { Tone::Plain },
    };
    let room = match &row.room {
        BudgetRoom::Never(pattern) => format!("{}; {}", row.room, pattern.advice()),
        room => room.to_string(),
    };
    let selector = match &budget.selector {
        Some(selector) if selector.is_empty() => "all of its namespace".to_owned(),
        Some(selector) => selector.to_string(),
        None => "nothing".into(),
    };
    let blocks = match row.blocks.len() {
        0 => "no drain".to_owned(),
        nodes => {
            let names: Vec<&str> = row.blocks.iter().map(|node| &**node).collect();
            format!("drains of {}: {}", counted(nodes, "node", "nodes"), names.join(", "))
        }
    };
    let mut rows = vec![
        marked("room", room, !row.refused.is_empty()),
        fact("healthy", format!("{}, of which {} must stay", row.numbers.healthy, row.numbers.desired)),
        fact("rule", if row.rule.is_empty() { "none" } else { &row.rule }),
        fact("selects", format!("{selector} · {}", counted(row.pods.len(), "pod", "pods"))),
        marked("blocks", blocks, !row.blocks.is_empty()),
    ];
    let drain = |drain: &DrainUnderBudget| marked("drain", drain.text(now), drain.blocked_since.is_some());
    rows.extend(row.drains.iter().map(drain));
    let others: Vec<String> = row.shares_with.iter().map(ToString::to_string).collect();
    rows.extend((!others.is_empty()).then(|| {
        let text = "selects some of its pods too: the API server evicts no pod with two budgets";
        marked("shared with", format!("{} · {text}", others.join(", ")), true)
    }));
    rows
}

/// The pods that the budget selects. Those whose eviction would be refused come first.
fn pods(row: &BudgetRow, cluster: &Cluster) -> Vec<DetailRow> {
    let is_refused = |pod: &Key| row.refused.binary_search(pod).is_ok();
    let others = row.pods.iter().filter(|pod| !is_refused(pod));
    let row_of = |key: &Key| {
        let pod = cluster.pod(key)?;
        let state = match (is_refused(key), pod.is_ready()) {
            (true, _) => "refused",
            (false, true) => "Ready",
            (false, false) => "not Ready",
        };
        let node = pod.node.as_ref().map_or("no node yet", |node| node);
        Some(DetailRow::Fact {
            name: state.into(),
            at: Some(cluster.local(pod.created)),
            text: format!("{key} · {node}"),
            tone: if is_refused(key) { Tone::Marked } else { Tone::Plain },
        })
    };
    let count = counted(row.pods.len(), "pod", "pods");
    let note = if row.pods.len() > MOST_PODS { format!("the first {MOST_PODS} of {count}") } else { count };
    let title = DetailRow::Section { title: "pods", note };
    let listed = row.refused.iter().chain(others).take(MOST_PODS);
    std::iter::once(title).chain(listed.filter_map(row_of)).collect()
}
