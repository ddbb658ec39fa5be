//! Labels of nodes, in kubectl's words.

use std::collections::BTreeMap;

use super::{
    action::Action,
    label_edits::LabelEdits,
    node_plan::{NodeChange, NodePlan},
    plan::Plan,
    rules::EvictionRules,
    step::PlanStep,
    targets::{PlanError, nodes_named},
};
use crate::{
    cluster::{Cluster, Name, Node, NodeName},
    time::Timestamp,
};

pub(super) fn plan(
    action: &Action,
    cluster: &Cluster,
    names: &[NodeName],
    edits: &LabelEdits,
    rules: &EvictionRules,
    now: Timestamp,
) -> Result<Plan, PlanError> {
    let mut plan = Plan::blank(action, rules, now);
    for node in nodes_named(cluster, names)? {
        let change = match edits.over(&node) {
            Err(text) => NodeChange::Refused { text },
            Ok(after) if after == *node.labels => NodeChange::None,
            Ok(after) => {
                plan.steps.push(step(&node, &after));
                NodeChange::Labels { before: node.labels.clone(), after: after.into() }
            }
        };
        plan.nodes.push(NodePlan { node: node.name.clone(), uid: node.uid.clone(), change, drain: None });
    }
    plan.finish_nodes();
    Ok(plan)
}

/// The write that makes a node's labels these.
pub fn step(node: &Node, after: &BTreeMap<Name, Name>) -> PlanStep {
    let set = after.iter().filter(|(key, value)| node.labels.get(*key) != Some(value));
    let gone = node.labels.keys().filter(|key| !after.contains_key(*key));
    let labels = set.map(|(key, value)| (key.clone(), Some(value.clone())));
    let labels = labels.chain(gone.map(|key| (key.clone(), None))).collect();
    PlanStep::SetLabels { node: node.name.clone(), uid: node.uid.clone(), labels }
}
