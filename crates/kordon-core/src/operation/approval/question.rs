//! The question that the operator is asked.

use super::{Drift, Objection};

/// A question to the operator. It is shown with the plan or the undo.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// Differences since the operator agreed.
    pub drifts: Vec<Drift>,
    /// The objections that a yes overrides.
    pub objections: Vec<Objection>,
    pub prompt: Prompt,
}

/// The input that confirms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prompt {
    /// A yes. Has the label of the button, for example `Yes, drain`.
    Yes(&'static str),
    /// Exactly these words, typed.
    Words(String),
}

/// The operator's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Yes,
    No,
}

impl Prompt {
    /// The text to type where there are no buttons.
    pub fn words(&self) -> &str {
        match self {
            Self::Yes(_) => "yes",
            Self::Words(words) => words,
        }
    }

    /// Whether the typed text is the requested confirmation. Anything else means no.
    pub fn accepts(&self, typed: &str) -> bool {
        typed.trim() == self.words()
    }
}

/// The name of a context to be typed; `yes` if the name is empty or has control characters.
pub(super) fn word_for(context: &str) -> &str {
    let can_be_typed = !context.trim().is_empty() && !context.chars().any(char::is_control);
    if can_be_typed { context.trim() } else { "yes" }
}
