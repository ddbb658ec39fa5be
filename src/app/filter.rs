//! Filters: the text after `/`.

/// All terms of a filter must hold. `key:value` matches a field; any other word matches any text of the row. `!`
/// negates a term. Case does not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    text: String,
    terms: Vec<Term>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Term {
    negated: bool,
    key: Option<String>,
    value: String,
}

/// A row to which a filter can be applied.
pub trait Filterable {
    /// Words of the field with this name; `None` if the row has no such field.
    fn field(&self, key: &str) -> Option<String>;
    /// Calls `found` with each searchable text of the row. Filter words without a key are searched in these texts.
    fn texts(&self, found: &mut dyn FnMut(&str));
}

impl Filter {
    pub const NONE: Self = Self { text: String::new(), terms: Vec::new() };

    pub fn parse(text: &str) -> Self {
        let terms = text.to_lowercase().split_whitespace().filter_map(Term::parse).collect();
        Self { text: text.trim().into(), terms }
    }

    /// The filter's text as it was typed.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    pub fn matches(&self, row: &impl Filterable) -> bool {
        self.terms.iter().all(|term| term.holds(row) != term.negated)
    }
}

impl Term {
    fn parse(word: &str) -> Option<Self> {
        let (negated, word) = word.strip_prefix('!').map_or((false, word), |rest| (true, rest));
        let (key, value) = match word.split_once(':') {
            Some((key, value)) if !key.is_empty() => (Some(key.into()), value),
            _ => (None, word),
        };
        // A term without a value, such as a half-typed `zone:`, is left out of the filter.
        (!value.is_empty()).then(|| Self { negated, key, value: value.into() })
    }

    fn holds(&self, row: &impl Filterable) -> bool {
        if let Some(key) = &self.key {
            return row.field(key).is_some_and(|field| is_one_of(&self.value, &field.to_lowercase()));
        }
        let mut occurs = false;
        row.texts(&mut |text| occurs = occurs || contains(text, &self.value));
        occurs
    }
}

/// Whether a word of the field starts or ends with the value: `a` matches zone `eu-1a`, not `eu-east-1b`.
fn is_one_of(value: &str, field: &str) -> bool {
    field.split_whitespace().any(|word| word.starts_with(value) || word.ends_with(value))
}

/// Whether `text` contains `lower`, ignoring case. `lower` must be in lower case.
fn contains(text: &str, lower: &str) -> bool {
    if text.is_ascii() {
        text.as_bytes().windows(lower.len()).any(|part| part.eq_ignore_ascii_case(lower.as_bytes()))
    } else {
        text.to_lowercase().contains(lower)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Row;

    impl Filterable for Row {
        fn field(&self, key: &str) -> Option<String> {
            match key {
                "zone" => Some("eu/eu-1a".into()),
                "ready" => Some("No Unknown".into()),
                _ => None,
            }
        }
        fn texts(&self, found: &mut dyn FnMut(&str)) {
            found("Node-17");
            found("größe");
        }
    }

    #[test]
    fn every_term_must_hold() {
        let holds = |text: &str| Filter::parse(text).matches(&Row);
        assert!(holds("") && holds("  ") && holds("zone:"), "nothing asked");
        assert!(holds("node") && holds("DE-17") && holds("GRÖ"));
        assert!(holds("zone:a") && holds("zone:eu/") && !holds("zone:b"));
        assert!(holds("ready:no 17") && holds("ready:unknown") && !holds("ready:yes 17"));
        assert!(!holds("colour:red"), "no such field");
        assert!(holds("!zone:b") && !holds("!node") && holds("!colour:red"));
        assert!(!holds("node-18"));
    }
}
