//! Drains that wait for an uncordon: a budget allows no eviction until a Pending pod runs, and only cordoned nodes
//! would take this pod. Two drains may wait for each other in this way.

use std::{collections::BTreeSet, fmt, sync::Arc};

use super::{
    budget,
    eviction::{self, EvictionDecision},
    rules::EvictionRules,
};
use crate::cluster::{Cluster, Key, NodeName, Pod};
use kordon_time::Timestamp;

/// A drain that waits for the uncordon of another node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CordonWait {
    /// The node that is drained.
    pub node: NodeName,
    /// The Pending pod that must run before the node's next pod may leave.
    pub pod: Key,
    /// Cordoned nodes that would take the pod, sorted; at least one, and never `node` itself.
    pub nodes: Vec<NodeName>,
    /// The node among `nodes` whose own drain waits, directly or through other drains, for the uncordon of `node`.
    /// `None` if there is no such node.
    pub waits_in_turn: Option<NodeName>,
}

impl CordonWait {
    /// Returns why the drain of a node waits for an uncordon; `None` if it does not wait for one. `takers` returns the
    /// cordoned nodes that would take a Pending pod, sorted.
    pub fn find(
        cluster: &Cluster,
        node: &NodeName,
        rules: &EvictionRules,
        now: Timestamp,
        takers: &mut impl FnMut(&Pod) -> Vec<NodeName>,
    ) -> Option<Self> {
        let mut waits = |node: &NodeName| held_pods(cluster, node, rules, now, takers);
        let (pod, nodes) = waits(node).into_iter().next()?;
        let mut waits_for = |node: &NodeName| -> BTreeSet<NodeName> {
            waits(node).into_iter().flat_map(|(_, nodes)| nodes).collect()
        };
        let waits_in_turn = nodes.iter().find(|other| reaches(other, node, &mut waits_for)).cloned();
        Some(Self { node: node.clone(), pod, nodes, waits_in_turn })
    }

    /// Returns the node to uncordon: the one whose own drain waits in turn, else the first that would take the pod.
    pub fn to_uncordon(&self) -> Option<&NodeName> {
        self.waits_in_turn.as_ref().or(self.nodes.first())
    }

    /// Returns what the operator can do so that the drain no longer waits.
    pub fn advice(&self) -> String {
        let one = self.to_uncordon().map_or_else(String::new, ToString::to_string);
        match self.waits_in_turn {
            Some(_) => format!("uncordon {one} until {} is drained: one node at a time", self.node),
            None => format!("uncordon {one}"),
        }
    }
}

/// States the wait: `a drain of n1 waits: web/a is Pending and fits n2 without its cordon`.
impl fmt::Display for CordonWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { node, pod, nodes, waits_in_turn } = self;
        let names: Vec<&str> = nodes.iter().map(|node| &**node).collect();
        let cordon = if nodes.len() == 1 { "without its cordon" } else { "without their cordons" };
        match waits_in_turn {
            Some(other) => write!(f, "drains of {node} and {other} wait for each other: ")?,
            None => write!(f, "a drain of {node} waits: ")?,
        }
        write!(f, "{pod} is Pending and fits {} {cordon}", names.join(" or "))
    }
}

/// Returns the Pending pods that must run before pods of a node may leave, each with the other cordoned nodes that
/// would take it.
fn held_pods(
    cluster: &Cluster,
    node: &NodeName,
    rules: &EvictionRules,
    now: Timestamp,
    takers: &mut impl FnMut(&Pod) -> Vec<NodeName>,
) -> Vec<(Key, Vec<NodeName>)> {
    let runs = |pod: &&Arc<Pod>| pod.lives();
    let pods: Vec<_> = cluster.workload_pods(node).filter(runs).collect();
    let states = budget::states(cluster, pods.iter().copied(), rules, now);
    let mut budgets = BTreeSet::new();
    for pod in pods {
        if let EvictionDecision::Blocked(block) = eviction::decision(cluster, pod, &states, rules) {
            budgets.extend(block.budgets().cloned());
        }
    }
    let mut held = Vec::new();
    for budget in budgets.iter().filter_map(|budget| cluster.budgets().get(budget)) {
        for pod in budget::pods_of(cluster, budget, rules).filter(|pod| pod.is_unscheduled()) {
            let mut nodes = takers(pod);
            nodes.retain(|taker| taker != node);
            if !nodes.is_empty() {
                held.push((pod.key.clone(), nodes));
            }
        }
    }
    held
}

/// Returns whether a chain of waiting drains leads from one node to another. Each drain in the chain waits for the
/// uncordon of the next node.
fn reaches(
    from: &NodeName,
    to: &NodeName,
    waits_for: &mut impl FnMut(&NodeName) -> BTreeSet<NodeName>,
) -> bool {
    let (mut seen, mut open) = (BTreeSet::from([from.clone()]), vec![from.clone()]);
    while let Some(node) = open.pop() {
        for next in waits_for(&node) {
            if next == *to {
                return true;
            }
            if seen.insert(next.clone()) {
                open.push(next);
            }
        }
    }
    false
}
