//! Events of a plan, in order of time.

use super::{landing::Landing, words};
use crate::cluster::{Key, NodeName};
use kordon_time::Timestamp;

/// An event that the plan predicts, with its likely time.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanMoment {
    pub at: Timestamp,
    pub event: PlanEvent,
}

/// An event that happens while a plan is applied.
#[derive(Clone, Debug, PartialEq)]
pub enum PlanEvent {
    /// The drain of the node starts.
    NodeStarts { node: NodeName },
    /// The drain of the node ends. Its time is the mean of the times at which the last pod is gone. It is later than the
    /// likely time of each pod, because some pods use their whole grace period.
    NodeEnds { node: NodeName },
    /// The pod's deletion starts.
    Leaves { pod: Key },
    /// The pod's eviction is refused for the first time.
    Refused { pod: Key, budget: Option<Key> },
    /// The pod's object is gone.
    Gone { pod: Key },
    /// A quota refuses the replacement of this pod.
    NotReplaced { of: Key, quota: Key },
    /// A replacement of this pod is created.
    Replaced { of: Key, landing: Landing },
    /// The replacement of this pod is Ready.
    Ready { of: Key },
    /// A starting pod is Ready. The plan does not remove this pod.
    Started { pod: Key },
    /// The Deployment is scaled up before its pods leave, or back after they left.
    Scaled { deployment: Key, replicas: i32 },
    /// The new pod of a Deployment that was scaled up is Ready.
    SurgeReady { deployment: Key },
    /// The action stops waiting for the pod.
    GaveUp { pod: Key, reason: GiveUpReason },
}

/// The reason why an action stops waiting for a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GiveUpReason {
    /// The pod's deletion is overdue by more than `--skip-wait-for-delete-timeout`.
    LeftTerminating,
    /// The server refused the eviction, and a retry would get the same response.
    EvictionFailed,
    TimedOut,
}

impl PlanEvent {
    /// Returns the subject of the event, a word for a column, and details.
    pub fn columns(&self) -> (String, &'static str, String) {
        let (word, details) = match self {
            Self::NodeStarts { .. } => ("starts", String::new()),
            Self::NodeEnds { .. } => {
                ("ends", "on average, because some pods use their whole grace period".into())
            }
            Self::Leaves { .. } => ("leaves", String::new()),
            Self::Refused { budget: Some(budget), .. } => ("refused", format!("by {budget}, retried")),
            Self::Refused { budget: None, .. } => ("refused", "retried".into()),
            Self::Gone { .. } => ("gone", String::new()),
            Self::NotReplaced { quota, .. } => ("not replaced", format!("refused by quota {quota}, retried")),
            Self::Replaced { landing, .. } => ("replaced", landing.text()),
            Self::Ready { .. } => ("ready", "its replacement".into()),
            Self::Started { .. } => ("ready", "it was starting".into()),
            Self::Scaled { replicas, .. } => ("scaled", format!("to {}", words::replicas(*replicas))),
            Self::SurgeReady { .. } => ("ready", "its new pod".into()),
            Self::GaveUp { reason, .. } => ("given up", reason.as_str().into()),
        };
        let subject = match self {
            Self::NodeStarts { node } | Self::NodeEnds { node } => node.to_string(),
            Self::Scaled { deployment, .. } | Self::SurgeReady { deployment } => {
                format!("deployment/{deployment}")
            }
            _ => self.pod().map(ToString::to_string).unwrap_or_default(),
        };
        (subject, word, details)
    }

    /// Returns the pod of the event. For an event of a replacement, this is the pod that it replaces.
    pub const fn pod(&self) -> Option<&Key> {
        match self {
            Self::Leaves { pod }
            | Self::Refused { pod, .. }
            | Self::Gone { pod }
            | Self::Started { pod }
            | Self::GaveUp { pod, .. } => Some(pod),
            Self::NotReplaced { of, .. } | Self::Replaced { of, .. } | Self::Ready { of } => Some(of),
            Self::NodeStarts { .. }
            | Self::NodeEnds { .. }
            | Self::Scaled { .. }
            | Self::SurgeReady { .. } => None,
        }
    }
}

impl GiveUpReason {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::LeftTerminating => "still terminating",
            Self::EvictionFailed => "eviction failed",
            Self::TimedOut => "timeout expired",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_drain_says_why_it_is_later_than_the_end_of_each_pod() {
        let (subject, word, details) = PlanEvent::NodeEnds { node: "n1".into() }.columns();
        assert_eq!((&*subject, word), ("n1", "ends"));
        assert!(details.contains("whole grace period"), "{details}");
    }
}
