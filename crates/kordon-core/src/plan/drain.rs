//! Plans that drain nodes (docs/upstream/operator-actions.md#3). docs/upstream/operator-actions.md#6 describes how a
//! drain is predicted.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    action::{Action, DrainOptions, RemovalMode},
    context::PlanContext,
    cordon::{self, CordonChange},
    environment::Environment,
    filter::{self, Screening, Skip},
    forced_removal::keeps_pods,
    gaps,
    landing::Landing,
    node_plan::{NodeDrain, NodePlan},
    not_modelled,
    plan::Plan,
    pod_plan::PodPlan,
    prediction::Prediction,
    rules::EvictionRules,
    simulation::{RemovalGroup, SimulationInput},
    step::PlanStep,
    surge::{self, Surge, SurgePlan},
    targets::{PlanError, nodes_named, require},
    verdict::Verdict,
    warning::{self, Warning},
};
use crate::cluster::{Cluster, Gaps, Key, Node, NodeName, Pod, Scope, WorkloadKind};

pub(super) fn plan<E: Environment>(
    action: &Action,
    names: &[NodeName],
    options: &DrainOptions,
    context: &PlanContext<'_, E>,
) -> Result<Plan, PlanError> {
    let cluster = context.cluster;
    let nodes = nodes_named(cluster, names)?;
    let mut gaps = gaps::of_pods_on(cluster, names);
    require(&gaps)?;
    let screened: Vec<ScreenedNode> =
        nodes.iter().map(|node| ScreenedNode::new(node.clone(), options, context)).collect();
    gaps.0.extend(gaps_of_daemonsets(&screened, context).0);
    require(&gaps)?;
    let removed = screened.iter().flat_map(|node| &node.pods);
    let removed = removed.filter(|(_, screening)| filter::is_removed(screening)).map(|(pod, _)| pod);
    gaps.0.extend(gaps::of_removal(cluster, options.mode(), removed).known().0);
    let input = SimulationInput {
        groups: screened.iter().map(ScreenedNode::removal).collect(),
        mode: options.mode(),
        grace: options.grace,
        timeout: options.timeout,
        skip_wait_for_delete: options.skip_wait_for_delete,
        parallel: options.parallel.max(1),
        retry: options.retry,
        closed: nodes.iter().map(|node| node.name.clone()).collect(),
        surges: Vec::new(),
    };
    let (prediction, surges) = predict(context, input, options);
    let mut plan = Plan::blank(action, context);
    plan.steps = nodes.iter().filter_map(|node| cordon::change_node(node, CordonChange::Cordon).1).collect();
    for (group, node) in screened.iter().enumerate() {
        plan.add_drained_node(node, group, &prediction, context);
    }
    plan.surges = surges;
    plan.add_scale_steps();
    plan.warnings.extend(warning::of_closing(cluster, &nodes));
    plan.warnings.extend(warning::of_claims(&nodes, context.now));
    plan.warnings.extend(warning::of_maintenances(cluster, &nodes, context.now));
    plan.warnings.extend(capacity_exhausted(&plan.pods));
    prediction.complete(&mut plan);
    plan.name_gaps(gaps, cluster);
    plan.not_modelled = not_modelled::of_pods(&plan.pods, &context.rules, cluster);
    Ok(plan)
}

/// Simulates a drain. With `--surge`, the simulation scales up by one those Deployments for which this helps.
fn predict<'a, E: Environment>(
    context: &'a PlanContext<'a, E>,
    input: SimulationInput,
    options: &DrainOptions,
) -> (Prediction<'a, E>, Vec<SurgePlan>) {
    let without = Prediction::new(context, input.clone());
    if !options.surge || input.mode == RemovalMode::Delete {
        return (without, Vec::new());
    }
    let PlanContext { cluster, rules, .. } = context;
    let mut surges = surge::candidates(&without.all_pods(), cluster, without.budgets_before(), rules);
    // Each iteration except the last rules out the scale-up of at least one Deployment, so the loop ends.
    loop {
        let scaled: Vec<Surge> = surges.iter().filter_map(SurgePlan::surge).cloned().collect();
        let count = scaled.len();
        if count == 0 {
            return (without, surges);
        }
        let with = Prediction::new(context, SimulationInput { surges: scaled, ..input.clone() });
        let rows = with.all_pods();
        surges.iter_mut().for_each(|surge| surge.settle(with.surges(), &rows, &input.closed));
        if surges.iter().filter_map(SurgePlan::surge).count() == count {
            return (with, surges);
        }
    }
}

/// Returns the gaps of the DaemonSets that kubectl's filters look up, that is, why these DaemonSets are unknown or
/// outdated.
fn gaps_of_daemonsets<E>(screened: &[ScreenedNode], context: &PlanContext<'_, E>) -> Gaps {
    let PlanContext { cluster, rules, .. } = context;
    let pods = screened.iter().flat_map(|node| &node.pods);
    let of_daemonsets = pods.filter(|(pod, _)| filter::asks_for_daemonset(pod, rules));
    let daemonsets = of_daemonsets.filter_map(|(pod, _)| {
        let name = pod.owner.as_ref()?.name.clone();
        Some(Scope::Workload(WorkloadKind::DaemonSet, Key { namespace: pod.key.namespace.clone(), name }))
    });
    cluster.gaps_in(daemonsets)
}

/// A node with its pods, and for each pod the result of kubectl's filters.
struct ScreenedNode {
    node: Arc<Node>,
    pods: Vec<(Arc<Pod>, Screening)>,
}

impl ScreenedNode {
    fn new<E>(node: Arc<Node>, options: &DrainOptions, context: &PlanContext<'_, E>) -> Self {
        let PlanContext { cluster, rules, now, .. } = context;
        let screen = |pod: &Arc<Pod>| (pod.clone(), filter::screen(cluster, pod, options, rules, *now));
        Self { pods: cluster.pods_on(&node.name).map(screen).collect(), node }
    }

    fn removal(&self) -> RemovalGroup {
        let pods = self.pods.iter().filter(|(_, screening)| filter::is_removed(screening));
        RemovalGroup { node: Some(self.node.name.clone()), pods: pods.map(|(pod, _)| pod.clone()).collect() }
    }

    /// Returns the plan's rows for the pods that stay on the node.
    fn skipped(&self) -> impl Iterator<Item = PodPlan> {
        let skipped = self.pods.iter().filter(|(_, screening)| !filter::is_removed(screening));
        skipped.map(|(pod, screening)| {
            PodPlan::new(pod, Verdict::Skipped(screening.skip.unwrap_or(Skip::DaemonSet)))
        })
    }

    fn refused(&self) -> impl Iterator<Item = &(Arc<Pod>, Screening)> {
        self.pods.iter().filter(|(_, screening)| !screening.refusals.is_empty())
    }

    /// Returns the lines in which kubectl reports the pods that it refuses to remove. As in kubectl, each pod is listed
    /// only with its first refusal.
    fn refusal_lines(&self, rules: &EvictionRules) -> Vec<String> {
        let mut lines: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (pod, screening) in self.refused() {
            if let Some(refusal) = screening.refusals.first() {
                lines.entry(refusal.text(pod, rules)).or_default().push(pod.key.to_string());
            }
        }
        lines.into_iter().map(|(text, pods)| format!("cannot delete {text}: {}", pods.join(", "))).collect()
    }
}

impl Plan {
    /// Adds the writes that scale Deployments: up before the first eviction of their pods, and back after the last.
    fn add_scale_steps(&mut self) {
        for plan in &self.surges {
            let Some(surge) = plan.surge() else { continue };
            let is_of =
                |step: &PlanStep| matches!(step, PlanStep::Evict { pod, .. } if plan.pods.contains(pod));
            let scale = |version, replicas| PlanStep::Scale {
                deployment: surge.deployment.clone(),
                uid: surge.uid.clone(),
                version,
                replicas,
            };
            let (Some(first), Some(last)) =
                (self.steps.iter().position(is_of), self.steps.iter().rposition(is_of))
            else {
                continue;
            };
            self.steps.insert(last + 1, scale(None, surge.replicas));
            self.steps.insert(first, scale(Some(surge.version), surge.raised()));
        }
    }

    fn add_drained_node<E: Environment>(
        &mut self,
        screened: &ScreenedNode,
        group: usize,
        prediction: &Prediction<'_, E>,
        context: &PlanContext<'_, E>,
    ) {
        let node = &screened.node;
        let mut pods = prediction.pods(group);
        pods.extend(screened.skipped());
        let refusals: BTreeMap<&Key, &Screening> =
            screened.refused().map(|(pod, screening)| (&pod.key, screening)).collect();
        for pod in &mut pods {
            if let Some(screening) = refusals.get(&pod.pod) {
                let granted = Box::new(pod.verdict.clone());
                pod.verdict = Verdict::Refused { refusals: screening.refusals.clone(), granted };
            }
        }
        let drain = prediction.drain(group, &pods, screened.refusal_lines(&context.rules));
        self.needs.extend(refusals.values().flat_map(|screening| screening.needs()));
        self.steps.extend(prediction.removals(&pods));
        self.warnings.extend(drain_warnings(context.cluster, &node.name, &drain, &pods));
        self.pods.extend(pods);
        let change = cordon::change_node(node, CordonChange::Cordon).0;
        let (node, uid) = (node.name.clone(), node.uid.clone());
        self.nodes.push(NodePlan { node, uid, change, drain: Some(drain) });
    }
}

fn drain_warnings(cluster: &Cluster, node: &NodeName, drain: &NodeDrain, pods: &[PodPlan]) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if keeps_pods(cluster, node) {
        warnings.push(Warning::KubeletDown { node: node.clone() });
    }
    let is_unselected = |pod: &&PodPlan| pod.verdict == Verdict::Skipped(Skip::NotSelected);
    let unselected = pods.iter().filter(is_unselected).count();
    if unselected > 0 {
        warnings.push(Warning::UnselectedRemain { node: node.clone(), pods: unselected });
    }
    let kept = pods.iter().filter(|pod| pod.is_kept()).count();
    if kept > 0 && !drain.refused {
        warnings.push(Warning::DrainIncomplete { node: node.clone(), pods: kept });
    }
    warnings
}

/// Returns the warning that replacements stay Pending. It names the first pod, in order of departure, whose replacement
/// stays Pending.
fn capacity_exhausted(pods: &[PodPlan]) -> Option<Warning> {
    let pending = pods.iter().filter_map(|pod| match &pod.landing {
        Some(Landing::Pending { why }) => Some((pod.leaves.likely, pod, why)),
        Some(Landing::Node { .. } | Landing::Unknown | Landing::Rejected { .. }) | None => None,
    });
    let (_, pod, why) = pending.min_by_key(|(at, pod, _)| (*at, pod.pod.clone()))?;
    let node = pod.node.clone().unwrap_or_default();
    Some(Warning::CapacityExhausted { node, pod: pod.pod.clone(), why: why.clone() })
}
