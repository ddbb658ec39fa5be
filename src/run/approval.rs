//! The command line's driver of an approval.

use crate::{
    operation::{
        OperationNotice,
        approval::{Answer, Approval, Checks, Need, NotStarted, Question, Situation, StartRequest, Started},
    },
    plan::{Action, Permission, Plan},
    time::Timestamp,
};

/// What an approval is driven with: a cluster, and an operator.
#[expect(async_fn_in_trait, reason = "it is driven on the task that implements it")]
pub trait ApprovalHost {
    /// The newest state.
    fn situation(&self) -> Situation<'_>;

    fn now(&self) -> Timestamp;

    /// Makes a plan over the newest state.
    async fn plan(&mut self, action: Action) -> Result<Box<Plan>, String>;

    /// Asks which permissions are missing, and reads the guard rails.
    async fn check(&mut self, permissions: Vec<Permission>) -> Result<Checks, String>;

    /// Shows what would be done, and asks.
    async fn ask(&mut self, approval: &Approval, question: &Question) -> Answer;

    /// Writes the start to the journal.
    async fn start(&mut self, request: StartRequest) -> Result<Started, NotStarted>;

    /// Shows a notice.
    fn tell(&mut self, notice: &OperationNotice);
}

/// Does what the approval needs until it has ended.
pub async fn decide(approval: &mut Approval, host: &mut impl ApprovalHost) {
    loop {
        while let Some(notice) = approval.poll_notice() {
            host.tell(&notice);
        }
        let Some(need) = approval.poll_need() else { return };
        match need {
            Need::Plan(action) => {
                let plan = host.plan(action).await;
                approval.handle_plan(plan, &host.situation(), host.now());
            }
            Need::Checks(permissions) => {
                let checks = host.check(permissions).await;
                approval.handle_checks(checks, &host.situation(), host.now());
            }
            Need::Answer(question) => {
                let answer = host.ask(approval, &question).await;
                approval.handle_answer(answer, &host.situation(), host.now());
            }
            Need::Start(request) => {
                let started = host.start(*request).await;
                approval.handle_started(started, &host.situation(), host.now());
            }
        }
    }
}
