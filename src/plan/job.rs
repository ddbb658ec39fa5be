//! A plan to be made on another thread: over many nodes it takes a while.

use super::{action::Action, plan::Plan, rules::EvictionRules, targets::PlanError};
use crate::{
    cluster::Cluster,
    placement::{Snapshot, SnapshotLease},
    time::Timestamp,
};

/// A plan to be made, with copies of everything that it takes.
#[derive(Debug)]
pub struct PlanJob {
    pub action: Action,
    pub cluster: Cluster,
    pub rules: EvictionRules,
    /// None if the plan need not say where pods land.
    pub snapshot: Option<SnapshotLease>,
    pub now: Timestamp,
}

/// The result of a job.
#[derive(Debug)]
pub struct PlanResult {
    pub plan: Result<Box<Plan>, PlanError>,
    /// Brought up to the cluster of the job.
    pub snapshot: Option<Snapshot>,
}

impl PlanJob {
    pub fn work(self) -> PlanResult {
        let Self { action, cluster, rules, snapshot, now } = self;
        let snapshot = snapshot.map(|lease| lease.of(&cluster, rules.version));
        let plan = Plan::over(action, &cluster, snapshot.clone(), rules, now).map(Box::new);
        PlanResult { plan, snapshot }
    }
}
