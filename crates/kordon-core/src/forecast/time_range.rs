//! When something may happen: from the first time to the last.

use kordon_time::Timestamp;

/// The first and the last time at which an event may happen. For a group of nodes, the times of the first and of the
/// last node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimeRange {
    pub first: Timestamp,
    pub last: Timestamp,
}

impl From<Timestamp> for TimeRange {
    fn from(at: Timestamp) -> Self {
        Self { first: at, last: at }
    }
}

impl TimeRange {
    /// The smallest range that includes both ranges.
    pub(super) fn with(self, other: Self) -> Self {
        Self { first: self.first.min(other.first), last: self.last.max(other.last) }
    }
}
