//! Decodes protobuf request bodies to JSON.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Map, Value, json};

use super::{
    MAGIC, envelope, message_of,
    messages::{Field, Form, MessageType, Messages, ValueType},
};
use kordon_time::Timestamp;

/// The reason why a body cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotDecodable {
    /// The body is not Kubernetes protobuf.
    Broken,
    /// The body is an object of this kind, for which the table has no message.
    Unknown(String),
}

/// Decodes a protobuf body.
pub fn decode(body: &[u8]) -> Result<Value, NotDecodable> {
    let (api_version, kind, raw) = body.strip_prefix(MAGIC).and_then(opened).ok_or(NotDecodable::Broken)?;
    let Some(message) = message_of(&api_version, &kind) else { return Err(NotDecodable::Unknown(kind)) };
    let mut object = Map::new();
    read_message(raw, message, &mut object).ok_or(NotDecodable::Broken)?;
    object.insert("apiVersion".into(), api_version.into());
    object.insert("kind".into(), kind.into());
    Ok(Value::Object(object))
}

/// The API version, kind and object of an envelope.
fn opened(bytes: &[u8]) -> Option<(String, String, &[u8])> {
    let (mut api_version, mut kind, mut raw) = (String::new(), String::new(), &[][..]);
    for field in fields(bytes) {
        match field? {
            (envelope::TYPE, FieldValue::Bytes(meta)) => {
                for field in fields(meta) {
                    match field? {
                        (envelope::API_VERSION, FieldValue::Bytes(bytes)) => api_version = text(bytes)?,
                        (envelope::KIND, FieldValue::Bytes(bytes)) => kind = text(bytes)?,
                        _ => {}
                    }
                }
            }
            (envelope::RAW, FieldValue::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    Some((api_version, kind, raw))
}

/// Reads the known fields of a message into an object; None if the message is broken.
fn read_message(bytes: &[u8], message: &MessageType, object: &mut Map<String, Value>) -> Option<()> {
    for field in fields(bytes) {
        let (number, wire) = field?;
        let Some(field) = message.fields.iter().find(|field| field.number == number) else { continue };
        read_field(field, wire, object)?;
    }
    Some(())
}

fn read_field(field: &Field, wire: FieldValue<'_>, object: &mut Map<String, Value>) -> Option<()> {
    match field.form {
        Form::Single => {
            // Go's encoder also writes fields that are empty strings. They mean the same as absent fields.
            if let Some(value) = value(field.value, wire)?.filter(|value| *value != "") {
                object.insert(field.name.into(), value);
            }
        }
        Form::List => {
            let list = object.entry(field.name).or_insert_with(|| json!([]));
            list.as_array_mut()?.extend(value(field.value, wire)?);
        }
        Form::Map => {
            let (mut key, mut of_key) = (String::new(), Value::Null);
            let FieldValue::Bytes(entry) = wire else { return None };
            for part in fields(entry) {
                match part? {
                    (1, FieldValue::Bytes(bytes)) => key = text(bytes)?,
                    (2, wire) => of_key = value(field.value, wire)?.unwrap_or_default(),
                    _ => {}
                }
            }
            if of_key.is_null() && field.value == ValueType::Text {
                of_key = json!("");
            }
            let map = object.entry(field.name).or_insert_with(|| json!({}));
            map.as_object_mut()?.insert(key, of_key);
        }
        Form::Inline => {
            let (FieldValue::Bytes(bytes), ValueType::Message(name)) = (wire, field.value) else {
                return None;
            };
            read_message(bytes, Messages::all().named(name)?, object)?;
        }
    }
    Some(())
}

/// Decodes a protobuf value to JSON. `Some(None)` means that the value is absent. None means that its encoding is
/// broken.
fn value(of: ValueType, wire: FieldValue<'_>) -> Option<Option<Value>> {
    let bytes = match (of, wire) {
        (ValueType::Int, FieldValue::Int(int)) => return Some(Some(int.cast_signed().into())),
        (ValueType::Bool, FieldValue::Int(int)) => return Some(Some((int != 0).into())),
        (ValueType::Int | ValueType::Bool, FieldValue::Bytes(_)) | (_, FieldValue::Int(_)) => return None,
        (_, FieldValue::Bytes(bytes)) => bytes,
    };
    Some(match of {
        ValueType::Int | ValueType::Bool => None,
        ValueType::Text => Some(text(bytes)?.into()),
        ValueType::Bytes => Some(BASE64_STANDARD.encode(bytes).into()),
        ValueType::Time => time(bytes)?.map(|at| at.to_time().into()),
        ValueType::MicroTime => time(bytes)?.map(|at| at.to_micro_time().into()),
        ValueType::Quantity => Some(first_text(bytes)?.into()),
        ValueType::Json => Some(serde_json::from_str(&first_text(bytes)?).ok()?),
        ValueType::IntOrText => Some(int_or_text(bytes)?),
        ValueType::Message(name) => {
            let mut object = Map::new();
            read_message(bytes, Messages::all().named(name)?, &mut object)?;
            Some(object.into())
        }
    })
}

/// Decodes a time. `Some(None)` is the zero time, which is an empty message. None means that the message is broken.
fn time(bytes: &[u8]) -> Option<Option<Timestamp>> {
    let (mut seconds, mut nanos) = (None, 0);
    for field in fields(bytes) {
        match field? {
            (1, FieldValue::Int(int)) => seconds = Some(int.cast_signed()),
            (2, FieldValue::Int(int)) => nanos = int.cast_signed(),
            _ => {}
        }
    }
    Some(
        seconds.map(|seconds| {
            Timestamp::from_nanos(seconds.saturating_mul(1_000_000_000).saturating_add(nanos))
        }),
    )
}

fn first_text(bytes: &[u8]) -> Option<String> {
    for field in fields(bytes) {
        if let (1, FieldValue::Bytes(bytes)) = field? {
            return text(bytes);
        }
    }
    Some(String::new())
}

fn int_or_text(bytes: &[u8]) -> Option<Value> {
    let (mut is_text, mut int, mut words) = (false, 0, String::new());
    for field in fields(bytes) {
        match field? {
            (1, FieldValue::Int(kind)) => is_text = kind == 1,
            (2, FieldValue::Int(value)) => int = value.cast_signed(),
            (3, FieldValue::Bytes(bytes)) => words = text(bytes)?,
            _ => {}
        }
    }
    Some(if is_text { words.into() } else { int.into() })
}

fn text(bytes: &[u8]) -> Option<String> {
    String::from_utf8(bytes.to_vec()).ok()
}

/// The value of a protobuf field, as encoded.
#[derive(Clone, Copy)]
pub(super) enum FieldValue<'a> {
    Int(u64),
    Bytes(&'a [u8]),
}

/// Returns the fields of a message with their numbers. An item is None where the message is broken. Fixed-size numbers
/// are skipped, because no message of the table has such fields.
pub(super) fn fields(mut bytes: &[u8]) -> impl Iterator<Item = Option<(u64, FieldValue<'_>)>> {
    let mut broken = false;
    std::iter::from_fn(move || {
        while !bytes.is_empty() && !broken {
            match field(&mut bytes) {
                Some(Some(found)) => return Some(Some(found)),
                Some(None) => {}
                None => {
                    broken = true;
                    return Some(None);
                }
            }
        }
        None
    })
}

/// Reads the next field. `Some(None)` is a fixed-size number. None means that the message is broken.
fn field<'a>(bytes: &mut &'a [u8]) -> Option<Option<(u64, FieldValue<'a>)>> {
    let tag = varint(bytes)?;
    let (number, length) = match (tag >> 3, tag & 7) {
        (number, 0) => return Some(Some((number, FieldValue::Int(varint(bytes)?)))),
        (_, 1) => (None, 8),
        (number, 2) => (Some(number), varint(bytes)?),
        (_, 5) => (None, 4),
        _ => return None,
    };
    let (taken, rest) = bytes.split_at_checked(usize::try_from(length).ok()?)?;
    *bytes = rest;
    Some(number.map(|number| (number, FieldValue::Bytes(taken))))
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_access_review_is_decoded() {
        let attributes = [text(2, "create"), text(3, ""), text(5, "pods"), text(6, "eviction")].concat();
        let object = [nested(1, &[]), nested(2, &nested(1, &attributes)), nested(3, &[0x08, 1])].concat();
        assert_eq!(
            decode(&body("authorization.k8s.io/v1", "SelfSubjectAccessReview", &object)),
            Ok(
                json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "metadata": {},
                "spec": {"resourceAttributes": {"verb": "create", "resource": "pods", "subresource": "eviction"}}, "status": {"allowed": true}})
            )
        );
    }

    #[test]
    fn labels_are_decoded_and_unknown_numbers_skipped() {
        let label = [text(1, "team"), text(2, "a")].concat();
        let metadata = [text(1, "ns"), vec![0xa0, 0x06, 0x96, 0x01], nested(11, &label)].concat();
        let namespace = decode(&body("v1", "Namespace", &nested(1, &metadata)));
        assert_eq!(
            namespace.map(|n| n["metadata"].clone()),
            Ok(json!({"name": "ns", "labels": {"team": "a"}}))
        );
    }

    #[test]
    fn broken_and_foreign_bodies_are_refused() {
        let whole = body("v1", "Namespace", &nested(1, &text(1, "ns")));
        for end in 0..whole.len() {
            // The result is not checked, because some prefixes of the body are valid messages with fewer fields. But
            // the decoder must not panic for any prefix.
            let _ = decode(&whole[..end]);
        }
        assert_eq!(decode(&whole[..whole.len() - 1]), Err(NotDecodable::Broken));
        assert_eq!(decode(b"{}"), Err(NotDecodable::Broken));
        assert_eq!(decode(&body("v1", "PodMetrics", &[])), Err(NotDecodable::Unknown("PodMetrics".into())));
    }

    fn body(api_version: &str, kind: &str, object: &[u8]) -> Vec<u8> {
        let meta = [text(1, api_version), text(2, kind)].concat();
        [MAGIC, &nested(1, &meta), &nested(envelope::RAW, object)].concat()
    }

    fn text(number: u8, text: &str) -> Vec<u8> {
        nested(u64::from(number), text.as_bytes())
    }

    fn nested(number: u64, bytes: &[u8]) -> Vec<u8> {
        let tag = u8::try_from(number << 3 | 2).expect("a small number");
        let length = u8::try_from(bytes.len()).expect("a short message");
        assert!(length < 128, "one byte is enough");
        [&[tag, length], bytes].concat()
    }
}
