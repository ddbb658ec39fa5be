//! What the engine knows of the nodes and pods that something is about to happen to, asked once and shown many times.

use std::collections::BTreeMap;

use super::{
    Model,
    eviction::{EvictionRow, EvictionState},
    eviction_outcomes::EvictionCounts,
};
use crate::{
    cluster::{Cluster, ConditionStatus, Key, LeaderLease, Node, NodeName, Pod},
    engine::{Cause, Certainty, Confidence, Due, Engine, NodeStage, NodeView, Silence, Why, ZoneView},
    forecast,
    k8s::feed::{FeedKind, FeedState},
    time::{Span, Timestamp},
};

/// How long a cancelled eviction stays in the list.
const REMEMBERED: Span = Span::from_secs(120);

/// What the engine knew at one moment.
#[derive(Clone, Debug, Default)]
pub struct Views {
    pub taken: Timestamp,
    /// None until the engine has started.
    pub confidence: Option<Confidence>,
    pub zones: Vec<ZoneView>,
    pub evictions: BTreeMap<Key, EvictionRow>,
    pub counts: EvictionCounts,
    /// The next event of each node that has one.
    pub next: BTreeMap<NodeName, NextEvent>,
    pub revision: Revision,
}

/// Counts the changes of what is known, as of the last refresh: while the counts stay the same, so do the lists made from it,
/// and a screen that showed it has nothing to show but the time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Revision {
    /// Changes of node objects, heartbeats apart.
    pub nodes: u64,
    /// Changes of the nodes' states.
    pub states: u64,
    /// Changes of zones, and of how far predictions can be trusted.
    pub zones: u64,
    pub next: u64,
    pub evictions: u64,
    /// Changes of the pods that wait for a node.
    pub unscheduled: u64,
    /// Pods that came to a node or left one.
    pub moves: u64,
    pub departures: u64,
    pub journal: u64,
    /// Results of forecasts and of other work beside the loop.
    pub results: u64,
}

/// Who the controller is, as far as is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Leadership<'a> {
    /// A controller manager holds the Lease kube-system/kube-controller-manager.
    Held(&'a LeaderLease),
    /// The Lease exists and has no holder.
    Released,
    /// The Lease does not exist: no controller runs, or one without leader election.
    NoLease,
    /// We may not read the Lease.
    Forbidden,
    /// The server has not answered yet.
    Unknown,
}

/// The next event of a node.
#[derive(Clone, Debug, PartialEq)]
pub struct NextEvent {
    /// None if it waits for something that has no known time.
    pub at: Option<Timestamp>,
    pub what: NextEventKind,
    /// Whether the time is an estimate.
    pub estimated: bool,
    pub why: Why,
    /// The chance that it happens at this time, where several nodes wait for one token.
    pub chance: Option<forecast::Chance>,
}

/// What a node's next event can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextEventKind {
    /// Its conditions become Unknown.
    Unknown,
    /// It gets its NoExecute taint.
    Taint,
    /// Some of its pods are evicted, the first of them at that time.
    Evict {
        /// Those that are evicted then, to the second.
        first: usize,
        /// All of them.
        pods: usize,
    },
}

impl Views {
    fn says_the_same_of_zones(&self, other: &Self) -> bool {
        self.confidence == other.confidence
            && self.zones.len() == other.zones.len()
            && self.zones.iter().zip(&other.zones).all(|(zone, other)| zone.says_the_same(other))
    }
}

impl Model {
    /// Asks the engine about the nodes and pods that something is about to happen to. It is asked about the others when they
    /// are shown ([`Model::health`]): with 5,000 nodes, most are healthy and few are on screen.
    pub fn refresh(&mut self, now: Timestamp) {
        self.departures.expire(now);
        let counted = Revision {
            nodes: self.node_changes,
            unscheduled: self.unscheduled_changes,
            moves: self.pod_moves,
            departures: self.departures.revision(),
            journal: self.journal.revision(),
            results: self.results,
            ..self.views.revision
        };
        let Some(engine) = &self.engine else {
            (self.views.taken, self.views.revision) = (now, counted);
            return;
        };
        let judged_at = match engine.confidence(now) {
            Confidence::Disconnected { since } => since.min(now),
            Confidence::Live | Confidence::Assumed | Confidence::NoController { .. } => now,
        };
        self.watchlist.update(engine, &self.cluster, judged_at);
        for forecast in self.forecast.iter_mut().chain(&mut self.outlook) {
            let abnormal = self.watchlist.abnormal();
            let cluster = &self.cluster;
            forecast.forget_heard(|name| {
                abnormal.contains(name)
                    && cluster.node(name).is_none_or(|node| engine.is_silent(cluster, node, now))
            });
        }
        let before = std::mem::take(&mut self.views);
        let mut views = Views {
            taken: now,
            confidence: Some(engine.confidence(now)),
            zones: engine.zones(now),
            evictions: self.pending(engine, now),
            counts: EvictionCounts::default(),
            next: BTreeMap::new(),
            revision: Revision { states: self.watchlist.revision(), ..counted },
        };
        let predicted_at = self.forecast.as_ref().map_or(Timestamp::EPOCH, |forecast| forecast.made);
        remember_cancelled(&before, &mut views.evictions, &self.cluster, predicted_at, now);
        views.counts = EvictionCounts::of(&views.evictions, self.outcomes.as_deref());
        views.next = self.next_events(engine, &views, now);
        views.revision.zones += u64::from(!views.says_the_same_of_zones(&before));
        views.revision.next += u64::from(views.next != before.next);
        views.revision.evictions += u64::from(views.evictions != before.evictions);
        self.views = views;
    }

    /// Who the controller is, as far as is known.
    pub fn leadership(&self) -> Leadership<'_> {
        match (self.cluster.leader(), self.feeds.state(FeedKind::Leader)) {
            (Some(lease), _) if lease.holder.is_empty() => Leadership::Released,
            (Some(lease), _) => Leadership::Held(lease),
            (None, Some(FeedState::Forbidden { .. })) => Leadership::Forbidden,
            (None, Some(FeedState::Live)) => Leadership::NoLease,
            (None, _) => Leadership::Unknown,
        }
    }

    /// What the controller believes of a node; none until the engine has started and a pass has seen the node.
    pub fn health(&self, node: &Node) -> Option<NodeView> {
        self.engine.as_ref()?.node_view(node)
    }

    /// The last heartbeat of a node, and from when on it counts as late or silent; none until the engine has started.
    pub fn silence(&self, node: &Node) -> Option<Silence> {
        Some(self.engine.as_ref()?.silence(&self.cluster, node))
    }

    /// Whether any node was abnormal at the last refresh, so that there is something to predict.
    pub fn is_abnormal(&self) -> bool {
        !self.watchlist.abnormal().is_empty()
    }

    /// Every eviction that the forecast predicts, that the engine counts down, or that is in progress.
    fn pending(&self, engine: &Engine, now: Timestamp) -> BTreeMap<Key, EvictionRow> {
        let mut rows = BTreeMap::new();
        for step in self.forecast.iter().flat_map(|forecast| &forecast.steps) {
            if let forecast::ForecastKind::Deleted { pod, node }
            | forecast::ForecastKind::Removed { pod, node } = &step.kind
                && step.at > now
                && self.cluster.pod(pod).is_some()
            {
                let state = EvictionState::Predicted { at: step.at, chance: step.chance.clone() };
                rows.insert(pod.clone(), EvictionRow { node: node.clone(), state, why: step.why.clone() });
            }
        }
        for eviction in engine.evictions(&self.cluster) {
            let state = match eviction.due {
                Due::At { at, certainty } => EvictionState::Scheduled { at, certainty },
                Due::Never => EvictionState::Never,
            };
            rows.insert(eviction.pod, EvictionRow { node: eviction.node, state, why: eviction.why });
        }
        self.add_terminating(&mut rows);
        rows
    }

    fn add_terminating(&self, rows: &mut BTreeMap<Key, EvictionRow>) {
        for pod in self.cluster.terminating_pods() {
            let node = pod.node.as_ref().and_then(|node| self.cluster.node(node));
            let Some(row) = node.and_then(|node| terminating(&self.cluster, pod, node)) else { continue };
            let why = rows.remove(&pod.key).map(|row| row.why).unwrap_or_default();
            rows.insert(pod.key.clone(), EvictionRow { why, ..row });
        }
    }
}

fn terminating(cluster: &Cluster, pod: &Pod, node: &Node) -> Option<EvictionRow> {
    let termination = pod.termination.as_ref()?;
    let kubelet_silent = node.ready().is_none_or(|ready| ready.status == ConditionStatus::Unknown);
    let state = EvictionState::Terminating {
        deadline: cluster.local(termination.deadline),
        finalizers: pod.finalizers.clone(),
        kubelet_silent,
    };
    Some(EvictionRow { node: node.name.clone(), state, why: Why::default() })
}

/// Adds the evictions that were scheduled, are not any more, and whose pod is still there.
///
/// An older forecast does not bring a cancelled eviction back.
fn remember_cancelled(
    before: &Views,
    rows: &mut BTreeMap<Key, EvictionRow>,
    cluster: &Cluster,
    predicted_at: Timestamp,
    now: Timestamp,
) {
    for (key, row) in &before.evictions {
        let (at, why) = match row.state {
            EvictionState::Scheduled { at, .. } if at > now => (now, Why::from(Cause::TaintsGone)),
            EvictionState::Cancelled { at } if now.since(at) < REMEMBERED => (at, row.why.clone()),
            EvictionState::Scheduled { .. }
            | EvictionState::Cancelled { .. }
            | EvictionState::Predicted { .. }
            | EvictionState::Never
            | EvictionState::Terminating { .. } => continue,
        };
        let still_leaves = rows.get(key).is_some_and(|row| match row.state {
            EvictionState::Predicted { .. } => predicted_at > at,
            EvictionState::Scheduled { .. }
            | EvictionState::Cancelled { .. }
            | EvictionState::Never
            | EvictionState::Terminating { .. } => true,
        });
        let stays = cluster.pod(key).is_some_and(|pod| pod.node.as_ref() == Some(&row.node));
        if stays && !still_leaves {
            let state = EvictionState::Cancelled { at };
            rows.insert(key.clone(), EvictionRow { node: row.node.clone(), state, why });
        }
    }
}

impl Model {
    /// The next event of each node: what the forecast predicts, else its first eviction, else what its silence leads
    /// to.
    fn next_events(&self, engine: &Engine, views: &Views, now: Timestamp) -> BTreeMap<NodeName, NextEvent> {
        let mut next = self.predicted_events(now);
        add_evictions(views, &mut next);
        let predictable = views.confidence.is_some_and(Confidence::allows_predictions);
        for node in self.watchlist.abnormal().iter().filter_map(|name| self.cluster.node(name)) {
            let Some(view) = engine.node_view(node) else { continue };
            let (at, what) = match view.stage {
                NodeStage::Healthy if predictable && self.is_going_silent(engine, node, now) => {
                    (Some(view.expires()), NextEventKind::Unknown)
                }
                NodeStage::Queued | NodeStage::Requested => (None, NextEventKind::Taint),
                NodeStage::Healthy | NodeStage::Tainted | NodeStage::Evicted => continue,
            };
            let why = engine.why_silent(&node.name).unwrap_or_default();
            let estimated = view.certainty != Certainty::Observed;
            next.entry(node.name.clone()).or_insert(NextEvent { at, what, estimated, why, chance: None });
        }
        next
    }

    fn predicted_events(&self, now: Timestamp) -> BTreeMap<NodeName, NextEvent> {
        let mut next = BTreeMap::new();
        for step in self.forecast.iter().flat_map(|forecast| &forecast.steps).filter(|step| step.at > now) {
            let what = match &step.kind {
                forecast::ForecastKind::Unknown { .. } => NextEventKind::Unknown,
                forecast::ForecastKind::NoExecute { .. } => NextEventKind::Taint,
                forecast::ForecastKind::Deleted { .. } | forecast::ForecastKind::Removed { .. } => continue,
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

    fn is_going_silent(&self, engine: &Engine, node: &Node, now: Timestamp) -> bool {
        node.is_ready() && engine.is_silent(&self.cluster, node, now)
    }

    /// Whether a predicted time depends on an estimate, or on chance among several waiting nodes.
    fn is_estimated(&self, node: &NodeName, why: &Why) -> bool {
        let waits = why.0.iter().any(|cause| matches!(cause, Cause::Queued { .. } | Cause::Token { .. }));
        let health = || self.health(self.cluster.node(node)?);
        waits || health().is_some_and(|health| health.certainty != Certainty::Observed)
    }
}

/// Adds the first eviction of each node that has no event yet, and how many evictions there are.
fn add_evictions(views: &Views, next: &mut BTreeMap<NodeName, NextEvent>) {
    let mut scheduled: BTreeMap<&NodeName, Vec<(Timestamp, Certainty, &Why)>> = BTreeMap::new();
    for row in views.evictions.values().filter(|row| !next.contains_key(&row.node)) {
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
