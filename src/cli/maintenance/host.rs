//! The approval of a wave: the rules of a drain, for an operator who has agreed to all waves already.

use super::super::act::session::OperationSession;
use crate::run::approval_driver::ApprovalHost;
use kordon_core::{
    operation::{
        OperationNotice,
        approval::{Answer, Approval, Checks, NotStarted, Question, Situation, StartRequest, Started},
    },
    plan::{Action, Permission, Plan},
};
use kordon_time::Timestamp;

/// Approves the drains of a wave as part of a maintenance that has the lock and the journal already.
pub struct WaveHost<'a>(pub &'a mut OperationSession);

impl ApprovalHost for WaveHost<'_> {
    fn situation(&self) -> Situation<'_> {
        self.0.situation()
    }

    fn now(&self) -> Timestamp {
        ApprovalHost::now(self.0)
    }

    async fn plan(&mut self, action: Action) -> Result<Box<Plan>, String> {
        self.0.plan(action).await
    }

    async fn check(&mut self, permissions: Vec<Permission>) -> Result<Checks, String> {
        self.0.check(permissions).await
    }

    async fn ask(&mut self, _: &Approval, _: &Question) -> Answer {
        Answer::No
    }

    async fn start(&mut self, _: StartRequest) -> Result<Started, NotStarted> {
        Ok(Started { id: self.0.lock().id.clone(), by: self.0.context.by.clone(), prior: None })
    }

    fn tell(&mut self, notice: &OperationNotice) {
        self.0.tell(notice);
    }
}
