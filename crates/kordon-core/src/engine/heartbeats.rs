//! The renewals of each node's Lease as they arrive: the last heartbeat, the node's own renewal interval, and the times
//! after which a node without another heartbeat is late and silent. As in upstream, a new status is a heartbeat too
//! (docs/upstream/node-lifecycle.md#3.4).

use std::{collections::BTreeSet, sync::Arc};

use super::WatchHealth;
use crate::cluster::{
    Cluster, ConditionStatus, Delta, FeedKind, Known, Lease, Node, NodeName, by_server_clock, cow_map::CowMap,
};
use kordon_time::{ClusterClock, Span, Timestamp};

/// Number of renewal intervals kept for each node.
pub const KEPT: usize = 12;

/// Minimum number of observed intervals for a median. With fewer, the Lease's duration gives the renewal interval.
const KNOWN_FROM: usize = 3;

/// Renewal interval of a kubelet by default (docs/upstream/node-lifecycle.md#1.5), for a Lease without a duration.
const DEFAULT_INTERVAL: Span = Span::from_secs(10);

/// Maximum age of a change that arrives over a live watch. A change that seems older has a timestamp from a clock that
/// is off.
pub const LIVE_LAG: Span = Span::from_secs(3);

/// Time that a renewal may take to arrive. A node is not silent before its next renewal could have arrived.
const REQUEST: Span = Span::from_millis(500);

/// The last renewals of each node's Lease.
#[derive(Clone, Debug, Default)]
pub struct Heartbeats {
    by_node: CowMap<NodeName, Renewals>,
}

/// The last renewal of one node's Lease, and the intervals between the last renewals, oldest first. The intervals are
/// kept in tenths of a second, to save memory with 5,000 nodes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Renewals {
    last: Timestamp,
    /// The time of the last renewal by the kubelet's clock minus `last`: how far the kubelet's clock is ahead.
    ahead: Span,
    /// The heartbeat time of the node's last status, never later than its arrival.
    posted: Timestamp,
    tenths: [u16; KEPT],
    len: u8,
    /// Whether the last change of the node's Lease moved the time at which the node counts as late to an earlier time.
    is_hastened: bool,
    interval: RenewalInterval,
}

/// Interval in which a kubelet renews its Lease.
#[derive(Clone, Copy, Debug)]
pub(super) struct RenewalInterval {
    /// The node's own interval: the median of the kept intervals, or `declared` while too few intervals are known.
    own: Span,
    /// The interval that follows from the Lease's duration, without jitter.
    declared: Span,
}

/// The last heartbeat of a node, and when the node becomes late and silent if no other heartbeat arrives.
///
/// Every prediction from silence uses this one rule: a node is *late* after one and a half of its own renewal intervals
/// without a heartbeat, and *silent* after three intervals or half of its grace period, whichever comes first. No node
/// is silent before one interval (at most that of its Lease's duration) has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Silence {
    /// Whether the heartbeat is a renewal of the node's Lease.
    pub is_of_lease: bool,
    /// The renewTime of the node's Lease, or the heartbeat time in the node's status if that is later; without both, the
    /// node's creation.
    pub heartbeat: Timestamp,
    /// The node counts as late after this time.
    pub late_from: Timestamp,
    /// The node counts as silent after this time.
    pub silent_from: Timestamp,
}

impl Silence {
    pub(super) fn from_renewals(renewals: &Renewals, grace: Span) -> Self {
        let is_of_lease = renewals.posted <= renewals.last;
        Self { is_of_lease, ..Self::new(renewals.heartbeat(), renewals.interval, grace) }
    }

    pub(super) fn new(heartbeat: Timestamp, interval: RenewalInterval, grace: Span) -> Self {
        let RenewalInterval { own, declared } = interval;
        // Limit the interval, because outages make measured intervals longer than the kubelet's own.
        let least = longest_interval(own.min(declared)) + REQUEST;
        let silent = half(grace).min(own * 3).max(least);
        let late = late_after(own).min(silent);
        Self { is_of_lease: false, heartbeat, late_from: heartbeat + late, silent_from: heartbeat + silent }
    }

    /// Computes when a node without a known Lease becomes late and silent, from the heartbeat in its status. Such a
    /// node is silent after two intervals between posts of its status.
    pub(super) fn from_status_alone(heartbeat: Timestamp) -> Self {
        let late = late_after(STATUS_INTERVAL);
        let silent = STATUS_INTERVAL * 2;
        Self { is_of_lease: false, heartbeat, late_from: heartbeat + late, silent_from: heartbeat + silent }
    }

    pub fn is_late(&self, now: Timestamp) -> bool {
        now > self.late_from
    }

    pub fn is_silent(&self, now: Timestamp) -> bool {
        now > self.silent_from
    }
}

/// Time without a heartbeat after which a node with this renewal interval is late, unless it is silent earlier.
fn late_after(interval: Span) -> Span {
    half(interval * 3)
}

/// Longest time between two renewals of a kubelet with this renewal interval: the interval with its jitter of up to 4
/// percent (docs/upstream/node-lifecycle.md#11.3).
pub fn longest_interval(interval: Span) -> Span {
    Span::from_nanos(interval.as_nanos().saturating_add(interval.as_nanos() / 25))
}

fn half(span: Span) -> Span {
    Span::from_nanos(span.as_nanos() / 2)
}

/// Corrects a time that another component wrote and that arrives now. The result is never in the future, and at most
/// `LIVE_LAG` ago if the watches are live. This limits the error if the component's clock differs from the cluster's
/// measured clock.
pub fn arrived(at: Timestamp, health: WatchHealth, now: Timestamp) -> Timestamp {
    match health {
        WatchHealth::Live => at.max(now - LIVE_LAG).min(now),
        WatchHealth::Disconnected { .. } => at.min(now),
    }
}

/// Corrects the time of a renewal that arrives now. If the watches are live and the renewal seems older than
/// `LIVE_LAG`, the kubelet's clock is off, and the time of arrival is used. Upstream never compares renewTime with its
/// own clock either.
fn renewal_arrived(at: Timestamp, health: WatchHealth, now: Timestamp) -> Timestamp {
    match health {
        WatchHealth::Live if at < now - LIVE_LAG => now,
        WatchHealth::Live | WatchHealth::Disconnected { .. } => at.min(now),
    }
}

/// Returns the time of the last status of a node by the API server's clock; `None` for a node without a status. If the
/// server does not state when it wrote the status, `ahead` is subtracted: how far the kubelet's clock was ahead.
pub(super) fn posted(node: &Node, ahead: Span, clock: ClusterClock) -> Option<Timestamp> {
    let heartbeat = node.ready()?.last_heartbeat?;
    Some(match node.heartbeat_written {
        Some(written) => clock.local(by_server_clock(heartbeat, written)),
        None => clock.local(heartbeat) - ahead,
    })
}

/// Like [`posted`], for a status that was posted at an unknown time before `now`. `ahead` is by the node's Lease. It
/// never makes the status younger, because the kubelet's clock may have changed after the status. `None` for a status
/// from the future, because it shows only that the clock was wrong.
pub(super) fn posted_before(
    node: &Node,
    ahead: Span,
    clock: ClusterClock,
    now: Timestamp,
) -> Option<Timestamp> {
    let at = posted(node, ahead.max(Span::ZERO), clock)?;
    (at <= now + LIVE_LAG).then(|| at.min(now))
}

/// Whether the status of a node is the kubelet's. The controller writes a status Unknown.
fn is_of_kubelet(node: &Node) -> bool {
    node.ready().is_some_and(|ready| ready.status != ConditionStatus::Unknown)
}

impl Heartbeats {
    /// Reads the last renewal of every Lease and the status of every node, when the engine starts.
    pub fn read(&mut self, cluster: &Cluster, now: Timestamp) {
        for lease in cluster.leases().iter() {
            self.record_lease(lease, cluster.clock(), now);
        }
        for node in cluster.nodes().iter() {
            if let Some(renewals) = self.by_node.get_mut(&node.name) {
                renewals.read_status(node, cluster.clock(), now);
            }
        }
    }

    /// Handles a changed node. As in upstream, another heartbeat time in its status is a heartbeat. `health` is the
    /// health of the watches.
    pub fn on_node(&mut self, delta: &Delta<Node>, clock: ClusterClock, health: WatchHealth, now: Timestamp) {
        let posted = |node: &Option<Arc<Node>>| node.as_ref()?.ready()?.last_heartbeat;
        let Some(node) = delta.new.as_ref().filter(|_| posted(&delta.old) != posted(&delta.new)) else {
            return;
        };
        let Some(renewals) = self.by_node.get_mut(&node.name) else { return };
        match health {
            WatchHealth::Live => renewals.on_status(node, clock, now),
            WatchHealth::Disconnected { .. } => renewals.read_status(node, clock, now),
        }
    }

    /// Handles a changed Lease. `health` is the health of the watches.
    pub fn on_lease(
        &mut self,
        delta: &Delta<Lease>,
        clock: ClusterClock,
        health: WatchHealth,
        now: Timestamp,
    ) {
        let Some(new) = &delta.new else {
            if let Some(old) = &delta.old {
                self.by_node.remove(&old.node);
            }
            return;
        };
        let Some((renewed, heartbeat)) = new.renewed.zip(new.heartbeat()) else { return };
        let Some(before) = delta.old.as_ref().and_then(|old| old.renewed) else {
            return self.record_lease(new, clock, now);
        };
        let last = renewal_arrived(clock.local(heartbeat), health, now);
        let renewals = self.by_node.entry(new.node.clone(), || Renewals::new(last));
        let late_from = renewals.late_from();
        // As upstream, only a later renewTime counts as a renewal.
        if before < renewed {
            (renewals.last, renewals.ahead) = (last, clock.local(renewed).since(last));
            renewals.push(renewed.since(before));
        }
        renewals.update_interval(new);
        renewals.is_hastened = renewals.late_from() < late_from;
    }

    /// Records that the node renewed its Lease at `at`.
    pub fn record(&mut self, node: &NodeName, at: Timestamp) {
        self.renewals(node, at);
    }

    /// Records the last renewal of a Lease, and updates the node's interval from the Lease.
    fn record_lease(&mut self, lease: &Lease, clock: ClusterClock, now: Timestamp) {
        let Some(Renewals { last, ahead, .. }) = Renewals::from_lease(lease, clock, now) else { return };
        let renewals = self.renewals(&lease.node, last);
        renewals.ahead = ahead;
        renewals.update_interval(lease);
    }

    /// Sets the last renewal of a node, and returns the node's renewals.
    fn renewals(&mut self, node: &NodeName, last: Timestamp) -> &mut Renewals {
        let renewals = self.by_node.entry(node.clone(), || Renewals::new(last));
        (renewals.last, renewals.is_hastened) = (last, true);
        renewals
    }

    /// Whether the last change of the node's Lease moved the time at which the node counts as late to an earlier time.
    /// A renewal normally postpones that time, but a shorter renewal interval can outweigh the renewal.
    pub fn is_hastened(&self, node: &NodeName) -> bool {
        self.of(node).is_some_and(|renewals| renewals.is_hastened)
    }

    /// Time of the node's last Lease renewal; none if no renewal is known.
    pub fn last(&self, node: &NodeName) -> Option<Timestamp> {
        self.of(node).map(Renewals::last)
    }

    /// The intervals between the node's last renewals, oldest first.
    pub fn intervals(&self, node: &NodeName) -> impl ExactSizeIterator<Item = Span> + DoubleEndedIterator {
        let tenths = self.by_node.get(node).map_or(&[][..], Renewals::tenths).to_vec();
        tenths.into_iter().map(|tenths| Span::from_millis(i64::from(tenths) * 100))
    }

    /// Longest renewal interval of the nodes by the durations of their Leases, without jitter; none if no renewal is
    /// known.
    pub fn longest_interval(&self) -> Option<Span> {
        self.by_node.iter().map(|(_, renewals)| renewals.interval.declared).max()
    }

    /// The renewals of a node's Lease; none if no renewal is known.
    pub(super) fn of(&self, node: &NodeName) -> Option<&Renewals> {
        self.by_node.get(node)
    }

    /// The renewals of each node's Lease, by node.
    pub(super) fn all(&self) -> impl Iterator<Item = (&NodeName, &Renewals)> {
        self.by_node.iter()
    }
}

/// Interval at which a kubelet posts its status if nothing changes (`nodeStatusReportFrequency`).
const STATUS_INTERVAL: Span = Span::from_secs(5 * 60);

/// Returns the nodes that are silent, computed from the last renewals of their Leases and from their status
/// ([`Silence`]). `grace` is the grace period of the controller. Returns none if the watch of Leases is not live.
pub fn silent_by_lease(cluster: &Cluster, grace: Span, now: Timestamp) -> BTreeSet<NodeName> {
    if cluster.known(FeedKind::Leases) != Known::Live {
        return BTreeSet::new();
    }
    let silent = |lease: &Arc<Lease>| {
        let mut renewals = Renewals::from_lease(lease, cluster.clock(), now)?;
        renewals.read_status(cluster.node(&lease.node)?, cluster.clock(), now);
        Silence::from_renewals(&renewals, grace).is_silent(now).then(|| lease.node.clone())
    };
    cluster.leases().iter().filter_map(silent).collect()
}

impl RenewalInterval {
    const DEFAULT: Self = Self { own: DEFAULT_INTERVAL, declared: DEFAULT_INTERVAL };

    /// Estimates the interval of a node from its Lease alone: a quarter of the Lease's duration, at least 1 s.
    pub(super) fn from_lease(lease: Option<&Lease>) -> Self {
        let declared = lease
            .and_then(|lease| lease.duration)
            .map_or(DEFAULT_INTERVAL, |duration| Span::from_nanos(duration.as_nanos() / 4))
            .max(Span::from_secs(1));
        Self { own: declared, declared }
    }
}

impl Renewals {
    const fn new(last: Timestamp) -> Self {
        let tenths = [0; KEPT];
        let (ahead, posted) = (Span::ZERO, last);
        Self { last, ahead, posted, tenths, len: 0, is_hastened: true, interval: RenewalInterval::DEFAULT }
    }

    /// Creates the renewals of a node from its Lease alone, which has the last renewal; none for a Lease that was never
    /// renewed.
    fn from_lease(lease: &Lease, clock: ClusterClock, now: Timestamp) -> Option<Self> {
        let (renewed, heartbeat) = lease.renewed.zip(lease.heartbeat())?;
        let last = clock.local(heartbeat).min(now);
        let ahead = clock.local(renewed).since(last);
        Some(Self { ahead, interval: RenewalInterval::from_lease(Some(lease)), ..Self::new(last) })
    }

    /// Records a status that has just arrived. The kubelet took its time from the same clock as the time in the Lease.
    fn on_status(&mut self, node: &Node, clock: ClusterClock, now: Timestamp) {
        if let Some(at) = posted(node, self.ahead, clock).filter(|_| is_of_kubelet(node)) {
            self.posted = at.min(now);
        }
    }

    /// Records a status that was posted at an unknown time.
    fn read_status(&mut self, node: &Node, clock: ClusterClock, now: Timestamp) {
        if let Some(at) = posted_before(node, self.ahead, clock, now).filter(|_| is_of_kubelet(node)) {
            self.posted = at;
        }
    }

    /// The last heartbeat: a renewal of the Lease or a status.
    fn heartbeat(&self) -> Timestamp {
        self.last.max(self.posted)
    }

    /// Time after which the node is late, regardless of its grace period.
    fn late_from(&self) -> Timestamp {
        self.heartbeat() + late_after(self.interval.own)
    }

    fn update_interval(&mut self, lease: &Lease) {
        self.interval = RenewalInterval::from_lease(Some(lease));
        if self.tenths().len() >= KNOWN_FROM {
            self.interval.own = Span::from_millis(i64::from(self.median()) * 100);
        }
    }

    pub(super) fn last(&self) -> Timestamp {
        self.last
    }

    fn tenths(&self) -> &[u16] {
        &self.tenths[..usize::from(self.len)]
    }

    fn median(&self) -> u16 {
        let mut sorted = self.tenths;
        let sorted = &mut sorted[..usize::from(self.len)];
        *sorted.select_nth_unstable(sorted.len() / 2).1
    }

    fn push(&mut self, interval: Span) {
        let tenths = u16::try_from(interval.as_nanos() / 100_000_000).unwrap_or(u16::MAX);
        if usize::from(self.len) == KEPT {
            self.tenths.rotate_left(1);
            self.tenths[KEPT - 1] = tenths;
        } else {
            self.tenths[usize::from(self.len)] = tenths;
            self.len += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::cluster::{Condition, READY};
    use kordon_time::ClusterTime;

    const NODE: &str = "n";

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_secs(secs)
    }

    fn lease(renewed: i64) -> Option<Arc<Lease>> {
        let (renewed, duration) = (Some(ClusterTime::new(at(renewed))), Some(Span::from_secs(40)));
        Some(Arc::new(Lease { node: NODE.into(), renewed, duration, ..Lease::default() }))
    }

    /// Creates the heartbeats that result from renewals at these seconds, each observed without delay.
    fn after(renewals: &[i64]) -> Heartbeats {
        let mut beats = Heartbeats::default();
        let mut old = None;
        for renewal in renewals {
            let new = lease(*renewal);
            let delta = Delta { old: old.clone(), new: new.clone() };
            beats.on_lease(&delta, ClusterClock::default(), WatchHealth::Live, at(*renewal));
            old = new;
        }
        beats
    }

    fn interval(beats: &Heartbeats) -> Span {
        beats.of(&NODE.into()).expect("it has a Lease").interval.own
    }

    #[test]
    fn the_last_intervals_are_kept_and_only_renewals_make_one() {
        assert_eq!(after(&[0]).intervals(&NODE.into()).len(), 0, "a first sight is no interval");
        assert_eq!(after(&[5, 5]).intervals(&NODE.into()).len(), 0, "not renewed");
        let renewals: Vec<i64> = (0..20).map(|n| n * (n + 1) / 2).collect();
        let intervals: Vec<i64> = after(&renewals).intervals(&NODE.into()).map(Span::as_secs).collect();
        assert_eq!(intervals, (8..20).collect::<Vec<i64>>());
    }

    #[test]
    fn a_nodes_interval_is_its_own_once_it_is_known_and_an_outage_does_not_change_it() {
        assert_eq!(interval(&after(&[0, 4, 8])), Span::from_secs(10), "a quarter of 40 s");
        assert_eq!(interval(&after(&[0, 4, 8, 12])), Span::from_secs(4));
        assert_eq!(interval(&after(&[0, 4, 8, 12, 600, 604, 608])), Span::from_secs(4));
        assert_eq!(RenewalInterval::from_lease(None).own, Span::from_secs(10));
        let longest = after(&[0, 11, 22, 33]).longest_interval();
        assert_eq!(longest, Some(Span::from_secs(10)), "measured intervals include jitter");
    }

    #[test]
    fn a_node_is_late_after_one_and_a_half_intervals_and_silent_after_three_or_half_its_grace() {
        let by_declared = |declared, own, grace| {
            let interval = RenewalInterval { own: Span::from_secs(own), declared: Span::from_secs(declared) };
            let silence = Silence::new(at(100), interval, Span::from_secs(grace));
            (silence.late_from.since(at(100)).as_secs(), silence.silent_from.since(at(100)).as_secs())
        };
        let spans = |own, grace| by_declared(10, own, grace);
        assert_eq!(spans(10, 50), (15, 25));
        assert_eq!(spans(4, 50), (6, 12));
        assert_eq!(spans(30, 40), (20, 20), "never late after silent");
        assert_eq!(spans(10, 10), (10, 10), "a grace period that fits no heartbeat");
        assert_eq!(by_declared(60, 60, 50), (62, 62), "a Lease of 240 s is renewed every 60 s");
        assert_eq!(by_declared(60, 120, 50), (62, 62), "an outage made the measured intervals longer");
        let silence = Silence::new(at(100), RenewalInterval::DEFAULT, Span::from_secs(50));
        assert!(!silence.is_silent(at(125)) && silence.is_silent(at(126)));
    }

    /// A node whose kubelet posted this status at this second of its clock.
    fn node(status: ConditionStatus, posted: i64) -> Option<Arc<Node>> {
        let last_heartbeat = Some(ClusterTime::new(at(posted)));
        let ready = Condition { kind: READY.into(), status, last_heartbeat, ..Condition::default() };
        Some(Arc::new(Node { name: NODE.into(), conditions: [ready].into(), ..Node::default() }))
    }

    /// Kubernetes 1.37, `tryUpdateNodeHealth`.
    #[test]
    fn a_new_status_is_a_heartbeat_by_the_clock_of_the_lease() {
        let clock = ClusterClock::default();
        // A kubelet whose clock is off by `off` seconds renews its Lease at second 100.
        let after_post = |off: i64, status, (before, posted): (i64, i64), now: i64| {
            let mut beats = Heartbeats::default();
            for (old, new, second) in [(None, lease(90 + off), 90), (lease(90 + off), lease(100 + off), 100)]
            {
                beats.on_lease(&Delta { old, new }, clock, WatchHealth::Live, at(second));
            }
            let old = node(ConditionStatus::True, before + off);
            let delta = Delta { old, new: node(status, posted + off) };
            beats.on_node(&delta, clock, WatchHealth::Live, at(now));
            let renewals = beats.of(&NODE.into()).expect("it has a Lease");
            let silence = Silence::from_renewals(renewals, Span::from_secs(50));
            (silence.heartbeat, silence.is_of_lease)
        };
        let ready = ConditionStatus::True;
        for off in [-1000, 0, 1000] {
            assert_eq!(after_post(off, ready, (50, 130), 131), (at(130), false), "off by {off} s");
            assert_eq!(after_post(off, ready, (50, 95), 131), (at(100), true), "older than the Lease");
            assert_eq!(after_post(off, ready, (130, 130), 140), (at(100), true), "the same status");
            assert_eq!(after_post(off, ready, (50, 500), 131), (at(131), false), "its clock was set");
        }
        let unknown = ConditionStatus::Unknown;
        assert_eq!(after_post(0, unknown, (50, 130), 131), (at(100), true), "written by the controller");
    }

    /// A kubelet's clock may have been right when it posted its last status, and be wrong since.
    #[test]
    fn a_clock_that_is_wrong_now_makes_no_earlier_status_younger() {
        let clock = ClusterClock::default();
        // The kubelet renewed its Lease at second 100, when its clock was off by `off` seconds.
        let heartbeat = |off: i64, posted: i64, written: Option<i64>| {
            let on = |secs| Some(ClusterTime::new(at(secs)));
            let lease = Lease { renewed: on(100 + off), written: on(100), ..Lease::default() };
            let mut renewals = Renewals::from_lease(&lease, clock, at(171)).expect("it was renewed");
            let mut node = Node::clone(&node(ConditionStatus::True, posted).expect("a node"));
            node.heartbeat_written = written.and_then(on);
            renewals.read_status(&node, clock, at(171));
            renewals.heartbeat()
        };
        let end_of = |secs| at(secs) + Span::from_millis(999);
        for off in [-1000, 1000] {
            assert_eq!(heartbeat(off, 95, None), end_of(100), "its clock was right before");
            assert_eq!(heartbeat(off, 95 + off, None), end_of(100), "its clock was wrong before");
            assert_eq!(heartbeat(off, 95, Some(95)), end_of(100), "the server says when");
            assert_eq!(heartbeat(off, 160 + off, Some(160)), end_of(160), "the server says when");
        }
        assert_eq!(heartbeat(0, 500, None), at(100), "a status from the future");
        assert_eq!(heartbeat(0, 165, Some(90)), at(100), "the server wrote it before the Lease");
    }

    #[test]
    fn a_renewal_that_arrives_live_is_as_old_as_it_says_within_three_seconds() {
        let seen = |ahead: i64, health| {
            let mut beats = after(&[90]);
            let delta = Delta { old: lease(90), new: lease(100) };
            beats.on_lease(&delta, ClusterClock::ahead_by(Span::from_secs(ahead)), health, at(101));
            beats.last(&NODE.into())
        };
        assert_eq!(seen(0, WatchHealth::Live), Some(at(100)));
        assert_eq!(seen(2, WatchHealth::Live), Some(at(98)));
        assert_eq!(seen(300, WatchHealth::Live), Some(at(101)), "a clock that is off");
        assert_eq!(seen(-300, WatchHealth::Live), Some(at(101)), "never in the future");
        assert_eq!(
            seen(60, WatchHealth::Disconnected { since: at(50) }),
            Some(at(40)),
            "missed while the watch was down"
        );
    }
}
