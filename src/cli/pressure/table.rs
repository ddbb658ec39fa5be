//! The table of pressure on a node.

use std::fmt::Write as _;

use super::report::{EvictionOrderReport, PressureReport, RankedPodReport, SignalReport};
use crate::{
    cli::{
        page::{Emphasis, Page, none, shown},
        placement::{caveat, caveat_line},
        table::PageTable,
    },
    ui::text,
};
use kordon_time::Span;

/// Renders the report.
pub fn render(report: &PressureReport, out: &mut Page) {
    let state = match report.conditions[..] {
        [] => "no pressure reported".to_owned(),
        _ => report.conditions.join(", "),
    };
    let tone = if report.conditions.is_empty() { Emphasis::Plain } else { Emphasis::Warning };
    out.line(tone, &format!("node {}: {state}", report.node));
    out.line(Emphasis::Plain, &sources(report));
    for threshold in &report.ignored_thresholds {
        out.line(Emphasis::Notice, &format!("threshold not understood: {threshold}"));
    }
    signals(report, out);
    eviction(&report.eviction, out);
    caveat_line(report.placement_caveats.iter().map(|word| caveat(word)).collect(), out);
}

/// Sources of usage and thresholds: `usage: kubelet, 3s ago · thresholds: kubelet`.
fn sources(report: &PressureReport) -> String {
    let usage = match (&report.usage, &report.usage_error) {
        (Some(usage), _) => {
            format!("usage: {}, {} ago", usage.source, text::age(report.taken_at, usage.measured_at))
        }
        (None, error) => {
            let why = error.as_deref().unwrap_or_default();
            format!("usage not known ({why}): order by priority only")
        }
    };
    match &report.thresholds_error {
        None => format!("{usage} · thresholds: kubelet"),
        Some(why) => format!("{usage} · thresholds: defaults ({why})"),
    }
}

fn signals(report: &PressureReport, out: &mut Page) {
    let amount = |signal: &SignalReport, value: Option<i64>| {
        value.map_or_else(none, |value| signal.measure.amount(value))
    };
    let is_met =
        |signal: &SignalReport| signal.thresholds.iter().any(|threshold| threshold.met == Some(true));
    PageTable::new(&report.signals)
        .key("SIGNAL", |signal| signal.signal)
        .toned(|signal| if is_met(signal) { Emphasis::Warning } else { Emphasis::Plain })
        .essential("AVAILABLE", |signal| amount(signal, signal.available))
        .detail("CAPACITY", |signal| amount(signal, signal.capacity))
        .useful("THRESHOLDS", thresholds)
        .flexible()
        .useful("ABOVE THRESHOLD", |signal| amount(signal, signal.distance))
        .essential("THRESHOLD REACHED", |signal| reached(signal, report))
        .print(out);
}

fn thresholds(signal: &SignalReport) -> String {
    let thresholds: Vec<String> = signal
        .thresholds
        .iter()
        .map(|threshold| match threshold.kind {
            "soft" => format!("{} for {}", threshold.value, Span::from_secs_f64(threshold.grace_seconds)),
            _ => threshold.value.clone(),
        })
        .collect();
    if thresholds.is_empty() { none() } else { thresholds.join(", ") }
}

fn reached(signal: &SignalReport, report: &PressureReport) -> String {
    match (signal.evicts_at, signal.reaches_threshold_in_seconds) {
        (Some(at), _) if at <= report.taken_at => "evicts now".to_owned(),
        (Some(at), _) => format!("evicts within {}", text::left(at, report.taken_at)),
        (None, Some(seconds)) => format!("in ~{}", Span::from_secs(Span::from_secs_f64(seconds).as_secs())),
        (None, None) => none(),
    }
}

/// Prints the kubelet's actions, and the pods in order of eviction.
fn eviction(eviction: &EvictionOrderReport, out: &mut Page) {
    let _ = writeln!(out, "\n{}", eviction.summary);
    if eviction.threshold.is_some() {
        let _ = writeln!(out, "  condition {}, taint {}", eviction.condition, eviction.taint);
    }
    if let Some(what) = &eviction.node_reclaim_words {
        let _ = writeln!(out, "  the kubelet first removes {what}");
    }
    PageTable::new(&eviction.pods)
        .key("PLACE", |pod| pod.place.to_string())
        .right()
        .key("POD", |pod| format!("{}/{}", pod.namespace, pod.pod))
        .detail("PRIORITY", |pod| pod.priority.to_string())
        .right()
        .useful("QOS", |pod| pod.qos)
        .useful("WHY THERE", |pod| pod.reason.clone())
        .flexible()
        .detail("OOM SCORE", |pod| pod.oom_score_adj.map_or_else(none, |score| score.to_string()))
        .right()
        .essential("EVICTED", |pod| evicted(pod, eviction))
        .toned(|pod| if pod.evicted { Emphasis::Warning } else { Emphasis::Plain })
        .essential("LANDS ON", landing)
        .flexible()
        .print(out);
}

fn evicted(pod: &RankedPodReport, eviction: &EvictionOrderReport) -> String {
    match (pod.exempt, pod.available_after) {
        (Some(why), _) => format!("never: {why}"),
        (None, Some(after)) => format!("yes, {} left", eviction.measure.amount(after)),
        (None, None) => "no".into(),
    }
}

fn landing(pod: &RankedPodReport) -> String {
    match (pod.landing, &pod.landing_node) {
        (_, Some(node)) => node.to_string(),
        (Some("pending"), None) => {
            format!("stays Pending: {}", shown(pod.landing_reason.as_deref().unwrap_or("no node fits")))
        }
        (Some("rejected"), None) => {
            format!("never runs: {}", shown(pod.landing_reason.as_deref().unwrap_or("its node rejects it")))
        }
        (Some("sameNode"), None) => "recreated on this node".into(),
        (Some("lost"), None) => "lost: no controller recreates it".into(),
        (Some("notReplaced"), None) => "not recreated".into(),
        (Some(_), None) => "not known".into(),
        (None, None) => none(),
    }
}
