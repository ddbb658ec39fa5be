//! Explains a graceful node shutdown ([`shutdown_groups`]).

use super::{Explainer, Step, Tense, Topic};
use crate::{
    cluster::{Node, Pod},
    engine::{ShutdownGroup, shutdown_groups},
    plan::words::counted,
};
use kordon_time::Timestamp;

impl Explainer<'_> {
    /// Adds what the kubelet of a node that is shutting down does to its pods.
    pub(super) fn explain_shutdown(&self, node: &Node, explanation: &mut Vec<Step>) {
        if !node.is_shutting_down() || !self.knows_pods(node) {
            return;
        }
        let periods = self.cluster.shutdown_periods(&node.name);
        if let Some(Ok(periods)) = periods
            && periods.as_slice().is_empty()
        {
            let text = "its kubelet ends no pods when its machine stops: shutdownGracePeriod of its configuration is 0s";
            explanation.push(Step::new(Tense::Present, Topic::Termination, text.into()));
            return;
        }
        for (place, group) in shutdown_groups(self.cluster, node).iter().enumerate() {
            let lead = if place == 0 { "its kubelet ends" } else { "then" };
            explanation.push(self.ended_by(format!("{lead} {}", words(group)), group.by()));
        }
        let unknown =
            "how much less time they get (shutdownGracePeriod) is in its kubelet's configuration: not known";
        let unknown = match periods {
            Some(Ok(_)) => None,
            Some(Err(why)) => Some(format!("{unknown} ({why})")),
            None => Some(unknown.to_owned()),
        };
        explanation.extend(unknown.map(|text| Step::new(Tense::Present, Topic::Termination, text)));
        let after = "pods that were ended are Failed (Terminated) and replaced by their controllers; new ones are rejected \
                     here (NodeShutdown) until the machine is back";
        explanation.push(Step::new(Tense::Future, Topic::Outcome, after.into()));
    }

    /// Adds the latest time at which the kubelet ends this pod, if its node is shutting down; or that the pod never runs
    /// before the machine is back.
    pub(super) fn explain_end_by_shutdown(&self, pod: &Pod, node: &Node, explanation: &mut Vec<Step>) {
        if node.is_shutting_down() && pod.is_unaccepted() {
            let text = "its node is shutting down, and the kubelet has not accepted it: it does not run before the machine is \
                        back";
            explanation.push(Step::new(Tense::Never, Topic::Termination, text.into()));
            return;
        }
        let groups = shutdown_groups(self.cluster, node);
        let own = groups.iter().find(|group| group.pods.iter().any(|other| other.key == pod.key));
        let Some(group) = own else { return };
        let after = if group.is_critical { " after all others" } else { "" };
        let time = match group.period {
            None => {
                format!("its grace period of {} or less, as the kubelet is configured (not known)", pod.grace)
            }
            Some(period) if period < pod.grace => {
                format!("{period}, as the kubelet is configured: less than its grace period of {}", pod.grace)
            }
            Some(_) => format!("its grace period of {}", pod.grace),
        };
        let text = format!("its node is shutting down: the kubelet ends it{after}, within {time}");
        explanation.push(self.ended_by(text, group.end_of(pod)));
    }

    /// A step about pods that end by this time at the latest. The step has no time if the start of the shutdown is not
    /// known.
    fn ended_by(&self, text: String, by: Option<Timestamp>) -> Step {
        let tense = if by.is_some_and(|by| by <= self.now) { Tense::Past } else { Tense::Future };
        Step { at: by, ..Step::new(tense, Topic::Termination, text) }.estimated(by.is_some())
    }
}

/// Describes a group of pods that a kubelet ends together, for example `7 pods within their grace periods, 30s at
/// most`, or `7 pods within 20s` if the kubelet's configuration is known.
fn words(group: &ShutdownGroup<'_>) -> String {
    let kind = if group.is_critical { "critical " } else { "" };
    let (one, many) = (format!("{kind}pod"), format!("{kind}pods"));
    let pods = counted(group.pods.len(), &one, &many);
    match group.period {
        None => format!("{pods} within their grace periods, {} at most", group.longest),
        Some(_) => format!("{pods} within {}", group.longest),
    }
}
