//! What the engine wants done, and what came of it.

use super::why::Why;
use crate::{
    cluster::{Key, Name, NodeName, Taint, Uid, Version},
    time::Timestamp,
};

/// Something the engine wants done to the cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Effect {
    /// Names the effect in its [`Outcome`].
    pub id: EffectId,
    /// When it was decided.
    pub at: Timestamp,
    pub write: Write,
    pub why: Why,
}

/// Names an effect among those of one engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EffectId(pub u64);

/// A write, complete with the preconditions it must carry.
#[derive(Clone, Debug, PartialEq)]
pub enum Write {
    /// Patch the node's status: these conditions become Unknown.
    MarkUnknown { node: NodeName, uid: Uid, version: Version, conditions: Vec<UnknownCondition> },
    /// Replace the node's taints: what `remove` names goes, then what `add` names is put in its place or
    /// appended.
    SwapTaints { node: NodeName, uid: Uid, version: Version, add: Vec<Taint>, remove: Vec<Taint> },
    /// Patch the node's labels.
    SetLabels { node: NodeName, uid: Uid, version: Version, labels: Vec<(Name, Name)> },
    /// Patch the pod's status: Ready becomes False, reason and message stay.
    MarkPodNotReady { pod: Key, uid: Uid, version: Version, node: NodeName },
    /// Patch the pod's status: its reason becomes NodeLost, with a message that names the node.
    MarkPodLost { pod: Key, uid: Uid, version: Version, node: NodeName },
    /// Delete the pod. The node is empty where it never had one.
    DeletePod { pod: Key, uid: Uid, node: NodeName, deletion: Deletion },
    /// Record an event. Nothing depends on its outcome.
    RecordEvent(RecordedEvent),
}

impl Write {
    /// The object that is written to, in kubectl's notation.
    pub fn object(&self) -> String {
        match self {
            Self::MarkUnknown { node, .. } | Self::SwapTaints { node, .. } | Self::SetLabels { node, .. } => {
                format!("node/{node}")
            }
            Self::MarkPodNotReady { pod, .. }
            | Self::MarkPodLost { pod, .. }
            | Self::DeletePod { pod, .. } => format!("pod/{pod}"),
            Self::RecordEvent(event) => event.object.to_string(),
        }
    }

    /// What is done, in a few words.
    pub fn summary(&self) -> String {
        match self {
            Self::MarkUnknown { .. } => "mark conditions Unknown".into(),
            Self::SwapTaints { add, remove, .. } => {
                let named = |sign: char, taints: &[Taint]| -> Vec<String> {
                    taints.iter().map(|taint| format!("{sign}{}:{}", taint.key, taint.effect)).collect()
                };
                format!("taint {}", [named('+', add), named('-', remove)].concat().join(" "))
            }
            Self::SetLabels { labels, .. } => {
                let labels: Vec<_> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
                format!("label {}", labels.join(" "))
            }
            Self::MarkPodNotReady { .. } => "mark not ready".into(),
            Self::MarkPodLost { .. } => "mark lost with its node".into(),
            Self::DeletePod { deletion, .. } => match deletion {
                Deletion::ByTaint { .. } => "delete (taint eviction)".into(),
                Deletion::WithNode { .. } => "delete (eviction of its node)".into(),
                Deletion::Collected { .. } => "remove by force (garbage collection)".into(),
            },
            Self::RecordEvent(event) => format!("event {}", event.reason),
        }
    }
}

/// Who deletes a pod and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deletion {
    /// Taint eviction, with the pod's own grace period; first, where told so, the pod gets the condition
    /// DisruptionTarget.
    ByTaint { disruption_target: bool },
    /// Legacy eviction of all of a node's pods, each with its own grace period; first, where a version is given, that
    /// version of the pod is marked lost, and a conflict there postpones the deletion.
    WithNode { mark_lost: Option<Version> },
    /// The pod garbage collector, without grace: the object is gone at once. First, where told so, the pod becomes
    /// Failed, and an orphan gets the condition DisruptionTarget with that.
    Collected { fail: bool, disruption_target: bool },
}

/// The reason of a pod that was marked lost with its node (upstream `NodeUnreachablePodReason`).
pub const NODE_LOST: &str = "NodeLost";

/// A condition that the controller makes Unknown.
#[derive(Clone, Debug, PartialEq)]
pub struct UnknownCondition {
    pub kind: Name,
    /// NodeStatusUnknown, or NodeStatusNeverUpdated for one that the kubelet never posted.
    pub reason: &'static str,
    pub message: &'static str,
    pub last_heartbeat: Option<Timestamp>,
    pub last_transition: Timestamp,
}

/// An event that the controllers record.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedEvent {
    pub object: EventObject,
    /// Whether its type is Warning and not Normal.
    pub warning: bool,
    pub reason: &'static str,
    pub message: String,
    /// `source.component`.
    pub source: &'static str,
}

/// What an event is about.
#[derive(Clone, Debug, PartialEq)]
pub enum EventObject {
    Node(NodeName, Uid),
    Pod(Key),
}

impl std::fmt::Display for EventObject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Node(name, _) => write!(f, "node/{name}"),
            Self::Pod(key) => write!(f, "pod/{key}"),
        }
    }
}

/// What came of an effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Carried out; the watch will show it.
    Done,
    /// Written down and not carried out: dry-run. Who is being shadowed may do it.
    Recorded,
    /// The object is newer than the one the effect was decided on, or another object by now.
    Conflict,
    /// The object is gone.
    Gone,
    /// Anything else, in words.
    Failed(String),
}

/// Something an operator should know.
#[derive(Clone, Debug, PartialEq)]
pub struct Notice {
    pub at: Timestamp,
    pub level: Severity,
    pub text: String,
    pub why: Why,
}

/// How much a notice matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    Info,
    Warning,
    Error,
}
