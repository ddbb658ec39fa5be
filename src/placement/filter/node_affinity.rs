//! Node selectors and node affinity, worked out over the values of labels (NodeAffinity).

use std::sync::Arc;

use super::super::{
    columns::{ABSENT, LabelColumn},
    reason::{NodeRefusal, Reason},
    snapshot::Snapshot,
};
use crate::cluster::{
    SchedulingSpec,
    scheduling::{NodeOperator, NodeRequirement, NodeTerm},
};

/// What a pod requires of its node.
#[derive(Clone, Debug)]
pub(in super::super) struct NodeMatch {
    /// `nodeSelector`: all must hold.
    selector: Vec<LabelTest>,
    /// One must hold; none where nothing is required.
    terms: Option<Vec<TermMatch>>,
    pinned: Pinned,
}

/// The nodes that a pod insists on by name.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Pinned {
    Nowhere,
    /// Some term insists on no name.
    Free,
    /// Every term insists on names: these, ascending.
    To(Vec<u32>),
}

impl NodeMatch {
    pub fn new(snapshot: &Snapshot, spec: &SchedulingSpec) -> Self {
        let equal = |(key, value): &(crate::cluster::Name, crate::cluster::Name)| {
            LabelTest::new(snapshot, key, &NodeOperator::In([value.clone()].into()))
        };
        let terms = spec.node_affinity.as_deref();
        Self {
            selector: spec.node_selector.iter().map(equal).collect(),
            terms: terms.map(|terms| terms.iter().map(|term| TermMatch::new(snapshot, term)).collect()),
            pinned: Pinned::of(snapshot, terms.unwrap_or_default()),
        }
    }

    pub fn matches(&self, node: u32) -> bool {
        self.selector.iter().all(|test| test.holds(node))
            && self.terms.as_ref().is_none_or(|terms| terms.iter().any(|term| term.matches(node)))
    }

    /// Whether every node matches, for nothing is required.
    pub fn is_empty(&self) -> bool {
        self.selector.is_empty() && self.terms.is_none()
    }

    /// Refuses a node that the pod's names leave out, before any filter is asked.
    pub fn narrow(&self, node: u32) -> Result<(), NodeRefusal> {
        match &self.pinned {
            Pinned::Free => Ok(()),
            Pinned::Nowhere => Err(NodeRefusal::final_word(Reason::NamesContradict)),
            Pinned::To(nodes) if nodes.binary_search(&node).is_ok() => Ok(()),
            Pinned::To(_) => Err(NodeRefusal::final_word(Reason::NodeAffinity)),
        }
    }
}

impl Pinned {
    fn of(snapshot: &Snapshot, terms: &[NodeTerm]) -> Self {
        if terms.is_empty() {
            return Self::Free;
        }
        let (mut nodes, mut names) = (Vec::new(), 0);
        for term in terms {
            let mut lists = term.fields.iter().filter_map(|requirement| match &requirement.operator {
                NodeOperator::In(names) => Some(names),
                _ => None,
            });
            let Some(first) = lists.next() else { return Self::Free };
            let in_all = lists.fold(first.to_vec(), |mut left, list| {
                left.retain(|name| list.contains(name));
                left
            });
            names += in_all.len();
            nodes.extend(in_all.iter().filter_map(|name| snapshot.number(name)));
        }
        nodes.sort_unstable();
        if names == 0 { Self::Nowhere } else { Self::To(nodes) }
    }
}

/// One term of a node selector.
#[derive(Clone, Debug)]
pub(in super::super) struct TermMatch {
    labels: Vec<LabelTest>,
    names: Vec<NameTest>,
    /// It says nothing, or something that cannot be read.
    never: bool,
}

impl TermMatch {
    pub fn new(snapshot: &Snapshot, term: &NodeTerm) -> Self {
        let mut requirements = term.expressions.iter().chain(&term.fields).peekable();
        Self {
            never: requirements.peek().is_none()
                || requirements.any(|requirement| requirement.operator == NodeOperator::Invalid),
            labels: term
                .expressions
                .iter()
                .map(|requirement| LabelTest::new(snapshot, &requirement.key, &requirement.operator))
                .collect(),
            names: term.fields.iter().map(|requirement| NameTest::new(snapshot, requirement)).collect(),
        }
    }

    pub fn matches(&self, node: u32) -> bool {
        !self.never
            && self.labels.iter().all(|test| test.holds(node))
            && self.names.iter().all(|test| test.holds(node))
    }
}

/// A requirement of a label, answered beforehand for each value that any node has.
#[derive(Clone, Debug)]
struct LabelTest {
    column: Arc<LabelColumn>,
    /// By the value's number.
    holds: Vec<bool>,
    holds_without: bool,
}

impl LabelTest {
    fn new(snapshot: &Snapshot, key: &crate::cluster::Name, operator: &NodeOperator) -> Self {
        let column = snapshot.column(key).clone();
        let holds = match operator {
            NodeOperator::In(values) => {
                let mut holds = vec![false; column.values.len()];
                for number in values.iter().filter_map(|value| column.number(value)) {
                    holds[number as usize] = true;
                }
                holds
            }
            _ => column.values.iter().map(|value| operator.holds(value)).collect(),
        };
        Self { column, holds, holds_without: operator.holds_without() }
    }

    fn holds(&self, node: u32) -> bool {
        match self.column.of_node[node as usize] {
            ABSENT => self.holds_without,
            value => self.holds[value as usize],
        }
    }
}

/// A requirement of the node's name.
#[derive(Clone, Debug)]
struct NameTest {
    nodes: Vec<u32>,
    /// Whether the node must be one of them, or none of them.
    wanted: bool,
}

impl NameTest {
    fn new(snapshot: &Snapshot, requirement: &NodeRequirement) -> Self {
        let (names, wanted) = match &requirement.operator {
            NodeOperator::In(names) => (&**names, true),
            NodeOperator::NotIn(names) => (&**names, false),
            _ => ([].as_slice(), true),
        };
        Self { nodes: names.iter().filter_map(|name| snapshot.number(name)).collect(), wanted }
    }

    fn holds(&self, node: u32) -> bool {
        self.nodes.contains(&node) == self.wanted
    }
}
