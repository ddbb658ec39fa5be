//! `kordon status`: what is known, once.

mod report;
mod table;

use clap::{Args, ValueEnum};
use tokio_util::sync::CancellationToken;

use super::{
    Failure, connection::ConnectionArgs, dashboard::settings_of, exit, settings::SettingsArgs, show::facts,
    span,
};
use crate::{
    app::{self, App, Duty, HORIZON, Mode},
    clock::Clock,
    executor::Executor,
    forecast::Forecast,
    k8s::{
        connect,
        feed::{FeedKind, FeedState},
    },
    run::Session,
    time::Span,
};
use report::Report;

#[derive(Args, Debug)]
pub struct StatusArgs {
    /// How to print it
    #[arg(long, short, value_enum, default_value_t = Output::Table)]
    output: Output,
    /// Leave the pods out, and with them the evictions
    #[arg(long)]
    no_pods: bool,
    /// How long to wait until everything has been listed
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = span::span)]
    timeout: Span,
    #[command(flatten)]
    settings: SettingsArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Output {
    Table,
    Json,
    Yaml,
}

/// What has to be in before an answer is given.
const WANTED: [FeedKind; 3] = [FeedKind::Nodes, FeedKind::Leases, FeedKind::Pods];

pub async fn run(args: StatusArgs, connection: ConnectionArgs) -> Result<(), Failure> {
    let clock = Clock::system();
    let connection = connect::connect(&connection.options()).await?;
    let (settings, _) = settings_of(&connection, &args.settings).await;
    let (mode, duty, themes) = (Mode::ReadOnly, Duty::Shadow, Vec::new());
    let options = app::Options { facts: facts(&connection), settings, mode, duty, themes };
    let cancel = CancellationToken::new();
    let _ends_with_us = cancel.clone().drop_guard();
    let mut session = Session::begin(&connection, options, args.no_pods, Executor::Recorder, clock, cancel);
    tokio::select! {
        _ = session.unattended(|app| is_whole(app) || nodes_forbidden(app).is_some()) => {}
        () = clock.sleep(args.timeout) => {}
    }
    let app = &mut session.app;
    if let Some(error) = nodes_forbidden(app) {
        return Err(Failure::NodesForbidden(error.to_owned()));
    }
    if app.engine.is_some() {
        foresee(app, clock);
        print(&Report::new(app, clock.now()), args.output)?;
    }
    if is_whole(app) { Ok(()) } else { Err(Failure::TooSlow { waited: args.timeout, missing: missing(app) }) }
}

/// Whether the engine has begun and everything that may be listed has been.
fn is_whole(app: &App) -> bool {
    app.engine.is_some() && WANTED.iter().all(|kind| has_ended(app, *kind))
}

fn has_ended(app: &App, kind: FeedKind) -> bool {
    match app.live.feeds.state(kind) {
        Some(FeedState::Live | FeedState::Off | FeedState::Forbidden { .. }) => true,
        Some(FeedState::Connecting | FeedState::Listing { .. } | FeedState::Broken { .. }) | None => false,
    }
}

/// In the server's words, why the nodes may not be listed, without which there is nothing to tell.
fn nodes_forbidden(app: &App) -> Option<&str> {
    match app.live.feeds.state(FeedKind::Nodes) {
        Some(FeedState::Forbidden { error }) => Some(error),
        Some(_) | None => None,
    }
}

fn missing(app: &App) -> String {
    let missing: Vec<String> =
        WANTED.iter().filter(|kind| !has_ended(app, **kind)).map(ToString::to_string).collect();
    if missing.is_empty() { "the controller's lease".into() } else { missing.join(", ") }
}

/// Makes the forecast that the next deadlines come from.
fn foresee(app: &mut App, clock: Clock) {
    let now = clock.now();
    if let Some(engine) = &app.engine {
        app.live.forecast =
            Some(Forecast::run(engine, &app.live.cluster, app.live.feeds.ahead(), now, HORIZON));
    }
    app.refresh(now);
}

fn print(report: &Report, output: Output) -> Result<(), Failure> {
    let text = match output {
        Output::Table => table::render(report),
        Output::Json => {
            format!("{}\n", serde_json::to_string_pretty(report).expect("a report is plain data"))
        }
        Output::Yaml => serde_saphyr::to_string(report).expect("a report is plain data"),
    };
    exit::print(text.as_bytes())
}
