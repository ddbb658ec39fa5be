//! The health of a node as the controller knows it, and how a pass updates it (docs/upstream/node-lifecycle.md#3.4;
//! upstream `tryUpdateNodeHealth`).

use std::{cell::LazyCell, sync::Arc};

use super::{
    effect::UnknownCondition,
    heartbeats::{Heartbeats, posted, posted_before},
    settings::Settings,
    taints,
    why::{Cause, Certainty, HeartbeatSource, Why},
    zone::NodeZone,
};
use crate::cluster::{ClockDifference, Condition, ConditionStatus, Lease, Name, Node, READY};
use kordon_time::{ClusterClock, ClusterTime, Span, Timestamp};

/// The conditions that become Unknown when a node is silent, in the order in which they are rewritten.
const VOUCHED: [&str; 4] = [READY, "MemoryPressure", "DiskPressure", "PIDPressure"];

/// The health of a node. Before 1.38 it is kept when the node object is deleted.
#[derive(Clone, Debug)]
pub struct NodeHealth {
    /// When a pass *noticed* the last heartbeat: upstream's probeTimestamp.
    pub probe: Timestamp,
    pub heartbeat_source: HeartbeatSource,
    /// Source and time of the last heartbeat other than a Lease renewal. Before the first such heartbeat: the node's
    /// creation or the controller's start.
    posted: (HeartbeatSource, Timestamp),
    pub certainty: Certainty,
    /// When a pass noticed the last change of readiness.
    pub ready_transition: Timestamp,
    /// The node's conditions as the controller last read or wrote them.
    conditions: Arc<[Condition]>,
    /// The saved Lease: the last Lease that counted as renewed. A status post drops it
    /// (docs/upstream/node-lifecycle.md#12.3).
    lease: Option<Arc<Lease>>,
    zone: NodeZone,
    /// Node object of the last pass, if the node was Ready and had none of the controller's taints. While the object is
    /// unchanged, a pass reads only its heartbeats.
    calm: Option<Arc<Node>>,
    /// Whether the kubelet never posted the node's status: then the startup grace period applies.
    pub never_posted: bool,
    /// Whether a pass could not list or mark the node's pods: the next pass tries again.
    pub pods_to_retry: bool,
    /// Whether a forecast assumes that the node is alive: then every pass notices a heartbeat.
    pub assumed_alive: bool,
}

/// The result of assessing a node in a pass.
#[derive(Clone, Debug)]
pub struct NodeAssessment {
    /// The status of Ready that the pass found; Unknown if the node had no Ready condition.
    pub observed: ConditionStatus,
    /// The status of Ready after the pass, which may have made it Unknown; none if the node still has no Ready
    /// condition.
    pub current: Option<ConditionStatus>,
    /// The conditions to write; none if nothing changes.
    pub rewrite: Option<Vec<UnknownCondition>>,
    /// Whether an earlier pass could not mark all of the node's pods.
    pub pods_to_retry: bool,
    /// Whether a heartbeat was noticed. After a status post an unrenewed Lease can count as new once more
    /// (docs/upstream/node-lifecycle.md#12.3).
    pub is_renewed: bool,
    /// Why the node is not healthy; empty for a healthy node.
    pub why: Why,
}

impl NodeAssessment {
    /// Whether the node is Ready and nothing is left to do.
    pub fn is_healthy(&self) -> bool {
        let ready = ConditionStatus::True;
        self.observed == ready && self.current == Some(ready) && !self.pods_to_retry
    }

    /// The assessment of a Ready node for which nothing is left to do.
    fn healthy(is_renewed: bool) -> Self {
        Self {
            observed: ConditionStatus::True,
            current: Some(ConditionStatus::True),
            rewrite: None,
            pods_to_retry: false,
            is_renewed,
            why: Why::default(),
        }
    }
}

impl NodeHealth {
    /// The health of a newly registered node. Without a Ready condition the grace period starts at the node's creation.
    pub fn first_seen(node: &Node, clock: ClusterClock, now: Timestamp) -> Self {
        let posted = node.ready().and_then(|ready| ready.last_heartbeat).map(|at| clock.local(at).min(now));
        match node.ready() {
            Some(_) => Self {
                posted: posted
                    .map_or((HeartbeatSource::ControllerStart, now), |at| (HeartbeatSource::Status, at)),
                ..Self::fresh(node, HeartbeatSource::ControllerStart, now)
            },
            None => Self::fresh(node, HeartbeatSource::Created, clock.local(node.created).min(now)),
        }
    }

    /// The health after a heartbeat noticed at `at`.
    fn fresh(node: &Node, source: HeartbeatSource, at: Timestamp) -> Self {
        Self {
            probe: at,
            heartbeat_source: source,
            posted: (source, at),
            certainty: Certainty::Observed,
            ready_transition: at,
            conditions: node.conditions.clone(),
            lease: None,
            zone: NodeZone::from_node(node),
            calm: None,
            never_posted: node.ready().is_none(),
            pods_to_retry: false,
            assumed_alive: false,
        }
    }

    /// Estimates the health that a controller already watching the node would have. probeTimestamp is the time of the
    /// kubelet's last write to the node status or the Lease.
    pub fn estimated(node: &Node, lease: Option<&Arc<Lease>>, clock: ClusterClock, now: Timestamp) -> Self {
        let local = |time| clock.local(time).min(now);
        let mut record = Self::fresh(node, HeartbeatSource::Created, local(node.created));
        record.certainty = Certainty::Estimated;
        let ahead = |lease: &Lease| lease.clock_difference().map_or(Span::ZERO, ClockDifference::span);
        let posted = match lease {
            Some(lease) => posted_before(node, ahead(lease), clock, now),
            None => posted(node, Span::ZERO, clock).map(|at| at.min(now)),
        };
        if let Some(posted) = posted {
            record.record_heartbeat(HeartbeatSource::Status, posted);
        }
        if let Some(renewed) = lease.and_then(|lease| lease.heartbeat()) {
            record.record_heartbeat(HeartbeatSource::Lease, local(renewed));
        }
        record.lease = lease.cloned();
        if let Some(transition) = node.ready().and_then(|ready| ready.last_transition) {
            record.ready_transition = local(transition);
        }
        record
    }

    /// Counts the last renewal of the Lease as a heartbeat at the time of the renewal. Used after the watches were
    /// down.
    pub fn catch_up(&mut self, lease: Option<&Arc<Lease>>, clock: ClusterClock, now: Timestamp) {
        let Some(lease) = lease else { return };
        if let Some(renewed) = lease.heartbeat()
            && self.record_heartbeat(HeartbeatSource::Lease, clock.local(renewed).min(now))
        {
            self.certainty = Certainty::Estimated;
        }
        self.lease = Some(lease.clone());
    }

    /// Drops the saved Lease, so that the next pass counts the Lease as renewed.
    pub fn forget_lease(&mut self) {
        self.lease = None;
    }

    /// Starts a new grace period at `now`, for the given reason.
    pub fn restart_grace(&mut self, reason: HeartbeatSource, now: Timestamp) {
        (self.probe, self.heartbeat_source, self.certainty) = (now, reason, Certainty::Observed);
        self.ready_transition = now;
    }

    /// Takes over the node's conditions from the node object.
    pub fn adopt(&mut self, node: &Node, now: Timestamp) {
        self.conditions = node.conditions.clone();
        self.ready_transition = now;
        self.calm = None;
    }

    /// Whether `lease` is the same object as the saved Lease.
    pub fn has_saved(&self, lease: &Arc<Lease>) -> bool {
        self.lease.as_ref().is_some_and(|saved| Arc::ptr_eq(saved, lease))
    }

    /// Whether a pass found this same node object Ready and without taints of the controller.
    pub fn is_calm(&self, node: &Node) -> bool {
        self.calm.as_deref().is_some_and(|calm| std::ptr::eq(calm, node))
    }

    /// The grace period in force.
    pub fn grace(&self, settings: &Settings) -> Span {
        self.grace_flag(settings).1
    }

    /// The grace period in force, and the flag that sets it.
    pub fn grace_flag(&self, settings: &Settings) -> (&'static str, Span) {
        if self.never_posted {
            ("node-startup-grace-period", settings.node_startup_grace_period.value)
        } else {
            ("node-monitor-grace-period", settings.node_monitor_grace_period.value)
        }
    }

    /// Explains why the controller finds the node silent, now or later. `renewed` is the last renewal of the node's
    /// Lease. If the kubelet posted its status after that, the grace period counts from the post.
    pub fn why(&self, settings: &Settings, renewed: Option<Timestamp>) -> Why {
        let (flag, span) = self.grace_flag(settings);
        let is_posted =
            |renewed: Timestamp| self.heartbeat_source == HeartbeatSource::Status && renewed < self.posted.1;
        let renewed = renewed.filter(|renewed| !is_posted(*renewed));
        let (source, at) = renewed.map_or(self.posted, |at| (HeartbeatSource::Lease, at));
        let heartbeat = Cause::LastHeartbeat { source, at, noticed: self.probe };
        let restarted = self.heartbeat_source.restarts_grace();
        let restarted =
            restarted.then_some(Cause::GraceRestarted { by: self.heartbeat_source, at: self.probe });
        Why([heartbeat].into_iter().chain(restarted).chain([Cause::Grace { flag, span }]).collect())
    }

    /// When the grace period ends without a further heartbeat; none if the node is assumed alive.
    pub fn grace_ends(&self, settings: &Settings) -> Option<Timestamp> {
        (!self.assumed_alive).then(|| self.probe + self.grace(settings))
    }

    /// Recomputes when the last renewal of the Lease was noticed: at the first pass after `renewed`. There is a pass at
    /// `pass`, and one at each whole period before it.
    ///
    /// The time stays unchanged if it would move by a period or more, because then the kubelet's clock must be wrong.
    pub fn move_to_pass(&mut self, renewed: Timestamp, pass: Timestamp, period: Span) {
        let is_noticed = self.heartbeat_source == HeartbeatSource::Lease
            && self.certainty == Certainty::Observed
            && renewed <= self.probe
            && renewed <= pass;
        if is_noticed {
            let periods = pass.since(renewed).as_nanos().div_euclid(period.as_nanos());
            let noticed = pass - period * periods;
            let moved = noticed.since(self.probe);
            if -period < moved && moved < period {
                self.probe = noticed;
            }
        }
    }

    /// Records a heartbeat at `last_pass` if the node is assumed alive. Passes that skipped the node did not record
    /// one.
    pub fn keep_alive(&mut self, last_pass: Timestamp) {
        if self.assumed_alive {
            self.record_heartbeat(HeartbeatSource::Lease, last_pass);
        }
    }

    /// Records a heartbeat if it is later than the last one, and returns whether it is.
    pub fn record_heartbeat(&mut self, source: HeartbeatSource, at: Timestamp) -> bool {
        let later = at > self.probe;
        if later {
            (self.probe, self.heartbeat_source) = (at, source);
            if source != HeartbeatSource::Lease {
                self.posted = (source, at);
            }
        }
        later
    }

    /// The node's zone.
    pub fn zone(&mut self, node: &Node) -> &NodeZone {
        // Skip reading the zone if a pass has already read it from this same node object (`is_calm`).
        if !self.is_calm(node) {
            self.zone.refresh(node);
        }
        &self.zone
    }

    /// Whether the grace period is over.
    fn is_silent(&self, settings: &Settings, now: Timestamp) -> bool {
        now > self.probe + self.grace(settings)
    }

    /// The status of Ready last read or written; none if the node never had one.
    pub fn saved_ready(&self) -> Option<ConditionStatus> {
        self.ready().map(|ready| ready.status)
    }

    fn ready(&self) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.kind == *READY)
    }
}

/// The objects and clocks from which a pass assesses one node.
#[derive(Clone, Copy, Debug)]
pub struct Reading<'a> {
    pub node: &'a Arc<Node>,
    pub lease: Option<&'a Arc<Lease>>,
    pub clock: ClusterClock,
    /// End of another controller's pass, if the engine repeats that pass a moment later; otherwise equal to `now`.
    pub pass_ended: Timestamp,
    pub now: Timestamp,
}

/// Updates a node's health and assesses the node, in the steps of upstream's `tryUpdateNodeHealth`:
///
/// - A, B: the node's own status. A post counts as a heartbeat.
/// - C: the Lease. A renewal counts as a heartbeat.
/// - D: the grace period. Once it has expired, Ready and three more conditions become Unknown.
///
/// The new conditions count as written; if the write fails, [`NodeHealth::adopt`] restores the old ones.
pub fn update(
    record: &mut NodeHealth,
    reading: Reading<'_>,
    heartbeats: &Heartbeats,
    settings: &Settings,
) -> NodeAssessment {
    let Reading { node, now, .. } = reading;
    if record.is_calm(node) && !record.pods_to_retry {
        let newer = newer_lease(record, reading);
        take_renewal(record, newer, reading.pass_ended);
        if !record.is_silent(settings, now) {
            return NodeAssessment::healthy(newer.is_some());
        }
    }
    record.zone.refresh(node);
    let ready = node.ready();
    let is_renewed = notice_heartbeats(record, reading, ready);
    let mut assessment = NodeAssessment {
        observed: ready.map_or(ConditionStatus::Unknown, |ready| ready.status),
        current: ready.map(|ready| ready.status),
        rewrite: None,
        pods_to_retry: record.pods_to_retry,
        is_renewed,
        why: Why::default(),
    };
    if record.is_silent(settings, now) {
        let renewed = heartbeats.last(&node.name);
        assessment.why = record.why(settings, renewed).then(Cause::Silent);
        assessment.current = Some(ConditionStatus::Unknown);
        assessment.rewrite = rewrite(record, reading);
    } else if let Some(ready) = ready.filter(|ready| ready.status != ConditionStatus::True) {
        assessment.why = Cause::Posted { status: ready.status, reason: ready.reason.clone() }.into();
    }
    let is_calm = assessment.is_healthy() && taints::controllers_own(node).next().is_none();
    record.calm = is_calm.then(|| node.clone());
    assessment
}

/// Takes steps A to C of [`update`]. Returns whether there was a heartbeat since the last pass.
fn notice_heartbeats(record: &mut NodeHealth, reading: Reading<'_>, ready: Option<&Condition>) -> bool {
    // Compare the Lease first, because reading the status can drop the saved Lease.
    let newer = newer_lease(record, reading);
    let is_posted = read_status(record, reading.node, ready, reading.pass_ended);
    take_renewal(record, newer, reading.pass_ended);
    is_posted || newer.is_some()
}

/// Step C of [`update`]: counts a renewed Lease as a heartbeat, noticed at `noticed`. A node that is assumed alive
/// always has a heartbeat.
fn take_renewal(record: &mut NodeHealth, newer: Option<&Arc<Lease>>, noticed: Timestamp) {
    if let Some(lease) = newer {
        record.lease = Some(lease.clone());
        (record.probe, record.heartbeat_source, record.certainty) =
            (noticed, HeartbeatSource::Lease, Certainty::Observed);
    }
    if record.assumed_alive {
        record.record_heartbeat(HeartbeatSource::Lease, noticed);
    }
}

/// Part of step D of [`update`]: returns the conditions to write for a silent node, and counts them as written. Returns
/// `None` if Ready is already Unknown. Conditions are written only together with Ready, so such a node keeps its other
/// conditions (docs/upstream/node-lifecycle.md#12.4).
fn rewrite(record: &mut NodeHealth, reading: Reading<'_>) -> Option<Vec<UnknownCondition>> {
    let Reading { node, lease, clock, now, .. } = reading;
    if node.ready().is_some_and(|ready| ready.status == ConditionStatus::Unknown) {
        return None;
    }
    let unknown = unknown_conditions(node, clock.written(now));
    record.conditions = rewritten(node, &unknown);
    record.ready_transition = now;
    record.lease = lease.cloned();
    Some(unknown)
}

/// Steps A and B of [`update`]: reads the node's own status, noticed at `noticed`. Returns whether the kubelet posted
/// the status since the last pass.
fn read_status(record: &mut NodeHealth, node: &Node, ready: Option<&Condition>, noticed: Timestamp) -> bool {
    let Some(ready) = ready else {
        record.conditions = node.conditions.clone();
        record.never_posted = true;
        return false;
    };
    record.never_posted = false;
    if Arc::ptr_eq(&record.conditions, &node.conditions) {
        return false;
    }
    let saved = record.ready();
    if saved.is_some_and(|saved| saved.last_heartbeat == ready.last_heartbeat) {
        return false;
    }
    let same_transition = saved.is_some_and(|saved| saved.last_transition == ready.last_transition);
    // A status post makes a new health record from the node object, and drops the saved Lease.
    *record = NodeHealth {
        ready_transition: if same_transition { record.ready_transition } else { noticed },
        pods_to_retry: record.pods_to_retry,
        assumed_alive: record.assumed_alive,
        ..NodeHealth::fresh(node, HeartbeatSource::Status, noticed)
    };
    true
}

/// Step C of [`update`]: returns the Lease if none is saved, or if its renewTime is later than that of the saved Lease.
/// A missing renewTime is never later. An engine that shadows a controller also skips a renewal after the end of the
/// controller's pass, because only the controller's next pass notices it.
fn newer_lease<'a>(record: &NodeHealth, reading: Reading<'a>) -> Option<&'a Arc<Lease>> {
    let Reading { lease, clock, pass_ended, now, .. } = reading;
    let is_too_late = |lease: &Arc<Lease>| {
        let renewed = lease.heartbeat().map(|renewed| clock.local(renewed));
        renewed.is_some_and(|renewed| pass_ended < renewed && renewed <= now)
    };
    lease.filter(|lease| {
        let is_newer = |saved: &Arc<Lease>| {
            saved.renewed.zip(lease.renewed).is_some_and(|(saved, renewed)| saved < renewed)
        };
        // Usually the Lease is the saved object itself, and its times need not be compared.
        !record.has_saved(lease) && record.lease.as_ref().is_none_or(is_newer) && !is_too_late(lease)
    })
}

/// Returns the new conditions of a silent node. Conditions that are already Unknown are left out.
fn unknown_conditions(node: &Node, now: ClusterTime) -> Vec<UnknownCondition> {
    // Reason and message of an Unknown condition, created once for all conditions of the node.
    let never =
        LazyCell::new(|| ["NodeStatusNeverUpdated", "Kubelet never posted node status."].map(Name::from));
    let stopped =
        LazyCell::new(|| ["NodeStatusUnknown", "Kubelet stopped posting node status."].map(Name::from));
    let rewrite = |kind: &str| {
        let condition = node.condition(kind);
        if condition.is_some_and(|condition| condition.status == ConditionStatus::Unknown) {
            return None;
        }
        let [reason, message] = condition.map_or(&*never, |_| &*stopped).clone();
        Some(UnknownCondition {
            kind: condition.map_or_else(|| kind.into(), |condition| condition.kind.clone()),
            reason,
            message,
            last_heartbeat: condition.map_or(Some(node.created), |condition| condition.last_heartbeat),
            last_transition: now,
        })
    };
    VOUCHED.into_iter().filter_map(rewrite).collect()
}

/// Returns the node's conditions after those in `unknown` became Unknown. Conditions that the node lacks are appended.
pub fn rewritten(node: &Node, unknown: &[UnknownCondition]) -> Arc<[Condition]> {
    let as_condition = |unknown: &UnknownCondition| Condition {
        kind: unknown.kind.clone(),
        status: ConditionStatus::Unknown,
        reason: unknown.reason.clone(),
        message: unknown.message.clone(),
        last_heartbeat: unknown.last_heartbeat,
        last_transition: Some(unknown.last_transition),
    };
    let of_kind = |kind: &str| unknown.iter().find(|unknown| unknown.kind == *kind);
    let kept = node.conditions.iter().map(|condition| match of_kind(&condition.kind) {
        Some(unknown) => as_condition(unknown),
        None => condition.clone(),
    });
    let appended = unknown.iter().filter(|unknown| node.condition(&unknown.kind).is_none()).map(as_condition);
    kept.chain(appended).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        cluster::{Taint, TaintEffect},
        engine::settings::ServerVersion,
    };

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_secs(secs)
    }

    fn written(secs: i64) -> ClusterTime {
        ClusterTime::new(at(secs))
    }

    fn node(heartbeat: Option<i64>) -> Node {
        let ready = heartbeat.map(|secs| Condition {
            kind: READY.into(),
            status: ConditionStatus::True,
            last_heartbeat: Some(written(secs)),
            last_transition: Some(written(0)),
            ..Condition::default()
        });
        Node { created: written(0), conditions: ready.into_iter().collect(), ..Node::default() }
    }

    fn lease(renewed: i64) -> Arc<Lease> {
        Arc::new(Lease { renewed: Some(written(renewed)), ..Lease::default() })
    }

    /// Settings with a grace period of 50 s and a startup grace period of 60 s.
    fn settings() -> Settings {
        Settings::defaults(ServerVersion::new(1, 36))
    }

    fn run(
        record: &mut Option<NodeHealth>,
        node: &Node,
        lease: Option<&Arc<Lease>>,
        now: i64,
    ) -> NodeAssessment {
        let record =
            record.get_or_insert_with(|| NodeHealth::first_seen(node, ClusterClock::default(), at(now)));
        let node = &Arc::new(node.clone());
        let (clock, now) = (ClusterClock::default(), at(now));
        let reading = Reading { node, lease, clock, pass_ended: now, now };
        update(record, reading, &Heartbeats::default(), &settings())
    }

    proptest! {
        #[test]
        fn a_calm_node_is_assessed_as_if_all_of_it_were_read(
            passes in prop::collection::vec((0_usize..5, 0_usize..4, 1_i64..60, 0_u8..12), 1..40),
        ) {
            let tainted = Node {
                taints: [Taint {
                    key: "node.kubernetes.io/unreachable".into(),
                    value: "".into(),
                    effect: TaintEffect::NoExecute,
                    time_added: None,
                }]
                .into(),
                ..node(Some(0))
            };
            let moved =
                Node { labels: [("topology.kubernetes.io/zone".into(), "b".into())].into_iter().collect(), ..node(Some(0)) };
            let nodes = [node(Some(0)), node(Some(9)), node(None), tainted, moved].map(Arc::new);
            let leases = [None, Some(lease(1)), Some(lease(2)), Some(Arc::new(Lease::default()))];
            let mut now = at(100);
            let mut calm = NodeHealth::first_seen(&nodes[0], ClusterClock::default(), now);
            let mut whole = calm.clone();
            for (node, lease, seconds, other) in passes {
                now += Span::from_secs(seconds);
                let (node_now, lease) = (&nodes[node], leases[lease].as_ref());
                let clock = ClusterClock::default();
                let reading = Reading { node: node_now, lease, clock, pass_ended: now, now };
                for record in [&mut calm, &mut whole] {
                    match other {
                        0 => record.pods_to_retry = !record.pods_to_retry,
                        1 => record.forget_lease(),
                        2 => record.adopt(&nodes[(node + 1) % nodes.len()], now),
                        3 => record.restart_grace(HeartbeatSource::Reconnected, now),
                        4 => record.assumed_alive = !record.assumed_alive,
                        _ => {}
                    }
                }
                whole.calm = None;
                let assess = |record: &mut NodeHealth| {
                    let assessment = update(record, reading, &Heartbeats::default(), &settings());
                    let zone = record.zone(reading.node).key.clone();
                    let is_calm = record.is_calm(reading.node);
                    let known = NodeHealth { calm: None, ..record.clone() };
                    (is_calm, format!("{assessment:?} {zone} {known:?}"))
                };
                prop_assert_eq!(assess(&mut calm), assess(&mut whole));
            }
        }
    }

    #[test]
    fn a_node_is_silent_only_after_its_grace_and_not_at_it() {
        let (mut record, node) = (None, node(Some(0)));
        run(&mut record, &node, None, 100);
        assert!(run(&mut record, &node, None, 150).rewrite.is_none(), "exactly at the limit it is alive");
        let assessment = run(&mut record, &node, None, 151);
        assert_eq!(
            (assessment.observed, assessment.current),
            (ConditionStatus::True, Some(ConditionStatus::Unknown))
        );
        assert_eq!(
            assessment.rewrite.map(|rewrite| rewrite.len()),
            Some(4),
            "absent conditions are appended"
        );
    }

    #[test]
    fn a_renewed_lease_keeps_a_node_alive_and_the_same_one_does_not() {
        let (mut record, node) = (None, node(Some(0)));
        run(&mut record, &node, Some(&lease(1)), 100);
        run(&mut record, &node, Some(&lease(140)), 140);
        assert!(run(&mut record, &node, Some(&lease(140)), 190).rewrite.is_none());
        assert!(run(&mut record, &node, Some(&lease(140)), 191).rewrite.is_some());
    }

    #[test]
    fn a_status_post_forgets_the_lease_which_then_counts_once_more() {
        let mut record = None;
        run(&mut record, &node(Some(0)), Some(&lease(1)), 100);
        run(&mut record, &node(Some(5)), Some(&lease(1)), 105);
        run(&mut record, &node(Some(5)), Some(&lease(1)), 110);
        let record = record.expect("made in the first pass");
        assert_eq!((record.probe, record.heartbeat_source), (at(110), HeartbeatSource::Lease), "spec 12.3");
    }

    #[test]
    fn a_node_without_status_gets_the_startup_grace_from_its_creation() {
        let (mut record, node) = (None, node(None));
        assert!(run(&mut record, &node, None, 60).rewrite.is_none());
        let assessment = run(&mut record, &node, None, 61);
        assert_eq!(assessment.observed, ConditionStatus::Unknown, "made up");
        let rewrite = assessment.rewrite.expect("written though observed as Unknown");
        assert!(rewrite.iter().all(|condition| condition.reason == "NodeStatusNeverUpdated"));
        assert_eq!(rewrite[0].last_heartbeat, Some(written(0)));
    }

    #[test]
    fn a_node_that_is_unknown_already_is_not_written_again() {
        let mut unknown = node(Some(0));
        let rewrite = unknown_conditions(&unknown, written(1));
        unknown.conditions = rewritten(&unknown, &rewrite);
        let mut record = None;
        run(&mut record, &unknown, None, 100);
        let assessment = run(&mut record, &unknown, None, 151);
        assert_eq!((assessment.current, assessment.rewrite), (Some(ConditionStatus::Unknown), None));
    }

    #[test]
    fn ready_that_disappears_leaves_the_probe_and_changes_the_grace() {
        let mut record = None;
        run(&mut record, &node(Some(0)), None, 100);
        assert!(run(&mut record, &node(None), None, 160).rewrite.is_none());
        assert!(run(&mut record, &node(None), None, 161).rewrite.is_some());
    }

    #[test]
    fn an_estimated_record_is_as_old_as_the_last_thing_the_kubelet_wrote() {
        let clock = ClusterClock::ahead_by(Span::from_secs(3));
        let record = NodeHealth::estimated(&node(Some(70)), Some(&lease(95)), clock, at(100));
        assert_eq!(
            (record.probe, record.heartbeat_source, record.certainty),
            (at(92), HeartbeatSource::Lease, Certainty::Estimated)
        );
        let clock = ClusterClock::default();
        let ahead = NodeHealth::estimated(&node(Some(70)), Some(&lease(500)), clock, at(100));
        assert_eq!(ahead.probe, at(100), "a clock that runs ahead does not lend time");
        let behind = Lease { renewed: Some(written(-900)), written: Some(written(60)), ..Lease::default() };
        let record = NodeHealth::estimated(&node(Some(70)), Some(&Arc::new(behind)), clock, at(100));
        assert_eq!(record.probe, at(70), "the clock was right when the status was posted");
    }
}
