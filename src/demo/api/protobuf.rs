//! Kubernetes' protobuf encoding of the few bodies that kubectl sends in it.
//!
//! All other bodies must be JSON (415); all responses are JSON, which every client accepts.

use serde_json::{Map, Value, json};

use super::refusal::Refusal;

/// The media type of a body in protobuf.
pub const MEDIA: &str = "application/vnd.kubernetes.protobuf";

/// The first bytes of every protobuf body.
const MAGIC: &[u8] = b"k8s\0";

/// A field that is decoded, by its number in the message.
enum Field {
    Text(&'static str),
    /// A map of strings.
    Pairs(&'static str),
    Message(&'static str, Message),
}

type Message = &'static [(u64, Field)];

const ENVELOPE: Message =
    &[(1, Field::Message("typeMeta", &[(1, Field::Text("apiVersion")), (2, Field::Text("kind"))]))];
/// The field of the envelope that holds the object itself.
const RAW: u64 = 2;

const METADATA: Field = Field::Message(
    "metadata",
    &[
        (1, Field::Text("name")),
        (2, Field::Text("generateName")),
        (3, Field::Text("namespace")),
        (11, Field::Pairs("labels")),
        (12, Field::Pairs("annotations")),
    ],
);

const ACCESS_REVIEW: Message = &[
    (1, METADATA),
    (
        2,
        Field::Message(
            "spec",
            &[
                (
                    1,
                    Field::Message(
                        "resourceAttributes",
                        &[
                            (1, Field::Text("namespace")),
                            (2, Field::Text("verb")),
                            (3, Field::Text("group")),
                            (4, Field::Text("version")),
                            (5, Field::Text("resource")),
                            (6, Field::Text("subresource")),
                            (7, Field::Text("name")),
                        ],
                    ),
                ),
                (
                    2,
                    Field::Message(
                        "nonResourceAttributes",
                        &[(1, Field::Text("path")), (2, Field::Text("verb"))],
                    ),
                ),
            ],
        ),
    ),
];
const RULES_REVIEW: Message = &[(1, METADATA), (2, Field::Message("spec", &[(1, Field::Text("namespace"))]))];
const NAMESPACE: Message = &[(1, METADATA)];

/// Decodes a protobuf body.
pub fn decode(body: &[u8]) -> Result<Value, Refusal> {
    let broken = || Refusal::bad_request("the body of the request is not Kubernetes protobuf");
    let body = body.strip_prefix(MAGIC).ok_or_else(broken)?;
    let envelope = message(body, ENVELOPE).ok_or_else(broken)?;
    let name = envelope.get("typeMeta").and_then(|meta| meta["kind"].as_str()).unwrap_or_default();
    let schema = match name {
        "SelfSubjectAccessReview" => ACCESS_REVIEW,
        "SelfSubjectRulesReview" => RULES_REVIEW,
        "Namespace" => NAMESPACE,
        _ => {
            let message = format!("{name} is not understood as protobuf by the embedded API: send JSON");
            return Err(Refusal::new(415, "UnsupportedMediaType", message));
        }
    };
    let raw = fields(body).filter_map(|field| field.filter(|(number, _)| *number == RAW)).last();
    let mut object = message(raw.map_or(&[][..], |(_, bytes)| bytes), schema).ok_or_else(broken)?;
    object.insert("apiVersion".into(), envelope["typeMeta"]["apiVersion"].clone());
    object.insert("kind".into(), json!(name));
    Ok(Value::Object(object))
}

fn message(bytes: &[u8], schema: Message) -> Option<Map<String, Value>> {
    let mut object = Map::new();
    for field in fields(bytes) {
        let (number, bytes) = field?;
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
        match schema.iter().find(|(known, _)| *known == number).map(|(_, field)| field) {
            None => {}
            // Go also writes empty strings, which mean nothing.
            Some(Field::Text(_)) if bytes.is_empty() => {}
            Some(Field::Text(name)) => {
                object.insert((*name).to_owned(), text(bytes)?.into());
            }
            Some(Field::Pairs(name)) => {
                let pair = message(bytes, &[(1, Field::Text("key")), (2, Field::Text("value"))])?;
                let map = object.entry(*name).or_insert_with(|| json!({}));
                map[pair.get("key")?.as_str()?] = pair.get("value").cloned().unwrap_or_else(|| json!(""));
            }
            Some(Field::Message(name, schema)) => {
                object.insert((*name).to_owned(), message(bytes, schema)?.into());
            }
        }
    }
    Some(object)
}

/// The length-delimited fields of a message with their numbers; None if the message is truncated.
fn fields(mut bytes: &[u8]) -> impl Iterator<Item = Option<(u64, &[u8])>> {
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

/// The next field; `Some(None)` for a number, as none is needed.
fn field<'a>(bytes: &mut &'a [u8]) -> Option<Option<(u64, &'a [u8])>> {
    let tag = varint(bytes)?;
    let length = match tag & 7 {
        0 => return varint(bytes).map(|_| None),
        1 => 8,
        2 => varint(bytes)?,
        5 => 4,
        _ => return None,
    };
    let (taken, rest) = bytes.split_at_checked(usize::try_from(length).ok()?)?;
    *bytes = rest;
    Some((tag & 7 == 2).then_some((tag >> 3, taken)))
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
                "spec": {"resourceAttributes": {"verb": "create", "resource": "pods", "subresource": "eviction"}}})
            )
        );
    }

    #[test]
    fn labels_are_decoded_and_unknown_numbers_skipped() {
        let label = [text(1, "team"), text(2, "a")].concat();
        let metadata = [text(1, "ns"), vec![0x38, 0x96, 0x01], nested(11, &label)].concat();
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
            // Some prefixes are valid messages with fewer fields; none may panic.
            let _ = decode(&whole[..end]);
        }
        assert_eq!(decode(&whole[..whole.len() - 1]).map_err(|r| r.code), Err(400));
        assert_eq!(decode(b"{}").map_err(|r| r.code), Err(400));
        assert_eq!(decode(&body("v1", "Pod", &[])).map_err(|r| r.code), Err(415));
    }

    fn body(api_version: &str, kind: &str, object: &[u8]) -> Vec<u8> {
        let meta = [text(1, api_version), text(2, kind)].concat();
        [MAGIC, &nested(1, &meta), &nested(RAW, object)].concat()
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
