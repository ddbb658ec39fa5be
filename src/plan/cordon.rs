//! Cordon and uncordon (spec/operator-actions.md 1).

use std::sync::Arc;

use super::{
    Action, NodeChange, NodePlan, Plan, PlanError, nodes_named, permission, rules::Rules, step::Step, warning,
};
use crate::{
    cluster::{Cluster, Node, NodeName},
    time::Timestamp,
};

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Cordon,
    Uncordon,
}

pub(super) fn plan(
    action: &Action,
    cluster: &Cluster,
    names: &[NodeName],
    way: Way,
    rules: &Rules,
    now: Timestamp,
) -> Result<Plan, PlanError> {
    let nodes = nodes_named(cluster, names)?;
    let mut plan = Plan::blank(action, rules, now);
    for node in &nodes {
        let (change, step) = change(node, way);
        plan.steps.extend(step);
        plan.nodes.push(NodePlan { node: node.name.clone(), uid: node.uid.clone(), change, drain: None });
    }
    if way == Way::Cordon {
        plan.warnings = warning::of_closing(cluster, &nodes);
    }
    plan.warnings.extend(warning::of_marks(&nodes, now));
    plan.finish_nodes();
    Ok(plan)
}

/// What is written to a node; nothing where it is so already.
pub(super) fn change(node: &Arc<Node>, way: Way) -> (NodeChange, Option<Step>) {
    let on = way == Way::Cordon;
    if node.unschedulable == on {
        return (NodeChange::None, None);
    }
    let step = Step::Cordon { node: node.name.clone(), uid: node.uid.clone(), on };
    let change = if on { NodeChange::Cordon } else { NodeChange::Uncordon };
    (change, Some(step))
}

impl Plan {
    /// Fills what follows from the nodes and steps of a plan that only writes to nodes.
    pub(super) fn finish_nodes(&mut self) {
        let is_change =
            |change: &NodeChange| !matches!(change, NodeChange::None | NodeChange::Refused { .. });
        let is_refused = |node: &&NodePlan| {
            matches!(node.change, NodeChange::Refused { .. })
                || node.drain.as_ref().is_some_and(|drain| drain.refused)
        };
        self.totals.nodes = self.nodes.len();
        self.totals.changed = self.nodes.iter().filter(|node| is_change(&node.change)).count();
        self.totals.refused_nodes = self.nodes.iter().filter(is_refused).count();
        if self.pods.is_empty() {
            let now = Some(self.made);
            self.totals.ends = super::Window { soonest: now, likely: now, latest: now };
        }
        self.permissions = permission::of_steps(&self.steps);
        self.fill_undo();
    }
}
