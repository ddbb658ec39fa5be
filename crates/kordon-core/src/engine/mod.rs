//! The node lifecycle controller: health, zones, rate-limited queues, taints, taint eviction.
//!
//! Follows `nodelifecycle.Controller` and the taint-eviction controller as specified in
//! `docs/upstream/node-lifecycle.md`; `docs/controller.md` maps function to function and lists the known differences.

mod audit;
mod collector;
mod device_taints;
mod disruption;
mod doubtful_clocks;
pub mod effect;
mod eviction;
mod eviction_status;
mod health;
pub mod heartbeats;
mod legacy;
mod limiter;
pub mod metrics;
mod node_shutdown;
mod outbox;
mod pass;
mod pass_scope;
mod queue;
mod queue_events;
pub mod settings;
mod shadow;
mod short_grace;
mod taints;
mod uncertain_taints;
pub mod view;
pub mod why;
pub mod zone;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

pub use audit::WOULD_EXPLAIN;
pub use collector::{COLLECTED_WITHIN, QUARANTINE};
pub use device_taints::{
    DEVICE_TAINT_RULES, DEVICE_TAINTS, DeviceEviction, TaintRulePreview, device_evictions,
    taint_rule_previews,
};
pub use doubtful_clocks::{MARKED_WITHIN, doubtful_clocks, is_clock_doubtful};
pub use effect::{
    DELETION_BY_DEVICE_TAINT, DELETION_BY_TAINT, Deletion, Effect, EffectId, EventObject, LeaseCheck,
    NODE_LOST, NodeCheck, Notice, Outcome, RecordedEvent, Severity, UnknownCondition, Write,
};
pub use eviction::{FirstTimer, Tolerance, first_timer, no_execute, tolerance};
pub use eviction_status::EvictionStatus;
pub use health::rewritten;
pub use heartbeats::{Heartbeats, Silence, silent_by_lease};
pub use node_shutdown::{ShutdownEnd, ShutdownGroup, shutdown_ends, shutdown_groups};
pub use queue::QueueChange;
pub use queue_events::QueueEvent;
pub use settings::{
    BadSetting, ControllerRules, Controllers, FullDisruptionPolicy, Origin, Profile, ServerVersion, Setting,
    Settings,
};
pub use short_grace::ShortGrace;
pub use taints::{NOT_READY, UNREACHABLE, condition_taint_key, controllers_own, is_maintained};
pub use uncertain_taints::UncertainTaints;
pub use view::{
    Deadline, Due, Expiry, LeavingPods, NodeStage, NodeView, PendingEviction, ZoneView, is_every_zone_down,
};
pub use why::{Cause, Certainty, HeartbeatSource, Why};
pub use zone::ZoneState;

use crate::cluster::{
    Applied, Cluster, ConditionStatus, Delta, Lease, Node, NodeName, Pod, TaintEffect, Uid, Version, ZoneKey,
    cow_map::CowMap,
};
use collector::Collector;
use eviction::{Evictor, TimerSource};
use health::NodeHealth;
use kordon_time::{Span, Timestamp};
use legacy::Legacy;
use metrics::Metrics;
use outbox::{EffectSubject, Outbox};
use pass_scope::PassScope;
use shadow::Shadow;
use zone::{PresentNodes, Zone};

/// Period of upstream's tainting loop (`NodeEvictionPeriod`).
const TAINTING_PERIOD: Span = Span::from_millis(100);
/// Offset of the tainting loop's ticks from the first pass: half of the loop's period.
const TAINTING_PHASE: Span = Span::from_millis(50);
/// Assumed duration of a pass. Upstream starts each period when the previous pass has ended, so a grace period that is
/// a multiple of the period ends just before a pass.
pub const PASS_TAKES: Span = Span::from_millis(1);

/// The node lifecycle controller as a state machine without clock or IO.
///
/// # Contract
/// - Apply each change to the [`Cluster`] first, then pass the [`Applied`] to [`Engine::handle_change`].
/// - After every `handle_*`, call [`Engine::poll_effect`] and [`Engine::poll_notice`] until they are empty, then call
///   [`Engine::handle_timeout`] at [`Engine::poll_timeout`]. Earlier calls of `handle_timeout` do nothing.
/// - `now` never goes backwards. Every effect is answered by one [`Engine::handle_outcome`].
/// - A change that an effect makes in the cluster arrives as a change of the watch, like the changes of other
///   components.
///
/// Equal inputs give equal outputs. Three things are random upstream and are inputs here: the time of the first pass,
/// the order in which a pass handles the nodes ([`Engine::set_order`]; by default by name), and how many nodes are
/// tainted in the middle of the pass that finds their zone disrupted ([`Engine::set_tainted_mid_pass`]; by default
/// none).
#[derive(Clone, Debug)]
pub struct Engine {
    settings: Settings,
    rules: ControllerRules,
    /// Health by node. Before 1.38 an entry stays when its node object is deleted
    /// (docs/upstream/node-lifecycle.md#2.1).
    records: CowMap<NodeName, NodeHealth>,
    heartbeats: Heartbeats,
    /// Time at which the controller started; none if unknown.
    controller_started: Option<Timestamp>,
    /// The nodes that a pass has registered (upstream `knownNodeSet`).
    registered: BTreeSet<NodeName>,
    /// Whether nodes were added, deleted or relabelled, or zones added or dropped, since the last pass. A pass
    /// classifies nodes only then.
    nodes_changed: bool,
    zones: BTreeMap<ZoneKey, Zone>,
    present: PresentNodes,
    evictor: Evictor,
    legacy: Legacy,
    /// The pod garbage collector; none if it does not run.
    collector: Option<Collector>,
    metrics: Metrics,
    /// Nodes with a requested NoExecute taint that has no outcome yet. The value is the zone in whose metrics the node
    /// is counted.
    tainting: BTreeMap<NodeName, ZoneKey>,
    /// Nodes that are being marked Unknown, each with the node version that the decision was based on. While that
    /// version is the newest one known, the write is still on its way, and the node's NoExecute taint waits until the
    /// write arrives.
    marking: BTreeMap<NodeName, Version>,
    out: Outbox,
    next_pass: Timestamp,
    /// Time of one tick of the tainting loop. Used until the loop has tainted its first node.
    tainting_tick: Timestamp,
    last_tainting: Option<Timestamp>,
    /// The nodes that a pass handles first, in this order.
    order: Vec<NodeName>,
    /// For each zone, how many nodes the tainting loop taints in the middle of the next pass that changes the zone's
    /// state.
    tainted_mid_pass: BTreeMap<ZoneKey, usize>,
    /// Zones whose next taints are uncertain, waiting to be polled; only forecasts have them.
    uncertain: VecDeque<UncertainTaints>,
    /// Queue events waiting to be polled; only forecasts have them.
    queue_events: VecDeque<QueueEvent>,
    scope: PassScope,
    watch_health: WatchHealth,
    /// State of the controller that the engine shadows; `None` if the engine is itself the controller.
    shadow: Option<Shadow>,
}

/// Whether the watches of nodes and leases are up to date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchHealth {
    Live,
    /// The watches have been silent or broken since `since`.
    Disconnected {
        since: Timestamp,
    },
}

/// How reliable the engine's predictions are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confidence {
    /// The watches are live, and a controller is active (or kordon is the controller).
    Live,
    /// The watches are live, but no Lease shows whether a controller is active: the engine assumes one.
    Assumed,
    /// The watches have been down since `since`. The engine does not know what changed after that.
    Disconnected { since: Timestamp },
    /// No controller manager has renewed its Lease since `since`, and `kordon controller` holds no Lease. Nothing
    /// happens until a controller renews its Lease.
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

    /// Whether a controller is active, as far as that is known.
    pub const fn has_controller(self) -> bool {
        match self {
            Self::Live | Self::Assumed | Self::Disconnected { .. } => true,
            Self::NoController { .. } => false,
        }
    }
}

impl Engine {
    /// Creates an engine that is the controller. As at upstream's start, every node gets a new grace period. The first
    /// pass is at `first_pass`.
    pub fn start(settings: Settings, cluster: &Cluster, first_pass: Timestamp, now: Timestamp) -> Self {
        let mut engine = Self::new(settings, first_pass, TimerSource::Controller, None);
        engine.controller_started = Some(now);
        engine.heartbeats.read(cluster, now);
        engine.register_all(cluster);
        engine.present = PresentNodes::new(cluster, &engine.rules);
        engine.start_collector(cluster, first_pass, Certainty::Observed, now);
        for node in cluster.nodes().iter() {
            engine.reconcile(cluster, node, now);
        }
        let (evictor, mut context) = engine.evictor(cluster, now);
        evictor.evaluate_all(&mut context);
        evictor.on_timeout(&mut context);
        engine
    }

    /// Creates an engine that shadows a running controller. It estimates probeTimestamps from the times that kubelets
    /// wrote, eviction timers from the taints' timeAdded, and rate limiters from the last taints of each zone.
    pub fn attach(settings: Settings, cluster: &Cluster, now: Timestamp) -> Self {
        Self::attach_with(Outbox::default(), settings, cluster, now)
    }

    /// Returns a copy of a newly attached engine, for a controller that makes its next pass at `next_pass`.
    pub fn with_next_pass(&self, next_pass: Timestamp) -> Self {
        Self { next_pass, tainting_tick: next_pass + TAINTING_PHASE, ..self.clone() }
    }

    fn attach_with(out: Outbox, settings: Settings, cluster: &Cluster, now: Timestamp) -> Self {
        let started = shadow::leader_started(cluster);
        let mut engine =
            Self::new(settings, now, TimerSource::Shadow { started }, Some(Shadow::new(cluster, now)));
        engine.out = out;
        engine.controller_started = started;
        engine.heartbeats.read(cluster, now);
        engine.estimate(cluster, started, now);
        engine.register_all(cluster);
        engine.present = PresentNodes::new(cluster, &engine.rules);
        engine.start_collector(cluster, started.unwrap_or(now), Certainty::Estimated, now);
        if !engine.settings.controllers.value.node_lifecycle {
            let text =
                "kube-controller-manager runs without the node lifecycle controller: node states are frozen";
            engine.out.notice(Severity::Warning, text.into(), Why::default(), now);
        }
        let (evictor, mut context) = engine.evictor(cluster, now);
        evictor.evaluate_all(&mut context);
        evictor.on_timeout(&mut context);
        engine
    }

    /// Repeats the estimates of an engine that shadows a controller, after the offset of the cluster's clock was
    /// measured. Does nothing if the engine is itself the controller.
    pub fn attach_again(&mut self, cluster: &Cluster, now: Timestamp) {
        if self.shadow.is_none() {
            return;
        }
        let out = std::mem::take(&mut self.out);
        let again = Self::attach_with(out, self.settings.clone(), cluster, now);
        *self = Self { watch_health: self.watch_health, ..again };
    }

    fn new(
        settings: Settings,
        first_pass: Timestamp,
        timer_source: TimerSource,
        shadow: Option<Shadow>,
    ) -> Self {
        Self {
            rules: settings.rules(),
            settings,
            records: CowMap::default(),
            heartbeats: Heartbeats::default(),
            controller_started: None,
            registered: BTreeSet::new(),
            nodes_changed: true,
            zones: BTreeMap::new(),
            present: PresentNodes::default(),
            evictor: Evictor::new(timer_source),
            legacy: Legacy::default(),
            collector: None,
            metrics: Metrics::default(),
            tainting: BTreeMap::new(),
            marking: BTreeMap::new(),
            out: Outbox::default(),
            next_pass: first_pass,
            tainting_tick: first_pass + TAINTING_PHASE,
            last_tainting: None,
            order: Vec::new(),
            tainted_mid_pass: BTreeMap::new(),
            uncertain: VecDeque::new(),
            queue_events: VecDeque::new(),
            scope: PassScope::All,
            watch_health: WatchHealth::Live,
            shadow,
        }
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Makes the engine read the live Lease again before it marks a node Unknown, as upstream does from 1.37.
    pub fn reread_leases(&mut self) {
        self.rules.rereads_lease = true;
    }

    /// Sets which nodes a pass handles first, in this order; the others follow by name.
    pub fn set_order(&mut self, order: Vec<NodeName>) {
        self.order = order;
    }

    /// Handles a change after it was applied to `cluster`.
    pub fn handle_change(&mut self, cluster: &Cluster, applied: &Applied, now: Timestamp) {
        match applied {
            Applied::Node(delta) => self.on_node(cluster, delta, now),
            Applied::Pod(delta) => self.on_pod(cluster, delta, now),
            Applied::Leader(_, new) => self.on_leader(cluster, new.as_ref(), now),
            Applied::KordonLease => self.on_kordon_lease(cluster, now),
            Applied::Lease(delta) => self.on_lease(cluster, delta, now),
            Applied::Other => {}
        }
        self.evict_due(cluster, now);
    }

    /// Handles the outcome of an effect.
    pub fn handle_outcome(&mut self, cluster: &Cluster, effect: EffectId, outcome: Outcome, now: Timestamp) {
        let Some(effect) = self.out.complete(effect) else { return };
        match outcome {
            Outcome::Done => self.on_done(cluster, &effect.write, now),
            Outcome::Recorded => {
                self.on_done(cluster, &effect.write, now);
                self.on_recorded(cluster, &effect, now);
            }
            Outcome::Conflict => self.on_not_written(cluster, &effect.write, now),
            Outcome::Gone => self.on_gone(cluster, &effect.write, now),
            Outcome::Failed(error) => {
                let text = format!("cannot {}: {error}", effect.write.summary());
                self.out.notice(Severity::Error, text, effect.why.clone(), now);
                self.on_not_written(cluster, &effect.write, now);
            }
        }
    }

    /// Does the work that is due: evictions, garbage collection, tainting and the pass. Does nothing if nothing is due.
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
            let next_pass = self.pass_ended(now) + PASS_TAKES + self.settings.node_monitor_period.value;
            self.next_pass = next_pass.max(now + PASS_TAKES);
            if self.next_tick(now) == now {
                // A tick of the tainting loop at the start of this pass counts as done, because it comes before the
                // pass queues nodes. The next tick is after the pass.
                self.last_tainting = Some(now);
            }
            if self.watch_health == WatchHealth::Live {
                self.check_controller(now);
                self.drop_overdue_predictions(cluster, now);
            }
            if self.confidence(now).allows_predictions() && self.settings.controllers.value.node_lifecycle {
                self.monitor(cluster, now);
            }
            if let Some(shadow) = &mut self.shadow {
                shadow.forget_followed_pass();
            }
        }
    }

    /// End of the pass that is made now. An engine that shadows a controller repeats the controller's pass; the end is
    /// then the time of the controller's last observed write in that pass.
    fn pass_ended(&self, now: Timestamp) -> Timestamp {
        self.shadow.as_ref().and_then(Shadow::followed_pass_ended).unwrap_or(now)
    }

    /// Handles a change in the health of the watches of nodes and Leases. Node states are frozen while the watches are
    /// down.
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

    pub fn poll_effect(&mut self) -> Option<Arc<Effect>> {
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

    /// Whether the next [`Engine::handle_timeout`] makes a pass over all nodes.
    pub fn is_pass_due(&self, now: Timestamp) -> bool {
        self.next_pass <= now
    }

    /// Flags whose values contradict the shadowed controller's behaviour. The list starts empty for each new leader.
    pub fn contradicted_flags(&self) -> Vec<&'static str> {
        self.shadow.as_ref().map_or_else(Vec::new, |shadow| shadow.contradicted_flags().collect())
    }

    /// How reliable the engine's predictions are now.
    pub fn confidence(&self, now: Timestamp) -> Confidence {
        match (self.watch_health, &self.shadow) {
            (WatchHealth::Disconnected { since }, _) => Confidence::Disconnected { since },
            (WatchHealth::Live, Some(shadow)) => shadow.confidence(now),
            (WatchHealth::Live, None) => Confidence::Live,
        }
    }

    /// Whether the engine shadows `kordon controller`, which holds its Lease.
    pub fn is_led_by_kordon(&self, now: Timestamp) -> bool {
        self.shadow.as_ref().is_some_and(|shadow| shadow.is_led_by_kordon(now))
    }

    /// Whether the Lease of `kordon controller` matters: only this Lease can show that a controller is active, because
    /// the Lease of kube-controller-manager is not valid; or a zone is down, whose evictions kordon may pause.
    pub fn needs_kordon_lease(&self, now: Timestamp) -> bool {
        let is_needed = |shadow: &Shadow| shadow.manager_gone_since(now).is_some() || self.is_a_zone_down();
        self.shadow.as_ref().is_some_and(is_needed)
    }

    /// The values of upstream's metrics.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Returns a copy of the engine for a forecast, and the writes in flight, which the forecast assumes done. The copy
    /// also requests the NoExecute taint changes that the shadowed controller should have made, but has not.
    pub fn forecast_copy(&self) -> (Self, Vec<Write>) {
        let (mut out, in_flight) = self.out.forecast_copy();
        for effect in self.out.overdue() {
            out.propose(effect.write.clone(), effect.why.clone(), effect.at);
        }
        let copy = Self {
            settings: self.settings.clone(),
            rules: self.rules,
            records: self.records.clone(),
            heartbeats: self.heartbeats.clone(),
            controller_started: self.controller_started,
            registered: self.registered.clone(),
            nodes_changed: self.nodes_changed,
            zones: self.zones.clone(),
            present: self.present.clone(),
            evictor: self.evictor.forecast_copy(),
            legacy: self.legacy.forecast_copy(),
            collector: self.collector.clone(),
            metrics: self.metrics.clone(),
            tainting: BTreeMap::new(),
            marking: BTreeMap::new(),
            out,
            next_pass: self.next_pass,
            tainting_tick: self.tainting_tick,
            last_tainting: self.last_tainting,
            order: Vec::new(),
            tainted_mid_pass: BTreeMap::new(),
            uncertain: VecDeque::new(),
            queue_events: VecDeque::new(),
            scope: PassScope::AllOnce,
            watch_health: self.watch_health,
            shadow: self.shadow.as_ref().map(Shadow::forecast_copy),
        };
        (copy, in_flight)
    }

    /// Sets, for every node, whether the forecast assumes that the node is alive. Every later pass notices a heartbeat
    /// of such a node.
    pub fn assume_alive(&mut self, cluster: &Cluster, mut is_alive: impl FnMut(&Node) -> bool) {
        for node in cluster.nodes().iter() {
            let first = || NodeHealth::first_seen(node, cluster.clock(), self.next_pass);
            self.records.entry(node.name.clone(), first).assumed_alive = is_alive(node);
        }
        self.scope.on_general_change();
    }

    /// Assumes that a node sends heartbeats from now on (`is_alive`), or that it sends its last heartbeat now.
    pub fn set_assumed_alive(&mut self, node: &NodeName, is_alive: bool, now: Timestamp) {
        let Some(record) = self.records.get_mut(node) else { return };
        if record.assumed_alive {
            record.record_heartbeat(HeartbeatSource::Lease, now);
            self.heartbeats.record(node, now);
        }
        record.assumed_alive = is_alive;
        self.scope.on_general_change();
    }

    /// Nodes that the forecast assumes to send heartbeats, sorted by name.
    pub fn assumed_alive(&self) -> impl Iterator<Item = &NodeName> {
        self.records.iter().filter(|(_, record)| record.assumed_alive).map(|(node, _)| node)
    }

    /// Whether timers and queues run: only while the watches are live and a controller is active.
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
        let subject = EffectSubject::Taints(node.name.clone(), TaintEffect::NoExecute);
        let is_queued = || self.zones.get(&node.zone()).is_some_and(|zone| zone.queue.is_waiting(&node.name));
        if self.out.is_busy(&subject) || self.out.is_recorded(&subject) {
            NodeStage::Requested
        } else if is_queued() {
            NodeStage::Queued
        } else {
            NodeStage::Healthy
        }
    }

    fn on_node(&mut self, cluster: &Cluster, delta: &Delta<Node>, now: Timestamp) {
        match (&delta.old, &delta.new) {
            (Some(old), _) => self.scope.on_changed(old, &self.rules),
            (None, Some(new)) => self.scope.on_added(new),
            (None, None) => {}
        }
        self.heartbeats.on_node(delta, cluster.clock(), self.watch_health, now);
        self.register(delta);
        self.present.follow(delta, &self.rules);
        let same_labels = |old: &Node, new: &Node| old.labels == new.labels;
        self.nodes_changed |=
            !matches!((&delta.old, &delta.new), (Some(old), Some(new)) if same_labels(old, new));
        match (&delta.old, &delta.new) {
            (_, Some(node)) => {
                self.observe(cluster, delta, now);
                self.reconcile(cluster, node, now);
            }
            (Some(node), None) => {
                if let Some(record) = self.records.get_mut(&node.name) {
                    record.pods_to_retry = false;
                }
            }
            (None, None) => {}
        }
        let health = self.watch_health;
        let (evictor, mut context) = self.evictor(cluster, now);
        evictor.on_node(delta, health, &mut context);
        if let Some(collector) = &mut self.collector {
            collector.on_change(self.settings.terminated_pod_gc_threshold.value, now);
            collector.on_node(cluster, delta);
        }
    }

    /// Handles a changed Lease. The next pass reads the Lease, and only then does a renewal count as a heartbeat.
    fn on_lease(&mut self, cluster: &Cluster, delta: &Delta<Lease>, now: Timestamp) {
        self.heartbeats.on_lease(delta, cluster.clock(), self.watch_health, now);
        let Some(lease) = delta.new.as_ref().or(delta.old.as_ref()) else { return };
        self.scope.on_lease(&lease.node, cluster, &self.rules);
    }

    /// Reconciles NoSchedule taints and labels of an added or changed node, as upstream's node workers do
    /// (docs/upstream/node-lifecycle.md#9.1).
    fn reconcile(&mut self, cluster: &Cluster, node: &Node, now: Timestamp) {
        if !self.out.sends_all() || !self.settings.controllers.value.node_lifecycle {
            return;
        }
        taints::reconcile_no_schedule(node, &mut self.out, cluster.clock(), now);
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
        let (evictor, mut context) = self.evictor(cluster, now);
        evictor.on_pod(delta, &mut context);
        if let Some(collector) = &mut self.collector {
            collector.on_change(self.settings.terminated_pod_gc_threshold.value, now);
            collector.on_pod(cluster, delta, &mut self.out);
        }
        if let (Some(gone), None) = (&delta.old, &delta.new) {
            self.out.forget_pod(&gone.key);
        }
    }

    /// Handles a newly bound pod, as upstream's pod workers do (docs/upstream/node-lifecycle.md#9.2). A pod on a node
    /// that is not ready is marked not ready, and in legacy mode evicted with the node. In legacy mode, a new pod on a
    /// ready node cancels the node's pending eviction (docs/upstream/node-lifecycle.md#12.41).
    fn on_bound(&mut self, cluster: &Cluster, pod: &Arc<Pod>, now: Timestamp) {
        let Some(node) = pod.node.as_ref().and_then(|node| cluster.node(node)) else { return };
        let Some(saved) = self.records.get(&node.name).and_then(NodeHealth::saved_ready) else { return };
        if self.rules.profile == Profile::Legacy {
            self.evict_after_timeout(cluster, node, saved, std::iter::once(pod), now);
        }
        if saved != ConditionStatus::True {
            self.mark_pod_not_ready(node, pod, now);
        }
    }

    /// Returns the state of taint eviction, with its context: cluster, rules, outbox and time.
    fn evictor<'a>(
        &'a mut self,
        cluster: &'a Cluster,
        now: Timestamp,
    ) -> (&'a mut Evictor, eviction::Context<'a>) {
        let Self { evictor, rules, out, .. } = self;
        (evictor, eviction::Context { cluster, rules, out, now })
    }

    fn evict_due(&mut self, cluster: &Cluster, now: Timestamp) {
        if self.acts() {
            let (evictor, mut context) = self.evictor(cluster, now);
            evictor.on_timeout(&mut context);
        }
    }

    /// Handles an effect that was written, or that counts as written in a dry run.
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
                    if let Some(due) = self.evictor.on_deleted(pod) {
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

    /// Handles an effect whose object is gone. An eviction is complete when its object is gone; any other effect was
    /// not written.
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
            | Write::RecordEvent(_) => self.on_not_written(cluster, write, now),
        }
    }

    /// Handles an effect that was recorded in a dry run instead of being sent. The shadowed controller may make the
    /// write. The engine requests the effect again only after it has observed the controller's write, or after the
    /// reason for the effect has disappeared.
    fn on_recorded(&mut self, cluster: &Cluster, effect: &Effect, now: Timestamp) {
        self.out.record(effect);
        match &effect.write {
            Write::MarkUnknown { node, .. } => {
                self.marking.remove(node);
                self.adopt(cluster, node, now);
                // Dequeue the node until the controller has written Unknown: while Ready is True, the tainting loop
                // would waste a token of the rate limiter on it. A node that already has a taint stays known to the
                // queue, because replacing its taint needs no token.
                for zone in self.zones.values_mut().filter(|zone| zone.queue.is_waiting(node)) {
                    zone.queue.remove(node);
                }
            }
            Write::DeletePod { pod, deletion: Deletion::ByTaint { .. }, .. } => {
                self.evictor.on_recorded(pod, effect.at, effect.why.clone());
            }
            Write::DeletePod { .. }
            | Write::MarkPodLost { .. }
            | Write::SwapTaints { .. }
            | Write::SetLabels { .. }
            | Write::MarkPodNotReady { .. }
            | Write::RecordEvent(_) => {}
        }
    }

    /// Reverts what the engine assumed when it requested an effect that was then not written. The engine requests the
    /// effect again on the next occasion.
    fn on_not_written(&mut self, cluster: &Cluster, write: &Write, now: Timestamp) {
        match write {
            Write::MarkUnknown { node, .. } => {
                self.marking.remove(node);
                self.adopt(cluster, node, now);
            }
            Write::SwapTaints { node, uid, add, .. } => {
                self.tainting.remove(node);
                if add.iter().any(|taint| taint.effect == TaintEffect::NoExecute) {
                    self.requeue(node, uid, now);
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
                // Nothing has to be reverted: the collector's next pass finds the pod again. A pod on a missing node is
                // found only after the node's name has been in quarantine again.
                Deletion::Collected { .. } => {}
            },
            Write::SetLabels { .. } | Write::RecordEvent(_) => {}
        }
    }

    /// Copies the node's conditions from the cluster, because the health record holds conditions that were not written.
    fn adopt(&mut self, cluster: &Cluster, node: &NodeName, now: Timestamp) {
        if let (Some(record), Some(node)) = (self.records.get_mut(node), cluster.node(node)) {
            record.adopt(node, now);
        }
    }

    /// Queues a node again after its requested taint was not written, in every zone whose queue knows the node.
    fn requeue(&mut self, node: &NodeName, uid: &Uid, now: Timestamp) {
        for zone in self.zones.values_mut().filter(|zone| zone.queue.knows(node)) {
            zone.queue.requeue(node, uid, now);
        }
    }
}
