//! `kordon drain --resume`, `kordon undo`, `kordon journal`: what was begun before.

use clap::Args;
use serde::Serialize;

use super::{HowArgs, Place, carry_out, conduct_to_its_end, confirmation, ended, orders, progress, report};
use crate::{
    cli::{
        CliError,
        columns::{none, section},
        connection::ConnectionArgs,
        once::Output,
        plan::{PrintArgs, answer_word, step_words},
    },
    cluster::{NodeName, OperationId},
    executor::write_context::WriteContextError,
    journal::{Journal, JournaledOperation, operations},
    k8s::{connect, validation},
    operation::{Operation, OperationEnd, OperationOptions},
    plan::{Action, EvictionRules, undo::NotUndone},
    time::Timestamp,
};

/// What `kordon journal` takes.
#[derive(Args, Debug)]
pub struct JournalArgs {
    /// How to print it
    #[arg(long, short, value_enum, default_value_t = Output::Table)]
    output: Output,
}

/// What `kordon undo` takes.
#[derive(Args, Debug)]
pub struct UndoArgs {
    /// The operation, by its id in the journal
    #[arg(value_name = "OPERATION")]
    operation: OperationId,
    #[command(flatten)]
    how: HowArgs,
    #[command(flatten)]
    print: PrintArgs,
}

/// Goes on with a drain that was cut off.
pub async fn resume(
    named: Option<OperationId>,
    print: &PrintArgs,
    how: HowArgs,
    connection: ConnectionArgs,
) -> Result<(), CliError> {
    if !how.enforce {
        return Err(CliError::Usage("to go on with a drain is to write: --enforce is needed".into()));
    }
    confirmation::possible(&how)?;
    let place = Place::reach(print, connection).await?;
    let id = choose(&place.context.journal, named)?;
    let (file, past) = place.context.lock(&id)?;
    let Some(options) = past.start.drain.clone().filter(|_| past.is_unfinished()) else {
        return Err(WriteContextError::NotResumable(id).into());
    };
    let nodes = still_there(&past, &place);
    let action = Action::Drain { nodes, options };
    let orders = OperationOptions {
        why: past.start.why.clone(),
        until: past.start.until,
        past: past.prior_run(),
        ..orders(&how, &place, id)
    };
    carry_out(place, action, orders, &how, print, Some(file)).await
}

/// The nodes of a drain that are the same as then.
fn still_there(past: &JournaledOperation, place: &Place) -> Vec<NodeName> {
    let mut nodes = Vec::new();
    for (name, uid) in &past.start.nodes {
        match place.asked.model.cluster.node(name) {
            Some(node) if node.uid == *uid => nodes.push(name.clone()),
            Some(_) => progress(&format!("node {name} is another one by now: it is left alone")),
            None => progress(&format!("node {name} is gone")),
        }
    }
    nodes
}

/// The undertaking that is meant: the one that was named, or the only one.
fn choose(journal: &Journal, named: Option<OperationId>) -> Result<OperationId, CliError> {
    if let Some(name) = named {
        return Ok(name);
    }
    let pasts = operations(&journal.lines()?);
    let unfinished: Vec<&str> =
        pasts.iter().filter(|past| past.is_unfinished()).map(|past| &*past.id).collect();
    match unfinished[..] {
        [one] => Ok(one.into()),
        [] => Err(CliError::NotFound("a drain that was cut off".into())),
        _ => Err(CliError::Usage(format!(
            "several drains were cut off; name one with --resume=OPERATION: {}",
            unfinished.join(", ")
        ))),
    }
}

/// Puts back what an undertaking changed on nodes, as far as nobody has changed it since.
pub async fn undo(args: UndoArgs, connection: ConnectionArgs) -> Result<(), CliError> {
    let UndoArgs { operation, how, print } = args;
    if how.enforce {
        confirmation::possible(&how)?;
    }
    let place = Place::reach(&print, connection).await?;
    let (file, past) = place.context.lock(&operation)?;
    let undo = past.undo();
    let cluster = &place.asked.model.cluster;
    let (steps, kept) = undo.writes(cluster);
    for step in &steps {
        progress(&format!("would write: {}", step.call().body));
    }
    for kept in &kept {
        progress(&format!("would leave as it is: {}", NotUndone::to_string(kept)));
    }
    if steps.is_empty() {
        progress("there is nothing to put back");
    }
    if !how.enforce {
        if print.validate {
            let version = place.asked.model.settings.version;
            let answers = validation::validate(&place.asked.connection.writer, &steps, version).await;
            for (step, answer) in steps.iter().zip(answers) {
                let answer =
                    answer.map_or_else(none, |answer| format!("{} ({answer})", answer_word(&answer)));
                progress(&format!("as a dry run, {}: {answer}", step_words(step)));
            }
        }
        return Ok(());
    }
    if !steps.is_empty() {
        confirmation::ask_plainly(&how, &place.context.kube_context).await?;
    }
    let clock = place.clock();
    let id = place.context.new_id("undo");
    let lock = place.context.open(file, &id)?;
    let orders = OperationOptions { undoes: Some(operation), ..orders(&how, &place, id) };
    let rules = EvictionRules::of(place.asked.model.settings.version);
    let conduct = Operation::undo(&undo, orders, rules, cluster, clock.now());
    let (report, end) = conduct_to_its_end(place, conduct, &lock).await?;
    if end == OperationEnd::Done {
        lock.record_undone(&past, clock).await?;
    }
    print.output.print(&report, report::table)?;
    ended(end, &report)
}

/// Lists what the journal of the context tells of.
pub async fn journal(args: JournalArgs, connection: ConnectionArgs) -> Result<(), CliError> {
    let connection = connect::connect(&connection.options()).await?;
    let journal = Journal::of(&connection.context)?;
    let rows: Vec<PastReport> = operations(&journal.lines()?).iter().map(PastReport::new).collect();
    let report = JournalReport {
        schema: "kordon.journal/v1",
        file: journal.path().display().to_string(),
        operations: rows,
    };
    args.output.print(&report, table)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JournalReport {
    schema: &'static str,
    file: String,
    operations: Vec<PastReport>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PastReport {
    operation: OperationId,
    started: Timestamp,
    last: Timestamp,
    by: String,
    why: String,
    action: String,
    command: String,
    nodes: Vec<NodeName>,
    pods: usize,
    overrides: Vec<String>,
    /// Null where it was cut off, or is at work.
    end: Option<String>,
    undone: bool,
    /// Nodes that it may have cordoned.
    cordoned: Vec<NodeName>,
}

impl PastReport {
    fn new(past: &JournaledOperation) -> Self {
        let start = &past.start;
        Self {
            operation: past.id.clone(),
            started: past.started,
            last: past.last,
            by: start.by.clone(),
            why: start.why.clone(),
            action: start.action.clone(),
            command: start.command.clone(),
            nodes: start.nodes.iter().map(|(node, _)| node.clone()).collect(),
            pods: start.pods.len(),
            overrides: start.overrides.clone(),
            end: past.ended.clone(),
            undone: past.undone,
            cordoned: past.cordoned().cloned().collect(),
        }
    }
}

fn table(report: &JournalReport) -> String {
    let mut out = format!("{}\n", report.file);
    let row = |past: &PastReport| {
        let nodes: Vec<&str> = past.nodes.iter().map(|node| &**node).collect();
        let end = past.end.clone().unwrap_or_else(|| "not over".into());
        [
            past.operation.to_string(),
            past.started.to_time(),
            past.by.clone(),
            if nodes.is_empty() { none() } else { nodes.join(",") },
            past.pods.to_string(),
            if past.undone { format!("{end}, undone") } else { end },
        ]
    };
    let rows = report.operations.iter().map(row).collect();
    section(&mut out, ["OPERATION", "STARTED", "BY", "NODES", "PODS", "ENDED"], rows);
    out
}
