//! What the cluster could lose: worked out elsewhere ([`App::next_survey`], [`HeadroomJob::work`], [`App::surveyed`]), and
//! told until something newer is known.

use super::{App, Knowledge};
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
    /// When the cluster was as it was looked at.
    pub at: Timestamp,
    /// [`Knowledge::layout`] at that moment.
    layout: u64,
}

/// What a cluster can lose, to be worked out, with copies of all that it takes.
#[derive(Debug)]
pub struct HeadroomJob {
    cluster: Cluster,
    version: ServerVersion,
    layout: u64,
    at: Timestamp,
}

/// From here on its age is told, where pods or nodes have changed since.
const TELLS_ITS_AGE: Span = Span::from_secs(90);

impl Knowledge {
    /// How old the answer is; none where it still holds, or is too young for that to matter.
    pub fn spare_is_of(&self, now: Timestamp) -> Option<Timestamp> {
        let spare = self.spare.as_ref()?;
        let stale = self.layout() != Some(spare.layout) && now.since(spare.at) > TELLS_ITS_AGE;
        stale.then_some(spare.at)
    }
}

impl App {
    /// What there is to work out: none while it is known, or nodes or pods are not.
    pub fn next_survey(&self, now: Timestamp) -> Option<HeadroomJob> {
        let layout = self.live.layout().filter(|_| !self.live.cluster.nodes().is_empty())?;
        if self.live.spare.as_ref().is_some_and(|spare| spare.layout == layout) {
            return None;
        }
        let (cluster, version) = (self.live.cluster.clone(), self.settings.version);
        Some(HeadroomJob { cluster, version, layout, at: now })
    }

    /// Takes in what came of it.
    pub fn surveyed(&mut self, spare: HeadroomSnapshot) {
        self.live.spare = Some(spare);
    }
}

impl HeadroomJob {
    /// Works it out. None where `go_on`, which is asked now and then, said no.
    pub fn work(self, go_on: impl FnMut() -> bool) -> Option<HeadroomSnapshot> {
        let snapshot = Snapshot::new(&self.cluster, self.version);
        let headroom = headroom(&self.cluster, &snapshot, go_on)?;
        Some(HeadroomSnapshot { headroom, at: self.at, layout: self.layout })
    }
}
