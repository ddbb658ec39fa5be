//! What is known of a cluster, asked for once: what all commands share that answer and end.

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
    cluster::WorkloadKind,
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

/// The kinds of objects that plans, and whoever places pods, need.
pub const WANTED_FOR_PLANS: [FeedKind; 16] = [
    FeedKind::Nodes,
    FeedKind::Leases,
    FeedKind::Pods,
    FeedKind::Budgets,
    FeedKind::Workloads(WorkloadKind::ReplicaSet),
    FeedKind::Workloads(WorkloadKind::Deployment),
    FeedKind::Workloads(WorkloadKind::StatefulSet),
    FeedKind::Workloads(WorkloadKind::ReplicationController),
    FeedKind::Workloads(WorkloadKind::DaemonSet),
    FeedKind::Workloads(WorkloadKind::Job),
    FeedKind::Namespaces,
    FeedKind::Services,
    FeedKind::Claims,
    FeedKind::Volumes,
    FeedKind::StorageClasses,
    FeedKind::CsiNodes,
];

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
    pub model: Model,
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
        let options =
            ModelOptions { connection: connection_info(&connection), settings, role: ControllerRole::Shadow };
        let cancel = CancellationToken::new();
        let _ends_with_us = cancel.clone().drop_guard();
        let mut session =
            Session::start(&connection, options, no_pods, EffectExecutor::Recorder, clock, cancel);
        tokio::select! {
            _ = session.run_until(|model| is_whole(model, wanted) || nodes_forbidden(model).is_some()) => {}
            () = patience => {}
        }
        let Session { model, links, .. } = session;
        if let Some(error) = nodes_forbidden(&model) {
            return Err(CliError::NodesForbidden(error.to_owned()));
        }
        let late = (!is_whole(&model, wanted)).then(|| late(&missing(&model, wanted)));
        let at = clock.now();
        if model.engine.is_none()
            && let Some(late) = late
        {
            return Err(late);
        }
        let namespace = connection.namespace.clone();
        Ok(Self { model, at, namespace, late, connection, feeds: links.feeds, clock, _ends_with_us })
    }

    /// Fails where not everything came in time.
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

    /// Ends the command after its answer was printed.
    pub fn done(self) -> Result<(), CliError> {
        self.late.map_or(Ok(()), Err)
    }
}

/// Whether the engine has begun and everything that may be listed has been.
fn is_whole(model: &Model, wanted: &[FeedKind]) -> bool {
    model.engine.is_some() && wanted.iter().all(|kind| has_ended(model, *kind))
}

fn has_ended(model: &Model, kind: FeedKind) -> bool {
    match model.feeds.state(kind) {
        Some(FeedState::Live | FeedState::Off | FeedState::Forbidden { .. }) => true,
        Some(FeedState::Connecting | FeedState::Listing { .. } | FeedState::Broken { .. }) | None => false,
    }
}

/// In the server's words, why the nodes may not be listed, without which there is nothing to tell.
fn nodes_forbidden(model: &Model) -> Option<&str> {
    match model.feeds.state(FeedKind::Nodes) {
        Some(FeedState::Forbidden { error }) => Some(error),
        Some(_) | None => None,
    }
}

fn missing(model: &Model, wanted: &[FeedKind]) -> String {
    let missing: Vec<String> =
        wanted.iter().filter(|kind| !has_ended(model, **kind)).map(ToString::to_string).collect();
    if missing.is_empty() { "the controller's lease".into() } else { missing.join(", ") }
}
