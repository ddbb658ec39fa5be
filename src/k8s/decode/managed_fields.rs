//! `metadata.managedFields`, as far as it says who cordoned a node.
//!
//! Managed fields are larger than the rest of most objects. They are therefore kept unread, and read only from nodes
//! that are cordoned.

use memchr::memmem;
use serde::{Deserialize, Deserializer, de::IgnoredAny};
use serde_json::value::RawValue;

use super::{
    leaf::{LenientList, Text, Time, or_default},
    protobuf::{Fields, Message, NotAMessage, ReadField, WireValue, wire},
};
use kordon_core::cluster::FieldManager;

/// The managed fields of a JSON object, not read yet.
#[derive(Debug, Default)]
pub struct UnreadFields<'a>(Option<&'a RawValue>);

impl<'de: 'a, 'a> Deserialize<'de> for UnreadFields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&RawValue>::deserialize(deserializer).map(Some).map(Self)
    }
}

impl UnreadFields<'_> {
    /// Returns the manager that set `spec.unschedulable`; `None` if none did, or the fields cannot be read.
    pub fn of_unschedulable(&self) -> Option<FieldManager> {
        let entries: LenientList<Entry<'_>> = serde_json::from_str(self.0?.get()).ok()?;
        entries.iter().find_map(Entry::of_unschedulable)
    }
}

/// Returns the manager that set `spec.unschedulable`, from the metadata of an object in protobuf; `None` if no manager
/// did, or the fields cannot be read.
pub fn of_unschedulable(metadata: &[u8]) -> Option<FieldManager> {
    const MANAGED_FIELDS: u64 = 17;
    let mut fields = Fields(metadata);
    while let Ok(Some((number, value))) = fields.next() {
        if number == MANAGED_FIELDS {
            let mut entry = Entry::default();
            let is_read = entry.read(value).is_ok();
            if let Some(manager) = is_read.then(|| entry.of_unschedulable()).flatten() {
                return Some(manager);
            }
        }
    }
    None
}

wire! {
    /// One of `metadata.managedFields`.
    struct Entry<'a> {
        manager: Text<'a> = 1,
        operation: Text<'a> = 2,
        time: Time<'a> = 4,
        subresource: Text<'a> = 8,
        #[serde(rename = "fieldsV1", deserialize_with = "or_default")]
        fields: FieldSet = 7,
    }
}

/// Names of managers that the API server gives to merged entries. They do not show which client set a field
/// (`capmanagers.go`, `skipnonapplied.go` in apimachinery).
const MERGED: [&str; 2] = ["ancient-changes", "before-first-apply"];

impl Entry<'_> {
    fn of_unschedulable(&self) -> Option<FieldManager> {
        let is_named = !self.manager.is_empty() && !MERGED.contains(&&*self.manager);
        (self.fields.has_unschedulable && self.subresource.is_empty() && is_named).then(|| FieldManager {
            manager: (*self.manager).into(),
            applied: *self.operation == *"Apply",
            at: self.time.time(),
        })
    }
}

/// The set of fields that a manager owns. Only `spec.unschedulable` is of interest.
#[derive(Clone, Copy, Debug, Default)]
struct FieldSet {
    /// Whether the manager owns `spec.unschedulable`.
    has_unschedulable: bool,
}

const UNSCHEDULABLE: &str = "f:unschedulable";

impl<'de> Deserialize<'de> for FieldSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct OfObject {
            #[serde(rename = "f:spec", deserialize_with = "or_default")]
            spec: OfSpec,
        }
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct OfSpec {
            #[serde(rename = "f:unschedulable")]
            unschedulable: Option<IgnoredAny>,
        }
        let OfObject { spec } = OfObject::deserialize(deserializer)?;
        Ok(Self { has_unschedulable: spec.unschedulable.is_some() })
    }
}

/// In protobuf, a set of managed fields is JSON within a message.
impl<'a> Message<'a> for FieldSet {
    fn field(&mut self, number: u64, value: WireValue<'a>) -> Result<(), NotAMessage> {
        if let WireValue::Bytes(json) = value
            && number == 1
            && memmem::find(json, UNSCHEDULABLE.as_bytes()).is_some()
        {
            *self = serde_json::from_slice(json).unwrap_or_default();
        }
        Ok(())
    }
}
