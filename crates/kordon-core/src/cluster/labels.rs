//! Labels and the selectors over them.

use std::{collections::BTreeMap, fmt, sync::Arc};

use minicbor::{Decode, Decoder, Encode, Encoder, encode::Write};

use super::{
    encoding::{self, EncodingContext},
    names::Name,
};

/// An object's labels or annotations, shared by objects with equal ones. Sorted by key, without duplicate keys.
///
/// For a handful of entries, a list is smaller than a map and faster to search.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Labels(Arc<[(Name, Name)]>);

impl Labels {
    /// Makes labels from a list that is sorted by key, without duplicate keys.
    pub fn sorted(entries: Arc<[(Name, Name)]>) -> Self {
        debug_assert!(entries.is_sorted_by(|(left, _), (right, _)| left < right), "{entries:?}");
        Self(entries)
    }

    /// All labels, sorted by key.
    pub fn entries(&self) -> &[(Name, Name)] {
        &self.0
    }

    pub fn get(&self, key: &str) -> Option<&Name> {
        self.0.iter().find(|(known, _)| *known == *key).map(|(_, value)| value)
    }

    pub fn contains_key(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Name, &Name)> + Clone {
        self.0.iter().map(|(key, value)| (key, value))
    }

    pub fn keys(&self) -> impl ExactSizeIterator<Item = &Name> + Clone {
        self.0.iter().map(|(key, _)| key)
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether both lists share one allocation. Lists in different allocations may still be equal.
    pub fn is_same_list(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<const N: usize> From<[(Name, Name); N]> for Labels {
    fn from(entries: [(Name, Name); N]) -> Self {
        Self::from_iter(entries)
    }
}

impl FromIterator<(Name, Name)> for Labels {
    /// Makes labels from any entries. If several have the same key, the last one wins.
    fn from_iter<T: IntoIterator<Item = (Name, Name)>>(entries: T) -> Self {
        Self(BTreeMap::from_iter(entries).into_iter().collect())
    }
}

impl<C: EncodingContext> Encode<C> for Labels {
    fn encode<W: Write>(
        &self,
        encoder: &mut Encoder<W>,
        context: &mut C,
    ) -> Result<(), minicbor::encode::Error<W::Error>> {
        encoding::shared::encode(&self.0, encoder, context)
    }
}

impl<'b, C: EncodingContext> Decode<'b, C> for Labels {
    /// Sorts the labels by key. A redaction replaces keys by hashes, so redacted labels are not written in order.
    fn decode(decoder: &mut Decoder<'b>, context: &mut C) -> Result<Self, minicbor::decode::Error> {
        let read = |decoder: &mut Decoder<'b>, context: &mut C| {
            let entries = Box::<[(Name, Name)]>::decode(decoder, context)?;
            let is_sorted = entries.is_sorted_by(|(left, _), (right, _)| left < right);
            let sorted: Box<[_]> =
                if is_sorted { entries } else { BTreeMap::from_iter(entries).into_iter().collect() };
            Ok(Arc::from(sorted))
        };
        encoding::shared::decode_with(read, decoder, context).map(Self)
    }
}

/// A `LabelSelector`. Both `matchLabels` and `matchExpressions` are stored as requirements.
///
/// A selector without requirements selects everything; an absent one (`None` of an `Option`) selects nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct Selector {
    #[n(0)]
    pub requirements: Vec<Requirement>,
}

/// One condition of a selector. An object must meet all conditions of the selector.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct Requirement {
    #[n(0)]
    pub key: Name,
    #[n(1)]
    pub operator: SelectorOperator,
}

/// Condition that a requirement sets on the value of its label.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub enum SelectorOperator {
    #[n(0)]
    In(#[n(0)] Vec<Name>),
    /// The label has none of these values, or is absent.
    #[n(1)]
    NotIn(#[n(0)] Vec<Name>),
    #[n(2)]
    Exists,
    #[n(3)]
    DoesNotExist,
    /// An unknown operator: selects nothing.
    #[n(4)]
    Invalid,
}

impl Selector {
    /// Whether an object's labels meet all requirements (apimachinery `labels.Selector.Matches`).
    pub fn matches(&self, labels: &Labels) -> bool {
        self.requirements.iter().all(|requirement| requirement.matches(labels))
    }

    /// Parses kubectl's notation: `app=web,tier!=db,zone in (a,b),!legacy`. An empty text selects everything.
    ///
    /// # Errors
    /// The text is not a selector.
    pub fn parse(text: &str) -> Result<Self, BadSelector> {
        let parts = text.trim();
        if parts.is_empty() {
            return Ok(Self::default());
        }
        let requirements =
            outside_parentheses(parts).into_iter().map(Requirement::parse).collect::<Result<_, _>>()?;
        Ok(Self { requirements })
    }

    /// Whether the selector has an operator that kordon does not know, so that it selects nothing.
    pub fn is_invalid(&self) -> bool {
        self.requirements.iter().any(|requirement| requirement.operator == SelectorOperator::Invalid)
    }

    /// Whether each requirement of this selector is also a requirement of `other`. If so, this selector selects
    /// everything that `other` selects.
    pub fn covers(&self, other: &Self) -> bool {
        self.requirements.iter().all(|requirement| other.requirements.contains(requirement))
    }

    /// Whether the selector has no requirement, and so selects everything.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }
}

impl fmt::Display for Selector {
    /// Formats the selector in kubectl's notation, which [`Selector::parse`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, requirement) in self.requirements.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{requirement}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, operator } = self;
        let words = |values: &[Name]| values.iter().map(Name::as_str).collect::<Vec<_>>().join(",");
        match operator {
            SelectorOperator::In(values) if values.len() == 1 => write!(f, "{key}={}", values[0]),
            SelectorOperator::In(values) => write!(f, "{key} in ({})", words(values)),
            SelectorOperator::NotIn(values) if values.len() == 1 => write!(f, "{key}!={}", values[0]),
            SelectorOperator::NotIn(values) => write!(f, "{key} notin ({})", words(values)),
            SelectorOperator::Exists => write!(f, "{key}"),
            SelectorOperator::DoesNotExist => write!(f, "!{key}"),
            SelectorOperator::Invalid => write!(f, "{key} (invalid)"),
        }
    }
}

/// Error for a text that is not a label selector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is not a label selector such as app=web,tier!=db or zone in (a,b)")]
pub struct BadSelector(pub String);

/// Splits a text at the commas outside of parentheses.
fn outside_parentheses(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0_i32);
    for (index, letter) in text.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&text[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

impl Requirement {
    fn parse(text: &str) -> Result<Self, BadSelector> {
        let bad = || BadSelector(text.trim().to_owned());
        let is_word = |word: &str| {
            word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/'))
        };
        let one = |value: &str| vec![Name::from(value.trim())];
        let (key, operator) = if let Some((key, value)) = text.split_once("!=") {
            (key, SelectorOperator::NotIn(one(value)))
        } else if let Some((key, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
            (key, SelectorOperator::In(one(value)))
        } else if let Some((head, values)) =
            text.trim().strip_suffix(')').and_then(|text| text.split_once('('))
        {
            let values: Vec<Name> = values.split(',').map(|value| Name::from(value.trim())).collect();
            match head.trim().rsplit_once(char::is_whitespace) {
                Some((key, "in")) => (key, SelectorOperator::In(values)),
                Some((key, "notin")) => (key, SelectorOperator::NotIn(values)),
                Some(_) | None => return Err(bad()),
            }
        } else if let Some(key) = text.trim().strip_prefix('!') {
            (key, SelectorOperator::DoesNotExist)
        } else {
            (text, SelectorOperator::Exists)
        };
        let values_are_words = match &operator {
            SelectorOperator::In(values) | SelectorOperator::NotIn(values) => {
                values.iter().all(|value| is_word(value))
            }
            SelectorOperator::Exists | SelectorOperator::DoesNotExist | SelectorOperator::Invalid => true,
        };
        let key = key.trim();
        if key.is_empty() || !is_word(key) || !values_are_words {
            return Err(bad());
        }
        Ok(Self { key: key.into(), operator })
    }

    fn matches(&self, labels: &Labels) -> bool {
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
        let labels = Labels::from_iter([(Name::from("app"), Name::from("web"))]);
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

    #[test]
    fn a_selector_covers_those_with_all_its_requirements_and_more() {
        let covers = |one: &str, other: &str| {
            let [one, other] = [one, other].map(|text| Selector::parse(text).expect("a selector"));
            one.covers(&other)
        };
        assert!(
            covers("app=web", "tier=db,app=web") && covers("", "app=web") && covers("app=web", "app=web")
        );
        assert!(!covers("tier=db,app=web", "app=web") && !covers("app=db", "app=web") && !covers("app", ""));
    }

    #[test]
    fn kubectls_words_are_read() {
        let labels = Labels::from_iter([
            (Name::from("app"), Name::from("web")),
            (Name::from("example.com/tier"), Name::from("front")),
        ]);
        let holds = |text: &str| Selector::parse(text).map(|selector| selector.matches(&labels));
        for yes in [
            "",
            "app",
            "app=web",
            "app == web",
            "app!=db,example.com/tier in (front, back)",
            "!gone",
            "x notin (y)",
        ] {
            assert_eq!(holds(yes), Ok(true), "{yes}");
        }
        for no in ["app=db", "!app", "app notin (web)", "app=web,gone"] {
            assert_eq!(holds(no), Ok(false), "{no}");
        }
        for bad in [",", "app in web", "app=a=b", "app in (a", "a b", "=x", "app>1"] {
            assert!(holds(bad).is_err(), "{bad}");
        }
    }
}
