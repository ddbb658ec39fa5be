//! `kordon drain`, `cordon`, `uncordon`, `taint`, `label`, `evict`, `delete`: kubectl's words and flags.
//!
//! Without `--enforce` they print the plan, as `kordon plan` does. With it, the plan is made, checked (guard rails,
//! permissions), shown and confirmed, made again over the newest state, and carried out.

mod checks;
mod confirmation;
mod undo;
mod report;

use std::path::PathBuf;

use clap::Args;
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::mpsc,
};

pub use undo::{JournalArgs, UndoArgs, journal, undo};

use super::{
    CliError, columns,
    connection::ConnectionArgs,
    once::{OneShot, OneShotQuery},
    plan::{self, DrainArgs, PlanCommand, PrintArgs},
    settings::SettingsArgs,
    span,
};
use crate::{
    clock::Clock,
    cluster::{OperationId, Selector},
    engine::Severity,
    executor::write_context::{OperationLock, WriteContext},
    journal::OperationLockFile,
    operation::{Breach, Operation, OperationEnd, OperationNotice, OperationOptions, Overrides, drift},
    placement::Snapshot,
    plan::{Action, Plan},
    run::operation::{OperationRun, OperatorInput as Meanwhile},
    time::Span,
    ui::text,
};

/// An action and how it is carried out.
#[derive(Args, Debug)]
pub struct ActArgs<T: Args> {
    #[command(flatten)]
    pub what: T,
    #[command(flatten)]
    pub how: HowArgs,
}

/// A drain, or one that was cut off.
#[derive(Args, Debug)]
pub struct DrainActArgs {
    #[command(flatten)]
    act: ActArgs<DrainArgs>,
    /// Go on with a drain that was cut off; without a name the only one there is
    #[arg(long, value_name = "OPERATION", num_args = 0..=1, require_equals = true,
        conflicts_with_all = ["nodes", "selector"])]
    resume: Option<Option<OperationId>>,
}

#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Carrying it out")]
pub struct HowArgs {
    /// Write to the cluster; without this the plan is printed and nothing is written
    #[arg(long)]
    enforce: bool,
    /// Do not ask for confirmation; needed where there is no terminal to ask on
    #[arg(long, short, requires = "enforce")]
    yes: bool,
    /// Why, for others to read on the node and in the journal
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
    /// How long the cordon is meant to stand, for others to read; nothing happens when that is over
    #[arg(long, value_name = "DURATION", value_parser = span::span)]
    until: Option<Span>,
    /// How long all of it may take
    #[arg(long, value_name = "DURATION", value_parser = span::span)]
    total_timeout: Option<Span>,
    /// Go on where somebody else is draining the node
    #[arg(long)]
    take_over: bool,
    /// Begin even where something can never go
    #[arg(long)]
    try_blocked: bool,
    /// Break this guard rail; may be repeated
    #[arg(long = "override", value_name = "GUARD", value_parser = Breach::GUARDS)]
    overrides: Vec<String>,
    /// Guard rail: no more nodes than this at once
    #[arg(long, value_name = "COUNT")]
    max_nodes: Option<usize>,
    /// Guard rail: no more of a zone's nodes than this out of service
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(..=100))]
    max_zone_percent: Option<u8>,
    /// Guard rail: no pod of this namespace is made to go; may be repeated
    #[arg(long, value_name = "NAMESPACE")]
    protect_namespace: Vec<String>,
    /// Guard rail: no pod with these labels is made to go; may be repeated
    #[arg(long, value_name = "SELECTOR", value_parser = Selector::parse)]
    protect_pods: Vec<Selector>,
    /// The file with guard rails (default: guards.toml in the configuration folder, where there is one)
    #[arg(long, value_name = "FILE")]
    guards: Option<PathBuf>,
}

/// Drains, or goes on with a drain.
pub async fn drain(args: DrainActArgs, connection: ConnectionArgs) -> Result<(), CliError> {
    let DrainActArgs { act: ActArgs { what, how }, resume } = args;
    match resume {
        None => act(PlanCommand::Drain(what), how, connection).await,
        Some(named) => {
            let print = what.nodes.print;
            undo::resume(named, &print, how, connection).await
        }
    }
}

/// Prints the plan, or carries it out.
pub async fn act(wish: PlanCommand, how: HowArgs, connection: ConnectionArgs) -> Result<(), CliError> {
    if !how.enforce {
        return plan::preview(&wish, connection).await;
    }
    confirmation::possible(&how)?;
    let target = wish.target()?;
    let print = wish.print();
    if print.validate {
        return Err(CliError::Usage("--validate asks what would be: it does not go with --enforce".into()));
    }
    let place = Place::reach(print, connection).await?;
    place.tell_of_unfinished();
    let action = target.action(&place.asked.model.cluster, &place.asked.namespace);
    let id = place.context.new_id(action.word());
    let orders = orders(&how, &place, id);
    carry_out(place, action, orders, &how, print, None).await
}

/// A cluster that is about to be written to, with all that is known of it.
struct Place {
    asked: OneShot,
    context: WriteContext,
}

impl Place {
    /// Connects and learns all that plans are made of. Less than all of it is not enough to act on.
    async fn reach(print: &PrintArgs, connection: ConnectionArgs) -> Result<Self, CliError> {
        let question = OneShotQuery {
            wanted: &plan::WANTED,
            no_pods: false,
            timeout: print.list_timeout,
            settings: &SettingsArgs::default(),
            flag: "--list-timeout",
        };
        let mut asked = OneShot::answer(&question, connection).await?;
        asked.in_time()?;
        let context = WriteContext::of(&asked.connection, asked.clock)?;
        Ok(Self { asked, context })
    }

    fn clock(&self) -> Clock {
        self.asked.clock
    }

    fn plan(&self, action: Action) -> Result<Plan, CliError> {
        let cluster = &self.asked.model.cluster;
        let now = self.clock().now();
        let version = self.asked.model.settings.version;
        let snapshot = Some(Snapshot::new(cluster, version));
        Plan::over(action, cluster, snapshot, version, now).map_err(plan::not_found)
    }

    /// Says so where a drain on this context was cut off.
    fn tell_of_unfinished(&self) {
        let Ok(interrupted) = self.context.journal.interrupted() else { return };
        for past in interrupted {
            let nodes: Vec<String> = past.start.nodes.iter().map(|(node, _)| node.to_string()).collect();
            progress(&format!(
                "a drain of {} that began at {} was cut off: `kordon drain --resume={} --enforce` goes on with it, \
                 `kordon undo {} --enforce` puts back what it changed",
                nodes.join(", "),
                past.started.to_time(),
                past.id,
                past.id,
            ));
        }
    }
}

/// Checks, asks, makes the plan again, and carries it out; the report is printed in each case that began.
async fn carry_out(
    mut place: Place,
    action: Action,
    orders: OperationOptions,
    how: &HowArgs,
    print: &PrintArgs,
    resumed: Option<OperationLockFile>,
) -> Result<(), CliError> {
    let mut plan = place.plan(action.clone())?;
    loop {
        checks::prospect(&plan, how)?;
        checks::guards(&plan, &place.asked.model.cluster, how)?;
        checks::permissions(&place.context, &plan).await?;
        confirmation::ask(&plan, how, &place.context.kube_context).await?;
        place.asked.catch_up();
        let newest = place.plan(action.clone())?;
        let drifts = drift::between(&plan, &newest);
        plan = newest;
        for drift in drifts.iter().take(20) {
            progress(&format!("since the plan was made: {drift}"));
        }
        if drifts.is_empty() || how.yes {
            checks::prospect(&plan, how)?;
            checks::guards(&plan, &place.asked.model.cluster, how)?;
            break;
        }
    }
    let lock = match resumed {
        None => place.context.start(&plan, &orders, &how.waivers()).await?,
        Some(file) => place.context.resume(file, &orders.id).await?,
    };
    let conduct = Operation::begin(&plan, orders, &place.asked.model.cluster, place.clock().now());
    let (report, end) = conduct_to_its_end(place, conduct, &lock).await?;
    print.output.print(&report, report::table)?;
    ended(end, &report)
}

/// Runs a conduct until it is over, with its progress on standard error, and writes down how it ended.
async fn conduct_to_its_end(
    place: Place,
    conduct: Operation,
    lock: &OperationLock,
) -> Result<(report::OperationReport, OperationEnd), CliError> {
    let Place { asked: OneShot { model, feeds, clock, .. }, context } = place;
    let model = model.into_observer();
    let link = context.start_executor(lock);
    let journal = Some(lock.writer.clone());
    let mut undertaking = OperationRun { conduct, model, feeds, link, journal, clock };
    let (mut wishes, gave_up) = listen()?;
    tokio::select! {
        () = undertaking.run(&mut wishes, tell) => {}
        _ = gave_up => progress("told again to stop: what is under way is not waited for"),
    }
    let facts = undertaking.conduct.report();
    let end = undertaking.conduct.ended().unwrap_or(OperationEnd::Cancelled);
    let report = report::OperationReport::new(&facts, end, clock.now());
    // Cut short, it counts as unfinished: what is under way may still be done.
    if undertaking.conduct.ended().is_some() {
        lock.record_end(end, facts.in_short(), clock).await?;
    }
    Ok((report, end))
}

/// What a signal means: the first cancels, the second ends it at once.
fn listen() -> Result<(mpsc::Receiver<Meanwhile>, tokio::sync::oneshot::Receiver<()>), CliError> {
    let failed = |error| CliError::Io { doing: "listening for signals".into(), error };
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    // A second wish is not waited for: the program ends then.
    let (wish, wishes) = mpsc::channel(1);
    let (give_up, gave_up) = tokio::sync::oneshot::channel();
    tokio::spawn(async move {
        for wanted in [Some(Meanwhile::Cancel), None] {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            if let Some(cancel) = wanted {
                // Nobody takes it: it is over already.
                let _ = wish.send(cancel).await;
            }
        }
        let _ = give_up.send(());
        std::future::pending::<()>().await;
    });
    Ok((wishes, gave_up))
}

fn orders(how: &HowArgs, place: &Place, id: OperationId) -> OperationOptions {
    OperationOptions {
        id,
        by: place.context.by.clone(),
        why: how.reason.clone(),
        until: how.until.map(|span| place.clock().now() + span),
        take_over: how.take_over,
        total_timeout: how.total_timeout,
        ..OperationOptions::default()
    }
}

impl HowArgs {
    fn waivers(&self) -> Overrides {
        let Self { take_over, try_blocked, ref overrides, .. } = *self;
        Overrides { guards: overrides.clone(), take_over, try_blocked }
    }
}

/// What happens, on standard error: the answer alone is on standard output.
fn tell(notice: &OperationNotice) {
    let mark = match notice.level {
        Severity::Info => "",
        Severity::Warning => "warning: ",
        Severity::Error => "error: ",
    };
    let subject = if notice.subject.is_empty() { String::new() } else { format!("{}: ", notice.subject) };
    progress(&format!("{} {subject}{mark}{}", text::clock(notice.at), notice.text));
}

fn progress(line: &str) {
    use std::io::Write as _;
    // Nobody is left to tell that standard error is closed.
    let _ = writeln!(std::io::stderr(), "{}", columns::shown(line));
}

/// The exit code that says how it ended.
fn ended(end: OperationEnd, report: &report::OperationReport) -> Result<(), CliError> {
    match end {
        OperationEnd::Done | OperationEnd::Recorded => Ok(()),
        OperationEnd::Partly
        | OperationEnd::TimedOut
        | OperationEnd::Forbidden
        | OperationEnd::ClaimedByOther
        | OperationEnd::Cancelled => Err(CliError::Ended { end, text: report.in_short.clone() }),
    }
}
