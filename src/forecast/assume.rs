//! What a forecast takes for given.

use std::fmt;

use super::{Run, carry_out::change_node};
use crate::{
    cluster::{Change, Condition, ConditionStatus, NodeName, ObjectEvent, READY},
    time::Timestamp,
};

/// What a forecast takes for given: nodes that are silent now stay silent, all others live on, and these incidents
/// come on top.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Assumptions {
    /// In any order; what happens before the forecast begins happens at its beginning.
    pub incidents: Vec<Incident>,
}

/// Something that is assumed to happen to a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incident {
    pub at: Timestamp,
    pub node: NodeName,
    pub what: IncidentKind,
}

/// What is assumed to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IncidentKind {
    /// The kubelet gives its last sign of life then. Where it is another moment of its ten seconds that it dies in,
    /// all that follows is so much sooner.
    Fails,
    /// The kubelet renews again, posts Ready and ends the pods whose deletion has begun.
    Recovers,
    /// Somebody deletes the node object and its Lease.
    Removed,
}

impl Assumptions {
    /// These nodes give their last sign of life at `at`.
    pub fn failing(nodes: impl IntoIterator<Item = NodeName>, at: Timestamp) -> Self {
        let fails = |node| Incident { at, node, what: IncidentKind::Fails };
        Self { incidents: nodes.into_iter().map(fails).collect() }
    }
}

impl fmt::Display for IncidentKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fails => "last sign of life",
            Self::Recovers => "renews its Lease again and posts Ready",
            Self::Removed => "node object deleted by somebody",
        })
    }
}

impl Run {
    /// Lets an incident happen now.
    pub(super) fn happen(&mut self, incident: &Incident) {
        let Incident { node, what, .. } = incident;
        let now = self.now;
        match what {
            IncidentKind::Fails => self.engine.set_assumed_alive(node, false, now),
            IncidentKind::Recovers => {
                self.engine.set_assumed_alive(node, true, now);
                change_node(&mut self.cluster, node, &mut self.applied, |node| {
                    node.conditions =
                        node.conditions.iter().map(|condition| posted(condition, now)).collect();
                });
                self.end_terminating(node);
            }
            IncidentKind::Removed => {
                self.cluster.apply(Change::Node(ObjectEvent::Deleted(node.clone())), &mut self.applied);
                self.cluster.apply(Change::Lease(ObjectEvent::Deleted(node.clone())), &mut self.applied);
            }
        }
        self.hand_over();
    }

    /// The kubelet is back and ends the pods that it was told to.
    fn end_terminating(&mut self, node: &NodeName) {
        let ended: Vec<_> = self
            .cluster
            .pods_on(node)
            .filter(|pod| pod.termination.is_some())
            .map(|pod| pod.key.clone())
            .collect();
        for pod in ended {
            self.cluster.apply(Change::Pod(ObjectEvent::Deleted(pod)), &mut self.applied);
        }
    }
}

/// The condition as a kubelet that is back and well posts it.
fn posted(condition: &Condition, now: Timestamp) -> Condition {
    let well = if condition.kind == *READY { ConditionStatus::True } else { ConditionStatus::False };
    if condition.status != ConditionStatus::Unknown {
        return Condition { last_heartbeat: Some(now), ..condition.clone() };
    }
    Condition {
        status: well,
        reason: if condition.kind == *READY { "KubeletReady".into() } else { condition.reason.clone() },
        last_heartbeat: Some(now),
        last_transition: Some(now),
        ..condition.clone()
    }
}
