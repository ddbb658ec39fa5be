//! The assumptions of a forecast.

use std::fmt;

use super::{Run, apply_write::change_node};
use crate::cluster::{Change, Condition, ConditionStatus, NodeName, ObjectEvent, READY};
use kordon_time::{ClusterTime, Timestamp};

/// The assumptions of a forecast: nodes without heartbeats stay so, all others keep renewing, except for these incidents.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Assumptions {
    /// In any order. Incidents before the start of the forecast happen at its start.
    pub incidents: Vec<Incident>,
}

/// An assumed incident of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incident {
    pub at: Timestamp,
    pub node: NodeName,
    pub kind: IncidentKind,
}

/// What is assumed to happen to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IncidentKind {
    /// The kubelet sends its last heartbeat then. Where its last renewal was up to ten seconds earlier, all that follows is
    /// that much earlier.
    Fails,
    /// The kubelet renews its Lease again, posts Ready and ends the terminating pods.
    Recovers,
    /// The node object and its Lease are deleted.
    Removed,
}

impl Assumptions {
    /// The last heartbeat of these nodes is at `at`.
    pub fn failing(nodes: impl IntoIterator<Item = NodeName>, at: Timestamp) -> Self {
        let fails = |node| Incident { at, node, kind: IncidentKind::Fails };
        Self { incidents: nodes.into_iter().map(fails).collect() }
    }
}

impl fmt::Display for IncidentKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fails => "last heartbeat",
            Self::Recovers => "renews its Lease again and posts Ready",
            Self::Removed => "node object deleted",
        })
    }
}

impl Run {
    pub(crate) fn apply_incident(&mut self, incident: &Incident) {
        let Incident { node, kind, at } = incident;
        self.now = self.now.max(*at);
        let now = self.now;
        match kind {
            IncidentKind::Fails => self.engine.set_assumed_alive(node, false, now),
            IncidentKind::Recovers => {
                self.engine.set_assumed_alive(node, true, now);
                self.change_status(node);
                self.end_terminating(node);
            }
            IncidentKind::Removed => {
                self.cluster.apply(Change::Node(ObjectEvent::Deleted(node.clone())), &mut self.applied);
                self.cluster.apply(Change::Lease(ObjectEvent::Deleted(node.clone())), &mut self.applied);
            }
        }
        self.pass_changes_on();
    }

    /// The kubelet writes its status then, with every condition well.
    pub(crate) fn post_status(&mut self, node: &NodeName, at: Timestamp) {
        self.now = self.now.max(at);
        self.change_status(node);
        self.pass_changes_on();
    }

    fn change_status(&mut self, node: &NodeName) {
        let written = self.cluster.clock().written(self.now);
        change_node(&mut self.cluster, node, &mut self.applied, |node| {
            node.conditions = node.conditions.iter().map(|condition| posted(condition, written)).collect();
        });
    }

    /// The kubelet is back and ends the terminating pods.
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

/// The condition as a healthy kubelet posts it.
fn posted(condition: &Condition, now: ClusterTime) -> Condition {
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
