//! What an operator asks for, with its options.

use super::{label_edits::LabelEdits, taint_edits::TaintEdits};
use crate::{
    cluster::{Key, NodeName, Selector},
    time::Span,
};

/// What an operator asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    Cordon { nodes: Vec<NodeName> },
    Uncordon { nodes: Vec<NodeName> },
    Taint { nodes: Vec<NodeName>, edits: TaintEdits },
    Label { nodes: Vec<NodeName>, edits: LabelEdits },
    Drain { nodes: Vec<NodeName>, options: DrainOptions },
    Evict { pods: Vec<Key>, options: RemovalOptions },
    Delete { pods: Vec<Key>, options: RemovalOptions },
}

/// How pods are evicted or deleted by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemovalOptions {
    /// Replaces the pods' own grace periods.
    pub grace: Option<Span>,
    /// None: for ever.
    pub timeout: Option<Span>,
    pub retry: Retry,
}

/// kubectl drain's flags, and how many nodes at a time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DrainOptions {
    /// `--force`: pods without a controller, and of DaemonSets that are gone, go too.
    pub force: bool,
    /// `--ignore-daemonsets`
    pub ignore_daemonsets: bool,
    /// `--delete-emptydir-data`
    pub delete_emptydir_data: bool,
    /// `--grace-period`; none is the pods' own.
    pub grace: Option<Span>,
    /// `--timeout`, of each node; none is for ever.
    pub timeout: Option<Span>,
    /// `--pod-selector`
    pub pod_selector: Option<Selector>,
    /// `--disable-eviction`: pods are deleted, and budgets not asked.
    pub disable_eviction: bool,
    /// `--skip-wait-for-delete-timeout`; none is off.
    pub skip_wait_for_delete: Option<Span>,
    /// Nodes at a time; 0 is taken for 1.
    pub parallel: usize,
    pub retry: Retry,
}

impl DrainOptions {
    pub(super) const fn mode(&self) -> RemovalMode {
        if self.disable_eviction { RemovalMode::Delete } else { RemovalMode::Evict }
    }
}

/// How pods are made to go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RemovalMode {
    /// By eviction: budgets are asked.
    #[default]
    Evict,
    /// By deletion: budgets are not asked.
    Delete,
}

/// When a refused eviction is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// On this beat, counted from the group's start.
    Every(Span),
    /// As kubectl does: every five seconds, but where the server asks for patience its client tries ten times in
    /// silence before kubectl hears of it.
    Kubectl,
    /// As soon as the budget is seen to allow it.
    OnRecovery,
}

impl Retry {
    pub(super) const fn period(self) -> Option<Span> {
        match self {
            Self::Every(period) => Some(period),
            Self::Kubectl => Some(Span::from_secs(5)),
            Self::OnRecovery => None,
        }
    }
}

impl Default for Retry {
    fn default() -> Self {
        Self::Every(Span::from_secs(5))
    }
}

impl Action {
    /// A word for it, the same for ever.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Cordon { .. } => "cordon",
            Self::Uncordon { .. } => "uncordon",
            Self::Taint { .. } => "taint",
            Self::Label { .. } => "label",
            Self::Drain { .. } => "drain",
            Self::Evict { .. } => "evict",
            Self::Delete { .. } => "delete",
        }
    }
}
