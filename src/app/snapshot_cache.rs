//! Cache of the snapshot of the cluster from which placements of pods are computed. The cache follows the cluster while
//! a plan is open, since taking a new snapshot takes longer than most placements.

use crate::model::AppliedChange;
use kordon_core::{
    cluster::Applied,
    placement::{Snapshot, SnapshotLease},
};

/// A snapshot of the cluster that is kept from one plan to the next, with the changes of the cluster since it was
/// taken.
#[derive(Debug, Default)]
pub struct SnapshotCache {
    /// The snapshot; `None` while a job has it.
    snapshot: Option<Snapshot>,
    /// Changes that the snapshot lacks; `None` while no snapshot is kept.
    since: Option<Vec<Applied>>,
}

/// Maximum number of changes, after which a new snapshot is taken. Applying more changes would take as long as a new
/// snapshot, and the changes hold old pods in memory.
const MOST: usize = 50_000;

impl SnapshotCache {
    /// Stores changes of the cluster that the kept snapshot lacks.
    pub fn on_changes(&mut self, changes: &[AppliedChange]) {
        let Some(since) = &mut self.since else { return };
        let relevant = changes.iter().filter(|change| change.impact.bears_on_plans());
        since.extend(relevant.map(|change| change.applied.clone()));
    }

    /// Lends the snapshot to a job, with the changes of the cluster that the snapshot lacks.
    pub fn lend(&mut self) -> SnapshotLease {
        let snapshot = self.snapshot.take();
        SnapshotLease { snapshot, since: self.since.replace(Vec::new()).unwrap_or_default() }
    }

    /// Takes back the snapshot that a job has updated. Returns a snapshot that is no longer needed, if there is one.
    pub fn give_back(&mut self, snapshot: Snapshot) -> Option<Snapshot> {
        if self.since.is_none() {
            return Some(snapshot);
        }
        self.snapshot.replace(snapshot)
    }

    /// Whether the kept snapshot lacks so many changes that taking a new one is cheaper.
    pub fn is_outdated(&self) -> bool {
        self.since.as_ref().is_some_and(|since| since.len() > MOST)
    }

    pub fn is_kept(&self) -> bool {
        self.since.is_some()
    }
}
