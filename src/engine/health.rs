//! What the controller knows of one node's life, and how a pass brings it up to date
//! (docs/upstream/node-lifecycle.md#3.4; upstream `tryUpdateNodeHealth`).

use std::sync::Arc;

use super::{
    effect::UnknownCondition,
    settings::Settings,
    why::{Cause, Certainty, HeartbeatSource, Why},
};
use crate::{
    cluster::{Condition, ConditionStatus, Labels, Lease, Node, READY, ZoneKey},
    time::{Span, Timestamp},
};

/// The conditions that a silent node's kubelet no longer vouches for, in the order in which they are rewritten.
const VOUCHED: [&str; 4] = [READY, "MemoryPressure", "DiskPressure", "PIDPressure"];

/// The health record of a node. Once made it is kept, even when the node object goes.
#[derive(Clone, Debug)]
pub struct NodeHealth {
    /// When the last sign of life was *noticed*.
    pub probe: Timestamp,
    pub heartbeat_source: HeartbeatSource,
    pub certainty: Certainty,
    /// When the last change of readiness was noticed.
    pub ready_transition: Timestamp,
    /// The status last seen, or last written by the controller.
    conditions: Arc<[Condition]>,
    /// The Lease last accepted as newer; may become none again (docs/upstream/node-lifecycle.md#12.3).
    lease: Option<Arc<Lease>>,
    /// The node's zone as of these labels: working it out anew for every node in every pass would be most of a pass.
    zone: (Labels, ZoneKey),
    /// Whether the grace of a node that never posted its status applies.
    never_posted: bool,
    /// A pass could not list or mark the node's pods: the next one tries again.
    pub pods_to_retry: bool,
    /// Whether a forecast takes the node for alive: then every pass sees a sign of life.
    pub assumed_alive: bool,
}

/// What a pass found out about a node.
#[derive(Clone, Debug)]
pub struct NodeAssessment {
    /// The status of Ready as the pass found it; made up as Unknown where there is none.
    pub observed: ConditionStatus,
    /// The status of Ready after the controller possibly rewrote it; none where there is none.
    pub current: Option<ConditionStatus>,
    /// The conditions to write; none where nothing needs to be written.
    pub rewrite: Option<Vec<UnknownCondition>>,
    /// Whether an earlier pass could not mark all of its pods.
    pub pods_to_retry: bool,
    /// Whether a heartbeat was noticed. After a status update an unrenewed Lease can count as new once more
    /// (docs/upstream/node-lifecycle.md#12.3).
    pub is_renewed: bool,
    /// Why it is not well; nothing where it is.
    pub why: Why,
}

impl NodeAssessment {
    /// Whether nothing follows from the node's health.
    pub fn is_well(&self) -> bool {
        let ready = ConditionStatus::True;
        self.observed == ready && self.current == Some(ready) && !self.pods_to_retry
    }
}

impl NodeHealth {
    /// The record of a node that was never seen: one without a Ready condition has lived since its creation.
    pub fn first_seen(node: &Node, now: Timestamp) -> Self {
        match node.ready() {
            Some(_) => Self::fresh(node, HeartbeatSource::ControllerStart, now),
            None => Self::fresh(node, HeartbeatSource::Created, node.created),
        }
    }

    /// A record as of a sign of life noticed now.
    fn fresh(node: &Node, source: HeartbeatSource, at: Timestamp) -> Self {
        Self {
            probe: at,
            heartbeat_source: source,
            certainty: Certainty::Observed,
            ready_transition: at,
            conditions: node.conditions.clone(),
            lease: None,
            zone: (node.labels.clone(), node.zone()),
            never_posted: node.ready().is_none(),
            pods_to_retry: false,
            assumed_alive: false,
        }
    }

    /// A record as of a controller that has watched the node before we came: its probeTimestamp is taken from what
    /// the kubelet last wrote, `behind` being how far its clock is ahead of ours.
    pub fn estimated(node: &Node, lease: Option<&Arc<Lease>>, behind: Span, now: Timestamp) -> Self {
        let mut record = Self::fresh(node, HeartbeatSource::Created, node.created.min(now));
        record.certainty = Certainty::Estimated;
        let posted =
            node.ready().and_then(|ready| ready.last_heartbeat).map(|at| (at, HeartbeatSource::Status));
        let renewed = lease.and_then(|lease| lease.renewed).map(|at| (at, HeartbeatSource::Lease));
        for (at, source) in posted.into_iter().chain(renewed) {
            record.see(source, (at - behind).min(now));
        }
        record.lease = lease.cloned();
        if let Some(transition) = node.ready().and_then(|ready| ready.last_transition) {
            record.ready_transition = (transition - behind).min(now);
        }
        record
    }

    /// Takes the Lease for a sign of life as old as it says it is: what happens when sight returns.
    pub fn catch_up(&mut self, lease: Option<&Arc<Lease>>, behind: Span, now: Timestamp) {
        let Some(lease) = lease else { return };
        if let Some(renewed) = lease.renewed
            && self.see(HeartbeatSource::Lease, (renewed - behind).min(now))
        {
            self.certainty = Certainty::Estimated;
        }
        self.lease = Some(lease.clone());
    }

    /// Gives the node a whole grace period from now.
    pub fn begin_anew(&mut self, now: Timestamp) {
        (self.probe, self.heartbeat_source, self.certainty) =
            (now, HeartbeatSource::ControllerStart, Certainty::Observed);
        self.ready_transition = now;
    }

    /// Takes the node's conditions as the controller wrote them: what its own write would have done to the record.
    pub fn adopt(&mut self, node: &Node, now: Timestamp) {
        self.conditions = node.conditions.clone();
        self.ready_transition = now;
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

    /// Why the node is, or will be, found silent.
    pub fn why(&self, settings: &Settings) -> Why {
        let (flag, span) = self.grace_flag(settings);
        Why(vec![
            Cause::LastHeartbeat { source: self.heartbeat_source, at: self.probe },
            Cause::Grace { flag, span },
        ])
    }

    /// When the node is found silent, should there be no further sign of life; none where that is taken for
    /// impossible.
    pub fn grace_ends(&self, settings: &Settings) -> Option<Timestamp> {
        (!self.assumed_alive).then(|| self.probe + self.grace(settings))
    }

    /// Makes up for passes that left out a node which is taken for alive.
    pub fn keep_alive(&mut self, last_pass: Timestamp) {
        if self.assumed_alive {
            self.see(HeartbeatSource::Lease, last_pass);
        }
    }

    /// Takes in a sign of life, unless a later one was seen. Tells whether it counts.
    pub fn see(&mut self, source: HeartbeatSource, at: Timestamp) -> bool {
        let later = at > self.probe;
        if later {
            (self.probe, self.heartbeat_source) = (at, source);
        }
        later
    }

    /// The node's zone.
    pub fn zone(&mut self, node: &Node) -> &ZoneKey {
        if !Arc::ptr_eq(&self.zone.0, &node.labels) {
            self.zone = (node.labels.clone(), node.zone());
        }
        &self.zone.1
    }

    /// The status of Ready last seen or written; none where the node never had one.
    pub fn saved_ready(&self) -> Option<ConditionStatus> {
        self.ready().map(|ready| ready.status)
    }

    fn ready(&self) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.kind == *READY)
    }
}

/// Brings a node's record up to date and judges the node.
///
/// A rewrite is taken for done: should it fail, give the record back what it was before.
pub fn update(
    record: &mut NodeHealth,
    node: &Node,
    lease: Option<&Arc<Lease>>,
    settings: &Settings,
    now: Timestamp,
) -> NodeAssessment {
    // What counts is the Lease saved before the status is looked at, which may drop it.
    let newer = lease.filter(|lease| is_newer(lease, record.lease.as_deref()));
    let is_posted = maintain(record, node, now);
    if let Some(lease) = newer {
        record.lease = Some(lease.clone());
        (record.probe, record.heartbeat_source, record.certainty) =
            (now, HeartbeatSource::Lease, Certainty::Observed);
    }
    if record.assumed_alive {
        record.see(HeartbeatSource::Lease, now);
    }
    let ready = node.ready();
    let observed = ready.map_or(ConditionStatus::Unknown, |ready| ready.status);
    let mut verdict = NodeAssessment {
        observed,
        current: ready.map(|ready| ready.status),
        rewrite: None,
        pods_to_retry: record.pods_to_retry,
        is_renewed: is_posted || newer.is_some(),
        why: Why::default(),
    };
    if now > record.probe + record.grace(settings) {
        verdict.why = record.why(settings).then(Cause::Silent);
        verdict.current = Some(ConditionStatus::Unknown);
        // Only a change of Ready is written: a node found Unknown keeps its other conditions
        // (docs/upstream/node-lifecycle.md#12.4).
        if ready.is_none_or(|ready| ready.status != ConditionStatus::Unknown) {
            let rewrite = unknown_conditions(node, now);
            record.conditions = rewritten(node, &rewrite);
            record.ready_transition = now;
            record.lease = lease.cloned();
            verdict.rewrite = Some(rewrite);
        }
    } else if let Some(ready) = ready.filter(|ready| ready.status != ConditionStatus::True) {
        verdict.why = Cause::Posted { status: ready.status, reason: ready.reason.clone() }.into();
    }
    verdict
}

/// Steps A and B: what the node's own status says. Tells whether it was posted anew.
fn maintain(record: &mut NodeHealth, node: &Node, now: Timestamp) -> bool {
    let Some(ready) = node.ready() else {
        record.conditions = node.conditions.clone();
        record.never_posted = true;
        return false;
    };
    record.never_posted = false;
    let transition = match record.ready() {
        None => now,
        Some(saved) if saved.last_heartbeat == ready.last_heartbeat => return false,
        Some(saved) if saved.last_transition == ready.last_transition => record.ready_transition,
        Some(_) => now,
    };
    renew(record, node, now, transition);
    true
}

/// A status was posted: the record starts afresh, and forgets its Lease.
fn renew(record: &mut NodeHealth, node: &Node, now: Timestamp, transition: Timestamp) {
    *record = NodeHealth {
        ready_transition: transition,
        pods_to_retry: record.pods_to_retry,
        assumed_alive: record.assumed_alive,
        ..NodeHealth::fresh(node, HeartbeatSource::Status, now)
    };
}

/// Step C: whether a Lease was renewed since the saved one. A missing renewTime is never newer.
fn is_newer(lease: &Lease, saved: Option<&Lease>) -> bool {
    let Some(saved) = saved else { return true };
    matches!((saved.renewed, lease.renewed), (Some(saved), Some(renewed)) if saved < renewed)
}

/// Step D.2: what becomes of a silent node's conditions. Those that are Unknown already stay as they are.
fn unknown_conditions(node: &Node, now: Timestamp) -> Vec<UnknownCondition> {
    let rewrite = |kind: &str| match node.condition(kind) {
        None => Some(UnknownCondition {
            kind: kind.into(),
            reason: "NodeStatusNeverUpdated",
            message: "Kubelet never posted node status.",
            last_heartbeat: Some(node.created),
            last_transition: now,
        }),
        Some(condition) if condition.status == ConditionStatus::Unknown => None,
        Some(condition) => Some(UnknownCondition {
            kind: kind.into(),
            reason: "NodeStatusUnknown",
            message: "Kubelet stopped posting node status.",
            last_heartbeat: condition.last_heartbeat,
            last_transition: now,
        }),
    };
    VOUCHED.into_iter().filter_map(rewrite).collect()
}

/// The node's conditions after these became Unknown.
pub fn rewritten(node: &Node, unknown: &[UnknownCondition]) -> Arc<[Condition]> {
    let as_condition = |unknown: &UnknownCondition| Condition {
        kind: unknown.kind.clone(),
        status: ConditionStatus::Unknown,
        reason: unknown.reason.into(),
        message: unknown.message.into(),
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
    use super::*;
    use crate::engine::settings::ServerVersion;

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_secs(secs)
    }

    fn node(heartbeat: Option<i64>) -> Node {
        let ready = heartbeat.map(|secs| Condition {
            kind: READY.into(),
            status: ConditionStatus::True,
            last_heartbeat: Some(at(secs)),
            last_transition: Some(at(0)),
            ..Condition::default()
        });
        Node { created: at(0), conditions: ready.into_iter().collect(), ..Node::default() }
    }

    fn lease(renewed: i64) -> Arc<Lease> {
        Arc::new(Lease { renewed: Some(at(renewed)), ..Lease::default() })
    }

    /// Grace 50 s, startup grace 60 s.
    fn settings() -> Settings {
        Settings::defaults(ServerVersion::new(1, 36))
    }

    fn run(
        record: &mut Option<NodeHealth>,
        node: &Node,
        lease: Option<&Arc<Lease>>,
        now: i64,
    ) -> NodeAssessment {
        let record = record.get_or_insert_with(|| NodeHealth::first_seen(node, at(now)));
        update(record, node, lease, &settings(), at(now))
    }

    #[test]
    fn a_node_is_silent_only_after_its_grace_and_not_at_it() {
        let (mut record, node) = (None, node(Some(0)));
        run(&mut record, &node, None, 100);
        assert!(run(&mut record, &node, None, 150).rewrite.is_none(), "exactly at the limit it lives");
        let verdict = run(&mut record, &node, None, 151);
        assert_eq!(
            (verdict.observed, verdict.current),
            (ConditionStatus::True, Some(ConditionStatus::Unknown))
        );
        assert_eq!(verdict.rewrite.map(|rewrite| rewrite.len()), Some(4), "absent conditions are appended");
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
        let verdict = run(&mut record, &node, None, 61);
        assert_eq!(verdict.observed, ConditionStatus::Unknown, "made up");
        let rewrite = verdict.rewrite.expect("written though observed as Unknown");
        assert!(rewrite.iter().all(|condition| condition.reason == "NodeStatusNeverUpdated"));
        assert_eq!(rewrite[0].last_heartbeat, Some(at(0)));
    }

    #[test]
    fn a_node_that_is_unknown_already_is_not_written_again() {
        let mut unknown = node(Some(0));
        let rewrite = unknown_conditions(&unknown, at(1));
        unknown.conditions = rewritten(&unknown, &rewrite);
        let mut record = None;
        run(&mut record, &unknown, None, 100);
        let verdict = run(&mut record, &unknown, None, 151);
        assert_eq!((verdict.current, verdict.rewrite), (Some(ConditionStatus::Unknown), None));
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
        let record = NodeHealth::estimated(&node(Some(70)), Some(&lease(95)), Span::from_secs(3), at(100));
        assert_eq!(
            (record.probe, record.heartbeat_source, record.certainty),
            (at(92), HeartbeatSource::Lease, Certainty::Estimated)
        );
        let ahead = NodeHealth::estimated(&node(Some(70)), Some(&lease(500)), Span::ZERO, at(100));
        assert_eq!(ahead.probe, at(100), "a clock that runs ahead does not lend time");
    }
}
