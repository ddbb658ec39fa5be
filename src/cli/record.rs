//! `kordon record`: writes what a cluster's watches report to a file.

use std::{
    fs::OpenOptions,
    io::Write as _,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use clap::Args;
use serde::Serialize;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::{
    connection::ConnectionArgs,
    exit::CliError,
    once::Patience,
    output::OutputArgs,
    page::{Emphasis, Page},
    settings::SettingsArgs,
    show::connection_info,
    source::SourceArgs,
    span,
};
use crate::{
    executor::effects::EffectExecutor,
    k8s::connect::Connection,
    model::ModelOptions,
    recording::{RecordingTotals, RecordingWriter, Redactor},
    run::{
        Session,
        record::{RecordingResult, nodes_forbidden, record, recording_start},
    },
    ui::text,
};
use kordon_clock::Clock;
use kordon_core::{engine::Settings, visible};
use kordon_time::{Span, Timestamp};

#[derive(Args, Debug)]
pub struct RecordArgs {
    /// File to write, which must not exist (default: kordon-CONTEXT-TIME.kordon in this folder)
    file: Option<PathBuf>,
    #[command(flatten)]
    how: RecordHow,
    /// Do not read pods: far less load on the API server, but no evictions
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false",
        hide_default_value = true, hide_possible_values = true, action = clap::ArgAction::Set)]
    no_pods: bool,
    /// How long to wait until connected
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = span::span)]
    timeout: Span,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    settings: SettingsArgs,
}

/// What a recording contains, and how long it lasts.
#[derive(Args, Clone, Debug)]
pub struct RecordHow {
    /// Stop after this time (default: at Ctrl-C or SIGTERM)
    #[arg(long = "for", value_name = "DURATION", value_parser = span::span)]
    duration: Option<Span>,
    /// Replace names, labels, addresses and messages by hashes that only this recording has
    #[arg(long)]
    redact: bool,
    /// How often all objects are written again; the file can be read from each of these points
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = keyframes)]
    keyframe_every: Span,
}

impl RecordHow {
    /// Options of a recording without `--redact`, which keeps names. Without a duration it lasts until Ctrl-C.
    pub fn lasting(duration: Option<Span>) -> Self {
        Self { duration, redact: false, keyframe_every: Span::from_secs(120) }
    }
}

/// Summary of a recording (`docs/reference/recording.md`).
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
struct RecordReport {
    /// `kordon.record/v1`: fields are added, never removed or renamed.
    schema: &'static str,
    /// The file.
    file: String,
    /// The kubeconfig context.
    context: String,
    /// When the recording started.
    from: Timestamp,
    /// When the recording ended.
    until: Timestamp,
    /// Whether names, labels, addresses and messages were hashed (`--redact`).
    redacted: bool,
    /// Number of nodes at the end of the recording.
    nodes: usize,
    /// Number of pods at the end of the recording.
    pods: usize,
    /// Number of changes of objects, including the objects of lists.
    changes: u64,
    /// Number of times that all objects were written to the file again.
    keyframes: u64,
    /// Errors that the watches reported.
    watch_errors: u64,
    /// The size of the file in bytes.
    bytes: u64,
    /// Number of bytes that the watches received.
    received_bytes: u64,
}

pub async fn run(args: RecordArgs, connection: ConnectionArgs) -> Result<(), CliError> {
    args.output.refuse_csv("the summary of a recording has none")?;
    connection.refuse_namespace("a recording has all namespaces")?;
    let patience = Patience::start(args.timeout, "--timeout");
    let config = connection.config.clone();
    let connection = patience.connect(connection, &SourceArgs::default()).await?;
    let settings = patience.settings(&connection, &config, &args.settings).await?;
    let clock = Clock::system();
    let file = args.file.unwrap_or_else(|| default_file(&connection.context, clock.now()));
    let recording =
        ClusterRecording { connection: &connection, settings: &settings, no_pods: args.no_pods, clock };
    recording.write(&file, &args.how, args.output).await
}

/// A cluster to record.
pub struct ClusterRecording<'a> {
    pub connection: &'a Connection,
    pub settings: &'a Settings,
    pub no_pods: bool,
    pub clock: Clock,
}

impl ClusterRecording<'_> {
    /// Records into a new file until the recording is stopped, and prints a summary.
    pub async fn write(&self, path: &Path, how: &RecordHow, output: OutputArgs) -> Result<(), CliError> {
        let Self { connection, settings, no_pods, clock } = *self;
        let from = clock.now();
        let start = recording_start(settings, &connection_info(connection), how.keyframe_every, from);
        let context = start.context.clone();
        let redactor = how.redact.then(Redactor::default);
        let shown = visible::text(&path.display().to_string()).into_owned();
        // Only the owner may read the file, since it names everything that runs in the cluster.
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        let file = file.map_err(|error| CliError::Io { doing: format!("creating {shown}"), error })?;
        let writer = RecordingWriter::start(file, start, redactor.as_ref())?;
        let cancel = CancellationToken::new();
        let _ends_with_us = cancel.clone().drop_guard();
        let options = ModelOptions::observer(connection.version);
        let executor = EffectExecutor::Recorder;
        let session = Session::start(connection, options, no_pods, executor, clock, cancel);
        let stop = stop(how.duration.map(|duration| from + duration), clock)?;
        let _ = writeln!(std::io::stderr(), "recording into {shown}; Ctrl-C ends it");
        let recorded = record(session, writer, stop).await?;
        if let Some(error) = nodes_forbidden(&recorded.model) {
            return Err(CliError::NodesForbidden(error.to_owned()));
        }
        let report = RecordReport::new(&recorded, shown, context, from, how.redact);
        output.print(&report, table)
    }
}

impl RecordReport {
    fn new(
        recorded: &RecordingResult,
        file: String,
        context: String,
        from: Timestamp,
        redacted: bool,
    ) -> Self {
        let RecordingResult { totals, until, watch_errors, model } = recorded;
        let RecordingTotals { changes, keyframes, bytes, .. } = *totals;
        Self {
            schema: "kordon.record/v1",
            file,
            context,
            from,
            until: *until,
            redacted,
            nodes: model.cluster.nodes().len(),
            pods: model.cluster.pods().len(),
            changes,
            keyframes,
            watch_errors: *watch_errors,
            bytes,
            received_bytes: model.feeds.traffic().1,
        }
    }
}

fn table(report: &RecordReport, page: &mut Page) {
    let RecordReport { nodes, pods, changes, keyframes, watch_errors, .. } = report;
    let rows = [
        ("recorded", format!("{} of {}", report.until.since(report.from), report.context)),
        ("from", report.from.to_time()),
        ("until", report.until.to_time()),
        ("nodes", nodes.to_string()),
        ("pods", pods.to_string()),
        ("changes", changes.to_string()),
        ("keyframes", keyframes.to_string()),
        ("errors", format!("{watch_errors} of watches")),
        ("received", text::bytes(report.received_bytes)),
        ("file", format!("{} ({})", report.file, text::bytes(report.bytes))),
    ];
    for (name, value) in rows {
        page.line(Emphasis::Plain, &format!("{name:<11}{value}"));
    }
}

/// Installs handlers for SIGINT and SIGTERM. The returned future completes at the first of these signals, or at
/// `until`.
fn stop(until: Option<Timestamp>, clock: Clock) -> Result<impl Future<Output = ()>, CliError> {
    let failed = |error| CliError::Io { doing: "waiting for signals".into(), error };
    let mut interrupted = signal(SignalKind::interrupt()).map_err(failed)?;
    let mut terminated = signal(SignalKind::terminate()).map_err(failed)?;
    Ok(async move {
        tokio::select! {
            _ = interrupted.recv() => {}
            _ = terminated.recv() => {}
            () = clock.sleep_until(until.unwrap_or_default()), if until.is_some() => {}
        }
    })
}

/// Default name of a recording, from the context and the time, in the current folder.
fn default_file(context: &str, now: Timestamp) -> PathBuf {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() || letter == '.' { letter } else { '-' };
    let context: String = context.chars().take(60).map(plain).collect();
    format!("kordon-{context}-{}.kordon", now.utc().format("%Y%m%d-%H%M%S")).into()
}

fn keyframes(text: &str) -> Result<Span, String> {
    let span = span::span(text)?;
    let is_sensible = (Span::from_secs(10)..=Span::from_secs(3600)).contains(&span);
    if is_sensible { Ok(span) } else { Err("must be between 10s and 1h".into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_documents_every_field() {
        crate::cli::documented::check::<RecordReport>("recording");
    }

    #[test]
    fn the_default_file_is_a_plain_name_whatever_the_context() {
        let file = default_file("arn:aws:eks/prod 1", Timestamp::from_secs(1_800_000_000));
        assert_eq!(file, Path::new("kordon-arn-aws-eks-prod-1-20270115-080000.kordon"));
    }
}
