//! Which nodes are abnormal, kept up to date by changes, so that finding the few does not take a walk over 5,000 nodes.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    cluster::{Applied, Cluster, ConditionStatus, Node, NodeName, TaintEffect},
    engine::Engine,
    time::{ClusterClock, Timestamp},
};

/// The nodes that something is happening or may happen to, and how many nodes there are of each readiness.
///
/// A node is looked at after it or its Lease changed, when it would become silent, and always while it is abnormal; a
/// healthy node costs nothing in between.
#[derive(Clone, Debug, Default)]
pub struct NodeWatchlist {
    abnormal: BTreeSet<NodeName>,
    /// Nodes that changed, or whose Lease changed, since the last update.
    changed: BTreeSet<NodeName>,
    /// When each healthy node becomes silent without another heartbeat, by time and name.
    silences: BTreeSet<(Timestamp, NodeName)>,
    silent_at: BTreeMap<NodeName, Timestamp>,
    /// The clock that those times were worked out with; none before the first update.
    clock: Option<ClusterClock>,
    pub counts: ReadinessCounts,
}

/// How many nodes there are, by their Ready condition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadinessCounts {
    pub ready: usize,
    pub not_ready: usize,
    /// Unknown, or never posted.
    pub unknown: usize,
    pub cordoned: usize,
}

impl NodeWatchlist {
    /// Follows a change of the cluster.
    pub fn on_applied(&mut self, applied: &Applied) {
        match applied {
            Applied::Node(delta) => {
                if let Some(old) = &delta.old {
                    self.counts.count(old, |number| *number -= 1);
                }
                if let Some(new) = &delta.new {
                    self.counts.count(new, |number| *number += 1);
                }
                self.changed.extend(delta.old.iter().chain(&delta.new).map(|node| node.name.clone()));
            }
            Applied::Lease(delta) => {
                self.changed.extend(delta.old.iter().chain(&delta.new).map(|lease| lease.node.clone()));
            }
            Applied::Pod(_) | Applied::Leader(..) | Applied::Other => {}
        }
    }

    /// Looks at the nodes that may have become abnormal or healthy since the last update.
    pub fn update(&mut self, engine: &Engine, cluster: &Cluster, now: Timestamp) {
        if self.clock.replace(cluster.clock()) != Some(cluster.clock()) {
            self.changed.extend(cluster.nodes().iter().map(|node| node.name.clone()));
        }
        let mut looked_at = std::mem::take(&mut self.changed);
        looked_at.extend(self.abnormal.iter().cloned());
        let fallen_silent = self.silences.iter().take_while(|(at, _)| *at < now);
        looked_at.extend(fallen_silent.map(|(_, name)| name.clone()));
        for name in looked_at {
            let node = cluster.node(&name);
            let silence = node.map(|node| engine.silence(cluster, node));
            let is_silent = silence.is_some_and(|silence| silence.is_silent(now));
            if node.is_some_and(|node| is_silent || looks_wrong(node)) {
                self.abnormal.insert(name.clone());
            } else {
                self.abnormal.remove(&name);
            }
            self.expect_silence(name, silence.map(|silence| silence.silent_from).filter(|_| !is_silent));
        }
    }

    /// The nodes that are not ready, have a NoExecute taint or are silent, by name.
    pub fn abnormal(&self) -> &BTreeSet<NodeName> {
        &self.abnormal
    }

    /// Has the node looked at again when it becomes silent.
    fn expect_silence(&mut self, name: NodeName, at: Option<Timestamp>) {
        let before = match at {
            Some(at) => self.silent_at.insert(name.clone(), at),
            None => self.silent_at.remove(&name),
        };
        if before == at {
            return;
        }
        if let Some(before) = before {
            self.silences.remove(&(before, name.clone()));
        }
        self.silences.extend(at.map(|at| (at, name)));
    }
}

impl ReadinessCounts {
    fn count(&mut self, node: &Node, change: impl Fn(&mut usize)) {
        change(match node.ready().map(|ready| ready.status) {
            Some(ConditionStatus::True) => &mut self.ready,
            Some(ConditionStatus::False | ConditionStatus::Invalid) => &mut self.not_ready,
            Some(ConditionStatus::Unknown) | None => &mut self.unknown,
        });
        if node.unschedulable {
            change(&mut self.cordoned);
        }
    }
}

/// Whether the node object itself shows that something is wrong.
fn looks_wrong(node: &Node) -> bool {
    !node.is_ready() || node.taints.iter().any(|taint| taint.effect == TaintEffect::NoExecute)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        cluster::{Change, Condition, Lease, ObjectEvent, READY, Taint, Version},
        engine::{ServerVersion, Settings},
        time::{ClusterTime, Span},
    };

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
                self.watchlist.on_applied(applied);
                self.engine.handle_change(&self.cluster, applied, now);
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
            };
            self.apply(Change::Lease(ObjectEvent::Applied(lease)), at(seconds));
        }

        /// The abnormal nodes; checks that they are the same as when every node is looked at.
        fn abnormal(&mut self, seconds: i64) -> Vec<String> {
            let now = at(seconds);
            self.watchlist.update(&self.engine, &self.cluster, now);
            let silent = |node: &Node| self.engine.is_silent(&self.cluster, node, now);
            let all = self.cluster.nodes().iter().filter(|node| looks_wrong(node) || silent(node));
            let all: BTreeSet<NodeName> = all.map(|node| node.name.clone()).collect();
            assert_eq!(*self.watchlist.abnormal(), all, "at {seconds} s");
            assert_eq!(self.watchlist.silences.len(), self.watchlist.silent_at.len());
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
        let counts = ReadinessCounts { ready: 19, not_ready: 1, unknown: 0, cordoned: 1 };
        assert_eq!(world.watchlist.counts, counts);
        world.change("n-4", |node| node.taints = Arc::new([]));
        world.apply(Change::Node(ObjectEvent::Deleted("n-3".into())), at(2));
        assert!(world.abnormal(2).is_empty());
        assert_eq!(world.watchlist.counts, ReadinessCounts { not_ready: 0, ..counts });
    }

    #[test]
    fn a_node_without_a_lease_is_silent_when_half_its_grace_is_over() {
        let mut world = World::new();
        world.apply(Change::Lease(ObjectEvent::Deleted("n-9".into())), at(1));
        assert!(world.abnormal(10).is_empty());
        let half = world.engine.settings().node_monitor_grace_period.value.as_secs() / 2;
        assert!(world.abnormal(half + 1).contains(&"n-9".into()));
    }
}
