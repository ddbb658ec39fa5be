//! Encodes JSON objects as protobuf.

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use serde_json::{Map, Value};

use super::{
    MAGIC,
    decode::{FieldValue, fields},
    envelope, message_of,
    messages::{Field, Form, MessageType, Messages, ValueType},
};
use kordon_time::Timestamp;

/// Field numbers of the messages that are not in the table of messages.
mod number {
    pub const LIST_ITEM: u64 = 2;
    pub const EVENT_TYPE: u64 = 1;
    pub const EVENT_OBJECT: u64 = 2;
    pub const RAW: u64 = 1;
    pub const KEY: u64 = 1;
    pub const VALUE: u64 = 2;
}

/// Encodes an object with its envelope; None if its kind has no message.
pub fn object(value: &Value) -> Option<Bytes> {
    let text = |field: &str| value[field].as_str().unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let raw = plain(message_of(api_version, kind)?, value);
    let mut body = head(api_version, kind, raw.len());
    body.extend_from_slice(&raw);
    Some(body.into())
}

/// Encodes the envelope and the metadata of a list. The caller adds the items ([`list_item`]). `items` is the total
/// size of the items, including their tags.
pub fn list_head(api_version: &str, kind: &str, metadata: &Value, items: usize) -> Bytes {
    let mut start = Vec::new();
    let message = Messages::all().named("ListMeta").expect("it is in the table");
    put_bytes(&mut start, 1, &plain(message, metadata));
    let mut body = head(api_version, kind, start.len() + items);
    body.extend_from_slice(&start);
    body.into()
}

/// Returns an item of a list: the tag with the length, and the encoded object without its envelope.
pub fn list_item(object: &Bytes) -> [Bytes; 2] {
    let raw = object.slice_ref(without_envelope(object));
    let mut tag = Vec::new();
    put_tag(&mut tag, number::LIST_ITEM, WIRE_BYTES);
    put_varint(&mut tag, raw.len() as u64);
    [tag.into(), raw]
}

/// Encodes a watch event of type `what` about an encoded object.
pub fn frame(what: &str, object: &[u8]) -> Bytes {
    let mut raw = Vec::with_capacity(object.len() + 8);
    put_bytes(&mut raw, number::RAW, object);
    let mut event = Vec::with_capacity(raw.len() + 24);
    put_bytes(&mut event, number::EVENT_TYPE, what.as_bytes());
    put_bytes(&mut event, number::EVENT_OBJECT, &raw);
    let length = u32::try_from(event.len()).expect("an object has less than four gigabytes");
    [&length.to_be_bytes()[..], &event].concat().into()
}

/// Encodes the magic bytes and the envelope of an object of this length.
fn head(api_version: &str, kind: &str, raw: usize) -> Vec<u8> {
    let mut meta = Vec::new();
    put_bytes(&mut meta, envelope::API_VERSION, api_version.as_bytes());
    put_bytes(&mut meta, envelope::KIND, kind.as_bytes());
    let mut head = MAGIC.to_vec();
    put_bytes(&mut head, envelope::TYPE, &meta);
    put_tag(&mut head, envelope::RAW, WIRE_BYTES);
    put_varint(&mut head, raw as u64);
    head
}

fn without_envelope(object: &[u8]) -> &[u8] {
    let fields = object.strip_prefix(MAGIC).map(fields).into_iter().flatten();
    let raw = fields.flatten().find_map(|field| match field {
        (envelope::RAW, FieldValue::Bytes(bytes)) => Some(bytes),
        _ => None,
    });
    raw.unwrap_or_default()
}

fn plain(message: &MessageType, value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    if let Some(object) = value.as_object() {
        put_message(&mut out, message, object);
    }
    out
}

/// Encodes a message. Values of the wrong type are left out.
fn put_message(out: &mut Vec<u8>, message: &MessageType, object: &Map<String, Value>) {
    for field in &message.fields {
        if field.form == Form::Inline {
            if let ValueType::Message(name) = field.value
                && let Some(inner) = Messages::all().named(name)
            {
                let mut bytes = Vec::new();
                put_message(&mut bytes, inner, object);
                put_bytes(out, field.number, &bytes);
            }
        } else if let Some(value) = object.get(field.name) {
            put_field(out, field, value);
        }
    }
}

fn put_field(out: &mut Vec<u8>, field: &Field, value: &Value) {
    match (field.form, value) {
        (Form::Single | Form::Inline, value) => put_value(out, field.number, field.value, value),
        (Form::List, Value::Array(items)) => {
            items.iter().for_each(|item| put_value(out, field.number, field.value, item));
        }
        (Form::Map, Value::Object(entries)) => {
            for (key, value) in entries {
                let mut entry = Vec::new();
                put_bytes(&mut entry, number::KEY, key.as_bytes());
                put_value(&mut entry, number::VALUE, field.value, value);
                put_bytes(out, field.number, &entry);
            }
        }
        (Form::List | Form::Map, _) => {}
    }
}

fn put_value(out: &mut Vec<u8>, number: u64, of: ValueType, value: &Value) {
    let time = || value.as_str().and_then(Timestamp::parse);
    match (of, value) {
        (_, Value::Null) => {}
        (ValueType::Text, Value::String(text)) => put_bytes(out, number, text.as_bytes()),
        (ValueType::Int, Value::Number(int)) => {
            if let Some(int) = int.as_i64() {
                put_int(out, number, int);
            }
        }
        (ValueType::Bool, Value::Bool(flag)) => put_int(out, number, i64::from(*flag)),
        (ValueType::Bytes, Value::String(text)) => {
            if let Ok(bytes) = BASE64_STANDARD.decode(text) {
                put_bytes(out, number, &bytes);
            }
        }
        (ValueType::Time, Value::String(_)) => {
            if let Some(at) = time() {
                put_time(out, number, at.utc().timestamp(), 0);
            }
        }
        (ValueType::MicroTime, Value::String(_)) => {
            if let Some(at) = time() {
                put_time(out, number, at.utc().timestamp(), at.utc().timestamp_subsec_micros());
            }
        }
        (ValueType::Quantity, Value::String(text)) => put_text_message(out, number, text),
        (ValueType::Quantity, Value::Number(amount)) => put_text_message(out, number, &amount.to_string()),
        (ValueType::IntOrText, Value::Number(int)) => {
            if let Some(int) = int.as_i64() {
                let mut message = Vec::new();
                put_int(&mut message, 1, 0);
                put_int(&mut message, 2, int);
                put_bytes(out, number, &message);
            }
        }
        (ValueType::IntOrText, Value::String(text)) => {
            let mut message = Vec::new();
            put_int(&mut message, 1, 1);
            put_bytes(&mut message, 3, text.as_bytes());
            put_bytes(out, number, &message);
        }
        (ValueType::Json, value) => put_text_message(out, number, &value.to_string()),
        (ValueType::Message(name), Value::Object(object)) => {
            if let Some(message) = Messages::all().named(name) {
                let mut bytes = Vec::new();
                put_message(&mut bytes, message, object);
                put_bytes(out, number, &bytes);
            }
        }
        (
            ValueType::Text
            | ValueType::Int
            | ValueType::Bool
            | ValueType::Bytes
            | ValueType::Time
            | ValueType::MicroTime
            | ValueType::Quantity
            | ValueType::IntOrText
            | ValueType::Message(_),
            _,
        ) => {}
    }
}

fn put_time(out: &mut Vec<u8>, number: u64, seconds: i64, micros: u32) {
    let mut message = Vec::new();
    put_int(&mut message, 1, seconds);
    put_int(&mut message, 2, i64::from(micros) * 1000);
    put_bytes(out, number, &message);
}

/// Encodes a message with this text as its first field.
fn put_text_message(out: &mut Vec<u8>, number: u64, text: &str) {
    let mut message = Vec::new();
    put_bytes(&mut message, 1, text.as_bytes());
    put_bytes(out, number, &message);
}

/// Wire type of numbers.
const WIRE_INT: u64 = 0;
/// Wire type of bytes with a length.
const WIRE_BYTES: u64 = 2;

fn put_tag(out: &mut Vec<u8>, number: u64, wire: u64) {
    put_varint(out, number << 3 | wire);
}

fn put_int(out: &mut Vec<u8>, number: u64, int: i64) {
    put_tag(out, number, WIRE_INT);
    put_varint(out, int.cast_unsigned());
}

fn put_bytes(out: &mut Vec<u8>, number: u64, bytes: &[u8]) {
    put_tag(out, number, WIRE_BYTES);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    loop {
        let [low, ..] = value.to_le_bytes();
        value >>= 7;
        if value == 0 {
            return out.push(low & 0x7f);
        }
        out.push(low | 0x80);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::protobuf::decode;

    #[test]
    fn what_is_encoded_is_decoded_again() {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "p", "namespace": "d", "creationTimestamp": "2026-01-01T00:00:05Z", "generation": 3,
                "labels": {"app": "web", "empty": ""}, "managedFields": [{"manager": "k", "fieldsV1": {"f:spec": {}}}]},
            "spec": {"nodeName": "n", "hostNetwork": false, "priority": -5,
                "volumes": [{"name": "a", "emptyDir": {"sizeLimit": "1Gi"}}, {"name": "b", "configMap": {"name": "c"}}],
                "containers": [{"name": "c", "resources": {"limits": {"cpu": "2", "memory": "1Gi"}},
                    "livenessProbe": {"httpGet": {"path": "/", "port": 80}, "periodSeconds": 10}},
                    {"name": "s", "livenessProbe": {"tcpSocket": {"port": "web"}}}]},
            "status": {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:09Z"}]}
        });
        let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "n"},
            "spec": {"renewTime": "2026-01-01T00:00:05.123456Z", "leaseDurationSeconds": 40}});
        for object_before in [pod, lease] {
            let body = object(&object_before).expect("it has a message");
            assert_eq!(decode(&body), Ok(object_before));
        }
    }

    #[test]
    fn what_has_no_message_or_the_wrong_type_is_left_out() {
        assert_eq!(object(&json!({"apiVersion": "metrics.k8s.io/v1beta1", "kind": "NodeMetrics"})), None);
        let odd =
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": 5, "labels": [1], "uid": "u"}});
        let read = decode(&object(&odd).expect("a pod")).expect("protobuf");
        assert_eq!(read["metadata"], json!({"uid": "u"}));
    }
}
