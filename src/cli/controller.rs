//! `kordon controller`: the node lifecycle controller without a screen, either as a shadow, which predicts and never
//! writes, or with writes to the cluster.

use std::{io::Write as _, net::SocketAddr};

use clap::Args;
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
    sync::mpsc,
};
use tokio_util::sync::CancellationToken;

use super::{
    config::ConfigInForce, connection::ConnectionArgs, exit::CliError, once::Patience, output::OutputArgs,
    settings::SettingsArgs, show::connection_info, source::SourceArgs, span,
};
use crate::{
    journal::Journal,
    k8s::{
        cluster_id::ClusterId,
        connect::Connection,
        kordon_lease::{self, KORDON_LEASE},
        leader_client::RequestRate,
        leadership::{ElectionOptions, MANAGER_LEASE},
    },
    run::{
        controller::{
            endpoints,
            line::{ControllerLine, LineReader, LineWriter},
            process::{ControllerProcess, Enforcement},
        },
        notify::Notifier,
        preferences_file::PreferencesReader,
    },
};
use kordon_clock::Clock;
use kordon_core::{
    cluster::lease::FULL_DISRUPTION,
    engine::{Controllers, Settings},
    visible,
};
use kordon_time::Span;

#[derive(Args, Debug)]
pub struct ControllerArgs {
    /// Write to the cluster, while the controller holds its Lease and no kube-controller-manager runs the same
    /// controllers
    #[arg(long)]
    enforce: bool,
    /// Address of /metrics, /healthz, /livez and /readyz; anyone who reaches it may read them; port 0 picks a free port
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9257")]
    listen: SocketAddr,
    /// How long to wait until connected
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = span::span)]
    timeout: Span,
    #[command(flatten)]
    enforcement: EnforcementArgs,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    settings: SettingsArgs,
}

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "With --enforce")]
struct EnforcementArgs {
    /// Replace kube-controller-manager: hold its Lease, so that none of its controllers runs
    #[arg(long, requires = "enforce", conflicts_with_all = ["leader_elect_resource_name", "leader_elect_resource_namespace"])]
    take_over: bool,
    /// Value of --controllers of kube-controller-manager, if kordon may not read its pod: names, -names to exclude, *
    /// for all others
    #[arg(long, value_name = "LIST", allow_hyphen_values = true, requires = "enforce")]
    manager_controllers: Option<String>,
    /// Maximum number of pods evicted per zone and minute; further pods wait (default: no maximum)
    #[arg(long, value_name = "PODS", requires = "enforce", value_parser = clap::value_parser!(u32).range(1..))]
    max_evictions_per_minute: Option<u32>,
    /// Namespace of the Lease
    #[arg(long, value_name = "NAME", default_value = KORDON_LEASE.0, requires = "enforce")]
    leader_elect_resource_namespace: String,
    /// Name of the Lease
    #[arg(long, value_name = "NAME", default_value = KORDON_LEASE.1, requires = "enforce")]
    leader_elect_resource_name: String,
    /// How long others wait before they take a Lease that is not renewed
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = span::span, requires = "enforce")]
    leader_elect_lease_duration: Span,
    /// How long a leader that cannot renew its Lease continues to write
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = span::span, requires = "enforce")]
    leader_elect_renew_deadline: Span,
    /// Time between two attempts to get the Lease
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = span::span, requires = "enforce")]
    leader_elect_retry_period: Span,
    /// Maximum number of requests per second of a controller that writes
    #[arg(long, value_name = "RATE", default_value_t = 20.0, value_parser = qps, requires = "enforce")]
    kube_api_qps: f64,
    /// Maximum number of requests that the controller sends at once after a pause
    #[arg(long, value_name = "REQUESTS", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..), requires = "enforce")]
    kube_api_burst: u32,
}

impl EnforcementArgs {
    fn election(&self) -> Result<ElectionOptions, CliError> {
        let (namespace, name) = if self.take_over {
            (MANAGER_LEASE.0.to_owned(), MANAGER_LEASE.1.to_owned())
        } else {
            (self.leader_elect_resource_namespace.clone(), self.leader_elect_resource_name.clone())
        };
        let election = ElectionOptions {
            namespace,
            name,
            lease_duration: self.leader_elect_lease_duration,
            renew_deadline: self.leader_elect_renew_deadline,
            retry_period: self.leader_elect_retry_period,
            ..ElectionOptions::for_manager()
        };
        if election.is_of_manager() && !self.take_over {
            let text = "the Lease kube-system/kube-controller-manager is that of kube-controller-manager: to replace it, \
                        say --take-over";
            return Err(CliError::Usage(text.into()));
        }
        election.check().map_err(|error| CliError::Usage(error.to_string()))?;
        Ok(election)
    }

    async fn enforcement(
        &self,
        connection: &Connection,
        settings: &Settings,
    ) -> Result<Enforcement, CliError> {
        let cluster = ClusterId::from_connection(connection)
            .await
            .map_err(crate::journal::JournalError::UnknownCluster)?;
        let mut election = self.election()?;
        // Other instances of kordon predict by this what the controller does.
        let policy = settings.full_disruption.value.to_string();
        election.annotations.insert(FULL_DISRUPTION.into(), policy);
        Ok(Enforcement {
            election,
            identity: identity(),
            rate: RequestRate { qps: self.kube_api_qps, burst: self.kube_api_burst },
            journal: Journal::for_controller(&cluster)?,
            evictions_per_minute: self.max_evictions_per_minute.map(|pods| pods as usize),
            manager_controllers: self.manager_controllers.as_deref().map(Controllers::parse),
        })
    }
}

pub async fn run(args: ControllerArgs, connection: ConnectionArgs) -> Result<(), CliError> {
    // Invalid flags are reported before anything connects.
    args.enforcement.election()?;
    args.output.refuse_export("a controller prints a line for each decision")?;
    connection.refuse_namespace("a controller acts on nodes, and on pods of all namespaces")?;
    let failed = |error| CliError::Io { doing: format!("listening on {}", args.listen), error };
    let listener = TcpListener::bind(args.listen).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let stop = stop_signal()?;

    let patience = Patience::start(args.timeout, "--timeout");
    let config = connection.config.clone();
    let connection = patience.connect(connection, &SourceArgs::default()).await?;
    if args.enforce {
        ConnectionArgs::require_writable(&config, &connection.context)?;
    }
    let settings = patience.settings(&connection, &config, &args.settings).await?;
    let enforcement = match args.enforce {
        true => Some(args.enforcement.enforcement(&connection, &settings).await?),
        false => None,
    };
    let clock = Clock::system();
    let (lines, reader) = LineWriter::new();
    lines.write(started(&args, &connection).at(clock.now()));
    lines.write(ControllerLine::listening(format!("http://{address}/metrics")).at(clock.now()));
    let ended = CancellationToken::new();
    let _serves_as_long = ended.clone().drop_guard();
    let (asking, asked) = mpsc::channel(endpoints::WAITING);
    tokio::spawn(endpoints::serve(listener, asking, ended));
    let printing = tokio::spawn(print(reader, args.output));
    let info = connection_info(&connection);
    let notifier = Notifier::new(config.notify(&info.context));
    let reader = ConfigInForce::new(config).followed(&info.context).map(PreferencesReader::start);
    let process =
        ControllerProcess { connection, info, settings, clock, enforcement, lines, asked, notifier, reader };
    let done = process.run(stop).await;
    // All tasks that write lines have ended, so the printing task prints the last lines and ends.
    let _ = printing.await;
    Ok(done?)
}

fn started(args: &ControllerArgs, connection: &Connection) -> ControllerLine {
    let mode = if args.enforce { "enforce" } else { "shadow: nothing is written" };
    let (context, server, release) = (&connection.context, &connection.server, &connection.release);
    ControllerLine::started(format!(
        "kordon {} on {context} ({server}, {release}): {mode}",
        env!("CARGO_PKG_VERSION")
    ))
}

/// Prints the controller's lines until all tasks that write lines have ended. Each line is flushed for log collectors.
async fn print(mut reader: LineReader, output: OutputArgs) {
    while let Some(line) = reader.next().await {
        let text = if output.is_for_people() { for_people(&line) } else { output.one_line(&line) };
        // A closed standard output must not stop the controller.
        let mut out = std::io::stdout().lock();
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }
}

fn for_people(line: &ControllerLine) -> String {
    let ControllerLine { at, kind, level, text, why, outcome, object, .. } = line;
    let mark = match *level {
        "info" => "",
        level => level,
    };
    let object = if *kind == "notice" { object.as_str() } else { "" };
    let because = if why.is_empty() { String::new() } else { format!(" ({why})") };
    let words = [at.to_time(), (*kind).into(), (*outcome).into(), mark.into(), object.into(), text.clone()];
    let words: Vec<String> = words.into_iter().filter(|word| !word.is_empty()).collect();
    format!("{}\n", visible::one_line(&format!("{}{because}", words.join(" ")), LONGEST))
}

/// Maximum length of a printed line in characters.
const LONGEST: usize = 2000;

/// A unique identity for leader election: the host's name and a random part, as in kube-controller-manager.
fn identity() -> String {
    kordon_lease::identity(&rustix::system::uname().nodename().to_string_lossy())
}

/// Installs handlers for SIGINT and SIGTERM. The returned future completes at the first of these signals.
fn stop_signal() -> Result<impl Future<Output = ()>, CliError> {
    let failed = |error| CliError::Io { doing: "waiting for signals".into(), error };
    let mut interrupted = signal(SignalKind::interrupt()).map_err(failed)?;
    let mut terminated = signal(SignalKind::terminate()).map_err(failed)?;
    Ok(async move {
        tokio::select! {
            _ = interrupted.recv() => {}
            _ = terminated.recv() => {}
        }
    })
}

fn qps(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate: &f64| rate.is_finite() && *rate > 0.0);
    rate.ok_or_else(|| "not a number above zero".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use kordon_time::Timestamp;

    #[test]
    fn the_page_documents_every_field() {
        crate::cli::documented::check::<ControllerLine>("controller-log");
    }

    #[test]
    fn a_line_for_people_has_one_line_and_no_control_characters() {
        let line = ControllerLine::lost("a/b", "no\n\x1b[2Jresponse").at(Timestamp::from_secs(1_800_000_000));
        let text = for_people(&line);
        assert!(text.starts_with("2027-01-15T08:00:00Z lost warning does not hold the Lease a/b"), "{text}");
        assert!(text.trim_end().lines().count() == 1 && !text.contains('\x1b'), "{text}");
    }
}
