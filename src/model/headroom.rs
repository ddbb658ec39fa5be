//! What the cluster could lose: worked out beside the loop ([`Model::next_headroom_job`], [`HeadroomJob::work`]) and kept
//! in [`Model::headroom`] until something newer is known.

use super::Model;
use crate::{
    cluster::{Cluster, FeedKind},
    engine::{ServerVersion, ZoneState, ZoneView},
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

/// What is known of headroom.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum KnownHeadroom<'a> {
    Known(&'a Headroom),
    /// There is no answer yet, or the last one is of a minute ago and something has changed since.
    Computing,
    /// Nodes or pods are not seen as they are now, or a zone is down.
    Withheld,
}

impl<'a> KnownHeadroom<'a> {
    pub const fn known(self) -> Option<&'a Headroom> {
        match self {
            Self::Known(headroom) => Some(headroom),
            Self::Computing | Self::Withheld => None,
        }
    }
}

/// Copies of everything that headroom is worked out from.
#[derive(Debug)]
pub struct HeadroomJob {
    cluster: Cluster,
    version: ServerVersion,
    revision: u64,
    at: Timestamp,
}

/// An answer that is older is withheld where something that it depends on has changed since.
const HOLDS_FOR: Span = Span::from_secs(60);

impl Model {
    /// What the cluster could lose, if that is known now.
    pub fn known_headroom(&self, now: Timestamp) -> KnownHeadroom<'_> {
        let is_missing = |kind| self.cluster.gap(kind).is_some();
        let is_down = |zone: &ZoneView| zone.state == ZoneState::FullDisruption;
        if is_missing(FeedKind::Nodes) || is_missing(FeedKind::Pods) || self.views.zones.iter().any(is_down) {
            return KnownHeadroom::Withheld;
        }
        let holds = |known: &&HeadroomSnapshot| {
            self.plan_revision() == Some(known.revision) || now.since(known.at) <= HOLDS_FOR
        };
        match self.headroom.as_ref().filter(holds) {
            Some(known) => KnownHeadroom::Known(&known.headroom),
            None => KnownHeadroom::Computing,
        }
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
