//! A snapshot that is updated from one state of the cluster to the next.

use super::{Snapshot, snapshot::SnapshotBuilder};
use crate::{
    cluster::{Applied, Cluster},
    engine::ServerVersion,
};

/// A snapshot, together with the state of the cluster from which it was made.
///
/// Copies are cheap. An update to a later state takes time in proportion to what has changed. Making a new snapshot of
/// a large cluster instead takes a tenth of a second, and as much memory as the first snapshot.
#[derive(Clone, Debug)]
pub struct ClusterSnapshot {
    pub cluster: Cluster,
    pub snapshot: Snapshot,
}

impl ClusterSnapshot {
    /// Makes the snapshot of a cluster state. Updates an earlier snapshot if it was made for the same release.
    pub fn new(cluster: Cluster, version: ServerVersion, earlier: Option<Self>) -> Self {
        SnapshotInProgress::new(cluster, version, earlier).finish()
    }
}

/// A [`ClusterSnapshot`] that is being built. Building takes several steps unless an earlier snapshot can be updated.
#[derive(Debug)]
pub struct SnapshotInProgress {
    cluster: Cluster,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    Reading(Box<SnapshotBuilder>),
    Complete(Box<Snapshot>),
}

impl SnapshotInProgress {
    /// Starts building the snapshot of a cluster state. If an earlier snapshot can be updated, this already completes
    /// the new snapshot.
    pub fn new(cluster: Cluster, version: ServerVersion, earlier: Option<ClusterSnapshot>) -> Self {
        let stage = match earlier.filter(|earlier| earlier.snapshot.rules().version == version) {
            Some(ClusterSnapshot { cluster: before, mut snapshot }) => {
                snapshot.follow(&changes(&before, &cluster), &cluster);
                Stage::Complete(Box::new(snapshot))
            }
            None => Stage::Reading(Box::new(SnapshotBuilder::for_scheduler(&cluster, version.into()))),
        };
        Self { cluster, stage }
    }

    /// Takes further steps until the snapshot is complete or `continues` returns false. Calls `continues` before each
    /// step.
    ///
    /// Returns whether the snapshot is complete.
    pub fn advance(&mut self, continues: &mut impl FnMut() -> bool) -> bool {
        match &mut self.stage {
            Stage::Reading(builder) => builder.advance(&self.cluster, continues),
            Stage::Complete(_) => true,
        }
    }

    /// Completes the remaining steps and returns the snapshot.
    pub fn finish(self) -> ClusterSnapshot {
        let Self { cluster, stage } = self;
        let snapshot = match stage {
            Stage::Reading(builder) => builder.finish(&cluster),
            Stage::Complete(snapshot) => *snapshot,
        };
        ClusterSnapshot { cluster, snapshot }
    }
}

/// Returns the differences between two cluster states.
fn changes(old: &Cluster, new: &Cluster) -> Vec<Applied> {
    let mut changes: Vec<Applied> = Vec::new();
    old.nodes().changes(new.nodes(), |delta| changes.push(Applied::Node(delta)));
    old.pods().changes(new.pods(), |delta| changes.push(Applied::Pod(delta)));
    changes.push(Applied::Other);
    changes
}
