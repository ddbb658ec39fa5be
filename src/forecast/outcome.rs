//! What becomes of a pod that is evicted, by the same rule as in N-1, a what-if and `kordon forecast`
//! ([`Forecast::successors`]).

use std::{fmt, sync::Arc};

use super::{Forecast, Succession, Successor, SuccessorState};
use crate::{
    cluster::{Cluster, FeedKind, Gaps, Key, Name, NodeName, Pod, Scope},
    ordered::{OrderedMap, OrderedSet},
    plan::{
        CreationTime, Environment, EvictionNote, Landing, QuotaRefusal, environment, eviction_note,
        owner::{self, Recreation},
        placement_trace,
    },
    time::Timestamp,
};

/// What becomes of a pod that is evicted.
#[derive(Clone, Debug, PartialEq)]
pub enum EvictionOutcome {
    /// Its replacement lands on a node.
    Moves {
        node: NodeName,
        /// How many nodes are as good: the scheduler takes any of them. At least one.
        among: usize,
        /// Why on that one.
        why: Name,
        /// The claim whose volume has to be detached from the old node first.
        volume: Option<Name>,
        /// The quota that refuses it at first.
        quota: Option<Box<QuotaRefusal>>,
    },
    /// No node takes its replacement.
    Pending {
        /// In a few words: `no node has 4 CPU free`.
        cause: Name,
        /// How many nodes give which reason.
        why: Name,
        /// What would let a node take it.
        help: Vec<String>,
    },
    /// A quota refuses its replacement until the end of the forecast.
    Refused(Box<QuotaRefusal>),
    /// Its replacement does not run before its node is back, deleted or tainted out-of-service.
    Stuck(StuckReason),
    /// No controller recreates it.
    Lost,
    /// It runs again on the same node: its DaemonSet keeps it there, or it is a static pod.
    SameNode,
    /// Its controller has enough pods without it, or it has finished.
    NotReplaced,
    /// Its replacement was created when its deletion started.
    Replaced,
    /// Its replacement is created when it is gone, which its kubelet sees to.
    ReplacedWhenGone,
    /// What it rests on is not known, or another scheduler decides.
    Unknown { why: Name },
    /// There are too many pods to work it out for each.
    LeftOut,
}

/// A class of outcomes: how they are counted and drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OutcomeClass {
    /// The replacement lands on a node.
    Moves,
    /// The pod leaves, and nothing runs in its place.
    Unreplaced(Unreplaced),
    /// It needs no replacement on another node.
    NotReplaced,
    /// What it rests on is not known.
    Unknown,
    /// It is not worked out, as there are too many.
    LeftOut,
}

/// Why nothing runs in the place of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unreplaced {
    /// No node takes the replacement.
    Pending,
    /// A quota refuses the replacement.
    Refused,
    /// The replacement waits for the old node.
    Stuck,
    /// There is no replacement.
    Lost,
}

impl OutcomeClass {
    /// Why nothing runs in the place of the pod; none where something does, or need not, or that is not known.
    pub const fn unreplaced(self) -> Option<Unreplaced> {
        match self {
            Self::Unreplaced(why) => Some(why),
            Self::Moves | Self::NotReplaced | Self::Unknown | Self::LeftOut => None,
        }
    }
}

/// Why the replacement of a pod waits for the old node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StuckReason {
    /// Its controller creates none while the old pod exists.
    OldPod,
    /// The volume of this claim stays attached to the old node.
    Volume { claim: Name },
}

impl EvictionOutcome {
    pub const fn class(&self) -> OutcomeClass {
        match self {
            Self::Moves { .. } => OutcomeClass::Moves,
            Self::Pending { .. } => OutcomeClass::Unreplaced(Unreplaced::Pending),
            Self::Refused(_) => OutcomeClass::Unreplaced(Unreplaced::Refused),
            Self::Stuck(_) => OutcomeClass::Unreplaced(Unreplaced::Stuck),
            Self::Lost => OutcomeClass::Unreplaced(Unreplaced::Lost),
            Self::SameNode | Self::NotReplaced | Self::Replaced | Self::ReplacedWhenGone => {
                OutcomeClass::NotReplaced
            }
            Self::Unknown { .. } => OutcomeClass::Unknown,
            Self::LeftOut => OutcomeClass::LeftOut,
        }
    }

    /// A stable word for it.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Moves { .. } => "moves",
            Self::Pending { .. } => "pending",
            Self::Refused(_) => "refused",
            Self::Stuck(_) => "stuck",
            Self::Lost => "lost",
            Self::SameNode => "sameNode",
            Self::NotReplaced => "notReplaced",
            Self::Replaced => "replaced",
            Self::ReplacedWhenGone => "replacedWhenGone",
            Self::Unknown { .. } => "unknown",
            Self::LeftOut => "leftOut",
        }
    }

    /// Sorts pods that do not come back first, and pods that move last.
    pub const fn rank(&self) -> u8 {
        match self {
            Self::Lost => 0,
            Self::Stuck(_) => 1,
            Self::Refused(_) => 2,
            Self::Pending { .. } => 3,
            Self::Unknown { .. } => 4,
            Self::LeftOut => 5,
            Self::NotReplaced => 6,
            Self::ReplacedWhenGone => 7,
            Self::Replaced => 8,
            Self::SameNode => 9,
            Self::Moves { .. } => 10,
        }
    }

    /// What it says in a few words, where there is little room.
    pub fn short(&self) -> String {
        match self {
            Self::Moves { node, among: ..=1, .. } => format!("→ {node}"),
            Self::Moves { among, .. } => format!("→ any of {among} nodes"),
            Self::Pending { cause, .. } => format!("→ Pending: {cause}"),
            Self::Refused(refusal) => format!("→ refused: quota {}", refusal.quota.name),
            Self::Stuck(StuckReason::OldPod) => "stuck with its node".into(),
            Self::Stuck(StuckReason::Volume { .. }) => "stuck: volume held".into(),
            Self::Lost => "lost".into(),
            Self::SameNode => "→ the same node".into(),
            Self::NotReplaced => "not replaced".into(),
            Self::Replaced => "replaced".into(),
            Self::ReplacedWhenGone => "replaced when gone".into(),
            Self::Unknown { .. } => "not known".into(),
            Self::LeftOut => "not worked out".into(),
        }
    }

    /// The node of the replacement, where it is known.
    pub const fn node(&self) -> Option<&NodeName> {
        match self {
            Self::Moves { node, .. } => Some(node),
            _ => None,
        }
    }

    /// Why, and what would help, one line each.
    pub fn reasons(&self) -> Vec<String> {
        match self {
            Self::Moves { why, volume, quota, .. } => {
                let volume = volume.iter().map(|claim| {
                    format!("starts once volume {claim} is detached from the old node, by force after 6m")
                });
                let quota = quota.iter().map(ToString::to_string);
                [why.to_string()].into_iter().chain(volume).chain(quota).collect()
            }
            Self::Refused(refusal) => vec![refusal.to_string()],
            Self::Pending { why, help, .. } => [why.to_string()].into_iter().chain(help.clone()).collect(),
            Self::Stuck(_)
            | Self::Lost
            | Self::SameNode
            | Self::NotReplaced
            | Self::Replaced
            | Self::ReplacedWhenGone
            | Self::Unknown { .. }
            | Self::LeftOut => Vec::new(),
        }
    }

    /// What becomes of a pod whose deletion has started.
    pub fn of_terminating(cluster: &Cluster, pod: &Pod) -> Self {
        let missing = missing(cluster, pod);
        if !missing.is_empty() {
            return Self::Unknown { why: missing.to_string().into() };
        }
        let is_down =
            || pod.node.as_ref().is_some_and(|node| !environment::has_running_kubelet(cluster, node));
        match owner::recreation(cluster, pod) {
            Recreation::WhenGone if is_down() => Self::Stuck(StuckReason::OldPod),
            Recreation::WhenGone => Self::ReplacedWhenGone,
            Recreation::Immediately => match eviction_note::attached_once(cluster, pod).filter(|_| is_down())
            {
                Some(claim) => Self::Stuck(StuckReason::Volume { claim }),
                None => Self::Replaced,
            },
            Recreation::OnSameNode => Self::SameNode,
            Recreation::Never(owner::NotRecreated::Finished) => Self::NotReplaced,
            Recreation::Never(owner::NotRecreated::NoOwner | owner::NotRecreated::OwnerGone) => Self::Lost,
        }
    }
}

/// The whole statement.
impl fmt::Display for EvictionOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Moves { node, among, volume, quota, .. } => {
                write!(f, "→ {node}")?;
                if *among > 1 {
                    write!(f, " (tie of {among})")?;
                }
                match (quota, volume) {
                    (Some(refusal), _) => write!(f, ", once quota {} allows it", refusal.quota.name),
                    (None, Some(_)) => f.write_str(", once its volume is detached"),
                    (None, None) => Ok(()),
                }
            }
            Self::Refused(refusal) => write!(f, "{} ({})", self.short(), refusal.numbers()),
            Self::Stuck(StuckReason::OldPod) => f.write_str(
                "stuck Terminating: no replacement until the node is back, deleted or tainted out-of-service",
            ),
            Self::Stuck(StuckReason::Volume { claim }) => {
                write!(
                    f,
                    "stuck: volume {claim} is held until the node is back, deleted or tainted out-of-service"
                )
            }
            Self::Lost => f.write_str("lost: no controller recreates it"),
            Self::SameNode => f.write_str("→ the same node, once that is back"),
            Self::NotReplaced => f.write_str("not replaced: its controller needs no other"),
            Self::Replaced => f.write_str("replaced when its deletion started"),
            Self::ReplacedWhenGone => f.write_str("replaced when its kubelet has ended it"),
            Self::Unknown { why } => write!(f, "not known: {why}"),
            Self::LeftOut => f.write_str("not worked out: too many pods"),
            Self::Pending { .. } => f.write_str(&self.short()),
        }
    }
}

impl Forecast {
    /// What becomes of the pods that leave, at these times, and of all others that the forecast deletes; worked out
    /// for the first `most` in the order in which replacements are placed.
    pub fn outcomes<E: Environment>(
        &self,
        leaving: &OrderedMap<Key, Timestamp>,
        most: usize,
        cluster: &Cluster,
        environment: E,
    ) -> OrderedMap<Key, EvictionOutcome> {
        let missing_for_all = cluster.gaps([FeedKind::Nodes, FeedKind::Pods]).unknown();
        if !missing_for_all.is_empty() {
            let outcome = EvictionOutcome::Unknown { why: missing_for_all.to_string().into() };
            return leaving.keys().map(|key| (key.clone(), outcome.clone())).collect();
        }
        let (succession, others) = self.successors_of_first(most, leaving, cluster, environment);
        let left_out: OrderedSet<&Key> = others.iter().map(|pod| &pod.key).collect();
        let successors: OrderedMap<&Key, &Successor> =
            succession.successors.iter().map(|successor| (&successor.of, successor)).collect();
        let outcome = |pod: &Arc<Pod>| {
            let missing = missing(cluster, pod);
            if !missing.is_empty() {
                return EvictionOutcome::Unknown { why: missing.to_string().into() };
            }
            match successors.get(&pod.key) {
                Some(successor) => of_successor(successor, pod, &succession),
                None if left_out.contains(&pod.key) => EvictionOutcome::LeftOut,
                None if owner::recreation(cluster, pod) == Recreation::OnSameNode => {
                    EvictionOutcome::SameNode
                }
                None => EvictionOutcome::NotReplaced,
            }
        };
        let pods = leaving.keys().filter_map(|key| cluster.pod(key));
        pods.map(|pod| (pod.key.clone(), outcome(pod))).collect()
    }
}

fn of_successor(successor: &Successor, pod: &Pod, succession: &Succession) -> EvictionOutcome {
    let SuccessorState::Replaced { at, created, landing, ready, volume, quota } = &successor.state else {
        return EvictionOutcome::Lost;
    };
    let trace = succession.trace.placements.get(&successor.of);
    match (landing, at, volume) {
        (Landing::Pending { why }, ..) => EvictionOutcome::Pending {
            cause: trace.map_or_else(
                || why.clone(),
                |trace| placement_trace::cause(&trace.reasons, &pod.resources.requests),
            ),
            why: why.clone(),
            help: successor.help(&succession.trace),
        },
        (_, None, _) if let Some(refusal) = quota => EvictionOutcome::Refused(refusal.clone()),
        (_, None, _) if *created == CreationTime::WhenGone => EvictionOutcome::Stuck(StuckReason::OldPod),
        (_, _, Some(claim)) if ready.is_none() => {
            EvictionOutcome::Stuck(StuckReason::Volume { claim: claim.clone() })
        }
        (Landing::Node { node, why }, _, volume) => {
            let among = trace.map_or(1, |trace| trace.best.max(1));
            let (node, why) = (node.clone(), why.clone());
            EvictionOutcome::Moves { node, among, why, volume: volume.clone(), quota: quota.clone() }
        }
        (Landing::Unknown, ..) => {
            let why =
                trace.map(|trace| trace.why()).unwrap_or_else(|| "its placement is not computed".into());
            EvictionOutcome::Unknown { why }
        }
    }
}

/// What is missing of what decides whether a pod is recreated, and where its volumes can be reached.
fn missing(cluster: &Cluster, pod: &Pod) -> Gaps {
    let scopes = EvictionNote::needs(cluster, pod);
    cluster.gaps_in(scopes.into_iter().filter(|scope| !matches!(scope, Scope::BudgetsIn(_)))).unknown()
}
