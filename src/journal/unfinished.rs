//! What the journal tells of undertakings: which are not over, what they may have done, and what would undo them.

use std::collections::{BTreeMap, BTreeSet};

use super::{JournalLine, LineKind, OperationStart};
use crate::{
    cluster::{NodeName, OperationId},
    operation,
    plan::{Undo, undo::NodeUndo},
    time::Timestamp,
};

/// An undertaking as the journal tells of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JournaledOperation {
    pub id: OperationId,
    pub began: Timestamp,
    /// The last line of it.
    pub last: Timestamp,
    pub beginning: OperationStart,
    /// How it ended; none where it was cut off, or is at work.
    pub ended: Option<String>,
    /// Whether what it changed was put back.
    pub undone: bool,
    /// What may have been written, in order: done, or sent and never answered.
    undos: Vec<NodeUndo>,
    /// Nodes whose claim was answered as done.
    claimed: BTreeSet<NodeName>,
}

/// All undertakings that the lines tell of, oldest first.
pub fn undertakings(lines: &[JournalLine]) -> Vec<JournaledOperation> {
    let mut pasts: BTreeMap<&str, JournaledOperation> = BTreeMap::new();
    let mut asked: BTreeMap<(&str, u64), (&str, Option<&NodeUndo>)> = BTreeMap::new();
    for line in lines {
        if let LineKind::Began(beginning) = &line.what {
            let past = JournaledOperation {
                id: line.operation.clone(),
                began: line.at,
                beginning: (**beginning).clone(),
                ..JournaledOperation::default()
            };
            pasts.insert(&line.operation, past);
        }
        let Some(past) = pasts.get_mut(&*line.operation) else { continue };
        past.last = line.at;
        match &line.what {
            LineKind::Asked { id, object, undo, .. } => {
                asked.insert((&line.operation, *id), (object, undo.as_ref()));
                past.undos.extend(undo.clone());
            }
            LineKind::Came { id, outcome, .. } => {
                let Some((object, undo)) = asked.remove(&(&*line.operation, *id)) else { continue };
                let is_done = outcome == "done";
                if let Some(node) = object.strip_prefix("node/").filter(|_| is_done) {
                    past.claimed.insert(node.into());
                }
                // Without an answer it may have been done; with any other it was not.
                if let Some(undo) =
                    undo.filter(|_| !is_done && outcome != "noAnswer" && outcome != "unreachable")
                    && let Some(place) = past.undos.iter().rposition(|known| known == undo)
                {
                    past.undos.remove(place);
                }
            }
            // Numbers begin anew: what was not answered before never will be.
            LineKind::Resumed { .. } => {
                past.ended = None;
                asked.retain(|(operation, _), _| **operation != *line.operation);
            }
            LineKind::Ended { end, .. } => past.ended = Some(end.clone()),
            LineKind::Undone { .. } => past.undone = true,
            LineKind::Began(_) | LineKind::Said { .. } => {}
        }
    }
    let mut pasts: Vec<JournaledOperation> = pasts.into_values().collect();
    pasts.sort_by(|a, b| (a.began, &a.id).cmp(&(b.began, &b.id)));
    pasts
}

impl JournaledOperation {
    /// Whether it is a drain that was cut off, or is at work still.
    pub fn is_unfinished(&self) -> bool {
        self.ended.is_none() && self.beginning.drain.is_some()
    }

    /// What may have to be put back: the first change of each thing is the one that knows how it was.
    pub fn undo(&self) -> Undo {
        let mut nodes: Vec<NodeUndo> = Vec::new();
        for undo in &self.undos {
            match nodes.iter_mut().find(|known| known.node == undo.node && known.uid == undo.uid) {
                None => nodes.push(undo.clone()),
                Some(known) => {
                    for back in &undo.steps {
                        if !known.steps.contains(back) {
                            known.steps.push(back.clone());
                        }
                    }
                }
            }
        }
        Undo { nodes }
    }

    /// The nodes that it may have cordoned.
    pub fn cordoned(&self) -> impl Iterator<Item = &NodeName> {
        let cordons = |undo: &&NodeUndo| undo.steps.contains(&crate::plan::undo::UndoStep::Uncordon);
        self.undos.iter().filter(cordons).map(|undo| &undo.node)
    }

    /// What whoever resumes it has to know.
    pub fn to_resume(&self) -> operation::PriorRun {
        operation::PriorRun {
            cordoned: self.claimed.clone(),
            pods: self.beginning.pods.iter().cloned().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::plan::{DrainOptions, undo::UndoStep};

    fn line(what: LineKind) -> JournalLine {
        JournalLine { at: Timestamp::from_secs(1_800_000_000), operation: "p".into(), what }
    }

    fn began() -> JournalLine {
        let drain = Some(DrainOptions::default());
        line(LineKind::Began(Box::new(OperationStart {
            action: "drain".into(),
            drain,
            ..OperationStart::default()
        })))
    }

    fn cordon(id: u64, node: &str) -> JournalLine {
        let undo = NodeUndo { node: node.into(), uid: "u".into(), steps: vec![UndoStep::Uncordon] };
        line(LineKind::Asked {
            id,
            object: format!("node/{node}"),
            task: "cordon".into(),
            why: String::new(),
            method: "PATCH".into(),
            path: String::new(),
            body: Value::Null,
            undo: Some(undo),
        })
    }

    fn came(id: u64, outcome: &str) -> JournalLine {
        line(LineKind::Came { id, outcome: outcome.into(), text: String::new() })
    }

    #[test]
    fn a_drain_without_an_end_is_unfinished_and_one_that_was_resumed_may_be_again() {
        let mut lines = vec![began()];
        assert!(undertakings(&lines)[0].is_unfinished());
        lines.push(line(LineKind::Ended { end: "cancelled".into(), text: String::new() }));
        assert!(!undertakings(&lines)[0].is_unfinished());
        lines.push(line(LineKind::Resumed { by: "bob".into() }));
        assert!(undertakings(&lines)[0].is_unfinished());
    }

    #[test]
    fn a_cordon_that_was_never_answered_may_have_been_done_and_one_refused_was_not() {
        let lines = [
            began(),
            cordon(1, "done"),
            came(1, "done"),
            cordon(2, "cut"),
            cordon(3, "no"),
            came(3, "conflict"),
        ];
        let past = &undertakings(&lines)[0];
        let nodes: Vec<_> = past.undo().nodes.into_iter().map(|undo| undo.node).collect();
        assert_eq!(nodes, ["done".into(), "cut".into()]);
        assert_eq!(past.to_resume().cordoned, ["done".into()].into());
    }
}
