//! Plays a recording back into a model. This is the model that kordon had when it watched the cluster, or the model
//! that it would have had with other settings of the controller.

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

/// Run-up: time that is played before a moment, if the recording goes back that far. Events before the run-up are known
/// only from the objects, as if kordon had been started at the beginning of the run-up.
const HISTORY: Span = Span::from_secs(3600);

/// Maximum time that is played from a state that knows all earlier events. For a moment that is further away, playing
/// begins at a later keyframe, and the events before this keyframe are not known. `PLAYED_THROUGH` applies while time
/// passes, `PLAYED_TO_JUMP` while the user waits for another moment.
const PLAYED_THROUGH: Span = Span::from_secs(300);
const PLAYED_TO_JUMP: Span = Span::from_secs(30);

/// Minimum interval between checkpoints. Playing this much time takes some hundredths of a second.
const CHECKPOINT_EVERY: Span = Span::from_secs(15);

/// Limits of the checkpoints of long recordings and large clusters. All checkpoints together may have `CHECKPOINT_PODS`
/// pods, which take about 150 MiB. The number of checkpoints is between `CHECKPOINTS.0` and `CHECKPOINTS.1`. A node
/// counts as `PODS_PER_NODE` pods, because its heartbeats are in each checkpoint, while pods that have not changed are
/// shared.
const CHECKPOINT_PODS: usize = 2_000_000;
const CHECKPOINTS: (usize, usize) = (16, 512);
const PODS_PER_NODE: usize = 20;

/// Interval at which the model's views are refreshed while the recording plays. A state that lasts less than the
/// interval may be missed. If earlier events are not known yet, views are refreshed only at the moment that is shown,
/// because refreshing takes a third of the playing time.
const LOOK: Span = Span::from_secs(1);

/// Time without any message after which a recording counts as interrupted, for example because the machine slept. Work
/// of the engine that falls due during the interruption is done at the end of the interruption.
const SILENCE: Span = Span::from_secs(600);

/// A recording, and the model at one moment of the recording. The model's engine only predicts what the recorded
/// controller does, as in every kordon that only watches. The model's time is the time of the recording.
#[derive(Debug)]
pub struct Replay<R> {
    reader: RecordingReader<R>,
    settings: Settings,
    /// Run-up: time that is played before a moment, if playing does not begin at a known state closer to the moment.
    run_up: Span,
    /// Time of the keyframe at which playing began without a run-up. Earlier events are not known yet, and a search can
    /// still add them. None if playing began elsewhere.
    known_from: Option<Timestamp>,
    /// Time up to which the recording was searched. All checkpoints up to this time exist.
    searched: Timestamp,
    /// Alternative settings of the controller to replay with; none to replay with the settings of the recording.
    alternative: Option<Alternative>,
    state: ReplayState,
    at: Timestamp,
    /// The next entry of the recording, if it was already read.
    next: Option<RecordedEntry>,
    /// Whether the objects of the next keyframe must be applied, as at the beginning and after a damaged block.
    needs_keyframe: bool,
    /// Time at which the model's views are next refreshed.
    next_look: Timestamp,
    checkpoints: Checkpoints,
    /// Time of the last checkpoint (`last_checkpoint`), and whether a keyframe was passed since then.
    last_checkpoint: Option<Timestamp>,
    passed_keyframe: bool,
    /// Parts of the recording that could not be read: start, end and reason.
    damaged: BTreeMap<Timestamp, (Timestamp, String)>,
}

/// Checkpoints of a recording (states from which a replay can continue), by their time.
pub type Checkpoints = BTreeMap<Timestamp, Checkpoint>;

/// State at a moment of a recording, with the position in the recording at which reading continues. The state knows all
/// earlier events.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    state: ReplayState,
    position: ReadPosition,
}

/// Position in the recording at which a replay begins to play when it goes to a moment.
#[derive(Clone, Copy, Debug)]
enum ReplayBase {
    /// The current state of the replay.
    Here,
    Checkpoint(Timestamp),
    Keyframe(Timestamp),
    /// The start of the recording.
    Start,
}

impl<R: Read + Seek> Replay<R> {
    /// Returns a replay at the start of the recording. `settings` are the controller settings that the predictions
    /// assume; they may differ from the recorded settings.
    pub fn new(reader: RecordingReader<R>, settings: Settings) -> Self {
        Self::with_alternative(reader, settings, None)
    }

    /// Returns a replay of what would have happened with the settings of `alternative`.
    pub fn under(reader: RecordingReader<R>, alternative: Alternative) -> Self {
        Self::with_alternative(reader, alternative.settings.clone(), Some(alternative))
    }

    fn with_alternative(
        reader: RecordingReader<R>,
        settings: Settings,
        alternative: Option<Alternative>,
    ) -> Self {
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

    /// Returns the replay without a run-up: playing to a moment begins at the last keyframe before the moment. Events
    /// before this keyframe become known once a search has passed the moment ([`Replay::add_checkpoints`]). Then the
    /// moment can be [completed](Replay::can_complete).
    #[must_use]
    pub fn without_run_up(self) -> Self {
        Self { run_up: Span::ZERO, ..self }
    }

    /// Returns the model at the current moment.
    pub fn model(&self) -> &Model {
        &self.state.model
    }

    /// Returns what would have happened with other settings up to the current moment; none if the replay has the
    /// recorded settings.
    pub fn counterfactual(&self) -> Option<&Counterfactual> {
        self.state.counterfactual.as_ref()
    }

    /// Returns the model, without the rest of the replay.
    pub fn into_model(self) -> Model {
        self.state.model
    }

    /// Returns the current moment.
    pub fn at(&self) -> Timestamp {
        self.at
    }

    pub fn reader(&self) -> &RecordingReader<R> {
        &self.reader
    }

    /// Goes to a moment. If the moment is outside the recording, goes to the start or end of the recording.
    ///
    /// # Errors
    /// The recording cannot be read. A damaged block is not an error: the model loses its connection for the time of
    /// the block.
    pub fn seek(&mut self, to: Timestamp) -> Result<(), RecordingError> {
        self.go_to(to, PLAYED_THROUGH)
    }

    /// Goes to a moment that the user waits for. Without a run-up, less time is played than by [`Replay::seek`], so
    /// that more earlier events may be missing until the moment is [completed](Replay::can_complete).
    ///
    /// # Errors
    /// See [`Replay::seek`].
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

    /// Returns the time of the keyframe at which playing began, if the events before this keyframe are not known yet.
    /// None if all events are known.
    pub fn known_from(&self) -> Option<Timestamp> {
        self.known_from
    }

    /// Whether the search has passed the current moment. Another [`Replay::seek`] then adds the missing earlier events.
    pub fn can_complete(&self) -> bool {
        self.known_from.is_some() && self.at <= self.searched
    }

    /// Makes a forecast at the current moment, if a node is abnormal. The forecast is compared with later events.
    pub fn run_forecast(&mut self) {
        let model = &mut self.state.model;
        if !model.is_abnormal() {
            model.predictions.drop_forecasts();
        } else if let Some(engine) = &model.engine {
            let forecast = Forecast::run(engine, &model.cluster, self.at, HORIZON);
            model.set_forecast(forecast);
        }
    }

    /// Predicts the outcomes of the pods that are about to leave at the current moment. The prediction is later
    /// compared with the actual outcomes.
    pub fn run_outcomes(&mut self) {
        self.state.model.refresh(self.at);
        self.state.model.run_outcomes(None, self.at);
    }

    /// Returns the parts of the recording that could not be read so far, each with start, end and reason.
    pub fn damaged(&self) -> impl Iterator<Item = (Timestamp, Timestamp, &str)> {
        self.damaged.iter().map(|(from, (until, why))| (*from, *until, why.as_str()))
    }

    /// Returns the checkpoints made since the last call. They are for another replay of the same recording.
    pub fn take_checkpoints(&mut self) -> Checkpoints {
        std::mem::take(&mut self.checkpoints)
    }

    /// Adds the checkpoints of another replay of the same recording. That replay was played from the start up to
    /// `searched`.
    pub fn add_checkpoints(&mut self, checkpoints: Checkpoints, searched: Timestamp) {
        self.checkpoints.extend(checkpoints);
        self.searched = self.searched.max(searched);
    }

    /// Returns where playing to `to` begins: at a state that knows all earlier events, or at a keyframe if more than
    /// `patience` would have to be played from such a state.
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
            // Playing began at `keyframe` or at an earlier keyframe, so going back to `keyframe` would not add any
            // events.
            Some(keyframe) if is_ahead && (self.at >= keyframe || to.since(self.at) <= patience) => {
                ReplayBase::Here
            }
            Some(keyframe) => ReplayBase::Keyframe(keyframe),
        }
    }

    /// Returns the keyframe at which playing to `to` begins; none if playing begins at the start of the recording. With
    /// other settings it always begins at the start, because the result depends on all earlier events.
    fn keyframe_for(&self, to: Timestamp) -> Option<Timestamp> {
        let wanted = to - self.run_up;
        let is_known = |at: &Timestamp| self.alternative.is_none() && *at <= wanted;
        self.reader.keyframes().take_while(is_known).last()
    }

    /// Resets the replay to a keyframe. Without a keyframe, resets it to the start.
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

    /// Reads the next entry of the recording. If a block is damaged, the model loses its connection.
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

    /// Makes a checkpoint between two blocks if a checkpoint is due. Just after a keyframe it is due sooner: with a
    /// checkpoint there, a replay need not read the keyframe again.
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

    /// Advances the time to `to`, and does the work that is due until then.
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

/// Returns the first full second after a time. Views are refreshed at full seconds, so that the times of refreshes do
/// not depend on where playing began.
pub fn look_after(at: Timestamp) -> Timestamp {
    let second = LOOK.as_nanos();
    Timestamp::from_nanos((at.as_nanos().div_euclid(second) + 1) * second)
}
