//! Which nodes a pass looks at: all of them, or in a forecast those at which it could find something.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    pass::is_excluded,
    settings::ControllerRules,
    zone::{self, Census},
};
use crate::{
    cluster::{Cluster, Node, NodeName, ZoneKey},
    time::Timestamp,
};

/// Which nodes the next pass looks at.
///
/// In a copy that runs ahead nothing renews a Lease, and what is asked for is done at once. A node at which a pass
/// found nothing to do is *settled* there: the next pass finds nothing either, until the node changes or its grace
/// ends. It is only counted in its zone.
#[derive(Clone, Debug, Default)]
pub enum PassScope {
    /// To all, always: where signs of life come in unannounced.
    #[default]
    Everywhere,
    /// To all, and from then on to those that are not settled.
    Afresh,
    Unsettled(UnsettledNodes),
}

/// The nodes that a forecast's next pass looks at, and what it must know of the others.
#[derive(Clone, Debug, Default)]
pub struct UnsettledNodes {
    pub nodes: BTreeSet<NodeName>,
    /// When the last pass was.
    pub last_pass: Timestamp,
    /// How the settled ones count.
    pub settled: BTreeMap<ZoneKey, Census>,
    /// When the grace of settled nodes ends. May tell of one that has changed since: then it is looked at in vain.
    ends: BTreeSet<(Timestamp, NodeName)>,
}

impl PassScope {
    /// The node was added: the next pass looks at it.
    pub fn on_added(&mut self, node: &Node) {
        if let Self::Unsettled(unsettled) = self {
            unsettled.nodes.insert(node.name.clone());
        }
    }

    /// Something about the node, which was like this, has changed: the next pass looks at it.
    pub fn on_changed(&mut self, old: &Node, rules: &ControllerRules) {
        if let Self::Unsettled(unsettled) = self {
            unsettled.unsettle(old, rules);
        }
    }

    /// Something changed that concerns every node.
    pub fn on_upheaval(&mut self) {
        if let Self::Unsettled(_) = self {
            *self = Self::Afresh;
        }
    }
}

impl UnsettledNodes {
    /// The nodes whose grace is over by now are looked at from now on.
    pub fn end_graces(&mut self, cluster: &Cluster, rules: &ControllerRules, now: Timestamp) {
        while self.ends.first().is_some_and(|(ends, _)| *ends < now) {
            let Some((_, name)) = self.ends.pop_first() else { return };
            if let Some(node) = cluster.node(&name) {
                self.unsettle(node, rules);
            }
        }
    }

    /// From now on passes leave the node out, which counts in this zone, if in any, and whose grace ends then, if
    /// it is not over.
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
        if !self.nodes.insert(node.name.clone()) || is_excluded(node, rules) {
            return;
        }
        let zone = node.zone();
        let census = self.settled.get_mut(&zone).expect("a settled node is counted in its zone");
        census.discount(node.ready().map(|ready| ready.status));
        // A pass knows only zones in which it counts a node.
        if census.size() == 0 {
            self.settled.remove(&zone);
        }
    }
}
