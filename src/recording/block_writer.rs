//! Writes entries into blocks.

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

/// A block that has become as large as this is written at once.
const BLOCK: usize = 512 << 10;

/// Fills blocks with entries, and writes each once it is large enough or its owner wants it.
pub struct BlockWriter<W> {
    pub out: W,
    compressor: Compressor<'static>,
    dictionary: Dictionary,
    /// The block that is being filled: its entries, and the times of the first and last one.
    bytes: Vec<u8>,
    kind: BlockKind,
    from: Timestamp,
    last: Timestamp,
    /// What the last block was compressed to: the next one needs no other memory.
    payload: Vec<u8>,
    /// What the blocks that were written since the beginning, or since a keyframe, decompress to.
    raw_bytes: usize,
    /// The size of all that was written.
    written: u64,
}

impl<W: Write> BlockWriter<W> {
    /// Begins with blocks of entries, at a time.
    ///
    /// # Errors
    /// There is no memory to compress them.
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

    /// Writes what waits. The next block is of this kind, begins now or with the last entry, and names nothing that was
    /// written before. Returns its time.
    ///
    /// # Errors
    /// What waits cannot be written.
    pub fn begin(&mut self, kind: BlockKind, now: Timestamp) -> Result<Timestamp, RecordingError> {
        self.write_waiting()?;
        let now = now.max(self.last);
        self.dictionary.restart(now);
        self.raw_bytes = 0;
        self.kind = kind;
        (self.from, self.last) = (now, now);
        Ok(now)
    }

    /// The time of the first entry that waits to be written; none if none does.
    pub fn waits_from(&self) -> Option<Timestamp> {
        (!self.bytes.is_empty()).then_some(self.from)
    }

    /// What the blocks since the last beginning, or since a keyframe, decompress to.
    pub const fn raw_bytes(&self) -> usize {
        self.raw_bytes
    }

    /// The size of all that was written.
    pub const fn written(&self) -> u64 {
        self.written
    }

    /// Puts changes into blocks, each encoded by `write`.
    ///
    /// # Errors
    /// They cannot be encoded or written.
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

    /// Puts a message that has no changes into a block.
    ///
    /// # Errors
    /// It cannot be encoded or written.
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
        // A recording never goes back in time.
        let now = now.max(self.last);
        if self.bytes.is_empty() {
            (self.from, self.last) = (now, now);
        }
        write(now.since(self.last), &mut self.bytes, &mut self.dictionary)?;
        self.last = now;
        if self.bytes.len() >= BLOCK { self.write_block() } else { Ok(()) }
    }

    /// Writes the entries that wait, if any do.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn write_waiting(&mut self) -> Result<(), RecordingError> {
        if self.bytes.is_empty() { Ok(()) } else { self.write_block() }
    }

    /// Writes the entries that wait, or none, as a block that lasts until now, or its last entry. Returns that time.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn write_until(&mut self, now: Timestamp) -> Result<Timestamp, RecordingError> {
        if self.bytes.is_empty() {
            self.from = self.last;
        }
        self.last = now.max(self.last);
        self.write_block()?;
        Ok(self.last)
    }

    /// Writes an empty block that says that something has ended, now or with the last entry.
    ///
    /// # Errors
    /// It, or what waits, cannot be written.
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
        let header = BlockHeader::of(self.kind, &payload, self.bytes.len(), (self.from, self.last));
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

    /// Appends bytes that are whole blocks.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), RecordingError> {
        self.out.write_all(bytes).map_err(|error: io::Error| RecordingError::Write(error))?;
        self.written += bytes.len() as u64;
        Ok(())
    }
}
