//! The panes of the screen, and what keys go to.

/// A part of the screen that can have the focus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pane {
    Zones,
    #[default]
    Nodes,
    /// The pods of one node, in the place of the nodes.
    Pods,
    /// Everything about one node or pod, in the same place.
    Detail,
    /// What an action would do, in the same place.
    Plan,
    /// How far an operation is, in the same place.
    Progress,
    Evictions,
    Forecast,
    Journal,
    /// The pods that wait for a node.
    Pending,
    /// The pods that left, and who removed them.
    Departures,
}

impl Pane {
    pub const fn title(self) -> &'static str {
        match self {
            Self::Zones => "Zones",
            Self::Nodes => "Nodes",
            Self::Pods => "Pods",
            Self::Detail => "Detail",
            Self::Plan => "Plan",
            Self::Progress => "Progress",
            Self::Evictions => "Evictions",
            Self::Journal => "Journal",
            Self::Forecast => "Forecast",
            Self::Pending => "Pending",
            Self::Departures => "Departures",
        }
    }

    /// The digit that focuses it.
    pub const fn digit(self) -> char {
        match self {
            Self::Zones => '1',
            Self::Nodes | Self::Pods | Self::Detail | Self::Plan | Self::Progress => '2',
            Self::Evictions => '3',
            Self::Forecast => '4',
            Self::Journal => '5',
            Self::Pending => '6',
            Self::Departures => '7',
        }
    }
}

/// What is typed while keys are not commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputTarget {
    Filter,
    /// The taints or labels of a plan.
    Edits,
    Command,
    /// The answer to a question.
    Answer,
}

impl InputTarget {
    pub const ALL: [Self; 4] = [Self::Filter, Self::Edits, Self::Command, Self::Answer];
}

/// What the next key goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyFocus {
    /// Keys are commands, of this pane or of the whole screen.
    Pane(Pane),
    /// Keys are typed into this.
    Input(InputTarget),
}
