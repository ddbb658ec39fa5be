//! `kordon report`: a postmortem of a recording, with events, affected pods and their downtime, and the accuracy of
//! predictions.

mod document;
mod html;
mod markdown;
mod predictions;
mod sections;

use std::{io::BufReader, path::PathBuf};

use clap::{Args, ValueEnum};
use ratatui::{Terminal, backend::TestBackend};

use super::{
    exit::{self, CliError},
    recorded::{self, RecordedTime, open, recorded_time},
    settings::SettingsArgs,
    span,
};
use crate::{
    app::{
        App, AppOptions, Mode,
        playback::{Playback, PlaybackKind},
    },
    model::VerdictLevel,
    recording::RecordingReader,
    run::{Surface as _, moment_search::end_note, replay::Replay, review::IncidentReview},
    ui::{snapshot, theme::Theme},
};
use document::{IncidentReport, RecordingFacts};
use kordon_time::{Span, Timestamp};

#[derive(Args, Debug)]
pub struct ReportArgs {
    /// Recording of `kordon record`
    file: PathBuf,
    /// Where to begin: a time such as 2026-01-02T03:04:05Z, 12m from the start, or -30s from the end (default: the
    /// start)
    #[arg(long, value_name = "TIME", value_parser = recorded_time, allow_hyphen_values = true)]
    from: Option<RecordedTime>,
    /// Where to end (default: the end)
    #[arg(long, value_name = "TIME", value_parser = recorded_time, allow_hyphen_values = true)]
    to: Option<RecordedTime>,
    /// An eviction was not necessary if its node was Ready again within this time (evictions.unnecessary in JSON)
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = span::span)]
    back_within: Span,
    /// How to print the report
    #[arg(long, short, value_enum, default_value_t = ReportFormat::Markdown)]
    output: ReportFormat,
    #[command(flatten)]
    settings: SettingsArgs,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum ReportFormat {
    #[default]
    Markdown,
    /// One page, with pictures of the dashboard
    Html,
    Json,
}

/// Size of pictures in columns and rows.
const PICTURE: (u16, u16) = (160, 48);

/// A picture of the dashboard at a moment.
#[derive(Clone, Debug)]
struct Picture {
    at: Timestamp,
    caption: String,
    svg: String,
}

pub fn run(args: &ReportArgs) -> Result<(), CliError> {
    let reader = RecordingReader::open(BufReader::new(open(&args.file)?))?;
    let whole = (reader.start().at, reader.until());
    let (from, until) = recorded::range(args.from, args.to, &reader)?;
    let mut settings = reader.start().settings();
    args.settings.apply_to_recorded(&mut settings)?;
    let facts = RecordingFacts {
        context: reader.start().context.clone(),
        server_version: reader.start().server_version.clone(),
        recorded_by: reader.start().kordon.clone(),
        fault: end_note(reader.end()).map(Into::into),
        back_within: args.back_within,
    };
    let mut replay = Replay::new(reader, settings);
    let review = IncidentReview::new(&mut replay, (from, until))?;
    let report = IncidentReport::new(&review, &facts);
    let text = match args.output {
        ReportFormat::Markdown => markdown::page(&report),
        ReportFormat::Json => exit::to_json(&report),
        ReportFormat::Html => html::page(&report, &pictures(&mut replay, &review, whole)?),
    };
    exit::print(text.as_bytes())
}

/// Pictures of the first critical moment, of the worst moment, and of the end.
fn pictures(
    replay: &mut Replay<BufReader<std::fs::File>>,
    review: &IncidentReview,
    (start, end): (Timestamp, Timestamp),
) -> Result<Vec<Picture>, CliError> {
    let first = review.moments.iter().find(|moment| moment.level == VerdictLevel::Critical);
    let first = first.map(|moment| (moment.at, moment.text()));
    let peak = review.peak.map(|at| (at, "most nodes down".to_owned()));
    let mut wanted: Vec<(Timestamp, String)> = first.into_iter().chain(peak).collect();
    wanted.push((review.until, "at the end".to_owned()));
    wanted.dedup_by_key(|(at, _)| *at);
    let mut pictures = Vec::new();
    for (at, caption) in wanted {
        replay.seek(at)?;
        let mut model = replay.model().clone();
        model.run_forecast(at);
        model.run_outcomes(None, at);
        let mut app = App::new(model, AppOptions { mode: Mode::Replay, ..AppOptions::default() });
        let mut playback = Playback::new(PlaybackKind::Recording, (start, end), at);
        (playback.is_paused, playback.searched) = (true, end);
        playback.moments = std::sync::Arc::new(review.moments.clone());
        app.playback = Some(playback);
        app.arrange(at);
        let mut screen = Terminal::new(TestBackend::new(PICTURE.0, PICTURE.1)).expect("a buffer cannot fail");
        let failed = |error| CliError::Io { doing: "drawing a picture".into(), error };
        let drawn = screen.draw_app(&app, at).map_err(failed)?;
        app.screen.drawn(&drawn.rows);
        app.arrange(at);
        screen.draw_app(&app, at).map_err(failed)?;
        let svg = snapshot::svg(screen.backend().buffer(), &Theme::chosen(app.screen.theme()));
        pictures.push(Picture { at, caption, svg });
    }
    Ok(pictures)
}
