//! What happens to one node in a plan.

use super::pod_plan::Window;
use crate::{
    cluster::{Key, Labels, NodeName, Taint, Uid},
    time::Timestamp,
};

/// What happens to a node.
#[derive(Clone, Debug, PartialEq)]
pub struct NodePlan {
    pub node: NodeName,
    pub uid: Uid,
    pub change: NodeChange,
    /// Of a drain: how that goes.
    pub drain: Option<NodeDrain>,
}

/// What is written to a node.
#[derive(Clone, Debug, PartialEq)]
pub enum NodeChange {
    Cordon,
    Uncordon,
    Taints {
        before: Vec<Taint>,
        after: Vec<Taint>,
    },
    Labels {
        before: Labels,
        after: Labels,
    },
    /// Nothing, for it is so already.
    None,
    /// Nothing, for the request makes no sense on this node.
    Refused {
        text: String,
    },
}

/// How the drain of a node goes.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeDrain {
    /// Whether kubectl would touch none of its pods for want of a flag; the rest is told as if it had been given.
    pub refused: bool,
    /// kubectl's words for the refusals.
    pub refusals: Vec<String>,
    pub starts: Timestamp,
    pub ends: Window,
    /// Whether a node before it never ends, so that it starts only if somebody goes on regardless.
    pub after_incomplete: bool,
    /// The budget that the last of its pods waited for.
    pub dominated_by: Option<Key>,
    /// Pods that are on it in the end, and why.
    pub remaining: usize,
}

impl NodeChange {
    /// What is written, or why nothing is.
    pub fn told(&self) -> String {
        match self {
            Self::Cordon => "is marked unschedulable".into(),
            Self::Uncordon => "is marked schedulable again".into(),
            Self::None => "is so already".into(),
            Self::Refused { text } => format!("refused: {text}"),
            Self::Taints { before, after } => {
                let is_in = |list: &[Taint], taint: &Taint| {
                    list.iter().any(|other| other.to_string() == taint.to_string())
                };
                let gone =
                    before.iter().filter(|taint| !is_in(after, taint)).map(|taint| format!("-{taint}"));
                let new = after.iter().filter(|taint| !is_in(before, taint)).map(|taint| format!("+{taint}"));
                gone.chain(new).collect::<Vec<_>>().join("  ")
            }
            Self::Labels { before, after } => {
                let gone = before.iter().filter(|(key, value)| after.get(*key) != Some(value));
                let new = after.iter().filter(|(key, value)| before.get(*key) != Some(value));
                let gone = gone.map(|(key, value)| format!("-{key}={value}"));
                gone.chain(new.map(|(key, value)| format!("+{key}={value}"))).collect::<Vec<_>>().join("  ")
            }
        }
    }
}
