//! `--recording FILE --at TIME`: a moment of a recording instead of a cluster.

use std::{
    fs::File,
    io::{BufReader, Read, Seek},
    path::{Path, PathBuf},
};

use clap::Args;
use kube::{Client, client::Body};

use super::{CliError, settings::SettingsArgs, span};
use crate::{k8s::connect::Connection, model::Model, recording::RecordingReader, run::replay::Replay};
use kordon_core::visible;
use kordon_time::{Span, Timestamp};

#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Recording")]
pub struct RecordingArgs {
    /// Answer from this recording of `kordon record` instead of a cluster, at --at (default: its end)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["from", "with"])]
    pub recording: Option<PathBuf>,
}

/// A moment of a recording, as typed on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordedTime {
    At(Timestamp),
    FromStart(Span),
    BeforeEnd(Span),
}

impl Default for RecordedTime {
    fn default() -> Self {
        Self::BeforeEnd(Span::ZERO)
    }
}

/// The model that was known at a moment of a recording, and the time of that moment. Given settings override recorded
/// ones.
pub fn model(file: &Path, at: RecordedTime, given: &SettingsArgs) -> Result<(Model, Timestamp), CliError> {
    let reader = RecordingReader::open(BufReader::new(open(file)?))?;
    let at = at.within(reader.start().at, reader.until())?;
    let mut settings = reader.start().settings();
    given.apply(&mut settings);
    let mut replay = Replay::new(reader, settings);
    replay.seek(at)?;
    Ok((replay.into_model(), at))
}

/// The part of a recording from `--from` to `--to`, by default all of it.
///
/// # Errors
/// A time is outside the recording, or `--to` is before `--from`.
pub fn range<R: Read + Seek>(
    from: Option<RecordedTime>,
    to: Option<RecordedTime>,
    reader: &RecordingReader<R>,
) -> Result<(Timestamp, Timestamp), CliError> {
    let (start, end) = (reader.start().at, reader.until());
    let from = from.map_or(Ok(start), |from| from.within(start, end))?;
    let until = to.map_or(Ok(end), |to| to.within(start, end))?;
    if until < from {
        return Err(CliError::Usage("--to is before --from".into()));
    }
    Ok((from, until))
}

impl RecordedTime {
    /// Returns the time of the moment, within a recording that lasts from `start` to `end`.
    pub fn within(self, start: Timestamp, end: Timestamp) -> Result<Timestamp, CliError> {
        let at = match self {
            Self::At(at) => at,
            Self::FromStart(span) => start + span,
            Self::BeforeEnd(span) => end - span,
        };
        if !(start..=end).contains(&at) {
            let (at, start, end) = (at.to_time(), start.to_time(), end.to_time());
            return Err(CliError::Usage(format!(
                "{at} is not in the recording, which is from {start} to {end}"
            )));
        }
        Ok(at)
    }
}

/// Opens a recording file.
pub fn open(file: &Path) -> Result<File, CliError> {
    let shown = visible::text(&file.display().to_string()).into_owned();
    File::open(file).map_err(|error| CliError::Io { doing: format!("opening {shown}"), error })
}

/// A connection that refuses all requests. Reads other than the watches fail with the error that a recording has no
/// such data.
pub fn connection(model: &Model) -> Connection {
    let refuse = tower::service_fn(|_: http::Request<Body>| async {
        Err::<http::Response<Body>, _>(tower::BoxError::from("a recording has only what watches report"))
    });
    let mut connection = Connection::embedded(Client::new(refuse, "default"), &model.connection.context);
    connection.server.clone_from(&model.connection.server);
    connection.version = model.settings.version;
    connection.release = model.connection.server_version.clone().unwrap_or_default();
    connection
}

pub fn recorded_time(text: &str) -> Result<RecordedTime, String> {
    if let Some(at) = Timestamp::parse(text) {
        return Ok(RecordedTime::At(at));
    }
    let parsed = match text.strip_prefix('-') {
        Some(before) => span::span(before).map(RecordedTime::BeforeEnd),
        None => span::span(text).map(RecordedTime::FromStart),
    };
    parsed.map_err(|_| {
        "not a time such as 2026-01-02T03:04:05Z, 12m (from the start) or -30s (from the end)".into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_a_time_or_a_distance_from_one_end() {
        assert_eq!(recorded_time("1970-01-01T00:00:09Z"), Ok(RecordedTime::At(Timestamp::from_secs(9))));
        assert_eq!(recorded_time("12m"), Ok(RecordedTime::FromStart(Span::from_secs(720))));
        assert_eq!(recorded_time("-30s"), Ok(RecordedTime::BeforeEnd(Span::from_secs(30))));
        assert!(recorded_time("soon").is_err() && recorded_time("-").is_err());
    }
}
