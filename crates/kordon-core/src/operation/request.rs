//! Requests of an operation, and their outcomes.

use std::fmt;

use serde_json::{Map, Value, json};

use crate::{
    cluster::{Key, Name, Node, NodeName, Uid, Version, maintenance_note::MAINTENANCE},
    plan::{Call, MetadataField, PlanStep, node_path, undo::WriteUndo},
};
use kordon_time::{Span, Timestamp};

/// Identifier of a request within one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestId(pub u64);

/// One read or write. The caller returns its outcome with the request's id.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    pub id: RequestId,
    pub at: Timestamp,
    pub task: RequestKind,
    /// Why the request is made, in words, for the screen and the journal.
    pub why: String,
    /// The steps that would undo the write; `None` for a read, and for a write that cannot be undone.
    pub undo: Option<WriteUndo>,
}

/// What a request reads or writes.
#[derive(Clone, Debug, PartialEq)]
pub enum RequestKind {
    /// Reads a node from the server. The state from the watch may be outdated.
    ReadNode {
        node: NodeName,
    },
    /// Asks the server for the pods that are bound to a node.
    ListPods {
        node: NodeName,
    },
    /// Reads the scale of a Deployment from the server, and whether an autoscaler controls it.
    ReadScale {
        deployment: Key,
    },
    /// Cordons, uncordons or claims a node, in one patch.
    Patch(NodePatch),
    Write(PlanStep),
}

/// The scale of a Deployment, as the server has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeploymentScale {
    pub uid: Uid,
    pub version: Version,
    /// `spec.replicas`
    pub replicas: i32,
    /// The autoscaler that controls the Deployment, if there is one.
    pub autoscaler: Option<Name>,
}

/// A merge patch of a node that fails if the node has another uid or version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodePatch {
    pub node: NodeName,
    pub uid: Uid,
    /// The `resourceVersion` that the node must have; `None` if the node may have any version.
    pub version: Option<Version>,
    /// `spec.unschedulable`; `None` leaves it unchanged.
    pub unschedulable: Option<bool>,
    /// Annotations by key; `None` in place of a value removes the annotation.
    pub notes: Vec<(&'static str, Option<String>)>,
}

impl RequestKind {
    /// The API call of a write; `None` for a read.
    pub fn call(&self) -> Option<Call> {
        match self {
            Self::ReadNode { .. } | Self::ListPods { .. } | Self::ReadScale { .. } => None,
            Self::Patch(patch) => Some(patch.call()),
            Self::Write(step) => Some(step.call()),
        }
    }

    /// The object of the request, in kubectl's notation.
    pub fn object(&self) -> String {
        match self {
            Self::ReadNode { node } | Self::ListPods { node } | Self::Patch(NodePatch { node, .. }) => {
                format!("node/{node}")
            }
            Self::Write(
                PlanStep::Cordon { node, .. }
                | PlanStep::SetTaints { node, .. }
                | PlanStep::SetMetadata { node, .. }
                | PlanStep::DeleteNode { node, .. },
            ) => format!("node/{node}"),
            Self::Write(PlanStep::Evict { pod, .. } | PlanStep::Delete { pod, .. }) => format!("pod/{pod}"),
            Self::ReadScale { deployment } | Self::Write(PlanStep::Scale { deployment, .. }) => {
                format!("deployment/{deployment}")
            }
        }
    }
}

impl fmt::Display for RequestKind {
    /// Writes the verb of the request, for example "evict".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ReadNode { .. } | Self::ReadScale { .. } => "read",
            Self::ListPods { .. } => "list pods",
            Self::Patch(NodePatch { unschedulable: Some(true), .. }) => "cordon",
            Self::Patch(NodePatch { unschedulable: Some(false), .. }) => "uncordon",
            Self::Patch(NodePatch { unschedulable: None, notes, .. })
                if notes.iter().any(|(key, _)| *key == MAINTENANCE) =>
            {
                "note"
            }
            Self::Patch(NodePatch { unschedulable: None, .. }) => "claim",
            Self::Write(PlanStep::Cordon { on: true, .. }) => "cordon",
            Self::Write(PlanStep::Cordon { on: false, .. }) => "uncordon",
            Self::Write(PlanStep::SetTaints { .. }) => "set taints",
            Self::Write(PlanStep::SetMetadata { field: MetadataField::Labels, .. }) => "set labels",
            Self::Write(PlanStep::SetMetadata { field: MetadataField::Annotations, .. }) => "set annotations",
            Self::Write(PlanStep::Evict { .. }) => "evict",
            Self::Write(PlanStep::Scale { .. }) => "scale",
            Self::Write(PlanStep::Delete { .. } | PlanStep::DeleteNode { .. }) => "delete",
        })
    }
}

impl NodePatch {
    fn call(&self) -> Call {
        let mut metadata = json!({"uid": self.uid});
        if let Some(version) = self.version {
            metadata["resourceVersion"] = version.0.to_string().into();
        }
        if !self.notes.is_empty() {
            let notes: Map<String, Value> = self
                .notes
                .iter()
                .map(|(key, value)| ((*key).to_owned(), value.clone().map_or(Value::Null, Value::String)))
                .collect();
            metadata["annotations"] = notes.into();
        }
        let mut body = json!({"metadata": metadata});
        if let Some(on) = self.unschedulable {
            body["spec"] = json!({"unschedulable": if on { json!(true) } else { Value::Null }});
        }
        Call {
            method: "PATCH",
            path: node_path(&self.node),
            content_type: "application/merge-patch+json",
            body,
        }
    }
}

/// The outcome of a request.
#[derive(Clone, Debug, PartialEq)]
pub enum RequestOutcome {
    /// Dry run: nothing was sent.
    Recorded,
    Done,
    Node(Box<Node>),
    Pods(Vec<(Key, Uid)>),
    Scale(DeploymentScale),
    /// The object of the request does not exist.
    Gone,
    /// Another object now has the name of the object in the request.
    OtherObject,
    /// The object has changed since it was read.
    Conflict,
    /// The budget allows no disruption now. Has the server's message, which includes the budget's numbers.
    BudgetExhausted(String),
    /// The disruption controller has not processed the latest spec of the budget.
    BudgetStale {
        retry_after: Option<Span>,
        text: String,
    },
    /// Status 429 for another reason than a budget: the server is overloaded.
    Overloaded {
        retry_after: Option<Span>,
    },
    /// The namespace of the pod is being deleted, which also deletes the pod.
    NamespaceTerminating,
    Forbidden(String),
    /// The request was refused with an error that would be the same for each retry.
    Refused(String),
    /// An error of the server, or of a webhook that the server calls.
    Failed(String),
    /// The server could not be reached.
    Unreachable(String),
    /// No response in time. The request may have taken effect.
    NoResponse,
}

impl RequestOutcome {
    /// Stable identifier of this outcome of a request.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Recorded => "recorded",
            Self::Done => "done",
            Self::Node(_) => "node",
            Self::Pods(_) => "pods",
            Self::Scale(_) => "scale",
            Self::Gone => "gone",
            Self::OtherObject => "otherObject",
            Self::Conflict => "conflict",
            Self::BudgetExhausted(_) => "budgetExhausted",
            Self::BudgetStale { .. } => "budgetStale",
            Self::Overloaded { .. } => "overloaded",
            Self::NamespaceTerminating => "namespaceTerminating",
            Self::Forbidden(_) => "forbidden",
            Self::Refused(_) => "refused",
            Self::Failed(_) => "failed",
            Self::Unreachable(_) => "unreachable",
            Self::NoResponse => "noResponse",
        }
    }
}

impl fmt::Display for RequestOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Recorded => f.write_str("recorded, not written"),
            Self::Done => f.write_str("done"),
            Self::Node(_) | Self::Pods(_) | Self::Scale(_) => f.write_str("read"),
            Self::Gone => f.write_str("it does not exist any more"),
            Self::OtherObject => f.write_str("another object has its name now"),
            Self::Conflict => f.write_str("it has changed since it was read"),
            Self::BudgetExhausted(text)
            | Self::BudgetStale { text, .. }
            | Self::Forbidden(text)
            | Self::Refused(text)
            | Self::Failed(text)
            | Self::Unreachable(text) => f.write_str(text),
            Self::Overloaded { .. } => f.write_str("the server is overloaded"),
            Self::NamespaceTerminating => f.write_str("its namespace is being deleted"),
            Self::NoResponse => f.write_str("no response; it may have taken effect"),
        }
    }
}
