//! Access to objects as JSON: metadata, strings, conditions.

use serde_json::{Map, Value, json};

/// Returns the metadata of an object. Creates the metadata if it is missing or is not a JSON object.
pub fn metadata(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    let metadata = &mut value["metadata"];
    if !metadata.is_object() {
        *metadata = Value::Object(Map::new());
    }
    metadata.as_object_mut().expect("made an object above")
}

/// Returns the string at `pointer`; an empty string if there is no string.
pub fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Sets a condition in an object's status. An existing condition of the same type is replaced.
pub fn set_condition(object: &mut Value, condition: Value) {
    if !object["status"]["conditions"].is_array() {
        object["status"]["conditions"] = json!([]);
    }
    let conditions = object["status"]["conditions"].as_array_mut().expect("made a list above");
    match conditions.iter_mut().find(|old| old["type"] == condition["type"]) {
        Some(old) => *old = condition,
        None => conditions.push(condition),
    }
}
