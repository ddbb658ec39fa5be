//! The progress of a node's eviction in legacy mode.

use std::fmt;

/// The progress of a node's eviction, with upstream's names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum EvictionStatus {
    #[default]
    Unmarked,
    /// The node waits in its zone's queue.
    ToBeEvicted,
    /// The node's pods were deleted; new pods are deleted at once.
    Evicted,
}

impl EvictionStatus {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unmarked => "unmarked",
            Self::ToBeEvicted => "toBeEvicted",
            Self::Evicted => "evicted",
        }
    }
}

impl fmt::Display for EvictionStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
