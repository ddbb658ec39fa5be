//! Plans that change labels or annotations of nodes.

use super::{
    action::Action,
    context::PlanContext,
    metadata_edits::{MetadataEdits, MetadataField},
    node_plan::{NodeChange, NodePlan},
    plan::Plan,
    step::PlanStep,
    targets::{PlanError, nodes_named},
};
use crate::cluster::{Gaps, Labels, Node, NodeName};

pub(super) fn plan<E>(
    action: &Action,
    names: &[NodeName],
    edits: &MetadataEdits,
    context: &PlanContext<'_, E>,
) -> Result<Plan, PlanError> {
    let mut plan = Plan::blank(action, context);
    for node in nodes_named(context.cluster, names)? {
        let change = change(&node, edits);
        if let NodeChange::Metadata { field, before, after } = &change {
            plan.steps.push(step(&node, *field, before, after));
        }
        plan.nodes.push(NodePlan { node: node.name.clone(), uid: node.uid.clone(), change, drain: None });
    }
    plan.finish_nodes();
    plan.name_gaps(Gaps::default(), context.cluster);
    Ok(plan)
}

/// Returns the change that edits of labels or annotations make to a node.
pub fn change(node: &Node, edits: &MetadataEdits) -> NodeChange {
    let field = edits.field;
    match (edits.over(node), field.of_node(node)) {
        (Err(text), _) => NodeChange::Refused { text },
        (Ok(after), Some(before)) if after == *before => NodeChange::Unchanged {
            text: match field {
                MetadataField::Labels => "has these labels already",
                MetadataField::Annotations => "has these annotations already",
            },
        },
        (Ok(after), before) => {
            NodeChange::Metadata { field, before: before.cloned().unwrap_or_default(), after }
        }
    }
}

/// Returns the write that changes the labels or annotations from `before` to `after`.
pub fn step(node: &Node, field: MetadataField, before: &Labels, after: &Labels) -> PlanStep {
    let set = after.iter().filter(|(key, value)| before.get(key) != Some(value));
    let removed = before.keys().filter(|key| !after.contains_key(key));
    let entries = set.map(|(key, value)| (key.clone(), Some(value.clone())));
    let entries = entries.chain(removed.map(|key| (key.clone(), None))).collect();
    PlanStep::SetMetadata { node: node.name.clone(), uid: node.uid.clone(), field, entries }
}
