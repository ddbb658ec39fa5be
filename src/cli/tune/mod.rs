//! `kordon tune`: what other settings of the controller would have done, given the heartbeats of a recording.

mod chart;
mod document;
mod grid;
mod table;

use std::{fs::File, io::BufReader, path::PathBuf};

use clap::Args;

use super::{
    exit::CliError,
    output::OutputArgs,
    recorded::{self, RecordedTime, open, recorded_time},
    settings::SettingsArgs,
    span,
};
use crate::{
    recording::RecordingReader,
    run::tuning::{SettingsTrial, TuningScope},
};
use document::TuneReport;
use grid::{GridAxis, grid_axis};
use kordon_core::counterfactual::Alternative;
use kordon_time::Span;

#[derive(Args, Debug)]
pub struct TuneArgs {
    /// Recording of `kordon record`
    file: PathBuf,
    /// Where to begin: a time such as 2026-01-02T03:04:05Z, 12m from the start, or -30s from the end (default: the
    /// start)
    #[arg(long, value_name = "TIME", value_parser = recorded_time, allow_hyphen_values = true)]
    from: Option<RecordedTime>,
    /// Where to end (default: the end)
    #[arg(long, value_name = "TIME", value_parser = recorded_time, allow_hyphen_values = true)]
    to: Option<RecordedTime>,
    /// Another setting, as node-monitor-grace-period=20s or default-unreachable-toleration-seconds=60; repeatable
    #[arg(long = "with", value_name = "KEY=VALUE")]
    with: Vec<String>,
    /// Values of a setting to compare, as node-monitor-grace-period=20s,40s,90s; if repeated, every combination is
    /// compared
    #[arg(long, value_name = "KEY=VALUE,VALUE", value_parser = grid_axis)]
    grid: Vec<GridAxis>,
    /// An outage shorter than this, from the node's last heartbeat, is a blip
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = span::span)]
    blip: Span,
    /// An eviction was not necessary if its node was back within this time (podsUnnecessary in JSON)
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = span::span)]
    back_within: Span,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    settings: SettingsArgs,
}

pub fn run(args: &TuneArgs) -> Result<(), CliError> {
    let reader = || -> Result<RecordingReader<BufReader<File>>, CliError> {
        Ok(RecordingReader::open(BufReader::new(open(&args.file)?))?)
    };
    let first = reader()?;
    let (from, until) = recorded::range(args.from, args.to, &first)?;
    let mut settings = first.start().settings();
    args.settings.apply_to_recorded(&mut settings)?;
    let present = Alternative::new(settings);
    let compared = grid::alternatives(&present, &args.with, &args.grid)?;
    let (back_within, blip) = (args.back_within, args.blip);
    let scope = TuningScope { from, until, end: first.until(), back_within, blip };
    let trials = SettingsTrial::run_all(reader, &compared, scope)?;
    let report = TuneReport::new(&first.start().context, &present, &trials, scope);
    args.output.print(&report, table::render)
}
