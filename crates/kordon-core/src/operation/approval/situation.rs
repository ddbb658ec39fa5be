//! The state of cluster and watches that an approval decides from.

use std::collections::BTreeSet;

use super::ApprovalRefusal;
use crate::cluster::{Cluster, FeedKind, Gaps, Known, Scope};

/// The newest state, and whether it may be written to.
#[derive(Clone, Debug)]
pub struct Situation<'a> {
    pub cluster: &'a Cluster,
    /// The watches that the cluster comes from.
    pub watches: Watches,
    /// Why nothing may be written, for example in dry-run mode; `None` if writing is allowed.
    pub locked: Option<String>,
}

/// Whether the watches are good enough to act on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watches {
    pub nodes_live: bool,
    pub pods_live: bool,
    /// The kind that is still being listed for the first time, if any.
    pub unlisted: Option<String>,
}

impl Watches {
    /// Whether the watches of these scopes are live. Other objects that a plan needs are read for the plan itself.
    pub fn new(scopes: &BTreeSet<Scope>, cluster: &Cluster) -> Self {
        let live = |kind: FeedKind| {
            let mut of_kind = scopes.iter().filter(|scope| scope.kind() == kind);
            of_kind.all(|scope| cluster.known_in(scope) == Known::Live)
        };
        Self { nodes_live: live(FeedKind::Nodes), pods_live: live(FeedKind::Pods), unlisted: None }
    }
}

impl Situation<'_> {
    /// Why an operation that may remove the pods in these scopes may not start now; `None` if it may start.
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
            // A kind that may not be listed does not block the start: the plan says what it does not know.
            unlisted.clone().map(ApprovalRefusal::Unlisted)
        }
    }

    /// The gaps of unknown pods in these scopes; `None` if all pods are known.
    fn unknown(&self, pods: &BTreeSet<Scope>) -> Option<Gaps> {
        Some(self.gaps(pods).unknown()).filter(|gaps| !gaps.is_empty())
    }

    /// Whether the pods in these scopes are known as they are now. They come from a live watch of all pods or, without
    /// such a watch, from reads of these scopes.
    fn are_live(&self, pods: &BTreeSet<Scope>) -> bool {
        let is_watched = self.cluster.known(FeedKind::Pods).is_known();
        self.watches.pods_live || !is_watched && self.gaps(pods).is_empty()
    }

    fn gaps(&self, pods: &BTreeSet<Scope>) -> Gaps {
        self.cluster.gaps_in(pods.iter().cloned())
    }
}
