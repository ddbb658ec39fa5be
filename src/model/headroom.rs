//! What the cluster could lose: worked out beside the loop in slices ([`Model::next_headroom_job`],
//! [`HeadroomJob::advance`]) and kept in [`Model::headroom`] until something newer is known.

use super::Model;
use crate::{
    cluster::{Cluster, FeedKind},
    engine::{ServerVersion, ZoneState, ZoneView},
    placement::ClusterSnapshot,
    plan::{Headroom, HeadroomWork},
    time::{Span, Timestamp},
};

/// What the cluster could lose at a moment.
#[derive(Clone, Debug, PartialEq)]
pub struct HeadroomSnapshot {
    pub headroom: Headroom,
    /// The time of the cluster state that its oldest answer is of.
    pub at: Timestamp,
    /// [`Model::plan_revision`] at that moment; none while there is more to work out.
    revision: Option<u64>,
}

impl HeadroomSnapshot {
    /// Whether nothing was left to work out.
    pub const fn is_finished(&self) -> bool {
        self.revision.is_some()
    }
}

/// What is known of headroom.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum KnownHeadroom<'a> {
    Known(&'a Headroom),
    /// The last answer, of some of its losses, is older than a minute, and something has changed since.
    Outdated {
        headroom: &'a Headroom,
        at: Timestamp,
    },
    /// There is no answer yet.
    Computing,
    /// Nodes or pods are not seen as they are now, or a zone is down.
    Withheld,
}

impl<'a> KnownHeadroom<'a> {
    pub const fn known(self) -> Option<&'a Headroom> {
        match self {
            Self::Known(headroom) => Some(headroom),
            Self::Outdated { .. } | Self::Computing | Self::Withheld => None,
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
    /// Something else waits for the state ([`HeadroomProgress::state`]).
    is_awaited: bool,
}

/// An answer that is older is outdated where something that it depends on has changed since.
const HOLDS_FOR: Span = Span::from_secs(60);

impl Model {
    /// What the cluster could lose, if that is known now.
    pub fn known_headroom(&self, now: Timestamp) -> KnownHeadroom<'_> {
        let is_missing = |kind| self.cluster.gap(kind).is_some();
        let is_down = |zone: &ZoneView| zone.state == ZoneState::FullDisruption;
        if is_missing(FeedKind::Nodes) || is_missing(FeedKind::Pods) || self.views.zones.iter().any(is_down) {
            return KnownHeadroom::Withheld;
        }
        let known =
            self.headroom.as_ref().filter(|known| known.is_finished() || !known.headroom.is_undecided());
        let Some(known) = known else { return KnownHeadroom::Computing };
        let is_current = known.is_finished() && self.plan_revision() == known.revision;
        if is_current || now.since(known.at) <= HOLDS_FOR {
            KnownHeadroom::Known(&known.headroom)
        } else {
            KnownHeadroom::Outdated { headroom: &known.headroom, at: known.at }
        }
    }

    /// The next slice of headroom to work out; none while it is known, or nodes or pods are not.
    pub fn next_headroom_job(&self, now: Timestamp) -> Option<HeadroomJob> {
        let revision = self.plan_revision().filter(|_| !self.cluster.nodes().is_empty())?;
        if self.headroom.as_ref().is_some_and(|headroom| headroom.revision == Some(revision)) {
            return None;
        }
        let (cluster, version) = (self.cluster.clone(), self.settings.version);
        Some(HeadroomJob { cluster, version, revision, at: now, is_awaited: false })
    }
}

/// A newer state of the cluster is taken at most this often, so that answers that take long come to an end beside it.
const ROUND: Span = Span::from_secs(5);

/// Headroom that is worked out in slices.
#[derive(Debug, Default)]
pub struct HeadroomProgress {
    work: HeadroomWork,
    /// Of the state that was started last.
    revision: Option<u64>,
}

impl HeadroomProgress {
    /// A copy of the state that was started last; none before the first.
    pub fn state(&self) -> Option<ClusterSnapshot> {
        self.work.state()
    }

    /// Whether a state is there.
    pub const fn has_state(&self) -> bool {
        self.work.has_state()
    }

    /// Whether there will be a state once the next slices are done.
    pub const fn is_starting(&self) -> bool {
        self.work.is_starting()
    }
}

impl HeadroomJob {
    /// Makes the snapshot of a state in one go, where something else waits for it.
    pub const fn awaited(mut self, is_awaited: bool) -> Self {
        self.is_awaited = is_awaited;
        self
    }

    /// Works it out in one go. None once `goes_on`, which is asked now and then, returns false.
    pub fn work(self, goes_on: impl FnMut() -> bool) -> Option<HeadroomSnapshot> {
        let found = self.advance(&mut HeadroomProgress::default(), goes_on);
        found.filter(HeadroomSnapshot::is_finished)
    }

    /// Continues earlier work while `goes_on`, which is asked before each small step. None if nothing is known yet.
    pub fn advance(
        self,
        progress: &mut HeadroomProgress,
        mut goes_on: impl FnMut() -> bool,
    ) -> Option<HeadroomSnapshot> {
        let HeadroomProgress { work, revision } = progress;
        let is_due = work.started_at().is_none_or(|started| self.at.since(started) >= ROUND);
        if *revision != Some(self.revision) && (work.is_done() || work.is_proved() && is_due) {
            work.start(self.cluster, self.version, self.at);
            *revision = Some(self.revision);
        }
        if self.is_awaited {
            work.finish_start();
        }
        work.advance(&mut goes_on);
        let at = work.answered_at().or(work.started_at().filter(|_| work.is_done()))?;
        Some(HeadroomSnapshot {
            headroom: work.headroom(),
            at,
            revision: revision.filter(|_| work.is_done()),
        })
    }
}
