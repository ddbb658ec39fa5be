//! A plan as aligned text.

use std::{collections::BTreeSet, fmt::Write as _};

use super::{
    super::{
        columns::{none, section, shown},
        placement::{caveat, receiver},
    },
    report::{ArrivalReport, BudgetReport, PlanNodeReport, PlanPodReport, PlanReport, WindowReport},
};
use crate::{
    plan::{COUNTED, words},
    time::Span,
};

/// Renders the whole plan; text from the cluster is shown, not obeyed.
pub fn render(report: &PlanReport) -> String {
    let mut out = String::new();
    head(&mut out, report);
    if report.action == "drain" {
        let nodes = report.nodes.iter().map(drained_node).collect();
        section(&mut out, ["NODE", "CHANGE", "STARTS", "ENDS", "LEFT ON IT", "HELD UP BY"], nodes);
    } else {
        let nodes = report.nodes.iter().map(|node| [node.name.to_string(), change(node)]).collect();
        section(&mut out, ["NODE", "CHANGE"], nodes);
    }
    let pods: Vec<_> = report.pods.iter().map(pod).collect();
    section(&mut out, ["POD", "NODE", "LEAVES", "GONE", "LANDS ON", "READY AGAIN", "VERDICT", "MIND"], pods);
    placements(&mut out, report);
    let budgets: Vec<_> = report.budgets.iter().map(budget).collect();
    section(&mut out, ["BUDGET", "NEEDS", "HAS", "OF", "ALLOWS", "PODS HERE", "IN THE END"], budgets);
    let warnings: Vec<_> = report.warnings.iter().map(|warning| [warning.text.clone()]).collect();
    section(&mut out, ["WARNING"], warnings);
    answers(&mut out, report);
    tail(&mut out, report);
    out
}

fn head(out: &mut String, report: &PlanReport) {
    let totals = &report.totals;
    let names: Vec<&str> = report.nodes.iter().map(|node| &*node.name).collect();
    let of = if names.is_empty() { format!("{} pods", totals.pods) } else { names.join(", ") };
    let _ = writeln!(out, "{} {}: {} {}", report.action, shown(&of), report.outcome, ends(&totals.ends));
    if let Some(command) = &report.command {
        let _ = writeln!(out, "as by: {}", shown(command));
    }
    if !report.needs.is_empty() {
        let _ = writeln!(out, "needs: {}", report.needs.join(" "));
    }
    let counts = [
        totals.leave_now,
        totals.leave_later,
        totals.leaving_already,
        totals.stay,
        totals.wait,
        totals.blocked,
        totals.refused_pods,
        totals.lost,
        totals.data_lost,
        totals.pending,
        totals.displaced,
    ];
    let counted: Vec<String> = counts
        .iter()
        .zip(COUNTED)
        .filter(|(count, _)| **count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    if totals.pods > 0 {
        let _ = writeln!(out, "{} pods: {}", totals.pods, counted.join(", "));
    }
    for refusal in
        report.nodes.iter().filter_map(|node| node.drain.as_ref()).flat_map(|drain| &drain.refusals)
    {
        let _ = writeln!(out, "{}", shown(refusal));
    }
}

/// What the server answered to each write, where it was asked.
fn answers(out: &mut String, report: &PlanReport) {
    let answered = report.steps.iter().filter_map(|step| {
        let as_planned = match step.as_planned {
            Some(true) => "as planned",
            Some(false) => "not as planned",
            None => "says nothing of the plan",
        };
        let text = step.answer_text.clone().filter(|_| step.answer != Some("allowed")).unwrap_or_else(none);
        Some([step.text.clone(), step.answer?.to_owned(), as_planned.to_owned(), text])
    });
    section(out, ["AS A DRY RUN", "THE SERVER SAYS", "THE PLAN", "IN ITS WORDS"], answered.collect());
}

fn tail(out: &mut String, report: &PlanReport) {
    if report.steps.is_empty() {
        out.push_str("\nNothing would be written.\n");
    } else {
        let calls = if report.steps.len() == 1 { "call" } else { "calls" };
        let _ =
            writeln!(out, "\n{} API {calls} would be made, told by -o json; none was.", report.steps.len());
    }
}

fn ends(window: &WindowReport) -> String {
    words::ends(
        window.likely_seconds.map(Span::from_secs_f64),
        window.latest_seconds.map(Span::from_secs_f64),
    )
}

fn change(node: &PlanNodeReport) -> String {
    match (&node.text, node.change) {
        (Some(text), _) => format!("refused: {text}"),
        (None, "taints" | "labels") => format!("{} -> {}", list(&node.before), list(&node.after)),
        (None, "none") => "is so already".into(),
        (None, change) => change.into(),
    }
}

fn drained_node(node: &PlanNodeReport) -> [String; 6] {
    let drain = node.drain.as_ref();
    [
        node.name.to_string(),
        change(node),
        drain.map_or(none(), |drain| {
            let regardless = if drain.regardless { " (regardless)" } else { "" };
            format!("{}{regardless}", span(drain.starts_in_seconds))
        }),
        drain.map_or(none(), |drain| {
            if drain.refused { "refused".into() } else { moment(drain.ends.likely_seconds) }
        }),
        drain.map_or(none(), |drain| drain.remaining.to_string()),
        drain.and_then(|drain| drain.dominated_by.clone()).unwrap_or_else(none),
    ]
}

fn pod(pod: &PlanPodReport) -> [String; 8] {
    let goes = pod.leaves.likely_seconds.is_some() || pod.gone.likely_seconds.is_some();
    let mut mind: Vec<&str> =
        pod.lost.map(|_| "lost for good").into_iter().chain(pod.warnings.iter().copied()).collect();
    if pod.times_out_in_seconds.is_some() {
        mind.insert(0, "times out");
    }
    [
        format!("{}/{}", pod.namespace, pod.pod),
        pod.node.as_deref().map_or(none(), str::to_owned),
        pod.leaves.likely_seconds.map_or(none(), span),
        if goes { moment(pod.gone.likely_seconds) } else { none() },
        lands_on(pod),
        pod.ready_again_in_seconds.map_or(none(), |seconds| format!("~{}", span(seconds))),
        pod.text.clone(),
        if mind.is_empty() { none() } else { mind.join(", ") },
    ]
}

fn lands_on(pod: &PlanPodReport) -> String {
    match (pod.landing, &pod.landing_node, &pod.landing_why) {
        (Some("node"), Some(node), Some(why)) => format!("{node} ({why})"),
        (Some("nowhere"), ..) => "nowhere: Pending".into(),
        (Some(landing), ..) => landing.into(),
        (None, ..) => none(),
    }
}

/// Who stays Pending and what would help, who is displaced, what the nodes that receive pods have to bear.
fn placements(out: &mut String, report: &PlanReport) {
    let (mut pending, mut displaced, mut not_modelled) = (Vec::new(), Vec::new(), BTreeSet::new());
    for pod in &report.pods {
        let Some(placement) = &pod.placement else { continue };
        let name = format!("{}/{}", pod.namespace, pod.pod);
        if pod.landing == Some("nowhere") {
            pending.push([name.clone(), pod.landing_why.clone().unwrap_or_else(none)]);
            pending.extend(placement.help.iter().map(|help| [String::new(), format!("help: {help}")]));
        }
        displaced.extend(placement.displaces.iter().map(|victim| [victim.text.clone(), name.clone()]));
        not_modelled.extend(placement.not_modelled.iter().map(|what| caveat(what)));
        not_modelled.extend(placement.obstacle.clone());
    }
    section(out, ["STAYS PENDING", "WHY"], pending);
    section(out, ["DISPLACED", "BY THE REPLACEMENT OF"], displaced);
    let arrives =
        |arrival: &ArrivalReport| [format!("{}/{}", arrival.namespace, arrival.pod), arrival.text.clone()];
    section(out, ["LANDS FROM PENDING", "ON"], report.arrivals.iter().map(arrives).collect());
    let receivers = report.receivers.iter().map(receiver).collect();
    section(out, ["RECEIVES", "PODS", "CPU", "MEMORY"], receivers);
    if !not_modelled.is_empty() {
        let told: Vec<String> = not_modelled.into_iter().collect();
        let _ = writeln!(out, "\nplacement holds but for: {}", shown(&told.join("; ")));
    }
}

fn budget(budget: &BudgetReport) -> [String; 7] {
    [
        format!("{}/{}", budget.namespace, budget.name),
        budget.before.desired.to_string(),
        budget.before.healthy.to_string(),
        budget.before.expected.to_string(),
        budget.before.allowed.to_string(),
        budget.pods.to_string(),
        format!("has {}, allows {}", budget.after.healthy, budget.after.allowed),
    ]
}

fn moment(seconds: Option<f64>) -> String {
    seconds.map_or("never".into(), |seconds| format!("~{}", span(seconds)))
}

fn span(seconds: f64) -> String {
    Span::from_secs_f64(seconds).to_string()
}

fn list(all: &[String]) -> String {
    if all.is_empty() { "(none)".into() } else { all.join(",") }
}
