//! Field selectors over nodes and pods.

use super::{names::NodeName, node::Node, pod::Pod};

/// A field selector in kubectl's notation: `spec.nodeName=n1,status.phase!=Running`. All terms must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector {
    terms: Vec<FieldTerm>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct FieldTerm {
    field: Field,
    value: String,
    relation: Relation,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    Equal,
    Different,
}

/// A field of nodes or pods that both kordon and the API server support in field selectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Name,
    Namespace,
    NodeName,
    Phase,
    NominatedNodeName,
    Unschedulable,
}

/// Error for a text that is not a valid field selector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadFieldSelector {
    #[error("invalid selector: {0:?}; can't understand it: write FIELD=VALUE or FIELD!=VALUE")]
    Term(String),
    #[error("field label not supported: {field}: {objects} are selected by {known}")]
    Field { field: String, objects: &'static str, known: String },
}

impl Field {
    const OF_NODES: [Self; 2] = [Self::Name, Self::Unschedulable];
    const OF_PODS: [Self; 5] =
        [Self::Name, Self::Namespace, Self::NodeName, Self::Phase, Self::NominatedNodeName];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Name => "metadata.name",
            Self::Namespace => "metadata.namespace",
            Self::NodeName => "spec.nodeName",
            Self::Phase => "status.phase",
            Self::NominatedNodeName => "status.nominatedNodeName",
            Self::Unschedulable => "spec.unschedulable",
        }
    }
}

impl FieldSelector {
    /// Parses a selector over nodes.
    ///
    /// # Errors
    /// The text is not a field selector, or it has a field by which nodes cannot be selected.
    pub fn for_nodes(text: &str) -> Result<Self, BadFieldSelector> {
        Self::parse(text, "nodes", &Field::OF_NODES)
    }

    /// Parses a selector over pods.
    ///
    /// # Errors
    /// The text is not a field selector, or it has a field by which pods cannot be selected.
    pub fn for_pods(text: &str) -> Result<Self, BadFieldSelector> {
        Self::parse(text, "pods", &Field::OF_PODS)
    }

    fn parse(text: &str, objects: &'static str, known: &[Field]) -> Result<Self, BadFieldSelector> {
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        let term = |part: &str| {
            let split =
                |operator, relation| part.split_once(operator).map(|(name, value)| (name, value, relation));
            let split = split("!=", Relation::Different)
                .or_else(|| split("==", Relation::Equal))
                .or_else(|| split("=", Relation::Equal));
            let (name, value, relation) = split.ok_or_else(|| BadFieldSelector::Term(part.into()))?;
            let field = known.iter().find(|field| field.as_str() == name.trim());
            let field = field.ok_or_else(|| BadFieldSelector::Field {
                field: name.trim().into(),
                objects,
                known: known.iter().map(|field| field.as_str()).collect::<Vec<_>>().join(", "),
            })?;
            Ok(FieldTerm { field: *field, value: value.trim().to_owned(), relation })
        };
        Ok(Self { terms: parts.map(term).collect::<Result<_, _>>()? })
    }

    /// Whether a pod meets all terms of the selector.
    pub fn selects_pod(&self, pod: &Pod) -> bool {
        self.holds(|field| match field {
            Field::Name => &pod.key.name,
            Field::Namespace => &pod.key.namespace,
            Field::NodeName => pod.node.as_deref().map_or("", |node| node),
            Field::Phase => pod.phase.as_str(),
            Field::NominatedNodeName => pod.nominated.as_deref().map_or("", |node| node),
            Field::Unschedulable => "",
        })
    }

    /// Whether a node meets all terms of the selector.
    pub fn selects_node(&self, node: &Node) -> bool {
        self.holds(|field| match field {
            Field::Name => &node.name,
            Field::Unschedulable if node.unschedulable => "true",
            Field::Unschedulable => "false",
            Field::Namespace | Field::NodeName | Field::Phase | Field::NominatedNodeName => "",
        })
    }

    /// The node that all selected pods are bound to; none if the selector does not name one.
    pub fn node_of_pods(&self) -> Option<NodeName> {
        let is_node = |term: &&FieldTerm| {
            term.field == Field::NodeName && term.relation == Relation::Equal && !term.value.is_empty()
        };
        self.terms.iter().find(is_node).map(|term| term.value.as_str().into())
    }

    fn holds<'a>(&self, value: impl Fn(Field) -> &'a str) -> bool {
        self.terms.iter().all(|term| {
            let is_equal = value(term.field) == term.value;
            is_equal == (term.relation == Relation::Equal)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{Key, Phase};

    #[test]
    fn pods_are_selected_by_the_fields_that_are_known_of_them() {
        let pod = Pod {
            key: Key::new("web", "a"),
            node: Some("n1".into()),
            phase: Phase::Failed,
            ..Pod::default()
        };
        let selects = |text: &str| FieldSelector::for_pods(text).expect(text).selects_pod(&pod);
        for text in ["", "status.phase=Failed", "spec.nodeName==n1,metadata.namespace!=kube-system"] {
            assert!(selects(text), "{text}");
        }
        for text in ["status.phase!=Failed", "spec.nodeName=", "metadata.name=b", "metadata.name!=a"] {
            assert!(!selects(text), "{text}");
        }
        let node = |text: &str| FieldSelector::for_pods(text).expect(text).node_of_pods();
        assert_eq!((node("spec.nodeName=n1"), node("spec.nodeName!=n1")), (Some("n1".into()), None));
    }

    #[test]
    fn a_field_that_objects_are_not_selected_by_is_named() {
        let error = |text: &str| FieldSelector::for_nodes(text).expect_err(text).to_string();
        assert_eq!(
            error("spec.nodeName=n1"),
            "field label not supported: spec.nodeName: nodes are selected by metadata.name, spec.unschedulable"
        );
        assert!(error("metadata.name").starts_with("invalid selector: \"metadata.name\""));
        let cordoned = Node { unschedulable: true, ..Node::default() };
        let selects = |text: &str| FieldSelector::for_nodes(text).expect(text).selects_node(&cordoned);
        assert!(selects("spec.unschedulable=true") && !selects("spec.unschedulable=false"));
    }
}
