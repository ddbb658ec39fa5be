//! Jobs that make plans on another thread, because a plan for many nodes takes a while.

use super::{
    action::Action, cancellation::Cancellation, plan::Plan, rules::EvictionRules, targets::PlanError,
};
use crate::{
    cluster::Cluster,
    placement::{Snapshot, SnapshotLease},
};
use kordon_time::Timestamp;

/// A plan to be made, with copies of all its inputs.
#[derive(Debug)]
pub struct PlanJob {
    pub action: Action,
    pub cluster: Cluster,
    pub rules: EvictionRules,
    /// Snapshot for placements; `None` if the plan does not need to show where pods land.
    pub snapshot: Option<SnapshotLease>,
    pub now: Timestamp,
}

/// The result of a [`PlanJob`].
#[derive(Debug)]
pub struct PlanResult {
    pub plan: Result<Box<Plan>, PlanError>,
    /// The snapshot of the job, updated to the cluster of the job; `None` if the job had no snapshot.
    pub snapshot: Option<Snapshot>,
}

impl PlanJob {
    pub fn work(self) -> PlanResult {
        self.work_until(&Cancellation::default())
    }

    /// Makes the plan. If the work is cancelled, returns soon; the result must then be discarded.
    pub fn work_until(self, cancellation: &Cancellation) -> PlanResult {
        let Self { action, cluster, rules, snapshot, now } = self;
        let snapshot = snapshot.map(|lease| lease.of(&cluster, rules.version));
        let plan = Plan::over_until(cancellation, action, &cluster, snapshot.clone(), rules, now);
        PlanResult { plan: plan.map(Box::new), snapshot }
    }
}
