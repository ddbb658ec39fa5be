//! The snapshot for placements that is kept while a plan is open and follows the cluster: making a new one takes longer
//! than most placements.

use crate::model::AppliedChange;
use kordon_core::{
    cluster::Applied,
    placement::{Snapshot, SnapshotLease},
};

/// A snapshot that is kept from one plan to the next, and what has happened to the cluster since it was taken.
#[derive(Debug, Default)]
pub struct SnapshotCache {
    /// None while a job has it.
    snapshot: Option<Snapshot>,
    /// What it is behind by; none while none is kept at all.
    since: Option<Vec<Applied>>,
}

/// After this many changes a new one is taken: following them would take as long, and they hold old pods in memory.
const MOST: usize = 50_000;

impl SnapshotCache {
    /// Remembers changes of the cluster that a kept snapshot has not followed yet.
    pub fn on_changes(&mut self, changes: &[AppliedChange]) {
        let Some(since) = &mut self.since else { return };
        let relevant = changes.iter().filter(|change| change.impact.bears_on_plans());
        since.extend(relevant.map(|change| change.applied.clone()));
    }

    /// Lends what is kept to a job over the cluster as it is now.
    pub fn lend(&mut self) -> SnapshotLease {
        let snapshot = self.snapshot.take();
        SnapshotLease { snapshot, since: self.since.replace(Vec::new()).unwrap_or_default() }
    }

    /// Takes back what a job was lent, brought up to where the cluster was then; gives it back where nothing is kept
    /// any more.
    pub fn give_back(&mut self, snapshot: Snapshot) -> Option<Snapshot> {
        if self.since.is_none() {
            return Some(snapshot);
        }
        self.snapshot.replace(snapshot)
    }

    /// Whether keeping it costs more than it saves.
    pub fn is_outdated(&self) -> bool {
        self.since.as_ref().is_some_and(|since| since.len() > MOST)
    }

    pub fn is_kept(&self) -> bool {
        self.since.is_some()
    }
}
