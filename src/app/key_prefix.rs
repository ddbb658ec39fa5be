//! The effect of earlier keys on the next key.

use super::pane::Pane;
use kordon_time::Timestamp;

/// The effect of earlier keys on the next key.
#[derive(Clone, Debug, Default)]
pub struct KeyPrefix {
    pub(super) count: Option<Count>,
    /// Whether the last key was the sort key, so that a letter chooses the column.
    pub(super) chooses_column: bool,
}

/// A number that was typed. Its first digit has focused a pane.
#[derive(Clone, Debug)]
pub(super) struct Count {
    pub times: usize,
    pub typed: Timestamp,
    /// Focus and order of the tabs before the first digit was typed.
    pub before: (Pane, Vec<Pane>),
}
