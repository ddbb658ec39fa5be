//! The panes, and what is typed into the screen.

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
    /// What is being carried out, in the same place.
    Progress,
    Evictions,
    Journal,
    Forecast,
}

impl Pane {
    /// The panes that share the lower part of the screen, from left to right.
    pub const LOWER: [Self; 3] = [Self::Evictions, Self::Forecast, Self::Journal];

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
        }
    }

    /// The digit that focuses it.
    pub const fn digit(self) -> char {
        match self {
            Self::Zones => '1',
            Self::Nodes | Self::Pods | Self::Detail | Self::Plan | Self::Progress => '2',
            Self::Evictions => '3',
            Self::Journal => '4',
            Self::Forecast => '5',
        }
    }
}

/// What is being typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputTarget {
    Filter,
    /// The taints or labels of a plan.
    Words,
    /// A command.
    Palette,
    /// The answer to a question.
    Consent,
}

impl InputTarget {
    pub const ALL: [Self; 4] = [Self::Filter, Self::Words, Self::Palette, Self::Consent];
}
