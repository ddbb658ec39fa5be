//! Why an operation does not start.

use super::Objection;
use crate::{
    cluster::{Gaps, OperationId},
    plan::Permission,
};

/// Why nothing was written.
#[derive(Clone, Debug, PartialEq)]
pub enum ApprovalRefusal {
    /// The operator can neither be asked nor agreed in advance.
    NobodyToAsk,
    /// Writing is locked, in words.
    Locked(String),
    /// The watch of this kind is not live.
    Stale(&'static str),
    /// Objects of this kind were never listed.
    Unlisted(String),
    /// The outcome rests on objects that are not known.
    Unknown(Gaps),
    /// The plan cannot be made, in words.
    NoPlan(String),
    /// The plan is refused by a filter: the plan in short, and these pods.
    PlanRefused {
        summary: String,
        pods: Vec<String>,
    },
    /// None of the nodes of an interrupted drain exists any more.
    NoNodesLeft,
    /// Permissions or guard rails are not known, in words.
    NotChecked(String),
    /// These permissions are missing.
    Permissions(Vec<Permission>),
    /// Nobody can override these: the operator agreed in advance.
    Objections(Vec<Objection>),
    NotStarted(NotStarted),
}

/// Why an operation is not in the journal.
#[derive(Clone, Debug, PartialEq)]
pub enum NotStarted {
    /// Another process on this machine has it.
    InProgress(OperationId),
    /// It has ended, or is no drain.
    Over(OperationId),
    /// The journal fails, in words.
    Journal(String),
}

impl ApprovalRefusal {
    /// In words, one line each. The first says what it is.
    pub fn lines(&self) -> Vec<String> {
        match self {
            Self::NobodyToAsk => {
                vec!["there is no terminal to ask for confirmation: add --yes to --enforce".into()]
            }
            Self::Stale(kind) => {
                vec![format!("the watch of {kind} is not live: nothing is started on old data")]
            }
            Self::Unknown(gaps) => vec![format!("outcome unknown: {gaps}")],
            Self::Unlisted(kind) => vec![format!("the {kind} are not listed yet")],
            Self::Locked(text) | Self::NoPlan(text) | Self::NotChecked(text) => vec![text.clone()],
            Self::PlanRefused { summary, pods } => std::iter::once(summary).chain(pods).cloned().collect(),
            Self::NoNodesLeft => vec!["none of its nodes exists any more".into()],
            Self::Permissions(missing) => {
                let missing = missing.iter().map(Permission::to_string);
                std::iter::once("these permissions are missing:".to_owned()).chain(missing).collect()
            }
            Self::Objections(objections) => objections.iter().flat_map(Objection::as_refusal).collect(),
            Self::NotStarted(why) => vec![why.to_string()],
        }
    }
}

impl std::fmt::Display for NotStarted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::InProgress(id) => write!(
                f,
                "another process on this machine is running {id}: wait for it to finish, or stop it"
            ),
            Self::Over(id) => write!(f, "{id} cannot be resumed: it has ended, or it is not a drain"),
            Self::Journal(text) => f.write_str(text),
        }
    }
}
