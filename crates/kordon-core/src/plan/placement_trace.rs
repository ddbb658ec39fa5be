//! Traces of placements: how each replacement was placed, and how the replacements fill the nodes.

use std::{
    borrow::Cow,
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use super::{landing::Landing, owner::NotRecreated};
use crate::{
    cluster::{Key, Name, NodeName, Requests, quantity},
    placement::{
        Caveat, Help, Obstacle, Placement, Reason, ResourceUse, Scored, Share, TiedNodes, Unschedulable,
        VolumeTopology, amounts, volume_topology,
    },
};

/// How one pod was placed, and why.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlacementTrace {
    /// Number of feasible nodes.
    pub feasible: usize,
    /// Feasible nodes with the highest score, any of which the scheduler may pick. `None` if no node is feasible
    /// without preemption.
    pub best: Option<TiedNodes>,
    /// The nodes with the highest scores, each with the parts of its score, best first.
    pub ranking: Vec<Scored>,
    /// Difference between the highest score and the next lower score; `None` if the ranking has no lower score.
    pub margin: Option<i64>,
    /// Whether `margin` is so small that a small change in the cluster could change the chosen node.
    pub is_close: bool,
    /// Number of nodes that refuse the pod, by reason; empty if a node is feasible.
    pub reasons: BTreeMap<Reason, usize>,
    /// Pods that the replacement preempts, each with the landing of its own replacement, and pods that these
    /// replacements preempt in turn.
    pub preempts: Vec<PreemptedPod>,
    /// Ways to place the pod; `None` if the pod was placed.
    pub help: Option<Help>,
    /// The claim whose volume an earlier replacement uses on another node, with that node. Only one node at a time can
    /// use the volume, so the replacement does not start.
    pub shared_volume: Option<(Name, NodeName)>,
    /// Whether the chosen node sends no heartbeats, so that the replacement does not start there.
    pub is_silent: bool,
    /// Volumes of the pod that only some nodes can reach.
    pub volumes: Vec<VolumeTopology>,
    /// What the placement of the pod did not check or could not know.
    pub caveats: Vec<Caveat>,
    /// The reason why the default scheduler does not try to place the pod; `None` if it tries.
    pub obstacle: Option<Obstacle>,
}

/// A pod that is preempted.
#[derive(Clone, Debug, PartialEq)]
pub struct PreemptedPod {
    pub pod: Key,
    pub node: NodeName,
    /// The preempted pod whose replacement preempts this pod in turn; `None` if the traced replacement itself preempts
    /// it.
    pub in_turn_for: Option<Key>,
    /// Landing of the preempted pod's own replacement; `None` if the pod is not replaced, or if it is not known whether
    /// it is.
    pub landing: Option<Landing>,
    /// Why no controller recreates the preempted pod; `None` if one does, or if that is not known.
    pub lost: Option<NotRecreated>,
}

/// A pod that is preempted for the replacement of another one.
#[derive(Clone, Debug, PartialEq)]
pub struct PreemptedFor {
    /// The pod whose replacement preempts `victim`.
    pub replaced: Key,
    pub victim: PreemptedPod,
}

/// A node on which replacements land, with its resource use before and after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receiver {
    pub node: NodeName,
    pub before: ResourceUse,
    pub after: ResourceUse,
    /// Number of the replacements whose old pods leave without the plan: pods that are already terminating, or that
    /// leave lost nodes.
    pub others: usize,
}

impl Receiver {
    /// Returns the requested amount of each resource, before and after, as text.
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
    /// Returns the requested share, before and after, of the resource that is fullest afterwards.
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

/// Formats the requested amount of a resource, before and after: `3 -> 5 of 110 (4 %)`.
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

/// Traces of all placements of one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunTrace {
    /// For each replaced pod, the trace of the placement of its replacement. Empty if placements are not computed.
    pub placements: BTreeMap<Key, Arc<PlacementTrace>>,
    /// Nodes on which replacements land, sorted by name.
    pub receivers: Vec<Receiver>,
}

impl RunTrace {
    /// Returns what the placements did not check or could not know.
    pub fn caveats(&self) -> BTreeSet<Caveat> {
        self.placements.values().flat_map(|placement| &placement.caveats).copied().collect()
    }
}

/// Maximum number of nodes in the ranking of a trace.
const RANKED: usize = 5;

impl PlacementTrace {
    /// Creates the trace of a pod that was placed.
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

    /// Creates the trace of a pod that has no feasible node.
    pub fn unplaced(refused: &Unschedulable) -> Self {
        let (reasons, caveats) = (refused.reasons.clone(), refused.caveats.clone());
        Self { reasons, caveats, ..Self::default() }
    }

    /// Returns the number of nodes with the highest score.
    pub fn tied(&self) -> usize {
        self.best.as_ref().map_or(0, TiedNodes::len)
    }

    /// Returns the pods that the replacement itself preempts, on its node.
    pub fn victims(&self) -> impl Iterator<Item = &PreemptedPod> {
        self.preempts.iter().filter(|victim| victim.in_turn_for.is_none())
    }

    /// Says in a few words why the pod lands on its node, or why it stays Pending.
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
        let mut victims = self.victims();
        if let Some(first) = victims.next() {
            let others = match victims.count() {
                0 => String::new(),
                others => format!(" and {others} more"),
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

/// Says in a few words why a pod with these requests has no feasible node: `no node has 4 CPU free` or `no node: 12
/// podAntiAffinity not met, 1 cordoned`.
pub fn cause(refused: &BTreeMap<Reason, usize>, requests: &Requests) -> Name {
    // A selector that fails keeps the pod off all nodes.
    if let Some(failure) = refused.keys().find(|reason| matches!(reason, Reason::DeviceSelector(_))) {
        return failure.to_string().into();
    }
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

/// Formats the reasons why nodes refuse a pod, those of most nodes first: `12 insufficient cpu, 1 cordoned`. There are
/// no reasons if all nodes are down or gone.
pub fn reasons(reasons: &BTreeMap<Reason, usize>) -> String {
    let mut counted: Vec<(&Reason, &usize)> = reasons.iter().collect();
    counted.sort_by_key(|(reason, nodes)| (Reverse(**nodes), (*reason).clone()));
    let words: Vec<String> = counted.iter().map(|(reason, nodes)| format!("{nodes} {reason}")).collect();
    if words.is_empty() { "no node is up".into() } else { words.join(", ") }
}

impl fmt::Display for PreemptedPod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is preempted on {}; {}", self.pod, self.node, self.afterwards())
    }
}

impl fmt::Display for PreemptedFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { replaced, victim } = self;
        write!(f, "preempted on {} for the replacement of {replaced}; {}", victim.node, victim.afterwards())
    }
}

impl PreemptedPod {
    /// The pod for whose replacement this pod is preempted; `traced` is the pod whose placement lists this one.
    pub fn preempted_for<'a>(&'a self, traced: &'a Key) -> &'a Key {
        self.in_turn_for.as_ref().unwrap_or(traced)
    }

    /// Describes what becomes of the preempted pod.
    fn afterwards(&self) -> Cow<'static, str> {
        match (&self.landing, self.lost) {
            (Some(landing), _) => format!("its replacement: {}", landing.text()).into(),
            (None, Some(why)) => why.says().into(),
            (None, None) => "whether it is recreated is not known".into(),
        }
    }
}
