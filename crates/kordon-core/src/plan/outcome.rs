//! What becomes of a pod that leaves its node, for whatever reason: the one answer behind evictions, verdict, forecast,
//! what-if, N-1, plans and reports (docs/outcomes.md).
//!
//! [`Departing::decide`] decides it once the replacement has been placed; [`PodOutcome::of_terminating`] decides it for a pod whose
//! deletion has started. [`OutcomeCounts`] counts outcomes: every pod has exactly one, so that its parts add up to its total.

use std::{collections::BTreeMap, fmt};

use super::{
    environment,
    eviction_note::{self, EvictionNote},
    landing::Landing,
    owner::{self, NotRecreated, Recreation},
    placement_trace::{self, PlacementTrace},
    quota::QuotaRefusal,
    words::counted,
};
use crate::{
    cluster::{Cluster, FeedKind, Gaps, Key, Name, NodeName, OUT_OF_SERVICE, Pod, Scope, Taint, TaintEffect},
    engine::{Tolerance, UNREACHABLE, tolerance},
    placement::TiedNodes,
};
use kordon_time::Timestamp;

/// What becomes of a pod that leaves its node.
#[derive(Clone, Debug, PartialEq)]
pub enum PodOutcome {
    /// Its replacement lands on a node.
    Moves {
        node: NodeName,
        /// The nodes that are as good, itself among them: the scheduler takes any of them.
        among: TiedNodes,
        /// Why on that one.
        why: Name,
        /// The claim whose volume has to be detached from the old node first.
        volume: Option<Name>,
        /// The quota that refuses it at first.
        quota: Option<Box<QuotaRefusal>>,
        /// The pods that it preempts there.
        preempts: Vec<Key>,
        /// When the replacement is likely Ready; none where that is not worked out.
        ready: Option<Timestamp>,
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
    /// Nothing runs in its place before its node is back, its Node object or the pod is deleted, or the node is tainted
    /// out-of-service.
    Stuck(StuckReason),
    /// No controller recreates it.
    Lost,
    /// Something keeps it from leaving: a budget, or a flag that a drain needs.
    Blocked { why: String },
    /// It runs again on the same node: its DaemonSet keeps it there, or it is a static pod.
    SameNode,
    /// It keeps running where it is.
    Stays { why: Name },
    /// Its controller has enough pods without it.
    NotRecreated,
    /// It has finished.
    Finished,
    /// Its replacement was created when its deletion started.
    Replaced {
        /// Whether the old pod stays Terminating, because its kubelet is down.
        hangs: bool,
    },
    /// Its replacement is created when it is gone, which its kubelet sees to.
    WaitsForOldPod,
    /// What it rests on is not known, or another scheduler decides.
    Unknown { why: Name },
    /// There are too many pods to work it out for each.
    LeftOut,
}

/// An outcome without its details: how outcomes are counted, coloured and sorted, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OutcomeKind {
    Lost,
    Stuck,
    Refused,
    Pending,
    Blocked,
    Unknown,
    LeftOut,
    WaitsForOldPod,
    Replaced,
    NotRecreated,
    Finished,
    SameNode,
    Stays,
    Preempts,
    Moves,
}

/// Why nothing runs in the place of a pod before its node is back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StuckReason {
    /// Its controller creates no replacement while the old pod exists.
    OldPod,
    /// Nothing evicts it: it tolerates the taints of a dead node without a limit.
    NotEvicted,
    /// The volume of this claim stays attached to the old node.
    Volume { claim: Name },
}

/// How many pods have which outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutcomeCounts([usize; OutcomeKind::ALL.len()]);

impl OutcomeKind {
    /// All of them, the worst first.
    pub const ALL: [Self; 15] = [
        Self::Lost,
        Self::Stuck,
        Self::Refused,
        Self::Pending,
        Self::Blocked,
        Self::Unknown,
        Self::LeftOut,
        Self::WaitsForOldPod,
        Self::Replaced,
        Self::NotRecreated,
        Self::Finished,
        Self::SameNode,
        Self::Stays,
        Self::Preempts,
        Self::Moves,
    ];

    /// Whether the pod has nowhere to run: it should run somewhere, and nothing runs in its place.
    pub const fn has_nowhere_to_run(self) -> bool {
        match self {
            Self::Lost | Self::Stuck | Self::Refused | Self::Pending => true,
            Self::Blocked
            | Self::Unknown
            | Self::LeftOut
            | Self::WaitsForOldPod
            | Self::Replaced
            | Self::NotRecreated
            | Self::Finished
            | Self::SameNode
            | Self::Stays
            | Self::Preempts
            | Self::Moves => false,
        }
    }

    /// A stable word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Lost => "lost",
            Self::Stuck => "stuck",
            Self::Refused => "refused",
            Self::Pending => "pending",
            Self::Blocked => "blocked",
            Self::Unknown => "unknown",
            Self::LeftOut => "leftOut",
            Self::WaitsForOldPod => "replacedWhenGone",
            Self::Replaced => "replaced",
            Self::NotRecreated => "notReplaced",
            Self::Finished => "finished",
            Self::SameNode => "sameNode",
            Self::Stays => "stays",
            Self::Preempts => "preempts",
            Self::Moves => "moves",
        }
    }

    /// The words behind a number of pods, for one and for several: `moves`, `move`.
    pub const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Lost => ("lost", "lost"),
            Self::Stuck => ("stuck", "stuck"),
            Self::Refused => ("refused by quota", "refused by quota"),
            Self::Pending => ("Pending", "Pending"),
            Self::Blocked => ("blocked", "blocked"),
            Self::Unknown => ("not known", "not known"),
            Self::LeftOut => ("not worked out", "not worked out"),
            Self::WaitsForOldPod => ("waits for the old pod", "wait for the old pod"),
            Self::Replaced => ("replaced", "replaced"),
            Self::NotRecreated => ("not recreated", "not recreated"),
            Self::Finished => ("finished", "finished"),
            Self::SameNode => ("comes back to its node", "come back to their nodes"),
            Self::Stays => ("stays", "stay"),
            Self::Preempts => ("preempts others", "preempt others"),
            Self::Moves => ("moves", "move"),
        }
    }
}

impl OutcomeCounts {
    pub const fn add(&mut self, kind: OutcomeKind) {
        self.0[kind as usize] += 1;
    }

    /// How many pods have this outcome.
    pub const fn of(&self, kind: OutcomeKind) -> usize {
        self.0[kind as usize]
    }

    /// How many pods were counted.
    pub fn total(&self) -> usize {
        self.0.iter().sum()
    }

    /// How many of them have nowhere to run.
    pub fn nowhere(&self) -> usize {
        self.parts().filter(|(kind, _)| kind.has_nowhere_to_run()).map(|(_, pods)| pods).sum()
    }

    /// The outcomes that there are, the worst first. They add up to the total.
    pub fn parts(&self) -> impl DoubleEndedIterator<Item = (OutcomeKind, usize)> + '_ {
        OutcomeKind::ALL.into_iter().map(|kind| (kind, self.of(kind))).filter(|(_, pods)| *pods > 0)
    }

    /// The outcomes that there are, by their words.
    pub fn by_word(&self) -> BTreeMap<&'static str, usize> {
        self.parts().map(|(kind, pods)| (kind.word(), pods)).collect()
    }

    /// Those alone that have nowhere to run.
    #[must_use]
    pub fn only_nowhere(&self) -> Self {
        let nowhere = |kind: OutcomeKind| if kind.has_nowhere_to_run() { self.of(kind) } else { 0 };
        Self(OutcomeKind::ALL.map(nowhere))
    }

    /// `2 stuck, 1 Pending, 6 move`
    pub fn text(&self) -> String {
        joined(self.parts())
    }
}

fn joined(parts: impl Iterator<Item = (OutcomeKind, usize)>) -> String {
    let part = |(kind, pods): (OutcomeKind, usize)| {
        let (one, several) = kind.words();
        counted(pods, one, several)
    };
    parts.map(part).collect::<Vec<_>>().join(", ")
}

impl FromIterator<OutcomeKind> for OutcomeCounts {
    fn from_iter<T: IntoIterator<Item = OutcomeKind>>(kinds: T) -> Self {
        let mut counts = Self::default();
        kinds.into_iter().for_each(|kind| counts.add(kind));
        counts
    }
}

/// What is known of a pod that leaves before its replacement is placed.
#[derive(Clone, Debug)]
pub struct Departing {
    pub recreation: Recreation,
    /// What is missing of what decides whether it is recreated, and where its volumes can be reached.
    pub missing: Gaps,
    /// Whether its deletion starts at all.
    pub is_deleted: bool,
    /// Whether its object goes away.
    pub is_gone: bool,
    /// Whether its volumes are detached from its node.
    pub is_detached: bool,
    /// A claim whose volume only one node may use at a time.
    pub volume: Option<Name>,
    pub quota: Option<QuotaRefusal>,
}

/// The replacement of a pod, as it was placed.
#[derive(Clone, Copy, Debug)]
pub struct PlacedReplacement<'a> {
    pub landing: &'a Landing,
    /// How it was placed; none where that was not kept.
    pub trace: Option<&'a PlacementTrace>,
    /// When it is likely Ready; none where that is not worked out.
    pub ready: Option<Timestamp>,
}

impl Departing {
    /// A pod of a node that is lost and does not come back. Its taint evicts the pod, unless that tolerates it, and no kubelet ends it.
    /// `is_known`: nothing is missing of the cluster.
    pub fn from_lost_node(cluster: &Cluster, pod: &Pod, is_known: bool) -> Self {
        let is_deleted = !is_never_evicted(pod);
        Self {
            is_deleted,
            is_gone: false,
            is_detached: false,
            ..Self::from_running_node(cluster, pod, is_known)
        }
    }

    /// A pod that is deleted, and that its kubelet ends. `is_known`: nothing is missing of the cluster.
    pub fn from_running_node(cluster: &Cluster, pod: &Pod, is_known: bool) -> Self {
        Self {
            recreation: owner::recreation(cluster, pod),
            missing: if is_known { Gaps::default() } else { missing(cluster, pod) },
            is_deleted: true,
            is_gone: true,
            is_detached: true,
            volume: eviction_note::attached_once(cluster, pod),
            quota: None,
        }
    }

    /// Whether a replacement is created, which the scheduler then looks for a node for, if its controller needs one.
    pub fn is_replaced(&self) -> bool {
        let is_admitted = self.quota.as_ref().is_none_or(|refusal| refusal.admitted.is_some());
        self.is_deleted
            && is_admitted
            && match self.recreation {
                Recreation::Immediately => true,
                Recreation::WhenGone => self.is_gone,
                Recreation::OnSameNode | Recreation::Never(_) => false,
            }
    }

    /// The outcome, by the precedence of docs/outcomes.md. `replacement` is none where [none is created](Self::is_replaced), or
    /// where the controller has enough pods.
    pub fn decide(&self, pod: &Pod, replacement: Option<PlacedReplacement<'_>>) -> PodOutcome {
        if !self.missing.is_empty() {
            return PodOutcome::Unknown { why: self.missing.to_string().into() };
        }
        match self.recreation {
            Recreation::Never(NotRecreated::Finished) => return PodOutcome::Finished,
            Recreation::OnSameNode => return PodOutcome::SameNode,
            Recreation::Never(_) if self.is_deleted => return PodOutcome::Lost,
            _ if !self.is_deleted => return PodOutcome::Stuck(StuckReason::NotEvicted),
            Recreation::WhenGone if !self.is_gone => return PodOutcome::Stuck(StuckReason::OldPod),
            Recreation::Immediately | Recreation::WhenGone | Recreation::Never(_) => {}
        }
        match (&self.quota, replacement) {
            (Some(refusal), _) if refusal.admitted.is_none() => {
                PodOutcome::Refused(Box::new(refusal.clone()))
            }
            (_, None) => PodOutcome::NotRecreated,
            (_, Some(replacement)) => self.landed(pod, replacement),
        }
    }

    fn landed(
        &self,
        pod: &Pod,
        PlacedReplacement { landing, trace, ready }: PlacedReplacement<'_>,
    ) -> PodOutcome {
        match (landing, &self.volume) {
            (Landing::Pending { why }, _) => PodOutcome::Pending {
                cause: trace.map_or_else(
                    || why.clone(),
                    |trace| placement_trace::cause(&trace.reasons, &pod.resources.requests),
                ),
                why: why.clone(),
                help: trace.and_then(|trace| Some(trace.help.as_ref()?.lines())).unwrap_or_default(),
            },
            (_, Some(claim)) if !self.is_detached => {
                PodOutcome::Stuck(StuckReason::Volume { claim: claim.clone() })
            }
            (Landing::Node { node, why }, volume) => PodOutcome::Moves {
                node: node.clone(),
                among: trace
                    .and_then(|trace| trace.best.clone())
                    .unwrap_or_else(|| TiedNodes::of([node.clone()].into())),
                why: why.clone(),
                volume: volume.clone(),
                quota: self.quota.clone().map(Box::new),
                preempts: trace
                    .map(|trace| trace.preempts.iter().map(|victim| victim.pod.clone()).collect())
                    .unwrap_or_default(),
                ready,
            },
            (Landing::Unknown, _) => PodOutcome::Unknown {
                why: trace.map_or_else(|| "its placement is not computed".into(), PlacementTrace::why),
            },
        }
    }
}

/// Whether the taint of an unreachable node never evicts the pod (`getMinTolerationTime`, docs/upstream/node-lifecycle.md).
fn is_never_evicted(pod: &Pod) -> bool {
    let unreachable = Taint { key: UNREACHABLE.into(), effect: TaintEffect::NoExecute, ..Taint::default() };
    matches!(tolerance(&pod.tolerations, &[unreachable]), Tolerance::Forever)
}

/// What is missing of what decides whether a pod is recreated, and where its volumes can be reached.
fn missing(cluster: &Cluster, pod: &Pod) -> Gaps {
    let scopes = EvictionNote::needs(cluster, pod);
    cluster.gaps_in(scopes.into_iter().filter(|scope| !matches!(scope, Scope::BudgetsIn(_)))).unknown()
}

impl PodOutcome {
    pub const fn kind(&self) -> OutcomeKind {
        match self {
            Self::Moves { preempts, .. } if preempts.is_empty() => OutcomeKind::Moves,
            Self::Moves { .. } => OutcomeKind::Preempts,
            Self::Pending { .. } => OutcomeKind::Pending,
            Self::Refused(_) => OutcomeKind::Refused,
            Self::Stuck(_) => OutcomeKind::Stuck,
            Self::Lost => OutcomeKind::Lost,
            Self::Blocked { .. } => OutcomeKind::Blocked,
            Self::SameNode => OutcomeKind::SameNode,
            Self::Stays { .. } => OutcomeKind::Stays,
            Self::NotRecreated => OutcomeKind::NotRecreated,
            Self::Finished => OutcomeKind::Finished,
            Self::Replaced { .. } => OutcomeKind::Replaced,
            Self::WaitsForOldPod => OutcomeKind::WaitsForOldPod,
            Self::Unknown { .. } => OutcomeKind::Unknown,
            Self::LeftOut => OutcomeKind::LeftOut,
        }
    }

    /// What becomes of a pod whose deletion has started.
    pub fn of_terminating(cluster: &Cluster, pod: &Pod) -> Self {
        let missing = missing(cluster, pod);
        if !missing.is_empty() {
            return Self::Unknown { why: missing.to_string().into() };
        }
        let hangs = pod.node.as_ref().is_some_and(|node| keeps_pods(cluster, node));
        match owner::recreation(cluster, pod) {
            Recreation::WhenGone if !owner::needs_another(cluster, pod) => Self::NotRecreated,
            Recreation::WhenGone if hangs => Self::Stuck(StuckReason::OldPod),
            Recreation::WhenGone => Self::WaitsForOldPod,
            Recreation::Immediately => match eviction_note::attached_once(cluster, pod).filter(|_| hangs) {
                Some(claim) => Self::Stuck(StuckReason::Volume { claim }),
                None => Self::Replaced { hangs },
            },
            Recreation::OnSameNode => Self::SameNode,
            Recreation::Never(NotRecreated::Finished) => Self::Finished,
            Recreation::Never(NotRecreated::NoOwner | NotRecreated::OwnerGone) => Self::Lost,
        }
    }

    /// The outcome of all pods where nodes or pods are not known; none where they are.
    pub fn of_unknown_cluster(cluster: &Cluster) -> Option<Self> {
        let missing = cluster.gaps([FeedKind::Nodes, FeedKind::Pods]).unknown();
        (!missing.is_empty()).then(|| Self::Unknown { why: missing.to_string().into() })
    }

    /// What it says in a few words, where there is little room.
    pub fn short(&self) -> String {
        match self {
            Self::Moves { node, among, .. } => match among.len() {
                ..=1 => format!("→ {node}"),
                nodes => format!("→ any of {nodes} nodes"),
            },
            Self::Pending { cause, .. } => format!("→ Pending: {cause}"),
            Self::Refused(refusal) => format!("→ refused: quota {}", refusal.quota.name),
            Self::Stuck(StuckReason::OldPod | StuckReason::NotEvicted) => "stuck with its node".into(),
            Self::Stuck(StuckReason::Volume { .. }) => "stuck: volume held".into(),
            Self::Lost => "lost".into(),
            Self::Blocked { why } => format!("blocked: {why}"),
            Self::SameNode => "→ the same node".into(),
            Self::Stays { .. } => "stays".into(),
            Self::NotRecreated => "not recreated".into(),
            Self::Finished => "finished".into(),
            Self::Replaced { hangs: false } => "replaced".into(),
            Self::Replaced { hangs: true } => "replaced; old pod hangs".into(),
            Self::WaitsForOldPod => "waits for the old pod".into(),
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
            | Self::Blocked { .. }
            | Self::SameNode
            | Self::Stays { .. }
            | Self::NotRecreated
            | Self::Finished
            | Self::Replaced { .. }
            | Self::WaitsForOldPod
            | Self::Unknown { .. }
            | Self::LeftOut => Vec::new(),
        }
    }

    /// What would let a node take its replacement; empty where that is not Pending.
    pub fn help(&self) -> &[String] {
        match self {
            Self::Pending { help, .. } => help,
            _ => &[],
        }
    }
}

/// Whether the objects of pods stay on a node after their deletion: its kubelet is down, and the node is not tainted
/// out-of-service (docs/upstream/neighbours.md#4).
pub fn keeps_pods(cluster: &Cluster, node: &NodeName) -> bool {
    !environment::has_running_kubelet(cluster, node) && !is_out_of_service(cluster, node)
}

/// Whether a node has the taint that has its pods and volumes removed at once.
pub fn is_out_of_service(cluster: &Cluster, node: &NodeName) -> bool {
    cluster.node(node).is_some_and(|node| node.taints.iter().any(|taint| taint.key == *OUT_OF_SERVICE))
}

/// The whole statement.
impl fmt::Display for PodOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Moves { node, among, volume, quota, preempts, .. } => {
                write!(f, "→ {node}")?;
                if among.len() > 1 {
                    write!(f, " (one of {} equal nodes)", among.len())?;
                }
                match preempts.as_slice() {
                    [] => {}
                    [one] => write!(f, ", preempts {one}")?,
                    [first, others @ ..] => write!(f, ", preempts {first} and {} more", others.len())?,
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
            Self::Stuck(StuckReason::NotEvicted) => f.write_str(
                "stuck: it tolerates the taint, no replacement until the node is back, deleted or tainted out-of-service",
            ),
            Self::Stuck(StuckReason::Volume { claim }) => {
                write!(
                    f,
                    "stuck: volume {claim} is held until the node is back, deleted or tainted out-of-service"
                )
            }
            Self::Lost => f.write_str("lost: no controller recreates it"),
            Self::SameNode => f.write_str("→ the same node, once that is back"),
            Self::Stays { why } => write!(f, "stays: {why}"),
            Self::NotRecreated => f.write_str("not recreated: its controller needs no other"),
            Self::Replaced { hangs: false } => f.write_str("replaced when its deletion started"),
            Self::Replaced { hangs: true } => f.write_str("replaced; old pod hangs until its kubelet is back"),
            Self::WaitsForOldPod => f.write_str("replaced when its kubelet has ended it"),
            Self::Unknown { why } => write!(f, "not known: {why}"),
            Self::LeftOut => f.write_str("not worked out: too many pods"),
            Self::Blocked { .. } | Self::Finished | Self::Pending { .. } => f.write_str(&self.short()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_kinds_is_that_of_their_places() {
        for (place, kind) in OutcomeKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, place, "{kind:?}");
        }
    }

    #[test]
    fn parts_add_up_to_the_total_and_name_what_has_nowhere_to_run() {
        let kinds = [OutcomeKind::Moves, OutcomeKind::Stuck, OutcomeKind::Pending, OutcomeKind::Stuck];
        let counts: OutcomeCounts = kinds.into_iter().collect();
        assert_eq!((counts.total(), counts.nowhere()), (4, 3));
        assert_eq!(counts.parts().map(|(_, pods)| pods).sum::<usize>(), counts.total());
        assert_eq!(counts.text(), "2 stuck, 1 Pending, 1 moves");
        assert_eq!(counts.only_nowhere().text(), "2 stuck, 1 Pending");
    }
}
