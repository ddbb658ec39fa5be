//! Outlook for pods that are still blocked at the end of a simulated run: they may leave later, or never
//! (docs/upstream/operator-actions.md#5.6).

use std::{collections::BTreeSet, sync::Arc};

use super::{
    budget::{self, BudgetState},
    eviction::{self, EvictionBlock, EvictionDecision},
    failover,
    landing::Landing,
    operator_budgets::{OperatorNeeds, operator_of_pod, setting_of},
    owner::{self, OwnerLookup, Recreation},
    rules::EvictionRules,
    simulation::{PodResult, RunResult},
    switchover::{InstanceRole, Switchover, instance_scopes, role_of, switchover},
    verdict::{BlockPattern, Verdict},
};
use crate::cluster::{Budget, Cluster, Key, KnownSetting, Name, NodeName, Pod, Uid, Workload};
use kordon_time::Timestamp;

/// Returns the verdict on a pod whose eviction the API server refuses now, in a plan that evicts only this pod. `None`
/// if the server does not refuse it, or if it is not known whether it does.
pub fn refusal(cluster: &Cluster, pod: &Arc<Pod>, rules: &EvictionRules, now: Timestamp) -> Option<Verdict> {
    let budgets = budget::states(cluster, [pod], rules, now);
    match eviction::decision(cluster, pod, &budgets, rules) {
        EvictionDecision::Free(_) | EvictionDecision::Costs { .. } => None,
        EvictionDecision::Blocked(block) => {
            let result = &RunResult { budgets, ..RunResult::default() };
            let outlook = Outlook { cluster, result, closed: &BTreeSet::new(), rules, now };
            Some(outlook.verdict(pod, &block))
        }
    }
}

/// The outlook for pods that are still blocked at the end of a simulated run.
pub(super) struct Outlook<'a> {
    pub cluster: &'a Cluster,
    pub result: &'a RunResult,
    /// Nodes that the plan cordons.
    pub closed: &'a BTreeSet<NodeName>,
    pub rules: &'a EvictionRules,
    /// Start of the simulated run.
    pub now: Timestamp,
}

impl Outlook<'_> {
    /// Returns the verdict on a pod that is still blocked.
    pub fn verdict(&self, pod: &Pod, block: &EvictionBlock) -> Verdict {
        let mut verdict = self.on_block(pod, block);
        if let Verdict::Blocked { budget, frees_unhealthy, .. }
        | Verdict::Waits { budget, frees_unhealthy, .. } = &mut verdict
        {
            let is_owned = self.cluster.budgets().get(budget).is_some_and(|budget| budget.owner.is_some())
                || operator_of_pod(pod).is_some();
            *frees_unhealthy = self.rules.unhealthy_policy && !pod.is_ready() && !is_owned;
        }
        verdict
    }

    /// Returns the verdict on a blocked pod, without the effect of the budget's policy for unhealthy pods.
    fn on_block(&self, pod: &Pod, block: &EvictionBlock) -> Verdict {
        let result = self.result;
        match block {
            EvictionBlock::NamespaceTerminating => Verdict::WaitsForNamespace,
            EvictionBlock::TwoBudgets { budgets } => Verdict::TwoBudgets { budgets: budgets.clone() },
            EvictionBlock::UnknownPolicy { budget } => {
                Verdict::Unknown { missing: format!("unhealthyPodEvictionPolicy of {budget}") }
            }
            EvictionBlock::Stale { budget } => {
                match result.budgets.get(budget).and_then(|state| state.sync_failure.clone()) {
                    Some(message) => blocked(budget, result, BlockPattern::SyncFailed { message }),
                    None => Verdict::WaitsForController { budget: budget.clone() },
                }
            }
            EvictionBlock::Broken { budget, what } => blocked(budget, result, BlockPattern::Broken { what }),
            EvictionBlock::Exhausted { budget, .. } => match result.budgets.get(budget) {
                Some(state) => self.with_operator(pod, self.exhausted(pod, state)),
                None => Verdict::Unknown { missing: format!("budget {budget}") },
            },
        }
    }

    /// Returns the verdict on a pod whose budget currently allows no disruption.
    fn exhausted(&self, pod: &Pod, state: &BudgetState) -> Verdict {
        let Self { cluster, result, rules, .. } = *self;
        let numbers = state.numbers;
        let never = |pattern| blocked(&state.key, result, pattern);
        if let Some(pattern) = never_allows(state) {
            return never(pattern);
        }
        let mut unhealthy = unhealthy(cluster, state, result, rules);
        if let Some(pattern) = never_healthy(cluster, &unhealthy) {
            return never(pattern);
        }
        if unhealthy.is_empty()
            && let Some(pattern) = never_recovers(cluster, state, result, rules)
        {
            return never(pattern);
        }
        let on_silent = on_silent_nodes(cluster, state, result, rules);
        if unhealthy.is_empty()
            && on_silent.is_empty()
            && let Some(budget) = cluster.budgets().get(&state.key)
            && are_all_healthy(cluster, budget, state, rules)
        {
            return never(BlockPattern::AllHealthy { needs: numbers.desired });
        }
        unhealthy.extend(on_silent);
        // A pod that is not Ready uses no disruption if enough other pods are Ready (upstream `EvictionREST.Create`).
        let spare = i32::from(pod.is_ready() || numbers.desired <= 0);
        let recoveries = numbers.desired.saturating_sub(numbers.healthy).saturating_add(spare).max(1);
        let is_pending = |key: &Key| cluster.pod(key).is_some_and(|pod| pod.is_unscheduled());
        let (pending, unhealthy): (Vec<Key>, Vec<Key>) = unhealthy.into_iter().partition(is_pending);
        Verdict::Waits {
            budget: state.key.clone(),
            numbers,
            recoveries,
            unhealthy,
            pending_cause: common_cause(cluster, &pending),
            pending,
            terminating: returning(cluster, state, rules),
            frees_unhealthy: false,
        }
    }

    /// Replaces the verdict on a pod if no other pod can make its budget allow the eviction, but a known Kubernetes
    /// operator lifts the budget or moves the pod. Returns any other verdict unchanged.
    fn with_operator(&self, pod: &Pod, verdict: Verdict) -> Verdict {
        let has_acted = self.result.pods.get(&pod.key).is_some_and(|pod| pod.operator.is_some());
        let Some(operator) = operator_of_pod(pod).filter(|_| !has_acted) else { return verdict };
        let (budget, numbers) = match &verdict {
            Verdict::Blocked {
                budget,
                numbers,
                pattern:
                    BlockPattern::CannotBeMet { .. }
                    | BlockPattern::AllHealthy { .. }
                    | BlockPattern::ReplacementPending { .. },
                ..
            } => (budget.clone(), *numbers),
            Verdict::Waits { budget, numbers, unhealthy, pending, .. }
                if unhealthy.is_empty() && pending.is_empty() =>
            {
                (budget.clone(), *numbers)
            }
            _ => return verdict,
        };
        let setting = setting_of(self.cluster, pod);
        match operator.needs {
            OperatorNeeds::Setting(needs) if setting == Some(&KnownSetting::Missing) => {
                let pattern = BlockPattern::OperatorLacks { operator: operator.operator, needs };
                return Verdict::Blocked { budget, numbers, pattern, frees_unhealthy: false };
            }
            OperatorNeeds::Setting(_) | OperatorNeeds::Nothing => {
                let (pods, setting) = (Vec::new(), setting.cloned());
                return Verdict::WaitsForOperator { budget, numbers, operator, pods, setting };
            }
            OperatorNeeds::OtherInstances { .. } => {}
        }
        let Some(InstanceRole { operator: name, .. }) = role_of(pod) else { return verdict };
        let acts = switchover(self.cluster, pod, self.closed, self.now);
        let is_cordoned = acts.is_some();
        let acts = acts.or_else(|| {
            let with_own = self.closed.iter().chain(&pod.node).cloned().collect();
            switchover(self.cluster, pod, &with_own, self.now)
        });
        let pattern = match acts {
            Some(Switchover::Unknown) => {
                let gaps = self.cluster.gaps_in(instance_scopes(pod));
                return Verdict::Unknown { missing: format!("whether {name} moves its role: {gaps}") };
            }
            Some(Switchover::Moves { after, moves_them })
                if is_cordoned || !(after.is_empty() || moves_them) =>
            {
                let pods = after.into_iter().collect();
                return Verdict::WaitsForOperator { budget, numbers, operator, pods, setting: None };
            }
            Some(Switchover::Restarts) if is_cordoned => {
                let pods = Vec::new();
                return Verdict::WaitsForOperator { budget, numbers, operator, pods, setting: None };
            }
            Some(Switchover::NoReplica) => BlockPattern::NoReplica { operator: name },
            Some(Switchover::Overdue { since }) => {
                BlockPattern::NotMoved { operator: name, since: self.now.since(since) }
            }
            Some(Switchover::Moves { .. } | Switchover::Restarts) | None => {
                BlockPattern::NotCordoned { operator: name }
            }
        };
        Verdict::Blocked { budget, numbers, pattern, frees_unhealthy: false }
    }
}

/// Returns why Pending pods have no node; `None` if they have different causes, or if there are no pods.
fn common_cause(cluster: &Cluster, pending: &[Key]) -> Option<Name> {
    let pods = pending.iter().filter_map(|key| cluster.pod(key));
    let mut causes: BTreeSet<String> = pods.map(|pod| pod.pending_cause()).collect();
    let cause = causes.pop_first()?;
    causes.is_empty().then(|| cause.into())
}

fn blocked(budget: &Key, result: &RunResult, pattern: BlockPattern) -> Verdict {
    let numbers = result.budgets.get(budget).map(|state| state.numbers).unwrap_or_default();
    Verdict::Blocked { budget: budget.clone(), numbers, pattern, frees_unhealthy: false }
}

/// Returns why a budget that allows no disruption now can never allow one, even if the state of its pods changes;
/// `None` if it may allow one later.
pub fn never_allows(state: &BudgetState) -> Option<BlockPattern> {
    let numbers = state.numbers;
    if state.unspecified {
        return Some(BlockPattern::NothingGiven);
    }
    if let Some(message) = &state.sync_failure {
        return Some(BlockPattern::SyncFailed { message: message.clone() });
    }
    if numbers.expected <= 0 {
        return Some(BlockPattern::ExpectsNone);
    }
    let max_healthy = state.max_healthy.filter(|max| numbers.desired >= *max)?;
    let scaling_helps = !state.needs_all && state.has_controller;
    Some(BlockPattern::CannotBeMet { needs: numbers.desired, max_healthy, scaling_helps })
}

/// Returns why a budget with these unhealthy pods never allows an eviction: none of the pods is expected to recover.
/// `None` if one of them may recover.
fn never_healthy(cluster: &Cluster, unhealthy: &[Key]) -> Option<BlockPattern> {
    let trouble = |key: &Key| cluster.pod(key).and_then(|pod| pod.trouble().cloned());
    let why = trouble(unhealthy.first()?)?;
    let pods = unhealthy.to_vec();
    unhealthy.iter().all(|key| trouble(key).is_some()).then_some(BlockPattern::Unhealthy { pods, why })
}

/// Returns whether all pods of a budget are healthy at the end of a run, and no pod is missing. No pod is missing if
/// each owner, and the Deployment above it, has as many pods as it wants (upstream `scale` in
/// `pkg/controller/deployment/sync.go`). Owners whose scale is not known are assumed to have all their pods.
fn are_all_healthy(cluster: &Cluster, budget: &Budget, state: &BudgetState, rules: &EvictionRules) -> bool {
    let lives = |pod: &&Arc<Pod>| pod.lives();
    let is_complete = |pod: &Arc<Pod>| {
        let Some(owner) = &pod.owner else { return true };
        let OwnerLookup::Found(workload) = owner::find(cluster, &pod.key.namespace, owner) else {
            return true;
        };
        let live = |owner: &Uid| cluster.pods_owned_by(owner).filter(lives).count();
        let has = |workload: &Workload, live: usize| {
            workload.replicas.is_none_or(|replicas| i32::try_from(live).unwrap_or(i32::MAX) >= replicas)
        };
        has(&workload, live(&owner.uid))
            && owner::deployment_of(cluster, &workload).is_none_or(|deployment| {
                let own = owner::replica_sets_of(cluster, &deployment);
                has(&deployment, own.map(|replica_set| live(&replica_set.uid)).sum())
            })
    };
    state.numbers.healthy >= state.numbers.expected
        && budget::pods_of(cluster, budget, rules).filter(lives).all(is_complete)
}

/// Returns the pods of a budget that stay, are not Ready, and may become Ready again.
fn unhealthy(cluster: &Cluster, state: &BudgetState, result: &RunResult, rules: &EvictionRules) -> Vec<Key> {
    let Some(budget) = cluster.budgets().get(&state.key) else { return Vec::new() };
    let leaves = |key: &Key| result.pods.get(key).is_some_and(|pod| pod.leaves.is_some());
    budget::pods_of(cluster, budget, rules)
        .filter(|pod| !pod.is_ready() && pod.lives())
        .filter(|pod| !leaves(&pod.key) && !result.started.contains_key(&pod.key))
        .map(|pod| pod.key.clone())
        .collect()
}

/// Returns the pods of a budget whose replacements are bound to silent nodes (nodes that send no heartbeats). A
/// replacement starts there when the kubelet is back; otherwise it is evicted, and the next one starts on another node.
fn on_silent_nodes(
    cluster: &Cluster,
    state: &BudgetState,
    result: &RunResult,
    rules: &EvictionRules,
) -> Vec<Key> {
    let Some(budget) = cluster.budgets().get(&state.key) else { return Vec::new() };
    let pods = budget::pods_of(cluster, budget, rules);
    pods.map(|pod| &pod.key).filter(|pod| is_on_silent_node(result, pod)).cloned().collect()
}

fn is_on_silent_node(result: &RunResult, pod: &Key) -> bool {
    result.trace.placements.get(pod).is_some_and(|trace| trace.is_silent)
}

/// Returns the terminating pods of a budget that are created again once they are gone.
fn returning(cluster: &Cluster, state: &BudgetState, rules: &EvictionRules) -> Vec<Key> {
    let Some(budget) = cluster.budgets().get(&state.key) else { return Vec::new() };
    let pods = budget::pods_of(cluster, budget, rules);
    pods.filter(|pod| failover::is_waited_for(cluster, pod)).map(|pod| pod.key.clone()).collect()
}

/// Returns why a budget whose disruptions are used up, by this plan or by an earlier deletion, never allows disruptions
/// again; `None` if it may allow some again.
fn never_recovers(
    cluster: &Cluster,
    state: &BudgetState,
    result: &RunResult,
    rules: &EvictionRules,
) -> Option<BlockPattern> {
    let budget = cluster.budgets().get(&state.key)?;
    let (mut pending, mut lost, mut stuck, mut never_ready) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut reason = Name::default();
    for pod in budget::pods_of(cluster, budget, rules) {
        let Some(PodResult { leaves, gone, replacement, quota, .. }) = result.pods.get(&pod.key) else {
            continue;
        };
        if leaves.is_none() && !failover::is_waited_for(cluster, pod) {
            continue;
        }
        let key = pod.key.clone();
        match (replacement, owner::recreation(cluster, pod)) {
            (Some(replacement), _) => match &replacement.landing {
                Landing::Pending { why } => {
                    reason = why.clone();
                    pending.push(key);
                }
                Landing::Node { .. } | Landing::Unknown | Landing::Rejected { .. }
                    if replacement.ready.is_none() && !is_on_silent_node(result, &key) =>
                {
                    never_ready.push(key);
                }
                Landing::Node { .. } | Landing::Unknown | Landing::Rejected { .. } => {}
            },
            (None, _) if quota.is_some() => never_ready.push(key),
            (None, Recreation::WhenGone) if gone.is_none() => stuck.push(key),
            (None, Recreation::Never(_)) => lost.push(key),
            (None, Recreation::Unknown) => never_ready.push(key),
            (None, Recreation::Immediately | Recreation::WhenGone | Recreation::OnSameNode) => {}
        }
    }
    if !pending.is_empty() {
        Some(BlockPattern::ReplacementPending { of: pending, why: reason })
    } else if !stuck.is_empty() {
        Some(BlockPattern::StuckTerminating { pods: stuck })
    } else if !never_ready.is_empty() {
        Some(BlockPattern::NeverReady { of: never_ready })
    } else if !lost.is_empty() {
        Some(BlockPattern::NotRecreated { pods: lost })
    } else {
        None
    }
}
