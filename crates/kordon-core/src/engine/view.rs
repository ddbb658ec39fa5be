//! The engine's state for the screen and the command line: read only, computed on request.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    Engine,
    eviction_status::EvictionStatus,
    heartbeats::{Heartbeats, RenewalInterval, Renewals, Silence, posted},
    settings::{Profile, Settings},
    short_grace::ShortGrace,
    taints::{NOT_READY, UNREACHABLE},
    why::{Certainty, HeartbeatSource, Why},
    zone::{Zone, ZoneState},
};
use crate::cluster::{
    Cluster, ConditionStatus, FeedKind, Key, Known, Node, NodeName, Taint, TaintEffect, Uid, ZoneKey,
};
use kordon_time::{Span, Timestamp};

/// When the engine must be called next, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Deadline {
    pub at: Timestamp,
    pub why: Why,
}

/// The controller's state of a node.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeView {
    /// When the controller noticed the last heartbeat: upstream's probeTimestamp.
    pub probe: Timestamp,
    pub heartbeat_source: HeartbeatSource,
    pub certainty: Certainty,
    /// The grace period in force: the startup grace period if the node has no Ready condition.
    pub grace: Span,
    pub zone: ZoneKey,
    /// The progress of the node towards the NoExecute taint, or in legacy mode towards the deletion of its pods.
    pub stage: NodeStage,
    /// Legacy mode: the node's eviction status.
    pub eviction: Option<EvictionStatus>,
}

impl NodeView {
    /// When the grace period ends; the first pass *after* this time finds the node silent.
    pub fn expires(&self) -> Timestamp {
        self.probe + self.grace
    }
}

/// The progress of a node towards the NoExecute taint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NodeStage {
    /// No taint is due.
    Healthy,
    /// The node is not ready, and waits in its zone's queue for the taint (in legacy mode for the deletion of its
    /// pods).
    Queued,
    /// The engine requested the taint; the node does not have it yet.
    Requested,
    /// The node has the NoExecute taint that belongs to its status of Ready.
    Tainted,
    /// Legacy mode: the node's pods have been deleted.
    Evicted,
}

/// How long a result about a node, such as [`Engine::node_stage`], stays valid if the node, its Lease and its pods do
/// not change. Ordered from the shortest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Expiry {
    /// The result about the node may change whenever the engine does anything.
    AnyTime,
    /// The result about the node may change from this time on.
    At(Timestamp),
    /// The result about the node is valid until the node, its Lease, its pods or the leader of the controllers changes.
    OnChange,
}

/// Whether pods are leaving a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeavingPods {
    /// Whether a pod is terminating, or a time is set for its eviction.
    pub any: bool,
    pub expiry: Expiry,
}

/// Whether the controller evicts nothing because no zone has a ready node (upstream's master disruption mode).
pub fn is_every_zone_down(zones: &[ZoneView]) -> bool {
    let mut counted = zones.iter().filter(|zone| zone.size > 0).peekable();
    counted.peek().is_some() && counted.all(|zone| zone.state == ZoneState::FullDisruption)
}

/// The controller's state of a zone.
#[derive(Clone, Debug, PartialEq)]
pub struct ZoneView {
    pub key: ZoneKey,
    pub state: ZoneState,
    /// The state of the zone that a pass would find now.
    pub next_state: ZoneState,
    /// Number of nodes in the zone now, without nodes that the statistics of the zone exclude.
    pub size: usize,
    pub not_ready: usize,
    /// The eviction rate: the number of nodes that get a NoExecute taint per second; 0 if evictions are stopped.
    pub rate: f32,
    /// The nodes of the zone that wait for their taint, sorted by name: upstream's order among them is random.
    pub queue: Vec<NodeName>,
    /// When the zone's rate limiter has its next token; none if the rate is 0.
    pub next_token: Option<Timestamp>,
}

impl ZoneView {
    /// Whether two views of a zone have the same content. The time of the rate limiter's next token is compared only
    /// while nodes wait for the token, because otherwise it moves with the clock.
    pub fn says_the_same(&self, other: &Self) -> bool {
        let next_token = if self.queue.is_empty() { self.next_token } else { other.next_token };
        *self == Self { next_token, ..other.clone() }
    }

    /// Whether a pass now would find another state than the controller's last pass did. False for an empty zone and for
    /// the state Initial.
    pub fn is_outdated(&self) -> bool {
        self.size > 0 && self.state != ZoneState::Initial && self.state != self.next_state
    }

    /// Whether the controller evicts no pods of the zone, because it takes the failure of all its nodes for one of the
    /// network: all zones are down, or `--full-disruption=pause` is set. An eviction rate of 0 has the same effect.
    pub fn is_paused(&self) -> bool {
        self.state == ZoneState::FullDisruption && self.rate == 0.0
    }

    /// The share of counted nodes that are not ready, from 0 to 1.
    #[expect(clippy::cast_precision_loss, reason = "zones have far fewer than 2^24 nodes")]
    pub fn unready_share(&self) -> f32 {
        if self.size == 0 { 0.0 } else { self.not_ready as f32 / self.size as f32 }
    }
}

/// The pending eviction of a pod. It is never due if the pod tolerates the taints of its node without a time limit.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingEviction {
    pub pod: Key,
    pub uid: Uid,
    pub node: NodeName,
    pub due: Due,
    pub why: Why,
}

impl PendingEviction {
    /// Sort key of pending evictions: soonest first, evictions that are never due last.
    pub(super) fn order(&self) -> (Timestamp, NodeName, Key) {
        (self.due.at().unwrap_or(Timestamp::MAX), self.node.clone(), self.pod.clone())
    }
}

/// When a pending eviction is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    At {
        at: Timestamp,
        certainty: Certainty,
    },
    /// The pod tolerates the taints without a time limit, or belongs to a DaemonSet in legacy mode.
    Never,
}

impl Due {
    /// Time at which the eviction is due; none if it is never due.
    pub const fn at(self) -> Option<Timestamp> {
        match self {
            Self::At { at, .. } => Some(at),
            Self::Never => None,
        }
    }
}

impl Engine {
    /// The controller's state of a node; none until a pass has registered it.
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

    /// Returns when the grace period of a node ends, or ended before the node became Unknown; none until a pass has
    /// registered the node. If the grace period of an Unknown node has started again since, by a restart of the
    /// controller, this changes nothing about the node: its grace period ended after its last heartbeat.
    pub fn grace_ends(&self, cluster: &Cluster, node: &Node) -> Option<Timestamp> {
        let health = self.node_view(node)?;
        let unknown = node.ready().filter(|ready| ready.status == ConditionStatus::Unknown);
        let since = unknown.and_then(|ready| ready.last_transition).map(|at| cluster.local(at));
        let heartbeat = self.silence(cluster, node).heartbeat;
        let has_restarted = |since: &Timestamp| heartbeat <= *since && *since < health.probe;
        Some(match since.filter(has_restarted) {
            Some(since) => (heartbeat + health.grace).min(since),
            None => health.expires(),
        })
    }

    /// Returns how far the controller is in evicting a node; none until a pass has registered the node.
    pub fn node_stage(&self, node: &Node) -> Option<NodeStage> {
        self.records.contains_key(&node.name).then(|| self.stage(node))
    }

    /// Returns the last heartbeat of a node, a renewal of its Lease or a new status, and the times after which the node is
    /// late and silent without another heartbeat.
    pub fn silence(&self, cluster: &Cluster, node: &Node) -> Silence {
        let grace = match self.records.get(&node.name) {
            Some(record) => record.grace(&self.settings),
            None => self.settings.node_monitor_grace_period.value,
        };
        if let Some(renewals) = self.heartbeats.of(&node.name) {
            return Silence::from_renewals(renewals, grace);
        }
        let clock = cluster.clock();
        let posted = posted(node, Span::ZERO, clock).unwrap_or_else(|| clock.local(node.created));
        if cluster.known(FeedKind::Leases) == Known::Absent {
            return Silence::from_status_alone(posted);
        }
        let interval = RenewalInterval::from_lease(cluster.lease(&node.name).map(|lease| &**lease));
        Silence::new(posted, interval, grace)
    }

    /// Whether a node is silent ([`Silence`]).
    pub fn is_silent(&self, cluster: &Cluster, node: &Node, now: Timestamp) -> bool {
        self.silence(cluster, node).is_silent(now)
    }

    /// Whether a node that is Unknown renews its Lease again. Its kubelet is back, and posts its status within 10 s by
    /// default (upstream `tryUpdateNodeStatus`), because the status has changed.
    pub fn renews_again(&self, cluster: &Cluster, node: &Node, now: Timestamp) -> bool {
        let unknown = node.ready().filter(|ready| ready.status == ConditionStatus::Unknown);
        let Some(since) = unknown.and_then(|ready| ready.last_transition) else { return false };
        let silence = self.silence(cluster, node);
        silence.is_of_lease && silence.heartbeat > cluster.local(since) && !silence.is_silent(now)
    }

    /// The nodes that are silent ([`Silence`]).
    pub fn silent_nodes(&self, cluster: &Cluster, now: Timestamp) -> BTreeSet<NodeName> {
        let is_silent = |node: &&Arc<Node>| self.silence(cluster, node).is_silent(now);
        cluster.nodes().iter().filter(is_silent).map(|node| node.name.clone()).collect()
    }

    /// Returns the nodes without a known Lease renewal. Their last heartbeat is in the node status, by the cluster's
    /// clock.
    pub fn without_renewals<'a>(&'a self, cluster: &'a Cluster) -> impl Iterator<Item = &'a Arc<Node>> {
        cluster.nodes().iter().filter(move |node| self.heartbeats.of(&node.name).is_none())
    }

    /// Returns the earliest time at which each node can be late, if no further heartbeat arrives. Covers the nodes that
    /// renew a Lease, sorted by node name.
    pub fn late_times(&self) -> impl Iterator<Item = (&NodeName, Timestamp)> {
        let Settings { node_monitor_grace_period, node_startup_grace_period, .. } = &self.settings;
        let grace = node_monitor_grace_period.value.min(node_startup_grace_period.value);
        let late_from = move |renewals: &Renewals| Silence::from_renewals(renewals, grace).late_from;
        self.heartbeats.all().map(move |(node, renewals)| (node, late_from(renewals)))
    }

    /// The renewals of the nodes' Leases.
    pub fn heartbeats(&self) -> &Heartbeats {
        &self.heartbeats
    }

    /// Start of the controller, at which every node got a new grace period; none if unknown.
    pub fn controller_started(&self) -> Option<Timestamp> {
        self.controller_started
    }

    /// Explains why the controller finds the node silent, now or later; none until a pass has registered the node.
    pub fn why_silent(&self, node: &NodeName) -> Option<Why> {
        self.records.get(node).map(|record| record.why(&self.settings, self.heartbeats.last(node)))
    }

    /// The grace period, if it is not longer than the longest renewal interval of the kubelets; none if no renewal is
    /// known.
    pub fn short_grace(&self) -> Option<ShortGrace> {
        ShortGrace::find(&self.settings, self.heartbeats.longest_interval()?)
    }

    /// Every zone, sorted by key.
    pub fn zones(&self, now: Timestamp) -> Vec<ZoneView> {
        let view = |(key, zone): (&ZoneKey, &Zone)| {
            let present = self.present.census(key);
            ZoneView {
                key: key.clone(),
                state: zone.state.unwrap_or_default(),
                size: present.size(),
                not_ready: present.not_ready,
                next_state: present.state(self.settings.unhealthy_zone_threshold.value),
                rate: zone.limiter.rate(),
                queue: zone
                    .queue
                    .waiting()
                    .map(|entry| entry.node.clone())
                    .collect::<BTreeSet<_>>()
                    .into_iter()
                    .collect(),
                next_token: zone.limiter.next_token(now),
            }
        };
        self.zones.iter().map(view).collect()
    }

    /// Whether nodes that wait in the zone's queue get a turn: the zone's eviction rate is not 0.
    pub fn has_eviction_slots(&self, zone: &ZoneKey) -> bool {
        self.zones.get(zone).is_none_or(|zone| zone.limiter.rate() > 0.0)
    }

    /// The pending evictions of one node's pods, sorted by pod.
    pub fn evictions_on(&self, cluster: &Cluster, node: &Node) -> Vec<PendingEviction> {
        match self.rules.profile {
            Profile::Taint => self.evictor.pending_on(cluster, &node.name),
            Profile::Legacy => self.pending_on_node(cluster, node),
        }
    }

    /// The pending evictions of one node's pods that the next pass does not cancel, sorted by pod.
    pub fn evictions_left_on(&self, cluster: &Cluster, node: &Node, now: Timestamp) -> Vec<PendingEviction> {
        let mut pending = self.evictions_on(cluster, node);
        if self.untaints_soon(cluster, node, now) {
            pending.retain(|eviction| self.is_before_next_pass(eviction.due, now));
        }
        pending
    }

    /// Whether an eviction may be due before the next pass, so that the pass may come too late to cancel it.
    pub fn is_before_next_pass(&self, due: Due, now: Timestamp) -> bool {
        due.at().is_some_and(|at| at <= now + self.settings.node_monitor_period.value)
    }

    /// Whether a pod of the node is terminating or has a time set for its eviction, and when this may change.
    pub fn leaving_pods(&self, cluster: &Cluster, node: &Node) -> LeavingPods {
        match self.rules.profile {
            Profile::Taint => self.evictor.leaving_pods(cluster, &node.name),
            Profile::Legacy => {
                LeavingPods { any: cluster.load(&node.name).terminating > 0, expiry: Expiry::OnChange }
            }
        }
    }

    /// When the results of [`Engine::node_stage`] and [`Engine::silence`] may change.
    pub fn stage_expiry(&self, node: &NodeName) -> Expiry {
        let grace_may_change = self.records.get(node).is_none_or(|record| record.never_posted);
        if self.rules.profile == Profile::Legacy || grace_may_change {
            Expiry::AnyTime
        } else {
            Expiry::OnChange
        }
    }

    /// Names of missing nodes to which pods are still bound. The pod garbage collector removes these pods. Empty if the
    /// collector does not run.
    pub fn missing_nodes<'a>(&'a self, cluster: &'a Cluster) -> impl Iterator<Item = &'a NodeName> {
        self.collector.iter().flat_map(move |collector| collector.missing(cluster))
    }

    /// How well the time is known at which the pod garbage collector deletes the pods of a missing node; none if the
    /// collector does not run.
    pub fn collection_certainty(&self, node: &NodeName) -> Option<Certainty> {
        self.collector.as_ref().map(|collector| collector.certainty(node))
    }

    /// Whether the next pass removes the NoExecute taints of a node, because the node is Ready again and has no
    /// NoExecute taints other than the controller's (upstream `processTaintBaseEviction`, `markNodeAsReachable`). The
    /// removal cancels the evictions of the node's pods.
    pub fn untaints_soon(&self, cluster: &Cluster, node: &Node, now: Timestamp) -> bool {
        let goes = |taint: &Taint| {
            taint.effect != TaintEffect::NoExecute || [NOT_READY, UNREACHABLE].contains(&taint.key.as_str())
        };
        self.rules.profile == Profile::Taint
            && node.is_ready()
            && node.taints.iter().all(goes)
            && self.confidence(now).allows_predictions()
            && !self.is_silent(cluster, node, now)
    }

    /// Every pending eviction. Evictions are pending on nodes with NoExecute taints (in legacy mode on nodes that are
    /// not ready) and on missing nodes. Terminating pods are left out. Sorted by due time, evictions that are never due
    /// last.
    pub fn evictions(&self, cluster: &Cluster) -> Vec<PendingEviction> {
        let mut pending = match self.rules.profile {
            Profile::Taint => self.evictor.pending(cluster),
            Profile::Legacy => self.pending_on_nodes(cluster),
        };
        let orphans = self.collector.as_ref().map_or_else(Vec::new, |collector| collector.pending(cluster));
        if !orphans.is_empty() {
            // A pod on a missing node has a second pending eviction if its taint eviction timer still runs. The earlier
            // eviction counts.
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
}
