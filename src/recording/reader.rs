//! Reads a recording, from its start or from a keyframe. The file is not trusted.

use std::{
    collections::VecDeque,
    io::{Read, Seek, SeekFrom},
};

use minicbor::{Decode, Decoder};

use super::{
    RecordingError, RecordingStart,
    block::{self, BlockHeader, BlockKind, HEADER},
    entry::{self, EntryContent},
};
use crate::k8s::feed::FeedEvent;
use kordon_core::{
    cluster::encoding::{Dictionary, DictionaryMark},
    visible,
};
use kordon_time::Timestamp;

/// Limit of the total decompressed size, in bytes, of blocks that share a dictionary of repeated texts. The size is
/// limited because a reader keeps the dictionary in memory. A keyframe of 600,000 pods takes 235 MiB, and the blocks
/// after it in a file take up to 128 MiB.
const MAX_SEGMENT: u64 = 1 << 30;

/// Reads a recording entry by entry.
///
/// After an error, reading continues at the next keyframe, which has all objects.
pub struct RecordingReader<R> {
    source: R,
    start: RecordingStart,
    blocks: Vec<Block>,
    /// Indexes of the blocks at which complete keyframes begin, in order.
    segments: Vec<usize>,
    end: RecordingEnd,
    next_block: usize,
    entries: VecDeque<RecordedEntry>,
    dictionary: Dictionary,
    /// Decompressed size in bytes of the blocks read since the dictionary of repeated texts was last emptied.
    segment_bytes: u64,
}

/// Header of a block, and the byte offset of its payload.
#[derive(Clone, Copy, Debug)]
struct Block {
    header: BlockHeader,
    payload: u64,
}

/// A position between two blocks, from which any reader of the same recording can continue.
#[derive(Clone, Debug)]
pub struct ReadPosition {
    next_block: usize,
    segment_bytes: u64,
    dictionary: DictionaryMark,
}

/// How a recording ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordingEnd {
    /// The recording ended normally.
    Whole,
    /// The last block is incomplete or missing: the recorder crashed, or is still writing.
    Truncated,
    /// The bytes from this offset on cannot be read.
    DamagedAt(u64),
}

/// A message of the watches, with the time at which it was received.
#[derive(Clone, Debug)]
pub struct RecordedEntry {
    pub at: Timestamp,
    pub event: FeedEvent,
    pub source: EntrySource,
}

/// Source of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntrySource {
    /// A watch reported the entry.
    Watch,
    /// A keyframe repeats the entry, for readers that begin at the keyframe.
    Keyframe,
}

impl<R> std::fmt::Debug for RecordingReader<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RecordingReader")
            .field("start", &self.start)
            .field("blocks", &self.blocks.len())
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}

impl<R: Read + Seek> RecordingReader<R> {
    /// Opens a recording: reads its start, and the headers of its blocks.
    ///
    /// # Errors
    /// The source is not a recording, has a newer format, or ends within its first block.
    pub fn open(mut source: R) -> Result<Self, RecordingError> {
        let file_length = source.seek(SeekFrom::End(0)).map_err(RecordingError::Read)?;
        source.rewind().map_err(RecordingError::Read)?;
        block::read_file_header(&mut source)?;
        let (mut blocks, end) = read_headers(&mut source, file_length)?;
        let first = *blocks.first().ok_or(match end {
            RecordingEnd::DamagedAt(_) => RecordingError::NotARecording,
            RecordingEnd::Whole | RecordingEnd::Truncated => RecordingError::Empty,
        })?;
        if first.header.kind != BlockKind::Start {
            return Err(RecordingError::NotARecording);
        }
        let raw = first.read(&mut source)?;
        let start = RecordingStart::decode(&mut Decoder::new(&raw), &mut Dictionary::default())
            .map_err(|error| first.damaged(error.to_string()))?;
        let segments = segments(&blocks);
        drop_open_keyframe(&mut blocks, &segments);
        let mut reader = Self {
            source,
            start,
            blocks,
            segments,
            end,
            next_block: 0,
            entries: VecDeque::new(),
            dictionary: Dictionary::default(),
            segment_bytes: 0,
        };
        reader.begin_at(1);
        Ok(reader)
    }

    pub fn start(&self) -> &RecordingStart {
        &self.start
    }

    /// Returns how the recording ends.
    pub fn end(&self) -> RecordingEnd {
        self.end
    }

    /// Time of the last entry, or of the end of the recording.
    pub fn until(&self) -> Timestamp {
        self.blocks.last().map_or(self.start.at, |block| block.header.until)
    }

    /// Times of the keyframes, in order.
    pub fn keyframes(&self) -> impl Iterator<Item = Timestamp> {
        self.segments.iter().map(|block| self.blocks[*block].header.from)
    }

    /// Whether the recording begins with a keyframe. The entries of that keyframe then do not repeat earlier entries.
    pub fn begins_with_keyframe(&self) -> bool {
        self.segments.first() == Some(&1)
    }

    /// Goes back to the start of the recording.
    pub fn rewind(&mut self) {
        self.begin_at(1);
    }

    /// Goes to the last keyframe at or before `at`, or to the start if there is no such keyframe.
    pub fn seek(&mut self, at: Timestamp) {
        let later = self.segments.partition_point(|block| self.blocks[*block].header.from <= at);
        self.begin_at(later.checked_sub(1).map_or(1, |place| self.segments[place]));
    }

    /// Whether reading can later continue from the current position: all entries of the blocks read so far were
    /// returned, and the next block has entries of the watches, not a keyframe.
    pub fn is_between_blocks(&self) -> bool {
        let next = self.blocks.get(self.next_block);
        let is_reported =
            |block: &Block| matches!(block.header.kind, BlockKind::Entries | BlockKind::FirstEntries);
        self.entries.is_empty() && next.is_some_and(is_reported)
    }

    /// Returns the current position between two blocks.
    pub fn position(&mut self) -> ReadPosition {
        let (next_block, segment_bytes) = (self.next_block, self.segment_bytes);
        ReadPosition { next_block, segment_bytes, dictionary: self.dictionary.mark() }
    }

    /// Continues from a position in the same recording.
    pub fn resume(&mut self, position: &ReadPosition) {
        self.entries.clear();
        (self.next_block, self.segment_bytes) = (position.next_block, position.segment_bytes);
        self.dictionary.resume(&position.dictionary);
    }

    /// Returns the next entry; none at the end of the recording.
    ///
    /// # Errors
    /// A block cannot be read.
    pub fn next_entry(&mut self) -> Result<Option<RecordedEntry>, RecordingError> {
        loop {
            if let Some(entry) = self.entries.pop_front() {
                return Ok(Some(entry));
            }
            let Some(block) = self.blocks.get(self.next_block).copied() else { return Ok(None) };
            if let Err(error) = self.read_block(&block) {
                self.entries.clear();
                let next = self.segments.iter().find(|place| **place > self.next_block);
                self.begin_at(next.copied().unwrap_or(self.blocks.len()));
                return Err(error);
            }
            self.next_block += 1;
        }
    }

    fn begin_at(&mut self, block: usize) {
        self.next_block = block;
        self.entries.clear();
        self.segment_bytes = 0;
        self.dictionary.restart(self.start.at);
    }

    fn read_block(&mut self, block: &Block) -> Result<(), RecordingError> {
        let source = match block.header.kind {
            BlockKind::Start | BlockKind::End => return Ok(()),
            BlockKind::Keyframe if self.segments.binary_search(&self.next_block).is_err() => {
                return Err(block.damaged("the keyframe is not whole".into()));
            }
            BlockKind::Keyframe => {
                self.segment_bytes = 0;
                self.dictionary.restart(block.header.from);
                EntrySource::Keyframe
            }
            BlockKind::KeyframePart | BlockKind::KeyframeEnd => EntrySource::Keyframe,
            BlockKind::FirstEntries => {
                self.segment_bytes = 0;
                self.dictionary.restart(block.header.from);
                EntrySource::Watch
            }
            BlockKind::Entries => EntrySource::Watch,
        };
        self.segment_bytes += u64::from(block.header.raw_length);
        if self.segment_bytes > MAX_SEGMENT {
            return Err(block.damaged("there is too much since the last keyframe".into()));
        }
        let raw = block.read(&mut self.source)?;
        let (mut decoder, mut at) = (Decoder::new(&raw), block.header.from);
        while decoder.position() < raw.len() {
            let read = entry::read(&mut decoder, &mut self.dictionary);
            let (since_last, content) = read.map_err(|error| block.damaged(error.to_string()))?;
            at = (at + since_last).min(block.header.until);
            match content {
                EntryContent::Message(event) => self.entries.push_back(RecordedEntry { at, event, source }),
                EntryContent::Gap(why) => {
                    let (BlockHeader { from, until, .. }, why) =
                        (block.header, visible::text(&why).into_owned());
                    return Err(RecordingError::Gap { why, from, until });
                }
                EntryContent::Unknown => {}
            }
        }
        Ok(())
    }
}

impl Block {
    fn read(&self, source: &mut (impl Read + Seek)) -> Result<Vec<u8>, RecordingError> {
        source.seek(SeekFrom::Start(self.payload)).map_err(RecordingError::Read)?;
        // The length in a wrong header cannot cause a huge allocation: when the file was opened, it was at least as
        // long as its headers state.
        let mut payload = vec![0; self.header.length as usize];
        if !block::read_whole(source, &mut payload)? {
            return Err(self.damaged("the file has become shorter".into()));
        }
        self.header.decompress(&payload).map_err(|what| self.damaged(what))
    }

    fn damaged(&self, what: String) -> RecordingError {
        let BlockHeader { from, until, .. } = self.header;
        RecordingError::Damaged { offset: self.payload - HEADER as u64, what, from, until }
    }
}

/// Reads the headers of all whole blocks, beginning with the first.
fn read_headers(
    source: &mut (impl Read + Seek),
    file_length: u64,
) -> Result<(Vec<Block>, RecordingEnd), RecordingError> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut at = source.stream_position().map_err(RecordingError::Read)?;
    loop {
        if blocks.last().is_some_and(|block| block.header.kind == BlockKind::End) {
            return Ok((blocks, RecordingEnd::Whole));
        }
        let mut bytes = [0; HEADER];
        source.seek(SeekFrom::Start(at)).map_err(RecordingError::Read)?;
        if !block::read_whole(source, &mut bytes)? {
            return Ok((blocks, RecordingEnd::Truncated));
        }
        let after = |block: &Block| block.header.until;
        let in_order =
            |header: &BlockHeader| blocks.last().map(after).is_none_or(|before| before <= header.from);
        let Some(header) = BlockHeader::parse(&bytes).filter(in_order) else {
            return Ok((blocks, RecordingEnd::DamagedAt(at)));
        };
        let payload = at + HEADER as u64;
        at = payload + u64::from(header.length);
        if at > file_length {
            return Ok((blocks, RecordingEnd::Truncated));
        }
        blocks.push(Block { header, payload });
    }
}

/// Removes the last keyframe and all blocks after it if that keyframe is incomplete.
fn drop_open_keyframe(blocks: &mut Vec<Block>, segments: &[usize]) {
    let is_first_part = |block: &Block| block.header.kind == BlockKind::Keyframe;
    if let Some(last) = blocks.iter().rposition(is_first_part)
        && segments.last() != Some(&last)
    {
        blocks.truncate(last);
    }
}

/// Returns the indexes of the blocks at which complete keyframes begin.
fn segments(blocks: &[Block]) -> Vec<usize> {
    let is_whole = |from: &usize| {
        let parts = &blocks[from + 1..];
        let end = parts.iter().find(|block| block.header.kind != BlockKind::KeyframePart);
        end.is_some_and(|block| block.header.kind == BlockKind::KeyframeEnd)
    };
    let begins = (0..blocks.len()).filter(|place| blocks[*place].header.kind == BlockKind::Keyframe);
    begins.filter(is_whole).collect()
}
