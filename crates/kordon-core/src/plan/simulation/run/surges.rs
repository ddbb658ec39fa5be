//! Surges: when Deployments are scaled up and back, and what becomes of their new pods.

use std::ops::Range;

use super::{
    super::{SurgeStage, TaskStage},
    Event, SimulationRun,
};
use crate::plan::{environment::Environment, replacement::Replacement, surge::SurgeRun, timeline::PlanEvent};

impl<E: Environment> SimulationRun<'_, E> {
    /// Returns the index of the surge (scaled-up Deployment) to which the pod of a task (removal of one pod) belongs;
    /// `None` if the pod belongs to no surge.
    pub(super) fn surge_of(&self, task: usize) -> Option<usize> {
        self.surges.iter().position(|surge| surge.tasks.contains(&task))
    }

    /// Scales up each Deployment that has not been scaled up yet and whose pods are removed by the tasks in `members`.
    pub(super) fn start_surges(&mut self, members: Range<usize>) {
        for place in 0..self.surges.len() {
            let surge = &self.surges[place];
            if surge.stage == SurgeStage::NotStarted && surge.tasks.iter().any(|task| members.contains(task))
            {
                self.scale_up(place);
            }
        }
    }

    fn scale_up(&mut self, place: usize) {
        self.surges[place].stage = SurgeStage::ScaledUp;
        let (surge, pod) = (self.surges[place].surge.clone(), self.surges[place].pod.clone());
        self.scale_budgets(place, 1);
        self.live_pods.surge(self.cluster, &pod, 1);
        self.record(PlanEvent::Scaled { deployment: surge.deployment.clone(), replicas: surge.raised() });
        let mut run = SurgeRun { scaled_up: Some(self.now), ..SurgeRun::default() };
        match self.quotas.admit(self.cluster, &pod) {
            Err(refusal) => run.quota = Some(*refusal),
            Ok(()) => {
                let closed = &self.input.closed;
                let new = Replacement::create(&mut self.environment, &pod, closed, self.bound, self.now);
                run.landing = Some(new.landing.clone());
                run.ready = new.ready;
                if let Some(ready) = new.ready {
                    self.schedule(ready, Event::SurgeReady(place));
                }
                self.surges[place].replacement = Some(new);
            }
        }
        self.result.surges.insert(surge.deployment, run);
    }

    pub(super) fn on_surge_ready(&mut self, place: usize) {
        let deployment = self.surges[place].surge.deployment.clone();
        self.record(PlanEvent::SurgeReady { deployment });
        let budgets = self.surges[place].budgets.clone();
        self.count_healthy(budgets);
    }

    /// Scales a Deployment back once all pods of its surge have left or have been given up. `task` removes one of these
    /// pods. If this pod is the last to leave, the surge's new pod counts as its replacement.
    pub(super) fn end_surge_of(&mut self, task: usize) {
        let Some(place) = self.surge_of(task) else { return };
        let is_over = |task: &usize| {
            let task = &self.tasks[*task];
            task.state.terminating || task.stage == TaskStage::Ended
        };
        let surge = &self.surges[place];
        if surge.stage != SurgeStage::ScaledUp || !surge.tasks.iter().all(is_over) {
            return;
        }
        self.surges[place].stage = SurgeStage::ScaledBack;
        let (surge, pod) = (self.surges[place].surge.clone(), self.surges[place].pod.clone());
        self.scale_budgets(place, -1);
        self.live_pods.surge(self.cluster, &pod, -1);
        self.record(PlanEvent::Scaled { deployment: surge.deployment.clone(), replicas: surge.replicas });
        if let Some(run) = self.result.surges.get_mut(&surge.deployment) {
            run.scaled_back = Some(self.now);
        }
        if self.tasks[task].state.terminating {
            let replacement = self.surges[place].replacement.clone();
            let result = self.result_of(task);
            (result.replacement, result.last_of_surge) = (replacement, Some(surge.deployment));
        }
    }

    fn scale_budgets(&mut self, place: usize, replicas: i32) {
        for key in self.surges[place].budgets.clone() {
            if let (Some(state), Some(budget)) =
                (self.budgets.get_mut(&key), self.cluster.budgets().get(&key))
            {
                state.scale_by(budget, replicas);
            }
            self.schedule_sync(key);
        }
    }
}
