//! Findings about admission webhooks, which plans do not ask.

use super::{DrainAudit, Finding, FindingKind, FindingSubject};
use crate::k8s::admission::EvictionWebhook;

impl DrainAudit {
    /// Adds a finding for each of the given admission webhooks, all of which are asked about evictions. The finding
    /// concerns all nodes.
    pub fn add_webhooks(&mut self, webhooks: &[EvictionWebhook]) {
        let finding = |webhook: &EvictionWebhook| {
            let subject = FindingSubject::for_cluster_object(webhook.kind, webhook.configuration.as_str());
            let outage = if webhook.is_required { "; while it does not answer, all are refused" } else { "" };
            let text = format!("{} may refuse evictions, which no plan foresees{outage}", webhook.webhook);
            let nodes = self.nodes.iter().map(|node| node.node.clone()).collect();
            Finding { nodes, ..Finding::new(FindingKind::EvictionWebhook, subject, text) }
        };
        let findings: Vec<Finding> = webhooks.iter().map(finding).collect();
        self.findings.extend(findings);
        self.arrange();
    }
}
