//! The table of `kordon plan`.

use std::fmt::Write as _;

use super::{
    super::{
        page::{Page, flexible, none, section, shown, whole},
        placement::{caveat, caveat_line, receiver},
    },
    report::{ArrivalReport, BudgetReport, PlanNodeReport, PlanPodReport, PlanReport, WindowReport},
};
use crate::{
    ordered::OrderedSet,
    plan::{PodCount, words},
    time::Span,
};

/// Renders the plan; control characters in text from the cluster are shown, not sent to the terminal.
pub fn render(report: &PlanReport, out: &mut Page) {
    summary(out, report);
    let unchanged = match report.action {
        "cordon" => "already cordoned",
        "uncordon" => "already schedulable",
        _ => "unchanged",
    };
    if report.action == "drain" {
        let nodes = report.nodes.iter().map(drain).collect();
        let columns = [
            whole("NODE"),
            whole("CHANGE"),
            whole("STARTS"),
            whole("ENDS"),
            whole("REMAINING"),
            flexible("BLOCKED BY"),
        ];
        section(out, columns, nodes);
    } else {
        let nodes =
            report.nodes.iter().map(|node| [node.name.to_string(), change(node, unchanged)]).collect();
        section(out, [whole("NODE"), flexible("CHANGE")], nodes);
    }
    let pods: Vec<_> = report.pods.iter().map(pod).collect();
    let columns = [
        whole("POD"),
        whole("NODE"),
        whole("LEAVES"),
        whole("DELETED"),
        flexible("LANDS ON"),
        whole("READY AGAIN"),
        flexible("VERDICT"),
        flexible("NOTES"),
    ];
    section(out, columns, pods);
    placements(out, report);
    let budgets: Vec<_> = report.budgets.iter().flatten().map(budget).collect();
    section(out, ["BUDGET", "NEEDS", "HEALTHY", "EXPECTED", "ALLOWED", "PODS", "AFTER"], budgets);
    // What is unknown stands above.
    let warnings = report.warnings.iter().filter(|warning| warning.r#type != "unknown");
    let warnings: Vec<_> = warnings.map(|warning| [warning.text.clone()]).collect();
    section(out, ["WARNING"], warnings);
    let not_modelled = report.not_modelled.iter().map(|found| [found.text.clone(), found.pods.to_string()]);
    section(out, [flexible("NOT MODELLED"), whole("PODS")], not_modelled.collect());
    answers(out, report);
    tail(out, report);
}

fn summary(out: &mut Page, report: &PlanReport) {
    let totals = &report.totals;
    let names: Vec<&str> = report.nodes.iter().map(|node| &*node.name).collect();
    let targets = if names.is_empty() { format!("{} pods", totals.pods) } else { names.join(", ") };
    let likely = if report.definite || report.outcome == "unknown" { "" } else { "likely " };
    let ends = match totals.not_before_seconds {
        Some(seconds) => format!(", {}", words::not_before(Span::from_secs_f64(seconds))),
        None => format!(" {}", ends(&totals.ends)),
    };
    let ends = match report.required_flags.as_slice() {
        [] => ends,
        flags => format!(" without {}; otherwise{ends}", flags.join(" ")),
    };
    let _ = writeln!(out, "{} {}: {likely}{}{ends}", report.action, shown(&targets), report.outcome);
    for gap in &report.unknown {
        let _ = writeln!(out, "{}", shown(&gap.text));
    }
    if let Some(command) = &report.command {
        let _ = writeln!(out, "kubectl equivalent: {}", shown(command));
    }
    let counts = [
        (PodCount::LeaveNow, totals.leave_now),
        (PodCount::LeaveLater, totals.leave_later),
        (PodCount::AlreadyTerminating, totals.already_terminating),
        (PodCount::Stay, totals.stay),
        (PodCount::Wait, totals.wait),
        (PodCount::Blocked, totals.blocked),
        (PodCount::Undecided, totals.undecided),
        (PodCount::Refused, totals.refused_pods),
        (PodCount::Lost, totals.lost),
        (PodCount::DataLost, totals.data_lost),
        (PodCount::Pending, totals.pending.unwrap_or(0)),
        (PodCount::Preempted, totals.preempted.unwrap_or(0)),
    ];
    let counted: Vec<String> = counts
        .iter()
        .filter(|(_, number)| *number > 0)
        .map(|(pods, number)| format!("{number} {}", pods.words()))
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

/// The server's answers to the writes, if it was asked.
fn answers(out: &mut Page, report: &PlanReport) {
    let answered = report.steps.iter().filter_map(|step| {
        let as_planned = match step.as_planned {
            Some(true) => "as planned",
            Some(false) => "not as planned",
            None => "not comparable",
        };
        let text = step
            .dry_run_message
            .clone()
            .filter(|_| step.dry_run_result != Some("allowed"))
            .unwrap_or_else(none);
        Some([step.text.clone(), step.dry_run_result?.to_owned(), as_planned.to_owned(), text])
    });
    section(
        out,
        [whole("DRY RUN"), whole("ANSWER"), whole("COMPARED"), flexible("MESSAGE")],
        answered.collect(),
    );
}

fn tail(out: &mut Page, report: &PlanReport) {
    if report.steps.is_empty() {
        let _ = writeln!(out, "\nNothing would be written.");
    } else {
        let requests = words::counted(report.steps.len(), "API request", "API requests");
        let _ = writeln!(out, "\nWould send {requests}, listed by -o json. Nothing was written.");
    }
}

fn ends(window: &WindowReport) -> String {
    words::ends(
        window.likely_seconds.map(Span::from_secs_f64),
        window.latest_seconds.map(Span::from_secs_f64),
    )
}

/// A node's change; `unchanged` says why there is none.
fn change(node: &PlanNodeReport, unchanged: &str) -> String {
    match (&node.text, node.change) {
        (Some(text), _) => format!("refused: {text}"),
        (None, "taints" | "labels") => format!("{} -> {}", list(&node.before), list(&node.after)),
        (None, "none") => unchanged.into(),
        (None, change) => change.into(),
    }
}

fn drain(node: &PlanNodeReport) -> [String; 6] {
    let drain = node.drain.as_ref();
    [
        node.name.to_string(),
        change(node, "already cordoned"),
        drain.map_or(none(), |drain| {
            let note = if drain.after_blocked_node { " (after a blocked node)" } else { "" };
            format!("{}{note}", span(drain.starts_in_seconds))
        }),
        drain.map_or(none(), |drain| match drain.remaining {
            _ if drain.refused => "refused".into(),
            Some(_) => moment(drain.ends.likely_seconds),
            None => "unknown".into(),
        }),
        drain.map_or(none(), |drain| drain.remaining.map_or("unknown".into(), |pods| pods.to_string())),
        drain.and_then(|drain| drain.blocked_by.clone()).unwrap_or_else(none),
    ]
}

fn pod(pod: &PlanPodReport) -> [String; 8] {
    let leaves = pod.leaves.likely_seconds.is_some() || pod.deleted.likely_seconds.is_some();
    let mut notes: Vec<&str> =
        pod.lost_reason.map(|_| "lost").into_iter().chain(pod.warnings.iter().copied()).collect();
    if pod.times_out_in_seconds.is_some() {
        notes.insert(0, "times out");
    }
    [
        format!("{}/{}", pod.namespace, pod.pod),
        pod.node.as_deref().map_or(none(), str::to_owned),
        pod.leaves.likely_seconds.map_or(none(), span),
        if leaves { moment(pod.deleted.likely_seconds) } else { none() },
        lands_on(pod),
        pod.ready_again_in_seconds.map_or(none(), |seconds| format!("~{}", span(seconds))),
        pod.text.clone(),
        if notes.is_empty() { none() } else { notes.join(", ") },
    ]
}

fn lands_on(pod: &PlanPodReport) -> String {
    match (pod.landing, &pod.landing_node, &pod.landing_reason) {
        (Some("node"), Some(node), Some(reason)) => format!("{node} ({reason})"),
        (Some("pending"), ..) => "Pending".into(),
        (Some(_), ..) => "not predicted".into(),
        (None, ..) => none(),
    }
}

/// Pods that stay Pending and how to place them, preempted pods, and the load of the nodes that receive pods.
fn placements(out: &mut Page, report: &PlanReport) {
    let (mut pending, mut preempted, mut caveats) = (Vec::new(), Vec::new(), OrderedSet::new());
    for pod in &report.pods {
        let Some(placement) = &pod.placement else { continue };
        let name = format!("{}/{}", pod.namespace, pod.pod);
        if pod.landing == Some("pending") {
            pending.push([name.clone(), pod.landing_reason.clone().unwrap_or_else(none)]);
            pending.extend(placement.help.iter().map(|help| [String::new(), format!("to place it: {help}")]));
        }
        preempted.extend(placement.preempts.iter().map(|victim| [victim.text.clone(), name.clone()]));
        caveats.extend(placement.caveats.iter().map(|word| caveat(word)));
        caveats.extend(placement.obstacle.clone());
    }
    section(out, [whole("STAYS PENDING"), flexible("WHY")], pending);
    section(out, ["PREEMPTED", "BY THE REPLACEMENT OF"], preempted);
    let arrival =
        |arrival: &ArrivalReport| [format!("{}/{}", arrival.namespace, arrival.pod), arrival.text.clone()];
    section(
        out,
        [whole("PENDING POD"), flexible("LANDS ON")],
        report.arrivals.iter().flatten().map(arrival).collect(),
    );
    let receivers = report.receivers.iter().flatten().map(receiver).collect();
    section(out, ["RECEIVING NODE", "PODS", "CPU", "MEMORY"], receivers);
    caveat_line(caveats, out);
}

fn budget(budget: &BudgetReport) -> [String; 7] {
    [
        format!("{}/{}", budget.namespace, budget.name),
        budget.before.desired_healthy.to_string(),
        budget.before.current_healthy.to_string(),
        budget.before.expected_pods.to_string(),
        budget.before.disruptions_allowed.to_string(),
        budget.pods.to_string(),
        format!("{} healthy, {} allowed", budget.after.current_healthy, budget.after.disruptions_allowed),
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
