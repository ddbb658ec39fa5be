//! Headroom (N-1): the nodes and zones that the cluster can lose. It is computed in the background in slices
//! ([`Model::next_headroom_job`], [`HeadroomJob::advance`]) and kept in [`Predictions`](super::Predictions) until a
//! newer result arrives.

use super::Model;
use kordon_core::{
    cluster::{Cluster, FeedKind},
    engine::{ServerVersion, ZoneState, ZoneView},
    placement::ClusterSnapshot,
    plan::{Headroom, HeadroomClause, HeadroomWork},
};
use kordon_time::{Span, Timestamp};

/// The headroom of the cluster at a point in time, as far as it is computed.
#[derive(Clone, Debug, PartialEq)]
pub struct HeadroomSnapshot {
    pub headroom: Headroom,
    /// Time of the newest cluster state from which a part of the headroom is computed.
    pub at: Timestamp,
    /// [`Model::headroom_revision`] of the cluster state at `at`.
    revision: u64,
    is_finished: bool,
    is_stopped: bool,
}

impl HeadroomSnapshot {
    /// Marks the computation as stopped, so that no further slices follow.
    pub fn stopped(self) -> Self {
        Self { is_stopped: true, ..self }
    }

    /// Whether the loss of every node and zone is computed.
    pub const fn is_finished(&self) -> bool {
        self.is_finished
    }
}

/// The part of the headroom that can be shown now.
#[derive(Clone, Debug, PartialEq)]
pub enum KnownHeadroom<'a> {
    /// The headroom is known, at least in part. `clause` states it in words, and `rest` is the progress of a
    /// computation that is not complete.
    Known { headroom: &'a Headroom, clause: HeadroomClause, rest: Option<HeadroomRest> },
    /// No loss of a node or zone is computed yet, or all results are too old to show.
    Computing(HeadroomRest),
    /// No headroom is shown, because nodes or pods are not live, an input is not listed yet, a zone is down, or there
    /// is nothing to lose.
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

/// Progress of a headroom computation that is not complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadroomRest {
    /// Share of the nodes and zones whose loss is computed, in percent.
    pub percent: usize,
    /// Whether the computation continues.
    pub goes_on: bool,
}

/// Copies of all inputs of the headroom computation.
#[derive(Debug)]
pub struct HeadroomJob {
    cluster: Cluster,
    version: ServerVersion,
    revision: u64,
    at: Timestamp,
    /// Whether another job waits for the snapshot ([`HeadroomProgress::state`]).
    is_awaited: bool,
}

impl Model {
    /// Returns the headroom of the cluster, as far as it can be shown at `now`.
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
        let Some(known) = self.predictions.headroom() else {
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

    /// Revision of the state from which headroom is computed: the number of changes that affect placement. `None` until
    /// all inputs that kordon reads are listed.
    pub fn headroom_revision(&self) -> Option<u64> {
        self.headroom_gaps().is_empty().then_some(self.changes.placements())
    }

    /// Returns the next slice of the computation; `None` if the headroom is complete or its inputs are not known.
    pub fn next_headroom_job(&self, now: Timestamp) -> Option<HeadroomJob> {
        let revision = self.headroom_revision().filter(|_| !self.cluster.nodes().is_empty())?;
        if self.predictions.headroom().is_some_and(|known| known.is_finished && known.revision == revision) {
            return None;
        }
        let (cluster, version) = (self.cluster.clone(), self.settings.version);
        Some(HeadroomJob { cluster, version, revision, at: now, is_awaited: false })
    }
}

/// Minimum time between two snapshots of the cluster. Taking a snapshot costs time for everything that has changed.
const ROUND: Span = Span::from_secs(5);

/// Progress of the headroom computation, which is done in slices.
#[derive(Debug, Default)]
pub struct HeadroomProgress {
    work: HeadroomWork,
    /// Revision of the cluster state for which the latest computation was started.
    started: Option<u64>,
    /// Revision of the cluster state from which the current results are computed.
    revision: Option<u64>,
}

impl HeadroomProgress {
    /// Returns a copy of the newest cluster state whose snapshot is complete; `None` until the first snapshot is
    /// complete.
    pub fn state(&self) -> Option<ClusterSnapshot> {
        self.work.state()
    }

    /// Whether there is a cluster state with a complete snapshot, which [`state`](Self::state) returns.
    pub const fn has_state(&self) -> bool {
        self.work.has_state()
    }

    /// Whether the computation for a new cluster state has begun, but the snapshot of this state is not complete yet.
    pub const fn is_starting(&self) -> bool {
        self.work.is_starting()
    }

    /// Removes the limit on the work for zones, so that the loss of every zone is computed, however long that takes.
    pub const fn with_all_zones(mut self) -> Self {
        self.work.limit_looks(usize::MAX);
        self
    }
}

impl HeadroomJob {
    /// If `is_awaited` is true, [`advance`](Self::advance) completes the snapshot in one slice, because another job
    /// waits for it.
    pub const fn awaited(mut self, is_awaited: bool) -> Self {
        self.is_awaited = is_awaited;
        self
    }

    /// Computes the whole headroom without interruption.
    pub fn work(self) -> Option<HeadroomSnapshot> {
        self.advance(&mut HeadroomProgress::default(), || true)
    }

    /// Continues the computation until it is complete or `goes_on` returns false. `goes_on` is called before each small
    /// step. Returns `None` until the first snapshot is complete.
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
