//! Edits of labels, in kubectl's syntax.

use std::collections::BTreeMap;

use super::syntax;
use crate::cluster::{Labels, Name, Node};

/// Arguments of kubectl label.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelEdits {
    pub set: BTreeMap<Name, Name>,
    pub remove: Vec<Name>,
    /// `--overwrite`.
    pub overwrite: bool,
}

/// An invalid argument. If kubectl rejects the argument too, the text is kubectl's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LabelError {
    #[error("invalid label spec: {0}")]
    Spec(String),
    #[error("unknown label spec: {0}")]
    Unknown(String),
    #[error("invalid label value: \"{0}\": {1}")]
    Value(String, String),
    /// A key with invalid syntax. kubectl sends it anyway, and the server refuses it.
    #[error("invalid label key \"{0}\": {1}")]
    Key(String, String),
    #[error("can not both modify and remove a label in the same command")]
    Conflict,
    #[error("at least one label update is required")]
    Nothing,
}

impl LabelEdits {
    /// Returns whether an argument is a label edit. Otherwise it is the name of a node.
    pub fn is_word(word: &str) -> bool {
        word.contains('=') || word.ends_with('-')
    }

    /// Parses kubectl's arguments: `key=value`, `key-`.
    ///
    /// # Errors
    /// An argument is invalid, or two arguments contradict each other.
    pub fn parse<'a>(words: impl IntoIterator<Item = &'a str>, overwrite: bool) -> Result<Self, LabelError> {
        let mut edits = Self { overwrite, ..Self::default() };
        for word in words {
            if let Some((key, value)) = word.split_once('=') {
                if value.contains('=') {
                    return Err(LabelError::Spec(word.into()));
                }
                syntax::value(value).map_err(|fault| LabelError::Value(word.into(), fault))?;
                syntax::key(key).map_err(|fault| LabelError::Key(key.into(), fault))?;
                edits.set.insert(key.into(), value.into());
            } else if let Some(key) = word.strip_suffix('-') {
                syntax::key(key).map_err(|fault| LabelError::Key(key.into(), fault))?;
                edits.remove.push(key.into());
            } else {
                return Err(LabelError::Unknown(word.into()));
            }
        }
        if edits.set.is_empty() && edits.remove.is_empty() {
            return Err(LabelError::Nothing);
        }
        if edits.remove.iter().any(|key| edits.set.contains_key(key)) {
            return Err(LabelError::Conflict);
        }
        Ok(edits)
    }

    /// Returns the labels that the node has after the edits. Removing a label that does not exist is no error.
    ///
    /// # Errors
    /// A label has another value and may not be overwritten. The text is kubectl's.
    pub fn over(&self, node: &Node) -> Result<Labels, String> {
        let mut labels: BTreeMap<Name, Name> = node.labels.entries().iter().cloned().collect();
        for (key, value) in &self.set {
            match labels.insert(key.clone(), value.clone()) {
                Some(old) if old != *value && !self.overwrite => {
                    return Err(format!("'{key}' already has a value ({old}), and --overwrite is false"));
                }
                Some(_) | None => {}
            }
        }
        for key in &self.remove {
            labels.remove(key);
        }
        Ok(labels.into_iter().collect())
    }
}
