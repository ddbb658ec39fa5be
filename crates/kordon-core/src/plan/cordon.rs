//! Plans that cordon and uncordon nodes (docs/upstream/operator-actions.md#1).

use std::{collections::BTreeSet, sync::Arc};

use super::{
    action::Action,
    context::PlanContext,
    environment::Environment,
    landing::Landing,
    node_plan::{NodeChange, NodePlan},
    plan::{Arrival, Plan},
    step::PlanStep,
    successor,
    targets::{PlanError, nodes_named},
    warning,
};
use crate::cluster::{Cluster, Gaps, Node, NodeName, Taint, UNSCHEDULABLE};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CordonChange {
    Cordon,
    Uncordon,
}

pub(super) fn cordon<E>(
    action: &Action,
    names: &[NodeName],
    context: &PlanContext<'_, E>,
) -> Result<Plan, PlanError> {
    let nodes = nodes_named(context.cluster, names)?;
    let mut plan = plan(action, &nodes, CordonChange::Cordon, context);
    plan.warnings.splice(0..0, warning::of_closing(context.cluster, &nodes));
    plan.warnings.extend(warning::of_switchovers(context.cluster, &nodes, context.now));
    plan.name_gaps(Gaps::default(), context.cluster);
    Ok(plan)
}

pub(super) fn uncordon<E: Environment>(
    action: &Action,
    names: &[NodeName],
    context: &PlanContext<'_, E>,
) -> Result<Plan, PlanError> {
    let nodes = nodes_named(context.cluster, names)?;
    let mut plan = plan(action, &nodes, CordonChange::Uncordon, context);
    plan.warnings.splice(0..0, warning::of_cordons(&nodes, context.now));
    let mut environment = context.environment.clone();
    plan.arrivals = arrivals(context.cluster, &nodes, &mut environment);
    plan.receivers = environment.trace().receivers;
    plan.receivers.retain(|receiver| plan.arrivals.iter().any(|arrival| arrival.node == receiver.node));
    plan.name_gaps(Gaps::default(), context.cluster);
    Ok(plan)
}

fn plan<E>(action: &Action, nodes: &[Arc<Node>], change: CordonChange, context: &PlanContext<'_, E>) -> Plan {
    let mut plan = Plan::blank(action, context);
    for node in nodes {
        let (change, step) = change_node(node, change);
        plan.steps.extend(step);
        plan.nodes.push(NodePlan { node: node.name.clone(), uid: node.uid.clone(), change, drain: None });
    }
    plan.warnings.extend(warning::of_claims(nodes, context.now));
    plan.warnings.extend(warning::of_maintenances(context.cluster, nodes, context.now));
    plan.finish_nodes();
    plan
}

/// Returns the Pending pods that land on these nodes once the nodes are uncordoned. Pods of higher priority are placed
/// first; of pods with equal priority, the older ones.
fn arrivals<E: Environment>(cluster: &Cluster, nodes: &[Arc<Node>], environment: &mut E) -> Vec<Arrival> {
    for node in nodes.iter().filter(|node| node.unschedulable) {
        environment.on_node_change(Arc::new(uncordoned(node)));
    }
    let mut arrivals = Vec::new();
    for pod in successor::scheduling_queue(cluster) {
        if let Landing::Node { node, why } = environment.land(pod, &BTreeSet::new())
            && nodes.iter().any(|uncordoned| uncordoned.name == node)
        {
            arrivals.push(Arrival { pod: pod.key.clone(), node, why });
        }
    }
    arrivals
}

/// Returns the node as it is shortly after the uncordon. The node lifecycle controller has then removed the taint of
/// the cordon.
fn uncordoned(node: &Node) -> Node {
    let stays = |taint: &&Taint| *taint.key != *UNSCHEDULABLE;
    let taints = node.taints.iter().filter(stays).cloned().collect();
    Node { unschedulable: false, taints, ..node.clone() }
}

/// Returns the change of a node, and the write that makes the change; no write if the node is unchanged.
pub(super) fn change_node(node: &Node, change: CordonChange) -> (NodeChange, Option<PlanStep>) {
    let (on, node_change, unchanged) = match change {
        CordonChange::Cordon => (true, NodeChange::Cordon, "already cordoned"),
        CordonChange::Uncordon => (false, NodeChange::Uncordon, "already schedulable"),
    };
    if node.unschedulable == on {
        return (NodeChange::Unchanged { text: unchanged }, None);
    }
    let step = PlanStep::Cordon { node: node.name.clone(), uid: node.uid.clone(), on };
    (node_change, Some(step))
}
