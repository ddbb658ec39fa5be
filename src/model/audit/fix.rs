//! What would help against the causes of an audit.

use std::sync::Arc;

use super::finding::{Finding, FindingKind, Fix};
use crate::model::suggestions::{self, Suggestion};
use kordon_core::{
    cluster::{Cluster, Pod},
    plan::EvictionRules,
};
use kordon_time::Timestamp;

impl From<Suggestion> for Fix {
    fn from(suggestion: Suggestion) -> Self {
        Self { command: suggestion.means.command(), text: suggestion.text }
    }
}

/// Returns what would help against a cause, the smallest change first; empty if there is no more to say than the plan
/// did.
pub(super) fn fixes(finding: &Finding, cluster: &Cluster, rules: &EvictionRules, now: Timestamp) -> Vec<Fix> {
    let pod = finding.pods.iter().find_map(|pod| cluster.pod(pod));
    let from = |find: fn(&Cluster, &Arc<Pod>, &EvictionRules, Timestamp) -> Vec<Suggestion>| -> Vec<Fix> {
        let found = pod.map(|pod| find(cluster, pod, rules, now));
        found.into_iter().flatten().map(Fix::from).collect()
    };
    let of_budget = || from(suggestions::for_budget);
    match finding.kind {
        FindingKind::BudgetNeverAllows
        | FindingKind::BudgetHasNoRoom
        | FindingKind::UnhealthyUnderBudget
        | FindingKind::OperatorBudget => of_budget(),
        FindingKind::OverlappingBudgets => from(suggestions::for_overlapping),
        FindingKind::OperatorWithoutReplica => Fix::advice("wait for, or add, a replica on another node"),
        FindingKind::ComesBack => Fix::advice("take the node's name, or the toleration, out of the template"),
        FindingKind::BudgetNotComputed => Fix::advice("wait for the disruption controller, or restart it"),
        FindingKind::NotRecreated => Fix::advice("give it a controller, or accept its loss with --force"),
        FindingKind::JobFails => Fix::advice("wait until it has completed, or start it again afterwards"),
        FindingKind::NoNodeForReplacement => {
            Fix::advice("add a node that takes it, or lift what keeps it away")
        }
        FindingKind::QuotaRefuses => Fix::advice("raise the quota"),
        FindingKind::DataLost => {
            Fix::advice("accept the loss with --delete-emptydir-data, or keep the data in a volume")
        }
        FindingKind::LocalVolume => Fix::advice("move the data: the pod waits for its node"),
        FindingKind::SingleReplica => Fix::advice("run two replicas, or accept that it is down for a while"),
        FindingKind::Finalizer => Fix::advice("wait for the finalizer's controller"),
        FindingKind::KubeletDown => Fix::advice("restart the kubelet, or taint the node out-of-service"),
        FindingKind::NamespaceTerminating => Fix::advice("wait until the namespace is gone"),
        FindingKind::ReplacementsNotHealthy
        | FindingKind::NotKnown
        | FindingKind::Switchover
        | FindingKind::ZonalVolume
        | FindingKind::HostPath
        | FindingKind::EvictionWebhook => Vec::new(),
    }
}
