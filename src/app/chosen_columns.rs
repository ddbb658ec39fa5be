//! Configured columns of the lists, and their widths.

use std::collections::BTreeMap;

use super::{App, pane::Pane};
use kordon_core::cluster::nearest::nearest;

/// Columns of the nodes, in the order of the table that shows all of them.
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
    "terminating",
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

const ZONES: &[&str] = &["zone", "state", "not ready", "unhealthy", "rate", "nodes"];
const EVENTS: &[&str] = &["last", "type", "reason", "object", "count", "message", "source"];
const EVICTIONS: &[&str] = &["sign", "in", "pod", "node", "outcome"];
const PENDING: &[&str] = &["for", "pod", "why", "what would help"];
const DEPARTURES: &[&str] = &["ago", "kind", "pod", "node", "evidence"];
const BUDGETS: &[&str] = &["budget", "room", "healthy", "rule", "pods", "blocks", "drains"];
const AUDIT: &[&str] = &["object", "cause", "pods", "nodes", "what"];

/// Configured columns of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PaneColumns {
    /// The columns in their order; empty for the default columns.
    pub show: Vec<ChosenColumn>,
    /// Widths in cells of the columns whose width is configured.
    pub widths: BTreeMap<ChosenColumn, u16>,
}

/// A column that the configuration chooses.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChosenColumn {
    /// A built-in column of the list, by its heading.
    Own(&'static str),
    /// A column with the value of the label that has this key.
    Label(String),
    /// A column with the value of the annotation that has this key.
    Annotation(String),
}

impl ChosenColumn {
    /// Parses a column of a pane: its heading, `name` for the column that names each row's object, `label:KEY` or
    /// `annotation:KEY`.
    ///
    /// # Errors
    /// There is no such column; the text names the nearest column, or all columns.
    pub fn parse(pane: Pane, text: &str) -> Result<Self, String> {
        if let Some(key) = text.strip_prefix("label:").filter(|key| !key.is_empty()) {
            let fault = || format!("{text:?} is not a column: {} have no labels here", title(pane));
            return has_labels(pane).then(|| Self::Label(key.to_owned())).ok_or_else(fault);
        }
        if let Some(key) = text.strip_prefix("annotation:").filter(|key| !key.is_empty()) {
            let fault = || format!("{text:?} is not a column: kordon knows annotations of nodes only");
            return (pane == Pane::Nodes).then(|| Self::Annotation(key.to_owned())).ok_or_else(fault);
        }
        let names = names(pane);
        let wanted = if text == "name" { subject(pane) } else { text };
        match names.iter().find(|name| **name == wanted) {
            Some(name) => Ok(Self::Own(name)),
            None => {
                let all: Vec<&str> = names.iter().copied().chain(["name"]).collect();
                let meant =
                    nearest(text, all.iter().copied()).map(|meant| format!("did you mean {meant:?}?"));
                let meant = meant.unwrap_or_else(|| format!("there are {}{}", all.join(", "), keyed(pane)));
                Err(format!("{text:?} is not a column: {meant}"))
            }
        }
    }

    /// The key of the label or annotation that the column shows; `None` for other columns.
    pub fn key(&self) -> Option<&str> {
        match self {
            Self::Own(_) => None,
            Self::Label(key) | Self::Annotation(key) => Some(key),
        }
    }
}

/// Names of the columns of a list, in the order of its table; empty for a pane that is not a list.
pub const fn names(pane: Pane) -> &'static [&'static str] {
    match pane {
        Pane::Zones => ZONES,
        Pane::Nodes => NODES,
        Pane::Pods => PODS,
        Pane::Events => EVENTS,
        Pane::Evictions => EVICTIONS,
        Pane::Pending => PENDING,
        Pane::Departures => DEPARTURES,
        Pane::Budgets => BUDGETS,
        Pane::Audit => AUDIT,
        Pane::Detail | Pane::Plan | Pane::Progress | Pane::Forecast | Pane::Journal => &[],
    }
}

/// Heading of the column that names each row's object, such as `node`.
const fn subject(pane: Pane) -> &'static str {
    match pane {
        Pane::Zones => "zone",
        Pane::Nodes => "node",
        Pane::Budgets => "budget",
        Pane::Events | Pane::Audit => "object",
        Pane::Pods | Pane::Evictions | Pane::Pending | Pane::Departures => "pod",
        Pane::Detail | Pane::Plan | Pane::Progress | Pane::Forecast | Pane::Journal => "",
    }
}

/// Whether the rows of a pane are about nodes or pods of the cluster, whose labels are known.
const fn has_labels(pane: Pane) -> bool {
    matches!(pane, Pane::Nodes | Pane::Pods | Pane::Evictions | Pane::Pending)
}

/// Syntax of label and annotation columns, appended to the list of valid columns in an error message.
const fn keyed(pane: Pane) -> &'static str {
    match pane {
        Pane::Nodes => ", label:KEY, annotation:KEY",
        pane if has_labels(pane) => ", label:KEY",
        _ => "",
    }
}

fn title(pane: Pane) -> String {
    pane.title().to_lowercase()
}

impl App {
    /// Whether the nodes pane has a column of the live usage of CPU or memory.
    pub fn shows_usage(&self) -> bool {
        let is_used =
            |column: &ChosenColumn| matches!(column, ChosenColumn::Own(name) if name.ends_with("used"));
        match self.preferences.columns.get(&Pane::Nodes).filter(|columns| !columns.show.is_empty()) {
            Some(columns) => columns.show.iter().any(is_used),
            None => self.screen.wide,
        }
    }
}
