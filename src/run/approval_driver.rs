//! Carries out the approval of an operation on the command line, and has functions that the dashboard uses for
//! approvals too.

use crate::executor::write_context::WriteContext;
use kordon_core::{
    operation::{
        Guards, OperationNotice,
        approval::{Answer, Approval, Checks, Need, NotStarted, Question, Situation, StartRequest, Started},
    },
    plan::{Action, Permission, Plan, PlanJob},
};
use kordon_time::Timestamp;

/// Connects the approval of an operation with the cluster and with the operator.
#[expect(async_fn_in_trait, reason = "it is driven on the task that implements it")]
pub trait ApprovalHost {
    /// Returns the newest state of the cluster.
    fn situation(&self) -> Situation<'_>;

    fn now(&self) -> Timestamp;

    /// Makes a plan for the newest state of the cluster.
    async fn plan(&mut self, action: Action) -> Result<Box<Plan>, String>;

    /// Asks the API server which permissions the user does not have, and reads the guard rails.
    async fn check(&mut self, permissions: Vec<Permission>) -> Result<Checks, String>;

    /// Shows the proposed operation to the operator, and asks the question.
    async fn ask(&mut self, approval: &Approval, question: &Question) -> Answer;

    /// Writes the start of the operation to the journal.
    async fn start(&mut self, request: StartRequest) -> Result<Started, NotStarted>;

    /// Shows a notice.
    fn tell(&mut self, notice: &OperationNotice);
}

/// Answers what the approval of an operation requests, such as a plan or a check, until the approval has ended.
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

/// Makes a plan on another thread.
///
/// # Errors
/// An object that the plan names does not exist; the text names the object.
pub async fn make_plan(job: PlanJob) -> Result<Box<Plan>, String> {
    // The snapshot is dropped on the thread that makes the plan, because dropping a large snapshot takes long.
    match tokio::task::spawn_blocking(move || job.work().plan).await {
        Ok(plan) => plan.map_err(|error| error.to_string()),
        Err(_) => Err("making the plan failed: this is a fault of kordon".into()),
    }
}

/// Asks the API server which permissions the user does not have.
///
/// # Errors
/// The server did not answer; the text gives the reason.
pub async fn checks(
    context: &WriteContext,
    guards: Guards,
    permissions: &[Permission],
) -> Result<Checks, String> {
    let missing = context.missing_permissions(permissions).await;
    Ok(Checks { guards, missing: missing.map_err(|why| format!("cannot check permissions: {why}"))? })
}
