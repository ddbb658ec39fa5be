//! Blocks: a header of fixed size, and a compressed payload.
//!
//! ```text
//! file    = magic (8 bytes) format (u16) block*
//! block   = header payload
//! header  = kind (u8) zero (3 bytes) length (u32) raw length (u32) from (i64) until (i64) payload CRC-32 (u32) header CRC-32 (u32)
//! payload = a Zstandard frame of `length` bytes that decompresses to `raw length` bytes
//! ```
//!
//! Numbers are little-endian. Times are nanoseconds since the Unix epoch.

use std::io::{self, Read};

use super::{FORMAT_VERSION, RecordingError};
use kordon_time::Timestamp;

/// Magic bytes at the start of a recording. The first byte is not ASCII, and a transfer in text mode would change the
/// last byte.
pub const MAGIC: [u8; 8] = *b"\x89kordon\n";

/// Size of a header in bytes.
pub const HEADER: usize = 36;

/// Limit of the decompressed size of a block, in bytes. It is checked because a recording that is read is not trusted.
pub const MAX_RAW: usize = 4 << 20;

/// Limit of the compressed size of a payload, in bytes. It is above `MAX_RAW`, because incompressible data becomes a
/// little larger.
const MAX_PAYLOAD: usize = MAX_RAW + (64 << 10);

/// Kind of a block's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockKind {
    /// The first block: settings and metadata, from which a model starts.
    Start = 1,
    /// The first or only part of a keyframe: entries with all objects and the state of all watches.
    Keyframe = 2,
    /// A middle part of a keyframe.
    KeyframePart = 3,
    /// The last part of a keyframe. A keyframe without this block is incomplete.
    KeyframeEnd = 4,
    /// Entries: the messages of the watches.
    Entries = 5,
    /// The recording ended normally.
    End = 6,
    /// Entries with a dictionary of repeated texts that is empty at the start of the block. They can be read with or
    /// without the keyframe before the block.
    FirstEntries = 7,
}

impl BlockKind {
    const ALL: [Self; 7] = [
        Self::Start,
        Self::Keyframe,
        Self::KeyframePart,
        Self::KeyframeEnd,
        Self::Entries,
        Self::End,
        Self::FirstEntries,
    ];
}

/// The header of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockHeader {
    pub kind: BlockKind,
    /// Size of the payload in the file, in bytes.
    pub length: u32,
    /// Size of the payload after decompression, in bytes.
    pub raw_length: u32,
    /// Times of the first and the last entry of the block.
    pub from: Timestamp,
    pub until: Timestamp,
    checksum: u32,
}

impl BlockHeader {
    /// Returns the header for a payload.
    pub fn for_payload(
        kind: BlockKind,
        payload: &[u8],
        raw_length: usize,
        (from, until): (Timestamp, Timestamp),
    ) -> Self {
        let size = |length: usize| u32::try_from(length).expect("a block has a few megabytes at most");
        let checksum = crc32fast::hash(payload);
        Self { kind, length: size(payload.len()), raw_length: size(raw_length), from, until, checksum }
    }

    pub fn to_bytes(self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[0] = self.kind as u8;
        bytes[4..8].copy_from_slice(&self.length.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.raw_length.to_le_bytes());
        bytes[12..20].copy_from_slice(&self.from.as_nanos().to_le_bytes());
        bytes[20..28].copy_from_slice(&self.until.as_nanos().to_le_bytes());
        bytes[28..32].copy_from_slice(&self.checksum.to_le_bytes());
        let checksum = crc32fast::hash(&bytes[..32]);
        bytes[32..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Parses a header. Returns none if the bytes are not a valid header or the kind of block is unknown.
    pub fn parse(bytes: &[u8; HEADER]) -> Option<Self> {
        let four = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let eight =
            |at: usize| i64::from_le_bytes(bytes[at..at + 8].try_into().expect("the slice has eight bytes"));
        let kind = BlockKind::ALL.into_iter().find(|kind| *kind as u8 == bytes[0])?;
        let (from, until) = (Timestamp::from_nanos(eight(12)), Timestamp::from_nanos(eight(20)));
        let header = Self { kind, length: four(4), raw_length: four(8), from, until, checksum: four(28) };
        let is_small = header.raw_length as usize <= MAX_RAW && header.length as usize <= MAX_PAYLOAD;
        let fits = is_small && from <= until;
        (four(32) == crc32fast::hash(&bytes[..32]) && fits).then_some(header)
    }

    /// Decompresses a payload.
    ///
    /// # Errors
    /// The checksum or the size of the payload is wrong, or the payload is not a Zstandard frame.
    pub fn decompress(&self, payload: &[u8]) -> Result<Vec<u8>, String> {
        if crc32fast::hash(payload) != self.checksum {
            return Err("its checksum is wrong".into());
        }
        let raw_length = self.raw_length as usize;
        let raw = zstd::bulk::decompress(payload, raw_length).map_err(|error| error.to_string())?;
        if raw.len() == raw_length { Ok(raw) } else { Err("it is shorter than its header says".into()) }
    }
}

/// Returns a whole block, with its header.
///
/// # Errors
/// There is no memory to compress it.
pub fn block(kind: BlockKind, raw: &[u8], times: (Timestamp, Timestamp)) -> Result<Vec<u8>, RecordingError> {
    let payload =
        zstd::bulk::compress(raw, zstd::DEFAULT_COMPRESSION_LEVEL).map_err(RecordingError::Write)?;
    let header = BlockHeader::for_payload(kind, &payload, raw.len(), times);
    Ok([&header.to_bytes()[..], &payload].concat())
}

/// The first bytes of a file: the magic bytes and the format version.
pub fn file_header() -> [u8; 10] {
    let mut bytes = [0; 10];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
    bytes
}

/// Reads and checks the first bytes of a file.
///
/// # Errors
/// The source is not a recording, or has a newer format.
pub fn read_file_header(source: &mut impl Read) -> Result<(), RecordingError> {
    let mut bytes = [0; 10];
    read_whole(source, &mut bytes)?.then_some(()).ok_or(RecordingError::NotARecording)?;
    if bytes[..8] != MAGIC {
        return Err(RecordingError::NotARecording);
    }
    match u16::from_le_bytes([bytes[8], bytes[9]]) {
        0 => Err(RecordingError::NotARecording),
        version if version > FORMAT_VERSION => Err(RecordingError::NewerFormat(version)),
        _ => Ok(()),
    }
}

/// Fills `bytes`. Returns false if the source ends before they are full.
///
/// # Errors
/// The source failed.
pub fn read_whole(source: &mut impl Read, bytes: &mut [u8]) -> Result<bool, RecordingError> {
    match source.read_exact(bytes) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(RecordingError::Read(error)),
    }
}
