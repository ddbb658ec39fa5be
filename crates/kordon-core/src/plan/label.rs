//! Plans that label nodes.

use super::{
    action::Action,
    context::PlanContext,
    label_edits::LabelEdits,
    node_plan::{NodeChange, NodePlan},
    plan::Plan,
    step::PlanStep,
    targets::{PlanError, nodes_named},
};
use crate::cluster::{Gaps, Labels, Node, NodeName};

pub(super) fn plan<E>(
    action: &Action,
    names: &[NodeName],
    edits: &LabelEdits,
    context: &PlanContext<'_, E>,
) -> Result<Plan, PlanError> {
    let mut plan = Plan::blank(action, context);
    for node in nodes_named(context.cluster, names)? {
        let change = match edits.over(&node) {
            Err(text) => NodeChange::Refused { text },
            Ok(after) if after == node.labels => NodeChange::Unchanged { text: "has these labels already" },
            Ok(after) => {
                plan.steps.push(step(&node, &after));
                NodeChange::Labels { before: node.labels.clone(), after }
            }
        };
        plan.nodes.push(NodePlan { node: node.name.clone(), uid: node.uid.clone(), change, drain: None });
    }
    plan.finish_nodes();
    plan.name_gaps(Gaps::default(), context.cluster);
    Ok(plan)
}

/// Returns the write that gives a node these labels.
pub fn step(node: &Node, after: &Labels) -> PlanStep {
    let set = after.iter().filter(|(key, value)| node.labels.get(key) != Some(value));
    let removed = node.labels.keys().filter(|key| !after.contains_key(key));
    let labels = set.map(|(key, value)| (key.clone(), Some(value.clone())));
    let labels = labels.chain(removed.map(|key| (key.clone(), None))).collect();
    PlanStep::SetLabels { node: node.name.clone(), uid: node.uid.clone(), labels }
}
