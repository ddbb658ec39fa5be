//! Completions of the last word while taints, labels, annotations or a label selector are typed.

use std::collections::{BTreeMap, BTreeSet};

use kordon_core::{
    cluster::{Cluster, Name, NodeName, TaintEffect, UNSCHEDULABLE},
    plan::MetadataField,
};

/// Maximum number of candidates that complete a typed word.
const MOST: usize = 12;

/// Maximum number of values kept for one label or taint key. A key such as hostname has one value per node; nobody
/// types those values.
const VALUES: usize = 50;

const EFFECTS: [TaintEffect; 3] =
    [TaintEffect::NoSchedule, TaintEffect::PreferNoSchedule, TaintEffect::NoExecute];

/// Taint keys that are commonly added by hand.
const TAINTS: [&str; 4] = [
    "dedicated",
    "node.kubernetes.io/out-of-service",
    UNSCHEDULABLE,
    "node-role.kubernetes.io/control-plane",
];

/// Label keys that are commonly added by hand.
const LABELS: [&str; 3] = [
    "node-role.kubernetes.io/worker",
    "node.kubernetes.io/exclude-from-external-load-balancers",
    "node.kubernetes.io/exclude-disruption",
];

/// Annotation keys that are commonly added by hand.
const ANNOTATIONS: [&str; 2] =
    ["cluster-autoscaler.kubernetes.io/scale-down-disabled", "node.alpha.kubernetes.io/ttl"];

/// Words that completion proposes: keys and values in use in the cluster, and words that remove a taint, label or
/// annotation of the plan's nodes.
#[derive(Clone, Debug, Default)]
pub struct Vocabulary {
    keys: BTreeMap<Name, BTreeSet<Name>>,
    /// Words that remove a taint, label or annotation when typed, as in `KEY-`.
    removals: BTreeSet<String>,
    words: Words,
}

/// Kind of text whose words are completed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Words {
    /// Labels or annotations, separated by spaces outside of quotes.
    #[default]
    Metadata,
    /// Taints, separated by spaces. A taint ends with an effect.
    Taints,
    /// Conditions of a label selector, separated by commas.
    Conditions,
}

impl Vocabulary {
    pub fn for_taints(cluster: &Cluster, nodes: &[NodeName]) -> Self {
        let mut words = Self { words: Words::Taints, ..Self::known(&TAINTS) };
        for taint in cluster.nodes().iter().flat_map(|node| &*node.taints) {
            words.add(&taint.key, Some(&taint.value));
        }
        for taint in nodes.iter().filter_map(|name| cluster.node(name)).flat_map(|node| &*node.taints) {
            words.removals.insert(format!("{}:{}-", taint.key, taint.effect));
        }
        words
    }

    /// Words for editing labels or annotations. kordon's own annotations are not proposed, because they cannot be
    /// changed.
    pub fn for_metadata(field: MetadataField, cluster: &Cluster, nodes: &[NodeName]) -> Self {
        let mut words = match field {
            MetadataField::Labels => Self::known(&LABELS),
            MetadataField::Annotations => Self::known(&ANNOTATIONS),
        };
        let entries = |node| field.of_node(node).into_iter().flat_map(|entries| entries.iter());
        let may_change = |key: &Name| field.check_key(key).is_ok();
        for node in cluster.nodes().iter() {
            for (key, value) in entries(node).filter(|(key, _)| may_change(key)) {
                words.add(key, Some(value).filter(|value| is_plain(value)));
            }
        }
        for node in nodes.iter().filter_map(|name| cluster.node(name)) {
            let keys = entries(node).map(|(key, _)| key).filter(|key| may_change(key));
            words.removals.extend(keys.map(|key| format!("{key}-")));
        }
        words
    }

    /// Words for a selector of the pods on these nodes: conditions on the labels of the pods.
    pub fn for_pods(cluster: &Cluster, nodes: &[NodeName]) -> Self {
        let mut words = Self { words: Words::Conditions, ..Self::default() };
        for pod in nodes.iter().flat_map(|node| cluster.pods_on(node)) {
            pod.labels.iter().for_each(|(key, value)| words.add(key, Some(value)));
        }
        words
    }

    fn known(keys: &[&str]) -> Self {
        let keys = keys.iter().map(|key| (Name::from(*key), BTreeSet::new())).collect();
        Self { keys, ..Self::default() }
    }

    fn add(&mut self, key: &Name, value: Option<&Name>) {
        let values = self.keys.entry(key.clone()).or_default();
        if let Some(value) = value.filter(|value| !value.is_empty())
            && values.len() < VALUES
        {
            values.insert(value.clone());
        }
    }

    /// Returns whole words that complete the last word of the text, the likeliest first.
    pub fn candidates(&self, text: &str) -> Vec<String> {
        let word = self.last_word(text);
        let mut found: Vec<String> = match (word.split_once(':'), word.split_once('=')) {
            (Some((head, effect)), _) if self.words == Words::Taints => EFFECTS
                .iter()
                .map(|of| of.as_str())
                .filter(|of| of.starts_with(effect))
                .map(|of| format!("{head}:{of}"))
                .collect(),
            (_, Some((key, value))) => {
                // A condition of a label selector may also have the operator `!=`.
                let sign = if key.ends_with('!') { "!=" } else { "=" };
                self.with_values(key.trim_end_matches('!'), sign, value)
            }
            (_, None) => self.with_keys(word),
        };
        found.retain(|candidate| candidate != word);
        found.truncate(MOST);
        found
    }

    /// Replaces the last word of the text.
    pub fn completed(&self, text: &str, word: &str) -> String {
        let kept = text.len() - self.last_word(text).len();
        format!("{}{word}", &text[..kept])
    }

    fn last_word<'t>(&self, text: &'t str) -> &'t str {
        match self.words {
            Words::Conditions => {
                text.rsplit(',').next().unwrap_or_default().trim_start().trim_start_matches('!')
            }
            Words::Metadata | Words::Taints => {
                // Spaces within quotes belong to the last word.
                let mut quote = None;
                let mut start = 0;
                for (at, letter) in text.char_indices() {
                    match (quote, letter) {
                        (None, '"' | '\'') => quote = Some(letter),
                        (Some(open), letter) if open == letter => quote = None,
                        (None, letter) if letter.is_whitespace() => start = at + letter.len_utf8(),
                        _ => {}
                    }
                }
                &text[start..]
            }
        }
    }

    fn with_values(&self, key: &str, sign: &str, value: &str) -> Vec<String> {
        let values = self.keys.get(key).into_iter().flatten();
        let values =
            values.filter(|known| known.starts_with(value)).map(|known| format!("{key}{sign}{known}"));
        let mut found: Vec<String> = values.collect();
        if self.words == Words::Taints && !value.is_empty() {
            found.extend(EFFECTS.iter().map(|effect| format!("{key}={value}:{effect}")));
        }
        found
    }

    fn with_keys(&self, word: &str) -> Vec<String> {
        let mut found: Vec<String> =
            self.removals.iter().filter(|gone| begins(gone, word)).cloned().collect();
        if self.keys.contains_key(word) {
            if self.words == Words::Taints {
                found.extend(EFFECTS.iter().map(|effect| format!("{word}:{effect}")));
            } else {
                found.extend(self.with_values(word, "=", ""));
            }
        }
        found.extend(self.keys.keys().filter(|key| begins(key, word)).map(ToString::to_string));
        found
    }
}

/// Whether a key, or its name without the prefix, begins with a typed word.
pub(super) fn begins(key: &str, word: &str) -> bool {
    key.starts_with(word) || key.rsplit_once('/').is_some_and(|(_, name)| name.starts_with(word))
}

/// Whether a value can be typed without quotes, and is short enough to be typed again.
fn is_plain(value: &str) -> bool {
    value.len() <= 63
        && value.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_./:=,@+".contains(letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taints() -> Vocabulary {
        let mut words = Vocabulary { words: Words::Taints, ..Vocabulary::known(&TAINTS) };
        words.add(&"dedicated".into(), Some(&"gpu".into()));
        words.removals.insert("dedicated:NoSchedule-".into());
        words
    }

    #[test]
    fn a_word_is_completed_key_first_then_value_then_effect() {
        let words = taints();
        assert_eq!(words.candidates("ded"), ["dedicated:NoSchedule-", "dedicated"]);
        assert_eq!(words.candidates("x-  out-of"), ["node.kubernetes.io/out-of-service"]);
        assert_eq!(words.candidates("dedicated="), ["dedicated=gpu"]);
        assert_eq!(words.candidates("dedicated=gpu")[0], "dedicated=gpu:NoSchedule");
        assert_eq!(words.candidates("dedicated=gpu:NoE"), ["dedicated=gpu:NoExecute"]);
        assert_eq!(words.candidates("dedicated=gpu:NoExecute"), Vec::<String>::new());
        assert!(words.candidates("dedicated").contains(&"dedicated:NoExecute".into()));
        assert!(
            words.candidates("dedicated:NoSchedule ").contains(&"dedicated:NoSchedule-".into()),
            "a new word"
        );
    }

    #[test]
    fn labels_have_values_and_no_effects() {
        let mut words = Vocabulary::known(&LABELS);
        words.add(&"pool".into(), Some(&"blue".into()));
        words.removals.insert("pool-".into());
        assert_eq!(words.candidates("po"), ["pool-", "pool"]);
        assert_eq!(words.candidates("pool"), ["pool-", "pool=blue"]);
        assert_eq!(words.candidates("pool=b"), ["pool=blue"]);
        assert_eq!(words.candidates("größe"), Vec::<String>::new());
    }

    #[test]
    fn only_the_last_word_is_replaced() {
        let words = taints();
        assert_eq!(words.completed("a:NoSchedule de", "dedicated"), "a:NoSchedule dedicated");
        assert_eq!((words.completed("", "x"), words.completed("ä ", "x")), ("x".into(), "ä x".into()));
        assert_eq!(Vocabulary::default().completed("note='a b' ow", "owner"), "note='a b' owner");
    }

    #[test]
    fn spaces_within_quotes_do_not_end_a_word_of_annotations() {
        let mut words = Vocabulary::known(&[]);
        words.add(&"owner".into(), Some(&"alice".into()));
        assert_eq!(words.candidates("note='new disk' ow"), ["owner"]);
        assert_eq!(words.candidates("note='new ow"), Vec::<String>::new());
    }

    #[test]
    fn conditions_of_a_selector_are_completed_by_keys_and_values_of_pods() {
        let mut words = Vocabulary { words: Words::Conditions, ..Vocabulary::default() };
        words.add(&"app".into(), Some(&"web".into()));
        words.add(&"app".into(), Some(&"db".into()));
        words.add(&"tier".into(), Some(&"front".into()));
        assert_eq!(words.candidates("ap"), ["app"]);
        assert_eq!(words.candidates("app=d"), ["app=db"]);
        assert_eq!(words.candidates("app=web, !ti"), ["tier"]);
        assert_eq!(words.completed("app=web, !ti", "tier"), "app=web, !tier");
        assert_eq!(words.candidates("app!=w"), ["app!=web"]);
        assert_eq!(words.candidates("app in (w"), Vec::<String>::new(), "a list is typed by hand");
    }
}
