//! Finds the changes that affect rows on screen. These changes need a new frame at once. All other changes appear when
//! views and lists are updated ([`App::refresh`](super::App::refresh)): on a large cluster hundreds of objects change
//! each second, and few of them are on screen.

use super::{Listing, Pane, Screen, groups::NodeRow, overlays::Overlay};
use crate::{
    k8s::feed::{FeedEvent, FeedKind, FeedState},
    model::{AppliedChange, Feeds, Impact, Model},
};
use kordon_core::cluster::{Applied, Delta, NodeName, Pod};

/// Whether a watch event changes the displayed state of the watches: a state, the progress of a list, or an error. The
/// age of the last message appears with the next tick.
pub(super) fn says_more_of_watches(event: &FeedEvent, known: &Feeds) -> bool {
    match event {
        FeedEvent::Changes(_) => false,
        FeedEvent::Health(kind, health) => known.state(*kind) != Some(&health.state),
        FeedEvent::ScopeState(..) | FeedEvent::ClockDifference(_) | FeedEvent::Trouble(_) => true,
    }
}

/// Whether a watch event completes the list of a kind of object that the user waits for.
pub(super) fn ends_awaited_list(event: &FeedEvent, known: &Feeds) -> bool {
    let FeedEvent::Health(kind, health) = event else { return false };
    matches!(kind, FeedKind::Nodes | FeedKind::Leases | FeedKind::Pods)
        && matches!(known.state(*kind), Some(FeedState::Listing { .. }))
        && health.state == FeedState::Live
}

/// Revision numbers of the session's departures and journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Recorded {
    departures: u64,
    journal: u64,
}

impl Recorded {
    pub(super) fn from_model(model: &Model) -> Self {
        Self { departures: model.departures.revision(), journal: model.journal.revision() }
    }
}

impl Screen {
    /// Whether a change shows in a row on screen.
    pub(super) fn shows(&self, change: &AppliedChange, model: &Model) -> bool {
        // The information sheet counts all objects, so every change may show there.
        let counts_all = || self.overlays.iter().any(|overlay| matches!(overlay, Overlay::Info(_)));
        let in_row = match (&change.applied, change.impact) {
            (Applied::Node(_), Impact::Node) => true,
            (Applied::Node(delta), _) => self.shows_node(delta.any(|node| &node.name)),
            (Applied::Lease(delta), _) => self.shows_node(delta.any(|lease| &lease.node)),
            (Applied::Pod(_), Impact::PodVersion) => false,
            (Applied::Pod(delta), _) => self.shows_pod(delta, model),
            (Applied::Leader(..) | Applied::KordonLease | Applied::Other, _) => false,
        };
        in_row || counts_all()
    }

    /// Whether new departures or journal entries show in the titles of panes on screen.
    pub(super) fn shows_records_since(&self, before: &Recorded, model: &Model) -> bool {
        let now = Recorded::from_model(model);
        let is_drawn = |pane| self.drawn.contains(&pane);
        (now.departures != before.departures && is_drawn(Pane::Departures))
            || (now.journal != before.journal && is_drawn(Pane::Journal))
    }

    fn shows_node(&self, name: Option<&NodeName>) -> bool {
        let rows = self.rows_on_screen(Pane::Nodes, &self.nodes.list);
        let shows_pods = name.is_some() && self.pods_of.as_ref() == name;
        (shows_pods && self.drawn.contains(&Pane::Pods))
            || rows.iter().filter_map(NodeRow::node).any(|node| Some(node) == name)
    }

    /// Whether a change of a pod shows in its own row, in its node's row, in the number of pods waiting for a node, or
    /// in the outcome of another pod of its owner.
    fn shows_pod(&self, delta: &Delta<Pod>, model: &Model) -> bool {
        let evictions = self.rows_on_screen(Pane::Evictions, &self.evictions.list);
        let owners = evictions.iter().filter_map(|key| model.cluster.pod(key)?.owner.as_ref());
        delta.old.iter().chain(&delta.new).any(|pod| {
            pod.is_unscheduled()
                || evictions.contains(&pod.key)
                || self.shows_node(pod.node.as_ref())
                || pod.owner.as_ref().is_some_and(|owner| owners.clone().any(|other| other.uid == owner.uid))
        })
    }

    /// The rows of a pane at the last draw; empty if the pane was not drawn.
    fn rows_on_screen<'a, K: PartialEq + Clone>(&self, pane: Pane, list: &'a Listing<K>) -> &'a [K] {
        if self.drawn.contains(&pane) { list.shown_keys() } else { &[] }
    }
}
