//! When a terminating pod is gone: its grace period, and what ends it.

use super::{super::Task, Event, SimulationRun};
use crate::{
    cluster::{NodeName, Pod},
    plan::{
        environment::{Environment, Estimate, has_running_kubelet},
        forced_removal::FORCED_REMOVAL,
        job_failures, quota,
    },
};
use kordon_time::{Span, Timestamp};

impl<E: Environment> SimulationRun<'_, E> {
    /// Schedules when a terminating pod is gone, and when kubectl stops waiting for it.
    pub(super) fn schedule_gone(&mut self, task: usize) {
        let pod = self.tasks[task].pod.clone();
        let (grace, deadline) = self.grace(task);
        if quota::limits(self.cluster, &pod) {
            let of = pod.termination.as_ref().map_or(grace, |termination| termination.grace);
            self.schedule(
                quota::stops_counting(deadline, of, self.bound).max(self.now),
                Event::NotCounted(task),
            );
        }
        let takes = if pod.is_held() || self.is_kept_by_job(task) {
            None
        } else if grace <= Span::ZERO && self.is_removed_immediately(task) {
            Some(Span::ZERO)
        } else {
            self.tasks[task].grace_ends = Some(deadline);
            self.time_to_terminate(task, grace).at(self.bound)
        };
        if let Some(takes) = takes {
            let at = self.now + takes;
            self.tasks[task].gone_at = Some(at);
            self.schedule(at, Event::Gone(task));
        }
        if let Some(limit) = self.input.skip_wait_for_delete {
            // kubectl polls once a second. It therefore notices up to a second late that the deletion is overdue by
            // more than `--skip-wait-for-delete-timeout`.
            let at = deadline + limit + Span::from_secs(1);
            self.schedule(at.max(self.now), Event::SkipWait(task));
        }
    }

    /// Returns whether the Job controller keeps the object of a pod, because no kubelet ends the pod.
    fn is_kept_by_job(&self, task: usize) -> bool {
        let Task { pod, is_removed_by_force, .. } = &self.tasks[task];
        let is_ended = |node: &NodeName| has_running_kubelet(self.cluster, node);
        !is_removed_by_force
            && !pod.node.as_ref().is_some_and(is_ended)
            && job_failures::keeps_unfinished(self.cluster, pod)
    }

    fn time_to_terminate(&self, task: usize, grace: Span) -> Estimate {
        let Task { pod, is_removed_by_force, .. } = &self.tasks[task];
        let by_kubelet = self.environment.time_to_terminate(pod, grace);
        if *is_removed_by_force { by_kubelet.shorter(FORCED_REMOVAL) } else { by_kubelet }
    }

    /// Returns the remaining grace period of a pod, and the time at which it ends. If the pod is already terminating, a
    /// further request can only shorten the grace period.
    fn grace(&self, task: usize) -> (Span, Timestamp) {
        let (pod, given) = (&self.tasks[task].pod, self.given_grace(task));
        let is_idle = is_idle(pod);
        let requested = if is_idle { Span::ZERO } else { given.unwrap_or(pod.grace) };
        match &pod.termination {
            Some(termination) => {
                let deadline = self.cluster.local(termination.deadline);
                let left = deadline.since(self.now);
                let is_given = given.is_some() || is_idle;
                if is_given && requested < left {
                    (requested, self.now + requested)
                } else {
                    (left.or_zero(), deadline)
                }
            }
            None => (requested, self.now + requested),
        }
    }

    /// Returns the grace period with which the removal deletes the pod of a task; `None` for the pod's own grace
    /// period.
    fn given_grace(&self, task: usize) -> Option<Span> {
        self.input.grace.filter(|_| self.removed().contains(&task))
    }

    /// Returns whether the API server removes the object of a pod at once when no grace period remains. If the grace
    /// period of a terminating pod has simply run out, the kubelet removes the object instead.
    fn is_removed_immediately(&self, task: usize) -> bool {
        let pod = &self.tasks[task].pod;
        pod.termination.is_none() || is_idle(pod) || self.given_grace(task) == Some(Span::ZERO)
    }
}

/// Returns whether the pod can be deleted without a grace period, because none of its containers runs. A second
/// deletion of a terminating pod changes nothing, unless it asks for a shorter grace period (upstream `BeforeDelete`).
fn is_idle(pod: &Pod) -> bool {
    pod.termination.is_none() && (pod.node.is_none() || pod.is_finished())
}
