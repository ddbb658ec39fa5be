//! The history of the dashboard: a separate thread writes the messages of the watches to a ring on disk.
//!
//! The event loop sends each message to the history thread, and a copy of the cluster for each keyframe. A third thread
//! writes the keyframe at the same time. The event loop never waits. If the history thread does not keep up, the event
//! loop sends nothing until the history thread has caught up, and the history has a gap.

use std::{
    env,
    fs::{self, OpenOptions},
    io::{self, BufReader},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    panic,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use tokio::sync::{oneshot, watch};

use super::{
    background::give_way,
    player::{AnyReplay, Player, RecordingSource},
    record::keyframe_of,
    replay::Replay,
};
use crate::{
    k8s::feed::FeedEvent,
    model::{Feeds, Model},
    recording::{
        RecordingError, RecordingReader, RecordingStart, RecordingWriter, Ring, RingLimits, RingReader,
        SegmentKeyframe,
    },
};
use kordon_core::{cluster::Cluster, engine::Settings};
use kordon_time::{Span, Timestamp};

/// Number of keyframes in a full history. [`KEYFRAMES`] is the minimum and maximum interval between two keyframes, each
/// of which costs as much as some hundred thousand changes.
const KEYFRAMES_KEPT: i64 = 12;
const KEYFRAMES: (Span, Span) = (Span::from_secs(60), Span::from_secs(600));

/// Number of changes in one batch. Changes are batched, because waking the history thread costs more than encoding a
/// change.
const BATCH: usize = 100;

/// Limits of the queue to the history thread: the number of batches, and the number of changes in all batches. If a
/// limit is exceeded, changes are missing from the history. 20,000 changes of pods take about 30 MiB.
const BATCHES: usize = 1024;
const CHANGES: usize = 20_000;

/// Interval at which the history thread checks whether a keyframe is finished, if no message arrives.
const LOOK_AFTER_KEYFRAME: Duration = Duration::from_secs(1);

/// Reason why changes are missing from the history (a gap), as text in the history.
const TOO_MUCH: &str = "the watches reported more than the history could keep up with";

/// Options of the history: its limits, its folder, and the start of its recording.
#[derive(Clone, Debug)]
pub struct HistoryOptions {
    /// Folder of the history's files; none if there is no home folder.
    pub folder: Option<PathBuf>,
    pub limits: RingLimits,
    /// Settings and metadata at the start of the recording.
    pub start: RecordingStart,
}

/// The part of the history that the event loop owns. It sends messages to the history thread.
#[derive(Debug)]
pub struct History {
    inbox: mpsc::SyncSender<HistoryMessage>,
    batch: EventBatch,
    /// Number of changes that were sent to the history thread and that it has not handled yet.
    waiting: Arc<AtomicUsize>,
    reports: watch::Receiver<HistoryReport>,
    phase: HistoryPhase,
    /// Value of `HistoryReport::wanted` when the last keyframe was sent.
    answered: u64,
}

/// Phase of the history, which determines the messages that the event loop sends to the history thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HistoryPhase {
    /// The event loop sends nothing until the first lists are complete, because loading has priority.
    Loading,
    /// The event loop sends every change to the history thread.
    Recording,
    /// The history thread has not kept up. The event loop has sent nothing since this time, and sends nothing until the
    /// history thread has caught up.
    Behind(Timestamp),
    /// The event loop sends nothing more, because the history thread has ended.
    Ended,
}

/// State of the history, as the history thread reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HistoryReport {
    /// Time at which the history begins; none while the history is empty.
    pub from: Option<Timestamp>,
    /// Size on disk in bytes (`bytes`), and its limit (`limit`).
    pub bytes: u64,
    pub limit: u64,
    /// Number of keyframes that the history thread has requested.
    wanted: u64,
    /// Reason why the history has ended; none while the history continues.
    pub failure: Option<String>,
}

/// Messages of the watches that are sent to the history thread as one batch.
#[derive(Debug, Default)]
struct EventBatch {
    events: Vec<(FeedEvent, Timestamp)>,
    /// Number of changes in the batch. Each message counts as at least one change.
    changes: usize,
}

/// Content of a keyframe: the cluster, and the state of its watches.
#[derive(Debug)]
struct KnownState {
    cluster: Cluster,
    feeds: Feeds,
}

/// A thread that writes one keyframe. A keyframe of 600,000 pods takes some seconds to write.
type KeyframeJob = JoinHandle<Result<SegmentKeyframe, RecordingError>>;

/// A message to the history thread.
enum HistoryMessage {
    Events(EventBatch),
    Keyframe(Box<KnownState>, KeyframeTimes),
    /// Requests a reader of the history up to this time.
    Read(Timestamp, oneshot::Sender<RingReader>),
}

/// Time of a keyframe, and the period before the keyframe for which changes are missing (a gap).
#[derive(Clone, Copy, Debug)]
struct KeyframeTimes {
    now: Timestamp,
    /// Time from which changes are missing before the keyframe; none if no changes are missing.
    gap: Option<Timestamp>,
}

impl History {
    /// Starts the history thread. Nothing is written before the first lists are complete.
    ///
    /// # Errors
    /// The thread cannot be started, or there is no folder.
    pub fn start(options: HistoryOptions) -> io::Result<Self> {
        let HistoryOptions { folder, limits, start } = options;
        let folder = folder.ok_or_else(|| io::Error::other("set XDG_CACHE_HOME or HOME"))?;
        let (inbox, messages) = mpsc::sync_channel(BATCHES);
        let (reporter, reports) = watch::channel(HistoryReport::default());
        let waiting = Arc::new(AtomicUsize::new(0));
        let ring = Ring::new(folder.clone(), start, limits);
        let counter = waiting.clone();
        let run = move || {
            give_way();
            let failed = |error: RecordingError| HistoryReport {
                failure: Some(why_ended(&error, &folder)),
                ..HistoryReport::default()
            };
            let recorded = HistoryThread::start(&folder, ring, &reporter)
                .and_then(|thread| thread.run(&messages, &counter));
            if let Err(error) = recorded {
                reporter.send_replace(failed(error));
            }
        };
        thread::Builder::new().name("history".into()).spawn(run)?;
        let (batch, phase) = (EventBatch::default(), HistoryPhase::Loading);
        Ok(Self { inbox, batch, waiting, reports, phase, answered: 0 })
    }

    /// Sends a message of the watches to the history thread, as part of a batch.
    pub fn on_event(&mut self, event: &FeedEvent, now: Timestamp) {
        if self.phase != HistoryPhase::Recording {
            return;
        }
        self.batch.changes += changes(event);
        self.batch.events.push((event.clone(), now));
        if self.batch.changes >= BATCH {
            self.send_batch();
        }
    }

    /// Sends a copy of the cluster and of the state of its watches if a keyframe is due. The model must have applied
    /// all messages that were sent before.
    pub fn on_applied(&mut self, model: &Model, now: Timestamp) {
        let wanted = self.reports.borrow().wanted;
        let (is_due, gap) = match self.phase {
            HistoryPhase::Loading => (true, None),
            HistoryPhase::Recording => (wanted > self.answered, None),
            HistoryPhase::Behind(since) => (self.waiting.load(Ordering::Relaxed) == 0, Some(since)),
            HistoryPhase::Ended => (false, None),
        };
        if is_due && is_listed(model) {
            self.answered = wanted;
            self.phase = HistoryPhase::Recording;
            self.send_batch();
            if self.phase != HistoryPhase::Recording {
                return;
            }
            let state = KnownState { cluster: model.cluster.without_indexes(), feeds: model.feeds.clone() };
            self.send(HistoryMessage::Keyframe(Box::new(state), KeyframeTimes { now, gap }));
        }
    }

    /// Sends the batch to the history thread. If too many changes wait already, drops the batch, so that changes are
    /// missing from the history.
    fn send_batch(&mut self) {
        let batch = std::mem::take(&mut self.batch);
        let Some((_, since)) = batch.events.first() else { return };
        if self.waiting.load(Ordering::Relaxed) > CHANGES {
            self.phase = HistoryPhase::Behind(*since);
        } else {
            self.waiting.fetch_add(batch.changes, Ordering::Relaxed);
            self.send(HistoryMessage::Events(batch));
        }
    }

    fn send(&mut self, message: HistoryMessage) {
        match self.inbox.try_send(message) {
            Ok(()) => {}
            Err(mpsc::TrySendError::Disconnected(_)) => self.phase = HistoryPhase::Ended,
            Err(mpsc::TrySendError::Full(message)) => self.on_full(message),
        }
    }

    /// Handles a message that did not fit into the queue to the history thread.
    fn on_full(&mut self, message: HistoryMessage) {
        match message {
            HistoryMessage::Events(EventBatch { events, changes }) => {
                self.waiting.fetch_sub(changes, Ordering::Relaxed);
                if let Some((_, since)) = events.first() {
                    self.phase = HistoryPhase::Behind(*since);
                }
            }
            HistoryMessage::Keyframe(_, KeyframeTimes { now, gap }) => {
                self.phase = HistoryPhase::Behind(gap.unwrap_or(now));
            }
            // Dropping a read request also drops the channel for the reader of the history, so that the caller of
            // `read` gets an error.
            HistoryMessage::Read(..) => {}
        }
    }

    /// Waits for the next report of the thread. Waits forever once the history has ended. May be dropped and awaited
    /// again.
    pub async fn next_report(&mut self) -> HistoryReport {
        if self.reports.changed().await.is_ok() {
            return self.reports.borrow_and_update().clone();
        }
        // The history thread has ended, either with a report of the reason or with a panic.
        if self.reports.borrow().failure.is_some() || self.phase == HistoryPhase::Ended {
            return std::future::pending().await;
        }
        self.phase = HistoryPhase::Ended;
        let failure = Some("this is a fault of kordon".into());
        HistoryReport { failure, ..HistoryReport::default() }
    }

    /// Requests a reader of the history up to now. The returned function blocks until the reader is available, so it
    /// must not be called on the thread of the event loop.
    pub fn read(&mut self, now: Timestamp) -> impl FnOnce() -> Result<RingReader, HistoryError> + use<> {
        let (answer, answered) = oneshot::channel();
        self.send_batch();
        self.send(HistoryMessage::Read(now, answer));
        move || answered.blocking_recv().map_err(|_| HistoryError::Busy)
    }
}

/// State of the history thread.
struct HistoryThread<'a> {
    writer: RecordingWriter<Ring>,
    reporter: &'a watch::Sender<HistoryReport>,
    wanted: u64,
    /// Whether a keyframe was requested and has not arrived yet.
    awaits_keyframe: bool,
    /// The keyframe of the last segment, while it is being written.
    keyframe: Option<KeyframeJob>,
}

impl<'a> HistoryThread<'a> {
    fn start(
        folder: &Path,
        ring: Ring,
        reporter: &'a watch::Sender<HistoryReport>,
    ) -> Result<Self, RecordingError> {
        let created = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
        created.map_err(RecordingError::Write)?;
        let writer = RecordingWriter::into_ring(ring)?;
        Ok(Self { writer, reporter, wanted: 0, awaits_keyframe: false, keyframe: None })
    }

    fn run(
        mut self,
        messages: &mpsc::Receiver<HistoryMessage>,
        waiting: &AtomicUsize,
    ) -> Result<(), RecordingError> {
        while let Ok(message) = self.next_message(messages) {
            match message {
                Some(HistoryMessage::Events(batch)) => {
                    for (event, now) in &batch.events {
                        self.writer.event(event, *now)?;
                        self.ask_for_keyframe(*now);
                    }
                    waiting.fetch_sub(batch.changes, Ordering::Relaxed);
                }
                Some(HistoryMessage::Keyframe(state, times)) => self.begin_keyframe(*state, times)?,
                Some(HistoryMessage::Read(now, answer)) => {
                    // Sending the reader of the history fails if the caller of `read` has stopped waiting.
                    if let Some(kept) = self.read(now)? {
                        let _ = answer.send(kept);
                    }
                }
                None => {}
            }
            if self.keyframe.as_ref().is_some_and(JoinHandle::is_finished) {
                self.end_keyframe()?;
            }
            self.report();
        }
        Ok(())
    }

    /// Waits for a message. Returns none if no message arrives within `LOOK_AFTER_KEYFRAME` while a keyframe is
    /// written.
    fn next_message(
        &self,
        messages: &mpsc::Receiver<HistoryMessage>,
    ) -> Result<Option<HistoryMessage>, mpsc::RecvError> {
        if self.keyframe.is_none() {
            return messages.recv().map(Some);
        }
        match messages.recv_timeout(LOOK_AFTER_KEYFRAME) {
            Ok(message) => Ok(Some(message)),
            Err(mpsc::RecvTimeoutError::Timeout) => Ok(None),
            Err(mpsc::RecvTimeoutError::Disconnected) => Err(mpsc::RecvError),
        }
    }

    /// Requests the state for a keyframe from the event loop, if a keyframe is due.
    fn ask_for_keyframe(&mut self, now: Timestamp) {
        let may_ask = !self.awaits_keyframe && self.keyframe.is_none();
        if may_ask && self.writer.is_segment_due(now) {
            self.awaits_keyframe = true;
            self.wanted += 1;
        }
    }

    fn begin_keyframe(&mut self, state: KnownState, times: KeyframeTimes) -> Result<(), RecordingError> {
        let KeyframeTimes { now, gap } = times;
        let is_wanted = std::mem::take(&mut self.awaits_keyframe);
        if let Some(since) = gap {
            self.end_keyframe()?;
            self.writer.gap(since, TOO_MUCH, now)?;
        } else if is_wanted && !self.writer.is_segment_due(now) {
            // A list has started since the keyframe was requested, so no keyframe can be written now.
            return Ok(());
        }
        let keyframe = self.writer.begin_segment(now)?;
        self.keyframe = Some(start_keyframe(keyframe, state).map_err(RecordingError::Write)?);
        Ok(())
    }

    /// Waits until the keyframe that is being written is complete. Returns at once if there is none.
    fn end_keyframe(&mut self) -> Result<(), RecordingError> {
        if let Some(keyframe) = self.keyframe.take() {
            let written = keyframe.join().unwrap_or_else(|panicked| panic::resume_unwind(panicked));
            self.writer.complete_segment(written?);
        }
        Ok(())
    }

    /// Returns a reader of the history up to `now`; none while the history is empty.
    fn read(&mut self, now: Timestamp) -> Result<Option<RingReader>, RecordingError> {
        if self.writer.ring().needs_keyframe() {
            self.end_keyframe()?;
        }
        if self.writer.ring().from().is_none() {
            return Ok(None);
        }
        let until = self.writer.write_until(now)?;
        self.writer.ring().reader(until).map(Some)
    }

    fn report(&self) {
        let ring = self.writer.ring();
        let (from, bytes, limit) = (ring.from(), ring.bytes(), ring.limit());
        let report = HistoryReport { from, bytes, limit, wanted: self.wanted, failure: None };
        self.reporter.send_if_modified(|last| {
            let is_news = *last != report;
            *last = report;
            is_news
        });
    }
}

fn start_keyframe(mut keyframe: SegmentKeyframe, state: KnownState) -> io::Result<KeyframeJob> {
    let write = move || {
        give_way();
        let KnownState { cluster, feeds } = state;
        let health: Vec<_> = feeds.iter().collect();
        keyframe.write(keyframe_of(cluster, &feeds, &health))?;
        Ok(keyframe)
    };
    thread::Builder::new().name("keyframe".into()).spawn(write)
}

/// Number of changes in a message. A message without object changes counts as one change.
fn changes(event: &FeedEvent) -> usize {
    match event {
        FeedEvent::Changes(changes) => changes.len().max(1),
        FeedEvent::Health(..)
        | FeedEvent::ScopeState(..)
        | FeedEvent::ClockDifference(_)
        | FeedEvent::Trouble(_) => 1,
    }
}

/// Whether a keyframe can be made: the model has an engine, and no list is being read. A model that starts from such a
/// keyframe has an engine at once. Watches that have not reported yet are ignored, because their kinds are listed after
/// the nodes.
fn is_listed(model: &Model) -> bool {
    model.engine.is_some() && model.feeds.iter().all(|(kind, _)| model.feeds.has_answered(kind))
}

/// Reason why the history cannot be shown or saved.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    #[error("it cannot be read now: try again")]
    Busy,
    #[error(transparent)]
    Recording(#[from] RecordingError),
    #[error("{file}: {error}")]
    Save {
        file: String,
        #[source]
        error: io::Error,
    },
}

/// Returns the reason why the history ended, as text for the user.
fn why_ended(error: &RecordingError, folder: &Path) -> String {
    let folder = folder.display();
    match error {
        RecordingError::Write(error) => format!("cannot write in {folder}: {error}"),
        error => error.to_string(),
    }
}

/// Returns a player of the history, and the times at which the history starts and ends. `settings` are those of the
/// cluster's controller.
///
/// # Errors
/// The history cannot be read.
pub fn player_of(
    kept: &RingReader,
    settings: &Settings,
) -> Result<(Player, (Timestamp, Timestamp)), HistoryError> {
    let replay = || -> Result<AnyReplay, HistoryError> {
        let source: Box<dyn RecordingSource> = Box::new(BufReader::new(kept.clone()));
        Ok(Replay::new(RecordingReader::open(source)?, settings.clone()))
    };
    let (played, searched) = (replay()?, replay()?);
    let whole = (played.reader().start().at, played.reader().until());
    Ok((Player::new(played, searched), whole))
}

/// Writes the history to a new file, which is an ordinary recording. Returns its size in bytes.
///
/// # Errors
/// The file exists or cannot be written.
pub fn save(mut kept: RingReader, file: &Path) -> Result<u64, HistoryError> {
    let failed = |error| HistoryError::Save { file: file.display().to_string(), error };
    // The recording has the names of objects in the cluster, so only the owner of the file can read it.
    let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file);
    let mut saved = opened.map_err(failed)?;
    let size = io::copy(&mut kept, &mut saved).map_err(failed)?;
    Ok(size)
}

/// The folder of the history's files; none if there is no home folder.
pub fn folder() -> Option<PathBuf> {
    let set = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))?;
    Some(cache.join("kordon"))
}

/// Returns the interval between the keyframes of a history whose time limit is `kept`.
pub fn keyframe_interval(kept: Span) -> Span {
    Span::from_secs(kept.as_secs() / KEYFRAMES_KEPT).clamp(KEYFRAMES.0, KEYFRAMES.1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        k8s::feed::{FeedHealth, FeedState},
        model::{ControllerRole, ModelOptions},
    };
    use kordon_core::{
        cluster::{Change, FeedKind, LeaderLease, NodeName, ObjectEvent},
        engine::ServerVersion,
    };

    const START: Timestamp = Timestamp::from_secs(1_800_000_000);

    /// Returns a model of a cluster without nodes, whose lists are complete.
    fn listed_model() -> Model {
        let observer = ModelOptions::observer(ServerVersion::new(1, 36));
        let mut model = Model::new(ModelOptions { role: ControllerRole::Shadow, ..observer }, START);
        let lists = vec![
            Change::Node(ObjectEvent::ListStarted),
            Change::Node(ObjectEvent::ListDone),
            Change::Lease(ObjectEvent::ListStarted),
            Change::Lease(ObjectEvent::ListDone),
            Change::Leader(Some(LeaderLease::default())),
        ];
        let health =
            FeedHealth { state: FeedState::Live, last_heard: None, relists: 0, requests: 1, bytes: 1 };
        model.on_watch_event(FeedEvent::Changes(lists), START);
        model.on_watch_event(FeedEvent::Health(FeedKind::Nodes, health), START);
        model
    }

    fn options(folder: &Path) -> HistoryOptions {
        let settings = Settings::defaults(ServerVersion::new(1, 36));
        let limits = RingLimits { span: Span::from_secs(7200), size: 64 << 20 };
        let start = RecordingStart::new(&settings, keyframe_interval(limits.span), START);
        HistoryOptions { folder: Some(folder.to_owned()), limits, start }
    }

    #[tokio::test]
    async fn what_the_thread_cannot_keep_up_with_is_a_gap_and_then_it_goes_on() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut history = History::start(options(folder.path())).expect("a thread");
        let model = listed_model();
        let at = |secs| START + Span::from_secs(secs);
        let message = |text: &str| FeedEvent::Trouble(text.into());
        history.on_event(&message("before the first keyframe"), at(0));
        history.on_applied(&model, at(1));
        history.on_event(&message("kept"), at(2));
        // The deletions of 300,000 nodes keep the history thread busy, so it falls behind with the messages that
        // follow.
        let changes = (0..300_000)
            .map(|number| Change::Node(ObjectEvent::Deleted(NodeName::from(format!("n{number}").as_str()))));
        history.on_event(&FeedEvent::Changes(changes.collect()), at(3));
        while history.phase == HistoryPhase::Recording {
            history.on_event(&message("perhaps lost"), at(4));
        }
        assert_eq!(history.phase, HistoryPhase::Behind(at(4)));
        history.on_event(&message("lost"), at(5));
        while history.phase != HistoryPhase::Recording {
            tokio::task::yield_now().await;
            history.on_applied(&model, at(9));
        }
        history.on_event(&message("kept again"), at(10));
        let kept =
            tokio::task::spawn_blocking(history.read(at(11))).await.expect("no panic").expect("something");
        let mut reader = RecordingReader::open(kept).expect("a recording");
        let (mut texts, mut lost) = (Vec::new(), Vec::new());
        loop {
            match reader.next_entry() {
                Ok(Some(entry)) => texts.extend(match entry.event {
                    FeedEvent::Trouble(text) if text != "perhaps lost" => Some(text),
                    _ => None,
                }),
                Ok(None) => break,
                Err(error) => lost.push(error.lost()),
            }
        }
        assert_eq!(texts, ["kept", "kept again"]);
        assert_eq!(lost, [Some((at(4), at(9)))]);
    }

    #[tokio::test]
    async fn a_history_without_a_place_says_why_it_ended_once() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let mut history = History::start(options(&file.path().join("folder"))).expect("a thread");
        let report = history.next_report().await;
        assert!(report.failure.is_some_and(|why| why.starts_with("cannot write in ")));
        let again = tokio::time::timeout(Duration::from_millis(10), history.next_report()).await;
        assert!(again.is_err(), "it was said");
    }
}
