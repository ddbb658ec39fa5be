//! Rows of the nodes pane: nodes, or groups of nodes with a header line each.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use crate::model::{Model, NodeState};
use kordon_core::cluster::{Node, NodeName, nearest::nearest};

/// Property by which nodes are grouped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Grouping {
    #[default]
    None,
    Zone,
    /// Node pool, as a label of the node names it.
    Pool,
    Role,
    Label(String),
}

impl Grouping {
    /// Parses a grouping: `zone`, `pool`, `role`, or the key of a label. An empty text means no grouping.
    pub fn parse(word: &str) -> Self {
        match word {
            "" => Self::None,
            "zone" => Self::Zone,
            "pool" => Self::Pool,
            "role" => Self::Role,
            label => Self::Label(label.to_owned()),
        }
    }

    /// Checks a grouping while the labels of nodes are not known. A name that is near no other grouping is taken for a
    /// label.
    ///
    /// # Errors
    /// The name is near another grouping, which was probably meant.
    pub fn check(word: &str) -> Result<(), String> {
        let Self::Label(label) = Self::parse(word) else { return Ok(()) };
        match nearest(&label, [Self::Zone, Self::Pool, Self::Role].iter().map(Self::as_str)) {
            Some(meant) => Err(format!("nodes are not grouped by {label}; did you mean {meant}?")),
            None => Ok(()),
        }
    }

    /// The grouping that the next key press selects.
    pub const fn next(&self) -> Self {
        match self {
            Self::None => Self::Zone,
            Self::Zone => Self::Pool,
            Self::Pool => Self::Role,
            Self::Role | Self::Label(_) => Self::None,
        }
    }

    pub const fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }

    pub fn as_str(&self) -> &str {
        match self {
            Self::None => "nothing",
            Self::Zone => "zone",
            Self::Pool => "pool",
            Self::Role => "role",
            Self::Label(label) => label,
        }
    }

    /// Name of a node's group.
    fn group(&self, node: &Node) -> String {
        let name = match self {
            Self::None => None,
            Self::Zone => Some(node.zone().short()),
            Self::Pool => node.pool().map(ToString::to_string),
            Self::Role => Some(node.roles().collect::<Vec<_>>().join(",")),
            Self::Label(label) => node.label(label).map(ToString::to_string),
        };
        name.filter(|name| !name.is_empty()).unwrap_or_else(|| format!("no {}", self.as_str()))
    }
}

/// A row of the nodes pane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeRow {
    Group(String),
    Node(NodeName),
}

impl NodeRow {
    pub const fn node(&self) -> Option<&NodeName> {
        match self {
            Self::Node(node) => Some(node),
            Self::Group(_) => None,
        }
    }
}

impl fmt::Display for NodeRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Group(group) => f.write_str(group),
            Self::Node(node) => f.write_str(node),
        }
    }
}

/// The groups of the nodes that pass the filter.
#[derive(Clone, Debug, Default)]
pub struct NodeGroups {
    grouping: Grouping,
    folded: BTreeSet<String>,
    groups: BTreeMap<String, NodeGroup>,
    /// Value of [`Revision::moves`](crate::model::Revision::moves) when pods were last counted.
    counted: Option<u64>,
}

/// The nodes of a group.
#[derive(Clone, Debug, Default)]
pub struct NodeGroup {
    /// Nodes in the order of the list.
    pub nodes: Vec<NodeName>,
    /// Number of nodes in each state, the most urgent state first; states without nodes are left out.
    pub counts: BTreeMap<NodeState, usize>,
    /// Number of pods on the nodes.
    pub pods: usize,
}

/// Sort order of the groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupOrder {
    /// Groups are sorted by their most urgent node.
    Urgency,
    Name,
}

impl NodeGroups {
    pub const fn grouping(&self) -> &Grouping {
        &self.grouping
    }

    pub fn get(&self, group: &str) -> Option<&NodeGroup> {
        self.groups.get(group)
    }

    /// Number of nodes in all groups.
    pub fn node_count(&self) -> usize {
        self.groups.values().map(|group| group.nodes.len()).sum()
    }

    pub fn is_folded(&self, group: &str) -> bool {
        self.folded.contains(group)
    }

    /// The group of a listed node.
    pub fn group_of(&self, node: &NodeName) -> Option<&String> {
        self.groups.iter().find(|(_, group)| group.nodes.contains(node)).map(|(name, _)| name)
    }

    /// Changes the grouping and unfolds every group.
    pub(super) fn group_by(&mut self, grouping: Grouping) {
        *self = Self { grouping, ..Self::default() };
    }

    /// Folds a group, or unfolds it if it is folded.
    pub(super) fn toggle(&mut self, group: &str) {
        if !self.folded.remove(group) {
            self.folded.insert(group.to_owned());
        }
    }

    /// Folds all groups, or unfolds them if all are folded.
    pub(super) fn toggle_all(&mut self) {
        if self.groups.keys().all(|group| self.folded.contains(group)) {
            self.folded.clear();
        } else {
            self.folded.extend(self.groups.keys().cloned());
        }
    }

    /// Returns the rows for these nodes. Nodes keep their order within their group.
    pub(super) fn arrange(&mut self, nodes: Vec<NodeName>, shown: &Model, order: GroupOrder) -> Vec<NodeRow> {
        self.groups.clear();
        self.counted = None;
        if self.grouping.is_none() {
            return nodes.into_iter().map(NodeRow::Node).collect();
        }
        for name in nodes {
            let Some(node) = shown.cluster.node(&name) else { continue };
            let group = self.groups.entry(self.grouping.group(node)).or_default();
            if let Some(state) = shown.watchlist.state(&name) {
                *group.counts.entry(state).or_default() += 1;
            }
            group.nodes.push(name);
        }
        let mut groups: Vec<(&String, &NodeGroup)> = self.groups.iter().collect();
        if order == GroupOrder::Urgency {
            groups.sort_by_key(|(_, group)| group.counts.keys().next().copied());
        }
        let mut rows = Vec::new();
        for (name, group) in groups {
            rows.push(NodeRow::Group(name.clone()));
            if !self.folded.contains(name) {
                rows.extend(group.nodes.iter().cloned().map(NodeRow::Node));
            }
        }
        rows
    }

    /// Counts the pods of each group again if pods came or went.
    pub(super) fn count_pods(&mut self, shown: &Model) {
        let moves = shown.views.revision.moves;
        if self.grouping.is_none() || self.counted.replace(moves) == Some(moves) {
            return;
        }
        for group in self.groups.values_mut() {
            group.pods = group.nodes.iter().map(|node| shown.cluster.load(node).unfinished()).sum();
        }
    }
}

/// Index of the first of the Ready nodes that stand together at the end of the rows.
pub(super) fn ready_from(rows: &[NodeRow], shown: &Model) -> usize {
    let state = |row: &NodeRow| shown.watchlist.state(row.node()?);
    rows.iter().rposition(|row| state(row) != Some(NodeState::Ready)).map_or(0, |last| last + 1)
}
