//! Graceful node shutdown: in which order a kubelet ends the pods of a machine that stops, and the latest times at
//! which they end.
//!
//! The kubelet ends groups of pods one after the other, groups of low priority first. Each pod gets its own grace
//! period or the time of its group, whichever is shorter; then the kubelet continues with the next group (kubernetes
//! v1.37.1, `pkg/kubelet/nodeshutdown/nodeshutdown_manager.go`: `killPods`, `migrateConfig`, `groupByPriority`). Only
//! the kubelet's configuration has the groups and their times. While it has not been read, kordon assumes the two groups
//! of the default, and knows only the latest time at which each pod ends.

use std::sync::Arc;

use super::why::{Cause, Why};
use crate::cluster::{Cluster, ConditionStatus, Node, Pod, ShutdownPeriod, ShutdownPeriods};
use kordon_time::{Span, Timestamp};

/// The pods that a kubelet ends at the same time.
#[derive(Debug)]
pub struct ShutdownGroup<'a> {
    /// The pods, sorted by name.
    pub pods: Vec<&'a Arc<Pod>>,
    /// The longest time that the kubelet gives a pod of the group.
    pub longest: Span,
    /// The time that the kubelet gives the group; `None` if its configuration is not known.
    pub period: Option<Span>,
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
        Some(self.starts? + self.time_for(pod))
    }

    /// How long this pod of the group has at most until it has ended.
    pub fn time_for(&self, pod: &Pod) -> Span {
        time_for(pod, self.period)
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
    let known = cluster.shutdown_periods(&node.name).and_then(|read| read.as_ref().ok());
    // Only the priorities of the default are used.
    let default = ShutdownPeriods::new(Span::MAX, Span::ZERO);
    let periods = known.unwrap_or(&default).as_slice();
    let mut grouped: Vec<Vec<&Arc<Pod>>> = vec![Vec::new(); periods.len()];
    for pod in running {
        if let Some(group) = grouped.get_mut(place_of(pod, periods)) {
            group.push(pod);
        }
    }
    let mut starts = began(cluster, node);
    let groups = grouped.into_iter().zip(periods).filter(|(pods, _)| !pods.is_empty());
    let groups = groups.map(|(pods, period)| {
        let period = known.map(|_| period.time);
        let longest = pods.iter().map(|pod| time_for(pod, period)).max().unwrap_or_default();
        let is_critical = pods.iter().all(|pod| pod.is_critical());
        let group = ShutdownGroup { pods, longest, period, is_critical, starts };
        // After its pods have ended, the kubelet waits until their volumes are unmounted, within the same time.
        starts = starts.map(|starts| starts + period.unwrap_or(longest));
        group
    });
    groups.collect()
}

/// Index of the period of a pod (upstream `groupByPriority`).
fn place_of(pod: &Pod, periods: &[ShutdownPeriod]) -> usize {
    periods.partition_point(|period| period.priority <= pod.priority).saturating_sub(1)
}

/// How long a pod has at most until it has ended.
fn time_for(pod: &Pod, period: Option<Span>) -> Span {
    period.map_or(pod.grace, |period| period.min(pod.grace))
}

/// Returns the pods that the kubelet of a node ends, each with the latest time of its end. Empty if the node is not
/// shutting down, or if the start of the shutdown is not known. Pods whose deletion has begun are left out.
pub fn shutdown_ends(cluster: &Cluster, node: &Node) -> Vec<ShutdownEnd> {
    let Some(since) = began(cluster, node) else { return Vec::new() };
    let mut ends = Vec::new();
    for group in shutdown_groups(cluster, node) {
        let running = group.pods.iter().filter(|pod| pod.termination.is_none());
        ends.extend(running.filter_map(|pod| {
            let ended = Cause::EndedByKubelet { grace: group.time_for(pod), is_critical: group.is_critical };
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
