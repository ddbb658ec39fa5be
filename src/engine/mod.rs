//! The node lifecycle controller: health, zones, rate-limited queues, taints, taint eviction.

pub mod effect;
pub mod settings;
pub mod view;
pub mod why;
pub mod zone;

pub use effect::{Effect, EffectId, Event, EventObject, Level, Notice, Outcome, UnknownCondition, Write};
pub use settings::{Origin, Rules, ServerVersion, Setting, Settings};
pub use view::{Deadline, Due, NodeHealth, PendingEviction, Stage, ZoneView};
pub use why::{Cause, Known, Sign, Why};
pub use zone::ZoneState;

use crate::{
    cluster::{Applied, Cluster, NodeName},
    time::Timestamp,
};

/// The engine's state. (Contract: see the methods; the implementation follows.)
#[derive(Clone, Debug)]
pub struct Engine {
    settings: Settings,
}

impl Engine {
    /// Begins as upstream does: every node gets a fresh grace period. The first pass is at `first_pass`.
    pub fn start(settings: Settings, first_pass: Timestamp) -> Self {
        let _ = first_pass;
        Self { settings }
    }

    /// Begins as the shadow of a controller that has been running.
    pub fn attach(settings: Settings, cluster: &Cluster, now: Timestamp) -> Self {
        let _ = (cluster, now);
        Self { settings }
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Takes in what a change did to the cluster, after it was applied.
    pub fn handle_change(&mut self, cluster: &Cluster, applied: &Applied, now: Timestamp) {
        let _ = (cluster, applied, now);
    }

    /// Takes in what came of an effect.
    pub fn handle_outcome(&mut self, cluster: &Cluster, effect: EffectId, outcome: Outcome, now: Timestamp) {
        let _ = (cluster, effect, outcome, now);
    }

    /// Does what is due. A call before anything is due does nothing.
    pub fn handle_timeout(&mut self, cluster: &Cluster, now: Timestamp) {
        let _ = (cluster, now);
    }

    /// Takes in whether the watches of nodes and leases are up to date. While they are not, no node is judged.
    pub fn handle_sight(&mut self, cluster: &Cluster, sight: Sight, now: Timestamp) {
        let _ = (cluster, sight, now);
    }

    pub fn poll_effect(&mut self) -> Option<Effect> {
        None
    }

    pub fn poll_notice(&mut self) -> Option<Notice> {
        None
    }

    /// When [`Engine::handle_timeout`] must be called next, and why.
    pub fn poll_timeout(&self) -> Option<Deadline> {
        None
    }

    /// Whether predictions can be made at all.
    pub fn footing(&self) -> Footing {
        Footing::Firm
    }

    /// What is believed of a node; none where it has not been seen by a pass.
    pub fn health(&self, node: &NodeName) -> Option<NodeHealth> {
        let _ = node;
        None
    }

    /// Every zone, by its key.
    pub fn zones(&self, now: Timestamp) -> Vec<ZoneView> {
        let _ = now;
        Vec::new()
    }

    /// Every pod on a node with NoExecute taints, soonest first, those that never fall due last.
    pub fn evictions(&self, cluster: &Cluster) -> Vec<PendingEviction> {
        let _ = cluster;
        Vec::new()
    }
}

/// Whether we see nodes and leases as they are now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sight {
    Clear,
    /// The watches have been silent or broken since then.
    Blind {
        since: Timestamp,
    },
}

/// What the engine's word is worth now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Footing {
    /// We see, and a controller acts (or kordon is the controller).
    Firm,
    /// We do not see: nothing can be known of what happened since then.
    Blind { since: Timestamp },
    /// The controller manager has not renewed its Lease since then: nothing will happen until one does.
    NoController { since: Timestamp },
}
