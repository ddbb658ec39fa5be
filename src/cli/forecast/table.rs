//! The table of `kordon forecast`.

use std::fmt::Write as _;

use super::{
    super::{
        confidence,
        page::{Emphasis, Page, none, shown, zone_name},
        placement::{caveat, caveat_line, receivers},
        table::PageTable,
    },
    report::{ForecastReport, ForecastStepReport, ReplacementReport, StayingReport},
};
use crate::ui::text;
use kordon_core::{
    forecast::{SuccessionCounts, leave_endpoints},
    plan::words::counted,
};
use kordon_time::{Span, Timestamp};

/// Renders the report. Control characters in text from the cluster are made visible.
pub fn render(report: &ForecastReport, out: &mut Page) {
    totals(report, out);
    outcomes(report, out);
    for text in report.loops.iter().map(|found| &found.text).chain(&report.blocked_drains) {
        out.line(Emphasis::Warning, text);
    }
    report.kubelets.say(out);
    for assumption in &report.assumptions {
        let _ = writeln!(out, "  assumption: {}", shown(assumption));
    }
    zones(out, report);
    PageTable::new(&report.steps)
        .folded()
        .key("NODE", |step| step.node.to_string())
        .key("POD", |step| match (&step.namespace, &step.pod) {
            (Some(namespace), Some(pod)) => format!("{namespace}/{pod}"),
            _ => none(),
        })
        .essential("IN", |step| text::left(step.at, report.taken_at))
        .useful("AT", |step| step.at.utc().format("%H:%M:%S").to_string())
        .essential("EVENT", event)
        .flexible()
        .detail("WHY", |step| step.why.to_string())
        .flexible()
        .print(out);
    uncertain_taints(report, out);
    taint_rule_previews(report, out);
    let staying: Vec<&StayingReport> =
        report.staying.iter().flatten().filter(|pod| !pod.is_in_replacements).collect();
    PageTable::new(&staying)
        .key("POD NOT EVICTED", |pod| format!("{}/{}", pod.namespace, pod.pod))
        .essential("NODE", |pod| pod.node.to_string())
        .essential("OUTCOME", |pod| pod.outcome_text.clone().unwrap_or_else(none))
        .flexible()
        .print(out);
    replacements(out, report);
    receivers(report.receivers.as_deref().unwrap_or_default(), out);
    caveat_line(report.placement_caveats.iter().flatten().map(|word| caveat(word)).collect(), out);
}

/// Prints how many nodes and pods are affected.
fn totals(report: &ForecastReport, out: &mut Page) {
    let totals = &report.totals;
    let ahead = report.until.since(report.taken_at);
    let deleted = match (totals.deleted, totals.deleted_least, totals.deleted_most) {
        (Some(deleted), Some(least), Some(most)) if least < most => {
            format!("{} deleted ({least} to {most} by chance)", counted(deleted, "pod", "pods"))
        }
        (Some(deleted), ..) => format!("{} deleted", counted(deleted, "pod", "pods")),
        (None, ..) => "evictions unknown".into(),
    };
    // The forecast ends with the first eviction of a pod that comes back, so the evictions of a loop are not counted.
    let is_once = totals.deleted.is_some_and(|deleted| deleted > 0) && !report.loops.is_empty();
    let once = if is_once { ", each counted once" } else { "" };
    let ended = totals.ended.filter(|ended| *ended > 0);
    let ended = ended.map_or_else(String::new, |ended| {
        format!("{} ended by their kubelets, ", counted(ended, "pod", "pods"))
    });
    let _ = writeln!(
        out,
        "within {ahead}: {} Unknown, {} tainted NoExecute, {ended}{}{once}; confidence: {}",
        totals.unknown,
        totals.tainted,
        deleted,
        confidence::text(report.confidence, None)
    );
    if !report.gaps.is_empty() {
        out.gap(&format!("not known: {}", report.gaps));
    }
}

/// Prints what becomes of the pods.
fn outcomes(report: &ForecastReport, out: &mut Page) {
    let Some(SuccessionCounts { evicted, terminating, left_behind, preempted }) = report.counts else {
        return;
    };
    let leaves = match report.totals.ended.is_some_and(|ended| ended > 0) {
        false => ("pod is evicted", "pods are evicted"),
        true => ("pod is evicted or ended", "pods are evicted or ended"),
    };
    let likely = if report.definite { "" } else { "likely " };
    // Some outcomes hold even if nothing evicts the pod. Other outcomes need an eviction, which the forecast does not
    // predict, so the text says `if it were`.
    let not_evicted = match left_behind.parts().all(|(kind, _)| kind.holds_without_deletion()) {
        true => ("pod of a lost node is not evicted", "pods of lost nodes are not evicted"),
        false => (
            "pod of a lost node is not evicted; if it were",
            "pods of lost nodes are not evicted; if they were",
        ),
    };
    for (outcomes, one, several) in [
        (evicted, leaves.0, leaves.1),
        (terminating, "pod of a lost node is terminating", "pods of lost nodes are terminating"),
        (left_behind, not_evicted.0, not_evicted.1),
        (preempted, "pod is preempted for them", "pods are preempted for them"),
    ] {
        if outcomes.total() > 0 {
            let pods = counted(outcomes.total(), one, several);
            let _ = writeln!(out, "{pods}: {likely}{}", outcomes.text());
        }
    }
}

fn uncertain_taints(report: &ForecastReport, out: &mut Page) {
    for taints in &report.uncertain_taints {
        let (max, candidates) = (taints.max_nodes, taints.candidates.len());
        let zone = zone_name(&taints.region, &taints.zone);
        let after = taints.at.since(report.taken_at).rounded_up();
        let _ = writeln!(
            out,
            "\npossible in {after}: up to {max} of {candidates} nodes queued in zone {} get the NoExecute taint, and their pods are \
             evicted, during the pass that finds the zone disrupted",
            shown(&zone)
        );
    }
}

/// Prints what each DeviceTaintRule without an effect would do with the effect NoExecute.
fn taint_rule_previews(report: &ForecastReport, out: &mut Page) {
    for preview in report.taint_rule_previews.iter().flatten() {
        let selected = match preview.selects_all {
            true => "every device".into(),
            false => counted(preview.published_devices, "published device", "published devices"),
        };
        let _ = writeln!(
            out,
            "\nif the effect of DeviceTaintRule {} were NoExecute: {} of {} deleted; it selects {selected}, {} of them allocated",
            shown(&preview.rule),
            counted(preview.pods, "pod", "pods"),
            counted(preview.namespaces, "namespace", "namespaces"),
            preview.allocated_devices,
        );
    }
}

fn zones(out: &mut Page, report: &ForecastReport) {
    PageTable::new(&report.zones)
        .key("ZONE", |zone| zone_name(&zone.region, &zone.zone))
        .useful("NODES", |zone| zone.nodes.to_string())
        .right()
        .essential("NOT READY", |zone| zone.not_ready.to_string())
        .right()
        .essential("STATE", |zone| zone.state)
        .essential("NOT READY AT END", |zone| zone.not_ready_at_end.to_string())
        .right()
        .essential("STATE AT END", |zone| zone.state_at_end)
        .detail("EVICTION RATE AT END", |zone| format!("{}/s", zone.eviction_rate_at_end))
        .right()
        .print(out);
}

/// Text of a step: `Unknown, 3 pods leave their endpoints`.
fn event(step: &ForecastStepReport) -> String {
    let event = match step.r#type {
        "unknown" if step.pods_not_ready > 0 => format!("Unknown, {}", leave_endpoints(step.pods_not_ready)),
        "unknown" => "Unknown".to_owned(),
        "noExecute" => format!("+{}:NoExecute", step.taint.as_deref().unwrap_or_default()),
        "remove" => "pod removed".into(),
        "end" => "pod ended by its kubelet".into(),
        _ => "pod deleted".into(),
    };
    match step.among.len() {
        0 => event,
        nodes => format!("{event}, {:.0} %: any of {nodes} nodes", step.probability * 100.0),
    }
}

fn replacements(out: &mut Page, report: &ForecastReport) {
    let now = report.taken_at;
    let left = move |at: Option<Timestamp>| at.map_or_else(none, |at| text::left(at, now));
    let ready = |replacement: &ReplacementReport| {
        replacement.ready_in_seconds.map(|seconds| report.taken_at + Span::from_secs_f64(seconds))
    };
    PageTable::new(report.replacements.as_deref().unwrap_or_default())
        .key("POD", |replacement| format!("{}/{}", replacement.namespace, replacement.pod))
        .useful("NODE", |replacement| replacement.node.to_string())
        .useful("REPLACED IN", move |replacement| left(replacement.at))
        .essential("READY IN", move |replacement| left(ready(replacement)))
        .essential("OUTCOME", outcome)
        .flexible()
        .print(out);
}

/// What becomes of a pod, with the reason in brackets. Notes and proposals follow on further lines.
fn outcome(replacement: &ReplacementReport) -> Vec<String> {
    let is_late = replacement.landing == "pending" && !replacement.is_evicted;
    let late = is_late.then_some("not evicted within the forecast");
    let reason = replacement.landing_reason.as_deref();
    let reason = reason.filter(|reason| !replacement.outcome_text.contains(*reason));
    let reasons: Vec<&str> = late.into_iter().chain(reason).collect();
    let outcome = match reasons.is_empty() {
        true => replacement.outcome_text.clone(),
        false => format!("{} ({})", replacement.outcome_text, reasons.join("; ")),
    };
    let help = replacement.help.iter().map(|help| format!("to place it: {help}"));
    std::iter::once(outcome).chain(replacement.notes.iter().cloned()).chain(help).collect()
}
