//! The writes that the engine requests, and their outcomes.

use super::why::Why;
use crate::cluster::{Key, Name, NodeName, Taint, Uid, Version};
use kordon_time::{ClusterTime, Timestamp};

/// A write that the engine requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Effect {
    /// Identifies the effect, so that its [`Outcome`] can be assigned to it.
    pub id: EffectId,
    /// Time at which the engine requested the write.
    pub at: Timestamp,
    pub write: Write,
    pub why: Why,
}

/// Identifies an effect among those of one engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EffectId(pub u64);

/// A write, complete with the preconditions it must carry.
#[derive(Clone, Debug, PartialEq)]
pub enum Write {
    /// Patch the node's status: these conditions become Unknown.
    MarkUnknown {
        node: NodeName,
        uid: Uid,
        version: Version,
        conditions: Vec<UnknownCondition>,
        lease: LeaseCheck,
    },
    /// Replace the node's taints: remove those in `remove`, and add those in `add`. An added taint replaces a taint
    /// with the same key and effect.
    SwapTaints { node: NodeName, uid: Uid, version: Version, add: Vec<Taint>, remove: Vec<Taint> },
    /// Patch the node's labels.
    SetLabels { node: NodeName, uid: Uid, version: Version, labels: Vec<(Name, Name)> },
    /// Patch the pod's status: Ready becomes False, reason and message stay.
    MarkPodNotReady { pod: Key, uid: Uid, version: Version, node: NodeName },
    /// Patch the pod's status: its reason becomes NodeLost, with a message that names the node.
    MarkPodLost { pod: Key, uid: Uid, version: Version, node: NodeName },
    /// Delete the pod. `node` is empty if the pod was never scheduled.
    DeletePod { pod: Key, uid: Uid, node: NodeName, deletion: Deletion },
    /// Record an event. Nothing depends on its outcome.
    RecordEvent(RecordedEvent),
}

impl Write {
    /// The object to write to, in kubectl's notation.
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

    /// Stable name of the kind of write.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::MarkUnknown { .. } => "markUnknown",
            Self::SwapTaints { .. } => "taint",
            Self::SetLabels { .. } => "label",
            Self::MarkPodNotReady { .. } => "markPodNotReady",
            Self::MarkPodLost { .. } => "markPodLost",
            Self::DeletePod { deletion: Deletion::Collected { .. }, .. } => "collectPod",
            Self::DeletePod { .. } => "evictPod",
            Self::RecordEvent(_) => "event",
        }
    }

    /// Verb of the write, to be followed by the object: `taint`.
    pub const fn verb(&self) -> &'static str {
        match self {
            Self::MarkUnknown { .. } | Self::MarkPodNotReady { .. } | Self::MarkPodLost { .. } => "mark",
            Self::SwapTaints { add, .. } if add.is_empty() => "untaint",
            Self::SwapTaints { .. } => "taint",
            Self::SetLabels { .. } => "label",
            Self::DeletePod { deletion: Deletion::Collected { .. }, .. } => "remove",
            Self::DeletePod { .. } => "evict",
            Self::RecordEvent(_) => "record an event of",
        }
    }

    /// The verb in the past tense: `tainted`.
    pub const fn verb_past(&self) -> &'static str {
        match self {
            Self::MarkUnknown { .. } | Self::MarkPodNotReady { .. } | Self::MarkPodLost { .. } => "marked",
            Self::SwapTaints { add, .. } if add.is_empty() => "untainted",
            Self::SwapTaints { .. } => "tainted",
            Self::SetLabels { .. } => "labelled",
            Self::DeletePod { deletion: Deletion::Collected { .. }, .. } => "removed",
            Self::DeletePod { .. } => "evicted",
            Self::RecordEvent(_) => "recorded an event of",
        }
    }

    /// The detail that follows the object in the summary of a write: `unreachable:NoExecute`.
    pub fn rest(&self) -> String {
        match self {
            Self::MarkUnknown { .. } => "Unknown".into(),
            Self::SwapTaints { add, remove, .. } => {
                let named = |taints: &[Taint]| -> Vec<String> {
                    taints.iter().map(|taint| format!("{}:{}", taint.key, taint.effect)).collect()
                };
                named(if add.is_empty() { remove } else { add }).join(" ")
            }
            Self::SetLabels { labels, .. } => {
                let labels: Vec<_> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
                labels.join(" ")
            }
            Self::MarkPodNotReady { .. } => "not ready".into(),
            Self::MarkPodLost { .. } => NODE_LOST.into(),
            Self::DeletePod { deletion, .. } => match deletion {
                Deletion::ByTaint { .. } | Deletion::WithNode { .. } => String::new(),
                Deletion::Collected { .. } => "(garbage collection)".into(),
            },
            Self::RecordEvent(event) => event.reason.into(),
        }
    }

    /// The write in a few words: `taint node/a unreachable:NoExecute`.
    pub fn summary(&self) -> String {
        format!("{} {} {}", self.verb(), self.object(), self.rest()).trim_end().into()
    }
}

/// Whether the node's Lease is read again right before the node becomes Unknown (docs/upstream/node-lifecycle.md#3.7),
/// so that a lagging watch does not make nodes Unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseCheck {
    Skip,
    /// The version of the node's Lease, as the watch has reported it; `None` if the watch has reported no Lease. If the
    /// live Lease has another version, the watch lags and nothing is written. A deleted Lease does not stop the write.
    Version(Option<Version>),
}

/// Which controller deletes a pod, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deletion {
    /// Taint eviction, with the pod's own grace period. With `disruption_target` the pod first gets the condition
    /// DisruptionTarget.
    ByTaint { disruption_target: bool },
    /// Legacy eviction of all pods of a node, each with its own grace period. `mark_lost` is the version of a pod that
    /// is marked NodeLost before its deletion. If the pod's version has changed before the mark is written, the
    /// deletion is postponed.
    WithNode { mark_lost: Option<Version> },
    /// The pod garbage collector, with grace period 0: the object disappears at once. With `fail` the pod first becomes
    /// Failed, with `disruption_target` it gets the condition DisruptionTarget in the same write.
    Collected { fail: bool, disruption_target: bool, node: NodeCheck },
}

/// Whether the pod's node is read again right before the pod is removed (docs/upstream/neighbours.md#1), so that a
/// lagging watch does not make orphans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeCheck {
    Skip,
    /// The node is read again; if it exists, nothing is written.
    MustBeGone,
}

/// The `status.reason` of a pod whose node is lost (upstream `NodeUnreachablePodReason`).
pub const NODE_LOST: &str = "NodeLost";

/// The reason of the condition DisruptionTarget that taint eviction sets (upstream `DeletionByTaintManager`).
pub const DELETION_BY_TAINT: &str = "DeletionByTaintManager";

/// The reason of the condition DisruptionTarget that the device taint eviction controller sets.
pub const DELETION_BY_DEVICE_TAINT: &str = "DeletionByDeviceTaintManager";

/// A condition that the controller makes Unknown.
#[derive(Clone, Debug, PartialEq)]
pub struct UnknownCondition {
    pub kind: Name,
    /// NodeStatusUnknown, or NodeStatusNeverUpdated if the kubelet never posted the condition.
    pub reason: Name,
    pub message: Name,
    pub last_heartbeat: Option<ClusterTime>,
    pub last_transition: ClusterTime,
}

/// A Kubernetes event that a controller records.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedEvent {
    pub object: EventObject,
    /// Whether the event's type is Warning instead of Normal.
    pub warning: bool,
    pub reason: &'static str,
    pub message: String,
    /// `source.component`.
    pub source: &'static str,
}

/// The object of an event.
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

/// The result of an effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The write was made, and the watch will show the change.
    Done,
    /// Dry run: the write was recorded instead of being sent. The shadowed controller may make the write.
    Recorded,
    /// The object changed after the engine's decision, or was replaced by another object of the same name.
    Conflict,
    /// The object to write to is gone.
    Gone,
    /// Any other error.
    Failed(String),
}

impl Outcome {
    /// Stable name of the outcome.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Recorded => "recorded",
            Self::Conflict => "conflict",
            Self::Gone => "gone",
            Self::Failed(_) => "failed",
        }
    }
}

/// A message to operators, with its reason.
#[derive(Clone, Debug, PartialEq)]
pub struct Notice {
    pub at: Timestamp,
    pub level: Severity,
    pub text: String,
    pub why: Why,
}

/// How severe a notice is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    Info,
    Warning,
    Error,
}
