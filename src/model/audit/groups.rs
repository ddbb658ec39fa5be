//! Counts of the audited nodes of a pool or of a zone.

use std::collections::BTreeMap;

use super::{AuditedNode, DrainAudit};
use kordon_core::plan::Prospect;
use kordon_time::Span;

/// Counts of the audited nodes of a group (a pool or a zone). Every node is in exactly one of `drains`, `waits`,
/// `blocked` and `unknown`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditGroup {
    pub nodes: usize,
    /// Nodes that can be drained now, if no other node is drained at the same time.
    pub drains: usize,
    /// Nodes whose drain may never end, or is refused.
    pub waits: usize,
    /// Nodes with a pod that can never leave.
    pub blocked: usize,
    /// Nodes for which the audit has no answer, because objects are unknown.
    pub unknown: usize,
    /// Duration of the longest drain that ends.
    pub longest: Option<Span>,
}

impl AuditGroup {
    fn add(&mut self, node: &AuditedNode) {
        self.nodes += 1;
        match node.prospect {
            Prospect::Completes => self.drains += 1,
            Prospect::Stalls | Prospect::Refused => self.waits += 1,
            Prospect::Blocked => self.blocked += 1,
            Prospect::Unknown => self.unknown += 1,
        }
        if node.drains() {
            self.longest = self.longest.max(node.takes);
        }
    }

    /// The counts in words: `9 of 12 nodes can be drained, 2 are blocked, 1 may never end`.
    pub fn text(&self) -> String {
        let count = |nodes: usize, one: &str, several: &str| match nodes {
            0 => None,
            1 => Some(format!("1 {one}")),
            nodes => Some(format!("{nodes} {several}")),
        };
        let nodes = if self.nodes == 1 { "node" } else { "nodes" };
        let drains = format!("{} of {} {nodes} can be drained", self.drains, self.nodes);
        let rest = [
            count(self.blocked, "is blocked", "are blocked"),
            count(self.waits, "may never end", "may never end"),
            count(self.unknown, "is not known", "are not known"),
        ];
        [Some(drains)].into_iter().chain(rest).flatten().collect::<Vec<_>>().join(", ")
    }
}

/// Returns the text for an audit without findings. `unknown` is the number of nodes for which the audit has no answer,
/// `known` the number of findings that were left out.
pub const fn nothing_found(unknown: usize, known: usize) -> &'static str {
    match (unknown, known) {
        (0, 0) => "nothing holds up a drain, and nothing is lost",
        (0, _) => "nothing new",
        (_, 0) => "nothing was found, but not every node has an answer",
        (_, _) => "nothing new was found, but not every node has an answer",
    }
}

impl DrainAudit {
    /// All nodes.
    pub fn total(&self) -> AuditGroup {
        let mut total = AuditGroup::default();
        self.nodes.iter().for_each(|node| total.add(node));
        total
    }

    /// Counts of the nodes of each zone. The zones are named as in the zones pane.
    pub fn zones(&self) -> BTreeMap<String, AuditGroup> {
        self.groups(|node| node.zone.short())
    }

    /// Counts of the nodes of each pool. Nodes without a pool are in the pool with the empty name.
    pub fn pools(&self) -> BTreeMap<String, AuditGroup> {
        self.groups(|node| node.pool.as_ref().map(ToString::to_string).unwrap_or_default())
    }

    fn groups(&self, name: impl Fn(&AuditedNode) -> String) -> BTreeMap<String, AuditGroup> {
        let mut groups: BTreeMap<String, AuditGroup> = BTreeMap::new();
        self.nodes.iter().for_each(|node| groups.entry(name(node)).or_default().add(node));
        groups
    }
}
