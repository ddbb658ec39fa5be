//! The assumptions of a forecast.

use std::fmt;

use super::{Run, apply_write::change_node};
use crate::cluster::{Change, Condition, ConditionStatus, NodeName, ObjectEvent, READY};
use kordon_time::{ClusterTime, Timestamp};

/// The assumptions of a forecast: a list of incidents. Apart from these incidents, nodes without heartbeats stay
/// silent, and all other nodes keep renewing their Leases.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Assumptions {
    /// The incidents, in any order. Incidents before the start of the forecast happen at its start.
    pub incidents: Vec<Incident>,
}

/// An assumed incident of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incident {
    pub at: Timestamp,
    pub node: NodeName,
    pub kind: IncidentKind,
}

/// The assumed change of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IncidentKind {
    /// The kubelet sends its last heartbeat at this time. A real last renewal may be up to ten seconds earlier; then
    /// all later events are earlier by the same time.
    Fails,
    /// The kubelet renews its Lease again, posts Ready and ends the terminating pods.
    Recovers,
    /// The node object and its Lease are deleted.
    Removed,
}

impl Assumptions {
    /// Assumes that these nodes send their last heartbeat at `at`.
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

    /// Lets the kubelet post the node's status at `at`, with all conditions healthy.
    pub(crate) fn post_status(&mut self, node: &NodeName, at: Timestamp) {
        self.now = self.now.max(at);
        self.change_status(node);
        self.pass_changes_on();
    }

    fn change_status(&mut self, node: &NodeName) {
        let written = self.cluster.clock().written(self.now);
        change_node(&mut self.cluster, node, &mut self.applied, |node| {
            node.conditions = node.conditions.iter().map(|condition| posted(condition, written)).collect();
            node.heartbeat_written = Some(written);
        });
    }

    /// Ends the terminating pods of a node whose kubelet is back.
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

/// Returns the condition as a healthy kubelet posts it: Ready is True, and other conditions that are Unknown become
/// False.
fn posted(condition: &Condition, now: ClusterTime) -> Condition {
    let is_ready = condition.kind == *READY;
    let well = if is_ready { ConditionStatus::True } else { ConditionStatus::False };
    let is_posted =
        if is_ready { condition.status == well } else { condition.status != ConditionStatus::Unknown };
    if is_posted {
        return Condition { last_heartbeat: Some(now), ..condition.clone() };
    }
    Condition {
        status: well,
        reason: if is_ready { "KubeletReady".into() } else { condition.reason.clone() },
        last_heartbeat: Some(now),
        last_transition: Some(now),
        ..condition.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kubelet_that_recovers_posts_ready_whatever_it_posted_before() {
        let now = ClusterTime::new(Timestamp::from_secs(1_800_000_000));
        let post = |kind: &str, status| {
            posted(&Condition { kind: kind.into(), status, ..Condition::default() }, now)
        };
        for status in [ConditionStatus::False, ConditionStatus::Unknown, ConditionStatus::Invalid] {
            let ready = post(READY, status);
            assert_eq!(
                (ready.status, ready.last_transition),
                (ConditionStatus::True, Some(now)),
                "{status:?}"
            );
        }
        assert_eq!(post(READY, ConditionStatus::True).last_transition, None, "it was Ready before");
        assert_eq!(post("DiskPressure", ConditionStatus::Unknown).status, ConditionStatus::False);
        assert_eq!(
            post("DiskPressure", ConditionStatus::True).status,
            ConditionStatus::True,
            "a known problem"
        );
    }
}
