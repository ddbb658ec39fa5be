//! Writes the entries of a recording, grouped into blocks.

use std::{
    io::{self, Write},
    mem,
};

use zstd::{bulk::Compressor, zstd_safe::compress_bound};

use super::{
    RecordingError,
    block::{BlockHeader, BlockKind, MAX_RAW},
    entry::{self, PlainMessage},
};
use kordon_core::cluster::encoding::Dictionary;
use kordon_time::{Span, Timestamp};

/// Size in bytes, before compression, at which a block is written.
const BLOCK: usize = 512 << 10;

/// Fills blocks with entries. Writes a block once the block is large enough or the caller asks for it.
pub struct BlockWriter<W> {
    pub out: W,
    compressor: Compressor<'static>,
    dictionary: Dictionary,
    /// Encoded entries of the block that is being filled. `from` and `last` are the times of its first and last entry.
    bytes: Vec<u8>,
    kind: BlockKind,
    from: Timestamp,
    last: Timestamp,
    /// Compressed payload of the last block. The next block reuses its memory.
    payload: Vec<u8>,
    /// Decompressed size in bytes of the blocks written since the start of this writer or the last keyframe.
    raw_bytes: usize,
    /// Total size in bytes of all blocks written.
    written: u64,
}

impl<W: Write> BlockWriter<W> {
    /// Returns a writer whose first block has the kind `BlockKind::Entries` and begins at time `at`.
    ///
    /// # Errors
    /// There is no memory for the compressor.
    pub fn new(
        out: W,
        level: i32,
        mut dictionary: Dictionary,
        at: Timestamp,
    ) -> Result<Self, RecordingError> {
        dictionary.restart(at);
        Ok(Self {
            out,
            compressor: Compressor::new(level).map_err(RecordingError::Write)?,
            dictionary,
            bytes: Vec::new(),
            kind: BlockKind::Entries,
            from: at,
            last: at,
            payload: Vec::new(),
            raw_bytes: 0,
            written: 0,
        })
    }

    /// Writes the waiting entries, then begins a block of this kind with an empty dictionary. Returns the time at which
    /// the block begins: `now`, or the time of the last entry if that is later.
    ///
    /// # Errors
    /// The waiting entries cannot be written.
    pub fn begin(&mut self, kind: BlockKind, now: Timestamp) -> Result<Timestamp, RecordingError> {
        self.write_waiting()?;
        let now = now.max(self.last);
        self.dictionary.restart(now);
        self.raw_bytes = 0;
        self.kind = kind;
        (self.from, self.last) = (now, now);
        Ok(now)
    }

    /// Time of the first entry that waits to be written; none if no entry waits.
    pub fn waits_from(&self) -> Option<Timestamp> {
        (!self.bytes.is_empty()).then_some(self.from)
    }

    /// Decompressed size in bytes of the blocks written since the last [`begin`](Self::begin) or the last keyframe.
    pub const fn raw_bytes(&self) -> usize {
        self.raw_bytes
    }

    /// Total size in bytes of all blocks written.
    pub const fn written(&self) -> u64 {
        self.written
    }

    /// Puts changes of objects into blocks. `write` encodes each change.
    ///
    /// # Errors
    /// The changes cannot be encoded or written.
    pub fn put_changes<C>(
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

    /// Puts a message without object changes into a block.
    ///
    /// # Errors
    /// The message cannot be encoded or written.
    pub fn put(&mut self, message: &PlainMessage<'_>, now: Timestamp) -> Result<(), RecordingError> {
        self.put_entry(now, |since_last, bytes, dictionary| {
            entry::write(message, since_last, bytes, dictionary)
        })
    }

    fn put_entry(
        &mut self,
        now: Timestamp,
        write: impl FnOnce(Span, &mut Vec<u8>, &mut Dictionary) -> Result<(), RecordingError>,
    ) -> Result<(), RecordingError> {
        // The times of a recording never decrease.
        let now = now.max(self.last);
        if self.bytes.is_empty() {
            (self.from, self.last) = (now, now);
        }
        write(now.since(self.last), &mut self.bytes, &mut self.dictionary)?;
        self.last = now;
        if self.bytes.len() >= BLOCK { self.write_block() } else { Ok(()) }
    }

    /// Writes the entries that wait to be written, if there are any.
    ///
    /// # Errors
    /// The entries cannot be written.
    pub fn write_waiting(&mut self) -> Result<(), RecordingError> {
        if self.bytes.is_empty() { Ok(()) } else { self.write_block() }
    }

    /// Writes a block with the waiting entries, even if no entry waits. Returns the time at which the block ends:
    /// `now`, or the time of the block's last entry if that is later.
    ///
    /// # Errors
    /// The block cannot be written.
    pub fn write_until(&mut self, now: Timestamp) -> Result<Timestamp, RecordingError> {
        if self.bytes.is_empty() {
            self.from = self.last;
        }
        self.last = now.max(self.last);
        self.write_block()?;
        Ok(self.last)
    }

    /// Writes the waiting entries, then an empty block of a kind that marks an end. The time of the empty block is
    /// `now`, or the time of the last entry if that is later.
    ///
    /// # Errors
    /// One of the blocks cannot be written.
    pub fn write_end(&mut self, kind: BlockKind, now: Timestamp) -> Result<(), RecordingError> {
        self.write_waiting()?;
        self.kind = kind;
        self.last = now.max(self.last);
        self.from = self.last;
        self.write_block()?;
        self.kind = BlockKind::Entries;
        self.raw_bytes = 0;
        Ok(())
    }

    fn write_block(&mut self) -> Result<(), RecordingError> {
        if self.bytes.len() > MAX_RAW {
            return Err(RecordingError::TooLarge { bytes: self.bytes.len() });
        }
        let mut payload = mem::take(&mut self.payload);
        payload.clear();
        payload.reserve(compress_bound(self.bytes.len()));
        self.compressor.compress_to_buffer(&self.bytes, &mut payload).map_err(RecordingError::Write)?;
        let header = BlockHeader::for_payload(self.kind, &payload, self.bytes.len(), (self.from, self.last));
        self.append(&header.to_bytes())?;
        self.append(&payload)?;
        self.payload = payload;
        self.out.flush().map_err(RecordingError::Write)?;
        self.raw_bytes += self.bytes.len();
        self.bytes.clear();
        self.dictionary.forget_surplus();
        self.kind = match self.kind {
            BlockKind::Keyframe => BlockKind::KeyframePart,
            BlockKind::FirstEntries => BlockKind::Entries,
            kind => kind,
        };
        Ok(())
    }

    /// Appends whole blocks to the output.
    ///
    /// # Errors
    /// The blocks cannot be written.
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), RecordingError> {
        self.out.write_all(bytes).map_err(|error: io::Error| RecordingError::Write(error))?;
        self.written += bytes.len() as u64;
        Ok(())
    }
}
