//! Which nodes ask for attention, kept as changes come in: nobody has to walk over 5,000 nodes to find the few that are
//! not well.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    cluster::{Applied, Cluster, ConditionStatus, Node, NodeName, TaintEffect},
    engine::Engine,
    forecast,
    time::{Span, Timestamp},
};

/// The nodes at which something is due or may come due, and how many nodes there are of each readiness.
///
/// A node is looked at when it or its Lease has changed, when it would be silent by now, and always while it is unwell;
/// a well node that says nothing new costs nothing.
#[derive(Clone, Debug, Default)]
pub struct NodeWatchlist {
    unwell: BTreeSet<NodeName>,
    /// Nodes that changed, or whose Lease did, and that have not been looked at since.
    changed: BTreeSet<NodeName>,
    /// When each well node is silent unless it says something before, in order of time and by name.
    silences: BTreeSet<(Timestamp, NodeName)>,
    silent_at: BTreeMap<NodeName, Timestamp>,
    /// The clock difference that those times were worked out with; none before there was an engine.
    ahead: Option<Span>,
    pub census: ReadinessCounts,
}

/// How many nodes there are, by what their Ready condition says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadinessCounts {
    pub ready: usize,
    pub not_ready: usize,
    /// Unknown, or never posted.
    pub unknown: usize,
    pub cordoned: usize,
}

impl NodeWatchlist {
    /// Takes in what a change did to the cluster.
    pub fn on_applied(&mut self, applied: &Applied) {
        match applied {
            Applied::Node(delta) => {
                if let Some(old) = &delta.old {
                    self.census.count(old, |number| *number -= 1);
                }
                if let Some(new) = &delta.new {
                    self.census.count(new, |number| *number += 1);
                }
                self.changed.extend(delta.old.iter().chain(&delta.new).map(|node| node.name.clone()));
            }
            Applied::Lease(delta) => {
                self.changed.extend(delta.old.iter().chain(&delta.new).map(|lease| lease.node.clone()));
            }
            Applied::Pod(_) | Applied::Leader(..) | Applied::Other => {}
        }
    }

    /// Looks at the nodes that may have become unwell or well since the last time.
    pub fn look(&mut self, engine: &Engine, cluster: &Cluster, ahead: Span, now: Timestamp) {
        if self.ahead.replace(ahead) != Some(ahead) {
            self.changed.extend(cluster.nodes().iter().map(|node| node.name.clone()));
        }
        let mut looked_at = std::mem::take(&mut self.changed);
        looked_at.extend(self.unwell.iter().cloned());
        let fallen_silent = self.silences.iter().take_while(|(at, _)| *at < now);
        looked_at.extend(fallen_silent.map(|(_, name)| name.clone()));
        for name in looked_at {
            let node = cluster.node(&name);
            let silent_from = node.and_then(|node| forecast::silent_from(engine, cluster, node, ahead));
            let is_silent = silent_from.is_some_and(|from| from < now);
            if node.is_some_and(|node| is_silent || is_marked(node)) {
                self.unwell.insert(name.clone());
            } else {
                self.unwell.remove(&name);
            }
            self.expect_silence(name, silent_from.filter(|_| !is_silent));
        }
    }

    /// The nodes that are not ready, have a NoExecute taint or are silent, by name.
    pub fn unwell(&self) -> &BTreeSet<NodeName> {
        &self.unwell
    }

    /// Has the node looked at again when it would be silent, and at no other time.
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

/// Whether the node object itself says that something is wrong.
fn is_marked(node: &Node) -> bool {
    !node.is_ready() || node.taints.iter().any(|taint| taint.effect == TaintEffect::NoExecute)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        cluster::{Change, Condition, Lease, ObjectEvent, READY, Taint, Version},
        engine::{ServerVersion, Settings},
    };

    /// Twenty nodes whose Leases are renewed as told, as the app sees them.
    struct World {
        cluster: Cluster,
        engine: Engine,
        attention: NodeWatchlist,
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
                Self { cluster: Cluster::default(), engine, attention: NodeWatchlist::default(), version: 0 };
            for node in 0..20 {
                let name = format!("n-{node}");
                world.change(&name, |_| {});
                world.renew(&name, 0);
            }
            world.engine.handle_timeout(&world.cluster, at(0));
            world
        }

        fn tell(&mut self, change: Change) {
            let mut applied = Vec::new();
            self.cluster.apply(change, &mut applied);
            applied.iter().for_each(|applied| self.attention.on_applied(applied));
        }

        fn change(&mut self, name: &str, change: impl FnOnce(&mut Node)) {
            let ready =
                Condition { kind: READY.into(), status: ConditionStatus::True, ..Condition::default() };
            let new = Node { name: name.into(), conditions: [ready].into(), ..Node::default() };
            let mut node = self.cluster.node(&name.into()).map_or(new, |node| (**node).clone());
            self.version += 1;
            node.version = Version(self.version);
            change(&mut node);
            self.tell(Change::Node(ObjectEvent::Applied(node)));
        }

        fn renew(&mut self, name: &str, seconds: i64) {
            self.version += 1;
            self.tell(Change::Lease(ObjectEvent::Applied(Lease {
                node: name.into(),
                version: Version(self.version),
                renewed: Some(at(seconds)),
                duration: Some(Span::from_secs(40)),
            })));
        }

        /// Who asks for attention; and that it is the same as when every node is looked at.
        fn unwell(&mut self, seconds: i64) -> Vec<String> {
            let now = at(seconds);
            self.attention.look(&self.engine, &self.cluster, Span::ZERO, now);
            let silent = |node: &Node| {
                forecast::silent_from(&self.engine, &self.cluster, node, Span::ZERO)
                    .is_some_and(|from| from < now)
            };
            let all = self.cluster.nodes().iter().filter(|node| is_marked(node) || silent(node));
            let all: BTreeSet<NodeName> = all.map(|node| node.name.clone()).collect();
            assert_eq!(*self.attention.unwell(), all, "at {seconds} s");
            assert_eq!(self.attention.silences.len(), self.attention.silent_at.len());
            all.iter().map(ToString::to_string).collect()
        }
    }

    #[test]
    fn a_node_asks_for_attention_from_its_silence_until_its_next_heartbeat() {
        let mut world = World::new();
        assert!(world.unwell(0).is_empty());
        for second in 1..60 {
            for node in (0..20).filter(|node| *node != 7 && second % 10 == node % 10) {
                world.renew(&format!("n-{node}"), second);
            }
            let expected: &[&str] = if second > 16 { &["n-7"] } else { &[] };
            assert_eq!(world.unwell(second), expected, "at {second} s");
        }
        world.renew("n-7", 60);
        assert!(world.unwell(60).is_empty());
        assert_eq!(world.unwell(90).len(), 20, "all of them fall silent by nothing but time");
    }

    #[test]
    fn a_node_asks_for_attention_while_its_object_says_that_something_is_wrong() {
        let mut world = World::new();
        let unready =
            Condition { kind: READY.into(), status: ConditionStatus::False, ..Condition::default() };
        world.change("n-3", |node| node.conditions = [unready].into());
        let taint = Taint { key: "mine".into(), effect: TaintEffect::NoExecute, ..Taint::default() };
        world.change("n-4", |node| node.taints = [taint].into());
        world.change("n-5", |node| node.unschedulable = true);
        assert_eq!(world.unwell(1), ["n-3", "n-4"]);
        let census = ReadinessCounts { ready: 19, not_ready: 1, unknown: 0, cordoned: 1 };
        assert_eq!(world.attention.census, census);
        world.change("n-4", |node| node.taints = Arc::new([]));
        world.tell(Change::Node(ObjectEvent::Deleted("n-3".into())));
        assert!(world.unwell(2).is_empty());
        assert_eq!(world.attention.census, ReadinessCounts { not_ready: 0, ..census });
    }

    #[test]
    fn a_node_without_a_lease_is_silent_when_half_its_grace_is_over() {
        let mut world = World::new();
        world.tell(Change::Lease(ObjectEvent::Deleted("n-9".into())));
        assert!(world.unwell(10).is_empty());
        let half = world.engine.settings().node_monitor_grace_period.value.as_secs() / 2;
        assert!(world.unwell(half + 1).contains(&"n-9".into()));
    }
}
