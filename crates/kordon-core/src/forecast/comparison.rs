//! Compares the controller's actions with a forecast: finds the predicted event that matches an observed one, and the
//! time for which it was predicted.

use std::fmt;

use super::{ForecastKind, ForecastStep};
use crate::{
    cluster::{Key, NodeName, ZoneKey},
    engine::Cause,
};
use kordon_time::{Span, Timestamp};

/// An action of the controller, observed or predicted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerEvent {
    pub at: Timestamp,
    pub kind: EventKind,
    pub node: NodeName,
    pub zone: ZoneKey,
    /// The deleted pod; none for events of nodes.
    pub pod: Option<Key>,
}

/// The kinds of the controller's actions on nodes and pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventKind {
    /// The node becomes Unknown.
    Unknown,
    /// The node gets a NoExecute taint, with a token of the zone's rate limiter.
    NoExecute,
    /// The node gets one of the NoExecute taints not-ready and unreachable in place of the other. This needs no token
    /// of the zone's rate limiter.
    Swap,
    /// A pod is deleted because of its node's taints.
    Deletion,
}

impl EventKind {
    /// The name of the kind in reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "Unknown",
            Self::NoExecute => "NoExecute taint",
            Self::Swap => "swapped taint",
            Self::Deletion => "pod deletion",
        }
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl ControllerEvent {
    /// Returns the event that a step predicts. None for steps of the pod garbage collector, whose passes cannot be
    /// observed.
    pub fn predicted(step: &ForecastStep, zone: impl Fn(&NodeName) -> ZoneKey) -> Option<Self> {
        let kind = match &step.kind {
            ForecastKind::Unknown { .. } => EventKind::Unknown,
            ForecastKind::NoExecute { .. } if step.why.0.contains(&Cause::Swapped) => EventKind::Swap,
            ForecastKind::NoExecute { .. } => EventKind::NoExecute,
            ForecastKind::Deleted { .. } => EventKind::Deletion,
            ForecastKind::Ended { .. } | ForecastKind::Removed { .. } => return None,
        };
        let node = step.kind.node().clone();
        Some(Self { at: step.at, kind, zone: zone(&node), node, pod: step.kind.pod().cloned() })
    }

    /// Identifies the event by its kind, node and pod, without its time.
    pub fn identity(&self) -> (EventKind, &NodeName, Option<&Key>) {
        (self.kind, &self.node, self.pod.as_ref())
    }
}

/// Finds the predicted event that matches `event`. Returns its index in `predicted`, which is sorted by time, and the
/// time for which it was predicted; none if no predicted event matches. `earlier` are the observed events between the
/// forecast and `event`, sorted by time.
///
/// The order in which the nodes of a zone are tainted is random. The nth taint of a zone is therefore compared with the
/// nth predicted taint, and the time of a pod's deletion is measured from the taint of its node.
pub fn predicted_time<'a>(
    predicted: &[ControllerEvent],
    earlier: impl DoubleEndedIterator<Item = &'a ControllerEvent>,
    event: &ControllerEvent,
) -> Option<(usize, Timestamp)> {
    let numbered = predicted.iter().enumerate();
    if event.kind == EventKind::NoExecute {
        let is_like = |other: &ControllerEvent| other.kind == event.kind && other.zone == event.zone;
        let place = earlier.filter(|other| is_like(other)).count();
        let nth = numbered.filter(|(_, other)| is_like(other)).nth(place);
        return nth.map(|(index, other)| (index, other.at));
    }
    let off = |other: &ControllerEvent| magnitude(other.at.since(event.at));
    let same = numbered.filter(|(_, other)| other.identity() == event.identity());
    let (index, nearest) = same.min_by_key(|(_, other)| off(other))?;
    let delay = match event.kind {
        EventKind::Deletion => taint_delay(&predicted[..index], earlier, &event.node),
        EventKind::Unknown | EventKind::NoExecute | EventKind::Swap => Span::ZERO,
    };
    Some((index, nearest.at + delay))
}

/// Returns how much later than predicted a node was tainted.
fn taint_delay<'a>(
    predicted: &[ControllerEvent],
    earlier: impl DoubleEndedIterator<Item = &'a ControllerEvent>,
    node: &NodeName,
) -> Span {
    let is_taint = |event: &ControllerEvent| event.kind == EventKind::NoExecute && event.node == *node;
    let predicted = predicted.iter().rfind(|event| is_taint(event));
    let mut earlier = earlier;
    match (predicted, earlier.rfind(|event| is_taint(event))) {
        (Some(predicted), Some(real)) => real.at.since(predicted.at),
        _ => Span::ZERO,
    }
}

/// Absolute value of an error in time.
pub fn magnitude(off: Span) -> Span {
    off.max(-off)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(at: i64, kind: EventKind, node: &str) -> ControllerEvent {
        let pod = (kind == EventKind::Deletion).then(|| Key::new("d", "p"));
        let zone = ZoneKey { region: "".into(), zone: node[..1].into() };
        ControllerEvent { at: Timestamp::from_secs(1_000 + at), kind, node: node.into(), zone, pod }
    }

    fn found(
        predicted: &[ControllerEvent],
        earlier: &[ControllerEvent],
        event: &ControllerEvent,
    ) -> Option<i64> {
        let (_, at) = predicted_time(predicted, earlier.iter(), event)?;
        Some(at.since(Timestamp::from_secs(1_000)).as_secs())
    }

    #[test]
    fn the_nth_taint_of_a_zone_is_compared_with_the_nth_predicted() {
        use EventKind::NoExecute;
        let predicted = [event(10, NoExecute, "a1"), event(15, NoExecute, "b1"), event(20, NoExecute, "a2")];
        let first = event(11, NoExecute, "a2");
        assert_eq!(found(&predicted, &[], &first), Some(10));
        assert_eq!(found(&predicted, std::slice::from_ref(&first), &event(21, NoExecute, "a1")), Some(20));
        assert_eq!(found(&predicted, std::slice::from_ref(&first), &event(14, NoExecute, "b9")), Some(15));
        assert_eq!(found(&predicted[..1], &[first], &event(21, NoExecute, "a1")), None);
    }

    #[test]
    fn a_deletion_counts_from_the_taint_of_its_node() {
        use EventKind::{Deletion, NoExecute};
        let predicted = [event(10, NoExecute, "a1"), event(310, Deletion, "a1")];
        let late = event(17, NoExecute, "a1");
        assert_eq!(found(&predicted, &[late], &event(318, Deletion, "a1")), Some(317));
        assert_eq!(found(&predicted, &[], &event(311, Deletion, "a1")), Some(310));
        assert_eq!(found(&predicted, &[], &event(311, Deletion, "a2")), None, "of another node");
    }

    #[test]
    fn of_several_the_nearest_is_the_one() {
        let predicted = [event(10, EventKind::Unknown, "a1"), event(60, EventKind::Unknown, "a1")];
        assert_eq!(found(&predicted, &[], &event(50, EventKind::Unknown, "a1")), Some(60));
    }
}
