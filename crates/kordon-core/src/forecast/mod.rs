//! Forecasts: runs copies of the engine and the cluster forward on a virtual clock.

pub mod accuracy;
mod apply_write;
mod assumptions;
mod baseline;
mod chance;
pub mod comparison;
mod event_ranges;
mod lanes;
mod newest;
mod outcome;
mod outcome_record;
mod successors;
mod time_range;
mod totals;

pub use accuracy::{Accuracy, AccuracyReport};
pub use apply_write::apply_write;
pub use assumptions::{Assumptions, Incident, IncidentKind};
pub use chance::{Chance, DeletedRange};
pub use comparison::{ControllerEvent, EventKind};
pub use event_ranges::EventRanges;
pub use lanes::{Chart, Lane, LaneFold, LanePods, fold};
pub use outcome::LeavingOutcomes;
pub use outcome_record::{
    Became, OutcomeDifference, OutcomeDifferences, OutcomeRecord, OutcomeReport, OutcomeScore, SETTLES,
};
pub use successors::{Succession, SuccessionCounts, Successor};
pub use time_range::TimeRange;
pub use totals::ForecastTotals;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use chance::Chances;

use crate::{
    cluster::{Applied, Change, Cluster, Delta, Key, Name, Node, NodeName, TaintEffect},
    engine::{
        Deletion, DeviceEviction, Engine, NOT_READY, Outcome, ShutdownEnd, UNREACHABLE, UncertainTaints, Why,
        Write, ZoneView, device_evictions, shutdown_ends,
    },
    plan::{Cancellation, words::counted},
};
use kordon_time::{Span, Timestamp};

/// What will happen within a horizon if nobody intervenes. Nodes without heartbeats stay silent; the other nodes keep
/// renewing their Leases.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Forecast {
    /// When the forecast was made.
    pub made: Timestamp,
    pub until: Timestamp,
    /// Whether events could be predicted when the forecast was made (see [`Engine::confidence`]).
    pub is_predictable: bool,
    /// The predicted events, sorted by time. Empty if nothing can be predicted.
    pub steps: Vec<ForecastStep>,
    /// Taints that depend on chance upstream, sorted by time. They are not in `steps`.
    pub uncertain_taints: Vec<UncertainTaints>,
    /// The nodes that were silent when the forecast was made. The forecast predicts the effects of their silence.
    pub silent: BTreeSet<NodeName>,
    /// The zones at the end of the forecast; empty if nothing can be predicted.
    pub zones: Vec<ZoneView>,
    /// The nodes that are down at the end of the forecast: not Ready, without heartbeats, or removed.
    pub down: BTreeSet<NodeName>,
    /// The nodes whose objects are deleted within the forecast.
    pub removed: BTreeSet<NodeName>,
    /// The nodes that are down within the forecast, but not at its end, with the time from which they take pods again.
    pub recovered: BTreeMap<NodeName, Timestamp>,
    /// Times at which pods are deleted after the end of the forecast; only deletions whose timers already run.
    pub later: BTreeMap<Key, Timestamp>,
    /// Pods whose evictions are scheduled when the forecast is made, but do not happen: the controller removes the
    /// taints of their nodes first, because the nodes are Ready again or because every zone is down.
    cancelled: BTreeSet<Key>,
    /// The chart of the forecast; empty until [`Forecast::with_chart`] makes it.
    pub chart: Chart,
    /// The chances with which nodes get the tokens of their zones' rate limiters, for [`Forecast::deleted`].
    chances: Arc<Chances>,
    /// Number of deletions that [`Forecast::subtract`] removed, because the forecast without a failure has them too.
    subtracted: usize,
    /// The first and the last time at which a node may be tainted, for each node that competes for a token of its
    /// zone's rate limiter.
    taint_turns: BTreeMap<NodeName, TimeRange>,
    /// The indices of each node's events in `steps`, sorted by time.
    by_node: BTreeMap<NodeName, Vec<usize>>,
}

/// One predicted event.
#[derive(Clone, Debug, PartialEq)]
pub struct ForecastStep {
    pub at: Timestamp,
    pub kind: ForecastKind,
    pub why: Why,
    /// Number of pods that the controller marks not ready together with the event, so that they leave the endpoints of
    /// their Services.
    pub not_ready: usize,
    /// The chance that the event happens at this time, if several nodes wait for one token of their zone's rate
    /// limiter; none if the time is certain.
    pub chance: Option<Chance>,
}

/// Returns a text such as `12 pods leave endpoints`.
pub fn leave_endpoints(pods: usize) -> String {
    counted(pods, "pod leaves endpoints", "pods leave endpoints")
}

/// The kinds of predicted events.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ForecastKind {
    /// The node's conditions become Unknown.
    Unknown { node: NodeName },
    /// The node gets this NoExecute taint.
    NoExecute { node: NodeName, key: Name },
    /// The kubelet has ended the pod, because the pod's machine stops. The event has the latest possible time.
    Ended { pod: Key, node: NodeName },
    /// The pod is deleted, by taint eviction or with its node.
    Deleted { pod: Key, node: NodeName },
    /// The pod garbage collector removes the pod's object. The node's name is empty if the pod was never scheduled.
    Removed { pod: Key, node: NodeName },
}

impl ForecastKind {
    pub const fn node(&self) -> &NodeName {
        match self {
            Self::Unknown { node }
            | Self::NoExecute { node, .. }
            | Self::Ended { node, .. }
            | Self::Deleted { node, .. }
            | Self::Removed { node, .. } => node,
        }
    }

    /// The pod that is ended, deleted or removed.
    pub const fn pod(&self) -> Option<&Key> {
        match self {
            Self::Ended { pod, .. } | Self::Deleted { pod, .. } | Self::Removed { pod, .. } => Some(pod),
            Self::Unknown { .. } | Self::NoExecute { .. } => None,
        }
    }
}

impl Forecast {
    /// Runs copies of the engine and the cluster forward from `now` for `horizon`.
    pub fn run(engine: &Engine, cluster: &Cluster, now: Timestamp, horizon: Span) -> Self {
        Self::under(&Assumptions::default(), engine, cluster, now, horizon)
    }

    /// Like [`Forecast::run`], under assumptions.
    pub fn under(
        assumptions: &Assumptions,
        engine: &Engine,
        cluster: &Cluster,
        now: Timestamp,
        horizon: Span,
    ) -> Self {
        let cancellation = Cancellation::default();
        Self::until_cancelled(ForecastStart { engine, cluster, now }, assumptions, horizon, &cancellation)
    }

    /// Like [`Forecast::under`], with a cancellation. A cancelled run returns soon with an incomplete forecast, which
    /// must not be used.
    pub fn until_cancelled(
        ForecastStart { engine, cluster, now }: ForecastStart<'_>,
        assumptions: &Assumptions,
        horizon: Span,
        cancellation: &Cancellation,
    ) -> Self {
        let is_predictable = engine.confidence(now).allows_predictions();
        let mut forecast = Self { made: now, until: now + horizon, is_predictable, ..Self::default() };
        if is_predictable {
            forecast.silent = engine.silent_nodes(cluster, now);
            let mut run = Run::new(engine, cluster, &forecast.silent, now);
            run.cancellation = cancellation.clone();
            run.run_until(forecast.until, assumptions, &mut forecast.steps);
            forecast.zones = run.engine.zones(forecast.until);
            let chances = Chances::new(std::iter::from_fn(|| run.engine.poll_queue_event()));
            chances.add_to(&mut forecast.steps);
            forecast.taint_turns = chances.turns();
            forecast.chances = Arc::new(chances);
            forecast.down = run.down_nodes(cluster);
            let is_removed = |node: &&NodeName| run.cluster.node(node).is_none();
            forecast.removed = forecast.down.iter().filter(is_removed).cloned().collect();
            forecast.recovered = std::mem::take(&mut run.recovered);
            forecast.recovered.retain(|node, _| !forecast.down.contains(node));
            let pending = run.engine.evictions(&run.cluster).into_iter();
            forecast.later =
                pending.filter_map(|eviction| Some((eviction.pod, eviction.due.at()?))).collect();
            forecast.uncertain_taints = std::iter::from_fn(|| run.engine.poll_uncertain_taints()).collect();
            forecast.add_shutdown_ends(assumptions, cluster);
            forecast.add_device_evictions(engine, cluster);
            forecast.cancelled = forecast.cancelled_evictions(engine, cluster, &run.cluster);
        }
        forecast.by_node = baseline::by_node(&forecast.steps);
        forecast
    }

    /// Returns the pods with an eviction that is scheduled now, and that are not evicted or ended in the forecast or
    /// after it. `at_end` is the cluster at the end of the forecast.
    fn cancelled_evictions(&self, engine: &Engine, cluster: &Cluster, at_end: &Cluster) -> BTreeSet<Key> {
        let scheduled = engine.evictions(cluster).into_iter().filter(|eviction| eviction.due.at().is_some());
        let remains = |pod: &Key| at_end.pod(pod).is_some_and(|pod| pod.termination.is_none());
        let mut cancelled: BTreeSet<Key> = scheduled.map(|eviction| eviction.pod).filter(remains).collect();
        let leaving = self.steps.iter().filter_map(|step| step.kind.pod()).chain(self.later.keys());
        for pod in leaving {
            cancelled.remove(pod);
        }
        cancelled
    }

    /// Adds the pods that kubelets end before their machines stop. Leaves out a pod if something else deletes it first,
    /// or if an incident of its node is assumed to happen first.
    fn add_shutdown_ends(&mut self, assumptions: &Assumptions, cluster: &Cluster) {
        let (made, until) = (self.made, self.until);
        let mut ended: BTreeMap<Key, ForecastStep> = BTreeMap::new();
        for node in cluster.nodes().iter().filter(|node| node.is_shutting_down()) {
            let incidents = assumptions.incidents.iter().filter(|incident| incident.node == node.name);
            let until = incidents.map(|incident| incident.at).fold(until, Timestamp::min);
            let ends = shutdown_ends(cluster, node).into_iter();
            for ShutdownEnd { pod, at, why } in ends.filter(|end| end.at > made && end.at <= until) {
                let kind = ForecastKind::Ended { pod: pod.key.clone(), node: node.name.clone() };
                ended.insert(pod.key.clone(), ForecastStep { at, kind, why, not_ready: 0, chance: None });
            }
        }
        self.leave_out_later(&mut ended);
        self.steps.extend(ended.into_values());
        self.steps.sort_by_key(|step| step.at);
    }

    /// Adds the deletions of pods by taints of their devices, unless something else deletes the pod first.
    fn add_device_evictions(&mut self, engine: &Engine, cluster: &Cluster) {
        let evictions = device_evictions(cluster, engine.settings().version).into_iter();
        let mut evicted: BTreeMap<Key, ForecastStep> = evictions
            .filter_map(|DeviceEviction { pod, at, why }| {
                let kind = ForecastKind::Deleted { pod: pod.key.clone(), node: pod.node.clone()? };
                let step = ForecastStep { at: at.max(self.made), kind, why, not_ready: 0, chance: None };
                (step.at <= self.until).then(|| (pod.key.clone(), step))
            })
            .collect();
        if evicted.is_empty() {
            return;
        }
        self.leave_out_later(&mut evicted);
        self.steps.retain(|step| step.kind.pod().is_none_or(|pod| !evicted.contains_key(pod)));
        self.steps.extend(evicted.into_values());
        self.steps.sort_by_key(|step| step.at);
    }

    /// Removes the pods that another step ends, deletes or removes first, or at the same time.
    fn leave_out_later(&self, leaving: &mut BTreeMap<Key, ForecastStep>) {
        for step in &self.steps {
            if let Some(pod) = step.kind.pod()
                && leaving.get(pod).is_some_and(|later| step.at <= later.at)
            {
                leaving.remove(pod);
            }
        }
    }

    /// Returns how many pods are deleted before the end, over all orders in which waiting nodes may be tainted.
    /// `cluster` is the cluster of the forecast. Reads all pods of the waiting nodes.
    pub fn deleted(&self, cluster: &Cluster) -> DeletedRange {
        let predicted = self.deletions() + self.subtracted;
        self.chances.deleted(cluster, predicted, self.until).without(self.subtracted)
    }

    /// Removes the predictions that follow from a node's silence, for nodes that are no longer silent. All other steps
    /// stay until the next forecast.
    pub fn forget_heard(self: &mut Arc<Self>, silent: &BTreeSet<NodeName>) {
        let heard: BTreeSet<NodeName> = self.silent.difference(silent).cloned().collect();
        if heard.is_empty() {
            return;
        }
        let forecast = Arc::make_mut(self);
        let mut fallen: BTreeSet<NodeName> = BTreeSet::new();
        forecast.steps.retain(|step| {
            let node = step.kind.node();
            if heard.contains(node) && matches!(step.kind, ForecastKind::Unknown { .. }) {
                fallen.insert(node.clone());
            }
            !fallen.contains(node)
        });
        forecast.silent.retain(|node| !heard.contains(node));
        forecast.chart.lanes.retain(|lane| lane.nodes.iter().all(|node| !fallen.contains(node)));
        forecast.by_node = baseline::by_node(&forecast.steps);
    }

    /// Whether the pod's eviction was scheduled when the forecast was made, but does not happen.
    pub fn cancels(&self, pod: &Key) -> bool {
        self.cancelled.contains(pod)
    }

    /// The predicted events of a node and its pods, sorted by time.
    pub fn of_node(&self, node: &NodeName) -> impl Iterator<Item = &ForecastStep> {
        self.by_node.get(node).into_iter().flatten().map(|place| &self.steps[*place])
    }
}

/// The state that a forecast starts from.
#[derive(Clone, Copy)]
pub struct ForecastStart<'a> {
    pub engine: &'a Engine,
    pub cluster: &'a Cluster,
    pub now: Timestamp,
}

/// A run of a forecast: copies of engine and cluster with their own clock.
#[derive(Clone)]
pub(crate) struct Run {
    engine: Engine,
    cluster: Cluster,
    now: Timestamp,
    applied: Vec<Applied>,
    /// Nodes that have come back during the run, with the time from which they take pods again.
    recovered: BTreeMap<NodeName, Timestamp>,
    cancellation: Cancellation,
}

impl Run {
    /// Starts a run in which all nodes but the `silent` ones send heartbeats.
    pub(crate) fn new(
        engine: &Engine,
        cluster: &Cluster,
        silent: &BTreeSet<NodeName>,
        now: Timestamp,
    ) -> Self {
        let (engine_copy, in_flight) = engine.forecast_copy();
        let mut run = Self {
            engine: engine_copy,
            cluster: cluster.clone(),
            now,
            applied: Vec::new(),
            recovered: BTreeMap::new(),
            cancellation: Cancellation::default(),
        };
        run.engine.assume_alive(cluster, |node| !silent.contains(&node.name));
        let back = cluster.nodes().iter().filter(|node| is_just_back(node));
        run.recovered = back.map(|node| (node.name.clone(), now)).collect();
        for write in in_flight {
            apply_write(&mut run.cluster, &write, now, &mut run.applied);
            run.pass_changes_on();
        }
        run
    }

    /// Runs the copies of engine and cluster until `until`, and appends the predicted events to `steps`.
    pub(crate) fn run_until(
        &mut self,
        until: Timestamp,
        assumptions: &Assumptions,
        steps: &mut Vec<ForecastStep>,
    ) {
        let mut incidents: Vec<&Incident> = assumptions.incidents.iter().collect();
        incidents.sort_by_key(|incident| incident.at);
        let mut incidents = incidents.into_iter().peekable();
        while !self.cancellation.is_cancelled() {
            while let Some(effect) = self.engine.poll_effect() {
                apply_write(&mut self.cluster, &effect.write, self.now, &mut self.applied);
                let predicted = self.predicted(&effect.write);
                self.pass_changes_on();
                self.engine.handle_outcome(&self.cluster, effect.id, Outcome::Done, self.now);
                if let Some((kind, not_ready)) = predicted {
                    let why = Arc::unwrap_or_clone(effect).why;
                    steps.push(ForecastStep { at: self.now, kind, why, not_ready, chance: None });
                }
            }
            let due = self.engine.poll_timeout().map(|next| next.at).filter(|at| *at <= until);
            let is_before = |incident: &&Incident| incident.at <= due.unwrap_or(until);
            if let Some(incident) = incidents.next_if(is_before) {
                self.apply_incident(incident);
                continue;
            }
            let Some(due) = due else { return };
            self.now = self.now.max(due);
            self.engine.handle_timeout(&self.cluster, self.now);
        }
    }

    /// Applies a change that another component makes at `at`.
    pub(crate) fn apply(&mut self, change: Change, at: Timestamp) {
        self.now = self.now.max(at);
        self.cluster.apply(change, &mut self.applied);
        self.pass_changes_on();
    }

    /// The nodes of `cluster` that are gone, not Ready or without heartbeats in the run.
    fn down_nodes(&self, cluster: &Cluster) -> BTreeSet<NodeName> {
        let is_ready = |node: &&NodeName| self.cluster.node(node).is_some_and(|node| node.is_ready());
        let up: BTreeSet<&NodeName> = self.engine.assumed_alive().filter(is_ready).collect();
        let nodes = cluster.nodes().iter().map(|node| &node.name);
        nodes.filter(|node| !up.contains(node)).cloned().collect()
    }

    /// Passes the changes of the run's cluster on to the engine.
    fn pass_changes_on(&mut self) {
        for applied in self.applied.drain(..) {
            if let Applied::Node(Delta { old: Some(old), new: Some(new) }) = &applied {
                // Note when the node is Ready again, because forecasts leave out the writes of the controller's
                // NoSchedule taints. Upstream changes these taints with the next event of the node
                // (`doNoScheduleTaintingPass`).
                match (old.is_ready(), new.is_ready()) {
                    (false, true) => _ = self.recovered.insert(new.name.clone(), self.now),
                    (true, false) => _ = self.recovered.remove(&new.name),
                    _ => {}
                }
            }
            self.engine.handle_change(&self.cluster, &applied, self.now);
        }
    }

    /// Returns the event of a write that was just applied, and the number of pods that the same write marks not ready.
    /// None for writes that have no event.
    fn predicted(&self, write: &Write) -> Option<(ForecastKind, usize)> {
        let kind = match write {
            Write::MarkUnknown { node, .. } => {
                return Some((ForecastKind::Unknown { node: node.clone() }, self.marked_not_ready(node)));
            }
            Write::SwapTaints { node, add, .. } => {
                let taint = add.iter().find(|taint| taint.effect == TaintEffect::NoExecute)?;
                self.applied.first()?;
                ForecastKind::NoExecute { node: node.clone(), key: taint.key.clone() }
            }
            Write::DeletePod { pod, node, deletion: Deletion::Collected { .. }, .. } => {
                ForecastKind::Removed { pod: pod.clone(), node: node.clone() }
            }
            Write::DeletePod { pod, node, .. } => {
                let Some(Applied::Pod(Delta { old: Some(old), .. })) = self.applied.first() else {
                    return None;
                };
                if old.termination.is_some() {
                    return None;
                }
                ForecastKind::Deleted { pod: pod.clone(), node: node.clone() }
            }
            Write::SetLabels { .. }
            | Write::MarkPodLost { .. }
            | Write::MarkPodNotReady { .. }
            | Write::RecordEvent(_) => return None,
        };
        Some((kind, 0))
    }

    /// Number of pods that the controller marks not ready when it marks their node Unknown (upstream
    /// `MarkPodsNotReady`). Zero if the node was not Ready before.
    fn marked_not_ready(&self, node: &NodeName) -> usize {
        let Some(Applied::Node(Delta { old: Some(old), .. })) = self.applied.first() else { return 0 };
        if old.is_ready() { self.cluster.load(node).ready } else { 0 }
    }
}

/// Whether a node is Ready, but still has the NoSchedule taint that it got when it was not Ready.
fn is_just_back(node: &Node) -> bool {
    let is_of_failure = |key: &&str| node.taints.iter().any(|taint| taint.is(key, TaintEffect::NoSchedule));
    node.is_ready() && [NOT_READY, UNREACHABLE].iter().any(is_of_failure)
}
