//! What has become of a maintenance, for the report at its end.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::cli::{
    page::{Emphasis, Page, none},
    table::PageTable,
};
use kordon_core::{
    cluster::{NodeName, OperationId},
    maintenance::LeftOutReason,
    operation::{OperationProgress, PodEnd, PodProgressStage},
    plan::words::counted,
};
use kordon_time::{Span, Timestamp};

/// How far a maintenance has come.
#[derive(Debug, Default)]
pub struct MaintenanceOutcome {
    nodes: BTreeMap<NodeName, NodeRecord>,
    waves: usize,
    /// Number of waves that the newest plan has, the next one included.
    pub waves_left: usize,
    /// Nodes that the newest plan has in no wave.
    pub left_out: Vec<(NodeName, LeftOutReason)>,
    moves: usize,
    repeated: usize,
}

/// What has become of a node.
#[derive(Debug, Default)]
struct NodeRecord {
    wave: usize,
    drained: Option<Timestamp>,
    worked: Option<Timestamp>,
    done: Option<Timestamp>,
    failed: Option<String>,
}

/// Something that has become of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeResult {
    Drained,
    /// The work on its machine is done.
    Worked,
    /// It is back in service.
    Done,
    Failed(String),
}

impl MaintenanceOutcome {
    /// Starts a wave with these nodes. Returns its number, from 1.
    pub fn next_wave(&mut self, nodes: &[NodeName]) -> usize {
        self.waves += 1;
        for node in nodes {
            self.nodes.entry(node.clone()).or_default().wave = self.waves;
        }
        self.waves
    }

    pub fn record(&mut self, node: &NodeName, result: NodeResult, now: Timestamp) {
        let record = self.nodes.entry(node.clone()).or_default();
        match result {
            NodeResult::Drained => record.drained = Some(now),
            NodeResult::Worked => record.worked = Some(now),
            NodeResult::Done => record.done = Some(now),
            NodeResult::Failed(why) => record.failed = Some(why),
        }
    }

    /// Counts the pods of a drain.
    pub fn count(&mut self, progress: &OperationProgress) {
        for pod in &progress.pods {
            let is_gone = matches!(pod.stage, PodProgressStage::Ended(PodEnd::Gone | PodEnd::Replaced));
            self.moves += usize::from(is_gone);
            self.repeated += usize::try_from(pod.tries.saturating_sub(1)).unwrap_or(usize::MAX);
        }
    }

    /// The nodes that failed, with the reasons; `None` if none did.
    pub fn failure(&self) -> Option<String> {
        let failed = self.nodes.iter().filter_map(|(node, record)| {
            let why = record.failed.as_ref()?;
            Some(format!("{node}: {why}"))
        });
        let failed: Vec<String> = failed.collect();
        (!failed.is_empty()).then(|| failed.join("; "))
    }
}

/// A maintenance that was carried out (`docs/reference/maintenance.md`). Every field is always present; values that do not
/// apply are null.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct MaintenanceOutcomeReport {
    /// `kordon.maintained/v1`: fields are added, never removed or renamed.
    schema: &'static str,
    /// The id of the maintenance: on the nodes, in the journal, for `--resume` and `--release`.
    pub operation: OperationId,
    /// When it started, or went on.
    began: Timestamp,
    /// When it ended or stopped.
    ended: Timestamp,
    /// How it ended: `done`, `partly` (some nodes are in no wave), `paused` (something failed; it can be resumed), `rolledBack`
    /// (something failed, and the nodes that were not drained are uncordoned), or `cancelled` (interrupted; it can be resumed).
    pub end: &'static str,
    /// Why it ended so; empty if it is done.
    pub says: String,
    /// Number of pods that left their node.
    moves: usize,
    /// Number of evictions that had to be repeated because they were refused or failed.
    repeated_evictions: usize,
    /// Time that the plan at the start gave, in seconds; `null` after a resume.
    planned_seconds: Option<i64>,
    /// Time that it took, in seconds.
    took_seconds: i64,
    /// The nodes that were in a wave, or are left out.
    nodes: Vec<MaintainedNodeReport>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct MaintainedNodeReport {
    /// The node.
    node: NodeName,
    /// Number of its wave, from 1; `null` if it is in no wave.
    wave: Option<usize>,
    /// `done`, `failed`, `begun` (its wave was interrupted) or `leftOut`.
    end: &'static str,
    /// Why it failed or is left out; empty otherwise.
    says: String,
    /// When the last pod of the node was gone.
    drained: Option<Timestamp>,
    /// When the work on the node's machine was done.
    worked: Option<Timestamp>,
    /// When the node was back in service.
    done: Option<Timestamp>,
}

impl MaintenanceOutcomeReport {
    pub fn new(
        outcome: MaintenanceOutcome,
        operation: OperationId,
        (began, ended): (Timestamp, Timestamp),
        planned: Option<Span>,
    ) -> Self {
        let mut nodes: Vec<MaintainedNodeReport> = outcome.nodes.into_iter().map(of_wave).collect();
        let left_out = outcome.left_out.into_iter().map(|(node, reason)| MaintainedNodeReport {
            node,
            wave: None,
            end: "leftOut",
            says: reason.to_string(),
            drained: None,
            worked: None,
            done: None,
        });
        nodes.extend(left_out);
        Self {
            schema: "kordon.maintained/v1",
            operation,
            began,
            ended,
            end: "done",
            says: String::new(),
            moves: outcome.moves,
            repeated_evictions: outcome.repeated,
            planned_seconds: planned.map(Span::as_secs),
            took_seconds: ended.since(began).as_secs(),
            nodes,
        }
    }

    /// Number of nodes that are in no wave.
    pub fn left_out(&self) -> usize {
        self.nodes.iter().filter(|node| node.wave.is_none()).count()
    }

    /// `12 nodes done in 38m, 96 pods moved`.
    pub fn in_short(&self) -> String {
        let done = self.nodes.iter().filter(|node| node.end == "done").count();
        let (nodes, pods) = (counted(done, "node", "nodes"), counted(self.moves, "pod", "pods"));
        let mut text = format!("{nodes} done in {}, {pods} moved", Span::from_secs(self.took_seconds));
        if let Some(planned) = self.planned_seconds {
            text.push_str(&format!(" (planned: {})", Span::from_secs(planned)));
        }
        text
    }
}

fn of_wave((node, record): (NodeName, NodeRecord)) -> MaintainedNodeReport {
    let NodeRecord { wave, drained, worked, done, failed } = record;
    let end = match (&failed, done) {
        (Some(_), _) => "failed",
        (None, Some(_)) => "done",
        (None, None) => "begun",
    };
    let says = failed.unwrap_or_default();
    MaintainedNodeReport { node, wave: Some(wave), end, says, drained, worked, done }
}

pub fn render(report: &MaintenanceOutcomeReport, out: &mut Page) {
    let (emphasis, end) = match report.end {
        "done" => (Emphasis::Good, String::new()),
        end => (Emphasis::Warning, format!("{end}: {}", report.says)),
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
