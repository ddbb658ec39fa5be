//! The report as aligned text.

use std::fmt::Write as _;

use super::{
    super::columns::{none, section, shown, zone_name},
    report::{EvictionReport, StatusNodeReport, StatusReport, StatusZoneReport},
};
use crate::time::{Span, Timestamp};

/// Renders the whole report; text from the cluster is shown, not obeyed.
pub fn render(report: &StatusReport) -> String {
    let mut out = String::new();
    head(&mut out, report);
    let zones = report.zones.iter().map(zone).collect();
    section(&mut out, ["ZONE", "STATE", "NOT READY", "OF", "RATE/S", "QUEUE", "NEXT SLOT"], zones);
    let nodes = report.nodes.iter().map(|node| row(node, report.taken_at)).collect();
    section(
        &mut out,
        ["NODE", "ZONE", "READY", "SEEN", "GRACE LEFT", "PODS", "EVICTION", "NEXT", "IN", "TAINTS", "WHY"],
        nodes,
    );
    let evictions = report.evictions.iter().map(eviction).collect();
    section(&mut out, ["POD", "NODE", "STATE", "IN", "WHY"], evictions);
    out
}

fn head(out: &mut String, report: &StatusReport) {
    let cluster = &report.cluster;
    let user = cluster.user.as_deref().unwrap_or("?");
    let version = cluster.version.as_deref().unwrap_or("?");
    let context = if cluster.context.is_empty() { "(no context)" } else { &cluster.context };
    let _ = writeln!(out, "{} {version} at {} as {}", shown(context), shown(&cluster.server), shown(user));
    let footing = &report.controller.footing;
    let since = footing.since.map_or(String::new(), |since| format!(" since {since}"));
    let leader = match &report.controller.leader {
        Some(leader) => shown(&leader.holder),
        None => match report.controller.lease {
            "released" => "nobody holds the lease".into(),
            "none" => "no lease seen (leader election may be off)".into(),
            "forbidden" => "its lease may not be read".into(),
            _ => "nobody known".into(),
        },
    };
    let footing = match footing.state {
        "assumed" => "assumed: it is not known whether a controller acts, one is taken to",
        state => state,
    };
    let _ = writeln!(out, "controller {leader}, footing {footing}{since}");
    if let Some(headroom) = &report.headroom {
        let _ = writeln!(out, "headroom: {}", shown(&headroom.text));
    }
    for setting in &report.controller.settings {
        let _ = writeln!(out, "  --{}={} ({})", setting.flag, setting.value, setting.origin);
    }
    for watch in report.watches.iter().filter(|watch| watch.error.is_some()) {
        let error = watch.error.as_deref().unwrap_or_default();
        let _ = writeln!(out, "watch of {}: {}: {}", watch.kind, watch.state, shown(error));
    }
}

fn zone(zone: &StatusZoneReport) -> [String; 7] {
    [
        zone_name(&zone.region, &zone.zone),
        zone.state.into(),
        zone.not_ready.to_string(),
        zone.nodes.to_string(),
        zone.eviction_rate.to_string(),
        zone.queue.len().to_string(),
        zone.next_slot.filter(|_| !zone.queue.is_empty()).map_or(none(), |at| at.to_time()),
    ]
}

fn row(node: &StatusNodeReport, now: Timestamp) -> [String; 11] {
    let next = node.next.as_ref();
    let taints: Vec<String> =
        node.taints.iter().map(|taint| format!("{}:{}", taint.key, taint.effect)).collect();
    let ready = node.ready.status.map_or("never posted".into(), |status| {
        if status == "True" {
            "Ready".to_owned()
        } else {
            format!("{status} ({})", node.ready.reason.as_deref().unwrap_or(""))
        }
    });
    [
        node.name.to_string(),
        node.zone.clone(),
        ready,
        node.probe_timestamp.map_or(none(), |probe| now.since(probe).to_string()),
        node.grace_left_seconds.map_or(none(), span),
        node.pods.to_string(),
        node.eviction_status.map_or(none(), Into::into),
        next.map_or(none(), |next| match next.pods {
            Some(1) => format!("{} 1 pod", next.what),
            Some(pods) => format!("{} {pods} pods", next.what),
            None => next.what.into(),
        }),
        next.and_then(|next| Some(about(next.in_seconds?, next.estimated))).unwrap_or_else(none),
        if taints.is_empty() { none() } else { taints.join(",") },
        next.map_or(none(), |next| next.why.to_string()),
    ]
}

fn eviction(eviction: &EvictionReport) -> [String; 5] {
    [
        format!("{}/{}", eviction.namespace, eviction.pod),
        eviction.node.to_string(),
        eviction.state.into(),
        eviction.in_seconds.map_or(none(), |seconds| about(seconds, is_estimate(eviction))),
        eviction.why.to_string(),
    ]
}

/// Whether an eviction's time may prove wrong by more than a moment.
fn is_estimate(eviction: &EvictionReport) -> bool {
    eviction.state == "foreseen" || matches!(eviction.known, Some("estimated" | "atLatest"))
}

/// A time from now; `~` before an estimate, as on the screen.
fn about(seconds: f64, estimated: bool) -> String {
    format!("{}{}", if estimated { "~" } else { "" }, span(seconds))
}

fn span(seconds: f64) -> String {
    Span::from_secs_f64(seconds).to_string()
}
