//! `kordon doctor`: checks what kordon depends on, and says how to fix what is wrong. It writes nothing to the cluster.

mod check;
mod cluster;
mod connection;
mod files;
mod notices;
mod rights;
mod terminal;

use clap::Args;

use super::{
    config::ConfigError,
    connection::ConnectionArgs,
    exit::CliError,
    output::OutputArgs,
    page::{Emphasis, Page, none},
    table::PageTable,
};
use check::{CheckResult, DoctorCheck, DoctorReport};
use kordon_clock::Clock;

#[derive(Args, Debug)]
pub struct DoctorArgs {
    #[command(flatten)]
    output: OutputArgs,
    /// Also send a test notice to every receiver in [notify] of the configuration
    #[arg(long)]
    notify: bool,
    /// Why the configuration could not be loaded.
    #[arg(skip)]
    pub configuration_error: Option<ConfigError>,
}

/// Makes all checks and prints them.
///
/// # Errors
/// A check found a problem, or the report cannot be printed.
pub async fn run(args: DoctorArgs, connection: ConnectionArgs) -> Result<(), CliError> {
    let (config, began) = (connection.config.clone(), Clock::system().now());
    let checked = connection::check(&connection.options()).await;
    let mut checks = checked.checks;
    match &checked.connection {
        Some(connection) => {
            let (cluster, rights) =
                tokio::join!(cluster::checks(connection, &config), rights::checks(connection));
            checks.extend(cluster.into_iter().chain(rights));
        }
        None => {
            let unknown = |id| DoctorCheck::unknown(id, "not checked, because there is no connection");
            checks.extend(cluster::CHECKS.into_iter().chain(rights::CHECKS).map(unknown));
        }
    }
    checks.extend(files::checks(&config, args.configuration_error.as_ref()));
    checks.extend(terminal::checks());
    let context = checked.connection.as_ref().map_or("", |connection| &connection.context);
    checks.push(match args.configuration_error {
        None => notices::of_receivers(&config.notify(context)),
        Some(_) => {
            DoctorCheck::unknown(notices::RECEIVERS, "not checked, because files.configuration failed")
        }
    });
    if args.notify {
        checks.push(notices::test(config.notify(context), context).await);
    }
    let report = DoctorReport::new(checks, began);
    args.output.print(&report, render)?;
    match report.problems().as_slice() {
        [] => Ok(()),
        problems => Err(CliError::Unwell { exit: report.exit(), problems: problems.join(", ") }),
    }
}

fn render(report: &DoctorReport, out: &mut Page) {
    if out.export().is_some() {
        return table(report, out);
    }
    let width = report.checks.iter().map(|check| check.id.len()).max().unwrap_or(0);
    for (place, check) in report.checks.iter().enumerate() {
        let is_new_area = place > 0 && report.checks[place - 1].area() != check.area();
        if is_new_area {
            out.line(Emphasis::Plain, "");
        }
        let DoctorCheck { id, result, found, fix } = check;
        out.line(emphasis(*result), &format!("{:<8} {id:<width$}  {found}", result.as_str()));
        if let Some(fix) = fix {
            out.line(Emphasis::Plain, &format!("{:<8} {:<width$}  fix: {fix}", "", ""));
        }
    }
}

/// Prints the checks as a table that other programs can read.
fn table(report: &DoctorReport, out: &mut Page) {
    PageTable::new(&report.checks)
        .key("CHECK", |check| check.id)
        .essential("RESULT", |check| check.result.as_str())
        .essential("FOUND", |check| check.found.clone())
        .essential("FIX", |check| check.fix.clone().unwrap_or_else(none))
        .print(out);
}

const fn emphasis(result: CheckResult) -> Emphasis {
    match result {
        CheckResult::Ok => Emphasis::Plain,
        CheckResult::Unknown => Emphasis::Dim,
        CheckResult::Warning => Emphasis::Warning,
        CheckResult::Problem => Emphasis::Critical,
    }
}
