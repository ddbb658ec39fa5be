//! Events have two groups and one storage: the core group's shape is stored, events.k8s.io's is made of it.

use serde_json::Value;

/// The newer group.
pub const GROUP: &str = "events.k8s.io";

/// The fields that differ: events.k8s.io, core.
const FIELDS: &[(&str, &str)] = &[
    ("note", "message"),
    ("regarding", "involvedObject"),
    ("reportingController", "reportingComponent"),
    ("deprecatedCount", "count"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedSource", "source"),
];

/// The stored shape of an event that came by events.k8s.io.
pub fn to_core(event: Value) -> Value {
    rename(event, "v1", |(new, core)| (new, core))
}

/// The events.k8s.io shape of a stored event.
pub fn from_core(event: Value) -> Value {
    rename(event, "events.k8s.io/v1", |(new, core)| (core, new))
}

fn rename(
    mut event: Value,
    api_version: &str,
    direction: fn((&'static str, &'static str)) -> (&'static str, &'static str),
) -> Value {
    if let Some(fields) = event.as_object_mut() {
        for (from, to) in FIELDS.iter().copied().map(direction) {
            if let Some(value) = fields.remove(from) {
                fields.insert(to.to_owned(), value);
            }
        }
        fields.insert("apiVersion".into(), api_version.into());
    }
    event
}
