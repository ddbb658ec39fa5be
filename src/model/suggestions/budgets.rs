//! Remedies for a budget that refuses an eviction.

use std::{collections::BTreeSet, sync::Arc};

use super::{Means, Suggestion, SuggestionKind};
use kordon_core::{
    cluster::{
        Budget, BudgetStatus, Change, Cluster, ConditionStatus, IntOrPercent, Key, ObjectEvent, Owner, Pod,
        PodReady, Uid, UnhealthyPolicy, Version, Workload, WorkloadKind,
    },
    plan::{
        EvictionRules, Switchover, Verdict,
        budget::{self, BudgetState},
        eviction::{self, EvictionBlock, EvictionDecision, PodState},
        kubectl, operator_budgets, owner, switchover,
    },
};
use kordon_time::Timestamp;

/// Maximum number of budgets for which remedies are suggested.
pub const MOST_BUDGETS: usize = 2;

/// A budget that refuses the eviction of a pod.
#[derive(Clone, Debug)]
pub struct RefusingBudget<'a> {
    budget: &'a Budget,
    pod: &'a Arc<Pod>,
    /// Whether the budget would refuse the eviction even if all of its pods were Ready.
    pub is_final: bool,
    /// State of the budget: `grafana needs 2 healthy, has 2`.
    pub numbers: String,
}

impl RefusingBudget<'_> {
    pub fn key(&self) -> &Key {
        &self.budget.key
    }

    /// What an eviction waits for, if the budget allows it once all of its pods are Ready.
    pub fn wait(&self) -> String {
        format!("until more of its pods are Ready: {}", self.numbers)
    }
}

/// Returns the budgets that refuse the eviction of at least one of these pods.
pub fn refusing<'a>(
    cluster: &'a Cluster,
    pods: impl IntoIterator<Item = &'a Arc<Pod>>,
    rules: &EvictionRules,
    now: Timestamp,
) -> Vec<RefusingBudget<'a>> {
    let mut known: BTreeSet<Key> = BTreeSet::new();
    let mut found = Vec::new();
    for pod in pods.into_iter().filter(|pod| eviction::asks_budgets(pod)) {
        // Only the first pod of each budget is examined, because one decision about each budget is enough.
        if cluster.budgets_of(pod).all(|budget| known.contains(&budget.key)) {
            continue;
        }
        known.extend(cluster.budgets_of(pod).map(|budget| budget.key.clone()));
        let states = budget::states(cluster, [pod], rules, now);
        let decision = eviction::decision(cluster, pod, &states, rules);
        let EvictionDecision::Blocked(EvictionBlock::Exhausted { budget, numbers, .. }) = decision else {
            continue;
        };
        let most = states.get(&budget).and_then(|state| state.max_healthy);
        let Some(budget) = cluster.budgets().get(&budget) else { continue };
        found.push(RefusingBudget {
            budget,
            pod,
            is_final: most.is_some_and(|most| most <= numbers.desired),
            numbers: format!(
                "{} needs {} healthy, has {}",
                budget.key.name, numbers.desired, numbers.healthy
            ),
        });
    }
    found
}

/// Returns changes that would make these budgets allow a disruption.
pub fn suggestions(
    budgets: &[RefusingBudget<'_>],
    cluster: &Cluster,
    rules: &EvictionRules,
    now: Timestamp,
) -> Vec<Suggestion> {
    let of_budget = |refusing: &RefusingBudget<'_>| {
        let RefusingBudget { budget, pod, .. } = refusing;
        if has_no_replica(cluster, pod, now) {
            return Vec::new();
        }
        match leave_to_operator(budget, pod) {
            Some(wait) => vec![wait],
            None => [
                always_allow(budget, pod, rules),
                scale_up(budget, pod, cluster, rules, now),
                relax(budget, cluster, rules, now),
            ]
            .into_iter()
            .flatten()
            .collect(),
        }
    };
    budgets.iter().take(MOST_BUDGETS).flat_map(of_budget).collect()
}

/// Returns changes after which a budget allows an eviction that it refuses now; empty if it refuses none.
pub fn remedies(
    budget: &Budget,
    cluster: &Cluster,
    rules: &EvictionRules,
    now: Timestamp,
) -> Vec<Suggestion> {
    let pods = || budget::pods_of(cluster, budget, rules).filter(|pod| eviction::asks_budgets(pod));
    if let Some(shared) = pods().find(|pod| cluster.budgets_of(pod).nth(1).is_some()) {
        return super::for_overlapping(cluster, shared, rules, now);
    }
    let refusing = refusing(cluster, pods(), rules, now);
    let found = suggestions(&refusing, cluster, rules, now);
    let has_wait = found.iter().any(|suggestion| suggestion.kind == SuggestionKind::Wait);
    let passes = refusing.iter().find(|refusing| !refusing.is_final && !has_wait);
    let wait = passes.map(|refusing| Suggestion::wait(None, refusing.wait()));
    wait.into_iter().chain(found).collect()
}

/// Returns whether the operator of a pod moves roles, but has no other instance that could take the role of this pod.
/// Waiting for the operator does not help, and the operator would undo a change of the budget.
fn has_no_replica(cluster: &Cluster, pod: &Pod, now: Timestamp) -> bool {
    let closed = pod.node.iter().cloned().collect();
    switchover(cluster, pod, &closed, now) == Some(Switchover::NoReplica)
}

/// Suggests leaving the budget to the operator that handles it, or to the controller that owns it and would undo a
/// change.
fn leave_to_operator(budget: &Budget, pod: &Pod) -> Option<Suggestion> {
    let text = match (operator_budgets::operator_of_pod(pod), &budget.owner) {
        (Some(operator), _) => {
            format!("and leave {} to its operator: {}", budget.key.name, operator.does.trim_end_matches('.'))
        }
        (None, Some(Owner { kind, name, .. })) => {
            let owner = format!("{}/{name}", kind.as_str());
            format!("and leave {} to the controller of {owner}, which would undo a change", budget.key.name)
        }
        (None, None) => return None,
    };
    Some(Suggestion::wait(None, text))
}

/// If `pod` is not Ready, suggests the budget policy that allows every eviction of pods that are not Ready.
fn always_allow(budget: &Budget, pod: &Pod, rules: &EvictionRules) -> Option<Suggestion> {
    let helps = rules.unhealthy_policy && !pod.is_ready() && budget.unhealthy != UnhealthyPolicy::AlwaysAllow;
    let text = format!("{} then allows every eviction of pods that are not Ready", budget.key.name);
    let means = Means::Kubectl(kubectl::always_allow_unhealthy(&budget.key));
    helps.then(|| Suggestion::new(SuggestionKind::AlwaysAllow, means, text))
}

/// Suggests leaving only one of several budgets that select the same pod. The API server refuses the eviction of a pod
/// with more than one budget, even if all of them allow it. A budget that would refuse the eviction by itself is left
/// only if every other would, too.
pub fn separate(
    pod: &Pod,
    budgets: &[Key],
    cluster: &Cluster,
    rules: &EvictionRules,
    now: Timestamp,
) -> Vec<Suggestion> {
    let known = budgets.iter().filter_map(|key| cluster.budgets().get(key).map(|budget| &**budget));
    let (refusing, allowing): (Vec<&Budget>, Vec<&Budget>) =
        known.partition(|budget| refuses_alone(budget, pod, cluster, rules, now));
    let keep = |kept: &Budget| {
        let name = &kept.key.name;
        let others: Vec<&Key> = budgets.iter().filter(|other| **other != kept.key).collect();
        let names = names(others.iter().copied(), ", ");
        let numbers = budget::numbers(cluster, kept, rules, now).ok();
        let numbers = numbers
            .map(|numbers| format!(", which needs {} healthy and has {}", numbers.desired, numbers.healthy))
            .unwrap_or_default();
        let still = if allowing.is_empty() { "; it still refuses the eviction" } else { "" };
        let text = format!("deletes {names}: then only {name} protects the pod{numbers}{still}");
        let command = kubectl::delete_budgets(&kept.key.namespace, others);
        let suggestion = Suggestion::new(SuggestionKind::DeleteBudget, Means::Kubectl(command), text);
        suggestion.risk(format!("no other pod of {names} is protected by it any more"))
    };
    let kept = if allowing.is_empty() { &refusing } else { &allowing };
    let mut suggestions: Vec<Suggestion> = kept.iter().take(MOST_BUDGETS).copied().map(keep).collect();
    let (left, then) = match (allowing.is_empty(), refusing.is_empty()) {
        (_, true) => ("one".to_owned(), ""),
        (true, false) => ("one".to_owned(), ", and let that one allow the eviction"),
        (false, false) => (names(allowing.iter().map(|budget| &budget.key), " or "), ""),
    };
    let all = names(budgets, ", ");
    let text = format!("change the selectors of {all} so that only {left} selects the pod{then}");
    suggestions.push(Suggestion::new(SuggestionKind::NarrowBudget, Means::Edit, text));
    suggestions
}

fn names<'a>(budgets: impl IntoIterator<Item = &'a Key>, separator: &str) -> String {
    budgets.into_iter().map(|budget| budget.name.as_str()).collect::<Vec<_>>().join(separator)
}

/// Whether a budget would refuse the eviction of a pod if no other budget selected it. The disruption controller does
/// not count such a pod as healthy, so the status of the budget does not show this.
fn refuses_alone(
    budget: &Budget,
    pod: &Pod,
    cluster: &Cluster,
    rules: &EvictionRules,
    now: Timestamp,
) -> bool {
    if budget::numbers(cluster, budget, rules, now).is_err() {
        return false;
    }
    let status = BudgetStatus { observed_generation: BudgetStatus::LAID_OVER, ..budget.status.clone() };
    let alone = BudgetState::new(cluster, &Budget { status, ..budget.clone() }, rules, now);
    matches!(eviction::decide(PodState::new(cluster, pod), &[&alone]), EvictionDecision::Blocked(_))
}

/// Returns a plan's advice on the budget that blocks an eviction, for use if there is no other suggestion. `None` if no
/// budget blocks the eviction.
pub fn advice(verdict: &Verdict) -> Option<Suggestion> {
    match verdict {
        Verdict::Blocked { budget, pattern, .. } => {
            let text = format!("{}: {pattern}; {}", budget.name, verdict.advice()?);
            Some(Suggestion::new(SuggestionKind::RelaxBudget, Means::Edit, text))
        }
        _ => None,
    }
}

/// Suggests more replicas, at most twice as many, if the budget then allows a disruption. A budget that forbids every
/// disruption gets no such suggestion.
fn scale_up(
    budget: &Budget,
    pod: &Arc<Pod>,
    cluster: &Cluster,
    rules: &EvictionRules,
    now: Timestamp,
) -> Option<Suggestion> {
    // An operator (software) that owns the workload would undo the change of the replicas.
    let workload = owner::workload(cluster, pod).filter(|workload| workload.owner.is_none())?;
    let replicas = workload.replicas?;
    let kind = match workload.kind {
        WorkloadKind::Deployment => "deployment",
        WorkloadKind::StatefulSet => "statefulset",
        WorkloadKind::ReplicaSet => "replicaset",
        WorkloadKind::ReplicationController => "replicationcontroller",
        WorkloadKind::DaemonSet | WorkloadKind::Job => return None,
    };
    let numbers = budget::numbers(cluster, budget, rules, now).ok()?;
    let missing = numbers.desired.saturating_sub(numbers.healthy).saturating_add(1);
    let allowed_with = |more: i32| {
        let later = scaled_up(cluster, &workload, pod, more);
        let allowed = budget::numbers(&later, budget, rules, now).ok()?.allowed;
        (allowed > 0).then_some((more, allowed))
    };
    let (more, allowed) = BTreeSet::from([1, missing])
        .into_iter()
        .filter(|more| (1..=replicas.max(1)).contains(more))
        .find_map(allowed_with)?;
    let (pods, are) =
        if more == 1 { ("a pod".to_owned(), "that is") } else { (format!("{more} pods"), "they are") };
    let text = format!(
        "{} {} gets {pods} more; once {are} Ready, {} allows {allowed} at a time",
        workload.kind, workload.key.name, budget.key.name
    );
    let command = kubectl::scale(kind, &workload.key, replicas.checked_add(more)?);
    let suggestion = Suggestion::new(SuggestionKind::ScaleUp, Means::Kubectl(command), text);
    Some(suggestion.risk("an autoscaler or GitOps may scale it back"))
}

/// Returns the cluster with `more` Ready pods of a workload, which are copies of `pod`.
fn scaled_up(cluster: &Cluster, workload: &Workload, pod: &Pod, more: i32) -> Cluster {
    let scaled = Workload {
        replicas: workload.replicas.map(|replicas| replicas.saturating_add(more)),
        version: Version(workload.version.0 + 1),
        ..workload.clone()
    };
    let added = |number: i32| {
        let ready = PodReady { status: ConditionStatus::True, last_transition: None };
        let name = format!("+{number}").into();
        Pod { key: Key { name, ..pod.key.clone() }, uid: Uid::default(), ready: Some(ready), ..pod.clone() }
    };
    let mut later = cluster.clone();
    let workload = Change::Workload(workload.kind, ObjectEvent::Applied(scaled));
    let pods = (0..more).map(|number| Change::Pod(ObjectEvent::Applied(added(number))));
    [workload].into_iter().chain(pods).for_each(|change| later.apply(change, &mut Vec::new()));
    later
}

/// Suggests a change of the budget that allows the eviction of one currently healthy pod.
fn relax(budget: &Budget, cluster: &Cluster, rules: &EvictionRules, now: Timestamp) -> Option<Suggestion> {
    let numbers = budget::numbers(cluster, budget, rules, now).ok()?;
    let desired = numbers.healthy.checked_sub(1).filter(|desired| *desired >= 0)?;
    let mut relaxed = budget.clone();
    let (field, value) = match budget.max_unavailable {
        Some(_) => ("maxUnavailable", numbers.expected.saturating_sub(desired)),
        None => ("minAvailable", desired),
    };
    match budget.max_unavailable {
        Some(_) => relaxed.max_unavailable = Some(IntOrPercent::Int(value)),
        None => relaxed.min_available = Some(IntOrPercent::Int(value)),
    }
    let allowed = budget::numbers(cluster, &relaxed, rules, now).ok()?.allowed;
    let text = format!("{field} {value} in {}: it then allows {allowed} at a time", budget.key.name);
    let command = kubectl::patch_budget(&budget.key, field, value);
    let suggestion = Suggestion::new(SuggestionKind::RelaxBudget, Means::Kubectl(command), text);
    (allowed > 0)
        .then(|| suggestion.risk("fewer healthy pods than its owner asked for; change it back afterwards"))
}
