//! The tasks for the caller that drives an approval, and the answers.

use super::{
    super::{Guards, OperationOptions, Overrides},
    PriorOperation, Question,
};
use crate::{
    cluster::OperationId,
    plan::{Action, Permission, Plan},
};

/// The next task for the caller that drives the approval.
#[derive(Clone, Debug)]
pub enum Need {
    /// Make a plan of this action from the newest state.
    Plan(Action),
    /// Find out which of these permissions are missing, and read the configured guard rails.
    Checks(Vec<Permission>),
    /// Ask the operator.
    Answer(Question),
    /// Write the start of the operation to the journal, under the operation lock.
    Start(Box<StartRequest>),
}

/// The operation whose start is to be written to the journal.
#[derive(Clone, Debug)]
pub enum StartRequest {
    Apply { plan: Box<Plan>, options: OperationOptions, overrides: Overrides },
    Resume(OperationId),
    Undo(OperationId),
}

/// The answer to [`Need::Checks`]: the configured guard rails, and the permissions that are missing.
#[derive(Clone, Debug, Default)]
pub struct Checks {
    pub guards: Guards,
    pub missing: Vec<Permission>,
}

/// An operation whose start is in the journal.
#[derive(Clone, Debug)]
pub struct Started {
    pub id: OperationId,
    /// The user that runs the operation.
    pub by: String,
    /// The operation that is resumed or undone, as the journal recorded it. Read under the operation lock.
    pub prior: Option<PriorOperation>,
}
