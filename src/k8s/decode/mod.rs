//! Decodes the JSON of the server into the types of the cluster, in one pass over the received bytes.
//!
//! Only fields that are used are built. Leaves of the wrong type count as absent ([`leaf`]). An object that cannot be
//! read is reported by name and skipped; it does not end the watch.

pub mod affinity;
pub mod budget;
pub mod event;
pub mod kubelet;
pub mod leaf;
pub mod lease;
pub mod meta;
pub mod namespace;
pub mod node;
pub mod pod;
pub mod pool;
pub mod priority_class;
pub mod quota;
pub mod requests;
pub mod service;
pub mod storage;
pub mod volume;
pub mod workload;

use serde::Deserialize;
use serde_json::Value;

use self::{
    leaf::{Int, LenientList, Text, or_default},
    meta::Meta,
};
use super::error::plain;
use crate::cluster::{Change, ObjectEvent, TableObject};

/// Turns the objects of one kind into changes. Each watch has its own, with the parts that its objects share.
pub trait Decoder: Send + 'static {
    /// The object as it is read, borrowing from the received bytes.
    type Wire<'a>: Deserialize<'a> + Wire;

    /// The change that this event means; none if it changes nothing.
    fn change(&mut self, event: WatchEvent<Self::Wire<'_>>) -> Option<Change>;

    /// Drops shared parts that no object uses any more.
    fn tidy(&mut self);
}

/// An object as it is read.
pub trait Wire {
    fn meta(&self) -> &Meta<'_>;
}

/// An event of a watch. The cases are those of [`ObjectEvent`].
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
    /// The same event for the table of the cluster.
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

/// One line of a watch.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "made for each line and taken apart at once: never kept")]
pub enum StreamLine {
    /// An object, and the version from which to resume after it.
    Object {
        change: Option<Change>,
        version: String,
    },
    Bookmark {
        version: String,
        list_ends: bool,
    },
    /// The server ends the watch, usually with 410.
    Error(StatusError),
    /// An object that cannot be read, by name; it is skipped.
    Bad(String),
    /// The line is not JSON: it was cut short, or it is not from an API server.
    Broken(String),
}

/// An error of the server (`Status`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatusError {
    /// The HTTP status.
    pub code: u16,
    pub message: String,
    /// After how many seconds to try again.
    pub retry_after: Option<u64>,
}

/// Reads one line of a watch. While a list is streamed, its objects are listed ones.
pub fn line<D: Decoder>(decoder: &mut D, bytes: &[u8], listing: bool) -> StreamLine {
    match serde_json::from_slice::<WatchLine<'_, D::Wire<'_>>>(bytes) {
        Ok(line) if *line.kind == *"BOOKMARK" => StreamLine::Bookmark {
            list_ends: line.object.meta().annotations.list_ends,
            version: line.object.meta().resource_version.to_string(),
        },
        Ok(line) if *line.kind != *"ERROR" => object(decoder, line, listing),
        Ok(_) | Err(_) => unusual_line(bytes),
    }
}

fn object<D: Decoder>(decoder: &mut D, line: WatchLine<'_, D::Wire<'_>>, listing: bool) -> StreamLine {
    let version = line.object.meta().resource_version.to_string();
    if line.object.meta().name.is_empty() {
        return StreamLine::Bad("an object without a name".into());
    }
    let event = match &*line.kind {
        "ADDED" | "MODIFIED" if listing => WatchEvent::Listed(line.object),
        "ADDED" | "MODIFIED" => WatchEvent::Applied(line.object),
        "DELETED" => WatchEvent::Deleted(line.object),
        other => return StreamLine::Bad(format!("an event of the unknown type {}", plain(other))),
    };
    StreamLine::Object { change: decoder.change(event), version }
}

/// An error event, or an object that cannot be read.
fn unusual_line(bytes: &[u8]) -> StreamLine {
    let value: Value = match serde_json::from_slice(bytes) {
        Ok(value) => value,
        Err(error) => return StreamLine::Broken(plain(&error.to_string())),
    };
    if value["type"] == "ERROR" {
        return StreamLine::Error(status_error(&value["object"]));
    }
    StreamLine::Bad(describe(&value["object"]))
}

/// Reads a Status object; the default if it is not one.
pub fn status_error(status: &Value) -> StatusError {
    StatusError {
        code: status["code"].as_u64().and_then(|code| u16::try_from(code).ok()).unwrap_or_default(),
        message: plain(status["message"].as_str().unwrap_or_default()),
        retry_after: status["details"]["retryAfterSeconds"].as_u64(),
    }
}

/// What the end of a page says about the list.
#[derive(Debug, Default)]
pub struct PageEnd {
    pub version: String,
    /// The token of the next page; empty after the last.
    pub next: String,
    /// How many objects follow, if the server says so.
    pub remaining: Option<usize>,
    /// Objects of this page.
    pub count: usize,
    /// Objects that cannot be read, by name.
    pub bad: Vec<String>,
}

/// What a list is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListPurpose {
    /// It is the whole list of the kind, or a page of it.
    Whole,
    /// It is a part, prefetched before the whole.
    Prefetch,
    /// It is a part that is watched from then on.
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
/// It is not a JSON list.
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
            end.bad.push("an object without a name".into());
        } else {
            changes.extend(decoder.change(purpose.event(item)));
        }
    }
    Ok(end)
}

/// Reads the objects of a page one by one: one of them cannot be read.
fn unusual_page<D: Decoder>(
    decoder: &mut D,
    bytes: &[u8],
    purpose: ListPurpose,
    changes: &mut Vec<Change>,
) -> Result<PageEnd, serde_json::Error> {
    let page: Page<'_, Value> = serde_json::from_slice(bytes)?;
    let mut end = PageEnd::new(&page.metadata, page.items.len());
    for item in page.items.iter() {
        match D::Wire::deserialize(item) {
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

/// Names an object that cannot be read.
fn describe(object: &Value) -> String {
    let name = |field: &str| object["metadata"][field].as_str().filter(|text| !text.is_empty());
    match (name("namespace"), name("name")) {
        (Some(namespace), Some(name)) => plain(&format!("{namespace}/{name}")),
        (None, Some(name)) => plain(name),
        (_, None) => "an object without a name".into(),
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

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ListMeta<'a> {
    #[serde(borrow)]
    resource_version: Text<'a>,
    #[serde(rename = "continue", borrow)]
    next: Text<'a>,
    remaining_item_count: Int,
}

#[cfg(test)]
mod tests;
