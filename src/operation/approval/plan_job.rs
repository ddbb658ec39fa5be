//! The plan that an approval needs, made on another thread.

use crate::{
    cluster::Cluster,
    engine::ServerVersion,
    placement::Snapshot,
    plan::{Action, Plan},
    time::Timestamp,
};

/// A plan to be made, with all that it takes.
#[derive(Debug)]
pub struct PlanJob {
    pub action: Action,
    pub cluster: Cluster,
    pub version: ServerVersion,
    pub now: Timestamp,
}

impl PlanJob {
    /// Makes the plan. Landings are worked out only where pods leave.
    ///
    /// # Errors
    /// What it names is not there, in words.
    pub fn work(self) -> Result<Box<Plan>, String> {
        let Self { action, cluster, version, now } = self;
        let snapshot = super::touches_pods(&action).then(|| Snapshot::new(&cluster, version));
        Plan::over(action, &cluster, snapshot, version, now).map(Box::new).map_err(|error| error.to_string())
    }
}
