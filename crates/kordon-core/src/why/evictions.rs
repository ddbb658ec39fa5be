//! Summarizes the evictions from a node: how many pods leave, when, and which stay.

use super::{Explainer, Step, Tense, Topic, devices};
use crate::{
    cluster::{Key, Node, Scope},
    engine::{Certainty, Due},
    forecast::ForecastKind,
    plan::words::counted,
};
use kordon_time::Timestamp;

impl Explainer<'_> {
    /// Adds a summary of the evictions from the node.
    pub(super) fn explain_evictions(&self, node: &Node, explanation: &mut Vec<Step>) {
        let gaps = self.cluster.gaps_in([Scope::PodsOn(node.name.clone())]).unknown();
        if !gaps.is_empty() {
            let text = format!("its evictions are unknown: {gaps}");
            explanation.push(Step::new(Tense::Never, Topic::Eviction, text));
        }
        let mut pending = self.engine.evictions_left_on(self.cluster, node, self.now);
        let scheduled = pending.len();
        let is_cancelled = |pod: &Key| self.forecast.is_some_and(|forecast| forecast.cancels(pod));
        pending.retain(|eviction| eviction.due == Due::Never || !is_cancelled(&eviction.pod));
        let cancelled = scheduled - pending.len();
        let mut due: Vec<(Timestamp, bool)> = Vec::new();
        let mut removed = 0;
        let mut stay = 0;
        for eviction in &pending {
            match eviction.due {
                Due::At { at, certainty } => due.push((at, certainty != Certainty::Observed)),
                Due::Never => stay += 1,
            }
        }
        let by_device = self.device_evictions_on(node);
        explanation.extend(devices::causes(&by_device));
        due.extend(by_device.iter().map(|eviction| (eviction.at, false)));
        let scheduled = pending.iter().map(|eviction| &eviction.pod);
        let known: Vec<&Key> = scheduled.chain(by_device.iter().map(|eviction| &eviction.pod.key)).collect();
        due.extend(self.steps(node).filter_map(|step| match &step.kind {
            ForecastKind::Deleted { pod, .. } if !known.contains(&pod) => Some((step.at, true)),
            ForecastKind::Removed { pod, .. } if !known.contains(&pod) => {
                removed += 1;
                Some((step.at, true))
            }
            ForecastKind::Deleted { .. }
            | ForecastKind::Removed { .. }
            | ForecastKind::Ended { .. }
            | ForecastKind::Unknown { .. }
            | ForecastKind::NoExecute { .. } => None,
        }));
        due.sort_unstable();
        if let (Some(first), Some(last)) = (due.first(), due.last()) {
            let leave = if removed == due.len() { "removed by force" } else { "evicted" };
            let lasts = last.0.since(first.0);
            let mut text = match due.len() {
                1 => format!("1 pod is {leave}"),
                pods if lasts.as_secs() == 0 => format!("{pods} pods are {leave}"),
                pods => format!("{pods} pods are {leave}, the last {lasts} later"),
            };
            if self.renews_again(node) {
                text += ", if its status stays Unknown";
            }
            let tense = if first.0 <= self.now { Tense::Present } else { Tense::Future };
            explanation.push(Step::new(tense, Topic::Eviction, text).at(first.0).estimated(first.1));
        }
        if cancelled > 0 {
            let pods = counted(cancelled, "pod is", "pods are");
            let text = format!("{pods} not evicted: the controller removes the taint first");
            explanation.push(Step::new(Tense::Never, Topic::Eviction, text));
        }
        if stay > 0 {
            let text =
                format!("{} the taint: never evicted", counted(stay, "pod tolerates", "pods tolerate"));
            explanation.push(Step::new(Tense::Never, Topic::Eviction, text));
        }
        let terminating = self.cluster.load(&node.name).terminating;
        if terminating > 0 {
            let text = format!("{} Terminating", counted(terminating, "pod is", "pods are"));
            explanation.push(Step::new(Tense::Present, Topic::Termination, text));
        }
    }
}
