//! The urgency of an event.

use kordon_time::{Span, Timestamp};

/// If at most this time is left before an event, it is too late to act.
const NEAR: Span = Span::from_secs(30);
/// If at most this time is left before an event, the event needs attention.
const SOON: Span = Span::from_secs(120);

/// Urgency of an event by the time left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    Far,
    Soon,
    Near,
}

impl Urgency {
    pub fn new(at: Timestamp, now: Timestamp) -> Self {
        match at.since(now) {
            left if left <= NEAR => Self::Near,
            left if left <= SOON => Self::Soon,
            _ => Self::Far,
        }
    }

    /// Glyph that shows the urgency on terminals without colours.
    pub const fn glyph(self) -> &'static str {
        match self {
            Self::Far => "·",
            Self::Soon => "▸",
            Self::Near => "▶",
        }
    }
}
