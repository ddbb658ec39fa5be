//! Watches: the history of a kind from a revision, then new changes.

use std::{collections::VecDeque, io, pin::pin, sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use futures::future::{self, Either};
use serde_json::{Value, json};
use tokio::{sync::watch, time::Instant};

use super::{
    Api,
    faults::Health,
    kinds::Kind,
    object::Stored,
    protobuf,
    refusal::{FieldCause, Refusal},
    reply::{self, Reply},
    request::{ApiRequest, View},
    selector::Selection,
    store::StoredWrite,
    table, view,
};

/// One open watch.
///
/// A watch has no queue. When its kind changes, it reads the history from its cursor, so a client that does not read
/// costs no memory. A watch that falls behind the history sends the ERROR event 410, and the client lists again, as
/// with a real server.
struct Watch {
    api: Api,
    kind: &'static Kind,
    selection: Selection,
    form: View,
    include: String,
    /// The revision up to which all changes have been sent.
    cursor: u64,
    /// Objects of the initial list that are not sent yet.
    initial: VecDeque<Arc<Stored>>,
    /// Whether the bookmark that ends a streaming list must still be sent.
    initial_end: bool,
    bookmarks: Option<Instant>,
    deadline: Instant,
    latest: watch::Receiver<u64>,
    health: watch::Receiver<Health>,
    cuts: u64,
    closed: bool,
}

/// Interval between bookmarks of a quiet watch.
const BOOKMARK_INTERVAL: Duration = Duration::from_secs(60);
/// Maximum number of changes that are read at a time.
const BATCH: usize = 64;
/// Timeout of a watch if the client sets none.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// Answers a watch request.
pub fn open(
    api: &Api,
    request: &ApiRequest,
    kind: &'static Kind,
    selection: Selection,
) -> Result<Reply, Refusal> {
    let query = &request.query;
    let streams_list = query.flag("sendInitialEvents");
    check_streaming_list(api, kind, request)?;
    let from = query.number::<u64>("resourceVersion")?.unwrap_or(0);
    let timeout = query.number::<u64>("timeoutSeconds")?.map_or(DEFAULT_TIMEOUT, Duration::from_secs);
    let health = api.inner.health.subscribe();
    let cuts = health.borrow().cuts_of(kind.plural);
    let state = api.state();
    let store = &state.store;
    let starts_with_all = streams_list || from == 0;
    let initial = if starts_with_all {
        store.objects_of(kind).select(&selection).cloned().collect()
    } else {
        VecDeque::new()
    };
    let media = if request.view == View::Protobuf { protobuf::WATCH_MEDIA } else { "application/json" };
    let watch = Watch {
        api: api.clone(),
        kind,
        form: request.view,
        include: query.text("includeObject").to_owned(),
        cursor: if starts_with_all { store.revision() } else { from },
        initial,
        initial_end: streams_list && query.flag("allowWatchBookmarks"),
        bookmarks: query.flag("allowWatchBookmarks").then(|| Instant::now() + BOOKMARK_INTERVAL),
        deadline: Instant::now() + timeout,
        latest: store.objects_of(kind).subscribe(),
        health,
        cuts,
        selection,
        closed: false,
    };
    drop(state);
    let chunks = futures::stream::unfold(watch, |mut watch| async move {
        let chunk = watch.next().await?;
        Some((chunk, watch))
    });
    Ok(reply::stream(media, chunks))
}

/// Checks the parameters of a streaming list. If this server does not support streaming lists, refuses them (422).
fn check_streaming_list(api: &Api, kind: &Kind, request: &ApiRequest) -> Result<(), Refusal> {
    let query = &request.query;
    let asked = !query.text("sendInitialEvents").is_empty();
    let invalid = |field: &str, why: &str| {
        let name = "ListOptions.meta.k8s.io";
        let mut refusal = Refusal::invalid(kind, "", vec![FieldCause::forbidden(field, why)]);
        refusal.message = format!("{name} \"\" is invalid: {field}: Forbidden: {why}");
        Err(refusal)
    };
    if asked && !api.inner.options.streaming_lists {
        return invalid(
            "sendInitialEvents",
            "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled",
        );
    }
    if asked && query.text("resourceVersionMatch") != "NotOlderThan" {
        return invalid(
            "resourceVersionMatch",
            "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        );
    }
    if !asked && !query.text("resourceVersionMatch").is_empty() {
        return invalid(
            "resourceVersionMatch",
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
        );
    }
    Ok(())
}

impl Watch {
    /// The next chunk of the stream; None at the end.
    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        while !self.closed {
            let health = self.health.borrow_and_update().clone();
            if health.down || health.cuts_of(self.kind.plural) != self.cuts {
                self.closed = true;
                let lost = io::Error::new(io::ErrorKind::ConnectionReset, "the connection was cut");
                return Some(Err(lost));
            }
            if !health.stalled
                && let Some(chunk) = self.next_chunk()
            {
                return Some(Ok(chunk));
            }
            if !self.closed {
                self.wait(health.stalled).await;
            }
        }
        None
    }

    /// Waits until there may be something to send. A stalled watch does not wait for bookmarks.
    async fn wait(&mut self, stalled: bool) {
        let bookmark = self.bookmarks.filter(|_| !stalled).unwrap_or(self.deadline);
        let timer = pin!(tokio::time::sleep_until(bookmark.min(self.deadline)));
        let change = pin!(self.latest.changed());
        let health = pin!(self.health.changed());
        let news = future::select(change, health);
        if let Either::Right(_) = future::select(news, timer).await
            && Instant::now() >= self.deadline
        {
            self.closed = true;
        }
    }

    /// The events that can be sent now.
    fn next_chunk(&mut self) -> Option<Bytes> {
        if !self.initial.is_empty() {
            let mut chunk = BytesMut::new();
            while chunk.len() < reply::CHUNK
                && let Some(object) = self.initial.pop_front()
            {
                self.write_event(&mut chunk, "ADDED", &object);
            }
            return Some(chunk.freeze());
        }
        if std::mem::take(&mut self.initial_end) {
            return Some(self.bookmark(self.cursor, true));
        }
        self.latest.borrow_and_update();
        loop {
            let (changes, revision) = {
                let state = self.api.state();
                (state.store.objects_of(self.kind).changes_after(self.cursor, BATCH), state.store.revision())
            };
            let changes = match changes {
                Ok(changes) => changes,
                Err(too_old) => return Some(self.expire(too_old.oldest)),
            };
            let Some(last) = changes.last() else { return self.due_bookmark(revision) };
            self.cursor = last.revision;
            let mut chunk = BytesMut::new();
            for change in &changes {
                self.write_change(&mut chunk, change);
            }
            if !chunk.is_empty() {
                return Some(chunk.freeze());
            }
        }
    }

    /// Ends a watch that has fallen behind the history. The client must list again.
    fn expire(&mut self, oldest: u64) -> Bytes {
        self.closed = true;
        let message = format!("too old resource version: {} ({oldest})", self.cursor);
        self.event("ERROR", &Refusal::expired(message).to_value())
    }

    /// Returns a bookmark if one is due. All changes up to `revision` must have been sent.
    fn due_bookmark(&mut self, revision: u64) -> Option<Bytes> {
        if self.bookmarks.is_none_or(|at| Instant::now() < at) {
            return None;
        }
        self.bookmarks = Some(Instant::now() + BOOKMARK_INTERVAL);
        self.cursor = self.cursor.max(revision);
        Some(self.bookmark(self.cursor, false))
    }

    /// Writes a change as an event of this watch. The change may make the object enter or leave the selection.
    fn write_change(&self, chunk: &mut BytesMut, change: &StoredWrite) {
        let was_in = change.before.as_ref().is_some_and(|before| self.selection.matches(before));
        let is_in = !change.removed && self.selection.matches(&change.object);
        match (was_in, is_in, &change.before) {
            (false, false, _) => {}
            (false, true, _) => self.write_event(chunk, "ADDED", &change.object),
            (true, true, _) => self.write_event(chunk, "MODIFIED", &change.object),
            // The object has left the selection. The event has its last selected state, with the revision of this
            // change.
            (true, false, Some(before)) if !change.removed => {
                let last = Stored::encode(self.kind, before.key.clone(), change.revision, before.value());
                self.write_event(chunk, "DELETED", &last);
            }
            (true, false, _) => self.write_event(chunk, "DELETED", &change.object),
        }
    }

    /// Writes an event by copying the object's bytes. Encoding the object again for each watch would be most of the
    /// server's work.
    fn write_event(&self, chunk: &mut BytesMut, what: &str, object: &Stored) {
        let body = match self.form {
            View::Protobuf => {
                let object = view::shown(self.kind, object, View::Protobuf);
                return chunk.extend_from_slice(&protobuf::frame(what, &object));
            }
            View::Object | View::Metadata => view::shown(self.kind, object, self.form),
            View::Table => {
                let query = [("includeObject", self.include.as_str())].into();
                let now = self.api.inner.clock.now();
                let table = table::table(self.kind, std::iter::once(object.value()), &query, now);
                table.to_string().into()
            }
        };
        for piece in [br#"{"type":""#, what.as_bytes(), br#"","object":"#, &body, b"}\n"] {
            chunk.extend_from_slice(piece);
        }
    }

    fn bookmark(&self, revision: u64, initial_end: bool) -> Bytes {
        let mut metadata = json!({"resourceVersion": revision.to_string(), "creationTimestamp": null});
        if initial_end {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let (kind, api_version) = match self.form {
            View::Metadata => ("PartialObjectMetadata", "meta.k8s.io/v1".to_owned()),
            View::Object | View::Protobuf | View::Table => (self.kind.name, self.kind.api_version()),
        };
        self.event("BOOKMARK", &json!({"kind": kind, "apiVersion": api_version, "metadata": metadata}))
    }

    /// Returns an event whose object is not stored, such as a `Status`.
    fn event(&self, what: &str, object: &Value) -> Bytes {
        match protobuf::object(object).filter(|_| self.form == View::Protobuf) {
            Some(object) => protobuf::frame(what, &object),
            None => format!("{}\n", json!({"type": what, "object": object})).into(),
        }
    }
}
