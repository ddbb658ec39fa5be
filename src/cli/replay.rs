//! `kordon replay`: the dashboard of a recording.

use std::{io::BufReader, path::PathBuf};

use clap::Args;

use super::{
    config::Config,
    exit::{self, CliError},
    recorded::{RecordedTime, open, recorded_time},
    settings::SettingsArgs,
    show::{LookArgs, show_replay},
};
use crate::{
    app::{
        AppOptions, Mode,
        playback::{Playback, PlaybackKind, parse_speed},
    },
    run::{
        Dashboard,
        moment_search::end_note,
        player::{AnyReplay, Player, RecordingSource},
        replay::Replay,
    },
};
use kordon_clock::Clock;
use kordon_core::counterfactual::Alternative;

#[derive(Args, Debug)]
pub struct ReplayArgs {
    /// Recording of `kordon record`
    file: PathBuf,
    /// Where to start: a time such as 2026-01-02T03:04:05Z, 12m from the start, or -30s from the end (default: the
    /// start)
    #[arg(long, value_name = "TIME", value_parser = recorded_time, allow_hyphen_values = true)]
    at: Option<RecordedTime>,
    /// How fast time passes, from 0.1 to 1000; `<` and `>` change it
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = parse_speed)]
    speed: f64,
    /// Start paused; p plays
    #[arg(long)]
    paused: bool,
    /// Show what would have happened with another setting, as node-monitor-grace-period=20s or
    /// default-unreachable-toleration-seconds=60; repeatable
    #[arg(long = "with", value_name = "KEY=VALUE")]
    with: Vec<String>,
    #[command(flatten)]
    look: LookArgs,
    #[command(flatten)]
    settings: SettingsArgs,
}

pub async fn run(args: ReplayArgs, config: Config) -> Result<(), CliError> {
    let ReplayArgs { file, at, speed, paused, with, look, settings } = args;
    let replay = || -> Result<(AnyReplay, String), CliError> {
        let source: Box<dyn RecordingSource> = Box::new(BufReader::new(open(&file)?));
        let reader = crate::recording::RecordingReader::open(source)?;
        let mut flags = reader.start().settings();
        settings.apply_to_recorded(&mut flags)?;
        if with.is_empty() {
            return Ok((Replay::new(reader, flags), String::new()));
        }
        let present = Alternative::new(flags);
        let mut other = present.clone();
        for setting in &with {
            other.set(setting).map_err(|error| CliError::Usage(error.to_string()))?;
        }
        let differences = other.differences(&present).join(" ");
        let differences = if differences.is_empty() { "the settings in force".into() } else { differences };
        Ok((Replay::under(reader, other), differences))
    };
    let ((mut played, other_settings), (searched, _)) = (replay()?, replay()?);
    let reader = played.reader();
    let (from, until) = (reader.start().at, reader.until());
    let at = at.map_or(Ok(from), |at| at.within(from, until))?;
    let mut playback = Playback::new(PlaybackKind::Recording, (from, until), from);
    playback.fault = end_note(reader.end()).map(Into::into);
    playback.other_settings = other_settings;
    (playback.speed, playback.is_paused) = (speed, paused);
    played.seek(from)?;
    playback.go_to(at);
    // A recording belongs to no context, so only the preferences for all contexts apply.
    let preferences = config.preferences("");
    let mut look = look;
    look.ask_background();
    let (themes, bad_themes) = look.themes()?;
    bad_themes.iter().for_each(|text| exit::note(text));
    let options = AppOptions { mode: Mode::Replay, themes, preferences };
    let dashboard =
        Dashboard::for_recording(playback, Player::new(played, searched), options, Clock::system());
    show_replay(look, dashboard).await
}
