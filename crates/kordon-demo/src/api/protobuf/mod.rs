//! Kubernetes' protobuf encoding of objects, lists, watch events and request bodies, driven by one table of messages.
//!
//! The API keeps objects as JSON values, so one function encodes all of them by the table. The structs of prost and
//! k8s-pb would have to be filled field by field: serde cannot read them from JSON, where a quantity, a time or an
//! int-or-string is text or a number, not a message. The table shares nothing with kordon's decoder, which is tested
//! against it.

mod decode;
mod encode;
mod messages;

pub use decode::{NotDecodable, decode};
pub use encode::{frame, list_head, list_item, object};

use messages::{MessageType, Messages};

use super::kinds::Kind;

/// The media type of objects.
pub const MEDIA: &str = "application/vnd.kubernetes.protobuf";
/// The media type of watches.
pub const WATCH_MEDIA: &str = "application/vnd.kubernetes.protobuf;stream=watch";

/// The first bytes of every object. The envelope follows (upstream `runtime.Unknown`).
const MAGIC: &[u8] = b"k8s\0";

/// Field numbers of the envelope.
mod envelope {
    pub const TYPE: u64 = 1;
    pub const RAW: u64 = 2;
    pub const API_VERSION: u64 = 1;
    pub const KIND: u64 = 2;
}

/// Whether objects of the kind have a protobuf encoding. Kinds of other servers (metrics) have no such encoding.
pub fn is_encodable(kind: &Kind) -> bool {
    message_of(&kind.api_version(), kind.name).is_some()
}

fn message_of(api_version: &str, kind: &str) -> Option<&'static MessageType> {
    Messages::all().named(match (api_version, kind) {
        ("v1", "Event") => "core.Event",
        ("events.k8s.io/v1", "Event") => "events.Event",
        (_, kind) => kind,
    })
}
