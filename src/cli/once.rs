//! Reads a cluster once: shared by all commands that print a report and end.

use std::pin::pin;

use clap::{Args, ValueEnum};
use serde::Serialize;
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{
    CliError, connection::ConnectionArgs, dashboard::settings_of, exit, settings::SettingsArgs,
    show::connection_info, span,
};
use crate::{
    clock::Clock,
    executor::effects::EffectExecutor,
    k8s::{
        connect::{self, Connection},
        feed::{FeedEvent, FeedKind, FeedState},
    },
    model::{ControllerRole, Model, ModelOptions},
    run::Session,
    time::{Span, Timestamp},
};

#[derive(Args, Debug)]
pub struct OnceArgs {
    /// Output format
    #[arg(long, short, value_enum, default_value_t = Output::Table)]
    pub output: Output,
    /// Timeout for connecting and reading the cluster's objects
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = span::span)]
    timeout: Span,
    #[command(flatten)]
    settings: SettingsArgs,
}

/// The format of a report.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Output {
    Table,
    Json,
    Yaml,
}

impl Output {
    /// Prints a report: its fields, or its table.
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

/// The kinds that most reports need.
const WANTED: [FeedKind; 3] = [FeedKind::Nodes, FeedKind::Leases, FeedKind::Pods];

/// What to read, and for how long.
#[derive(Debug)]
pub struct OneShotQuery<'a> {
    /// The kinds that the report needs.
    pub wanted: &'a [FeedKind],
    pub no_pods: bool,
    pub timeout: Span,
    pub settings: &'a SettingsArgs,
    /// The flag that allows more time.
    pub flag: &'static str,
}

impl OnceArgs {
    fn query(&self, no_pods: bool) -> OneShotQuery<'_> {
        let Self { timeout, ref settings, .. } = *self;
        OneShotQuery { wanted: &WANTED, no_pods, timeout, settings, flag: "--timeout" }
    }
}

/// The cluster's objects, or as many of them as arrived in time.
pub struct OneShot {
    pub model: Model,
    pub at: Timestamp,
    /// The requested namespace, else the context's.
    pub namespace: String,
    /// The error to end with after the report, if not everything arrived in time.
    late: Option<CliError>,
    pub connection: Connection,
    /// Further events of the watches, which end when this is dropped.
    pub feeds: mpsc::Receiver<FeedEvent>,
    pub clock: Clock,
    _ends_with_us: DropGuard,
}

impl OneShot {
    /// Connects, and waits until the engine has started and everything that may be listed has been.
    pub async fn ask(args: &OnceArgs, connection: ConnectionArgs, no_pods: bool) -> Result<Self, CliError> {
        Self::answer(&args.query(no_pods), connection).await
    }

    /// The same, and waits for more kinds.
    pub async fn ask_for(
        args: &OnceArgs,
        wanted: &[FeedKind],
        connection: ConnectionArgs,
    ) -> Result<Self, CliError> {
        Self::answer(&OneShotQuery { wanted, ..args.query(false) }, connection).await
    }

    /// The same for any query.
    pub async fn answer(query: &OneShotQuery<'_>, connection: ConnectionArgs) -> Result<Self, CliError> {
        let OneShotQuery { wanted, no_pods, timeout, settings, flag } = *query;
        let clock = Clock::system();
        let late = |missing: &str| CliError::TooSlow { waited: timeout, missing: missing.into(), flag };
        // One timeout for everything: a credential plugin, the first response, the lists.
        let mut deadline = pin!(clock.sleep(timeout));
        let options = connection.options();
        let connection = tokio::select! {
            connection = connect::connect(&options) => connection?,
            () = &mut deadline => return Err(late("a connection, with credentials and the server's version")),
        };
        let (settings, _) = tokio::select! {
            settings = settings_of(&connection, settings) => settings,
            () = &mut deadline => return Err(late("the controller's settings")),
        };
        let options =
            ModelOptions { connection: connection_info(&connection), settings, role: ControllerRole::Shadow };
        let cancel = CancellationToken::new();
        let _ends_with_us = cancel.clone().drop_guard();
        let mut session =
            Session::start(&connection, options, no_pods, EffectExecutor::Recorder, clock, cancel);
        tokio::select! {
            _ = session.run_until(|model| is_complete(model, wanted) || nodes_forbidden(model).is_some()) => {}
            () = deadline => {}
        }
        let Session { model, links, .. } = session;
        if let Some(error) = nodes_forbidden(&model) {
            return Err(CliError::NodesForbidden(error.to_owned()));
        }
        let late = (!is_complete(&model, wanted)).then(|| late(&missing(&model, wanted)));
        let at = clock.now();
        if model.engine.is_none()
            && let Some(late) = late
        {
            return Err(late);
        }
        let namespace = connection.namespace.clone();
        Ok(Self { model, at, namespace, late, connection, feeds: links.feeds, clock, _ends_with_us })
    }

    /// Fails if not everything arrived in time.
    pub fn in_time(&mut self) -> Result<(), CliError> {
        self.late.take().map_or(Ok(()), Err)
    }

    /// Makes the forecast of the next ten minutes and brings the views up to it.
    pub fn run_forecast(&mut self) {
        self.model.run_forecast(self.at);
    }

    /// Applies what the watches have reported since.
    pub fn catch_up(&mut self) {
        while let Ok(event) = self.feeds.try_recv() {
            self.model.on_watch_event(event, self.clock.now());
        }
    }

    /// Ends the command after its report was printed.
    pub fn done(self) -> Result<(), CliError> {
        self.late.map_or(Ok(()), Err)
    }
}

/// Whether the engine has started and everything that may be listed has been.
fn is_complete(model: &Model, wanted: &[FeedKind]) -> bool {
    model.engine.is_some() && wanted.iter().all(|kind| is_listed(model, *kind))
}

fn is_listed(model: &Model, kind: FeedKind) -> bool {
    match model.feeds.state(kind) {
        Some(FeedState::Live | FeedState::Off | FeedState::Forbidden { .. }) => true,
        Some(FeedState::Connecting | FeedState::Listing { .. } | FeedState::Broken { .. }) | None => false,
    }
}

/// The server's error if nodes may not be listed.
fn nodes_forbidden(model: &Model) -> Option<&str> {
    match model.feeds.state(FeedKind::Nodes) {
        Some(FeedState::Forbidden { error }) => Some(error),
        Some(_) | None => None,
    }
}

fn missing(model: &Model, wanted: &[FeedKind]) -> String {
    let missing: Vec<String> =
        wanted.iter().filter(|kind| !is_listed(model, **kind)).map(ToString::to_string).collect();
    if missing.is_empty() { "the controller's Lease".into() } else { missing.join(", ") }
}
