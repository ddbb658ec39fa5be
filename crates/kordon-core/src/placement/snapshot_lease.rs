//! A cached snapshot that is lent to a job on another thread.

use super::Snapshot;
use crate::{
    cluster::{Applied, Cluster},
    engine::ServerVersion,
};

/// A cached snapshot, and the changes of the cluster that the snapshot does not contain yet. Without a cached snapshot,
/// the job makes a new one.
#[derive(Debug, Default)]
pub struct SnapshotLease {
    pub snapshot: Option<Snapshot>,
    pub since: Vec<Applied>,
}

impl SnapshotLease {
    /// Returns a snapshot of the cluster. `cluster` must be in the state for which the lease was given.
    pub fn of(self, cluster: &Cluster, version: ServerVersion) -> Snapshot {
        match self.snapshot {
            Some(mut snapshot) => {
                snapshot.follow(&self.since, cluster);
                snapshot
            }
            None => Snapshot::new(cluster, version),
        }
    }
}
