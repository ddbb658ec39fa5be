//! A recording, played back: the model that a kordon had which watched the cluster at the time; or would have had with other
//! settings of the controller.

use std::{
    collections::BTreeMap,
    io::{Read, Seek},
};

use super::replay_state::ReplayState;
use crate::{
    counterfactual::{Alternative, Counterfactual},
    engine::Settings,
    forecast::Forecast,
    k8s::feed::{FeedEvent, FeedHealth, FeedState},
    model::{HORIZON, Model},
    recording::{EntrySource, RecordedEntry, RecordingError, RecordingReader},
    time::{Span, Timestamp},
};

/// How far before a moment playing begins, if the recording goes back as far: what happened earlier is known from the objects
/// only, as to a kordon that was started then.
const HISTORY: Span = Span::from_secs(3600);

/// Forward it plays through this much in any case, so that time that passes fast loses no knowledge.
const PLAYED_THROUGH: Span = Span::from_secs(300);

/// Copies of the model are kept to go on from. Of a large cluster fewer: so many objects they may have in all, and there are at
/// least and at most so many of them. When there are more, every second one is dropped.
const CHECKPOINT_OBJECTS: usize = 2_000_000;
const CHECKPOINTS: (usize, usize) = (16, 512);

/// How often the model's views are brought up to date while it plays: what a state changed to and back in between is not
/// recorded.
const LOOK: Span = Span::from_secs(1);

/// A recording without any message for this long was interrupted, for example because the machine slept: what is due meanwhile
/// is done at its end.
const SILENCE: Span = Span::from_secs(600);

/// A recording, and the model at a moment of it. The model is a shadow, as that of every kordon that only watches; time passes
/// for it as the recording says.
#[derive(Debug)]
pub struct Replay<R> {
    reader: RecordingReader<R>,
    settings: Settings,
    /// How far before a moment playing begins.
    run_up: Span,
    /// The other settings that are asked about.
    alternative: Option<Alternative>,
    state: ReplayState,
    at: Timestamp,
    /// The next entry, if it was read.
    next: Option<RecordedEntry>,
    /// Whether the objects of the next keyframe are news: at the beginning, and after a damaged block.
    needs_keyframe: bool,
    /// When the views are brought up to date next.
    next_look: Timestamp,
    /// What was known just before keyframes, by the times of those.
    checkpoints: Checkpoints,
    /// The stretches that could not be read, by their start: until when, and why.
    damaged: BTreeMap<Timestamp, (Timestamp, String)>,
}

/// What is known at some moments of a recording.
pub type Checkpoints = BTreeMap<Timestamp, ReplayState>;

impl<R: Read + Seek> Replay<R> {
    /// A replay that stands at the start. Its shadow has the settings of the controller that were recorded, or others.
    pub fn new(reader: RecordingReader<R>, settings: Settings) -> Self {
        Self::of(reader, settings, None)
    }

    /// A replay of what would have happened with other settings.
    pub fn under(reader: RecordingReader<R>, alternative: Alternative) -> Self {
        Self::of(reader, alternative.settings.clone(), Some(alternative))
    }

    fn of(reader: RecordingReader<R>, settings: Settings, alternative: Option<Alternative>) -> Self {
        let at = reader.start().at;
        let state = ReplayState::new(reader.start(), &settings, alternative.as_ref(), at);
        let mut replay = Self {
            reader,
            settings,
            run_up: HISTORY,
            alternative,
            state,
            at,
            next: None,
            needs_keyframe: false,
            next_look: at,
            checkpoints: BTreeMap::new(),
            damaged: BTreeMap::new(),
        };
        replay.begin(at);
        replay
    }

    /// The same that begins at the last keyframe before a moment, and has to play no more than a few minutes: where that takes long, and
    /// what happened earlier is known once somebody else has played it ([`Replay::add_checkpoints`]).
    #[must_use]
    pub fn without_run_up(self) -> Self {
        Self { run_up: Span::ZERO, ..self }
    }

    /// The model at the moment at which the replay stands.
    pub fn model(&self) -> &Model {
        &self.state.model
    }

    /// What other settings did until that moment; none if none are asked about.
    pub fn counterfactual(&self) -> Option<&Counterfactual> {
        self.state.counterfactual.as_ref()
    }

    /// The model alone.
    pub fn into_model(self) -> Model {
        self.state.model
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
        let checkpoint = self.checkpoints.range(..=to).next_back().map(|(at, _)| *at);
        match checkpoint {
            Some(checkpoint) if to < self.at || checkpoint > self.at => self.go_to(checkpoint),
            None if to < self.at => self.begin(to),
            Some(_) | None if self.is_far_ahead(to) => self.begin(to),
            Some(_) | None => {}
        }
        self.play(to)
    }

    /// Makes the forecast of the moment, if there is anything to predict. Later events are compared with it.
    pub fn run_forecast(&mut self) {
        let model = &mut self.state.model;
        if !model.is_abnormal() {
            model.drop_forecasts();
        } else if let Some(engine) = &model.engine {
            let forecast = Forecast::run(engine, &model.cluster, self.at, HORIZON);
            model.set_forecast(forecast);
        }
    }

    /// The stretches that could not be read so far: from when until when, and why.
    pub fn damaged(&self) -> impl Iterator<Item = (Timestamp, Timestamp, &str)> {
        self.damaged.iter().map(|(from, (until, why))| (*from, *until, why.as_str()))
    }

    /// What was known just before keyframes that were played, for another replay of the same recording.
    pub fn take_checkpoints(&mut self) -> Checkpoints {
        std::mem::take(&mut self.checkpoints)
    }

    /// Takes what another replay of the same recording knew just before keyframes.
    pub fn add_checkpoints(&mut self, checkpoints: Checkpoints) {
        self.checkpoints.extend(checkpoints);
        self.drop_checkpoints();
    }

    /// Whether playing begins later for `to` than where the replay stands.
    fn is_far_ahead(&self, to: Timestamp) -> bool {
        to.since(self.at) > self.run_up.max(PLAYED_THROUGH)
            && self.keyframe_for(to).is_some_and(|keyframe| keyframe > self.at)
    }

    /// The keyframe at which playing begins for `to`; none if that is the start. What other settings did depends on everything
    /// before: that begins at the start.
    fn keyframe_for(&self, to: Timestamp) -> Option<Timestamp> {
        let wanted = to - self.run_up;
        let is_known = |at: &Timestamp| self.alternative.is_none() && *at <= wanted;
        self.reader.keyframes().take_while(is_known).last()
    }

    /// Begins again, far enough before `to`.
    fn begin(&mut self, to: Timestamp) {
        let start = self.reader.start().at;
        let keyframe = self.keyframe_for(to);
        let began = keyframe.unwrap_or(start);
        self.needs_keyframe = keyframe.is_some() || self.reader.begins_with_keyframe();
        match keyframe {
            Some(at) => self.reader.seek(at),
            None => self.reader.rewind(),
        }
        (self.at, self.next_look) = (began, look_after(began));
        self.state = ReplayState::new(self.reader.start(), &self.settings, self.alternative.as_ref(), began);
        self.next = None;
    }

    fn go_to(&mut self, at: Timestamp) {
        let Some(state) = self.checkpoints.get(&at) else { return };
        self.state = state.clone();
        self.reader.seek(at);
        (self.at, self.next, self.needs_keyframe) = (at, None, false);
        self.next_look = look_after(at);
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
                Err(error) => {
                    let Some((from, until)) = error.lost() else { return Err(error) };
                    self.needs_keyframe = true;
                    self.damaged.insert(from, (until, error.to_string()));
                    self.disconnect(&error.to_string(), from);
                }
            }
        }
        Ok(())
    }

    fn apply(&mut self, event: FeedEvent, at: Timestamp) {
        self.pass_time(at);
        self.state.on_event(event, self.at);
    }

    fn disconnect(&mut self, why: &str, at: Timestamp) {
        self.apply(FeedEvent::Trouble(format!("recording: {why}")), at);
        let live: Vec<_> =
            self.state.model.feeds.iter().filter(|(_, health)| health.state == FeedState::Live).collect();
        let live: Vec<_> = live.into_iter().map(|(kind, health)| (kind, health.clone())).collect();
        for (kind, health) in live {
            let state = FeedState::Broken { since: at, error: why.into() };
            self.apply(FeedEvent::Health(kind, FeedHealth { state, ..health }), at);
        }
    }

    /// Keeps what is known just before a keyframe.
    fn keep(&mut self, at: Timestamp) {
        self.pass_time(at);
        if self.checkpoints.contains_key(&at) {
            return;
        }
        self.checkpoints.insert(at, self.state.clone());
        self.drop_checkpoints();
    }

    /// Drops every second checkpoint where there are too many.
    fn drop_checkpoints(&mut self) {
        let cluster = &self.state.model.cluster;
        let objects = cluster.nodes().len() + cluster.pods().len();
        let most = (CHECKPOINT_OBJECTS / objects.max(1)).clamp(CHECKPOINTS.0, CHECKPOINTS.1);
        while self.checkpoints.len() > most {
            let mut place = 0;
            self.checkpoints.retain(|_, _| {
                place += 1;
                place % 2 == 0
            });
        }
    }

    /// Does what is due until then.
    fn pass_time(&mut self, to: Timestamp) {
        if to.since(self.at) > SILENCE {
            self.at = to;
            self.state.on_timeout(to);
            self.state.model.refresh_nodes(to);
            self.next_look = look_after(to);
        }
        loop {
            let due = self.state.poll_timeout().filter(|due| *due <= to);
            if let Some(due) = due.filter(|due| *due <= self.next_look) {
                self.at = self.at.max(due);
                self.state.on_timeout(self.at);
            } else if self.next_look <= to {
                self.at = self.at.max(self.next_look);
                self.state.model.refresh_nodes(self.at);
                self.next_look = look_after(self.at);
            } else {
                break;
            }
        }
        self.at = self.at.max(to);
    }
}

/// The first full second after a time: looks are at the same times wherever playing began.
pub fn look_after(at: Timestamp) -> Timestamp {
    let second = LOOK.as_nanos();
    Timestamp::from_nanos((at.as_nanos().div_euclid(second) + 1) * second)
}
