//! Leaving pods: every eviction that is predicted, scheduled or in progress, and the next event of each node.
//!
//! When a zone fails, tens of thousands of pods leave. Their evictions are then computed in the background
//! ([`Model::leaves_many`], [`Model::next_leaving_job`], [`LeavingJob::work`], [`Model::set_leaving`]), by the same
//! rules as in [`Model::refresh`].

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    Model,
    eviction::{EvictionRow, EvictionState},
    eviction_outcomes::{EvictionCounts, EvictionOutcomes},
};
use kordon_core::{
    cluster::{Cluster, ConditionStatus, Key, Node, NodeName, Pod},
    engine::{
        Cause, Certainty, DeviceEviction, Due, Engine, NodeStage, ShutdownEnd, Why, device_evictions,
        shutdown_ends,
    },
    forecast::{self, Forecast},
    plan::words::counted,
};
use kordon_time::{Span, Timestamp};

/// Time for which a cancelled eviction stays in the list.
const REMEMBERED: Span = Span::from_secs(120);

/// Maximum number of evictions that are computed on the loop's thread. More evictions take some milliseconds, and are
/// computed in the background.
const MANY: usize = 2_000;

/// The evictions, and the next event of each node, at a point in time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Leaving {
    pub taken: Timestamp,
    pub evictions: BTreeMap<Key, EvictionRow>,
    /// Keys of the evictions, sorted by [`EvictionState::urgency`] and then by name.
    pub by_urgency: Arc<Vec<Key>>,
    /// The next event of each node that has one.
    pub next: BTreeMap<NodeName, NextEvent>,
    /// Time of the first eviction whose deletion has not begun; `None` if there is no such eviction.
    pub first: Option<Timestamp>,
    /// Ends of the grace periods of the terminating pods, the earliest first.
    pub deadlines: Vec<Timestamp>,
    pub changes: LeavingChanges,
}

/// Revisions of the parts of [`Leaving`]. As long as a revision stays the same, so does its part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeavingChanges {
    pub evictions: u64,
    pub next: u64,
    /// Revision of the set of leaving pods whose deletion has not begun. The revision stays the same if only the times
    /// of the deletions change.
    pub pods: u64,
}

/// The next event of a node.
#[derive(Clone, Debug, PartialEq)]
pub struct NextEvent {
    /// Time of the event; `None` if this time is not known yet.
    pub at: Option<Timestamp>,
    pub what: NextEventKind,
    /// Whether the time of the event is an estimate.
    pub estimated: bool,
    pub why: Why,
    /// Chance that the event happens at its predicted time; `None` unless several nodes compete for the next token of
    /// their zone's rate limiter.
    pub chance: Option<forecast::Chance>,
}

/// Kind of a node's next event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextEventKind {
    /// The node's conditions become Unknown.
    Unknown,
    /// The node gets its NoExecute taint.
    Taint,
    /// Pods of the node are evicted, the first of them at the time of the event.
    Evict {
        /// Number of the node's pods that are evicted within one second of the first eviction.
        first: usize,
        /// Number of all evicted pods of the node.
        pods: usize,
    },
}

impl NextEventKind {
    /// The event in words: `Unknown`, `taint`, `1 of 7 pods`.
    pub fn words(self) -> String {
        match self {
            Self::Unknown => "Unknown".into(),
            Self::Taint => "taint".into(),
            Self::Evict { first, pods } if first == pods => counted(pods, "pod", "pods"),
            Self::Evict { first, pods } => format!("{first} of {pods} pods"),
        }
    }
}

/// Copies of all inputs of [`Leaving`].
#[derive(Debug)]
pub struct LeavingJob {
    engine: Engine,
    cluster: Cluster,
    forecast: Option<Arc<Forecast>>,
    abnormal: BTreeSet<NodeName>,
    kubelets: BTreeMap<Key, EvictionRow>,
    before: Arc<Leaving>,
    outcomes: Option<Arc<EvictionOutcomes>>,
    now: Timestamp,
}

/// The leaving pods, with the number of evictions of each kind.
#[derive(Debug)]
pub struct CountedLeaving {
    pub(super) leaving: Arc<Leaving>,
    pub(super) counts: EvictionCounts,
}

impl Leaving {
    /// Returns the leaving pods whose deletion has not begun, each with the time at which the deletion begins.
    pub fn pods(&self) -> impl Iterator<Item = (Key, Timestamp)> {
        self.evictions.iter().filter_map(|(key, row)| Some((key.clone(), row.state.leaves_at()?)))
    }

    /// Whether the same pods leave in this result and in `other`, even if their times differ.
    fn has_pods_of(&self, other: &BTreeMap<Key, EvictionRow>) -> bool {
        leaving_keys(&self.evictions).eq(leaving_keys(other))
    }
}

fn leaving_keys(evictions: &BTreeMap<Key, EvictionRow>) -> impl Iterator<Item = &Key> {
    evictions.iter().filter(|(_, row)| row.state.leaves_at().is_some()).map(|(key, _)| key)
}

impl Model {
    /// Whether so many pods leave that their evictions are computed in the background.
    pub fn leaves_many(&self) -> bool {
        let predicted = self.predictions.forecast().map_or(0, |forecast| forecast.steps.len());
        self.views.leaving.evictions.len() + predicted > MANY
    }

    /// Computes the leaving pods at once. Returns the previous result.
    pub(super) fn refresh_leaving(&mut self, now: Timestamp) -> Option<Arc<Leaving>> {
        let kubelets = self.kubelet_rows();
        let sources = Sources {
            engine: self.engine.as_ref()?,
            cluster: &self.cluster,
            forecast: self.predictions.forecast().map(|forecast| &**forecast),
            abnormal: self.watchlist.abnormal(),
            kubelets: &kubelets,
            before: &self.views.leaving,
            now,
        };
        let counted = sources.counted(self.predictions.outcomes().map(|outcomes| &**outcomes));
        self.set_leaving(counted)
    }

    /// Returns the job that computes the leaving pods; `None` before the engine has started.
    pub fn next_leaving_job(&self, now: Timestamp) -> Option<LeavingJob> {
        Some(LeavingJob {
            engine: self.engine.clone()?,
            cluster: self.cluster.clone(),
            forecast: self.predictions.forecast().cloned(),
            abnormal: self.watchlist.abnormal().clone(),
            kubelets: self.kubelet_rows(),
            before: self.views.leaving.clone(),
            outcomes: self.predictions.outcomes().cloned(),
            now,
        })
    }

    /// Stores a result, unless the known result is newer. Returns the previous result.
    pub fn set_leaving(&mut self, counted: CountedLeaving) -> Option<Arc<Leaving>> {
        self.views.set_leaving(counted, self.predictions.outcomes_revision())
    }
}

impl LeavingJob {
    pub fn work(self) -> CountedLeaving {
        let Self { engine, cluster, forecast, abnormal, kubelets, before, outcomes, now } = self;
        let sources = Sources {
            engine: &engine,
            cluster: &cluster,
            forecast: forecast.as_deref(),
            abnormal: &abnormal,
            kubelets: &kubelets,
            before: &before,
            now,
        };
        sources.counted(outcomes.as_deref())
    }
}

/// The inputs from which [`Leaving`] is computed.
#[derive(Clone, Copy)]
struct Sources<'a> {
    engine: &'a Engine,
    cluster: &'a Cluster,
    forecast: Option<&'a Forecast>,
    /// The abnormal nodes ([`super::NodeWatchlist::abnormal`]).
    abnormal: &'a BTreeSet<NodeName>,
    /// The pods that kubelets evict ([`Model::kubelet_rows`]).
    kubelets: &'a BTreeMap<Key, EvictionRow>,
    before: &'a Leaving,
    now: Timestamp,
}

impl Sources<'_> {
    fn counted(self, outcomes: Option<&EvictionOutcomes>) -> CountedLeaving {
        let leaving = Arc::new(self.leaving());
        let counts = EvictionCounts::new(self.cluster, &leaving.evictions, outcomes);
        CountedLeaving { leaving, counts }
    }

    fn leaving(mut self) -> Leaving {
        // Without a controller, nothing happens of what a forecast predicted while one was active.
        if !self.has_controller() {
            self.forecast = None;
        }
        let Self { before, now, .. } = self;
        let mut evictions = self.evictions();
        self.remember_cancelled(&mut evictions);
        let next = self.next_events(&evictions);
        let is_same = evictions == before.evictions;
        let by_urgency = if is_same { before.by_urgency.clone() } else { Arc::new(by_urgency(&evictions)) };
        let rows = || evictions.values().map(|row| &row.state);
        let first = rows().filter_map(EvictionState::leaves_at).min();
        let mut deadlines: Vec<Timestamp> = rows().filter_map(EvictionState::ends_at).collect();
        deadlines.sort_unstable();
        let mut changes = before.changes;
        changes.evictions += u64::from(!is_same);
        changes.next += u64::from(next != before.next);
        changes.pods += u64::from(!before.has_pods_of(&evictions));
        Leaving { taken: now, evictions, by_urgency, next, first, deadlines, changes }
    }

    fn has_controller(self) -> bool {
        self.engine.confidence(self.now).has_controller()
    }

    /// Returns every eviction that the forecast predicts, that the engine has scheduled, that a kubelet makes under
    /// pressure, or that is already in progress.
    fn evictions(self) -> BTreeMap<Key, EvictionRow> {
        let Self { cluster, forecast, now, .. } = self;
        let mut rows = BTreeMap::new();
        for step in forecast.iter().flat_map(|forecast| &forecast.steps) {
            // Pods that a kubelet ends because of a shutdown are left out here; `add_shutdown_ends` adds them.
            if let forecast::ForecastKind::Deleted { pod, node }
            | forecast::ForecastKind::Removed { pod, node } = &step.kind
                && step.at > now
                && cluster.pod(pod).is_some()
            {
                let state = EvictionState::Predicted { at: step.at, chance: step.chance.clone() };
                rows.insert(pod.clone(), EvictionRow { node: node.clone(), state, why: step.why.clone() });
            }
        }
        if self.has_controller() {
            self.add_taint_evictions(&mut rows);
        }
        self.add_shutdown_ends(&mut rows);
        self.add_never_evicted(&mut rows);
        self.add_kubelet_evictions(&mut rows);
        for pod in cluster.terminating_pods() {
            let node = pod.node.as_ref().and_then(|node| cluster.node(node));
            let known = rows.get(&pod.key);
            let Some(row) = node.and_then(|node| terminating(cluster, pod, node, known)) else { continue };
            rows.insert(pod.key.clone(), row);
        }
        rows
    }

    /// Adds the pods that the controller evicts because of the taints of nodes and devices, and the pods of deleted
    /// nodes. Without a controller, the taints have no effect.
    fn add_taint_evictions(self, rows: &mut BTreeMap<Key, EvictionRow>) {
        let Self { engine, cluster, now, .. } = self;
        let untainted: BTreeSet<&NodeName> = self
            .abnormal
            .iter()
            .filter(|name| cluster.node(name).is_some_and(|node| engine.untaints_soon(cluster, node, now)))
            .collect();
        let is_cancelled = |pod: &Key| self.forecast.is_some_and(|forecast| forecast.cancels(pod));
        for eviction in engine.evictions(cluster) {
            if untainted.contains(&eviction.node) && !engine.is_before_next_pass(eviction.due, now) {
                continue;
            }
            let state = match eviction.due {
                Due::At { .. } if is_cancelled(&eviction.pod) => continue,
                Due::At { at, certainty } => EvictionState::Scheduled { at, certainty },
                Due::Never => EvictionState::Never,
            };
            rows.insert(eviction.pod, EvictionRow { node: eviction.node, state, why: eviction.why });
        }
        for eviction in device_evictions(cluster, engine.settings().version) {
            let DeviceEviction { pod, at, why } = eviction;
            let Some(node) = pod.node.clone() else { continue };
            let known = rows.get(&pod.key).and_then(|row| row.state.leaves_at());
            if known.is_none_or(|known| at <= known) {
                let state = EvictionState::Scheduled { at, certainty: Certainty::Observed };
                rows.insert(pod.key.clone(), EvictionRow { node, state, why });
            }
        }
    }

    /// Adds the pods that a kubelet ends because its machine is being shut down, unless the pods are evicted before
    /// that.
    fn add_shutdown_ends(self, rows: &mut BTreeMap<Key, EvictionRow>) {
        for node in self.abnormal.iter().filter_map(|name| self.cluster.node(name)) {
            for ShutdownEnd { pod, at, why } in shutdown_ends(self.cluster, node) {
                let known = rows.get(&pod.key).and_then(|row| row.state.leaves_at());
                if at > self.now && known.is_none_or(|known| at <= known) {
                    let state = EvictionState::Scheduled { at, certainty: Certainty::AtLatest };
                    rows.insert(pod.key.clone(), EvictionRow { node: node.name.clone(), state, why });
                }
            }
        }
    }

    /// Adds the pods that nothing evicts from nodes that are down or will be. The engine lists them only once their node
    /// has its NoExecute taint.
    fn add_never_evicted(self, rows: &mut BTreeMap<Key, EvictionRow>) {
        let never = self.forecast.map(|forecast| forecast.never_evicted(self.cluster));
        for pod in never.into_iter().flatten() {
            let Some(node) = pod.node.clone().filter(|node| self.abnormal.contains(node)) else { continue };
            let why = Why::from(Cause::ToleratedForever);
            rows.entry(pod.key.clone()).or_insert(EvictionRow { node, state: EvictionState::Never, why });
        }
    }

    /// Adds the pods that kubelets evict because of pressure, unless the pods leave for another reason anyway.
    fn add_kubelet_evictions(self, rows: &mut BTreeMap<Key, EvictionRow>) {
        for (pod, row) in self.kubelets {
            if rows.get(pod).is_none_or(|known| known.state == EvictionState::Never) {
                rows.insert(pod.clone(), row.clone());
            }
        }
    }

    /// Adds the cancelled evictions. A cancelled eviction was scheduled and is not scheduled any more, and its pod
    /// still exists.
    ///
    /// A forecast that is older than the cancellation does not bring the eviction back. An eviction that waits for a
    /// controller is not cancelled.
    fn remember_cancelled(self, rows: &mut BTreeMap<Key, EvictionRow>) {
        let Self { cluster, before, now, .. } = self;
        let is_cancelled = |pod: &Key| self.forecast.is_some_and(|forecast| forecast.cancels(pod));
        let predicted_at = self.forecast.map_or(Timestamp::EPOCH, |forecast| forecast.made);
        for (key, row) in &before.evictions {
            let (at, why) = match row.state {
                EvictionState::Scheduled { at, .. }
                    if at > now && self.has_controller() && !is_cancelled(key) =>
                {
                    (now, Why::from(Cause::TaintsGone))
                }
                EvictionState::Cancelled { at } if now.since(at) < REMEMBERED => (at, row.why.clone()),
                EvictionState::Scheduled { .. }
                | EvictionState::Cancelled { .. }
                | EvictionState::Predicted { .. }
                | EvictionState::ByKubelet { .. }
                | EvictionState::Never
                | EvictionState::Terminating { .. } => continue,
            };
            let still_leaves = rows.get(key).is_some_and(|row| match row.state {
                EvictionState::Predicted { .. } => predicted_at > at,
                EvictionState::Scheduled { .. }
                | EvictionState::ByKubelet { .. }
                | EvictionState::Cancelled { .. }
                | EvictionState::Never
                | EvictionState::Terminating { .. } => true,
            });
            // Finished pods are left out: they have ended by themselves, so the cancellation did not save them.
            let is_on = |pod: &Arc<Pod>| !pod.is_finished() && pod.node.as_ref() == Some(&row.node);
            let stays = cluster.pod(key).is_some_and(is_on);
            if stays && !still_leaves {
                let state = EvictionState::Cancelled { at };
                rows.insert(key.clone(), EvictionRow { node: row.node.clone(), state, why });
            }
        }
    }

    /// Returns the next event of each node: the predicted event if there is one; else the node's first eviction; else
    /// the event that follows because the node is silent or waits for a taint. A node that waits in a zone without
    /// evictions has none.
    fn next_events(self, evictions: &BTreeMap<Key, EvictionRow>) -> BTreeMap<NodeName, NextEvent> {
        let Self { engine, cluster, now, .. } = self;
        let mut next = self.predicted_events();
        add_evictions(evictions, &mut next);
        let predictable = engine.confidence(now).allows_predictions();
        for node in self.abnormal.iter().filter_map(|name| cluster.node(name)) {
            let Some(view) = engine.node_view(node) else { continue };
            let (at, what) = match view.stage {
                NodeStage::Healthy if predictable && self.is_going_silent(node) => {
                    (Some(view.expires()), NextEventKind::Unknown)
                }
                NodeStage::Queued | NodeStage::Requested if !self.has_controller() => continue,
                NodeStage::Queued if !engine.has_eviction_slots(&view.zone) => continue,
                NodeStage::Queued | NodeStage::Requested => (None, NextEventKind::Taint),
                NodeStage::Healthy | NodeStage::Tainted | NodeStage::Evicted => continue,
            };
            let why = engine.why_silent(&node.name).unwrap_or_default();
            let estimated = view.certainty != Certainty::Observed;
            next.entry(node.name.clone()).or_insert(NextEvent { at, what, estimated, why, chance: None });
        }
        next
    }

    fn predicted_events(self) -> BTreeMap<NodeName, NextEvent> {
        let mut next = BTreeMap::new();
        let steps = self.forecast.iter().flat_map(|forecast| &forecast.steps);
        for step in steps.filter(|step| step.at > self.now) {
            let what = match &step.kind {
                forecast::ForecastKind::Unknown { .. } => NextEventKind::Unknown,
                forecast::ForecastKind::NoExecute { .. } => NextEventKind::Taint,
                forecast::ForecastKind::Ended { .. }
                | forecast::ForecastKind::Deleted { .. }
                | forecast::ForecastKind::Removed { .. } => continue,
            };
            let node = step.kind.node();
            next.entry(node.clone()).or_insert_with(|| NextEvent {
                at: Some(step.at),
                what,
                estimated: self.is_estimated(node, &step.why),
                why: step.why.clone(),
                chance: step.chance.clone(),
            });
        }
        next
    }

    fn is_going_silent(self, node: &Node) -> bool {
        node.is_ready() && self.engine.is_silent(self.cluster, node, self.now)
    }

    /// Whether a predicted time is an estimate: it depends on the rate limiter of the node's zone, or the node's
    /// health is itself an estimate.
    fn is_estimated(self, node: &NodeName, why: &Why) -> bool {
        let waits = why.0.iter().any(|cause| matches!(cause, Cause::Queued { .. } | Cause::Token { .. }));
        let health = || self.engine.node_view(self.cluster.node(node)?);
        waits || health().is_some_and(|health| health.certainty != Certainty::Observed)
    }
}

fn by_urgency(evictions: &BTreeMap<Key, EvictionRow>) -> Vec<Key> {
    let mut ranked: Vec<_> = evictions.iter().map(|(key, row)| (row.state.urgency(), key)).collect();
    // The sort is stable, so rows of equal urgency stay sorted by name.
    ranked.sort_by_key(|(urgency, _)| *urgency);
    ranked.into_iter().map(|(_, key)| key.clone()).collect()
}

/// Returns the row of a terminating pod. `known` is the pod's row by the forecast and the engine. A pod with finalizers
/// stays even if the pod garbage collector removes it by force.
fn terminating(
    cluster: &Cluster,
    pod: &Pod,
    node: &Node,
    known: Option<&EvictionRow>,
) -> Option<EvictionRow> {
    let termination = pod.termination.as_ref()?;
    let kubelet_silent = node.ready().is_none_or(|ready| ready.status == ConditionStatus::Unknown);
    let state = EvictionState::Terminating {
        deadline: cluster.local(termination.deadline),
        removed: known.and_then(removal).filter(|_| !pod.is_held()),
        finalizers: pod.finalizers.clone(),
        kubelet_silent,
    };
    let why = known.map(|row| row.why.clone()).unwrap_or_default();
    Some(EvictionRow { node: node.name.clone(), state, why })
}

/// Time at which the forecast removes a terminating pod by force; `None` if it does not.
const fn removal(row: &EvictionRow) -> Option<Timestamp> {
    match row.state {
        EvictionState::Predicted { at, .. } => Some(at),
        EvictionState::Scheduled { .. }
        | EvictionState::ByKubelet { .. }
        | EvictionState::Never
        | EvictionState::Terminating { .. }
        | EvictionState::Cancelled { .. } => None,
    }
}

/// Adds an event for each node that has none: the node's first eviction, with the number of its evictions.
fn add_evictions(evictions: &BTreeMap<Key, EvictionRow>, next: &mut BTreeMap<NodeName, NextEvent>) {
    let mut scheduled: BTreeMap<&NodeName, Vec<(Timestamp, Certainty, &Why)>> = BTreeMap::new();
    for row in evictions.values().filter(|row| !next.contains_key(&row.node)) {
        if let EvictionState::Scheduled { at, certainty } = row.state {
            scheduled.entry(&row.node).or_default().push((at, certainty, &row.why));
        }
    }
    for (node, pods) in scheduled {
        let Some((at, certainty, why)) = pods.iter().min_by_key(|(at, ..)| *at).copied() else { continue };
        let first = pods.iter().filter(|(other, ..)| other.since(at) < Span::from_secs(1)).count();
        let event = NextEvent {
            at: Some(at),
            what: NextEventKind::Evict { first, pods: pods.len() },
            estimated: certainty != Certainty::Observed,
            why: why.clone(),
            chance: None,
        };
        next.insert(node.clone(), event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_that_leave_soonest_come_first_and_equals_by_name() {
        let at = |secs| Timestamp::from_secs(secs);
        let scheduled = |secs| EvictionState::Scheduled { at: at(secs), certainty: Certainty::Observed };
        let terminating = EvictionState::Terminating {
            deadline: at(1),
            removed: None,
            finalizers: [].into(),
            kubelet_silent: false,
        };
        let by_kubelet = |at| EvictionState::ByKubelet { at, certainty: Certainty::Observed };
        let states = [
            ("later", by_kubelet(None)),
            ("fourth", by_kubelet(Some(at(10)))),
            ("stays", EvictionState::Never),
            ("third", scheduled(9)),
            ("kept", EvictionState::Cancelled { at: at(1) }),
            ("second", scheduled(5)),
            ("ends", terminating),
            ("first", EvictionState::Predicted { at: at(5), chance: None }),
        ];
        let row = |state| EvictionRow { node: "n".into(), state, why: Why::default() };
        let rows = states.map(|(name, state)| (Key::new("default", name), row(state))).into();
        let names: Vec<String> = by_urgency(&rows).iter().map(|key| key.name.to_string()).collect();
        assert_eq!(names, ["first", "second", "third", "fourth", "later", "ends", "kept", "stays"]);
    }
}
