//! Completions of the last word while taints or labels are typed.

use std::collections::{BTreeMap, BTreeSet};

use kordon_core::cluster::{Cluster, Name, Node, NodeName, TaintEffect};

/// Maximum number of candidates.
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
    "node.kubernetes.io/unschedulable",
    "node-role.kubernetes.io/control-plane",
];

/// Label keys that are commonly added by hand.
const LABELS: [&str; 3] = [
    "node-role.kubernetes.io/worker",
    "node.kubernetes.io/exclude-from-external-load-balancers",
    "node.kubernetes.io/exclude-disruption",
];

/// Keys and values in use in the cluster, and the removals that apply to the plan's nodes.
#[derive(Clone, Debug, Default)]
pub struct Vocabulary {
    keys: BTreeMap<Name, BTreeSet<Name>>,
    /// Words that remove a taint or label.
    removals: BTreeSet<String>,
    /// Whether the words are taints. A taint ends with an effect, a label does not.
    effects: bool,
}

impl Vocabulary {
    pub fn for_taints(cluster: &Cluster, nodes: &[NodeName]) -> Self {
        let mut words = Self { effects: true, ..Self::known(&TAINTS) };
        for taint in cluster.nodes().iter().flat_map(|node| &*node.taints) {
            words.add(&taint.key, &taint.value);
        }
        for taint in nodes.iter().filter_map(|name| cluster.node(name)).flat_map(|node| &*node.taints) {
            words.removals.insert(format!("{}:{}-", taint.key, taint.effect));
        }
        words
    }

    pub fn for_labels(cluster: &Cluster, nodes: &[NodeName]) -> Self {
        let mut words = Self::known(&LABELS);
        let labels = |node: &Node| node.labels.clone();
        for node in cluster.nodes().iter() {
            labels(node).iter().for_each(|(key, value)| words.add(key, value));
        }
        for node in nodes.iter().filter_map(|name| cluster.node(name)) {
            words.removals.extend(node.labels.keys().map(|key| format!("{key}-")));
        }
        words
    }

    fn known(keys: &[&str]) -> Self {
        let keys = keys.iter().map(|key| (Name::from(*key), BTreeSet::new())).collect();
        Self { keys, ..Self::default() }
    }

    fn add(&mut self, key: &Name, value: &Name) {
        let values = self.keys.entry(key.clone()).or_default();
        if !value.is_empty() && values.len() < VALUES {
            values.insert(value.clone());
        }
    }

    /// Returns whole words that complete the last word of the text, the likeliest first.
    pub fn candidates(&self, text: &str) -> Vec<String> {
        let word = last_word(text);
        let mut found: Vec<String> = match (word.split_once(':'), word.split_once('=')) {
            (Some((head, effect)), _) if self.effects => EFFECTS
                .iter()
                .map(|of| of.as_str())
                .filter(|of| of.starts_with(effect))
                .map(|of| format!("{head}:{of}"))
                .collect(),
            (_, Some((key, value))) => self.with_values(key, value),
            (_, None) => self.with_keys(word),
        };
        found.retain(|candidate| candidate != word);
        found.truncate(MOST);
        found
    }

    fn with_values(&self, key: &str, value: &str) -> Vec<String> {
        let values = self.keys.get(key).into_iter().flatten();
        let values = values.filter(|known| known.starts_with(value)).map(|known| format!("{key}={known}"));
        let mut found: Vec<String> = values.collect();
        if self.effects && !value.is_empty() {
            found.extend(EFFECTS.iter().map(|effect| format!("{key}={value}:{effect}")));
        }
        found
    }

    fn with_keys(&self, word: &str) -> Vec<String> {
        // A key also matches by its name without the prefix.
        let begins = |key: &str| {
            key.starts_with(word) || key.rsplit_once('/').is_some_and(|(_, name)| name.starts_with(word))
        };
        let mut found: Vec<String> = self.removals.iter().filter(|gone| begins(gone)).cloned().collect();
        if self.keys.contains_key(word) {
            if self.effects {
                found.extend(EFFECTS.iter().map(|effect| format!("{word}:{effect}")));
            } else {
                found.extend(self.with_values(word, ""));
            }
        }
        found.extend(self.keys.keys().filter(|key| begins(key)).map(ToString::to_string));
        found
    }
}

/// Replaces the last word of the text.
pub fn completed(text: &str, word: &str) -> String {
    let kept = text.len() - last_word(text).len();
    format!("{}{word}", &text[..kept])
}

fn last_word(text: &str) -> &str {
    text.rsplit(char::is_whitespace).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taints() -> Vocabulary {
        let mut words = Vocabulary { effects: true, ..Vocabulary::known(&TAINTS) };
        words.add(&"dedicated".into(), &"gpu".into());
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
        words.add(&"pool".into(), &"blue".into());
        words.removals.insert("pool-".into());
        assert_eq!(words.candidates("po"), ["pool-", "pool"]);
        assert_eq!(words.candidates("pool"), ["pool-", "pool=blue"]);
        assert_eq!(words.candidates("pool=b"), ["pool=blue"]);
        assert_eq!(words.candidates("größe"), Vec::<String>::new());
    }

    #[test]
    fn only_the_last_word_is_replaced() {
        assert_eq!(completed("a:NoSchedule de", "dedicated"), "a:NoSchedule dedicated");
        assert_eq!((completed("", "x"), completed("ä ", "x")), ("x".into(), "ä x".into()));
    }
}
