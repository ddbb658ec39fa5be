//! The command line: one file per subcommand, arguments become options once.

mod act;
mod columns;
mod completions;
mod connection;
mod dashboard;
mod demo;
#[cfg(test)]
mod documented;
mod exit;
mod forecast;
mod keys;
mod log;
mod man;
mod once;
mod placement;
mod plan;
mod settings;
mod show;
mod span;
mod status;
mod why;

use std::{ffi::OsString, path::PathBuf, process::ExitCode, time::Duration};

use clap::{
    ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand, error::ErrorKind, parser::ValueSource,
};

pub use exit::{CliError, Exit};

use connection::ConnectionArgs;
use plan::PlanCommand;

/// Terminal dashboard for Kubernetes node lifecycle, with the node lifecycle controller inside.
///
/// Without a subcommand: the dashboard on the current kubectl context. It only reads.
#[derive(Debug, Parser)]
#[command(name = "kordon", version, max_term_width = 110, after_help = AFTER_HELP)]
pub struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    dashboard: dashboard::DashboardArgs,
    #[command(flatten)]
    connection: ConnectionArgs,
    /// Write a log to this file (never to the terminal).
    #[arg(long, value_name = "FILE", env = "KORDON_LOG", global = true)]
    log: Option<PathBuf>,
}

const AFTER_HELP: &str = "\
No cluster at hand: `kordon demo`.
Exit codes: 0 done, 1 failed, 2 wrong usage, 3 no connection to the cluster, 4 not everything arrived in time; of \
plans 5 refused without more options, 6 blocked, 7 stalls; of actions 8 a guard rail, 9 not allowed, 10 somebody else is \
at work, 11 out of time, 12 done in part, 13 told to stop.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Show an embedded cluster; no Kubernetes needed
    Demo(demo::DemoArgs),
    /// Print what is known, once: for scripts and pipelines
    Status(status::StatusArgs),
    /// Tell why something happens to a node or a pod, or does not
    Why(why::WhyArgs),
    /// Work out what cordon, drain, taint, label, evict or delete would do; nothing is written
    Plan(plan::PlanArgs),
    /// Print what the control plane will do next if nobody intervenes
    Forecast(forecast::ForecastArgs),
    /// Make the pods of nodes leave: cordon, evict under budgets, and prove that it is done
    Drain(act::DrainActArgs),
    /// Mark nodes unschedulable
    Cordon(act::ActArgs<plan::NodesArgs>),
    /// Mark nodes schedulable again
    Uncordon(act::ActArgs<plan::NodesArgs>),
    /// Change taints of nodes
    Taint(act::ActArgs<plan::TaintArgs>),
    /// Change labels of nodes
    Label(act::ActArgs<plan::LabelArgs>),
    /// Make pods leave, as far as their budgets allow
    Evict(act::ActArgs<plan::PodsArgs>),
    /// Delete pods; budgets are not asked
    Delete(act::ActArgs<plan::PodsArgs>),
    /// Put back what an action changed on nodes, as far as nobody has changed it since
    Undo(act::UndoArgs),
    /// List what was done to the cluster from here, and what was cut off
    Journal(act::JournalArgs),
    /// Print completions for a shell
    Completions(completions::CompletionsArgs),
    /// Print the manual page
    Man,
}

/// Runs the program with the process's arguments.
pub fn main() -> ExitCode {
    let cli = match parse(std::env::args_os()) {
        Ok(cli) => cli,
        Err(error) => return exit::of_parse(&error),
    };
    match run(cli) {
        Ok(()) => Exit::Done.into(),
        Err(failure) => exit::of_failure(&failure),
    }
}

fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Cli, clap::Error> {
    let mut command = definition();
    let matches = command.try_get_matches_from_mut(args)?;
    if let Some((flag, subcommand)) = misplaced(&command, &matches) {
        let text = format!(
            "{flag} belongs to the dashboard on a cluster: leave it out, or see `kordon {subcommand} --help`"
        );
        return Err(command.error(ErrorKind::ArgumentConflict, text));
    }
    Cli::from_arg_matches(&matches)
}

/// An option of the dashboard that was given before a subcommand, which would not heed it.
fn misplaced(command: &clap::Command, matches: &ArgMatches) -> Option<(String, String)> {
    let subcommand = matches.subcommand_name()?;
    let given =
        |arg: &&clap::Arg| matches.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine);
    let arg = command.get_arguments().filter(|arg| !arg.is_global_set()).find(given)?;
    Some((format!("--{}", arg.get_long()?), subcommand.to_owned()))
}

fn run(cli: Cli) -> Result<(), CliError> {
    match cli.command {
        Some(Command::Completions(args)) => return completions::print(&args, &mut definition()),
        Some(Command::Man) => return man::print(definition()),
        Some(_) | None => {}
    }
    log::begin(cli.log.as_deref())?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| CliError::Io { doing: "starting the program's threads".into(), error })?;
    let done = runtime.block_on(dispatch(cli));
    // Watches and requests under way have nothing left to say.
    runtime.shutdown_timeout(Duration::from_millis(100));
    done
}

async fn dispatch(cli: Cli) -> Result<(), CliError> {
    let Cli { command, dashboard, connection, log: _ } = cli;
    match command {
        None => dashboard::run(dashboard, connection).await,
        Some(Command::Status(args)) => status::run(args, connection).await,
        Some(Command::Why(args)) => why::run(args, connection).await,
        Some(Command::Forecast(args)) => forecast::run(args, connection).await,
        Some(Command::Plan(args)) => plan::run(args, connection).await,
        Some(Command::Drain(args)) => act::drain(args, connection).await,
        Some(Command::Cordon(args)) => act::act(PlanCommand::Cordon(args.what), args.how, connection).await,
        Some(Command::Uncordon(args)) => {
            act::act(PlanCommand::Uncordon(args.what), args.how, connection).await
        }
        Some(Command::Taint(args)) => act::act(PlanCommand::Taint(args.what), args.how, connection).await,
        Some(Command::Label(args)) => act::act(PlanCommand::Label(args.what), args.how, connection).await,
        Some(Command::Evict(args)) => act::act(PlanCommand::Evict(args.what), args.how, connection).await,
        Some(Command::Delete(args)) => act::act(PlanCommand::Delete(args.what), args.how, connection).await,
        Some(Command::Undo(args)) => act::undo(args, connection).await,
        Some(Command::Journal(args)) => act::journal(args, connection).await,
        Some(Command::Demo(args)) => {
            connection.refuse("kordon demo has a cluster of its own")?;
            demo::run(args).await
        }
        Some(Command::Completions(_) | Command::Man) => Ok(()),
    }
}

/// The definition of the command line, for what is made from it.
fn definition() -> clap::Command {
    Cli::command()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Cli, clap::Error> {
        parse(line.split(' ').map(Into::into))
    }

    #[test]
    fn the_definition_holds_together() {
        definition().debug_assert();
    }

    #[test]
    fn connection_flags_may_stand_on_either_side_of_the_subcommand() {
        for line in ["kordon --context c status", "kordon status --context c"] {
            let cli = parsed(line).expect(line);
            assert_eq!(cli.connection.options().context.as_deref(), Some("c"), "{line}");
        }
    }

    #[test]
    fn a_flag_that_a_subcommand_would_not_heed_is_refused_and_not_ignored() {
        let error = parsed("kordon --no-pods demo").expect_err("misplaced");
        assert_eq!(error.kind(), ErrorKind::ArgumentConflict);
        assert!(error.to_string().contains("--no-pods belongs to the dashboard"), "{error}");
        assert!(parsed("kordon --node-monitor-period=3s status").is_err());
        assert!(parsed("kordon demo --no-pods").is_ok() && parsed("kordon --no-pods").is_ok());
    }
}
