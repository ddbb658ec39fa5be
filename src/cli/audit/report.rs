//! The report of `kordon audit`.

use serde::Serialize;

use crate::{
    cli::gaps::{GapReport, UnknownReport, gap_reports},
    model::{AuditGroup, AuditedNode, DrainAudit, Finding, FindingSeverity},
};
use kordon_core::{
    cluster::{Gaps, NodeName},
    plan::OutcomeKind,
};
use kordon_time::Timestamp;

/// Name and version of the format of the report.
pub const SCHEMA: &str = "kordon.audit/v1";

/// The obstacles that drains would meet (`docs/reference/audit.md`). Every field is always present; unknown values are
/// null.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AuditReport {
    /// `kordon.audit/v1`: fields are added, never removed or renamed.
    schema: &'static str,
    /// When the report was made.
    taken_at: Timestamp,
    /// Counts of all audited nodes together.
    pub total: AuditGroupReport,
    /// Counts of the audited nodes of each zone.
    pub zones: Vec<NamedGroupReport>,
    /// Counts of the audited nodes of each pool, as labels of providers and autoscalers name the pool; nodes without a
    /// pool have the empty name.
    pub pools: Vec<NamedGroupReport>,
    /// The audited nodes, by name.
    pub nodes: Vec<AuditedNodeReport>,
    /// The findings, the most severe first. Among equally severe findings, those that concern most nodes come first.
    pub findings: Vec<FindingReport>,
    /// Number of findings that are left out, because the report of `--baseline` has them.
    pub known: usize,
    /// Number of findings that are left out, because they are about another namespace than that of `--namespace`;
    /// `null` without it.
    pub other_namespaces: Option<usize>,
    #[serde(flatten)]
    pub unknown: UnknownReport,
}

/// Numbers of findings that are left out of a report.
#[derive(Clone, Copy, Debug)]
pub struct LeftOut {
    /// Findings that the report of `--baseline` has.
    pub known: usize,
    /// Findings of other namespaces; `None` without `--namespace`.
    pub hidden: Option<usize>,
}

/// Counts of all audited nodes, or of those in one zone or pool.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AuditGroupReport {
    /// Number of nodes.
    nodes: usize,
    /// Nodes that can be drained now, if no other node is drained at the same time.
    drains: usize,
    /// Nodes whose drain may never end, or is refused.
    waits: usize,
    /// Nodes with a pod that can never leave.
    blocked: usize,
    /// Nodes for which it is unknown how a drain would end.
    pub unknown: usize,
    /// Duration in seconds of the longest drain that ends; `null` if no drain ends.
    longest_seconds: Option<i64>,
    /// The counts in words.
    #[serde(skip)]
    pub text: String,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NamedGroupReport {
    /// The name of the zone or pool.
    pub name: String,
    #[serde(flatten)]
    pub counts: AuditGroupReport,
}

/// What would happen in a drain of one node, if only this node were drained.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AuditedNodeReport {
    /// The node.
    pub node: NodeName,
    /// The node's zone.
    pub zone: String,
    /// The node's pool; `null` if no label names one.
    pub pool: Option<String>,
    /// How the drain ends if `needs` are given: `completes`, `stalls` (it may never end), `blocked` (a pod can never
    /// leave), `refused` or `unknown`.
    pub prospect: &'static str,
    /// How the drain ends, in words; text, not for parsing.
    pub says: String,
    /// Flags without which kubectl drain refuses to start, other than `--ignore-daemonsets`, which is assumed to be
    /// given.
    pub needs: Vec<String>,
    /// Likely time until the last pod is gone, in seconds; `null` if the drain never ends, or if the time is unknown.
    pub takes_seconds: Option<i64>,
    /// Number of the node's pods, those that stay included.
    pub pods: usize,
    /// Pods that leave.
    pub leave: usize,
    /// Pods that wait for something that may never happen.
    pub wait: usize,
    /// Pods that can never leave.
    pub blocked: usize,
    /// Pods that leave or are preempted and are then lost: no controller recreates them, or their Job fails.
    pub lost: usize,
    /// Pods that leave and lose data.
    pub data_lost: usize,
    /// Replacements that find no node; replacements of preempted pods are included.
    pub pending: usize,
    /// Pods whose replacements are not created, or do not start, until something else changes.
    pub stuck: usize,
    /// Identities of the node's findings, the most severe first.
    pub findings: Vec<String>,
    /// Unknown objects that make it unknown how the drain ends.
    pub unknown: Vec<GapReport>,
    /// Whether the node's drain ends.
    #[serde(skip)]
    pub drains: bool,
    /// The most severe cause among the node's findings, in words; `in the baseline` or `left out` if all causes are
    /// left out, empty if there is no cause.
    #[serde(skip)]
    pub cause: String,
}

/// A finding: a cause, and the nodes and pods that it concerns.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FindingReport {
    /// Identity of the finding, the same in every report: the kind of cause and the object.
    pub id: String,
    /// `error` (the drain does not empty the node until something is changed), `warning` (it may wait, or something is
    /// lost or down for a while) or `note`.
    pub severity: &'static str,
    /// The kind of cause; `docs/reference/audit.md` has a table of the kinds.
    pub kind: &'static str,
    /// Kind of the object that the finding is about, as in `PodDisruptionBudget`.
    object_kind: String,
    /// Namespace of the object; `null` for objects without one.
    namespace: Option<String>,
    /// Name of the object; several names are separated by commas.
    name: String,
    /// The cause in words; text, not for parsing.
    pub says: String,
    /// Nodes that the cause concerns.
    pub nodes: Vec<NodeName>,
    /// Pods that the cause concerns, as `namespace/name`.
    pub pods: Vec<String>,
    /// Workloads of these pods, as in `Deployment shop/cart`; a pod without a workload stands for itself.
    workloads: Vec<String>,
    /// Changes that would help with the finding, the smallest first.
    pub fixes: Vec<FixReport>,
    #[serde(skip)]
    pub title: &'static str,
    #[serde(skip)]
    pub subject: String,
    #[serde(skip)]
    pub level: FindingSeverity,
}

/// A change that would help with a finding.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FixReport {
    /// The change, and what it does.
    pub says: String,
    /// The command that makes the change; `null` if the change is an edit.
    pub command: Option<String>,
}

impl AuditReport {
    pub fn new(audit: &DrainAudit, gaps: &Gaps, left_out: LeftOut, at: Timestamp) -> Self {
        let named = |(name, group): (String, AuditGroup)| NamedGroupReport { name, counts: (&group).into() };
        Self {
            schema: SCHEMA,
            taken_at: at,
            total: (&audit.total()).into(),
            zones: audit.zones().into_iter().map(named).collect(),
            pools: audit.pools().into_iter().map(named).collect(),
            nodes: audit.nodes.iter().map(|node| AuditedNodeReport::new(node, audit, left_out)).collect(),
            findings: audit.findings.iter().map(FindingReport::from).collect(),
            known: left_out.known,
            other_namespaces: left_out.hidden,
            unknown: UnknownReport::new(gaps),
        }
    }
}

impl From<&AuditGroup> for AuditGroupReport {
    fn from(group: &AuditGroup) -> Self {
        let AuditGroup { nodes, drains, waits, blocked, unknown, longest } = *group;
        let longest_seconds = longest.map(|span| span.as_secs());
        Self { nodes, drains, waits, blocked, unknown, longest_seconds, text: group.text() }
    }
}

impl AuditedNodeReport {
    fn new(node: &AuditedNode, audit: &DrainAudit, left_out: LeftOut) -> Self {
        let totals = &node.totals;
        let findings = || node.findings.iter().map(|place| &audit.findings[*place]);
        let is_cause = |finding: &&Finding| finding.severity() != FindingSeverity::Note;
        let left_out = match (node.has_left_out, left_out.hidden) {
            (false, _) => "",
            (true, None) => "in the baseline",
            (true, Some(_)) => "left out",
        };
        Self {
            node: node.node.clone(),
            zone: node.zone.short(),
            pool: node.pool.as_ref().map(ToString::to_string),
            prospect: node.prospect.word(),
            says: node.answer(),
            needs: node.needs.iter().map(ToString::to_string).collect(),
            takes_seconds: node.takes.map(|takes| takes.as_secs()),
            pods: totals.pods,
            leave: totals.leave_now + totals.leave_later + totals.undecided,
            wait: totals.wait,
            blocked: totals.blocked,
            lost: totals.lost,
            data_lost: totals.data_lost,
            pending: totals.pending,
            stuck: totals.outcomes.of(OutcomeKind::Stuck),
            findings: findings().map(Finding::id).collect(),
            unknown: gap_reports(&node.gaps),
            drains: node.drains(),
            cause: findings().find(is_cause).map_or_else(|| left_out.to_owned(), cause),
        }
    }
}

/// A cause in a few words, for the row of a node.
fn cause(finding: &Finding) -> String {
    format!("{}: {}", finding.subject, finding.text)
}

impl From<&Finding> for FindingReport {
    fn from(finding: &Finding) -> Self {
        let subject = &finding.subject;
        let fix =
            |fix: &crate::model::Fix| FixReport { says: fix.text.clone(), command: fix.command.clone() };
        Self {
            id: finding.id(),
            severity: finding.severity().as_str(),
            kind: finding.kind.as_str(),
            object_kind: subject.kind.to_string(),
            namespace: Some(subject.namespace.to_string()).filter(|name| !name.is_empty()),
            name: subject.name.to_string(),
            says: finding.text.clone(),
            nodes: finding.nodes.iter().cloned().collect(),
            pods: finding.pods.iter().map(ToString::to_string).collect(),
            workloads: finding.workloads.iter().map(ToString::to_string).collect(),
            fixes: finding.fixes.iter().map(fix).collect(),
            title: finding.kind.title(),
            subject: subject.to_string(),
            level: finding.severity(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::documented;

    #[test]
    fn the_page_documents_every_field() {
        documented::check::<AuditReport>("audit");
    }
}
