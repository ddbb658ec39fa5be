//! One eviction, as it is shown.

use kordon_core::{
    cluster::{Name, NodeName, SharedList},
    engine::{Certainty, Why},
    forecast,
};
use kordon_time::Timestamp;

/// A pod that leaves, will leave, or might have left.
#[derive(Clone, Debug, PartialEq)]
pub struct EvictionRow {
    pub node: NodeName,
    pub state: EvictionState,
    pub why: Why,
}

/// The state of an eviction.
#[derive(Clone, Debug, PartialEq)]
pub enum EvictionState {
    /// Its node has the taint: the toleration time runs.
    Scheduled { at: Timestamp, certainty: Certainty },
    /// Its node has no taint yet; the forecast predicts one.
    Predicted { at: Timestamp, chance: Option<forecast::Chance> },
    /// The pod tolerates the taint without a limit.
    Never,
    /// Its deletion has started; the grace period ends at the deadline.
    Terminating { deadline: Timestamp, finalizers: SharedList<Name>, kubelet_silent: bool },
    /// It was scheduled, and the taint is gone.
    Cancelled { at: Timestamp },
}

impl EvictionState {
    /// When the pod is deleted; none if it never is.
    pub fn at(&self) -> Option<Timestamp> {
        match self {
            Self::Scheduled { at, .. } | Self::Predicted { at, .. } | Self::Cancelled { at } => Some(*at),
            Self::Terminating { deadline, .. } => Some(*deadline),
            Self::Never => None,
        }
    }

    /// When its deletion begins; none where that has begun, or will not.
    pub const fn leaves_at(&self) -> Option<Timestamp> {
        match self {
            Self::Scheduled { at, .. } | Self::Predicted { at, .. } => Some(*at),
            Self::Terminating { .. } | Self::Cancelled { .. } | Self::Never => None,
        }
    }

    /// When the grace period of a terminating pod ends.
    pub const fn ends_at(&self) -> Option<Timestamp> {
        match self {
            Self::Terminating { deadline, .. } => Some(*deadline),
            Self::Scheduled { .. } | Self::Predicted { .. } | Self::Cancelled { .. } | Self::Never => None,
        }
    }

    /// Sorts pods that are about to leave first, those that leave sooner before others.
    pub fn urgency(&self) -> (u8, i64) {
        (self.rank(), self.at().map_or(i64::MAX, Timestamp::as_nanos))
    }

    /// Sorts pods that are about to leave first, and pods that stay last.
    pub fn rank(&self) -> u8 {
        match self {
            Self::Scheduled { .. } | Self::Predicted { .. } => 0,
            Self::Terminating { .. } => 1,
            Self::Cancelled { .. } => 2,
            Self::Never => 3,
        }
    }
}
