//! Effect of a set of flags: how long it takes from a node's death until its pods run elsewhere, the load of heartbeats
//! on the API server, and which outages of the network evict pods.
//!
//! The times and the risks come from running the engine on a virtual clock over a synthetic cluster, at several phases
//! of heartbeats and passes. They equal the tables of docs/upstream/node-lifecycle.md#11.2 and #11.3.

mod blip;
mod death;
mod load;
mod profile;
mod synthetic;

pub use blip::{Blip, BlipRisk, BlipScope, CountRange, Harmless};
pub use death::{DeathPhase, DeathTimes, Milestones, TimingRange, milestones};
pub use load::{ApiLoad, COMPACTION, LEASE_BYTES, NODE_BYTES, STATUS_TRIES};
pub use profile::{HeartbeatKind, KubeletFlags, PROFILE_NAMES, TimingProfile};
pub use synthetic::{ClusterSize, PassDuration};

use kordon_time::Span;

/// All results for one profile.
#[derive(Clone, Debug, PartialEq)]
pub struct Timing {
    pub profile: TimingProfile,
    pub death: DeathTimes,
    pub load: ApiLoad,
    pub harmless: Harmless,
    /// The effects of each requested blip (a temporary network outage) on one node, on one zone and on all nodes.
    pub risks: Vec<BlipRisk>,
}

impl Timing {
    /// Computes everything for a profile, in a cluster of this size, with blips (network outages) of these lengths.
    pub fn new(profile: TimingProfile, size: ClusterSize, blips: &[Span]) -> Self {
        Self {
            death: DeathTimes::new(&profile, size),
            load: ApiLoad::new(&profile, size.nodes),
            harmless: Harmless::new(&profile, size),
            risks: BlipRisk::all(&profile, size, blips),
            profile,
        }
    }
}
