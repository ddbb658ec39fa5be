//! Writes a recording.

use std::{
    collections::BTreeSet,
    io::{self, Write},
    iter, mem,
};

use minicbor::Encode;
use zstd::{bulk::Compressor, zstd_safe::compress_bound};

use super::{
    RecordingError, RecordingStart, Redactor, Ring,
    block::{BlockHeader, BlockKind, MAX_RAW},
    entry::{self, PlainMessage},
};
use crate::{
    cluster::{Change, Cluster, FeedKind, ObjectEvent, Table, TableObject, encoding::Dictionary},
    k8s::feed::{FeedEvent, FeedHealth, FeedState},
    time::{Span, Timestamp},
};

/// How long an entry waits before it is written: what a crash of the recorder costs.
const WRITE_AFTER: Span = Span::from_secs(5);

/// A block that has become as large as this is written at once.
const BLOCK: usize = 512 << 10;

/// A keyframe is due once the blocks after the last one decompress to this much: a reader keeps what they share. That of a large
/// cluster takes more itself.
const SEGMENT: usize = 128 << 20;

/// What the blocks of a file are compressed with: more costs far more time and saves little.
const LEVEL: i32 = 5;

/// What the blocks of a ring are compressed with: nobody asked for it, so it has to be cheap.
const RING_LEVEL: i32 = 1;

/// How many texts and parts that were written the writer of a ring remembers: some MiB. That of a file remembers all.
const RING_REMEMBERS: usize = 10_000;

/// Writes a recording: what the watches report, as it comes, and from time to time a keyframe.
///
/// Its owner passes in every message with [`RecordingWriter::event`], a keyframe when [`RecordingWriter::is_keyframe_due`],
/// and calls [`RecordingWriter::on_timeout`] at [`RecordingWriter::poll_timeout`]. After an error nothing more can be written.
pub struct RecordingWriter<W> {
    out: W,
    compressor: Compressor<'static>,
    dictionary: Dictionary,
    keyframe_every: Span,
    next_keyframe: Timestamp,
    /// The lists that have started and are not complete: a keyframe in between would not tell what is gone after them.
    open_lists: BTreeSet<FeedKind>,
    /// The block that is being filled: its entries, and the times of the first and last one.
    bytes: Vec<u8>,
    /// What the last block was compressed to: the next one needs no other memory.
    payload: Vec<u8>,
    kind: BlockKind,
    from: Timestamp,
    last: Timestamp,
    /// What the blocks after the last keyframe decompress to.
    segment: usize,
    totals: RecordingTotals,
}

/// What was recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordingTotals {
    /// Messages of the watches.
    pub messages: u64,
    /// Changes of objects, and objects of lists.
    pub changes: u64,
    pub keyframes: u64,
    /// The size of the file.
    pub bytes: u64,
}

/// What a keyframe repeats.
#[derive(Clone, Copy, Debug)]
pub struct KeyframeSource<'a> {
    pub cluster: &'a Cluster,
    /// The state of the watches.
    pub health: &'a [(FeedKind, &'a FeedHealth)],
    /// The API server's clock minus ours, if it was measured.
    pub clock_difference: Option<Span>,
}

impl<W> std::fmt::Debug for RecordingWriter<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RecordingWriter").field("totals", &self.totals).finish_non_exhaustive()
    }
}

impl RecordingWriter<Ring> {
    /// Starts a recording of which a ring keeps the last part. It begins with a keyframe.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn into_ring(ring: Ring) -> Result<Self, RecordingError> {
        let start = ring.start().clone();
        let mut writer = Self::new(ring, &start, RING_LEVEL)?;
        writer.dictionary = Dictionary::remembering(RING_REMEMBERS);
        Ok(writer)
    }

    /// Begins another segment with all that is known.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn ring_keyframe(
        &mut self,
        source: KeyframeSource<'_>,
        now: Timestamp,
    ) -> Result<(), RecordingError> {
        if !self.bytes.is_empty() {
            self.write_block()?;
        }
        self.out.begin_segment(now.max(self.last))?;
        self.keyframe(source, now)?;
        self.out.end_keyframe();
        Ok(())
    }

    /// Whether the next thing to write is a keyframe, as [`RecordingWriter::is_keyframe_due`] says, or because the segment is
    /// full.
    pub fn is_segment_due(&self, now: Timestamp) -> bool {
        self.is_keyframe_due(now) || (self.out.is_segment_full() && self.open_lists.is_empty())
    }

    pub const fn ring(&self) -> &Ring {
        &self.out
    }
}

impl<W: Write> RecordingWriter<W> {
    /// Starts a recording. Names are hashed if there is a redactor.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn start(out: W, start: RecordingStart, redactor: Option<&Redactor>) -> Result<Self, RecordingError> {
        let mut writer = Self::new(out, &start, LEVEL)?;
        if let Some(redactor) = redactor {
            writer.dictionary = Dictionary::redacting(redactor.redaction());
        }
        let at = start.at;
        let start = redactor.map_or(start.clone(), |redactor| start.redacted(redactor));
        writer.append(&start.head()?)?;
        writer.begin_segment(BlockKind::Entries, at);
        Ok(writer)
    }

    fn new(out: W, start: &RecordingStart, level: i32) -> Result<Self, RecordingError> {
        let (at, keyframe_every) = (start.at, start.keyframe_every);
        Ok(Self {
            out,
            compressor: Compressor::new(level).map_err(RecordingError::Write)?,
            dictionary: Dictionary::default(),
            keyframe_every,
            next_keyframe: at + keyframe_every,
            open_lists: BTreeSet::new(),
            bytes: Vec::new(),
            payload: Vec::new(),
            kind: BlockKind::Entries,
            from: at,
            last: at,
            segment: 0,
            totals: RecordingTotals::default(),
        })
    }

    /// Records a message of the watches that was received now.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn event(&mut self, event: &FeedEvent, now: Timestamp) -> Result<(), RecordingError> {
        self.totals.messages += 1;
        match event {
            FeedEvent::Changes(changes) => {
                self.totals.changes += changes.len() as u64;
                self.follow_lists(changes);
                let recorded = changes.iter().filter(|change| entry::is_recorded(change));
                self.put_changes(recorded, entry::write_change, now)
            }
            FeedEvent::Health(kind, health) => {
                if !matches!(health.state, FeedState::Connecting | FeedState::Listing { .. }) {
                    self.open_lists.remove(kind);
                }
                self.put(&PlainMessage::Health(*kind, health), now)
            }
            FeedEvent::ClockDifference(difference) => {
                self.put(&PlainMessage::ClockDifference(*difference), now)
            }
            FeedEvent::Trouble(text) => self.put(&PlainMessage::Trouble(text), now),
            // Watches of parts are for somebody who looks at them.
            FeedEvent::ScopeState(..) => Ok(()),
        }
    }

    /// Whether the next thing to write is a keyframe. It waits for lists that are not complete.
    pub fn is_keyframe_due(&self, now: Timestamp) -> bool {
        (now >= self.next_keyframe || self.segment > SEGMENT) && self.open_lists.is_empty()
    }

    /// Repeats all that is known.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn keyframe(&mut self, source: KeyframeSource<'_>, now: Timestamp) -> Result<(), RecordingError> {
        let KeyframeSource { cluster, health, clock_difference } = source;
        let now = now.max(self.last);
        if !self.bytes.is_empty() {
            self.write_block()?;
        }
        self.begin_segment(BlockKind::Keyframe, now);
        if let Some(difference) = clock_difference {
            self.put(&PlainMessage::ClockDifference(difference), now)?;
        }
        // A model starts its engine once nodes, leases and the leader are known: that comes last, when all others are.
        let (leader, others): (Vec<_>, Vec<_>) =
            health.iter().copied().partition(|(kind, _)| *kind == FeedKind::Leader);
        for (kind, health) in others.into_iter().chain(leader) {
            self.put_objects(kind, cluster, now)?;
            self.put(&PlainMessage::Health(kind, health), now)?;
        }
        if !self.bytes.is_empty() {
            self.write_block()?;
        }
        self.kind = BlockKind::KeyframeEnd;
        self.write_block()?;
        (self.kind, self.segment) = (BlockKind::Entries, 0);
        self.totals.keyframes += 1;
        Ok(())
    }

    /// When [`RecordingWriter::on_timeout`] must be called next.
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        (!self.bytes.is_empty()).then(|| self.from + WRITE_AFTER)
    }

    /// Writes what has waited long enough.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn on_timeout(&mut self, now: Timestamp) -> Result<(), RecordingError> {
        if self.poll_timeout().is_some_and(|due| due <= now) { self.write_block() } else { Ok(()) }
    }

    /// Writes what waits. Returns until when the recording then is: until now, or its last entry.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write_until(&mut self, now: Timestamp) -> Result<Timestamp, RecordingError> {
        if self.bytes.is_empty() {
            self.from = self.last;
        }
        self.last = now.max(self.last);
        self.write_block()?;
        Ok(self.last)
    }

    /// Says that nothing was recorded from a time until now, and why. A keyframe has to be next.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn gap(&mut self, from: Timestamp, why: &str, now: Timestamp) -> Result<(), RecordingError> {
        // Of lists that were open then nobody knows whether they still are.
        self.open_lists.clear();
        self.write_until(from)?;
        self.put(&PlainMessage::Gap(why), from)?;
        self.write_until(now).map(drop)
    }

    /// Ends the recording.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn finish(mut self, now: Timestamp) -> Result<RecordingTotals, RecordingError> {
        if !self.bytes.is_empty() {
            self.write_block()?;
        }
        self.kind = BlockKind::End;
        self.last = now.max(self.last);
        self.from = self.last;
        self.write_block()?;
        Ok(self.totals)
    }

    pub fn totals(&self) -> RecordingTotals {
        self.totals
    }

    fn begin_segment(&mut self, kind: BlockKind, now: Timestamp) {
        self.dictionary.restart(now);
        self.next_keyframe = now + self.keyframe_every;
        self.segment = 0;
        self.kind = kind;
        (self.from, self.last) = (now, now);
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

    fn put_objects(
        &mut self,
        kind: FeedKind,
        cluster: &Cluster,
        now: Timestamp,
    ) -> Result<(), RecordingError> {
        match kind {
            FeedKind::Nodes => self.put_table(kind, cluster.nodes(), now),
            FeedKind::Leases => self.put_table(kind, cluster.leases(), now),
            FeedKind::Pods => self.put_table(kind, cluster.pods(), now),
            FeedKind::Budgets => self.put_table(kind, cluster.budgets(), now),
            FeedKind::Workloads(workload) => self.put_table(kind, cluster.workloads(workload), now),
            FeedKind::PriorityClasses => self.put_table(kind, cluster.priority_classes(), now),
            FeedKind::Namespaces => self.put_table(kind, cluster.namespaces(), now),
            FeedKind::Services => self.put_table(kind, cluster.services(), now),
            FeedKind::Claims => self.put_table(kind, cluster.claims(), now),
            FeedKind::Volumes => self.put_table(kind, cluster.volumes(), now),
            FeedKind::StorageClasses => self.put_table(kind, cluster.storage_classes(), now),
            FeedKind::CsiNodes => self.put_table(kind, cluster.csi_nodes(), now),
            FeedKind::Quotas => self.put_table(kind, cluster.quotas(), now),
            FeedKind::Leader => {
                let leader = cluster.leader().map(|leader| Change::Leader(Some(leader.clone())));
                self.put_changes(leader.iter(), entry::write_change, now)
            }
        }
    }

    /// Writes a table as the list that it would be read from.
    fn put_table<T>(&mut self, kind: FeedKind, table: &Table<T>, now: Timestamp) -> Result<(), RecordingError>
    where
        T: TableObject + PartialEq + Encode<Dictionary>,
        T::Key: Encode<Dictionary>,
    {
        if !table.is_synced() && table.is_empty() {
            return Ok(());
        }
        let objects = table.iter().map(|object| ObjectEvent::Listed(&**object));
        let end = table.is_synced().then_some(ObjectEvent::ListDone);
        let events = iter::once(ObjectEvent::ListStarted).chain(objects).chain(end);
        self.put_changes(
            events,
            |event, bytes, dictionary| entry::write_event(kind, &event, bytes, dictionary),
            now,
        )
    }

    /// Writes changes, each by `write`.
    fn put_changes<C>(
        &mut self,
        changes: impl Iterator<Item = C>,
        write: impl Fn(C, &mut Vec<u8>, &mut Dictionary) -> Result<(), RecordingError>,
        now: Timestamp,
    ) -> Result<(), RecordingError> {
        let mut changes = changes.peekable();
        while changes.peek().is_some() {
            self.put_entry(now, |since_last, bytes, dictionary| {
                entry::write_changes(&mut changes, &write, since_last, bytes, dictionary)
            })?;
        }
        Ok(())
    }

    fn put(&mut self, message: &PlainMessage<'_>, now: Timestamp) -> Result<(), RecordingError> {
        self.put_entry(now, |since_last, bytes, dictionary| {
            entry::write(message, since_last, bytes, dictionary)
        })
    }

    fn put_entry(
        &mut self,
        now: Timestamp,
        write: impl FnOnce(Span, &mut Vec<u8>, &mut Dictionary) -> Result<(), RecordingError>,
    ) -> Result<(), RecordingError> {
        // A recording never goes back in time.
        let now = now.max(self.last);
        if self.bytes.is_empty() {
            (self.from, self.last) = (now, now);
        }
        write(now.since(self.last), &mut self.bytes, &mut self.dictionary)?;
        self.last = now;
        if self.bytes.len() >= BLOCK { self.write_block() } else { Ok(()) }
    }

    fn write_block(&mut self) -> Result<(), RecordingError> {
        if self.bytes.len() > MAX_RAW {
            return Err(RecordingError::TooLarge { bytes: self.bytes.len() });
        }
        let mut payload = mem::take(&mut self.payload);
        payload.clear();
        payload.reserve(compress_bound(self.bytes.len()));
        self.compressor.compress_to_buffer(&self.bytes, &mut payload).map_err(RecordingError::Write)?;
        let header = BlockHeader::of(self.kind, &payload, self.bytes.len(), (self.from, self.last));
        self.append(&header.to_bytes())?;
        self.append(&payload)?;
        self.payload = payload;
        self.out.flush().map_err(RecordingError::Write)?;
        self.segment += self.bytes.len();
        self.bytes.clear();
        self.dictionary.forget_surplus();
        if self.kind == BlockKind::Keyframe {
            self.kind = BlockKind::KeyframePart;
        }
        Ok(())
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), RecordingError> {
        self.out.write_all(bytes).map_err(|error: io::Error| RecordingError::Write(error))?;
        self.totals.bytes += bytes.len() as u64;
        Ok(())
    }
}

/// Whether a change starts a list of a kind, or completes it.
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
        Change::Quota(event) => boundary(FeedKind::Quotas, event),
        Change::Leader(_) | Change::Known(..) | Change::Read(_) | Change::KnownIn(..) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        cluster::Node,
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
        let source = KeyframeSource { cluster: &cluster, health: &health, clock_difference: None };
        let settings = Settings::defaults(ServerVersion::new(1, 36));
        let start = RecordingStart::new(&settings, Span::from_secs(60), now);
        let mut writer = RecordingWriter::start(Vec::new(), start, None).expect("memory");
        let before = writer.totals.bytes;
        writer.keyframe(source, now).expect("memory");
        assert!(writer.totals.bytes > before);
        assert_eq!(writer.segment, 0);
        writer.event(&FeedEvent::Trouble("something".into()), now).expect("memory");
        writer.write_until(now).expect("memory");
        assert!(writer.segment > 0);
    }
}
