//! Prepares a model to be shown in place of the model of another moment. Some results are carried over, and revisions
//! stay distinct.

use super::Model;
use kordon_time::Timestamp;

/// Position of a model in the playback of a recording: the number of jumps (`jump`) and of shown moments (`shown`) so
/// far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MomentNumber {
    pub jump: u64,
    pub shown: u64,
}

impl Model {
    /// Adds an offset to the revisions of this model, so that they differ from the revisions at other moments of a
    /// playback.
    pub fn number(&mut self, number: MomentNumber) {
        let MomentNumber { jump, shown } = number;
        self.changes.set_apart(jump);
        self.predictions.set_apart(jump);
        self.views.set_apart(jump);
        self.journal.set_apart(jump);
        self.departures.set_apart(jump);
        // The revision of node states gets an offset at every shown moment of a playback, because the states depend on
        // the time at which they were computed.
        self.watchlist.set_apart(shown);
    }

    /// Takes over results from `before`, the model of a moment shortly before this one, until they are recomputed.
    pub fn continue_from(&mut self, before: &Self, now: Timestamp) {
        self.predictions.continue_from(&before.predictions, now);
        self.views.continue_from(&before.views);
    }
}
