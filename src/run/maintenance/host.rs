//! Approves the drains of a wave by the same rules as any other drain. The operator has already agreed to all waves.

use super::MaintenanceRun;
use crate::run::approval_driver::{ApprovalHost, checks, make_plan};
use kordon_core::{
    maintenance::MaintenanceNews,
    operation::{
        OperationNotice,
        approval::{
            Answer, Approval, Checks, NotStarted, Question, Situation, StartRequest, Started, plan_job,
        },
    },
    plan::{Action, Permission, Plan},
};
use kordon_time::Timestamp;

/// Approves the drains of a wave as part of a maintenance that already has its lock and journal.
pub struct WaveHost<'a, 'b>(pub &'a mut MaintenanceRun<'b>);

impl ApprovalHost for WaveHost<'_, '_> {
    fn situation(&self) -> Situation<'_> {
        self.0.watched.situation()
    }

    fn now(&self) -> Timestamp {
        self.0.now()
    }

    async fn plan(&mut self, action: Action) -> Result<Box<Plan>, String> {
        let run = &mut *self.0;
        let job = plan_job(action, run.watched.cluster().clone(), run.watched.rules(), run.now());
        run.watched.while_watching(run.clock, make_plan(job)).await
    }

    async fn check(&mut self, permissions: Vec<Permission>) -> Result<Checks, String> {
        let run = &mut *self.0;
        let (context, guards) = (run.context.clone(), run.options.guards.clone());
        let checked = async move { checks(&context, guards, &permissions).await };
        run.watched.while_watching(run.clock, checked).await
    }

    async fn ask(&mut self, _: &Approval, _: &Question) -> Answer {
        Answer::No
    }

    async fn start(&mut self, _: StartRequest) -> Result<Started, NotStarted> {
        Ok(Started { id: self.0.lock.id.clone(), by: self.0.context.by.clone(), prior: None })
    }

    fn tell(&mut self, notice: &OperationNotice) {
        (self.0.tell)(MaintenanceNews::Notice(notice.clone()));
    }
}
