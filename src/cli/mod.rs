//! The command line. Each subcommand has a file; the operations are in `act`. Arguments are converted to options once.

mod act;
mod answer;
mod audit;
mod budgets;
mod completions;
mod confidence;
mod config;
mod configuration;
mod connection;
mod controller;
mod dashboard;
mod demo;
mod demo_offer;
mod departures;
mod doctor;
#[cfg(test)]
mod documented;
mod exit;
mod forecast;
mod gaps;
mod glyphs;
mod journal;
mod loops;
mod keys;
mod kubectl_flags;
mod kubelet_evictions;
mod lists;
mod log;
mod maintenance;
mod man;
mod node_choice;
mod once;
mod output;
mod page;
mod pending;
mod placement;
mod plan;
mod pressure;
mod progress;
mod record;
mod recorded;
mod replay;
mod report;
mod scheduler_flags;
mod settings;
mod show;
mod source;
mod span;
mod status;
mod table;
mod theme;
mod themes;
mod timing;
mod tour_state;
mod tune;
mod why;

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use clap::{
    ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand,
    error::{ContextKind, ContextValue, ErrorKind},
    parser::ValueSource,
};
use futures::FutureExt;

pub use answer::CommandAnswer;
pub use config::Config;
use config::ConfigError;
use exit::ErrorFormat;
pub use exit::{CliError, Exit};
pub use forecast::forecast_answer;
pub use lists::evictions::evictions_answer;
pub use status::{StatusReport, status_answer};

use connection::ConnectionArgs;
use kordon_core::plan::MetadataField;
use plan::PlanCommand;

/// Dashboard and command line for the lifecycle of Kubernetes nodes.
///
/// kordon shows which nodes fail and why, predicts which pods are evicted and when, and drains nodes safely.
/// Without a subcommand it opens the dashboard on the current kubectl context.
/// It writes to a cluster only with --enforce, or after `:enforce` in the dashboard.
#[derive(Debug, Parser)]
#[command(name = "kordon", version, max_term_width = 110, after_help = AFTER_HELP)]
pub struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    dashboard: dashboard::DashboardArgs,
    #[command(flatten)]
    connection: ConnectionArgs,
    /// Append a log to this file
    #[arg(long, value_name = "FILE", env = "KORDON_LOG", global = true)]
    log: Option<PathBuf>,
}

const AFTER_HELP: &str = "\
Try it without a cluster: `kordon demo`.

Flags get their defaults from ~/.config/kordon/config.toml ($XDG_CONFIG_HOME) and from variables as KORDON_THEME;
`kordon config` lists them all.

Exit codes:
   0  done
   1  failed
   2  wrong usage
   3  cannot connect, or credentials rejected
   4  timed out waiting for the cluster's objects, or an answer rests on them
   5  plan refused: it needs more flags
   6  plan blocked: a pod can never leave
   7  plan stalls: it may never complete
   8  a guard rail forbids the operation, or its context is read-only
   9  permissions are missing
  10  somebody else is draining a node
  11  the operation timed out
  12  the operation was only partly done
  13  the operation was interrupted or not confirmed
  14  `kordon status --exit-code`: notice; 15 warning, 16 critical, 17 disconnected
      `kordon audit`: the worst finding is a note; 15 a warning, 16 an error
  18  the plan was printed; it completes, but loses pods for good";

#[derive(Debug, Subcommand)]
enum Command {
    /// Open the dashboard on an embedded demo cluster; no Kubernetes needed
    Demo(demo::DemoArgs),
    /// Print the state of nodes, zones and evictions once
    Status(status::StatusArgs),
    /// Explain what happens to a node or a pod, or why nothing does
    Why(why::WhyArgs),
    /// Preview an operation or a failure; writes nothing
    Plan(plan::PlanArgs),
    /// Predict what the control plane does next if nobody intervenes
    Forecast(forecast::ForecastArgs),
    /// List the nodes: state, heartbeat, what happens next, pods, requests, usage, taints
    Nodes(lists::ListArgs),
    /// List the zones: state, nodes that are not ready, eviction rate, and why
    Zones(lists::ListArgs),
    /// List the pods on nodes: whether they are Ready, when they are evicted, owners, requests
    Pods(lists::pods::PodListArgs),
    /// List the Events of the cluster, the newest first, folded by object and reason
    Events(lists::events::EventListArgs),
    /// List the pods that are or will be evicted: when, and what becomes of each
    Evictions(lists::ListArgs),
    /// List the pods that wait for a node: why, since when, and what would help
    Pending(pending::PendingArgs),
    /// List PodDisruptionBudgets: how many evictions each allows, which drains it holds up, and who runs these drains
    Budgets(budgets::BudgetsArgs),
    /// Tell which nodes can be drained now, what holds up the others and how to fix it, and what would be lost
    Audit(audit::AuditArgs),
    /// List the pods that left, and who removed each of them
    Departures(departures::DeparturesArgs),
    /// Run the node lifecycle controller without a screen, with /metrics: as a shadow, or with --enforce for real
    Controller(controller::ControllerArgs),
    /// Record what the watches of a cluster report into a file, for `--recording`
    Record(record::RecordArgs),
    /// Open the dashboard on a recording: play it, go to any moment of it
    Replay(replay::ReplayArgs),
    /// Write a postmortem of a recording: what happened, who was affected for how long, how right predictions were
    Report(report::ReportArgs),
    /// Tell what the controller would have done with other settings, given the heartbeats of a recording
    Tune(tune::TuneArgs),
    /// Compare how soon sets of flags detect a dead node and evict its pods, what they cost, and what they risk
    Timing(timing::TimingArgs),
    /// Drain nodes: cordon them, evict their pods within PodDisruptionBudgets, verify that they are gone
    Drain(act::DrainActArgs),
    /// Plan the maintenance of many nodes, or carry it out: waves of drains, the work on the machines, and back into
    /// service
    Maintenance(maintenance::MaintenanceArgs),
    /// Mark nodes as unschedulable
    Cordon(act::ActArgs<plan::NodesArgs>),
    /// Mark nodes as schedulable
    Uncordon(act::ActArgs<plan::NodesArgs>),
    /// Change taints of nodes
    Taint(act::ActArgs<plan::TaintArgs>),
    /// Change labels of nodes
    Label(act::ActArgs<plan::MetadataArgs>),
    /// Change annotations of nodes
    Annotate(act::ActArgs<plan::MetadataArgs>),
    /// Evict pods, as far as their PodDisruptionBudgets allow
    Evict(act::ActArgs<plan::PodsArgs>),
    /// Delete pods, or nodes by `delete node NAME`; PodDisruptionBudgets are not consulted
    Delete(act::ActArgs<plan::PodsArgs>),
    /// Undo what an operation changed on nodes, except what has been changed since
    Undo(act::UndoArgs),
    /// List the operations made from this machine; or what happened to nodes and pods, in a recording or from now on
    Journal(journal::JournalArgs),
    /// Print the configuration: each setting, its value, and where that comes from; check and edit it
    Config(configuration::ConfigArgs),
    /// Convert themes of other programs to themes of kordon
    Theme(theme::ThemeArgs),
    /// Check what kordon depends on, from kubeconfig to terminal, and say how to fix what is wrong
    Doctor(doctor::DoctorArgs),
    /// Print shell completions
    Completions(completions::CompletionsArgs),
    /// Print the manual page
    Man,
}

/// Runs the program with the arguments of the process.
pub fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let format = ErrorFormat::from_arguments(&arguments);
    let (config, invalid) = match Config::load() {
        Ok(config) => (config, None),
        Err(error) => (Config::default(), Some(error)),
    };
    let mut cli = match parse(arguments, &config) {
        Ok(cli) => cli,
        Err(error) => return exit::report_parse_error(&error, format),
    };
    let invalid = cli.give_to_doctor(invalid);
    if let (Some(error), false) = (invalid, cli.is_about_itself()) {
        return exit::report_error(&error.into(), format);
    }
    match run(cli, config) {
        Ok(()) => Exit::Done.into(),
        Err(error) => exit::report_error(&error, format),
    }
}

/// Checks the text of a configuration file.
///
/// # Errors
/// The text is invalid; the error is the text that the program prints.
pub fn check_configuration(text: &str) -> Result<Config, String> {
    Config::parse(Path::new("config.toml"), text).map_err(|error| exit::error_text(&error))
}

/// Checks a command line, as far as that is possible without a cluster.
///
/// # Errors
/// The command line is invalid; the error is the text that the program prints.
pub fn check(arguments: impl IntoIterator<Item = OsString>, config: &Config) -> Result<(), String> {
    let cli = parse(arguments, config).map_err(|error| exit::parse_error_text(&error))?;
    cli.check_targets().map_err(|error| exit::error_text(&error))
}

/// The arguments of a maintenance whose command line is in the journal.
///
/// # Errors
/// This version of kordon does not understand the command line.
fn maintenance_args(command: &str, config: &Config) -> Result<maintenance::MaintenanceArgs, String> {
    let words = shell_words::split(command).map_err(|error| error.to_string())?;
    let cli = parse(words.into_iter().map(OsString::from), config);
    match cli.map_err(|error| exit::parse_error_text(&error))?.command {
        Some(Command::Maintenance(args)) => Ok(args),
        _ => Err(format!("{command} is no maintenance")),
    }
}

fn parse(args: impl IntoIterator<Item = OsString>, config: &Config) -> Result<Cli, clap::Error> {
    let args: Vec<OsString> = args.into_iter().collect();
    let mut command = config.apply(definition());
    if args.first().is_some_and(|program| Path::new(program).file_name().is_some_and(|name| name == PLUGIN)) {
        command = command.bin_name("kubectl kordon");
    }
    let matches = match command.try_get_matches_from_mut(args.clone()) {
        Ok(matches) => matches,
        Err(error) => return Err(with_reason(error, &args, &mut command)),
    };
    if let Some((flag, subcommand)) = misplaced(&command, &matches) {
        let text = format!(
            "{flag} is a flag of the dashboard and has no effect on `kordon {subcommand}`: leave it out, or put it after \
             `{subcommand}` if `kordon {subcommand} --help` lists it"
        );
        return Err(command.error(ErrorKind::ArgumentConflict, text));
    }
    let mut cli = Cli::from_arg_matches(&matches)?;
    let is_theme_given =
        |matches: &ArgMatches| matches.value_source("theme") == Some(ValueSource::CommandLine);
    match (&mut cli.command, matches.subcommand()) {
        (None, _) if is_theme_given(&matches) => cli.dashboard.set_theme_given(),
        (Some(Command::Demo(args)), Some((_, demo))) if is_theme_given(demo) => args.set_theme_given(),
        _ => {}
    }
    Ok(cli)
}

/// Name of the binary as a kubectl plugin.
const PLUGIN: &str = "kubectl-kordon";

/// Adds the reason to the error about a flag of kubectl that kordon refuses, or names what does the work of a command of
/// kubectl.
fn with_reason(error: clap::Error, args: &[OsString], command: &mut clap::Command) -> clap::Error {
    if let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand) {
        let words: Vec<&str> = args.iter().filter_map(|word| word.to_str()).collect();
        let place = words.iter().position(|word| word == name);
        return match place.and_then(|place| kubectl_flags::replacement(&words[place..])) {
            Some(meant) => {
                let text = format!("{name} is a command of kubectl; in its place there is {meant}");
                command.error(ErrorKind::InvalidSubcommand, text)
            }
            None => error,
        };
    }
    let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg) else { return error };
    let name = flag.trim_start_matches('-').split('=').next().unwrap_or_default();
    let words = args.iter().filter_map(|word| word.to_str());
    let reason = words.into_iter().find_map(|word| kubectl_flags::refusal(word, name));
    match reason {
        Some(reason) if error.kind() == ErrorKind::UnknownArgument => {
            command.error(ErrorKind::UnknownArgument, format!("{flag} is not supported: {reason}"))
        }
        Some(_) | None => error,
    }
}

/// Returns a dashboard flag that was given before a subcommand, and the name of the subcommand. The subcommand would
/// ignore such a flag.
fn misplaced(command: &clap::Command, matches: &ArgMatches) -> Option<(String, String)> {
    let subcommand = matches.subcommand_name()?;
    let given =
        |arg: &&clap::Arg| matches.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine);
    // Flags that the subcommand shares with its own subcommands are skipped, because clap reports them as given at
    // every level.
    let below = command.find_subcommand(subcommand)?;
    let is_shared = |arg: &&clap::Arg| {
        arg.is_global_set()
            || below.get_arguments().any(|own| own.is_global_set() && own.get_id() == arg.get_id())
    };
    let arg = command.get_arguments().filter(|arg| !is_shared(arg)).find(given)?;
    Some((format!("--{}", arg.get_long()?), subcommand.to_owned()))
}

impl Cli {
    /// Checks the nodes, pods, taints, labels and annotations that an operation names.
    fn check_targets(&self) -> Result<(), CliError> {
        match &self.command {
            Some(Command::Plan(args)) => args.check_targets(),
            Some(Command::Drain(args)) => args.check_targets(),
            Some(Command::Cordon(args) | Command::Uncordon(args)) => args.what.targets().map(drop),
            Some(Command::Taint(args)) => args.what.target().map(drop),
            Some(Command::Label(args)) => args.what.check_targets(MetadataField::Labels),
            Some(Command::Annotate(args)) => args.what.check_targets(MetadataField::Annotations),
            Some(Command::Evict(args)) => args.what.targets().map(drop),
            Some(Command::Delete(args)) => args.what.check_deletion(),
            Some(
                Command::Demo(_)
                | Command::Status(_)
                | Command::Why(_)
                | Command::Forecast(_)
                | Command::Nodes(_)
                | Command::Zones(_)
                | Command::Pods(_)
                | Command::Events(_)
                | Command::Evictions(_)
                | Command::Pending(_)
                | Command::Audit(_)
                | Command::Maintenance(_)
                | Command::Budgets(_)
                | Command::Departures(_)
                | Command::Timing(_)
                | Command::Record(_)
                | Command::Controller(_)
                | Command::Replay(_)
                | Command::Report(_)
                | Command::Tune(_)
                | Command::Undo(_)
                | Command::Journal(_)
                | Command::Config(_)
                | Command::Doctor(_)
                | Command::Theme(_)
                | Command::Completions(_)
                | Command::Man,
            )
            | None => Ok(()),
        }
    }

    /// Gives the error of the configuration to `kordon doctor`, which reports it. For any other command, returns the
    /// error.
    fn give_to_doctor(&mut self, invalid: Option<ConfigError>) -> Option<ConfigError> {
        let Some(Command::Doctor(args)) = &mut self.command else { return invalid };
        args.configuration_error = invalid;
        None
    }

    /// Whether the command needs no configuration, because it is about kordon itself or about the configuration file.
    const fn is_about_itself(&self) -> bool {
        match &self.command {
            Some(Command::Completions(_) | Command::Man | Command::Theme(_)) => true,
            Some(Command::Config(args)) => args.is_about_the_file(),
            _ => false,
        }
    }
}

/// Number of threads for tasks besides the watches and the screen. There is little such work, and each thread costs
/// memory.
const WORKERS: usize = 2;

fn run(cli: Cli, config: Config) -> Result<(), CliError> {
    cli.check_targets()?;
    let Cli { command, dashboard, mut connection, log } = cli;
    connection.config = config;
    let work = match command {
        // The commands `config`, `theme`, `completions` and `man` neither wait nor log, so they return before the log
        // and the async runtime are started.
        Some(Command::Config(args)) => return configuration::run(&args, &connection.config),
        Some(Command::Theme(args)) => return theme::run(&args),
        Some(Command::Completions(args)) => return completions::print(&args, &mut definition()),
        Some(Command::Man) => return man::print(definition()),
        None => demo_offer::run(dashboard, connection).boxed_local(),
        Some(Command::Doctor(args)) => doctor::run(args, connection).boxed_local(),
        Some(Command::Status(args)) => status::run(args, connection).boxed_local(),
        Some(Command::Why(args)) => why::run(args, connection).boxed_local(),
        Some(Command::Forecast(args)) => forecast::run(args, connection).boxed_local(),
        Some(Command::Nodes(args)) => lists::nodes::run(args, connection).boxed_local(),
        Some(Command::Zones(args)) => lists::zones::run(args, connection).boxed_local(),
        Some(Command::Pods(args)) => lists::pods::run(args, connection).boxed_local(),
        Some(Command::Events(args)) => lists::events::run(args, connection).boxed_local(),
        Some(Command::Evictions(args)) => lists::evictions::run(args, connection).boxed_local(),
        Some(Command::Pending(args)) => pending::run(args, connection).boxed_local(),
        Some(Command::Maintenance(args)) => maintenance::run(args, connection).boxed_local(),
        Some(Command::Audit(args)) => audit::run(args, connection).boxed_local(),
        Some(Command::Budgets(args)) => budgets::run(args, connection).boxed_local(),
        Some(Command::Departures(args)) => departures::run(args, connection).boxed_local(),
        Some(Command::Journal(args)) => journal::run(args, connection).boxed_local(),
        Some(Command::Timing(args)) => timing::run(args, connection).boxed_local(),
        Some(Command::Controller(args)) => controller::run(args, connection).boxed_local(),
        Some(Command::Record(args)) => record::run(args, connection).boxed_local(),
        Some(Command::Plan(args)) => plan::run(args, connection).boxed_local(),
        Some(Command::Drain(args)) => act::drain(args, connection).boxed_local(),
        Some(Command::Cordon(args)) => {
            act::act(PlanCommand::Cordon(args.what), args.how, connection).boxed_local()
        }
        Some(Command::Uncordon(args)) => {
            act::act(PlanCommand::Uncordon(args.what), args.how, connection).boxed_local()
        }
        Some(Command::Taint(args)) => {
            act::act(PlanCommand::Taint(args.what), args.how, connection).boxed_local()
        }
        Some(Command::Label(args)) => {
            act::act(PlanCommand::Label(args.what), args.how, connection).boxed_local()
        }
        Some(Command::Annotate(args)) => {
            act::act(PlanCommand::Annotate(args.what), args.how, connection).boxed_local()
        }
        Some(Command::Evict(args)) => {
            act::act(PlanCommand::Evict(args.what), args.how, connection).boxed_local()
        }
        Some(Command::Delete(args)) => {
            act::act(PlanCommand::Delete(args.what), args.how, connection).boxed_local()
        }
        Some(Command::Undo(args)) => act::undo(args, connection).boxed_local(),
        Some(Command::Demo(args)) => {
            connection.refuse("kordon demo has its own cluster")?;
            demo::run(args, connection.config).boxed_local()
        }
        Some(Command::Report(args)) => {
            connection.refuse("kordon report asks no cluster")?;
            async move { report::run(&args) }.boxed_local()
        }
        Some(Command::Tune(args)) => {
            connection.refuse("kordon tune asks no cluster")?;
            async move { tune::run(&args) }.boxed_local()
        }
        Some(Command::Replay(args)) => {
            connection.refuse("kordon replay asks no cluster")?;
            replay::run(args, connection.config).boxed_local()
        }
    };
    log::start(log.as_deref())?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .enable_all()
        .build()
        .map_err(|error| CliError::Io { doing: "starting the program's threads".into(), error })?;
    let done = runtime.block_on(work);
    // The program ends, so the results of watches and requests in progress are not needed any more.
    runtime.shutdown_timeout(Duration::from_millis(100));
    done
}

/// Definition of the command line, for the parser, completions and the manual page.
fn definition() -> clap::Command {
    // Flags of `kordon why` may also follow the node or pod.
    Cli::command().mut_subcommand("why", |why| why.mut_args(|arg| arg.global(true)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Cli, clap::Error> {
        parse(line.split(' ').map(Into::into), &Config::default())
    }

    #[test]
    fn the_definition_is_consistent() {
        definition().debug_assert();
    }

    #[test]
    fn connection_flags_may_come_before_or_after_the_subcommand() {
        for line in ["kordon --context c status", "kordon status --context c"] {
            let cli = parsed(line).expect(line);
            assert_eq!(cli.connection.options().context.as_deref(), Some("c"), "{line}");
        }
    }

    #[test]
    fn as_a_plugin_of_kubectl_it_calls_itself_as_it_was_called() {
        let usage =
            |program: &str| parsed(&format!("{program} status --help")).expect_err("help").to_string();
        assert!(usage("/usr/bin/kubectl-kordon").contains("Usage: kubectl kordon status"));
        assert!(usage("/usr/bin/kordon").contains("Usage: kordon status"));
    }

    #[test]
    fn every_command_that_predicts_takes_the_controllers_settings() {
        let commands = [
            "status",
            "why node n1",
            "why pod p1",
            "forecast",
            "nodes",
            "zones",
            "pods n1",
            "evictions",
            "pending",
            "departures",
            "journal",
            "timing",
            "record",
            "controller",
            "plan node-failure n1",
            "plan zone-failure a",
            "plan drain n1",
            "plan cordon n1",
            "plan uncordon n1",
            "plan taint n1 a:NoExecute",
            "plan label n1 a=b",
            "plan evict p1",
            "plan delete p1",
            "drain n1",
            "cordon n1",
            "uncordon n1",
            "taint n1 a:NoExecute",
            "label n1 a=b",
            "annotate n1 a=b",
            "evict p1",
            "delete p1",
            "demo",
        ];
        for command in commands {
            let line = format!("kordon {command} --node-eviction-rate=1 --controllers=*");
            parsed(&line).unwrap_or_else(|error| panic!("{line}: {error}"));
        }
    }

    #[test]
    fn a_flag_of_the_dashboard_before_a_subcommand_is_refused_and_not_ignored() {
        let error = parsed("kordon --no-pods demo").expect_err("misplaced");
        assert_eq!(error.kind(), ErrorKind::ArgumentConflict);
        assert!(error.to_string().contains("--no-pods is a flag of the dashboard"), "{error}");
        assert!(parsed("kordon --node-monitor-period=3s status").is_err());
        let why = parsed("kordon --node-monitor-period=3s why node n1").expect("it takes effect");
        assert!(format!("{why:?}").contains("node_monitor_period: Some(\"3s\")"), "{why:?}");
        assert!(parsed("kordon demo --no-pods").is_ok() && parsed("kordon --no-pods").is_ok());
    }
}
