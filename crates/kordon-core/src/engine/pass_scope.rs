//! Scope of a pass: all nodes, or in a forecast only the nodes that may need work.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    settings::ControllerRules,
    zone::{self, Census, NodeZone},
};
use crate::cluster::{Cluster, Node, NodeName, ZoneKey};
use kordon_time::Timestamp;

/// Which nodes the next pass looks at.
///
/// In a forecast no Lease is renewed, and effects are written at once. A node that needed no work in a pass is
/// therefore *settled*: it needs none in later passes either, until it changes or its grace period ends. Passes only
/// count it in its zone.
#[derive(Clone, Debug, Default)]
pub enum PassScope {
    /// All nodes, always: heartbeats can arrive at any time.
    #[default]
    All,
    /// All nodes in the next pass. After it, only the *unsettled* nodes, which may need work.
    AllOnce,
    Unsettled(UnsettledNodes),
}

/// The nodes that may need work (unsettled), and the counts and grace periods of all others (settled).
#[derive(Clone, Debug, Default)]
pub struct UnsettledNodes {
    pub nodes: BTreeSet<NodeName>,
    /// Time of the last pass.
    pub last_pass: Timestamp,
    /// The counts of the settled nodes, which need no work.
    pub settled: BTreeMap<ZoneKey, Census>,
    /// Ends of the grace periods of settled nodes, which need no work until then. If a node changes, its entry stays,
    /// and later makes a pass look at the node once without need.
    ends: BTreeSet<(Timestamp, NodeName)>,
}

impl PassScope {
    /// Adds a new node to those that passes look at (the unsettled nodes).
    pub fn on_added(&mut self, node: &Node) {
        if let Self::Unsettled(unsettled) = self {
            unsettled.nodes.insert(node.name.clone());
        }
    }

    /// Makes the next passes look at a node that changed. `old` is the node before the change.
    pub fn on_changed(&mut self, old: &Node, rules: &ControllerRules) {
        if let Self::Unsettled(unsettled) = self {
            unsettled.unsettle(old, rules);
        }
    }

    /// Makes the next passes look at a node whose Lease changed.
    pub fn on_lease(&mut self, node: &NodeName, cluster: &Cluster, rules: &ControllerRules) {
        if let Self::Unsettled(unsettled) = self
            && let Some(node) = cluster.node(node)
        {
            unsettled.unsettle(node, rules);
        }
    }

    /// Widens the scope to all nodes, after a change that affects every node.
    pub fn on_general_change(&mut self) {
        if let Self::Unsettled(_) = self {
            *self = Self::AllOnce;
        }
    }
}

impl UnsettledNodes {
    /// Makes the next passes look at the nodes whose grace period has ended.
    pub fn expire_graces(&mut self, cluster: &Cluster, rules: &ControllerRules, now: Timestamp) {
        while self.ends.first().is_some_and(|(ends, _)| *ends < now) {
            let Some((_, name)) = self.ends.pop_first() else { return };
            if let Some(node) = cluster.node(&name) {
                self.unsettle(node, rules);
            }
        }
    }

    /// Makes passes skip a node, which needs no work for now. `zone` is the zone that counts the node, none for an
    /// excluded node. `grace_ends` is the end of the node's grace period, none if the period is over or never ends.
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
        let zone = NodeZone::from_node(node);
        if zone.excludes(node, rules) {
            return;
        }
        // If this was the last counted node of its zone, the zone is dropped too, because a pass's counts have no empty
        // zones.
        zone::discount(&mut self.settled, &zone.key, node.ready().map(|ready| ready.status))
            .expect("a settled node is counted in its zone");
    }
}
