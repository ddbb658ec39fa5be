//! A recording, played back: the model that a kordon had which watched the cluster at the time.

use std::io::{Read, Seek};

use crate::{
    engine::{Outcome, Settings},
    k8s::feed::{FeedEvent, FeedHealth, FeedState},
    model::{ConnectionInfo, ControllerRole, Model, ModelOptions},
    recording::{EntrySource, RecordedEntry, RecordingError, RecordingReader},
    time::{Span, Timestamp},
};

/// How far before a moment playing begins, if the recording goes back as far: what happened earlier is known from the objects
/// only, as to a kordon that was started then.
const HISTORY: Span = Span::from_secs(3600);

/// Copies of the model that are kept to go back to. When there are more, every second one is dropped.
const CHECKPOINTS: usize = 64;

/// A recording without any message for this long was interrupted, for example because the machine slept: what is due meanwhile
/// is done at its end.
const SILENCE: Span = Span::from_secs(600);

/// A recording, and the model at a moment of it. The model is a shadow, as that of every kordon that only watches; time passes
/// for it as the recording says.
#[derive(Debug)]
pub struct Replay<R> {
    reader: RecordingReader<R>,
    settings: Settings,
    model: Model,
    at: Timestamp,
    /// The next entry, if it was read.
    next: Option<RecordedEntry>,
    /// Whether the objects of the next keyframe are news: at the beginning, and after a damaged block.
    needs_keyframe: bool,
    /// Where playing began.
    began: Timestamp,
    /// What was known just before keyframes since then, in order.
    checkpoints: Vec<(Timestamp, Model)>,
}

impl<R: Read + Seek> Replay<R> {
    /// A replay that stands at the start, with the settings of the controller that were recorded, or others.
    pub fn new(reader: RecordingReader<R>, settings: Settings) -> Self {
        let at = reader.start().at;
        let model = model(&reader, &settings, at);
        let (next, needs_keyframe, checkpoints) = (None, false, Vec::new());
        let mut replay = Self { reader, settings, model, at, next, needs_keyframe, began: at, checkpoints };
        replay.begin(at);
        replay
    }

    /// The model at the moment at which the replay stands.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The model alone.
    pub fn into_model(self) -> Model {
        self.model
    }

    /// The moment at which the replay stands.
    pub fn at(&self) -> Timestamp {
        self.at
    }

    pub fn reader(&self) -> &RecordingReader<R> {
        &self.reader
    }

    /// Goes to a moment, or to the nearest that was recorded.
    ///
    /// # Errors
    /// The recording cannot be read. A block that is damaged is no error: the model loses its connection for that time.
    pub fn seek(&mut self, to: Timestamp) -> Result<(), RecordingError> {
        let to = to.clamp(self.reader.start().at, self.reader.until());
        if to < self.at {
            let known = self.checkpoints.partition_point(|(at, _)| *at <= to);
            match known.checked_sub(1) {
                Some(place) => self.go_back(place),
                None => self.begin(to),
            }
        } else if to.since(self.at) > HISTORY {
            self.begin(to);
        }
        self.play(to)
    }

    /// Begins again, far enough before `to`.
    fn begin(&mut self, to: Timestamp) {
        let start = self.reader.start().at;
        let wanted = to - HISTORY;
        let keyframe = self.reader.keyframes().take_while(|at| *at <= wanted).last();
        self.began = keyframe.unwrap_or(start);
        self.needs_keyframe = keyframe.is_some();
        match keyframe {
            Some(at) => self.reader.seek(at),
            None => self.reader.rewind(),
        }
        self.at = self.began;
        self.model = model(&self.reader, &self.settings, self.began);
        self.next = None;
        self.checkpoints.clear();
    }

    fn go_back(&mut self, place: usize) {
        self.checkpoints.truncate(place + 1);
        let (at, model) = self.checkpoints[place].clone();
        self.reader.seek(at);
        (self.at, self.model, self.next, self.needs_keyframe) = (at, model, None, false);
    }

    fn play(&mut self, to: Timestamp) -> Result<(), RecordingError> {
        loop {
            self.read_ahead()?;
            let Some(entry) = self.next.take_if(|entry| entry.at <= to) else { break };
            match entry.source {
                EntrySource::Keyframe if !self.needs_keyframe => self.keep(entry.at),
                EntrySource::Keyframe => self.apply(entry.event, entry.at),
                EntrySource::Watch => {
                    self.needs_keyframe = false;
                    self.apply(entry.event, entry.at);
                }
            }
        }
        self.pass_time(to);
        Ok(())
    }

    /// Reads the next entry. If that is damaged, the model has lost its connection.
    fn read_ahead(&mut self) -> Result<(), RecordingError> {
        while self.next.is_none() {
            match self.reader.next_entry() {
                Ok(None) => return Ok(()),
                Ok(next) => self.next = next,
                Err(error @ RecordingError::Damaged { from, .. }) => {
                    self.needs_keyframe = true;
                    self.disconnect(&error.to_string(), from);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn apply(&mut self, event: FeedEvent, at: Timestamp) {
        self.pass_time(at);
        self.model.on_watch_event(event, self.at);
        self.answer_effects();
    }

    fn disconnect(&mut self, why: &str, at: Timestamp) {
        self.apply(FeedEvent::Trouble(format!("recording: {why}")), at);
        let live: Vec<_> =
            self.model.feeds.iter().filter(|(_, health)| health.state == FeedState::Live).collect();
        let live: Vec<_> = live.into_iter().map(|(kind, health)| (kind, health.clone())).collect();
        for (kind, health) in live {
            let state = FeedState::Broken { since: at, error: why.into() };
            self.apply(FeedEvent::Health(kind, FeedHealth { state, ..health }), at);
        }
    }

    /// Keeps what is known just before a keyframe.
    fn keep(&mut self, at: Timestamp) {
        if self.checkpoints.last().map_or(self.began, |(last, _)| *last) >= at {
            return;
        }
        self.pass_time(at);
        if self.checkpoints.len() == CHECKPOINTS {
            let mut place = 0;
            self.checkpoints.retain(|_| {
                place += 1;
                place % 2 == 0
            });
        }
        self.checkpoints.push((at, self.model.clone()));
    }

    /// Does what is due until then.
    fn pass_time(&mut self, to: Timestamp) {
        if to.since(self.at) > SILENCE {
            self.at = to;
            self.model.on_timeout(to);
            self.answer_effects();
        }
        while let Some(due) = self.model.poll_timeout().filter(|due| *due <= to) {
            self.at = self.at.max(due);
            self.model.on_timeout(self.at);
            self.answer_effects();
        }
        self.at = self.at.max(to);
    }

    /// Records the effects of the shadow, as a dry run does.
    fn answer_effects(&mut self) {
        while let Some(effect) = self.model.next_effect() {
            self.model.on_outcome(effect.id, Outcome::Recorded, self.at);
        }
    }
}

/// What a model knows before it has heard anything.
fn model<R: Read + Seek>(reader: &RecordingReader<R>, settings: &Settings, at: Timestamp) -> Model {
    let start = reader.start();
    let connection = ConnectionInfo {
        context: start.context.clone(),
        server: start.server.clone(),
        identity: Some(start.identity.clone()).filter(|user| !user.is_empty()),
        server_version: Some(start.server_version.clone()).filter(|release| !release.is_empty()),
    };
    let options = ModelOptions { connection, settings: settings.clone(), role: ControllerRole::Shadow };
    Model::new(options, at)
}
