//! Counts of changes. A value that is computed from the model is cached with a count, and computed again when the count
//! has changed.

use super::impact::{AppliedChange, Impact};
use kordon_core::cluster::Applied;

/// Number of bits by which the number of a moment in a playback is shifted to the left. The result is added to the
/// moment's counts. This keeps counts unique across seeks, so that every value cached with a count is recomputed.
const APART: u32 = 40;

/// Number of changes of one thing. Equal counts in one playback mean that the thing is the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChangeCount(u64);

impl ChangeCount {
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Increases the count if something has changed.
    pub fn count(&mut self, has_changed: bool) {
        self.0 += u64::from(has_changed);
    }

    /// Adds an offset to the count, so that it differs from the counts at other moments of a playback.
    pub const fn set_apart(&mut self, moment: u64) {
        self.0 += moment << APART;
    }
}

/// Numbers of changes of the cluster, by the part of the model that they affect.
#[derive(Clone, Copy, Debug, Default)]
pub struct ChangeCounts {
    nodes: ChangeCount,
    unscheduled: ChangeCount,
    moves: ChangeCount,
    plans: ChangeCount,
    placements: ChangeCount,
}

impl ChangeCounts {
    /// Counts a change of the cluster.
    pub fn on_applied(&mut self, change: &AppliedChange) {
        let AppliedChange { applied, impact } = change;
        self.nodes.count(*impact == Impact::Node);
        self.unscheduled.count(impact.bears_on_plans() && concerns_unscheduled(applied));
        self.moves.count(moves_pod(applied));
        self.plans.count(impact.bears_on_plans());
        self.placements.count(impact.bears_on_placement());
    }

    /// Adds an offset to all counts, so that they differ from the counts at other moments of a playback.
    pub fn set_apart(&mut self, moment: u64) {
        let Self { nodes, unscheduled, moves, plans, placements } = self;
        for count in [nodes, unscheduled, moves, plans, placements] {
            count.set_apart(moment);
        }
    }

    /// Number of changes of node objects other than heartbeats.
    pub const fn nodes(&self) -> u64 {
        self.nodes.get()
    }

    /// Revision of the pods that wait for a node. It increases with each change of such a pod.
    pub const fn unscheduled(&self) -> u64 {
        self.unscheduled.get()
    }

    /// Number of pods that came to a node or left one.
    pub const fn moves(&self) -> u64 {
        self.moves.get()
    }

    /// Number of changes of the cluster that may alter plans.
    pub const fn plans(&self) -> u64 {
        self.plans.get()
    }

    /// Number of changes of the cluster that may alter placements.
    pub const fn placements(&self) -> u64 {
        self.placements.get()
    }
}

/// Revisions at the last refresh. As long as they stay the same, so do the lists made from the model, and a screen that
/// shows these lists only has to update times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Revision {
    /// Number of changes of node objects, without heartbeats.
    pub nodes: u64,
    /// Number of changes of the nodes' states.
    pub states: u64,
    /// Number of changes of zones and of the confidence in predictions.
    pub zones: u64,
    /// Number of changes of the nodes' next events.
    pub next: u64,
    /// Number of changes of evictions and their outcomes.
    pub evictions: u64,
    /// Revision of the pods that wait for a node. It increases with each change of such a pod.
    pub unscheduled: u64,
    /// Number of pods that came to a node or left one.
    pub moves: u64,
    pub departures: u64,
    pub journal: u64,
    /// Number of changes of the results of background work, such as forecasts.
    pub results: u64,
}

/// Whether the changed object is a pod that waits for a node, or that waited for one before the change.
fn concerns_unscheduled(applied: &Applied) -> bool {
    let Applied::Pod(delta) = applied else { return false };
    delta.old.iter().chain(&delta.new).any(|pod| pod.is_unscheduled())
}

/// Whether a pod came to a node or left one.
fn moves_pod(applied: &Applied) -> bool {
    let Applied::Pod(delta) = applied else { return false };
    let [old, new] = [&delta.old, &delta.new].map(|pod| pod.as_ref().and_then(|pod| pod.node.as_ref()));
    old != new
}
