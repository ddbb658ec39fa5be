//! Which nodes a pass looks at: all, or in a forecast only those at which it could find something.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    settings::ControllerRules,
    zone::{self, Census, NodeZone},
};
use crate::cluster::{Cluster, Node, NodeName, ZoneKey};
use kordon_time::Timestamp;

/// Which nodes the next pass looks at.
///
/// In a forecast nothing renews a Lease, and effects are written at once. A node at which a pass found nothing to do is
/// *settled* there: the next pass finds nothing either, until the node changes or its grace period ends. It is only
/// counted in its zone.
#[derive(Clone, Debug, Default)]
pub enum PassScope {
    /// All nodes, always: heartbeats can arrive at any time.
    #[default]
    All,
    /// All nodes, and afterwards those that are not settled.
    AllOnce,
    Unsettled(UnsettledNodes),
}

/// The nodes that a forecast's next pass looks at, and what it needs to know about the others.
#[derive(Clone, Debug, Default)]
pub struct UnsettledNodes {
    pub nodes: BTreeSet<NodeName>,
    /// When the last pass was.
    pub last_pass: Timestamp,
    /// The counts of the settled nodes.
    pub settled: BTreeMap<ZoneKey, Census>,
    /// When the grace periods of settled nodes end. A node may have changed since: then the look at it is unnecessary,
    /// and harmless.
    ends: BTreeSet<(Timestamp, NodeName)>,
}

impl PassScope {
    /// The node was added.
    pub fn on_added(&mut self, node: &Node) {
        if let Self::Unsettled(unsettled) = self {
            unsettled.nodes.insert(node.name.clone());
        }
    }

    /// The node, whose old state this is, changed.
    pub fn on_changed(&mut self, old: &Node, rules: &ControllerRules) {
        if let Self::Unsettled(unsettled) = self {
            unsettled.unsettle(old, rules);
        }
    }

    /// The Lease of the node changed.
    pub fn on_lease(&mut self, node: &NodeName, cluster: &Cluster, rules: &ControllerRules) {
        if let Self::Unsettled(unsettled) = self
            && let Some(node) = cluster.node(node)
        {
            unsettled.unsettle(node, rules);
        }
    }

    /// Something changed that affects every node.
    pub fn on_general_change(&mut self) {
        if let Self::Unsettled(_) = self {
            *self = Self::AllOnce;
        }
    }
}

impl UnsettledNodes {
    /// Unsettles the nodes whose grace period has ended.
    pub fn expire_graces(&mut self, cluster: &Cluster, rules: &ControllerRules, now: Timestamp) {
        while self.ends.first().is_some_and(|(ends, _)| *ends < now) {
            let Some((_, name)) = self.ends.pop_first() else { return };
            if let Some(node) = cluster.node(&name) {
                self.unsettle(node, rules);
            }
        }
    }

    /// Settles a node: it counts in this zone, if any, and its grace period ends then, if it is still to end.
    pub fn settle(&mut self, node: &Node, zone: Option<&ZoneKey>, grace_ends: Option<Timestamp>) {
        self.nodes.remove(&node.name);
        if let Some(zone) = zone {
            let current = node.ready().map(|ready| ready.status);
            zone::count(&mut self.settled, zone, current);
        }
        if let Some(ends) = grace_ends {
            self.ends.insert((ends, node.name.clone()));
        }
    }

    fn unsettle(&mut self, node: &Node, rules: &ControllerRules) {
        if !self.nodes.insert(node.name.clone()) {
            return;
        }
        let zone = NodeZone::of(node);
        if zone.excludes(node, rules) {
            return;
        }
        // A pass knows only zones in which it counts a node.
        zone::discount(&mut self.settled, &zone.key, node.ready().map(|ready| ready.status))
            .expect("a settled node is counted in its zone");
    }
}
