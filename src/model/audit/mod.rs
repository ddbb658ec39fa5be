//! The audit: what would hinder a drain of each node now, and what would be lost. Each drain is planned alone, in the
//! present state of the cluster, with all flags of kubectl drain. The results are grouped by cause.
//!
//! [`AuditWork`] plans one node at a time, so that it can show its progress and be interrupted.

mod causes;
mod finding;
mod fix;
mod groups;
mod job;
mod webhooks;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use self::finding::FindingKey;
pub use self::{
    finding::{Finding, FindingKind, FindingSeverity, FindingSubject, Fix},
    groups::{AuditGroup, nothing_found},
    job::{AuditJob, KnownAudit},
};
use super::Model;
use kordon_core::{
    cluster::{Cluster, Gaps, Name, NodeName, Pod, ZoneKey},
    placement::{Snapshot, SnapshotLease},
    plan::{
        Action, Cancellation, DrainFlag, DrainOptions, EvictionRules, PlanError, PlanJob, PlanTotals,
        Prospect, Retry, filter,
    },
};
use kordon_time::{Span, Timestamp};

/// The audit of the whole cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DrainAudit {
    /// The nodes, by name.
    pub nodes: Vec<AuditedNode>,
    /// The causes, the most severe first. Of equally severe causes, those that concern most nodes come first.
    pub findings: Vec<Finding>,
}

/// What would happen in a drain of one node, if only this node were drained.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditedNode {
    pub node: NodeName,
    pub zone: ZoneKey,
    /// The node's pool; `None` if no label names one.
    pub pool: Option<Name>,
    /// How a drain of the node ends if all the flags that it needs are given.
    pub prospect: Prospect,
    /// Flags without which kubectl drain refuses to start.
    pub needs: BTreeSet<DrainFlag>,
    /// Likely time until the last pod is gone; `None` if that is never, or unknown.
    pub takes: Option<Span>,
    /// Counts of the node's pods.
    pub totals: PlanTotals,
    /// Unknown objects that leave the audit without an answer for the node; empty if there is an answer.
    pub gaps: Gaps,
    /// Indexes of the node's causes in [`DrainAudit::findings`].
    pub findings: Vec<usize>,
    /// Whether [`DrainAudit::retain`] left out an error or warning that concerns the node.
    pub has_left_out: bool,
}

impl AuditedNode {
    /// Whether the node can be drained now, with the flags that it needs.
    pub const fn drains(&self) -> bool {
        matches!(self.prospect, Prospect::Completes)
    }

    /// The audit's answer for the node: `drains in ~40s`, `needs --force`, `blocked`.
    pub fn answer(&self) -> String {
        let needs: Vec<String> = self.needs.iter().map(ToString::to_string).collect();
        let with = if needs.is_empty() { String::new() } else { format!(" with {}", needs.join(" ")) };
        let count = |pods: usize, one: &str, several: &str| match pods {
            0 => String::new(),
            1 => format!(": 1 pod {one}"),
            pods => format!(": {pods} pods {several}"),
        };
        match self.prospect {
            Prospect::Completes => match self.takes {
                Some(Span::ZERO) => format!("drains at once{with}"),
                Some(takes) => format!("drains in ~{}{with}", takes.rounded_up()),
                None => format!("drains{with}"),
            },
            Prospect::Stalls => format!("may never end{}", count(self.totals.wait, "waits", "wait")),
            Prospect::Blocked => {
                format!("blocked{}", count(self.totals.blocked, "cannot leave", "cannot leave"))
            }
            Prospect::Refused => "refused".into(),
            Prospect::Unknown => "not known".into(),
        }
    }
}

impl DrainAudit {
    /// Severity of the most severe finding; `None` if there are no findings.
    pub fn worst(&self) -> Option<FindingSeverity> {
        self.findings.iter().map(Finding::severity).min()
    }

    /// Number of nodes that can be drained now.
    pub fn drainable(&self) -> usize {
        self.nodes.iter().filter(|node| node.drains()).count()
    }

    /// Keeps the findings for which `keep` returns true. The audit's answers for the nodes do not change.
    pub fn retain(&mut self, keep: impl Fn(&Finding) -> bool) {
        let (kept, left_out): (Vec<Finding>, Vec<Finding>) =
            std::mem::take(&mut self.findings).into_iter().partition(keep);
        self.findings = kept;
        for finding in left_out.iter().filter(|finding| finding.severity() != FindingSeverity::Note) {
            for node in self.nodes.iter_mut().filter(|node| finding.nodes.contains(&node.node)) {
                node.has_left_out = true;
            }
        }
        self.arrange();
    }

    /// Sorts the findings, and sets the indexes of each node's findings.
    fn arrange(&mut self) {
        self.findings.sort_by(|one, other| one.rank().cmp(&other.rank()));
        let mut places: BTreeMap<&NodeName, Vec<usize>> = BTreeMap::new();
        for (place, finding) in self.findings.iter().enumerate() {
            finding.nodes.iter().for_each(|node| places.entry(node).or_default().push(place));
        }
        for node in &mut self.nodes {
            node.findings = places.remove(&node.node).unwrap_or_default();
        }
    }
}

/// An audit in progress.
#[derive(Debug)]
pub struct AuditWork {
    cluster: Cluster,
    rules: EvictionRules,
    now: Timestamp,
    /// Snapshot of the cluster in which replacements are placed, passed from one plan to the next; `None` if they are
    /// not placed.
    snapshot: Option<Snapshot>,
    /// Nodes that are not planned yet, the next one last.
    queue: Vec<NodeName>,
    nodes: Vec<AuditedNode>,
    findings: BTreeMap<FindingKey, Finding>,
}

impl AuditWork {
    /// Starts an audit of these nodes of a cluster. Without a snapshot, replacements are not placed.
    pub fn new(
        cluster: Cluster,
        nodes: Vec<NodeName>,
        snapshot: Option<Snapshot>,
        rules: EvictionRules,
        now: Timestamp,
    ) -> Self {
        let mut queue = nodes;
        queue.sort_by(|one, other| other.cmp(one));
        Self { cluster, rules, now, snapshot, queue, nodes: Vec::new(), findings: BTreeMap::new() }
    }

    /// Number of planned nodes, and number of all nodes.
    pub fn progress(&self) -> (usize, usize) {
        (self.nodes.len(), self.nodes.len() + self.queue.len())
    }

    /// Plans the drain of the next node. Returns whether there are more nodes to plan.
    pub fn step(&mut self, cancellation: &Cancellation) -> bool {
        if let Some(node) = self.queue.pop() {
            self.plan(node, cancellation);
        }
        !self.queue.is_empty()
    }

    /// Ends the audit: computes what would help against each cause.
    pub fn finish(self) -> DrainAudit {
        let Self { cluster, rules, now, nodes, findings, .. } = self;
        let mut findings: Vec<Finding> = findings.into_values().collect();
        for finding in &mut findings {
            let fixes = fix::fixes(finding, &cluster, &rules, now);
            if !fixes.is_empty() {
                finding.fixes = fixes;
            }
        }
        let mut audit = DrainAudit { nodes, findings };
        audit.arrange();
        audit
    }

    fn plan(&mut self, name: NodeName, cancellation: &Cancellation) {
        let Some(node) = self.cluster.node(&name).cloned() else { return };
        let lease = self
            .snapshot
            .take()
            .map(|snapshot| SnapshotLease { snapshot: Some(snapshot), since: Vec::new() });
        let options = DrainOptions {
            ignore_daemonsets: true,
            force: true,
            delete_emptydir_data: true,
            retry: Retry::OnRecovery,
            ..DrainOptions::default()
        };
        let job = PlanJob {
            action: Action::Drain { nodes: vec![name.clone()], options },
            cluster: self.cluster.clone(),
            rules: self.rules,
            snapshot: lease,
            now: self.now,
        };
        let result = job.work_until(cancellation);
        self.snapshot = result.snapshot;
        let mut audited = AuditedNode {
            zone: node.zone(),
            pool: node.pool().cloned(),
            needs: needed_flags(&self.cluster, &name, &self.rules, self.now),
            node: name,
            prospect: Prospect::Unknown,
            takes: None,
            totals: PlanTotals::default(),
            gaps: Gaps::default(),
            findings: Vec::new(),
            has_left_out: false,
        };
        match result.plan {
            Ok(plan) => {
                audited.prospect = plan.prospect();
                audited.takes = plan.totals.ends.likely.map(|end| end.since(plan.made));
                audited.totals = plan.totals;
                audited.gaps = plan.undecided();
                let found = causes::find(&plan, &self.cluster, self.snapshot.as_ref());
                for found in found {
                    let key = FindingKey::new(&found);
                    match self.findings.get_mut(&key) {
                        Some(finding) => finding.absorb(found),
                        None => drop(self.findings.insert(key, found)),
                    }
                }
            }
            Err(PlanError::Unknown(gaps)) => audited.gaps = gaps,
            // No node or pod can be missing, because the node was taken from this copy of the cluster.
            Err(PlanError::NoSuchNode { .. } | PlanError::NoSuchPod { .. }) => return,
        }
        self.nodes.push(audited);
    }
}

/// Returns the flags that a drain of the node needs to start, except `--ignore-daemonsets`, which every drain needs.
fn needed_flags(
    cluster: &Cluster,
    node: &NodeName,
    rules: &EvictionRules,
    now: Timestamp,
) -> BTreeSet<DrainFlag> {
    let options = DrainOptions { ignore_daemonsets: true, ..DrainOptions::default() };
    let screen = |pod: &Arc<Pod>| filter::screen(cluster, pod, &options, rules, now);
    cluster.pods_on(node).flat_map(|pod| screen(pod).needs()).collect()
}

impl Model {
    /// Starts an audit of all nodes for which `selects` returns true.
    pub fn audit(
        &self,
        selects: impl Fn(&NodeName) -> bool,
        snapshot: Option<Snapshot>,
        now: Timestamp,
    ) -> AuditWork {
        let nodes =
            self.cluster.nodes().iter().map(|node| node.name.clone()).filter(|name| selects(name)).collect();
        AuditWork::new(self.cluster.clone(), nodes, snapshot, EvictionRules::from(&self.settings), now)
    }
}
