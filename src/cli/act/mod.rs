//! `kordon drain`, `cordon`, `uncordon`, `taint`, `label`, `annotate`, `evict`, `delete`: kubectl's words
//! and flags.
//!
//! Without `--enforce` these commands print the plan, as `kordon plan` does. With `--enforce`, the plan is approved
//! ([`Approval`]) and applied.

mod report;
pub mod session;
mod undo;

use std::path::PathBuf;

use clap::Args;

pub use report::DrainCountReport;
pub use undo::{UndoArgs, undo};

use super::{
    CliError,
    connection::ConnectionArgs,
    page::shown,
    plan::{self, DrainArgs, PlanCommand},
    span,
};
use crate::{
    executor::guards::{self, GuardsError},
    ui::text,
};
use kordon_core::{
    cluster::{OperationId, Selector},
    engine::Severity,
    operation::{Breach, Guards, OperationNotice, Overrides, approval::Approval},
};
use kordon_time::Span;
use session::{OperationSession, Placing};

/// An action and how it is applied.
#[derive(Args, Debug)]
pub struct ActArgs<T: Args> {
    #[command(flatten)]
    pub what: T,
    #[command(flatten)]
    pub how: HowArgs,
}

/// A new drain, or the resumption of an interrupted one.
#[derive(Args, Debug)]
pub struct DrainActArgs {
    #[command(flatten)]
    act: ActArgs<DrainArgs>,
    /// Resume the interrupted drain with this operation id; without an id, the only interrupted one
    #[arg(long, value_name = "OPERATION", num_args = 0..=1, require_equals = true,
        conflicts_with_all = ["nodes", "selector"])]
    resume: Option<Option<OperationId>>,
}

impl DrainActArgs {
    /// Checks the nodes that the command line names. With `--resume` it names no nodes.
    pub fn check_targets(&self) -> Result<(), CliError> {
        if self.resume.is_some() { Ok(()) } else { self.act.what.nodes.targets().map(drop) }
    }
}

#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Applying it")]
pub struct HowArgs {
    #[command(flatten)]
    pub agreement: AgreementArgs,
    /// How long the cordon is meant to last, for others to read; nothing happens at its end
    #[arg(long, value_name = "DURATION", value_parser = span::span)]
    until: Option<Span>,
    /// How long the whole operation may take
    #[arg(long, value_name = "DURATION", value_parser = span::span)]
    total_timeout: Option<Span>,
    /// Start even if a pod can never leave its node
    #[arg(long)]
    try_blocked: bool,
}

/// Flags for the confirmation of an operation, and its guard rails.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Applying it")]
pub struct AgreementArgs {
    /// Write to the cluster; without this the plan is printed and nothing is written
    #[arg(long)]
    pub enforce: bool,
    /// Do not ask for confirmation; needed where there is no terminal to ask on
    #[arg(long, short, requires = "enforce")]
    pub yes: bool,
    /// Reason, for others to read on the node and in the journal
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub reason: String,
    /// Act on a node even while somebody else is draining it, or a maintenance has it
    #[arg(long)]
    pub take_over: bool,
    /// Override this guard rail; may be repeated
    #[arg(long = "override", value_name = "GUARD", value_parser = Breach::GUARDS)]
    pub overrides: Vec<String>,
    /// Guard rail: maximum number of nodes at once
    #[arg(long, value_name = "COUNT")]
    max_nodes: Option<usize>,
    /// Guard rail: maximum share of a zone's nodes that may be out of service
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(..=100))]
    max_zone_percent: Option<u8>,
    /// Guard rail: remove no pod of this namespace; may be repeated
    #[arg(long, value_name = "NAMESPACE")]
    protect_namespace: Vec<String>,
    /// Guard rail: remove no pod with these labels; may be repeated
    #[arg(long, value_name = "SELECTOR", value_parser = Selector::parse)]
    protect_pods: Vec<Selector>,
    /// File with guard rails (default: guards.toml in the configuration folder, if it exists)
    #[arg(long, value_name = "FILE")]
    guards: Option<PathBuf>,
}

impl HowArgs {
    /// Overrides of guard rails and checks that the flags ask for.
    fn overrides(&self) -> Overrides {
        Overrides { try_blocked: self.try_blocked, ..self.agreement.overrides() }
    }
}

impl AgreementArgs {
    /// Overrides of guard rails and checks that the flags ask for.
    pub fn overrides(&self) -> Overrides {
        Overrides { guards: self.overrides.clone(), take_over: self.take_over, try_blocked: false }
    }

    /// Guard rails of the file. Guard rails that are given as flags override them.
    pub fn guards(&self) -> Result<Guards, GuardsError> {
        let mut guards = guards::read(self.guards.as_deref())?;
        guards.max_nodes = self.max_nodes.or(guards.max_nodes);
        guards.max_zone_percent = self.max_zone_percent.or(guards.max_zone_percent);
        guards.protected_namespaces.extend(self.protect_namespace.iter().map(|name| name.as_str().into()));
        guards.protected_pods.extend(self.protect_pods.iter().cloned());
        Ok(guards)
    }
}

/// Drains nodes, or resumes a drain.
pub async fn drain(args: DrainActArgs, connection: ConnectionArgs) -> Result<(), CliError> {
    let DrainActArgs { act: ActArgs { what, how }, resume } = args;
    match resume {
        None => act(PlanCommand::Drain(what), how, connection).await,
        Some(id) => {
            let print = what.nodes.print;
            undo::resume(id, &print, how, connection).await
        }
    }
}

/// Prints the plan of an action, or applies it.
pub async fn act(command: PlanCommand, how: HowArgs, connection: ConnectionArgs) -> Result<(), CliError> {
    if !how.agreement.enforce || command.listed().is_some() {
        return plan::preview(&command, connection).await;
    }
    let print = command.print();
    session::require_operator(&print.source, &how.agreement)?;
    let target = command.target()?;
    if let Some(flag) = print.writes_nothing() {
        return Err(CliError::Usage(format!("{flag} writes nothing: it cannot be used with --enforce")));
    }
    let places = if target.removes_pods() { Placing::Pods } else { Placing::Nothing };
    let mut session = OperationSession::connect(places, print, &how, connection).await?;
    session.report_interrupted();
    let action = session.resolve(&target, print).await?;
    let approval = Approval::apply(action, None, session.terms(&how), &session.situation());
    session.run(approval, print).await
}

/// Prints a notice on standard error, since standard output is only for the report.
pub fn print_notice(notice: &OperationNotice) {
    let level = match notice.level {
        Severity::Info => "",
        Severity::Warning => "warning: ",
        Severity::Error => "error: ",
    };
    let subject = if notice.subject.is_empty() { String::new() } else { format!("{}: ", notice.subject) };
    print_line(&format!("{} {subject}{level}{}", text::clock(notice.at), notice.text));
}

/// Prints a line on standard error.
pub fn print_line(line: &str) {
    use std::io::Write as _;
    // A closed standard error cannot be reported anywhere.
    let _ = writeln!(std::io::stderr(), "{}", shown(line));
}
