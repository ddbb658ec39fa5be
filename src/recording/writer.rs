//! Writes a recording.

use std::{collections::BTreeSet, io::Write};

use super::{
    RecordingError, RecordingStart, Redactor, Ring, SegmentKeyframe,
    block::BlockKind,
    block_writer::BlockWriter,
    entry::{self, PlainMessage},
    keyframe::{self, KeyframeSource},
};
use crate::k8s::feed::{FeedEvent, FeedState};
use kordon_core::cluster::{Change, DeviceChange, FeedKind, ObjectEvent, TableObject, encoding::Dictionary};
use kordon_time::{Span, Timestamp};

/// Maximum time that an entry waits before it is written. A crash of the recorder loses at most the entries of this
/// period.
const WRITE_AFTER: Span = Span::from_secs(5);

/// A keyframe is due once the blocks since the last keyframe exceed this decompressed size in bytes. Their size is
/// limited because a reader keeps their texts in memory. The keyframe itself does not count: in a large cluster it
/// exceeds the limit.
const SEGMENT: usize = 128 << 20;

/// Zstandard compression level of a file. Higher levels take far more time and reduce the size little.
const LEVEL: i32 = 5;

/// Zstandard compression level of a ring. The level is low because every dashboard writes a history by default, and
/// this must be cheap.
const RING_LEVEL: i32 = 1;

/// Number of texts, and number of parts of objects, that the dictionary of a ring's writer keeps. They take a few MiB.
/// The dictionary of a file's writer keeps all texts and parts.
const RING_REMEMBERS: usize = 10_000;

/// Writes a recording: the messages of the watches as they are received, and a keyframe from time to time.
///
/// The owner passes every message to [`RecordingWriter::event`] and calls [`RecordingWriter::on_timeout`] at
/// [`RecordingWriter::poll_timeout`]. When [`RecordingWriter::is_keyframe_due`] returns true, the owner passes a
/// keyframe. After an error nothing more can be written.
pub struct RecordingWriter<W> {
    blocks: BlockWriter<W>,
    keyframe_every: Span,
    next_keyframe: Timestamp,
    /// Kinds whose list has started and is not complete. While a list is open, no keyframe is written: a reader that
    /// begins at the keyframe would not know which objects are missing from that list.
    open_lists: BTreeSet<FeedKind>,
    messages: u64,
    changes: u64,
    keyframes: u64,
}

/// Totals of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordingTotals {
    /// Number of messages of the watches.
    pub messages: u64,
    /// Number of changes of objects. Each object of a list counts as a change.
    pub changes: u64,
    pub keyframes: u64,
    /// Total size of all blocks in bytes.
    pub bytes: u64,
}

impl<W> std::fmt::Debug for RecordingWriter<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RecordingWriter")
            .field("messages", &self.messages)
            .field("keyframes", &self.keyframes)
            .finish_non_exhaustive()
    }
}

impl RecordingWriter<Ring> {
    /// Starts a recording in a ring, which keeps only the last part. The first call must be
    /// [`RecordingWriter::begin_segment`].
    ///
    /// # Errors
    /// There is no memory for the compressor.
    pub fn into_ring(ring: Ring) -> Result<Self, RecordingError> {
        let start = ring.start().clone();
        Self::new(ring, &start, RING_LEVEL, Dictionary::remembering(RING_REMEMBERS))
    }

    /// Begins another segment for the following messages, and returns its keyframe. The caller writes the current state
    /// into the keyframe, while messages are written to the segment. [`RecordingWriter::complete_segment`] then adds
    /// the keyframe to the segment.
    ///
    /// # Errors
    /// Writing fails.
    pub fn begin_segment(&mut self, now: Timestamp) -> Result<SegmentKeyframe, RecordingError> {
        let now = self.blocks.begin(BlockKind::FirstEntries, now)?;
        self.next_keyframe = now + self.keyframe_every;
        self.blocks.out.begin_segment(now)
    }

    /// Adds a completed keyframe to its segment.
    pub fn complete_segment(&mut self, keyframe: SegmentKeyframe) {
        self.keyframes += 1;
        self.blocks.out.complete_segment(keyframe);
    }

    /// Records a gap between `from` and `now`, with the reason why nothing was recorded. The next call must be
    /// [`RecordingWriter::begin_segment`].
    ///
    /// # Errors
    /// Writing fails.
    pub fn gap(&mut self, from: Timestamp, why: &str, now: Timestamp) -> Result<(), RecordingError> {
        // A list that was open before the gap may be completed during the gap, and the recording does not show this. So
        // no list counts as open any more.
        self.open_lists.clear();
        self.blocks.write_until(from)?;
        self.blocks.put(&PlainMessage::Gap(why), from)?;
        self.blocks.write_until(now)?;
        self.blocks.out.interrupt();
        Ok(())
    }

    /// Whether another segment should begin. It should if a keyframe is due ([`RecordingWriter::is_keyframe_due`]), or
    /// if the last segment is full and no list is open.
    pub fn is_segment_due(&self, now: Timestamp) -> bool {
        self.is_keyframe_due(now) || (self.blocks.out.is_segment_full() && self.open_lists.is_empty())
    }

    pub const fn ring(&self) -> &Ring {
        &self.blocks.out
    }
}

impl SegmentKeyframe {
    /// Writes the content of the keyframe.
    ///
    /// # Errors
    /// The content cannot be written.
    pub fn write(&mut self, source: KeyframeSource<'_>) -> Result<(), RecordingError> {
        let at = self.at();
        let dictionary = Dictionary::remembering(RING_REMEMBERS);
        let mut blocks = BlockWriter::new(self.out(), RING_LEVEL, dictionary, at)?;
        keyframe::write(source, at, &mut blocks).map(drop)
    }
}

impl<W: Write> RecordingWriter<W> {
    /// Starts a recording. Names are hashed if a redactor is given.
    ///
    /// # Errors
    /// Writing fails.
    pub fn start(out: W, start: RecordingStart, redactor: Option<&Redactor>) -> Result<Self, RecordingError> {
        let dictionary =
            redactor.map_or_else(Dictionary::default, |redactor| Dictionary::redacting(redactor.redaction()));
        let mut writer = Self::new(out, &start, LEVEL, dictionary)?;
        let start = redactor.map_or(start.clone(), |redactor| start.redacted(redactor));
        writer.blocks.append(&start.head()?)?;
        Ok(writer)
    }

    fn new(
        out: W,
        start: &RecordingStart,
        level: i32,
        dictionary: Dictionary,
    ) -> Result<Self, RecordingError> {
        let (at, keyframe_every) = (start.at, start.keyframe_every);
        Ok(Self {
            blocks: BlockWriter::new(out, level, dictionary, at)?,
            keyframe_every,
            next_keyframe: at + keyframe_every,
            open_lists: BTreeSet::new(),
            messages: 0,
            changes: 0,
            keyframes: 0,
        })
    }

    /// Records a message of the watches that was received now.
    ///
    /// # Errors
    /// Writing fails.
    pub fn event(&mut self, event: &FeedEvent, now: Timestamp) -> Result<(), RecordingError> {
        self.messages += 1;
        match event {
            FeedEvent::Changes(changes) => {
                self.changes += changes.len() as u64;
                self.follow_lists(changes);
                let recorded = changes.iter().filter(|change| entry::is_recorded(change));
                self.blocks.put_changes(recorded, entry::write_change, now)?;
                for change in changes {
                    if let Change::KordonLease(lease) = change {
                        self.blocks.put(&PlainMessage::KordonLease(lease.as_ref()), now)?;
                    }
                }
                Ok(())
            }
            FeedEvent::Health(kind, health) => {
                if !matches!(health.state, FeedState::Connecting | FeedState::Listing { .. }) {
                    self.open_lists.remove(kind);
                }
                self.blocks.put(&PlainMessage::Health(*kind, health), now)
            }
            FeedEvent::ClockDifference(difference) => {
                self.blocks.put(&PlainMessage::ClockDifference(*difference), now)
            }
            FeedEvent::Trouble(text) => self.blocks.put(&PlainMessage::Trouble(text), now),
            // A scope is a part of a kind. Watches of scopes serve only the screen, so their states are not recorded.
            FeedEvent::ScopeState(..) => Ok(()),
        }
    }

    /// Whether the next keyframe is due. While a list is open, no keyframe is due.
    pub fn is_keyframe_due(&self, now: Timestamp) -> bool {
        (now >= self.next_keyframe || self.blocks.raw_bytes() > SEGMENT) && self.open_lists.is_empty()
    }

    /// Writes a keyframe with all objects and the state of all watches.
    ///
    /// # Errors
    /// Writing fails.
    pub fn keyframe(&mut self, source: KeyframeSource<'_>, now: Timestamp) -> Result<(), RecordingError> {
        let at = keyframe::write(source, now, &mut self.blocks)?;
        self.next_keyframe = at + self.keyframe_every;
        self.keyframes += 1;
        Ok(())
    }

    /// Time at which [`RecordingWriter::on_timeout`] must be called; none if no entry waits.
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        self.blocks.waits_from().map(|from| from + WRITE_AFTER)
    }

    /// Writes the waiting entries if the first of them has waited long enough.
    ///
    /// # Errors
    /// Writing fails.
    pub fn on_timeout(&mut self, now: Timestamp) -> Result<(), RecordingError> {
        if self.poll_timeout().is_some_and(|due| due <= now) { self.blocks.write_waiting() } else { Ok(()) }
    }

    /// Writes the waiting entries. Returns the time at which the recording now ends: `now`, or the time of its last
    /// entry if that is later.
    ///
    /// # Errors
    /// Writing fails.
    pub fn write_until(&mut self, now: Timestamp) -> Result<Timestamp, RecordingError> {
        self.blocks.write_until(now)
    }

    /// Ends the recording.
    ///
    /// # Errors
    /// Writing fails.
    pub fn finish(mut self, now: Timestamp) -> Result<RecordingTotals, RecordingError> {
        self.blocks.write_end(BlockKind::End, now)?;
        Ok(self.totals())
    }

    pub fn totals(&self) -> RecordingTotals {
        let Self { messages, changes, keyframes, .. } = *self;
        RecordingTotals { messages, changes, keyframes, bytes: self.blocks.written() }
    }

    fn follow_lists(&mut self, changes: &[Change]) {
        for (kind, is_open) in changes.iter().filter_map(list_boundary) {
            if is_open {
                self.open_lists.insert(kind);
            } else {
                self.open_lists.remove(&kind);
            }
        }
    }
}

/// Returns the kind of a list that a change starts (`true`) or completes (`false`); none if the change does neither.
fn list_boundary(change: &Change) -> Option<(FeedKind, bool)> {
    fn boundary<T: TableObject>(kind: FeedKind, event: &ObjectEvent<T>) -> Option<(FeedKind, bool)> {
        match event {
            ObjectEvent::ListStarted => Some((kind, true)),
            ObjectEvent::ListDone => Some((kind, false)),
            ObjectEvent::Listed(_)
            | ObjectEvent::Prefetched(_)
            | ObjectEvent::Applied(_)
            | ObjectEvent::Deleted(_) => None,
        }
    }
    match change {
        Change::Node(event) => boundary(FeedKind::Nodes, event),
        Change::Lease(event) => boundary(FeedKind::Leases, event),
        Change::Pod(event) => boundary(FeedKind::Pods, event),
        Change::Budget(event) => boundary(FeedKind::Budgets, event),
        Change::Workload(kind, event) => boundary(FeedKind::Workloads(*kind), event),
        Change::PriorityClass(event) => boundary(FeedKind::PriorityClasses, event),
        Change::Namespace(event) => boundary(FeedKind::Namespaces, event),
        Change::Service(event) => boundary(FeedKind::Services, event),
        Change::Claim(event) => boundary(FeedKind::Claims, event),
        Change::Volume(event) => boundary(FeedKind::Volumes, event),
        Change::StorageClass(event) => boundary(FeedKind::StorageClasses, event),
        Change::CsiNode(event) => boundary(FeedKind::CsiNodes, event),
        Change::CsiDriver(event) => boundary(FeedKind::CsiDrivers, event),
        Change::StorageCapacity(event) => boundary(FeedKind::StorageCapacities, event),
        Change::Quota(event) => boundary(FeedKind::Quotas, event),
        Change::Device(DeviceChange::Class(event)) => boundary(FeedKind::DeviceClasses, event),
        Change::Device(DeviceChange::Claim(event)) => boundary(FeedKind::ResourceClaims, event),
        Change::Device(DeviceChange::Slice(event)) => boundary(FeedKind::ResourceSlices, event),
        Change::Device(DeviceChange::Rule(event)) => boundary(FeedKind::DeviceTaintRules, event),
        Change::Device(DeviceChange::Template(event)) => boundary(FeedKind::ClaimTemplates, event),
        Change::CronJob(event) => boundary(FeedKind::CronJobs, event),
        Change::Autoscalers(_)
        | Change::NodeClaims(_)
        | Change::HealthChecks(_)
        | Change::ShutdownPeriods(..)
        | Change::VolumeAttachments(_)
        | Change::OperatorSettings(_)
        | Change::KordonLease(_)
        | Change::Leader(_)
        | Change::Known(..)
        | Change::Read(_)
        | Change::KnownIn(..) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::k8s::feed::FeedHealth;
    use kordon_core::{
        cluster::{Cluster, Node},
        engine::{ServerVersion, Settings},
    };

    #[test]
    fn a_keyframe_does_not_make_the_next_one_due_however_large_it_is() {
        let now = Timestamp::from_secs(1_000);
        let mut cluster = Cluster::default();
        let node = Node { name: "n-1".into(), ..Node::default() };
        cluster.apply(Change::Node(ObjectEvent::Applied(node)), &mut Vec::new());
        let health =
            FeedHealth { state: FeedState::Live, last_heard: None, relists: 0, requests: 0, bytes: 0 };
        let health = [(FeedKind::Nodes, &health)];
        let source = KeyframeSource { cluster, health: &health, clock_difference: None };
        let settings = Settings::defaults(ServerVersion::new(1, 36));
        let start = RecordingStart::new(&settings, Span::from_secs(60), now);
        let mut writer = RecordingWriter::start(Vec::new(), start, None).expect("memory");
        let before = writer.totals().bytes;
        writer.keyframe(source, now).expect("memory");
        assert!(writer.totals().bytes > before);
        assert_eq!(writer.blocks.raw_bytes(), 0);
        writer.event(&FeedEvent::Trouble("something".into()), now).expect("memory");
        writer.write_until(now).expect("memory");
        assert!(writer.blocks.raw_bytes() > 0);
    }
}
