//! Placements of pods, and nodes that receive pods, for reports and tables of `kordon plan`, `forecast` and `why`.

use std::{collections::BTreeSet, fmt::Write as _};

use serde::Serialize;

use super::{
    page::{Page, shown},
    table::PageTable,
};
use kordon_core::{
    cluster::NodeName,
    placement::{Caveat, ResourceUse, Scored, Scorer, Share},
    plan::{Landing, OutcomeKind, PlacementTrace, PreemptedPod, Receiver, placement_trace::share},
};

/// How a placement was decided.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PlacementReport {
    /// Number of nodes on which the pod fits.
    pub feasible: usize,
    /// Number of nodes that share the best score. The scheduler chooses any of them; kordon reports the first by name.
    pub tied: usize,
    /// Difference between the best score and the next lower score, in points; `null` if no node has a lower score.
    pub margin: Option<i64>,
    /// Whether a small change of the cluster can reverse the choice.
    pub close_margin: bool,
    /// The nodes with the best scores, best first.
    pub ranking: Vec<ScoredReport>,
    /// Why nodes do not fit, if none fits.
    pub reasons: Vec<ReasonReport>,
    /// The pods that the placement preempts.
    pub preempts: Vec<PreemptedReport>,
    /// What would help to place the pod, if it stays Pending.
    pub help: Vec<String>,
    /// Where the pod's volumes can be attached, as text.
    pub volumes: Vec<String>,
    /// What was not considered: `volumes` (kordon may not list them), `capacity` (of storage for new volumes),
    /// `services` (kordon may not list them; spreading uses the owner's selector alone), `deviceRules` (kordon may not
    /// list DeviceTaintRules; no device counts as tainted by one), `group` (gang scheduling),
    /// `newNodes` (an autoscaler may add nodes: Pending may be short), `newer` (the cluster is newer than the
    /// schedulers that kordon was tested against), `sampled` (in a large cluster the scheduler scores only some of the
    /// nodes and may miss the best), `oneSample` (with `--percentage-of-nodes-to-score`: the nodes that were scored are
    /// one possible sample).
    pub caveats: Vec<&'static str>,
    /// Why the default scheduler does not place the pod.
    pub obstacle: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ScoredReport {
    /// The node.
    pub node: NodeName,
    /// The score of the node.
    pub score: i64,
    /// Weighted scores of the scheduler's plugins.
    pub plugins: PluginScoresReport,
}

#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PluginScoresReport {
    /// Weighted score of NodeResourcesFit.
    pub least_allocated: i64,
    /// Weighted score of NodeResourcesBalancedAllocation.
    pub balanced_allocation: i64,
    /// Weighted score of TaintToleration.
    pub taint_toleration: i64,
    /// Weighted score of NodeAffinity.
    pub node_affinity: i64,
    /// Weighted score of PodTopologySpread.
    pub pod_topology_spread: i64,
    /// Weighted score of InterPodAffinity.
    pub inter_pod_affinity: i64,
    /// Weighted score of ImageLocality.
    pub image_locality: i64,
}

#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ReasonReport {
    /// The reason.
    pub reason: String,
    /// Number of nodes to which the reason applies.
    pub nodes: usize,
}

#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PreemptedReport {
    /// The namespace of the preempted pod.
    pub namespace: String,
    /// The name of the preempted pod.
    pub pod: String,
    /// The node of the preempted pod.
    pub node: NodeName,
    /// The preempted pod whose replacement preempts this pod in turn, with its namespace; `null` if the placed pod itself
    /// preempts it.
    pub in_turn_for: Option<String>,
    /// Where the replacement of the preempted pod lands, as text.
    pub text: String,
    /// Outcome of the preempted pod, a word of [outcomes.md](../outcomes.md): `moves`, `pending`, `lost`, `failsJob` or
    /// `unknown`.
    pub outcome: &'static str,
}

/// A node that receives pods.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ReceiverReport {
    /// The node.
    pub node: NodeName,
    /// Requests of the node's pods before the predicted changes, as the scheduler counts them.
    pub before: LoadReport,
    /// Requests of the node's pods after the predicted changes.
    pub after: LoadReport,
    /// The allocatable resources of the node.
    pub allocatable: LoadReport,
    /// Number of the replacements whose old pods leave without the plan, because they are already terminating or leave a
    /// lost node; 0 in a forecast.
    pub others: usize,
}

/// Requests, or the allocatable resources of a node.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LoadReport {
    /// CPU in thousandths of a core.
    pub cpu_milli: i64,
    /// Memory in bytes.
    pub memory_bytes: i64,
    /// Number of pods.
    pub pods: i64,
}

impl PlacementReport {
    pub fn new(trace: &PlacementTrace) -> Self {
        Self {
            feasible: trace.feasible,
            tied: trace.tied(),
            margin: trace.margin,
            close_margin: trace.is_close,
            ranking: trace.ranking.iter().map(scored).collect(),
            reasons: trace
                .reasons
                .iter()
                .map(|(reason, nodes)| ReasonReport { reason: reason.to_string(), nodes: *nodes })
                .collect(),
            preempts: trace.preempts.iter().map(preempted).collect(),
            help: trace.help.as_ref().map(|help| help.lines()).unwrap_or_default(),
            volumes: trace.volumes.iter().map(ToString::to_string).collect(),
            caveats: trace.caveats.iter().map(|caveat| caveat.word()).collect(),
            obstacle: trace.obstacle.as_ref().map(ToString::to_string),
        }
    }
}

fn scored(scored: &Scored) -> ScoredReport {
    let part = |scorer: Scorer| {
        let index = Scorer::ALL.iter().position(|of| *of == scorer);
        index.map_or(0, |index| scored.parts[index])
    };
    ScoredReport {
        node: scored.node.clone(),
        score: scored.total,
        plugins: PluginScoresReport {
            least_allocated: part(Scorer::LeastAllocated),
            balanced_allocation: part(Scorer::BalancedAllocation),
            taint_toleration: part(Scorer::Taints),
            node_affinity: part(Scorer::NodeAffinity),
            pod_topology_spread: part(Scorer::Spread),
            inter_pod_affinity: part(Scorer::PodAffinity),
            image_locality: part(Scorer::Images),
        },
    }
}

fn preempted(pod: &PreemptedPod) -> PreemptedReport {
    PreemptedReport {
        namespace: pod.pod.namespace.to_string(),
        pod: pod.pod.name.to_string(),
        node: pod.node.clone(),
        in_turn_for: pod.in_turn_for.as_ref().map(ToString::to_string),
        text: pod.to_string(),
        outcome: OutcomeKind::for_preempted(pod).word(),
    }
}

impl ReceiverReport {
    pub fn new(receiver: &Receiver) -> Self {
        let Receiver { node, before, after, others } = receiver;
        let load = |of: fn(&ResourceUse) -> [i64; 3], load: &ResourceUse| {
            let [cpu_milli, memory_bytes, pods] = of(load);
            LoadReport { cpu_milli, memory_bytes, pods }
        };
        let requested =
            |load: &ResourceUse| [load.cpu_milli.requested, load.memory_bytes.requested, load.pods.requested];
        let allocatable = |load: &ResourceUse| {
            [load.cpu_milli.allocatable, load.memory_bytes.allocatable, load.pods.allocatable]
        };
        Self {
            node: node.clone(),
            before: load(requested, before),
            after: load(requested, after),
            allocatable: load(allocatable, after),
            others: *others,
        }
    }
}

/// Where a pod lands: the word for reports, the node, and the reason.
pub fn landing(landing: &Landing) -> (&'static str, Option<NodeName>, Option<String>) {
    match landing {
        Landing::Node { node, why } => ("node", Some(node.clone()), Some(why.to_string())),
        Landing::Unknown => ("unknown", None, None),
        Landing::Pending { why } | Landing::Rejected { why } => (landing.word(), None, Some(why.to_string())),
    }
}

/// Prints a line with the aspects that placements ignore, if any.
pub fn caveat_line(caveats: BTreeSet<String>, out: &mut Page) {
    if !caveats.is_empty() {
        let caveats: Vec<String> = caveats.into_iter().collect();
        let _ = writeln!(out, "\nplacement caveats: {}", shown(&caveats.join("; ")));
    }
}

/// Text of the placement caveat that reports abbreviate as `word`.
pub fn caveat(word: &str) -> String {
    let caveat = Caveat::ALL.into_iter().find(|caveat| caveat.word() == word);
    caveat.map_or_else(|| word.to_owned(), |caveat| caveat.to_string())
}

/// Prints the nodes that receive pods, with their load before and after: `3 -> 5 of 110`.
pub fn receivers(receivers: &[ReceiverReport], out: &mut Page) {
    let share = |receiver: &ReceiverReport, resource: &str, of: fn(&LoadReport) -> i64| {
        let ReceiverReport { before, after, allocatable, .. } = receiver;
        share(resource, of(before), Share { allocatable: of(allocatable), requested: of(after) })
    };
    PageTable::new(receivers)
        .key("RECEIVING NODE", |receiver| receiver.node.to_string())
        .essential("PODS", |receiver| {
            let pods = share(receiver, "pods", |load| load.pods);
            if receiver.others == 0 {
                pods
            } else {
                format!("{pods}, {} of them without the plan", receiver.others)
            }
        })
        .useful("CPU", |receiver| share(receiver, "cpu", |load| load.cpu_milli))
        .useful("MEMORY", |receiver| share(receiver, "memory", |load| load.memory_bytes))
        .print(out);
}
