//! Where the replacement of a pod lands: on a node, or nowhere if it stays Pending or is rejected.

use std::fmt;

use crate::cluster::{Name, NodeName};

/// Where the replacement of a pod lands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Landing {
    Node {
        node: NodeName,
        why: Name,
    },
    /// The replacement lands on some node, which is unknown because placements are not computed.
    Unknown,
    /// The replacement lands on no node and stays Pending.
    Pending {
        why: Name,
    },
    /// The template of the pod's owner names a node whose kubelet rejects the replacement. The replacement has then
    /// failed, and its owner creates the next one, again and again (upstream of 1.37, `pkg/kubelet/lifecycle`,
    /// `generalFilter`).
    Rejected {
        why: Name,
    },
}

impl Landing {
    /// Returns a stable name for the landing.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Node { .. } => "node",
            Self::Unknown => "unknown",
            Self::Pending { .. } => "pending",
            Self::Rejected { .. } => "rejected",
        }
    }

    /// Returns whether the replacement runs nowhere. It may run once the cluster has changed.
    pub const fn has_nowhere_to_run(&self) -> bool {
        match self {
            Self::Pending { .. } | Self::Rejected { .. } => true,
            Self::Node { .. } | Self::Unknown => false,
        }
    }

    /// Returns the node on which the replacement lands; `None` if it is unknown, or if the replacement runs nowhere.
    pub const fn node(&self) -> Option<&NodeName> {
        match self {
            Self::Node { node, .. } => Some(node),
            Self::Unknown | Self::Pending { .. } | Self::Rejected { .. } => None,
        }
    }

    /// Returns why the replacement lands on its node, or why it runs nowhere.
    pub const fn why(&self) -> Option<&Name> {
        match self {
            Self::Node { why, .. } | Self::Pending { why } | Self::Rejected { why } => Some(why),
            Self::Unknown => None,
        }
    }

    /// Describes the landing and its reason.
    pub fn text(&self) -> String {
        match self {
            Self::Node { node, why } => format!("{node} ({why})"),
            Self::Unknown => "unknown node".into(),
            Self::Pending { why } => format!("stays Pending: {why}"),
            Self::Rejected { why } => format!("never runs: {why}"),
        }
    }
}

impl fmt::Display for Landing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node { node, .. } => write!(f, "{node}"),
            Self::Unknown => f.write_str("unknown node"),
            Self::Pending { .. } => f.write_str("stays Pending"),
            Self::Rejected { .. } => f.write_str("never runs"),
        }
    }
}
