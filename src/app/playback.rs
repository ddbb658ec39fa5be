//! Playback of a recording or of the session's history in place of the present: the moment shown, the speed, and the
//! notable moments.

use std::sync::Arc;

use super::{App, Detail, HistoryState, Pane};
use crate::model::{Model, Moment};
use kordon_time::{Span, Timestamp};

/// Speeds that keys step through, in seconds of the recording per second.
const SPEEDS: [u32; 9] = [1, 2, 5, 10, 30, 60, 120, 300, 600];

/// Minimum distance of the next or previous notable moment from the shown one.
const NEARBY: Span = Span::from_millis(500);

/// Maximum length in bytes of the settings of a counterfactual in the title. Longer ones are not shown in full.
const LONGEST_SETTINGS: usize = 60;

/// Playback of a recording or of the history, shown in place of the present.
#[derive(Clone, Debug)]
pub struct Playback {
    pub kind: PlaybackKind,
    /// Start and end of the recording or of the history.
    pub from: Timestamp,
    pub until: Timestamp,
    /// The shown moment.
    pub at: Timestamp,
    /// The requested moment, until it is shown.
    pub target: Option<Timestamp>,
    pub is_paused: bool,
    /// Speed, in seconds of the recording per second.
    pub speed: f64,
    /// Notable moments found so far, in order of time.
    pub moments: Arc<Vec<Moment>>,
    /// End of the part of the recording that was searched for notable moments.
    pub searched: Timestamp,
    /// Time of the keyframe at which replaying began, while events before this keyframe are still missing; `None` if no
    /// events are missing.
    pub known_from: Option<Timestamp>,
    /// Settings of a counterfactual; empty if the playback shows what actually happened.
    pub other_settings: String,
    /// A fault of the recording, for example that it was truncated.
    pub fault: Option<String>,
}

/// Source of a playback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaybackKind {
    /// A recording file, without a cluster.
    Recording,
    /// The history of this session, on a frozen screen.
    History,
}

/// Destination of a seek.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeekStep {
    /// Moves by this number of seconds, backwards if negative.
    By(i32),
    NextMoment,
    PreviousMoment,
    Start,
    End,
}

impl Playback {
    /// Creates a playback positioned at `at`.
    pub fn new(kind: PlaybackKind, (from, until): (Timestamp, Timestamp), at: Timestamp) -> Self {
        Self {
            kind,
            from,
            until,
            at,
            target: None,
            is_paused: kind == PlaybackKind::History,
            speed: 1.0,
            moments: Arc::default(),
            searched: from,
            known_from: None,
            other_settings: String::new(),
            fault: None,
        }
    }

    /// The requested moment, or else the shown one.
    pub fn place(&self) -> Timestamp {
        self.target.unwrap_or(self.at)
    }

    /// Whether the playback advances with time.
    pub fn is_playing(&self) -> bool {
        !self.is_paused && self.place() < self.until
    }

    /// Requests that the playback shows this moment. A moment outside of the recording is replaced by its start or end.
    pub fn go_to(&mut self, at: Timestamp) {
        self.target = Some(at.clamp(self.from, self.until));
    }

    /// The first notable moment after the requested one, or else after the shown one.
    pub fn next_moment(&self) -> Option<&Moment> {
        let place = self.place() + NEARBY;
        self.moments.get(self.moments.partition_point(|moment| moment.at < place))
    }

    pub fn previous_moment(&self) -> Option<&Moment> {
        let place = self.place() - NEARBY;
        let before = self.moments.partition_point(|moment| moment.at < place);
        before.checked_sub(1).and_then(|last| self.moments.get(last))
    }

    /// The latest notable moment up to the shown one.
    pub fn last_moment(&self) -> Option<&Moment> {
        let happened = self.moments.partition_point(|moment| moment.at <= self.at);
        happened.checked_sub(1).and_then(|last| self.moments.get(last))
    }

    /// Whether the playback shows what would have happened with other settings.
    pub fn is_counterfactual(&self) -> bool {
        !self.other_settings.is_empty()
    }

    /// Name of the playback: `REPLAY`, or `REPLAY with node-monitor-grace-period=20s` for a counterfactual.
    pub fn title(&self) -> String {
        match self.other_settings.as_str() {
            "" => "REPLAY".into(),
            settings if settings.len() <= LONGEST_SETTINGS => format!("REPLAY with {settings}"),
            settings => format!("REPLAY with {} other settings", settings.split(' ').count()),
        }
    }

    /// Text of the speed: `3x`, `0.5x`.
    pub fn speed_text(&self) -> String {
        format!("{}x", self.speed)
    }

    fn seek(&mut self, step: SeekStep) -> Result<(), &'static str> {
        let to = match step {
            SeekStep::By(seconds) => self.place() + Span::from_secs(seconds.into()),
            SeekStep::Start => self.from,
            SeekStep::End => self.until,
            SeekStep::NextMoment => match self.next_moment() {
                Some(moment) => moment.at,
                None if self.searched < self.until => {
                    return Err("no later moment found yet: still searching");
                }
                None => return Err("no notable moment after this"),
            },
            // The search for notable moments has not reached the current position yet, so it may still find a moment
            // that is nearer to the position.
            SeekStep::PreviousMoment if self.searched < self.place() => {
                return Err("still searching for notable moments");
            }
            SeekStep::PreviousMoment => self.previous_moment().ok_or("no notable moment before this")?.at,
        };
        self.go_to(to);
        Ok(())
    }

    /// Changes the speed by one step.
    fn change_speed(&mut self, faster: bool) {
        let speeds = || SPEEDS.into_iter().map(f64::from);
        let next = if faster {
            speeds().find(|speed| *speed > self.speed)
        } else {
            speeds().rev().find(|speed| *speed < self.speed)
        };
        self.speed = next.unwrap_or(self.speed);
    }
}

impl App {
    /// Time of the model: the shown moment while a recording is played, otherwise `now`.
    pub fn model_time(&self, now: Timestamp) -> Timestamp {
        let recording = self.playback.as_ref().filter(|playback| playback.kind == PlaybackKind::Recording);
        recording.map_or(now, |playback| playback.at)
    }

    /// Whether a recording is played, so that there is no cluster.
    pub fn is_replay(&self) -> bool {
        self.playback.as_ref().is_some_and(|playback| playback.kind == PlaybackKind::Recording)
    }

    /// Whether a frozen screen shows the history.
    pub fn is_in_history(&self) -> bool {
        self.playback.as_ref().is_some_and(|playback| playback.kind == PlaybackKind::History)
    }

    /// The model that jobs work on, with its time: the shown moment during playback, otherwise the present, even if the
    /// screen is frozen.
    pub fn worked_on(&mut self, now: Timestamp) -> (&mut Model, Timestamp) {
        let now = self.model_time(now);
        match &mut self.screen.frozen {
            Some(frozen) if self.playback.is_some() => (&mut frozen.model, frozen.at),
            Some(_) | None => (&mut self.model, now),
        }
    }

    /// Shows another moment. Returns the model of the previous moment.
    pub fn show_moment(&mut self, mut model: Model, at: Timestamp) -> Model {
        if model.leaves_many() {
            model.refresh_nodes(at);
        } else {
            model.refresh(at);
        }
        if let Some(playback) = &mut self.playback {
            playback.at = at;
            playback.target = playback.target.filter(|target| *target != at);
            if at >= playback.until {
                playback.is_paused = true;
            }
        }
        let before = match &mut self.screen.frozen {
            Some(frozen) => {
                frozen.at = at;
                std::mem::replace(&mut *frozen.model, model)
            }
            None => std::mem::replace(&mut self.model, model),
        };
        self.arrange(at);
        before
    }

    /// Requests another moment of the recording or of the history.
    pub(super) fn seek(&mut self, step: SeekStep) {
        let sought = self.played().and_then(|playback| playback.seek(step).map_err(Into::into));
        self.screen.message = sought.err();
    }

    /// The playback. On a frozen screen this starts the playback of the history.
    ///
    /// # Errors
    /// There is nothing to play.
    fn played(&mut self) -> Result<&mut Playback, String> {
        if self.playback.is_none() {
            self.playback = Some(self.history_playback()?);
            // The detail hides Events and the whole object, because they show the present, not the played moment.
            self.screen.overlays.detail_mut().into_iter().for_each(Detail::set_unrecorded);
        }
        self.playback.as_mut().ok_or_else(|| NOTHING_PLAYED.into())
    }

    /// Creates a playback of the history at the time at which the screen is frozen.
    fn history_playback(&self) -> Result<Playback, String> {
        if let Some(why) = self.why_no_history() {
            return Err(why);
        }
        match (&self.history, &self.screen.frozen) {
            (HistoryState::Kept { from, .. }, Some(frozen)) => {
                let whole = (*from, frozen.at.max(*from));
                Ok(Playback::new(PlaybackKind::History, whole, frozen.at))
            }
            (_, _) => Err(NOTHING_PLAYED.into()),
        }
    }

    pub(super) fn change_speed(&mut self, faster: bool) {
        if let Some(playback) = &mut self.playback {
            playback.change_speed(faster);
        }
    }

    /// Pauses or resumes the playback. At the end, resuming starts from the beginning.
    pub(super) fn play_or_pause(&mut self) {
        let Some(playback) = &mut self.playback else {
            self.screen.message = self.why_no_history().or_else(|| Some("← goes back; then p plays".into()));
            return;
        };
        playback.is_paused = !playback.is_paused;
        if !playback.is_paused && playback.place() >= playback.until {
            playback.go_to(playback.from);
        }
    }

    /// Goes to a typed time: `03:12:45`, `12m` from the start, `-30s` from the end, or with a date.
    ///
    /// # Errors
    /// The text is no time, the time is outside the playback, or nothing is played.
    pub(super) fn go_to_typed(&mut self, text: &str) -> Result<(), String> {
        let playback = self.played()?;
        let to = typed_time(text, playback)?;
        if !(playback.from..=playback.until).contains(&to) {
            let (from, until) = (playback.from.to_time(), playback.until.to_time());
            return Err(format!("{} is not in it: {from} to {until}", to.to_time()));
        }
        playback.go_to(to);
        Ok(())
    }

    /// Sets the speed: `10`, `10x`.
    ///
    /// # Errors
    /// The text is no speed, or nothing is played.
    pub(super) fn set_speed(&mut self, text: &str) -> Result<(), String> {
        let playback = self.played()?;
        playback.speed = parse_speed(text)?;
        Ok(())
    }

    /// Whether the play key would control a playback while the current pane has the focus.
    pub(super) fn would_play(&self) -> bool {
        self.playback.is_some() && self.screen.focus != Pane::Progress
    }
}

const NOTHING_PLAYED: &str = "nothing is played";

/// Parses a speed: `10`, `10x`, `0.5`.
///
/// # Errors
/// The text is no number from 0.1 to 1000.
pub fn parse_speed(text: &str) -> Result<f64, String> {
    let speed = text.trim().trim_end_matches('x').parse().ok();
    let speed = speed.filter(|speed: &f64| (0.1..=1000.0).contains(speed));
    speed.ok_or_else(|| "not a speed from 0.1 to 1000, such as 10x".into())
}

/// Parses a moment of a recording: an RFC 3339 time, a time of day in UTC, `12m` from the start, `-30s` from the end.
fn typed_time(text: &str, playback: &Playback) -> Result<Timestamp, String> {
    let text = text.trim();
    if let Some(at) = Timestamp::parse(text) {
        return Ok(at);
    }
    let span = |text: &str| humantime::parse_duration(text).ok().map(Span::from);
    let parsed = match text.strip_prefix('-') {
        Some(before) => span(before).map(|span| playback.until - span),
        None => span(text.trim_start_matches('+')).map(|span| playback.from + span),
    };
    let parsed = parsed.or_else(|| time_of_day(text, playback.from));
    parsed.ok_or_else(|| {
        format!("{text} is not a time such as 03:12:45, 12m (from the start) or -30s (from the end)")
    })
}

/// Parses a time of day, `03:12` or `03:12:45`. Returns the first such time that is not before `from`.
fn time_of_day(text: &str, from: Timestamp) -> Option<Timestamp> {
    let full = if text.matches(':').count() == 1 { format!("{text}:00") } else { text.to_owned() };
    let day = |at: Timestamp| at.utc().format("%Y-%m-%d").to_string();
    let on = |at: Timestamp| Timestamp::parse(&format!("{}T{full}Z", day(at)));
    let today = on(from)?;
    if today >= from { Some(today) } else { on(from + Span::from_secs(86_400)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{MomentKind, VerdictLevel};

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_secs(1_800_000_000 + secs)
    }

    fn playback() -> Playback {
        let moment = |secs| Moment::new(at(secs), MomentKind::NodeJoined, VerdictLevel::Notice, "node");
        let mut playback = Playback::new(PlaybackKind::Recording, (at(0), at(600)), at(100));
        playback.moments = Arc::new(vec![moment(50), moment(100), moment(130)]);
        playback
    }

    #[test]
    fn steps_add_up_and_end_at_the_ends() {
        let mut playback = playback();
        playback.go_to(at(100));
        let still = Err("still searching for notable moments");
        assert_eq!(playback.seek(SeekStep::PreviousMoment), still, "the last one may not be found yet");
        playback.searched = at(600);
        for (step, expected) in [
            (SeekStep::By(10), 110),
            (SeekStep::By(60), 170),
            (SeekStep::By(-600), 0),
            (SeekStep::End, 600),
            (SeekStep::By(10), 600),
            (SeekStep::PreviousMoment, 130),
            (SeekStep::PreviousMoment, 100),
            (SeekStep::PreviousMoment, 50),
            (SeekStep::NextMoment, 100),
            (SeekStep::Start, 0),
        ] {
            assert_eq!(playback.seek(step), Ok(()), "{step:?}");
            assert_eq!(playback.place(), at(expected), "{step:?}");
        }
        assert_eq!(playback.seek(SeekStep::PreviousMoment), Err("no notable moment before this"));
        (playback.searched, playback.target) = (at(510), Some(at(500)));
        assert_eq!(playback.seek(SeekStep::NextMoment), Err("no later moment found yet: still searching"));
    }

    #[test]
    fn a_time_is_typed_as_on_the_clock_or_from_an_end() {
        let playback = playback();
        let typed = |text: &str| typed_time(text, &playback).map(|time| time.since(at(0)).as_secs());
        assert_eq!(at(0).to_time(), "2027-01-15T08:00:00Z");
        for (text, expected) in [
            ("2027-01-15T08:02:00Z", 120),
            ("08:05", 300),
            ("08:00:09", 9),
            ("00:30", 16 * 3600 + 1800),
            ("12s", 12),
            ("+1m", 60),
            ("-1m30s", 510),
        ] {
            assert_eq!(typed(text), Ok(expected), "{text}");
        }
        assert!(typed("soon").is_err() && typed("").is_err() && typed("-").is_err());
    }

    #[test]
    fn the_speed_has_steps_and_any_value_may_be_typed() {
        let mut playback = playback();
        playback.speed = 7.0;
        playback.change_speed(true);
        assert_eq!(playback.speed_text(), "10x");
        (0..20).for_each(|_| playback.change_speed(true));
        assert_eq!(playback.speed_text(), "600x");
        (0..20).for_each(|_| playback.change_speed(false));
        assert_eq!(playback.speed_text(), "1x");
        assert_eq!(parse_speed("0.5x"), Ok(0.5));
        assert!(["0", "-1", "fast", "inf", "NaN"].iter().all(|text| parse_speed(text).is_err()));
    }
}
