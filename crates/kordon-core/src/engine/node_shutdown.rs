//! Graceful node shutdown: in which order a kubelet ends the pods of a machine that stops, and the latest times at
//! which they end.
//!
//! The kubelet ends groups of pods one after the other, groups of low priority first. Each pod gets its own grace
//! period or the time of its group, whichever is shorter; then the kubelet continues with the next group (kubernetes
//! v1.37.1, `pkg/kubelet/nodeshutdown/nodeshutdown_manager.go`: `killPods`, `migrateConfig`, `groupByPriority`). Only
//! the kubelet's configuration has the times of the groups, so kordon knows only the latest time at which each pod
//! ends. With `shutdownGracePeriodByPodPriority` there may be more groups than the two of the default.

use std::sync::Arc;

use super::why::{Cause, Why};
use crate::cluster::{Cluster, ConditionStatus, Node, Pod};
use kordon_time::{Span, Timestamp};

/// The pods that a kubelet ends at the same time.
#[derive(Debug)]
pub struct ShutdownGroup<'a> {
    /// The pods, sorted by name.
    pub pods: Vec<&'a Arc<Pod>>,
    /// The longest grace period of the group's pods.
    pub longest: Span,
    /// Whether the pods are critical: their priority is that of system-cluster-critical or higher.
    pub is_critical: bool,
    /// Latest time at which the kubelet starts to end the group; `None` if the start of the shutdown is not known.
    starts: Option<Timestamp>,
}

impl ShutdownGroup<'_> {
    /// Latest time at which the last pod of the group has ended; `None` if the start of the shutdown is not known.
    pub fn by(&self) -> Option<Timestamp> {
        Some(self.starts? + self.longest)
    }

    /// Latest time at which this pod of the group has ended; `None` if the start of the shutdown is not known.
    pub fn end_of(&self, pod: &Pod) -> Option<Timestamp> {
        Some(self.starts? + pod.grace)
    }
}

/// A pod that its kubelet ends before its machine stops.
#[derive(Clone, Debug, PartialEq)]
pub struct ShutdownEnd {
    pub pod: Arc<Pod>,
    /// Latest time at which the pod has ended.
    pub at: Timestamp,
    pub why: Why,
}

/// Returns the groups in which the kubelet of a node ends its pods, first group first; empty if the node is not
/// shutting down.
pub fn shutdown_groups<'a>(cluster: &'a Cluster, node: &Node) -> Vec<ShutdownGroup<'a>> {
    if !node.is_shutting_down() {
        return Vec::new();
    }
    // The kubelet ends only pods that it knows. It rejects pods that come during the shutdown.
    let running = cluster.pods_on(&node.name).filter(|pod| !pod.is_finished() && !pod.is_unaccepted());
    let (critical, others): (Vec<&Arc<Pod>>, Vec<&Arc<Pod>>) = running.partition(|pod| pod.is_critical());
    let mut starts = began(cluster, node);
    let groups = [(others, false), (critical, true)].into_iter().filter(|(pods, _)| !pods.is_empty());
    let groups = groups.map(|(pods, is_critical)| {
        let longest = pods.iter().map(|pod| pod.grace).max().unwrap_or_default();
        let group = ShutdownGroup { pods, longest, is_critical, starts };
        starts = group.by();
        group
    });
    groups.collect()
}

/// Returns the pods that the kubelet of a node ends, each with the latest time of its end. Empty if the node is not
/// shutting down, or if the start of the shutdown is not known. Pods whose deletion has begun are left out.
pub fn shutdown_ends(cluster: &Cluster, node: &Node) -> Vec<ShutdownEnd> {
    let Some(since) = began(cluster, node) else { return Vec::new() };
    let mut ends = Vec::new();
    for group in shutdown_groups(cluster, node) {
        let running = group.pods.iter().filter(|pod| pod.termination.is_none());
        ends.extend(running.filter_map(|pod| {
            let ended = Cause::EndedByKubelet { grace: pod.grace, is_critical: group.is_critical };
            let why = Why::from(Cause::ShuttingDown { since }).then(ended);
            Some(ShutdownEnd { pod: Arc::clone(pod), at: group.end_of(pod)?, why })
        }));
    }
    ends
}

/// When the shutdown began: the last transition of the condition that shows the shutdown.
fn began(cluster: &Cluster, node: &Node) -> Option<Timestamp> {
    let ready = node.ready().filter(|ready| ready.status == ConditionStatus::False);
    let condition = ready.or_else(|| node.condition("GracefulNodeShutdownInProgress"))?;
    condition.last_transition.map(|at| cluster.local(at))
}
