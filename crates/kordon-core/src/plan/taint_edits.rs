//! Edits of taints in kubectl's syntax, and the checks that the API server makes on taints.

use super::syntax;
use crate::cluster::{Name, Node, Taint, TaintEffect};

/// Arguments of kubectl taint.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaintEdits {
    pub add: Vec<Taint>,
    pub remove: Vec<Removal>,
    /// `--overwrite` of kubectl taint: taints that exist may be replaced.
    pub overwrite: bool,
}

/// A taint to remove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removal {
    pub key: Name,
    /// Effect of the taint; `None` removes the taints of all effects.
    pub effect: Option<TaintEffect>,
}

/// An invalid edit of taints. The error text is kubectl's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TaintError {
    #[error("invalid taint effect: {0}, unsupported taint effect")]
    Effect(String),
    #[error("invalid taint spec: {0}")]
    Spec(String),
    #[error("invalid taint spec: {0}, {1}")]
    Invalid(String, String),
    #[error("unknown taint spec: {0}")]
    Unknown(String),
    #[error("duplicated taints with the same key and effect: {0}")]
    Duplicate(String),
    #[error("can not both modify and remove the following taint(s) in the same command: {0}")]
    Conflict(String),
    #[error("at least one taint update is required")]
    Nothing,
}

impl TaintEdits {
    /// Returns whether an argument is a taint edit. Otherwise it is the name of a node.
    pub fn is_word(word: &str) -> bool {
        word.contains(['=', ':']) || word.ends_with('-')
    }

    /// Returns whether the edits include NoExecute taints, so that they may change which pods are evicted.
    pub fn may_evict(&self) -> bool {
        self.adds_no_execute()
            || self
                .remove
                .iter()
                .any(|removal| removal.effect.is_none_or(|effect| effect == TaintEffect::NoExecute))
    }

    /// Returns whether the edits add NoExecute taints.
    pub fn adds_no_execute(&self) -> bool {
        self.add.iter().any(|taint| taint.effect == TaintEffect::NoExecute)
    }

    /// Parses kubectl's arguments: `key=value:effect`, `key:effect`, `key:effect-`, `key-`.
    ///
    /// # Errors
    /// An argument is invalid, or two arguments contradict each other.
    pub fn parse<'a>(words: impl IntoIterator<Item = &'a str>, overwrite: bool) -> Result<Self, TaintError> {
        let mut edits = Self { overwrite, ..Self::default() };
        for word in words {
            if let Some(removed) = word.strip_suffix('-') {
                let (key, _, effect) = parts(removed)?;
                edits.remove.push(Removal { key, effect });
            } else if word.contains(':') {
                let (key, value, effect) = parts(word)?;
                let effect = effect.ok_or_else(|| TaintError::Unknown(word.into()))?;
                if edits.add.iter().any(|taint| taint.is(&key, effect)) {
                    return Err(TaintError::Duplicate(format!("{{{key} {value} {effect} <nil>}}")));
                }
                edits.add.push(Taint { key, value, effect, time_added: None });
            } else {
                return Err(TaintError::Unknown(word.into()));
            }
        }
        if edits.add.is_empty() && edits.remove.is_empty() {
            return Err(TaintError::Nothing);
        }
        match edits.conflicts() {
            conflicts if conflicts.is_empty() => Ok(edits),
            conflicts => Err(TaintError::Conflict(conflicts.join(","))),
        }
    }

    fn conflicts(&self) -> Vec<String> {
        let clashes = |taint: &Taint, removal: &Removal| {
            taint.key == removal.key && removal.effect.is_none_or(|effect| effect == taint.effect)
        };
        let pairs = self
            .add
            .iter()
            .flat_map(|taint| self.remove.iter().filter(move |removal| clashes(taint, removal)));
        let shown =
            |removal: &Removal| format!("{}={}", removal.key, removal.effect.map_or("", TaintEffect::as_str));
        pairs.map(shown).collect()
    }

    /// Returns the taints that the node has after the edits: first the added taints in the order of the command, then
    /// the others.
    ///
    /// # Errors
    /// A taint to add exists and may not be overwritten, or a taint to remove does not exist. The text is kubectl's.
    pub fn over(&self, node: &Node) -> Result<Vec<Taint>, String> {
        if !self.overwrite {
            let there = |taint: &&Taint| node.taints.iter().any(|old| old.is(&taint.key, taint.effect));
            let there: Vec<&str> = self.add.iter().filter(there).map(|taint| taint.key.as_str()).collect();
            if !there.is_empty() {
                let (node, there) = (&node.name, there.join(","));
                return Err(format!(
                    "node {node} already has {there} taint(s) with same effect(s) and --overwrite is false"
                ));
            }
        }
        let mut taints = self.add.clone();
        let is_new = |old: &&Taint| !self.add.iter().any(|taint| taint.is(&old.key, old.effect));
        taints.extend(node.taints.iter().filter(is_new).cloned());
        let mut missing = Vec::new();
        for Removal { key, effect } in &self.remove {
            let before = taints.len();
            taints.retain(|taint| taint.key != *key || effect.is_some_and(|effect| effect != taint.effect));
            if taints.len() == before {
                let effect = effect.map_or(String::new(), |effect| format!(":{effect}"));
                missing.push(format!("taint \"{key}{effect}\" not found"));
            }
        }
        if missing.is_empty() { Ok(taints) } else { Err(missing.join(", ")) }
    }

    /// Returns the word with which kubectl reports the result: `modified`, `tainted` or `untainted`.
    pub fn word(&self, before: &[Taint]) -> &'static str {
        let is_new = |taint: &Taint| !before.iter().any(|old| old.is(&taint.key, taint.effect));
        let added = self.add.iter().any(is_new);
        if self.overwrite || (added && !self.remove.is_empty()) {
            "modified"
        } else if added {
            "tainted"
        } else {
            "untainted"
        }
    }
}

/// Splits a taint into key, value and effect (kubectl `parseTaint`).
fn parts(spec: &str) -> Result<(Name, Name, Option<TaintEffect>), TaintError> {
    let mut halves = spec.split(':');
    let (left, effect, more) = (halves.next().unwrap_or_default(), halves.next(), halves.next());
    if more.is_some() {
        return Err(TaintError::Spec(spec.into()));
    }
    let effect = match effect.map(|text| (text, TaintEffect::parse(text))) {
        None => None,
        Some((text, TaintEffect::Invalid)) => return Err(TaintError::Effect(text.into())),
        Some((_, effect)) => Some(effect),
    };
    let (key, value) = match effect {
        None => (left, ""),
        Some(_) => match left.split_once('=') {
            Some((_, value)) if value.contains('=') => return Err(TaintError::Spec(spec.into())),
            Some(pair) => pair,
            None => (left, ""),
        },
    };
    let invalid = |fault| TaintError::Invalid(spec.into(), fault);
    syntax::value(value).map_err(invalid)?;
    syntax::key(key).map_err(invalid)?;
    Ok((key.into(), value.into(), effect))
}

/// Returns all faults that the API server finds in the taints of a node. Each fault has the field and a description.
pub fn validate(taints: &[Taint]) -> Vec<(String, String)> {
    let mut faults = Vec::new();
    for (place, taint) in taints.iter().enumerate() {
        let mut fault = |field: &str, text: String| {
            faults.push((format!("metadata.taints[{place}]{field}"), text));
        };
        if let Err(text) = syntax::key(&taint.key) {
            fault(".key", text);
        }
        if let Err(text) = syntax::value(&taint.value) {
            fault(".value", text);
        }
        if taint.effect == TaintEffect::Invalid {
            let supported = r#"supported values: "NoSchedule", "PreferNoSchedule", "NoExecute""#;
            fault(".effect", format!("Unsupported value: {supported}"));
        }
        if taints[..place].iter().any(|before| before.is(&taint.key, taint.effect)) {
            fault("", "taints must be unique by key and effect pair".into());
        }
    }
    faults
}
