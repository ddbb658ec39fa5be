//! The rows of a plan.
//!
//! ```text
//! │ pods
//! │       –  shop/proxy-k9x     refused  DaemonSet-managed (--ignore-daemonsets)
//! │          shop/web-7d4b9     2 pods   1 leave now, 1 leave later → n-4 ×2
//! │     now    shop/web-7d4b9-1 leaves   shop/web allows 1 disruption
//! │     ~9s    shop/web-7d4b9-2 later    leaves after shop/web regains 1 healthy pod, behind shop/web-7d4b9-1
//! ```

use super::{after, landing, pod_name, since_made, summary::fates};
use crate::{
    app::preview::{PlanRow, PlanView, call},
    ui::{
        Scene,
        panes::event_row::{self, EventRow},
        text,
        theme::Role,
        widgets::Cell,
    },
};
use kordon_core::plan::{
    BudgetPlan, Landing, NodeChange, NodePlan, NotModelled, PlannedWorkload, PodPlan, Verdict, words,
};
use kordon_time::Timestamp;

/// Cells of a row. In a row with fewer cells than columns, the last cell extends to the edge.
pub fn cells(scene: &Scene, view: &PlanView, row: PlanRow) -> Vec<Cell> {
    let plan = &view.plan;
    let base = scene.style(Role::Base);
    let line = |text: &str, role| {
        vec![Cell::new("  ", scene.style(role)).and(&text::brief(text), scene.style(role))]
    };
    match row {
        PlanRow::Warning(place) => line(&format!("▲ {}", plan.warnings[place]), Role::LevelWarning),
        PlanRow::Surge(place) => {
            let surge = &plan.surges[place];
            let role = if surge.surge().is_some() { Role::Base } else { Role::LevelWarning };
            line(&surge.line(plan.made), role)
        }
        PlanRow::Node(place) => node(scene, &plan.nodes[place], plan.made).cells(),
        PlanRow::Workload(place) => workload(scene, &view.workloads[place]).cells(),
        PlanRow::Pod(place) => {
            let row = pod(scene, &plan.pods[place], plan.made);
            let indent = if view.is_grouped(place) { "  " } else { "" };
            EventRow { subject: Cell::new(indent, base).join(row.subject), ..row }.cells()
        }
        PlanRow::Help(pod, place) => {
            let pod = &plan.pods[pod];
            landing::help(scene, &pod.pod, &pod.help(), place).cells()
        }
        PlanRow::Arrival(place) => landing::arrival(scene, &plan.arrivals[place]).cells(),
        PlanRow::Receiver(place) => landing::receiver(scene, &plan.receivers[place]).cells(),
        PlanRow::Budget(place) => budget(scene, &plan.budgets[place]).cells(),
        PlanRow::Moment(place) => landing::moment(scene, &plan.timeline[place], plan.made).cells(),
        PlanRow::Kubectl => {
            vec![Cell::new("  ", base).and(plan.command.as_deref().unwrap_or_default(), base)]
        }
        PlanRow::Kordon => {
            let command = Cell::new("  ", base).and(&plan.action.kordon(), base);
            vec![command.and("  prints this plan; --enforce applies it", scene.style(Role::Dim))]
        }
        PlanRow::Call(place) => {
            let call = plan.steps[place].call();
            let (dim, body) = (scene.style(Role::Dim), format!(" {}", call.body));
            vec![Cell::new(&format!("  {}", call.method), dim), Cell::new(&call.path, base).and(&body, dim)]
        }
        PlanRow::Assumption(place) => line(plan.assumptions[place], Role::Dim),
        PlanRow::NotModelled(place) => {
            let NotModelled { what, pods } = plan.not_modelled[place];
            line(&format!("{what} · {}", words::counted(pods, "pod", "pods")), Role::Dim)
        }
    }
}

fn node(scene: &Scene, node: &NodePlan, made: Timestamp) -> EventRow {
    let subject = Cell::new(&node.node, scene.style(Role::Strong));
    let Some(drain) = &node.drain else {
        let (word, role) = match &node.change {
            NodeChange::Refused { .. } => ("refused", Role::NodeWarning),
            NodeChange::Unchanged { .. } => ("unchanged", Role::Dim),
            NodeChange::Deletion => ("deleted", Role::NodeWarning),
            NodeChange::Cordon
            | NodeChange::Uncordon
            | NodeChange::Taints { .. }
            | NodeChange::Metadata { .. } => ("changes", Role::Base),
        };
        let words = node.change.text();
        let words = words.strip_prefix("refused: ").unwrap_or(&words);
        let (state, text) =
            (Cell::new(word, scene.style(role)), Cell::new(&text::brief(words), scene.style(Role::Base)));
        return EventRow { subject, state, text, ..EventRow::default() };
    };
    let (word, role) = match (drain.refused, drain.ends.likely, drain.remaining) {
        (true, ..) => ("refused", Role::NodeWarning),
        (false, _, None) => ("unknown", Role::NodeNotice),
        (false, Some(_), Some(_)) => ("empties", Role::NodeReady),
        (false, None, Some(_)) => ("blocked", Role::LevelError),
    };
    let ends = drain.ends.likely.map_or("never".into(), |at| format!("~{}", after(at, made)));
    let mut words = match drain.remaining {
        _ if drain.refused => drain.refusals.first().cloned().unwrap_or_default(),
        Some(remaining) => {
            format!("empty: {ends}; {}", words::counted(remaining, "pod stays", "pods stay"))
        }
        None => "when it is empty is unknown".into(),
    };
    if let Some(budget) = &drain.dominated_by {
        words += &format!("; blocked by {budget}");
    }
    EventRow {
        when: since_made(scene, Some(drain.starts), made, ""),
        subject,
        state: Cell::new(word, scene.style(role)),
        text: Cell::new(&words, scene.style(Role::Base)),
    }
}

/// A workload: `shop/web-7d4b9   4 pods   3 leave now, 1 blocked → n-4 ×2, n-2 · only replica`.
fn workload(scene: &Scene, workload: &PlannedWorkload) -> EventRow {
    let dim = scene.style(Role::Dim);
    let name = Cell::new(&workload.namespace, dim)
        .and("/", scene.style(Role::Faint))
        .and(&workload.owner.1, scene.style(Role::Strong));
    let mut text = fates(scene, &workload.parts);
    let (destinations, risks) = (workload.destinations(), workload.risks());
    if !destinations.is_empty() {
        text = text.and(" → ", dim).and(&destinations, scene.style(Role::Base));
    }
    if !risks.is_empty() {
        text = text.and(" · ", scene.style(Role::Faint)).and(&risks, scene.style(Role::NodeNotice));
    }
    let state = Cell::new(&words::counted(workload.pods.len(), "pod", "pods"), scene.style(Role::Strong));
    EventRow { subject: name, state, text, ..EventRow::default() }
}

fn pod(scene: &Scene, pod: &PodPlan, made: Timestamp) -> EventRow {
    let stays = matches!(
        pod.verdict,
        Verdict::Skipped(_) | Verdict::Tolerates | Verdict::DeletionCancelled | Verdict::Terminating
    );
    let dim = scene.style(Role::Dim);
    let when = if stays || matches!(pod.verdict, Verdict::Refused { .. }) {
        event_row::when("–", dim)
    } else if matches!(pod.verdict, Verdict::Undecided { .. }) {
        event_row::when("?", dim)
    } else {
        since_made(scene, pod.leaves.likely, made, "never")
    };
    let because = pod.verdict.details();
    let losses = losses(pod);
    let mut text = losses.iter().fold(Cell::default(), |text, loss| {
        text.and(loss, scene.style(Role::NodeNotice)).and(" · ", scene.style(Role::Faint))
    });
    text = text.and(&text::brief(&because), if stays { dim } else { scene.style(Role::Base) });
    if let Some(Landing::Node { node, .. }) = &pod.landing {
        text = text.and(" → ", dim).and(node, dim);
    }
    if let Some(outcome) = &pod.if_it_leaves {
        text = text.and(" · ", dim).and(&words::if_it_leaves(&outcome.short()), dim);
    }
    for note in pod.notes().into_iter().filter(|note| !losses.contains(&note.as_str())) {
        text = text.and(" · ", scene.style(Role::Faint)).and(&note, scene.style(Role::NodeNotice));
    }
    let state = Cell::new(pod.verdict.column(), scene.style(verdict_role(&pod.verdict)));
    EventRow { when, subject: pod_name(scene, &pod.pod), state, text }
}

/// What is lost if the pod leaves, in few words. They come first, because a narrow row cuts its end.
fn losses(pod: &PodPlan) -> Vec<&'static str> {
    if !pod.verdict.as_if_granted().may_leave() {
        return Vec::new();
    }
    let data = pod.warnings.iter().any(|warning| warning.loses_data()).then_some("loses data");
    pod.lost.map(|why| why.risk()).into_iter().chain(data).collect()
}

const fn verdict_role(verdict: &Verdict) -> Role {
    match verdict {
        Verdict::Skipped(_) | Verdict::Tolerates | Verdict::DeletionCancelled => Role::Dim,
        Verdict::Refused { .. } => Role::NodeWarning,
        Verdict::Terminating => Role::EvictionTerminating,
        Verdict::Leaves(_) => Role::NodeReady,
        Verdict::LeavesAfter { .. }
        | Verdict::Waits { .. }
        | Verdict::WaitsForOperator { .. }
        | Verdict::WaitsForController { .. }
        | Verdict::WaitsForNamespace
        | Verdict::WaitsForFinalizer { .. } => Role::CountdownSoon,
        Verdict::Blocked { .. } | Verdict::TwoBudgets { .. } => Role::LevelError,
        Verdict::Unknown { .. } | Verdict::Undecided { .. } => Role::NodeNotice,
        Verdict::Deleted { .. } | Verdict::Orphaned => Role::TaintNoExecute,
    }
}

fn budget(scene: &Scene, budget: &BudgetPlan) -> EventRow {
    let (before, after) = (budget.before.numbers, budget.after.numbers);
    let role = if before.allowed > 0 { Role::NodeReady } else { Role::LevelError };
    let words = format!(
        "{before}; its pods here: {}; after: {} healthy, allows {}",
        budget.pods, after.healthy, after.allowed
    );
    EventRow {
        subject: pod_name(scene, &budget.budget),
        state: Cell::new(&format!("allows {}", before.allowed), scene.style(role)),
        text: Cell::new(&words, scene.style(Role::Base)),
        ..EventRow::default()
    }
}

/// Full text of the selected row, for a pod with further facts; `None` if the list already shows the whole text.
pub fn full_text(view: &PlanView, row: PlanRow) -> Option<String> {
    let plan = &view.plan;
    match row {
        PlanRow::Workload(place) => {
            let workload = view.workloads.get(place)?;
            let (kind, name) = &workload.owner;
            let risks = workload.risks();
            let parts = [format!("{} {}/{name}", kind.as_str(), workload.namespace), risks];
            Some(parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · "))
        }
        PlanRow::Pod(place) => Some(full_pod(plan.pods.get(place)?, plan.made)),
        PlanRow::Help(pod, place) => plan.pods.get(pod)?.help().get(place).cloned(),
        PlanRow::Moment(place) => {
            let (subject, word, rest) = plan.timeline.get(place)?.event.columns();
            Some(format!("{subject} {word} {rest}"))
        }
        PlanRow::Warning(place) => plan.warnings.get(place).map(ToString::to_string),
        PlanRow::Surge(place) => plan.surges.get(place).map(|surge| surge.line(plan.made)),
        PlanRow::Node(place) => {
            let node = plan.nodes.get(place)?;
            let refusals = node.drain.as_ref().map_or(String::new(), |drain| drain.refusals.join("; "));
            Some(format!("{} {} {refusals}", node.node, node.change.text()))
        }
        PlanRow::Call(place) => plan.steps.get(place).map(call),
        PlanRow::Kubectl => plan.command.clone(),
        PlanRow::Kordon => Some(plan.action.kordon()),
        PlanRow::Arrival(_) | PlanRow::Receiver(_) | PlanRow::Budget(_) | PlanRow::Assumption(_) => None,
        PlanRow::NotModelled(place) => Some(plan.not_modelled.get(place)?.what.to_string()),
    }
}

fn full_pod(pod: &PodPlan, made: Timestamp) -> String {
    let mut parts = vec![pod.verdict.to_string()];
    if let Some(gone) = pod.gone.likely.filter(|_| pod.leaves.likely.is_some()) {
        let latest =
            pod.gone.latest.map_or(String::new(), |at| format!(" (at the latest {})", after(at, made)));
        parts.push(format!("gone ~{}{latest}", after(gone, made)));
    }
    if let Some(Landing::Node { node, why }) = &pod.landing {
        parts.push(format!("replacement lands on {node} ({why})"));
    }
    if let Some(outcome) = &pod.if_it_leaves {
        parts.push(words::if_it_leaves(&outcome.to_string()));
    }
    if let Some(ready) = pod.ready_again {
        parts.push(format!("Ready again ~{}", after(ready, made)));
    }
    parts.extend(pod.notes());
    if let Some(node) = &pod.node {
        parts.push(format!("on {node}"));
    }
    parts.join(" · ")
}
