//! The node lifecycle controller: health, zones, rate-limited queues, taints, taint eviction.
//!
//! Follows `nodelifecycle.Controller` and the taint-eviction controller as specified in
//! `docs/upstream/node-lifecycle.md`; `docs/controller.md` maps function to function and lists the known differences.

mod pass_scope;
mod audit;
mod uncertain_taints;
mod collector;
mod disruption;
pub mod effect;
mod eviction;
mod health;
mod legacy;
mod limiter;
pub mod metrics;
mod outbox;
mod pass;
mod queue;
pub mod settings;
mod shadow;
mod taints;
pub mod view;
pub mod why;
pub mod zone;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

pub use effect::{
    Deletion, Effect, EffectId, EventObject, NODE_LOST, Notice, Outcome, RecordedEvent, Severity,
    UnknownCondition, Write,
};
pub use eviction::{Tolerance, no_execute, tolerance};
pub use health::rewritten;
pub use legacy::EvictionStatus;
pub use settings::{ControllerRules, Controllers, Origin, Profile, ServerVersion, Setting, Settings};
pub use taints::{NOT_READY, UNREACHABLE};
pub use uncertain_taints::UncertainTaints;
pub use view::{Deadline, Due, NodeStage, NodeView, PendingEviction, ZoneView};
pub use why::{Cause, Certainty, HeartbeatSource, Why};
pub use zone::ZoneState;

use crate::{
    cluster::{
        Applied, Cluster, ConditionStatus, Delta, Key, Lease, Node, NodeName, Pod, TaintEffect, Uid, ZoneKey,
    },
    time::{Span, Timestamp},
};
use collector::Collector;
use eviction::{Evictor, TimerSource};
use health::NodeHealth;
use legacy::Legacy;
use metrics::Metrics;
use outbox::{EffectSubject, Outbox};
use pass_scope::PassScope;
use shadow::Shadow;
use zone::Zone;

/// Upstream's tainting loop runs so often (`NodeEvictionPeriod`).
const TAINTING_PERIOD: Span = Span::from_millis(100);
/// Where the tainting loop's beat lies between two passes: half a period after them.
const TAINTING_PHASE: Span = Span::from_millis(50);
/// What a pass itself takes. Upstream's period counts from the end of a pass, so that a grace period which is a
/// multiple of it ends just before a pass and not at one.
const PASS_TAKES: Span = Span::from_millis(1);

/// The node lifecycle controller as a state machine without clock or IO.
///
/// # Contract
/// - Apply each change to the [`Cluster`] first, then hand what it meant to [`Engine::handle_change`].
/// - After every `handle_*`, poll [`Engine::poll_effect`] and [`Engine::poll_notice`] until they are empty, then wake
///   the engine at [`Engine::poll_timeout`]. A call of [`Engine::handle_timeout`] before that does nothing.
/// - `now` never goes backwards, and every effect is answered by one [`Engine::handle_outcome`].
/// - What an effect does to the cluster comes back as a change, like everybody else's doings.
///
/// Equal inputs give equal outputs. Upstream leaves three things to chance, and here they are inputs: when the first
/// pass is, in which order a pass handles the nodes ([`Engine::set_order`]; by name unless told), and how many nodes
/// are tainted in the middle of the pass that finds their zone disrupted ([`Engine::set_tainted_mid_pass`]; none unless
/// told).
#[derive(Clone, Debug)]
pub struct Engine {
    settings: Settings,
    rules: ControllerRules,
    /// Health records by node; kept when the node object goes (docs/upstream/node-lifecycle.md#2.1).
    records: BTreeMap<NodeName, NodeHealth>,
    /// The nodes that passes have seen (upstream `knownNodeSet`).
    registered: BTreeSet<NodeName>,
    /// Whether nodes came, went or moved, or zones were dropped, since the last pass: only then is there something to
    /// classify.
    roll_changed: bool,
    zones: BTreeMap<ZoneKey, Zone>,
    evictor: Evictor,
    legacy: Legacy,
    /// None where the pod garbage collector does not run.
    collector: Option<Collector>,
    metrics: Metrics,
    /// Nodes whose turn for the taint came and is not answered for, with the zone that it counts in.
    tainting: BTreeMap<NodeName, ZoneKey>,
    out: Outbox,
    next_pass: Timestamp,
    /// A beat of the tainting loop; the others lie whole periods from it.
    tainting_beat: Timestamp,
    last_tainting: Option<Timestamp>,
    /// What a pass handles first, in this order.
    order: Vec<NodeName>,
    /// How many nodes of each zone are tainted just before its state next changes.
    tainted_between: BTreeMap<ZoneKey, usize>,
    /// What a forecast has left to chance.
    chances: VecDeque<UncertainTaints>,
    attention: PassScope,
    watch_health: WatchHealth,
    /// Whose shadow this is; none where the engine itself is the controller.
    shadow: Option<Shadow>,
}

/// Whether the watches of nodes and leases are up to date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchHealth {
    Live,
    /// The watches have been silent or broken since then.
    Disconnected {
        since: Timestamp,
    },
}

/// How far the engine's predictions can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confidence {
    /// The watches are live, and a controller is active (or kordon is the controller).
    Live,
    /// The watches are live, but no Lease shows whether a controller is active: the engine assumes one.
    Assumed,
    /// The watches are down: what happened since then is unknown.
    Disconnected { since: Timestamp },
    /// No controller manager has renewed its Lease since then: nothing happens until one does.
    NoController { since: Timestamp },
}

impl Confidence {
    /// Whether predictions can be made.
    pub const fn allows_predictions(self) -> bool {
        match self {
            Self::Live | Self::Assumed => true,
            Self::Disconnected { .. } | Self::NoController { .. } => false,
        }
    }
}

impl Engine {
    /// Begins as upstream does: every node gets a fresh grace period. The first pass is at `first_pass`.
    pub fn start(settings: Settings, cluster: &Cluster, first_pass: Timestamp, now: Timestamp) -> Self {
        let mut engine = Self::new(settings, first_pass, TimerSource::Controller, None);
        engine.register_all(cluster);
        engine.begin_collecting(cluster, first_pass, Certainty::Observed, now);
        for node in cluster.nodes().iter() {
            engine.reconcile(node, now);
        }
        engine.evictor.take_all(cluster, &engine.rules, &mut engine.out, now);
        engine.evictor.on_timeout(cluster, &engine.rules, &mut engine.out, now);
        engine
    }

    /// Begins as the shadow of a controller that has been running: probeTimestamps are estimated from what kubelets
    /// wrote, eviction timers from the taints' timeAdded, limiters from the last taints of each zone.
    ///
    /// `ahead` is how far the API server's clock is ahead of ours.
    pub fn attach(settings: Settings, cluster: &Cluster, ahead: Span, now: Timestamp) -> Self {
        let began = shadow::leader_began(cluster.leader(), ahead);
        let manner = TimerSource::Shadow { ahead, began };
        let mut engine = Self::new(settings, now, manner, Some(Shadow::new(cluster, ahead)));
        engine.estimate(cluster, now);
        engine.register_all(cluster);
        engine.begin_collecting(cluster, began.unwrap_or(now), Certainty::Estimated, now);
        if !engine.settings.controllers.value.node_lifecycle {
            let text =
                "kube-controller-manager runs without the node lifecycle controller: node states are frozen";
            engine.out.notice(Severity::Warning, text.into(), Why::default(), now);
        }
        engine.evictor.take_all(cluster, &engine.rules, &mut engine.out, now);
        engine.evictor.on_timeout(cluster, &engine.rules, &mut engine.out, now);
        engine
    }

    fn new(settings: Settings, first_pass: Timestamp, manner: TimerSource, shadow: Option<Shadow>) -> Self {
        Self {
            rules: settings.rules(),
            settings,
            records: BTreeMap::new(),
            registered: BTreeSet::new(),
            roll_changed: true,
            zones: BTreeMap::new(),
            evictor: Evictor::new(manner),
            legacy: Legacy::default(),
            collector: None,
            metrics: Metrics::default(),
            tainting: BTreeMap::new(),
            out: Outbox::default(),
            next_pass: first_pass,
            tainting_beat: first_pass + TAINTING_PHASE,
            last_tainting: None,
            order: Vec::new(),
            tainted_between: BTreeMap::new(),
            chances: VecDeque::new(),
            attention: PassScope::Everywhere,
            watch_health: WatchHealth::Live,
            shadow,
        }
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Makes passes handle these nodes first, in this order; the others follow by name.
    pub fn set_order(&mut self, order: Vec<NodeName>) {
        self.order = order;
    }

    /// Takes in what a change did to the cluster, after it was applied.
    pub fn handle_change(&mut self, cluster: &Cluster, applied: &Applied, now: Timestamp) {
        match applied {
            Applied::Node(delta) => self.on_node(cluster, delta, now),
            Applied::Pod(delta) => self.on_pod(cluster, delta, now),
            Applied::Leader(_, new) => self.on_leader(cluster, new.as_ref(), now),
            Applied::Lease(delta) => self.on_lease(cluster, delta),
            Applied::Other => {}
        }
        self.evict_due(cluster, now);
    }

    /// Takes in what came of an effect.
    pub fn handle_outcome(&mut self, cluster: &Cluster, effect: EffectId, outcome: Outcome, now: Timestamp) {
        let Some(effect) = self.out.returned(effect) else { return };
        match outcome {
            Outcome::Done => self.on_done(cluster, &effect.write, now),
            Outcome::Recorded => {
                self.on_done(cluster, &effect.write, now);
                self.on_recorded(cluster, effect, now);
            }
            Outcome::Conflict => self.on_undone(cluster, &effect.write, now),
            Outcome::Gone => self.on_gone(cluster, &effect.write, now),
            Outcome::Failed(error) => {
                let text = format!("{}: cannot {}: {error}", effect.write.object(), effect.write.summary());
                self.out.notice(Severity::Error, text, effect.why.clone(), now);
                self.on_undone(cluster, &effect.write, now);
            }
        }
    }

    /// Does what is due. A call before anything is due does nothing.
    pub fn handle_timeout(&mut self, cluster: &Cluster, now: Timestamp) {
        self.evict_due(cluster, now);
        if self.acts() && self.collecting_due().is_some_and(|due| due <= now) {
            self.collect(cluster, now);
        }
        if self.tainting_due().is_some_and(|due| due <= now) {
            self.last_tainting = Some(now);
            if self.acts() {
                match self.rules.profile {
                    Profile::Taint => self.taint_waiting(cluster, now),
                    Profile::Legacy => self.evict_waiting(cluster, now),
                }
            }
        }
        if self.next_pass <= now {
            let ended = self.shadow.as_ref().and_then(Shadow::followed_pass_ended).unwrap_or(now);
            let next_pass = ended + PASS_TAKES + self.settings.node_monitor_period.value;
            self.next_pass = next_pass.max(now + PASS_TAKES);
            if self.next_beat(now) == now {
                // The tainting loop had its turn at this very moment, and comes again after the pass.
                self.last_tainting = Some(now);
            }
            if self.watch_health == WatchHealth::Live {
                self.look_for_controller(now);
                self.give_up_waiting(cluster, now);
            }
            if self.confidence(now).allows_predictions() && self.settings.controllers.value.node_lifecycle {
                self.monitor(cluster, now);
            }
            if let Some(shadow) = &mut self.shadow {
                shadow.forget_followed_pass();
            }
        }
    }

    /// Takes in whether the watches of nodes and leases are up to date. While they are not, no node is judged.
    pub fn handle_watch_health(&mut self, cluster: &Cluster, health: WatchHealth, now: Timestamp) {
        let before = std::mem::replace(&mut self.watch_health, health);
        match (before, health) {
            (WatchHealth::Live, WatchHealth::Disconnected { .. }) => {
                let text = "disconnected from nodes and leases: states frozen".into();
                self.out.notice(Severity::Warning, text, Why::default(), now);
            }
            (WatchHealth::Disconnected { since }, WatchHealth::Live) => {
                let text = format!("reconnected to nodes and leases after {}", now.since(since));
                self.out.notice(Severity::Info, text, Why::default(), now);
                self.catch_up(cluster, now);
            }
            (WatchHealth::Live, WatchHealth::Live)
            | (WatchHealth::Disconnected { .. }, WatchHealth::Disconnected { .. }) => {}
        }
    }

    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.out.poll_effect()
    }

    pub fn poll_notice(&mut self) -> Option<Notice> {
        self.out.poll_notice()
    }

    /// When [`Engine::handle_timeout`] must be called next, and why.
    pub fn poll_timeout(&self) -> Option<Deadline> {
        let pass = Deadline { at: self.next_pass, why: Cause::MonitorPass.into() };
        if !self.acts() {
            return Some(pass);
        }
        let tainting = self.tainting_due().map(|at| Deadline { at, why: self.why_tainting() });
        let eviction = self.evictor.next().map(|(at, why)| Deadline { at, why: why.clone() });
        let collecting = self.collecting_due().map(|at| Deadline { at, why: Cause::CollectorPass.into() });
        [Some(pass), tainting, eviction, collecting].into_iter().flatten().min_by_key(|deadline| deadline.at)
    }

    /// Whether predictions can be made at all.
    pub fn confidence(&self, now: Timestamp) -> Confidence {
        match (self.watch_health, &self.shadow) {
            (WatchHealth::Disconnected { since }, _) => Confidence::Disconnected { since },
            (WatchHealth::Live, Some(shadow)) => shadow.confidence(now),
            (WatchHealth::Live, None) => Confidence::Live,
        }
    }

    /// What is believed of a node; none where no pass has seen it.
    pub fn node_view(&self, node: &Node) -> Option<NodeView> {
        let record = self.records.get(&node.name)?;
        Some(NodeView {
            probe: record.probe,
            heartbeat_source: record.heartbeat_source,
            certainty: record.certainty,
            grace: record.grace(&self.settings),
            zone: node.zone(),
            stage: self.stage(node),
            eviction: match self.rules.profile {
                Profile::Taint => None,
                Profile::Legacy => Some(self.legacy.status(&node.name)),
            },
        })
    }

    /// When a node that renews nothing more has missed its heartbeats; none where no pass has seen it.
    ///
    /// Kubelets renew at a quarter of the Lease's duration; a renewal may be late by half of that and a second. A node
    /// without a Lease is silent after half of its grace period. `ahead` is the server's clock minus ours.
    pub fn silent_from(&self, cluster: &Cluster, node: &Node, ahead: Span) -> Option<Timestamp> {
        let lease = cluster.lease(&node.name);
        if let Some((renewed, duration)) = lease.and_then(|lease| Some((lease.renewed?, lease.duration?))) {
            let interval = duration.as_secs_f64() / 4.0;
            return Some(renewed - ahead + Span::from_secs_f64(interval * 1.5 + 1.0));
        }
        let view = self.node_view(node)?;
        Some(view.probe + Span::from_secs_f64(view.grace.as_secs_f64() / 2.0))
    }

    /// Whether a node has missed its heartbeats ([`Engine::silent_from`]).
    pub fn is_silent(&self, cluster: &Cluster, node: &Node, ahead: Span, now: Timestamp) -> bool {
        self.silent_from(cluster, node, ahead).is_some_and(|from| from < now)
    }

    /// Why the node is, or will be, found silent.
    pub fn why_silent(&self, node: &NodeName) -> Option<Why> {
        self.records.get(node).map(|record| record.why(&self.settings))
    }

    /// Every zone, by its key.
    pub fn zones(&self, now: Timestamp) -> Vec<ZoneView> {
        let view = |(key, zone): (&ZoneKey, &Zone)| ZoneView {
            key: key.clone(),
            state: zone.state.unwrap_or_default(),
            size: zone.census.size(),
            not_ready: zone.census.not_ready,
            rate: zone.limiter.rate(),
            queue: zone
                .queue
                .waiting()
                .map(|entry| entry.node.clone())
                .collect::<BTreeSet<_>>()
                .into_iter()
                .collect(),
            next_token: zone.limiter.next_token(now),
        };
        self.zones.iter().map(view).collect()
    }

    /// The pending evictions of one node, in order of their pods.
    pub fn evictions_on(&self, cluster: &Cluster, node: &Node) -> Vec<PendingEviction> {
        match self.rules.profile {
            Profile::Taint => self.evictor.pending_on(cluster, &node.name),
            Profile::Legacy => self.pending_with(cluster, node),
        }
    }

    /// Every pod whose deletion has not begun on a node with NoExecute taints, or in legacy mode on one that is not
    /// ready, and every pod of a node that is missing; soonest first, those that never fall due last.
    pub fn evictions(&self, cluster: &Cluster) -> Vec<PendingEviction> {
        let mut pending = match self.rules.profile {
            Profile::Taint => self.evictor.pending(cluster),
            Profile::Legacy => self.pending_with_nodes(cluster),
        };
        let orphans = self.collector.as_ref().map_or_else(Vec::new, |collector| collector.pending(cluster));
        if !orphans.is_empty() {
            // What comes first counts: an orphan's timer may still run.
            let mut first: BTreeMap<Key, PendingEviction> = BTreeMap::new();
            for eviction in pending.into_iter().chain(orphans) {
                let known = first.get(&eviction.pod);
                if known.is_none_or(|known| eviction.order() < known.order()) {
                    first.insert(eviction.pod.clone(), eviction);
                }
            }
            pending = first.into_values().collect();
        }
        pending.sort_by_cached_key(PendingEviction::order);
        pending
    }

    /// The values of upstream's metrics.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// A copy that has asked for nothing yet, for a forecast; with what is under way, to be taken as done.
    pub fn forecast_copy(&self) -> (Self, Vec<Write>) {
        let (mut out, in_flight) = self.out.run_ahead();
        for effect in self.out.overdue() {
            out.propose(effect.write.clone(), effect.why.clone(), effect.at);
        }
        let copy = Self {
            settings: self.settings.clone(),
            rules: self.rules,
            records: self.records.clone(),
            registered: self.registered.clone(),
            roll_changed: self.roll_changed,
            zones: self.zones.clone(),
            evictor: self.evictor.run_ahead(),
            legacy: self.legacy.run_ahead(),
            collector: self.collector.clone(),
            metrics: self.metrics.clone(),
            tainting: BTreeMap::new(),
            out,
            next_pass: self.next_pass,
            tainting_beat: self.tainting_beat,
            last_tainting: self.last_tainting,
            order: Vec::new(),
            tainted_between: BTreeMap::new(),
            chances: VecDeque::new(),
            attention: PassScope::Afresh,
            watch_health: self.watch_health,
            shadow: self.shadow.as_ref().map(Shadow::run_ahead),
        };
        (copy, in_flight)
    }

    /// Takes these nodes for alive from now on, as if each pass saw a sign of life of them.
    pub fn assume_alive(&mut self, cluster: &Cluster, is_alive: impl Fn(&Node) -> bool) {
        for node in cluster.nodes().iter() {
            let first_seen = || NodeHealth::first_seen(node, self.next_pass);
            let record = self.records.entry(node.name.clone()).or_insert_with(first_seen);
            record.assumed_alive = is_alive(node);
        }
        self.attention.on_upheaval();
    }

    /// Takes a node for alive from now on, or for silent after a last sign of life now.
    pub fn set_assumed_alive(&mut self, node: &NodeName, is_alive: bool, now: Timestamp) {
        let Some(record) = self.records.get_mut(node) else { return };
        if record.assumed_alive {
            record.see(HeartbeatSource::Lease, now);
        }
        record.assumed_alive = is_alive;
        self.attention.on_upheaval();
    }

    /// Whether timers and queues run at all: not while we are blind or nobody leads.
    fn acts(&self) -> bool {
        self.watch_health == WatchHealth::Live && self.shadow.as_ref().is_none_or(Shadow::has_controller)
    }

    fn stage(&self, node: &Node) -> NodeStage {
        if self.rules.profile == Profile::Legacy {
            return match self.legacy.status(&node.name) {
                EvictionStatus::Unmarked => NodeStage::Healthy,
                EvictionStatus::ToBeEvicted => NodeStage::Queued,
                EvictionStatus::Evicted => NodeStage::Evicted,
            };
        }
        let Some((key, _)) = node.ready().and_then(|ready| taints::no_execute_keys(ready.status)) else {
            return NodeStage::Healthy;
        };
        if taints::has_no_execute(node, key) {
            return NodeStage::Tainted;
        }
        let matter = EffectSubject::Taints(node.name.clone(), TaintEffect::NoExecute);
        let queued = self.zones.get(&node.zone()).is_some_and(|zone| zone.queue.is_waiting(&node.name));
        if self.out.is_busy(&matter) || self.out.is_recorded(&matter) {
            NodeStage::Requested
        } else if queued {
            NodeStage::Queued
        } else {
            NodeStage::Healthy
        }
    }

    fn on_node(&mut self, cluster: &Cluster, delta: &Delta<Node>, now: Timestamp) {
        match (&delta.old, &delta.new) {
            (Some(old), _) => self.attention.on_changed(old, &self.rules),
            (None, Some(new)) => self.attention.on_added(new),
            (None, None) => {}
        }
        self.register(delta);
        let same_labels = |old: &Node, new: &Node| old.labels == new.labels;
        self.roll_changed |=
            !matches!((&delta.old, &delta.new), (Some(old), Some(new)) if same_labels(old, new));
        match (&delta.old, &delta.new) {
            (_, Some(node)) => {
                self.observe(cluster, delta, now);
                self.reconcile(node, now);
            }
            (Some(node), None) => {
                if let Some(record) = self.records.get_mut(&node.name) {
                    record.pods_to_retry = false;
                }
            }
            (None, None) => {}
        }
        self.evictor.on_node(cluster, delta, &self.rules, &mut self.out, now);
        if let Some(collector) = &mut self.collector {
            collector.on_node(cluster, delta);
        }
    }

    /// The next pass reads the Lease: a renewal counts from when a pass notices it.
    fn on_lease(&mut self, cluster: &Cluster, delta: &Delta<Lease>) {
        let Some(lease) = delta.new.as_ref().or(delta.old.as_ref()) else { return };
        if let Some(node) = cluster.node(&lease.node) {
            self.attention.on_changed(node, &self.rules);
        }
    }

    /// What upstream's node workers do with an added or changed node (docs/upstream/node-lifecycle.md#9.1).
    fn reconcile(&mut self, node: &Node, now: Timestamp) {
        taints::reconcile_no_schedule(node, &mut self.out, now);
        taints::reconcile_labels(node, &mut self.out, now);
    }

    fn on_pod(&mut self, cluster: &Cluster, delta: &Delta<Pod>, now: Timestamp) {
        if let Some(pod) = &delta.new {
            let bound_before = delta.old.as_ref().is_some_and(|old| old.node == pod.node);
            if pod.node.is_some() && !bound_before {
                self.on_bound(cluster, pod, now);
            }
        }
        self.observe_lost(cluster, delta, now);
        self.evictor.on_pod(delta, &self.rules, &mut self.out, now);
        if let Some(collector) = &mut self.collector {
            collector.on_pod(cluster, delta, &mut self.out);
        }
    }

    /// What upstream's pod workers do with a newly bound pod (docs/upstream/node-lifecycle.md#9.2): on a node that is
    /// not ready it is marked not ready, and in legacy mode it is evicted with the node. On a node that is ready,
    /// legacy mode cancels the node's pending eviction (docs/upstream/node-lifecycle.md#12.41).
    fn on_bound(&mut self, cluster: &Cluster, pod: &Arc<Pod>, now: Timestamp) {
        let Some(node) = pod.node.as_ref().and_then(|node| cluster.node(node)) else { return };
        let Some(saved) = self.records.get(&node.name).and_then(NodeHealth::saved_ready) else { return };
        if self.rules.profile == Profile::Legacy {
            self.evict_by_time(cluster, node, saved, std::iter::once(pod), now);
        }
        if saved != ConditionStatus::True {
            self.mark_pod_not_ready(node, pod, now);
        }
    }

    fn evict_due(&mut self, cluster: &Cluster, now: Timestamp) {
        if self.acts() {
            self.evictor.on_timeout(cluster, &self.rules, &mut self.out, now);
        }
    }

    /// The effect was carried out, or in a dry run counts as if it had been.
    fn on_done(&mut self, cluster: &Cluster, write: &Write, now: Timestamp) {
        match write {
            Write::SwapTaints { node, .. } => {
                if let Some(zone) = self.tainting.remove(node) {
                    self.metrics.count_eviction(&zone);
                }
            }
            Write::MarkPodLost { pod, node, .. } => self.on_pod_evicted(cluster, node, pod),
            Write::DeletePod { pod, node, deletion, .. } => match deletion {
                Deletion::ByTaint { .. } => {
                    if let Some(due) = self.evictor.answered(pod) {
                        self.metrics.count_deletion(now.since(due));
                    }
                }
                Deletion::WithNode { .. } => self.on_pod_evicted(cluster, node, pod),
                Deletion::Collected { .. } => {}
            },
            Write::MarkUnknown { .. }
            | Write::SetLabels { .. }
            | Write::MarkPodNotReady { .. }
            | Write::RecordEvent(_) => {}
        }
    }

    /// The object was gone. An eviction has nothing left to do then; everything else has not been done.
    fn on_gone(&mut self, cluster: &Cluster, write: &Write, now: Timestamp) {
        match write {
            Write::MarkPodLost { pod, node, .. }
            | Write::DeletePod { pod, node, deletion: Deletion::WithNode { .. }, .. } => {
                self.on_pod_evicted(cluster, node, pod);
            }
            Write::MarkUnknown { .. }
            | Write::SwapTaints { .. }
            | Write::SetLabels { .. }
            | Write::MarkPodNotReady { .. }
            | Write::DeletePod { .. }
            | Write::RecordEvent(_) => self.on_undone(cluster, write, now),
        }
    }

    /// The effect was not carried out: whoever is shadowed may do it. Until that is seen it is not asked for again.
    fn on_recorded(&mut self, cluster: &Cluster, effect: Effect, now: Timestamp) {
        self.out.record(&effect);
        match &effect.write {
            Write::MarkUnknown { node, .. } => {
                self.adopt(cluster, node, now);
                // It waits for its taint once the controller has said so, too: while its Ready is True, the tainting
                // loop would spend a token on it in vain. One that has its taint stays known: that is swapped, for
                // no token.
                for zone in self.zones.values_mut().filter(|zone| zone.queue.is_waiting(node)) {
                    zone.queue.remove(node);
                }
            }
            Write::DeletePod { pod, deletion: Deletion::ByTaint { .. }, .. } => {
                self.evictor.on_recorded(pod, effect.at, effect.why);
            }
            Write::DeletePod { .. }
            | Write::MarkPodLost { .. }
            | Write::SwapTaints { .. }
            | Write::SetLabels { .. }
            | Write::MarkPodNotReady { .. }
            | Write::RecordEvent(_) => {}
        }
    }

    /// The effect did not happen: what was taken for done is taken back, and the next occasion tries again.
    fn on_undone(&mut self, cluster: &Cluster, write: &Write, now: Timestamp) {
        match write {
            Write::MarkUnknown { node, .. } => self.adopt(cluster, node, now),
            Write::SwapTaints { node, uid, add, .. } => {
                self.tainting.remove(node);
                if add.iter().any(|taint| taint.effect == TaintEffect::NoExecute) {
                    self.queue_again(node, uid, now);
                }
            }
            Write::MarkPodNotReady { node, .. } => {
                if let Some(record) = self.records.get_mut(node) {
                    record.pods_to_retry = true;
                }
            }
            Write::MarkPodLost { node, .. } => self.on_pod_not_evicted(cluster, node, now),
            Write::DeletePod { pod, node, deletion, .. } => match deletion {
                Deletion::ByTaint { .. } => self.evictor.on_failed(pod),
                Deletion::WithNode { .. } => self.on_pod_not_evicted(cluster, node, now),
                // Its node goes into quarantine anew; everything else is found by the next pass.
                Deletion::Collected { .. } => {}
            },
            Write::SetLabels { .. } | Write::RecordEvent(_) => {}
        }
    }

    /// Takes a node's conditions for what they are: its record had them rewritten already.
    fn adopt(&mut self, cluster: &Cluster, node: &NodeName, now: Timestamp) {
        if let (Some(record), Some(node)) = (self.records.get_mut(node), cluster.node(node)) {
            record.adopt(node, now);
        }
    }

    /// A taint that was asked for did not come about: the node waits again, in the zones that know it.
    fn queue_again(&mut self, node: &NodeName, uid: &Uid, now: Timestamp) {
        for zone in self.zones.values_mut().filter(|zone| zone.queue.knows(node)) {
            zone.queue.again(node, uid, now);
        }
    }
}
