//! A snapshot together with the state of the cluster that it is of, from which those of later states are made.

use super::{Snapshot, snapshot::SnapshotBuilder};
use crate::{
    cluster::{Applied, Cluster},
    engine::ServerVersion,
};

/// A snapshot, and the state of the cluster that it is of.
///
/// Copies are cheap. To bring one up to a later state costs by what has changed; a new snapshot of a large cluster takes a tenth of
/// a second, and as much memory as the first.
#[derive(Clone, Debug)]
pub struct ClusterSnapshot {
    pub cluster: Cluster,
    pub snapshot: Snapshot,
}

impl ClusterSnapshot {
    /// That of this state, made from that of an earlier one if there is one by the rules of the same release.
    pub fn new(cluster: Cluster, version: ServerVersion, earlier: Option<Self>) -> Self {
        SnapshotInProgress::new(cluster, version, earlier).finish()
    }
}

/// A [`ClusterSnapshot`] that is made in steps, where there is none of an earlier state.
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
    /// Starts to make that of this state. It is complete at once where it is made from that of an earlier one.
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

    /// Continues until it is complete, or until `continues`, which is asked before each step, returns false. Returns whether it
    /// is complete.
    pub fn advance(&mut self, continues: &mut impl FnMut() -> bool) -> bool {
        match &mut self.stage {
            Stage::Reading(builder) => builder.advance(&self.cluster, continues),
            Stage::Complete(_) => true,
        }
    }

    /// Does what is left.
    pub fn finish(self) -> ClusterSnapshot {
        let Self { cluster, stage } = self;
        let snapshot = match stage {
            Stage::Reading(builder) => builder.finish(&cluster),
            Stage::Complete(snapshot) => *snapshot,
        };
        ClusterSnapshot { cluster, snapshot }
    }
}

/// What has changed from one state of the cluster to another.
fn changes(old: &Cluster, new: &Cluster) -> Vec<Applied> {
    let mut changes: Vec<Applied> = Vec::new();
    old.nodes().changes(new.nodes(), |delta| changes.push(Applied::Node(delta)));
    old.pods().changes(new.pods(), |delta| changes.push(Applied::Pod(delta)));
    changes.push(Applied::Other);
    changes
}
