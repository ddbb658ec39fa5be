//! Decodes the server's responses, protobuf or JSON, into the types of the cluster, in one pass over the received
//! bytes.
//!
//! Only the fields that kordon uses are read. Leaf values of the wrong type count as absent ([`leaf`]). An object that
//! cannot be read is reported by name and skipped; the watch continues.

pub mod affinity;
pub mod budget;
pub mod cron_job;
pub mod device;
pub mod event;
pub mod health_check;
pub mod image;
pub mod items;
pub mod kinds;
pub mod kubelet;
pub mod leaf;
pub mod lease;
mod managed_fields;
pub mod meta;
pub mod namespace;
pub mod node;
pub mod pod;
pub mod pool;
pub mod priority_class;
pub mod protobuf;
pub mod quota;
mod recent_parts;
pub mod requests;
mod selector;
pub mod service;
pub mod storage;
pub mod volume;
pub mod workload;

use serde::Deserialize;
use serde_json::Value;

use self::{
    leaf::{Int, LenientList, Text, or_default},
    meta::Meta,
    protobuf::{Message, ProtobufPage, message, wire},
};
use super::error::plain;
use kordon_core::cluster::{Change, ObjectEvent, TableObject};

/// Converts the objects of one kind into changes. Each watch has its own decoder, which holds the parts that its
/// objects share.
pub trait Decoder: Send + 'static {
    /// The wire format of an object, borrowing from the received bytes.
    type Wire<'a>: Default + Deserialize<'a> + Message<'a> + Wire;

    /// Returns an empty object, into which protobuf fields are read.
    fn blank<'a>(&self) -> Self::Wire<'a> {
        Self::Wire::default()
    }

    /// Returns the change that an event causes; `None` if the event causes no change.
    fn change(&mut self, event: WatchEvent<Self::Wire<'_>>) -> Option<Change>;

    /// Drops shared parts that no object uses any more.
    fn tidy(&mut self);
}

/// An object in its wire format.
pub trait Wire {
    fn meta(&self) -> &Meta<'_>;
}

/// Declares that objects in their wire format keep their metadata in the field `metadata`.
macro_rules! has_metadata {
    ($wire:ident) => {
        impl $crate::k8s::decode::Wire for $wire<'_> {
            fn meta(&self) -> &$crate::k8s::decode::meta::Meta<'_> {
                &self.metadata
            }
        }
    };
}
use has_metadata;

/// An event of a watch. The variants are those of [`ObjectEvent`].
#[derive(Debug)]
pub enum WatchEvent<W> {
    ListStarted,
    Listed(W),
    ListDone,
    Prefetched(W),
    Applied(W),
    Deleted(W),
}

impl<W> WatchEvent<W> {
    /// Converts the event's object into the type that the cluster's tables store.
    pub fn map<R: TableObject>(self, row: impl FnOnce(W) -> R) -> ObjectEvent<R> {
        match self {
            Self::ListStarted => ObjectEvent::ListStarted,
            Self::Listed(wire) => ObjectEvent::Listed(row(wire)),
            Self::ListDone => ObjectEvent::ListDone,
            Self::Prefetched(wire) => ObjectEvent::Prefetched(row(wire)),
            Self::Applied(wire) => ObjectEvent::Applied(row(wire)),
            Self::Deleted(wire) => ObjectEvent::Deleted(row(wire).key()),
        }
    }
}

/// Encodings of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    Json,
    Protobuf,
}

impl Encoding {
    /// Media type of objects in protobuf.
    pub const PROTOBUF: &'static str = "application/vnd.kubernetes.protobuf";

    /// Returns the encoding for a content type.
    pub fn from_content_type(content_type: &str) -> Self {
        if content_type.starts_with(Self::PROTOBUF) { Self::Protobuf } else { Self::Json }
    }

    /// Reads one event of a watch: a line of JSON, or a frame of protobuf without its length. If `listing` is true, the
    /// object of the event is part of a streamed list.
    pub fn event<D: Decoder>(self, decoder: &mut D, bytes: &[u8], listing: bool) -> StreamEvent {
        match self {
            Self::Json => line(decoder, bytes, listing),
            Self::Protobuf => protobuf::frame(decoder, bytes, listing),
        }
    }

    /// Reads a page of a list into `changes`.
    ///
    /// # Errors
    /// The bytes are not a list in this encoding; the reason in words.
    pub fn page<D: Decoder>(
        self,
        decoder: &mut D,
        bytes: &[u8],
        purpose: ListPurpose,
        changes: &mut Vec<Change>,
    ) -> Result<PageEnd, String> {
        match self {
            Self::Json => page(decoder, bytes, purpose, changes).map_err(|error| error.to_string()),
            Self::Protobuf => {
                let mut page = ProtobufPage::new(purpose);
                let read = page.read(decoder, bytes, changes);
                read.and_then(|()| page.end()).map_err(|error| error.to_string())
            }
        }
    }

    /// Returns the total number of objects of a list from its first page; `None` if the page does not report the
    /// number.
    pub fn count(self, bytes: &[u8]) -> Option<usize> {
        let end = self.page(&mut Counter, bytes, ListPurpose::Prefetch, &mut Vec::new()).ok()?;
        match end.remaining {
            Some(remaining) => Some(end.count + remaining),
            None => end.next.is_empty().then_some(end.count),
        }
    }
}

/// A decoder that counts objects and reads only their metadata.
struct Counter;

impl Decoder for Counter {
    type Wire<'a> = Counted<'a>;

    fn change(&mut self, _: WatchEvent<Counted<'_>>) -> Option<Change> {
        None
    }

    fn tidy(&mut self) {}
}

wire! {
    struct Counted<'a> {
        #[serde(deserialize_with = "or_default")]
        metadata: Meta<'a> = 1,
    }
}

has_metadata!(Counted);

/// One received event of a watch.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all events are objects, and a box for each would cost more"
)]
pub enum StreamEvent {
    /// An object, and the version from which the watch resumes after this event.
    Object {
        change: Option<Change>,
        version: String,
    },
    Bookmark {
        version: String,
        list_ends: bool,
    },
    /// An error event, with which the server ends the watch; usually 410.
    Error(StatusError),
    /// An object or event that cannot be read and is skipped: the name of the object, or a description of the event.
    Bad(String),
    /// Bytes that are not an event, because they were cut short or do not come from an API server.
    Broken(String),
}

/// An error that the server returned (`Status`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatusError {
    /// HTTP status code.
    pub code: u16,
    pub message: String,
    /// Delay before a retry, in seconds.
    pub retry_after: Option<u64>,
}

/// Reads one line of a watch in JSON. If `listing` is true, the object of the event is part of a streamed list.
pub fn line<D: Decoder>(decoder: &mut D, bytes: &[u8], listing: bool) -> StreamEvent {
    match serde_json::from_slice::<WatchLine<'_, D::Wire<'_>>>(bytes) {
        Ok(line) if *line.kind != *"ERROR" => on_object(decoder, &line.kind, line.object, listing),
        Ok(_) | Err(_) => unusual_line(bytes),
    }
}

/// Handles an event of type `kind` about an object.
fn on_object<D: Decoder>(decoder: &mut D, kind: &str, object: D::Wire<'_>, listing: bool) -> StreamEvent {
    let version = object.meta().resource_version.to_string();
    if kind == "BOOKMARK" {
        return StreamEvent::Bookmark { list_ends: object.meta().annotations.list_ends, version };
    }
    if object.meta().name.is_empty() {
        return StreamEvent::Bad(NAMELESS.into());
    }
    let event = match kind {
        "ADDED" | "MODIFIED" if listing => WatchEvent::Listed(object),
        "ADDED" | "MODIFIED" => WatchEvent::Applied(object),
        "DELETED" => WatchEvent::Deleted(object),
        other => return StreamEvent::Bad(format!("an event of the unknown type {}", plain(other))),
    };
    StreamEvent::Object { change: decoder.change(event), version }
}

/// Shown in place of the name of an object that has no name.
const NAMELESS: &str = "an object without a name";

/// Handles a line that has an error event or an unreadable object.
fn unusual_line(bytes: &[u8]) -> StreamEvent {
    let value: Value = match serde_json::from_slice(bytes) {
        Ok(value) => value,
        Err(error) => return StreamEvent::Broken(plain(&error.to_string())),
    };
    if value["type"] == "ERROR" {
        return StreamEvent::Error(status_error(&value["object"]));
    }
    StreamEvent::Bad(describe(&value["object"]))
}

/// Reads a Status object. If the value is not a Status, returns the default.
pub fn status_error(status: &Value) -> StatusError {
    WireStatus::deserialize(status).map(|status| status.error()).unwrap_or_default()
}

/// Summary of a page: the list's metadata and the number of objects.
#[derive(Debug, Default)]
pub struct PageEnd {
    pub version: String,
    /// Token of the next page; empty on the last page.
    pub next: String,
    /// Number of objects of the list that follow after this page, if the server reports it.
    pub remaining: Option<usize>,
    /// Number of objects in this page.
    pub count: usize,
    /// Names of the objects that cannot be read.
    pub bad: Vec<String>,
}

/// What the request for a list is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListPurpose {
    /// The whole list of a kind, in one or several pages.
    Whole,
    /// Some objects of a kind, prefetched before all of them are listed.
    Prefetch,
    /// A part of a kind, such as the pods of a node, which is listed and then watched.
    Part,
}

impl ListPurpose {
    fn event<W>(self, wire: W) -> WatchEvent<W> {
        match self {
            Self::Whole => WatchEvent::Listed(wire),
            Self::Prefetch => WatchEvent::Prefetched(wire),
            Self::Part => WatchEvent::Applied(wire),
        }
    }
}

/// Reads a page of a list into `changes`.
///
/// # Errors
/// The bytes are not a JSON list.
pub fn page<D: Decoder>(
    decoder: &mut D,
    bytes: &[u8],
    purpose: ListPurpose,
    changes: &mut Vec<Change>,
) -> Result<PageEnd, serde_json::Error> {
    let Ok(page) = serde_json::from_slice::<Page<'_, D::Wire<'_>>>(bytes) else {
        return unusual_page(decoder, bytes, purpose, changes);
    };
    let mut end = PageEnd::new(&page.metadata, page.items.len());
    for item in page.items.0 {
        if item.meta().name.is_empty() {
            end.bad.push(NAMELESS.into());
        } else {
            changes.extend(decoder.change(purpose.event(item)));
        }
    }
    Ok(end)
}

/// Reads the objects of a page one by one, because at least one of them cannot be read.
fn unusual_page<D: Decoder>(
    decoder: &mut D,
    bytes: &[u8],
    purpose: ListPurpose,
    changes: &mut Vec<Change>,
) -> Result<PageEnd, serde_json::Error> {
    let page: Page<'_, Value> = serde_json::from_slice(bytes)?;
    let mut end = PageEnd::new(&page.metadata, page.items.len());
    for item in page.items.iter() {
        // Each object is serialised and parsed again, which happens only for damaged pages. Reading objects from the
        // `Value` would add a third to the code.
        match serde_json::from_slice::<D::Wire<'_>>(item.to_string().as_bytes()) {
            Ok(wire) if !wire.meta().name.is_empty() => changes.extend(decoder.change(purpose.event(wire))),
            Ok(_) | Err(_) => end.bad.push(describe(item)),
        }
    }
    Ok(end)
}

impl PageEnd {
    fn new(meta: &ListMeta<'_>, count: usize) -> Self {
        Self {
            version: meta.resource_version.to_string(),
            next: meta.next.to_string(),
            remaining: meta.remaining_item_count.0.and_then(|count| usize::try_from(count).ok()),
            count,
            bad: Vec::new(),
        }
    }
}

/// Returns the name of an object that cannot be read, for the report.
fn describe(object: &Value) -> String {
    let field = |name: &str| object["metadata"][name].as_str().unwrap_or_default();
    named(field("namespace"), field("name"))
}

/// Full name of an object; the namespace or the name may be missing.
fn named(namespace: &str, name: &str) -> String {
    match (namespace, name) {
        (_, "") => NAMELESS.into(),
        ("", name) => plain(name),
        (namespace, name) => plain(&format!("{namespace}/{name}")),
    }
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "W: Deserialize<'de>"))]
struct WatchLine<'a, W> {
    #[serde(rename = "type", borrow)]
    kind: Text<'a>,
    object: W,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "W: Deserialize<'de>"))]
struct Page<'a, W> {
    #[serde(borrow, default, deserialize_with = "or_default")]
    metadata: ListMeta<'a>,
    items: LenientList<W>,
}

wire! {
    struct ListMeta<'a> {
        resource_version: Text<'a> = 2,
        #[serde(rename = "continue")]
        next: Text<'a> = 3,
        remaining_item_count: Int = 4,
    }
}

wire! {
    struct WireStatus<'a> {
        message: Text<'a> = 3,
        #[serde(deserialize_with = "or_default")]
        details: WireStatusDetails = 5,
        code: Int = 6,
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct WireStatusDetails {
    retry_after_seconds: Int,
}

message! { impl<'a> WireStatusDetails { 5 => retry_after_seconds } }

impl WireStatus<'_> {
    fn error(&self) -> StatusError {
        StatusError {
            code: self.code.0.and_then(|code| u16::try_from(code).ok()).unwrap_or_default(),
            message: plain(&self.message),
            // Protobuf always has `retryAfterSeconds`, JSON only if it is not zero.
            retry_after: self
                .details
                .retry_after_seconds
                .0
                .and_then(|seconds| u64::try_from(seconds).ok())
                .filter(|seconds| *seconds > 0),
        }
    }
}

#[cfg(test)]
mod tests;
