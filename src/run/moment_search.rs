//! Searches a recording for its notable moments, in slices on another thread. During the search, it makes checkpoints
//! from which a replay can continue.

use std::{
    collections::BTreeSet,
    io::{Read, Seek},
    sync::Arc,
};

use super::replay::{Checkpoints, Replay, look_after};
use crate::{
    model::{Moment, MomentFinder, MomentKind, VerdictLevel},
    recording::{RecordingEnd, RecordingError},
};
use kordon_time::Timestamp;

/// A search for notable moments, which plays the recording once from start to end.
#[derive(Debug)]
pub struct MomentSearch<R> {
    replay: Replay<R>,
    finder: MomentFinder,
    /// Start times of the damaged parts of the recording for which a moment was already added.
    damaged: BTreeSet<Timestamp>,
    is_done: bool,
}

/// Results of the search up to now.
#[derive(Debug, Default)]
pub struct SearchProgress {
    pub moments: Arc<Vec<Moment>>,
    /// Time up to which the recording was searched.
    pub until: Timestamp,
    pub is_done: bool,
    /// Checkpoints that were made in the last slice.
    pub checkpoints: Checkpoints,
}

impl<R: Read + Seek> MomentSearch<R> {
    /// Returns a search of a recording from its start.
    pub fn new(replay: Replay<R>) -> Self {
        Self { replay, finder: MomentFinder::default(), damaged: BTreeSet::new(), is_done: false }
    }

    /// Continues the search until the end of the recording or until `is_over` returns true. `is_over` is called after
    /// each second of the recording.
    pub fn advance(&mut self, is_over: impl Fn() -> bool) -> SearchProgress {
        let until = self.replay.reader().until();
        while !self.is_done && !is_over() {
            let to = look_after(self.replay.at()).min(until);
            let played = self.replay.seek(to);
            self.note_damage();
            self.finder.look(self.replay.model(), to);
            self.is_done = to >= until || self.note_error(played);
        }
        SearchProgress {
            moments: Arc::new(self.finder.found().to_vec()),
            until: self.replay.at(),
            is_done: self.is_done,
            checkpoints: self.replay.take_checkpoints(),
        }
    }

    pub fn is_done(&self) -> bool {
        self.is_done
    }

    fn note_damage(&mut self) {
        for (from, until, why) in self.replay.damaged() {
            if self.damaged.insert(from) {
                let text = format!("nothing is known until {}: {why}", until.to_time());
                self.finder.add(Moment::new(from, MomentKind::Gap, VerdictLevel::Disconnected, &text));
            }
        }
    }

    /// If there is an error, adds a moment with the reason why nothing more can be read, and returns true.
    fn note_error(&mut self, played: Result<(), RecordingError>) -> bool {
        let Err(error) = played else { return false };
        let (at, text) = (self.replay.at(), error.to_string());
        self.finder.add(Moment::new(at, MomentKind::Gap, VerdictLevel::Disconnected, &text));
        true
    }
}

/// Text on how a recording ends; none if it ended normally.
pub fn end_note(end: RecordingEnd) -> Option<&'static str> {
    match end {
        RecordingEnd::Whole => None,
        RecordingEnd::Truncated => Some("ends abruptly"),
        RecordingEnd::DamagedAt(_) => Some("damaged at the end"),
    }
}
