//! Drains that make no progress, because PodDisruptionBudgets refuse evictions or because the drain waits for pods
//! that it does not evict.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use super::{
    budget::{self, BudgetState},
    drain_start::drain_began,
    eviction::{self, EvictionBlock, EvictionDecision},
    operator_budgets::operator_of_pod,
    outlook::{never_allows, refusal},
    rules::EvictionRules,
    verdict::Verdict,
    words::named,
};
use crate::cluster::{Cluster, Key, Node, NodeName, Pod, PodTreatment, Scope, pod::DO_NOT_DISRUPT};
use kordon_time::{Span, Timestamp};

/// A drain that is blocked by PodDisruptionBudgets, or by pods that it does not evict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockedDrain {
    pub node: NodeName,
    /// Time of the last progress: when the drain began, or, if this is later, when the last deletion of a pod started.
    pub since: Timestamp,
    /// Budgets that refuse the evictions, sorted by name.
    pub budgets: Vec<Key>,
    /// Pods whose eviction is refused.
    pub pods: Vec<Key>,
    /// Pods that Karpenter does not evict, but waits for.
    pub awaited: Vec<Key>,
    /// Unhealthy pods of the budgets, sorted. Each of these budgets would allow an eviction if its pods were healthy.
    pub unhealthy: Vec<Key>,
    /// Whether one of the pods has more than one budget. The API server never evicts such a pod.
    pub has_double: bool,
}

/// Time without progress after which a drain counts as blocked, unless a pod is refused for good. It is longer than
/// kubectl's retry interval of five seconds, because replacements take a while to become Ready.
const PATIENCE: Span = Span::from_secs(30);

impl BlockedDrain {
    /// Returns the blocked drain of a node that is being drained. `last_left` is the time at which the last deletion
    /// of a pod started.
    ///
    /// `None` if the drain is not blocked. This is so if no pod remains, or if no pod is refused for good and the drain
    /// made progress within `PATIENCE` (30 s) or some pod may leave now. Also `None` if budgets or the start of the
    /// drain are not known. While a drain scales up Deployments, their pods do not count as refused for good.
    pub fn find(
        cluster: &Cluster,
        node: &Node,
        last_left: Option<Timestamp>,
        rules: &EvictionRules,
        now: Timestamp,
    ) -> Option<Self> {
        let since = drain_began(cluster, node)?.max(last_left.unwrap_or(Timestamp::EPOCH));
        let left: Vec<&Arc<Pod>> = pods_left(cluster, node).collect();
        let is_early = now.since(since) < PATIENCE;
        if is_early && scales_up(node) || !knows_budgets(cluster, &left) {
            return None;
        }
        let states = budget::states(cluster, left.iter().copied(), rules, now);
        let (mut awaited, left): (Vec<&Arc<Pod>>, Vec<&Arc<Pod>>) =
            left.into_iter().partition(|pod| PodTreatment::find(node, pod) == PodTreatment::Awaited);
        if is_early {
            awaited.clear();
        }
        let blocks = blocks(cluster, &left, &states, rules);
        let may_change = is_early || blocks.len() < left.len();
        let blocks: Vec<(&Arc<Pod>, EvictionBlock)> = blocks
            .into_iter()
            .filter(|(pod, block)| !may_change || is_refused_for_good(pod, block, &states))
            .collect();
        let budgets = budgets_of(&blocks);
        let unhealthy = unhealthy(cluster, budgets.iter().filter_map(|key| states.get(key)), rules, now);
        (!budgets.is_empty() || !awaited.is_empty()).then(|| Self {
            node: node.name.clone(),
            since,
            pods: blocks.iter().map(|(pod, _)| pod.key.clone()).collect(),
            awaited: awaited.iter().map(|pod| pod.key.clone()).collect(),
            unhealthy,
            has_double: blocks.iter().any(|(_, block)| matches!(block, EvictionBlock::TwoBudgets { .. })),
            budgets: budgets.into_iter().collect(),
        })
    }

    /// Returns the budgets that refuse evictions of a drain now, each with the verdict on the first pod that it refuses.
    /// Empty if a budget is not known.
    ///
    /// A refusal counts from its start, not only after `PATIENCE`, because the drain is no more than a notice for it: most
    /// budgets allow the next eviction once a replacement is Ready, and [`Verdict::Waits`] says how many pods that takes. A
    /// budget is left out if the next sync of the disruption controller, within a second or two, lifts its refusal. So is
    /// one that never allows an eviction, while the drain scales Deployments up.
    pub fn refusing_now(
        cluster: &Cluster,
        node: &Node,
        rules: &EvictionRules,
        now: Timestamp,
    ) -> BTreeMap<Key, Verdict> {
        let left: Vec<&Arc<Pod>> = pods_left(cluster, node).collect();
        let mut refusing = BTreeMap::new();
        if !knows_budgets(cluster, &left) {
            return refusing;
        }
        let scales_up = scales_up(node);
        let states = budget::states(cluster, left.iter().copied(), rules, now);
        for pod in left.into_iter().filter(|pod| PodTreatment::find(node, pod) == PodTreatment::Evicted) {
            let EvictionDecision::Blocked(block) = eviction::decision(cluster, pod, &states, rules) else {
                continue;
            };
            let Some(budget) = block.budgets().next() else { continue };
            if refusing.contains_key(budget) || states.get(budget).is_some_and(BudgetState::lags) {
                continue;
            }
            match refusal(cluster, pod, rules, now) {
                None | Some(Verdict::WaitsForController { .. }) => {}
                Some(Verdict::Blocked { .. }) if scales_up => {}
                Some(verdict) => {
                    refusing.insert(budget.clone(), verdict);
                }
            }
        }
        refusing
    }

    /// Returns the drain and what blocks it: `drain of n3 blocked by PodDisruptionBudget monitoring/grafana`.
    pub fn text(&self) -> String {
        format!("drain of {} blocked by {self}", self.node)
    }

    /// Returns what the operator can do about the drain.
    pub fn advice(&self) -> String {
        let awaited = self.awaited.first().map(|_| {
            let pods = named(&self.awaited);
            format!("delete {pods}, or remove the annotation {DO_NOT_DISRUPT}")
        });
        match awaited {
            Some(awaited) if self.budgets.is_empty() => awaited,
            Some(awaited) => format!("{}; {awaited}", self.advice_on_budgets()),
            None => self.advice_on_budgets(),
        }
    }

    fn advice_on_budgets(&self) -> String {
        match self.unhealthy.as_slice() {
            _ if self.has_double => {
                "leave only one budget for each pod: delete the others, or narrow their selectors".into()
            }
            [] => "scale up its workload, or relax the budget".into(),
            pods => format!("make {} Ready", named(pods)),
        }
    }
}

/// Lists what blocks the drain, for example `PodDisruptionBudget monitoring/grafana and karpenter.sh/do-not-disrupt of
/// ci/build-7`.
impl fmt::Display for BlockedDrain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let budgets: Vec<String> = self.budgets.iter().map(ToString::to_string).collect();
        let budgets = match budgets.as_slice() {
            [] => None,
            [one] => Some(format!("PodDisruptionBudget {one}")),
            _ => Some(format!("PodDisruptionBudgets {}", budgets.join(", "))),
        };
        let awaited =
            (!self.awaited.is_empty()).then(|| format!("{DO_NOT_DISRUPT} of {}", named(&self.awaited)));
        f.write_str(&budgets.into_iter().chain(awaited).collect::<Vec<_>>().join(" and "))
    }
}

fn knows_budgets(cluster: &Cluster, pods: &[&Arc<Pod>]) -> bool {
    pods.iter().all(|pod| cluster.knows(&Scope::BudgetsIn(pod.key.namespace.clone())))
}

/// Returns the pods whose eviction is refused now, each with the reason.
fn blocks<'a>(
    cluster: &Cluster,
    pods: &[&'a Arc<Pod>],
    states: &BTreeMap<Key, BudgetState>,
    rules: &EvictionRules,
) -> Vec<(&'a Arc<Pod>, EvictionBlock)> {
    let block = |pod: &&'a Arc<Pod>| match eviction::decision(cluster, pod, states, rules) {
        EvictionDecision::Blocked(block) => Some((*pod, block)),
        EvictionDecision::Free(_) | EvictionDecision::Costs { .. } => None,
    };
    pods.iter().filter_map(block).collect()
}

fn budgets_of(blocks: &[(&Arc<Pod>, EvictionBlock)]) -> BTreeSet<Key> {
    blocks.iter().flat_map(|(_, block)| block.budgets().cloned()).collect()
}

/// Returns the pods of a node that its drain still has to evict or to wait for.
pub(super) fn pods_left<'a>(cluster: &'a Cluster, node: &'a Node) -> impl Iterator<Item = &'a Arc<Pod>> {
    let is_left =
        move |pod: &&Arc<Pod>| pod.lives() && PodTreatment::find(node, pod) != PodTreatment::Ignored;
    cluster.workload_pods(&node.name).filter(is_left)
}

/// Whether the drain of a node scales Deployments up, so that budgets that never allow an eviction now allow one then.
fn scales_up(node: &Node) -> bool {
    node.drain_claim.as_ref().is_some_and(|claim| !claim.surges.is_empty())
}

/// Returns whether a pod can never be evicted while its budgets are as they are. Drain clients try to evict all pods
/// of the node at once, so such a pod blocks the drain whatever the other pods do.
fn is_refused_for_good(pod: &Pod, block: &EvictionBlock, states: &BTreeMap<Key, BudgetState>) -> bool {
    let never = |budget: &Key| states.get(budget).is_some_and(|state| never_allows(state).is_some());
    matches!(block, EvictionBlock::TwoBudgets { .. })
        || (operator_of_pod(pod).is_none() && block.budgets().any(never))
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
