//! The report as aligned text.

use std::fmt::Write as _;

use super::{
    super::{
        columns::{none, section, shown, zone_name},
        placement::receiver,
    },
    report::{ForecastReport, ForecastStepReport, ForecastZoneReport, SuccessorReport},
};
use crate::time::Span;

/// Renders the whole report; text from the cluster is shown, not obeyed.
pub fn render(report: &ForecastReport) -> String {
    let mut out = String::new();
    let totals = &report.totals;
    let ahead = report.until.since(report.taken_at);
    let _ = writeln!(
        out,
        "within {ahead}: {} Unknown, {} tainted NoExecute, {} pods deleted; footing {}",
        totals.unknown, totals.tainted, totals.deleted, report.footing
    );
    if !report.successors.is_empty() {
        let _ = writeln!(
            out,
            "replacements: {} land on nodes, {} stay Pending, {} wait for the old pod to go, {} are lost",
            totals.placed, totals.pending, totals.waiting, totals.lost
        );
    }
    for assumption in &report.assumptions {
        let _ = writeln!(out, "  given: {}", shown(assumption));
    }
    section(
        &mut out,
        ["ZONE", "NODES", "NOT READY", "STATE", "NOT READY THEN", "STATE THEN", "RATE/S THEN"],
        report.zones.iter().map(zone).collect(),
    );
    section(&mut out, ["IN", "AT", "WHAT", "NODE", "POD", "WHY"], report.steps.iter().map(step).collect());
    for chance in &report.uncertain_taints {
        let (most, among) = (chance.at_most, chance.among.len());
        let zone = zone_name(&chance.region, &chance.zone);
        let after = Span::from_secs_f64(chance.in_seconds);
        let _ = writeln!(
            out,
            "\nmay: in {after} up to {most} of {among} nodes waiting in zone {} may get their NoExecute taint and lose their \
             pods, in the very pass that finds the zone disrupted",
            shown(&zone)
        );
    }
    let staying =
        report.staying.iter().map(|pod| [format!("{}/{}", pod.namespace, pod.pod), pod.node.to_string()]);
    section(&mut out, ["STAYS", "NODE"], staying.collect());
    section(
        &mut out,
        ["REPLACED", "FROM", "IN", "LANDS ON", "READY IN"],
        report.successors.iter().flat_map(successor).collect(),
    );
    section(&mut out, ["RECEIVES", "PODS", "CPU", "MEMORY"], report.receivers.iter().map(receiver).collect());
    out
}

fn zone(zone: &ForecastZoneReport) -> [String; 7] {
    [
        zone_name(&zone.region, &zone.zone),
        zone.nodes.to_string(),
        zone.not_ready.to_string(),
        zone.state.into(),
        zone.not_ready_then.to_string(),
        zone.state_then.into(),
        zone.eviction_rate_then.to_string(),
    ]
}

fn step(step: &ForecastStepReport) -> [String; 6] {
    let pod = match (&step.namespace, &step.pod) {
        (Some(namespace), Some(pod)) => format!("{namespace}/{pod}"),
        _ => none(),
    };
    let what = match step.what {
        "unknown" => "Unknown".to_owned(),
        "noExecute" => format!("+{}:NoExecute", step.taint.as_deref().unwrap_or_default()),
        "remove" => "pod removed".into(),
        _ => "pod deleted".into(),
    };
    [
        Span::from_secs_f64(step.in_seconds).to_string(),
        step.at.utc().format("%H:%M:%S").to_string(),
        what,
        step.node.to_string(),
        pod,
        step.why.to_string(),
    ]
}

fn successor(successor: &SuccessorReport) -> Vec<[String; 5]> {
    let span = |seconds: Option<f64>| seconds.map_or(none(), |at| Span::from_secs_f64(at).to_string());
    let why = successor.why.as_deref().unwrap_or_default();
    let lands = match (&successor.node, successor.landing) {
        (Some(node), _) => format!("{node} ({why})"),
        (None, "nowhere") => format!("nowhere, Pending: {why}"),
        (None, "somewhere") => "somewhere".into(),
        (None, _) => why.to_owned(),
    };
    let first = [
        format!("{}/{}", successor.namespace, successor.pod),
        successor.from.to_string(),
        span(successor.in_seconds),
        lands,
        span(successor.ready_in_seconds),
    ];
    let help = successor
        .help
        .iter()
        .map(|help| [String::new(), String::new(), String::new(), format!("help: {help}"), String::new()]);
    std::iter::once(first).chain(help).collect()
}
