//! Names and values of a filter that no row has, with what was probably meant.

use std::collections::BTreeSet;

use super::{FieldKind, Filter, FilterField, Glob, Term, Test, is_one_of};
use kordon_core::cluster::{Name, Requirement, SelectorOperator, nearest::nearest};

/// Maximum number of values that are named if none is near a value that no row has.
const LISTED: usize = 6;

impl Filter {
    /// What is wrong with a name that is no field of these, and what was probably meant; `None` if all names are fields.
    /// `is_label` says whether a row has a label, or another field, of a name; `labels` returns the labels that rows
    /// have.
    pub fn unknown_field(
        &self,
        fields: &[FilterField],
        is_label: impl Fn(&str) -> bool,
        labels: impl FnOnce() -> BTreeSet<Name>,
    ) -> Option<String> {
        let is_known = |name: &str| fields.iter().any(|field| field.name == name) || is_label(name);
        let unknown = self.terms.iter().find_map(|term| match &term.test {
            Test::Word { field, .. } | Test::Is { field, .. } => Some(field).filter(|field| !is_known(field)),
            Test::Contains(_)
            | Test::Regex(_)
            | Test::Fuzzy(_)
            | Test::Compares { .. }
            | Test::Selects(_) => None,
        })?;
        let fields = fields.iter().filter(|field| field.kind != FieldKind::Selector);
        let names: Vec<&str> = fields.map(|field| field.name).collect();
        let labels = labels();
        let known = names.iter().copied().chain(labels.iter().map(Name::as_str));
        Some(match nearest(unknown, known) {
            Some(meant) if names.contains(&meant) => {
                format!("{unknown} is no field here; did you mean {meant}?")
            }
            Some(meant) => format!("{unknown} is no label of any row; did you mean {meant}?"),
            None => {
                let names = names.join(", ");
                format!("{unknown} is no label of any row and no field; fields are {names}")
            }
        })
    }

    /// What the label selectors of the filter require, as conditions of fields: `zone=b` for `-l zone=b,!spot`.
    pub fn required_labels(&self) -> Self {
        let requirements = self.terms.iter().flat_map(|term| match &term.test {
            Test::Selects(selector) => selector.requirements.as_slice(),
            Test::Contains(_)
            | Test::Regex(_)
            | Test::Fuzzy(_)
            | Test::Word { .. }
            | Test::Is { .. }
            | Test::Compares { .. } => &[],
        });
        let terms = requirements.flat_map(|Requirement { key, operator }| {
            let values: Vec<String> = match operator {
                SelectorOperator::In(values) => values.iter().map(|value| value.to_lowercase()).collect(),
                SelectorOperator::Exists => vec!["*".to_owned()],
                SelectorOperator::NotIn(_) | SelectorOperator::DoesNotExist | SelectorOperator::Invalid => {
                    Vec::new()
                }
            };
            let field = key.to_lowercase();
            values.into_iter().map(move |value| {
                let test = Test::Is { field: field.clone(), value: Glob::new(&value) };
                Term { is_negated: false, test }
            })
        });
        Self { terms: terms.collect(), ..Self::NONE }
    }

    /// What is wrong with a value that no row has, and what was probably meant; `None` if rows have all values.
    /// `words_of` returns the words that rows have in a field or label; `None` if no row has it.
    pub fn unknown_value(&self, words_of: impl Fn(&str) -> Option<BTreeSet<String>>) -> Option<String> {
        self.terms.iter().find_map(|term| {
            let (field, value) = match &term.test {
                Test::Word { field, value } => (field, value),
                Test::Is { field, value: Glob(parts) } => {
                    (field, parts.first().filter(|_| parts.len() == 1)?)
                }
                Test::Contains(_)
                | Test::Regex(_)
                | Test::Fuzzy(_)
                | Test::Compares { .. }
                | Test::Selects(_) => return None,
            };
            let words = words_of(field)?;
            let is_value = |word: &String| match &term.test {
                Test::Word { .. } => is_one_of(value, &word.to_lowercase()),
                _ => word.to_lowercase() == *value,
            };
            if words.is_empty() || words.iter().any(is_value) {
                return None;
            }
            match nearest(value, words.iter().map(String::as_str)) {
                Some(meant) => Some(format!("no {field} is {value}; did you mean {meant}?")),
                // A negated term that excludes nothing is right, unless its value is misspelt.
                None if term.is_negated => None,
                None => {
                    let listed: Vec<&str> = words.iter().take(LISTED).map(String::as_str).collect();
                    let more = if words.len() > LISTED { ", …" } else { "" };
                    Some(format!("no {field} is {value}; there are {}{more}", listed.join(", ")))
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_no_fields_are_recognized() {
        const FIELDS: &[FilterField] = &[
            FilterField { name: "zone", kind: FieldKind::Word },
            FilterField { name: "pods", kind: FieldKind::Number },
            FilterField { name: "-l", kind: FieldKind::Selector },
        ];
        let unknown = |text: &str| {
            let labels = || BTreeSet::from(["pool", "team"].map(Name::from));
            Filter::parse(text).unknown_field(FIELDS, |name| name == "pool", labels).unwrap_or_default()
        };
        assert_eq!(unknown("zone=a x zoen:a"), "zoen is no field here; did you mean zone?");
        assert_eq!(unknown("taem=a"), "taem is no label of any row; did you mean team?");
        assert_eq!(
            unknown("label:pool=a"),
            "label is no label of any row and no field; fields are zone, pods"
        );
        assert_eq!(unknown("zone:x pods>9 word pool:a"), "");
    }

    #[test]
    fn a_value_that_no_row_has_names_the_nearest_one() {
        let words = |name: &str| -> Option<BTreeSet<String>> {
            let words = if name == "state" { &["Silent", "Ready"][..] } else { return None };
            Some(words.iter().map(ToString::to_string).collect())
        };
        let unknown = |text: &str| Filter::parse(text).unknown_value(words).unwrap_or_default();
        assert_eq!(unknown("node state=Silnt"), "no state is silnt; did you mean Silent?");
        assert_eq!(unknown("state!=Redy"), "no state is redy; did you mean Ready?");
        assert_eq!(unknown("state:x"), "no state is x; there are Ready, Silent");
        for known in ["state=silent", "state:sil", "state=S*x", "state!=Evicting", "zone=x", "Silnt"] {
            assert_eq!(unknown(known), "", "{known}");
        }
    }
}
