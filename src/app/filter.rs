//! Filters: the text after `/`.
//!
//! All terms must hold; `!` negates a term. A term is a word that occurs in any text of a row, a
//! `/regular expression/`, a fuzzy word (`~gnrl` finds general), or a test of a field: `zone:a` (a word of the field
//! starts or ends with the value), `state=Silent` and `taint=*NoExecute` (the value equals the field or one of its
//! words, `*` stands for any characters), `!=`, and `<`, `<=`, `>`, `>=` for numbers, shares, amounts and times
//! (`pods>20`, `cpu>80%`, `memory>1Gi`, `age<2h`). A name that is not a field is a label of nodes and pods. Case does
//! not matter, except in an amount, and in a label selector, which follows `-l` as in kubectl (`-l app=web,tier in
//! (a, b),!legacy`).

mod unknown;

use std::{
    fmt,
    sync::{Arc, Mutex},
};

use kordon_core::cluster::{Labels, Selector, nearest::nearest, quantity};
use kordon_time::Span;
use nucleo_matcher::{
    Config, Matcher, Utf32Str,
    pattern::{Atom, AtomKind, CaseMatching, Normalization},
};
use regex::Regex;

use super::filter_conditions::{SELECTOR, words};

/// A filter of the rows of a list. Two filters are equal if their texts are equal.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    text: String,
    terms: Vec<Term>,
    /// Why a term is left out of the filter.
    error: Option<String>,
}

#[derive(Clone, Debug)]
struct Term {
    is_negated: bool,
    test: Test,
}

#[derive(Clone, Debug)]
enum Test {
    /// A text of the row contains this text, which is in lower case.
    Contains(String),
    Regex(Regex),
    Fuzzy(Fuzzy),
    /// A word of the field starts or ends with `value`, which is in lower case.
    Word {
        field: String,
        value: String,
    },
    /// The field or one of its words equals `value`, which is in lower case.
    Is {
        field: String,
        value: Glob,
    },
    Compares {
        field: String,
        relation: Relation,
        /// Every way to read the typed value.
        values: Vec<Measure>,
    },
    /// The label selector selects the row's labels.
    Selects(Selector),
}

/// A fuzzy word: its letters occur in this order.
#[derive(Clone, Debug)]
struct Fuzzy {
    atom: Arc<Atom>,
    /// Matcher of the fuzzy search. Its memory is reused by all comparisons.
    matcher: Arc<Mutex<Matcher>>,
}

/// Pattern as a list of literal parts. Any characters may stand between two parts.
#[derive(Clone, Debug)]
struct Glob(Vec<String>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    Less,
    AtMost,
    Greater,
    AtLeast,
}

/// A value that can be compared.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub enum Measure {
    Number(f64),
    /// A share; 1.0 is 100 %.
    Share(f64),
    /// An amount of a resource in thousandths of a core or byte.
    Amount(i64),
    Time(Span),
}

/// A row to which a filter can be applied.
pub trait Filterable {
    /// Words of the field with this name; `None` if the row has no such field.
    fn field(&self, key: &str) -> Option<String>;
    /// Calls `found` with each searchable text of the row. Filter words without a key are searched in these texts.
    fn texts(&self, found: &mut dyn FnMut(&str));
    /// Value of a field as a number, share or time, for comparisons; `None` if the row has no such field or its value
    /// is not known.
    fn measure(&self, _key: &str) -> Option<Measure> {
        None
    }
    /// Labels of the row's object, for label selectors; `None` if the row has no labels.
    fn labels(&self) -> Option<&Labels> {
        None
    }
}

impl PartialEq for Filter {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Filter {}

impl Filter {
    pub const NONE: Self = Self { text: String::new(), terms: Vec::new(), error: None };

    /// Reads a filter. A term with an error is left out; [`error`](Self::error) says why.
    pub fn parse(text: &str) -> Self {
        let mut filter = Self { text: text.trim().into(), ..Self::NONE };
        for word in words(text) {
            match Term::parse(&word) {
                Ok(term) => filter.terms.extend(term),
                Err(error) => filter.error = filter.error.or(Some(error)),
            }
        }
        filter
    }

    /// Completes the name of the field in the last word, if exactly one field starts with that word. Returns the whole
    /// text.
    pub fn complete(text: &str, fields: &[FilterField]) -> Option<String> {
        let word = name_typed(text);
        let mut meant = fields.iter().filter(|field| !word.is_empty() && field.name.starts_with(word));
        let (Some(field), None) = (meant.next(), meant.next()) else { return None };
        Some(format!("{}{}{}", text.strip_suffix(word)?, field.name, field.kind.sign()))
    }

    /// Names of the fields that start with the last word of a text; empty if that word already has a value.
    pub fn proposals<'a>(text: &str, fields: &'a [FilterField]) -> Vec<&'a str> {
        let word = name_typed(text);
        fields.iter().map(|field| field.name).filter(|name| name.starts_with(word) && *name != word).collect()
    }

    /// Name and value of the last word of a text, if it tests the words of a field: `state=Si`, `zone:`.
    pub fn value_typed(text: &str) -> Option<(&str, &str)> {
        let word = name_typed(text);
        let at = word.find([':', '=']).filter(|_| !word.starts_with(['/', '~']))?;
        let (name, value) = (word[..at].trim_end_matches('!'), &word[at + 1..]);
        let is_name = !name.is_empty() && !name.contains(['<', '>']);
        is_name.then(|| (name, value.strip_prefix('=').unwrap_or(value)))
    }

    /// Each condition as it was typed, with a filter that has all conditions but this one.
    pub fn without_each(&self) -> Vec<(String, Self)> {
        let words = words(&self.text);
        let without = |place: usize| {
            let others = words.iter().enumerate().filter(|(other, _)| *other != place);
            let others: Vec<&str> = others.map(|(_, word)| word.as_str()).collect();
            (words[place].clone(), Self::parse(&others.join(" ")))
        };
        (0..words.len()).map(without).collect()
    }

    /// The filter's text as it was typed.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What is wrong with the filter, if anything: a term that cannot be read, or a comparison or a label selector that
    /// no row of a list with these fields can pass.
    pub fn error(&self, fields: &[FilterField]) -> Option<String> {
        self.error.clone().or_else(|| self.terms.iter().find_map(|term| term.test.error(fields)))
    }

    /// A word that looks like a regular expression, but is searched for as it stands, because no slashes are around it.
    pub fn regex_without_slashes(&self) -> Option<String> {
        const SIGNS: [char; 9] = ['|', '^', '$', '*', '+', '?', '[', '(', '\\'];
        let is_plain =
            |word: &str| matches!(Term::parse(word), Ok(Some(Term { test: Test::Contains(_), .. })));
        let words = words(&self.text);
        let mut plain = words.iter().filter(|word| is_plain(word)).map(|word| word.trim_start_matches('!'));
        plain.find(|word| word.contains(SIGNS) && Regex::new(word).is_ok()).map(str::to_owned)
    }

    /// A label selector as kubectl writes it, whose sign `-l` is missing: `tier in (a, b)`.
    pub fn selector_without_sign(&self) -> Option<&str> {
        let has_list = [" in (", " notin ("].iter().any(|operator| self.text.contains(operator));
        let is_selector = has_list && !self.text.contains("-l ") && Selector::parse(&self.text).is_ok();
        is_selector.then_some(self.text.as_str())
    }

    /// The filter to propose if this one has no match: `zone=b` for the label selector `-l zone=b`, and the fuzzy word
    /// `~gnrl` for the plain word `gnrl`; `None` for other filters.
    pub fn alternative(&self) -> Option<String> {
        let text = self.text.trim();
        if let Some(selector) = text.strip_prefix("-l ") {
            return Some(selector.replace(',', " ").trim().to_owned());
        }
        (self.only_word().is_some() && !text.contains('"')).then(|| format!("~{text}"))
    }

    /// The only condition of the filter, if it is a plain word that is not negated.
    pub fn only_word(&self) -> Option<&str> {
        match &self.terms[..] {
            [Term { is_negated: false, test: Test::Contains(word) }] => Some(word),
            _ => None,
        }
    }

    /// The field of the only condition of the filter, if it is a comparison.
    pub fn only_compared(&self) -> Option<&str> {
        match &self.terms[..] {
            [Term { test: Test::Compares { field, .. }, .. }] => Some(field),
            _ => None,
        }
    }

    /// Whether the rows that match may change merely because time passes, pods come and go, or devices are published.
    pub fn is_volatile(&self) -> bool {
        self.terms.iter().any(|term| match &term.test {
            Test::Compares { .. } => true,
            Test::Word { field, .. } | Test::Is { field, .. } => field == "devices",
            Test::Contains(_) | Test::Regex(_) | Test::Fuzzy(_) | Test::Selects(_) => false,
        })
    }

    pub const fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    pub fn matches(&self, row: &(impl Filterable + ?Sized)) -> bool {
        self.terms.iter().all(|term| term.test.holds(row) != term.is_negated)
    }
}

/// A field by which the rows of a list can be filtered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterField {
    pub name: &'static str,
    pub kind: FieldKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    Word,
    Number,
    Share,
    Amount,
    Time,
    /// Not a field: the sign before a label selector.
    Selector,
}

impl FieldKind {
    /// The sign between the name of a field of this kind and its value.
    pub(super) const fn sign(self) -> &'static str {
        match self {
            Self::Word => ":",
            Self::Number | Self::Share | Self::Amount | Self::Time => ">",
            Self::Selector => " ",
        }
    }

    /// Description of a value of this kind, for errors in comparisons.
    const fn example(self) -> &'static str {
        match self {
            Self::Word => "a word",
            Self::Number => "a number, such as 20",
            Self::Share => "a share, such as 80%",
            Self::Amount => "an amount, such as 300m or 1Gi",
            Self::Time => "a time, such as 2h",
            Self::Selector => "a label selector, such as app=web",
        }
    }
}

impl Measure {
    const fn kind(self) -> FieldKind {
        match self {
            Self::Number(_) => FieldKind::Number,
            Self::Share(_) => FieldKind::Share,
            Self::Amount(_) => FieldKind::Amount,
            Self::Time(_) => FieldKind::Time,
        }
    }

    /// Every way to read a text: `300m` is an amount and a time, `20` a number and an amount.
    fn readings(text: &str) -> Vec<Self> {
        let share = text.strip_suffix('%').and_then(|percent| percent.parse::<f64>().ok());
        let share = share.map(|percent| Self::Share(percent / 100.0));
        let number = text.parse().ok().map(Self::Number);
        let amount = quantity::parse_milli(text).map(Self::Amount);
        let time = humantime::parse_duration(&text.to_lowercase()).ok().map(|time| Self::Time(time.into()));
        [share, number, amount, time].into_iter().flatten().collect()
    }
}

impl fmt::Display for Measure {
    /// Formats the measure as it can be typed in a filter.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Share(share) => write!(f, "{:.0}%", 100.0 * share),
            Self::Amount(milli) if milli % 1000 != 0 => write!(f, "{milli}m"),
            Self::Amount(milli) if milli / 1000 >= MEBI => write!(f, "{}Mi", milli / 1000 / MEBI),
            Self::Amount(milli) => write!(f, "{}", milli / 1000),
            Self::Time(span) => write!(f, "{span}"),
        }
    }
}

/// Number of bytes of `1Mi`.
const MEBI: i64 = 1 << 20;

impl Relation {
    fn holds(self, left: Measure, right: Measure) -> bool {
        left.kind() == right.kind()
            && match self {
                Self::Less => left < right,
                Self::AtMost => left <= right,
                Self::Greater => left > right,
                Self::AtLeast => left >= right,
            }
    }
}

/// The last word of a filter, which may become the name of a field.
pub(super) fn name_typed(text: &str) -> &str {
    text.rsplit(char::is_whitespace).next().unwrap_or_default().trim_start_matches('!')
}

impl Term {
    /// Reads a term. Returns `None` for a term without a value, such as a half-typed `zone:`, which is left out of the
    /// filter.
    fn parse(word: &str) -> Result<Option<Self>, String> {
        if let Some(selector) = word.strip_prefix(SELECTOR) {
            let selector = Selector::parse(selector).map_err(|error| error.to_string())?;
            return Ok(Some(Self { is_negated: false, test: Test::Selects(selector) }));
        }
        let (is_negated, word) = word.strip_prefix('!').map_or((false, word), |rest| (true, rest));
        Ok(Test::parse(word)?.map(|(is_not, test)| Self { is_negated: is_negated != is_not, test }))
    }
}

impl Test {
    /// Reads the test of a term, and whether the test is negated.
    fn parse(word: &str) -> Result<Option<(bool, Self)>, String> {
        if let Some(pattern) = word.strip_prefix('/') {
            let pattern = pattern.strip_suffix('/').unwrap_or(pattern);
            let regex = regex::RegexBuilder::new(pattern).case_insensitive(true).size_limit(1 << 20).build();
            let regex = regex.map_err(|_| format!("/{pattern}/ is not a regular expression"))?;
            return Ok((!pattern.is_empty()).then_some((false, Self::Regex(regex))));
        }
        if let Some(letters) = word.strip_prefix('~') {
            return Ok((!letters.is_empty()).then(|| (false, Self::Fuzzy(Fuzzy::new(letters)))));
        }
        let Some(at) = word.find([':', '=', '<', '>', '!']).filter(|at| *at > 0) else {
            return Ok((!word.is_empty()).then(|| (false, Self::Contains(word.to_lowercase()))));
        };
        let (field, rest) = (word[..at].to_lowercase(), &word[at..]);
        let sign =
            ["!=", "<=", ">=", "==", ":", "=", "<", ">"].into_iter().find(|sign| rest.starts_with(sign));
        let Some(sign) = sign else { return Ok(Some((false, Self::Contains(word.to_lowercase())))) };
        let value = &rest[sign.len()..];
        if value.is_empty() {
            return Ok(None);
        }
        let relation = match sign {
            ":" => return Ok(Some((false, Self::Word { field, value: value.to_lowercase() }))),
            "=" | "==" | "!=" => {
                let value = Glob::new(&value.to_lowercase());
                return Ok(Some((sign == "!=", Self::Is { field, value })));
            }
            "<" => Relation::Less,
            "<=" => Relation::AtMost,
            ">" => Relation::Greater,
            _ => Relation::AtLeast,
        };
        let values = Measure::readings(value);
        if values.is_empty() {
            return Err(format!("{value} is no number, share or time, such as 20, 80% or 2h"));
        }
        // Lists have `mem` in their headings.
        let field = if field == "mem" { "memory".into() } else { field };
        Ok(Some((false, Self::Compares { field, relation, values })))
    }

    /// Why no row of a list with these fields can pass the test.
    fn error(&self, fields: &[FilterField]) -> Option<String> {
        if let Self::Selects(_) = self {
            let has_labels = fields.iter().any(|field| field.kind == FieldKind::Selector);
            return (!has_labels).then(|| "nothing here has labels: -l selects nodes and pods".into());
        }
        let Self::Compares { field, values, .. } = self else { return None };
        let comparable =
            || fields.iter().filter(|field| !matches!(field.kind, FieldKind::Word | FieldKind::Selector));
        match comparable().find(|known| known.name == field) {
            Some(known) if values.iter().any(|value| known.kind == value.kind()) => None,
            Some(known) => Some(format!("{field} is compared with {}", known.kind.example())),
            None => {
                let names: Vec<&str> = comparable().map(|field| field.name).collect();
                Some(match nearest(field, names.iter().copied()) {
                    Some(meant) => format!("{field} cannot be compared; did you mean {meant}?"),
                    None if names.is_empty() => "nothing here can be compared".into(),
                    None => format!("{field} cannot be compared; these can: {}", names.join(", ")),
                })
            }
        }
    }

    fn holds(&self, row: &(impl Filterable + ?Sized)) -> bool {
        let any_text = |holds: &mut dyn FnMut(&str) -> bool| {
            let mut is_found = false;
            row.texts(&mut |text| is_found = is_found || holds(text));
            is_found
        };
        match self {
            Self::Contains(lower) => any_text(&mut |text| contains(text, lower)),
            Self::Regex(regex) => any_text(&mut |text| regex.is_match(text)),
            Self::Fuzzy(fuzzy) => any_text(&mut |text| fuzzy.is_match(text)),
            Self::Word { field, value } => {
                row.field(field).is_some_and(|found| is_one_of(value, &found.to_lowercase()))
            }
            Self::Is { field, value } => row.field(field).is_some_and(|found| {
                let found = found.to_lowercase();
                value.is_match(&found) || found.split_whitespace().any(|word| value.is_match(word))
            }),
            Self::Compares { field, relation, values } => {
                let holds = |found: Measure| values.iter().any(|value| relation.holds(found, *value));
                row.measure(field).is_some_and(holds)
            }
            Self::Selects(selector) => row.labels().is_some_and(|labels| selector.matches(labels)),
        }
    }
}

impl Fuzzy {
    fn new(letters: &str) -> Self {
        let atom = Atom::new(letters, CaseMatching::Ignore, Normalization::Smart, AtomKind::Fuzzy, false);
        Self { atom: Arc::new(atom), matcher: Arc::new(Mutex::new(Matcher::new(Config::DEFAULT))) }
    }

    fn is_match(&self, text: &str) -> bool {
        let mut letters = Vec::new();
        let Ok(mut matcher) = self.matcher.lock() else { return false };
        self.atom.score(Utf32Str::new(text, &mut letters), &mut matcher).is_some()
    }
}

impl Glob {
    fn new(text: &str) -> Self {
        Self(text.split('*').map(str::to_owned).collect())
    }

    fn is_match(&self, text: &str) -> bool {
        let [first, middle @ .., last] = &self.0[..] else {
            return self.0.first().is_some_and(|only| only == text);
        };
        let Some(rest) = text.strip_prefix(first.as_str()) else { return false };
        let Some(mut rest) = rest.strip_suffix(last.as_str()) else { return false };
        middle.iter().all(|part| rest.find(part.as_str()).map(|at| rest = &rest[at + part.len()..]).is_some())
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
    use kordon_core::cluster::Name;

    use super::*;

    /// A row with these labels.
    struct Row(Labels);

    impl Filterable for Row {
        fn field(&self, key: &str) -> Option<String> {
            match key {
                "zone" => Some("eu/eu-1a".into()),
                "ready" => Some("No Unknown".into()),
                "taint" => Some("node.kubernetes.io/unreachable:NoExecute".into()),
                "app" => Some("web".into()),
                _ => None,
            }
        }

        fn texts(&self, found: &mut dyn FnMut(&str)) {
            found("Node-17");
            found("größe");
        }

        fn measure(&self, key: &str) -> Option<Measure> {
            match key {
                "pods" => Some(Measure::Number(20.0)),
                "cpu" => Some(Measure::Share(0.8)),
                "request" => Some(Measure::Amount(300)),
                "age" => Some(Measure::Time(Span::from_secs(3600))),
                _ => None,
            }
        }

        fn labels(&self) -> Option<&Labels> {
            Some(&self.0)
        }
    }

    fn holds(text: &str) -> bool {
        Filter::parse(text).matches(&Row(Labels::from([(Name::from("app"), Name::from("web"))])))
    }

    #[test]
    fn each_condition_can_be_left_out() {
        let filter = Filter::parse("zone:a /x y/ !age<2h");
        let rest: Vec<(String, String)> =
            filter.without_each().into_iter().map(|(word, rest)| (word, rest.text().to_owned())).collect();
        let expected =
            [("zone:a", "/x y/ !age<2h"), ("/x y/", "zone:a !age<2h"), ("!age<2h", "zone:a /x y/")];
        assert_eq!(rest, expected.map(|(word, rest)| (word.to_owned(), rest.to_owned())));
        assert!(Filter::NONE.without_each().is_empty());
    }

    #[test]
    fn every_term_must_hold() {
        assert!(holds("") && holds("  ") && holds("zone:"), "nothing asked");
        assert!(holds("node") && holds("DE-17") && holds("GRÖ"));
        assert!(holds("zone:a") && holds("zone:eu/") && !holds("zone:b"));
        assert!(holds("ready:no 17") && holds("ready:unknown") && !holds("ready:yes 17"));
        assert!(!holds("colour:red"), "no such field");
        assert!(holds("!zone:b") && !holds("!node") && holds("!colour:red"));
        assert!(!holds("node-18"));
    }

    #[test]
    fn a_value_is_whole_or_has_stars() {
        assert!(
            holds("app=web") && !holds("app=we") && holds("app=w*") && holds("app=*e*") && !holds("app=*x*")
        );
        assert!(holds("ready=unknown") && holds("ready=no"), "one of the words");
        assert!(holds("taint=*NoExecute") && !holds("taint=*NoSchedule"));
        assert!(holds("app!=db") && !holds("app!=web") && !holds("!app=web") && holds("!app!=web"));
        assert!(!holds("app=ww") && !holds("app=web*b"), "parts do not overlap");
    }

    #[test]
    fn a_selector_without_its_sign_is_recognized() {
        let selector = |text: &str| Filter::parse(text).selector_without_sign().map(str::to_owned);
        assert_eq!(selector("tier in (a, b)"), Some("tier in (a, b)".into()));
        assert_eq!((selector("-l tier in (a)"), selector("in the (zone")), (None, None));
    }

    #[test]
    fn a_selector_has_fields_and_a_word_its_letters_as_alternative() {
        let alternative = |text: &str| Filter::parse(text).alternative().unwrap_or_default();
        assert_eq!(alternative("-l zone=b,role=etcd"), "zone=b role=etcd");
        assert_eq!(alternative("gnrl"), "~gnrl");
        for text in ["", "~gnrl", "!gnrl", "a b", "zone=b"] {
            assert_eq!(alternative(text), "", "{text}");
        }
    }

    #[test]
    fn the_value_that_is_being_typed_is_found() {
        for (text, typed) in [
            ("a state=Si", Some(("state", "Si"))),
            ("!zone:", Some(("zone", ""))),
            ("app!=w", Some(("app", "w"))),
            ("app==w", Some(("app", "w"))),
            ("taint=dedicated=x:No", Some(("taint", "dedicated=x:No"))),
            ("-l app=w", Some(("app", "w"))),
            ("cpu>=8", None),
            ("/a:b", None),
            ("zone:a ", None),
            ("=a", None),
        ] {
            assert_eq!(Filter::value_typed(text), typed, "{text}");
        }
    }

    #[test]
    fn regular_expressions_and_fuzzy_words_search_all_texts() {
        assert!(holds("/^node-1[0-9]$/") && !holds("/^17/") && holds("!/^17/"));
        assert!(holds("/node-1 ?7/ zone:a"), "a blank within");
        assert!(holds("~nd17") && holds("~NODE") && !holds("~71"));
    }

    #[test]
    fn a_regular_expression_without_slashes_is_recognized() {
        let found = |text: &str| Filter::parse(text).regex_without_slashes();
        assert_eq!(found("a general|spot"), Some("general|spot".into()));
        assert_eq!(found("!^spot"), Some("^spot".into()));
        for other in ["", "node-1.2", "/^a|b/", "taint=*NoExecute", "~a|b", "a(", "-l app in (a)"] {
            assert_eq!(found(other), None, "{other}");
        }
    }

    #[test]
    fn selectors_and_fuzzy_words_are_written_as_in_k9s_too() {
        assert_eq!(words("-l app=web,tier!=db pool"), ["-l app=web,tier!=db", "pool"]);
        assert_eq!(words("a -l app in (x, y), !z b"), ["a", "-l app in (x, y), !z", "b"]);
        assert_eq!(words("-l app == web , tier != db -f n"), ["-l app == web , tier != db", "~n"]);
        assert!(holds("-f nd17") && !holds("-f 71") && holds("-l app=web"));
        assert_eq!(words("node -l"), ["node"], "a selector that is not typed yet");
        assert!(Filter::parse("-l").is_empty());
    }

    #[test]
    fn a_selector_selects_labels_as_kubectl_does() {
        for yes in ["app", "!zone", "app in (db, web)", "zone notin (a)", "app!=db,app", "app=web node"] {
            assert!(holds(&format!("-l {yes}")), "{yes}");
        }
        for no in ["!app", "zone", "app in (db)", "app notin (web)", "app=Web", "app=web nowhere"] {
            assert!(!holds(&format!("-l {no}")), "{no}");
        }
        let rest = Filter::parse("-l app in (a, b) node").without_each();
        let rest: Vec<(&str, &str)> = rest.iter().map(|(word, rest)| (word.as_str(), rest.text())).collect();
        assert_eq!(rest, [("-l app in (a, b)", "node"), ("node", "-l app in (a, b)")]);
    }

    #[test]
    fn measures_are_compared_with_their_own_kind() {
        assert!(
            holds("pods>19")
                && holds("pods>=20")
                && holds("pods<=20")
                && !holds("pods>20")
                && !holds("pods<20")
        );
        assert!(holds("cpu>79.5%") && !holds("cpu>80%") && !holds("cpu>0"), "a share is no number");
        assert!(holds("request>250m") && !holds("request>300m") && holds("request<1Gi request<0.5"));
        assert!(holds("age<2h") && holds("age>30m") && !holds("age<1h") && !holds("memory>0"));
    }

    #[test]
    fn the_name_of_a_field_is_completed_when_one_is_meant() {
        const FIELDS: &[FilterField] = &[
            FilterField { name: "zone", kind: FieldKind::Word },
            FilterField { name: "pods", kind: FieldKind::Number },
            FilterField { name: "pod", kind: FieldKind::Word },
        ];
        let complete = |text| Filter::complete(text, FIELDS);
        assert_eq!(complete("a !z"), Some("a !zone:".into()));
        assert_eq!(complete("pods"), Some("pods>".into()));
        assert_eq!((complete("po"), complete("zone:"), complete("")), (None, None, None));
        assert_eq!(Filter::proposals("x po", FIELDS), ["pods", "pod"]);
        assert_eq!(Filter::proposals("", FIELDS).len(), 3);
        assert!(Filter::proposals("zone:a", FIELDS).is_empty());
    }

    #[test]
    fn errors_say_what_is_wrong_and_leave_the_term_out() {
        const FIELDS: &[FilterField] = &[
            FilterField { name: "zone", kind: FieldKind::Word },
            FilterField { name: "pods", kind: FieldKind::Number },
            FilterField { name: "cpu", kind: FieldKind::Share },
        ];
        let error = |text: &str| Filter::parse(text).error(FIELDS).unwrap_or_default();
        assert_eq!(error("node zone:a pods>20 cpu>80% /a/ ~b"), "");
        assert_eq!(error("/a(/"), "/a(/ is not a regular expression");
        assert_eq!(error("pods>many"), "many is no number, share or time, such as 20, 80% or 2h");
        assert_eq!(error("cpu>80"), "cpu is compared with a share, such as 80%");
        assert_eq!(error("pod>8"), "pod cannot be compared; did you mean pods?");
        assert_eq!(error("x>8"), "x cannot be compared; these can: pods, cpu");
        assert_eq!(error("-l app"), "nothing here has labels: -l selects nodes and pods");
        assert!(error("-l app in web").starts_with("\"app in web\" is not a label selector"));
        let labelled = [FilterField { name: "-l", kind: FieldKind::Selector }];
        assert_eq!(Filter::parse("-l app").error(&labelled), None);
        assert!(holds("/a(/ node"), "the other terms hold");
    }
}
