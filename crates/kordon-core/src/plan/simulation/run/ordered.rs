//! Replacements of StatefulSets that are created one after the other, in the order of their ordinals.

use super::{Event, SimulationRun};
use crate::{
    cluster::{Key, Pod},
    plan::{
        environment::Environment,
        owner::{self, LowerPod},
    },
};
use kordon_time::Timestamp;

impl<E: Environment> SimulationRun<'_, E> {
    /// Retries the replacements that wait for pods of lower ordinals.
    pub(super) fn create_next(&mut self) {
        for task in std::mem::take(&mut self.ordered) {
            self.schedule(self.now, Event::Created(task));
        }
    }

    /// Makes the replacement of a task's pod wait, if the pod's StatefulSet first needs a pod of a lower ordinal.
    /// Returns whether the replacement waits.
    pub(super) fn waits_for_lower(&mut self, task: usize) -> bool {
        let lower = self.unavailable_below(&self.tasks[task].pod);
        let waits_for = lower.as_ref().map(|(lower, _)| lower.clone());
        self.result_of(task).waits_for = waits_for;
        match lower {
            Some((_, Some(available))) => self.schedule(available, Event::Created(task)),
            Some((_, None)) => self.ordered.push(task),
            None => return false,
        }
        true
    }

    /// Returns the first unavailable pod for which the StatefulSet of `pod` waits, and the time at which this
    /// unavailable pod becomes available. The time is `None` if the unavailable pod is not Ready.
    fn unavailable_below(&self, pod: &Pod) -> Option<(Key, Option<Timestamp>)> {
        let mut below = owner::created_after(self.cluster, pod).map(|lower| {
            let available = self.ready_since(&lower).map(|since| since + lower.min_ready);
            (lower.key, available)
        });
        below.find(|(_, available)| available.is_none_or(|at| at > self.now))
    }

    /// Returns since when a pod, or its replacement, is Ready; `None` if it is not Ready now.
    fn ready_since(&self, lower: &LowerPod<'_>) -> Option<Timestamp> {
        let task = self.tasks.iter().find(|task| task.pod.key == lower.key && task.state.terminating);
        match task.map(|task| self.result.pods.get(&task.pod.key)) {
            Some(result) => result?.replacement.as_ref()?.ready.filter(|at| *at <= self.now),
            None => {
                let started = || self.result.started.get(&lower.key).copied();
                lower.ready_since(self.cluster).or_else(started)
            }
        }
    }
}
