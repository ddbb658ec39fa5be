//! Being the shadow of a controller that runs elsewhere: what we did not see is estimated, and what it does is taken
//! for the truth (design: `attach`).

use std::{collections::BTreeMap, sync::Arc};

use super::{
    Confidence, Engine, PASS_TAKES,
    audit::Audit,
    effect::Severity,
    eviction::{Evictor, TimerSource},
    health::NodeHealth,
    legacy::Legacy,
    outbox::EffectSubject,
    settings::Profile,
    taints::{self, NOT_READY, UNREACHABLE},
    why::{Certainty, Why},
    zone::{Census, Zone, ZoneState},
};
use crate::{
    cluster::{Cluster, ConditionStatus, Delta, LeaderLease, Node, NodeName, TaintEffect, ZoneKey},
    time::{Span, Timestamp},
};

/// How long a leader's Lease counts beyond its last renewal where it does not say so (kube-controller-manager's
/// `--leader-elect-lease-duration`).
const LEASE_DURATION: Span = Span::from_secs(15);

/// How much later than its settings allow a controller may be before its shadow thinks again: requests and watches
/// take their time.
const LATENESS: Span = Span::from_secs(1);

/// After so long without a further sign of it a controller's pass is taken to be over.
const GATHERING: Span = Span::from_millis(300);

/// What the shadow knows of the controller it follows.
#[derive(Clone, Debug)]
pub struct Shadow {
    /// How far the API server's clock is ahead of ours.
    ahead: Span,
    leader: Option<LeaderLease>,
    /// From when we have seen without a break: before that, a Lease may have been renewed unseen.
    seen_since: Timestamp,
    /// Whether the leader's Lease had run out when it was last looked at.
    abandoned: bool,
    /// Nodes whose turn should have come by now: to be tainted, or in legacy mode to lose their pods.
    expected: BTreeMap<NodeName, Expected>,
    /// The controller's pass that was last observed, until the shadow has made its own.
    followed: Option<FollowedPass>,
    /// Whether its doings fit our settings.
    audit: Audit,
}

/// A pass of the controller, as far as its writes show it.
#[derive(Clone, Debug)]
struct FollowedPass {
    /// When its last write was observed.
    last_write: Timestamp,
    /// The nodes that it marked Unknown, with the status of Ready that it found before.
    found: BTreeMap<NodeName, ConditionStatus>,
}

#[derive(Clone, Debug)]
struct Expected {
    zone: ZoneKey,
    since: Timestamp,
}

impl Shadow {
    pub fn new(cluster: &Cluster, ahead: Span) -> Self {
        Self {
            ahead,
            leader: cluster.leader().cloned(),
            seen_since: Timestamp::EPOCH,
            abandoned: false,
            expected: BTreeMap::new(),
            followed: None,
            audit: Audit::default(),
        }
    }

    /// Whether a controller is active. Without a Lease that can be read, one is assumed.
    pub fn confidence(&self, now: Timestamp) -> Confidence {
        let Some(leader) = &self.leader else { return Confidence::Assumed };
        let Some(renewed) = leader.renewed else { return Confidence::Live };
        let renewed = renewed - self.ahead;
        let ends = renewed.max(self.seen_since) + leader.duration.unwrap_or(LEASE_DURATION);
        if leader.holder.is_empty() || now > ends {
            Confidence::NoController { since: renewed }
        } else {
            Confidence::Live
        }
    }

    pub const fn has_controller(&self) -> bool {
        !self.abandoned
    }

    /// A node's turn has come, if the controller is as we think: it will put the taint on, or delete the pods.
    pub fn expect_turn(&mut self, node: &NodeName, zone: &ZoneKey, now: Timestamp) {
        self.expected.insert(node.clone(), Expected { zone: zone.clone(), since: now });
    }

    /// When the controller's pass ended that the shadow's next pass follows.
    pub fn followed_pass_ended(&self) -> Option<Timestamp> {
        self.followed.as_ref().map(|pass| pass.last_write)
    }

    /// The status of Ready that the followed pass found on a node which it then marked Unknown.
    pub fn found_by_controller(&self, node: &NodeName) -> Option<ConditionStatus> {
        self.followed.as_ref()?.found.get(node).copied()
    }

    /// The shadow has made its own pass.
    pub fn forget_followed_pass(&mut self) {
        self.followed = None;
    }

    /// The node is well again, or nothing is wanted of it any more.
    pub fn expect_nothing(&mut self, node: &NodeName) {
        self.expected.remove(node);
    }

    /// A copy that runs ahead: there, what is asked for is done, and who leads goes on leading.
    pub fn run_ahead(&self) -> Self {
        Self { leader: None, expected: BTreeMap::new(), ..self.clone() }
    }
}

/// When the present leader began, by our clock.
pub fn leader_began(leader: Option<&LeaderLease>, ahead: Span) -> Option<Timestamp> {
    leader.filter(|leader| !leader.holder.is_empty()).and_then(|leader| leader.acquired).map(|at| at - ahead)
}

impl Engine {
    /// Fills in records, zones and limiters as the controller that has been running should have them.
    pub(super) fn estimate(&mut self, cluster: &Cluster, now: Timestamp) {
        let Some(shadow) = &self.shadow else { return };
        let ahead = shadow.ahead;
        let began = leader_began(shadow.leader.as_ref(), ahead);
        let mut census: BTreeMap<ZoneKey, Census> = BTreeMap::new();
        let mut tainted: BTreeMap<ZoneKey, Vec<(NodeName, Timestamp)>> = BTreeMap::new();
        for node in cluster.nodes().iter() {
            let mut record = NodeHealth::estimated(node, cluster.lease(&node.name), ahead, now);
            if let Some(began) = began.filter(|began| *began > record.probe) {
                record.begin_anew(began.min(now));
            }
            self.records.insert(node.name.clone(), record);
            self.registered.insert(node.name.clone());
            census.entry(node.zone()).or_default().count(node.ready().map(|ready| ready.status));
            if let Some(added) = controller_taint_added(node) {
                tainted.entry(node.zone()).or_default().push((node.name.clone(), added - ahead));
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
                zone.queue.take_for_processed(node);
                zone.limiter.drain_since((*added).min(now));
            }
            zone.state = Some(state);
            self.zones.insert(key, zone);
        }
    }

    /// Learns from what the controller did to a node.
    pub(super) fn observe(&mut self, cluster: &Cluster, delta: &Delta<Node>, now: Timestamp) {
        let (Some(_), Some(old), Some(new)) = (&self.shadow, &delta.old, &delta.new) else { return };
        if turned_unknown(old, new) {
            if let (Some(record), Some(shadow)) = (self.records.get_mut(&new.name), &mut self.shadow) {
                let doubt = shadow.audit.on_unknown(&new.name, record, &self.settings, now);
                self.out.doubt(doubt, now);
                record.adopt(new, now);
            }
            self.out.settle(&EffectSubject::Unknown(new.name.clone()));
            let found = old.ready().map_or(ConditionStatus::Unknown, |ready| ready.status);
            if let Some(pass) = self.follow_pass(now) {
                pass.found.insert(new.name.clone(), found);
            }
        }
        // A swap of one for the other is not rate-limited.
        let tainted = |node: &Node| taints::controllers_own(node).next().is_some();
        match (tainted(old), tainted(new)) {
            (false, true) => self.observe_taint(cluster, new, now),
            (true, false) => {
                self.out.settle(&EffectSubject::Taints(new.name.clone(), TaintEffect::NoExecute));
                self.follow_pass(now);
            }
            (true, true) | (false, false) => {}
        }
    }

    /// The controller is in the middle of a pass: it wrote what it writes in passes only. The shadow's next pass comes
    /// when all of the controller's has been observed, the one after that a period after the controller's pass ended:
    /// what a pass finds depends on when it is.
    fn follow_pass(&mut self, now: Timestamp) -> Option<&mut FollowedPass> {
        let shadow = self.shadow.as_mut().filter(|_| self.out.tells_all())?;
        self.next_pass = now + GATHERING;
        let new = || FollowedPass { last_write: now, found: BTreeMap::new() };
        let pass = shadow.followed.get_or_insert_with(new);
        pass.last_write = now;
        Some(pass)
    }

    /// The controller has put a taint on, for a token of the node's zone.
    fn observe_taint(&mut self, cluster: &Cluster, node: &Node, now: Timestamp) {
        let key = node.zone();
        self.observe_turn(cluster, &node.name, &key, now);
        let Some(shadow) = &mut self.shadow else { return };
        self.out.settle(&EffectSubject::Taints(node.name.clone(), TaintEffect::NoExecute));
        let Some(zone) = self.zones.get_mut(&key) else { return };
        let doubt = shadow.audit.on_taint(&node.name, &key, zone, &self.settings, now);
        self.out.doubt(doubt, now);
        zone.queue.take_for_processed(&node.name);
        // Its token went now, whenever we thought that it would.
        zone.limiter.drain(now);
    }

    /// It was the turn of this node. Where we thought that it would be another's of the zone, that one goes on waiting.
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
            self.wait_again(cluster, &instead, now);
        }
    }

    /// Whether the shadow still waits to see a taint on the node that it foretold. After a while it no longer does:
    /// the controller thinks otherwise, and the node waits again.
    pub(super) fn awaits_taint(&mut self, node: &NodeName) -> bool {
        self.shadow.as_ref().is_some_and(|shadow| shadow.expected.contains_key(node))
    }

    /// Lets nodes wait again whose turn should have come and did not.
    pub(super) fn give_up_waiting(&mut self, cluster: &Cluster, now: Timestamp) {
        let patience = self.settings.node_monitor_period.value + PASS_TAKES + LATENESS;
        let Some(shadow) = &self.shadow else { return };
        let overdue = |(name, expected): (&NodeName, &Expected)| {
            (now.since(expected.since) > patience).then(|| name.clone())
        };
        let overdue: Vec<NodeName> = shadow.expected.iter().filter_map(overdue).collect();
        for node in overdue {
            self.wait_again(cluster, &node, now);
        }
    }

    fn wait_again(&mut self, cluster: &Cluster, node: &NodeName, now: Timestamp) {
        let Some(expected) = self.shadow.as_mut().and_then(|shadow| shadow.expected.remove(node)) else {
            return;
        };
        match self.rules.profile {
            Profile::Taint => self.out.settle(&EffectSubject::Taints(node.clone(), TaintEffect::NoExecute)),
            Profile::Legacy => self.take_round_back(cluster, node),
        }
        if let Some(zone) = self.zones.get_mut(&expected.zone) {
            zone.queue.again(node, &crate::cluster::Uid::default(), now);
        }
    }

    /// Sight is back. A shadow's controller may have seen what we did not: signs of life are as old as they say. A
    /// controller of our own was as blind as we: every node gets a whole grace period.
    pub(super) fn catch_up(&mut self, cluster: &Cluster, now: Timestamp) {
        let ahead = self.shadow.as_mut().map(|shadow| {
            shadow.seen_since = now;
            shadow.ahead
        });
        for (name, record) in &mut self.records {
            match ahead {
                Some(ahead) => record.catch_up(cluster.lease(name), ahead, now),
                None => record.begin_anew(now),
            }
        }
    }

    /// The controller manager's Lease changed. A new holder has begun anew, with everything it had not seen itself.
    pub(super) fn on_leader(&mut self, cluster: &Cluster, lease: Option<&LeaderLease>, now: Timestamp) {
        let Some(shadow) = &mut self.shadow else { return };
        let before = std::mem::replace(&mut shadow.leader, lease.cloned());
        let (Some(before), Some(lease)) = (before, lease) else { return };
        if lease.holder.is_empty() || lease.holder == before.holder {
            return;
        }
        let began = leader_began(Some(lease), shadow.ahead).unwrap_or(now).min(now);
        let text = format!(
            "new leader {}: the controller starts again, every node gets a new grace period",
            lease.holder
        );
        self.out.notice(Severity::Warning, text, Why::default(), now);
        self.begin_anew(cluster, began, now);
    }

    fn begin_anew(&mut self, cluster: &Cluster, began: Timestamp, now: Timestamp) {
        let Some(shadow) = &mut self.shadow else { return };
        shadow.expected.clear();
        shadow.audit.begin_anew();
        shadow.abandoned = false;
        let ahead = shadow.ahead;
        self.records.clear();
        self.zones.clear();
        self.estimate(cluster, now);
        // A new controller puts the taints on once more, each zone from a full bucket.
        for zone in self.zones.values_mut() {
            *zone = Zone { census: zone.census, ..Zone::new(&self.settings, now) };
        }
        self.registered.clear();
        self.roll_changed = true;
        self.evictor = Evictor::new(TimerSource::Shadow { ahead, began: Some(began) });
        self.legacy = Legacy::default();
        for node in cluster.nodes().iter() {
            self.legacy.register(&node.name);
        }
        self.begin_collecting(cluster, began, Certainty::Estimated, now);
        self.evictor.take_all(cluster, &self.rules, &mut self.out, now);
        self.next_pass = now;
    }

    /// Looks whether the controller is there; tells when that has changed.
    pub(super) fn look_for_controller(&mut self, now: Timestamp) {
        let Some(shadow) = &mut self.shadow else { return };
        let footing = shadow.confidence(now);
        let abandoned = matches!(footing, Confidence::NoController { .. });
        if abandoned == std::mem::replace(&mut shadow.abandoned, abandoned) {
            return;
        }
        let (level, text) = match footing {
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

/// Whether a controller has just declared the node silent.
fn turned_unknown(old: &Arc<Node>, new: &Arc<Node>) -> bool {
    let status = |node: &Node| node.ready().map(|ready| ready.status);
    status(new) == Some(ConditionStatus::Unknown) && status(old) != Some(ConditionStatus::Unknown)
}

/// When the controller put its NoExecute taint on the node, by the server's clock.
fn controller_taint_added(node: &Node) -> Option<Timestamp> {
    let ours = |key| node.taints.iter().find(|taint| taint.is(key, TaintEffect::NoExecute));
    ours(UNREACHABLE).or_else(|| ours(NOT_READY)).and_then(|taint| taint.time_added)
}
