//! How near something is.

use crate::time::{Span, Timestamp};

/// Below this, there is no time left to act in.
const NEAR: Span = Span::from_secs(30);
/// Below this, one should look.
const SOON: Span = Span::from_secs(120);

/// How near something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    Far,
    Soon,
    Near,
}

impl Urgency {
    pub fn of(at: Timestamp, now: Timestamp) -> Self {
        match at.since(now) {
            left if left <= NEAR => Self::Near,
            left if left <= SOON => Self::Soon,
            _ => Self::Far,
        }
    }

    /// A sign for those who see no colours.
    pub const fn glyph(self) -> &'static str {
        match self {
            Self::Far => "·",
            Self::Soon => "▸",
            Self::Near => "▶",
        }
    }
}
