//! Recordings: the messages of a cluster's watches, written to a file and read back to look at an incident again.
//!
//! A recording is a sequence of blocks (`block`), each compressed and checksummed. Blocks are only appended, so a
//! truncated file can be read up to its last whole block. The first block has the settings and metadata from which a
//! model starts ([`RecordingStart`]). The next blocks have every message of the watches with the time at which it was
//! received (`entry`). Every few minutes a keyframe repeats all objects, so that reading can begin there. Objects have
//! only the fields of [`kordon_core::cluster`], in their own encoding ([`kordon_core::cluster::encoding`]).
//!
//! docs/reference/recording.md has the format.

mod block;
mod block_writer;
mod entry;
mod error;
mod keyframe;
mod reader;
mod redaction;
mod ring;
mod start;
mod writer;

pub use error::RecordingError;
pub use keyframe::KeyframeSource;
pub use reader::{EntrySource, ReadPosition, RecordedEntry, RecordingEnd, RecordingReader};
pub use redaction::Redactor;
pub use ring::{Ring, RingLimits, RingReader, SegmentKeyframe};
pub use start::RecordingStart;
pub use writer::{RecordingTotals, RecordingWriter};

/// Version of the format that is written. All versions up to this one can be read.
pub const FORMAT_VERSION: u16 = 2;
