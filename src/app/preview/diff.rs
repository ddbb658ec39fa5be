//! The diff of the open plan: what its operation changes in each object, and which pods it removes.
//!
//! The nodes of the plan are read when the diff is opened, and again when the writes of the plan change.

use super::{Filterable, Preview};
use crate::executor::plan_diff::{DiffLine, DiffLineKind, WholeNodes, plan_diff};
use kordon_core::{
    cluster::{Cluster, NodeName},
    operation::OperationOptions,
    plan::PlanStep,
};
use kordon_time::Timestamp;

/// The diff of a plan, while it is shown.
#[derive(Clone, Debug, Default)]
pub struct DiffView {
    /// The steps of the plan whose nodes were requested last; `None` before the first request.
    asked: Option<Vec<PlanStep>>,
    /// The nodes and the name of the user; `None` until they have been read.
    nodes: Option<Result<ReadNodes, String>>,
    pub lines: Vec<DiffLine>,
}

/// The nodes of a plan as the server has them.
#[derive(Clone, Debug)]
pub struct ReadNodes {
    pub nodes: WholeNodes,
    /// Name of the user, as the operation would write it to the nodes.
    pub by: String,
}

impl DiffView {
    /// Whether reading the nodes has ended, successfully or not.
    pub const fn is_ready(&self) -> bool {
        self.nodes.is_some()
    }

    /// The whole diff as text.
    pub fn text(&self) -> String {
        self.lines.iter().map(|line| format!("{}\n", line.text)).collect()
    }
}

impl Preview {
    /// Shows the diff in place of the plan's rows, or closes it.
    pub(in crate::app) fn toggle_diff(&mut self) {
        self.diff = if self.diff.is_some() { None } else { Some(Box::default()) };
        (self.arranged, self.is_moved) = (None, false);
        self.chosen = None;
        self.list.restart();
    }

    /// Closes the diff. Returns whether it was shown.
    pub(in crate::app) fn leave_diff(&mut self) -> bool {
        let is_shown = self.diff.is_some();
        if is_shown {
            self.toggle_diff();
        }
        is_shown
    }

    /// Returns the nodes to read for the diff; `None` if the diff is not shown, or if the nodes for the present writes
    /// of the plan were already requested.
    pub(in crate::app) fn next_read(&mut self) -> Option<Vec<NodeName>> {
        let plan = if self.is_behind() { None } else { self.plan() }?;
        let (steps, names) = (&plan.steps, plan.nodes.iter().map(|node| node.node.clone()));
        if self.diff.as_ref()?.asked.as_ref() == Some(steps) {
            return None;
        }
        let (steps, names) = (steps.clone(), names.collect());
        self.diff.as_mut()?.asked = Some(steps);
        Some(names)
    }

    /// Stores the nodes that were read for the diff, or why they could not be read.
    pub(in crate::app) fn set_nodes(&mut self, nodes: Result<ReadNodes, String>) {
        if let Some(diff) = &mut self.diff {
            diff.nodes = Some(nodes);
        }
    }

    /// Computes the diff again, if it is shown and the nodes have been read. `options` are the options that the
    /// operation would have.
    pub(in crate::app) fn work_out_diff(
        &mut self,
        options: OperationOptions,
        cluster: &Cluster,
        now: Timestamp,
    ) {
        let Some(nodes) = self.diff.as_ref().and_then(|diff| diff.nodes.as_ref()) else { return };
        let lines = match (nodes, self.plan()) {
            (Ok(ReadNodes { nodes, by }), Some(plan)) => {
                plan_diff(plan, OperationOptions { by: by.clone(), ..options }, cluster, nodes, now)
            }
            (Err(why), _) => vec![unknown(why)],
            (Ok(_), None) => Vec::new(),
        };
        if let Some(diff) = &mut self.diff {
            diff.lines = lines;
            self.arranged = None;
        }
    }
}

fn unknown(why: &str) -> DiffLine {
    DiffLine { kind: DiffLineKind::Note, text: format!("# the nodes are unknown: {why}").into() }
}

impl Filterable for DiffLine {
    fn field(&self, _key: &str) -> Option<String> {
        None
    }

    fn texts(&self, found: &mut dyn FnMut(&str)) {
        found(&self.text);
    }
}
