//! The table of `kordon plan`.

use std::{collections::BTreeSet, fmt::Write as _};

use super::{
    super::{
        page::{Page, none, shown},
        placement::{caveat, caveat_line, receivers},
        table::PageTable,
    },
    report::{DrainReport, PlanNodeReport, PlanPodReport, PlanReport, SurgeReport, WindowReport},
};
use kordon_core::plan::{PodCount, PodWarning, words};
use kordon_time::Span;

/// Renders the plan. Control characters in text from the cluster are made visible.
pub fn render(report: &PlanReport, out: &mut Page) {
    summary(out, report);
    nodes(out, report);
    pods(out, report);
    placements(out, report);
    budgets(out, report);
    surges(out, &report.surges);
    // The summary already prints the warnings about unknown objects.
    let warnings = report.warnings.iter().filter(|warning| warning.r#type != "unknown");
    PageTable::new(&warnings.collect::<Vec<_>>()).key("WARNING", |warning| warning.text.clone()).print(out);
    PageTable::new(&report.not_modelled)
        .key("NOT MODELLED", |found| format!("{}: {}", words::counted(found.pods, "pod", "pods"), found.text))
        .print(out);
    answers(out, report);
    tail(out, report);
}

fn nodes(out: &mut Page, report: &PlanReport) {
    if report.action != "drain" {
        return PageTable::new(&report.nodes)
            .key("NODE", |node| node.name.to_string())
            .essential("CHANGE", change)
            .flexible()
            .print(out);
    }
    PageTable::new(&report.nodes)
        .key("NODE", |node| node.name.to_string())
        .useful("CHANGE", change)
        .detail("STARTS", |node| node.drain.as_ref().map_or_else(none, starts))
        .essential("ENDS", |node| node.drain.as_ref().map_or_else(none, drain_ends))
        .essential("REMAINING", |node| {
            let remaining = |pods: Option<usize>| pods.map_or("unknown".into(), |pods| pods.to_string());
            node.drain.as_ref().map_or_else(none, |drain| remaining(drain.remaining))
        })
        .right()
        .essential("BLOCKED BY", |node| {
            node.drain.as_ref().and_then(|drain| drain.blocked_by.clone()).unwrap_or_else(none)
        })
        .flexible()
        .print(out);
}

fn pods(out: &mut Page, report: &PlanReport) {
    PageTable::new(&report.pods)
        .folded()
        .key("POD", |pod| format!("{}/{}", pod.namespace, pod.pod))
        .useful("NODE", |pod| pod.node.as_deref().map_or(none(), str::to_owned))
        .useful("LEAVES", |pod| pod.leaves.likely_seconds.map_or(none(), span))
        .detail("DELETED", |pod| {
            let leaves = pod.leaves.likely_seconds.is_some() || pod.deleted.likely_seconds.is_some();
            if leaves { moment(pod.deleted.likely_seconds) } else { none() }
        })
        .useful("READY AGAIN", |pod| {
            pod.ready_again_in_seconds.map_or(none(), |seconds| format!("~{}", span(seconds)))
        })
        .essential("LANDS ON", lands_on)
        .flexible()
        .essential("VERDICT", |pod| pod.text.clone())
        .flexible()
        .detail("NOTES", notes)
        .flexible()
        .print(out);
}

fn summary(out: &mut Page, report: &PlanReport) {
    if report.nodes.is_empty() && report.pods.is_empty() {
        let _ = writeln!(out, "{}", words::NO_RESOURCES);
        return;
    }
    let totals = &report.totals;
    let names: Vec<&str> = report.nodes.iter().map(|node| &*node.name).collect();
    let pods = words::counted(totals.pods, "pod", "pods");
    let targets = if names.is_empty() { pods.clone() } else { names.join(", ") };
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
        out.gap(&gap.text);
    }
    if let Some(command) = &report.command {
        let _ = writeln!(out, "kubectl equivalent: {}", shown(command));
        for difference in &report.command_differences {
            let _ = writeln!(out, "  but {}", shown(difference));
        }
    }
    let counted = |counts: &[(PodCount, usize)]| {
        let counts = counts.iter().filter(|(_, number)| *number > 0);
        counts.map(|(count, number)| format!("{number} {}", count.words())).collect::<Vec<_>>().join(", ")
    };
    if totals.pods > 0 {
        // Refused pods count among the consequences as if they left.
        let granted = match report.required_flags.as_slice() {
            [] => String::new(),
            flags => format!("with {}: ", flags.join(" ")),
        };
        let consequences = counted(&totals.consequences);
        let consequences =
            if consequences.is_empty() { consequences } else { format!("; {granted}{consequences}") };
        let _ = writeln!(out, "{pods}: {}{consequences}", counted(&totals.parts));
    }
    for refusal in
        report.nodes.iter().filter_map(|node| node.drain.as_ref()).flat_map(|drain| &drain.refusals)
    {
        let _ = writeln!(out, "{}", shown(refusal));
    }
}

/// The server's answer to the dry run of one write.
struct Answer {
    step: String,
    result: &'static str,
    compared: &'static str,
    message: String,
}

/// Prints the server's answers to the dry runs of the writes, if there are any.
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
        Some(Answer {
            step: step.text.clone(),
            result: step.dry_run_result?,
            compared: as_planned,
            message: text,
        })
    });
    PageTable::new(&answered.collect::<Vec<_>>())
        .key("DRY RUN", |answer| answer.step.clone())
        .essential("ANSWER", |answer| answer.result)
        .useful("COMPARED", |answer| answer.compared)
        .essential("MESSAGE", |answer| answer.message.clone())
        .flexible()
        .print(out);
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

/// Text for the change of a node, as in `unchanged: already cordoned`.
fn change(node: &PlanNodeReport) -> String {
    match (node.change, &node.text) {
        ("taints", _) => format!("{} -> {}", list(&node.before), list(&node.after)),
        // A node has many labels and annotations, so only those that change are shown.
        ("labels" | "annotations", _) => node.write.clone(),
        (change, Some(text)) => format!("{change}: {text}"),
        (change, None) => change.into(),
    }
}

fn starts(drain: &DrainReport) -> String {
    let note = if drain.after_blocked_node { " (after a blocked node)" } else { "" };
    format!("{}{note}", span(drain.starts_in_seconds))
}

fn drain_ends(drain: &DrainReport) -> String {
    match drain.remaining {
        _ if drain.refused => "refused".into(),
        Some(_) => moment(drain.ends.likely_seconds),
        None => "unknown".into(),
    }
}

fn notes(pod: &PlanPodReport) -> String {
    let warnings = pod.warning_notes.iter().map(String::as_str);
    let mut notes: Vec<&str> = pod.lost_note.into_iter().chain(warnings).collect();
    if pod.times_out_in_seconds.is_some() {
        notes.insert(0, "times out");
    }
    if notes.is_empty() { none() } else { notes.join(", ") }
}

fn lands_on(pod: &PlanPodReport) -> String {
    if let Some(outcome) = &pod.if_it_leaves {
        return words::if_it_leaves(&outcome.outcome_text);
    }
    match (pod.landing, &pod.landing_node, &pod.landing_reason) {
        (Some("node"), Some(node), Some(reason)) => {
            let is_assumed = pod.warnings.contains(&PodWarning::OperatorRecreates.word());
            let assumption = if is_assumed { ", if its operator recreates it" } else { "" };
            format!("{node} ({reason}){assumption}")
        }
        (Some("pending"), ..) => "Pending".into(),
        (Some("rejected"), ..) => pod.outcome_text.clone(),
        (Some(_), ..) if pod.outcome == "unknown" => pod.outcome_text.clone(),
        (Some(_), ..) => "not predicted".into(),
        (None, ..) if ["lost", "failsJob", "unknown", "stuck", "refused"].contains(&pod.outcome) => {
            pod.outcome_text.clone()
        }
        (None, ..) => none(),
    }
}

/// Returns why the replacement of a pod stays Pending, or would if the pod leaves, and then what would help to place it;
/// `None` if the replacement does not stay Pending.
fn why_pending(pod: &PlanPodReport) -> Option<Vec<String>> {
    let (why, help) = match (&pod.if_it_leaves, &pod.placement) {
        (Some(outcome), _) if outcome.outcome == "pending" => (outcome.reason.as_ref(), &outcome.help[..]),
        (None, placement) if pod.landing == Some("pending") => {
            let help = placement.as_ref().map_or(&[][..], |placement| &placement.help[..]);
            (pod.landing_reason.as_ref(), help)
        }
        _ => return None,
    };
    let why = why.cloned().unwrap_or_else(none);
    Some(std::iter::once(why).chain(help.iter().map(|help| format!("to place it: {help}"))).collect())
}

/// Prints three parts: proposals for pods that stay Pending, the preempted pods, and the load of the nodes that receive
/// pods.
fn placements(out: &mut Page, report: &PlanReport) {
    let (mut preempted, mut caveats) = (Vec::new(), BTreeSet::new());
    for pod in &report.pods {
        let Some(placement) = &pod.placement else { continue };
        preempted.extend(placement.preempts.iter().map(|victim| (victim, pod)));
        caveats.extend(placement.caveats.iter().map(|word| caveat(word)));
        caveats.extend(placement.obstacle.clone());
    }
    let pending = report.pods.iter().filter_map(|pod| Some((pod, why_pending(pod)?)));
    PageTable::new(&pending.collect::<Vec<_>>())
        .key("STAYS PENDING", |(pod, _)| format!("{}/{}", pod.namespace, pod.pod))
        .essential("WHY", |(_, why)| why.clone())
        .flexible()
        .print(out);
    PageTable::new(&preempted)
        .key("PREEMPTED", |(victim, _)| victim.text.clone())
        .essential("BY THE REPLACEMENT OF", |(victim, pod)| {
            victim.in_turn_for.clone().unwrap_or_else(|| format!("{}/{}", pod.namespace, pod.pod))
        })
        .print(out);
    PageTable::new(report.arrivals.as_deref().unwrap_or_default())
        .key("PENDING POD", |arrival| format!("{}/{}", arrival.namespace, arrival.pod))
        .essential("LANDS ON", |arrival| arrival.text.clone())
        .flexible()
        .print(out);
    receivers(report.receivers.as_deref().unwrap_or_default(), out);
    caveat_line(caveats, out);
}

fn budgets(out: &mut Page, report: &PlanReport) {
    PageTable::new(report.budgets.as_deref().unwrap_or_default())
        .key("BUDGET", |budget| format!("{}/{}", budget.namespace, budget.name))
        .useful("NEEDS", |budget| budget.before.desired_healthy.to_string())
        .right()
        .useful("HEALTHY", |budget| budget.before.current_healthy.to_string())
        .right()
        .detail("EXPECTED", |budget| budget.before.expected_pods.to_string())
        .right()
        .essential("ALLOWED", |budget| budget.before.disruptions_allowed.to_string())
        .right()
        .detail("PODS", |budget| budget.pods.to_string())
        .right()
        .essential("AFTER", |budget| {
            let after = &budget.after;
            format!("{} healthy, {} allowed", after.current_healthy, after.disruptions_allowed)
        })
        .print(out);
}

/// Table of what `--surge` does for each workload.
pub fn surges(out: &mut Page, surges: &[SurgeReport]) {
    PageTable::new(surges)
        .key("SURGE", |surge| format!("{} {}/{}", surge.kind, surge.namespace, surge.name))
        .detail("PODS", |surge| surge.pods.len().to_string())
        .right()
        .essential("WHAT IT DOES", |surge| surge.text.clone())
        .flexible()
        .print(out);
}

fn moment(seconds: Option<f64>) -> String {
    seconds.map_or("never".into(), |seconds| format!("~{}", span(seconds)))
}

/// Time until an event of the plan, rounded up to whole seconds.
fn span(seconds: f64) -> String {
    Span::from_secs_f64(seconds).rounded_up().to_string()
}

fn list(all: &[String]) -> String {
    if all.is_empty() { "(none)".into() } else { all.join(",") }
}
