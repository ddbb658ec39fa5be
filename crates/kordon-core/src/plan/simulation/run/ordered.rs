//! Replacements of StatefulSets that are created one after the other, in the order of their ordinals.

use super::{Event, SimulationRun};
use crate::{
    cluster::{Key, Pod},
    plan::{
        environment::Environment,
        owner::{self, LowerPod},
    },
};

impl<E: Environment> SimulationRun<'_, E> {
    /// Retries the replacements that wait for pods of lower ordinals.
    pub(super) fn create_next(&mut self) {
        for task in std::mem::take(&mut self.ordered) {
            self.schedule(self.now, Event::Created(task));
        }
    }

    /// Returns the first pod that is not Ready and for which a pod's StatefulSet waits.
    pub(super) fn unready_below(&self, pod: &Pod) -> Option<Key> {
        let mut below = owner::created_after(self.cluster, pod);
        below.find(|lower| !self.is_ready(lower)).map(|lower| lower.key)
    }

    /// Returns whether a pod, or its replacement, is Ready now.
    fn is_ready(&self, LowerPod { key, pod }: &LowerPod<'_>) -> bool {
        let task = self.tasks.iter().find(|task| task.pod.key == *key && task.state.terminating);
        match task.map(|task| self.result.pods.get(&task.pod.key)) {
            Some(result) => {
                let ready = result.and_then(|result| result.replacement.as_ref()?.ready);
                ready.is_some_and(|at| at <= self.now)
            }
            None => {
                let is_ready = |pod: &Pod| pod.is_ready() && pod.termination.is_none();
                pod.is_some_and(|pod| is_ready(pod)) || self.result.started.contains(key)
            }
        }
    }
}
