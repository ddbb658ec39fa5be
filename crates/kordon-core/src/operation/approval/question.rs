//! What the operator is asked.

use super::{Drift, Objection};

/// A question, besides what would be done: the plan or the undo is shown with it.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// What has changed since the operator agreed.
    pub drifts: Vec<Drift>,
    /// What agreeing overrides.
    pub objections: Vec<Objection>,
    pub prompt: Prompt,
}

/// What agreeing takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prompt {
    /// A yes, with what is agreed to in words, as in `Yes, drain`.
    Yes(&'static str),
    /// Exactly these words.
    Words(String),
}

/// What the operator said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Yes,
    No,
}

impl Prompt {
    /// What has to be typed where nothing can be chosen.
    pub fn words(&self) -> &str {
        match self {
            Self::Yes(_) => "yes",
            Self::Words(words) => words,
        }
    }

    /// What was typed means yes only where it is what was asked for.
    pub fn accepts(&self, typed: &str) -> bool {
        typed.trim() == self.words()
    }
}

/// The name of a context as it is typed; `yes` for a name that cannot be.
pub(super) fn word_for(context: &str) -> &str {
    let can_be_typed = !context.trim().is_empty() && !context.chars().any(char::is_control);
    if can_be_typed { context.trim() } else { "yes" }
}
