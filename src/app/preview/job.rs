//! The job behind a preview. It runs on another thread, since a plan for many nodes takes a while.

use std::collections::BTreeSet;

use super::{
    failure_rows::{FailureImpact, FailureView},
    plan_rows::PlanView,
    request::{PlanRequest, Targets},
};
use kordon_core::{
    cluster::{Cluster, NodeName, Scope, ZoneKey},
    engine::{Confidence, Engine, ServerVersion},
    forecast::{Assumptions, Forecast, ForecastStart, ForecastTotals},
    placement::{Snapshot, SnapshotLease},
    plan::{Cancellation, PlacingEnvironment, PlanJob, PlanResult, succession_gaps},
};
use kordon_time::{Span, Timestamp};

/// Horizon of a failure's forecast.
pub const HORIZON: Span = Span::from_secs(1800);

/// Maximum amount of work for which placements are computed with every update: pods on the failed nodes, multiplied by
/// nodes in the cluster. This amount takes about a tenth of a second.
const MAX_LOOKS: usize = 1_000_000;

/// Version of the state that a result was computed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreviewBasis {
    /// Value of [`Model::plan_changes`](crate::model::Model::plan_changes) when the result's inputs were copied.
    pub changes: u64,
    /// Time at which the views were computed; set only for a failure, because its impact depends on every heartbeat.
    pub taken: Option<Timestamp>,
}

/// A job that updates the open plan on another thread.
#[derive(Debug)]
pub struct PreviewJob {
    pub(in crate::app) request: PlanRequest,
    pub(in crate::app) basis: PreviewBasis,
    pub(in crate::app) work: PreviewWork,
}

#[derive(Debug)]
pub enum PreviewWork {
    Plan(Box<PlanJob>),
    Failure(Box<FailureJob>),
    /// The request is invalid, with the reason.
    Fault(String),
}

/// Job that computes the impact of a failure from copies of its inputs.
#[derive(Debug)]
pub struct FailureJob {
    pub(in crate::app) targets: Targets,
    pub(in crate::app) whole_zones: bool,
    pub(in crate::app) cluster: Cluster,
    /// Copy of the engine; `None` until the engine has started.
    pub(in crate::app) engine: Option<Engine>,
    pub(in crate::app) version: ServerVersion,
    pub(in crate::app) snapshot: SnapshotLease,
    pub(in crate::app) now: Timestamp,
}

/// Result of a preview job.
#[derive(Clone, Debug)]
pub struct PreviewResult {
    pub request: PlanRequest,
    pub outcome: PreviewOutcome,
    pub(in crate::app) basis: PreviewBasis,
    /// The lent snapshot, to be returned to the cache.
    pub(in crate::app) snapshot: Option<Snapshot>,
}

/// A plan, the impact of a failure, or why there is neither.
#[derive(Clone, Debug)]
pub enum PreviewOutcome {
    Plan(PlanView),
    Failure(FailureView),
    Fault(String),
}

impl PreviewJob {
    /// Request for the plan that the job computes.
    pub const fn request(&self) -> &PlanRequest {
        &self.request
    }

    pub fn work(self) -> PreviewResult {
        self.work_until(&Cancellation::default())
    }

    /// Computes the result. If cancelled, stops early; the result may then be incomplete and must be discarded.
    pub fn work_until(self, cancellation: &Cancellation) -> PreviewResult {
        let Self { request, basis, work } = self;
        let (outcome, snapshot) = match work {
            PreviewWork::Plan(job) => {
                let PlanResult { plan, snapshot } = job.work_until(cancellation);
                let plan = plan.map(|plan| PreviewOutcome::Plan(PlanView::new(plan)));
                (plan.unwrap_or_else(|error| PreviewOutcome::Fault(error.to_string())), snapshot)
            }
            PreviewWork::Failure(mut job) => {
                let snapshot = std::mem::take(&mut job.snapshot).of(&job.cluster, job.version);
                let impact = job.impact(&snapshot, cancellation).map(Box::new).map(FailureView::new);
                (impact.map_or_else(PreviewOutcome::Fault, PreviewOutcome::Failure), Some(snapshot))
            }
            PreviewWork::Fault(text) => (PreviewOutcome::Fault(text), None),
        };
        PreviewResult { request, outcome, basis, snapshot }
    }
}

impl FailureJob {
    fn impact(&self, snapshot: &Snapshot, cancellation: &Cancellation) -> Result<FailureImpact, String> {
        let (cluster, now) = (&self.cluster, self.now);
        let engine = self.engine_to_predict_with()?;
        let (nodes, zones) = self.failing();
        let start = ForecastStart { engine, cluster, now };
        let under =
            |assumptions: &Assumptions| Forecast::until_cancelled(start, assumptions, HORIZON, cancellation);
        let assumptions = Assumptions::failing(nodes.clone(), now);
        let mut forecast = under(&assumptions);
        let mut staying = forecast.staying(cluster, &nodes);
        forecast.subtract(&under(&Assumptions::default()), &nodes);
        let mut totals = ForecastTotals::default();
        forecast.steps.iter().for_each(|step| totals.add(&step.kind));
        let pods: usize = nodes.iter().map(|node| cluster.pods_on(node).count()).sum();
        let looks = pods.saturating_mul(cluster.nodes().len());
        let pods_unknown = cluster.gaps_in(nodes.iter().cloned().map(Scope::PodsOn)).unknown();
        let placement_unknown = cluster.gaps_in([Scope::Pods]).unknown();
        let can_place = looks <= MAX_LOOKS && placement_unknown.is_empty();
        let succession = can_place.then(|| {
            let environment =
                PlacingEnvironment::new(cluster, snapshot.clone(), now).until_cancelled(cancellation);
            forecast.successors_of(&nodes, &assumptions, cluster, environment)
        });
        // Each pod has one row: a pod that stays on its failed node may need a replacement all the same.
        if let Some(succession) = &succession {
            let successors = succession.by_pod();
            staying.retain(|(pod, _)| !successors.get(pod).is_some_and(|successor| successor.is_listed()));
        }
        Ok(FailureImpact {
            nodes,
            zones,
            forecast,
            totals,
            staying,
            pods_unknown,
            placement_unknown,
            likely_for: succession_gaps(cluster),
            succession,
        })
    }

    fn engine_to_predict_with(&self) -> Result<&Engine, String> {
        let Some(engine) = &self.engine else {
            return Err("no predictions until nodes and Leases have been listed".into());
        };
        match engine.confidence(self.now) {
            Confidence::Live | Confidence::Assumed => Ok(engine),
            Confidence::Disconnected { .. } => {
                Err("disconnected from nodes and Leases: no predictions".into())
            }
            Confidence::NoController { .. } => {
                Err("no active kube-controller-manager: nothing would be evicted until there is one".into())
            }
        }
    }

    /// Names of the failing nodes, and the zones that fail as a whole.
    fn failing(&self) -> (BTreeSet<NodeName>, BTreeSet<ZoneKey>) {
        let Targets::Nodes(named) = &self.targets else { return Default::default() };
        let there = named.iter().filter_map(|name| self.cluster.node(name));
        if !self.whole_zones {
            return (there.map(|node| node.name.clone()).collect(), BTreeSet::new());
        }
        let zones: BTreeSet<ZoneKey> = there.map(|node| node.zone()).collect();
        let failing = self.cluster.nodes().iter().filter(|node| zones.contains(&node.zone()));
        (failing.map(|node| node.name.clone()).collect(), zones)
    }
}
