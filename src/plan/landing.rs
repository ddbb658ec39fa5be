//! Where the replacement of a pod lands.

use std::fmt;

use crate::cluster::{Name, NodeName};

/// Where a replacement lands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Landing {
    Node {
        node: NodeName,
        why: Name,
    },
    /// On some node; nobody has worked out which.
    Somewhere,
    /// On none: it stays Pending.
    Nowhere {
        why: Name,
    },
}

impl fmt::Display for Landing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node { node, .. } => write!(f, "{node}"),
            Self::Somewhere => f.write_str("somewhere"),
            Self::Nowhere { .. } => f.write_str("stays Pending"),
        }
    }
}

impl Landing {
    /// Where, and why there or why nowhere.
    pub fn words(&self) -> String {
        match self {
            Self::Node { node, why } => format!("{node} ({why})"),
            Self::Somewhere => "somewhere".into(),
            Self::Nowhere { why } => format!("stays Pending: {why}"),
        }
    }
}
