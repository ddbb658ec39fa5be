//! Undo of the changes that a plan made to nodes. Pods are not restored.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use super::{metadata_edits::MetadataField, node_plan::NodeChange, step::PlanStep};
use crate::cluster::{Cluster, Key, Name, Node, NodeName, Taint, TaintEffect, Uid};

/// The undo of a plan. It reverts the changes to nodes, and scales back the Deployments that the plan has scaled up.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Undo {
    pub nodes: Vec<NodeUndo>,
    /// Deployments that an interrupted operation has left scaled up.
    pub scales: Vec<ScaleUndo>,
}

/// The undo of one write.
#[derive(Clone, Debug, PartialEq)]
pub enum WriteUndo {
    Node(NodeUndo),
    Scale(ScaleUndo),
}

/// The undo of a surge: scales the Deployment back to `before`, if it still has `after` replicas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScaleUndo {
    pub deployment: Key,
    /// Uid of the Deployment that was scaled. A new Deployment with the same name is left alone.
    pub uid: Uid,
    pub before: i32,
    pub after: i32,
}

/// The undo of a plan's changes to one node.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeUndo {
    pub node: NodeName,
    /// Uid of the node that the plan changed. A new node with the same name is left alone.
    pub uid: Uid,
    pub steps: Vec<UndoStep>,
}

/// The undo of one change to a node. A value that somebody has changed after the plan is left alone.
#[derive(Clone, Debug, PartialEq)]
pub enum UndoStep {
    /// Uncordons the node, because the plan cordoned it.
    Uncordon,
    /// Cordons the node, because the plan uncordoned it.
    Cordon,
    /// Restores a taint to its state `before` the plan, if it is still in its state `after` the plan. `None` means that
    /// there is no such taint.
    Taint { key: Name, effect: TaintEffect, before: Option<Taint>, after: Option<Taint> },
    /// Restores a label or annotation to its value `before` the plan, if it still has its value `after` the plan.
    /// `None` means that there is no such entry.
    Metadata { field: MetadataField, key: Name, before: Option<Name>, after: Option<Name> },
}

/// The reason why a change is not undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotUndone {
    /// The node is gone.
    NodeGone { node: NodeName },
    /// Another node now has the name of the changed node.
    OtherNode { node: NodeName },
    /// The node is already in the state that it had before the plan.
    NothingToUndo { node: NodeName, state: String },
    /// Somebody has changed the taint, label or annotation after the plan.
    Changed { node: NodeName, what: String },
}

impl fmt::Display for NotUndone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NodeGone { node } => write!(f, "{node} is gone"),
            Self::OtherNode { node } => write!(f, "{node} has been replaced by another node of that name"),
            Self::NothingToUndo { node, state } => write!(f, "{node} is already {state}"),
            Self::Changed { node, what } => write!(f, "{what} of {node} has been changed since"),
        }
    }
}

impl Undo {
    pub fn is_empty(&self) -> bool {
        self.scales.is_empty() && self.nodes.iter().all(|node| node.steps.is_empty())
    }

    /// Returns the writes that undo the plan in the present state of the cluster, and the changes that cannot be
    /// undone.
    pub fn writes(&self, cluster: &Cluster) -> (Vec<PlanStep>, Vec<NotUndone>) {
        let (mut writes, mut not_undone) = (Vec::new(), Vec::new());
        for undo in &self.nodes {
            match cluster.node(&undo.node) {
                None => not_undone.push(NotUndone::NodeGone { node: undo.node.clone() }),
                Some(node) if node.uid != undo.uid => {
                    not_undone.push(NotUndone::OtherNode { node: undo.node.clone() });
                }
                Some(node) => undo.over(node, &mut writes, &mut not_undone),
            }
        }
        writes.extend(self.scales.iter().map(ScaleUndo::step));
        (writes, not_undone)
    }
}

impl ScaleUndo {
    /// Returns the write that scales the Deployment back. The operation that makes the write reads the Deployment
    /// first.
    fn step(&self) -> PlanStep {
        let Self { deployment, uid, before, .. } = self.clone();
        PlanStep::Scale { deployment, uid, version: None, replicas: before }
    }
}

impl NodeUndo {
    /// Returns the undo of a change to a node; `None` if nothing was changed.
    pub fn new(node: NodeName, uid: Uid, change: &NodeChange) -> Option<Self> {
        let steps = match change {
            NodeChange::Cordon => vec![UndoStep::Uncordon],
            NodeChange::Uncordon => vec![UndoStep::Cordon],
            NodeChange::Deletion => Vec::new(),
            NodeChange::Taints { before, after } => taint_steps(before, after),
            NodeChange::Metadata { field, before, after } => {
                let keys: BTreeSet<&Name> = before
                    .keys()
                    .chain(after.keys())
                    .filter(|key| before.get(key) != after.get(key))
                    .collect();
                let step = |key: &Name| UndoStep::Metadata {
                    field: *field,
                    key: key.clone(),
                    before: before.get(key).cloned(),
                    after: after.get(key).cloned(),
                };
                keys.into_iter().map(step).collect()
            }
            NodeChange::Unchanged { .. } | NodeChange::Refused { .. } => return None,
        };
        Some(Self { node, uid, steps })
    }

    /// Computes the undo in the present state of the node. Adds its writes to `writes`, and changes that cannot be
    /// undone to `not_undone`.
    pub fn over(&self, node: &Node, writes: &mut Vec<PlanStep>, not_undone: &mut Vec<NotUndone>) {
        let (name, uid) = (&node.name, &node.uid);
        let mut taints: Vec<Taint> = node.taints.to_vec();
        let mut entries: BTreeMap<MetadataField, Vec<_>> = BTreeMap::new();
        for step in &self.steps {
            match step {
                UndoStep::Uncordon | UndoStep::Cordon => {
                    let on = *step == UndoStep::Cordon;
                    if node.unschedulable == on {
                        let state = if on { "cordoned" } else { "uncordoned" }.to_owned();
                        not_undone.push(NotUndone::NothingToUndo { node: name.clone(), state });
                    } else {
                        writes.push(PlanStep::Cordon { node: name.clone(), uid: uid.clone(), on });
                    }
                }
                UndoStep::Taint { key, effect, before, after } => {
                    let place = taints.iter().position(|taint| taint.is(key, *effect));
                    let value = |taint: Option<&Taint>| taint.map(|taint| taint.value.clone());
                    if value(place.map(|place| &taints[place])) != value(after.as_ref()) {
                        let what = format!("taint {key}:{effect}");
                        not_undone.push(NotUndone::Changed { node: name.clone(), what });
                        continue;
                    }
                    match (place, before) {
                        (Some(place), Some(before)) => taints[place] = before.clone(),
                        (Some(place), None) => _ = taints.remove(place),
                        (None, Some(before)) => taints.push(before.clone()),
                        (None, None) => {}
                    }
                }
                UndoStep::Metadata { field, key, before, after } => {
                    if field.of_node(node).is_some_and(|present| present.get(key) == after.as_ref()) {
                        entries.entry(*field).or_default().push((key.clone(), before.clone()));
                    } else {
                        let what = format!("{} {key}", field.one());
                        not_undone.push(NotUndone::Changed { node: name.clone(), what });
                    }
                }
            }
        }
        if taints[..] != node.taints[..] {
            let version = node.version;
            writes.push(PlanStep::SetTaints { node: name.clone(), uid: uid.clone(), version, taints });
        }
        for (field, entries) in entries {
            writes.push(PlanStep::SetMetadata { node: name.clone(), uid: uid.clone(), field, entries });
        }
    }
}

/// Returns the undo of each taint that differs between `before` and `after`. Taints are identified by key and effect.
fn taint_steps(before: &[Taint], after: &[Taint]) -> Vec<UndoStep> {
    let find = |taints: &[Taint], like: &Taint| {
        taints.iter().find(|taint| taint.is(&like.key, like.effect)).cloned()
    };
    let mut steps = Vec::new();
    for taint in before.iter().chain(after.iter().filter(|taint| find(before, taint).is_none())) {
        let (before, after) = (find(before, taint), find(after, taint));
        if before != after {
            steps.push(UndoStep::Taint { key: taint.key.clone(), effect: taint.effect, before, after });
        }
    }
    steps
}
