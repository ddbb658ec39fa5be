//! Explains a graceful node shutdown: in which order the kubelet ends the pods, and by when at the latest.
//!
//! The kubelet ends groups of pods one after the other, those of low priority first. A pod has its own grace period or the time
//! of its group, whichever is shorter; then comes the next group (kubernetes 09469950,
//! `pkg/kubelet/nodeshutdown/nodeshutdown_manager.go`: `killPods`, `migrateConfig`, `groupByPriority`). The times of the groups
//! are in the kubelet's configuration only, so only the latest time of each end is known. `shutdownGracePeriodByPodPriority`
//! may make more groups than the two of the default.

use std::sync::Arc;

use super::{Explainer, Step, Tense, Topic};
use crate::{
    cluster::{ConditionStatus, Node, Pod},
    plan::words::counted,
};
use kordon_time::{Span, Timestamp};

/// The pods that a kubelet ends at the same time.
#[derive(Debug)]
struct Group<'a> {
    pods: Vec<&'a Arc<Pod>>,
    /// The longest grace period of its pods.
    longest: Span,
    /// Whether the pods are critical: their priority is that of system-cluster-critical or higher.
    is_critical: bool,
}

impl Group<'_> {
    /// Describes the group: `7 pods within their grace periods, 30s at most`.
    fn words(&self) -> String {
        let kind = if self.is_critical { "critical " } else { "" };
        let (one, many) = (format!("{kind}pod"), format!("{kind}pods"));
        format!(
            "{} within their grace periods, {} at most",
            counted(self.pods.len(), &one, &many),
            self.longest
        )
    }
}

impl Explainer<'_> {
    /// Adds what the kubelet of a node that is shutting down does to its pods.
    pub(super) fn explain_shutdown(&self, node: &Node, explanation: &mut Vec<Step>) {
        if !node.is_shutting_down() || !self.knows_pods(node) {
            return;
        }
        for (place, (group, by)) in self.shutdown_groups(node).iter().enumerate() {
            let lead = if place == 0 { "its kubelet ends" } else { "then" };
            explanation.push(self.ended_by(format!("{lead} {}", group.words()), *by));
        }
        let unknown =
            "how much less time they get (shutdownGracePeriod) is in its kubelet's configuration: not known";
        explanation.push(Step::new(Tense::Present, Topic::Termination, unknown.into()));
        let after = "pods that were ended are Failed (Terminated) and replaced by their controllers; new ones are rejected \
                     here (NodeShutdown) until the machine is back";
        explanation.push(Step::new(Tense::Future, Topic::Outcome, after.into()));
    }

    /// Adds by when the kubelet ends this pod, if its node is shutting down.
    pub(super) fn explain_end_by_shutdown(&self, pod: &Pod, node: &Node, explanation: &mut Vec<Step>) {
        if !node.is_shutting_down() || pod.is_finished() {
            return;
        }
        let groups = self.shutdown_groups(node);
        let own = groups.iter().find(|(group, _)| group.pods.iter().any(|other| other.key == pod.key));
        let Some((group, by)) = own else { return };
        let after = if group.is_critical { " after all others" } else { "" };
        let text = format!(
            "its node is shutting down: the kubelet ends it{after}, within its grace period of {} or less, as the kubelet \
             is configured (not known)",
            pod.grace
        );
        explanation.push(self.ended_by(text, *by));
    }

    /// A step about pods that end by this time at the latest. The step has no time if the start of the shutdown is not
    /// known.
    fn ended_by(&self, text: String, by: Option<Timestamp>) -> Step {
        let tense = if by.is_some_and(|by| by <= self.now) { Tense::Past } else { Tense::Future };
        Step { at: by, ..Step::new(tense, Topic::Termination, text) }.estimated(by.is_some())
    }

    /// The groups in which the kubelet ends the pods of a node, and when each has ended at the latest.
    fn shutdown_groups(&self, node: &Node) -> Vec<(Group<'_>, Option<Timestamp>)> {
        let (critical, others): (Vec<&Arc<Pod>>, Vec<&Arc<Pod>>) = self
            .cluster
            .pods_on(&node.name)
            .filter(|pod| !pod.is_finished())
            .partition(|pod| pod.is_critical());
        let mut by = self.shutdown_began(node);
        let groups = [(others, false), (critical, true)].into_iter().filter(|(pods, _)| !pods.is_empty());
        let groups = groups.map(|(pods, is_critical)| {
            let longest = pods.iter().map(|pod| pod.grace).max().unwrap_or_default();
            by = by.map(|at| at + longest);
            (Group { pods, longest, is_critical }, by)
        });
        groups.collect()
    }

    /// When the shutdown began, according to the condition that shows it.
    fn shutdown_began(&self, node: &Node) -> Option<Timestamp> {
        let ready = node.ready().filter(|ready| ready.status == ConditionStatus::False);
        let condition = ready.or_else(|| node.condition("GracefulNodeShutdownInProgress"))?;
        condition.last_transition.map(|at| self.cluster.local(at))
    }
}
