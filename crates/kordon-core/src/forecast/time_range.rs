//! When something may happen: from the first time to the last.

use kordon_time::Timestamp;

/// The first and the last time at which an event may happen. For the same event of several nodes: its first time on any
/// node and its last time on any node.
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
