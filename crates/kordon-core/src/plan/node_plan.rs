//! The part of a plan that concerns one node.

use super::{metadata_edits::MetadataField, pod_plan::Window};
use crate::cluster::{Key, Labels, NodeName, Taint, Uid};
use kordon_time::Timestamp;

/// The changes of one node in a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct NodePlan {
    pub node: NodeName,
    pub uid: Uid,
    pub change: NodeChange,
    /// How the drain of the node proceeds; `None` if the action is not a drain.
    pub drain: Option<NodeDrain>,
}

/// The change that a plan makes to a node.
#[derive(Clone, Debug, PartialEq)]
pub enum NodeChange {
    Cordon,
    Uncordon,
    Taints {
        before: Vec<Taint>,
        after: Vec<Taint>,
    },
    /// Labels or annotations are changed.
    Metadata {
        field: MetadataField,
        before: Labels,
        after: Labels,
    },
    /// The Node object is deleted.
    Deletion,
    /// Nothing is written, because the node is already in the requested state.
    Unchanged {
        text: &'static str,
    },
    /// Nothing is written, because the request cannot be applied to this node.
    Refused {
        text: String,
    },
}

/// How the drain of a node proceeds.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeDrain {
    /// Whether kubectl would remove none of the node's pods, because a flag is missing. The other fields show what
    /// happens with this flag.
    pub refused: bool,
    /// The lines in which kubectl reports the pods that it refuses to remove.
    pub refusals: Vec<String>,
    pub starts: Timestamp,
    pub ends: Window,
    /// Whether the drain of an earlier node never ends. If so, this drain starts only if the operator continues anyway.
    pub after_incomplete: bool,
    /// The budget that delays the drain most: one that blocks a pod, or the one for which the last pod waits.
    pub dominated_by: Option<Key>,
    /// Number of pods that are still on the node at the end of the drain; `None` if the number is unknown.
    pub remaining: Option<usize>,
}

impl NodeChange {
    /// Describes what the plan writes to the node, or why it writes nothing.
    pub fn text(&self) -> String {
        match self {
            Self::Cordon => "set unschedulable".into(),
            Self::Uncordon => "set schedulable".into(),
            Self::Deletion => "delete the Node object".into(),
            Self::Unchanged { text } => (*text).into(),
            Self::Refused { text } => format!("refused: {text}"),
            Self::Taints { before, after } => {
                let is_in = |taints: &[Taint], taint: &Taint| {
                    taints.iter().any(|other| other.to_string() == taint.to_string())
                };
                let removed =
                    before.iter().filter(|taint| !is_in(after, taint)).map(|taint| format!("-{taint}"));
                let added =
                    after.iter().filter(|taint| !is_in(before, taint)).map(|taint| format!("+{taint}"));
                removed.chain(added).collect::<Vec<_>>().join("  ")
            }
            Self::Metadata { before, after, .. } => {
                let removed = before.iter().filter(|(key, value)| after.get(key) != Some(value));
                let added = after.iter().filter(|(key, value)| before.get(key) != Some(value));
                let removed = removed.map(|(key, value)| format!("-{key}={value}"));
                let added = added.map(|(key, value)| format!("+{key}={value}"));
                removed.chain(added).collect::<Vec<_>>().join("  ")
            }
        }
    }
}
