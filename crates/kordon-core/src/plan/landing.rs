//! Where the replacement of a pod lands.

use std::fmt;

use crate::cluster::{Name, NodeName};

/// Where the replacement of a pod lands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Landing {
    Node {
        node: NodeName,
        why: Name,
    },
    /// On some node: its placement is not computed.
    Unknown,
    /// On no node.
    Pending {
        why: Name,
    },
}

impl Landing {
    /// A stable word for it.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Node { .. } => "node",
            Self::Unknown => "unknown",
            Self::Pending { .. } => "pending",
        }
    }

    pub const fn is_pending(&self) -> bool {
        match self {
            Self::Pending { .. } => true,
            Self::Node { .. } | Self::Unknown => false,
        }
    }

    /// The node, where it is known.
    pub const fn node(&self) -> Option<&NodeName> {
        match self {
            Self::Node { node, .. } => Some(node),
            Self::Unknown | Self::Pending { .. } => None,
        }
    }

    /// Why that node, or why it stays Pending.
    pub const fn why(&self) -> Option<&Name> {
        match self {
            Self::Node { why, .. } | Self::Pending { why } => Some(why),
            Self::Unknown => None,
        }
    }

    /// The place and the reason.
    pub fn text(&self) -> String {
        match self {
            Self::Node { node, why } => format!("{node} ({why})"),
            Self::Unknown => "unknown node".into(),
            Self::Pending { why } => format!("stays Pending: {why}"),
        }
    }
}

impl fmt::Display for Landing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node { node, .. } => write!(f, "{node}"),
            Self::Unknown => f.write_str("unknown node"),
            Self::Pending { .. } => f.write_str("stays Pending"),
        }
    }
}
