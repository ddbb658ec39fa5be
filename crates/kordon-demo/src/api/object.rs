//! A stored object: JSON that is ready to send, protobuf on demand, and the few fields by which lists and watches
//! select objects.

use std::{fmt, sync::OnceLock};

use bytes::Bytes;
use compact_str::{CompactString, ToCompactString};
use serde_json::Value;

use super::{json::metadata, kinds::Kind, protobuf};

/// Namespace and name of an object. The namespace of a cluster-scoped object is empty.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectKey {
    pub namespace: CompactString,
    pub name: CompactString,
}

impl ObjectKey {
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.namespace.is_empty() {
            write!(f, "{}/", self.namespace)?;
        }
        f.write_str(&self.name)
    }
}

/// One version of an object. A stored version never changes.
///
/// The body is encoded once, on write, and every list and watch sends these bytes. The parsed fields are kept small:
/// during a rolling change, 150,000 pods must fit into memory twice.
#[derive(Debug)]
pub struct Stored {
    pub key: ObjectKey,
    /// The revision of the write, which is `metadata.resourceVersion`.
    pub revision: u64,
    /// Keys and values of the labels, sorted by key.
    labels: Box<[(CompactString, CompactString)]>,
    /// The values of the fields in `Kind::selectable`, in the order of that list.
    fields: Box<[CompactString]>,
    pub body: Bytes,
    /// The object as protobuf, encoded on demand; empty if the kind has no protobuf message.
    protobuf: OnceLock<Bytes>,
}

impl Stored {
    /// Encodes `value` as the version of the object with this `revision`.
    pub fn encode(kind: &Kind, key: ObjectKey, revision: u64, mut value: Value) -> Self {
        metadata(&mut value).insert("resourceVersion".into(), revision.to_string().into());
        let labels = value["metadata"]["labels"].as_object().map_or_else(Box::default, |labels| {
            labels.iter().map(|(k, v)| (k.as_str().into(), v.as_str().unwrap_or_default().into())).collect()
        });
        let fields = kind.selectable.iter().map(|(_, pointer)| field(&value, pointer)).collect();
        let body = serde_json::to_vec(&value).expect("a Value has string keys only").into();
        Self { key, revision, labels, fields, body, protobuf: OnceLock::new() }
    }

    /// The object as a JSON value.
    pub fn value(&self) -> Value {
        serde_json::from_slice(&self.body).expect("a body was encoded from a Value")
    }

    /// The object as protobuf.
    pub fn protobuf(&self) -> Bytes {
        self.protobuf.get_or_init(|| protobuf::object(&self.value()).unwrap_or_default()).clone()
    }

    pub fn label(&self, key: &str) -> Option<&str> {
        let at = self.labels.binary_search_by(|(k, _)| k.as_str().cmp(key)).ok()?;
        Some(&self.labels[at].1)
    }

    /// The value of the selectable field at `index` of `Kind::selectable`.
    pub fn field(&self, index: usize) -> &str {
        self.fields.get(index).map_or("", CompactString::as_str)
    }

    /// The approximate size of this version in bytes.
    pub fn size(&self) -> usize {
        self.body.len() + 256
    }
}

fn field(value: &Value, pointer: &str) -> CompactString {
    match value.pointer(pointer) {
        None | Some(Value::Null) => CompactString::default(),
        Some(Value::String(text)) => text.into(),
        Some(other) => other.to_compact_string(),
    }
}
