//! The panes of the screen, and the destinations of keys.

use serde::Deserialize;

/// A part of the screen that can have the focus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pane {
    Zones,
    #[default]
    Nodes,
    /// The pods of one node, shown in place of the nodes.
    Pods,
    /// Everything about one node or pod, shown in place of the nodes.
    Detail,
    /// A plan, shown in place of the nodes.
    Plan,
    /// An operation's progress, shown in place of the nodes.
    Progress,
    /// The Events of the cluster, shown in place of the nodes.
    Events,
    Evictions,
    Forecast,
    Journal,
    /// Pods that wait for a node.
    Pending,
    /// Pods that left, and who removed them.
    Departures,
    /// PodDisruptionBudgets, and the drains that they delay or block.
    Budgets,
    /// The audit: what would hinder drains, by cause.
    Audit,
}

impl Pane {
    /// The panes whose rows can be filtered and sorted.
    pub const LISTS: [Self; 9] = [
        Self::Zones,
        Self::Nodes,
        Self::Pods,
        Self::Events,
        Self::Evictions,
        Self::Pending,
        Self::Departures,
        Self::Budgets,
        Self::Audit,
    ];

    pub const fn title(self) -> &'static str {
        match self {
            Self::Zones => "Zones",
            Self::Nodes => "Nodes",
            Self::Pods => "Pods",
            Self::Detail => "Detail",
            Self::Plan => "Plan",
            Self::Progress => "Progress",
            Self::Events => "Events",
            Self::Evictions => "Evictions",
            Self::Journal => "Journal",
            Self::Forecast => "Forecast",
            Self::Pending => "Pending",
            Self::Departures => "Departures",
            Self::Budgets => "Budgets",
            Self::Audit => "Audit",
        }
    }

    /// The digit that focuses the pane.
    pub const fn digit(self) -> char {
        match self {
            Self::Zones => '1',
            Self::Nodes | Self::Pods | Self::Detail | Self::Plan | Self::Progress | Self::Events => '2',
            Self::Evictions => '3',
            Self::Forecast => '4',
            Self::Journal => '5',
            Self::Pending => '6',
            Self::Departures => '7',
            Self::Budgets => '8',
            Self::Audit => '9',
        }
    }
}

/// Kind of text that is being typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputTarget {
    Filter,
    /// Taints, labels, annotations or an option of a plan.
    Edits,
    Command,
    /// The answer to a question.
    Answer,
    /// Letters that the names in the list of themes must contain.
    Theme,
}

impl InputTarget {
    pub const ALL: [Self; 5] = [Self::Filter, Self::Edits, Self::Command, Self::Answer, Self::Theme];
}

/// Part of the screen that the next key goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyFocus {
    /// A pane: keys are commands of this pane or of the whole screen.
    Pane(Pane),
    /// A text input: keys are typed into it.
    Input(InputTarget),
    /// The maintenance sheet: keys are commands of the sheet or of the whole screen.
    Maintenance,
    /// The tour: keys go from step to step.
    Tour,
}
