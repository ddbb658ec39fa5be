//! Cordon and uncordon (docs/upstream/operator-actions.md#1).

use std::{cmp::Reverse, collections::BTreeSet, sync::Arc};

use super::{
    action::Action,
    environment::Environment,
    landing::Landing,
    node_plan::{NodeChange, NodePlan},
    plan::{Arrival, Plan},
    rules::EvictionRules,
    step::PlanStep,
    targets::{PlanError, nodes_named},
    warning,
};
use crate::{
    cluster::{Cluster, Node, NodeName, Pod, Taint},
    time::Timestamp,
};

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CordonChange {
    Cordon,
    Uncordon,
}

pub(super) fn cordon(
    action: &Action,
    cluster: &Cluster,
    names: &[NodeName],
    rules: &EvictionRules,
    now: Timestamp,
) -> Result<Plan, PlanError> {
    let nodes = nodes_named(cluster, names)?;
    let mut plan = plan(action, &nodes, CordonChange::Cordon, rules, now);
    plan.warnings.splice(0..0, warning::of_closing(cluster, &nodes));
    Ok(plan)
}

pub(super) fn uncordon<S: Environment>(
    action: &Action,
    cluster: &Cluster,
    names: &[NodeName],
    environment: &S,
    rules: &EvictionRules,
    now: Timestamp,
) -> Result<Plan, PlanError> {
    let nodes = nodes_named(cluster, names)?;
    let mut plan = plan(action, &nodes, CordonChange::Uncordon, rules, now);
    let mut environment = environment.clone();
    plan.arrivals = arrivals(cluster, &nodes, &mut environment);
    plan.receivers = environment.trace().receivers;
    plan.receivers.retain(|receiver| plan.arrivals.iter().any(|arrival| arrival.node == receiver.node));
    Ok(plan)
}

fn plan(
    action: &Action,
    nodes: &[Arc<Node>],
    way: CordonChange,
    rules: &EvictionRules,
    now: Timestamp,
) -> Plan {
    let mut plan = Plan::blank(action, rules, now);
    for node in nodes {
        let (change, step) = change(node, way);
        plan.steps.extend(step);
        plan.nodes.push(NodePlan { node: node.name.clone(), uid: node.uid.clone(), change, drain: None });
    }
    plan.warnings.extend(warning::of_marks(nodes, now));
    plan.finish_nodes();
    plan
}

/// Who waits for a place and finds one on these nodes once they are open: the most important first, then who was
/// there first.
fn arrivals<S: Environment>(cluster: &Cluster, nodes: &[Arc<Node>], environment: &mut S) -> Vec<Arrival> {
    for node in nodes.iter().filter(|node| node.unschedulable) {
        environment.update_node(Arc::new(opened(node)));
    }
    let waits = |pod: &&Arc<Pod>| pod.node.is_none() && pod.termination.is_none() && !pod.is_finished();
    let mut waiting: Vec<&Arc<Pod>> = cluster.pods().iter().filter(waits).collect();
    waiting.sort_by_key(|pod| (Reverse(pod.priority), pod.created));
    let mut arrivals = Vec::new();
    for pod in waiting {
        if let Landing::Node { node, why } = environment.land(pod, &BTreeSet::new())
            && nodes.iter().any(|open| open.name == node)
        {
            arrivals.push(Arrival { pod: pod.key.clone(), node, why });
        }
    }
    arrivals
}

/// The node as it is soon after it was uncordoned: the controller takes the taint off that stands for the cordon.
fn opened(node: &Node) -> Node {
    let stays = |taint: &&Taint| *taint.key != *warning::UNSCHEDULABLE;
    let taints = node.taints.iter().filter(stays).cloned().collect();
    Node { unschedulable: false, taints, ..node.clone() }
}

/// What is written to a node; nothing where it is so already.
pub(super) fn change(node: &Arc<Node>, way: CordonChange) -> (NodeChange, Option<PlanStep>) {
    let on = way == CordonChange::Cordon;
    if node.unschedulable == on {
        return (NodeChange::None, None);
    }
    let step = PlanStep::Cordon { node: node.name.clone(), uid: node.uid.clone(), on };
    let change = if on { NodeChange::Cordon } else { NodeChange::Uncordon };
    (change, Some(step))
}
