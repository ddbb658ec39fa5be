//! The last hours of a session on disk, as a ring of segments. The oldest segments are dropped by age and by size.
//!
//! A segment is two files: one for its keyframe, and one for the entries reported after the time of the keyframe. Both
//! can be written at the same time, because the keyframe of a large cluster takes some seconds. Until the keyframe is
//! complete, the entries are read as a continuation of the segment before.
//!
//! The files have no names. No other process can open them, and they disappear with the process, however it ends. The
//! first block of the recording ([`RecordingStart`]) is not on disk. It is created for each reader, with the time at
//! which the oldest segment begins.

use std::{
    collections::VecDeque,
    fs::File,
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    RecordingError, RecordingStart,
    block::{self, BlockKind},
};
use kordon_time::{Span, Timestamp};

/// Divisor of the size limit: a segment is full once its entries are larger than the limit divided by this number. The
/// ring drops whole segments, so smaller segments mean that less is dropped at once.
const SEGMENTS: u64 = 8;

/// Limits of a [`Ring`] by age and by size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingLimits {
    /// Age from which on entries may be dropped. Up to one segment of older entries is kept.
    pub span: Span,
    /// Size limit in bytes. The newest segment is always kept.
    pub size: u64,
}

/// A recording that keeps only its last part. A [`super::RecordingWriter`] writes to the ring. The owner of the writer
/// must write the keyframe of each segment.
#[derive(Debug)]
pub struct Ring {
    folder: PathBuf,
    start: RecordingStart,
    limits: RingLimits,
    /// Segments, oldest first. Entries are appended to the last segment.
    segments: VecDeque<Segment>,
    /// Whether the next segment will be the first one, or the first one after a gap.
    is_interrupted: bool,
}

#[derive(Debug)]
struct Segment {
    from: Timestamp,
    /// Whether the segment is the first one, or the first one after a gap. Its entries then do not continue the
    /// previous segment, so they can be read only with the segment's keyframe.
    is_alone: bool,
    /// File of the keyframe; none until the keyframe is complete.
    keyframe: Option<SegmentFile>,
    reported: SegmentFile,
}

#[derive(Debug)]
struct SegmentFile {
    file: Arc<File>,
    bytes: u64,
}

/// The keyframe of one segment of a [`Ring`], which the owner of the ring writes once.
#[derive(Debug)]
pub struct SegmentKeyframe {
    at: Timestamp,
    written: SegmentFile,
}

impl Ring {
    /// Returns an empty ring, which will create its files in `folder`.
    pub const fn new(folder: PathBuf, start: RecordingStart, limits: RingLimits) -> Self {
        Self { folder, start, limits, segments: VecDeque::new(), is_interrupted: true }
    }

    pub const fn start(&self) -> &RecordingStart {
        &self.start
    }

    /// Creates the files of the next segment. Returns the keyframe of this segment, which the caller must write.
    ///
    /// The keyframe of the previous segment must be complete. The oldest segments are dropped to make room for another
    /// keyframe of the same size.
    ///
    /// # Errors
    /// The files cannot be created.
    pub fn begin_segment(&mut self, now: Timestamp) -> Result<SegmentKeyframe, RecordingError> {
        let [reported, keyframe] =
            [SegmentFile::in_folder(&self.folder)?, SegmentFile::in_folder(&self.folder)?];
        let expected =
            self.segments.back().and_then(|last| last.keyframe.as_ref()).map_or(0, |file| file.bytes);
        self.drop_oldest(|ring, _| ring.bytes() + expected > ring.limits.size);
        let is_alone = std::mem::take(&mut self.is_interrupted);
        self.segments.push_back(Segment { from: now, is_alone, keyframe: None, reported });
        Ok(SegmentKeyframe { at: now, written: keyframe })
    }

    /// Marks a gap: nothing is recorded until the next segment.
    pub const fn interrupt(&mut self) {
        self.is_interrupted = true;
    }

    /// Adds a completed keyframe to its segment. Drops the oldest segments beyond the limits of age and size.
    pub fn complete_segment(&mut self, keyframe: SegmentKeyframe) {
        let SegmentKeyframe { at, written } = keyframe;
        if let Some(segment) = self.segments.iter_mut().rfind(|segment| segment.from == at) {
            segment.keyframe = Some(written);
        }
        let oldest = at - self.limits.span;
        self.drop_oldest(|ring, second| second.from <= oldest || ring.bytes() > ring.limits.size);
    }

    /// Drops the oldest segment, again and again, while `is_enough` returns true for the ring and its second segment.
    /// Stops if the second segment has no keyframe yet, because the oldest segment must have one.
    fn drop_oldest(&mut self, is_enough: impl Fn(&Self, &Segment) -> bool) {
        while let Some(second) = self.segments.get(1)
            && second.keyframe.is_some()
            && is_enough(self, second)
        {
            self.segments.pop_front();
        }
    }

    /// Whether the last segment needs a keyframe before its entries can be read.
    pub fn needs_keyframe(&self) -> bool {
        self.segments.back().is_some_and(|last| last.is_alone && last.keyframe.is_none())
    }

    /// Whether the last segment is so large that another segment should begin.
    pub fn is_segment_full(&self) -> bool {
        let full = |segment: &Segment| {
            let keyframe = segment.keyframe.as_ref()?;
            // The entries must be larger than the keyframe, so that keyframes take at most half of the space.
            Some(segment.reported.bytes > keyframe.bytes.max(self.limits.size / SEGMENTS))
        };
        self.segments.back().and_then(full).unwrap_or(false)
    }

    /// Time at which the oldest segment begins; none if there are no segments.
    pub fn from(&self) -> Option<Timestamp> {
        self.segments.front().map(|segment| segment.from)
    }

    /// Total size of the segments in bytes.
    pub fn bytes(&self) -> u64 {
        self.segments.iter().flat_map(Segment::files).map(|file| file.bytes).sum()
    }

    /// Size limit of the ring in bytes.
    pub const fn limit(&self) -> u64 {
        self.limits.size
    }

    /// Returns the kept segments as a whole recording that ends at `until`. The recording stays readable after the ring
    /// has dropped its segments.
    ///
    /// `until` must not be before the last block. The last segment must have its keyframe, or [need
    /// none](Ring::needs_keyframe).
    ///
    /// # Errors
    /// The first or the last block of the recording cannot be encoded.
    pub fn reader(&self, until: Timestamp) -> Result<RingReader, RecordingError> {
        let mut start = self.start.clone();
        start.at = self.from().unwrap_or(start.at);
        let head = start.head()?;
        let tail = block::block(BlockKind::End, &[], (until, until))?;
        let memory = |bytes: Vec<u8>| (bytes.len() as u64, PartSource::Memory(bytes));
        let on_disk = |file: &SegmentFile| (file.bytes, PartSource::Segment(file.file.clone()));
        let files = self.segments.iter().flat_map(Segment::files).map(on_disk);
        let sources = [memory(head)].into_iter().chain(files).chain([memory(tail)]);
        let mut length = 0;
        let part = |(bytes, source)| {
            length += bytes;
            RingPart { begins: length - bytes, ends: length, source }
        };
        let parts: Arc<[RingPart]> = sources.map(part).collect();
        Ok(RingReader { parts, position: 0 })
    }
}

impl Write for Ring {
    /// Appends to the last segment. Drops the oldest segments if the ring exceeds its size limit.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let last = self.segments.back_mut().ok_or(io::ErrorKind::NotFound)?;
        let written = last.reported.write(bytes)?;
        self.drop_oldest(|ring, _| ring.bytes() > ring.limits.size);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Segment {
    fn files(&self) -> impl Iterator<Item = &SegmentFile> {
        self.keyframe.iter().chain([&self.reported])
    }
}

impl SegmentFile {
    fn in_folder(folder: &Path) -> Result<Self, RecordingError> {
        let file = tempfile::tempfile_in(folder).map_err(RecordingError::Write)?;
        Ok(Self { file: Arc::new(file), bytes: 0 })
    }
}

impl Write for SegmentFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = (&*self.file).write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl SegmentKeyframe {
    /// Time of the keyframe. The keyframe has all objects that were known at this time.
    pub const fn at(&self) -> Timestamp {
        self.at
    }

    /// Output to which the keyframe is written.
    pub const fn out(&mut self) -> &mut impl Write {
        &mut self.written
    }
}

/// Reads the content that a [`Ring`] had when the reader was created. Clones read the same bytes, each at its own
/// position.
#[derive(Clone, Debug)]
pub struct RingReader {
    parts: Arc<[RingPart]>,
    position: u64,
}

/// A part of a recording, with its byte range in that recording.
#[derive(Debug)]
struct RingPart {
    begins: u64,
    ends: u64,
    source: PartSource,
}

#[derive(Debug)]
enum PartSource {
    Memory(Vec<u8>),
    Segment(Arc<File>),
}

impl Read for RingReader {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let next = self.parts.partition_point(|part| part.ends <= self.position);
        let Some(part) = self.parts.get(next) else { return Ok(0) };
        let into = self.position - part.begins;
        let left = usize::try_from(part.ends - self.position).unwrap_or(usize::MAX);
        let room = left.min(bytes.len());
        let read = match &part.source {
            PartSource::Memory(memory) => {
                let from = usize::try_from(into).map_err(|_| io::ErrorKind::InvalidInput)?;
                (&memory[from..]).read(&mut bytes[..room])?
            }
            PartSource::Segment(file) => file.read_at(&mut bytes[..room], into)?,
        };
        self.position += read as u64;
        Ok(read)
    }
}

impl Seek for RingReader {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let length = self.parts.last().map_or(0, |part| part.ends);
        let position = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::End(from) => length.checked_add_signed(from),
            SeekFrom::Current(from) => self.position.checked_add_signed(from),
        };
        self.position = position.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        k8s::feed::FeedEvent,
        recording::{
            EntrySource, KeyframeSource, RecordedEntry, RecordingEnd, RecordingReader, RecordingWriter,
        },
    };
    use kordon_core::{
        cluster::Cluster,
        engine::{ServerVersion, Settings},
    };

    const START: Timestamp = Timestamp::from_secs(1_800_000_000);

    /// A ring that has one segment for each minute, with one message in each segment.
    struct Fixture {
        writer: RecordingWriter<Ring>,
        _folder: tempfile::TempDir,
        now: Timestamp,
    }

    impl Fixture {
        fn with(limits: RingLimits) -> Self {
            let folder = tempfile::tempdir().expect("a folder");
            let settings = Settings::defaults(ServerVersion::new(1, 36));
            let start = RecordingStart::new(&settings, Span::from_secs(60), START);
            let ring = Ring::new(folder.path().to_owned(), start, limits);
            let writer = RecordingWriter::into_ring(ring).expect("memory");
            Self { writer, _folder: folder, now: START }
        }

        fn segment(&mut self, text: String) {
            let keyframe = self.writer.begin_segment(self.now).expect("the disk has room");
            self.complete(keyframe);
            self.report(text);
            self.now += Span::from_secs(60);
        }

        fn complete(&mut self, mut keyframe: SegmentKeyframe) {
            let (cluster, health) = (Cluster::default(), []);
            let source = KeyframeSource { cluster, health: &health, clock_difference: Some(Span::ZERO) };
            keyframe.write(source).expect("the disk has room");
            self.writer.complete_segment(keyframe);
        }

        fn report(&mut self, text: String) {
            self.writer.event(&FeedEvent::Trouble(text), self.now).expect("the disk has room");
        }

        fn reader(&mut self) -> RingReader {
            let until = self.writer.write_until(self.now).expect("the disk has room");
            self.writer.ring().reader(until).expect("memory")
        }
    }

    fn texts(source: RingReader) -> Vec<String> {
        let mut reader = RecordingReader::open(source).expect("a recording");
        assert!(reader.begins_with_keyframe());
        assert_eq!((reader.end(), reader.keyframes().next()), (RecordingEnd::Whole, Some(reader.start().at)));
        let mut texts = Vec::new();
        while let Some(entry) = reader.next_entry().expect("it is whole") {
            if let RecordedEntry { event: FeedEvent::Trouble(text), source: EntrySource::Watch, .. } = entry {
                texts.push(text);
            }
        }
        texts
    }

    #[test]
    fn what_is_too_old_is_dropped_and_a_reader_keeps_it() {
        let mut ring = Fixture::with(RingLimits { span: Span::from_secs(180), size: 1 << 20 });
        (0..3).for_each(|number| ring.segment(format!("message {number}")));
        let early = ring.reader();
        (3..9).for_each(|number| ring.segment(format!("message {number}")));
        assert_eq!(texts(ring.reader()), ["message 5", "message 6", "message 7", "message 8"]);
        assert_eq!(ring.writer.ring().from(), Some(START + Span::from_secs(300)));
        assert_eq!(texts(early), ["message 0", "message 1", "message 2"]);
    }

    #[test]
    fn what_is_reported_while_a_keyframe_is_written_is_read_after_what_was_before_and_then_after_the_keyframe()
     {
        let mut ring = Fixture::with(RingLimits { span: Span::from_secs(86_400), size: 1 << 20 });
        ring.segment("before".into());
        let (begun, keyframe) = (ring.now, ring.writer.begin_segment(ring.now).expect("the disk has room"));
        ring.now += Span::from_secs(10);
        ring.report("meanwhile".into());
        assert!(!ring.writer.ring().needs_keyframe());
        let open = ring.reader();
        assert_eq!(RecordingReader::open(open.clone()).expect("a recording").keyframes().count(), 1);
        assert_eq!(texts(open), ["before", "meanwhile"]);
        ring.complete(keyframe);
        ring.report("after".into());
        let whole = ring.reader();
        assert_eq!(texts(whole.clone()), ["before", "meanwhile", "after"]);
        let mut reader = RecordingReader::open(whole).expect("a recording");
        reader.seek(begun);
        let entries: Vec<_> = std::iter::from_fn(|| reader.next_entry().expect("it is whole"))
            .map(|entry| (entry.at.since(begun).as_secs(), entry.source))
            .collect();
        assert_eq!(entries, [(0, EntrySource::Keyframe), (10, EntrySource::Watch), (10, EntrySource::Watch)]);
    }

    #[test]
    fn what_follows_nothing_needs_its_keyframe() {
        let mut ring = Fixture::with(RingLimits { span: Span::from_secs(86_400), size: 1 << 20 });
        let first = ring.writer.begin_segment(ring.now).expect("the disk has room");
        assert!(ring.writer.ring().needs_keyframe(), "there is nothing before it");
        ring.complete(first);
        assert!(!ring.writer.ring().needs_keyframe());
        ring.writer.gap(ring.now, "too much", ring.now).expect("the disk has room");
        let second = ring.writer.begin_segment(ring.now).expect("the disk has room");
        assert!(ring.writer.ring().needs_keyframe(), "there is a gap before it");
        ring.complete(second);
        assert!(!ring.writer.ring().needs_keyframe());
    }

    #[test]
    fn what_is_too_much_is_dropped() {
        let size = 40_000;
        let mut ring = Fixture::with(RingLimits { span: Span::from_secs(86_400), size });
        let mut random = fastrand::Rng::with_seed(1);
        for number in 0..30 {
            // The text is random, so that it does not compress well.
            let text: String = std::iter::repeat_with(|| random.alphanumeric()).take(5000).collect();
            ring.segment(format!("{number} {text}"));
            drop(ring.reader());
            assert!(ring.writer.ring().bytes() <= size, "{} bytes", ring.writer.ring().bytes());
        }
        let kept = texts(ring.reader());
        assert!(
            (5..15).contains(&kept.len()) && kept.last().expect("one").starts_with("29 "),
            "{}",
            kept.len()
        );
    }

    #[test]
    fn a_gap_says_from_when_until_when_and_why() {
        let mut ring = Fixture::with(RingLimits { span: Span::from_secs(3600), size: 1 << 20 });
        ring.segment("before".into());
        ring.writer.gap(START + Span::from_secs(10), "too much", ring.now).expect("the disk has room");
        ring.segment("after".into());
        let mut reader = RecordingReader::open(ring.reader()).expect("a recording");
        let (mut read, mut lost) = (Vec::new(), Vec::new());
        loop {
            match reader.next_entry() {
                Ok(Some(entry)) => read.push((entry.at.since(START).as_secs(), entry.source)),
                Ok(None) => break,
                Err(error) => lost.push((error.lost(), error.to_string())),
            }
        }
        let (keyframe, watch) = (EntrySource::Keyframe, EntrySource::Watch);
        assert_eq!(read, [(0, keyframe), (0, watch), (60, keyframe), (60, watch)]);
        let between = Some((START + Span::from_secs(10), START + Span::from_secs(60)));
        assert_eq!(lost, [(between, "nothing was recorded: too much".to_owned())]);
    }

    #[test]
    fn it_can_be_read_from_any_place() {
        let mut ring = Fixture::with(RingLimits { span: Span::from_secs(3600), size: 1 << 20 });
        (0..3).for_each(|number| ring.segment(format!("message {number}")));
        let mut reader = ring.reader();
        let mut whole = Vec::new();
        reader.read_to_end(&mut whole).expect("files");
        for place in 0..=whole.len() {
            reader.seek(SeekFrom::Start(place as u64)).expect("a place in it");
            let mut rest = Vec::new();
            reader.read_to_end(&mut rest).expect("files");
            assert_eq!(rest, whole[place..], "{place}");
        }
        assert_eq!(reader.seek(SeekFrom::End(-3)).expect("a place in it"), whole.len() as u64 - 3);
        assert!(reader.seek(SeekFrom::Current(-(1 << 20))).is_err(), "before its start");
    }
}
