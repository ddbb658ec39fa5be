//! Zones: how many of their nodes are down, and what that makes of the eviction rate.

use std::fmt;

/// Upstream's zone states (spec/node-lifecycle.md 5.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ZoneState {
    /// Seen, and not judged yet.
    #[default]
    Initial,
    Normal,
    /// At least three nodes and the threshold's share are not ready.
    PartialDisruption,
    /// No node is ready.
    FullDisruption,
}

impl ZoneState {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Initial => "Initial",
            Self::Normal => "Normal",
            Self::PartialDisruption => "PartialDisruption",
            Self::FullDisruption => "FullDisruption",
        }
    }
}

impl fmt::Display for ZoneState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
