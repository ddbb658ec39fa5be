//! `metadata.managedFields`, as far as it says who cordoned a node, and when the API server wrote its last heartbeat.
//!
//! Managed fields are larger than the rest of most objects. They are therefore kept unread, and read only from nodes.

use memchr::memmem;
use serde::{Deserialize, Deserializer, de::IgnoredAny};
use serde_json::value::RawValue;

use super::{
    leaf::{LenientList, Text, Time, or_default},
    protobuf::{Fields, Message, NotAMessage, ReadField, WireValue, wire},
};
use kordon_core::cluster::FieldManager;
use kordon_time::ClusterTime;

/// The managed fields of a JSON object, not read yet.
#[derive(Debug, Default)]
pub struct UnreadFields<'a>(Option<&'a RawValue>);

impl<'de: 'a, 'a> Deserialize<'de> for UnreadFields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&RawValue>::deserialize(deserializer).map(Some).map(Self)
    }
}

impl<'a> UnreadFields<'a> {
    /// Returns the entries; none if they cannot be read.
    fn entries(&self) -> LenientList<Entry<'a>> {
        self.0.and_then(|json| serde_json::from_str(json.get()).ok()).unwrap_or_default()
    }
}

/// The managers of a node's fields.
pub struct FieldManagers<'a>(LenientList<Entry<'a>>);

impl<'a> FieldManagers<'a> {
    /// Reads the managers from a node in JSON, or from the metadata of a node in protobuf. One of the two is empty.
    pub fn read(json: &UnreadFields<'a>, metadata: &'a [u8]) -> Self {
        const MANAGED_FIELDS: u64 = 17;
        let (mut entries, mut fields) = (json.entries(), Fields(metadata));
        while let Ok(Some((number, value))) = fields.next() {
            let mut entry = Entry::default();
            if number == MANAGED_FIELDS && entry.read(value).is_ok() {
                entries.0.push(entry);
            }
        }
        Self(entries)
    }

    /// Returns the manager that set `spec.unschedulable`; `None` if none did, or the fields cannot be read.
    pub fn of_unschedulable(&self) -> Option<FieldManager> {
        self.0.iter().find_map(Entry::of_unschedulable)
    }

    /// Returns when the API server last wrote the heartbeat time of Ready; `None` if the fields do not say.
    pub fn heartbeat_written(&self) -> Option<ClusterTime> {
        self.0.iter().filter(|entry| entry.fields.has_heartbeat).filter_map(|entry| entry.time.time()).max()
    }
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

/// The set of fields that a manager owns, as far as it is of interest.
#[derive(Clone, Copy, Debug, Default)]
struct FieldSet {
    /// Whether the manager owns `spec.unschedulable`.
    has_unschedulable: bool,
    /// Whether the manager owns the heartbeat time of the condition Ready.
    has_heartbeat: bool,
}

const UNSCHEDULABLE: &str = "f:unschedulable";
const HEARTBEAT: &str = "f:lastHeartbeatTime";

impl<'de> Deserialize<'de> for FieldSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct OfObject {
            #[serde(rename = "f:spec", deserialize_with = "or_default")]
            spec: OfSpec,
            #[serde(rename = "f:status", deserialize_with = "or_default")]
            status: OfStatus,
        }
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct OfSpec {
            #[serde(rename = "f:unschedulable")]
            unschedulable: Option<IgnoredAny>,
        }
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct OfStatus {
            #[serde(rename = "f:conditions", deserialize_with = "or_default")]
            conditions: OfConditions,
        }
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct OfConditions {
            #[serde(rename = r#"k:{"type":"Ready"}"#, deserialize_with = "or_default")]
            ready: OfCondition,
        }
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct OfCondition {
            #[serde(rename = "f:lastHeartbeatTime")]
            heartbeat: Option<IgnoredAny>,
        }
        let OfObject { spec, status } = OfObject::deserialize(deserializer)?;
        Ok(Self {
            has_unschedulable: spec.unschedulable.is_some(),
            has_heartbeat: status.conditions.ready.heartbeat.is_some(),
        })
    }
}

/// In protobuf, a set of managed fields is JSON within a message.
impl<'a> Message<'a> for FieldSet {
    fn field(&mut self, number: u64, value: WireValue<'a>) -> Result<(), NotAMessage> {
        if let WireValue::Bytes(json) = value
            && number == 1
            && [UNSCHEDULABLE, HEARTBEAT].iter().any(|name| memmem::find(json, name.as_bytes()).is_some())
        {
            *self = serde_json::from_slice(json).unwrap_or_default();
        }
        Ok(())
    }
}
