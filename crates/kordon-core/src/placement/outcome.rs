//! Results of scheduling a pod: its node, or why there is none.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use fixedbitset::FixedBitSet;

use super::{
    preemption::Preemption,
    reason::{NodeRefusal, Reason},
    scheduling_request::{Caveat, Obstacle},
};
use crate::cluster::NodeName;

/// The result of scheduling a pod.
#[derive(Clone, Debug, PartialEq)]
pub enum SchedulingOutcome {
    Placed(Placement),
    Unschedulable(Unschedulable),
    /// The default scheduler does not try to place the pod.
    NotTried(Obstacle),
}

/// The nodes that may get a pod.
#[derive(Clone, Debug, PartialEq)]
pub struct Placement {
    /// The nodes with the highest score, by name. The scheduler may pick any of them.
    pub best: TiedNodes,
    /// The nodes with the highest scores, each with the parts of its score, best first. Nodes with equal scores are
    /// sorted by name.
    pub ranking: Vec<Scored>,
    /// Number of feasible nodes.
    pub feasible: usize,
    pub caveats: Vec<Caveat>,
}

impl Placement {
    /// Returns the best node. If several are equally good, returns the first by name, which all predictions use.
    pub fn choice(&self) -> &NodeName {
        self.best.first()
    }

    /// Returns whether the two highest scores are so close that a small change in the cluster could change the choice.
    pub fn is_close(&self) -> bool {
        let next = self.ranking.iter().find(|scored| scored.total < self.ranking[0].total);
        next.is_some_and(|next| self.ranking[0].total - next.total <= CLOSE)
    }
}

/// Maximum difference between scores at which their order is unreliable (docs/upstream/placement-and-pressure.md#1.5).
const CLOSE: i64 = 3;

/// A set of at least one node, sorted by name. All sets share one list of node names, because thousands of pods may
/// each have thousands of equally good nodes.
#[derive(Clone)]
pub struct TiedNodes {
    /// Names of all nodes, sorted.
    names: Arc<[NodeName]>,
    /// Indexes into `names` of the nodes in this set.
    members: FixedBitSet,
}

impl TiedNodes {
    /// Creates the set from indexes into `names`. There must be at least one index.
    pub(super) fn new(names: Arc<[NodeName]>, ranks: impl IntoIterator<Item = u32>) -> Self {
        let mut members = FixedBitSet::with_capacity(names.len());
        members.extend(ranks.into_iter().map(|rank| rank as usize));
        Self { names, members }
    }

    /// Creates the set from these nodes. There must be at least one node.
    pub fn from_nodes(nodes: BTreeSet<NodeName>) -> Self {
        let names: Arc<[NodeName]> = nodes.into_iter().collect();
        let members = FixedBitSet::from_iter(0..names.len());
        Self { names, members }
    }

    /// Returns the number of nodes in the set.
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> usize {
        self.members.count_ones(..)
    }

    /// Returns the first node of the set by name.
    pub fn first(&self) -> &NodeName {
        self.iter().next().expect("it is never empty")
    }

    /// Returns all nodes of the set, by name.
    pub fn iter(&self) -> impl Iterator<Item = &NodeName> {
        self.members.ones().map(|rank| &self.names[rank])
    }

    pub fn contains(&self, node: &NodeName) -> bool {
        self.names.binary_search(node).is_ok_and(|rank| self.members.contains(rank))
    }
}

impl PartialEq for TiedNodes {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl fmt::Debug for TiedNodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// A node and its score.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scored {
    pub node: NodeName,
    pub total: i64,
    /// The weighted points of each score plugin, in the order of [`Scorer::ALL`]. All of them are zero if only one node
    /// is feasible.
    pub parts: [i64; Scorer::ALL.len()],
}

/// A score plugin of the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scorer {
    LeastAllocated,
    BalancedAllocation,
    Taints,
    NodeAffinity,
    Spread,
    PodAffinity,
    Images,
}

impl Scorer {
    pub const ALL: [Self; 7] = [
        Self::LeastAllocated,
        Self::BalancedAllocation,
        Self::Taints,
        Self::NodeAffinity,
        Self::Spread,
        Self::PodAffinity,
        Self::Images,
    ];

    /// The weight in the default profile. It multiplies the plugin's 0 to 100 points.
    pub const fn weight(self) -> i64 {
        match self {
            Self::LeastAllocated | Self::BalancedAllocation | Self::Images => 1,
            Self::NodeAffinity | Self::Spread | Self::PodAffinity => 2,
            Self::Taints => 3,
        }
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::LeastAllocated => "least allocated",
            Self::BalancedAllocation => "balanced allocation",
            Self::Taints => "taints",
            Self::NodeAffinity => "node affinity",
            Self::Spread => "spread",
            Self::PodAffinity => "pod affinity",
            Self::Images => "images",
        }
    }
}

impl fmt::Display for Scorer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The reasons why no node is feasible for a pod.
#[derive(Clone, Debug, PartialEq)]
pub struct Unschedulable {
    /// Number of nodes for each reason. If several filters refuse a node, only the first one counts.
    pub reasons: BTreeMap<Reason, usize>,
    /// The refusal of each node, sorted by node name.
    pub refusals: Vec<(NodeName, NodeRefusal)>,
    pub preemption: Preemption,
    pub caveats: Vec<Caveat>,
}

impl Unschedulable {
    /// Removes these nodes from the refusals, and from the number of nodes for each reason.
    pub fn leave_out(&mut self, nodes: &BTreeSet<NodeName>) {
        if nodes.is_empty() {
            return;
        }
        self.refusals.retain(|(node, _)| !nodes.contains(node));
        self.reasons.clear();
        for reason in self.refusals.iter().flat_map(|(_, refusal)| &*refusal.reasons) {
            *self.reasons.entry(reason.clone()).or_default() += 1;
        }
    }
}
