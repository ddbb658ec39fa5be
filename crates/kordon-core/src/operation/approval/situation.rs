//! The state of the cluster and its watches, on which an approval bases its decisions.

use std::collections::BTreeSet;

use super::ApprovalRefusal;
use crate::cluster::{Cluster, FeedKind, Gaps, Known, Scope};

/// The newest state of the cluster, and whether an operation may write to the cluster.
#[derive(Clone, Debug)]
pub struct Situation<'a> {
    pub cluster: &'a Cluster,
    /// The state of the watches that update the cluster.
    pub watches: Watches,
    /// Why nothing may be written, for example in dry-run mode; `None` if writing is allowed.
    pub locked: Option<String>,
}

/// Whether the watches are current enough for an operation to write to the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watches {
    pub nodes_live: bool,
    pub pods_live: bool,
    /// A kind whose first list is not complete yet, if there is one.
    pub unlisted: Option<String>,
}

impl Watches {
    /// Whether the nodes and pods that an operation reads (`scopes`) are known as they are now. All other objects that
    /// a plan needs are read when the plan is made.
    pub fn new(scopes: &BTreeSet<Scope>, cluster: &Cluster) -> Self {
        let live = |kind: FeedKind| {
            let mut of_kind = scopes.iter().filter(|scope| scope.kind() == kind);
            of_kind.all(|scope| cluster.known_in(scope) == Known::Live)
        };
        Self { nodes_live: live(FeedKind::Nodes), pods_live: live(FeedKind::Pods), unlisted: None }
    }
}

impl Situation<'_> {
    /// Why an operation may not start now; `None` if it may start. `pods` says which pods the operation may remove.
    pub(super) fn obstacle(&self, pods: BTreeSet<Scope>) -> Option<ApprovalRefusal> {
        let Watches { nodes_live, unlisted, .. } = &self.watches;
        if let Some(why) = &self.locked {
            Some(ApprovalRefusal::Locked(why.clone()))
        } else if !nodes_live {
            Some(ApprovalRefusal::Stale("nodes"))
        } else if pods.is_empty() {
            None
        } else if let Some(unknown) = self.unknown(&pods) {
            Some(ApprovalRefusal::Unknown(unknown))
        } else if !self.are_live(&pods) {
            Some(ApprovalRefusal::Stale("pods"))
        } else {
            // A kind that kordon may not list does not prevent the start: the plan names it as unknown.
            unlisted.clone().map(ApprovalRefusal::Unlisted)
        }
    }

    /// What is unknown of the pods that the operation may remove; `None` if all of them are known.
    fn unknown(&self, pods: &BTreeSet<Scope>) -> Option<Gaps> {
        Some(self.gaps(pods).unknown()).filter(|gaps| !gaps.is_empty())
    }

    /// Whether the pods that the operation may remove are known as they are now. If all pods of the cluster are
    /// watched, this watch must be live. Otherwise these pods must have been read.
    fn are_live(&self, pods: &BTreeSet<Scope>) -> bool {
        let is_watched = self.cluster.known(FeedKind::Pods).is_known();
        self.watches.pods_live || !is_watched && self.gaps(pods).is_empty()
    }

    fn gaps(&self, pods: &BTreeSet<Scope>) -> Gaps {
        self.cluster.gaps_in(pods.iter().cloned())
    }
}
