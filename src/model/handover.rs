//! A model of another moment in the place of one that was shown: what it takes over, and how their counts differ.

use super::Model;
use kordon_time::{Span, Timestamp};

/// A forecast that was made at most this long before a moment is shown at it.
const STILL_NEW: Span = Span::from_secs(1);

/// Counts of one play begin this far from those of another: whatever was made from a count is then made again.
const APART: u32 = 40;

/// Which place in a recording a model is of: counts of the jumps, and of the moments, that were shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MomentNumber {
    pub jump: u64,
    pub shown: u64,
}

impl Model {
    /// Tells the counts of changes apart from those of models of other moments, which may be the same by chance.
    pub fn number(&mut self, number: MomentNumber) {
        let jump = number.jump << APART;
        for count in [
            &mut self.node_changes,
            &mut self.unscheduled_changes,
            &mut self.pod_moves,
            &mut self.results,
            &mut self.outcome_changes,
            &mut self.plan_changes,
            &mut self.placement_changes,
            &mut self.views.revision.zones,
        ] {
            *count += jump;
        }
        self.journal.add_to_revision(jump);
        self.departures.add_to_revision(jump);
        // States depend on when they were looked at.
        self.watchlist.add_to_revision(number.shown << APART);
    }

    /// Takes over what was worked out for a moment shortly before this one, until that is worked out again.
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
