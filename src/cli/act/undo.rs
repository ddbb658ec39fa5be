//! `kordon drain --resume` and `kordon undo`: operations of the journal.

use clap::Args;
use serde::Serialize;

use super::{
    HowArgs, print_line,
    session::{self, OperationSession, Placing},
};
use crate::{
    cli::{
        CliError,
        connection::ConnectionArgs,
        page::{Emphasis, Page},
        plan::{PrintArgs, answer_word, step_words},
    },
    k8s::validation,
};
use kordon_core::{
    cluster::{NodeName, OperationId},
    operation::approval::{Approval, PriorOperation, UndoProposal},
    plan::Action,
};

/// Arguments of `kordon undo`.
#[derive(Args, Debug)]
pub struct UndoArgs {
    /// Id of the operation in the journal (default: the last operation that changed a node)
    #[arg(value_name = "OPERATION")]
    operation: Option<OperationId>,
    #[command(flatten)]
    how: HowArgs,
    #[command(flatten)]
    print: PrintArgs,
}

/// Resumes an interrupted drain.
pub async fn resume(
    id: Option<OperationId>,
    print: &PrintArgs,
    how: HowArgs,
    connection: ConnectionArgs,
) -> Result<(), CliError> {
    if !how.agreement.enforce {
        return Err(CliError::Usage("resuming a drain writes to the cluster: add --enforce".into()));
    }
    session::require_operator(&print.source, &how.agreement)?;
    let mut session = OperationSession::connect(Placing::Pods, print, &how, connection).await?;
    let prior = match id {
        Some(id) => session.context.prior(&id)?,
        None => only(session.context.interrupted()?)?,
    };
    let options = prior.drain.clone().unwrap_or_default();
    session.read(Action::Drain { nodes: names(&prior), options }).await?;
    let now = session.known.clock.now();
    let approval = Approval::resume(prior, session.terms(&how), &session.situation(), now);
    session.run(approval, print).await
}

/// Names of the nodes of an earlier operation.
fn names(prior: &PriorOperation) -> Vec<NodeName> {
    prior.nodes.iter().map(|(node, _)| node.clone()).collect()
}

/// Returns the interrupted drain if there is exactly one.
fn only(mut interrupted: Vec<PriorOperation>) -> Result<PriorOperation, CliError> {
    match interrupted.len() {
        0 => Err(CliError::NothingTo("resume: no drain was interrupted")),
        1 => Ok(interrupted.remove(0)),
        _ => {
            let ids: Vec<&str> = interrupted.iter().map(|prior| &*prior.id).collect();
            let text = "several drains were interrupted; name one with --resume=OPERATION:";
            Err(CliError::Usage(format!("{text} {}", ids.join(", "))))
        }
    }
}

/// Undoes what an operation changed on nodes. Values that have been changed again since the operation are kept.
pub async fn undo(args: UndoArgs, connection: ConnectionArgs) -> Result<(), CliError> {
    let UndoArgs { operation, how, print } = args;
    if how.agreement.enforce {
        session::require_operator(&print.source, &how.agreement)?;
    }
    let mut session = OperationSession::connect(Placing::Nothing, &print, &how, connection).await?;
    let prior = match operation {
        Some(operation) => session.context.prior(&operation)?,
        None => {
            let last = session.context.undoable(None)?;
            let last = last.ok_or(CliError::NothingTo("undo: no operation of this cluster changed nodes"))?;
            let (title, id, started) = (&last.title, &last.id, last.started_at.to_time());
            print_line(&format!("the last operation: {title} ({id}, started {started})"));
            last
        }
    };
    session.read(Action::Uncordon { nodes: names(&prior) }).await?;
    if !how.agreement.enforce {
        let proposal = UndoProposal::new(prior, session.cluster());
        return preview_undo(&proposal, &print, &session).await;
    }
    let approval = Approval::undo(prior, session.terms(&how), &session.situation());
    session.run(approval, &print).await
}

/// The writes of an undo.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct UndoReport {
    schema: &'static str,
    operation: OperationId,
    /// Writes of the undo. With `--dry-run=server`, each write has the server's answer.
    writes: Vec<UndoWriteReport>,
    /// Changes that the undo does not revert, because their values have been changed again since the operation.
    kept: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct UndoWriteReport {
    text: String,
    body: serde_json::Value,
    /// The server's answer to a dry run of the write; null without `--dry-run=server`.
    dry_run_result: Option<String>,
}

/// Prints the writes of an undo.
async fn preview_undo(
    proposal: &UndoProposal,
    print: &PrintArgs,
    session: &OperationSession,
) -> Result<(), CliError> {
    let answers = if print.validates() {
        let version = session.known.connection.version;
        validation::validate(&session.known.connection.writer, &proposal.steps, version).await
    } else {
        Vec::new()
    };
    let mut answers = answers.into_iter();
    let write = |step| UndoWriteReport {
        text: step_words(step),
        body: step.call().body,
        dry_run_result: answers.next().flatten().map(|answer| format!("{} ({answer})", answer_word(&answer))),
    };
    let report = UndoReport {
        schema: "kordon.undo/v1",
        operation: proposal.prior.id.clone(),
        writes: proposal.steps.iter().map(write).collect(),
        kept: proposal.kept.iter().map(ToString::to_string).collect(),
    };
    print.output.print(&report, undo_table)
}

fn undo_table(report: &UndoReport, out: &mut Page) {
    let mut lines = Vec::new();
    for write in &report.writes {
        lines.push(format!("would {}: {}", write.text, write.body));
        let answer = write.dry_run_result.as_ref();
        lines.extend(answer.map(|answer| format!("server-side dry run of {}: {answer}", write.text)));
    }
    lines.extend(report.kept.iter().map(|kept| format!("stays as it is: {kept}")));
    if report.writes.is_empty() {
        lines.push("nothing to undo".into());
    }
    lines.iter().for_each(|line| out.line(Emphasis::Plain, line));
}
