//! Operations read from a journal: which are unfinished, what they may have written, and how to undo it.

use std::collections::{BTreeMap, BTreeSet};

use super::{JournalLine, LineKind, OperationStart};
use kordon_core::{
    cluster::{NodeName, OperationId},
    operation::{
        PriorRun,
        approval::{self, PriorOperation},
    },
    plan::{
        Undo,
        undo::{NodeUndo, ScaleUndo, UndoStep, WriteUndo},
    },
};
use kordon_time::Timestamp;

/// An operation as read from the journal.
#[derive(Clone, Debug, PartialEq)]
pub struct JournaledOperation {
    pub id: OperationId,
    pub started: Timestamp,
    /// Time of the operation's last line.
    pub last: Timestamp,
    pub start: OperationStart,
    /// Kind of the operation's end; none if the operation was interrupted or is still running.
    pub ended: Option<String>,
    /// Whether another operation undid the changes of this one.
    pub undone: bool,
    /// Undo of each write that succeeded or has no response, in the order of the writes. A write without a response may
    /// have been made.
    undos: Vec<WriteUndo>,
    /// Nodes on which a write of this operation succeeded.
    claimed: BTreeSet<NodeName>,
}

/// Returns the operations that the lines describe, oldest first.
pub fn operations(lines: &[JournalLine]) -> Vec<JournaledOperation> {
    let mut found: BTreeMap<&OperationId, Reader> = BTreeMap::new();
    for line in lines {
        if let LineKind::Started(start) = &line.kind {
            found.insert(&line.operation, Reader::new(line, start));
        }
        if let Some(reader) = found.get_mut(&line.operation) {
            reader.read(line);
        }
    }
    let mut operations: Vec<JournaledOperation> = found.into_values().map(|reader| reader.found).collect();
    operations.sort_by(|a, b| (a.started, &a.id).cmp(&(b.started, &b.id)));
    operations
}

/// Reads the lines of one operation.
struct Reader<'a> {
    found: JournaledOperation,
    /// Object and undo of each request that has no outcome yet, by request id.
    in_flight: BTreeMap<u64, (&'a str, Option<&'a WriteUndo>)>,
}

impl<'a> Reader<'a> {
    fn new(line: &JournalLine, start: &OperationStart) -> Self {
        let found = JournaledOperation {
            id: line.operation.clone(),
            started: line.at,
            last: line.at,
            start: start.clone(),
            ended: None,
            undone: false,
            undos: Vec::new(),
            claimed: BTreeSet::new(),
        };
        Self { found, in_flight: BTreeMap::new() }
    }

    fn read(&mut self, line: &'a JournalLine) {
        self.found.last = line.at;
        match &line.kind {
            LineKind::Request { id, object, undo, .. } => {
                self.in_flight.insert(*id, (object, undo.as_ref()));
                self.found.undos.extend(undo.clone());
            }
            LineKind::Outcome { id, outcome, .. } => self.on_outcome(*id, outcome),
            LineKind::Resumed { .. } => {
                self.found.ended = None;
                // A resumed operation counts request ids from the start again. Later outcomes therefore do not belong
                // to the earlier requests.
                self.in_flight.clear();
            }
            LineKind::Ended { end, .. } => self.found.ended = Some(end.clone()),
            LineKind::Undone { .. } => self.found.undone = true,
            LineKind::Started(_) | LineKind::Notice { .. } => {}
        }
    }

    fn on_outcome(&mut self, id: u64, outcome: &str) {
        let Some((object, undo)) = self.in_flight.remove(&id) else { return };
        match outcome {
            "done" if undo.is_none() && object.starts_with("deployment/") => self.on_scaled_back(object),
            "done" => self.found.claimed.extend(object.strip_prefix("node/").map(NodeName::from)),
            // The write has no response, so it may have been made.
            "noResponse" | "unreachable" => {}
            _ => {
                let of_this = |known: &WriteUndo| Some(known) == undo;
                if let Some(place) = self.found.undos.iter().rposition(of_this) {
                    self.found.undos.remove(place);
                }
            }
        }
    }

    /// A Deployment that is scaled back needs no undo.
    fn on_scaled_back(&mut self, object: &str) {
        let is_of = |undo: &WriteUndo| match undo {
            WriteUndo::Scale(scale) => format!("deployment/{}", scale.deployment) == object,
            WriteUndo::Node(_) => false,
        };
        self.found.undos.retain(|undo| !is_of(undo));
    }
}

impl JournaledOperation {
    /// Whether the operation is a drain without a recorded end: it was interrupted or is still running.
    pub fn is_unfinished(&self) -> bool {
        self.ended.is_none() && self.start.drain.is_some()
    }

    /// Returns the undo of all writes that may have been made. Each node has its distinct steps, in the order of the
    /// writes.
    pub fn undo(&self) -> Undo {
        let mut nodes: Vec<NodeUndo> = Vec::new();
        for undo in self.node_undos() {
            match nodes.iter_mut().find(|known| known.node == undo.node && known.uid == undo.uid) {
                None => nodes.push(undo.clone()),
                Some(known) => {
                    for step in &undo.steps {
                        if !known.steps.contains(step) {
                            known.steps.push(step.clone());
                        }
                    }
                }
            }
        }
        Undo { nodes, scales: self.scales() }
    }

    fn node_undos(&self) -> impl Iterator<Item = &NodeUndo> {
        self.undos.iter().filter_map(|undo| match undo {
            WriteUndo::Node(undo) => Some(undo),
            WriteUndo::Scale(_) => None,
        })
    }

    /// Deployments that the operation may have left scaled up, each once.
    fn scales(&self) -> Vec<ScaleUndo> {
        let mut found: Vec<ScaleUndo> = Vec::new();
        for undo in &self.undos {
            if let WriteUndo::Scale(undo) = undo
                && !found.contains(undo)
            {
                found.push(undo.clone());
            }
        }
        found
    }

    /// The nodes that the operation may have cordoned.
    pub fn cordoned(&self) -> impl Iterator<Item = &NodeName> {
        let cordons = |undo: &&NodeUndo| undo.steps.contains(&UndoStep::Uncordon);
        self.node_undos().filter(cordons).map(|undo| &undo.node)
    }

    /// Summary of the operation for a resume or an undo.
    pub fn prior(&self) -> PriorOperation {
        let OperationStart { by, reason, until, drain, nodes, pods, confirmation, .. } = self.start.clone();
        PriorOperation {
            id: self.id.clone(),
            title: self.title(),
            started_at: self.started,
            by,
            reason,
            until,
            end: self.ended.clone(),
            undone: self.undone,
            drain,
            nodes,
            confirmation,
            undo: self.undo(),
            run: PriorRun {
                cordoned: self.claimed.clone(),
                pods: pods.into_iter().collect(),
                surges: self.scales(),
            },
        }
    }

    /// Title of the operation, such as `drain n1, n2`.
    fn title(&self) -> String {
        let OperationStart { action, nodes, pods, .. } = &self.start;
        let nodes = nodes.iter().map(|(node, _)| node.to_string());
        let pods = pods.iter().map(|(pod, _)| pod.to_string());
        let names: Vec<String> = if nodes.len() == 0 { pods.collect() } else { nodes.collect() };
        approval::title(action, &names)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use kordon_core::plan::DrainOptions;

    fn line(kind: LineKind) -> JournalLine {
        let operation = "p".parse().expect("an id");
        JournalLine { at: Timestamp::from_secs(1_800_000_000), operation, kind }
    }

    fn started() -> JournalLine {
        let drain = Some(DrainOptions::default());
        line(LineKind::Started(Box::new(OperationStart {
            action: "drain".into(),
            drain,
            ..OperationStart::default()
        })))
    }

    fn cordon(id: u64, node: &str) -> JournalLine {
        let undo = NodeUndo { node: node.into(), uid: "u".into(), steps: vec![UndoStep::Uncordon] };
        line(LineKind::Request {
            id,
            object: format!("node/{node}"),
            request: "cordon".into(),
            why: String::new(),
            method: "PATCH".into(),
            path: String::new(),
            body: Value::Null,
            undo: Some(WriteUndo::Node(undo)),
        })
    }

    fn scale(id: u64, undo: Option<ScaleUndo>) -> JournalLine {
        line(LineKind::Request {
            id,
            object: "deployment/web/front".into(),
            request: "scale".into(),
            why: String::new(),
            method: "PATCH".into(),
            path: String::new(),
            body: Value::Null,
            undo: undo.map(WriteUndo::Scale),
        })
    }

    fn outcome(id: u64, outcome: &str) -> JournalLine {
        line(LineKind::Outcome { id, outcome: outcome.into(), text: String::new() })
    }

    #[test]
    fn a_drain_without_an_end_is_unfinished_and_so_is_one_that_was_resumed() {
        let mut lines = vec![started()];
        assert!(operations(&lines)[0].is_unfinished());
        lines.push(line(LineKind::Ended { end: "cancelled".into(), text: String::new() }));
        assert!(!operations(&lines)[0].is_unfinished());
        lines.push(line(LineKind::Resumed { by: "bob".into() }));
        assert!(operations(&lines)[0].is_unfinished());
    }

    #[test]
    fn a_deployment_is_scaled_back_by_an_undo_until_the_operation_has_done_it() {
        let undo = ScaleUndo {
            deployment: kordon_core::cluster::Key::new("web", "front"),
            uid: "u".into(),
            before: 1,
            after: 2,
        };
        let mut lines = vec![started(), scale(1, Some(undo.clone()))];
        assert_eq!(
            operations(&lines)[0].undo().scales,
            std::slice::from_ref(&undo),
            "it may have been written"
        );
        let refused = [&lines[..], &[outcome(1, "conflict")]].concat();
        assert!(operations(&refused)[0].undo().scales.is_empty(), "it was not written");
        lines.push(outcome(1, "done"));
        assert_eq!(operations(&lines)[0].prior().run.surges, std::slice::from_ref(&undo));
        lines.extend([scale(2, None), outcome(2, "conflict")]);
        assert_eq!(operations(&lines)[0].undo().scales, [undo], "it is still scaled up");
        lines.extend([scale(3, None), outcome(3, "done")]);
        assert!(operations(&lines)[0].undo().is_empty());
    }

    #[test]
    fn a_cordon_without_an_answer_may_have_been_made_and_a_refused_one_was_not() {
        let lines = [
            started(),
            cordon(1, "done"),
            outcome(1, "done"),
            cordon(2, "cut"),
            cordon(3, "no"),
            outcome(3, "conflict"),
        ];
        let past = &operations(&lines)[0];
        let nodes: Vec<_> = past.undo().nodes.into_iter().map(|undo| undo.node).collect();
        assert_eq!(nodes, ["done".into(), "cut".into()]);
        assert_eq!(past.prior().run.cordoned, ["done".into()].into());
    }
}
