//! What was weighed where a replacement landed, and what that means for the nodes: in words and numbers.

use std::{collections::BTreeMap, fmt, sync::Arc};

use super::landing::Landing;
use crate::{
    cluster::{Key, Name, NodeName, quantity},
    placement::{
        Caveat, Help, Obstacle, Placement, Reason, ResourceUse, Scored, Share, Unschedulable, VolumeTopology,
        volume_topology,
    },
};

/// Why a replacement lands where it does.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlacementTrace {
    /// How many nodes would do.
    pub feasible: usize,
    /// How many of them are equally good: the scheduler takes any.
    pub best: usize,
    /// The best and their runners-up with what their scores are made of, best first.
    pub ranking: Vec<Scored>,
    /// By how many points the best is ahead of the next; none where there is no next.
    pub margin: Option<i64>,
    /// Whether so little decides that a small drift would turn it.
    pub close_call: bool,
    /// Where no node would do as it is: how many nodes give each reason.
    pub reasons: BTreeMap<Reason, usize>,
    /// The pods that it displaces, and what becomes of their own replacements.
    pub displaces: Vec<Displaced>,
    /// Where it stays Pending: what would help.
    pub help: Option<Help>,
    /// Where its volumes keep it.
    pub volumes: Vec<VolumeTopology>,
    /// What was not looked at.
    pub caveats: Vec<Caveat>,
    /// Why the default scheduler does not place it at all.
    pub obstacle: Option<Obstacle>,
}

/// A pod that has to make room.
#[derive(Clone, Debug, PartialEq)]
pub struct Displaced {
    pub pod: Key,
    pub node: NodeName,
    /// Where its own replacement lands; none where nobody brings it back.
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
    /// What is taken of each resource before and after, in words.
    pub fn shares(&self) -> [(&'static str, String); 3] {
        let Self { before, after, .. } = self;
        [
            ("pods", share("pods", before.pods.requested, after.pods)),
            ("cpu", share("cpu", before.cpu_milli.requested, after.cpu_milli)),
            ("memory", share("memory", before.memory_bytes.requested, after.memory_bytes)),
        ]
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

/// What a run has to tell beside its course.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunTrace {
    /// By the pod that is replaced. Empty where nobody works placements out.
    pub placements: BTreeMap<Key, Arc<PlacementTrace>>,
    /// By name.
    pub receivers: Vec<Receiver>,
}

/// Runners-up that are told of, the best among them.
const TOLD: usize = 5;

impl PlacementTrace {
    pub fn placed(placement: &Placement) -> Self {
        let most = placement.ranking.first().map_or(0, |best| best.total);
        let next = placement.ranking.iter().find(|scored| scored.total < most);
        Self {
            feasible: placement.feasible,
            best: placement.best.len(),
            ranking: placement.ranking.iter().take(TOLD).cloned().collect(),
            margin: next.map(|next| most - next.total),
            close_call: placement.is_close_call(),
            caveats: placement.caveats.clone(),
            ..Self::default()
        }
    }

    pub fn refused(refused: &Unschedulable) -> Self {
        let (reasons, caveats) = (refused.reasons.clone(), refused.caveats.clone());
        Self { reasons, caveats, ..Self::default() }
    }

    /// Why there, or why nowhere, in a few words.
    pub fn why(&self) -> Name {
        match volume_topology::words(&self.volumes) {
            Some(tethered) => format!("{}; {tethered}", self.weighed()).into(),
            None => self.weighed(),
        }
    }

    fn weighed(&self) -> Name {
        if let Some(obstacle) = &self.obstacle {
            return obstacle.to_string().as_str().into();
        }
        if let Some(first) = self.displaces.first() {
            let others = match self.displaces.len() {
                1 => String::new(),
                victims => format!(" and {} more", victims - 1),
            };
            return format!("displaces {}{others}", first.pod).as_str().into();
        }
        match (self.feasible, self.best, self.margin) {
            (0, ..) => reasons(&self.reasons).as_str().into(),
            (1, ..) => "the only node that would do".into(),
            (feasible, 1, Some(margin)) => {
                let close = if self.close_call { ", a close call" } else { "" };
                format!("best of {feasible} by {margin}{close}").as_str().into()
            }
            (feasible, best, _) => format!("any of {best} as good, of {feasible}").as_str().into(),
        }
    }
}

/// `12 not enough cpu, 1 cordoned`: the commonest first.
pub fn reasons(reasons: &BTreeMap<Reason, usize>) -> String {
    let mut counted: Vec<(&Reason, &usize)> = reasons.iter().collect();
    counted.sort_by_key(|(reason, nodes)| (std::cmp::Reverse(**nodes), (*reason).clone()));
    let words: Vec<String> = counted.iter().map(|(reason, nodes)| format!("{nodes} {reason}")).collect();
    if words.is_empty() { "there is no node".into() } else { words.join(", ") }
}

impl fmt::Display for Displaced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} has to leave {}", self.pod, self.node)?;
        match &self.landing {
            Some(landing) => write!(f, "; its replacement: {}", landing.words()),
            None => f.write_str(", and nobody brings it back"),
        }
    }
}
