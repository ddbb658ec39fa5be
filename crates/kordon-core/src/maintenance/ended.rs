//! The end of a maintenance, and the messages that it sends until then.

use super::MaintenanceOutcome;
use crate::{
    cluster::{NodeName, OperationId},
    operation::{OperationEnd, OperationNotice},
    plan::words::counted,
};
use kordon_time::{Span, Timestamp};

/// The end of a maintenance. A maintenance that only stopped can be resumed.
#[derive(Clone, Debug, PartialEq)]
pub struct MaintenanceEnd {
    pub operation: OperationId,
    /// Time at which the maintenance started or was resumed.
    pub began: Timestamp,
    pub ended: Timestamp,
    pub kind: MaintenanceEndKind,
    /// Why the maintenance ended in this way, and what to do; empty if all nodes are done.
    pub says: String,
    pub outcome: MaintenanceOutcome,
    /// Nodes whose wave has not started. A rollback has uncordoned them.
    pub not_started: Vec<NodeName>,
}

/// News of a maintenance in progress.
#[derive(Clone, Debug)]
pub enum MaintenanceNews {
    /// A message for the operator. It is already in the journal.
    Notice(OperationNotice),
    /// A wave was planned or started, or a node has reached another stage.
    Progress(Box<MaintenanceOutcome>),
}

/// The ways in which a maintenance can end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaintenanceEndKind {
    Done,
    /// The waves are done, and some nodes are in no wave.
    Partly,
    /// Something failed. The maintenance can be resumed.
    Paused,
    /// Something failed, and the nodes that were not drained are uncordoned.
    RolledBack,
    /// The operator interrupted the maintenance. It can be resumed.
    Cancelled,
}

impl MaintenanceEndKind {
    /// Stable word for machine-readable output.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Partly => "partly",
            Self::Paused => "paused",
            Self::RolledBack => "rolledBack",
            Self::Cancelled => "cancelled",
        }
    }

    /// The end in words: `rolled back`.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Partly => "done in part",
            Self::Paused => "paused",
            Self::RolledBack => "rolled back",
            Self::Cancelled => "cancelled",
        }
    }

    /// How the journal records the end; `None` for a maintenance that can be resumed.
    pub const fn journaled(self) -> Option<OperationEnd> {
        match self {
            Self::Done | Self::Partly => Some(OperationEnd::Done),
            Self::RolledBack => Some(OperationEnd::Partly),
            Self::Paused | Self::Cancelled => None,
        }
    }
}

impl MaintenanceEnd {
    /// A summary of an ended maintenance: `12 nodes done in 38m, 96 pods moved`.
    pub fn in_short(&self) -> String {
        in_short(self.outcome.done(), self.ended.since(self.began), self.outcome.moves)
    }
}

/// A summary of the progress of a maintenance: `12 nodes done in 38m, 96 pods moved`.
pub fn in_short(done: usize, took: Span, moves: usize) -> String {
    let (nodes, pods) = (counted(done, "node", "nodes"), counted(moves, "pod", "pods"));
    format!("{nodes} done in {}, {pods} moved", Span::from_secs(took.as_secs()))
}
