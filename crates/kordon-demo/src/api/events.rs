//! Events of the core group and of events.k8s.io share one storage. They are stored in the form of the core group, from
//! which the form of events.k8s.io is derived.

use serde_json::Value;

/// The newer API group of Events.
pub const GROUP: &str = "events.k8s.io";

/// The fields with different names: first in events.k8s.io, then in the core group.
const FIELDS: &[(&str, &str)] = &[
    ("note", "message"),
    ("regarding", "involvedObject"),
    ("reportingController", "reportingComponent"),
    ("deprecatedCount", "count"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedSource", "source"),
];

/// The stored form of an event from events.k8s.io.
pub fn to_core(event: Value) -> Value {
    rename(event, "v1", |(new, core)| (new, core))
}

/// The events.k8s.io form of a stored event.
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
