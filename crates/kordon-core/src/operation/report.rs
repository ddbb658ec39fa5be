//! Progress and result of an operation, for the screen, the command line and the journal.

use std::{collections::BTreeMap, fmt};

use super::{DrainCount, DrainPart};
use crate::{
    cluster::{Key, NodeName, OperationId, Uid},
    plan::{Skip, words},
};
use kordon_time::Timestamp;

/// How an operation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OperationEnd {
    /// The whole operation was done, and the cluster confirms it.
    Done,
    /// Dry run: all writes were recorded instead of being sent.
    Recorded,
    /// A part of the operation could not be done.
    Partly,
    TimedOut,
    /// A permission is missing.
    Forbidden,
    /// Somebody else is draining a node.
    ClaimedByOther,
    Cancelled,
}

impl OperationEnd {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Recorded => "recorded",
            Self::Partly => "partly",
            Self::TimedOut => "timedOut",
            Self::Forbidden => "forbidden",
            Self::ClaimedByOther => "claimedByOther",
            Self::Cancelled => "cancelled",
        }
    }
}

/// The progress of all nodes and pods.
#[derive(Clone, Debug, PartialEq)]
pub struct OperationProgress {
    pub id: OperationId,
    pub started_at: Timestamp,
    /// When and how the operation ended; `None` while it is in progress.
    pub ended: Option<(Timestamp, OperationEnd)>,
    pub nodes: Vec<NodeProgress>,
    pub pods: Vec<PodProgress>,
    /// Deployments that are scaled up while their pods leave.
    pub surges: Vec<SurgeProgress>,
}

impl OperationProgress {
    /// Progress of all pods that the operation removes.
    pub fn count(&self) -> DrainCount {
        self.pods.iter().filter_map(|pod| pod.part).collect()
    }

    /// Progress of the pods of one node.
    pub fn count_on(&self, node: &NodeName) -> DrainCount {
        let of_node = self.pods.iter().filter(|pod| pod.node.as_ref() == Some(node));
        of_node.filter_map(|pod| pod.part).collect()
    }

    /// The number of pods that stay on their nodes.
    pub fn stay(&self) -> usize {
        self.pods.iter().filter(|pod| pod.part.is_none()).count()
    }

    /// The pods that wait for a budget.
    pub fn blocked_by_budgets(&self) -> Vec<Key> {
        let is_blocked = |pod: &&PodProgress| {
            let by_budget = |by: &BlockedBy| {
                matches!(by, BlockedBy::Budget(_) | BlockedBy::StaleBudget(_) | BlockedBy::Surge(_))
            };
            matches!(&pod.stage, PodProgressStage::Blocked { by, .. } if by_budget(by))
        };
        self.pods.iter().filter(is_blocked).map(|pod| pod.pod.clone()).collect()
    }

    /// Summary of the progress in one line.
    pub fn in_short(&self) -> String {
        let nodes = |stage: &'static str| self.nodes.iter().filter(move |node| node.stage.word() == stage);
        let mut written: BTreeMap<&str, usize> = BTreeMap::new();
        for node in nodes("written") {
            *written.entry(node.done).or_default() += 1;
        }
        let drained = [("drained", nodes("drained").count())];
        let others = ["unchanged", "incomplete"].map(|stage| (stage, nodes(stage).count()));
        let counted = drained.into_iter().chain(written).chain(others).filter(|(_, count)| *count > 0);
        let mut parts: Vec<String> = counted
            .map(|(fate, count)| format!("{} {fate}", words::counted(count, "node", "nodes")))
            .collect();
        let count = self.count();
        parts.extend((count.total() > 0).then(|| count.text()));
        parts.extend(match self.stay() {
            0 => None,
            1 => Some("1 pod stays".into()),
            stay => Some(format!("{stay} pods stay")),
        });
        if parts.is_empty() { "nothing to do".into() } else { parts.join(", ") }
    }
}

/// The progress of one node.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeProgress {
    pub node: NodeName,
    pub stage: NodeProgressStage,
    /// What the operation does to the node, as a word for a node to which it was done: `uncordoned`.
    pub done: &'static str,
    /// Whether this operation has cordoned the node.
    pub cordoned: bool,
}

impl NodeProgress {
    /// Says how far the operation is with the node, with the reason. Says of a node that was written to what was done to
    /// it.
    pub fn text(&self) -> String {
        if self.stage == NodeProgressStage::Written { self.done.to_owned() } else { self.stage.to_string() }
    }
}

/// How far the operation is with a node.
#[derive(Clone, Debug, PartialEq)]
pub enum NodeProgressStage {
    Waiting,
    /// The operation has written to the node. If the node is to be drained, its drain has not begun yet.
    Written,
    /// The node was already in the desired state.
    Unchanged,
    Draining {
        since: Timestamp,
    },
    /// The pods of the node are listed again to verify that none is left.
    Verifying,
    /// All pods that should leave are gone since `at`. `stay` is the number of pods that stay.
    Drained {
        at: Timestamp,
        stay: usize,
    },
    Recorded,
    Incomplete(NodeIncomplete),
}

/// Why a node could not be completed.
#[derive(Clone, Debug, PartialEq)]
pub enum NodeIncomplete {
    /// The node does not exist.
    Gone,
    /// Another node now has this name.
    OtherNode,
    /// Another operation is draining the node.
    ClaimedByOther {
        by: String,
        operation: OperationId,
    },
    /// Somebody uncordoned the node during the drain.
    Uncordoned,
    Forbidden(String),
    /// The server refused the request, or the request failed too often.
    Failed(String),
    /// Some pods of the node are left: their eviction was refused or blocked, or they did not terminate.
    PodsLeft {
        pods: usize,
    },
    /// New pods are bound to the node again and again.
    KeepsFilling,
    TimedOut,
    Cancelled,
    /// No pod of the node was evicted, because another node could not be cordoned.
    NotStarted,
}

/// The progress of one pod.
#[derive(Clone, Debug, PartialEq)]
pub struct PodProgress {
    pub pod: Key,
    pub uid: Uid,
    pub node: Option<NodeName>,
    pub stage: PodProgressStage,
    /// How the drain counts the pod; `None` if the pod stays.
    pub part: Option<DrainPart>,
    pub tries: u32,
    /// Whether the pod was bound to the node after the plan was made.
    pub late: bool,
}

/// How far the operation is with a pod.
#[derive(Clone, Debug, PartialEq)]
pub enum PodProgressStage {
    Waiting,
    /// The eviction or deletion of the pod was requested, and there is no response yet.
    Requested,
    /// The eviction or deletion was refused or failed. It is retried at `until`.
    Blocked {
        by: BlockedBy,
        until: Timestamp,
    },
    Terminating {
        since: Timestamp,
    },
    Ended(PodEnd),
}

/// The progress of a Deployment that is scaled up while its pods leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SurgeProgress {
    pub deployment: Key,
    /// Number of replicas before the surge, and while the Deployment is scaled up.
    pub replicas: (i32, i32),
    pub stage: SurgeProgressStage,
}

/// How far the operation is with a Deployment that is scaled up while its pods leave (a surge).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SurgeProgressStage {
    Waiting,
    ScaledUp,
    ScaledBack,
    /// Dry run: the writes that scale the Deployment up and back were recorded.
    Recorded,
    /// The Deployment was not scaled up, for this reason.
    NotScaled(String),
    /// The Deployment was scaled up, and somebody else has changed it since: it is left as it is.
    LeftAlone(String),
    /// The Deployment is still scaled up, because the write that scales it back failed.
    Stranded(String),
}

impl SurgeProgressStage {
    /// Stable identifier of this stage of a surge.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::ScaledUp => "scaledUp",
            Self::ScaledBack => "scaledBack",
            Self::Recorded => "recorded",
            Self::NotScaled(_) => "notScaled",
            Self::LeftAlone(_) => "leftAlone",
            Self::Stranded(_) => "stranded",
        }
    }
}

impl fmt::Display for SurgeProgressStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Waiting => f.write_str("waiting"),
            Self::ScaledUp => f.write_str("scaled up"),
            Self::ScaledBack => f.write_str("scaled back"),
            Self::Recorded => f.write_str("recorded, not written"),
            Self::NotScaled(why) => write!(f, "not scaled up: {why}"),
            Self::LeftAlone(why) => write!(f, "left as it is: {why}"),
            Self::Stranded(why) => write!(f, "not scaled back: {why}"),
        }
    }
}

/// What blocks the removal of a pod for now.
#[derive(Clone, Debug, PartialEq)]
pub enum BlockedBy {
    Budget(String),
    StaleBudget(String),
    /// The Deployment was scaled up for the pod, but its new pod does not exist yet.
    Surge(String),
    Overload,
    NamespaceTerminating,
    /// An error of the server, or of the connection to the server.
    Trouble(String),
}

/// Final stage of a pod that the operation was to remove.
#[derive(Clone, Debug, PartialEq)]
pub enum PodEnd {
    Gone,
    /// The pod is gone. Another pod now has its name, and is left alone.
    Replaced,
    Recorded,
    /// The plan skips the pod.
    Stays(Skip),
    /// The plan does not remove the pod without a further option.
    Refused(String),
    /// The pod has the name of a pod that this operation removed. It replaces the removed pod, and is left alone.
    Successor,
    Forbidden(String),
    Failed(String),
    TimedOut,
    Cancelled,
}

impl PodEnd {
    /// Whether the pod ended as intended, so that the operator need not look at it.
    pub const fn is_success(&self) -> bool {
        match self {
            Self::Gone | Self::Replaced | Self::Recorded | Self::Stays(_) => true,
            Self::Refused(_)
            | Self::Successor
            | Self::Forbidden(_)
            | Self::Failed(_)
            | Self::TimedOut
            | Self::Cancelled => false,
        }
    }

    /// Stable identifier of this final stage of a pod.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Gone => "gone",
            Self::Replaced => "replaced",
            Self::Recorded => "recorded",
            Self::Stays(_) => "stays",
            Self::Refused(_) => "refused",
            Self::Successor => "successor",
            Self::Forbidden(_) => "forbidden",
            Self::Failed(_) => "failed",
            Self::TimedOut => "timedOut",
            Self::Cancelled => "cancelled",
        }
    }
}

impl PodProgressStage {
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Requested => "requested",
            Self::Blocked { .. } => "blocked",
            Self::Terminating { .. } => "terminating",
            Self::Ended(end) => end.word(),
        }
    }

    /// Whether the operation has removed the pod, or is removing it.
    pub const fn is_removed(&self) -> bool {
        matches!(self, Self::Terminating { .. } | Self::Ended(PodEnd::Gone | PodEnd::Replaced))
    }
}

impl NodeProgressStage {
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Written => "written",
            Self::Unchanged => "unchanged",
            Self::Draining { .. } => "draining",
            Self::Verifying => "verifying",
            Self::Drained { .. } => "drained",
            Self::Recorded => "recorded",
            Self::Incomplete(_) => "incomplete",
        }
    }
}

impl fmt::Display for PodProgressStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Waiting => f.write_str("waiting"),
            Self::Requested => f.write_str("requested, no response yet"),
            Self::Blocked { by, .. } => write!(f, "blocked: {by}"),
            Self::Terminating { .. } => f.write_str("terminating"),
            Self::Ended(end) => write!(f, "{end}"),
        }
    }
}

impl fmt::Display for BlockedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Budget(text) | Self::StaleBudget(text) | Self::Surge(text) | Self::Trouble(text) => {
                f.write_str(text)
            }
            Self::Overload => f.write_str("the server is overloaded"),
            Self::NamespaceTerminating => f.write_str("its namespace is being deleted, and the pod with it"),
        }
    }
}

impl fmt::Display for PodEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone => f.write_str("gone"),
            Self::Replaced => f.write_str("gone; another pod has its name"),
            Self::Recorded => f.write_str("recorded, not written"),
            Self::Stays(skip) => write!(f, "stays: {skip}"),
            Self::Refused(text) => write!(f, "refused: {text}"),
            Self::Successor => f.write_str("replaces a pod of the same name that was removed: left alone"),
            Self::Forbidden(text) => write!(f, "not allowed: {text}"),
            Self::Failed(text) => write!(f, "failed: {text}"),
            Self::TimedOut => f.write_str("timed out"),
            Self::Cancelled => f.write_str("cancelled"),
        }
    }
}

impl fmt::Display for NodeProgressStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Waiting => f.write_str("waiting"),
            Self::Written => f.write_str("written"),
            Self::Unchanged => f.write_str("unchanged"),
            Self::Draining { .. } => f.write_str("draining"),
            Self::Verifying => f.write_str("verifying"),
            Self::Drained { stay: 0, .. } => f.write_str("drained"),
            Self::Drained { stay: 1, .. } => f.write_str("drained; 1 pod stays on it"),
            Self::Drained { stay, .. } => write!(f, "drained; {stay} pods stay on it"),
            Self::Recorded => f.write_str("recorded, not written"),
            Self::Incomplete(why) => write!(f, "{why}"),
        }
    }
}

impl fmt::Display for NodeIncomplete {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone => f.write_str("the node is gone"),
            Self::OtherNode => f.write_str("another node has its name now"),
            Self::ClaimedByOther { by, operation } => {
                write!(f, "{by} is draining it (operation {operation})")
            }
            Self::Uncordoned => f.write_str("somebody uncordoned it since"),
            Self::Forbidden(text) => write!(f, "not allowed: {text}"),
            Self::Failed(text) => write!(f, "failed: {text}"),
            Self::PodsLeft { pods: 1 } => f.write_str("not drained: 1 pod is left"),
            Self::PodsLeft { pods } => write!(f, "not drained: {pods} pods are left"),
            Self::KeepsFilling => f.write_str("not drained: pods keep coming"),
            Self::TimedOut => f.write_str("not drained: timed out"),
            Self::Cancelled => f.write_str("cancelled"),
            Self::NotStarted => f.write_str("not started: not every node could be cordoned"),
        }
    }
}
