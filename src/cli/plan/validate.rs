//! `--validate`: what the server answers to each write of a plan, and whether the plan had said so.

use std::collections::BTreeSet;

use crate::{
    cli::Failure,
    conduct::{Outcome, Task},
    k8s::{connect::Connection, validation},
    plan::{Plan, Prospect, Step},
};

/// The server's answers to the writes of a plan, in their order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answers(Vec<Option<Answer>>);

/// One answer of the server.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    pub outcome: Outcome,
    /// Whether the plan had it so; none where the answer says nothing about that.
    pub as_planned: Option<bool>,
}

impl Answers {
    /// Asks the server, each write once.
    pub async fn to(plan: &Plan, connection: &Connection) -> Self {
        let outcomes = validation::validate(&connection.writer, &plan.steps, plan.version).await;
        Self::new(plan, outcomes)
    }

    fn new(plan: &Plan, outcomes: Vec<Option<Outcome>>) -> Self {
        let answer = |(step, outcome): (&Step, Option<Outcome>)| {
            outcome.map(|outcome| Answer { as_planned: as_planned(plan, step, &outcome), outcome })
        };
        Self(plan.steps.iter().zip(outcomes).map(answer).collect())
    }

    /// What was answered to the write at this place; none where it was not asked.
    pub fn at(&self, place: usize) -> Option<&Answer> {
        self.0.get(place)?.as_ref()
    }

    /// Fails where the server would not let a plan be carried out that would come to its end by itself.
    pub fn verdict(&self, plan: &Plan) -> Result<(), Failure> {
        let answered =
            || plan.steps.iter().zip(&self.0).filter_map(|(step, answer)| Some((step, answer.as_ref()?)));
        let forbidden: BTreeSet<&str> = answered()
            .filter_map(|(_, answer)| match &answer.outcome {
                Outcome::Forbidden(text) => Some(text.as_str()),
                _ => None,
            })
            .collect();
        if !forbidden.is_empty() {
            return Err(Failure::NotAllowed(forbidden.into_iter().collect::<Vec<_>>().join("; ")));
        }
        let otherwise = answered().filter(|(_, answer)| answer.as_planned == Some(false));
        let otherwise: Vec<String> =
            otherwise.map(|(step, answer)| format!("{}: {}", words(step), answer.outcome)).collect();
        match otherwise.first() {
            None => Ok(()),
            Some(first) => Err(Failure::WouldNot {
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
pub fn words(step: &Step) -> String {
    let task = Task::Write(step.clone());
    format!("{task} {}", task.object())
}

/// The word for an answer to a dry run: what is done in earnest is only allowed here.
pub const fn word(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Done => "allowed",
        other => other.word(),
    }
}

/// Whether an answer is what the plan has: of evictions what its budgets say at this moment, of all other writes that
/// they are allowed.
fn as_planned(plan: &Plan, step: &Step, outcome: &Outcome) -> Option<bool> {
    let code = match step {
        Step::Evict { pod, uid, .. } => {
            let planned = plan.pods.iter().find(|planned| planned.pod == *pod && planned.uid == *uid)?;
            planned.answer.as_ref()?.code
        }
        Step::Delete { .. } | Step::Cordon { .. } | Step::SetTaints { .. } | Step::SetLabels { .. } => 201,
    };
    match outcome {
        Outcome::Done => Some(code == 201),
        Outcome::BudgetExhausted(_) | Outcome::BudgetStale { .. } => Some(code == 429),
        Outcome::Refused(_) => Some(code == 500),
        Outcome::NamespaceTerminating => Some(code == 403),
        Outcome::Forbidden(_)
        | Outcome::OtherObject
        | Outcome::Gone
        | Outcome::Conflict
        | Outcome::Failed(_) => Some(false),
        // The server did not get as far as the question.
        Outcome::Overloaded { .. }
        | Outcome::Unreachable(_)
        | Outcome::NoAnswer
        | Outcome::Recorded
        | Outcome::Node(_)
        | Outcome::Pods(_) => None,
    }
}
