//! What the watches of a cluster reported, into a file and back: incidents that can be looked at again.
//!
//! A recording is a sequence of blocks (`block`), each compressed and checksummed, and only ever appended to: a file that
//! ends anywhere is good up to its last whole block. It begins with what a model starts with ([`RecordingStart`]), and then
//! has every message of the watches with the time at which it was received (`entry`). Every few minutes a keyframe repeats
//! all objects, so that reading can begin there. Objects are the slim ones of [`kordon_core::cluster`], in their own encoding
//! ([`kordon_core::cluster::encoding`]).
//!
//! docs/recording.md has the format.

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

/// The format that is written; all versions up to it are read.
pub const FORMAT_VERSION: u16 = 2;
