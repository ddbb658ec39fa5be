//! What the cluster could lose: worked out beside the loop ([`Model::next_headroom_job`], [`HeadroomJob::work`]) and kept
//! in [`Model::headroom`] until something newer is known.

use super::Model;
use crate::{
    cluster::Cluster,
    engine::ServerVersion,
    placement::Snapshot,
    plan::{Headroom, headroom},
    time::{Span, Timestamp},
};

/// What the cluster could lose at a moment.
#[derive(Clone, Debug, PartialEq)]
pub struct HeadroomSnapshot {
    pub headroom: Headroom,
    /// The time of the cluster state that it was worked out from.
    pub at: Timestamp,
    /// [`Model::plan_revision`] at that moment.
    revision: u64,
}

/// Copies of everything that headroom is worked out from.
#[derive(Debug)]
pub struct HeadroomJob {
    cluster: Cluster,
    version: ServerVersion,
    revision: u64,
    at: Timestamp,
}

/// From this age on the answer's age is shown, where something that it depends on has changed since.
const SHOWS_ITS_AGE: Span = Span::from_secs(90);

impl Model {
    /// When the answer was worked out; none where it still holds, or is too young for that to matter.
    pub fn headroom_is_from(&self, now: Timestamp) -> Option<Timestamp> {
        let headroom = self.headroom.as_ref()?;
        let stale = self.plan_revision() != Some(headroom.revision);
        (stale && now.since(headroom.at) > SHOWS_ITS_AGE).then_some(headroom.at)
    }

    /// The next headroom to work out; none while it is known, or nodes or pods are not.
    pub fn next_headroom_job(&self, now: Timestamp) -> Option<HeadroomJob> {
        let revision = self.plan_revision().filter(|_| !self.cluster.nodes().is_empty())?;
        if self.headroom.as_ref().is_some_and(|headroom| headroom.revision == revision) {
            return None;
        }
        let (cluster, version) = (self.cluster.clone(), self.settings.version);
        Some(HeadroomJob { cluster, version, revision, at: now })
    }
}

impl HeadroomJob {
    /// Works it out. None once `goes_on`, which is asked now and then, returns false.
    pub fn work(self, goes_on: impl FnMut() -> bool) -> Option<HeadroomSnapshot> {
        let snapshot = Snapshot::new(&self.cluster, self.version);
        let headroom = headroom(&self.cluster, &snapshot, goes_on)?;
        Some(HeadroomSnapshot { headroom, at: self.at, revision: self.revision })
    }
}
