//! Edits of labels and annotations, in kubectl's syntax.

use std::{collections::BTreeMap, fmt};

use super::syntax;
use crate::cluster::{
    Labels, Name, Node,
    claim::{CORDON, DRAIN, DRAINED},
    maintenance_note::MAINTENANCE,
};

/// A map in the metadata of an object, whose entries an operator can change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum MetadataField {
    #[default]
    Labels,
    Annotations,
}

/// Arguments of kubectl label or kubectl annotate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetadataEdits {
    pub field: MetadataField,
    pub set: BTreeMap<Name, Name>,
    pub remove: Vec<Name>,
    /// `--overwrite` of kubectl label or annotate: values that exist may be replaced.
    pub overwrite: bool,
}

/// An invalid edit of labels or annotations. If kubectl rejects the edit too, the error text is kubectl's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MetadataError {
    #[error("invalid label spec: {0}")]
    Spec(String),
    #[error("unknown {one} spec: {1}", one = .0.one())]
    Unknown(MetadataField, String),
    #[error("invalid label value: \"{0}\": {1}")]
    Value(String, String),
    /// The syntax of the key is invalid. kubectl sends such a key, and the server refuses it.
    #[error("invalid {one} key \"{1}\": {2}", one = .0.one())]
    Key(MetadataField, String, String),
    /// kordon keeps its own state in the annotation, so the annotation cannot be edited.
    #[error("annotation \"{key}\" is guarded: it is {meaning}, which only kordon writes")]
    Guarded { key: String, meaning: &'static str },
    #[error("{}", too_large(*.0))]
    Size(usize),
    #[error("can not both modify and remove {article} {one} in the same command", article = .0.article(), one = .0.one())]
    Conflict(MetadataField),
    #[error("at least one {one} update is required", one = .0.one())]
    Nothing(MetadataField),
}

/// Maximum size of all annotations of an object, keys and values, in bytes (apimachinery
/// `TotalAnnotationSizeLimitB`).
pub const MOST_ANNOTATION_BYTES: usize = 256 << 10;

/// Prefix of the annotations in which kordon keeps its own state.
const GUARDED: &str = "kordon.dev/";

impl MetadataField {
    pub const ALL: [Self; 2] = [Self::Labels, Self::Annotations];

    /// Name of the metadata field in the API: `labels` or `annotations`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Labels => "labels",
            Self::Annotations => "annotations",
        }
    }

    /// Word for one entry of the field: `label` or `annotation`.
    pub const fn one(self) -> &'static str {
        match self {
            Self::Labels => "label",
            Self::Annotations => "annotation",
        }
    }

    /// The article before the word of [`MetadataField::one`]: `a` or `an`.
    pub const fn article(self) -> &'static str {
        match self {
            Self::Labels => "a",
            Self::Annotations => "an",
        }
    }

    /// Name of kubectl's and kordon's command that changes labels or annotations.
    pub const fn verb(self) -> &'static str {
        match self {
            Self::Labels => "label",
            Self::Annotations => "annotate",
        }
    }

    /// The labels or annotations of a node; `None` if they are not known.
    pub const fn of_node(self, node: &Node) -> Option<&Labels> {
        match self {
            Self::Labels => Some(&node.labels),
            Self::Annotations => node.annotations.as_ref(),
        }
    }

    /// Parses the name that [`MetadataField::one`] returns.
    pub fn parse(one: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|field| field.one() == one)
    }

    /// Checks the key and the value of a label or annotation that is set.
    fn check(self, word: &str, key: &str, value: &str) -> Result<(), MetadataError> {
        match self {
            Self::Labels if value.contains('=') => return Err(MetadataError::Spec(word.into())),
            Self::Labels => {
                syntax::value(value).map_err(|fault| MetadataError::Value(word.into(), fault))?;
            }
            // The value of an annotation is any text.
            Self::Annotations => {}
        }
        self.check_key(key)
    }

    /// Checks the key of a label or annotation that is set or removed.
    ///
    /// # Errors
    /// The key is not valid, or the annotation is one in which kordon keeps its own state.
    pub fn check_key(self, key: &str) -> Result<(), MetadataError> {
        let checked = match self {
            Self::Labels => syntax::key(key),
            // The server ignores the case of an annotation's key (apimachinery `ValidateAnnotations`).
            Self::Annotations => syntax::key(&key.to_lowercase()),
        };
        checked.map_err(|fault| MetadataError::Key(self, key.into(), fault))?;
        match self {
            Self::Annotations if key.starts_with(GUARDED) => {
                Err(MetadataError::Guarded { key: key.into(), meaning: guarded_meaning(key) })
            }
            Self::Labels | Self::Annotations => Ok(()),
        }
    }
}

impl fmt::Display for MetadataField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Says what kordon keeps in its own annotation with this key.
fn guarded_meaning(key: &str) -> &'static str {
    match key {
        CORDON => "the reason of a cordon",
        DRAIN => "the claim of a drain",
        DRAINED => "the note of the drain that emptied the node",
        MAINTENANCE => "the note of a maintenance",
        _ => "an annotation of kordon's own",
    }
}

impl MetadataEdits {
    /// Returns whether an argument is an edit. Otherwise it is the name of a node.
    pub fn is_word(word: &str) -> bool {
        word.contains('=') || word.ends_with('-')
    }

    /// Parses kubectl's arguments: `key=value`, `key-`.
    ///
    /// # Errors
    /// An argument is invalid, or two arguments contradict each other.
    pub fn parse<'a>(
        field: MetadataField,
        words: impl IntoIterator<Item = &'a str>,
        overwrite: bool,
    ) -> Result<Self, MetadataError> {
        let mut edits = Self { field, overwrite, ..Self::default() };
        for word in words {
            if let Some((key, value)) = word.split_once('=') {
                field.check(word, key, value)?;
                edits.set.insert(key.into(), value.into());
            } else if let Some(key) = word.strip_suffix('-') {
                field.check_key(key)?;
                edits.remove.push(key.into());
            } else {
                return Err(MetadataError::Unknown(field, word.into()));
            }
        }
        if edits.set.is_empty() && edits.remove.is_empty() {
            return Err(MetadataError::Nothing(field));
        }
        if edits.remove.iter().any(|key| edits.set.contains_key(key)) {
            return Err(MetadataError::Conflict(field));
        }
        match field {
            MetadataField::Annotations if size(&edits.set) > MOST_ANNOTATION_BYTES => {
                Err(MetadataError::Size(size(&edits.set)))
            }
            MetadataField::Labels | MetadataField::Annotations => Ok(edits),
        }
    }

    /// Returns the labels or annotations that the node has after the edits. Removing one that does not exist is no
    /// error.
    ///
    /// # Errors
    /// - A label or annotation has another value and may not be overwritten. The text is kubectl's.
    /// - The labels or annotations of the node are not known.
    /// - The annotations would be too large.
    pub fn over(&self, node: &Node) -> Result<Labels, String> {
        let field = self.field;
        let Some(before) = field.of_node(node) else {
            return Err(format!("its {field} are unknown: a recording does not have them"));
        };
        let mut entries: BTreeMap<Name, Name> = before.entries().iter().cloned().collect();
        for (key, value) in &self.set {
            match entries.insert(key.clone(), value.clone()) {
                Some(old) if old != *value && !self.overwrite => {
                    return Err(format!("'{key}' already has a value ({old}), and --overwrite is false"));
                }
                Some(_) | None => {}
            }
        }
        for key in &self.remove {
            entries.remove(key);
        }
        match field {
            MetadataField::Annotations if size(&entries) > MOST_ANNOTATION_BYTES => {
                Err(too_large(size(&entries)))
            }
            MetadataField::Labels | MetadataField::Annotations => Ok(entries.into_iter().collect()),
        }
    }
}

/// Size of annotations as the server counts it: keys and values, in bytes.
fn size(entries: &BTreeMap<Name, Name>) -> usize {
    entries.iter().map(|(key, value)| key.len() + value.len()).sum()
}

fn too_large(size: usize) -> String {
    format!(
        "the annotations would have {size} bytes, and the server takes {MOST_ANNOTATION_BYTES} (256 KiB) at most"
    )
}
