//! How a maintenance ended, or stopped, and what is told until then.

use super::MaintenanceOutcome;
use crate::{
    cluster::OperationId,
    operation::{OperationEnd, OperationNotice},
    plan::words::counted,
};
use kordon_time::{Span, Timestamp};

/// How a maintenance ended, or stopped.
#[derive(Clone, Debug, PartialEq)]
pub struct MaintenanceEnd {
    pub operation: OperationId,
    /// When it started, or went on.
    pub began: Timestamp,
    pub ended: Timestamp,
    pub kind: MaintenanceEndKind,
    /// Why it ended so, and what to do; empty if it is done.
    pub says: String,
    pub outcome: MaintenanceOutcome,
}

/// News of a maintenance that is carried out.
#[derive(Clone, Debug)]
pub enum MaintenanceNews {
    /// For the operator. The journal has it already.
    Notice(OperationNotice),
    /// A wave was planned or started, or a node has got further.
    Progress(Box<MaintenanceOutcome>),
}

/// The kinds of ends of a maintenance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaintenanceEndKind {
    Done,
    /// Some nodes are in no wave.
    Partly,
    /// Something failed. It can be resumed.
    Paused,
    /// Something failed, and the nodes that were not drained are uncordoned.
    RolledBack,
    /// The operator interrupted it. It can be resumed.
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

    /// The end in the journal; none for a maintenance that can be resumed.
    pub const fn journaled(self) -> Option<OperationEnd> {
        match self {
            Self::Done | Self::Partly => Some(OperationEnd::Done),
            Self::RolledBack => Some(OperationEnd::Partly),
            Self::Paused | Self::Cancelled => None,
        }
    }
}

impl MaintenanceEnd {
    /// `12 nodes done in 38m, 96 pods moved`.
    pub fn in_short(&self) -> String {
        in_short(self.outcome.done(), self.ended.since(self.began), self.outcome.moves)
    }
}

/// `12 nodes done in 38m, 96 pods moved`.
pub fn in_short(done: usize, took: Span, moves: usize) -> String {
    let (nodes, pods) = (counted(done, "node", "nodes"), counted(moves, "pod", "pods"));
    format!("{nodes} done in {}, {pods} moved", Span::from_secs(took.as_secs()))
}
