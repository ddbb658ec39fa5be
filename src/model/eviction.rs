//! One eviction, as the dashboard shows it.

use kordon_core::{
    cluster::{Name, NodeName, SharedList},
    engine::{Certainty, Why},
    forecast,
};
use kordon_time::Timestamp;

/// A pod that is leaving or will leave, or whose eviction was cancelled.
#[derive(Clone, Debug, PartialEq)]
pub struct EvictionRow {
    pub node: NodeName,
    pub state: EvictionState,
    pub why: Why,
}

/// The state of an eviction.
#[derive(Clone, Debug, PartialEq)]
pub enum EvictionState {
    /// The eviction has a time, for example because the node has a NoExecute taint that the pod tolerates for a while.
    Scheduled { at: Timestamp, certainty: Certainty },
    /// The eviction is not scheduled yet, but the forecast predicts it.
    Predicted { at: Timestamp, chance: Option<forecast::Chance> },
    /// The kubelet of the pod's node evicts the pod because the node is under pressure, unless less is enough.
    ByKubelet {
        /// Time of the eviction, unless the resource recovers earlier. `None` if other pods are evicted before: how long
        /// that takes is not known.
        at: Option<Timestamp>,
        certainty: Certainty,
    },
    /// The pod tolerates the taints of its node without a time limit, or, in the controller's legacy mode, belongs to a
    /// DaemonSet.
    Never,
    /// The deletion has started; the grace period ends at the deadline.
    Terminating {
        deadline: Timestamp,
        /// Time at which the pod garbage collector removes the pod by force; `None` if it does not.
        removed: Option<Timestamp>,
        finalizers: SharedList<Name>,
        kubelet_silent: bool,
    },
    /// The eviction was scheduled, but is not scheduled any more, for example because the taint was removed.
    Cancelled { at: Timestamp },
}

impl EvictionState {
    /// Time of the eviction, of the removal by force, of the end of the grace period, or of the cancellation, depending
    /// on the state. `None` for a pod that is never evicted, or if the time is not known.
    pub fn at(&self) -> Option<Timestamp> {
        match self {
            Self::Scheduled { at, .. } | Self::Predicted { at, .. } | Self::Cancelled { at } => Some(*at),
            Self::Terminating { deadline, removed, .. } => Some(removed.unwrap_or(*deadline)),
            Self::ByKubelet { at, .. } => *at,
            Self::Never => None,
        }
    }

    /// Whether a terminating pod hangs, and is not overdue yet: its kubelet is down, so that its grace period has no
    /// effect, and the pod garbage collector does not remove it.
    pub fn hangs(&self, now: Timestamp) -> bool {
        matches!(self, Self::Terminating { removed: None, kubelet_silent: true, deadline, .. } if *deadline > now)
    }

    /// Time at which the deletion begins; `None` if the deletion has begun or will not begin, and for an eviction by a
    /// kubelet, which may not happen.
    pub const fn leaves_at(&self) -> Option<Timestamp> {
        match self {
            Self::Scheduled { at, .. } | Self::Predicted { at, .. } => Some(*at),
            Self::ByKubelet { .. } | Self::Terminating { .. } | Self::Cancelled { .. } | Self::Never => None,
        }
    }

    /// Time at which the grace period of a terminating pod ends; `None` in all other states.
    pub const fn ends_at(&self) -> Option<Timestamp> {
        match self {
            Self::Terminating { deadline, .. } => Some(*deadline),
            Self::Scheduled { .. }
            | Self::Predicted { .. }
            | Self::ByKubelet { .. }
            | Self::Cancelled { .. }
            | Self::Never => None,
        }
    }

    /// Sort key: first the [`rank`](Self::rank), then the time, the earliest first.
    pub fn urgency(&self) -> (u8, i64) {
        (self.rank(), self.at().map_or(i64::MAX, Timestamp::as_nanos))
    }

    /// Sort key: future evictions first, those with a time before the others, then terminating pods, cancelled evictions,
    /// and pods that stay.
    pub fn rank(&self) -> u8 {
        match self {
            Self::Scheduled { .. } | Self::Predicted { .. } | Self::ByKubelet { at: Some(_), .. } => 0,
            Self::ByKubelet { at: None, .. } => 1,
            Self::Terminating { .. } => 2,
            Self::Cancelled { .. } => 3,
            Self::Never => 4,
        }
    }
}
