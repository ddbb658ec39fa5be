//! What the engine knows of the nodes and pods that something is due at, asked for once and shown many times.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::Model;
use crate::{
    cluster::{Cluster, ConditionStatus, Key, LeaderLease, Name, Node, NodeName, Pod},
    engine::{Cause, Certainty, Confidence, Due, Engine, NodeStage, NodeView, Why, ZoneView},
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
    /// None until the engine has begun.
    pub confidence: Option<Confidence>,
    pub zones: Vec<ZoneView>,
    pub evictions: BTreeMap<Key, EvictionRow>,
    /// What comes next to a node, where anything does.
    pub dues: BTreeMap<NodeName, NextEvent>,
    pub revision: Revision,
}

/// Counts the changes of what lists are put in order by: while they stay the same, so does the order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Revision {
    /// Of node objects, but for what a kubelet's sign of life changes.
    pub nodes: u64,
    pub dues: u64,
    pub evictions: u64,
}

/// What is known of who the controller is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Leadership<'a> {
    /// Somebody holds the Lease kube-system/kube-controller-manager.
    Held(&'a LeaderLease),
    /// The Lease is there, and nobody holds it.
    Released,
    /// There is no such Lease: no controller runs, or one that does without leader election.
    NoLease,
    /// The Lease may not be read, so that nothing is known.
    Forbidden,
    /// The server has not said anything about the Lease yet.
    NotHeard,
}

/// A pod that leaves, will leave, or might have left.
#[derive(Clone, Debug, PartialEq)]
pub struct EvictionRow {
    pub node: NodeName,
    pub state: EvictionState,
    pub why: Why,
}

/// How an eviction stands.
#[derive(Clone, Debug, PartialEq)]
pub enum EvictionState {
    /// Its node has the taint, the time runs.
    Due { at: Timestamp, certainty: Certainty },
    /// Its node has no taint yet; the forecast says when this one falls due.
    Foreseen { at: Timestamp },
    /// Tolerated without a limit.
    Never,
    /// Deletion has begun; the grace ends at the deadline.
    Terminating { deadline: Timestamp, finalizers: Arc<[Name]>, kubelet_silent: bool },
    /// It was due and is not any more.
    Cancelled { at: Timestamp },
}

/// What comes next to a node.
#[derive(Clone, Debug, PartialEq)]
pub struct NextEvent {
    /// None where it waits for something that has no time.
    pub at: Option<Timestamp>,
    pub what: NextEventKind,
    /// Whether the time is an estimate.
    pub estimated: bool,
    pub why: Why,
}

/// What can come next to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextEventKind {
    /// Its conditions become Unknown.
    Unknown,
    /// It gets its NoExecute taint.
    Taint,
    /// So many of its pods are evicted, the first of them at the time.
    Evict(usize),
}

impl EvictionState {
    /// When it falls due, or did; none for one that never does.
    pub fn at(&self) -> Option<Timestamp> {
        match self {
            Self::Due { at, .. } | Self::Foreseen { at } | Self::Cancelled { at } => Some(*at),
            Self::Terminating { deadline, .. } => Some(*deadline),
            Self::Never => None,
        }
    }

    /// Those that are about to leave first, those that stay last.
    pub fn rank(&self) -> u8 {
        match self {
            Self::Due { .. } | Self::Foreseen { .. } => 0,
            Self::Terminating { .. } => 1,
            Self::Cancelled { .. } => 2,
            Self::Never => 3,
        }
    }
}

impl Model {
    /// Asks the engine anew about the nodes and pods that something is due at. Of the others it is asked when they
    /// are shown ([`Model::health`]): with 5,000 nodes, most are well and few are on screen.
    pub fn refresh(&mut self, now: Timestamp) {
        let Some(engine) = &self.engine else {
            self.views.taken = now;
            self.views.revision.nodes = self.node_changes;
            return;
        };
        self.watchlist.look(engine, &self.cluster, self.feeds.ahead(), now);
        let before = std::mem::take(&mut self.views);
        let mut views = Views {
            taken: now,
            confidence: Some(engine.confidence(now)),
            zones: engine.zones(now),
            evictions: self.pending(engine, now),
            dues: BTreeMap::new(),
            revision: Revision { nodes: self.node_changes, ..before.revision },
        };
        let foreseen = self.forecast.as_ref().map_or(Timestamp::EPOCH, |forecast| forecast.made);
        remember_cancelled(&before, &mut views.evictions, &self.cluster, foreseen, now);
        views.dues = self.dues(engine, &views, now);
        views.revision.dues += u64::from(views.dues != before.dues);
        views.revision.evictions += u64::from(views.evictions != before.evictions);
        self.views = views;
    }

    /// What is known of who the controller is.
    pub fn leadership(&self) -> Leadership<'_> {
        match (self.cluster.leader(), self.feeds.state(FeedKind::Leader)) {
            (Some(lease), _) if lease.holder.is_empty() => Leadership::Released,
            (Some(lease), _) => Leadership::Held(lease),
            (None, Some(FeedState::Forbidden { .. })) => Leadership::Forbidden,
            (None, Some(FeedState::Live)) => Leadership::NoLease,
            (None, _) => Leadership::NotHeard,
        }
    }

    /// What the controller believes of a node; none before there is an engine and a pass has seen the node.
    pub fn health(&self, node: &Node) -> Option<NodeView> {
        self.engine.as_ref()?.node_view(node)
    }

    /// Whether anything was due, or might come due, when the engine was last asked.
    pub fn is_abnormal(&self) -> bool {
        !self.watchlist.unwell().is_empty()
    }

    /// Every eviction that the engine counts down, the forecast foresees, or that is under way.
    fn pending(&self, engine: &Engine, now: Timestamp) -> BTreeMap<Key, EvictionRow> {
        let mut rows = BTreeMap::new();
        for step in self.forecast.iter().flat_map(|forecast| &forecast.steps) {
            if let forecast::ForecastKind::Deleted { pod, node }
            | forecast::ForecastKind::Removed { pod, node } = &step.what
                && step.at > now
                && self.cluster.pod(pod).is_some()
            {
                let state = EvictionState::Foreseen { at: step.at };
                rows.insert(pod.clone(), EvictionRow { node: node.clone(), state, why: step.why.clone() });
            }
        }
        for eviction in engine.evictions(&self.cluster) {
            let state = match eviction.due {
                Due::At { at, certainty } => EvictionState::Due { at, certainty },
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
            let Some(row) = node.and_then(|node| terminating(pod, node)) else { continue };
            let why = rows.remove(&pod.key).map(|row| row.why).unwrap_or_default();
            rows.insert(pod.key.clone(), EvictionRow { why, ..row });
        }
    }
}

fn terminating(pod: &Pod, node: &Node) -> Option<EvictionRow> {
    let termination = pod.termination.as_ref()?;
    let kubelet_silent = node.ready().is_none_or(|ready| ready.status == ConditionStatus::Unknown);
    let state = EvictionState::Terminating {
        deadline: termination.deadline,
        finalizers: pod.finalizers.clone(),
        kubelet_silent,
    };
    Some(EvictionRow { node: node.name.clone(), state, why: Why::default() })
}

/// Puts in the evictions that were still to come, are not any more, and whose pod is still there.
///
/// What was cancelled is not foreseen by a forecast from before.
fn remember_cancelled(
    before: &Views,
    rows: &mut BTreeMap<Key, EvictionRow>,
    cluster: &Cluster,
    foreseen: Timestamp,
    now: Timestamp,
) {
    for (key, row) in &before.evictions {
        let (at, why) = match row.state {
            EvictionState::Due { at, .. } if at > now => (now, Why::from(Cause::TaintsGone)),
            EvictionState::Cancelled { at } if now.since(at) < REMEMBERED => (at, row.why.clone()),
            EvictionState::Due { .. }
            | EvictionState::Cancelled { .. }
            | EvictionState::Foreseen { .. }
            | EvictionState::Never
            | EvictionState::Terminating { .. } => continue,
        };
        let goes_on = rows.get(key).is_some_and(|row| match row.state {
            EvictionState::Foreseen { .. } => foreseen > at,
            EvictionState::Due { .. }
            | EvictionState::Cancelled { .. }
            | EvictionState::Never
            | EvictionState::Terminating { .. } => true,
        });
        let stays = cluster.pod(key).is_some_and(|pod| pod.node.as_ref() == Some(&row.node));
        if stays && !goes_on {
            let state = EvictionState::Cancelled { at };
            rows.insert(key.clone(), EvictionRow { node: row.node.clone(), state, why });
        }
    }
}

impl Model {
    /// What comes next to each node: what the forecast says, else the first of its evictions, else what its silence
    /// leads to.
    fn dues(&self, engine: &Engine, views: &Views, now: Timestamp) -> BTreeMap<NodeName, NextEvent> {
        let mut dues = self.foreseen_dues(now);
        add_evictions(views, &mut dues);
        let firm = views.confidence.is_some_and(Confidence::allows_predictions);
        for node in self.watchlist.unwell().iter().filter_map(|name| self.cluster.node(name)) {
            let Some(health) = engine.node_view(node) else { continue };
            let (at, what) = match health.stage {
                NodeStage::Healthy if firm && self.is_going_silent(engine, node, now) => {
                    (Some(health.expires()), NextEventKind::Unknown)
                }
                NodeStage::Queued | NodeStage::Requested => (None, NextEventKind::Taint),
                NodeStage::Healthy | NodeStage::Tainted | NodeStage::Evicted => continue,
            };
            let why = engine.why_silent(&node.name).unwrap_or_default();
            let estimated = health.certainty != Certainty::Observed;
            dues.entry(node.name.clone()).or_insert(NextEvent { at, what, estimated, why });
        }
        dues
    }

    fn foreseen_dues(&self, now: Timestamp) -> BTreeMap<NodeName, NextEvent> {
        let mut dues = BTreeMap::new();
        for step in self.forecast.iter().flat_map(|forecast| &forecast.steps).filter(|step| step.at > now) {
            let what = match &step.what {
                forecast::ForecastKind::Unknown { .. } => NextEventKind::Unknown,
                forecast::ForecastKind::NoExecute { .. } => NextEventKind::Taint,
                forecast::ForecastKind::Deleted { .. } | forecast::ForecastKind::Removed { .. } => continue,
            };
            let node = step.what.node();
            dues.entry(node.clone()).or_insert_with(|| NextEvent {
                at: Some(step.at),
                what,
                estimated: self.is_estimated(node, &step.why),
                why: step.why.clone(),
            });
        }
        dues
    }

    fn is_going_silent(&self, engine: &Engine, node: &Node, now: Timestamp) -> bool {
        node.is_ready() && forecast::is_silent(engine, &self.cluster, node, self.feeds.ahead(), now)
    }

    /// Whether a foreseen time hangs on an estimate, or on chance among several waiting nodes.
    fn is_estimated(&self, node: &NodeName, why: &Why) -> bool {
        let waits = why.0.iter().any(|cause| matches!(cause, Cause::Queued { .. } | Cause::Token { .. }));
        let health = || self.health(self.cluster.node(node)?);
        waits || health().is_some_and(|health| health.certainty != Certainty::Observed)
    }
}

/// The first eviction of each node that nothing else comes to, and how many there are.
fn add_evictions(views: &Views, dues: &mut BTreeMap<NodeName, NextEvent>) {
    let taken: BTreeSet<NodeName> = dues.keys().cloned().collect();
    for row in views.evictions.values() {
        let EvictionState::Due { at, certainty } = row.state else { continue };
        if taken.contains(&row.node) {
            continue;
        }
        let due = dues.entry(row.node.clone()).or_insert_with(|| NextEvent {
            at: None,
            what: NextEventKind::Evict(0),
            estimated: false,
            why: Why::default(),
        });
        if let NextEventKind::Evict(pods) = &mut due.what {
            *pods += 1;
        }
        if due.at.is_none_or(|first| at < first) {
            (due.at, due.estimated, due.why) = (Some(at), certainty != Certainty::Observed, row.why.clone());
        }
    }
}
