//! Lists: complete, in pages, or as tables. They are streamed in chunks, because a list of pods may be as large as 1
//! GB.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};

use kordon_time::Timestamp;

use super::{
    kinds::Kind,
    object::Stored,
    protobuf,
    refusal::Refusal,
    reply::{self, Reply},
    request::{Query, View},
    selector::Selection,
    store::Store,
    table, view,
};

/// The objects of one response, all at the same revision.
pub struct List {
    kind: &'static Kind,
    objects: Vec<Arc<Stored>>,
    revision: u64,
    /// The start of the next page; None on the last page.
    next: Option<ContinueToken>,
    remaining: Option<usize>,
}

/// The `continue` parameter: the id of a paged list, and the offset of the next page in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ContinueToken {
    list: u64,
    offset: usize,
}

impl List {
    /// Reads the objects of a list request.
    pub fn read(
        store: &mut Store,
        kind: &'static Kind,
        selection: &Selection,
        query: &Query,
    ) -> Result<Self, Refusal> {
        let limit = query.number::<usize>("limit")?.filter(|limit| *limit > 0);
        if !query.text("continue").is_empty() {
            return Self::next_page(store, kind, selection, query.text("continue"), limit);
        }
        check_revision(store, query)?;
        // The limit is ignored if the list comes from the cache (resourceVersion 0).
        let limit = limit.filter(|_| query.text("resourceVersion") != "0").unwrap_or(usize::MAX);
        let revision = store.revision();
        let all = store.objects_of(kind).select(selection);
        let objects: Vec<_> = all.take(limit.saturating_add(1)).cloned().collect();
        if objects.len() <= limit {
            return Ok(Self { kind, objects, revision, next: None, remaining: None });
        }
        let id = store.start_paged_list(kind);
        let (all, revision) = store.paged_list(kind, id).expect("started one line above");
        Self::page(kind, selection, &all, revision, (ContinueToken { list: id, offset: 0 }, limit))
    }

    fn next_page(
        store: &Store,
        kind: &'static Kind,
        selection: &Selection,
        token: &str,
        limit: Option<usize>,
    ) -> Result<Self, Refusal> {
        let token = ContinueToken::parse(token)
            .ok_or_else(|| Refusal::bad_request(format!("continue key is not valid: {token:?}")))?;
        let Some((all, revision)) = store.paged_list(kind, token.list) else {
            let message = "The provided continue parameter is too old to display a consistent list result. \
                           Start a new list without it.";
            return Err(Refusal::expired(message));
        };
        Self::page(kind, selection, &all, revision, (token, limit.unwrap_or(usize::MAX)))
    }

    fn page(
        kind: &'static Kind,
        selection: &Selection,
        all: &[Arc<Stored>],
        revision: u64,
        (from, limit): (ContinueToken, usize),
    ) -> Result<Self, Refusal> {
        let rest = all.get(from.offset..).unwrap_or_default();
        let mut matching = rest.iter().enumerate().filter(|(_, object)| selection.matches(object));
        let page: Vec<_> = matching.by_ref().take(limit).collect();
        let end = page.last().map_or(rest.len(), |(index, _)| index + 1);
        let more = matching.next().is_some();
        Ok(Self {
            kind,
            objects: page.into_iter().map(|(_, object)| object.clone()).collect(),
            revision,
            next: more.then_some(ContinueToken { list: from.list, offset: from.offset + end }),
            remaining: (more && selection.is_everything() && selection.namespace.is_empty())
                .then(|| rest.len() - end),
        })
    }

    /// Builds the response in the requested form.
    pub fn reply(self, form: View, query: &Query, now: Timestamp) -> Reply {
        match form {
            View::Object => self.stream(View::Object),
            View::Metadata => self.stream(View::Metadata),
            View::Protobuf => self.stream_protobuf(),
            View::Table => {
                let objects = self.objects.iter().map(|object| object.value());
                let mut table = table::table(self.kind, objects, query, now);
                table["metadata"] = self.metadata();
                reply::json(200, &table)
            }
        }
    }

    fn stream(self, form: View) -> Reply {
        let (api_version, kind) = match form {
            View::Metadata => ("meta.k8s.io/v1".to_owned(), "PartialObjectMetadataList".to_owned()),
            View::Object | View::Protobuf | View::Table => {
                (self.kind.api_version(), format!("{}List", self.kind.name))
            }
        };
        let head = format!(
            r#"{{"kind":"{kind}","apiVersion":"{api_version}","metadata":{},"items":["#,
            self.metadata()
        );
        let of = self.kind;
        let items = self.objects.into_iter().enumerate().flat_map(move |(index, object)| {
            let comma = if index > 0 { Bytes::from_static(b",") } else { Bytes::new() };
            [comma, view::shown(of, &object, form)]
        });
        let tail = Bytes::from_static(b"]}\n");
        let pieces = std::iter::once(Bytes::from(head)).chain(items).chain(std::iter::once(tail));
        reply::stream("application/json", futures::stream::iter(reply::chunks(pieces).map(Ok)))
    }

    /// Streams the list as protobuf. All items are encoded first, because the envelope has their total length.
    fn stream_protobuf(self) -> Reply {
        let encoded = |object: &Arc<Stored>| view::shown(self.kind, object, View::Protobuf);
        let objects: Vec<Bytes> = self.objects.iter().map(encoded).collect();
        let length = objects.iter().flat_map(protobuf::list_item).map(|piece| piece.len()).sum();
        let (api_version, kind) = (self.kind.api_version(), format!("{}List", self.kind.name));
        let head = protobuf::list_head(&api_version, &kind, &self.metadata(), length);
        let items = objects.into_iter().flat_map(|object| protobuf::list_item(&object));
        let pieces = std::iter::once(head).chain(items);
        reply::stream(protobuf::MEDIA, futures::stream::iter(reply::chunks(pieces).map(Ok)))
    }

    fn metadata(&self) -> Value {
        let mut metadata = json!({"resourceVersion": self.revision.to_string()});
        if let Some(token) = self.next {
            metadata["continue"] = token.to_text().into();
        }
        if let Some(remaining) = self.remaining {
            metadata["remainingItemCount"] = remaining.into();
        }
        metadata
    }
}

impl ContinueToken {
    fn to_text(self) -> String {
        format!("{}-{}", self.list, self.offset)
    }

    fn parse(text: &str) -> Option<Self> {
        let (list, offset) = text.split_once('-')?;
        Some(Self { list: list.parse().ok()?, offset: offset.parse().ok()? })
    }
}

/// Refuses a list that requires an exact revision other than the current one.
fn check_revision(store: &Store, query: &Query) -> Result<(), Refusal> {
    let Some(wanted) = query.number::<u64>("resourceVersion")? else { return Ok(()) };
    let now = store.revision();
    if wanted > now {
        let message = format!("Too large resource version: {wanted}, current: {now}");
        return Err(Refusal::new(504, "Timeout", message).retry_after(1));
    }
    match query.text("resourceVersionMatch") {
        "Exact" if wanted != now => Err(Refusal::expired(format!(
            "The resourceVersion for the provided list is too old: {wanted} ({now})"
        ))),
        _ => Ok(()),
    }
}
