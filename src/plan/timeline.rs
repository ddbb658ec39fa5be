//! The events of a plan in order of time.

use super::landing::Landing;
use crate::{
    cluster::{Key, NodeName},
    time::Timestamp,
};

/// Something that happens at a time, in the likely course.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanMoment {
    pub at: Timestamp,
    pub what: PlanEvent,
}

/// What happens.
#[derive(Clone, Debug, PartialEq)]
pub enum PlanEvent {
    NodeStarts { node: NodeName },
    NodeEnds { node: NodeName },
    Leaves { pod: Key },
    Refused { pod: Key, budget: Option<Key> },
    Gone { pod: Key },
    Replaced { of: Key, landing: Landing },
    Ready { of: Key },
    GaveUp { pod: Key },
}

impl PlanEvent {
    /// Whom it happens to, a word for it that reads well in a column, and the rest.
    pub fn told(&self) -> (String, &'static str, String) {
        let (word, rest) = match self {
            Self::NodeStarts { .. } => ("begins", String::new()),
            Self::NodeEnds { .. } => ("ends", String::new()),
            Self::Leaves { .. } => ("leaves", String::new()),
            Self::Refused { budget: Some(budget), .. } => {
                ("refused", format!("by {budget}; it is tried again"))
            }
            Self::Refused { budget: None, .. } => ("refused", "it is tried again".into()),
            Self::Gone { .. } => ("gone", String::new()),
            Self::Replaced { landing, .. } => ("replaced", landing.words()),
            Self::Ready { .. } => ("ready", "its replacement".into()),
            Self::GaveUp { .. } => ("given up", "the time allowed is over".into()),
        };
        let subject = match self {
            Self::NodeStarts { node } | Self::NodeEnds { node } => node.to_string(),
            _ => self.pod().map(ToString::to_string).unwrap_or_default(),
        };
        (subject, word, rest)
    }

    /// The pod that it happens to, or that is replaced.
    pub const fn pod(&self) -> Option<&Key> {
        match self {
            Self::Leaves { pod } | Self::Refused { pod, .. } | Self::Gone { pod } | Self::GaveUp { pod } => {
                Some(pod)
            }
            Self::Replaced { of, .. } | Self::Ready { of } => Some(of),
            Self::NodeStarts { .. } | Self::NodeEnds { .. } => None,
        }
    }
}
