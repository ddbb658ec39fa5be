//! Why something happens, will happen, or does not happen: chains of causes.

use std::fmt;

use super::zone::ZoneState;
use crate::cluster::{ConditionStatus, Name, ZoneKey};
use kordon_time::{Span, Timestamp};

/// A chain of causes, the earliest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Why(pub Vec<Cause>);

impl Why {
    /// This chain with one more cause.
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
        for (index, cause) in self.0.iter().enumerate() {
            if index > 0 {
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

/// One cause in a chain.
#[derive(Clone, Debug, PartialEq)]
pub enum Cause {
    /// The controller's next pass over all nodes.
    MonitorPass,
    /// The controller registered the node.
    Registered,
    /// The node object was deleted.
    NodeRemoved,
    /// The last heartbeat of the node, and when a pass of the controller noticed it.
    LastHeartbeat { source: HeartbeatSource, at: Timestamp, noticed: Timestamp },
    /// The node got a new grace period for another reason than a heartbeat.
    GraceRestarted { by: HeartbeatSource, at: Timestamp },
    /// The grace period of a node without heartbeats.
    Grace { flag: &'static str, span: Span },
    /// The grace period expired and the node's conditions become Unknown.
    Silent,
    /// The Ready condition that the kubelet posted.
    Posted { status: ConditionStatus, reason: Name },
    /// The node is Ready.
    Ready,
    /// A condition, or the cordon, that requires a NoSchedule taint.
    ConditionTaint { condition: Name },
    /// The node has the wrong one of the NoExecute taints not-ready and unreachable. Replacing it needs no token of the
    /// zone's rate limiter.
    Swapped,
    /// The node waits in its zone's queue, at this eviction rate (nodes per second).
    Queued { zone: ZoneKey, state: ZoneState, rate: f32 },
    /// The zone's rate limiter gave a token to the node.
    Token { zone: ZoneKey },
    /// Every zone is fully disrupted: master disruption mode.
    AllZonesDown,
    /// No node of the zone is ready, and `--full-disruption=pause` keeps its pods.
    ZonePaused,
    /// The NoExecute taint on the node, its start, and how well the start is known.
    Tainted { key: Name, since: Timestamp, certainty: Certainty },
    /// A device of the pod has a NoExecute taint: the device, the key of the taint, who set it, and since when.
    DeviceTainted { device: Name, taint: Name, by: Name, since: Timestamp },
    /// The machine of the node has been stopping since this time (graceful node shutdown).
    ShuttingDown { since: Timestamp },
    /// The kubelet ends the pod before its machine stops, critical pods after all others.
    EndedByKubelet { grace: Span, is_critical: bool },
    /// The kubelet evicts pods because its node is under pressure, which this condition reports.
    NodePressure { condition: Name },
    /// The pod does not tolerate this taint.
    NotTolerated { taint: Name },
    /// The pod tolerates the taint for a limited time, the shortest of its matching tolerations.
    Tolerated { key: Name, span: Span },
    /// The pod tolerates all NoExecute taints of its node without a time limit.
    ToleratedForever,
    /// A beta label differs from the label that replaces it.
    LabelReconciled,
    /// The pod's node is not ready.
    NodeNotReady,
    /// The node has no NoExecute taint any more.
    TaintsGone,
    /// The pod was deleted.
    PodGone,
    /// Legacy mode: how long pods stay on a node that is not ready.
    EvictionTimeout { span: Span },
    /// Legacy mode: the node was evicted before, so its pods are deleted at once.
    NodeEvicted,
    /// Legacy mode: a DaemonSet selects the pod, so it is never evicted.
    OfDaemonSet,
    /// The pod garbage collector's next pass.
    CollectorPass,
    /// The pod is bound to a node that has been missing for the pod garbage collector's whole quarantine.
    Orphaned { node: Name, certainty: Certainty },
    /// The pod's node is not ready and has the out-of-service taint.
    OutOfService,
    /// The pod was deleted before it was scheduled.
    NeverScheduled,
    /// There are more finished pods than `--terminated-pod-gc-threshold` allows.
    FinishedBeyond { threshold: i32 },
}

/// Where the time of a node's last heartbeat comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeartbeatSource {
    /// The node's Lease was renewed.
    Lease,
    /// The kubelet posted the node's status.
    Status,
    /// No heartbeat yet: the time is the node's creation.
    Created,
    /// No heartbeat: the time is the controller's start, when every node got a new grace period.
    ControllerStart,
    /// No heartbeat: the time is the end of full disruption, when every node got a new grace period.
    DisruptionEnd,
    /// No heartbeat: the time is when kordon, as the controller, saw the cluster again and every node got a new grace
    /// period.
    Reconnected,
}

impl HeartbeatSource {
    /// Whether the source is not a heartbeat but a reason for a new grace period.
    pub const fn restarts_grace(self) -> bool {
        match self {
            Self::Lease | Self::Status | Self::Created => false,
            Self::ControllerStart | Self::DisruptionEnd | Self::Reconnected => true,
        }
    }
}

/// How well a time is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Certainty {
    /// The change was observed as it happened, or the engine decided it.
    #[default]
    Observed,
    /// The time was read from a field that another component wrote (renewTime, timeAdded).
    Estimated,
    /// The change happened before kordon's first list; the time is the latest one possible.
    AtLatest,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MonitorPass => write!(f, "monitor pass"),
            Self::Registered => write!(f, "node registered"),
            Self::NodeRemoved => write!(f, "node object deleted"),
            Self::LastHeartbeat { source, at, .. } => {
                let what = match source {
                    HeartbeatSource::Lease => "lease renewed",
                    HeartbeatSource::Status => "status posted",
                    HeartbeatSource::Created => "node created",
                    HeartbeatSource::ControllerStart
                    | HeartbeatSource::DisruptionEnd
                    | HeartbeatSource::Reconnected => "no heartbeat before",
                };
                write!(f, "{what} {}", at.utc().format("%H:%M:%S"))
            }
            Self::GraceRestarted { by, at } => {
                let what = match by {
                    HeartbeatSource::DisruptionEnd => "full disruption ended",
                    HeartbeatSource::Reconnected => "reconnected",
                    HeartbeatSource::ControllerStart
                    | HeartbeatSource::Lease
                    | HeartbeatSource::Status
                    | HeartbeatSource::Created => "controller restarted",
                };
                write!(f, "{what} {}: grace period started again", at.utc().format("%H:%M:%S"))
            }
            Self::Grace { flag, span } => write!(f, "{flag} {span}"),
            Self::Silent => write!(f, "expired, conditions Unknown"),
            Self::Posted { status, reason } => write!(f, "kubelet posted Ready={status} ({reason})"),
            Self::Ready => write!(f, "node is Ready"),
            Self::ConditionTaint { condition } => write!(f, "{condition}"),
            Self::Swapped => write!(f, "opposite taint swapped (immediate, not rate limited)"),
            Self::Queued { zone, state, rate } => {
                write!(f, "queued in zone {zone} ({state}, eviction rate {rate}/s)")
            }
            Self::Token { zone } => write!(f, "eviction slot of zone {zone}"),
            Self::ZonePaused => write!(f, "its zone is down: evictions paused (--full-disruption=pause)"),
            Self::AllZonesDown => write!(f, "all zones down: evictions paused (master disruption mode)"),
            Self::Tainted { key, since, certainty } => {
                let (about, bound) = match certainty {
                    Certainty::Observed => ("", ""),
                    Certainty::Estimated => ("about ", ""),
                    Certainty::AtLatest => ("", " or earlier"),
                };
                write!(f, "{key}:NoExecute since {about}{}{bound}", since.utc().format("%H:%M:%S"))
            }
            Self::DeviceTainted { device, taint, by, since } => {
                let since = since.utc().format("%H:%M:%S");
                write!(f, "device {device} has {taint}:NoExecute since {since} by {by}")
            }
            Self::ShuttingDown { since } => {
                write!(f, "node is shutting down since {}", since.utc().format("%H:%M:%S"))
            }
            Self::EndedByKubelet { grace, is_critical } => {
                let order = if *is_critical { ", after all others" } else { "" };
                write!(f, "its kubelet ends it within {grace}{order}")
            }
            Self::NodePressure { condition } => write!(f, "kubelet: {condition}"),
            Self::NotTolerated { taint } => write!(f, "{taint} not tolerated"),
            Self::Tolerated { key, span } => write!(f, "{key} tolerated for {span}"),
            Self::ToleratedForever => write!(f, "tolerates the taint: never evicted"),
            Self::LabelReconciled => write!(f, "beta label differs from the label that replaces it"),
            Self::NodeNotReady => write!(f, "node is not ready"),
            Self::TaintsGone => write!(f, "no NoExecute taint remains"),
            Self::PodGone => write!(f, "pod deleted"),
            Self::EvictionTimeout { span } => write!(f, "pod-eviction-timeout {span}"),
            Self::NodeEvicted => write!(f, "node already evicted"),
            Self::OfDaemonSet => write!(f, "DaemonSet pod: never evicted"),
            Self::CollectorPass => write!(f, "pod garbage collector pass"),
            Self::Orphaned { node, certainty: Certainty::Observed } => {
                write!(f, "node {node} missing for 40s or more")
            }
            Self::Orphaned { node, certainty: Certainty::Estimated } => {
                write!(f, "node {node} missing for about 40s or more")
            }
            Self::Orphaned { node, certainty: Certainty::AtLatest } => {
                write!(f, "node {node} missing; when it went is not known, so this is the latest time")
            }
            Self::OutOfService => write!(f, "node is not ready and has the out-of-service taint"),
            Self::NeverScheduled => write!(f, "deleted before it was scheduled"),
            Self::FinishedBeyond { threshold } => write!(f, "more than {threshold} finished pods"),
        }
    }
}
