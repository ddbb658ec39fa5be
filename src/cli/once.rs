//! What is known of a cluster, asked for once: what all commands share that answer and end.

use std::pin::pin;

use clap::{Args, ValueEnum};
use serde::Serialize;
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{
    CliError, connection::ConnectionArgs, dashboard::settings_of, exit, settings::SettingsArgs, show::facts,
    span,
};
use crate::{
    app::{self, App, ControllerRole, HORIZON, Mode},
    clock::Clock,
    executor::effects::EffectExecutor,
    forecast::Forecast,
    k8s::{
        connect::{self, Connection},
        feed::{FeedEvent, FeedKind, FeedState},
    },
    run::Session,
    time::{Span, Timestamp},
};

#[derive(Args, Debug)]
pub struct OnceArgs {
    /// How to print it
    #[arg(long, short, value_enum, default_value_t = Output::Table)]
    pub output: Output,
    /// How long to wait in all, from connecting until everything has been listed
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = span::span)]
    timeout: Span,
    #[command(flatten)]
    settings: SettingsArgs,
}

/// How an answer is printed.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Output {
    Table,
    Json,
    Yaml,
}

impl Output {
    /// Prints a report: as its fields, or as the table that people read.
    pub fn print<T: Serialize>(self, report: &T, table: impl FnOnce(&T) -> String) -> Result<(), CliError> {
        let text = match self {
            Self::Table => table(report),
            Self::Json => {
                format!("{}\n", serde_json::to_string_pretty(report).expect("a report is plain data"))
            }
            Self::Yaml => serde_saphyr::to_string(report).expect("a report is plain data"),
        };
        exit::print(text.as_bytes())
    }
}

/// What has to be in before most answers are given.
const WANTED: [FeedKind; 3] = [FeedKind::Nodes, FeedKind::Leases, FeedKind::Pods];

/// What is to be known, and how long that may take.
#[derive(Debug)]
pub struct OneShotQuery<'a> {
    /// What has to be in before the answer is given.
    pub wanted: &'a [FeedKind],
    pub no_pods: bool,
    pub timeout: Span,
    pub settings: &'a SettingsArgs,
    /// The flag that gives it more time.
    pub flag: &'static str,
}

impl OnceArgs {
    fn question(&self, no_pods: bool) -> OneShotQuery<'_> {
        let Self { timeout, ref settings, .. } = *self;
        OneShotQuery { wanted: &WANTED, no_pods, timeout, settings, flag: "--timeout" }
    }
}

/// What is known once everything has been listed, or as much of it as came in time.
pub struct OneShot {
    pub app: App,
    pub at: Timestamp,
    /// The namespace that was asked for, else the context's.
    pub namespace: String,
    /// What did not come in time, as the failure to end with after the answer.
    late: Option<CliError>,
    pub connection: Connection,
    /// What the watches go on to say; they end with this.
    pub feeds: mpsc::Receiver<FeedEvent>,
    pub clock: Clock,
    _ends_with_us: DropGuard,
}

impl OneShot {
    /// Connects, waits until the engine has begun and everything that may be listed has been.
    pub async fn ask(args: &OnceArgs, connection: ConnectionArgs, no_pods: bool) -> Result<Self, CliError> {
        Self::answer(&args.question(no_pods), connection).await
    }

    /// The same, and waits for more kinds.
    pub async fn ask_for(
        args: &OnceArgs,
        wanted: &[FeedKind],
        connection: ConnectionArgs,
    ) -> Result<Self, CliError> {
        Self::answer(&OneShotQuery { wanted, ..args.question(false) }, connection).await
    }

    /// The same for what else a command has to know.
    pub async fn answer(question: &OneShotQuery<'_>, connection: ConnectionArgs) -> Result<Self, CliError> {
        let OneShotQuery { wanted, no_pods, timeout, settings, flag } = *question;
        let clock = Clock::system();
        let late = |missing: &str| CliError::TooSlow { waited: timeout, missing: missing.into(), flag };
        // One patience for everything: a credential plugin, the first answer, the lists.
        let mut patience = pin!(clock.sleep(timeout));
        let options = connection.options();
        let connection = tokio::select! {
            connection = connect::connect(&options) => connection?,
            () = &mut patience => return Err(late("a connection, with credentials and the server's version")),
        };
        let (settings, _) = tokio::select! {
            settings = settings_of(&connection, settings) => settings,
            () = &mut patience => return Err(late("the controller's settings")),
        };
        let (mode, duty, themes) = (Mode::ReadOnly, ControllerRole::Shadow, Vec::new());
        let options = app::AppOptions { facts: facts(&connection), settings, mode, duty, themes };
        let cancel = CancellationToken::new();
        let _ends_with_us = cancel.clone().drop_guard();
        let mut session =
            Session::begin(&connection, options, no_pods, EffectExecutor::Recorder, clock, cancel);
        tokio::select! {
            _ = session.unattended(|app| is_whole(app, wanted) || nodes_forbidden(app).is_some()) => {}
            () = patience => {}
        }
        let Session { app, feeds, .. } = session;
        if let Some(error) = nodes_forbidden(&app) {
            return Err(CliError::NodesForbidden(error.to_owned()));
        }
        let late = (!is_whole(&app, wanted)).then(|| late(&missing(&app, wanted)));
        let at = clock.now();
        if app.live.engine.is_none()
            && let Some(late) = late
        {
            return Err(late);
        }
        let namespace = connection.namespace.clone();
        Ok(Self { app, at, namespace, late, connection, feeds, clock, _ends_with_us })
    }

    /// Fails where not everything came in time.
    pub fn in_time(&mut self) -> Result<(), CliError> {
        self.late.take().map_or(Ok(()), Err)
    }

    /// Makes the forecast of the next ten minutes, which the next deadlines come from, and brings the views up to it.
    pub fn foresee(&mut self) {
        let Self { app, at, .. } = self;
        if let Some(engine) = &app.live.engine {
            let ahead = app.live.feeds.ahead();
            app.live.forecast = Some(Forecast::run(engine, &app.live.cluster, ahead, *at, HORIZON));
        }
        app.refresh(*at);
    }

    /// Takes in what the watches have said since.
    pub fn catch_up(&mut self) {
        while let Ok(event) = self.feeds.try_recv() {
            let FeedEvent::Changes(changes) = event else { continue };
            for change in changes {
                self.app.live.cluster.apply(change, &mut Vec::new());
            }
        }
    }

    /// Ends the command after its answer was printed.
    pub fn done(self) -> Result<(), CliError> {
        self.late.map_or(Ok(()), Err)
    }
}

/// Whether the engine has begun and everything that may be listed has been.
fn is_whole(app: &App, wanted: &[FeedKind]) -> bool {
    app.live.engine.is_some() && wanted.iter().all(|kind| has_ended(app, *kind))
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

fn missing(app: &App, wanted: &[FeedKind]) -> String {
    let missing: Vec<String> =
        wanted.iter().filter(|kind| !has_ended(app, **kind)).map(ToString::to_string).collect();
    if missing.is_empty() { "the controller's lease".into() } else { missing.join(", ") }
}
