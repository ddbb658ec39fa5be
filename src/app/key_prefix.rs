//! The effect of earlier keys on the next key.

use super::pane::Pane;
use kordon_time::Timestamp;

/// The effect of earlier keys on the next key.
#[derive(Clone, Debug, Default)]
pub struct KeyPrefix {
    pub(super) count: Option<Count>,
    /// Whether the last key was the sort key, so that a letter chooses the column.
    pub(super) chooses_column: bool,
    /// The candidate that completes the typed filter, if the last key chose it.
    pub(super) candidate: Option<FilterCandidate>,
}

/// A candidate that completes a typed filter. The same key chooses the next one.
#[derive(Clone, Debug)]
pub(super) struct FilterCandidate {
    /// All candidates, the chosen one first.
    pub all: Vec<String>,
    /// The typed text before the candidate.
    pub before: String,
    /// The text with the candidate. If another text was typed since, the choice is over.
    pub text: String,
}

/// A number that was typed. Its first digit has focused a pane.
#[derive(Clone, Debug)]
pub(super) struct Count {
    pub times: usize,
    pub typed: Timestamp,
    /// Focus and order of the tabs before the first digit was typed.
    pub before: (Pane, Vec<Pane>),
}
