//! The table of `kordon status`.

use std::fmt::Write as _;

use super::{
    super::{
        confidence,
        page::{Emphasis, Page, PageRow, flexible, none, section, shown, toned, whole, zone_name},
    },
    report::{
        ConfidenceReport, EvictionReport, StatusNodeReport, StatusReport, StatusZoneReport, WatchReport,
    },
};
use crate::{
    model::NodeState,
    ordered::OrderedMap,
    time::{Span, Timestamp},
    ui::text,
};

/// Renders the report; control characters in text from the cluster are shown, not sent to the terminal.
pub fn render(report: &StatusReport, out: &mut Page) {
    head(out, report);
    let zones = report.zones.iter().map(zone).collect();
    let columns = [
        flexible("ZONE"),
        whole("STATE"),
        whole("NOT READY"),
        whole("NODES"),
        whole("EVICTION RATE"),
        whole("QUEUE"),
        whole("NEXT SLOT"),
    ];
    section(out, columns, zones);
    nodes(out, report);
    let cordons = report.nodes.iter().filter(|node| node.unschedulable || node.drain_claim.is_some());
    let cordons = cordons.map(|node| cordon(node, report.taken_at)).collect();
    section(out, ["CORDONED NODE", "BY", "WHY", "FOR", "UNTIL", "DRAIN"], cordons);
    let evictions = report.evictions.iter().flatten().map(eviction).collect();
    let columns =
        [flexible("POD"), whole("NODE"), whole("STATE"), whole("IN"), flexible("OUTCOME"), flexible("WHY")];
    section(out, columns, evictions);
}

fn head(out: &mut Page, report: &StatusReport) {
    let verdict = &report.verdict;
    let line = format!("{} {}", verdict.severity.glyph(), verdict.text);
    out.line(Emphasis::of_level(verdict.severity), &line);
    let cluster = &report.cluster;
    let user = cluster.user.as_deref().unwrap_or("?");
    let version = cluster.version.as_deref().unwrap_or("?");
    let context = if cluster.context.is_empty() { "(no context)" } else { &cluster.context };
    let _ = writeln!(out, "{} {version} at {} as {}", shown(context), shown(&cluster.server), shown(user));
    let leader = match &report.controller.leader {
        Some(leader) => shown(&leader.holder),
        None => match report.controller.lease {
            "released" => "its Lease has no holder".into(),
            "none" => "no Lease (leader election may be off)".into(),
            "forbidden" => "its Lease cannot be read (forbidden)".into(),
            _ => "not known yet".into(),
        },
    };
    let ConfidenceReport { state, since } = report.controller.confidence;
    let _ = writeln!(
        out,
        "controller: {leader}; confidence: {}",
        confidence::text(state, since.map(|since| report.taken_at.since(since)))
    );
    if let Some(headroom) = report.headroom.as_ref().filter(|it| !verdict.text.contains(&it.text)) {
        let likely = if headroom.definite { "" } else { "likely " };
        let _ = writeln!(out, "headroom: {likely}{}", shown(&headroom.text));
    }
    for setting in &report.controller.settings {
        let _ = writeln!(out, "  --{}={} ({})", setting.flag, setting.value, setting.origin);
    }
    if !report.gaps.is_empty() {
        let _ = writeln!(out, "not known: {}", report.gaps);
    }
    if report.evictions.is_none() {
        let _ = writeln!(out, "evictions, pods of nodes and headroom: unknown");
    }
    let has_failed = |watch: &&WatchReport| watch.error.is_some() && watch.state != "forbidden";
    for watch in report.watches.iter().filter(has_failed) {
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
        format!("{}/s", zone.eviction_rate),
        zone.queue.len().to_string(),
        zone.next_slot.filter(|_| !zone.queue.is_empty()).map_or(none(), |at| at.to_time()),
    ]
}

/// The nodes; on a terminal, those of a zone with nothing to tell are one row.
fn nodes(out: &mut Page, report: &StatusReport) {
    let is_calm = |node: &&StatusNodeReport| {
        let is_ready = node.status.is_some_and(|status| status.state == NodeState::Ready);
        is_ready && node.next.is_none() && node.cordon.is_none() && node.drain_claim.is_none()
    };
    let (calm, notable): (Vec<_>, Vec<_>) =
        report.nodes.iter().partition(|node| out.folds() && is_calm(node));
    let mut rows: Vec<PageRow<10>> = notable.into_iter().map(|node| row(node, report.taken_at)).collect();
    let mut zones: OrderedMap<&str, Vec<&StatusNodeReport>> = OrderedMap::new();
    calm.into_iter().for_each(|node| zones.entry(&node.zone).or_default().push(node));
    for nodes in zones.values() {
        rows.push(if let [node] = nodes[..] { row(node, report.taken_at) } else { calm_row(nodes) });
    }
    let columns = [
        whole("NODE"),
        flexible("ZONE"),
        toned("STATE"),
        whole("HEARTBEAT"),
        flexible("GRACE LEFT"),
        whole("PODS"),
        whole("NEXT"),
        whole("IN"),
        flexible("TAINTS"),
        flexible("WHY"),
    ];
    section(out, columns, rows);
}

/// `10 nodes  eu-1a  Ready`: all nodes of a zone with nothing to tell.
fn calm_row(nodes: &[&StatusNodeReport]) -> PageRow<10> {
    let pods: Option<usize> = nodes.iter().map(|node| node.pods).sum();
    let mut cells = std::array::from_fn(|_| none());
    cells[0] = format!("{} nodes", nodes.len());
    cells[1] = nodes.first().map_or_else(none, |node| node.zone.clone());
    cells[2] = NodeState::Ready.to_string();
    cells[5] = pods.map_or(none(), |pods| pods.to_string());
    cells.into()
}

fn row(node: &StatusNodeReport, now: Timestamp) -> PageRow<10> {
    let next = node.next.as_ref();
    let taints: Vec<String> =
        node.taints.iter().map(|taint| format!("{}:{}", taint.key, taint.effect)).collect();
    let cells = [
        node.name.to_string(),
        node.zone.clone(),
        node.status.map_or_else(none, |status| status.text(now)),
        node.last_heartbeat.map_or(none(), |at| format!("{} ago", text::age(now, at))),
        node.grace_left_seconds.map_or(none(), |left| overdue(left, span)),
        node.pods.map_or(none(), |pods| pods.to_string()),
        next.map_or(none(), |next| match next.pods {
            Some(1) => format!("{} 1 pod", next.r#type),
            Some(pods) => format!("{} {pods} pods", next.r#type),
            None => next.r#type.into(),
        }),
        next.and_then(|next| Some(about(next.in_seconds?, next.estimated))).unwrap_or_else(none),
        if taints.is_empty() { none() } else { taints.join(",") },
        next.map_or(none(), |next| next.why.to_string()),
    ];
    let tone = node.status.map_or(Emphasis::Plain, |status| Emphasis::of_state(status.state.role()));
    PageRow::new(cells, tone)
}

/// Who cordoned a node, why, since when and until when; and who drains it.
fn cordon(node: &StatusNodeReport, now: Timestamp) -> [String; 6] {
    let cordon = node.cordon.as_ref();
    let until = cordon.and_then(|cordon| {
        let left = cordon.time_left.as_ref()?;
        Some(format!("{} ({left})", cordon.until?.to_time()))
    });
    [
        if node.unschedulable { node.name.to_string() } else { format!("{} (not cordoned)", node.name) },
        cordon.map_or_else(none, |cordon| cordon.by.clone()),
        cordon.filter(|cordon| !cordon.why.is_empty()).map_or_else(none, |cordon| cordon.why.clone()),
        cordon.map_or_else(none, |cordon| now.since(cordon.at).to_string()),
        until.unwrap_or_else(none),
        node.drain_claim.as_ref().map_or_else(none, |claim| claim.text.clone()),
    ]
}

fn eviction(eviction: &EvictionReport) -> [String; 6] {
    [
        format!("{}/{}", eviction.namespace, eviction.pod),
        eviction.node.to_string(),
        eviction.state.into(),
        eviction.in_seconds.map_or(none(), |seconds| due_in(eviction, seconds)),
        eviction.outcome_text.clone().unwrap_or_else(none),
        eviction.why.to_string(),
    ]
}

/// `~12s`, `52s overdue`, or `stuck 4m39s` for a pod that should be gone.
fn due_in(eviction: &EvictionReport, seconds: f64) -> String {
    if eviction.state == "terminating" && seconds < 0.0 {
        return format!("stuck {}", span(-seconds));
    }
    overdue(seconds, |seconds| about(seconds, is_estimate(eviction)))
}

/// A time from now, or for how long it has passed.
fn overdue(seconds: f64, left: impl Fn(f64) -> String) -> String {
    if seconds < 0.0 { format!("{} overdue", span(-seconds)) } else { left(seconds) }
}

/// Whether an eviction's time may be wrong by more than a moment.
fn is_estimate(eviction: &EvictionReport) -> bool {
    eviction.state == "predicted" || matches!(eviction.certainty, Some("estimated" | "atLatest"))
}

/// A time from now; `~` before an estimate, as on the screen.
fn about(seconds: f64, estimated: bool) -> String {
    format!("{}{}", if estimated { "~" } else { "" }, span(seconds))
}

fn span(seconds: f64) -> String {
    Span::from_secs_f64(seconds).to_string()
}
