//! Node selector and required node affinity (NodeAffinity). Each requirement is evaluated once for each value of its
//! label.

use std::sync::Arc;

use super::super::{
    columns::{ABSENT, LabelColumn},
    reason::{FilterRefusal, Reason},
    snapshot::Snapshot,
};
use crate::cluster::{
    SchedulingSpec,
    scheduling::{NodeOperator, NodeRequirement, NodeTerm},
};

/// The node selector and required node affinity of a pod.
#[derive(Clone, Debug)]
pub(in super::super) struct NodeMatch {
    /// Requirements of `nodeSelector`, all of which must hold.
    selector: Vec<LabelTest>,
    /// Terms of the required node affinity, one of which must match; `None` if there is no required node affinity.
    terms: Option<Vec<TermMatch>>,
    names: RequiredNames,
}

/// The nodes that the terms of a node affinity require by name.
#[derive(Clone, Debug, PartialEq, Eq)]
enum RequiredNames {
    Contradictory,
    /// No node name is required: there are no terms, or at least one term requires no node name.
    Any,
    /// Every term requires node names. Contains the indices of the nodes with these names, ascending.
    OneOf(Vec<u32>),
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
            names: RequiredNames::new(snapshot, terms.unwrap_or_default()),
        }
    }

    #[inline]
    pub fn matches(&self, node: u32) -> bool {
        self.selector.iter().all(|test| test.holds(node))
            && self.terms.as_ref().is_none_or(|terms| terms.iter().any(|term| term.matches(node)))
    }

    /// Returns whether the pod has neither a node selector nor a required node affinity.
    pub fn is_empty(&self) -> bool {
        self.selector.is_empty() && self.terms.is_none()
    }

    /// Returns whether the required names contradict each other, so that no node can match.
    pub fn names_contradict(&self) -> bool {
        self.names == RequiredNames::Contradictory
    }

    /// Returns whether each term requires node names. True even if the names contradict each other.
    pub fn requires_names(&self) -> bool {
        self.names != RequiredNames::Any
    }

    /// Refuses a node that the pod's required names exclude. The scheduler does this before it runs any filter.
    #[inline]
    pub fn narrow<R: FilterRefusal>(&self, node: u32) -> Result<(), R> {
        match &self.names {
            RequiredNames::Any => Ok(()),
            RequiredNames::Contradictory => Err(R::unresolvable(&[Reason::NamesContradict])),
            RequiredNames::OneOf(nodes) if nodes.binary_search(&node).is_ok() => Ok(()),
            RequiredNames::OneOf(_) => Err(R::unresolvable(&[Reason::NodeAffinity])),
        }
    }
}

impl RequiredNames {
    fn new(snapshot: &Snapshot, terms: &[NodeTerm]) -> Self {
        if terms.is_empty() {
            return Self::Any;
        }
        let (mut nodes, mut names) = (Vec::new(), 0);
        for term in terms {
            let mut lists = term.fields.iter().filter_map(|requirement| match &requirement.operator {
                NodeOperator::In(names) => Some(names),
                _ => None,
            });
            let Some(first) = lists.next() else { return Self::Any };
            let in_all = lists.fold(first.to_vec(), |mut left, list| {
                left.retain(|name| list.contains(name));
                left
            });
            names += in_all.len();
            nodes.extend(in_all.iter().filter_map(|name| snapshot.number(name)));
        }
        nodes.sort_unstable();
        if names == 0 { Self::Contradictory } else { Self::OneOf(nodes) }
    }
}

/// One term of a node selector.
#[derive(Clone, Debug)]
pub(in super::super) struct TermMatch {
    labels: Vec<LabelTest>,
    names: Vec<NameTest>,
    /// Whether the term can match no node, because it is empty or has an invalid requirement.
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

    #[inline]
    pub fn matches(&self, node: u32) -> bool {
        !self.never
            && self.labels.iter().all(|test| test.holds(node))
            && self.names.iter().all(|test| test.holds(node))
    }
}

/// A requirement on one label. It is evaluated in advance for each value that the label has on any node.
#[derive(Clone, Debug)]
struct LabelTest {
    column: Arc<LabelColumn>,
    /// Whether the requirement holds for each value of the label, indexed by value number.
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

    #[inline]
    fn holds(&self, node: u32) -> bool {
        match self.column.of_node[node as usize] {
            ABSENT => self.holds_without,
            value => self.holds[value as usize],
        }
    }
}

/// A requirement on the node's name.
#[derive(Clone, Debug)]
struct NameTest {
    nodes: Vec<u32>,
    /// True if the requirement holds only for `nodes`; false if it holds only for all other nodes.
    included: bool,
}

impl NameTest {
    fn new(snapshot: &Snapshot, requirement: &NodeRequirement) -> Self {
        let (names, included) = match &requirement.operator {
            NodeOperator::In(names) => (&**names, true),
            NodeOperator::NotIn(names) => (&**names, false),
            _ => ([].as_slice(), true),
        };
        Self { nodes: names.iter().filter_map(|name| snapshot.number(name)).collect(), included }
    }

    #[inline]
    fn holds(&self, node: u32) -> bool {
        self.nodes.contains(&node) == self.included
    }
}
