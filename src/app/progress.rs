//! The rows of an operation: blocked pods with their budgets, nodes, pods in progress, finished pods, its log.

use super::{
    filter::{Filter, Filterable},
    listing::Listing,
    operations::OperationEntry,
    pane::Pane,
};
use kordon_core::{
    cluster::{Key, OperationId},
    operation::{OperationProgress, PodProgress, PodProgressStage},
};

/// The open progress of an operation.
#[derive(Clone, Debug)]
pub struct Progress {
    /// Operation that is shown.
    pub operation: OperationId,
    /// Pane from which the progress was opened.
    pub from: Pane,
    pub list: Listing<ProgressRow>,
}

/// A row of an operation's progress: an index into a list of the operation, or the number of a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgressRow {
    Section(&'static str),
    Node(usize),
    Pod(usize),
    /// A budget that blocks pods.
    Budget(usize),
    Notice(usize),
}

impl Progress {
    pub fn new(operation: OperationId, from: Pane) -> Self {
        Self { operation, from, list: Listing::default() }
    }

    /// The row at an index of the list.
    pub fn row(&self, place: usize) -> Option<ProgressRow> {
        self.list.keys().get(place).copied()
    }

    /// The pod that the selected row is about.
    pub fn selected_pod<'a>(&self, report: &'a OperationProgress) -> Option<&'a Key> {
        match *self.list.selected()? {
            ProgressRow::Pod(place) => report.pods.get(place).map(|row| &row.pod),
            ProgressRow::Section(_)
            | ProgressRow::Node(_)
            | ProgressRow::Budget(_)
            | ProgressRow::Notice(_) => None,
        }
    }

    /// Rebuilds the rows from the progress of the operation.
    pub fn arrange(&mut self, entry: &OperationEntry, filter: &Filter) {
        let passes = |row: ProgressRow| filter.is_empty() || filter.matches(&FilterableRow { entry, row });
        let mut kept = Vec::new();
        for (title, rows) in sections(entry) {
            let rows: Vec<ProgressRow> = rows.into_iter().filter(|row| passes(*row)).collect();
            if !rows.is_empty() {
                kept.push(ProgressRow::Section(title));
                kept.extend(rows);
            }
        }
        self.list.replace(kept);
    }
}

fn sections(entry: &OperationEntry) -> [(&'static str, Vec<ProgressRow>); 5] {
    let report = &entry.progress;
    let mut pods: Vec<usize> = (0..report.pods.len()).collect();
    // Pods that the operation waits for come first. Pods that ended badly come before those that ended well.
    pods.sort_by_key(|place| urgency(&report.pods[*place]));
    let over = |place: &usize| matches!(report.pods[*place].stage, PodProgressStage::Ended(_));
    let (over, there): (Vec<usize>, Vec<usize>) = pods.into_iter().partition(over);
    let is_blocked = |place: &usize| matches!(report.pods[*place].stage, PodProgressStage::Blocked { .. });
    let (blocked, there): (Vec<usize>, Vec<usize>) = there.into_iter().partition(is_blocked);
    let rows = |places: Vec<usize>| places.into_iter().map(ProgressRow::Pod).collect::<Vec<_>>();
    let budgets = (0..entry.blocking.len()).map(ProgressRow::Budget);
    let blocked =
        if blocked.is_empty() { Vec::new() } else { rows(blocked).into_iter().chain(budgets).collect() };
    let said = entry.notices.numbers().map(ProgressRow::Notice);
    [
        ("blocked", blocked),
        ("nodes", (0..report.nodes.len()).map(ProgressRow::Node).collect()),
        ("in progress", rows(there)),
        ("finished", rows(over)),
        ("log", said.collect()),
    ]
}

fn urgency(row: &PodProgress) -> u8 {
    match &row.stage {
        PodProgressStage::Blocked { .. } => 0,
        PodProgressStage::Terminating { .. } => 1,
        PodProgressStage::Requested => 2,
        PodProgressStage::Waiting => 3,
        PodProgressStage::Ended(end) => 4 + u8::from(end.is_success()) + u8::from(end.word() == "stays"),
    }
}

/// A row with its operation, to which filters are applied.
struct FilterableRow<'a> {
    entry: &'a OperationEntry,
    row: ProgressRow,
}

impl Filterable for FilterableRow<'_> {
    fn field(&self, key: &str) -> Option<String> {
        let report = &self.entry.progress;
        match (self.row, key) {
            (ProgressRow::Pod(place), "pod" | "name") => Some(report.pods[place].pod.name.to_string()),
            (ProgressRow::Pod(place), "ns" | "namespace") => {
                Some(report.pods[place].pod.namespace.to_string())
            }
            (ProgressRow::Pod(place), "node") => report.pods[place].node.as_ref().map(ToString::to_string),
            (ProgressRow::Pod(place), "stage") => Some(report.pods[place].stage.word().into()),
            (ProgressRow::Node(place), "node" | "name") => Some(report.nodes[place].node.to_string()),
            (ProgressRow::Node(place), "stage") => Some(report.nodes[place].stage.word().into()),
            _ => None,
        }
    }

    fn texts(&self, found: &mut dyn FnMut(&str)) {
        let report = &self.entry.progress;
        match self.row {
            ProgressRow::Section(_) => {}
            ProgressRow::Node(place) => {
                found(&report.nodes[place].node);
                found(&report.nodes[place].text());
            }
            ProgressRow::Pod(place) => {
                found(&report.pods[place].pod.to_string());
                report.pods[place].node.iter().for_each(|node| found(node));
                found(&report.pods[place].stage.to_string());
            }
            ProgressRow::Budget(place) => {
                let blocking = &self.entry.blocking[place];
                found(&blocking.budget.to_string());
                found(&blocking.numbers);
            }
            ProgressRow::Notice(number) => {
                if let Some(notice) = self.entry.notices.get(number) {
                    found(&notice.subject);
                    found(&notice.text);
                }
            }
        }
    }
}
