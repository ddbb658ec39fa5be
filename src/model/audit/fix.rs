//! What would help against the causes of an audit.

use std::sync::Arc;

use super::{
    finding::{Finding, FindingKind, Fix},
    needed_flags,
};
use crate::model::suggestions::{self, Suggestion, SuggestionKind};
use kordon_core::{
    cluster::{Cluster, Pod},
    plan::{Action, DrainFlag, DrainOptions, EvictionRules, SurgeRefusal, surge::assess},
};
use kordon_time::Timestamp;

impl From<Suggestion> for Fix {
    fn from(suggestion: Suggestion) -> Self {
        // Removes a leading "and" from the text of a "wait" suggestion. The dashboard needs this word, because it joins
        // the text to the suggestion's title.
        let text = suggestion.text.trim_start_matches("and ").to_owned();
        Self { command: suggestion.means.command(), text }
    }
}

/// Returns changes that would help against a cause, the smallest first; empty if there is nothing to add to the plan's
/// own advice.
pub(super) fn fixes(finding: &Finding, cluster: &Cluster, rules: &EvictionRules, now: Timestamp) -> Vec<Fix> {
    let pod = finding.pods.iter().find_map(|pod| cluster.pod(pod));
    let from = |find: fn(&Cluster, &Arc<Pod>, &EvictionRules, Timestamp) -> Vec<Suggestion>| -> Vec<Fix> {
        let found = pod.map(|pod| find(cluster, pod, rules, now));
        found.into_iter().flatten().map(Fix::from).collect()
    };
    let of_budget = || from(suggestions::for_budget);
    match finding.kind {
        FindingKind::BudgetNeverAllows => {
            let found = pod.map(|pod| suggestions::for_budget(cluster, pod, rules, now)).unwrap_or_default();
            let scales = found.iter().any(|suggestion| suggestion.kind == SuggestionKind::ScaleUp);
            let surge = pod.filter(|_| scales).and_then(|pod| surge(finding, cluster, pod, rules, now));
            surge.into_iter().chain(found.into_iter().map(Fix::from)).collect()
        }
        // The drain waits for an uncordon.
        FindingKind::BudgetHasNoRoom | FindingKind::UnhealthyUnderBudget if !finding.fixes.is_empty() => {
            Vec::new()
        }
        FindingKind::BudgetHasNoRoom | FindingKind::UnhealthyUnderBudget | FindingKind::OperatorBudget => {
            of_budget()
        }
        FindingKind::OverlappingBudgets => from(suggestions::for_overlapping),
        FindingKind::OperatorWithoutReplica => Fix::advice("wait for, or add, a replica on another node"),
        FindingKind::ComesBack => Fix::advice("take the node's name, or the toleration, out of the template"),
        FindingKind::BudgetNotComputed => Fix::advice("wait for the disruption controller, or restart it"),
        FindingKind::NotRecreated => Fix::advice("give it a controller, or accept its loss with --force"),
        FindingKind::JobFails | FindingKind::IndexFails => {
            Fix::advice("wait until it has completed, or start it again afterwards")
        }
        FindingKind::NoNodeForReplacement => {
            Fix::advice("add a node that takes it, or lift what keeps it away")
        }
        FindingKind::ReplacementStuck => Fix::advice("first repair what it waits for"),
        FindingKind::QuotaRefuses => Fix::advice("raise the quota"),
        FindingKind::DataLost if finding.subject.kind == *"PersistentVolumeClaim" => {
            Fix::advice("copy the data first, or set the volume's reclaimPolicy to Retain")
        }
        FindingKind::DataLost => {
            Fix::advice("accept the loss with --delete-emptydir-data, or keep the data in a volume")
        }
        FindingKind::LocalVolume => Fix::advice("move the data: the pod waits for its node"),
        FindingKind::SingleReplica => Fix::advice("run two replicas, or accept that it is down for a while"),
        FindingKind::Finalizer => Fix::advice("wait for the finalizer's controller"),
        FindingKind::KubeletDown => Fix::advice("restart the kubelet, or taint the node out-of-service"),
        FindingKind::KeepsNode => Fix::advice("drain its node by other means, or remove the annotation"),
        FindingKind::NamespaceTerminating => Fix::advice("wait until the namespace is gone"),
        FindingKind::ReplacementsNotHealthy
        | FindingKind::NotKnown
        | FindingKind::Switchover
        | FindingKind::ZonalVolume
        | FindingKind::HostPath
        | FindingKind::EvictionWebhook => Vec::new(),
    }
}

/// Returns a `kordon drain` command that scales the pod's Deployment up only while the drain runs, with the flags that
/// the drain needs to start; `None` if that is not possible.
fn surge(
    finding: &Finding,
    cluster: &Cluster,
    pod: &Pod,
    rules: &EvictionRules,
    now: Timestamp,
) -> Option<Fix> {
    let unless = match assess(cluster, pod) {
        Ok(_) => "",
        Err(SurgeRefusal::AutoscalersUnknown { .. }) => ", unless an autoscaler scales it",
        Err(_) => return None,
    };
    let node = finding.nodes.first()?;
    let needs = needed_flags(cluster, node, rules, now);
    let options = DrainOptions {
        force: needs.contains(&DrainFlag::Force),
        ignore_daemonsets: true,
        delete_emptydir_data: needs.contains(&DrainFlag::DeleteEmptydirData),
        surge: true,
        ..DrainOptions::default()
    };
    let flags: Vec<String> = needs.iter().map(ToString::to_string).collect();
    let with =
        if flags.is_empty() { String::new() } else { format!("; the drain needs {}", flags.join(" ")) };
    let text = format!("scale its Deployment up by one only while its pods leave{unless}{with}");
    Some(Fix { command: Some(Action::Drain { nodes: vec![node.clone()], options }.kordon()), text })
}
