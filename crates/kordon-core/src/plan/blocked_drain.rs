//! Drains that make no progress because PodDisruptionBudgets refuse the eviction of all remaining pods.

use std::{collections::BTreeSet, fmt, sync::Arc};

use super::{
    budget::{self, BudgetState},
    eviction::{self, EvictionBlock, EvictionDecision},
    rules::EvictionRules,
};
use crate::cluster::{Cluster, ForeignDrain, Key, Node, NodeName, Pod, Scope};
use kordon_time::{Span, Timestamp};

/// A drain that PodDisruptionBudgets block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockedDrain {
    pub node: NodeName,
    /// Time of the last progress: when the node was cordoned, or when the last pod's deletion started if that was
    /// later.
    pub since: Timestamp,
    /// Budgets that refuse the evictions, sorted by name.
    pub budgets: Vec<Key>,
    /// Pods whose eviction is refused.
    pub pods: Vec<Key>,
    /// Unhealthy pods of the budgets, sorted. Each of these budgets would allow an eviction if its pods were healthy.
    pub unhealthy: Vec<Key>,
    /// Whether one of the pods has more than one budget. The API server never evicts such a pod.
    pub has_double: bool,
}

/// Time without progress after which a drain counts as blocked. It is longer than kubectl's retry interval of five
/// seconds, because replacements take a while to become Ready.
const PATIENCE: Span = Span::from_secs(30);

impl BlockedDrain {
    /// Returns the blocked drain of a node that is being drained. `last_left` is the time at which the deletion of the last pod
    /// started.
    ///
    /// `None` if the drain is not blocked: at least one remaining pod may leave now, no pod remains, or there has been
    /// progress within the last 30 s (`PATIENCE`). Also `None` if budgets or the time of the cordon are not known.
    pub fn find(
        cluster: &Cluster,
        node: &Node,
        last_left: Option<Timestamp>,
        rules: &EvictionRules,
        now: Timestamp,
    ) -> Option<Self> {
        let since = drain_began(cluster, node)?.max(last_left.unwrap_or(Timestamp::EPOCH));
        let runs = |pod: &&Arc<Pod>| pod.lives();
        let left = cluster.workload_pods(&node.name).filter(runs);
        let left: Vec<&Arc<Pod>> = left.collect();
        let is_known = |pod: &&Arc<Pod>| cluster.knows(&Scope::BudgetsIn(pod.key.namespace.clone()));
        if now.since(since) < PATIENCE || !left.iter().all(is_known) {
            return None;
        }
        let states = budget::states(cluster, left.iter().copied(), rules, now);
        let (mut budgets, mut has_double) = (BTreeSet::new(), false);
        for pod in &left {
            match eviction::decision(cluster, pod, &states, rules) {
                EvictionDecision::Blocked(block) => {
                    has_double |= matches!(block, EvictionBlock::TwoBudgets { .. });
                    budgets.extend(block.budgets().cloned());
                }
                EvictionDecision::Free(_) | EvictionDecision::Costs { .. } => return None,
            }
        }
        let budgets: Vec<Key> = budgets.into_iter().collect();
        let pods = left.iter().map(|pod| pod.key.clone()).collect();
        let unhealthy = unhealthy(cluster, budgets.iter().filter_map(|key| states.get(key)), rules, now);
        (!budgets.is_empty()).then(|| Self {
            node: node.name.clone(),
            since,
            budgets,
            pods,
            unhealthy,
            has_double,
        })
    }

    /// Returns what the operator can do about the drain.
    pub fn advice(&self) -> String {
        match self.unhealthy.as_slice() {
            _ if self.has_double => {
                "leave only one budget for each pod: delete the others, or narrow their selectors".into()
            }
            [] => "scale up its workload, or relax the budget".into(),
            [pod] => format!("make {pod} Ready"),
            [pod, others @ ..] => format!("make {pod} and {} more Ready", others.len()),
        }
    }
}

/// Lists the blocking budgets, for example `PodDisruptionBudget monitoring/grafana`.
impl fmt::Display for BlockedDrain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let budgets: Vec<String> = self.budgets.iter().map(ToString::to_string).collect();
        let word = if budgets.len() == 1 { "PodDisruptionBudget" } else { "PodDisruptionBudgets" };
        write!(f, "{word} {}", budgets.join(", "))
    }
}

/// Returns the unhealthy pods of the budgets that would allow an eviction if all their pods were healthy. More replicas
/// do not always help: a StatefulSet creates none while a pod of a lower ordinal is not Ready.
fn unhealthy<'a>(
    cluster: &Cluster,
    states: impl Iterator<Item = &'a BudgetState>,
    rules: &EvictionRules,
    now: Timestamp,
) -> Vec<Key> {
    let mut found = BTreeSet::new();
    for state in states {
        let Some(budget) = cluster.budgets().get(&state.key) else { continue };
        let is_unhealthy = |pod: &&Arc<Pod>| pod.lives() && !budget::is_healthy(cluster, budget, pod, now);
        let pods: Vec<Key> =
            budget::pods_of(cluster, budget, rules).filter(is_unhealthy).map(|pod| pod.key.clone()).collect();
        let would_be_healthy =
            state.numbers.healthy.saturating_add(i32::try_from(pods.len()).unwrap_or(i32::MAX));
        if would_be_healthy > state.numbers.desired {
            found.extend(pods);
        }
    }
    found.into_iter().collect()
}

/// Returns when the drain of a node began: the time that a component of another project noted on the node, or else the
/// time of the cordon. `None` if neither time is known.
pub fn drain_began(cluster: &Cluster, node: &Node) -> Option<Timestamp> {
    let foreign = ForeignDrain::find(cluster, node).and_then(|drain| drain.since);
    foreign.or_else(|| cordoned_at(cluster, node))
}

/// Returns when the node was cordoned, by kordon's note or by the taint of the cordon. `None` if neither has a time.
pub fn cordoned_at(cluster: &Cluster, node: &Node) -> Option<Timestamp> {
    let noted = node.cordon().map(|note| note.at);
    let tainted = || node.cordon_taint()?.time_added;
    noted.or_else(|| tainted().map(|at| cluster.local(at)))
}
