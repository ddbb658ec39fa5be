//! How replacements were placed, and what that means for the nodes.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use super::landing::Landing;
use crate::{
    cluster::{Key, Name, NodeName, Requests, quantity},
    placement::{
        Caveat, Help, Obstacle, Placement, Reason, ResourceUse, Scored, Share, TiedNodes, Unschedulable,
        VolumeTopology, amounts, volume_topology,
    },
};

/// How the placement of one pod was decided.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlacementTrace {
    /// How many nodes are feasible.
    pub feasible: usize,
    /// Those of them that have the best score: the scheduler takes any. None where no node is feasible as it is.
    pub best: Option<TiedNodes>,
    /// The best nodes and their runners-up with the parts of their scores, best first.
    pub ranking: Vec<Scored>,
    /// By how many points the best is ahead of the next; none if there is no next.
    pub margin: Option<i64>,
    /// Whether the margin is so small that a small drift would reverse it.
    pub is_close: bool,
    /// Where no node is feasible: how many nodes give each reason.
    pub reasons: BTreeMap<Reason, usize>,
    /// The pods that it preempts, and where their own replacements land.
    pub preempts: Vec<PreemptedPod>,
    /// Where it stays Pending: how it could be placed.
    pub help: Option<Help>,
    /// Where its volumes can be reached.
    pub volumes: Vec<VolumeTopology>,
    /// What was not checked.
    pub caveats: Vec<Caveat>,
    /// Why the default scheduler does not place it.
    pub obstacle: Option<Obstacle>,
}

/// A pod that is preempted.
#[derive(Clone, Debug, PartialEq)]
pub struct PreemptedPod {
    pub pod: Key,
    pub node: NodeName,
    /// Where its own replacement lands; none if no controller recreates it.
    pub landing: Option<Landing>,
}

/// A node that receives pods, before and after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receiver {
    pub node: NodeName,
    pub before: ResourceUse,
    pub after: ResourceUse,
}

impl Receiver {
    /// What is requested of each resource before and after, in words.
    pub fn shares(&self) -> [(&'static str, String); 3] {
        let Self { before, after, .. } = self;
        [
            ("pods", share("pods", before.pods.requested, after.pods)),
            ("cpu", share("cpu", before.cpu_milli.requested, after.cpu_milli)),
            ("memory", share("memory", before.memory_bytes.requested, after.memory_bytes)),
        ]
    }
}

impl Receiver {
    /// The shares, before and after, of the resource of which the greatest part is requested after.
    pub fn fullest(&self) -> (f64, f64) {
        let Self { before, after, .. } = self;
        let shares = [
            (before.pods, after.pods),
            (before.cpu_milli, after.cpu_milli),
            (before.memory_bytes, after.memory_bytes),
        ]
        .map(|(before, after)| (before.part(), after.part()));
        shares.into_iter().max_by(|one, other| one.1.total_cmp(&other.1)).unwrap_or_default()
    }
}

/// `3 -> 5 of 110 (4 %)`
pub fn share(resource: &str, before: i64, after: Share) -> String {
    let amount = |amount| quantity::amount(resource, amount);
    let percent = match after.allocatable {
        allocatable if allocatable > 0 => {
            format!(" ({} %)", after.requested.saturating_mul(100) / allocatable)
        }
        _ => String::new(),
    };
    format!("{} -> {} of {}{percent}", amount(before), amount(after.requested), amount(after.allocatable))
}

/// How all pods of one run were placed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunTrace {
    /// By the pod that is replaced. Empty if placements are not computed.
    pub placements: BTreeMap<Key, Arc<PlacementTrace>>,
    /// By name.
    pub receivers: Vec<Receiver>,
}

impl RunTrace {
    /// What was not checked of any of the placements.
    pub fn caveats(&self) -> BTreeSet<Caveat> {
        self.placements.values().flat_map(|placement| &placement.caveats).copied().collect()
    }
}

/// How many nodes of a ranking are kept.
const RANKED: usize = 5;

impl PlacementTrace {
    /// The trace of a pod that was placed.
    pub fn placed(placement: &Placement) -> Self {
        let most = placement.ranking.first().map_or(0, |best| best.total);
        let next = placement.ranking.iter().find(|scored| scored.total < most);
        Self {
            feasible: placement.feasible,
            best: Some(placement.best.clone()),
            ranking: placement.ranking.iter().take(RANKED).cloned().collect(),
            margin: next.map(|next| most - next.total),
            is_close: placement.is_close(),
            caveats: placement.caveats.clone(),
            ..Self::default()
        }
    }

    /// The trace of a pod without a feasible node.
    pub fn unplaced(refused: &Unschedulable) -> Self {
        let (reasons, caveats) = (refused.reasons.clone(), refused.caveats.clone());
        Self { reasons, caveats, ..Self::default() }
    }

    /// How many nodes have the best score.
    pub fn tied(&self) -> usize {
        self.best.as_ref().map_or(0, TiedNodes::len)
    }

    /// Why it lands there, or why it stays Pending, in a few words.
    pub fn why(&self) -> Name {
        match volume_topology::words(&self.volumes) {
            Some(volumes) => format!("{}; {volumes}", self.decision()).into(),
            None => self.decision().into(),
        }
    }

    fn decision(&self) -> String {
        if let Some(obstacle) = &self.obstacle {
            return obstacle.to_string();
        }
        if let Some(first) = self.preempts.first() {
            let others = match self.preempts.len() {
                1 => String::new(),
                victims => format!(" and {} more", victims - 1),
            };
            return format!("preempts {}{others}", first.pod);
        }
        match (self.feasible, self.tied(), self.margin) {
            (0, ..) => reasons(&self.reasons),
            (1, ..) => "the only feasible node".into(),
            (feasible, 1, Some(margin)) => {
                let points = if margin == 1 { "point" } else { "points" };
                let certainty = if self.is_close { "likely" } else { "best" };
                format!("{certainty} ({margin} {points} ahead of {feasible})")
            }
            (feasible, best, _) => format!("tie: {best} of {feasible} nodes"),
        }
    }
}

/// Why no node is feasible for a pod that requests this much, in a few words: `no node has 4 CPU free`,
/// `no node: 12 podAntiAffinity not met, 1 cordoned`.
pub fn cause(refused: &BTreeMap<Reason, usize>, requests: &Requests) -> Name {
    let insufficient = refused.iter().filter_map(|(reason, nodes)| match reason {
        Reason::Insufficient(resource) => Some((*nodes, resource)),
        _ => None,
    });
    let Some((_, resource)) = insufficient.max_by_key(|(nodes, _)| *nodes) else {
        return if refused.is_empty() {
            reasons(refused).into()
        } else {
            format!("no node: {}", reasons(refused)).into()
        };
    };
    let is_of_room = |reason: &Reason| matches!(reason, Reason::Insufficient(_));
    let which = if refused.keys().all(is_of_room) { "node" } else { "matching node" };
    let amount = amounts(&[(resource.clone(), requests.of(resource))]);
    format!("no {which} has {amount} free").into()
}

/// `12 insufficient cpu, 1 cordoned`: the most frequent first.
pub fn reasons(reasons: &BTreeMap<Reason, usize>) -> String {
    let mut counted: Vec<(&Reason, &usize)> = reasons.iter().collect();
    counted.sort_by_key(|(reason, nodes)| (Reverse(**nodes), (*reason).clone()));
    let words: Vec<String> = counted.iter().map(|(reason, nodes)| format!("{nodes} {reason}")).collect();
    if words.is_empty() { "no node exists".into() } else { words.join(", ") }
}

impl fmt::Display for PreemptedPod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is preempted on {}", self.pod, self.node)?;
        match &self.landing {
            Some(landing) => write!(f, "; its replacement: {}", landing.text()),
            None => f.write_str("; no controller recreates it"),
        }
    }
}
