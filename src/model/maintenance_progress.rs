//! Progress of the maintenance of nodes: upgrades that the watches show, and drains that this process runs.

use std::collections::BTreeMap;

use super::upgrades::{NodeUpgrade, NodeUpgrades};
use kordon_core::{
    cluster::{Applied, NodeName, OperationId},
    operation::DrainCount,
};

/// Progress of the drain of a node by an operation that runs in this process.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeDrainCount {
    pub operation: OperationId,
    pub count: DrainCount,
}

/// Upgrades and drains in progress.
#[derive(Clone, Debug, Default)]
pub struct MaintenanceProgress {
    upgrades: NodeUpgrades,
    /// The drains that this process runs, by node.
    drains: BTreeMap<NodeName, NodeDrainCount>,
}

impl MaintenanceProgress {
    /// Records a change of the cluster.
    pub(super) fn on_applied(&mut self, applied: &Applied) {
        self.upgrades.on_applied(applied);
    }

    /// Replaces the drains that this process runs.
    pub fn set_drains(&mut self, drains: impl IntoIterator<Item = (NodeName, NodeDrainCount)>) {
        self.drains = drains.into_iter().collect();
    }

    /// Returns the upgrades that began in this session and have not reached all nodes yet.
    pub fn upgrades(&self) -> impl Iterator<Item = NodeUpgrade> {
        self.upgrades.running()
    }

    /// Returns the progress of an operation on a node; `None` if this process does not run it.
    pub fn drain(&self, node: &NodeName, operation: &OperationId) -> Option<DrainCount> {
        let drain = self.drains.get(node).filter(|drain| drain.operation == *operation)?;
        Some(drain.count)
    }
}
