//! Keeps one kind, or one scope of a kind (such as the pods of one node), up to date: lists its objects, watches them,
//! and resumes a watch that has ended. If a watch cannot be resumed, lists the objects again.
//!
//! The `watcher` of kube-runtime does the same for JSON. It is not used, because it
//! - does not read protobuf, and fails a whole list because of one object that cannot be read;
//! - passes on neither bookmarks nor the progress of a list, so that a quiet watch and a dead one look alike;
//! - notices a hung connection only after the timeout of its watch, some five minutes;
//! - does not list the pods of some nodes before all pods.

use std::{
    future::pending,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use bytes::Bytes;
use http_body_util::BodyExt;
use kube::client::Body;
use tokio::{
    sync::{SemaphorePermit, watch},
    time::{Instant, sleep, sleep_until, timeout},
};
use tokio_util::task::AbortOnDropHandle;

use super::{
    Closed, Shared,
    backoff::Backoff,
    error::{self, ObjectBody, WatchError},
    framing::Framing,
    paths::CollectionQuery,
    reporter::FeedReporter,
    scope,
};
use crate::k8s::{
    decode::{
        Encoding, ListPurpose, PageEnd, StreamEvent,
        kinds::{AnyDecoder, decoder_of, decoder_without_images},
    },
    feed::{FeedKind, FeedState},
};
use kordon_core::cluster::{Change, Key, Node, NodeName, ObjectEvent, ReadBy, Scope, ScopeRead, Version};
use kordon_time::ClusterTime;

/// Number of objects in one page of a list.
const PAGE: &str = "500";

/// Maximum size of a page or event, in bytes.
const LONGEST: usize = 256 << 20;

/// Time within which a watch must open. Servers respond at once, even if there are no events.
const OPENING: Duration = Duration::from_secs(10);

/// Timeout of the request that counts the objects of a list. It is short, because only the screen needs the number.
const COUNTING: Duration = Duration::from_secs(2);

/// Maximum time without data while a list is read. It is long, because the server may have to read the list from disk.
const LIST_SILENCE: Duration = Duration::from_secs(30);

/// Idle time of a watch after which its changes are sent.
const LULL: Duration = Duration::from_millis(1);

/// Pause of a watch after each batch of changes. With it, hundreds of events a second become at most thirty batches a
/// second.
const PAUSE: Duration = Duration::from_millis(30);

/// Minimum duration of a watch that is reopened at once. A watch that ends sooner is reopened after a pause.
const SHORTEST_WATCH: Duration = Duration::from_secs(5);

/// Maximum delay between attempts while the connection is broken.
const LONGEST_PAUSE: Duration = Duration::from_secs(8);

/// Maximum delay between attempts while the server is overloaded.
const LONGEST_REST: Duration = Duration::from_secs(30);

/// Interval between attempts for a forbidden kind. Attempts continue, because permissions may be granted later.
const FORBIDDEN_PAUSE: Duration = Duration::from_secs(60);

/// Time for which the server may refuse a kind before the kind counts as forbidden, if the kind was listed before. An
/// API server that has just started refuses all requests until it has loaded its roles.
const REFUSED_AT_FIRST: Duration = Duration::from_secs(30);

/// Number of watch events after which interned strings that no object uses are dropped.
const TIDY_EVERY: usize = 1 << 16;

/// Number of nodes whose pods are prefetched after the nodes have been listed.
const PREFETCHED_AT_FIRST: usize = 20;

/// Follows one kind until the channel of events is closed.
///
/// [`run`](Self::run) calls [`list_or_watch`](Self::list_or_watch) in a loop. A turn of the loop resumes the watch at
/// `version`, or lists first if `version` is `None`. A turn that ends with a [`WatchEnd`] is followed by a turn that
/// resumes. A turn that ends with a [`WatchError`] is followed by [`on_error`](Self::on_error), which reports the
/// error, decides whether `version` is still valid, and waits. All changes and states are sent through `report`, in the
/// order in which they happened.
pub struct Follower {
    kind: FeedKind,
    /// The scope (part of the kind) that is followed; `None` for the whole kind.
    scope: Option<Scope>,
    decoder: Box<dyn AnyDecoder>,
    shared: Arc<Shared>,
    report: FeedReporter,
    backoff: Backoff,
    /// The last reported error; `None` after a success, so that the same error is reported again.
    reported_error: Option<String>,
    /// The version at which the watch resumes; `None` if the kind must be listed.
    version: Option<String>,
    /// Whether the kind (or the scope) was listed completely at least once.
    listed_before: bool,
    /// Time since when the server has refused requests for the kind; `None` after a success.
    refused_since: Option<Instant>,
    /// Number of objects in the last list.
    rows: usize,
    /// Pending request for the number of objects in the list; `None` if no such request is pending.
    counting: Option<AbortOnDropHandle<Option<usize>>>,
    /// Keys of the objects in the last list of a scope (part of the kind).
    found: Vec<Key>,
    /// Number of watch events since unused interned strings were last dropped.
    events: usize,
    /// The nodes in the current list that are not ready, each with the time since which it is not ready.
    not_ready: Vec<(Option<ClusterTime>, NodeName)>,
    woken: watch::Receiver<u64>,
    recovered: watch::Receiver<u64>,
}

/// How a watch has ended without an error.
enum WatchEnd {
    /// The server closed the watch, which it does every few minutes.
    Closed,
    /// No data arrived for too long. Reopening the watch shows whether the connection still works.
    Silent,
}

/// Phase of a response that is still open.
enum Phase<'a> {
    /// The response begins with the whole list. The permit limits the number of concurrent lists, and is held until the
    /// list is complete.
    Listing(#[expect(dead_code, reason = "held until the list is complete")] SemaphorePermit<'a>),
    Watching,
}

impl Phase<'_> {
    const fn is_listing(&self) -> bool {
        matches!(self, Self::Listing(_))
    }
}

/// The next part of a response.
enum Piece {
    Bytes(Bytes),
    End,
    /// No data arrived for too long.
    Silence,
}

/// A frame of a response body, or a connection error.
type FrameRead = Result<http_body::Frame<Bytes>, kube::Error>;

/// Reason why a turn of the loop that lists and watches stopped early.
enum Stop {
    Error(WatchError),
    /// The receiver of events is dropped.
    Closed,
}

impl From<WatchError> for Stop {
    fn from(error: WatchError) -> Self {
        Self::Error(error)
    }
}

impl From<Closed> for Stop {
    fn from(_: Closed) -> Self {
        Self::Closed
    }
}

impl Follower {
    pub fn new(kind: FeedKind, scope: Option<Scope>, shared: Arc<Shared>) -> Self {
        // The images of nodes are decoded only if they are needed to place pods. This is so if a scope (part of a kind)
        // is followed, or if pods are watched.
        let places = scope.is_some() || shared.options.kinds.contains(&FeedKind::Pods);
        Self {
            kind,
            decoder: if places { decoder_of(kind) } else { decoder_without_images(kind) },
            report: FeedReporter::new(kind, scope.clone(), shared.clone()),
            scope,
            counting: None,
            found: Vec::new(),
            backoff: Backoff::default(),
            reported_error: None,
            version: None,
            listed_before: false,
            refused_since: None,
            rows: 0,
            events: 0,
            not_ready: Vec::new(),
            woken: shared.woken.subscribe(),
            recovered: shared.recovered.subscribe(),
            shared,
        }
    }

    pub async fn run(mut self) {
        // Following fails only if the receiver of events is dropped.
        let _ = self.follow().await;
    }

    async fn follow(&mut self) -> Result<(), Closed> {
        self.report.state(FeedState::Connecting).await?;
        let is_first = matches!(self.kind, FeedKind::Nodes | FeedKind::Leases | FeedKind::Leader);
        if !is_first && self.scope.is_none() {
            self.shared.first_lists_known().await;
        }
        loop {
            let started = Instant::now();
            match self.list_or_watch().await {
                Ok(WatchEnd::Closed) if started.elapsed() < SHORTEST_WATCH => {
                    // Without a delay, a watch that ends at once would be reopened thousands of times a second.
                    self.pause(LONGEST_PAUSE, None).await?;
                }
                Ok(WatchEnd::Closed | WatchEnd::Silent) => {}
                Err(Stop::Error(error)) => self.on_error(error).await?,
                Err(Stop::Closed) => return Err(Closed),
            }
        }
    }

    async fn list_or_watch(&mut self) -> Result<WatchEnd, Stop> {
        if let Some(version) = self.version.clone() {
            return self.resume(&version).await;
        }
        let shared = self.shared.clone();
        let turn = shared.lists.acquire().await.expect("it is never closed");
        self.start_list().await?;
        // Only lists of whole kinds are streamed. A scope (part of a kind) has few objects, so it is listed in pages.
        let streams = shared.streams() && self.scope.is_none();
        if streams { self.stream_list(turn).await } else { self.page_list(turn).await }
    }

    async fn start_list(&mut self) -> Result<(), Closed> {
        self.rows = 0;
        self.found.clear();
        self.not_ready.clear();
        if self.scope.is_some() {
            return Ok(());
        }
        match self.decoder.on_list_started() {
            Some(change) => self.report.change(change).await,
            None => Ok(()),
        }
    }

    /// Opens a watch that first sends all objects, and follows it: the list and the watch are one response.
    async fn stream_list(&mut self, turn: SemaphorePermit<'_>) -> Result<WatchEnd, Stop> {
        let query = self.query().watched(lifetime()).streamed();
        let shared = self.shared.clone();
        // The number of objects in the list is requested concurrently, so that the list does not wait for it.
        self.counting = self.is_counted().then(|| {
            self.report.requested();
            AbortOnDropHandle::new(tokio::spawn(count(shared.clone(), self.query())))
        });
        let body = match self.open(&query, shared.request_timeout()).await {
            Ok(body) => body,
            Err(WatchError::Invalid(_)) => {
                // The server does not stream lists, so from now on every kind is listed in pages.
                self.shared.streams.store(false, Ordering::Relaxed);
                return self.page_list(turn).await;
            }
            Err(error) => return Err(error.into()),
        };
        self.report.state(FeedState::Listing { received: 0, expected: None }).await?;
        self.read_watch(body, Phase::Listing(turn)).await
    }

    /// Whether a separate request asks for the number of objects in the list. Only kinds that the screen waits for are
    /// counted, and only if no error was reported since the last success.
    fn is_counted(&self) -> bool {
        matches!(self.kind, FeedKind::Nodes | FeedKind::Pods) && self.reported_error.is_none()
    }

    /// Lists page by page, then watches.
    async fn page_list(&mut self, turn: SemaphorePermit<'_>) -> Result<WatchEnd, Stop> {
        let mut next = String::new();
        let version = loop {
            let mut query = self.first_page();
            if !next.is_empty() {
                query = query.with("continue", &next);
            }
            let ObjectBody { encoding, body } = self.open(&query, self.shared.request_timeout()).await?;
            if next.is_empty() {
                self.report.state(FeedState::Listing { received: 0, expected: None }).await?;
            }
            let bytes = error::collect(body, LIST_SILENCE, LONGEST).await?;
            self.report.heard(bytes.len());
            let end = self.on_page(encoding, &bytes).await?;
            if end.next.is_empty() {
                break end.version;
            }
            next = end.next;
        };
        self.on_list_done(version.clone()).await?;
        drop(turn);
        self.resume(&version).await
    }

    async fn on_page(&mut self, encoding: Encoding, bytes: &[u8]) -> Result<PageEnd, Stop> {
        let mut changes = Vec::new();
        let purpose = if self.scope.is_some() { ListPurpose::Part } else { ListPurpose::Whole };
        let end = self.decoder.page(encoding, bytes, purpose, &mut changes).map_err(WatchError::no_list)?;
        if self.scope.is_some() {
            self.found.extend(changes.iter().filter_map(Change::found));
        }
        self.report.expect(end.remaining.map(|remaining| remaining + end.count));
        self.rows += end.count;
        self.report.listed(end.count);
        for change in changes {
            self.look_for_not_ready(&change);
            self.report.change(change).await?;
        }
        self.report.on_time().await?;
        for bad in &end.bad {
            self.report.trouble(unreadable(bad)).await?;
        }
        Ok(end)
    }

    /// Watches from a resource version on.
    async fn resume(&mut self, version: &str) -> Result<WatchEnd, Stop> {
        let query = self.query().watched(lifetime()).with("resourceVersion", version);
        let body = self.open(&query, OPENING).await?;
        self.report.state(FeedState::Live).await?;
        self.read_watch(body, Phase::Watching).await
    }

    fn query(&self) -> CollectionQuery {
        let version = self.shared.options.version;
        match &self.scope {
            Some(scope) => scope::query(scope, version),
            None => CollectionQuery::new(self.kind, version),
        }
    }

    fn first_page(&self) -> CollectionQuery {
        match &self.scope {
            Some(scope) => scope::list_query(scope, self.shared.options.version, None),
            None => self.query().with("limit", PAGE),
        }
    }

    async fn open(&mut self, query: &CollectionQuery, limit: Duration) -> Result<ObjectBody, WatchError> {
        self.report.requested();
        let answer = error::open_objects(&self.shared.client, query.as_str(), limit).await?;
        self.report.heard(0);
        self.refused_since = None;
        if matches!(self.report.current(), FeedState::Broken { .. }) {
            self.shared.recovered.send_modify(|count| *count += 1);
        }
        Ok(answer)
    }

    /// Reads a watch event by event until it ends.
    async fn read_watch(&mut self, answer: ObjectBody, mut phase: Phase<'_>) -> Result<WatchEnd, Stop> {
        let ObjectBody { encoding, mut body } = answer;
        let mut framing = Framing::new(encoding, LONGEST);
        loop {
            match self.next_piece(&mut body, phase.is_listing()).await? {
                Piece::Bytes(bytes) => {
                    self.on_bytes(&bytes, &mut framing, &mut phase).await?;
                }
                Piece::End => break,
                Piece::Silence => return self.on_silence(&phase).await,
            }
        }
        self.report.flush().await?;
        if phase.is_listing() {
            return Err(WatchError::Failed("the server closed the list before its end".into()).into());
        }
        Ok(WatchEnd::Closed)
    }

    /// Handles the watch events that have arrived completely.
    async fn on_bytes(
        &mut self,
        mut bytes: &[u8],
        framing: &mut Framing,
        phase: &mut Phase<'_>,
    ) -> Result<(), Stop> {
        let encoding = framing.encoding();
        while let Some(event) = framing.next(&mut bytes)? {
            self.on_event(encoding, event, phase).await?;
        }
        Ok(())
    }

    /// Waits for the next piece of the body. Meanwhile the reporter sends changes and health that are due.
    async fn next_piece(&mut self, body: &mut Body, listing: bool) -> Result<Piece, Stop> {
        if !listing && self.report.has_changes() {
            if let Ok(frame) = timeout(LULL, body.frame()).await {
                return self.piece(frame).await;
            }
            self.report.flush().await?;
            sleep(PAUSE).await;
        }
        let limit = if listing { LIST_SILENCE } else { self.silence_limit() };
        let deadline = Instant::now() + limit;
        loop {
            let wake = self.report.wake_at().map_or(deadline, |at| at.min(deadline));
            tokio::select! {
                biased;
                expected = counted(&mut self.counting) => {
                    self.report.expect(expected);
                    self.report.send_health().await?;
                }
                frame = body.frame() => return self.piece(frame).await,
                // The machine has slept, so every connection may be broken.
                _ = self.woken.changed() => return Ok(Piece::Silence),
                () = sleep_until(wake) => {
                    self.report.on_time().await?;
                    if Instant::now() >= deadline {
                        return Ok(Piece::Silence);
                    }
                }
            }
        }
    }

    async fn piece(&mut self, frame: Option<FrameRead>) -> Result<Piece, Stop> {
        let bytes = error::piece(frame)?;
        self.report.heard(bytes.as_ref().map_or(0, Bytes::len));
        self.report.on_time().await?;
        Ok(bytes.map_or(Piece::End, Piece::Bytes))
    }

    async fn on_silence(&mut self, phase: &Phase<'_>) -> Result<WatchEnd, Stop> {
        self.report.flush().await?;
        match phase {
            Phase::Watching => Ok(WatchEnd::Silent),
            // A list that went silent cannot be resumed, so the silence is an error.
            Phase::Listing(_) => {
                let text = format!("no data of the list for {} s", LIST_SILENCE.as_secs());
                Err(WatchError::Failed(text).into())
            }
        }
    }

    /// Maximum silence of a watch, after which it is reopened to test the connection.
    ///
    /// Servers send a bookmark about every minute. Data for the watch of Leases arrives more often, because every
    /// kubelet renews its Lease every ten seconds.
    fn silence_limit(&self) -> Duration {
        match (self.kind, u32::try_from(self.rows).unwrap_or(u32::MAX)) {
            (FeedKind::Leases, rows @ 1..) => Duration::from_secs(10) + Duration::from_secs(15) / rows,
            _ => Duration::from_secs(90),
        }
    }

    async fn on_event(
        &mut self,
        encoding: Encoding,
        event: &[u8],
        phase: &mut Phase<'_>,
    ) -> Result<(), Stop> {
        if event.is_empty() {
            return Ok(());
        }
        let listing = phase.is_listing();
        self.events += 1;
        if !listing {
            self.on_success();
        }
        match self.decoder.event(encoding, event, listing) {
            StreamEvent::Object { change, version } => {
                if listing {
                    self.rows += 1;
                    self.report.listed(1);
                } else if !version.is_empty() {
                    self.version = Some(version);
                }
                if let Some(change) = change {
                    self.look_for_not_ready(&change);
                    self.report.change(change).await?;
                }
            }
            StreamEvent::Bookmark { version, list_ends } if listing => {
                if list_ends {
                    self.on_list_done(version).await?;
                    *phase = Phase::Watching;
                }
            }
            StreamEvent::Bookmark { version, .. } => self.version = Some(version),
            StreamEvent::Error(status) => return Err(WatchError::from(status).into()),
            StreamEvent::Bad(object) => self.report.trouble(unreadable(&object)).await?,
            StreamEvent::Broken(why) => {
                let text = format!("what it sent is not an event of the Kubernetes API: {why}");
                return Err(WatchError::Failed(text).into());
            }
        }
        Ok(())
    }

    async fn on_list_done(&mut self, version: String) -> Result<(), Closed> {
        if let Some(scope) = self.scope.clone() {
            let (version, found) = (Version::parse(&version), std::mem::take(&mut self.found));
            let read = ScopeRead { scope, version, found, by: ReadBy::Watch };
            self.report.change(Change::Read(Box::new(read))).await?;
        } else {
            self.on_whole_list().await?;
        }
        self.version = Some(version);
        if std::mem::replace(&mut self.listed_before, true) {
            self.report.relisted();
        }
        self.report.state(FeedState::Live).await?;
        self.on_success();
        if self.kind == FeedKind::Nodes && self.scope.is_none() {
            self.prefetch();
        }
        self.known_or_denied();
        self.tidy();
        Ok(())
    }

    /// Marks the nodes or the Leases as known, so that the watches that wait for them start.
    fn known_or_denied(&self) {
        match (self.kind, &self.scope) {
            (FeedKind::Nodes, None) => drop(self.shared.nodes_known.send_replace(true)),
            (FeedKind::Leases, None) => drop(self.shared.leases_known.send_replace(true)),
            _ => {}
        }
    }

    async fn on_whole_list(&mut self) -> Result<(), Closed> {
        if self.kind == FeedKind::Pods {
            // A prefetch task holds this lock while it sends pods, and sends no pods once the value behind the lock is
            // true. So no prefetched pods can arrive after the list of all pods.
            *self.shared.pods_whole.lock().await = true;
        }
        match self.decoder.on_list_done() {
            Some(change) => self.report.change(change).await,
            None => Ok(()),
        }
    }

    /// Resets the backoff and the last error. Called after a complete list or an event of a watch.
    fn on_success(&mut self) {
        self.backoff.reset();
        self.reported_error = None;
        if self.events >= TIDY_EVERY {
            self.tidy();
        }
    }

    fn tidy(&mut self) {
        self.events = 0;
        self.decoder.tidy();
    }

    /// Collects nodes that are not ready, because their pods should be prefetched.
    fn look_for_not_ready(&mut self, change: &Change) {
        match change {
            Change::Node(ObjectEvent::Listed(node)) if !node.is_ready() => {
                self.not_ready.push((since(node), node.name.clone()));
            }
            // If the channel is full, the node's pods are not prefetched, but arrive later with the list of all pods.
            Change::Node(ObjectEvent::Applied(node)) if !node.is_ready() => {
                drop(self.shared.not_ready.try_send(node.name.clone()));
            }
            _ => {}
        }
    }

    /// Prefetches the pods of nodes in the list that are not ready. The nodes that became not ready most recently come
    /// first, because the eviction of their pods is near.
    fn prefetch(&mut self) {
        let mut nodes = std::mem::take(&mut self.not_ready);
        nodes.sort_by(|left, right| right.cmp(left));
        for (_, node) in nodes.into_iter().take(PREFETCHED_AT_FIRST) {
            drop(self.shared.not_ready.try_send(node));
        }
    }

    /// Reports an error and waits until the next attempt.
    async fn on_error(&mut self, error: WatchError) -> Result<(), Closed> {
        match error {
            WatchError::Expired => {
                self.version = None;
                // The watches of all clients expire at the same time. A random delay keeps the clients from listing all
                // at the same time.
                self.pause(Duration::from_secs(2), None).await
            }
            WatchError::NotServed(_) if FeedKind::ON_DEMAND.contains(&self.kind) && self.scope.is_none() => {
                self.without_objects().await
            }
            WatchError::Forbidden(words) | WatchError::NotServed(words) if self.is_refused_at_first() => {
                self.broken(words).await?;
                self.wait_for_recovery().await;
                Ok(())
            }
            WatchError::Forbidden(words) | WatchError::NotServed(words) => {
                self.version = None;
                self.forbidden(words).await
            }
            WatchError::Overloaded(words, asked) => {
                self.broken(words).await?;
                self.pause(LONGEST_REST, asked).await
            }
            WatchError::Invalid(words) => {
                self.version = None;
                self.broken(words).await?;
                self.pause(LONGEST_REST, None).await
            }
            WatchError::Failed(words) => {
                self.broken(words).await?;
                self.wait_for_recovery().await;
                Ok(())
            }
        }
    }

    fn is_refused_at_first(&mut self) -> bool {
        let since = *self.refused_since.get_or_insert_with(Instant::now);
        self.listed_before && since.elapsed() < REFUSED_AT_FIRST
    }

    /// Waits until the backoff has passed or another watch reconnects.
    async fn wait_for_recovery(&mut self) {
        let mut recovered = self.recovered.clone();
        recovered.mark_unchanged();
        let pause = self.backoff.next(LONGEST_PAUSE, None);
        tokio::select! {
            // A small random delay keeps the watches from retrying all at the same moment.
            _ = recovered.changed() => sleep(Duration::from_millis(fastrand::u64(0..400))).await,
            _ = self.woken.changed() => {}
            () = sleep(pause) => {}
        }
    }

    async fn broken(&mut self, error: String) -> Result<(), Closed> {
        self.report_error(&error, "trying again").await?;
        let now = self.shared.clock.now();
        let since = match self.report.current() {
            FeedState::Broken { since, .. } => *since,
            _ => self.report.last_heard().unwrap_or(now),
        };
        self.report.state(FeedState::Broken { since, error }).await
    }

    /// Reports an error to the journal. Does nothing if the last reported error was the same and there was no success
    /// since.
    async fn report_error(&mut self, error: &str, next: &str) -> Result<(), Closed> {
        if self.reported_error.as_deref() == Some(error) {
            return Ok(());
        }
        self.reported_error = Some(error.into());
        self.report.trouble(format!("{error}; {next}")).await
    }

    async fn forbidden(&mut self, error: String) -> Result<(), Closed> {
        // The journal text leaves out the server's message. It is then the same for every forbidden kind, and the
        // journal merges the entries. The reported state has the message.
        self.report_error("may not be listed", "continuing without it, and trying again every minute")
            .await?;
        self.report.state(FeedState::Forbidden { error }).await?;
        self.known_or_denied();
        sleep(FORBIDDEN_PAUSE.mul_f64(0.9 + fastrand::f64() / 5.0)).await;
        Ok(())
    }

    /// Reports that a kind has no objects because the server does not serve the kind, and waits until the next attempt.
    /// The API of devices, for example, is optional.
    async fn without_objects(&mut self) -> Result<(), Closed> {
        self.version = None;
        for change in [self.decoder.on_list_started(), self.decoder.on_list_done()].into_iter().flatten() {
            self.report.change(change).await?;
        }
        self.report.state(FeedState::Live).await?;
        sleep(FORBIDDEN_PAUSE.mul_f64(0.9 + fastrand::f64() / 5.0)).await;
        Ok(())
    }

    async fn pause(&mut self, longest: Duration, asked: Option<Duration>) -> Result<(), Closed> {
        self.report.flush().await?;
        let pause = self.backoff.next(longest, asked);
        // If the server asked for a delay, wait for the whole delay, even if this machine sleeps during it.
        if asked.is_some() {
            sleep(pause).await;
        } else {
            let _ = timeout(pause, self.woken.changed()).await;
        }
        Ok(())
    }
}

/// Requests the number of objects in the list; `None` if the request fails. The error is not reported, because the list
/// itself fails in the same way.
async fn count(shared: Arc<Shared>, query: CollectionQuery) -> Option<usize> {
    let query = query.with("limit", "1");
    let ObjectBody { encoding, body } =
        error::open_objects(&shared.client, query.as_str(), COUNTING).await.ok()?;
    let bytes = error::collect(body, COUNTING, LONGEST).await.ok()?;
    encoding.count(&bytes)
}

/// Waits for the requested number of objects in the list, and returns it. Waits forever if no request for the number is
/// pending.
async fn counted(counting: &mut Option<AbortOnDropHandle<Option<usize>>>) -> Option<usize> {
    let Some(asked) = counting else { return pending().await };
    let expected = asked.await.ok().flatten();
    *counting = None;
    expected
}

/// Returns the duration of a watch in seconds: some minutes, at random.
fn lifetime() -> u64 {
    fastrand::u64(300..600)
}

fn unreadable(what: &str) -> String {
    format!("{what} cannot be read and is left out")
}

fn since(node: &Node) -> Option<ClusterTime> {
    node.ready().and_then(|ready| ready.last_transition)
}
