//! The table of `kordon forecast`.

use std::fmt::Write as _;

use super::{
    super::{
        confidence,
        page::{Page, flexible, none, section, shown, whole, zone_name},
        placement::{caveat, caveat_line, receiver},
    },
    report::{ForecastReport, ForecastStepReport, ForecastZoneReport, ReplacementReport},
};
use crate::{
    forecast::{SuccessionCounts, leave_endpoints},
    plan::words::counted,
    time::Span,
};

/// Renders the report; control characters in text from the cluster are shown, not sent to the terminal.
pub fn render(report: &ForecastReport, out: &mut Page) {
    let totals = &report.totals;
    let ahead = report.until.since(report.taken_at);
    let deleted = match (totals.deleted, totals.deleted_least, totals.deleted_most) {
        (Some(deleted), Some(least), Some(most)) if least < most => {
            format!("{deleted} pods deleted ({least} to {most} by chance)")
        }
        (Some(deleted), ..) => format!("{} deleted", counted(deleted, "pod", "pods")),
        (None, ..) => "evictions unknown".into(),
    };
    let _ = writeln!(
        out,
        "within {ahead}: {} Unknown, {} tainted NoExecute, {}; confidence: {}",
        totals.unknown,
        totals.tainted,
        deleted,
        confidence::text(report.confidence, None)
    );
    if !report.gaps.is_empty() {
        let _ = writeln!(out, "not known: {}", report.gaps);
    }
    if let Some(SuccessionCounts { outcomes, evicted, preempted }) = report.counts
        && outcomes.total() > 0
    {
        let likely = if report.definite { "" } else { "likely " };
        let pods =
            counted(outcomes.total(), "pod leaves or loses its node", "pods leave or lose their nodes");
        let _ = writeln!(out, "{pods}, {evicted} within {ahead}; of them {likely}{}", outcomes.text());
        if preempted.total() > 0 {
            let pods = counted(preempted.total(), "pod is", "pods are");
            let _ = writeln!(out, "{pods} preempted for them: {}", preempted.text());
        }
    }
    for assumption in &report.assumptions {
        let _ = writeln!(out, "  assumption: {}", shown(assumption));
    }
    section(
        out,
        ["ZONE", "NODES", "NOT READY", "STATE", "NOT READY AT END", "STATE AT END", "EVICTION RATE AT END"],
        report.zones.iter().map(zone).collect(),
    );
    let columns =
        [flexible("POD"), whole("IN"), whole("AT"), flexible("EVENT"), whole("NODE"), flexible("WHY")];
    section(out, columns, report.steps.iter().map(step).collect());
    for taints in &report.uncertain_taints {
        let (max, candidates) = (taints.max_nodes, taints.candidates.len());
        let zone = zone_name(&taints.region, &taints.zone);
        let after = Span::from_secs_f64(taints.in_seconds);
        let _ = writeln!(
            out,
            "\npossible in {after}: up to {max} of {candidates} nodes queued in zone {} get the NoExecute taint, and their pods are \
             evicted, during the pass that finds the zone disrupted",
            shown(&zone)
        );
    }
    let staying = report
        .staying
        .iter()
        .flatten()
        .map(|pod| [format!("{}/{}", pod.namespace, pod.pod), pod.node.to_string()]);
    section(out, ["POD NOT EVICTED", "NODE"], staying.collect());
    section(
        out,
        [whole("POD"), whole("NODE"), whole("REPLACED IN"), flexible("LANDS ON"), whole("READY IN")],
        report.replacements.iter().flatten().flat_map(replacement).collect(),
    );
    section(
        out,
        ["RECEIVING NODE", "PODS", "CPU", "MEMORY"],
        report.receivers.iter().flatten().map(receiver).collect(),
    );
    caveat_line(report.placement_caveats.iter().flatten().map(|word| caveat(word)).collect(), out);
}

fn zone(zone: &ForecastZoneReport) -> [String; 7] {
    [
        zone_name(&zone.region, &zone.zone),
        zone.nodes.to_string(),
        zone.not_ready.to_string(),
        zone.state.into(),
        zone.not_ready_at_end.to_string(),
        zone.state_at_end.into(),
        format!("{}/s", zone.eviction_rate_at_end),
    ]
}

fn step(step: &ForecastStepReport) -> [String; 6] {
    let pod = match (&step.namespace, &step.pod) {
        (Some(namespace), Some(pod)) => format!("{namespace}/{pod}"),
        _ => none(),
    };
    let event = match step.r#type {
        "unknown" if step.pods_not_ready > 0 => format!("Unknown, {}", leave_endpoints(step.pods_not_ready)),
        "unknown" => "Unknown".to_owned(),
        "noExecute" => format!("+{}:NoExecute", step.taint.as_deref().unwrap_or_default()),
        "remove" => "pod removed".into(),
        _ => "pod deleted".into(),
    };
    let event = match step.among.len() {
        0 => event,
        nodes => format!("{event}, {:.0} %: any of {nodes} nodes", step.probability * 100.0),
    };
    [
        Span::from_secs_f64(step.in_seconds).to_string(),
        step.at.utc().format("%H:%M:%S").to_string(),
        event,
        step.node.to_string(),
        pod,
        step.why.to_string(),
    ]
}

fn replacement(replacement: &ReplacementReport) -> Vec<[String; 5]> {
    let span = |seconds: Option<f64>| seconds.map_or(none(), |at| Span::from_secs_f64(at).to_string());
    let reason = replacement.landing_reason.as_deref().unwrap_or_default();
    let lands_on = match (&replacement.landing_node, replacement.landing) {
        (Some(node), "waiting" | "notEvicted") => format!("then {node} ({reason})"),
        (Some(node), _) => format!("{node} ({reason})"),
        (None, "pending") => format!("Pending: {reason}"),
        (None, "unknown") => "not predicted".into(),
        (None, _) => reason.to_owned(),
    };
    let first = [
        format!("{}/{}", replacement.namespace, replacement.pod),
        replacement.node.to_string(),
        span(replacement.in_seconds),
        lands_on,
        span(replacement.ready_in_seconds),
    ];
    let help = replacement.help.iter().map(|help| format!("to place it: {help}"));
    let below = replacement.notes.iter().cloned().chain(help);
    let below = below.map(|text| [String::new(), String::new(), String::new(), text, String::new()]);
    std::iter::once(first).chain(below).collect()
}
