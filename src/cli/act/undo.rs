//! `kordon drain --resume`, `kordon undo`, `kordon journal`: operations of the journal.

use clap::Args;
use serde::Serialize;

use super::{
    HowArgs, print_line,
    session::{self, OperationSession, Reach},
};
use crate::{
    cli::{
        CliError,
        columns::{none, section},
        connection::ConnectionArgs,
        once::Output,
        plan::{PrintArgs, answer_word, step_words},
    },
    cluster::{NodeName, OperationId},
    journal::{Journal, JournaledOperation, operations},
    k8s::{connect, validation},
    operation::approval::{Approval, PriorOperation, UndoProposal},
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

/// Resumes a drain that was interrupted.
pub async fn resume(
    id: Option<OperationId>,
    print: &PrintArgs,
    how: HowArgs,
    connection: ConnectionArgs,
) -> Result<(), CliError> {
    if !how.enforce {
        return Err(CliError::Usage("resuming a drain writes to the cluster: add --enforce".into()));
    }
    session::require_operator(&how)?;
    let session = OperationSession::start(Reach::Pods, print, &how, connection).await?;
    let prior = match id {
        Some(id) => session.context.prior(&id)?,
        None => only(session.context.interrupted()?)?,
    };
    let now = session.known.clock.now();
    let approval = Approval::resume(prior, session.terms(&how), &session.situation(), now);
    session.run(approval, print).await
}

/// The only interrupted drain.
fn only(mut interrupted: Vec<PriorOperation>) -> Result<PriorOperation, CliError> {
    match interrupted.len() {
        0 => Err(CliError::NotFound("an interrupted drain".into())),
        1 => Ok(interrupted.remove(0)),
        _ => {
            let ids: Vec<&str> = interrupted.iter().map(|prior| &*prior.id).collect();
            let text = "several drains were interrupted; name one with --resume=OPERATION:";
            Err(CliError::Usage(format!("{text} {}", ids.join(", "))))
        }
    }
}

/// Undoes what an operation changed on nodes, as far as nobody has changed it since.
pub async fn undo(args: UndoArgs, connection: ConnectionArgs) -> Result<(), CliError> {
    let UndoArgs { operation, how, print } = args;
    if how.enforce {
        session::require_operator(&how)?;
    }
    let session = OperationSession::start(Reach::Nodes, &print, &how, connection).await?;
    let prior = session.context.prior(&operation)?;
    if !how.enforce {
        let proposal = UndoProposal::new(prior, session.cluster());
        preview_undo(&proposal, print.validate, &session).await;
        return Ok(());
    }
    let approval = Approval::undo(prior, session.terms(&how), &session.situation());
    session.run(approval, &print).await
}

/// Prints what an undo would write.
async fn preview_undo(proposal: &UndoProposal, validate: bool, session: &OperationSession) {
    for step in &proposal.steps {
        print_line(&format!("would write: {}", step.call().body));
    }
    for kept in &proposal.kept {
        print_line(&format!("stays as it is: {kept}"));
    }
    if proposal.steps.is_empty() {
        print_line("nothing to undo");
    }
    if validate {
        let version = session.known.model.settings.version;
        let writer = &session.known.connection.writer;
        let answers = validation::validate(writer, &proposal.steps, version).await;
        for (step, answer) in proposal.steps.iter().zip(answers) {
            let answer = answer.map_or_else(none, |answer| format!("{} ({answer})", answer_word(&answer)));
            print_line(&format!("server-side dry run of {}: {answer}", step_words(step)));
        }
    }
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
