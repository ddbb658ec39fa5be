//! The rows of a detail, section by section.

use std::sync::Arc;

use super::{Detail, DetailContext, DetailRow, Tone, pressure};
use crate::model::{BudgetList, BudgetRow, Model};
use kordon_core::{
    cluster::{
        Budget, Cluster, ConditionStatus, CordonOrigin, Key, Node, Pod, Scope, TaintOwner, TolerationOperator,
    },
    plan::words::counted,
    why::{Step, departure::PodDeparture},
};
use kordon_time::Timestamp;

/// Rows of an explanation, grouped by tense: past, present, expected, and ruled out. Each group starts with a title.
fn chain(steps: Vec<Step>) -> Vec<DetailRow> {
    let mut rows = vec![DetailRow::section("next")];
    let mut before = None;
    for step in steps {
        if before.replace(step.tense) != Some(step.tense) {
            rows.push(DetailRow::Tense(step.tense));
        }
        rows.push(DetailRow::Step(step));
    }
    rows
}

pub fn fact(name: &str, text: impl Into<String>) -> DetailRow {
    DetailRow::Fact { name: name.into(), at: None, text: text.into(), tone: Tone::Plain }
}

pub fn of_node(node: &Arc<Node>, detail: &Detail, context: &DetailContext<'_>) -> Vec<DetailRow> {
    let DetailContext { model, now, .. } = *context;
    let cluster = &model.cluster;
    let mut rows = chain(model.explain_node(node, &[], now));
    rows.extend(detail.suggestion_rows(context));
    rows.extend(conditions(node, cluster));
    rows.extend(taints(node, cluster));
    rows.extend(budgets_that_hold(node, model));
    rows.extend(pressure::rows(node, context));
    rows.extend(detail.timeline_rows(model));
    rows.extend(pods(node, cluster));
    rows.extend(properties(node, cluster, now));
    rows.extend(Detail::label_rows(&node.labels));
    rows.extend(detail.annotation_rows());
    rows
}

fn conditions(node: &Node, cluster: &Cluster) -> Vec<DetailRow> {
    let mut rows = vec![DetailRow::section("conditions")];
    rows.extend(node.conditions.iter().map(|condition| {
        let good = if condition.kind == *"Ready" { ConditionStatus::True } else { ConditionStatus::False };
        DetailRow::Fact {
            name: condition.kind.to_string(),
            at: condition.last_transition.map(|at| cluster.local(at)),
            text: [condition.status.as_str(), &condition.reason, &condition.message]
                .into_iter()
                .filter(|part| !part.is_empty())
                .collect::<Vec<_>>()
                .join(" · "),
            tone: if condition.status == good { Tone::Plain } else { Tone::Marked },
        }
    }));
    rows
}

fn taints(node: &Node, cluster: &Cluster) -> Vec<DetailRow> {
    let title = (!node.taints.is_empty()).then(|| DetailRow::section("taints"));
    let mut rows: Vec<DetailRow> = title.into_iter().collect();
    rows.extend(node.taints.iter().map(|taint| {
        let value = if taint.value.is_empty() { String::new() } else { format!("={}", taint.value) };
        DetailRow::Fact {
            name: taint.effect.as_str().into(),
            at: taint.time_added.map(|at| cluster.local(at)),
            text: match TaintOwner::from_taint(taint) {
                Some(owner) => format!("{}{value} · {}: {}", taint.key, owner.name, owner.meaning),
                None => format!("{}{value}", taint.key),
            },
            tone: Tone::Plain,
        }
    }));
    rows
}

/// The pods of a node. Pods that need attention come first.
fn pods(node: &Node, cluster: &Cluster) -> Vec<DetailRow> {
    let mut pods: Vec<&Arc<Pod>> = cluster.pods_on(&node.name).collect();
    let is_well = |pod: &Pod| pod.termination.is_none() && (pod.is_ready() || pod.is_finished());
    pods.sort_by_key(|pod| (is_well(pod), pod.key.clone()));
    let note = match cluster.gaps_in([Scope::PodsOn(node.name.clone())]).unknown() {
        gaps if gaps.is_empty() => counted(pods.len(), "pod", "pods"),
        gaps => gaps.to_string(),
    };
    let row = |pod: &Arc<Pod>| DetailRow::Fact {
        name: match &pod.termination {
            Some(_) => "Terminating".into(),
            None if pod.is_ready() => "Ready".into(),
            None => pod.phase.as_str().into(),
        },
        at: Some(cluster.local(pod.created)),
        text: format!("{} · {}", pod.key, owner(pod)),
        tone: if is_well(pod) { Tone::Plain } else { Tone::Marked },
    };
    let title = DetailRow::Section { title: "pods", note };
    std::iter::once(title).chain(pods.into_iter().map(row)).collect()
}

fn properties(node: &Node, cluster: &Cluster, now: Timestamp) -> Vec<DetailRow> {
    let mut rows = vec![DetailRow::section("node")];
    rows.extend(node.drain_claim.as_ref().map(|claim| DetailRow::Fact {
        name: "drain".into(),
        at: Some(claim.renewed),
        text: claim.text(now),
        tone: if claim.is_fresh(now) { Tone::Plain } else { Tone::Marked },
    }));
    rows.extend([
        fact("zone", node.zone().to_string()),
        cordoned(node, cluster, now),
        fact("address", node.address.to_string()),
        fact("kubelet", node.kubelet_version.to_string()),
        fact("kernel", node.kernel_version.to_string()),
        DetailRow::Fact {
            name: "created".into(),
            at: Some(cluster.local(node.created)),
            text: format!("uid {}", node.uid),
            tone: Tone::Plain,
        },
    ]);
    rows
}

/// Whether a node is cordoned, with kordon's note about the cordon.
fn cordoned(node: &Node, cluster: &Cluster, now: Timestamp) -> DetailRow {
    let Some(note) = node.cordon() else {
        let Some(CordonOrigin { by, at, is_latest }) = CordonOrigin::find(cluster, node) else {
            return fact("cordoned", "no");
        };
        let text = by.map_or_else(|| "yes: no new pods".to_owned(), |by| format!("by {by}"));
        let at = at.filter(|_| !is_latest);
        return DetailRow::Fact { name: "cordoned".into(), at, text, tone: Tone::Plain };
    };
    DetailRow::Fact {
        name: "cordoned".into(),
        at: Some(note.at),
        text: match &note.operation {
            Some(operation) => format!("{} (operation {operation})", note.text(now)),
            None => note.text(now),
        },
        tone: if note.is_expired(now) { Tone::Marked } else { Tone::Plain },
    }
}

pub fn of_pod(pod: &Arc<Pod>, detail: &Detail, context: &DetailContext<'_>) -> Vec<DetailRow> {
    let DetailContext { model, now, .. } = *context;
    let cluster = &model.cluster;
    let mut rows = departure(pod, detail, model);
    rows.extend(chain(model.explain_pod(pod, &[], now)));
    rows.extend(detail.suggestion_rows(context));
    rows.extend(detail.timeline_rows(model));
    rows.push(DetailRow::section("pod"));
    rows.extend([
        fact("node", pod.node.as_ref().map_or("none yet", |node| node)),
        fact("owner", owner(pod)),
        fact(
            "phase",
            format!("{}, {}", pod.phase.as_str(), if pod.is_ready() { "ready" } else { "not ready" }),
        ),
        fact("grace", pod.grace.to_string()),
        fact("priority", pod.priority.to_string()),
        DetailRow::Fact {
            name: "created".into(),
            at: Some(cluster.local(pod.created)),
            text: format!("uid {}", pod.uid),
            tone: Tone::Plain,
        },
    ]);
    let gates: Vec<&str> = pod.unmet_gates().iter().map(|gate| gate.as_str()).collect();
    rows.extend((!gates.is_empty()).then(|| DetailRow::Fact {
        name: "unmet gates".into(),
        at: None,
        text: gates.join(", "),
        tone: Tone::Marked,
    }));
    rows.extend(budgets(pod, model));
    rows.extend(tolerations(pod));
    rows.extend(Detail::label_rows(&pod.labels));
    rows.extend(detail.annotation_rows());
    rows
}

/// Who removed the pod, with the evidence for and against; empty for a pod that stays.
fn departure(pod: &Pod, detail: &Detail, model: &Model) -> Vec<DetailRow> {
    let events = detail.events.events.as_deref().unwrap_or_default();
    let Some(entry) = model.departures.classify(pod, &model.cluster, events) else { return Vec::new() };
    let PodDeparture { kind, certainty, evidence } = entry.departure;
    let head = DetailRow::Fact {
        name: entry.stage.as_str().into(),
        at: entry.at,
        text: format!("{kind}, {}", certainty.as_str()),
        tone: Tone::Plain,
    };
    let mut rows = vec![DetailRow::section("departure"), head];
    rows.extend(evidence.into_iter().map(|evidence| {
        let (name, tone) = if evidence.agrees { ("because", Tone::Plain) } else { ("against", Tone::Marked) };
        DetailRow::Fact { name: name.into(), at: None, text: evidence.text, tone }
    }));
    rows
}

/// The controller that recreates a pod.
fn owner(pod: &Pod) -> String {
    match &pod.owner {
        _ if pod.mirror => "static pod of its node".into(),
        Some(owner) => format!("{} {}", owner.kind.as_str(), owner.name),
        None => "none: no controller recreates it".into(),
    }
}

/// The budgets of a pod.
fn budgets(pod: &Pod, model: &Model) -> Vec<DetailRow> {
    let row = |budget: &Arc<Budget>| match model.predictions.budgets().and_then(|list| list.get(&budget.key))
    {
        Some(row) => budget_row(row, row.refused.contains(&pod.key), String::new()),
        None => fact(&budget.key.to_string(), "working out"),
    };
    let mut rows = vec![DetailRow::section("budgets")];
    rows.extend(model.cluster.budgets_of(pod).map(row));
    if rows.len() == 1 {
        rows.push(fact("", "no PodDisruptionBudget"));
    }
    rows
}

/// The budgets that would hold up a drain of the node.
fn budgets_that_hold(node: &Node, model: &Model) -> Vec<DetailRow> {
    let is_here =
        |pod: &&Key| model.cluster.pod(pod).is_some_and(|pod| pod.node.as_ref() == Some(&node.name));
    let budgets = model.predictions.budgets().into_iter().flat_map(BudgetList::rows);
    let holding = budgets.filter(|row| row.blocks.contains(&node.name));
    let rows: Vec<DetailRow> = holding
        .map(|row| {
            let pods: Vec<&str> = row.refused.iter().filter(is_here).map(|pod| pod.name.as_str()).collect();
            budget_row(row, true, format!(" · refuses {}", pods.join(", ")))
        })
        .collect();
    let title = (!rows.is_empty()).then(|| DetailRow::section("budgets that hold it"));
    title.into_iter().chain(rows).collect()
}

fn budget_row(row: &BudgetRow, refuses: bool, more: String) -> DetailRow {
    DetailRow::Fact {
        name: row.key.to_string(),
        at: None,
        text: format!("{}{more}", row.room),
        tone: if refuses { Tone::Marked } else { Tone::Plain },
    }
}

fn tolerations(pod: &Pod) -> Vec<DetailRow> {
    let mut rows = vec![DetailRow::section("tolerations")];
    rows.extend(pod.tolerations.iter().map(|toleration| {
        let key = if toleration.key.is_empty() { "all taints" } else { &toleration.key };
        let value = match toleration.operator {
            TolerationOperator::Equal if !toleration.value.is_empty() => format!("={}", toleration.value),
            _ => String::new(),
        };
        let effect = toleration.effect.map_or(String::new(), |effect| format!(":{}", effect.as_str()));
        let span = match toleration.seconds {
            Some(seconds) => format!("for {seconds}s"),
            None => "forever".into(),
        };
        fact("", format!("{key}{value}{effect} {span}"))
    }));
    rows
}
