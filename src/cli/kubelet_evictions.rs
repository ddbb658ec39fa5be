//! Evictions by kubelets under pressure, for reports.

use serde::Serialize;

use super::page::{Emphasis, Page};
use crate::model::{Model, cluster_verdict, pressure::KubeletEviction};
use kordon_core::{
    cluster::{Node, NodeName},
    placement::Snapshot,
    plan::{FailoverPod, pressure_failover},
};
use kordon_time::Timestamp;

/// What kubelets evict because their nodes are under pressure.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct KubeletEvictionsReport {
    /// The kubelets that evict pods now, or will if nothing changes, because their nodes are under pressure. No budget
    /// and no rate limit delays that.
    kubelet_evictions: Vec<KubeletEvictionReport>,
    /// The nodes that report pressure, and of which it is not known whether their kubelets evict pods: their usage could
    /// not be read.
    unmeasured_nodes: Vec<NodeName>,
    #[serde(skip)]
    texts: Vec<String>,
}

/// The evictions by one kubelet.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
struct KubeletEvictionReport {
    /// The node.
    node: NodeName,
    /// The condition of the node: `MemoryPressure`, `DiskPressure` or `PIDPressure`.
    condition: &'static str,
    /// When the first pod is evicted, unless the resource recovers earlier.
    at: Timestamp,
    /// Whether the first pod may be evicted before `at`, because the threshold was met before it was measured.
    at_latest: bool,
    /// The pods that are evicted at most. Fewer are if deleting images frees enough.
    pods: Vec<KubeletEvictedPodReport>,
}

#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
struct KubeletEvictedPodReport {
    /// The pod's namespace.
    namespace: String,
    /// The pod's name.
    pod: String,
    /// What becomes of the pod: a word of [outcomes.md](../outcomes.md).
    outcome: &'static str,
    /// The node of the replacement; `null` if it lands on none.
    outcome_node: Option<NodeName>,
    /// The outcome in words; not for parsing.
    outcome_text: String,
}

impl KubeletEvictionsReport {
    pub fn new(model: &Model, now: Timestamp) -> Self {
        let evicting = model.evicting_kubelets();
        let reports = evicting.filter_map(|(name, eviction)| {
            Some(KubeletEvictionReport::new(model, model.cluster.node(name)?, eviction, now))
        });
        Self {
            kubelet_evictions: reports.collect(),
            unmeasured_nodes: model.unmeasured_under_pressure().into_iter().collect(),
            texts: cluster_verdict::kubelet_evictions(model, now),
        }
    }

    /// Whether it is known that no kubelet evicts pods.
    pub const fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// Prints what kubelets evict, and what becomes of the pods.
    pub fn say(&self, out: &mut Page) {
        for text in &self.texts {
            out.line(Emphasis::Warning, text);
        }
        for eviction in &self.kubelet_evictions {
            for KubeletEvictedPodReport { namespace, pod, outcome_text, .. } in &eviction.pods {
                let line = format!("  {namespace}/{pod} on {}: {outcome_text}", eviction.node);
                out.line(Emphasis::Plain, &line);
            }
        }
    }
}

impl KubeletEvictionReport {
    fn new(model: &Model, node: &Node, eviction: KubeletEviction, now: Timestamp) -> Self {
        let KubeletEviction { condition, signal, at, is_latest, .. } = eviction;
        let pods = model.node_pressure(node, Some(signal)).map(|pressure| {
            let snapshot = Snapshot::new(&model.cluster, model.settings.version);
            pressure_failover(&model.cluster, snapshot, node, &pressure.order, now).pods
        });
        Self {
            node: node.name.clone(),
            condition: condition.as_str(),
            at,
            at_latest: is_latest,
            pods: pods.iter().flatten().map(KubeletEvictedPodReport::new).collect(),
        }
    }
}

impl KubeletEvictedPodReport {
    fn new(evicted: &FailoverPod) -> Self {
        let FailoverPod { pod, outcome, .. } = evicted;
        Self {
            namespace: pod.key.namespace.to_string(),
            pod: pod.key.name.to_string(),
            outcome: outcome.kind().word(),
            outcome_node: outcome.node().cloned(),
            outcome_text: outcome.to_string(),
        }
    }
}
