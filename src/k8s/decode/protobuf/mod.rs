//! Decodes Kubernetes' protobuf into the types of the cluster: the same types as from JSON ([`super`]), in one pass over
//! the received bytes. Writing JSON is most of a server's work on a large list: in protobuf the same objects take it a
//! third of the time.

mod deserializer;
mod message;
pub mod messages;

use serde::Deserialize;

pub use self::message::{FieldType, Message};
pub(super) use self::message::{Fields, WireValue};
use self::{deserializer::ValueDeserializer, message::NotAMessage};
use super::{Decoder, ListMeta, ListPurpose, PageEnd, StatusError, StreamEvent, Wire, WireStatus, on_object};
use crate::cluster::Change;

/// The first bytes of every object; its envelope follows (upstream `runtime.Unknown`).
const MAGIC: &[u8] = b"k8s\0";

/// The metadata of an object or a list.
const METADATA: u64 = 1;

/// The items of a list.
const ITEMS: u64 = 2;

/// Reads one frame of a watch, without its length. While a list is streamed, its objects are listed ones.
pub fn frame<D: Decoder>(decoder: &mut D, bytes: &[u8], listing: bool) -> StreamEvent {
    let (kind, object) = match opened_event(bytes) {
        Ok(event) => event,
        Err(error) => return StreamEvent::Broken(error.to_string()),
    };
    if kind == "ERROR" {
        return StreamEvent::Error(status(object));
    }
    match D::Wire::deserialize(ValueDeserializer::of_message(object, decoder.message())) {
        Ok(wire) => on_object(decoder, kind, wire, listing),
        Err(_) => StreamEvent::Bad(describe(object)),
    }
}

/// Reads a page of a list into `changes`.
///
/// # Errors
/// It is not a list in protobuf.
pub fn page<D: Decoder>(
    decoder: &mut D,
    bytes: &[u8],
    purpose: ListPurpose,
    changes: &mut Vec<Change>,
) -> Result<PageEnd, NotAMessage> {
    let (kind, list) = opened(bytes)?;
    // Anything else would be read as a list without items.
    if !kind.ends_with(b"List") {
        return Err(NotAMessage);
    }
    let mut list = Fields(list);
    let mut end = PageEnd::default();
    while let Some(field) = list.next()? {
        match field {
            (METADATA, WireValue::Bytes(bytes)) => {
                let metadata = ValueDeserializer::of_message(bytes, messages::LIST_META);
                let metadata = ListMeta::deserialize(metadata).map_err(|_| NotAMessage)?;
                end = PageEnd { bad: end.bad, ..PageEnd::new(&metadata, end.count) };
            }
            (ITEMS, WireValue::Bytes(object)) => {
                end.count += 1;
                match D::Wire::deserialize(ValueDeserializer::of_message(object, decoder.message())) {
                    Ok(wire) if !wire.meta().name.is_empty() => {
                        changes.extend(decoder.change(purpose.event(wire)));
                    }
                    Ok(_) | Err(_) => end.bad.push(describe(object)),
                }
            }
            _ => {}
        }
    }
    Ok(end)
}

/// Reads a Status object with its envelope; none if it is not one.
pub fn status_error(bytes: &[u8]) -> Option<StatusError> {
    opened(bytes).ok().map(|(_, object)| status(object))
}

fn status(object: &[u8]) -> StatusError {
    let read = WireStatus::deserialize(ValueDeserializer::of_message(object, messages::STATUS));
    read.map(|status| status.error()).unwrap_or_default()
}

/// The type of a watch event, and its object without the envelope.
fn opened_event(bytes: &[u8]) -> Result<(&str, &[u8]), NotAMessage> {
    const TYPE: u64 = 1;
    const OBJECT: u64 = 2;
    let event = Fields(bytes);
    let kind = event.find(TYPE)?.and_then(|kind| std::str::from_utf8(kind).ok()).ok_or(NotAMessage)?;
    let object = event.find(OBJECT)?.map(Fields).ok_or(NotAMessage)?;
    let (_, object) = opened(object.find(1)?.ok_or(NotAMessage)?)?;
    Ok((kind, object))
}

/// The kind in an envelope, and the object.
fn opened(bytes: &[u8]) -> Result<(&[u8], &[u8]), NotAMessage> {
    const TYPE: u64 = 1;
    const KIND: u64 = 2;
    const RAW: u64 = 2;
    let envelope = Fields(bytes.strip_prefix(MAGIC).ok_or(NotAMessage)?);
    let kind = Fields(envelope.find(TYPE)?.unwrap_or_default()).find(KIND)?;
    Ok((kind.unwrap_or_default(), envelope.find(RAW)?.unwrap_or_default()))
}

/// Names an object that cannot be read.
fn describe(object: &[u8]) -> String {
    const NAME: u64 = 1;
    const NAMESPACE: u64 = 3;
    let field = |message, number| Fields(message).find(number).ok().flatten().unwrap_or_default();
    let metadata = field(object, METADATA);
    let text = |number| std::str::from_utf8(field(metadata, number)).unwrap_or_default();
    super::named(text(NAMESPACE), text(NAME))
}
