//! One kind, followed: listed, watched, resumed where it broke off, listed again where it must be.

use std::{sync::Arc, sync::atomic::Ordering, time::Duration};

use bytes::Bytes;
use http_body_util::BodyExt;
use kube::client::Body;
use tokio::{
    sync::{SemaphorePermit, watch},
    time::{Instant, sleep, sleep_until, timeout},
};

use super::{
    Closed, Shared,
    backoff::Backoff,
    error::{self, WatchError},
    paths::CollectionQuery,
    reporter::FeedReporter,
};
use crate::{
    cluster::{Change, Node, ObjectEvent},
    k8s::{
        decode::{self, Decoder, ListPurpose, StreamLine, WatchEvent},
        feed::{FeedKind, FeedState},
    },
    time::Timestamp,
};

/// Objects in one page of a list.
const PAGE: &str = "500";

/// The longest page or line that is read; longer ones are no sane object.
const LONGEST: usize = 256 << 20;

/// How long a watch may take to open: it is answered at once, whatever comes over it.
const OPENING: Duration = Duration::from_secs(10);

/// How long to wait for the number of objects that a list will have: only the screen wants it.
const COUNTING: Duration = Duration::from_secs(2);

/// How long a list may pause. It is being read from disk, perhaps.
const LIST_SILENCE: Duration = Duration::from_secs(30);

/// A watch that lived for so long did not end at once.
const LIVED: Duration = Duration::from_secs(5);

/// Pauses between tries grow to this where the link is broken,
const LONGEST_PAUSE: Duration = Duration::from_secs(8);

/// and to this where the server has too much to do.
const LONGEST_REST: Duration = Duration::from_secs(30);

/// How often what is forbidden is asked for again: rights are granted now and then.
const FORBIDDEN_PAUSE: Duration = Duration::from_secs(60);

/// How many lines are read before unshared names are forgotten.
const TIDY_EVERY: usize = 1 << 16;

/// Nodes whose pods are asked for ahead when the nodes have been listed.
const AHEAD_AT_FIRST: usize = 20;

/// Follows one kind for ever.
pub struct Follower<D> {
    kind: FeedKind,
    decoder: D,
    shared: Arc<Shared>,
    report: FeedReporter,
    pace: Backoff,
    /// The last complaint, until things go well again.
    complained: Option<String>,
    /// From where the watch goes on; none where all has to be listed.
    version: Option<String>,
    /// Whether any list has come to its end.
    listed_before: bool,
    /// Objects in the last list.
    rows: usize,
    /// Lines since the last tidying.
    lines: usize,
    /// Of the list of nodes: those that are not ready, and since when.
    not_ready: Vec<(Option<Timestamp>, crate::cluster::NodeName)>,
    woken: watch::Receiver<u64>,
    recovered: watch::Receiver<u64>,
}

/// How a watch ended that was not refused.
enum Ended {
    /// The server closed it, as it does every few minutes, or it broke off.
    Closed,
    /// Nothing came for too long: opening it again shows whether the link still works.
    Silent,
}

/// A setback, or the end of everything.
enum Stop {
    Setback(WatchError),
    Closed,
}

impl From<WatchError> for Stop {
    fn from(setback: WatchError) -> Self {
        Self::Setback(setback)
    }
}

impl From<Closed> for Stop {
    fn from(_: Closed) -> Self {
        Self::Closed
    }
}

impl<D: Decoder> Follower<D> {
    pub fn new(kind: FeedKind, decoder: D, shared: Arc<Shared>) -> Self {
        Self {
            kind,
            decoder,
            report: FeedReporter::new(kind, shared.clone()),
            pace: Backoff::default(),
            complained: None,
            version: None,
            listed_before: false,
            rows: 0,
            lines: 0,
            not_ready: Vec::new(),
            woken: shared.woken.subscribe(),
            recovered: shared.recovered.subscribe(),
            shared,
        }
    }

    pub async fn run(mut self) {
        // Only the end of the loop ends it; then there is nobody to tell.
        let _ = self.follow().await;
    }

    async fn follow(&mut self) -> Result<(), Closed> {
        self.report.state(FeedState::Connecting).await?;
        if !matches!(self.kind, FeedKind::Nodes | FeedKind::Leases | FeedKind::Leader) {
            let mut known = self.shared.nodes_known.subscribe();
            // The sender is held by `shared`.
            let _ = known.wait_for(|known| *known).await;
        }
        loop {
            let began = Instant::now();
            match self.list_or_watch().await {
                Ok(Ended::Closed) if began.elapsed() < LIVED => {
                    // A watch that ends at once would be opened thousands of times a second.
                    self.pause(LONGEST_PAUSE, None).await?;
                }
                Ok(Ended::Closed | Ended::Silent) => {}
                Err(Stop::Setback(setback)) => self.set_back(setback).await?,
                Err(Stop::Closed) => return Err(Closed),
            }
        }
    }

    async fn list_or_watch(&mut self) -> Result<Ended, Stop> {
        if let Some(version) = self.version.clone() {
            return self.resume(&version).await;
        }
        let shared = self.shared.clone();
        let turn = shared.lists.acquire().await.expect("it is never closed");
        self.begin_list().await?;
        if shared.streams() { self.stream_list(turn).await } else { self.page_list(turn).await }
    }

    async fn begin_list(&mut self) -> Result<(), Closed> {
        self.rows = 0;
        self.not_ready.clear();
        match self.decoder.change(WatchEvent::ListBegun) {
            Some(change) => self.report.change(change).await,
            None => Ok(()),
        }
    }

    /// Lists by a watch that begins with all objects, and goes on as that watch.
    async fn stream_list(&mut self, turn: SemaphorePermit<'_>) -> Result<Ended, Stop> {
        let expected = self.expected().await;
        let query = self.query().watched(lifetime()).streamed();
        let body = match self.open(&query, self.shared.request_timeout()).await {
            Ok(body) => body,
            Err(WatchError::Invalid(_)) => {
                // It does not stream lists: from now on nobody asks for that, and all ask for pages.
                self.shared.streams.store(false, Ordering::Relaxed);
                return self.page_list(turn).await;
            }
            Err(setback) => return Err(setback.into()),
        };
        self.report.state(FeedState::Listing { received: 0, expected }).await?;
        self.read_watch(body, Some(turn)).await
    }

    /// How many objects the list will have, where that is worth a request. Failing, the list itself tells why.
    async fn expected(&mut self) -> Option<usize> {
        if self.kind != FeedKind::Pods {
            return None;
        }
        let body = self.open(&self.query().with("limit", "1"), COUNTING).await.ok()?;
        let bytes = error::collect(body, COUNTING, LONGEST).await.ok()?;
        let end = decode::page(&mut self.decoder, &bytes, ListPurpose::Ahead, &mut Vec::new()).ok()?;
        end.remaining.map(|remaining| remaining + end.count)
    }

    /// Lists page by page, then watches.
    async fn page_list(&mut self, turn: SemaphorePermit<'_>) -> Result<Ended, Stop> {
        let mut next = String::new();
        let version = loop {
            let mut query = self.query().with("limit", PAGE);
            if !next.is_empty() {
                query = query.with("continue", &next);
            }
            let body = self.open(&query, self.shared.request_timeout()).await?;
            if next.is_empty() {
                self.report.state(FeedState::Listing { received: 0, expected: None }).await?;
            }
            let bytes = error::collect(body, LIST_SILENCE, LONGEST).await?;
            self.report.heard(bytes.len());
            let end = self.take_page(&bytes).await?;
            if end.next.is_empty() {
                break end.version;
            }
            next = end.next;
        };
        self.list_done(version.clone()).await?;
        drop(turn);
        self.resume(&version).await
    }

    async fn take_page(&mut self, bytes: &[u8]) -> Result<decode::PageEnd, Stop> {
        let mut changes = Vec::new();
        let end =
            decode::page(&mut self.decoder, bytes, ListPurpose::Whole, &mut changes).map_err(|error| {
                WatchError::Failed(format!("the list is not what an API server says: {error}"))
            })?;
        if let FeedState::Listing { expected: expected @ None, .. } = self.report.current_mut() {
            *expected = end.remaining.map(|remaining| remaining + end.count);
        }
        self.rows += end.count;
        self.report.listed(end.count);
        for change in changes {
            self.note(&change);
            self.report.change(change).await?;
        }
        self.report.on_time().await?;
        for bad in &end.bad {
            self.report.trouble(unreadable(bad)).await?;
        }
        Ok(end)
    }

    /// Watches on from a version.
    async fn resume(&mut self, version: &str) -> Result<Ended, Stop> {
        let query = self.query().watched(lifetime()).with("resourceVersion", version);
        let body = self.open(&query, OPENING).await?;
        self.report.state(FeedState::Live).await?;
        self.read_watch(body, None).await
    }

    fn query(&self) -> CollectionQuery {
        CollectionQuery::new(self.kind, self.shared.options.version)
    }

    async fn open(&mut self, query: &CollectionQuery, limit: Duration) -> Result<Body, WatchError> {
        self.report.requested();
        let answer = error::open(&self.shared.client, query.as_str(), limit).await?;
        self.report.heard(0);
        if matches!(self.report.current(), FeedState::Broken { .. }) {
            self.shared.recovered.send_modify(|count| *count += 1);
        }
        Ok(answer.into_body())
    }

    /// Reads a watch line by line until it ends. With a turn, it begins with a list.
    async fn read_watch(
        &mut self,
        mut body: Body,
        mut turn: Option<SemaphorePermit<'_>>,
    ) -> Result<Ended, Stop> {
        // What came of a line whose rest has not come yet.
        let mut begun: Vec<u8> = Vec::new();
        loop {
            let Some(frame) = self.next_frame(&mut body, turn.is_some()).await? else {
                return Ok(Ended::Silent);
            };
            let Some(bytes) = frame else { break };
            let mut rest = &bytes[..];
            while let Some(end) = memchr::memchr(b'\n', rest) {
                let (head, tail) = (&rest[..end], &rest[end + 1..]);
                rest = tail;
                if begun.is_empty() {
                    self.take_line(head, &mut turn).await?;
                } else {
                    begun.extend_from_slice(head);
                    self.take_line(&begun, &mut turn).await?;
                    begun.clear();
                }
            }
            begun.extend_from_slice(rest);
            if begun.len() > LONGEST {
                return Err(WatchError::Failed(format!("a line is longer than {LONGEST} bytes")).into());
            }
        }
        self.report.flush().await?;
        if turn.is_some() {
            return Err(WatchError::Failed("the list broke off".into()).into());
        }
        Ok(Ended::Closed)
    }

    /// The next piece of the body, or its end; none where nothing came for too long.
    async fn next_frame(&mut self, body: &mut Body, listing: bool) -> Result<Option<Option<Bytes>>, Stop> {
        let limit = if listing { LIST_SILENCE } else { self.silence_limit() };
        let deadline = Instant::now() + limit;
        loop {
            let wake = self.report.wake_at().map_or(deadline, |at| at.min(deadline));
            tokio::select! {
                biased;
                frame = body.frame() => {
                    let bytes = error::piece(frame)?;
                    self.report.heard(bytes.as_ref().map_or(0, Bytes::len));
                    self.report.on_time().await?;
                    return Ok(Some(bytes));
                }
                _ = self.woken.changed() => return self.gone_silent(listing).await,
                () = sleep_until(wake) => {
                    self.report.on_time().await?;
                    if Instant::now() >= deadline {
                        return self.gone_silent(listing).await;
                    }
                }
            }
        }
    }

    async fn gone_silent(&mut self, listing: bool) -> Result<Option<Option<Bytes>>, Stop> {
        self.report.flush().await?;
        if listing {
            // There is nothing to go on from: the list has to begin anew.
            let text = format!("nothing came of the list for {} s", LIST_SILENCE.as_secs());
            return Err(WatchError::Failed(text).into());
        }
        Ok(None)
    }

    /// How long nothing may come before the watch is opened anew, which shows whether the link still works.
    ///
    /// Servers send a bookmark about every minute; a kubelet renews its lease every ten seconds.
    fn silence_limit(&self) -> Duration {
        match (self.kind, u32::try_from(self.rows).unwrap_or(u32::MAX)) {
            (FeedKind::Leases, rows @ 1..) => Duration::from_secs(10) + Duration::from_secs(15) / rows,
            _ => Duration::from_secs(90),
        }
    }

    async fn take_line(&mut self, line: &[u8], turn: &mut Option<SemaphorePermit<'_>>) -> Result<(), Stop> {
        if line.is_empty() {
            return Ok(());
        }
        let listing = turn.is_some();
        self.lines += 1;
        if !listing {
            self.going_well();
        }
        match decode::line(&mut self.decoder, line, listing) {
            StreamLine::Object { change, version } => {
                if listing {
                    self.rows += 1;
                    self.report.listed(1);
                } else if !version.is_empty() {
                    self.version = Some(version);
                }
                if let Some(change) = change {
                    self.note(&change);
                    self.report.change(change).await?;
                }
            }
            StreamLine::Bookmark { version, list_ends } if listing => {
                if list_ends {
                    self.list_done(version).await?;
                    *turn = None;
                }
            }
            StreamLine::Bookmark { version, .. } => self.version = Some(version),
            StreamLine::Error(refusal) => return Err(WatchError::from(refusal).into()),
            StreamLine::Bad(what) => self.report.trouble(unreadable(&what)).await?,
            StreamLine::Broken(why) => {
                return Err(
                    WatchError::Failed(format!("a line is not what an API server says: {why}")).into()
                );
            }
        }
        Ok(())
    }

    async fn list_done(&mut self, version: String) -> Result<(), Closed> {
        if self.kind == FeedKind::Pods {
            // Whoever foretells pods holds this while doing so: from here on nobody will.
            *self.shared.pods_whole.lock().await = true;
        }
        if let Some(change) = self.decoder.change(WatchEvent::ListDone) {
            self.report.change(change).await?;
        }
        self.version = Some(version);
        if std::mem::replace(&mut self.listed_before, true) {
            self.report.relisted();
        }
        self.report.state(FeedState::Live).await?;
        self.going_well();
        if self.kind == FeedKind::Nodes {
            self.ask_ahead();
            self.shared.nodes_known.send_replace(true);
        }
        self.tidy();
        Ok(())
    }

    /// The list is whole, or something came after it: the next failure counts as the first.
    fn going_well(&mut self) {
        self.pace.reset();
        self.complained = None;
        if self.lines >= TIDY_EVERY {
            self.tidy();
        }
    }

    fn tidy(&mut self) {
        self.lines = 0;
        self.decoder.tidy();
    }

    /// Looks for nodes whose pods matter at once.
    fn note(&mut self, change: &Change) {
        let (Change::Node(ObjectEvent::Listed(node)) | Change::Node(ObjectEvent::Applied(node))) = change
        else {
            return;
        };
        if node.is_ready() {
            return;
        }
        match change {
            Change::Node(ObjectEvent::Listed(_)) => self.not_ready.push((since(node), node.name.clone())),
            // When full, the whole list comes soon enough.
            _ => drop(self.shared.not_ready.try_send(node.name.clone())),
        }
    }

    /// Asks for the pods of the nodes that were last found not ready: their countdowns run now.
    fn ask_ahead(&mut self) {
        let mut nodes = std::mem::take(&mut self.not_ready);
        nodes.sort_by(|left, right| right.cmp(left));
        for (_, node) in nodes.into_iter().take(AHEAD_AT_FIRST) {
            drop(self.shared.not_ready.try_send(node));
        }
    }

    /// Tells what went wrong and waits until it is worth trying again.
    async fn set_back(&mut self, setback: WatchError) -> Result<(), Closed> {
        match setback {
            WatchError::Expired => {
                self.version = None;
                // Everybody's watch expires at once: not everybody lists at once.
                self.pause(Duration::from_secs(2), None).await
            }
            WatchError::Forbidden(words) => {
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
                let mut recovered = self.recovered.clone();
                recovered.mark_unchanged();
                let pause = self.pace.next(LONGEST_PAUSE, None);
                tokio::select! {
                    // Someone else got through; a little apart from each other all do.
                    _ = recovered.changed() => sleep(Duration::from_millis(fastrand::u64(0..400))).await,
                    _ = self.woken.changed() => {}
                    () = sleep(pause) => {}
                }
                Ok(())
            }
        }
    }

    async fn broken(&mut self, error: String) -> Result<(), Closed> {
        self.complain(&error, "trying again").await?;
        let now = self.shared.clock.now();
        let since = match self.report.current() {
            FeedState::Broken { since, .. } => *since,
            _ => self.report.last_heard().unwrap_or(now),
        };
        self.report.state(FeedState::Broken { since, error }).await
    }

    /// Tells the journal, once until things go well or something else goes wrong.
    async fn complain(&mut self, error: &str, next: &str) -> Result<(), Closed> {
        if self.complained.as_deref() == Some(error) {
            return Ok(());
        }
        self.complained = Some(error.into());
        self.report.trouble(format!("{error}; {next}")).await
    }

    async fn forbidden(&mut self, error: String) -> Result<(), Closed> {
        self.complain(&error, "the rest goes on without; it is asked for again every minute").await?;
        self.report.state(FeedState::Forbidden { error }).await?;
        if self.kind == FeedKind::Nodes {
            self.shared.nodes_known.send_replace(true);
        }
        sleep(FORBIDDEN_PAUSE.mul_f64(0.9 + fastrand::f64() / 5.0)).await;
        Ok(())
    }

    async fn pause(&mut self, longest: Duration, asked: Option<Duration>) -> Result<(), Closed> {
        self.report.flush().await?;
        let pause = self.pace.next(longest, asked);
        // Waking up is no reason to press a server that has asked for time.
        if asked.is_some() {
            sleep(pause).await;
        } else {
            let _ = timeout(pause, self.woken.changed()).await;
        }
        Ok(())
    }
}

/// For how many seconds a watch is asked for: some minutes, never the same.
fn lifetime() -> u64 {
    fastrand::u64(300..600)
}

fn unreadable(what: &str) -> String {
    format!("{what} cannot be read and is left out")
}

fn since(node: &Node) -> Option<Timestamp> {
    node.ready().and_then(|ready| ready.last_transition)
}
