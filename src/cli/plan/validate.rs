//! `--validate`: what the server answers to each write of a plan, and whether the plan had said so.

use std::collections::BTreeSet;

use crate::{
    cli::exit::CliError,
    k8s::{connect::Connection, validation},
    operation::{RequestKind, RequestOutcome},
    plan::{Plan, PlanStep, Prospect},
};

/// The server's answers to the writes of a plan, in their order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ValidationAnswers(Vec<Option<ValidationAnswer>>);

/// One answer of the server.
#[derive(Clone, Debug, PartialEq)]
pub struct ValidationAnswer {
    pub outcome: RequestOutcome,
    /// Whether the plan had it so; none where the answer says nothing about that.
    pub as_planned: Option<bool>,
}

impl ValidationAnswers {
    /// Asks the server, each write once.
    pub async fn to(plan: &Plan, connection: &Connection) -> Self {
        let outcomes = validation::validate(&connection.writer, &plan.steps, plan.version).await;
        Self::new(plan, outcomes)
    }

    fn new(plan: &Plan, outcomes: Vec<Option<RequestOutcome>>) -> Self {
        let answer = |(step, outcome): (&PlanStep, Option<RequestOutcome>)| {
            outcome.map(|outcome| ValidationAnswer { as_planned: as_planned(plan, step, &outcome), outcome })
        };
        Self(plan.steps.iter().zip(outcomes).map(answer).collect())
    }

    /// What was answered to the write at this place; none where it was not asked.
    pub fn at(&self, place: usize) -> Option<&ValidationAnswer> {
        self.0.get(place)?.as_ref()
    }

    /// Fails where the server would not let a plan be carried out that would come to its end by itself.
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
        let otherwise = answered().filter(|(_, answer)| answer.as_planned == Some(false));
        let otherwise: Vec<String> =
            otherwise.map(|(step, answer)| format!("{}: {}", words(step), answer.outcome)).collect();
        match otherwise.first() {
            None => Ok(()),
            Some(first) => Err(CliError::WouldNot {
                prospect: Prospect::Stalls,
                text: format!(
                    "the server answers {} of {} writes otherwise than the plan has it, as {first}",
                    otherwise.len(),
                    plan.steps.len()
                ),
            }),
        }
    }
}

/// A write in words, as in "evict pod/web/web-1".
pub fn words(step: &PlanStep) -> String {
    let task = RequestKind::Write(step.clone());
    format!("{task} {}", task.object())
}

/// The word for an answer to a dry run: what is done in earnest is only allowed here.
pub const fn word(outcome: &RequestOutcome) -> &'static str {
    match outcome {
        RequestOutcome::Done => "allowed",
        other => other.word(),
    }
}

/// Whether an answer is what the plan has: of evictions what its budgets say at this moment, of all other writes that
/// they are allowed.
fn as_planned(plan: &Plan, step: &PlanStep, outcome: &RequestOutcome) -> Option<bool> {
    let code = match step {
        PlanStep::Evict { pod, uid, .. } => {
            let planned = plan.pods.iter().find(|planned| planned.pod == *pod && planned.uid == *uid)?;
            planned.answer.as_ref()?.code
        }
        PlanStep::Delete { .. }
        | PlanStep::Cordon { .. }
        | PlanStep::SetTaints { .. }
        | PlanStep::SetLabels { .. } => 201,
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
        // The server did not get as far as the question.
        RequestOutcome::Overloaded { .. }
        | RequestOutcome::Unreachable(_)
        | RequestOutcome::NoAnswer
        | RequestOutcome::Recorded
        | RequestOutcome::Node(_)
        | RequestOutcome::Pods(_) => None,
    }
}
