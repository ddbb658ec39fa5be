//! The audit that the dashboard shows. It is computed in the background, and again after changes.

use super::{AuditWork, DrainAudit};
use crate::model::Model;
use kordon_core::{
    cluster::{Cluster, Namespace, NodeName, Owner},
    engine::ServerVersion,
    placement::Snapshot,
    plan::{Cancellation, EvictionRules, can_place, needs},
};
use kordon_time::Timestamp;

/// An audit of all nodes, as of a point in time.
#[derive(Clone, Debug, Default)]
pub struct KnownAudit {
    pub audit: DrainAudit,
    pub at: Timestamp,
    /// The owners of all pods whose operators act by their settings, with the namespaces of the pods.
    pub owners: Vec<(Namespace, Owner)>,
    /// Number of changes of the cluster that may alter plans, at the time of the audit.
    changes: u64,
}

/// Copies of all inputs of the audit.
#[derive(Debug)]
pub struct AuditJob {
    cluster: Cluster,
    version: ServerVersion,
    rules: EvictionRules,
    now: Timestamp,
    changes: u64,
}

impl Model {
    /// Returns the next job that computes the audit; `None` if the audit is up to date.
    pub fn next_audit_job(&self, now: Timestamp) -> Option<AuditJob> {
        let changes = self.changes.plans();
        if self.predictions.audit().is_some_and(|known| known.changes == changes) {
            return None;
        }
        Some(AuditJob {
            cluster: self.cluster.clone(),
            version: self.settings.version,
            rules: EvictionRules::from(&self.settings),
            now,
            changes,
        })
    }

    /// Computes the audit at once, unless it is up to date.
    pub fn run_audit(&mut self, now: Timestamp) {
        if let Some(job) = self.next_audit_job(now) {
            self.predictions.set_audit(job.work_until(&Cancellation::default()));
        }
    }
}

impl AuditJob {
    /// Computes the audit. If it is cancelled, returns soon; the result must then be discarded.
    pub fn work_until(self, cancellation: &Cancellation) -> KnownAudit {
        let Self { cluster, version, rules, now, changes } = self;
        let snapshot = can_place(&cluster).then(|| Snapshot::new(&cluster, version));
        let nodes: Vec<NodeName> = cluster.nodes().iter().map(|node| node.name.clone()).collect();
        let owners = needs::owners_with_settings_of(nodes.iter().flat_map(|node| cluster.pods_on(node)));
        let mut work = AuditWork::new(cluster, nodes, snapshot, rules, now);
        while work.step(cancellation) && !cancellation.is_cancelled() {}
        KnownAudit { audit: work.finish(), at: now, changes, owners }
    }
}
