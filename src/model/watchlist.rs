//! The abnormal nodes, and the state of every node. Both are updated incrementally, so a refresh costs time only for
//! nodes that have changed.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    node_state::{Flaps, NodeFacts, NodeState},
    revisions::ChangeCount,
    zone_names::ZoneNames,
};
use kordon_core::{
    cluster::{Applied, ClockDifference, Cluster, Delta, Node, NodeName, TaintEffect, ZoneKey},
    engine::{Engine, Expiry, Silence},
};
use kordon_time::{ClusterClock, Span, Timestamp};

/// Time for which a search for late nodes looks ahead. One search over all nodes costs less than an examination of
/// every node that renews its Lease.
const LOOK_AHEAD: Span = Span::from_secs(1);

/// Maximum time between two searches. A node that is added between two searches gets a time of its own for its next
/// examination.
const LOOK_AHEAD_EVERY: Span = Span::from_secs(10);

/// One nanosecond, which is added to `late_from`: a node is late only after this time.
const MOMENT: Span = Span::from_nanos(1);

/// The abnormal nodes, and the state of every node.
///
/// A node is examined after it has changed, when its heartbeat is late, and when a known fact about it expires. A node
/// that is abnormal or not Ready is also examined after its Lease or its pods have changed. All other nodes cost no
/// time, even a thousand nodes of a failed zone.
#[derive(Clone, Debug, Default)]
pub struct NodeWatchlist {
    seen: BTreeMap<NodeName, Seen>,
    abnormal: BTreeSet<NodeName>,
    silent: BTreeSet<NodeName>,
    /// The nodes of each zone, with their states. No zone is empty.
    zones: BTreeMap<ZoneKey, ZoneNodes>,
    zone_names: ZoneNames,
    /// Length of the longest node name so far, in characters.
    longest_name: usize,
    /// Nodes that are not Ready.
    notable: BTreeSet<NodeName>,
    /// Number of nodes in each state. States that no node has are left out.
    counts: BTreeMap<NodeState, usize>,
    /// Ready nodes that still have the out-of-service taint.
    out_of_service: BTreeSet<NodeName>,
    /// Nodes whose clock differs from the API server's clock.
    clocks: BTreeMap<NodeName, ClockDifference>,
    flaps: Flaps,
    /// Number of changes of node states.
    revision: ChangeCount,
    /// Nodes that have changed since the last update, or whose Lease was created or deleted.
    changed: BTreeSet<NodeName>,
    /// Nodes whose Lease has changed since the last update. Renewals that cannot change a node's state are left out.
    renewed: BTreeSet<NodeName>,
    /// Whether the next update examines all nodes that are abnormal or not Ready.
    all_changed: bool,
    /// Times at which nodes must be examined even if nothing has changed, sorted by time and name.
    due: BTreeSet<(Timestamp, NodeName)>,
    /// Time up to which `due` is complete: until then, `due` has every Ready node that becomes late unless it renews
    /// its Lease.
    calm_until: Timestamp,
    /// Clock offset with which the times of nodes were computed. `None` makes the next update examine all nodes.
    clock: Option<ClusterClock>,
    /// Time of the last update.
    updated: Timestamp,
}

/// The nodes of a zone, sorted by name, with their states.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ZoneNodes {
    names: Vec<NodeName>,
    /// State of the node at the same index in `names`. The states have an array of their own, because each frame reads
    /// all of them.
    states: Vec<NodeState>,
}

/// Result of the last examination of a node, and the node's zone.
#[derive(Clone, Debug)]
struct Seen {
    zone: ZoneKey,
    look: Look,
}

/// Result of an examination of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Look {
    state: NodeState,
    is_abnormal: bool,
    is_silent: bool,
    /// Time of the next examination if nothing changes; `None` if none is needed.
    again: Option<Timestamp>,
}

impl NodeWatchlist {
    /// Records a change of the cluster. The engine must have handled the change before.
    pub fn on_applied(&mut self, applied: &Applied, engine: Option<&Engine>) {
        match applied {
            Applied::Node(delta) => {
                self.changed.extend(delta.old.iter().chain(&delta.new).map(|node| node.name.clone()));
            }
            Applied::Lease(Delta { old: Some(_), new: Some(lease) }) => {
                let name = &lease.node;
                self.note_clock(name, lease.clock_difference());
                let is_hastened = || engine.is_some_and(|engine| engine.heartbeats().is_hastened(name));
                // A renewal only postpones the time at which a node is late. Renewals of Ready nodes are therefore left
                // out; there are many, because most nodes are Ready and renew their Leases every few seconds.
                if self.abnormal.contains(name) || self.notable.contains(name) || is_hastened() {
                    self.renewed.insert(name.clone());
                }
            }
            Applied::Lease(delta) => {
                self.changed.extend(delta.old.iter().chain(&delta.new).map(|lease| lease.node.clone()));
            }
            Applied::Pod(delta) => {
                let nodes = delta.old.iter().chain(&delta.new).filter_map(|pod| pod.node.as_ref());
                let concerned =
                    nodes.filter(|node| self.abnormal.contains(*node) || self.notable.contains(*node));
                self.changed.extend(concerned.cloned());
            }
            Applied::Leader(..) | Applied::KordonLease => self.all_changed = true,
            Applied::Other => {}
        }
    }

    /// Makes the next update examine all nodes, because the engine has read all heartbeats again.
    pub fn on_engine_restarted(&mut self) {
        self.clock = None;
    }

    /// Examines the nodes whose state may have changed since the last update. While the watches are broken, `now` is
    /// the time at which they broke, so that nodes do not become late merely because kordon receives no heartbeats.
    pub fn update(&mut self, engine: &Engine, cluster: &Cluster, now: Timestamp) {
        match self.clock.replace(cluster.clock()) {
            None => self.changed.extend(cluster.nodes().iter().map(|node| node.name.clone())),
            Some(clock) if clock != cluster.clock() => {
                // The clock offset has changed. It affects only nodes without Lease renewals, because renewals are
                // converted to local time when they arrive.
                self.changed.extend(engine.without_renewals(cluster).map(|node| node.name.clone()));
                self.all_changed = true;
            }
            Some(_) => {}
        }
        if now < std::mem::replace(&mut self.updated, now) {
            self.flaps.undo_after(now);
            self.all_changed = true;
            self.calm_until = Timestamp::EPOCH;
        }
        if self.calm_until <= now {
            self.look_ahead(engine, now);
        }
        let changed = std::mem::take(&mut self.changed);
        let renewed = std::mem::take(&mut self.renewed);
        let due = self.due.iter().take_while(|(at, _)| *at <= now).map(|(_, name)| name);
        let all = std::mem::take(&mut self.all_changed).then(|| self.abnormal.union(&self.notable));
        let unchanged = renewed.iter().chain(due).chain(all.into_iter().flatten());
        let unchanged: BTreeSet<NodeName> =
            unchanged.filter(|name| !changed.contains(*name)).cloned().collect();
        for name in changed {
            self.note_out_of_service(&name, cluster);
            let lease = cluster.lease(&name).filter(|_| cluster.node(&name).is_some());
            self.note_clock(&name, lease.and_then(|lease| lease.clock_difference()));
            match cluster.node(&name) {
                Some(node) => self.look_at(&NodeFacts::new(engine, cluster, node, now), Some(node.zone())),
                None => self.forget(&name),
            }
        }
        for name in unchanged {
            if let Some(node) = cluster.node(&name) {
                self.look_at(&NodeFacts::new(engine, cluster, node, now), None);
            }
        }
        debug_assert_eq!(self.outdated(engine, cluster, now), None, "a look would find something else");
    }

    fn note_out_of_service(&mut self, name: &NodeName, cluster: &Cluster) {
        let node = cluster.node(name).filter(|node| node.is_ready() && node.is_tainted_out_of_service());
        set_member(&mut self.out_of_service, name, node.is_some());
    }

    fn note_clock(&mut self, name: &NodeName, difference: Option<ClockDifference>) {
        if let Some(difference) = difference {
            self.clocks.insert(name.clone(), difference);
        } else {
            self.clocks.remove(name);
        }
    }

    /// Returns the nodes whose clock differs from the API server's clock.
    pub const fn clocks(&self) -> &BTreeMap<NodeName, ClockDifference> {
        &self.clocks
    }

    /// Returns the Ready nodes that still have the out-of-service taint, which nobody but an operator removes.
    pub const fn out_of_service(&self) -> &BTreeSet<NodeName> {
        &self.out_of_service
    }

    /// Finds the nodes that will be late within [`LOOK_AHEAD`] if they do not renew their Leases. Each of these nodes
    /// gets a time at which it is examined; all other nodes need none.
    fn look_ahead(&mut self, engine: &Engine, now: Timestamp) {
        let horizon = now + LOOK_AHEAD;
        self.calm_until = now + LOOK_AHEAD_EVERY;
        for (name, late_from) in engine.late_times() {
            if late_from >= horizon {
                self.calm_until = self.calm_until.min(late_from);
            } else if let Some(Seen { look, .. }) = self.seen.get_mut(name).filter(|seen| seen.look.is_calm())
            {
                let again = Some(late_from + MOMENT);
                let before = std::mem::replace(&mut look.again, again);
                self.set_due(name, before, again);
            }
        }
    }

    /// Returns a node whose state is out of date, for a debug assertion.
    fn outdated(
        &self,
        engine: &Engine,
        cluster: &Cluster,
        now: Timestamp,
    ) -> Option<(&NodeName, Look, Look)> {
        self.abnormal.union(&self.notable).find_map(|name| {
            let known = self.seen.get(name)?.look;
            let look =
                Look::from_facts(&NodeFacts::new(engine, cluster, cluster.node(name)?, now), self.calm_until);
            let is_same = Look { again: known.again, ..look } == known;
            (!is_same).then_some((name, known, look))
        })
    }

    /// Returns the nodes that are not ready, have a NoExecute taint or are silent, sorted by name.
    pub fn abnormal(&self) -> &BTreeSet<NodeName> {
        &self.abnormal
    }

    /// Returns the nodes that were silent at the last update ([`Silence`]), sorted by name.
    pub fn silent(&self) -> &BTreeSet<NodeName> {
        &self.silent
    }

    /// Returns the state of a node; `None` until an update has seen the node.
    pub fn state(&self, node: &NodeName) -> Option<NodeState> {
        self.seen.get(node).map(|seen| seen.look.state)
    }

    /// Returns the names and states of all nodes that have a state, sorted by name.
    pub fn states(&self) -> impl Iterator<Item = (&NodeName, NodeState)> {
        self.seen.iter().map(|(name, seen)| (name, seen.look.state))
    }

    /// Returns the names of the nodes that have a state, sorted.
    pub fn names(&self) -> impl Iterator<Item = &NodeName> {
        self.seen.keys()
    }

    /// Returns the nodes of each zone.
    pub fn zones(&self) -> &BTreeMap<ZoneKey, ZoneNodes> {
        &self.zones
    }

    /// Index of a zone's first node in the list of all nodes, which has the order of [`zones`](Self::zones).
    pub fn place(&self, zone: &ZoneKey) -> usize {
        self.zones.range(..zone).map(|(_, nodes)| nodes.names.len()).sum()
    }

    /// The node with the most urgent state among `count` nodes, which start at the index `first` in the order of
    /// [`zones`](Self::zones).
    pub fn worst_from(&self, first: usize, count: usize) -> Option<&NodeName> {
        let nodes = self.zones.values().flat_map(|nodes| nodes.states.iter().zip(&nodes.names));
        let worst = nodes.skip(first).take(count).min_by_key(|(state, _)| **state);
        worst.map(|(_, name)| name)
    }

    /// Returns the short names of zones.
    pub fn zone_names(&self) -> &ZoneNames {
        &self.zone_names
    }

    /// Returns the zone of a node; `None` until an update has seen the node.
    pub fn zone(&self, node: &NodeName) -> Option<&ZoneKey> {
        self.seen.get(node).map(|seen| &seen.zone)
    }

    /// Length of the longest node name so far, in characters. It never decreases, so that columns do not become
    /// narrower.
    pub fn longest_name(&self) -> usize {
        self.longest_name
    }

    /// Returns the nodes that are not Ready, zone by zone.
    pub fn notable(&self) -> impl Iterator<Item = (&NodeName, NodeState)> {
        self.zones.values().flat_map(ZoneNodes::notable)
    }

    /// Returns the number of nodes in each state that occurs, the most urgent first.
    pub fn counts(&self) -> &BTreeMap<NodeState, usize> {
        &self.counts
    }

    /// Returns the number of times that a node went down or came back within ten minutes; `None` if it is less than
    /// three.
    pub fn flaps(&self, node: &NodeName, now: Timestamp) -> Option<usize> {
        self.flaps.count(node, now)
    }

    /// Returns the flapping nodes, each with the number of times that it went down or came back.
    pub fn flapping(&self, now: Timestamp) -> impl Iterator<Item = (&NodeName, usize)> {
        self.flaps.flapping(now)
    }

    /// Number of changes of node states. It increases whenever the state of a node changes.
    pub fn revision(&self) -> u64 {
        self.revision.get()
    }

    /// Adds an offset to the revision of node states, so that it differs from their revisions at other moments of a
    /// playback.
    pub(super) const fn set_apart(&mut self, moment: u64) {
        self.revision.set_apart(moment);
    }

    /// Examines a node and records the result. `zone` is the node's zone if the node object has changed. Writes nothing
    /// if the result is unchanged, as for most nodes of a failed zone.
    fn look_at(&mut self, facts: &NodeFacts, zone: Option<ZoneKey>) {
        let (name, look) = (&facts.node.name, Look::from_facts(facts, self.calm_until));
        let known = self.seen.get(name);
        self.flaps.record(name, look.state, known.is_none(), facts.now);
        let is_same = known
            .is_some_and(|known| known.look == look && zone.as_ref().is_none_or(|zone| *zone == known.zone));
        if !is_same && let Some(zone) = zone.or_else(|| known.map(|known| known.zone.clone())) {
            self.set(name, Some(Seen { zone, look }));
        }
    }

    fn set_due(&mut self, name: &NodeName, before: Option<Timestamp>, again: Option<Timestamp>) {
        if before != again {
            if let Some(at) = before {
                self.due.remove(&(at, name.clone()));
            }
            self.due.extend(again.map(|at| (at, name.clone())));
        }
    }

    /// Removes a deleted node.
    fn forget(&mut self, name: &NodeName) {
        self.flaps.forget(name);
        self.set(name, None);
    }

    /// Stores the result of an examination, and updates all indexes.
    fn set(&mut self, name: &NodeName, seen: Option<Seen>) {
        let before = match seen.clone() {
            Some(seen) => self.seen.insert(name.clone(), seen),
            None => self.seen.remove(name),
        };
        let [old, new] = [&before, &seen].map(|seen| seen.as_ref().map(|seen| seen.look));
        set_member(&mut self.abnormal, name, new.is_some_and(|look| look.is_abnormal));
        set_member(&mut self.silent, name, new.is_some_and(|look| look.is_silent));
        set_member(&mut self.notable, name, new.is_some_and(|look| look.state != NodeState::Ready));
        self.set_due(name, old.and_then(|look| look.again), new.and_then(|look| look.again));
        let [old_state, state] = [old, new].map(|look| look.map(|look| look.state));
        if old_state != state {
            self.count(old_state, state);
        }
        self.set_zone(name, before, seen);
    }

    fn set_zone(&mut self, name: &NodeName, before: Option<Seen>, after: Option<Seen>) {
        let mut is_other_set = false;
        if let Some(Seen { zone, .. }) = before
            && after.as_ref().is_none_or(|after| after.zone != zone)
            && let Some(nodes) = self.zones.get_mut(&zone)
        {
            nodes.remove(name);
            if nodes.names.is_empty() {
                self.zones.remove(&zone);
                is_other_set = true;
            }
        }
        if let Some(Seen { zone, look }) = after {
            self.longest_name = self.longest_name.max(name.chars().count());
            let nodes = self.zones.entry(zone).or_default();
            is_other_set |= nodes.names.is_empty();
            nodes.set(name, look.state);
        }
        if is_other_set {
            self.zone_names = ZoneNames::for_zones(self.zones.keys());
        }
    }

    fn count(&mut self, before: Option<NodeState>, after: Option<NodeState>) {
        self.revision.count(true);
        if let Some(state) = after {
            *self.counts.entry(state).or_default() += 1;
        }
        if let Some(count) = before.and_then(|state| self.counts.get_mut(&state)) {
            *count -= 1;
        }
        self.counts.retain(|_, count| *count > 0);
    }
}

impl ZoneNodes {
    pub fn names(&self) -> &[NodeName] {
        &self.names
    }

    /// Returns the states, in the order of [`names`](Self::names).
    pub fn states(&self) -> &[NodeState] {
        &self.states
    }

    /// Returns the nodes that are not Ready, by name.
    pub fn notable(&self) -> impl Iterator<Item = (&NodeName, NodeState)> {
        let is_calm = NodeState::worst(&self.states) == Some(NodeState::Ready);
        let states = if is_calm { &[] } else { &*self.states };
        self.names
            .iter()
            .zip(states)
            .map(|(name, state)| (name, *state))
            .filter(|(_, state)| *state != NodeState::Ready)
    }

    fn set(&mut self, name: &NodeName, state: NodeState) {
        match self.names.binary_search(name) {
            Ok(place) => self.states[place] = state,
            Err(place) => {
                self.names.insert(place, name.clone());
                self.states.insert(place, state);
            }
        }
    }

    fn remove(&mut self, name: &NodeName) {
        if let Ok(place) = self.names.binary_search(name) {
            self.names.remove(place);
            self.states.remove(place);
        }
    }
}

impl Look {
    /// Returns the result of an examination with these facts. A Ready node with a Lease gets a time for its next
    /// examination only if it becomes late by `calm_until`.
    fn from_facts(facts: &NodeFacts, calm_until: Timestamp) -> Self {
        let NodeFacts { node, silence, now, .. } = *facts;
        let (state, is_silent) = (NodeState::from_facts(facts), silence.is_silent(now));
        let is_abnormal = is_silent || looks_wrong(node);
        let look = Self { state, is_abnormal, is_silent, again: None };
        let of_silence = next_without_renewal(silence, now);
        let again = match facts.expiry {
            // For a healthy node, `facts.expiry` is ignored, because the controller's view of the node matters only
            // once the node has changed or is late.
            _ if look.is_calm() => of_silence.filter(|from| !silence.is_of_lease || *from <= calm_until),
            Expiry::AnyTime => Some(Timestamp::EPOCH),
            Expiry::At(at) => Some(of_silence.map_or(at, |from| from.min(at))),
            Expiry::OnChange => of_silence,
        };
        Self { again, ..look }
    }

    /// Whether the node is healthy: while the node and its pods do not change, it can only become late or silent.
    fn is_calm(&self) -> bool {
        self.state == NodeState::Ready && !self.is_abnormal && !self.is_silent
    }
}

/// Returns the next time at which a node becomes late or silent if it does not renew its Lease.
fn next_without_renewal(silence: Silence, now: Timestamp) -> Option<Timestamp> {
    let next = [silence.late_from, silence.silent_from].map(|from| from + MOMENT);
    next.into_iter().filter(|from| *from > now).min()
}

fn set_member(set: &mut BTreeSet<NodeName>, name: &NodeName, is_member: bool) {
    if is_member {
        set.insert(name.clone());
    } else {
        set.remove(name);
    }
}

/// Whether the node object itself shows a problem.
fn looks_wrong(node: &Node) -> bool {
    !node.is_ready() || node.taints.iter().any(|taint| taint.effect == TaintEffect::NoExecute)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use kordon_core::{
        cluster::{Change, Condition, ConditionStatus, Labels, Lease, ObjectEvent, READY, Taint, Version},
        engine::{ServerVersion, Settings},
    };
    use kordon_time::ClusterTime;

    /// Twenty nodes with their Leases.
    struct World {
        cluster: Cluster,
        engine: Engine,
        watchlist: NodeWatchlist,
        version: u64,
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_secs(1_000_000 + seconds)
    }

    impl World {
        fn new() -> Self {
            let settings = Settings::defaults(ServerVersion::new(1, 33));
            let engine = Engine::start(settings, &Cluster::default(), at(0), at(0));
            let mut world =
                Self { cluster: Cluster::default(), engine, watchlist: NodeWatchlist::default(), version: 0 };
            for node in 0..20 {
                let name = format!("n-{node}");
                world.change(&name, |_| {});
                world.renew(&name, 0);
            }
            world.engine.handle_timeout(&world.cluster, at(0));
            world
        }

        fn apply(&mut self, change: Change, now: Timestamp) {
            let mut applied = Vec::new();
            self.cluster.apply(change, &mut applied);
            for applied in &applied {
                self.engine.handle_change(&self.cluster, applied, now);
                self.watchlist.on_applied(applied, Some(&self.engine));
            }
        }

        fn change(&mut self, name: &str, change: impl FnOnce(&mut Node)) {
            let ready =
                Condition { kind: READY.into(), status: ConditionStatus::True, ..Condition::default() };
            let created = ClusterTime::new(at(0));
            let new = Node { name: name.into(), created, conditions: [ready].into(), ..Node::default() };
            let mut node = self.cluster.node(&name.into()).map_or(new, |node| (**node).clone());
            self.version += 1;
            node.version = Version(self.version);
            change(&mut node);
            self.apply(Change::Node(ObjectEvent::Applied(node)), at(0));
        }

        fn renew(&mut self, name: &str, seconds: i64) {
            self.version += 1;
            let lease = Lease {
                node: name.into(),
                version: Version(self.version),
                renewed: Some(ClusterTime::new(at(seconds))),
                duration: Some(Span::from_secs(40)),
                written: None,
            };
            self.apply(Change::Lease(ObjectEvent::Applied(lease)), at(seconds));
        }

        /// Returns the abnormal nodes. First checks that incremental updates give the same result as an examination of
        /// every node.
        fn abnormal(&mut self, seconds: i64) -> Vec<String> {
            let now = at(seconds);
            self.watchlist.update(&self.engine, &self.cluster, now);
            let silent = |node: &Node| self.engine.is_silent(&self.cluster, node, now);
            let all = self.cluster.nodes().iter().filter(|node| looks_wrong(node) || silent(node));
            let all: BTreeSet<NodeName> = all.map(|node| node.name.clone()).collect();
            assert_eq!(*self.watchlist.abnormal(), all, "at {seconds} s");
            let state =
                |node: &Node| NodeState::from_facts(&NodeFacts::new(&self.engine, &self.cluster, node, now));
            let states = self.cluster.nodes().iter().map(|node| (node.name.clone(), state(node)));
            let known = self.watchlist.seen.iter().map(|(name, seen)| (name.clone(), seen.look.state));
            assert_eq!(known.collect::<Vec<_>>(), states.collect::<Vec<_>>(), "at {seconds} s");
            let mut zones: BTreeMap<ZoneKey, ZoneNodes> = BTreeMap::new();
            for node in self.cluster.nodes().iter() {
                let nodes = zones.entry(node.zone()).or_default();
                nodes.names.push(node.name.clone());
                nodes.states.push(self.watchlist.state(&node.name).expect("every node has a state"));
            }
            assert_eq!(*self.watchlist.zones(), zones, "at {seconds} s");
            let counted: usize = self.watchlist.counts().values().sum();
            assert_eq!(counted, self.cluster.nodes().len());
            let again = self.watchlist.seen.values().filter(|seen| seen.look.again.is_some()).count();
            assert_eq!(self.watchlist.due.len(), again);
            let silent =
                self.cluster.nodes().iter().filter(|node| silent(node)).map(|node| node.name.clone());
            assert_eq!(*self.watchlist.silent(), silent.collect(), "at {seconds} s");
            all.iter().map(ToString::to_string).collect()
        }
    }

    #[test]
    fn a_node_is_listed_from_its_silence_until_its_next_heartbeat() {
        let mut world = World::new();
        assert!(world.abnormal(0).is_empty());
        for second in 1..60 {
            for node in (0..20).filter(|node| *node != 7 && second % 10 == node % 10) {
                world.renew(&format!("n-{node}"), second);
            }
            let expected: &[&str] = if second > 25 { &["n-7"] } else { &[] };
            assert_eq!(world.abnormal(second), expected, "at {second} s");
        }
        world.renew("n-7", 60);
        assert!(world.abnormal(60).is_empty());
        assert_eq!(world.abnormal(90).len(), 20, "all of them become silent by time alone");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn a_node_is_late_by_its_pace_however_that_changes(
            paces in prop::collection::vec((1_i64..13, 4_usize..14), 1..5),
            phase in 0_i64..10,
        ) {
            let mut world = World::new();
            let mut second = phase;
            for (pace, renewals) in paces {
                for _ in 0..renewals {
                    world.renew("n-7", second);
                    for _ in 0..pace {
                        world.abnormal(second);
                        second += 1;
                    }
                }
            }
            (second..second + 30).for_each(|second| drop(world.abnormal(second)));
        }
    }

    #[test]
    fn a_node_is_listed_while_its_object_says_that_something_is_wrong() {
        let mut world = World::new();
        let unready =
            Condition { kind: READY.into(), status: ConditionStatus::False, ..Condition::default() };
        world.change("n-3", |node| node.conditions = [unready].into());
        let taint = Taint { key: "mine".into(), effect: TaintEffect::NoExecute, ..Taint::default() };
        world.change("n-4", |node| node.taints = [taint].into());
        world.change("n-5", |node| node.unschedulable = true);
        assert_eq!(world.abnormal(1), ["n-3", "n-4"]);
        let counts = [(NodeState::NotReady, 1), (NodeState::Cordoned, 1), (NodeState::Ready, 18)];
        assert_eq!(*world.watchlist.counts(), BTreeMap::from(counts));
        let labels = Labels::from([("topology.kubernetes.io/zone".into(), "z".into())]);
        world.change("n-4", |node| (node.taints, node.labels) = (Arc::new([]), labels));
        world.apply(Change::Node(ObjectEvent::Deleted("n-3".into())), at(2));
        assert!(world.abnormal(2).is_empty());
        assert_eq!(*world.watchlist.counts(), BTreeMap::from([counts[1], counts[2]]));
    }

    #[test]
    fn a_node_without_pods_is_drained_once_its_pods_are_known_if_a_drain_of_it_ended() {
        let mut world = World::new();
        world.change("n-4", |node| node.unschedulable = true);
        world.change("n-5", |node| (node.unschedulable, node.drained) = (true, Some(Arc::default())));
        let state = |world: &mut World, second| {
            world.abnormal(second);
            world.watchlist.state(&"n-5".into())
        };
        assert_eq!(state(&mut world, 1), Some(NodeState::Cordoned));
        world.apply(Change::Pod(ObjectEvent::ListStarted), at(2));
        world.apply(Change::Pod(ObjectEvent::ListDone), at(2));
        assert_eq!(state(&mut world, 2), Some(NodeState::Drained), "no object has changed");
        assert_eq!(world.watchlist.state(&"n-4".into()), Some(NodeState::Cordoned), "nobody drained it");
    }

    #[test]
    fn a_node_is_late_before_it_is_silent_and_ready_with_its_next_heartbeat() {
        let mut world = World::new();
        let state = |world: &mut World, second| {
            world.abnormal(second);
            world.watchlist.state(&"n-7".into())
        };
        assert_eq!(state(&mut world, 15), Some(NodeState::Ready));
        assert_eq!(state(&mut world, 16), Some(NodeState::Late));
        assert_eq!(state(&mut world, 26), Some(NodeState::Silent));
        world.renew("n-7", 27);
        assert_eq!(state(&mut world, 27), Some(NodeState::Ready));
        world.apply(Change::Node(ObjectEvent::Deleted("n-7".into())), at(28));
        assert_eq!(state(&mut world, 28), None);
    }

    #[test]
    fn what_seemed_to_happen_while_the_watches_were_down_is_no_flapping() {
        let mut world = World::new();
        for outage in (0..400).step_by(100) {
            (0..20).for_each(|node| world.renew(&format!("n-{node}"), outage));
            assert!(world.abnormal(outage).is_empty());
            assert_eq!(world.abnormal(outage + 40).len(), 20, "nobody knows yet that the watches broke");
            assert!(world.abnormal(outage + 5).is_empty(), "that was when they did");
        }
        assert_eq!(world.watchlist.flaps(&"n-7".into(), at(400)), None);
    }

    #[test]
    fn a_node_that_goes_down_and_comes_back_three_times_in_ten_minutes_is_flapping() {
        let mut world = World::new();
        let flaps = |world: &mut World, second| {
            world.abnormal(second);
            world.watchlist.flaps(&"n-7".into(), at(second))
        };
        assert_eq!(flaps(&mut world, 0), None);
        assert_eq!(flaps(&mut world, 40), None, "down once, by way of Late");
        world.renew("n-7", 50);
        assert_eq!(flaps(&mut world, 50), None, "back");
        assert_eq!(flaps(&mut world, 90), Some(3), "down again");
        world.renew("n-7", 100);
        assert_eq!(flaps(&mut world, 100), Some(4));
        assert_eq!(world.watchlist.flaps(&"n-7".into(), at(645)), Some(3), "the first one is old");
        assert_eq!(world.watchlist.flaps(&"n-7".into(), at(655)), None);
    }

    #[test]
    fn a_node_without_a_lease_is_silent_when_half_its_grace_is_over() {
        let mut world = World::new();
        world.apply(Change::Lease(ObjectEvent::Deleted("n-9".into())), at(1));
        assert!(world.abnormal(10).is_empty());
        let half = world.engine.settings().node_monitor_grace_period.value.as_secs() / 2;
        assert!(world.abnormal(half + 1).contains(&"n-9".into()));
    }

    #[test]
    fn a_heartbeat_in_a_status_moves_with_the_clock_of_the_cluster() {
        let mut world = World::new();
        world.apply(Change::Lease(ObjectEvent::Deleted("n-9".into())), at(1));
        (0..20).filter(|node| *node != 9).for_each(|node| world.renew(&format!("n-{node}"), 10));
        let half = world.engine.settings().node_monitor_grace_period.value.as_secs() / 2;
        let mut with_clock = |ahead| {
            world.cluster.set_clock(ClusterClock::ahead_by(Span::from_secs(ahead)));
            world.abnormal(half - 1)
        };
        assert!(with_clock(0).is_empty());
        assert_eq!(with_clock(3), ["n-9"], "it was written three seconds earlier than it says");
        assert!(with_clock(-3).is_empty());
    }
}
