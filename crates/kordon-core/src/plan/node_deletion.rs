//! Plans that delete Node objects: what the pod garbage collector then does to their pods (docs/upstream/neighbours.md#1).

use std::{collections::BTreeSet, sync::Arc};

use super::{
    action::Action,
    context::PlanContext,
    environment::{Environment, Estimate, Quality},
    eviction_note::EvictionNote,
    forced_removal::Detachment,
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
use crate::cluster::{Cluster, Key, NodeName, Pod};
use kordon_time::{Span, Timestamp};

/// Time from the deletion of a Node until the pod garbage collector removes its pods by force. It looks every 20 s, and leaves
/// a missing node in quarantine for 40 s (`gcOrphaned`). The look at the end of the quarantine may come a moment too early; then
/// it is the next one.
const COLLECTED: Estimate = Estimate {
    soonest: Some(Span::from_secs(40)),
    likely: Some(Span::from_secs(50)),
    latest: Some(Span::from_secs(80)),
    quality: Quality::Declared,
};

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
        let rows: Vec<PodPlan> = pods.map(|pod| row(pod, &leaving, context.cluster, context.now)).collect();
        if node.is_ready() {
            let pods = context.cluster.workload_pods(&node.name).count();
            plan.warnings.push(Warning::MachineRuns { node: node.name.clone(), pods });
        }
        plan.pods.extend(rows);
        let (name, uid) = (node.name.clone(), node.uid.clone());
        plan.nodes.push(NodePlan { node: name, uid, change: NodeChange::Deletion, drain: None });
    }
    let mut environment = context.environment.clone();
    environment.on_removal(&names.iter().cloned().collect());
    plan.add_replacements(context.cluster, environment, Detachment::ByForce);
    plan.complete_removals(context.cluster);
    plan.warnings.extend(warning::of_claims(&nodes, plan.made));
    plan.finish_nodes();
    plan.name_gaps(gaps, context.cluster);
    plan.not_modelled = not_modelled::of_pods(&plan.pods, &context.rules, context.cluster);
    Ok(plan)
}

/// The row of a pod on a node that is deleted.
fn row(pod: &Arc<Pod>, leaving: &BTreeSet<Key>, cluster: &Cluster, now: Timestamp) -> PodPlan {
    let at = |span: Option<Span>| span.map(|span| now + span);
    let window =
        Window { soonest: at(COLLECTED.soonest), likely: at(COLLECTED.likely), latest: at(COLLECTED.latest) };
    let mut row = PodPlan::new(pod, Verdict::Orphaned);
    row.leaves = window;
    row.quality = COLLECTED.quality;
    row.lost = owner::not_recreated(cluster, pod);
    row.eviction_notes = EvictionNote::for_pod(cluster, pod);
    row.warnings.extend(warning::of_pod(cluster, pod, leaving, true));
    row.warnings.remove(&PodWarning::MayReturn);
    // A finalizer also holds an object that is removed by force.
    if pod.is_held() {
        row.warnings.insert(PodWarning::HeldByFinalizer);
    } else {
        row.gone = window;
    }
    row
}
