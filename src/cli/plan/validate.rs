//! `--dry-run=server`: the server's answer to each write of a plan, and whether the plan predicted it.

use std::collections::BTreeSet;

use crate::{
    cli::exit::CliError,
    k8s::{connect::Connection, validation},
};
use kordon_core::{
    operation::{RequestKind, RequestOutcome},
    plan::{Plan, PlanStep, Prospect},
};

/// The server's answers to the writes of a plan, in the plan's order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ValidationAnswers(Vec<Option<ValidationAnswer>>);

/// One answer of the server.
#[derive(Clone, Debug, PartialEq)]
pub struct ValidationAnswer {
    pub outcome: RequestOutcome,
    /// Whether the plan predicted the answer; `None` if the plan has no prediction or the server did not judge the
    /// write.
    pub as_planned: Option<bool>,
}

impl ValidationAnswers {
    /// Sends each write to the server as a dry run.
    pub async fn ask(plan: &Plan, connection: &Connection) -> Self {
        let outcomes = validation::validate(&connection.writer, &plan.steps, plan.version).await;
        Self::new(plan, outcomes)
    }

    fn new(plan: &Plan, outcomes: Vec<Option<RequestOutcome>>) -> Self {
        let answer = |(step, outcome): (&PlanStep, Option<RequestOutcome>)| {
            outcome.map(|outcome| ValidationAnswer { as_planned: as_planned(plan, step, &outcome), outcome })
        };
        Self(plan.steps.iter().zip(outcomes).map(answer).collect())
    }

    /// The answer to the write with this index; `None` if the server was not asked.
    pub fn at(&self, index: usize) -> Option<&ValidationAnswer> {
        self.0.get(index)?.as_ref()
    }

    /// Fails if the server would refuse writes, or if answers differ from those that the plan predicted.
    pub fn verdict(&self, plan: &Plan) -> Result<(), CliError> {
        let answered =
            || plan.steps.iter().zip(&self.0).filter_map(|(step, answer)| Some((step, answer.as_ref()?)));
        let forbidden: BTreeSet<&str> = answered()
            .filter_map(|(_, answer)| match &answer.outcome {
                RequestOutcome::Forbidden(text) => Some(text.as_str()),
                _ => None,
            })
            .collect();
        if !forbidden.is_empty() {
            return Err(CliError::NotAllowed(forbidden.into_iter().collect::<Vec<_>>().join("; ")));
        }
        let different = answered().filter(|(_, answer)| answer.as_planned == Some(false));
        let different: Vec<String> =
            different.map(|(step, answer)| format!("{}: {}", words(step), answer.outcome)).collect();
        match different.first() {
            None => Ok(()),
            Some(first) => Err(CliError::WouldNot {
                prospect: Prospect::Stalls,
                text: format!(
                    "the server answers {} of {} writes differently from the plan, for example {first}",
                    different.len(),
                    plan.steps.len()
                ),
            }),
        }
    }
}

/// A write as text: "evict pod/web/web-1".
pub fn words(step: &PlanStep) -> String {
    let request = RequestKind::Write(step.clone());
    format!("{request} {}", request.object())
}

/// Word for a server's answer to a dry run. Success only means that the write is allowed.
pub const fn word(outcome: &RequestOutcome) -> &'static str {
    match outcome {
        RequestOutcome::Done => "allowed",
        other => other.word(),
    }
}

/// Whether the server's answer is the predicted one. For an eviction, the prediction follows from the present state of
/// the pod's PodDisruptionBudgets. Every other write is predicted to succeed.
fn as_planned(plan: &Plan, step: &PlanStep, outcome: &RequestOutcome) -> Option<bool> {
    let code = match step {
        PlanStep::Evict { pod, uid, .. } => {
            let planned = plan.pods.iter().find(|planned| planned.pod == *pod && planned.uid == *uid)?;
            planned.answer.as_ref()?.code
        }
        PlanStep::Delete { .. }
        | PlanStep::DeleteNode { .. }
        | PlanStep::Scale { .. }
        | PlanStep::Cordon { .. }
        | PlanStep::SetTaints { .. }
        | PlanStep::SetMetadata { .. } => 201,
    };
    match outcome {
        RequestOutcome::Done => Some(code == 201),
        RequestOutcome::BudgetExhausted(_) | RequestOutcome::BudgetStale { .. } => Some(code == 429),
        RequestOutcome::Refused(_) => Some(code == 500),
        RequestOutcome::NamespaceTerminating => Some(code == 403),
        RequestOutcome::Forbidden(_)
        | RequestOutcome::OtherObject
        | RequestOutcome::Gone
        | RequestOutcome::Conflict
        | RequestOutcome::Failed(_) => Some(false),
        // Outcomes in which the server did not judge the write.
        RequestOutcome::Overloaded { .. }
        | RequestOutcome::Unreachable(_)
        | RequestOutcome::NoResponse
        | RequestOutcome::Recorded
        | RequestOutcome::Node(_)
        | RequestOutcome::Pods(_)
        | RequestOutcome::Scale(_) => None,
    }
}
