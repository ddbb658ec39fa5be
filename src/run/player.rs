//! Plays a recording. Another thread makes the model of each moment that is shown.

use std::{
    fmt,
    io::{Read, Seek},
    time::Duration,
};

use tokio::time::Instant;

use super::{
    background::{Background, Failed},
    moment_search::{MomentSearch, SearchProgress},
    replay::{Checkpoints, Replay},
};
use crate::{
    app::Playback,
    model::{HORIZON, Model, MomentNumber},
    recording::RecordingError,
};
use kordon_core::forecast::Forecast;
use kordon_time::{Span, Timestamp};

/// Interval at which the next moment is shown while a recording plays.
const STEP: Duration = Duration::from_millis(200);

/// A source from which a recording is read: usually a file, in tests memory.
pub trait RecordingSource: Read + Seek + Send {}

impl<S: Read + Seek + Send> RecordingSource for S {}

/// A replay of a recording.
pub type AnyReplay = Replay<Box<dyn RecordingSource>>;

/// A search in a recording from any source.
type AnySearch = Box<MomentSearch<Box<dyn RecordingSource>>>;

/// Plays a recording, and searches it for notable moments.
pub struct Player {
    /// The replay that plays; none while another thread uses it to make a moment.
    replay: Option<Box<AnyReplay>>,
    step: Background<StepResult>,
    /// The search for notable moments; none while another thread continues it.
    search: Option<AnySearch>,
    searching: Background<(AnySearch, SearchProgress)>,
    number: MomentNumber,
    /// Checkpoints that the search has made while the replay was in use, and the time up to which the recording was
    /// searched. The replay gets both when it is returned.
    checkpoints: Checkpoints,
    searched: Timestamp,
    /// Time of the latest request for a moment, even if the moment is already shown.
    asked: Instant,
}

/// A moment that another thread made, with the replay that made the moment.
pub struct StepResult {
    replay: Box<AnyReplay>,
    number: MomentNumber,
    moment: PlayedMoment,
}

/// A moment that can be shown.
#[derive(Debug)]
pub struct PlayedMoment {
    pub at: Timestamp,
    pub model: Result<Box<Model>, RecordingError>,
    pub kind: StepKind,
    /// Time of the keyframe at which playing began, as long as another thread searches for the events before it; none
    /// if all events are known. The screen is drawn again when the search has found the events before it.
    pub known_from: Option<Timestamp>,
}

/// A result of another thread: a moment that can be shown, or the progress of the search.
pub enum PlayerEvent {
    Step(Result<StepResult, Failed>),
    Found(Result<SearchProgress, Failed>),
}

impl fmt::Debug for Player {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Player").field("number", &self.number).finish_non_exhaustive()
    }
}

/// Relation of a moment to the moment shown before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// The moment follows the previous one: only time has passed.
    Continued,
    /// The moment is at another place in the recording, or events before it have become known.
    Jumped,
}

impl Player {
    /// Returns a player of one recording, from two replays of this recording: one plays, and the other searches. A
    /// moment that the search has not reached is played only from the last keyframe. Earlier events become known once
    /// the search has passed the moment.
    pub fn new(replay: AnyReplay, search: AnyReplay) -> Self {
        Self {
            replay: Some(Box::new(replay.without_run_up())),
            step: Background::new(Duration::ZERO),
            search: Some(Box::new(MomentSearch::new(search))),
            searching: Background::new(Duration::ZERO),
            number: MomentNumber::default(),
            checkpoints: Checkpoints::new(),
            searched: Timestamp::EPOCH,
            asked: Instant::now(),
        }
    }

    /// Returns the model before anything was played.
    pub fn first_model(&self) -> Model {
        self.replay.as_ref().expect("nothing plays yet").model().clone()
    }

    /// Time at which the next moment should be made; none while a moment is being made, or if the shown moment will not
    /// change.
    pub fn due(&self, playback: &Playback) -> Option<Instant> {
        let replay = self.replay.as_ref()?;
        match playback.target {
            Some(_) => Some(self.asked),
            None if playback.is_playing() => Some(self.asked + STEP),
            None => replay.can_complete().then_some(self.asked),
        }
    }

    /// Restarts the clock of the playback, so that the time before this call does not count as played.
    pub fn restart_clock(&mut self) {
        self.asked = Instant::now();
    }

    /// Starts to make the next moment: the moment that the user has selected, or else the moment that playing has
    /// reached by now. `before` is the model that is shown now.
    pub fn start(&mut self, playback: &Playback, before: &Model) {
        let elapsed = self.asked.elapsed();
        self.asked = Instant::now();
        self.start_after(elapsed, playback, before);
    }

    /// Does the same as [`Self::start`], with `elapsed` as the time since the last moment.
    pub fn start_after(&mut self, elapsed: Duration, playback: &Playback, before: &Model) {
        let Some(replay) = self.replay.take() else { return };
        let (to, kind) = match playback.target {
            Some(target) => (target, StepKind::Jumped),
            None if playback.is_playing() => {
                let passed = Span::from_secs_f64(elapsed.as_secs_f64() * playback.speed);
                ((playback.at + passed).min(playback.until), StepKind::Continued)
            }
            None => (playback.at, StepKind::Jumped),
        };
        self.number.shown += 1;
        self.number.jump += u64::from(kind == StepKind::Jumped);
        let number = self.number;
        let before = (kind == StepKind::Continued).then(|| before.clone());
        self.step.start(move |_| make_moment(replay, before, number, to));
    }

    /// Waits for the next result. Waits forever if nothing runs. May be dropped and awaited again.
    pub async fn next(&mut self) -> PlayerEvent {
        tokio::select! {
            step = self.step.finished() => PlayerEvent::Step(step),
            found = self.searching.finished() => PlayerEvent::Found(found.map(|(search, progress)| {
                self.search = Some(search);
                progress
            })),
        }
    }

    /// Waits until the moment that is being made is finished.
    pub async fn next_step(&mut self) -> Result<StepResult, Failed> {
        self.step.finished().await
    }

    /// Takes the replay back from a thread that has made a moment, and returns this moment.
    pub fn on_step(&mut self, step: StepResult) -> PlayedMoment {
        let StepResult { replay, number, moment } = step;
        self.number = number;
        self.replay.insert(replay).add_checkpoints(std::mem::take(&mut self.checkpoints), self.searched);
        moment
    }

    /// Starts the next slice of the search, unless the search has ended or a slice is running.
    pub fn start_search(&mut self) {
        if let Some(mut search) = self.search.take_if(|search| !search.is_done()) {
            self.searching.start(move |cancelled| {
                let slice = cancelled.slice();
                let progress = search.advance(|| slice.is_over());
                (search, progress)
            });
        }
    }

    pub fn is_searching(&self) -> bool {
        self.searching.is_running()
    }

    /// Waits for the result of a slice of the search. Waits forever if no slice runs. May be dropped and awaited again.
    pub async fn next_found(&mut self) -> Result<SearchProgress, Failed> {
        let (search, progress) = self.searching.finished().await?;
        self.search = Some(search);
        Ok(progress)
    }

    /// Adds checkpoints that the search has made up to the time `searched`.
    pub fn add_checkpoints(&mut self, checkpoints: Checkpoints, searched: Timestamp) {
        self.searched = searched;
        match &mut self.replay {
            Some(replay) => replay.add_checkpoints(checkpoints, searched),
            None => self.checkpoints.extend(checkpoints),
        }
    }
}

/// Plays the replay to the time `at`, and returns the moment. `before` is the model shown before, if only time has
/// passed since then; none after a jump.
fn make_moment(
    mut replay: Box<AnyReplay>,
    before: Option<Model>,
    mut number: MomentNumber,
    at: Timestamp,
) -> StepResult {
    let (was_continued, known_from) = (before.is_some(), replay.known_from());
    let sought = if was_continued { replay.seek(at) } else { replay.jump(at) };
    // The new model takes over results of the previous model only if both know the same earlier events.
    let before = before.filter(|_| replay.known_from() == known_from);
    let kind = if before.is_some() { StepKind::Continued } else { StepKind::Jumped };
    number.jump += u64::from(was_continued && kind == StepKind::Jumped);
    let model = sought.map(|()| Box::new(moment(replay.model(), before.as_ref(), number, at)));
    let moment = PlayedMoment { at, model, kind, known_from: replay.known_from() };
    StepResult { replay, number, moment }
}

/// Returns the model of a moment with its forecast, ready to be shown.
fn moment(replayed: &Model, before: Option<&Model>, number: MomentNumber, at: Timestamp) -> Model {
    let mut model = replayed.clone();
    model.number(number);
    if let Some(before) = before {
        model.continue_from(before, at);
    }
    model.refresh_nodes(at);
    if !model.is_abnormal() {
        model.predictions.drop_forecasts();
    } else if model.predictions.forecast().is_none()
        && let Some(engine) = &model.engine
    {
        let forecast = Forecast::run(engine, &model.cluster, at, HORIZON).with_chart(engine, &model.cluster);
        model.set_forecast(forecast);
    }
    model
}
