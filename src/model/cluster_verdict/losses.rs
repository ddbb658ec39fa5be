//! Findings about deleted nodes, whose pods are lost although the remaining nodes are Ready.

use std::sync::Arc;

use super::{Finding, Phrase, VerdictLevel, evictions::node_leaving, time_until};
use crate::model::Model;
use kordon_core::{
    cluster::{NodeName, Pod},
    engine::Certainty,
    plan::{owner, words::counted},
};
use kordon_time::Timestamp;

/// Nodes whose objects were deleted although pods of workloads are bound to them.
pub(super) struct DeletedNodes {
    nodes: usize,
    /// Number of pods that the pod garbage collector will remove from the deleted nodes, including pods of DaemonSets.
    pub leaving: usize,
    /// Time at which the first pod is removed; `None` until the pod garbage collector has noticed a deleted node.
    first: Option<Timestamp>,
    /// Whether `first` is the latest time possible, because the deletion of a node was not observed.
    is_latest: bool,
    /// The pods that are removed, in words: `all 3 pods of web`. If they are of several workloads, all pods of the
    /// deleted nodes: `8 pods`.
    pods: String,
    is_one: bool,
}

impl DeletedNodes {
    /// Finds the deleted nodes; `None` if no workload has lost pods. A node that was drained before its deletion has
    /// only pods of DaemonSets.
    pub fn new(model: &Model) -> Option<Self> {
        let engine = model.engine.as_ref()?;
        let cluster = &model.cluster;
        let is_lost = |pod: &&Arc<Pod>| pod.lives();
        let lost_on = |node| cluster.workload_pods(node).filter(is_lost);
        let nodes: Vec<&NodeName> =
            engine.missing_nodes(cluster).filter(|node| lost_on(node).next().is_some()).collect();
        let pods: Vec<&Arc<Pod>> = nodes.iter().flat_map(|node| lost_on(node)).collect();
        let first = pods.first()?;
        let owner = first.owner.as_ref().filter(|owner| {
            pods.iter().all(|pod| pod.owner.as_ref().is_some_and(|other| other.uid == owner.uid))
        });
        let (count, words) = match (owner, owner::workload(cluster, first)) {
            (Some(owner), Some(workload)) => {
                let all = if cluster.count_owned_by(&owner.uid) == pods.len() { "all " } else { "" };
                let words = format!("{all}{} of {}", counted(pods.len(), "pod", "pods"), workload.key.name);
                (pods.len(), words)
            }
            _ => {
                let all: usize = nodes.iter().map(|node| cluster.pods_on(node).count()).sum();
                (all, counted(all, "pod", "pods"))
            }
        };
        let leaving = nodes.iter().map(|node| node_leaving(model, node));
        let (leaving, first) = leaving
            .fold((0, None), |(count, first), (pods, at)| (count + pods, first.into_iter().chain(at).min()));
        let is_latest =
            nodes.iter().any(|node| engine.collection_certainty(node) == Some(Certainty::AtLatest));
        Some(Self { nodes: nodes.len(), leaving, first, is_latest, pods: words, is_one: count == 1 })
    }

    /// Finding about deleted nodes: `3 of 4 nodes were deleted: all 3 pods of web are removed by force in 45s unless
    /// the nodes register before`, `… in 45s at the latest unless …`.
    pub fn finding(&self, model: &Model, now: Timestamp) -> Finding {
        let all = self.nodes + model.cluster.nodes().len();
        let were = if self.nodes == 1 { "was" } else { "were" };
        let are = if self.is_one { "is" } else { "are" };
        let text = format!(
            "{} of {} {were} deleted: {} {are} removed by force",
            self.nodes,
            counted(all, "node", "nodes"),
            self.pods,
        );
        let phrase = match self.first.filter(|_| model.views.is_predicted()) {
            Some(first) => {
                let bound = if self.is_latest && first > now { " at the latest" } else { "" };
                Phrase::from(text + " ").time(time_until(first, now)).and(bound)
            }
            None => Phrase::from(text),
        };
        let registers = if self.nodes == 1 { "the node registers" } else { "the nodes register" };
        Finding::new(VerdictLevel::Warning, phrase.and(&format!(" unless {registers} before")))
    }
}
