//! Plays a recording: another thread makes the model of each moment that is shown.

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

/// A source from which a recording is read: a file, or memory in tests.
pub trait RecordingSource: Read + Seek + Send {}

impl<S: Read + Seek + Send> RecordingSource for S {}

/// A replay of a recording.
pub type AnyReplay = Replay<Box<dyn RecordingSource>>;

/// A search in a recording from any source.
type AnySearch = Box<MomentSearch<Box<dyn RecordingSource>>>;

/// Plays a recording, and searches it for notable moments.
pub struct Player {
    /// The replay that plays; none while another thread makes a moment with it.
    replay: Option<Box<AnyReplay>>,
    step: Background<StepResult>,
    /// The search for notable moments; none while another thread continues it.
    search: Option<AnySearch>,
    searching: Background<(AnySearch, SearchProgress)>,
    number: MomentNumber,
    /// Checkpoints of the search that the replay gets once its step is finished; and the time up to which the recording
    /// was searched.
    checkpoints: Checkpoints,
    searched: Timestamp,
    /// When the latest moment was requested, whether it is shown or still being made.
    asked: Instant,
}

/// A moment that was made, and the replay that made it.
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
    /// Time since which events are known. It is set if the search will add earlier events; the moment is then shown
    /// again.
    pub known_from: Option<Timestamp>,
}

/// A result of another thread.
pub enum PlayerEvent {
    Step(Result<StepResult, Failed>),
    Found(Result<SearchProgress, Failed>),
}

impl fmt::Debug for Player {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Player").field("number", &self.number).finish_non_exhaustive()
    }
}

/// How a moment follows the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// Time has passed.
    Continued,
    /// The moment is elsewhere in the recording, or earlier events have become known.
    Jumped,
}

impl Player {
    /// Returns a player of one recording with two replays of it: one plays, the other searches. At a place that was not
    /// searched yet, only the time since the last keyframe is played. The rest is known once the search has passed the
    /// place.
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

    /// When the next moment should be made; none while one is being made, and while nothing changes.
    pub fn due(&self, playback: &Playback) -> Option<Instant> {
        let replay = self.replay.as_ref()?;
        match playback.target {
            Some(_) => Some(self.asked),
            None if playback.is_playing() => Some(self.asked + STEP),
            None => replay.can_complete().then_some(self.asked),
        }
    }

    /// Restarts the clock of the recording: the time before now does not count.
    pub fn restart_clock(&mut self) {
        self.asked = Instant::now();
    }

    /// Starts to make the next moment: the one that the user wants, or the one that the passing time has reached.
    /// `before` is the model that is shown now.
    pub fn start(&mut self, playback: &Playback, before: &Model) {
        let elapsed = self.asked.elapsed();
        self.asked = Instant::now();
        self.start_after(elapsed, playback, before);
    }

    /// Like [`Self::start`], with this much time passed since the last moment.
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

    /// Waits for the next result, forever if nothing runs. May be dropped and awaited again.
    pub async fn next(&mut self) -> PlayerEvent {
        tokio::select! {
            step = self.step.finished() => PlayerEvent::Step(step),
            found = self.searching.finished() => PlayerEvent::Found(found.map(|(search, progress)| {
                self.search = Some(search);
                progress
            })),
        }
    }

    /// Waits for the moment that is being made.
    pub async fn next_step(&mut self) -> Result<StepResult, Failed> {
        self.step.finished().await
    }

    /// Takes back the replay of a finished step, and returns the moment that the step made.
    pub fn on_step(&mut self, step: StepResult) -> PlayedMoment {
        let StepResult { replay, number, moment } = step;
        self.number = number;
        self.replay.insert(replay).add_checkpoints(std::mem::take(&mut self.checkpoints), self.searched);
        moment
    }

    /// Starts the next slice of the search, if there is more to search and none runs.
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

    /// Waits for the progress of the search, forever if no search runs. May be dropped and awaited again.
    pub async fn next_found(&mut self) -> Result<SearchProgress, Failed> {
        let (search, progress) = self.searching.finished().await?;
        self.search = Some(search);
        Ok(progress)
    }

    /// Adds checkpoints of the search, which has come as far as `searched`.
    pub fn add_checkpoints(&mut self, checkpoints: Checkpoints, searched: Timestamp) {
        self.searched = searched;
        match &mut self.replay {
            Some(replay) => replay.add_checkpoints(checkpoints, searched),
            None => self.checkpoints.extend(checkpoints),
        }
    }
}

/// Goes to a moment. `before` is the model that is shown, if only time has passed since then.
fn make_moment(
    mut replay: Box<AnyReplay>,
    before: Option<Model>,
    mut number: MomentNumber,
    at: Timestamp,
) -> StepResult {
    let (was_continued, known_from) = (before.is_some(), replay.known_from());
    let sought = if was_continued { replay.seek(at) } else { replay.jump(at) };
    // Counts continue only if both models know the same earlier events.
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
        model.drop_forecasts();
    } else if model.forecast.is_none()
        && let Some(engine) = &model.engine
    {
        let forecast = Forecast::run(engine, &model.cluster, at, HORIZON).with_chart(engine, &model.cluster);
        model.set_forecast(forecast);
    }
    model
}
