//! Plans that delete Node objects: what the pod garbage collector then does to their pods
//! (docs/upstream/neighbours.md#1).

use std::{collections::BTreeSet, sync::Arc};

use super::{
    action::Action,
    context::PlanContext,
    environment::Environment,
    eviction,
    eviction_note::EvictionNote,
    forced_removal::{COLLECTED, Detachment},
    gaps,
    node_plan::{NodeChange, NodePlan},
    not_modelled, owner,
    plan::Plan,
    pod_plan::{PodPlan, Window},
    step::PlanStep,
    targets::{PlanError, nodes_named, require},
    verdict::Verdict,
    warning::{self, PodWarning, Warning},
};
use crate::cluster::{Key, Name, Node, NodeName, Pod};
use kordon_time::Span;

pub(super) fn plan<E: Environment>(
    action: &Action,
    names: &[NodeName],
    context: &PlanContext<'_, E>,
) -> Result<Plan, PlanError> {
    let nodes = nodes_named(context.cluster, names)?;
    let gaps = gaps::of_pods_on(context.cluster, names);
    require(&gaps)?;
    let mut plan = Plan::blank(action, context);
    let leaving: BTreeSet<Key> =
        names.iter().flat_map(|name| context.cluster.pods_on(name)).map(|pod| pod.key.clone()).collect();
    for node in &nodes {
        plan.steps.push(PlanStep::DeleteNode { node: node.name.clone(), uid: node.uid.clone() });
        let pods = context.cluster.pods_on(&node.name);
        let rows: Vec<PodPlan> = match node.finalizers.first() {
            Some(finalizer) => pods.map(|pod| row_of_held_node(pod, finalizer)).collect(),
            None => pods.map(|pod| row(pod, &leaving, context)).collect(),
        };
        if let Some(warning) = node_held(node) {
            plan.warnings.push(warning);
        } else if node.is_ready() {
            let pods = context.cluster.workload_pods(&node.name).count();
            plan.warnings.push(Warning::MachineRuns { node: node.name.clone(), pods });
        }
        plan.pods.extend(rows);
        let (name, uid) = (node.name.clone(), node.uid.clone());
        plan.nodes.push(NodePlan { node: name, uid, change: NodeChange::Deletion, drain: None });
    }
    let mut environment = context.environment.clone();
    let is_removed = |node: &&Arc<Node>| node.finalizers.is_empty();
    let removed: BTreeSet<NodeName> = nodes.iter().filter(is_removed).map(|node| node.name.clone()).collect();
    environment.on_removal(&removed);
    plan.add_replacements(context.cluster, environment, Detachment::ByForce);
    plan.complete_removals(context.cluster);
    plan.warnings.extend(warning::of_control_plane(&nodes));
    plan.warnings.extend(warning::of_claims(&nodes, plan.made));
    plan.warnings.extend(warning::of_maintenances(context.cluster, &nodes, plan.made));
    plan.finish_nodes();
    plan.name_gaps(gaps, context.cluster);
    plan.not_modelled = not_modelled::of_pods(&plan.pods, &context.rules, context.cluster);
    Ok(plan)
}

/// Returns the warning that finalizers keep a Node object; `None` if the object has no finalizers. The API server only
/// marks an object with finalizers as being deleted (apiserver `registry/generic/registry/store.go`, `Delete`), and
/// kordon does not model what the finalizer's controller does before it removes the finalizer.
fn node_held(node: &Node) -> Option<Warning> {
    let finalizers = node.finalizers.to_vec();
    (!finalizers.is_empty()).then(|| Warning::NodeHeld { node: node.name.clone(), finalizers })
}

/// Returns the plan's row for a pod whose node is deleted, but whose Node object is kept by a finalizer.
fn row_of_held_node(pod: &Pod, finalizer: &Name) -> PodPlan {
    if pod.termination.is_some() {
        return PodPlan::new(pod, Verdict::Terminating);
    }
    PodPlan::new(pod, Verdict::WaitsForFinalizer { finalizer: finalizer.clone() })
}

/// Returns the plan's row for a pod on a node that is deleted.
fn row<E>(pod: &Arc<Pod>, leaving: &BTreeSet<Key>, context: &PlanContext<'_, E>) -> PodPlan {
    let PlanContext { cluster, rules, now, .. } = context;
    let at = |span: Option<Span>| span.map(|span| *now + span);
    let window =
        Window { soonest: at(COLLECTED.soonest), likely: at(COLLECTED.likely), latest: at(COLLECTED.latest) };
    let mut row = PodPlan::new(pod, Verdict::Orphaned);
    row.leaves = window;
    row.quality = COLLECTED.quality;
    row.answer = gaps::can_answer_eviction(cluster, pod).then(|| eviction::answer(cluster, pod, rules, *now));
    row.lost = owner::not_recreated(cluster, pod);
    row.eviction_notes = EvictionNote::for_orphan(cluster, pod);
    row.warnings.extend(warning::of_pod(cluster, pod, leaving, true));
    row.warnings.remove(&PodWarning::MayReturn);
    // A finalizer keeps the pod's object even if the pod is removed by force.
    if pod.is_held() {
        row.warnings.insert(PodWarning::HeldByFinalizer);
    } else {
        row.gone = window;
    }
    row
}
