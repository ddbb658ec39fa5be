//! An earlier operation, read from the journal to be resumed or undone.

use std::collections::BTreeSet;

use super::{super::PriorRun, Confirmation, Drift};
use crate::{
    cluster::{Cluster, Name, NodeName, OperationId, Uid},
    plan::{
        DrainOptions, Permission, PlanStep, Undo,
        permission::of_steps,
        undo::{NodeUndo, NotUndone, UndoStep},
    },
};
use kordon_time::Timestamp;

/// An operation as the journal recorded it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PriorOperation {
    pub id: OperationId,
    /// Title of the operation, for example `drain n1`.
    pub title: String,
    pub started_at: Timestamp,
    pub by: String,
    pub reason: String,
    /// Time until which the operation's cordons are meant to stand.
    pub until: Option<Timestamp>,
    /// How the operation ended; `None` if it was interrupted or is still in progress.
    pub end: Option<String>,
    pub undone: bool,
    /// Options of the drain; `None` if the operation is not a drain.
    pub drain: Option<DrainOptions>,
    pub nodes: Vec<(NodeName, Uid)>,
    /// The confirmation that the operator gave; `None` if the journal does not record it.
    pub confirmation: Option<Confirmation>,
    /// Steps that reverse the changes that the operation may have made to nodes.
    pub undo: Undo,
    pub run: PriorRun,
}

impl PriorOperation {
    /// The weakest confirmation that is enough for a resume: the confirmation that was given for the original start. If
    /// the journal does not record it, an operation on more than one node needs [`Confirmation::Grave`].
    pub(super) fn confirmation(&self) -> Confirmation {
        let by_nodes = if self.nodes.len() > 1 { Confirmation::Grave } else { Confirmation::Plain };
        self.confirmation.unwrap_or(by_nodes)
    }

    /// The nodes that the operation may have cordoned.
    pub(super) fn cordoned(&self) -> BTreeSet<NodeName> {
        let cordons = |undo: &&NodeUndo| undo.steps.contains(&UndoStep::Uncordon);
        self.undo.nodes.iter().filter(cordons).map(|undo| undo.node.clone()).collect()
    }

    /// The permissions to scale back Deployments that the operation may have left scaled up.
    pub(super) fn scale_permissions(&self) -> Vec<Permission> {
        let scales = Undo { scales: self.run.surges.clone(), ..Undo::default() };
        of_steps(&scales.writes(&Cluster::default()).0)
    }

    /// Whether the operation is a drain whose end the journal does not record: it was interrupted or is still in
    /// progress.
    pub const fn is_unfinished(&self) -> bool {
        self.end.is_none() && self.drain.is_some()
    }
}

/// The undo of an operation, computed from the newest state.
#[derive(Clone, Debug, PartialEq)]
pub struct UndoProposal {
    pub prior: PriorOperation,
    pub steps: Vec<PlanStep>,
    /// Changes that cannot be undone, each with the reason.
    pub kept: Vec<NotUndone>,
}

impl UndoProposal {
    pub fn new(mut prior: PriorOperation, cluster: &Cluster) -> Self {
        if prior.undone {
            // Leave out the steps that scale Deployments back: an earlier undo has done this, although the watched
            // cluster does not show it.
            prior.undo.scales.clear();
        }
        let (steps, kept) = prior.undo.writes(cluster);
        Self { prior, steps, kept }
    }

    /// The writes of the undo in words, one line each.
    pub fn writes(&self) -> Vec<String> {
        self.steps.iter().map(words).collect()
    }

    /// Returns the reason why there is nothing to undo; `None` if there is something. An undo without steps still
    /// records that an interrupted operation is over.
    pub(super) fn needless(&self) -> Option<&'static str> {
        match &self.prior {
            _ if !self.steps.is_empty() => None,
            PriorOperation { undone: true, .. } => Some("it is already undone"),
            PriorOperation { end: Some(_), .. } => Some("none of its changes is left"),
            PriorOperation { end: None, .. } => None,
        }
    }

    pub(super) fn permissions(&self) -> Vec<Permission> {
        let looks = self.prior.nodes.iter().map(|(node, _)| Permission::on_node("get", node));
        of_steps(&self.steps).into_iter().chain(looks).collect()
    }

    /// The nodes that the undo writes to.
    pub(super) fn nodes(&self) -> BTreeSet<&NodeName> {
        self.steps.iter().filter_map(node_of).collect()
    }

    /// The confirmation that the undo needs. An undo on more than one node needs [`Confirmation::Grave`], as for a
    /// plan.
    pub(super) fn confirmation(&self) -> Confirmation {
        if self.nodes().len() > 1 { Confirmation::Grave } else { Confirmation::Plain }
    }

    /// Computes the undo again from the newest state. Returns the nodes that have a write to which the operator has not
    /// agreed.
    pub(super) fn renew(&mut self, cluster: &Cluster) -> Vec<Drift> {
        let newest = Self::new(self.prior.clone(), cluster);
        let agreed = std::mem::replace(self, newest).steps;
        let is_new = |step: &&PlanStep| !agreed.iter().any(|before| writes_the_same(before, step));
        let nodes: BTreeSet<&NodeName> = self.steps.iter().filter(is_new).filter_map(node_of).collect();
        nodes.into_iter().map(|node| Drift::Node { node: node.clone() }).collect()
    }
}

/// The node that a step of an undo writes to; `None` for a step on a pod or a Deployment.
fn node_of(step: &PlanStep) -> Option<&NodeName> {
    match step {
        PlanStep::Cordon { node, .. }
        | PlanStep::SetTaints { node, .. }
        | PlanStep::SetMetadata { node, .. }
        | PlanStep::DeleteNode { node, .. } => Some(node),
        PlanStep::Evict { .. } | PlanStep::Delete { .. } | PlanStep::Scale { .. } => None,
    }
}

/// Whether two steps of an undo make the same write. They may expect different versions of the object.
fn writes_the_same(one: &PlanStep, other: &PlanStep) -> bool {
    match (one, other) {
        (
            PlanStep::SetTaints { node, uid, taints, version: _ },
            PlanStep::SetTaints { node: other_node, uid: other_uid, taints: other_taints, version: _ },
        ) => (node, uid, taints) == (other_node, other_uid, other_taints),
        (one, other) => one == other,
    }
}

/// Describes the write of an undo's step in a few words.
fn words(step: &PlanStep) -> String {
    let list = |items: Vec<String>| if items.is_empty() { "none".into() } else { items.join(", ") };
    match step {
        PlanStep::Cordon { node, on: true, .. } => format!("cordon {node}"),
        PlanStep::Cordon { node, on: false, .. } => format!("uncordon {node}"),
        PlanStep::SetTaints { node, taints, .. } => {
            format!("set the taints of {node} to: {}", list(taints.iter().map(ToString::to_string).collect()))
        }
        PlanStep::SetMetadata { node, field, entries, .. } => {
            let entry = |(key, value): &(Name, Option<Name>)| match value {
                Some(value) => format!("{key}={value}"),
                None => format!("{key}-"),
            };
            format!("set {field} of {node}: {}", list(entries.iter().map(entry).collect()))
        }
        PlanStep::Evict { pod, .. } => format!("evict {pod}"),
        PlanStep::Delete { pod, .. } => format!("delete {pod}"),
        PlanStep::DeleteNode { node, .. } => format!("delete node {node}"),
        PlanStep::Scale { deployment, replicas, .. } => {
            format!("scale Deployment {deployment} back to {replicas}")
        }
    }
}
