//! The report of a forecast, with stable names (`docs/reference/forecast.md`).

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::super::{
    confidence,
    gaps::{GapReport, gap_reports},
    loops::EvictionLoopReport,
    placement::ReceiverReport,
};
use kordon_core::{
    cluster::{Cluster, FeedKind, Gaps, Key, NodeName, Scope},
    engine::{Engine, TaintRulePreview, UncertainTaints, Why, ZoneView, taint_rule_previews},
    forecast::{
        Assumptions, Forecast, ForecastKind, ForecastStep, ForecastTotals, Incident, IncidentKind,
        Succession, SuccessionCounts, Successor,
    },
    placement::Caveat,
    plan::{EvictionNote, OutcomeKind, succession_gaps},
};
use kordon_time::Timestamp;

/// Inputs of the report besides the forecast.
pub struct ForecastSubject<'a> {
    pub engine: &'a Engine,
    pub cluster: &'a Cluster,
    pub failing: Option<&'a BTreeSet<NodeName>>,
    pub now: Timestamp,
    /// Successors of pods that are deleted or no longer run, and the nodes that receive these successors.
    pub succession: Succession,
    pub loops: Vec<EvictionLoopReport>,
}

impl ForecastSubject<'_> {
    /// Gaps in what is known of the pods that the prediction is about; for a failure, of the pods on the failing nodes.
    pub fn gaps(&self) -> Gaps {
        let of_nodes = |nodes: &BTreeSet<NodeName>| nodes.iter().cloned().map(Scope::PodsOn).collect();
        let scopes: Vec<Scope> = self.failing.map_or_else(|| vec![Scope::Pods], of_nodes);
        self.cluster.gaps_in(scopes).unknown()
    }
}

/// A forecast. Every field is always present; unknown values are null.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ForecastReport {
    /// `kordon.forecast/v1`: fields are added, never removed or renamed.
    pub schema: &'static str,
    pub taken_at: Timestamp,
    pub until: Timestamp,
    /// Confidence in predictions: `live`, `assumed`, `disconnected` or `noController`. Only the first two come with
    /// predictions.
    pub confidence: &'static str,
    pub assumptions: Vec<String>,
    /// Kinds of objects that the report depends on and that are unknown or outdated. If pods are unknown, all fields
    /// about pods are null.
    pub unknown: Vec<GapReport>,
    /// Same gaps as in `unknown`, for the table.
    #[serde(skip)]
    pub gaps: Gaps,
    /// Whether replacements would be the same if everything were known.
    pub definite: bool,
    pub totals: ForecastTotalsReport,
    /// Counts of outcomes, for the table; `None` if pods are unknown.
    #[serde(skip)]
    pub counts: Option<SuccessionCounts>,
    pub zones: Vec<ForecastZoneReport>,
    /// Steps in order of time. For a failure, steps that would also happen without it are left out.
    pub steps: Vec<ForecastStepReport>,
    /// Taints that depend on upstream's own timing. They are not in `steps`.
    pub uncertain_taints: Vec<UncertainTaintsReport>,
    /// DeviceTaintRules without an effect: what each would do if its effect were NoExecute. Null if pods or claims are
    /// unknown.
    pub taint_rule_previews: Option<Vec<TaintRulePreviewReport>>,
    /// Pods that are evicted from a node and come back to it again and again.
    pub loops: Vec<EvictionLoopReport>,
    /// For a failure: pods that are on the failing nodes and are not deleted.
    pub staying: Option<Vec<StayingReport>>,
    /// Replacements of deleted pods, and of pods that are on lost nodes and are not deleted.
    pub replacements: Option<Vec<ReplacementReport>>,
    /// Nodes that receive replacements.
    pub receivers: Option<Vec<ReceiverReport>>,
    /// Aspects that placements ignore: `sampled`, `oneSample` and the other words of `kordon plan`.
    pub placement_caveats: Option<Vec<&'static str>>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ForecastTotalsReport {
    pub unknown: usize,
    pub tainted: usize,
    pub deleted: Option<usize>,
    pub deleted_least: Option<usize>,
    pub deleted_expected: Option<f64>,
    pub deleted_most: Option<usize>,
    pub placed: Option<usize>,
    pub pending: Option<usize>,
    pub waiting: Option<usize>,
    pub not_evicted: Option<usize>,
    pub lost: Option<usize>,
    /// Number of pods that are deleted or whose node is lost.
    pub pods: Option<usize>,
    /// Numbers of the pods in `pods` by outcome; they add up to `pods`.
    pub outcomes: Option<OutcomeCountsReport>,
    /// Numbers of preempted pods on other nodes by outcome.
    pub preempted: Option<OutcomeCountsReport>,
    /// Number of pods with nowhere to run, preempted pods included.
    pub nowhere: Option<usize>,
}

/// Numbers of pods by the word of their outcome. Outcomes without pods are left out.
type OutcomeCountsReport = BTreeMap<&'static str, usize>;

/// A zone now and at the end of the forecast.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ForecastZoneReport {
    pub region: String,
    pub zone: String,
    pub nodes: usize,
    pub not_ready: usize,
    pub state: &'static str,
    pub not_ready_at_end: usize,
    pub state_at_end: &'static str,
    /// Rate at which nodes of the zone are tainted NoExecute, per second.
    pub eviction_rate_at_end: f32,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ForecastStepReport {
    pub at: Timestamp,
    pub in_seconds: f64,
    /// Type of the step: `unknown`, `noExecute`, `delete`, or `remove` for an object that the pod garbage collector
    /// removes.
    pub r#type: &'static str,
    pub node: NodeName,
    /// Key of the taint; null unless the step is `noExecute`.
    pub taint: Option<String>,
    pub namespace: Option<String>,
    pub pod: Option<String>,
    /// Number of pods that leave the endpoints of their Services.
    pub pods_not_ready: usize,
    /// Probability that the step happens at this time, from 0 to 1.
    pub probability: f64,
    /// Nodes that may get the rate limiter's token at this time; empty if the step does not depend on chance.
    pub among: Vec<NodeName>,
    pub why: Why,
}

/// Nodes of a zone that may be tainted NoExecute before the zone's new state takes effect.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UncertainTaintsReport {
    pub at: Timestamp,
    pub in_seconds: f64,
    pub region: String,
    pub zone: String,
    pub max_nodes: usize,
    pub candidates: Vec<NodeName>,
}

/// What a DeviceTaintRule would do.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TaintRulePreviewReport {
    pub rule: String,
    /// Whether the rule selects every device.
    pub selects_all: bool,
    /// Number of published devices that the rule selects.
    pub published_devices: usize,
    /// Number of allocated devices that the rule selects.
    pub allocated_devices: usize,
    /// Number of pods that would be deleted, and of their namespaces.
    pub pods: usize,
    pub namespaces: usize,
}

impl TaintRulePreviewReport {
    fn new(preview: &TaintRulePreview) -> Self {
        Self {
            rule: preview.rule.to_string(),
            selects_all: preview.selects_all,
            published_devices: preview.published,
            allocated_devices: preview.allocated,
            pods: preview.pods.len(),
            namespaces: preview.namespaces(),
        }
    }
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StayingReport {
    pub namespace: String,
    pub pod: String,
    pub node: NodeName,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReplacementReport {
    pub namespace: String,
    /// The pod that is replaced.
    pub pod: String,
    pub node: NodeName,
    /// When the replacement is created; null if never, or not within the forecast.
    pub at: Option<Timestamp>,
    pub in_seconds: Option<f64>,
    /// Where the replacement lands: `node`, `unknown`, `pending`, `waiting`, `notEvicted` or `lost`.
    pub landing: &'static str,
    /// Outcome of the pod, as in `kordon status`.
    pub outcome: &'static str,
    pub outcome_text: String,
    pub landing_node: Option<NodeName>,
    pub landing_reason: Option<String>,
    pub ready_in_seconds: Option<f64>,
    /// Notes about the pod's eviction by a taint.
    pub notes: Vec<String>,
    pub help: Vec<String>,
}

impl ForecastReport {
    pub fn new(subject: &ForecastSubject<'_>, assumptions: &Assumptions, forecast: &Forecast) -> Self {
        let now = subject.now;
        let ForecastTotals { unknown, tainted, deleted } = forecast.totals(now);
        let succession = &subject.succession;
        let replacements: Vec<ReplacementReport> =
            succession.replacements().map(|successor| replacement(successor, subject.cluster, now)).collect();
        let counts = succession.counts();
        let (outcomes, preempted) = (counts.outcomes(), counts.preempted);
        let knows_pods = subject.gaps().is_empty();
        let range = knows_pods.then(|| forecast.deleted(subject.cluster));
        // Placements depend on all pods.
        let places = subject.cluster.gaps([FeedKind::Pods]).unknown().is_empty();
        let gaps = succession_gaps(subject.cluster);
        let count =
            |landing: &str| places.then(|| replacements.iter().filter(|pod| pod.landing == landing).count());
        let totals = ForecastTotalsReport {
            unknown,
            tainted,
            deleted: knows_pods.then_some(deleted),
            deleted_least: range.map(|range| range.least),
            deleted_expected: range.map(|range| range.expected),
            deleted_most: range.map(|range| range.most),
            placed: count("node"),
            pending: places.then(|| outcomes.of(OutcomeKind::Pending) + preempted.of(OutcomeKind::Pending)),
            waiting: count("waiting"),
            not_evicted: count("notEvicted"),
            lost: count("lost"),
            pods: places.then(|| outcomes.total()),
            outcomes: places.then(|| outcomes.by_word()),
            preempted: places.then(|| preempted.by_word()),
            nowhere: places.then(|| counts.nowhere()),
        };
        Self {
            schema: "kordon.forecast/v1",
            taken_at: now,
            until: forecast.until,
            confidence: confidence::word(subject.engine.confidence(now)),
            assumptions: assumption_lines(assumptions, now),
            unknown: gap_reports(&gaps),
            definite: gaps.is_empty(),
            gaps,
            totals,
            counts: places.then_some(counts),
            zones: subject.engine.zones(now).iter().map(|zone| zone_report(zone, &forecast.zones)).collect(),
            steps: forecast.steps.iter().map(|step| step_report(step, now)).collect(),
            uncertain_taints: forecast
                .uncertain_taints
                .iter()
                .map(|taints| uncertain_taints(taints, now))
                .collect(),
            taint_rule_previews: knows_pods.then(|| previews(subject)).flatten(),
            loops: subject.loops.clone(),
            staying: knows_pods.then(|| staying(subject, forecast)),
            receivers: places.then(|| succession.trace.receivers.iter().map(ReceiverReport::new).collect()),
            placement_caveats: places
                .then(|| succession.trace.caveats().into_iter().map(Caveat::word).collect()),
            replacements: Some(replacements).filter(|_| places),
        }
    }
}

/// Returns what DeviceTaintRules without an effect would do; none if claims are needed for that and not known.
fn previews(subject: &ForecastSubject<'_>) -> Option<Vec<TaintRulePreviewReport>> {
    let (cluster, version) = (subject.cluster, subject.engine.settings().version);
    let is_known = || cluster.gaps(FeedKind::DEVICES).unknown().is_empty();
    if cluster.needs_devices() && !is_known() {
        return None;
    }
    Some(taint_rule_previews(cluster, version).iter().map(TaintRulePreviewReport::new).collect())
}

/// Assumptions as text. Nodes with the same incident at the same time share a line.
fn assumption_lines(assumptions: &Assumptions, now: Timestamp) -> Vec<String> {
    let mut groups: BTreeMap<(Timestamp, IncidentKind), Vec<&str>> = BTreeMap::new();
    for Incident { at, node, kind } in &assumptions.incidents {
        groups.entry((*at, *kind)).or_default().push(node);
    }
    let mut lines = vec!["nodes without heartbeat stay so; all others stay healthy".to_owned()];
    lines.extend(groups.into_iter().map(|((at, kind), nodes)| {
        let after = at.since(now);
        let when = if after.as_secs() == 0 { "now".to_owned() } else { format!("in {after}") };
        format!("{kind} {when}: {}", nodes.join(", "))
    }));
    lines
}

fn zone_report(zone: &ZoneView, at_end: &[ZoneView]) -> ForecastZoneReport {
    let end = at_end.iter().find(|end| end.key == zone.key).unwrap_or(zone);
    ForecastZoneReport {
        region: zone.key.region.to_string(),
        zone: zone.key.zone.to_string(),
        nodes: zone.size,
        not_ready: zone.not_ready,
        state: zone.state.as_str(),
        not_ready_at_end: end.not_ready,
        state_at_end: end.state.as_str(),
        eviction_rate_at_end: end.rate,
    }
}

fn step_report(step: &ForecastStep, now: Timestamp) -> ForecastStepReport {
    let (r#type, taint, pod) = match &step.kind {
        ForecastKind::Unknown { .. } => ("unknown", None, None),
        ForecastKind::NoExecute { key, .. } => ("noExecute", Some(key.to_string()), None),
        ForecastKind::Deleted { pod, .. } => ("delete", None, Some(pod)),
        ForecastKind::Removed { pod, .. } => ("remove", None, Some(pod)),
    };
    ForecastStepReport {
        at: step.at,
        in_seconds: step.at.since(now).as_secs_f64(),
        r#type,
        node: step.kind.node().clone(),
        taint,
        namespace: pod.map(|pod| pod.namespace.to_string()),
        pod: pod.map(|pod| pod.name.to_string()),
        pods_not_ready: step.not_ready,
        probability: step.chance.as_ref().map_or(1.0, |chance| chance.probability),
        among: step.chance.as_ref().map(|chance| chance.among.to_vec()).unwrap_or_default(),
        why: step.why.clone(),
    }
}

fn uncertain_taints(taints: &UncertainTaints, now: Timestamp) -> UncertainTaintsReport {
    UncertainTaintsReport {
        at: taints.at,
        in_seconds: taints.at.since(now).as_secs_f64(),
        region: taints.zone.region.to_string(),
        zone: taints.zone.zone.to_string(),
        max_nodes: taints.at_most,
        candidates: taints.among.clone(),
    }
}

fn replacement(successor: &Successor, cluster: &Cluster, now: Timestamp) -> ReplacementReport {
    let at = successor.created;
    let seconds = |at: Timestamp| at.since(now).as_secs_f64();
    ReplacementReport {
        namespace: successor.of.namespace.to_string(),
        pod: successor.of.name.to_string(),
        node: successor.from.clone(),
        at,
        in_seconds: at.map(seconds),
        landing: successor.word(),
        landing_node: successor.node().cloned(),
        landing_reason: Some(successor.why()).filter(|why| !why.is_empty()),
        ready_in_seconds: successor.ready.map(seconds),
        notes: cluster
            .pod(&successor.of)
            .map(|pod| EvictionNote::for_pod(cluster, pod).iter().map(ToString::to_string).collect())
            .unwrap_or_default(),
        help: successor.outcome.help().to_vec(),
        outcome: successor.outcome.kind().word(),
        outcome_text: successor.outcome.to_string(),
    }
}

fn staying(subject: &ForecastSubject<'_>, forecast: &Forecast) -> Vec<StayingReport> {
    let Some(failing) = subject.failing else { return Vec::new() };
    let report = |(pod, node): (Key, NodeName)| StayingReport {
        namespace: pod.namespace.to_string(),
        pod: pod.name.to_string(),
        node,
    };
    forecast.staying(subject.cluster, failing).into_iter().map(report).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::documented;

    #[test]
    fn every_field_is_documented() {
        let (text, at) = (|| "text".to_owned(), Timestamp::from_secs(1_800_000_000));
        let report = ForecastReport {
            schema: "kordon.forecast/v1",
            taken_at: at,
            until: at,
            confidence: "live",
            assumptions: vec![text()],
            unknown: vec![GapReport::full()],
            gaps: Gaps::default(),
            definite: true,
            totals: ForecastTotalsReport {
                unknown: 1,
                tainted: 1,
                deleted: Some(1),
                deleted_least: Some(1),
                deleted_expected: Some(1.0),
                deleted_most: Some(1),
                placed: Some(1),
                pending: Some(1),
                waiting: Some(1),
                not_evicted: Some(1),
                lost: Some(1),
                pods: Some(1),
                outcomes: Some([("moves", 1)].into()),
                preempted: Some([("pending", 1)].into()),
                nowhere: Some(1),
            },
            counts: None,
            zones: vec![ForecastZoneReport {
                region: text(),
                zone: text(),
                nodes: 1,
                not_ready: 1,
                state: "Normal",
                not_ready_at_end: 1,
                state_at_end: "Normal",
                eviction_rate_at_end: 0.1,
            }],
            steps: vec![ForecastStepReport {
                at,
                in_seconds: 1.0,
                r#type: "delete",
                node: "n".into(),
                taint: Some(text()),
                namespace: Some(text()),
                pod: Some(text()),
                pods_not_ready: 1,
                probability: 0.5,
                among: vec!["n".into()],
                why: Why::default(),
            }],
            uncertain_taints: vec![UncertainTaintsReport {
                at,
                in_seconds: 1.0,
                region: text(),
                zone: text(),
                max_nodes: 1,
                candidates: vec!["n".into()],
            }],
            taint_rule_previews: Some(vec![TaintRulePreviewReport {
                rule: text(),
                selects_all: true,
                published_devices: 1,
                allocated_devices: 1,
                pods: 1,
                namespaces: 1,
            }]),
            loops: vec![EvictionLoopReport::full()],
            staying: Some(vec![StayingReport { namespace: text(), pod: text(), node: "n".into() }]),
            replacements: Some(vec![ReplacementReport {
                namespace: text(),
                pod: text(),
                node: "n".into(),
                at: Some(at),
                in_seconds: Some(1.0),
                landing: "node",
                outcome: "moves",
                outcome_text: text(),
                landing_node: Some("m".into()),
                landing_reason: Some(text()),
                ready_in_seconds: Some(2.0),
                notes: vec![text()],
                help: vec![text()],
            }]),
            receivers: Some(vec![ReceiverReport::full()]),
            placement_caveats: Some(vec!["sampled"]),
        };
        documented::check(&report, include_str!("../../../docs/reference/forecast.md"));
    }
}
