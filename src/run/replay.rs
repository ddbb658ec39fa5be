//! A recording, played back: the model that a kordon had which watched the cluster at the time; or would have had with other
//! settings of the controller.

use std::{
    collections::BTreeMap,
    io::{Read, Seek},
};

use super::replay_state::ReplayState;
use crate::{
    k8s::feed::{FeedEvent, FeedHealth, FeedState},
    model::{HORIZON, Model},
    recording::{EntrySource, ReadPosition, RecordedEntry, RecordingError, RecordingReader},
};
use kordon_core::{
    counterfactual::{Alternative, Counterfactual},
    engine::Settings,
    forecast::Forecast,
};
use kordon_time::{Span, Timestamp};

/// How far before a moment playing begins, if the recording goes back as far: what happened earlier is known from the objects
/// only, as to a kordon that was started then.
const HISTORY: Span = Span::from_secs(3600);

/// Forward it plays through this much in any case, so that time that passes fast loses no knowledge; and this much to show another
/// place, which is waited for.
const PLAYED_THROUGH: Span = Span::from_secs(300);
const PLAYED_TO_JUMP: Span = Span::from_secs(30);

/// From one checkpoint to the next: what is played after it takes some hundredths of a second.
const CHECKPOINT_EVERY: Span = Span::from_secs(15);

/// Of a long recording, and of one of a large cluster, there are fewer checkpoints: so many pods they may have in all, which is about
/// 150 MiB, and there are at least and at most so many of them. A node counts as this many pods: its heartbeats are in each checkpoint,
/// and pods that have not changed are shared.
const CHECKPOINT_PODS: usize = 2_000_000;
const CHECKPOINTS: (usize, usize) = (16, 512);
const PODS_PER_NODE: usize = 20;

/// How often the model's views are brought up to date while it plays: what a state changed to and back in between is not
/// recorded. Where the knowledge is to be completed, only the views of the moment are made: they take a third of the time.
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
    /// How far before a moment playing begins where what happened earlier is not known.
    run_up: Span,
    /// The keyframe with which the knowledge begins, if more is known once the recording was searched until the moment.
    known_from: Option<Timestamp>,
    /// How far the recording was searched: the checkpoints until then are all there.
    searched: Timestamp,
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
    checkpoints: Checkpoints,
    /// The time of the last checkpoint that was made, and whether there was a keyframe since then.
    last_checkpoint: Option<Timestamp>,
    passed_keyframe: bool,
    /// The stretches that could not be read, by their start: until when, and why.
    damaged: BTreeMap<Timestamp, (Timestamp, String)>,
}

/// What is known at some moments of a recording.
pub type Checkpoints = BTreeMap<Timestamp, Checkpoint>;

/// What is known at a moment of a recording from all that happened before it, and where what follows is read.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    state: ReplayState,
    position: ReadPosition,
}

/// What a moment is played from.
#[derive(Clone, Copy, Debug)]
enum ReplayBase {
    /// What is known where the replay stands.
    Here,
    Checkpoint(Timestamp),
    Keyframe(Timestamp),
    /// The start of the recording.
    Start,
}

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
            known_from: None,
            searched: at,
            alternative,
            state,
            at,
            next: None,
            needs_keyframe: false,
            next_look: at,
            checkpoints: BTreeMap::new(),
            last_checkpoint: None,
            passed_keyframe: false,
            damaged: BTreeMap::new(),
        };
        replay.begin(None);
        replay
    }

    /// The same that begins at the last keyframe before a moment, and has to play no more than the time since then: what happened
    /// earlier is known once a search has passed the moment ([`Replay::add_checkpoints`]), and then the moment can be
    /// [completed](Replay::can_complete).
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
        self.go_to(to, PLAYED_THROUGH)
    }

    /// The same where somebody waits for another place: without a run-up less is played, and more is to be
    /// [completed](Replay::can_complete).
    ///
    /// # Errors
    /// As [`Replay::seek`].
    pub fn jump(&mut self, to: Timestamp) -> Result<(), RecordingError> {
        self.go_to(to, PLAYED_TO_JUMP)
    }

    fn go_to(&mut self, to: Timestamp, patience: Span) -> Result<(), RecordingError> {
        let to = to.clamp(self.reader.start().at, self.reader.until());
        match self.base_for(to, self.run_up.max(patience)) {
            ReplayBase::Here => {}
            ReplayBase::Checkpoint(at) => self.resume(at),
            ReplayBase::Keyframe(at) => self.begin(Some(at)),
            ReplayBase::Start => self.begin(None),
        }
        self.play(to)
    }

    /// The keyframe with which the knowledge of the moment begins; none where nothing is missing that this replay can know.
    pub fn known_from(&self) -> Option<Timestamp> {
        self.known_from
    }

    /// Whether the moment at which the replay stands is known better after another [`Replay::seek`].
    pub fn can_complete(&self) -> bool {
        self.known_from.is_some() && self.at <= self.searched
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

    /// Predicts what becomes of the pods that are to leave at that moment. What really becomes of them is compared with it later.
    pub fn run_outcomes(&mut self) {
        self.state.model.refresh(self.at);
        self.state.model.run_outcomes(self.at);
    }

    /// The stretches that could not be read so far: from when until when, and why.
    pub fn damaged(&self) -> impl Iterator<Item = (Timestamp, Timestamp, &str)> {
        self.damaged.iter().map(|(from, (until, why))| (*from, *until, why.as_str()))
    }

    /// The checkpoints that were made since the last call, for another replay of the same recording.
    pub fn take_checkpoints(&mut self) -> Checkpoints {
        std::mem::take(&mut self.checkpoints)
    }

    /// Takes all checkpoints of another replay of the same recording, which was played from its start until `searched`.
    pub fn add_checkpoints(&mut self, checkpoints: Checkpoints, searched: Timestamp) {
        self.checkpoints.extend(checkpoints);
        self.searched = self.searched.max(searched);
    }

    /// What `to` is played from: what is known of all that happened before, unless that takes long and is not worked out yet.
    fn base_for(&self, to: Timestamp, patience: Span) -> ReplayBase {
        let is_ahead = self.at <= to;
        let here = Some(self.at).filter(|_| is_ahead && self.known_from.is_none());
        let checkpoint = self.checkpoints.range(..=to).next_back().map(|(at, _)| *at);
        let (known, known_at) = match (checkpoint, here) {
            (Some(at), here) if here.is_none_or(|here| here < at) => (ReplayBase::Checkpoint(at), at),
            (_, Some(here)) => (ReplayBase::Here, here),
            (_, None) => (ReplayBase::Start, self.reader.start().at),
        };
        if to <= self.searched || to.since(known_at) <= patience {
            return known;
        }
        match self.keyframe_for(to).filter(|keyframe| *keyframe > known_at) {
            None => known,
            // What is missing here is missing there too.
            Some(keyframe) if is_ahead && (self.at >= keyframe || to.since(self.at) <= patience) => {
                ReplayBase::Here
            }
            Some(keyframe) => ReplayBase::Keyframe(keyframe),
        }
    }

    /// The keyframe at which playing begins for `to`; none if that is the start. What other settings did depends on everything
    /// before: that begins at the start.
    fn keyframe_for(&self, to: Timestamp) -> Option<Timestamp> {
        let wanted = to - self.run_up;
        let is_known = |at: &Timestamp| self.alternative.is_none() && *at <= wanted;
        self.reader.keyframes().take_while(is_known).last()
    }

    /// Begins again, at a keyframe or at the start.
    fn begin(&mut self, keyframe: Option<Timestamp>) {
        let began = keyframe.unwrap_or(self.reader.start().at);
        self.needs_keyframe = keyframe.is_some() || self.reader.begins_with_keyframe();
        match keyframe {
            Some(at) => self.reader.seek(at),
            None => self.reader.rewind(),
        }
        (self.at, self.next_look) = (began, look_after(began));
        self.state = ReplayState::new(self.reader.start(), &self.settings, self.alternative.as_ref(), began);
        (self.next, self.passed_keyframe) = (None, false);
        self.known_from = keyframe.filter(|_| self.run_up == Span::ZERO);
    }

    fn resume(&mut self, at: Timestamp) {
        let Some(Checkpoint { state, position }) = self.checkpoints.get(&at) else { return };
        self.state = state.clone();
        self.reader.resume(position);
        (self.at, self.next, self.needs_keyframe) = (at, None, false);
        self.next_look = look_after(at);
        (self.known_from, self.passed_keyframe) = (None, false);
    }

    fn play(&mut self, to: Timestamp) -> Result<(), RecordingError> {
        loop {
            self.keep_checkpoint();
            self.read_ahead()?;
            let Some(entry) = self.next.take_if(|entry| entry.at <= to) else { break };
            match entry.source {
                EntrySource::Keyframe if !self.needs_keyframe => self.passed_keyframe = true,
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

    /// Keeps what is known between two blocks, if it is time for that: just after a keyframe sooner, as from there nothing of the
    /// keyframe has to be read.
    fn keep_checkpoint(&mut self) {
        let is_between = self.next.is_none() && self.reader.is_between_blocks();
        if !is_between || self.needs_keyframe || self.known_from.is_some() {
            return;
        }
        let every = self.checkpoint_every();
        let wanted = if self.passed_keyframe { Span::from_nanos(every.as_nanos() / 4) } else { every };
        let (at, from) = (self.at, self.at - wanted);
        let has_one = self.last_checkpoint.is_some_and(|last| last > from && last <= at)
            || self.checkpoints.range(from..=at).next().is_some();
        if !has_one {
            let (state, position) = (self.state.clone(), self.reader.position());
            self.checkpoints.insert(at, Checkpoint { state, position });
            (self.last_checkpoint, self.passed_keyframe) = (Some(at), false);
        }
    }

    fn checkpoint_every(&self) -> Span {
        let cluster = &self.state.model.cluster;
        let pods = cluster.nodes().len() * PODS_PER_NODE + cluster.pods().len();
        let most = (CHECKPOINT_PODS / pods.max(1)).clamp(CHECKPOINTS.0, CHECKPOINTS.1);
        let most = i64::try_from(most).expect("some hundreds");
        let length = self.reader.until().since(self.reader.start().at);
        CHECKPOINT_EVERY.max(Span::from_nanos(length.as_nanos() / most))
    }

    /// Does what is due until then.
    fn pass_time(&mut self, to: Timestamp) {
        if self.known_from.is_some() {
            self.next_look = look_after(to);
        }
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
