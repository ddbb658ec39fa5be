//! Replaces the model that is shown by the model of another moment. Some results are carried over, and revisions stay
//! distinct.

use super::Model;
use kordon_time::{Span, Timestamp};

/// Maximum age of a forecast that is carried over to the model of another moment.
const STILL_NEW: Span = Span::from_secs(1);

/// Position of a model in the playback of a recording: the number of jumps (`jump`) and of shown moments (`shown`) so
/// far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MomentNumber {
    pub jump: u64,
    pub shown: u64,
}

impl Model {
    /// Adds an offset to the revisions of this model. Without it, they could by coincidence equal the revisions of
    /// another moment's model.
    pub fn number(&mut self, number: MomentNumber) {
        let MomentNumber { jump, shown } = number;
        self.changes.set_apart(jump);
        self.results.set_apart(jump);
        self.outcome_changes.set_apart(jump);
        self.views.zone_changes.set_apart(jump);
        self.journal.set_apart(jump);
        self.departures.set_apart(jump);
        // Node states get an offset at every moment, because they depend on the time at which they were computed.
        self.watchlist.set_apart(shown);
    }

    /// Takes over results from `before`, the model of a moment shortly before this one, until they are recomputed.
    pub fn continue_from(&mut self, before: &Self, now: Timestamp) {
        self.forecast = before.forecast.clone().filter(|forecast| now.since(forecast.made) <= STILL_NEW);
        self.outlook = before.outlook.clone();
        self.headroom = before.headroom.clone();
        self.outcomes = before.outcomes.clone();
        self.pending = before.pending.clone();
        self.results = before.results;
        self.outcome_changes = before.outcome_changes;
        self.views.leaving = before.views.leaving.clone();
        self.views.counts = before.views.counts;
        let (own, shown) = (&mut self.views.revision, before.views.revision);
        (own.next, own.evictions, own.results) = (shown.next, shown.evictions, shown.results);
    }
}
