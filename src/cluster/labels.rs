//! Labels and the selectors over them.

use std::{collections::BTreeMap, sync::Arc};

use super::names::Name;

/// An object's labels, shared between the objects that have the same ones.
pub type Labels = Arc<BTreeMap<Name, Name>>;

/// A `LabelSelector` (match labels and expressions alike).
///
/// Without requirements it selects everything; an absent selector is an `Option` around it and selects nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    pub requirements: Vec<Requirement>,
}

/// One condition of a selector; all must hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    pub key: Name,
    pub operator: SelectorOperator,
}

/// What a requirement asks of the label's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SelectorOperator {
    In(Vec<Name>),
    /// Also holds where the label is absent.
    NotIn(Vec<Name>),
    Exists,
    DoesNotExist,
    /// An operator that this program does not know: selects nothing.
    Invalid,
}

impl Selector {
    /// Whether all requirements hold (apimachinery `labels.Selector.Matches`).
    pub fn matches(&self, labels: &BTreeMap<Name, Name>) -> bool {
        self.requirements.iter().all(|requirement| requirement.matches(labels))
    }

    /// Whether it has no requirement and so selects everything.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }
}

impl Requirement {
    fn matches(&self, labels: &BTreeMap<Name, Name>) -> bool {
        let value = labels.get(&self.key);
        match &self.operator {
            SelectorOperator::In(values) => value.is_some_and(|value| values.contains(value)),
            SelectorOperator::NotIn(values) => value.is_none_or(|value| !values.contains(value)),
            SelectorOperator::Exists => value.is_some(),
            SelectorOperator::DoesNotExist => value.is_none(),
            SelectorOperator::Invalid => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirements_follow_upstream_on_absent_labels() {
        let labels = BTreeMap::from([(Name::from("app"), Name::from("web"))]);
        let holds = |key: &str, operator| {
            Selector { requirements: vec![Requirement { key: key.into(), operator }] }.matches(&labels)
        };
        assert!(holds("app", SelectorOperator::In(vec!["db".into(), "web".into()])));
        assert!(!holds("tier", SelectorOperator::In(vec!["web".into()])));
        assert!(holds("tier", SelectorOperator::NotIn(vec!["web".into()])));
        assert!(!holds("app", SelectorOperator::NotIn(vec!["web".into()])));
        assert!(holds("app", SelectorOperator::Exists) && holds("tier", SelectorOperator::DoesNotExist));
        assert!(!holds("app", SelectorOperator::Invalid));
        assert!(Selector::default().matches(&labels));
    }
}
