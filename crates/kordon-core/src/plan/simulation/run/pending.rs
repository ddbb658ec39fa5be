//! Pending replacements of a run: when the scheduler tries them again.

use super::{Event, SimulationRun};
use crate::plan::{
    environment::Environment, owner::Recreation, simulation::RemovalGroup, successor, timeline::PlanEvent,
};

/// Why Pending replacements are tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Occasion {
    /// A pod has been placed.
    Placed,
    /// A pod has been placed, and has preempted others. The preempted pods may free more room than the placed pod
    /// takes.
    Preempted,
    /// Pods are gone.
    Gone,
}

impl<E: Environment> SimulationRun<'_, E> {
    /// Schedules a retry of Pending replacements, once for all pods that are gone now.
    pub(super) fn schedule_retry(&mut self) {
        let is_scheduled =
            self.agenda.range((self.now, 0)..=(self.now, u64::MAX)).any(|(_, event)| *event == Event::Retry);
        if !self.pending.is_empty() && !is_scheduled {
            self.schedule(self.now, Event::Retry);
        }
    }

    /// Lets the scheduler try again the Pending replacements that may find a node now.
    pub(super) fn retry(&mut self, occasion: Occasion) {
        for task in std::mem::take(&mut self.pending) {
            if !self.may_fit(task, occasion) || !self.place_again(task) {
                self.pending.push(task);
            }
        }
    }

    /// Places a Pending replacement again. Returns whether it is no longer Pending.
    fn place_again(&mut self, task: usize) -> bool {
        let pod = self.tasks[task].pod.clone();
        let Some(mut new) = self.result_of(task).replacement.take() else { return true };
        let is_placed = new.retry(&mut self.environment, &pod, &self.input.closed, self.bound, self.now);
        if is_placed {
            self.record(PlanEvent::Replaced { of: pod.key.clone(), landing: new.landing.clone() });
            if self.tasks[task].recreation == Recreation::OnSameNode {
                return true;
            }
            if let Some(ready) = new.ready {
                self.schedule(ready, Event::Ready(task));
            }
        }
        self.result_of(task).replacement = Some(new);
        is_placed
    }

    /// Returns whether a Pending replacement may find a node after the event that `occasion` describes. Room on
    /// cordoned nodes does not help.
    fn may_fit(&self, task: usize, occasion: Occasion) -> bool {
        let new = successor::successor(self.cluster, &self.tasks[task].pod);
        let spec = &new.scheduling;
        match occasion {
            Occasion::Preempted => true,
            Occasion::Placed => !spec.pod_affinity.is_empty(),
            Occasion::Gone => {
                let is_open = |group: &RemovalGroup| {
                    group.node.as_ref().is_none_or(|node| !self.input.closed.contains(node))
                };
                let needs_no_others = spec.ignores_other_pods() && spec.volumes.is_empty();
                let has_device = spec.claims_devices || !new.resources.requests.scalars.is_empty();
                !needs_no_others || has_device || self.input.groups.iter().any(is_open)
            }
        }
    }
}
