//! The table of `kordon status`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use super::{
    super::{
        confidence,
        page::{Emphasis, Page, none, shown, zone_name},
        table::PageTable,
    },
    report::{
        ConfidenceReport, EvictionReport, StatusNodeReport, StatusReport, StatusZoneReport, WatchReport,
    },
};
use crate::{
    model::{NodeState, zone_names::ZoneNames},
    ui::text,
};
use kordon_core::cluster::ZoneKey;
use kordon_time::{Span, Timestamp};

/// Renders the report. Control characters in text from the cluster are made visible.
pub fn render(report: &StatusReport, out: &mut Page) {
    let now = report.taken_at;
    head(out, report);
    PageTable::new(&report.zones)
        .key("ZONE", |zone| zone_name(&zone.region, &zone.zone))
        .essential("STATE", StatusZoneReport::state_text)
        .essential("NOT READY", |zone| zone.not_ready.to_string())
        .right()
        .essential("NODES", |zone| zone.nodes.to_string())
        .right()
        .useful("EVICTION RATE", |zone| format!("{}/s", zone.eviction_rate))
        .right()
        .detail("QUEUE", |zone| zone.queue.len().to_string())
        .right()
        .useful("NEXT SLOT", next_slot)
        .print(out);
    nodes(out, report);
    cordons(out, report);
    PageTable::new(report.evictions.as_deref().unwrap_or_default())
        .folded()
        .key("POD", |eviction| format!("{}/{}", eviction.namespace, eviction.pod))
        .useful("NODE", |eviction| eviction.node.to_string())
        .essential("STATE", |eviction| eviction.state)
        .essential("IN", move |eviction| due_in(eviction, now).unwrap_or_else(none))
        .essential("OUTCOME", |eviction| eviction.outcome_text.clone().unwrap_or_else(none))
        .flexible()
        .detail("WHY", |eviction| eviction.why.to_string())
        .flexible()
        .print(out);
}

fn head(out: &mut Page, report: &StatusReport) {
    let verdict = &report.verdict;
    let line = format!("{} {}", verdict.severity.glyph(), verdict.text);
    out.line(Emphasis::for_level(verdict.severity), &line);
    let cluster = &report.cluster;
    let user = cluster.user.as_ref().map(|user| format!(" as {}", shown(user))).unwrap_or_default();
    let version = cluster.version.as_deref().unwrap_or("?");
    let context = if cluster.context.is_empty() { "(no context)" } else { &cluster.context };
    let _ = writeln!(out, "{} {version} at {}{user}", shown(context), shown(&cluster.server));
    let leader = match &report.controller.leader {
        Some(leader) if report.controller.name == Some("kordon controller") => {
            let since = leader.acquired.map(|acquired| format!(" since {acquired}")).unwrap_or_default();
            format!("kordon controller, {}{since}", shown(&leader.holder))
        }
        Some(leader) => shown(&leader.holder),
        None => match report.controller.lease {
            "released" => "its Lease has no holder".into(),
            "none" => "no Lease (leader election may be off)".into(),
            "forbidden" => "its Lease cannot be read (forbidden)".into(),
            "absent" => "its Lease is not in the files".into(),
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
        let percent = 100.0 * headroom.worked_out_share;
        let rest = if percent < 100.0 { format!(", {percent:.0} % worked out") } else { String::new() };
        let _ = writeln!(out, "headroom: {likely}{}{rest}", shown(&headroom.text));
    }
    for setting in &report.controller.settings {
        let _ = writeln!(out, "  --{}={} ({})", setting.flag, setting.value, setting.origin);
    }
    if !report.gaps.is_empty() {
        out.gap(&format!("not known: {}", report.gaps));
    }
    if report.evictions.is_none() {
        out.gap("evictions, pods of nodes and headroom: unknown");
    }
    report.kubelets.say(out);
    let has_failed = |watch: &&WatchReport| watch.error.is_some() && watch.state != "forbidden";
    for watch in report.watches.iter().filter(has_failed) {
        let error = watch.error.as_deref().unwrap_or_default();
        let _ = writeln!(out, "watch of {}: {}: {}", watch.kind, watch.state, shown(error));
    }
}

pub fn next_slot(zone: &StatusZoneReport) -> String {
    zone.next_slot.filter(|_| !zone.queue.is_empty()).map_or(none(), |at| at.to_time())
}

/// Prints the nodes. On a terminal, all nodes of a zone that are Ready and need no attention share one row.
fn nodes(out: &mut Page, report: &StatusReport) {
    let is_calm = |node: &&StatusNodeReport| {
        let is_ready = node.status.is_some_and(|status| status.state == NodeState::Ready);
        let is_worked_on = node.drain_claim.is_some() || node.maintenance.is_some();
        is_ready && node.next.is_none() && node.cordon.is_none() && !is_worked_on
    };
    let (calm, notable): (Vec<_>, Vec<_>) =
        report.nodes.iter().partition(|node| out.folds() && is_calm(node));
    let mut rows: Vec<NodeRow<'_>> = notable.into_iter().map(NodeRow::One).collect();
    let all_zones: BTreeSet<ZoneKey> = report.nodes.iter().map(zone_of).collect();
    let names = ZoneNames::for_zones(&all_zones);
    let mut zones: BTreeMap<ZoneKey, Vec<&StatusNodeReport>> = BTreeMap::new();
    calm.into_iter().for_each(|node| zones.entry(zone_of(node)).or_default().push(node));
    rows.extend(zones.into_iter().map(|(zone, nodes)| match nodes[..] {
        [node] => NodeRow::One(node),
        _ => NodeRow::Calm { zone: (all_zones.len() > 1).then(|| zone_words(&zone, &names)), nodes },
    }));
    let now = report.taken_at;
    PageTable::new(&rows)
        .folded()
        .key("NODE", NodeRow::name)
        .detail("ZONE", NodeRow::zone)
        .flexible()
        .essential("STATE", |row| row.state(now))
        .toned(NodeRow::tone)
        .useful("HEARTBEAT", |row| {
            row.of_node(|node| Some(format!("{} ago", text::age(now, node.last_heartbeat?))))
        })
        .detail("GRACE LEFT", |row| row.of_node(|node| grace_left(node, now)))
        .useful("PODS", NodeRow::pods)
        .right()
        .essential("NEXT", |row| row.of_node(next))
        .essential("IN", |row| row.of_node(|node| next_in(node, now)))
        .detail("TAINTS", |row| row.of_node(taints))
        .flexible()
        .useful("WHY", |row| row.of_node(|node| Some(node.next.as_ref()?.why.to_string())))
        .flexible()
        .print(out);
}

fn zone_of(node: &StatusNodeReport) -> ZoneKey {
    ZoneKey { region: node.region.as_str().into(), zone: node.zone.as_str().into() }
}

/// A zone as the verdict names it: `zone b`.
fn zone_words(zone: &ZoneKey, names: &ZoneNames) -> String {
    if zone.zone.is_empty() && zone.region.is_empty() {
        "no zone".into()
    } else {
        format!("zone {}", names.short(zone))
    }
}

/// A node, or all nodes of a zone that are Ready and need no attention: `zone b: 10 nodes  Ready`.
enum NodeRow<'a> {
    One(&'a StatusNodeReport),
    Calm {
        /// The zone of the nodes; `None` if the cluster has only one zone.
        zone: Option<String>,
        nodes: Vec<&'a StatusNodeReport>,
    },
}

impl NodeRow<'_> {
    /// Cell with a fact of a single node; `-` in a row that stands for several nodes.
    fn of_node(&self, cell: impl Fn(&StatusNodeReport) -> Option<String>) -> String {
        match self {
            Self::One(node) => cell(node),
            Self::Calm { .. } => None,
        }
        .unwrap_or_else(none)
    }

    fn name(&self) -> String {
        match self {
            Self::One(node) => node.name.to_string(),
            Self::Calm { zone: Some(zone), nodes } => format!("{zone}: {} nodes", nodes.len()),
            Self::Calm { zone: None, nodes } => format!("{} nodes", nodes.len()),
        }
    }

    fn zone(&self) -> String {
        match self {
            Self::One(node) => node.zone.clone(),
            Self::Calm { nodes, .. } => nodes.first().map_or_else(none, |node| node.zone.clone()),
        }
    }

    fn state(&self, now: Timestamp) -> String {
        match self {
            Self::One(node) => node.status.map_or_else(none, |status| status.text(now)),
            Self::Calm { .. } => NodeState::Ready.to_string(),
        }
    }

    fn tone(&self) -> Emphasis {
        match self {
            Self::One(node) => {
                node.status.map_or(Emphasis::Plain, |status| Emphasis::for_state(status.state.role()))
            }
            Self::Calm { .. } => Emphasis::Plain,
        }
    }

    fn pods(&self) -> String {
        let pods = match self {
            Self::One(node) => node.pods,
            Self::Calm { nodes, .. } => nodes.iter().map(|node| node.pods).sum(),
        };
        pods.map_or_else(none, |pods| pods.to_string())
    }
}

/// Next event of a node: `1 of 7 pods`.
pub fn next(node: &StatusNodeReport) -> Option<String> {
    Some(node.next.as_ref()?.words.clone())
}

pub fn taints(node: &StatusNodeReport) -> Option<String> {
    let taints: Vec<String> =
        node.taints.iter().map(|taint| format!("{}:{}", taint.key, taint.effect)).collect();
    Some(taints.join(",")).filter(|taints| !taints.is_empty())
}

/// Prints who cordoned a node, why, since when and until when, and who drains or maintains it.
fn cordons(out: &mut Page, report: &StatusReport) {
    let now = report.taken_at;
    let until = |node: &StatusNodeReport| {
        let cordon = node.cordon.as_ref()?;
        let left = cordon.time_left.as_ref()?;
        Some(format!("{} ({left})", cordon.until?.to_time()))
    };
    let name = |node: &StatusNodeReport| {
        let note = if node.unschedulable { "" } else { " (not cordoned)" };
        format!("{}{note}", node.name)
    };
    let drain = |node: &StatusNodeReport| {
        let claim = node.drain_claim.as_ref().map(|claim| claim.text.clone());
        claim.or_else(|| Some(node.maintenance.as_ref()?.text.clone()))
    };
    let cordoned = report.nodes.iter().filter(|node| node.unschedulable || drain(node).is_some());
    PageTable::new(&cordoned.collect::<Vec<_>>())
        .key("CORDONED NODE", |node| name(node))
        .essential("BY", |node| cordoned_by(node).unwrap_or_else(none))
        .essential("WHY", |node| {
            let why = node.cordon.as_ref().map(|cordon| cordon.why.clone());
            why.filter(|why| !why.is_empty()).unwrap_or_else(none)
        })
        .flexible()
        .useful("FOR", |node| cordoned_for(node, now).unwrap_or_else(none))
        .detail("UNTIL", |node| until(node).unwrap_or_else(none))
        .useful("DRAIN", |node| drain(node).unwrap_or_else(none))
        .flexible()
        .print(out);
}

/// Who cordoned a node: with kordon, or else the client that did.
fn cordoned_by(node: &StatusNodeReport) -> Option<String> {
    let by_kordon = node.cordon.as_ref().map(|cordon| cordon.by.clone());
    by_kordon.or_else(|| node.cordon_origin.as_ref()?.by.clone())
}

/// How long a node has been cordoned, with `~` if the cordon may be older.
fn cordoned_for(node: &StatusNodeReport, now: Timestamp) -> Option<String> {
    let origin = node.cordon_origin.as_ref()?;
    let lasting = now.since(origin.at?);
    Some(if origin.may_be_older { format!("~{lasting}") } else { lasting.to_string() })
}

/// Time until an eviction or, of a terminating pod, until its grace period ends: `~12s`, `52s overdue`, or `hangs` for a
/// pod whose kubelet is down; `None` if it has no time.
pub fn due_in(eviction: &EvictionReport, now: Timestamp) -> Option<String> {
    match (eviction.state, eviction.at) {
        ("terminating", None) => Some(text::HANGS.into()),
        (_, at) => Some(about(at?, is_estimate(eviction), now)),
    }
}

/// Time until the next event of a node; `None` if that is not known.
pub fn next_in(node: &StatusNodeReport, now: Timestamp) -> Option<String> {
    let next = node.next.as_ref()?;
    Some(about(next.at?, next.estimated, now))
}

/// Time until the grace period of a node ends; `None` if that is not known.
pub fn grace_left(node: &StatusNodeReport, now: Timestamp) -> Option<String> {
    Some(text::left(now + Span::from_secs_f64(node.grace_left_seconds?), now))
}

/// Whether the time of an eviction is an estimate.
fn is_estimate(eviction: &EvictionReport) -> bool {
    eviction.state == "predicted" || matches!(eviction.certainty, Some("estimated" | "atLatest"))
}

/// Time until an event in the words of the dashboard ([`text::left`]), with `~` before an estimate.
fn about(at: Timestamp, is_estimated: bool, now: Timestamp) -> String {
    format!("{}{}", if is_estimated && at > now { "~" } else { "" }, text::left(at, now))
}

/// A duration: `9.9s` is `9s`.
pub fn span(seconds: f64) -> String {
    Span::from_secs_f64(seconds).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_until_an_event_is_rounded_up_as_on_the_screen_and_in_the_verdict() {
        let now = Timestamp::from_secs(1_800_000_000);
        let text = |millis, is_estimated| about(now + Span::from_millis(millis), is_estimated, now);
        assert_eq!(text(44_620, false), "45s");
        assert_eq!(text(62_100, true), "~1m03s");
        assert_eq!([text(0, true), text(-52_300, true)], ["now", "52s overdue"]);
    }
}
