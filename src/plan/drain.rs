//! Drains (docs/upstream/operator-actions.md#3), and evictions and deletions of pods by name; how they are predicted is
//! in docs/upstream/operator-actions.md#6.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    action::{Action, DrainOptions, RemovalMode, RemovalOptions},
    assemble::{self, Assembly},
    budget::{self, BudgetState},
    cordon,
    environment::{self, Environment},
    eviction,
    eviction::{EvictionDecision, FreeEviction},
    filter::{self, Screening, Skip},
    landing::Landing,
    node_plan::{NodeDrain, NodePlan},
    placing_environment::GRANTED,
    plan::Plan,
    pod_plan::{self, PodPlan, Window},
    rules::EvictionRules,
    simulation::{RemovalGroup, SimulationInput},
    step::PlanStep,
    targets::{PlanError, nodes_named},
    verdict::Verdict,
    warning::{self, Warning},
};
use crate::{
    cluster::{Cluster, Key, NodeName, Pod},
    time::{Span, Timestamp},
};

pub(super) fn plan<S: Environment>(
    action: &Action,
    cluster: &Cluster,
    names: &[NodeName],
    options: &DrainOptions,
    environment: &S,
    rules: &EvictionRules,
    now: Timestamp,
) -> Result<Plan, PlanError> {
    let nodes = nodes_named(cluster, names)?;
    let mut screenings: BTreeMap<Key, Screening> = BTreeMap::new();
    let mut groups = Vec::new();
    for node in &nodes {
        let mut taken = Vec::new();
        for pod in cluster.pods_on(&node.name) {
            let screening = filter::screen(cluster, pod, options, rules, now);
            // A refused pod is tried as if the flag had been given: what then, is worth knowing before giving it.
            if screening.skip.is_none() && !would_be_skipped(&screening) {
                taken.push(pod.clone());
            }
            screenings.insert(pod.key.clone(), screening);
        }
        groups.push(RemovalGroup { pods: taken });
    }
    let states = budget::states(cluster, groups.iter().flat_map(|group| &group.pods), rules, now);
    for group in &mut groups {
        sort_for_leaving(cluster, &mut group.pods, environment, &states, rules);
    }
    let input = SimulationInput {
        groups,
        mode: options.mode(),
        grace: options.grace,
        timeout: options.timeout,
        skip_wait_for_delete: options.skip_wait_for_delete,
        parallel: options.parallel.max(1),
        retry: options.retry,
        closed: nodes.iter().map(|node| node.name.clone()).collect(),
    };
    let assembly = Assembly::new(cluster, &input, rules, environment, states, now);
    let mut plan = Plan::blank(action, rules, now);
    for node in &nodes {
        plan.steps.extend(cordon::change(node, cordon::CordonChange::Cordon).1);
    }
    for (place, node) in nodes.iter().enumerate() {
        let tried = input.groups[place].pods.iter();
        let mut pods: Vec<PodPlan> = tried.map(|pod| assembly.pod(pod)).collect();
        let left = cluster.pods_on(&node.name).filter(|pod| pods.iter().all(|plan| plan.pod != pod.key));
        let left: Vec<PodPlan> = left.map(|pod| left_alone(pod, &screenings[&pod.key])).collect();
        pods.extend(left);
        for pod in &mut pods {
            refuse(pod, &screenings[&pod.pod]);
        }
        let on_node = |pod: &&Arc<Pod>| screenings[&pod.key].refusals.is_empty();
        let refused: Vec<&Arc<Pod>> = cluster.pods_on(&node.name).filter(|pod| !on_node(pod)).collect();
        let refusals = refusal_lines(&refused, &screenings, rules);
        for pod in &refused {
            plan.needs.extend(screenings[&pod.key].needs());
        }
        let drain = assembly.node(place, !refused.is_empty(), refusals, &pods);
        let change = cordon::change(node, cordon::CordonChange::Cordon).0;
        plan.steps.extend(pods.iter().filter_map(|pod| removal(pod, options.mode(), options.grace)));
        plan.warnings.extend(of_node(cluster, &node.name, &drain, &pods));
        plan.pods.extend(pods);
        let (node, uid) = (node.name.clone(), node.uid.clone());
        plan.nodes.push(NodePlan { node, uid, change, drain: Some(drain) });
    }
    plan.warnings.extend(warning::of_closing(cluster, &nodes));
    plan.warnings.extend(warning::of_marks(&nodes, now));
    plan.warnings.extend(capacity_ends(&plan.pods));
    if !cluster.workloads(crate::cluster::WorkloadKind::DaemonSet).is_synced() {
        plan.warnings.push(Warning::NotReadable { what: "daemonsets".into() });
    }
    plan.finish_removal(&assembly);
    Ok(plan)
}

/// Whether the flag that a refused pod needs would leave it alone rather than let it go.
fn would_be_skipped(screening: &Screening) -> bool {
    screening.refusals == [filter::DrainRefusal::DaemonSet]
}

/// What is told of a pod that is not tried.
fn left_alone(pod: &Arc<Pod>, screening: &Screening) -> PodPlan {
    pod_plan::bare(pod, Verdict::Skipped(screening.skip.unwrap_or(Skip::DaemonSet)))
}

/// Puts the refusal in front of the verdict.
fn refuse(pod: &mut PodPlan, screening: &Screening) {
    if !screening.refusals.is_empty() {
        let granted = Box::new(pod.verdict.clone());
        pod.verdict = Verdict::Refused { refusals: screening.refusals.clone(), granted };
    }
}

/// kubectl's lines for the refusals, of each pod only the first, as kubectl does.
fn refusal_lines(
    refused: &[&Arc<Pod>],
    screenings: &BTreeMap<Key, Screening>,
    rules: &EvictionRules,
) -> Vec<String> {
    let mut lines: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for pod in refused {
        if let Some(refusal) = screenings[&pod.key].refusals.first() {
            lines.entry(refusal.text(pod, rules)).or_default().push(pod.key.to_string());
        }
    }
    lines.into_iter().map(|(text, pods)| format!("cannot delete {text}: {}", pods.join(", "))).collect()
}

/// The write that makes a pod go; none where it stays or goes already.
fn removal(pod: &PodPlan, mode: RemovalMode, grace: Option<Span>) -> Option<PlanStep> {
    if matches!(pod.verdict.as_if_granted(), Verdict::Skipped(_)) {
        return None;
    }
    let (pod, uid) = (pod.pod.clone(), pod.uid.clone());
    Some(match mode {
        RemovalMode::Evict => PlanStep::Evict { pod, uid, grace },
        RemovalMode::Delete => PlanStep::Delete { pod, uid, grace },
    })
}

fn of_node(cluster: &Cluster, node: &NodeName, drain: &NodeDrain, pods: &[PodPlan]) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if !environment::has_living_kubelet(cluster, node) {
        warnings.push(Warning::KubeletSilent { node: node.clone() });
    }
    let count = |holds: fn(&Verdict) -> bool| pods.iter().filter(|pod| holds(&pod.verdict)).count();
    let unselected = count(|verdict| *verdict == Verdict::Skipped(Skip::NotSelected));
    if unselected > 0 {
        warnings.push(Warning::NotSelectedStay { node: node.clone(), pods: unselected });
    }
    let stuck = pods.iter().filter(|pod| pod_plan::is_stuck(pod)).count();
    if stuck > 0 && !drain.refused {
        warnings.push(Warning::HalfDrained { node: node.clone(), pods: stuck });
    }
    warnings
}

/// The first replacement, in order of time, that finds no place.
fn capacity_ends(pods: &[PodPlan]) -> Option<Warning> {
    let homeless = pods.iter().filter_map(|pod| match &pod.landing {
        Some(Landing::Nowhere { why }) => Some((pod.leaves.likely, pod, why)),
        Some(Landing::Node { .. } | Landing::Somewhere) | None => None,
    });
    let (_, pod, why) = homeless.min_by_key(|(at, pod, _)| (*at, pod.pod.clone()))?;
    let node = pod.node.clone().unwrap_or_default();
    Some(Warning::CapacityEnds { node, pod: pod.pod.clone(), why: why.clone() })
}

/// A better order than kubectl's, which is chance (docs/upstream/operator-actions.md#6.5): first pods that cost no budget
/// and may free some; pods that no budget protects; pods that take longest to be replaced; last pods that others need.
fn sort_for_leaving<S: Environment>(
    cluster: &Cluster,
    pods: &mut [Arc<Pod>],
    environment: &S,
    states: &BTreeMap<Key, BudgetState>,
    rules: &EvictionRules,
) {
    let rank = |pod: &Arc<Pod>| {
        let gate = eviction::decision(cluster, pod, states, rules);
        let class = match gate {
            _ if warning::is_critical(pod) && !pod.is_finished() => 3,
            EvictionDecision::Free(FreeEviction::UnhealthyAllowed | FreeEviction::HealthyBudget) => 0,
            EvictionDecision::Free(
                FreeEviction::NoBudget
                | FreeEviction::Pending
                | FreeEviction::Finished
                | FreeEviction::Terminating,
            ) => 1,
            EvictionDecision::Costs { .. } | EvictionDecision::Blocked(_) => 2,
        };
        let stop = environment.stop(pod, pod.grace).likely;
        let ready = environment.ready(pod, &Landing::Somewhere).likely;
        let chain = stop.zip(ready).map_or(Span::MAX, |(stop, ready)| stop + ready);
        (class, Reverse(chain), pod.key.clone())
    };
    pods.sort_by_cached_key(rank);
}

#[expect(clippy::too_many_arguments, reason = "what a plan is made of")]
pub(super) fn remove<S: Environment>(
    action: &Action,
    cluster: &Cluster,
    keys: &[Key],
    options: RemovalOptions,
    mode: RemovalMode,
    environment: &S,
    rules: &EvictionRules,
    now: Timestamp,
) -> Result<Plan, PlanError> {
    let mut seen = BTreeSet::new();
    let keys: Vec<&Key> = keys.iter().filter(|key| seen.insert((*key).clone())).collect();
    let missing: Vec<Key> =
        keys.iter().filter(|key| cluster.pod(key).is_none()).map(|key| (*key).clone()).collect();
    if !missing.is_empty() {
        return Err(PlanError::NoSuchPod(missing));
    }
    let mut pods: Vec<Arc<Pod>> = keys.into_iter().filter_map(|key| cluster.pod(key).cloned()).collect();
    let states = budget::states(cluster, &pods, rules, now);
    sort_for_leaving(cluster, &mut pods, environment, &states, rules);
    let input = SimulationInput {
        groups: vec![RemovalGroup { pods }],
        mode,
        grace: options.grace,
        timeout: options.timeout,
        skip_wait_for_delete: None,
        parallel: 1,
        retry: options.retry,
        closed: BTreeSet::new(),
    };
    let assembly = Assembly::new(cluster, &input, rules, environment, states, now);
    let mut plan = Plan::blank(action, rules, now);
    plan.pods = input.groups[0].pods.iter().map(|pod| assembly.pod(pod)).collect();
    for pod in &mut plan.pods {
        // Nothing is cordoned: it may come back anywhere, and that says nothing.
        pod.warnings.remove(&warning::PodWarning::ComesBackHere);
    }
    plan.steps = plan.pods.iter().filter_map(|pod| removal(pod, mode, options.grace)).collect();
    plan.finish_removal(&assembly);
    Ok(plan)
}

impl Plan {
    /// Fills what follows from the pods and steps of a plan that removes pods.
    fn finish_removal<S: Environment>(&mut self, assembly: &Assembly<'_, S>) {
        self.budgets = assembly.budgets();
        self.receivers = assembly.receivers();
        self.timeline = assembly.timeline(&self.nodes);
        self.assumptions = ASSUMPTIONS.to_vec();
        for budget in &self.budgets {
            if let Some(told) = budget.before.disagrees {
                self.warnings.push(Warning::disagreement(&budget.budget, budget.before.numbers, told));
            }
        }
        if assembly.mode() == RemovalMode::Delete {
            let goes = |pod: &&PodPlan| matches!(pod.verdict.as_if_granted(), Verdict::Leaves(_));
            let held = |pod: &&PodPlan| pod.answer.as_ref().is_some_and(|answer| answer.code != 201);
            let pods = self.pods.iter().filter(goes).count();
            let held = self.pods.iter().filter(goes).filter(held).count();
            if pods > 0 {
                self.warnings.push(Warning::BudgetsIgnored { pods, held });
            }
        }
        if !assembly.sees_budgets() {
            self.warnings.push(Warning::NotReadable { what: "poddisruptionbudgets".into() });
        }
        self.warnings.sort();
        self.warnings.dedup();
        assemble::count(self);
        self.totals.ends = self.totals_end(assembly);
        self.finish_nodes();
    }

    fn totals_end<S: Environment>(&self, assembly: &Assembly<'_, S>) -> Window {
        assembly.ends()
    }
}

/// The assumptions of a forecast of removals (docs/upstream/operator-actions.md#6.8).
const ASSUMPTIONS: [&str; 5] = [
    "nobody else changes pods, budgets, scales or nodes: no autoscaler, no rollout, no other drain",
    "controllers react within a second; replacements become Ready as their siblings did",
    "kubelets that are not silent end pods within their grace; admission webhooks allow it",
    GRANTED,
    "no pod is bound to the nodes meanwhile by its nodeName",
];
