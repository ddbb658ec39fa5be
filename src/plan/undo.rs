//! Putting back what a plan changed on nodes; pods never come back by it.

use std::collections::BTreeSet;

use super::{node_plan::NodeChange, step::PlanStep};
use crate::cluster::{Cluster, Name, Node, NodeName, Taint, TaintEffect, Uid};

/// What has to be put back, in the order in which it is done.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Undo {
    pub nodes: Vec<NodeUndo>,
}

/// What has to be put back on one node.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeUndo {
    pub node: NodeName,
    /// A node of the same name that is another one is left alone.
    pub uid: Uid,
    pub steps: Vec<UndoStep>,
}

/// One thing to be put back. Only what the plan changed: what others change meanwhile stays theirs.
#[derive(Clone, Debug, PartialEq)]
pub enum UndoStep {
    /// We cordoned it.
    Uncordon,
    /// We uncordoned it.
    Cordon,
    /// As the taint was; none where there was none. Only while it is as the plan left it.
    Taint { key: Name, effect: TaintEffect, was: Option<Taint>, left: Option<Taint> },
    /// As the label was; none where there was none. Only while it is as the plan left it.
    Label { key: Name, was: Option<Name>, left: Option<Name> },
}

/// Why something is not put back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotUndone {
    /// The node is gone.
    NodeGone { node: NodeName },
    /// A node of the same name is there, but another one.
    OtherNode { node: NodeName },
    /// It is so already.
    AlreadySo { node: NodeName, what: String },
    /// Somebody has changed it since.
    Changed { node: NodeName, what: String },
}

impl std::fmt::Display for NotUndone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NodeGone { node } => write!(f, "{node} is gone"),
            Self::OtherNode { node } => write!(f, "{node} is another node by now"),
            Self::AlreadySo { node, what } => write!(f, "{node} is {what} already"),
            Self::Changed { node, what } => write!(f, "{what} of {node} was changed since"),
        }
    }
}

impl Undo {
    pub fn is_empty(&self) -> bool {
        self.nodes.iter().all(|node| node.steps.is_empty())
    }

    /// The writes that put it back over the cluster as it is now, and what is kept as it is, with the reason.
    pub fn steps(&self, cluster: &Cluster) -> (Vec<PlanStep>, Vec<NotUndone>) {
        let (mut steps, mut kept) = (Vec::new(), Vec::new());
        for undo in &self.nodes {
            match cluster.node(&undo.node) {
                None => kept.push(NotUndone::NodeGone { node: undo.node.clone() }),
                Some(node) if node.uid != undo.uid => {
                    kept.push(NotUndone::OtherNode { node: undo.node.clone() });
                }
                Some(node) => undo.over(node, &mut steps, &mut kept),
            }
        }
        (steps, kept)
    }
}

impl NodeUndo {
    /// The writes that put it back over the node as it is, and what is kept as it is.
    pub fn over(&self, node: &Node, steps: &mut Vec<PlanStep>, kept: &mut Vec<NotUndone>) {
        let mut taints: Vec<Taint> = node.taints.to_vec();
        let mut labels = Vec::new();
        for back in &self.steps {
            match back {
                UndoStep::Uncordon | UndoStep::Cordon => {
                    let on = *back == UndoStep::Cordon;
                    if node.unschedulable == on {
                        let what = if on { "cordoned" } else { "uncordoned" }.to_owned();
                        kept.push(NotUndone::AlreadySo { node: node.name.clone(), what });
                    } else {
                        steps.push(PlanStep::Cordon { node: node.name.clone(), uid: node.uid.clone(), on });
                    }
                }
                UndoStep::Taint { key, effect, was, left } => {
                    let place = taints.iter().position(|taint| taint.is(key, *effect));
                    let value = |taint: Option<&Taint>| taint.map(|taint| taint.value.clone());
                    if value(place.map(|place| &taints[place])) != value(left.as_ref()) {
                        let what = format!("taint {key}:{effect}");
                        kept.push(NotUndone::Changed { node: node.name.clone(), what });
                        continue;
                    }
                    match (place, was) {
                        (Some(place), Some(was)) => taints[place] = was.clone(),
                        (Some(place), None) => _ = taints.remove(place),
                        (None, Some(was)) => taints.push(was.clone()),
                        (None, None) => {}
                    }
                }
                UndoStep::Label { key, was, left } => {
                    if node.labels.get(key) == left.as_ref() {
                        labels.push((key.clone(), was.clone()));
                    } else {
                        kept.push(NotUndone::Changed {
                            node: node.name.clone(),
                            what: format!("label {key}"),
                        });
                    }
                }
            }
        }
        let (name, uid) = (&node.name, &node.uid);
        if taints[..] != node.taints[..] {
            let version = node.version;
            steps.push(PlanStep::SetTaints { node: name.clone(), uid: uid.clone(), version, taints });
        }
        if !labels.is_empty() {
            steps.push(PlanStep::SetLabels { node: name.clone(), uid: uid.clone(), labels });
        }
    }
}

impl NodeUndo {
    /// What puts a change back; none where nothing is changed.
    pub fn of(node: NodeName, uid: Uid, change: &NodeChange) -> Option<Self> {
        let steps = match change {
            NodeChange::Cordon => vec![UndoStep::Uncordon],
            NodeChange::Uncordon => vec![UndoStep::Cordon],
            NodeChange::Taints { before, after } => taint_backs(before, after),
            NodeChange::Labels { before, after } => {
                let keys: BTreeSet<&Name> = before
                    .keys()
                    .chain(after.keys())
                    .filter(|key| before.get(*key) != after.get(*key))
                    .collect();
                let back = |key: &Name| UndoStep::Label {
                    key: key.clone(),
                    was: before.get(key).cloned(),
                    left: after.get(key).cloned(),
                };
                keys.into_iter().map(back).collect()
            }
            NodeChange::None | NodeChange::Refused { .. } => return None,
        };
        Some(Self { node, uid, steps })
    }
}

/// The taints that differ, by key and effect.
fn taint_backs(before: &[Taint], after: &[Taint]) -> Vec<UndoStep> {
    let of =
        |list: &[Taint], like: &Taint| list.iter().find(|taint| taint.is(&like.key, like.effect)).cloned();
    let mut steps = Vec::new();
    for taint in before.iter().chain(after.iter().filter(|taint| of(before, taint).is_none())) {
        let (was, left) = (of(before, taint), of(after, taint));
        if was != left {
            steps.push(UndoStep::Taint { key: taint.key.clone(), effect: taint.effect, was, left });
        }
    }
    steps
}
