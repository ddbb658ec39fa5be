//! Label and field selectors.

use super::{
    kinds::Kind,
    object::{ObjectKey, Stored},
    refusal::Refusal,
};

/// The objects that a list, a watch or a collection delete selects.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// The namespace; empty for all namespaces.
    pub namespace: String,
    labels: Vec<Requirement>,
    fields: Vec<FieldTerm>,
}

impl Selection {
    /// Parses the two selectors of a request.
    pub fn parse(kind: &Kind, namespace: &str, labels: &str, fields: &str) -> Result<Self, Refusal> {
        Ok(Self {
            namespace: namespace.to_owned(),
            labels: parse_labels(labels)?,
            fields: parse_fields(kind, fields)?,
        })
    }

    pub fn matches(&self, object: &Stored) -> bool {
        (self.namespace.is_empty() || self.namespace == object.key.namespace)
            && self.fields.iter().all(|term| term.matches(object))
            && self.labels.iter().all(|requirement| requirement.matches(object.label(&requirement.key)))
    }

    /// Restricts the selection to the object of this name, for a watch of a single object.
    pub fn only(mut self, name: &str) -> Self {
        self.fields.push(FieldTerm { field: Field::Name, value: name.to_owned(), equal: true });
        self
    }

    /// Returns the key of the only object that can match; None if the selection does not name an object.
    pub fn key(&self) -> Option<ObjectKey> {
        let name = self.fields.iter().find(|term| term.field == Field::Name && term.equal)?;
        (!self.namespace.is_empty()).then(|| ObjectKey::new(&self.namespace, &name.value))
    }

    /// Whether the selection has no label or field selectors.
    pub fn is_everything(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }
}

#[derive(Clone, Debug)]
struct Requirement {
    key: String,
    test: Test,
}

#[derive(Clone, Debug)]
enum Test {
    Exists,
    Absent,
    In(Vec<String>),
    /// The label's value is not in the list. Objects without the label match too.
    NotIn(Vec<String>),
    Above(i64),
    Below(i64),
}

impl Requirement {
    fn matches(&self, value: Option<&str>) -> bool {
        let number = || value.and_then(|v| v.parse::<i64>().ok());
        match &self.test {
            Test::Exists => value.is_some(),
            Test::Absent => value.is_none(),
            Test::In(values) => value.is_some_and(|v| values.iter().any(|w| w == v)),
            Test::NotIn(values) => value.is_none_or(|v| values.iter().all(|w| w != v)),
            Test::Above(bound) => number().is_some_and(|n| n > *bound),
            Test::Below(bound) => number().is_some_and(|n| n < *bound),
        }
    }
}

/// Whether a `LabelSelector` in an object matches a set of labels. Null matches no labels, and an empty selector
/// matches all. Returns None for an invalid selector.
pub fn label_selector_matches(
    selector: &serde_json::Value,
    label: impl Fn(&str) -> Option<String>,
) -> Option<bool> {
    let Some(selector) = selector.as_object() else { return Some(false) };
    let pairs = selector.get("matchLabels").and_then(|m| m.as_object());
    let mut matched = pairs.into_iter().flatten().all(|(key, value)| label(key).as_deref() == value.as_str());
    let expressions = selector.get("matchExpressions").and_then(|e| e.as_array());
    for expression in expressions.into_iter().flatten() {
        let key = expression["key"].as_str()?.to_owned();
        let values: Vec<String> = expression["values"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|v| v.as_str().map(str::to_owned))
            .collect();
        let test = match expression["operator"].as_str()? {
            "In" if !values.is_empty() => Test::In(values),
            "NotIn" if !values.is_empty() => Test::NotIn(values),
            "Exists" => Test::Exists,
            "DoesNotExist" => Test::Absent,
            _ => return None,
        };
        matched &= Requirement { test, key: key.clone() }.matches(label(&key).as_deref());
    }
    Some(matched)
}

fn parse_labels(text: &str) -> Result<Vec<Requirement>, Refusal> {
    split_outside_parentheses(text).map(parse_requirement).collect()
}

fn parse_requirement(text: &str) -> Result<Requirement, Refusal> {
    let wrong = || Refusal::bad_request(format!("unable to parse requirement: {text:?}"));
    let requirement = |key: &str, test| {
        let key = key.trim();
        let fits = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
        if key.is_empty() || !key.chars().all(fits) {
            return Err(wrong());
        }
        Ok(Requirement { key: key.to_owned(), test })
    };
    if let Some(key) = text.strip_prefix('!') {
        return requirement(key, Test::Absent);
    }
    if let Some((left, values)) = text.split_once('(') {
        let values = values.trim_end().strip_suffix(')').ok_or_else(wrong)?;
        let values = values.split(',').map(|v| v.trim().to_owned()).collect();
        let mut words = left.split_whitespace();
        let (Some(key), Some(operator), None) = (words.next(), words.next(), words.next()) else {
            return Err(wrong());
        };
        return match operator {
            "in" => requirement(key, Test::In(values)),
            "notin" => requirement(key, Test::NotIn(values)),
            _ => Err(wrong()),
        };
    }
    let one = |value: &str| vec![value.trim().to_owned()];
    if let Some((key, value)) = text.split_once("!=") {
        return requirement(key, Test::NotIn(one(value)));
    }
    if let Some((key, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
        return requirement(key, Test::In(one(value)));
    }
    if let Some((key, bound)) = text.split_once('>') {
        return requirement(key, Test::Above(bound.trim().parse().map_err(|_| wrong())?));
    }
    if let Some((key, bound)) = text.split_once('<') {
        return requirement(key, Test::Below(bound.trim().parse().map_err(|_| wrong())?));
    }
    requirement(text, Test::Exists)
}

fn split_outside_parentheses(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_i32;
    text.split(move |c| {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        c == ',' && depth == 0
    })
    .map(str::trim)
    .filter(|part| !part.is_empty())
}

#[derive(Clone, Debug)]
struct FieldTerm {
    field: Field,
    value: String,
    equal: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Name,
    Namespace,
    /// A field of `Kind::selectable`, by index.
    OfKind(usize),
}

impl FieldTerm {
    fn matches(&self, object: &Stored) -> bool {
        let value = match self.field {
            Field::Name => object.key.name.as_str(),
            Field::Namespace => object.key.namespace.as_str(),
            Field::OfKind(index) => object.field(index),
        };
        (value == self.value) == self.equal
    }
}

fn parse_fields(kind: &Kind, text: &str) -> Result<Vec<FieldTerm>, Refusal> {
    text.split(',').filter(|part| !part.trim().is_empty()).map(|part| parse_field(kind, part)).collect()
}

fn parse_field(kind: &Kind, text: &str) -> Result<FieldTerm, Refusal> {
    let (name, value, equal) = if let Some((name, value)) = text.split_once("!=") {
        (name, value, false)
    } else if let Some((name, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
        (name, value, true)
    } else {
        return Err(Refusal::bad_request(format!("invalid field selector: {text:?}; can't understand it")));
    };
    let field = match name.trim() {
        "metadata.name" => Field::Name,
        "metadata.namespace" => Field::Namespace,
        name => {
            let at = kind.selectable.iter().position(|(known, _)| *known == name);
            Field::OfKind(at.ok_or_else(|| {
                Refusal::bad_request(format!("field label not supported: {name} (resource {})", kind.plural))
            })?)
        }
    };
    Ok(FieldTerm { field, value: value.trim().to_owned(), equal })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::kinds;

    #[test]
    fn label_selectors_select_as_kubernetes_says() {
        for (selector, expected) in [
            ("", true),
            ("a=1", true),
            ("a==1,b", true),
            ("a!=1", false),
            ("missing!=1", true),
            ("a in (0, 1),b notin (x)", true),
            ("a notin (1)", false),
            ("missing in (1)", false),
            ("missing notin (1)", true),
            ("!missing", true),
            ("!a", false),
            ("missing", false),
            ("a>0,a<2", true),
            ("a>1", false),
        ] {
            assert_eq!(select(selector, "").map(|s| s.matches(&pod())), Ok(expected), "{selector}");
        }
    }

    #[test]
    fn field_selectors_know_the_fields_of_their_kind() {
        for (selector, expected) in [
            ("metadata.name=p,metadata.namespace=ns", true),
            ("spec.nodeName=n1", true),
            ("spec.nodeName!=n1", false),
            ("status.phase!=Failed,status.phase!=Succeeded", true),
            ("spec.nodeName=", false),
        ] {
            assert_eq!(select("", selector).map(|s| s.matches(&pod())), Ok(expected), "{selector}");
        }
    }

    #[test]
    fn what_is_not_a_selector_is_refused() {
        for labels in ["a in 1", "a in (1", "a b=1", "=1", "a>x", "%$"] {
            assert_eq!(select(labels, "").map_err(|r| r.code).err(), Some(400), "{labels}");
        }
        for fields in ["spec.colour=red", "metadata.name"] {
            assert_eq!(select("", fields).map_err(|r| r.code).err(), Some(400), "{fields}");
        }
    }

    fn select(labels: &str, fields: &str) -> Result<Selection, Refusal> {
        Selection::parse(kinds::named("pods"), "", labels, fields)
    }

    fn pod() -> Stored {
        let pod = json!({"metadata": {"labels": {"a": "1", "b": "two"}},
            "spec": {"nodeName": "n1"}, "status": {"phase": "Running"}});
        Stored::encode(kinds::named("pods"), ObjectKey::new("ns", "p"), 7, pod)
    }
}
