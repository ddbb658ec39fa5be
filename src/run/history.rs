//! The history of the dashboard: a separate thread writes the messages of the watches to a ring on disk.
//!
//! The loop sends each message to the thread, and a copy of the cluster for each keyframe. Another thread writes the
//! keyframe at the same time. The loop never waits: if the thread does not keep up, the loop sends nothing until the
//! thread has caught up, and the history has a gap.

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

/// Number of keyframes in the time that is kept. The interval between them is at least [`KEYFRAMES`].0 and at most
/// [`KEYFRAMES`].1, because a keyframe costs as much as some hundred thousand changes.
const KEYFRAMES_KEPT: i64 = 12;
const KEYFRAMES: (Span, Span) = (Span::from_secs(60), Span::from_secs(600));

/// Number of changes that are sent to the thread at once: waking it costs more than encoding a change.
const BATCH: usize = 100;

/// Limits of the queue to the thread: batches, and changes in all of them. Beyond either limit the history has a gap.
/// 20,000 pods take about 30 MiB.
const BATCHES: usize = 1024;
const CHANGES: usize = 20_000;

/// How often the thread checks whether a keyframe is finished, when no message arrives.
const LOOK_AFTER_KEYFRAME: Duration = Duration::from_secs(1);

/// Reason that is recorded with a gap.
const TOO_MUCH: &str = "the watches reported more than the history could keep up with";

/// Limits, folder and start of the history.
#[derive(Clone, Debug)]
pub struct HistoryOptions {
    /// Folder of the files; none if there is no home folder.
    pub folder: Option<PathBuf>,
    pub limits: RingLimits,
    /// Settings and metadata at the start of the recording.
    pub start: RecordingStart,
}

/// The loop's end of the history.
#[derive(Debug)]
pub struct History {
    inbox: mpsc::SyncSender<HistoryMessage>,
    batch: EventBatch,
    /// Number of changes that wait in the inbox.
    waiting: Arc<AtomicUsize>,
    reports: watch::Receiver<HistoryReport>,
    phase: HistoryPhase,
    /// Value of `HistoryReport::wanted` at the last keyframe that was sent.
    answered: u64,
}

/// Messages that the loop sends to the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HistoryPhase {
    /// Nothing until the first lists are complete: loading has priority.
    Loading,
    /// All messages.
    Recording,
    /// Nothing from this time until the thread has caught up.
    Behind(Timestamp),
    /// Nothing: the thread has ended.
    Ended,
}

/// State of the history, as the thread reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HistoryReport {
    /// Time at which the history begins; none while nothing is kept.
    pub from: Option<Timestamp>,
    /// Size on disk, and its limit, in bytes.
    pub bytes: u64,
    pub limit: u64,
    /// Number of keyframes that the thread has requested.
    wanted: u64,
    /// Why the history has ended; none while it continues.
    pub failure: Option<String>,
}

/// Messages of the watches that are sent to the thread together.
#[derive(Debug, Default)]
struct EventBatch {
    events: Vec<(FeedEvent, Timestamp)>,
    /// Number of changes in the messages; each message counts as at least one.
    changes: usize,
}

/// State of the cluster and of its watches, for a keyframe.
#[derive(Debug)]
struct KnownState {
    cluster: Cluster,
    feeds: Feeds,
}

/// A thread that writes one keyframe. A keyframe of 600,000 pods takes some seconds.
type KeyframeJob = JoinHandle<Result<SegmentKeyframe, RecordingError>>;

/// A message to the thread.
enum HistoryMessage {
    Events(EventBatch),
    Keyframe(Box<KnownState>, KeyframeTimes),
    /// Requests a reader of the history up to this time.
    Read(Timestamp, oneshot::Sender<RingReader>),
}

/// Time of a keyframe, and the gap before it.
#[derive(Clone, Copy, Debug)]
struct KeyframeTimes {
    now: Timestamp,
    /// Start of the gap before the keyframe, if there is one.
    gap: Option<Timestamp>,
}

impl History {
    /// Starts the thread. Nothing is written before the first lists are complete.
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

    /// Sends a message of the watches to the thread, as part of a batch.
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

    /// Sends a copy of the cluster and its watches if a keyframe is due. The model must have applied all messages that
    /// were sent.
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

    /// Sends the batch to the thread, unless too many changes wait already.
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

    /// Handles a message for which the inbox has no room.
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
            // Dropping the message drops the sender of the answer, so the caller of `read` gets an error.
            HistoryMessage::Read(..) => {}
        }
    }

    /// Waits for the next report of the thread, forever once the history has ended. May be dropped and awaited again.
    pub async fn next_report(&mut self) -> HistoryReport {
        if self.reports.changed().await.is_ok() {
            return self.reports.borrow_and_update().clone();
        }
        // The thread has reported why it ended, or it panicked.
        if self.reports.borrow().failure.is_some() || self.phase == HistoryPhase::Ended {
            return std::future::pending().await;
        }
        self.phase = HistoryPhase::Ended;
        let failure = Some("this is a fault of kordon".into());
        HistoryReport { failure, ..HistoryReport::default() }
    }

    /// Requests a reader of the history up to now. The returned function blocks until the answer arrives, so it must be
    /// called on another thread than the loop's.
    pub fn read(&mut self, now: Timestamp) -> impl FnOnce() -> Result<RingReader, HistoryError> + use<> {
        let (answer, answered) = oneshot::channel();
        self.send_batch();
        self.send(HistoryMessage::Read(now, answer));
        move || answered.blocking_recv().map_err(|_| HistoryError::Busy)
    }
}

/// State of the thread.
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
                    // The receiver may be gone.
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

    /// Waits for a message; none if it is time to check whether the keyframe is finished.
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

    /// Requests the state for a keyframe from the loop, if a keyframe is due.
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

    /// Waits until the keyframe in progress, if there is one, is written.
    fn end_keyframe(&mut self) -> Result<(), RecordingError> {
        if let Some(keyframe) = self.keyframe.take() {
            let written = keyframe.join().unwrap_or_else(|panicked| panic::resume_unwind(panicked));
            self.writer.complete_segment(written?);
        }
        Ok(())
    }

    /// Returns a reader of the history up to `now`; none while nothing is kept.
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

/// Number of changes in a message; at least one.
fn changes(event: &FeedEvent) -> usize {
    match event {
        FeedEvent::Changes(changes) => changes.len().max(1),
        FeedEvent::Health(..)
        | FeedEvent::ScopeState(..)
        | FeedEvent::ClockDifference(_)
        | FeedEvent::Trouble(_) => 1,
    }
}

/// Whether the model has an engine and no list is being read. A model that starts from a keyframe of this state then
/// has an engine at once. Watches that have not reported yet are ignored: their kinds are listed after the nodes.
fn is_listed(model: &Model) -> bool {
    model.engine.is_some() && model.feeds.iter().all(|(kind, _)| model.feeds.has_answered(kind))
}

/// Why the history cannot be shown or saved.
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

/// Returns the reason for which the history ended, as text for the user.
fn why_ended(error: &RecordingError, folder: &Path) -> String {
    let folder = folder.display();
    match error {
        RecordingError::Write(error) => format!("cannot write in {folder}: {error}"),
        error => error.to_string(),
    }
}

/// Returns a player of the history with these settings of the cluster's controller, and the start and end of the
/// recording.
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
    // Only the owner of the file may read it, because it has the names of objects in the cluster.
    let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file);
    let mut saved = opened.map_err(failed)?;
    let size = io::copy(&mut kept, &mut saved).map_err(failed)?;
    Ok(size)
}

/// The folder of the files; none if there is no home folder.
pub fn folder() -> Option<PathBuf> {
    let set = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))?;
    Some(cache.join("kordon"))
}

/// Interval between keyframes of a history that is kept for this long.
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

    /// A model of a cluster without nodes, whose lists are complete.
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
        // These changes occupy the thread, so that it does not keep up with the messages that follow.
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
