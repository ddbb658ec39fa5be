//! The question to the operator before an operation starts.

use super::{Drift, Objection};

/// A question to the operator, shown beside the plan or the undo.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// Differences between the newest plan and the plans to which the operator has agreed.
    pub drifts: Vec<Drift>,
    /// The objections that the operator overrides by confirming.
    pub objections: Vec<Objection>,
    pub prompt: Prompt,
}

/// The input with which the operator confirms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prompt {
    /// A yes, typed or by a button. Has the label of the button, for example `Yes, drain`.
    Yes(&'static str),
    /// The operator confirms by typing exactly these words.
    Words(String),
}

/// The operator's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Yes,
    No,
}

impl Prompt {
    /// The text that the operator types if there is no button to choose.
    pub fn words(&self) -> &str {
        match self {
            Self::Yes(_) => "yes",
            Self::Words(words) => words,
        }
    }

    /// Whether a typed text confirms. Any other text means no.
    pub fn accepts(&self, typed: &str) -> bool {
        typed.trim() == self.words()
    }
}

/// The word that the operator types to confirm a grave plan: the name of the context, or `yes` if the name is empty or
/// has control characters.
pub(super) fn word_for(context: &str) -> &str {
    let can_be_typed = !context.trim().is_empty() && !context.chars().any(char::is_control);
    if can_be_typed { context.trim() } else { "yes" }
}
