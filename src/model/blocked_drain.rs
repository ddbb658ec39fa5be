//! The drains that make no progress because PodDisruptionBudgets allow no eviction.

use std::sync::Arc;

use super::{node_state::NodeState, watchlist::NodeWatchlist};
use crate::{
    cluster::{Cluster, FeedKind, Key, Node, NodeName, Pod},
    engine::ServerVersion,
    ordered::OrderedSet,
    plan::{
        EvictionRules, budget,
        eviction::{self, EvictionDecision},
    },
    time::{Span, Timestamp},
};

/// A drain that a budget blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockedDrain {
    pub node: NodeName,
    /// Since when nothing has left: the drain began then, or its last pod began to leave.
    pub since: Timestamp,
    /// The budgets that refuse the pods that are left.
    pub budgets: Vec<Key>,
    /// How many pods they refuse.
    pub pods: usize,
}

/// A drain that waits for less than this is not blocked: kubectl tries again every five seconds, and replacements need some
/// time to become Ready.
const PATIENCE: Span = Span::from_secs(30);

/// The drains of which every pod that is left is refused by a budget, and has been for a while.
pub fn find(
    cluster: &Cluster,
    watchlist: &NodeWatchlist,
    version: ServerVersion,
    now: Timestamp,
) -> Vec<BlockedDrain> {
    if !cluster.gaps([FeedKind::Pods, FeedKind::Budgets]).unknown().is_empty() {
        return Vec::new();
    }
    let rules = EvictionRules::of(version);
    let draining = watchlist.notable().filter(|(_, state)| *state == NodeState::Draining);
    let nodes = draining.filter_map(|(name, _)| cluster.node(name));
    nodes.filter_map(|node| blocked(cluster, node, &rules, now)).collect()
}

fn blocked(cluster: &Cluster, node: &Node, rules: &EvictionRules, now: Timestamp) -> Option<BlockedDrain> {
    let left: Vec<&Arc<Pod>> = cluster.workload_pods_on(&node.name).collect();
    let since = began(cluster, node)?;
    let waits = now.since(since) >= PATIENCE && left.iter().all(|pod| pod.termination.is_none());
    if left.is_empty() || !waits {
        return None;
    }
    let states = budget::states(cluster, left.iter().copied(), rules, now);
    let mut budgets = OrderedSet::new();
    for pod in &left {
        match eviction::decision(cluster, pod, &states, rules) {
            EvictionDecision::Blocked(block) => budgets.extend(block.budgets().cloned()),
            EvictionDecision::Free(_) | EvictionDecision::Costs { .. } => return None,
        }
    }
    let budgets: Vec<Key> = budgets.into_iter().collect();
    (!budgets.is_empty()).then(|| BlockedDrain { node: node.name.clone(), since, budgets, pods: left.len() })
}

/// When the node was cordoned for its drain; none where nothing tells.
fn began(cluster: &Cluster, node: &Node) -> Option<Timestamp> {
    let noted = node.cordon().map(|note| note.at);
    let tainted =
        || node.taints.iter().find(|taint| taint.key == *"node.kubernetes.io/unschedulable")?.time_added;
    noted.or_else(|| tainted().map(|at| cluster.local(at)))
}
