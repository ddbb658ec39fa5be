//! What an approval looks at.

use super::ApprovalRefusal;
use crate::cluster::{Cluster, FeedKind, Gaps};

/// The newest state, and what forbids writing now.
#[derive(Clone, Debug)]
pub struct Situation<'a> {
    pub cluster: &'a Cluster,
    /// The watches that the cluster comes from.
    pub watches: Watches,
    /// Why nothing may be written, as in dry-run mode; none if it may be.
    pub locked: Option<String>,
}

/// Whether the watches are good enough to act on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watches {
    pub nodes_live: bool,
    pub pods_live: bool,
    /// A kind that is still being listed for the first time.
    pub unlisted: Option<String>,
}

impl Situation<'_> {
    /// Why an operation may not start now; none if it may.
    pub(super) fn obstacle(&self, touches_pods: bool) -> Option<ApprovalRefusal> {
        let Watches { nodes_live, pods_live, unlisted } = &self.watches;
        if let Some(why) = &self.locked {
            Some(ApprovalRefusal::Locked(why.clone()))
        } else if !nodes_live {
            Some(ApprovalRefusal::Stale("nodes"))
        } else if !touches_pods {
            None
        } else if let Some(unknown) = self.unknown_pods() {
            Some(ApprovalRefusal::Unknown(unknown))
        } else if !pods_live {
            Some(ApprovalRefusal::Stale("pods"))
        } else {
            // What may not be listed is no obstacle: the plan says what it does not know.
            unlisted.clone().map(ApprovalRefusal::Unlisted)
        }
    }

    /// What is missing of the pods; none if they are known.
    fn unknown_pods(&self) -> Option<Gaps> {
        Some(self.cluster.gaps([FeedKind::Pods]).unknown()).filter(|gaps| !gaps.is_empty())
    }
}
