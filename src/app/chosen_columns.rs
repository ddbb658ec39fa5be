//! The columns of the nodes and pods that the configuration chooses.

use super::{App, pane::Pane};
use kordon_core::cluster::nearest::nearest;

/// Columns of the nodes, in the order of the wide table.
const NODES: &[&str] = &[
    "node",
    "state",
    "heartbeat",
    "renewals",
    "grace",
    "next",
    "zone",
    "pods",
    "cpu req",
    "cpu used",
    "mem req",
    "mem used",
    "extended",
    "devices",
    "roles",
    "probe",
    "address",
    "kubelet",
    "kernel",
    "type",
    "age",
    "taints",
    "conditions",
    "reason",
    "message",
];

/// Columns of the pods of a node, in the order of the table.
const PODS: &[&str] = &[
    "pod",
    "ready",
    "unmet gates",
    "phase",
    "eviction",
    "owner",
    "local data",
    "priority",
    "cpu",
    "mem",
    "age",
];

/// A column that the configuration chooses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChosenColumn {
    /// A column of the table, by its place.
    Own(usize),
    /// The value of a label.
    Label(String),
}

impl ChosenColumn {
    /// Parses a column of a pane: its heading, `name` for the first, or `label:KEY`.
    ///
    /// # Errors
    /// There is no such column; the text names the nearest, or all.
    pub fn parse(pane: Pane, text: &str) -> Result<Self, String> {
        let names = names(pane);
        if let Some(label) = text.strip_prefix("label:").filter(|label| !label.is_empty()) {
            return Ok(Self::Label(label.to_owned()));
        }
        match names.iter().position(|name| *name == text) {
            Some(place) => Ok(Self::Own(place)),
            None if text == "name" => Ok(Self::Own(0)),
            None => {
                let meant =
                    nearest(text, names.iter().copied()).map(|meant| format!("did you mean {meant:?}?"));
                let meant = meant.unwrap_or_else(|| format!("there are {}, label:KEY", names.join(", ")));
                Err(format!("{text:?} is not a column: {meant}"))
            }
        }
    }
}

/// Names of the columns of a pane; empty for a pane whose columns cannot be chosen.
pub const fn names(pane: Pane) -> &'static [&'static str] {
    match pane {
        Pane::Nodes => NODES,
        Pane::Pods => PODS,
        _ => &[],
    }
}

impl App {
    /// Whether the nodes show the live usage of CPU or memory.
    pub fn shows_usage(&self) -> bool {
        let is_used = |column: &ChosenColumn| matches!(column, ChosenColumn::Own(place) if NODES[*place].ends_with("used"));
        match self.preferences.columns.get(&Pane::Nodes) {
            Some(chosen) => chosen.iter().any(is_used),
            None => self.screen.wide,
        }
    }
}
