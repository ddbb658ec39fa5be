//! Actions of an operator on nodes and pods, with their options.

use super::{metadata_edits::MetadataEdits, taint_edits::TaintEdits};
use crate::cluster::{Key, NodeName, Selector};
use kordon_time::Span;

/// An operator's action, with its targets and options.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    Cordon {
        nodes: Vec<NodeName>,
    },
    Uncordon {
        nodes: Vec<NodeName>,
    },
    Taint {
        nodes: Vec<NodeName>,
        edits: TaintEdits,
    },
    /// Changes labels or annotations.
    Metadata {
        nodes: Vec<NodeName>,
        edits: MetadataEdits,
    },
    Drain {
        nodes: Vec<NodeName>,
        options: DrainOptions,
    },
    Evict {
        pods: Vec<Key>,
        options: RemovalOptions,
    },
    Delete {
        pods: Vec<Key>,
        options: RemovalOptions,
    },
    DeleteNode {
        nodes: Vec<NodeName>,
    },
}

/// Options for pods that are evicted or deleted by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemovalOptions {
    /// Grace period for all pods, in place of the pods' own; `None` keeps the grace period of each pod.
    pub grace: Option<Span>,
    /// Time limit of the removal; `None` for no limit.
    pub timeout: Option<Span>,
    pub retry: Retry,
}

/// Flags of kubectl drain, and the number of nodes to drain at a time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DrainOptions {
    /// `--force`: also removes pods without a controller and pods whose DaemonSet is gone.
    pub force: bool,
    /// `--ignore-daemonsets` of kubectl drain.
    pub ignore_daemonsets: bool,
    /// `--delete-emptydir-data` of kubectl drain.
    pub delete_emptydir_data: bool,
    /// `--grace-period`; `None` keeps the grace period of each pod.
    pub grace: Option<Span>,
    /// `--timeout`, for each node; `None` for no limit.
    pub timeout: Option<Span>,
    /// `--pod-selector` of kubectl drain.
    pub pod_selector: Option<Selector>,
    /// `--disable-eviction`: pods are deleted, and budgets are not checked.
    pub disable_eviction: bool,
    /// `--skip-wait-for-delete-timeout`; `None` if the drain waits for every pod.
    pub skip_wait_for_delete: Option<Span>,
    /// `--surge`: Deployments whose budgets can never allow an eviction are scaled up by one during the drain.
    pub surge: bool,
    /// Number of nodes to drain at a time; 0 counts as 1.
    pub parallel: usize,
    pub retry: Retry,
}

impl DrainOptions {
    pub(super) const fn mode(&self) -> RemovalMode {
        if self.disable_eviction { RemovalMode::Delete } else { RemovalMode::Evict }
    }
}

/// How pods are removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RemovalMode {
    /// Eviction, which checks budgets.
    #[default]
    Evict,
    /// Deletion, which does not check budgets.
    Delete,
}

/// When a refused eviction is retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// The eviction is retried at multiples of this period after the start of the pod's group. A group has the pods of
    /// one node, or all pods that the action names.
    Every(Span),
    /// The eviction is retried every five seconds, as kubectl does. If the server answers with Retry-After, kubectl's
    /// HTTP client first retries ten times by itself.
    Kubectl,
    /// The eviction is retried as soon as the budget allows it.
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
    /// Returns whether the action has no targets, for example because a selector matches nothing.
    pub const fn has_no_targets(&self) -> bool {
        match self {
            Self::Cordon { nodes }
            | Self::Uncordon { nodes }
            | Self::Taint { nodes, .. }
            | Self::Metadata { nodes, .. }
            | Self::Drain { nodes, .. }
            | Self::DeleteNode { nodes } => nodes.is_empty(),
            Self::Evict { pods, .. } | Self::Delete { pods, .. } => pods.is_empty(),
        }
    }

    /// The nodes that the action names; none if it names pods.
    pub(super) fn nodes(&self) -> &[NodeName] {
        match self {
            Self::Cordon { nodes }
            | Self::Uncordon { nodes }
            | Self::Taint { nodes, .. }
            | Self::Metadata { nodes, .. }
            | Self::Drain { nodes, .. }
            | Self::DeleteNode { nodes } => nodes,
            Self::Evict { .. } | Self::Delete { .. } => &[],
        }
    }

    /// Returns whether the action disturbs a maintenance of its nodes: it drains, cordons, uncordons or deletes them,
    /// or adds NoExecute taints. Other taints, labels and annotations may be what the maintenance waits for.
    pub fn disturbs_maintenance(&self) -> bool {
        match self {
            Self::Cordon { .. } | Self::Uncordon { .. } | Self::Drain { .. } | Self::DeleteNode { .. } => {
                true
            }
            Self::Taint { edits, .. } => edits.adds_no_execute(),
            Self::Metadata { .. } | Self::Evict { .. } | Self::Delete { .. } => false,
        }
    }

    /// Returns whether the action may scale Deployments up, so that its plan depends on autoscalers.
    pub const fn surges(&self) -> bool {
        match self {
            Self::Drain { options, .. } => options.surge,
            Self::Cordon { .. }
            | Self::Uncordon { .. }
            | Self::Taint { .. }
            | Self::Metadata { .. }
            | Self::Evict { .. }
            | Self::Delete { .. }
            | Self::DeleteNode { .. } => false,
        }
    }

    /// Returns a stable name for the action.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Cordon { .. } => "cordon",
            Self::Uncordon { .. } => "uncordon",
            Self::Taint { .. } => "taint",
            Self::Metadata { edits, .. } => edits.field.verb(),
            Self::Drain { .. } => "drain",
            Self::Evict { .. } => "evict",
            Self::Delete { .. } => "delete",
            Self::DeleteNode { .. } => "delete-node",
        }
    }
}
