//! What Kubernetes operators do during a run: they move roles to other pods, or delete a pod themselves.

use super::{
    super::{MovedRole, Task, TaskStage},
    Event, SimulationRun,
};
use crate::{
    cluster::Key,
    plan::{
        environment::Environment, replacement::Replacement, switchover::SWITCHOVER, verdict::OperatorAct,
    },
};
use kordon_time::Span;

/// Time from the cordon of a node until a Kubernetes operator deletes its pod there.
pub(super) const DELAY: Span = Span::from_secs(1);

impl<E: Environment> SimulationRun<'_, E> {
    /// Starts the move of a role if no other pod has to be Ready on another node first. If the operator itself moves
    /// these other pods, starts their moves.
    pub(super) fn start_move(&mut self, role: usize) {
        let MovedRole { after, moves_them, .. } = self.moves[role].clone();
        if after.is_empty() {
            self.schedule(self.now + SWITCHOVER, Event::SwitchedOver(role));
        }
        let is_task = |pod: &Key| self.tasks.iter().any(|task| task.pod.key == *pod);
        let moved = after.iter().filter(|pod| moves_them && !is_task(pod));
        let moved: Vec<_> = moved.filter_map(|pod| self.cluster.pod(pod).cloned()).collect();
        for pod in moved {
            let Some(gone) = self.environment.time_to_terminate(&pod, pod.grace).at(self.bound) else {
                continue;
            };
            self.environment.on_deletion(&pod);
            let (closed, at) = (&self.input.closed, self.now + gone);
            let new = Replacement::create(&mut self.environment, &pod, closed, self.bound, at);
            if let Some(ready) = new.ready {
                self.schedule(ready, Event::Moved(pod.key.clone()));
            }
        }
    }

    /// Schedules the moves of those roles that wait only for this pod, which is now Ready on another node.
    pub(super) fn on_ready_elsewhere(&mut self, pod: &Key) {
        for role in 0..self.moves.len() {
            let after = &mut self.moves[role].after;
            if after.remove(pod) && after.is_empty() {
                self.schedule(self.now + SWITCHOVER, Event::SwitchedOver(role));
            }
        }
    }

    /// Gives the pod of a moved role the budgets that the pod has without the role.
    pub(super) fn on_switched_over(&mut self, role: usize) {
        let MovedRole { task, operator, budgets, .. } = self.moves[role].clone();
        if self.tasks[task].state.terminating {
            return;
        }
        self.result_of(task).operator = Some(OperatorAct::MovesRole { operator });
        let Task { protected_by, counted_by, counted_again_by, .. } = &mut self.tasks[task];
        // The pod's replacement starts without the role, so the budgets of the pod without the role count the
        // replacement too.
        counted_again_by.clone_from(&budgets.counted_by);
        *counted_by = budgets.counted_by;
        let before = std::mem::replace(protected_by, budgets.protected_by);
        for budget in before {
            self.schedule_sync(budget);
        }
    }

    pub(super) fn on_deleted_by_operator(&mut self, task: usize) {
        let Task { stage, deleted_by, .. } = self.tasks[task];
        if let (TaskStage::Requesting, Some(operator)) = (stage, deleted_by) {
            self.tasks[task].next_attempt = None;
            self.result_of(task).operator = Some(OperatorAct::Restarts { operator });
            self.start_deletion(task);
        }
    }
}
