//! Where pods land and what receives them, in reports and tables: shared by `kordon plan`, `forecast` and `why`.

use serde::Serialize;

use crate::{
    cluster::NodeName,
    placement::{Caveat, ResourceUse, Scored, Scorer, Share},
    plan::{Displaced, PlacementTrace, Receiver, placement_trace::share},
};

/// What was weighed where a pod lands.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlacementReport {
    /// How many nodes would do.
    pub feasible: usize,
    /// How many of them are as good as the best.
    pub best: usize,
    /// Points from the best to the next.
    pub margin: Option<i64>,
    pub close_call: bool,
    /// The best and their runners-up, best first.
    pub ranking: Vec<ScoredReport>,
    /// Where no node would do as it is.
    pub reasons: Vec<ReasonReport>,
    pub displaces: Vec<DisplacedReport>,
    /// What would help, in words.
    pub help: Vec<String>,
    /// Where its volumes keep it, in words.
    pub volumes: Vec<String>,
    /// `volumes`, `capacity`, `devices`, `services`, `group`, `newNodes`, `newer` or `sampled`.
    pub not_modelled: Vec<&'static str>,
    /// Why the default scheduler does not place it.
    pub obstacle: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ScoredReport {
    pub node: NodeName,
    pub score: i64,
    /// What it is made of, weighted.
    pub parts: PartsReport,
}

#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PartsReport {
    pub least_allocated: i64,
    pub balanced_allocation: i64,
    pub taints: i64,
    pub node_affinity: i64,
    pub spread: i64,
    pub pod_affinity: i64,
    pub images: i64,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReasonReport {
    pub reason: String,
    pub nodes: usize,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DisplacedReport {
    pub namespace: String,
    pub pod: String,
    pub node: NodeName,
    /// Where its own replacement lands, in words.
    pub text: String,
}

/// A node that receives pods.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReceiverReport {
    pub node: NodeName,
    pub before: LoadReport,
    pub after: LoadReport,
    pub offers: LoadReport,
}

/// Requests, or what a node offers.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LoadReport {
    pub cpu_milli: i64,
    pub memory_bytes: i64,
    pub pods: i64,
}

impl PlacementReport {
    pub fn new(trace: &PlacementTrace) -> Self {
        Self {
            feasible: trace.feasible,
            best: trace.best,
            margin: trace.margin,
            close_call: trace.close_call,
            ranking: trace.ranking.iter().map(scored).collect(),
            reasons: trace
                .reasons
                .iter()
                .map(|(reason, nodes)| ReasonReport { reason: reason.to_string(), nodes: *nodes })
                .collect(),
            displaces: trace.displaces.iter().map(displaced).collect(),
            help: trace.help.as_ref().map(|help| help.words()).unwrap_or_default(),
            volumes: trace.volumes.iter().map(ToString::to_string).collect(),
            not_modelled: trace.caveats.iter().map(|reservation| reservation.word()).collect(),
            obstacle: trace.obstacle.as_ref().map(ToString::to_string),
        }
    }
}

fn scored(scored: &Scored) -> ScoredReport {
    let part = |scorer: Scorer| {
        let place = Scorer::ALL.iter().position(|of| *of == scorer);
        place.map_or(0, |place| scored.parts[place])
    };
    ScoredReport {
        node: scored.node.clone(),
        score: scored.total,
        parts: PartsReport {
            least_allocated: part(Scorer::LeastAllocated),
            balanced_allocation: part(Scorer::BalancedAllocation),
            taints: part(Scorer::Taints),
            node_affinity: part(Scorer::NodeAffinity),
            spread: part(Scorer::Spread),
            pod_affinity: part(Scorer::PodAffinity),
            images: part(Scorer::Images),
        },
    }
}

fn displaced(displaced: &Displaced) -> DisplacedReport {
    DisplacedReport {
        namespace: displaced.pod.namespace.to_string(),
        pod: displaced.pod.name.to_string(),
        node: displaced.node.clone(),
        text: displaced.to_string(),
    }
}

impl ReceiverReport {
    pub fn new(receiver: &Receiver) -> Self {
        let Receiver { node, before, after } = receiver;
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
            offers: load(allocatable, after),
        }
    }
}

/// What a reservation says, by its word.
pub fn caveat(word: &str) -> String {
    let told = Caveat::ALL.into_iter().find(|reservation| reservation.word() == word);
    told.map_or_else(|| word.to_owned(), |reservation| reservation.to_string())
}

/// `3 -> 5 of 110`
pub fn receiver(receiver: &ReceiverReport) -> [String; 4] {
    let ReceiverReport { node, before, after, offers } = receiver;
    let share = |resource: &str, of: fn(&LoadReport) -> i64| {
        share(resource, of(before), Share { allocatable: of(offers), requested: of(after) })
    };
    [
        node.to_string(),
        share("pods", |load| load.pods),
        share("cpu", |load| load.cpu_milli),
        share("memory", |load| load.memory_bytes),
    ]
}

#[cfg(test)]
impl ReceiverReport {
    /// One in which nothing is null.
    pub fn full() -> Self {
        let load = LoadReport { cpu_milli: 500, memory_bytes: 1 << 30, pods: 3 };
        Self { node: "n2".into(), before: load, after: load, offers: load }
    }
}

#[cfg(test)]
impl PlacementReport {
    /// One in which nothing is null and no list is empty.
    pub fn full() -> Self {
        let text = || "text".to_owned();
        let parts = PartsReport {
            least_allocated: 50,
            balanced_allocation: 90,
            taints: 0,
            node_affinity: 0,
            spread: 160,
            pod_affinity: 0,
            images: 0,
        };
        let (namespace, pod) = (text(), text());
        Self {
            feasible: 2,
            best: 1,
            margin: Some(4),
            close_call: false,
            ranking: vec![ScoredReport { node: "n2".into(), score: 300, parts }],
            reasons: vec![ReasonReport { reason: text(), nodes: 1 }],
            displaces: vec![DisplacedReport { namespace, pod, node: "n2".into(), text: text() }],
            help: vec![text()],
            volumes: vec![text()],
            not_modelled: vec!["volumes"],
            obstacle: Some(text()),
        }
    }
}
