//! A snapshot that is lent to a job on another thread.

use super::Snapshot;
use crate::{
    cluster::{Applied, Cluster},
    engine::ServerVersion,
};

/// A cached snapshot, if there is one, with the changes of the cluster that it does not contain yet.
#[derive(Debug, Default)]
pub struct SnapshotLease {
    pub snapshot: Option<Snapshot>,
    pub since: Vec<Applied>,
}

impl SnapshotLease {
    /// Returns a snapshot of this cluster, which must not have changed since the lease was given.
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
