//! A snapshot on loan to a job that runs on another thread.

use super::Snapshot;
use crate::{
    cluster::{Applied, Cluster},
    engine::ServerVersion,
};

/// A kept snapshot, if there is one, and the changes of the cluster that it has not followed yet.
#[derive(Debug, Default)]
pub struct SnapshotLease {
    pub snapshot: Option<Snapshot>,
    pub since: Vec<Applied>,
}

impl SnapshotLease {
    /// A snapshot of this cluster, which is as it was when the lease was given.
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
