//! The shadow of a controller that runs elsewhere. The engine estimates what the controller did while kordon did not
//! watch it. Each observed write of the controller overrides a prediction.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    Confidence, Engine, PASS_TAKES,
    audit::Audit,
    effect::Severity,
    eviction::{Evictor, TimerSource},
    health::NodeHealth,
    heartbeats::arrived,
    legacy::Legacy,
    outbox::EffectSubject,
    settings::Profile,
    taints::{self, NOT_READY, UNREACHABLE},
    why::{Certainty, HeartbeatSource, Why},
    zone::{Census, Zone, ZoneState},
};
use crate::cluster::{
    Cluster, ConditionStatus, Delta, Known, LeaderLease, Node, NodeName, TaintEffect, ZoneKey,
    cow_map::CowMap,
};
use kordon_time::{ClusterTime, Span, Timestamp};

/// Tolerated delay of the controller's writes, because requests and watches take time. A prediction of a write is
/// dropped if the write is still missing this long after the time that the settings allow.
const LATENESS: Span = Span::from_secs(1);

/// Time without a write after which a pass of the controller counts as ended.
const GATHERING: Span = Span::from_millis(300);

/// Maximum time between two passes, one of the engine and one of the shadowed controller, that count as simultaneous.
const SAME_PHASE: Span = Span::from_millis(50);

/// The state of the controller that the engine shadows.
#[derive(Clone, Debug)]
pub struct Shadow {
    leader: Option<LeaderLease>,
    /// Time of the leader's last Lease renewal; none if the leader never renewed it.
    leader_renewed: Option<Timestamp>,
    /// The renewal of the Lease that `kordon controller` holds; none if it holds none, or the Lease was not read.
    kordon: Option<Renewal>,
    /// When the watch of the leader's Lease last became live again. Earlier renewals may have been missed.
    live_since: Timestamp,
    /// When the watch of the leader's Lease broke, so that renewals are not seen; none if the watch is live.
    leader_unseen_since: Option<Timestamp>,
    /// Whether the leader's Lease had expired at the last check.
    leader_expired: bool,
    /// Nodes with a predicted write of the controller that has not been observed yet: the node's NoExecute taint, or in
    /// legacy mode the deletion of its pods.
    expected: BTreeMap<NodeName, Expected>,
    /// Last observed pass of the controller; `None` after the engine has made its own pass.
    followed: Option<FollowedPass>,
    /// Checks whether the controller's writes fit kordon's settings.
    audit: Audit,
}

/// The last renewal of a Lease.
#[derive(Clone, Copy, Debug)]
struct Renewal {
    at: Timestamp,
    validity: Span,
}

/// A pass of the controller, as far as its writes show it.
#[derive(Clone, Debug)]
struct FollowedPass {
    /// Time of the pass's last observed write.
    last_write: Timestamp,
    /// The nodes that the pass marked Unknown, each with the status of its Ready condition before the mark.
    found: BTreeMap<NodeName, ConditionStatus>,
}

#[derive(Clone, Debug)]
struct Expected {
    zone: ZoneKey,
    since: Timestamp,
}

impl Shadow {
    pub fn new(cluster: &Cluster, now: Timestamp) -> Self {
        Self {
            leader: cluster.leader().cloned(),
            leader_renewed: leader_renewed(cluster, now),
            kordon: kordon_renewal(cluster, now),
            live_since: Timestamp::EPOCH,
            leader_unseen_since: None,
            leader_expired: false,
            expected: BTreeMap::new(),
            followed: None,
            audit: Audit::default(),
        }
    }

    /// Whether a controller is active. Without a readable Lease, a controller is assumed to be active. If the watch of
    /// the Lease is down, the last known state of the controller is assumed to last.
    pub fn confidence(&self, now: Timestamp) -> Confidence {
        if self.leader.is_none() {
            return Confidence::Assumed;
        }
        match self.manager_gone_since(now) {
            Some(since) if !self.is_led_by_kordon(now) => Confidence::NoController { since },
            Some(_) | None => self.leader_unseen_since.map_or(Confidence::Live, |_| Confidence::Assumed),
        }
    }

    /// Whether `kordon controller` holds its Lease.
    pub fn is_led_by_kordon(&self, now: Timestamp) -> bool {
        self.kordon.is_some_and(|renewal| self.is_valid(renewal, now))
    }

    /// The last renewal of the controller managers' Lease, if the Lease has no holder or is not valid any more.
    pub fn manager_gone_since(&self, now: Timestamp) -> Option<Timestamp> {
        let (leader, at) = (self.leader.as_ref()?, self.leader_renewed?);
        let renewal = Renewal { at, validity: leader.validity() };
        (leader.holder.is_empty() || !self.is_valid(renewal, now)).then_some(at)
    }

    fn is_valid(&self, renewal: Renewal, now: Timestamp) -> bool {
        let ends = renewal.at.max(self.live_since) + renewal.validity;
        self.leader_unseen_since.unwrap_or(now).min(now) <= ends
    }

    pub fn contradicted_flags(&self) -> impl Iterator<Item = &'static str> {
        self.audit.reported()
    }

    pub const fn has_controller(&self) -> bool {
        !self.leader_expired
    }

    /// Expects that the controller taints the node, or deletes the node's pods, now.
    pub fn expect_turn(&mut self, node: &NodeName, zone: &ZoneKey, now: Timestamp) {
        self.expected.insert(node.clone(), Expected { zone: zone.clone(), since: now });
    }

    /// End of the last observed pass of the controller; `None` after the engine has made its own pass.
    pub fn followed_pass_ended(&self) -> Option<Timestamp> {
        self.followed.as_ref().map(|pass| pass.last_write)
    }

    /// The status of Ready that the controller's last observed pass found on a node before it marked the node Unknown.
    pub fn found_by_controller(&self, node: &NodeName) -> Option<ConditionStatus> {
        self.followed.as_ref()?.found.get(node).copied()
    }

    /// Forgets the controller's last observed pass, after the engine has made its own pass.
    pub fn forget_followed_pass(&mut self) {
        self.followed = None;
    }

    /// Stops expecting the controller to taint or evict a node, because the node recovered or its eviction was
    /// cancelled.
    pub fn stop_expecting(&mut self, node: &NodeName) {
        self.expected.remove(node);
    }

    /// Returns a copy for a forecast. In the forecast, a controller is always active and effects are written at once.
    pub fn forecast_copy(&self) -> Self {
        Self { leader: None, kordon: None, expected: BTreeMap::new(), ..self.clone() }
    }
}

/// When the current leader started.
pub fn leader_started(cluster: &Cluster) -> Option<Timestamp> {
    let leader = cluster.leader().filter(|leader| !leader.holder.is_empty())?;
    leader.acquired.map(|at| cluster.local(at))
}

/// When the leader last renewed its Lease.
fn leader_renewed(cluster: &Cluster, now: Timestamp) -> Option<Timestamp> {
    cluster.leader()?.renewed.map(|at| cluster.local(at).min(now))
}

/// The last renewal of the Lease that `kordon controller` holds.
fn kordon_renewal(cluster: &Cluster, now: Timestamp) -> Option<Renewal> {
    let lease = cluster.kordon_lease().filter(|lease| !lease.holder.is_empty())?;
    Some(Renewal { at: cluster.local(lease.renewed?).min(now), validity: lease.validity() })
}

impl Engine {
    /// Estimates the health of nodes, the states of zones and the rate limiters that the running controller should
    /// have. `started` is the time at which the controller started.
    pub(super) fn estimate(&mut self, cluster: &Cluster, started: Option<Timestamp>, now: Timestamp) {
        let mut census: BTreeMap<ZoneKey, Census> = BTreeMap::new();
        let mut tainted: BTreeMap<ZoneKey, Vec<(NodeName, Timestamp)>> = BTreeMap::new();
        let record = |node: &Arc<Node>| {
            let mut record = NodeHealth::estimated(node, cluster.lease(&node.name), cluster.clock(), now);
            if let Some(started) = started.filter(|started| *started > record.probe) {
                record.restart_grace(HeartbeatSource::ControllerStart, started.min(now));
            }
            (node.name.clone(), record)
        };
        self.records = cluster.nodes().iter().map(record).collect();
        self.registered = self.records.keys().cloned().collect();
        for node in cluster.nodes().iter() {
            census.entry(node.zone()).or_default().count(node.ready().map(|ready| ready.status));
            if let Some(added) = controller_taint_added(node) {
                tainted.entry(node.zone()).or_default().push((node.name.clone(), cluster.local(added)));
            }
        }
        let threshold = self.settings.unhealthy_zone_threshold.value;
        let all_full = census.values().all(|census| census.state(threshold) == ZoneState::FullDisruption);
        for (key, census) in census {
            let mut zone = Zone::new(&self.settings, now);
            zone.census = census;
            let state = census.state(threshold);
            if all_full {
                zone.limiter.swap(0.0, now);
            } else {
                zone.set_limiter(state, &self.settings, now);
            }
            for (node, added) in tainted.get(&key).into_iter().flatten() {
                zone.queue.mark_processed(node);
                zone.limiter.drain_since((*added).min(now));
            }
            zone.state = Some(state);
            self.zones.insert(key, zone);
        }
    }

    /// Observes what the controller did to a node.
    pub(super) fn observe(&mut self, cluster: &Cluster, delta: &Delta<Node>, now: Timestamp) {
        let (Some(_), Some(old), Some(new)) = (&self.shadow, &delta.old, &delta.new) else { return };
        if turned_unknown(old, new) {
            let found = old.ready().map_or(ConditionStatus::Unknown, |ready| ready.status);
            self.observe_unknown(new, found, now);
        }
        // The controller needs no token of the zone's rate limiter to replace one of its NoExecute taints by the other.
        let tainted = |node: &Node| taints::controllers_own(node).next().is_some();
        match (tainted(old), tainted(new)) {
            (false, true) => self.observe_taint(cluster, new, now),
            (true, false) => {
                self.out.forget(&EffectSubject::Taints(new.name.clone(), TaintEffect::NoExecute));
                self.follow_pass(now);
            }
            (true, true) | (false, false) => {}
        }
    }

    /// Handles a node that the controller marked Unknown. `found` is the node's status of Ready before the mark.
    fn observe_unknown(&mut self, node: &Node, found: ConditionStatus, now: Timestamp) {
        if let (Some(record), Some(shadow)) = (self.records.get_mut(&node.name), &mut self.shadow) {
            let warning = shadow.audit.on_unknown(&node.name, record, &self.settings, now);
            self.out.warn(warning, now);
            record.adopt(node, now);
        }
        self.out.forget(&EffectSubject::Unknown(node.name.clone()));
        if let Some(pass) = self.follow_pass(now) {
            pass.found.insert(node.name.clone(), found);
        }
    }

    /// Follows a pass of the controller, after a write that the controller makes only in passes. The engine's own pass
    /// waits until all writes of the controller's pass are observed. The engine's next period starts at the end of the
    /// controller's pass, so that both make passes at the same times.
    fn follow_pass(&mut self, now: Timestamp) -> Option<&mut FollowedPass> {
        let shadow = self.shadow.as_ref().filter(|_| self.out.sends_all())?;
        if shadow.followed.is_none() {
            self.follow_phase(now);
        }
        let shadow = self.shadow.as_mut()?;
        self.next_pass = now + GATHERING;
        let new = || FollowedPass { last_write: now, found: BTreeMap::new() };
        let pass = shadow.followed.get_or_insert_with(new);
        pass.last_write = now;
        Some(pass)
    }

    /// Corrects the times at which Lease renewals were noticed, if the controller's passes and the engine's passes are
    /// at different times. `pass` is the time of a pass of the controller.
    fn follow_phase(&mut self, pass: Timestamp) {
        let period = self.settings.node_monitor_period.value + PASS_TAKES;
        let ahead = pass.since(self.next_pass).as_nanos().rem_euclid(period.as_nanos());
        if SAME_PHASE.as_nanos() < ahead && ahead < (period - SAME_PHASE).as_nanos() {
            for (node, record) in self.records.iter_mut() {
                if let Some(renewed) = self.heartbeats.last(node) {
                    record.move_to_pass(renewed, pass, period);
                }
            }
        }
    }

    /// Handles a node that the controller tainted with a token of the zone's rate limiter.
    fn observe_taint(&mut self, cluster: &Cluster, node: &Node, now: Timestamp) {
        let key = node.zone();
        self.observe_turn(cluster, &node.name, &key, now);
        let Some(shadow) = &mut self.shadow else { return };
        self.out.forget(&EffectSubject::Taints(node.name.clone(), TaintEffect::NoExecute));
        let Some(zone) = self.zones.get_mut(&key) else { return };
        let warning = shadow.audit.on_taint(&node.name, &key, zone, &self.settings, now);
        self.out.warn(warning, now);
        zone.queue.mark_processed(&node.name);
        // The controller took the rate limiter's token now, even if the engine predicted another time.
        zone.limiter.drain(now);
    }

    /// Handles the observed taint or eviction of a node. If the engine predicted another node of the zone instead, that
    /// node is queued again.
    pub(super) fn observe_turn(
        &mut self,
        cluster: &Cluster,
        node: &NodeName,
        zone: &ZoneKey,
        now: Timestamp,
    ) {
        let Some(shadow) = &mut self.shadow else { return };
        if shadow.expected.remove(node).is_some() {
            return;
        }
        let instead = shadow.expected.iter().find(|(_, expected)| expected.zone == *zone);
        if let Some(instead) = instead.map(|(name, _)| name.clone()) {
            self.requeue_predicted(cluster, &instead, now);
        }
    }

    /// Whether the engine expects the shadowed controller to taint the node. If the taint does not come in time, the
    /// node is queued again.
    pub(super) fn awaits_taint(&mut self, node: &NodeName) -> bool {
        self.shadow.as_ref().is_some_and(|shadow| shadow.expected.contains_key(node))
    }

    /// Requeues the nodes for which a predicted write did not come in time.
    pub(super) fn drop_overdue_predictions(&mut self, cluster: &Cluster, now: Timestamp) {
        let patience = self.settings.node_monitor_period.value + PASS_TAKES + LATENESS;
        let Some(shadow) = &self.shadow else { return };
        let overdue = |(name, expected): (&NodeName, &Expected)| {
            (now.since(expected.since) > patience).then(|| name.clone())
        };
        let overdue: Vec<NodeName> = shadow.expected.iter().filter_map(overdue).collect();
        for node in overdue {
            self.requeue_predicted(cluster, &node, now);
        }
    }

    fn requeue_predicted(&mut self, cluster: &Cluster, node: &NodeName, now: Timestamp) {
        let Some(expected) = self.shadow.as_mut().and_then(|shadow| shadow.expected.remove(node)) else {
            return;
        };
        match self.rules.profile {
            Profile::Taint => self.out.forget(&EffectSubject::Taints(node.clone(), TaintEffect::NoExecute)),
            Profile::Legacy => self.revert_round(cluster, node),
        }
        if let Some(zone) = self.zones.get_mut(&expected.zone) {
            zone.queue.requeue(node, &crate::cluster::Uid::default(), now);
        }
    }

    /// Catches up after the watches were down. If the engine shadows a controller, a Lease counts as renewed at its
    /// renewTime, because the controller may have seen the renewal. An engine that is the controller missed the
    /// renewals itself, so every node gets a new grace period.
    pub(super) fn catch_up(&mut self, cluster: &Cluster, now: Timestamp) {
        for (name, record) in self.records.iter_mut() {
            match &self.shadow {
                Some(_) => record.catch_up(cluster.lease(name), cluster.clock(), now),
                None => record.restart_grace(HeartbeatSource::Reconnected, now),
            }
        }
    }

    /// Handles a change of the controller manager's Lease. A new holder starts from the beginning, like any new
    /// controller. A holder that resumes after a pause keeps its state.
    pub(super) fn on_leader(&mut self, cluster: &Cluster, lease: Option<&LeaderLease>, now: Timestamp) {
        let confidence = self.confidence(now);
        let Some(shadow) = &mut self.shadow else { return };
        let before = std::mem::replace(&mut shadow.leader, lease.cloned());
        let renewed = leader_renewed(cluster, now);
        if before.as_ref() != lease || renewed.is_none() {
            shadow.leader_renewed = renewed.map(|at| arrived(at, self.watch_health, now));
        }
        let (Some(before), Some(lease)) = (before, lease) else { return };
        if lease.holder.is_empty() {
            return;
        }
        if lease.holder == before.holder {
            let is_back = shadow.confidence(now).allows_predictions();
            if let (Confidence::NoController { since }, true) = (confidence, is_back) {
                self.go_on(since, now);
            }
            return;
        }
        let text = format!(
            "new leader {}: the controller starts again, every node gets a new grace period",
            lease.holder
        );
        self.out.notice(Severity::Warning, text, Why::default(), now);
        self.restart(cluster, leader_started(cluster), now);
    }

    /// Handles a change of the Lease of `kordon controller`. If no controller was active, kordon starts from the
    /// beginning, like any new controller.
    pub(super) fn on_kordon_lease(&mut self, cluster: &Cluster, now: Timestamp) {
        let Some(shadow) = &mut self.shadow else { return };
        let was_active = shadow.confidence(now).allows_predictions();
        shadow.kordon = kordon_renewal(cluster, now);
        if was_active || !shadow.is_led_by_kordon(now) {
            return;
        }
        self.out.notice(Severity::Info, "kordon controller is active".into(), Why::default(), now);
        let acquired = cluster.kordon_lease().and_then(|lease| lease.acquired);
        self.restart(cluster, acquired.map(|at| cluster.local(at)), now);
    }

    /// Records whether the watch of the leader's Lease is live; if it is not, records since when.
    pub fn handle_leader_known(&mut self, known: &Known, now: Timestamp) {
        let Some(shadow) = &mut self.shadow else { return };
        let unseen_since = match known {
            Known::Live | Known::NotListed => None,
            Known::Stale { since } => Some(*since),
            Known::Forbidden { .. } | Known::Off { .. } | Known::Absent => {
                Some(shadow.leader_unseen_since.unwrap_or(now))
            }
        };
        let was_active = shadow.confidence(now).allows_predictions();
        let before = std::mem::replace(&mut shadow.leader_unseen_since, unseen_since);
        if before.is_some() && unseen_since.is_none() && was_active {
            shadow.live_since = now;
        }
    }

    /// Resumes after a pause of the controller that began at `paused_since` (docs/upstream/node-lifecycle.md#3.11).
    ///
    /// The controller's next pass runs at once and notices the heartbeats of the pause, even those that a pass of the
    /// engine has noticed before. From 1.37 on, the first pass after a pause that is longer than the grace period skips
    /// nearly every node, so the engine makes its next pass a period later.
    fn go_on(&mut self, paused_since: Timestamp, now: Timestamp) {
        let mut skips_nodes = false;
        for (name, record) in self.records.iter_mut() {
            if self.heartbeats.last(name).is_some_and(|at| at > paused_since) {
                record.forget_lease();
                skips_nodes |= self.rules.rereads_lease && now > paused_since + record.grace(&self.settings);
            }
        }
        self.evictor.go_on(paused_since, now);
        let period = if skips_nodes { self.settings.node_monitor_period.value } else { Span::ZERO };
        self.next_pass = now + period;
    }

    /// Starts from the beginning, as a controller that acquired its Lease at `acquired`, or now if that is not known.
    fn restart(&mut self, cluster: &Cluster, acquired: Option<Timestamp>, now: Timestamp) {
        let started = acquired.unwrap_or(now).min(now);
        let Some(shadow) = &mut self.shadow else { return };
        shadow.expected.clear();
        shadow.audit.restart();
        shadow.leader_expired = false;
        self.records = CowMap::default();
        self.controller_started = Some(started);
        self.zones.clear();
        self.estimate(cluster, acquired, now);
        // A new controller adds the taints once more, and starts with a full rate limiter for every zone.
        for zone in self.zones.values_mut() {
            *zone = Zone { census: zone.census, ..Zone::new(&self.settings, now) };
        }
        self.registered.clear();
        self.nodes_changed = true;
        self.evictor = Evictor::new(TimerSource::Shadow { started: Some(started) });
        self.legacy = Legacy::default();
        self.register_nodes(cluster);
        self.start_collector(cluster, started, Certainty::Estimated, now);
        let (evictor, mut context) = self.evictor(cluster, now);
        evictor.evaluate_all(&mut context);
        self.next_pass = now;
    }

    /// Checks whether a controller is active, and sends a notice when that changed.
    pub(super) fn check_controller(&mut self, now: Timestamp) {
        let Some(shadow) = &mut self.shadow else { return };
        let confidence = shadow.confidence(now);
        let leader_expired = matches!(confidence, Confidence::NoController { .. });
        if leader_expired == std::mem::replace(&mut shadow.leader_expired, leader_expired) {
            return;
        }
        let (level, text) = match confidence {
            Confidence::NoController { since } => {
                let ago = now.since(since);
                (Severity::Warning, format!("no active kube-controller-manager for {ago}: no evictions"))
            }
            Confidence::Live | Confidence::Assumed | Confidence::Disconnected { .. } => {
                (Severity::Info, "kube-controller-manager is active again".into())
            }
        };
        self.out.notice(level, text, Why::default(), now);
    }
}

/// Whether this change of a node made it Unknown.
fn turned_unknown(old: &Arc<Node>, new: &Arc<Node>) -> bool {
    let status = |node: &Node| node.ready().map(|ready| ready.status);
    status(new) == Some(ConditionStatus::Unknown) && status(old) != Some(ConditionStatus::Unknown)
}

/// When the controller added its NoExecute taint to the node.
fn controller_taint_added(node: &Node) -> Option<ClusterTime> {
    let ours = |key| node.taints.iter().find(|taint| taint.is(key, TaintEffect::NoExecute));
    ours(UNREACHABLE).or_else(|| ours(NOT_READY)).and_then(|taint| taint.time_added)
}
