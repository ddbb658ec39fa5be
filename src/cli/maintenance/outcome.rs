//! The report of a maintenance that was carried out.

use serde::Serialize;

use crate::cli::{
    page::{Emphasis, Page, none},
    table::PageTable,
};
use kordon_core::{
    cluster::{NodeName, OperationId},
    maintenance::{MaintenanceEnd, MaintenanceEndKind, NodeRecord, in_short},
};
use kordon_time::{Span, Timestamp};

/// A maintenance that was carried out (`docs/reference/maintenance.md`). Every field is always present; values that do
/// not apply are null.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct MaintenanceOutcomeReport {
    /// `kordon.maintained/v1`: fields are added, never removed or renamed.
    schema: &'static str,
    /// The id of the maintenance, by which the nodes, the journal, `--resume` and `--release` name it.
    operation: OperationId,
    /// When the maintenance started or was resumed.
    began: Timestamp,
    /// When the maintenance ended or stopped.
    ended: Timestamp,
    /// How the maintenance ended: `done`, `partly` (some nodes are in no wave), `paused` (something failed; it can be
    /// resumed), `rolledBack` (something failed, and the nodes that were not drained are uncordoned), or `cancelled`
    /// (interrupted; it can be resumed).
    end: &'static str,
    /// Why the maintenance ended in this way; empty for `done`.
    says: String,
    /// Number of pods that left their node, and whose replacement was to land on a node: without lost and finished
    /// pods.
    moves: usize,
    /// Number of evictions that had to be repeated because they were refused or failed.
    repeated_evictions: usize,
    /// Planned time of the maintenance, as of its start, in seconds: from the start to the end of the last wave, with
    /// the time until windows open; `null` after a resume.
    planned_seconds: Option<i64>,
    /// Time that the maintenance took, in seconds.
    took_seconds: i64,
    /// The nodes that were in a wave, those whose wave has not started, and those that were left out.
    nodes: Vec<MaintainedNodeReport>,
    #[serde(skip)]
    end_in_words: &'static str,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct MaintainedNodeReport {
    /// The node.
    node: NodeName,
    /// Number of the node's wave, from 1; `null` if the node is in no wave, or its wave has not started.
    wave: Option<usize>,
    /// Outcome for the node: `done`, `failed`, `begun` (its wave was interrupted), `waiting` (its wave has not started;
    /// a resume goes on with it), `released` (it was not drained, and the rollback has uncordoned it) or `leftOut`.
    end: &'static str,
    /// Why the node failed or is left out; empty otherwise.
    says: String,
    /// When the last pod of the node was gone.
    drained: Option<Timestamp>,
    /// When the work on the node's machine was done.
    worked: Option<Timestamp>,
    /// When the node was back in service.
    done: Option<Timestamp>,
}

impl MaintenanceOutcomeReport {
    /// `planned` is the duration that was planned at the start; `None` after a resume.
    pub fn new(end: MaintenanceEnd, planned: Option<Span>) -> Self {
        let MaintenanceEnd { operation, began, ended, kind, says, outcome, not_started } = end;
        let in_wave = outcome.nodes.into_iter().map(|(node, record)| of_wave(node, record, kind));
        let waiting = unfinished(kind, "waiting");
        let waiting = not_started.into_iter().map(|node| in_no_wave(node, waiting, String::new()));
        let left_out = outcome.left_out.into_iter();
        let left_out = left_out.map(|(node, reason)| in_no_wave(node, "leftOut", reason.to_string()));
        let nodes = in_wave.chain(waiting).chain(left_out).collect();
        Self {
            schema: "kordon.maintained/v1",
            operation,
            began,
            ended,
            end: kind.as_str(),
            says,
            moves: outcome.moves,
            repeated_evictions: outcome.repeated,
            planned_seconds: planned.map(Span::as_secs),
            took_seconds: ended.since(began).as_secs(),
            nodes,
            end_in_words: kind.text(),
        }
    }

    /// Summary of the end: `12 nodes done in 38m, 96 pods moved (planned: 36m)`.
    fn in_short(&self) -> String {
        let done = self.nodes.iter().filter(|node| node.end == "done").count();
        let mut text = in_short(done, Span::from_secs(self.took_seconds), self.moves);
        if let Some(planned) = self.planned_seconds {
            text.push_str(&format!(" (planned: {})", Span::from_secs(planned)));
        }
        text
    }
}

/// The end of a node that is not drained: `otherwise`, unless a rollback has uncordoned the node.
const fn unfinished(kind: MaintenanceEndKind, otherwise: &'static str) -> &'static str {
    match kind {
        MaintenanceEndKind::RolledBack => "released",
        MaintenanceEndKind::Done
        | MaintenanceEndKind::Partly
        | MaintenanceEndKind::Paused
        | MaintenanceEndKind::Cancelled => otherwise,
    }
}

fn in_no_wave(node: NodeName, end: &'static str, says: String) -> MaintainedNodeReport {
    MaintainedNodeReport { node, wave: None, end, says, drained: None, worked: None, done: None }
}

fn of_wave(node: NodeName, record: NodeRecord, kind: MaintenanceEndKind) -> MaintainedNodeReport {
    let NodeRecord { wave, drained, worked, done, failed } = record;
    let end = match (&failed, done, drained) {
        (Some(_), _, _) => "failed",
        (None, Some(_), _) => "done",
        (None, None, Some(_)) => "begun",
        (None, None, None) => unfinished(kind, "begun"),
    };
    let says = failed.unwrap_or_default();
    MaintainedNodeReport { node, wave: Some(wave), end, says, drained, worked, done }
}

pub fn render(report: &MaintenanceOutcomeReport, out: &mut Page) {
    let (emphasis, end) = match report.end {
        "done" => (Emphasis::Good, String::new()),
        _ => (Emphasis::Warning, format!("{}: {}", report.end_in_words, report.says)),
    };
    out.line(Emphasis::Good, &report.in_short());
    if !end.is_empty() {
        out.line(emphasis, &end);
    }
    let time = |at: Option<Timestamp>| at.map_or_else(none, Timestamp::to_time);
    PageTable::new(&report.nodes)
        .key("NODE", |node| node.node.to_string())
        .essential("WAVE", |node| node.wave.map_or_else(none, |wave| wave.to_string()))
        .right()
        .essential("END", |node| node.end.to_owned())
        .useful("DRAINED", move |node| time(node.drained))
        .useful("WORKED", move |node| time(node.worked))
        .useful("DONE", move |node| time(node.done))
        .useful("WHY", |node| if node.says.is_empty() { none() } else { node.says.clone() })
        .flexible()
        .print(out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::documented;

    #[test]
    fn the_page_documents_every_field() {
        documented::check::<MaintenanceOutcomeReport>("maintained");
    }
}
