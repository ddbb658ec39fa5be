//! Pressure on a node as a table.

use std::fmt::Write as _;

use super::report::{EvictionOrderReport, PressureReport, RankedPodReport, SignalReport};
use crate::{
    cli::{
        page::{Emphasis, Page, PageRow, flexible, none, section, shown, toned, whole},
        placement::{caveat, caveat_line},
    },
    time::Span,
    ui::text,
};

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
    section(
        out,
        [
            toned("SIGNAL"),
            whole("AVAILABLE"),
            whole("CAPACITY"),
            flexible("THRESHOLDS"),
            whole("ABOVE THRESHOLD"),
            whole("THRESHOLD REACHED"),
        ],
        report.signals.iter().map(|signal| signal_row(signal, report)).collect(),
    );
    eviction(&report.eviction, out);
    caveat_line(report.placement_caveats.iter().map(|word| caveat(word)).collect(), out);
}

/// `usage: kubelet, 3s ago · thresholds: kubelet`
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

fn signal_row(signal: &SignalReport, report: &PressureReport) -> PageRow<6> {
    let amount = |value: Option<i64>| value.map_or_else(none, |value| signal.measure.amount(value));
    let thresholds: Vec<String> = signal
        .thresholds
        .iter()
        .map(|threshold| match threshold.kind {
            "soft" => format!("{} for {}", threshold.value, Span::from_secs_f64(threshold.grace_seconds)),
            _ => threshold.value.clone(),
        })
        .collect();
    let is_met = signal.thresholds.iter().any(|threshold| threshold.met == Some(true));
    let reached = match (signal.evicts_at, signal.reaches_threshold_in_seconds) {
        (Some(at), _) if at <= report.taken_at => "evicts now".to_owned(),
        (Some(at), _) => format!("evicts within {}", text::left(at, report.taken_at)),
        (None, Some(seconds)) => format!("in ~{}", Span::from_secs(Span::from_secs_f64(seconds).as_secs())),
        (None, None) => none(),
    };
    let cells = [
        signal.signal.to_owned(),
        amount(signal.available),
        amount(signal.capacity),
        if thresholds.is_empty() { none() } else { thresholds.join(", ") },
        amount(signal.distance),
        reached,
    ];
    PageRow::new(cells, if is_met { Emphasis::Warning } else { Emphasis::Plain })
}

/// What the kubelet does, and the pods in their order.
fn eviction(eviction: &EvictionOrderReport, out: &mut Page) {
    let _ = writeln!(out, "\n{}", eviction.summary);
    if eviction.threshold.is_some() {
        let _ = writeln!(out, "  condition {}, taint {}", eviction.condition, eviction.taint);
    }
    if let Some(what) = &eviction.node_reclaim_words {
        let _ = writeln!(out, "  the kubelet first removes {what}");
    }
    section(
        out,
        [
            whole("PLACE"),
            flexible("POD"),
            whole("PRIORITY"),
            whole("QOS"),
            flexible("WHY THERE"),
            whole("OOM SCORE"),
            toned("EVICTED"),
            flexible("LANDS ON"),
        ],
        eviction.pods.iter().map(|pod| pod_row(pod, eviction)).collect(),
    );
}

fn pod_row(pod: &RankedPodReport, eviction: &EvictionOrderReport) -> PageRow<8> {
    let evicted = match (pod.exempt, pod.available_after) {
        (Some(why), _) => format!("never: {why}"),
        (None, Some(after)) => format!("yes, {} left", eviction.measure.amount(after)),
        (None, None) => "no".into(),
    };
    let landing = match (pod.landing, &pod.landing_node) {
        (_, Some(node)) => node.to_string(),
        (Some("pending"), None) => {
            format!("stays Pending: {}", shown(pod.landing_reason.as_deref().unwrap_or("no node fits")))
        }
        (Some("sameNode"), None) => "recreated on this node".into(),
        (Some("lost"), None) => "lost: no controller recreates it".into(),
        (Some("notReplaced"), None) => "not replaced".into(),
        (Some(_), None) => "not known".into(),
        (None, None) => none(),
    };
    let cells = [
        pod.place.to_string(),
        format!("{}/{}", pod.namespace, pod.pod),
        pod.priority.to_string(),
        pod.qos.to_owned(),
        pod.reason.clone(),
        pod.oom_score_adj.map_or_else(none, |score| score.to_string()),
        evicted,
        landing,
    ];
    PageRow::new(cells, if pod.evicted { Emphasis::Warning } else { Emphasis::Plain })
}
