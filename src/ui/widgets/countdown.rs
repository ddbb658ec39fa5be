//! The urgency of an event.

use kordon_time::{Span, Timestamp};

/// Below this, there is no time left to act.
const NEAR: Span = Span::from_secs(30);
/// Below this, an event needs attention.
const SOON: Span = Span::from_secs(120);

/// How soon an event is.
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

    /// A sign for terminals without colours.
    pub const fn glyph(self) -> &'static str {
        match self {
            Self::Far => "·",
            Self::Soon => "▸",
            Self::Near => "▶",
        }
    }
}
