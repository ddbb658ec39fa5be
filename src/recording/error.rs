//! Errors of writing and reading recordings.

use std::io;

use super::FORMAT_VERSION;
use kordon_time::Timestamp;

/// A recording that cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    #[error("cannot write the recording ({0}); what was written before can be read")]
    Write(io::Error),
    #[error("cannot read the recording ({0})")]
    Read(io::Error),
    #[error("this is not a recording of kordon: `kordon record FILE` makes one")]
    NotARecording,
    #[error(
        "the recording has format {0}, and this kordon reads formats up to {FORMAT_VERSION}: read it with a newer kordon"
    )]
    NewerFormat(u16),
    #[error("the recording ends before its first block: nothing was recorded")]
    Empty,
    #[error("the block at byte {offset} cannot be read: {what}")]
    Damaged {
        offset: u64,
        what: String,
        /// Time range of the entries in the unreadable block.
        from: Timestamp,
        until: Timestamp,
    },
    #[error("nothing was recorded: {why}")]
    Gap {
        why: String,
        /// Time range of the gap, in which nothing was recorded.
        from: Timestamp,
        until: Timestamp,
    },
    #[error("an object of {bytes} bytes is too large for a recording")]
    TooLarge { bytes: usize },
    #[error("cannot encode an object ({0})")]
    Encoding(String),
}

impl RecordingError {
    /// Returns the time range that the error makes unreadable; none for an error after which reading cannot continue.
    pub const fn lost(&self) -> Option<(Timestamp, Timestamp)> {
        match self {
            Self::Damaged { from, until, .. } | Self::Gap { from, until, .. } => Some((*from, *until)),
            Self::Write(_)
            | Self::Read(_)
            | Self::NotARecording
            | Self::NewerFormat(_)
            | Self::Empty
            | Self::TooLarge { .. }
            | Self::Encoding(_) => None,
        }
    }
}
