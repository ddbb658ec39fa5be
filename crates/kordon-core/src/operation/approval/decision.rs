//! How an approval ended.

use super::{super::Operation, ApprovalRefusal, PriorOperation};
use crate::plan::Plan;

/// How an approval ended.
#[derive(Clone, Debug)]
pub enum Decision {
    Approved(Box<Approved>),
    Refused(ApprovalRefusal),
    /// The operation would change nothing.
    NothingToDo(String),
    /// The operator answered no.
    Declined,
}

impl Decision {
    /// Returns why nothing was started, one line per reason; empty if the operation was started.
    pub fn lines(&self) -> Vec<String> {
        match self {
            Self::Approved(_) => Vec::new(),
            Self::Refused(refusal) => refusal.lines(),
            Self::NothingToDo(text) => vec![text.clone()],
            Self::Declined => vec!["not confirmed: nothing was written".into()],
        }
    }
}

/// An operation that has started.
#[derive(Clone, Debug)]
pub struct Approved {
    /// Title of the operation, for example `drain n1`.
    pub title: String,
    pub operation: Operation,
    /// The plan that is applied; `None` for an undo.
    pub plan: Option<Box<Plan>>,
    /// The operation that is undone; `None` unless this is an undo.
    pub undoes: Option<PriorOperation>,
}
