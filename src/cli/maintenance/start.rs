//! Starts, resumes or ends a maintenance.

use std::collections::BTreeSet;

use super::{
    args::MaintenanceArgs,
    outcome::{self, MaintenanceOutcomeReport},
    read,
    report::MaintenanceReport,
    table, tell_on_terminal,
};
use crate::{
    cli::{
        act::{
            print_line, print_notice,
            session::{self, OperationSession, operator},
        },
        connection::ConnectionArgs,
        exit::CliError,
        maintenance_args,
        page::Page,
    },
    journal::{JournaledOperation, OperationStart},
    run::maintenance::{MaintenanceRun, NewMaintenance, Stop, plan, replaced, runs_elsewhere},
};
use kordon_core::{
    cluster::{Cluster, MaintenanceNotes, MaintenanceStage, NodeName, OperationId},
    maintenance::{
        MaintenanceEndKind, MaintenanceNews, MaintenanceOptions, MaintenanceOutcome, MaintenancePlan, WaitFor,
    },
    operation::{
        OperationEnd,
        approval::{Answer, ApprovalRefusal, NotStarted, Operator, Prompt},
    },
    plan::words::counted,
};
use kordon_time::Span;

/// Carries out a maintenance.
pub async fn run(args: MaintenanceArgs, connection: ConnectionArgs) -> Result<(), CliError> {
    args.once.refuse_writes()?;
    session::require_operator(&args.once.source, &args.agreement)?;
    match (args.resume.clone(), args.release.clone()) {
        (Some(id), _) => resume(id, args, connection).await,
        (None, Some(id)) => release(id, args, connection).await,
        (None, None) => begin(args, connection).await,
    }
}

/// Starts a new maintenance.
async fn begin(args: MaintenanceArgs, connection: ConnectionArgs) -> Result<(), CliError> {
    require_work(&args)?;
    let (shot, config) = (read(&args, connection.clone()).await?, connection.config);
    let guards = config.guarded(&shot.connection.context, args.agreement.guards()?);
    let nodes = args.chosen(&shot)?;
    let options = args.options(nodes, guards.clone(), &shot);
    let mut session = OperationSession::over(shot, guards, config).await?;
    refuse_others(&session, &options.nodes, args.agreement.take_over)?;
    let cluster = session.cluster().clone();
    let plan = print_waves(&mut session, cluster, &options).await?;
    if plan.waves.is_empty() {
        return Err(CliError::Ended { end: OperationEnd::Partly, text: "no node can be in a wave".into() });
    }
    confirm(&mut session, &args).await?;
    let start = new_start(&session, &args, &options.nodes);
    let lock = session.context.start_maintenance(None, start).await?;
    session.set_lock(lock);
    let left_out: Vec<&NodeName> = plan.left_out.iter().map(|(node, _)| node).collect();
    let nodes = options.nodes.iter().filter(|node| !left_out.contains(node)).cloned().collect();
    let options = MaintenanceOptions { nodes, before: plan.before, ..options };
    let outcome = MaintenanceOutcome::planned(&plan);
    let takes = plan.ends().map(|ends| ends.since(plan.made));
    carry_out(session, args, options, outcome, None, takes).await
}

/// Resumes a maintenance that is in this machine's journal, or that another machine has left on the nodes.
async fn resume(
    id: Option<OperationId>,
    args: MaintenanceArgs,
    connection: ConnectionArgs,
) -> Result<(), CliError> {
    let config = connection.config.clone();
    let shot = read(&args, connection).await?;
    let guards = config.guarded(&shot.connection.context, args.agreement.guards()?);
    let mut session = OperationSession::over(shot, guards.clone(), config.clone()).await?;
    let unfinished = session.context.unfinished_maintenances()?;
    let id = chosen(id, &session, &unfinished)?;
    let past = unfinished.iter().find(|past| past.id == id);
    let notes = MaintenanceNotes::find(session.cluster(), &id);
    let args = match past {
        Some(_) if args.exec.is_some() || args.wait_for.is_some() || args.gate.is_some() => {
            let text = format!("{id} goes on as it was started: leave out --exec, --wait-for and --gate");
            return Err(CliError::Usage(text));
        }
        Some(past) => {
            let mut recorded = maintenance_args(&past.start.command, &config).map_err(CliError::Usage)?;
            (recorded.agreement, recorded.once) = (args.agreement, args.once);
            recorded
        }
        None => {
            require_work(&args).map_err(|_| {
                let by = notes.as_ref().map_or("", |notes| notes.by.as_str());
                let text = format!("{id} was started by {by} elsewhere: give its --exec or --wait-for again");
                CliError::Usage(text)
            })?;
            args
        }
    };
    if args.surge {
        session.known.read_autoscalers().await;
    }
    let notes = left_to_do(&session, &id, past, &args)?;
    let nodes: Vec<NodeName> = notes.nodes.keys().cloned().collect();
    let say = counted(nodes.len(), "node is", "nodes are");
    print_line(&format!("{id}: {say} left to do"));
    let options = args.options(nodes, guards, &session.known);
    print_rest(&mut session, &notes, &options).await?;
    confirm(&mut session, &args).await?;
    // Somebody else may have gone on with it before the operator agreed.
    let notes = left_to_do(&session, &id, past, &args)?;
    let options = MaintenanceOptions { nodes: notes.nodes.keys().cloned().collect(), ..options };
    lock(&mut session, &args, id, past.is_some(), &options.nodes).await?;
    carry_out(session, args, options, MaintenanceOutcome::default(), Some(notes), None).await
}

/// Returns what a maintenance has left to do, as its nodes show now. `past` is the maintenance in this machine's journal.
///
/// # Errors
/// Another process runs the maintenance.
fn left_to_do(
    session: &OperationSession,
    id: &OperationId,
    past: Option<&JournaledOperation>,
    args: &MaintenanceArgs,
) -> Result<MaintenanceNotes, CliError> {
    let by = &session.context.by;
    let notes = MaintenanceNotes::find(session.cluster(), id);
    let mut notes = notes.unwrap_or_else(|| MaintenanceNotes::blank(id.clone(), by.clone()));
    refuse_running(session, &notes, past.is_some(), args.agreement.take_over, "goes on with")?;
    if let Some(past) = past.filter(|_| args.wait_for == Some(WaitFor::Replaced)) {
        notes.nodes.extend(replaced(session.cluster(), past, by, session.known.clock.now()));
    }
    Ok(notes)
}

/// Ends a maintenance that was stopped.
async fn release(id: OperationId, args: MaintenanceArgs, connection: ConnectionArgs) -> Result<(), CliError> {
    let config = connection.config.clone();
    let shot = read(&args, connection).await?;
    let guards = config.guarded(&shot.connection.context, args.agreement.guards()?);
    let mut session = OperationSession::over(shot, guards.clone(), config).await?;
    let unfinished = session.context.unfinished_maintenances()?;
    let is_journaled = unfinished.iter().any(|past| past.id == id);
    let Some(notes) = MaintenanceNotes::find(session.cluster(), &id) else {
        return Err(CliError::NothingTo("release: no node is in a maintenance with this id"));
    };
    refuse_running(&session, &notes, is_journaled, args.agreement.take_over, "ends")?;
    let nodes: Vec<NodeName> = notes.nodes.keys().cloned().collect();
    let names: Vec<&str> = nodes.iter().map(|node| &**node).collect();
    print_line(&format!("uncordons, as far as {id} has cordoned them: {}", names.join(", ")));
    confirm(&mut session, &args).await?;
    lock(&mut session, &args, id, is_journaled, &nodes).await?;
    let options = args.options(Vec::new(), guards, &session.known);
    let run = new_run(&mut session, &args, options, MaintenanceOutcome::default())?;
    let (end, text) = match run.end(nodes).await? {
        Ok(()) => return Ok(()),
        Err(Stop::Failed(text)) => (OperationEnd::Partly, text),
        Err(Stop::TakenOver(by)) => (OperationEnd::ClaimedByOther, runs_elsewhere(&by)),
        Err(Stop::Cancelled | Stop::Killed) => (OperationEnd::Cancelled, "interrupted".into()),
    };
    Err(CliError::Ended { end, text })
}

/// Computes the waves of a maintenance and prints them.
async fn print_waves(
    session: &mut OperationSession,
    cluster: Cluster,
    options: &MaintenanceOptions,
) -> Result<MaintenancePlan, CliError> {
    let (clock, made) = (session.known.clock, session.known.at);
    let plan = plan(&mut session.known.watched(), clock, cluster, options, made, tell_on_terminal()).await;
    let plan = plan.map_err(|error| CliError::Io {
        doing: "working out the waves".into(),
        error: std::io::Error::other(error),
    })?;
    let mut page = Page::default();
    table::render_waves(&MaintenanceReport::new(&plan, options), &mut page);
    page.into_text().lines().for_each(print_line);
    Ok(plan)
}

/// Prints the nodes of the wave that was interrupted, and the waves of the nodes that have not been in a wave.
async fn print_rest(
    session: &mut OperationSession,
    notes: &MaintenanceNotes,
    options: &MaintenanceOptions,
) -> Result<(), CliError> {
    let waiting = notes.in_stages(&[MaintenanceStage::Waiting]);
    let begun = notes.nodes.keys().filter(|node| !waiting.contains(node));
    let begun: Vec<&str> = begun.map(|node| &**node).collect();
    if !begun.is_empty() {
        print_line(&format!("in the wave that was interrupted: {}", begun.join(", ")));
    }
    if !waiting.is_empty() {
        let options = MaintenanceOptions { nodes: waiting, ..options.clone() };
        let cluster = notes.without_cordons(session.cluster());
        print_waves(session, cluster, &options).await?;
    }
    Ok(())
}

/// Carries out the rest of a maintenance, and prints the report.
async fn carry_out(
    mut session: OperationSession,
    args: MaintenanceArgs,
    options: MaintenanceOptions,
    outcome: MaintenanceOutcome,
    begun: Option<MaintenanceNotes>,
    planned: Option<Span>,
) -> Result<(), CliError> {
    let end = new_run(&mut session, &args, options, outcome)?.carry_out(begun).await?;
    let (kind, text) = (end.kind, end.in_short());
    args.once.output.print(&MaintenanceOutcomeReport::new(end, planned), outcome::render)?;
    let end = match kind {
        MaintenanceEndKind::Done => return Ok(()),
        MaintenanceEndKind::Cancelled => OperationEnd::Cancelled,
        MaintenanceEndKind::Partly | MaintenanceEndKind::Paused | MaintenanceEndKind::RolledBack => {
            OperationEnd::Partly
        }
    };
    Err(CliError::Ended { end, text })
}

fn new_run<'a>(
    session: &'a mut OperationSession,
    args: &MaintenanceArgs,
    options: MaintenanceOptions,
    outcome: MaintenanceOutcome,
) -> Result<MaintenanceRun<'a>, CliError> {
    let tell = |news| match news {
        MaintenanceNews::Notice(notice) => print_notice(&notice),
        // Progress is not printed while the maintenance runs; the report at the end has it.
        MaintenanceNews::Progress(_) => {}
    };
    let new = NewMaintenance {
        context: session.context.clone(),
        lock: session.take_lock(),
        terms: args.terms(),
        options,
        outcome,
        operator: session::listen()?,
        tell: Box::new(tell),
    };
    let clock = session.known.clock;
    Ok(MaintenanceRun::new(new, session.known.watched(), clock))
}

/// Asks the operator to agree, unless the operator has agreed in advance.
async fn confirm(session: &mut OperationSession, args: &MaintenanceArgs) -> Result<(), CliError> {
    if operator(&args.agreement) == Operator::AgreedInAdvance {
        return Ok(());
    }
    let prompt = Prompt::Words(session.context.kube_context.clone());
    match session.ask_for(&prompt).await {
        Answer::Yes => Ok(()),
        Answer::No => Err(CliError::Declined),
    }
}

/// Fails if no flag says how the work on a machine is done, or how its end is detected.
fn require_work(args: &MaintenanceArgs) -> Result<(), CliError> {
    if args.exec.is_some() || args.wait_for.is_some() {
        return Ok(());
    }
    let text = "--enforce needs the work on the machines: --exec COMMAND does it, or --wait-for says how others show that \
                it is done";
    Err(CliError::Usage(text.into()))
}

/// Fails if another maintenance, running or stopped, has one of the nodes.
fn refuse_others(session: &OperationSession, nodes: &[NodeName], take_over: bool) -> Result<(), CliError> {
    let now = session.known.clock.now();
    match MaintenanceNotes::on_nodes(session.cluster(), nodes, now).filter(|_| !take_over) {
        None => Ok(()),
        Some(text) => {
            let text = format!("{text} (--take-over overrides this)");
            Err(CliError::Ended { end: OperationEnd::ClaimedByOther, text })
        }
    }
}

/// Fails if a maintenance already runs elsewhere. `is_journaled` tells whether the journal of this machine has the
/// maintenance. `would` is the verb in the error text that says what `--take-over` does.
fn refuse_running(
    session: &OperationSession,
    notes: &MaintenanceNotes,
    is_journaled: bool,
    take_over: bool,
    would: &str,
) -> Result<(), CliError> {
    if take_over || !is_running_elsewhere(session, notes, is_journaled) {
        return Ok(());
    }
    let text = format!("{} runs {}; --take-over {would} it all the same", notes.by, notes.operation);
    Err(CliError::Ended { end: OperationEnd::ClaimedByOther, text })
}

/// Takes the lock of a maintenance that exists, and records in this machine's journal that it continues.
async fn lock(
    session: &mut OperationSession,
    args: &MaintenanceArgs,
    id: OperationId,
    is_journaled: bool,
    nodes: &[NodeName],
) -> Result<(), CliError> {
    let start = (!is_journaled).then(|| new_start(session, args, nodes));
    let lock = session.context.lock_maintenance(id, start).await?;
    session.set_lock(lock);
    Ok(())
}

/// The maintenance to resume: the given one, or the only one that was stopped. If none was stopped, the only one that is
/// running.
fn chosen(
    id: Option<OperationId>,
    session: &OperationSession,
    unfinished: &[JournaledOperation],
) -> Result<OperationId, CliError> {
    if let Some(id) = id {
        let is_known = unfinished.iter().any(|past| past.id == id)
            || MaintenanceNotes::find(session.cluster(), &id).is_some();
        let over = CliError::NotApproved(ApprovalRefusal::NotStarted(NotStarted::Over(id.clone())));
        return if is_known { Ok(id) } else { Err(over) };
    }
    let noted = MaintenanceNotes::all(session.cluster()).into_iter().map(|notes| notes.operation);
    let ids: BTreeSet<OperationId> = unfinished.iter().map(|past| past.id.clone()).chain(noted).collect();
    let is_running = |id: &OperationId| is_running(session, unfinished, id);
    let (running, stopped): (Vec<_>, Vec<_>) = ids.into_iter().partition(is_running);
    // A maintenance that is running is only meant if none was stopped. It may be taken over.
    let (mut ids, state) = match stopped.is_empty() {
        true => (running, "are running"),
        false => (stopped, "were stopped"),
    };
    match ids.len() {
        0 => Err(CliError::NothingTo("resume: no maintenance was stopped")),
        1 => Ok(ids.remove(0)),
        _ => {
            let ids: Vec<&str> = ids.iter().map(|id| &**id).collect();
            let text = format!("several maintenances {state}; name one with --resume=OPERATION:");
            Err(CliError::Usage(format!("{text} {}", ids.join(", "))))
        }
    }
}

/// Whether a process runs a maintenance: on this machine, or elsewhere as its nodes show.
fn is_running(session: &OperationSession, unfinished: &[JournaledOperation], id: &OperationId) -> bool {
    let is_journaled = unfinished.iter().any(|past| past.id == *id);
    let notes = MaintenanceNotes::find(session.cluster(), id);
    is_journaled && session.context.is_locked(id)
        || notes.is_some_and(|notes| is_running_elsewhere(session, &notes, is_journaled))
}

/// Whether a maintenance runs elsewhere, as its nodes show. The nodes of a maintenance that was killed on this machine
/// show for some minutes that it is running.
fn is_running_elsewhere(session: &OperationSession, notes: &MaintenanceNotes, is_journaled: bool) -> bool {
    let is_ours = is_journaled && notes.by == session.context.by;
    !is_ours && notes.is_running(session.known.clock.now())
}

/// The journal's record of a maintenance that starts on this machine. It contains the command line, with which a resume
/// carries out the rest.
fn new_start(session: &OperationSession, args: &MaintenanceArgs, nodes: &[NodeName]) -> OperationStart {
    let uid = |name: &NodeName| Some((name.clone(), session.cluster().node(name)?.uid.clone()));
    OperationStart {
        reason: args.agreement.reason.clone(),
        command: shell_words::join(std::env::args()),
        nodes: nodes.iter().filter_map(uid).collect(),
        overrides: args.agreement.overrides().words(),
        ..OperationStart::default()
    }
}
