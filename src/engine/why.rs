//! Why something happens, is going to happen, or does not happen: chains of causes.

use std::fmt;

use super::zone::ZoneState;
use crate::{
    cluster::{ConditionStatus, Name, ZoneKey},
    time::{Span, Timestamp},
};

/// A chain of causes, the first one first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Why(pub Vec<Cause>);

impl Why {
    /// This chain with one more link.
    #[must_use]
    pub fn then(mut self, cause: Cause) -> Self {
        self.0.push(cause);
        self
    }
}

impl From<Cause> for Why {
    fn from(cause: Cause) -> Self {
        Self(vec![cause])
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, cause) in self.0.iter().enumerate() {
            if place > 0 {
                f.write_str(" → ")?;
            }
            write!(f, "{cause}")?;
        }
        Ok(())
    }
}

impl serde::Serialize for Why {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// One link of a chain.
#[derive(Clone, Debug, PartialEq)]
pub enum Cause {
    /// The controller's next look at all nodes.
    MonitorPass,
    /// The node was first seen.
    Registered,
    /// The node object is gone.
    NodeRemoved,
    /// The last sign of life that was noticed.
    LastHeartbeat { source: HeartbeatSource, at: Timestamp },
    /// The grace period that a silent node gets.
    Grace { flag: &'static str, span: Span },
    /// The controller finds the grace period over and the node's conditions become Unknown.
    Silent,
    /// The node's Ready condition as posted.
    Posted { status: ConditionStatus, reason: Name },
    /// The node is Ready, or Ready again.
    Ready,
    /// A condition or the cordon that asks for a NoSchedule taint.
    ConditionTaint { condition: Name },
    /// The opposite NoExecute taint is there and is swapped at once.
    Swapped,
    /// It waits in its zone's queue, which gives out nodes at this rate a second.
    Queued { zone: ZoneKey, state: ZoneState, rate: f32 },
    /// The queue's turn came.
    Token { zone: ZoneKey },
    /// The zone's queue stands still.
    ZoneStopped { zone: ZoneKey, state: ZoneState },
    /// Every zone is fully disrupted: the controller trusts itself less than the nodes.
    AllZonesDown,
    /// The NoExecute taint on the node, and how its beginning is known.
    Tainted { key: Name, since: Timestamp, certainty: Certainty },
    /// No toleration of the pod tolerates this taint.
    NotTolerated { taint: Name },
    /// The toleration that gives the shortest time.
    Tolerated { key: Name, span: Span },
    /// All its NoExecute taints are tolerated without a limit.
    ToleratedForever,
    /// Its own label of the same meaning under an older name.
    LabelReconciled,
    /// The node's pods are marked not ready with it.
    NodeNotReady,
    /// No NoExecute taint, or none that concerns the pod, is left.
    TaintsGone,
    /// The pod is gone.
    PodGone,
    /// How long pods stay on a node that is not ready, in legacy mode.
    EvictionTimeout { span: Span },
    /// The node has been evicted already: its pods go at once.
    NodeEvicted,
    /// A DaemonSet selects the pod, which spares it in legacy mode.
    OfDaemonSet,
    /// The pod garbage collector's next look.
    CollectorPass,
    /// The pod is bound to a node that has been missing for as long as orphans are given.
    Orphaned { node: Name, certainty: Certainty },
    /// Its node is not ready and marked as out of service.
    OutOfService,
    /// It was deleted before it was ever bound to a node.
    NeverScheduled,
    /// More pods have finished than are kept.
    FinishedBeyond { threshold: i32 },
}

/// What showed that a node lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeartbeatSource {
    /// Its Lease was renewed.
    Lease,
    /// It posted its status.
    Status,
    /// None yet: the node was created then.
    Created,
    /// None yet: the controller began then, or came back from full disruption.
    ControllerStart,
}

/// How well a time is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Certainty {
    /// It was seen as it happened, or decided here.
    #[default]
    Observed,
    /// It is read from a field that somebody else wrote (renewTime, timeAdded).
    Estimated,
    /// It had happened before we looked; this is the latest it can be.
    AtLatest,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MonitorPass => write!(f, "monitor pass"),
            Self::Registered => write!(f, "node registered"),
            Self::NodeRemoved => write!(f, "node object removed"),
            Self::LastHeartbeat { source, at } => {
                let what = match source {
                    HeartbeatSource::Lease => "lease renewed",
                    HeartbeatSource::Status => "status posted",
                    HeartbeatSource::Created => "created",
                    HeartbeatSource::ControllerStart => "watched since",
                };
                write!(f, "{what} {}", at.utc().format("%H:%M:%S"))
            }
            Self::Grace { flag, span } => write!(f, "{flag} {span}"),
            Self::Silent => write!(f, "silent, conditions Unknown"),
            Self::Posted { status, reason } => write!(f, "kubelet posted Ready={status} ({reason})"),
            Self::Ready => write!(f, "node is Ready"),
            Self::ConditionTaint { condition } => write!(f, "{condition}"),
            Self::Swapped => write!(f, "opposite taint swapped at once"),
            Self::Queued { zone, state, rate } => write!(f, "queued in zone {zone} ({state}, {rate}/s)"),
            Self::Token { zone } => write!(f, "its turn in zone {zone}"),
            Self::ZoneStopped { zone, state } => write!(f, "zone {zone} is {state}: evictions stopped"),
            Self::AllZonesDown => write!(f, "all zones fully disrupted: evictions stopped"),
            Self::Tainted { key, since, certainty } => {
                let about = match certainty {
                    Certainty::Observed => "since",
                    Certainty::Estimated => "since about",
                    Certainty::AtLatest => "since before",
                };
                write!(f, "{key}:NoExecute {about} {}", since.utc().format("%H:%M:%S"))
            }
            Self::NotTolerated { taint } => write!(f, "{taint} not tolerated"),
            Self::Tolerated { key, span } => write!(f, "{key} tolerated for {span}"),
            Self::ToleratedForever => write!(f, "tolerated for ever"),
            Self::LabelReconciled => write!(f, "label kept equal to its successor"),
            Self::NodeNotReady => write!(f, "its node is not ready"),
            Self::TaintsGone => write!(f, "no NoExecute taint left"),
            Self::PodGone => write!(f, "pod is gone"),
            Self::EvictionTimeout { span } => write!(f, "pod-eviction-timeout {span}"),
            Self::NodeEvicted => write!(f, "its node is evicted already"),
            Self::OfDaemonSet => write!(f, "a DaemonSet's pods are spared"),
            Self::CollectorPass => write!(f, "pod garbage collector's pass"),
            Self::Orphaned { node, certainty } => {
                let about = if *certainty == Certainty::Observed { "" } else { "about " };
                write!(f, "node {node} missing for {about}40s or more")
            }
            Self::OutOfService => write!(f, "its node is not ready and out of service"),
            Self::NeverScheduled => write!(f, "deleted before it had a node"),
            Self::FinishedBeyond { threshold } => write!(f, "more than {threshold} pods have finished"),
        }
    }
}
