//! Plans that taint nodes, including the pods that NoExecute taints delete (docs/upstream/operator-actions.md#2).

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    action::Action,
    context::PlanContext,
    departure::Departure,
    environment::{Environment, Estimate, Quality},
    eviction, eviction_loop,
    eviction_note::{EvictionNote, waiting_replacement},
    forced_removal::{Detachment, FORCED_REMOVAL, removes_by_force},
    gaps,
    job_failures::JobConsequences,
    landing::Landing,
    node_plan::{NodeChange, NodePlan},
    not_modelled,
    owner::{self, NotRecreated},
    plan::Plan,
    pod_plan::{PodPlan, Window},
    quota_delay,
    replacement::{PlacedReplacements, replacements},
    rules::EvictionRules,
    step::PlanStep,
    taint_edits::TaintEdits,
    targets::{PlanError, nodes_named, require},
    timeline::{PlanEvent, PlanMoment},
    verdict::Verdict,
    warning::{self, PodWarning, Warning},
};
use crate::{
    cluster::{
        Cluster, Key, Node, NodeName, OUT_OF_SERVICE, OwnerKind, Pod, Taint, TaintEffect, UNSCHEDULABLE,
        WorkloadKind,
    },
    engine::{Tolerance, first_timer, tolerance},
};
use kordon_time::{Span, Timestamp};

pub(super) fn plan<E: Environment>(
    action: &Action,
    names: &[NodeName],
    edits: &TaintEdits,
    context: &PlanContext<'_, E>,
) -> Result<Plan, PlanError> {
    let nodes = nodes_named(context.cluster, names)?;
    let removes = |node: &Node| context.rules.out_of_service && marks_out_of_service(edits, node);
    let changing = nodes.iter().filter(|node| changes_evictions(edits, node));
    let evicting = changing.filter(|node| context.rules.taints_evict || removes(node));
    let evicting: Vec<NodeName> = evicting.map(|node| node.name.clone()).collect();
    let gaps = gaps::of_pods_on(context.cluster, &evicting);
    require(&gaps)?;
    let mut plan = Plan::blank(action, context);
    let changes_no_execute = |node: &&Arc<Node>| {
        edits.over(node).is_ok_and(|after| no_execute(&after) != no_execute(&node.taints))
    };
    if !context.rules.taints_evict && nodes.iter().any(|node| changes_no_execute(&node)) {
        plan.warnings.push(Warning::TaintsDoNotEvict);
    }
    let mut environment = context.environment.clone();
    for node in &nodes {
        let change = match edits.over(node) {
            Err(text) => NodeChange::Refused { text },
            // Unlike kubectl, kordon writes nothing if the taints do not change.
            Ok(after) if after[..] == node.taints[..] => {
                NodeChange::Unchanged { text: "has these taints already" }
            }
            Ok(after) => {
                plan.steps.push(PlanStep::SetTaints {
                    node: node.name.clone(),
                    uid: node.uid.clone(),
                    version: node.version,
                    taints: after.clone(),
                });
                let tainted = Node { taints: after.clone().into(), ..(**node).clone() };
                plan.add_pods_of_tainted(node, &tainted, context);
                environment.on_node_change(Arc::new(tainted));
                NodeChange::Taints { before: node.taints.to_vec(), after }
            }
        };
        plan.nodes.push(NodePlan { node: node.name.clone(), uid: node.uid.clone(), change, drain: None });
    }
    plan.add_replacements(context.cluster, environment, Detachment::AtOnce);
    plan.complete_taints(context.cluster, &nodes, edits, &context.rules);
    plan.name_gaps(gaps, context.cluster);
    plan.not_modelled = not_modelled::of_pods(&plan.pods, &context.rules, context.cluster);
    Ok(plan)
}

impl Plan {
    /// Adds the pods of a node to the plan if the node's NoExecute taints change, or if its terminating pods are
    /// removed by force.
    fn add_pods_of_tainted<E: Environment>(
        &mut self,
        before: &Node,
        after: &Node,
        context: &PlanContext<'_, E>,
    ) {
        let tainted = TaintedNode {
            before: no_execute(&before.taints),
            after: no_execute(&after.taints),
            removes_by_force: removes_by_force(after, &context.rules),
        };
        let evicts = tainted.before != tainted.after && context.rules.taints_evict;
        let removes = tainted.removes_by_force && !removes_by_force(before, &context.rules);
        let is_concerned = |pod: &&Arc<Pod>| evicts || (removes && pod.termination.is_some());
        let pods = context.cluster.pods_on(&before.name).filter(is_concerned);
        self.pods.extend(pods.map(|pod| pod_of_tainted(pod, &tainted, context)));
    }

    /// Adds the replacements of the deleted pods to the plan: where they land and when they are Ready.
    pub(super) fn add_replacements<E: Environment>(
        &mut self,
        cluster: &Cluster,
        environment: E,
        detachment: Detachment,
    ) {
        let departure = |plan: &PodPlan| {
            let pod = cluster.pod(&plan.pod)?.clone();
            let removed = plan.gone.likely.filter(|_| plan.verdict == Verdict::Terminating);
            let leaves = plan.leaves.likely.or_else(|| removed.map(|_| self.made))?;
            Some(Departure { pod, leaves, gone: plan.gone.likely, unready: None })
        };
        let departures: Vec<Departure> = self.pods.iter().filter_map(departure).collect();
        let mut refusals = quota_delay::refusals(cluster, &departures);
        let jobs = JobConsequences::new(cluster, &departures);
        let waiting = |departure: &Departure| {
            let waiting = waiting_replacement(cluster, &departure.pod)?;
            let takes = environment.time_to_ready(waiting, &Landing::Unknown).likely?;
            Some((departure.pod.key.clone(), (waiting, takes)))
        };
        let waiting: BTreeMap<Key, (&Arc<Pod>, Span)> = departures.iter().filter_map(waiting).collect();
        let PlacedReplacements { by_pod: replacements, mut waits_for, trace } =
            replacements(cluster, &departures, &refusals, environment);
        for plan in &mut self.pods {
            plan.lost = jobs.failure(&plan.pod).map(NotRecreated::JobFails).or(plan.lost);
            plan.quota = refusals.remove(&plan.pod);
            plan.waits_for = waits_for.remove(&plan.pod);
            if let (Some(refusal), Some(at)) = (&plan.quota, plan.leaves.likely) {
                let (of, quota) = (plan.pod.clone(), refusal.quota.clone());
                self.timeline.push(PlanMoment { at, event: PlanEvent::NotReplaced { of, quota } });
            }
            let detached = plan.gone.likely.map(|gone| detachment.of(cluster, plan.node.as_ref(), gone));
            if let Some((replacement, takes)) = waiting.get(&plan.pod) {
                plan.add_waiting_replacement(replacement, detached.map(|at| at + *takes));
                let (ready, of) = (plan.ready_again, plan.pod.clone());
                self.timeline.extend(ready.map(|at| PlanMoment { at, event: PlanEvent::Ready { of } }));
            }
            let Some(replacement) = replacements.get(&plan.pod) else { continue };
            let (of, landing) = (plan.pod.clone(), replacement.landing.clone());
            plan.landing = Some(landing.clone());
            let old = cluster.pod(&plan.pod);
            plan.ready_again = old.and_then(|old| replacement.ready_after(cluster, old, detached));
            plan.quality = plan.quality.min(replacement.quality);
            plan.placement = trace.placements.get(&plan.pod).cloned();
            let event = PlanEvent::Replaced { of: of.clone(), landing };
            self.timeline.push(PlanMoment { at: replacement.created, event });
            let ready = plan.ready_again.map(|at| PlanMoment { at, event: PlanEvent::Ready { of } });
            self.timeline.extend(ready);
        }
        self.receivers = trace.receivers;
    }

    fn complete_taints(
        &mut self,
        cluster: &Cluster,
        nodes: &[Arc<Node>],
        edits: &TaintEdits,
        rules: &EvictionRules,
    ) {
        self.complete_removals(cluster);
        self.warnings.extend(warning::of_claims(nodes, self.made));
        if edits.adds_no_execute() {
            self.warnings.extend(warning::of_maintenances(cluster, nodes, self.made));
        }
        for node in nodes {
            self.warnings.extend(taint_warnings(node, edits, rules));
            self.warnings.extend(self.evicted_again(&node.name, cluster));
        }
        self.finish_nodes();
    }

    /// Warns of pods that the taints of a node evict, and whose replacements land on the same node, where the taints
    /// evict them again. If the template names the node, its kubelet rejects the replacement instead (upstream
    /// `generalFilter`), or the taint deletes it, and the owner creates the next one.
    fn evicted_again(&self, node: &NodeName, cluster: &Cluster) -> Option<Warning> {
        let is_evicted = |pod: &&PodPlan| {
            pod.node.as_ref() == Some(node) && matches!(pod.verdict, Verdict::Deleted { .. })
        };
        let comes_back = |pod: &&PodPlan| match (&pod.landing, &pod.owner) {
            (Some(Landing::Node { node: on, .. }), _) => on == node,
            (_, Some((OwnerKind::Workload(WorkloadKind::DaemonSet), _))) => {
                pod.lost.is_none() && !pod.warnings.contains(&PodWarning::NotRecreatedWhileTainted)
            }
            _ => pod.lost.is_none() && is_bound_again(cluster, pod, node),
        };
        let pods: Vec<&PodPlan> = self.pods.iter().filter(is_evicted).filter(comes_back).collect();
        let per_hour: Option<i64> = pods.iter().map(|pod| eviction_loop::per_hour(1, self.round(pod)?)).sum();
        (!pods.is_empty()).then(|| Warning::EvictedAgain { node: node.clone(), pods: pods.len(), per_hour })
    }

    /// Returns the time from the taint until the replacement of a pod is created, for which the taint tolerates each
    /// replacement again; `None` if it is not known. A DaemonSet creates it once the old pod is gone.
    fn round(&self, pod: &PodPlan) -> Option<Span> {
        let replaced = self.timeline.iter().find_map(|moment| match &moment.event {
            PlanEvent::Replaced { of, .. } if *of == pod.pod => Some(moment.at),
            _ => None,
        });
        Some(replaced.or(pod.gone.likely)?.since(self.made))
    }

    /// Sorts the pods that leave because of taints, then adds their events, warnings and totals to the plan.
    pub(super) fn complete_removals(&mut self, cluster: &Cluster) {
        let leaves = |pod: &PodPlan| pod.leaves.likely.unwrap_or(Timestamp::MAX);
        self.pods.sort_by_cached_key(|pod| (leaves(pod), pod.node.clone(), pod.pod.clone()));
        for pod in &self.pods {
            let leaves = pod.leaves.likely.map(|at| (at, PlanEvent::Leaves { pod: pod.pod.clone() }));
            let gone = pod.gone.likely.map(|at| (at, PlanEvent::Gone { pod: pod.pod.clone() }));
            self.timeline.extend(leaves.into_iter().chain(gone).map(|(at, event)| PlanMoment { at, event }));
        }
        self.timeline.sort_by_key(|moment| moment.at);
        self.warn_of_ignored_budgets();
        self.warn_of_quotas();
        self.warn_of_jobs(cluster);
        self.warn_of_groups(cluster);
        self.warn_of_owned_pods(cluster);
        self.count_pods(cluster);
    }
}

/// Returns whether the replacement of a pod is bound to a node because the template names it. A Job does not create pods
/// for ever.
fn is_bound_again(cluster: &Cluster, pod: &PodPlan, node: &NodeName) -> bool {
    let job = OwnerKind::Workload(WorkloadKind::Job);
    let has_job = pod.owner.as_ref().is_some_and(|(kind, _)| *kind == job);
    let named = cluster.pod(&pod.pod).and_then(|pod| owner::named_node(cluster, pod));
    !has_job && named.as_ref() == Some(node)
}

fn taint_warnings(node: &Node, edits: &TaintEdits, rules: &EvictionRules) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if rules.out_of_service && edits.add.iter().any(|taint| taint.key == *OUT_OF_SERVICE) {
        warnings.push(Warning::OutOfService { node: node.name.clone() });
    }
    let keys = edits.add.iter().map(|taint| &taint.key).chain(edits.remove.iter().map(|taint| &taint.key));
    let by_controller = keys.filter(|key| CONTROLLER_TAINTS.contains(&key.as_str()));
    warnings.extend(
        by_controller.map(|key| Warning::ControllersTaint { node: node.name.clone(), key: key.clone() }),
    );
    warnings
}

/// Returns whether the edits of a node's taints change which pods leave the node. They do if they change NoExecute
/// taints, or add the out-of-service taint.
pub(super) fn changes_evictions(edits: &TaintEdits, node: &Node) -> bool {
    edits.over(node).is_ok_and(|after| no_execute(&after) != no_execute(&node.taints))
        || marks_out_of_service(edits, node)
}

/// Returns whether the edits add the out-of-service taint to a node without it.
fn marks_out_of_service(edits: &TaintEdits, node: &Node) -> bool {
    let has_mark = |taints: &[Taint]| taints.iter().any(|taint| taint.key == *OUT_OF_SERVICE);
    !has_mark(&node.taints) && edits.over(node).is_ok_and(|after| has_mark(&after))
}

fn no_execute(taints: &[Taint]) -> Vec<Taint> {
    taints.iter().filter(|taint| taint.effect == TaintEffect::NoExecute).cloned().collect()
}

/// Taints that the node lifecycle controller adds and removes.
const CONTROLLER_TAINTS: [&str; 7] = [
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
    UNSCHEDULABLE,
    "node.kubernetes.io/memory-pressure",
    "node.kubernetes.io/disk-pressure",
    "node.kubernetes.io/pid-pressure",
    "node.kubernetes.io/network-unavailable",
];

/// A node whose taints change.
struct TaintedNode {
    /// NoExecute taints of the node before the change.
    before: Vec<Taint>,
    /// NoExecute taints of the node after the change.
    after: Vec<Taint>,
    /// Whether, after the change, the pod garbage collector removes the terminating pods of the node by force.
    removes_by_force: bool,
}

/// Returns the plan's row for a pod on a node whose taints change.
fn pod_of_tainted<E: Environment>(
    pod: &Arc<Pod>,
    node: &TaintedNode,
    context: &PlanContext<'_, E>,
) -> PodPlan {
    let PlanContext { cluster, now, .. } = context;
    let mut plan = PodPlan::new(pod, verdict(cluster, pod, &node.before, &node.after, *now));
    match plan.verdict {
        Verdict::Deleted { at, .. } => add_deletion(&mut plan, pod, at, node, context),
        Verdict::Terminating if node.removes_by_force => {
            add_end(&mut plan, pod, *now, Estimate::NEVER, node);
            plan.lost = owner::not_recreated(cluster, pod);
            plan.eviction_notes = EvictionNote::for_forced_removal(cluster, pod);
        }
        _ => {}
    }
    plan
}

/// Sets the time at which the pod of this row is gone. `leaves` is the time at which the deletion of the pod starts or,
/// if the pod is already terminating, the present time.
fn add_end(plan: &mut PodPlan, pod: &Pod, leaves: Timestamp, by_kubelet: Estimate, node: &TaintedNode) {
    // A finalizer keeps the pod's object even if the pod is removed by force.
    let is_held = pod.is_held();
    let takes = match node.removes_by_force {
        true if is_held => Estimate::NEVER,
        true => by_kubelet.shorter(FORCED_REMOVAL),
        false => by_kubelet,
    };
    let at = |span: Option<Span>| span.map(|span| leaves + span);
    plan.gone = Window { soonest: at(takes.soonest), likely: at(takes.likely), latest: at(takes.latest) };
    plan.quality = Quality::Declared.min(takes.quality);
    if node.removes_by_force {
        plan.warnings.insert(if is_held { PodWarning::HeldByFinalizer } else { PodWarning::RemovedByForce });
    }
}

fn add_deletion<E: Environment>(
    plan: &mut PodPlan,
    pod: &Arc<Pod>,
    at: Timestamp,
    node: &TaintedNode,
    context: &PlanContext<'_, E>,
) {
    let PlanContext { cluster, environment, rules, now } = context;
    plan.leaves = Window { soonest: Some(at), likely: Some(at), latest: Some(at) };
    add_end(plan, pod, at, environment.time_to_terminate(pod, pod.grace), node);
    if plan.gone.likely.is_none() && !node.removes_by_force {
        plan.warnings.insert(PodWarning::KubeletDown);
    }
    plan.answer =
        gaps::can_answer_eviction(cluster, pod).then(|| eviction::answer(cluster, pod, rules, *now));
    plan.lost = owner::not_recreated(cluster, pod);
    plan.eviction_notes = match plan.gone.likely {
        _ if node.removes_by_force => EvictionNote::for_forced_removal(cluster, pod),
        Some(_) => EvictionNote::for_running_node(cluster, pod),
        None => EvictionNote::for_pod(cluster, pod),
    };
    let leaving: BTreeSet<_> = [pod.key.clone()].into();
    plan.warnings.extend(warning::of_pod(cluster, pod, &leaving, true));
    // Because of the taint, the replacement cannot land on the same node, even if it tolerates cordons.
    plan.warnings.remove(&PodWarning::MayReturn);
    // If the pod tolerates the taint for a limited time, its DaemonSet creates it again at once (upstream
    // `nodeShouldRunDaemonPod`).
    let is_tolerated = !matches!(tolerance(&pod.tolerations, &node.after), Tolerance::NotTolerated(_));
    if warning::is_of_existing_daemonset(cluster, pod) && !is_tolerated {
        plan.warnings.insert(PodWarning::NotRecreatedWhileTainted);
    }
}

fn verdict(cluster: &Cluster, pod: &Pod, before: &[Taint], after: &[Taint], now: Timestamp) -> Verdict {
    if pod.termination.is_some() {
        return Verdict::Terminating;
    }
    // If `timeAdded` of a taint is not set, the taint is assumed to have been added just now. This gives the latest
    // possible deletion.
    let since = |taint: &Taint| taint.time_added.map_or(now, |at| cluster.local(at));
    let scheduled = match tolerance(&pod.tolerations, before) {
        Tolerance::For { .. } => {
            let tolerated: Vec<_> = before.iter().map(|taint| (since(taint), taint)).collect();
            first_timer(&pod.tolerations, &tolerated).map(|timer| timer.started + timer.span)
        }
        Tolerance::NotTolerated(_) => Some(now),
        Tolerance::Forever => None,
    };
    match tolerance(&pod.tolerations, after) {
        Tolerance::NotTolerated(taint) => Verdict::Deleted { at: now, taint: taint.key.clone() },
        Tolerance::For { span, taint } => {
            // If the pod's eviction timer already runs, the change of taints neither extends nor shortens it.
            let at = scheduled.unwrap_or(now + span).max(now);
            Verdict::Deleted { at, taint: taint.key.clone() }
        }
        Tolerance::Forever if scheduled.is_some() => Verdict::DeletionCancelled,
        Tolerance::Forever => Verdict::Tolerates,
    }
}
