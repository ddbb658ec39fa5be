//! Reasons why an operation does not start.

use super::Objection;
use crate::{
    cluster::{Gaps, OperationId},
    plan::Permission,
};

/// The reason why an approval was refused. Nothing was written.
#[derive(Clone, Debug, PartialEq)]
pub enum ApprovalRefusal {
    /// The operator cannot be asked and has not agreed in advance.
    NobodyToAsk,
    /// Writing is locked. Has the reason in words.
    Locked(String),
    /// The watch of this kind of objects is not live.
    Stale(&'static str),
    /// Objects of this kind have not been listed yet.
    Unlisted(String),
    /// The outcome of the operation depends on objects that are unknown.
    Unknown(Gaps),
    /// The plan cannot be made. Has the reason in words.
    NoPlan(String),
    /// A filter refuses the plan. Has the summary of the plan and a list of the refused pods.
    PlanRefused {
        summary: String,
        pods: Vec<String>,
    },
    /// No node of the interrupted drain exists any more.
    NoNodesLeft,
    /// Permissions or guard rails could not be checked. Has the reason in words.
    NotChecked(String),
    /// These permissions are missing.
    Permissions(Vec<Permission>),
    /// Objections that were not overridden in advance. The operator agreed in advance, and cannot be asked to override
    /// them now.
    Objections(Vec<Objection>),
    NotStarted(NotStarted),
}

/// The reason why the journal did not start an operation.
#[derive(Clone, Debug, PartialEq)]
pub enum NotStarted {
    /// Another process on this machine is running the operation.
    InProgress(OperationId),
    /// The operation has ended, or is of another kind than those that the command resumes.
    Over(OperationId),
    /// The journal failed. Has the error in words.
    Journal(String),
}

impl ApprovalRefusal {
    /// The refusal in words. The first line is the reason; further lines list permissions, pods or objections.
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
            Self::Over(id) => write!(
                f,
                "{id} cannot be resumed by this command: it has ended, or it is another kind of operation"
            ),
            Self::Journal(text) => f.write_str(text),
        }
    }
}
