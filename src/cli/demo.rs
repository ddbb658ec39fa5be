//! `kordon demo`: the dashboard of an embedded cluster in this process.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
};

use clap::{
    Args,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
};
use serde_json::{Value, json};
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    config::{Config, ConfigInForce},
    exit::{self, CliError},
    output::OutputArgs,
    record::{ClusterRecording, RecordHow},
    settings::SettingsArgs,
    show::{self, ShowArgs},
    span,
};
use crate::{
    executor::write_context::WriteContext,
    journal::Journal,
    k8s::connect::Connection,
    run::{controller::Controller, demo_scheduler::PlacementScheduler},
};
use kordon_clock::Clock;
use kordon_core::engine::{ServerVersion, Settings};
use kordon_demo::{
    api::{self, Api},
    scenario::{SCENARIOS, Scenario},
    world::{self, Scheduling, World},
};
use kordon_time::Span;

/// Name of the embedded cluster, used where other clusters have the name of a context.
const NAME: &str = "demo";
/// Kubernetes release that the embedded cluster imitates.
const VERSION: ServerVersion = ServerVersion::new(1, 36);

#[derive(Args, Debug)]
pub struct DemoArgs {
    /// Scenario to play
    #[arg(long, value_name = "NAME", default_value = SCENARIOS[0].name, value_parser = scenario())]
    scenario: &'static Scenario,
    /// Random seed: equal seeds give equal clusters and incidents
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    seed: u64,
    /// Speed of time: 2 is twice as fast as real time
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = speed, allow_negative_numbers = true)]
    speed: f64,
    /// Number of nodes (default: the scenario's)
    #[arg(long, value_name = "COUNT")]
    nodes: Option<usize>,
    /// Number of pods at the start (default: the scenario's)
    #[arg(long, value_name = "COUNT")]
    pods: Option<usize>,
    /// Background pod changes per second (default: the scenario's)
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pod_changes: Option<f64>,
    /// Serve the cluster's API on this loopback address, for kubectl or another kordon; port 0 picks a free port
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = loopback)]
    listen: Option<SocketAddr>,
    /// Serve the API until Ctrl-C, without the dashboard
    #[arg(long, requires = "listen", conflicts_with_all = ["snapshot", "theme", "no_pods", "read_only"])]
    serve_only: bool,
    /// Record the cluster into this file, which must not exist, without the dashboard
    #[arg(long, value_name = "FILE", conflicts_with_all = ["serve_only", "snapshot", "theme", "no_pods", "read_only"])]
    record: Option<PathBuf>,
    /// Stop the recording after this time of the demo (default: at Ctrl-C or SIGTERM)
    #[arg(long, value_name = "DURATION", value_parser = span::span, requires = "record")]
    record_for: Option<Span>,
    /// Run no node lifecycle controller: failed nodes are neither tainted nor drained of pods
    #[arg(long)]
    no_controller: bool,
    #[command(flatten)]
    show: ShowArgs,
    #[command(flatten)]
    settings: SettingsArgs,
}

impl DemoArgs {
    /// Arguments for the default scenario, with the display options that were given for the dashboard.
    pub fn instead_of_dashboard(show: ShowArgs, settings: SettingsArgs) -> Self {
        Self {
            scenario: &SCENARIOS[0],
            seed: 0,
            speed: 1.0,
            nodes: None,
            pods: None,
            pod_changes: None,
            listen: None,
            serve_only: false,
            record: None,
            record_for: None,
            no_controller: false,
            show,
            settings,
        }
    }

    /// Records that the theme was given on the command line.
    pub const fn set_theme_given(&mut self) {
        self.show.set_theme_given();
    }
}

pub async fn run(args: DemoArgs, config: Config) -> Result<(), CliError> {
    let cluster = EmbeddedCluster::start(&args).await?;
    if let Some(address) = cluster.address {
        exit::print(format!("kubectl --server http://{address} get nodes\n").as_bytes())?;
    }
    let done = match &args.record {
        Some(file) => cluster.record(file, &args).await,
        None if args.serve_only => stop_signal().await,
        None => cluster.show(args, &ConfigInForce::new(config)).await,
    };
    cluster.stop().await;
    done
}

/// A cluster in this process: API, kubelets, controllers and scheduler.
struct EmbeddedCluster {
    api: Api,
    clock: Clock,
    /// Address at which the API is served; `None` if the API is not served.
    address: Option<SocketAddr>,
    world: World,
    tasks: TaskTracker,
    cancel: CancellationToken,
    /// Folder of the cluster's journal. It is deleted with the cluster.
    folder: PathBuf,
}

impl EmbeddedCluster {
    async fn start(args: &DemoArgs) -> Result<Self, CliError> {
        let clock = Clock::new(Clock::system().now(), args.speed);
        let api = Api::new(clock, api::ApiOptions { seed: args.seed, ..api::ApiOptions::default() });
        let cancel = CancellationToken::new();
        let tasks = TaskTracker::new();
        let mut address = None;
        if let Some(requested) = args.listen {
            let failed = |error| CliError::Io { doing: format!("listening on {requested}"), error };
            let listener = TcpListener::bind(requested).await.map_err(failed)?;
            address = Some(listener.local_addr().map_err(failed)?);
            let (api, stop) = (api.clone(), cancel.clone());
            tasks.spawn(async move { api.serve(listener, stop).await });
        }
        let options = world::WorldOptions {
            scenario: args.scenario,
            nodes: args.nodes,
            pods: args.pods,
            seed: args.seed,
            pod_changes_per_second: args.pod_changes,
            scheduling: Scheduling::External,
        };
        let world = World::start(&api, clock, &options, cancel.clone());
        if args.no_controller {
            api.load("leases", lease_of_a_stopped_controller(clock));
        } else {
            let client = api.client_as("system:kordon-controller");
            let connection = Connection::embedded(client, NAME);
            let term = |identity: &str| Controller {
                connection: connection.clone(),
                settings: settings(args),
                clock,
                identity: identity.into(),
            };
            let (first, away) = (term("kordon-demo"), args.scenario.controller_away);
            match away {
                None => tasks.spawn(first.run(cancel.clone())),
                Some(away) => {
                    tasks.spawn(first.run_until_replaced(term("kordon-demo-2"), away, cancel.clone()))
                }
            };
        }
        let scheduler = PlacementScheduler {
            connection: Connection::embedded(api.client_as("system:kordon-scheduler"), NAME),
            clock,
        };
        tasks.spawn(scheduler.run(cancel.clone()));
        tasks.close();
        let suffix: String = std::iter::repeat_with(fastrand::alphanumeric).take(12).collect();
        let folder = std::env::temp_dir().join(format!("kordon-demo-{suffix}"));
        Ok(Self { api, clock, address, world, tasks, cancel, folder })
    }

    /// Shows the dashboard, whose engine predicts what the cluster's controller does, and writes nothing itself.
    async fn show(&self, args: DemoArgs, config: &ConfigInForce) -> Result<(), CliError> {
        let connection = Connection::embedded(self.api.client(), NAME);
        let settings = settings(&args);
        let journal = Journal::within(&self.folder, NAME);
        let context = WriteContext::with(&connection, journal, self.clock);
        let mut show = args.show;
        show.ask_background();
        let show = show.with_preferences(config, NAME);
        let watches = show.watch(&connection, self.clock);
        let (clock, notes) = (self.clock, Vec::new());
        let dashboard =
            show::dashboard(show.clone(), &connection, watches, settings, notes, clock, Ok(context))?;
        show::show(show, dashboard).await
    }

    async fn record(&self, file: &Path, args: &DemoArgs) -> Result<(), CliError> {
        let connection = &Connection::embedded(self.api.client(), NAME);
        let settings = &settings(args);
        let recording = ClusterRecording { connection, settings, no_pods: false, clock: self.clock };
        recording.write(file, &RecordHow::lasting(args.record_for), OutputArgs::default()).await
    }

    async fn stop(self) {
        self.cancel.cancel();
        self.world.stopped().await;
        self.tasks.wait().await;
        // The journal's folder exists only if an operation was started.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// The Lease of a controller manager that stopped an hour ago. It tells clients at once that no controller is active.
fn lease_of_a_stopped_controller(clock: Clock) -> Value {
    let renewed = (clock.now() - Span::from_secs(3600)).to_micro_time();
    json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"namespace": "kube-system", "name": "kube-controller-manager"},
        "spec": {"holderIdentity": "kordon-demo", "leaseDurationSeconds": 15,
            "acquireTime": renewed, "renewTime": renewed}})
}

/// Settings of the embedded cluster's controller.
fn settings(args: &DemoArgs) -> Settings {
    let mut settings = Settings::defaults(VERSION);
    args.settings.apply(&mut settings);
    settings
}

/// Waits for SIGINT or SIGTERM.
async fn stop_signal() -> Result<(), CliError> {
    let failed = |error| CliError::Io { doing: "waiting for Ctrl-C".into(), error };
    let mut terminated = signal(SignalKind::terminate()).map_err(failed)?;
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => interrupted.map_err(failed),
        _ = terminated.recv() => Ok(()),
    }
}

fn scenario() -> impl TypedValueParser<Value = &'static Scenario> {
    let names = SCENARIOS.iter().map(|scenario| PossibleValue::new(scenario.name).help(scenario.doc));
    PossibleValuesParser::new(names)
        .map(|name| Scenario::named(&name).expect("the parser accepts only names of scenarios"))
}

fn speed(text: &str) -> Result<f64, String> {
    let speed = text.parse().ok().filter(|speed: &f64| (0.01..=1000.0).contains(speed));
    speed.ok_or_else(|| "not a number from 0.01 to 1000".into())
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate: &f64| rate.is_finite() && *rate >= 0.0);
    rate.ok_or_else(|| "not a number of zero or more".into())
}

/// Parses a loopback address. The embedded cluster authenticates no clients, so it must not be reachable from the
/// network.
fn loopback(text: &str) -> Result<SocketAddr, String> {
    let address: SocketAddr = text.parse().map_err(|_| "not an address and port such as 127.0.0.1:8001")?;
    if address.ip().is_loopback() {
        Ok(address)
    } else {
        Err("not a loopback address such as 127.0.0.1:8001".into())
    }
}
