//! The report of a forecast, with stable names (`docs/reference/forecast.md`).

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde::Serialize;

use super::super::{
    confidence,
    gaps::{GapReport, gap_reports},
    kubelet_evictions::KubeletEvictionsReport,
    loops::EvictionLoopReport,
    placement::ReceiverReport,
};
use kordon_core::{
    cluster::{Cluster, FeedKind, Gaps, Key, Node, NodeName, Scope},
    engine::{
        Engine, TaintRulePreview, UncertainTaints, Why, ZoneView, doubtful_clocks, taint_rule_previews,
    },
    forecast::{
        Assumptions, Forecast, ForecastKind, ForecastStep, ForecastTotals, Incident, IncidentKind,
        Succession, SuccessionCounts, Successor,
    },
    placement::Caveat,
    plan::{BlockedDrain, EvictionNote, OutcomeKind, succession_gaps},
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
    /// Evictions by kubelets under pressure, whatever the forecast says of the nodes; empty for a failure.
    pub kubelets: KubeletEvictionsReport,
    /// Drains that are blocked, whatever the forecast says of the nodes.
    pub blocked_drains: &'a [BlockedDrain],
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ForecastReport {
    /// `kordon.forecast/v1`: fields are added, never removed or renamed.
    pub schema: &'static str,
    /// When the forecast was made. Durations below count from here.
    pub taken_at: Timestamp,
    /// The end of the forecast.
    pub until: Timestamp,
    /// How far the predictions can be trusted: `live`, `assumed`, `disconnected` or `noController`, as
    /// `controller.confidence.state` of [`kordon status`](status.md). Only `live` and `assumed` have predictions.
    pub confidence: &'static str,
    /// The assumptions, as text.
    pub assumptions: Vec<String>,
    /// Kinds of objects that are unknown or outdated, and that the report depends on. If pods are unknown, all fields
    /// about pods are `null`: the totals from `deleted` on, `staying`, `replacements`, `receivers`. If only other kinds
    /// are unknown (workloads, namespaces, Services, storage), the replacements are likely at best.
    pub unknown: Vec<GapReport>,
    /// Same gaps as in `unknown`, for the printed table.
    #[serde(skip)]
    pub gaps: Gaps,
    /// Whether the replacements are definite; `false` if they depend on unknown objects, so that they are likely at
    /// best.
    pub definite: bool,
    pub totals: ForecastTotalsReport,
    /// Numbers of pods by outcome, for the printed table; `None` if pods are unknown.
    #[serde(skip)]
    pub counts: Option<SuccessionCounts>,
    pub zones: Vec<ForecastZoneReport>,
    /// Steps in order of time. For a failure, steps that would also happen without it are left out.
    pub steps: Vec<ForecastStepReport>,
    /// Taints that the forecast cannot predict, because they depend on the timing inside the controller. They are not
    /// in `steps`.
    pub uncertain_taints: Vec<UncertainTaintsReport>,
    /// For each DeviceTaintRule with effect None, which does nothing: what it would do with effect NoExecute; `null` if
    /// pods or devices are unknown.
    pub taint_rule_previews: Option<Vec<TaintRulePreviewReport>>,
    /// Pods that are evicted from a node, or rejected by it, and come back to it again and again.
    pub loops: Vec<EvictionLoopReport>,
    /// The drains that are blocked now, and by what, as text; empty for a failure.
    pub blocked_drains: Vec<String>,
    #[serde(flatten)]
    pub kubelets: KubeletEvictionsReport,
    /// For a failure: pods on the failing nodes that are not deleted by the end of the forecast. Those that have or
    /// need a replacement on another node are in `replacements`, too, with the same outcome.
    pub staying: Option<Vec<StayingReport>>,
    /// The replacement of each pod that is deleted or no longer runs.
    pub replacements: Option<Vec<ReplacementReport>>,
    /// Nodes that receive replacements.
    pub receivers: Option<Vec<ReceiverReport>>,
    /// Aspects that the placements of replacements ignore, in the words of `pods[].placement.caveats[]` of [`kordon
    /// plan`](plan.md#pods), such as `sampled` and `oneSample`.
    pub placement_caveats: Option<Vec<&'static str>>,
}

#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ForecastTotalsReport {
    /// How many nodes become Unknown.
    pub unknown: usize,
    /// How many nodes get the NoExecute taint.
    pub tainted: usize,
    /// How many pods have been ended by their kubelets by the end of the forecast, because their machines stop.
    pub ended: Option<usize>,
    /// How many pods are deleted, by eviction or by the pod garbage collector. Pods in `ended` whose objects are
    /// deleted count too.
    pub deleted: Option<usize>,
    /// Lowest possible number of deleted pods. The number depends on chance if several nodes wait for one token of a
    /// zone's rate limiter; otherwise this field and the next two are equal to `deleted`.
    pub deleted_least: Option<usize>,
    /// How many pods are expected to be deleted.
    pub deleted_expected: Option<f64>,
    /// How many pods are deleted at most.
    pub deleted_most: Option<usize>,
    /// How many replacements land on a node within the forecast.
    pub placed: Option<usize>,
    /// How many pods stay Pending once all pods of the failed nodes are deleted; preempted pods are included.
    pub pending: Option<usize>,
    /// How many replacements wait: for the deletion of the old object, which may never come (StatefulSets on failed
    /// nodes), or because a ResourceQuota refuses them.
    pub waiting: Option<usize>,
    /// How many pods of failed nodes are not evicted within the forecast, so that nothing replaces them until then.
    pub not_evicted: Option<usize>,
    /// How many pods have been deleted and replaced before the forecast. Their objects remain.
    pub replaced: Option<usize>,
    /// How many pods no controller recreates.
    pub lost: Option<usize>,
    /// How many pods are deleted, or lose their node. The numbers from `placed` to `lost` do not add up to this number,
    /// because they count the rows of `replacements`, in which some pods are left out, and preempted pods. The numbers
    /// in `outcomes` do.
    pub pods: Option<usize>,
    /// Numbers of the pods in `pods` by outcome ([outcomes.md](../outcomes.md)); outcomes without pods are left out.
    /// The numbers add up to `totals.pods`.
    pub outcomes: Option<OutcomeCountsReport>,
    /// Numbers of the preempted pods on other nodes, by the outcome of the pods.
    pub preempted: Option<OutcomeCountsReport>,
    /// How many pods have nowhere to run, preempted pods included. For the loss of one node or zone, `headroom` of
    /// [`kordon status`](status.md) has the same number.
    pub nowhere: Option<usize>,
}

/// Numbers of pods by the word that stands for their outcome. Outcomes without pods are left out.
type OutcomeCountsReport = BTreeMap<&'static str, usize>;

/// A zone now and at the end of the forecast.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ForecastZoneReport {
    /// The zone's region; may be empty.
    pub region: String,
    /// The zone; may be empty.
    pub zone: String,
    /// Number of nodes that count for the zone's state.
    pub nodes: usize,
    /// How many of the `nodes` are not ready now.
    pub not_ready: usize,
    /// The zone's state now: `Initial`, `Normal`, `PartialDisruption` or `FullDisruption`.
    pub state: &'static str,
    /// How many of the `nodes` are not ready at the end of the forecast.
    pub not_ready_at_end: usize,
    /// The zone's state at the end of the forecast.
    pub state_at_end: &'static str,
    /// The zone's eviction rate at the end of the forecast: nodes per second that get the NoExecute taint.
    pub eviction_rate_at_end: f32,
}

#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ForecastStepReport {
    /// When the step happens.
    pub at: Timestamp,
    /// Seconds from `takenAt` to the step.
    pub in_seconds: f64,
    /// `unknown` (the node's conditions become Unknown), `noExecute` (the node gets the taint), `delete` (a pod's
    /// deletion starts), `remove` (the pod garbage collector removes a pod's
    /// object), `end` (the kubelet of a machine that stops has ended a pod, at the latest).
    pub r#type: &'static str,
    /// The node.
    pub node: NodeName,
    /// The taint's key, for `noExecute`.
    pub taint: Option<String>,
    /// The pod's namespace, for `delete` and `remove`.
    pub namespace: Option<String>,
    /// The pod's name, for `delete` and `remove`.
    pub pod: Option<String>,
    /// For `unknown`: the number of pods that are marked not ready with the node, and leave the endpoints of their
    /// Services. Users notice this moment.
    pub pods_not_ready: usize,
    /// The probability that the step happens at that time, from 0 to 1.
    pub probability: f64,
    /// The nodes that wait for the same token of the rate limiter, if the probability is below 1.
    pub among: Vec<NodeName>,
    /// The causes, as text; not for parsing.
    pub why: Why,
}

/// Nodes of a zone that may be tainted NoExecute before the zone's new state takes effect.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct UncertainTaintsReport {
    /// When the controller finds the zone disrupted. Since Kubernetes 1.34, the loop that taints nodes runs
    /// independently, so it may taint some nodes at the old rate before the new rate takes effect.
    pub at: Timestamp,
    /// Seconds from `takenAt` to `at`.
    pub in_seconds: f64,
    /// The zone's region; may be empty.
    pub region: String,
    /// The zone; may be empty.
    pub zone: String,
    /// Maximum number of nodes that may get the NoExecute taint at that time, and lose their pods.
    pub max_nodes: usize,
    /// The nodes that may get the taint.
    pub candidates: Vec<NodeName>,
}

/// The effect that a DeviceTaintRule would have.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TaintRulePreviewReport {
    /// The rule's name.
    pub rule: String,
    /// Whether the rule selects every device.
    pub selects_all: bool,
    /// Number of published devices that the rule selects.
    pub published_devices: usize,
    /// Number of allocated devices that the rule selects.
    pub allocated_devices: usize,
    /// Number of pods that would be deleted, at once or when their tolerations end.
    pub pods: usize,
    /// Number of namespaces of the pods that would be deleted.
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct StayingReport {
    /// The pod's namespace.
    pub namespace: String,
    /// The pod's name.
    pub pod: String,
    /// The pod's node.
    pub node: NodeName,
    /// What becomes of the pod, as `evictions[].outcome` of [`kordon status`](status.md); `null` if it is not known.
    pub outcome: Option<&'static str>,
    /// The outcome in words; not for parsing.
    pub outcome_text: Option<String>,
    /// Whether the pod is in `replacements`, so that the printed table lists it there.
    #[serde(skip)]
    pub is_in_replacements: bool,
}

#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ReplacementReport {
    /// The namespace of the old pod.
    pub namespace: String,
    /// The name of the old pod.
    pub pod: String,
    /// The node of the old pod.
    pub node: NodeName,
    /// When the replacement is created; `null` means never, or not within the forecast.
    pub at: Option<Timestamp>,
    /// Seconds from `takenAt` to `at`.
    pub in_seconds: Option<f64>,
    /// `node`, `pending` (it stays Pending, whenever it is created), `rejected` (the kubelet of the node that its
    /// template names rejects it), `unknown` (not predicted: another scheduler places it), `waiting` (it waits for the
    /// deletion of the old object, or a ResourceQuota refuses it), `replaced` (it was created before the forecast),
    /// `notEvicted` (the old pod is not evicted within the forecast) or `lost` (no controller recreates the pod).
    pub landing: &'static str,
    /// What becomes of the pod, as `evictions[].outcome` of [`kordon status`](status.md).
    pub outcome: &'static str,
    /// The outcome in words; not for parsing.
    pub outcome_text: String,
    /// The node that the scheduler would choose, now or later.
    pub landing_node: Option<NodeName>,
    /// Why the replacement lands on this node, or why on no node.
    pub landing_reason: Option<String>,
    /// When the replacement is likely Ready; `null` means never. With a ReadWriteOnce volume, this is after the volume
    /// is detached from the old node: when the old node is Ready or tainted out-of-service, else 6 minutes after the
    /// old pod is gone.
    pub ready_in_seconds: Option<f64>,
    /// Notes about the eviction of the old pod: that taint eviction ignores a budget, that no replacement comes until
    /// the old pod is gone, that a volume stays attached.
    pub notes: Vec<String>,
    /// How to place the replacement if it stays Pending.
    pub help: Vec<String>,
    /// Whether the old pod leaves within the forecast, for the printed table.
    #[serde(skip)]
    pub is_evicted: bool,
}

impl ForecastReport {
    pub fn new(subject: &ForecastSubject<'_>, assumptions: &Assumptions, forecast: &Forecast) -> Self {
        let now = subject.now;
        let ForecastTotals { unknown, tainted, ended, deleted } = forecast.totals(now);
        let succession = &subject.succession;
        let replacements: Vec<ReplacementReport> =
            succession.replacements().map(|successor| replacement(successor, subject.cluster, now)).collect();
        let counts = succession.counts();
        let (outcomes, preempted) = (counts.outcomes(), counts.preempted);
        let knows_pods = subject.gaps().is_empty();
        let range = knows_pods.then(|| forecast.deleted(subject.cluster));
        // Placements are known only if all pods of the cluster are known.
        let places = subject.cluster.gaps([FeedKind::Pods]).unknown().is_empty();
        let gaps = succession_gaps(subject.cluster);
        let count =
            |landing: &str| places.then(|| replacements.iter().filter(|pod| pod.landing == landing).count());
        let totals = ForecastTotalsReport {
            unknown,
            tainted,
            ended: knows_pods.then_some(ended),
            deleted: knows_pods.then_some(deleted),
            deleted_least: range.map(|range| range.least),
            deleted_expected: range.map(|range| range.expected),
            deleted_most: range.map(|range| range.most),
            placed: count("node"),
            pending: places.then(|| outcomes.of(OutcomeKind::Pending) + preempted.of(OutcomeKind::Pending)),
            waiting: count("waiting"),
            not_evicted: count("notEvicted"),
            replaced: count("replaced"),
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
            assumptions: assumption_lines(assumptions, subject, now),
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
            kubelets: subject.kubelets.clone(),
            blocked_drains: subject.blocked_drains.iter().map(BlockedDrain::text).collect(),
            staying: knows_pods.then(|| staying(subject, forecast)),
            receivers: places.then(|| succession.trace.receivers.iter().map(ReceiverReport::new).collect()),
            placement_caveats: places
                .then(|| succession.trace.caveats().into_iter().map(Caveat::word).collect()),
            replacements: Some(replacements).filter(|_| places),
        }
    }
}

/// Returns what DeviceTaintRules without an effect would do; `None` if this depends on claims that are unknown.
fn previews(subject: &ForecastSubject<'_>) -> Option<Vec<TaintRulePreviewReport>> {
    let (cluster, version) = (subject.cluster, subject.engine.settings().version);
    let is_known = || cluster.gaps(FeedKind::DEVICES).unknown().is_empty();
    if cluster.needs_devices() && !is_known() {
        return None;
    }
    Some(taint_rule_previews(cluster, version).iter().map(TaintRulePreviewReport::new).collect())
}

/// Assumptions as text. Nodes with the same incident at the same time share a line.
fn assumption_lines(assumptions: &Assumptions, subject: &ForecastSubject<'_>, now: Timestamp) -> Vec<String> {
    let ForecastSubject { engine, cluster, .. } = subject;
    let mut groups: BTreeMap<(Timestamp, IncidentKind), Vec<&str>> = BTreeMap::new();
    for Incident { at, node, kind } in &assumptions.incidents {
        groups.entry((*at, *kind)).or_default().push(node);
    }
    let mut lines = vec!["nodes without heartbeat stay so; all others stay healthy".to_owned()];
    lines.extend(engine.short_grace().map(|short| format!("no node flaps, although {}", short.comparison())));
    let doubtful = doubtful_clocks(cluster, now);
    if !doubtful.is_empty() {
        let clocks = if doubtful.len() == 1 { "the clock of" } else { "the clocks of" };
        let are = if doubtful.len() == 1 { "is" } else { "are" };
        let names: Vec<&str> = doubtful.iter().map(|node| &**node).collect();
        lines.push(format!(
            "{clocks} {} {are} right; only kubectl get --show-managed-fields shows whether that is so",
            names.join(", ")
        ));
    }
    let back = cluster.nodes().iter().filter(|node| engine.renews_again(cluster, node, now));
    let back: Vec<&str> = back.map(|node| &*node.name).collect();
    if !back.is_empty() {
        let stay = if back.len() == 1 {
            "stays Unknown although it renews its Lease again; its"
        } else {
            "stay Unknown although they renew their Leases again; their"
        };
        lines.push(format!("{} {stay} status should follow within some seconds", back.join(", ")));
    }
    lines.extend(groups.into_iter().map(|((at, kind), nodes)| {
        let after = at.since(now);
        let when = if after.as_secs() == 0 { "now".to_owned() } else { format!("in {after}") };
        format!("{kind} {when}: {}", nodes.join(", "))
    }));
    let shutting = cluster.nodes().iter().filter(|node| node.is_shutting_down());
    let is_configured = |node: &&Arc<Node>| matches!(cluster.shutdown_periods(&node.name), Some(Ok(_)));
    let (configured, others): (Vec<&Arc<Node>>, Vec<&Arc<Node>>) = shutting.partition(is_configured);
    let unknown = "; how much earlier is in their configuration (not known)";
    for (nodes, more) in [(configured, ""), (others, unknown)] {
        if !nodes.is_empty() {
            let names: Vec<&str> = nodes.iter().map(|node| &*node.name).collect();
            lines.push(format!(
                "shutting down: {}; the kubelets end their pods by the times below at the latest{more}",
                names.join(", ")
            ));
        }
    }
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
        ForecastKind::Ended { pod, .. } => ("end", None, Some(pod)),
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
            .map(|pod| {
                let notes = EvictionNote::for_pod(cluster, pod).into_iter();
                let notes = notes.filter(|note| !successor.outcome.says(note));
                notes.map(|note| note.to_string()).collect()
            })
            .unwrap_or_default(),
        help: successor.outcome.help().to_vec(),
        outcome: successor.outcome.kind().word(),
        outcome_text: successor.outcome.to_string(),
        is_evicted: successor.evicted.is_some(),
    }
}

fn staying(subject: &ForecastSubject<'_>, forecast: &Forecast) -> Vec<StayingReport> {
    let Some(failing) = subject.failing else { return Vec::new() };
    let successors = subject.succession.by_pod();
    let report = |(pod, node): (Key, NodeName)| {
        let successor = successors.get(&pod);
        StayingReport {
            namespace: pod.namespace.to_string(),
            pod: pod.name.to_string(),
            node,
            outcome: successor.map(|successor| successor.outcome.kind().word()),
            outcome_text: successor.map(|successor| successor.outcome.to_string()),
            is_in_replacements: successor.is_some_and(|successor| successor.is_listed()),
        }
    };
    forecast.staying(subject.cluster, failing).into_iter().map(report).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::documented;

    #[test]
    fn the_page_documents_every_field() {
        documented::check::<ForecastReport>("forecast");
    }
}
