//! N-1: what the cluster could lose, worked out beside the loop in slices ([`Model::next_headroom_job`],
//! [`HeadroomJob::advance`]) and kept in [`Model::headroom`] until something newer is known.

use super::Model;
use kordon_core::{
    cluster::{Cluster, FeedKind},
    engine::{ServerVersion, ZoneState, ZoneView},
    placement::ClusterSnapshot,
    plan::{Headroom, HeadroomClause, HeadroomWork},
};
use kordon_time::{Span, Timestamp};

/// What the cluster could lose at a moment, as far as it is worked out.
#[derive(Clone, Debug, PartialEq)]
pub struct HeadroomSnapshot {
    pub headroom: Headroom,
    /// The time of the newest state of the cluster that an answer rests on.
    pub at: Timestamp,
    /// [`Model::headroom_revision`] of that state.
    revision: u64,
    is_finished: bool,
    is_stopped: bool,
}

impl HeadroomSnapshot {
    /// Nothing more of it is worked out.
    pub fn stopped(self) -> Self {
        Self { is_stopped: true, ..self }
    }

    /// Whether nothing was left to work out.
    pub const fn is_finished(&self) -> bool {
        self.is_finished
    }
}

/// What is known of headroom.
#[derive(Clone, Debug, PartialEq)]
pub enum KnownHeadroom<'a> {
    /// What is known and what is said of it, and what is worked out beyond that.
    Known { headroom: &'a Headroom, clause: HeadroomClause, rest: Option<HeadroomRest> },
    /// There is no answer yet, or only answers that are too old to be shown.
    Computing(HeadroomRest),
    /// Nodes or pods are not seen as they are now, something that the answer rests on has not been listed yet, a zone is down, or
    /// there is nothing to lose.
    Withheld,
}

impl<'a> KnownHeadroom<'a> {
    pub fn known(self) -> Option<(&'a Headroom, HeadroomClause)> {
        match self {
            Self::Known { headroom, clause, .. } => Some((headroom, clause)),
            Self::Computing(_) | Self::Withheld => None,
        }
    }
}

/// Losses that are not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadroomRest {
    /// How much of all of them is answered.
    pub percent: usize,
    /// Whether the others are worked out.
    pub goes_on: bool,
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

impl Model {
    /// What the cluster could lose, if that is known now.
    pub fn known_headroom(&self, now: Timestamp) -> KnownHeadroom<'_> {
        let is_missing = |kind| self.cluster.gap(kind).is_some();
        let is_down = |zone: &ZoneView| zone.state == ZoneState::FullDisruption;
        let revision = self.headroom_revision();
        if revision.is_none()
            || is_missing(FeedKind::Nodes)
            || is_missing(FeedKind::Pods)
            || self.views.zones.iter().any(is_down)
        {
            return KnownHeadroom::Withheld;
        }
        let Some(known) = &self.headroom else {
            return KnownHeadroom::Computing(HeadroomRest { percent: 0, goes_on: true });
        };
        let headroom = &known.headroom;
        if headroom.nodes.tried == 0 {
            return KnownHeadroom::Withheld;
        }
        let newest = (revision != Some(known.revision)).then(|| now.since(known.at).or_zero());
        let rest = HeadroomRest { percent: headroom.progress(), goes_on: !known.is_stopped };
        match headroom.clause(newest, now, |zone| self.watchlist.zone_names().short(zone)) {
            Some(clause) => {
                let rest = Some(rest).filter(|_| !headroom.is_complete());
                KnownHeadroom::Known { headroom, clause, rest }
            }
            None => KnownHeadroom::Computing(rest),
        }
    }

    /// Names the state that headroom is worked out from: it counts the changes that bear on it. None before everything that it
    /// rests on has been listed once, as far as it is read.
    pub fn headroom_revision(&self) -> Option<u64> {
        self.headroom_gaps().is_empty().then_some(self.placement_changes)
    }

    /// The next slice of headroom to work out; none while it is known, or what it rests on is not.
    pub fn next_headroom_job(&self, now: Timestamp) -> Option<HeadroomJob> {
        let revision = self.headroom_revision().filter(|_| !self.cluster.nodes().is_empty())?;
        if self.headroom.as_ref().is_some_and(|known| known.is_finished && known.revision == revision) {
            return None;
        }
        let (cluster, version) = (self.cluster.clone(), self.settings.version);
        Some(HeadroomJob { cluster, version, revision, at: now, is_awaited: false })
    }
}

/// A newer state of the cluster is taken at most this often: to take one costs by what has changed.
const ROUND: Span = Span::from_secs(5);

/// Headroom that is worked out in slices.
#[derive(Debug, Default)]
pub struct HeadroomProgress {
    work: HeadroomWork,
    /// Of the state that was started last.
    started: Option<u64>,
    /// Of the state whose losses are answered.
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

    /// Answers all zones, however long that takes.
    pub const fn with_all_zones(mut self) -> Self {
        self.work.limit_looks(usize::MAX);
        self
    }
}

impl HeadroomJob {
    /// Makes the snapshot of a state in one go, where something else waits for it.
    pub const fn awaited(mut self, is_awaited: bool) -> Self {
        self.is_awaited = is_awaited;
        self
    }

    /// Works it out in one go.
    pub fn work(self) -> Option<HeadroomSnapshot> {
        self.advance(&mut HeadroomProgress::default(), || true)
    }

    /// Continues earlier work while `goes_on`, which is asked before each small step. None before there is a state.
    pub fn advance(
        self,
        progress: &mut HeadroomProgress,
        mut goes_on: impl FnMut() -> bool,
    ) -> Option<HeadroomSnapshot> {
        let HeadroomProgress { work, started, revision } = progress;
        let is_due = work.started_at().is_none_or(|started| self.at.since(started) >= ROUND);
        if *started != Some(self.revision) && !work.is_starting() && (work.is_done() || is_due) {
            work.start(self.cluster, self.version, self.at);
            *started = Some(self.revision);
        }
        if self.is_awaited {
            work.finish_start();
        }
        work.advance(&mut goes_on);
        if !work.is_starting() {
            *revision = *started;
        }
        Some(HeadroomSnapshot {
            headroom: work.headroom(),
            at: work.state_at()?,
            revision: (*revision)?,
            is_finished: work.is_done(),
            is_stopped: false,
        })
    }
}
