//! Where a pod is placed, or why nowhere.

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
    /// The default scheduler does not try.
    NotTried(Obstacle),
}

/// Where a pod is placed.
#[derive(Clone, Debug, PartialEq)]
pub struct Placement {
    /// The nodes with the best score, by name. The scheduler takes any of them.
    pub best: TiedNodes,
    /// The best nodes with the parts of their scores, best first, equals by name.
    pub ranking: Vec<Scored>,
    /// How many nodes are feasible.
    pub feasible: usize,
    pub caveats: Vec<Caveat>,
}

impl Placement {
    /// The first of the best nodes by name: predictions use it.
    pub fn choice(&self) -> &NodeName {
        self.best.first()
    }

    /// Whether the best node leads by so little that a small drift would change the result.
    pub fn is_close(&self) -> bool {
        let next = self.ranking.iter().find(|scored| scored.total < self.ranking[0].total);
        next.is_some_and(|next| self.ranking[0].total - next.total <= CLOSE)
    }
}

/// A difference of scores that is not reliable (docs/upstream/placement-and-pressure.md#1.5).
const CLOSE: i64 = 3;

/// At least one node, in the order of their names, which are not copied: thousands may be equally good for each of
/// thousands of pods.
#[derive(Clone)]
pub struct TiedNodes {
    /// All nodes by name.
    names: Arc<[NodeName]>,
    /// Which of them.
    members: FixedBitSet,
}

impl TiedNodes {
    /// The nodes at these ranks, at least one, among all names.
    pub(super) fn new(names: Arc<[NodeName]>, ranks: impl IntoIterator<Item = u32>) -> Self {
        let mut members = FixedBitSet::with_capacity(names.len());
        members.extend(ranks.into_iter().map(|rank| rank as usize));
        Self { names, members }
    }

    /// These nodes, of which there is at least one.
    pub fn of(nodes: BTreeSet<NodeName>) -> Self {
        let names: Arc<[NodeName]> = nodes.into_iter().collect();
        let members = FixedBitSet::from_iter(0..names.len());
        Self { names, members }
    }

    /// How many there are.
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> usize {
        self.members.count_ones(..)
    }

    /// The first by name.
    pub fn first(&self) -> &NodeName {
        self.iter().next().expect("it is never empty")
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = &NodeName> {
        self.members.ones().map(|rank| &self.names[rank])
    }

    /// Whether a node is one of them.
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
    /// The weighted parts, in the order of [`Scorer::ALL`]. All zero where only one node is feasible.
    pub parts: [i64; Scorer::ALL.len()],
}

/// A score plugin.
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

    /// The weight of its 0 to 100 points in the default profile.
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

/// Why no node is feasible for a pod.
#[derive(Clone, Debug, PartialEq)]
pub struct Unschedulable {
    /// How many nodes give each reason: each those of the first filter that refuses it.
    pub reasons: BTreeMap<Reason, usize>,
    /// The refusals, by name of the node.
    pub refusals: Vec<(NodeName, NodeRefusal)>,
    pub preemption: Preemption,
    pub caveats: Vec<Caveat>,
}
