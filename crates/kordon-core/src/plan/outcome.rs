//! Outcomes of pods that leave their nodes, for whatever reason. Evictions, verdict, forecast, what-if, N-1, plans and
//! reports all use them (docs/outcomes.md).
//!
//! [`Departing::decide`] decides the outcome once the replacement has been placed.
//! [`TerminatingPods`](super::TerminatingPods) decide it for pods whose deletion has started.
//! [`OutcomeCounts`](super::OutcomeCounts) counts outcomes. Every pod has exactly one outcome, so the parts add up to
//! the total.

use std::{fmt, sync::Arc};

use super::{
    environment::has_running_kubelet,
    eviction_note::{self, EvictionNote},
    forced_removal::FORCED_DETACH,
    job_failure::JobFailure,
    job_owner::FailedJob,
    landing::Landing,
    not_needed::NotNeeded,
    outcome_kind::OutcomeKind,
    owner::{self, NotRecreated, Recreation},
    placement_trace::{self, PlacementTrace},
    quota::QuotaRefusal,
    successor,
    words::counted,
};
use crate::{
    cluster::{
        Cluster, FeedKind, Gaps, Key, Name, NodeName, OUT_OF_SERVICE, Pod, PodResources, Taint, TaintEffect,
    },
    engine::{Tolerance, UNREACHABLE, tolerance},
    placement::TiedNodes,
};
use kordon_time::Timestamp;

/// The outcome of a pod that leaves its node.
#[derive(Clone, Debug, PartialEq)]
pub enum PodOutcome {
    /// The replacement lands on a node, which may be the pod's own node.
    Moves {
        node: NodeName,
        /// The equally good nodes, including `node`. The scheduler may pick any of them.
        among: TiedNodes,
        /// The reason for the choice of `node`.
        why: Name,
        /// Whether `node` is the pod's own node, and no other node is as good.
        is_back: bool,
        /// The claim whose volume must be detached from the old node before the replacement starts.
        volume: Option<Name>,
        /// The quota that refuses the replacement until the quota has room; `None` if no quota refuses it.
        quota: Option<Box<QuotaRefusal>>,
        /// Pods that the replacement preempts on the node.
        preempts: Vec<Key>,
        /// Time at which the replacement is likely Ready; `None` if not computed.
        ready: Option<Timestamp>,
    },
    /// No node takes the replacement.
    Pending {
        /// The cause in a few words: `no node has 4 CPU free`.
        cause: Name,
        /// Why no node takes the replacement: the reasons, with the number of nodes for each.
        why: Name,
        /// The changes that would let a node take the replacement.
        help: Vec<String>,
    },
    /// A quota refuses the replacement, and no pod that leaves makes room for it.
    Refused(Box<QuotaRefusal>),
    /// Nothing runs in the pod's place until its node is back, the pod or the Node object is deleted, or the node is
    /// tainted out-of-service.
    Stuck(StuckReason),
    /// No controller recreates the pod.
    Lost,
    /// The whole run to which the pod belongs, such as a build, fails: the controller of the pod's owner creates no
    /// other pod.
    FailsRun { owner: Name },
    /// The pod counts as a failure of its Job and is not replaced: the Job fails, or the pod's index fails.
    FailsJob { job: Name, why: JobFailure, takes: Box<FailedJob> },
    /// A budget, or a missing flag of the drain, keeps the pod from leaving.
    Blocked { why: String },
    /// The pod runs again on the same node, because its DaemonSet keeps it there or because it is a static pod.
    SameNode,
    /// The pod keeps running on its node.
    Stays { why: Name },
    /// The pod is not recreated, and need not be.
    NotRecreated(NotNeeded),
    /// The pod has finished.
    Finished,
    /// The replacement was created when the pod's deletion started.
    Replaced {
        /// Whether the old pod stays Terminating, because its kubelet is down.
        hangs: bool,
        /// Whether the replacement is Pending because it has no node yet. It is then also counted as a Pending pod.
        is_pending: bool,
    },
    /// The replacement is created once the kubelet or the pod garbage collector has removed the pod's object.
    WaitsForOldPod,
    /// The outcome is not known, because required objects are not known or because another scheduler decides.
    Unknown { why: Name },
    /// The outcome was not computed, because there are too many pods.
    LeftOut,
}

/// The reason why nothing runs in the place of a pod until its node is back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StuckReason {
    /// The pod's controller creates no replacement while the old pod exists.
    OldPod,
    /// The pod's controller creates no replacement while the old pod exists, and finalizers keep the old pod even if it
    /// is removed by force (upstream `podgc.PodGCController.markFailedAndDeletePod`).
    Finalizers {
        /// Names of the finalizers, separated by commas.
        names: Name,
        /// Whether the kubelet of the old pod is down and nothing else ends the pod, so that the pod stays even without
        /// its finalizers.
        hangs: bool,
    },
    /// Nothing evicts the pod, because it tolerates the taints of a dead node without a limit.
    NotEvicted {
        /// Whether the out-of-service taint on its node removes it: it does not tolerate that taint without a limit.
        is_fenced: bool,
        /// Whether a replacement is created when the pod's deletion starts. Otherwise only a deletion by force helps,
        /// because its kubelet does not end it.
        is_replaced_at_once: bool,
    },
    /// The volume of this claim stays attached to the old node.
    Volume { claim: Name },
    /// The replacement waits on its node, because another replacement uses the volume of this claim on another node.
    SharedVolume { claim: Name, node: NodeName },
    /// The pod's StatefulSet creates the replacement only once this pod of a lower ordinal is Ready.
    LowerOrdinal { pod: Name },
    /// The replacement is bound to this node, which sends no heartbeats.
    SilentNode { node: NodeName },
    /// The kubelet of the node that the template names rejects each replacement.
    Rejected { why: Name },
}

impl StuckReason {
    /// Returns why the old pod stays, so that its controller creates no replacement. The kubelet of the pod is down.
    pub(super) fn for_old_pod(pod: &Pod) -> Self {
        if !pod.is_held() {
            return Self::OldPod;
        }
        let names: Vec<&str> = pod.holding_finalizers().map(Name::as_str).collect();
        Self::Finalizers { names: names.join(", ").into(), hangs: true }
    }
}

/// The circumstances in which a pod leaves, known before its replacement is placed.
#[derive(Clone, Debug)]
pub struct Departing {
    pub recreation: Recreation,
    /// Why the pod needs no replacement, although its controller or its kubelet recreates pods; `None` if it needs
    /// one.
    pub not_needed: Option<NotNeeded>,
    /// Unknown kinds of the objects that decide whether the pod is recreated and where its volumes can be reached.
    pub missing: Gaps,
    /// Whether the pod keeps running if nothing deletes it.
    pub keeps_running: bool,
    /// Whether the pod's deletion starts at all.
    pub is_deleted: bool,
    /// Whether the pod's object is removed in the end.
    pub is_gone: bool,
    /// Whether the pod's volumes are detached from its node.
    pub is_detached: bool,
    /// A claim of the pod whose volume can be used by only one node at a time.
    pub volume: Option<Name>,
    pub quota: Option<QuotaRefusal>,
    /// When the replacement is created, if the back-off of a Job delays it.
    pub created: Option<Timestamp>,
    /// Why it is not known whether the pod is recreated; empty if it is known.
    pub unknown: Name,
    /// The resources that the replacement requests.
    pub resources: Arc<PodResources>,
    /// Consequences of the failure of the pod's Job, if the Job fails.
    pub failed_job: FailedJob,
}

/// The replacement of a pod, once it has been placed.
#[derive(Clone, Copy, Debug)]
pub struct PlacedReplacement<'a> {
    pub landing: &'a Landing,
    /// Trace of the placement; `None` if it was not kept.
    pub trace: Option<&'a PlacementTrace>,
    /// Time at which the replacement is likely Ready; `None` if not computed.
    pub ready: Option<Timestamp>,
}

impl Departing {
    /// Creates the departure of a pod whose node is lost for good. No kubelet ends the pod. The node's taint evicts
    /// it, unless the pod tolerates the taint. `is_known` means that all required objects of the cluster are known.
    pub fn from_lost_node(cluster: &Cluster, pod: &Pod, is_known: bool) -> Self {
        Self {
            keeps_running: false,
            is_gone: false,
            is_detached: false,
            ..Self::from_not_ready_node(cluster, pod, is_known)
        }
    }

    /// Creates the departure of a pod whose node is down while evictions are paused: nothing evicts it, and it counts
    /// as running, because the controller takes the failure for one of the network.
    pub fn from_paused_node(cluster: &Cluster, pod: &Pod, is_known: bool) -> Self {
        Self { is_deleted: false, keeps_running: true, ..Self::from_lost_node(cluster, pod, is_known) }
    }

    /// Creates the departure of a pod whose node is not Ready, but whose kubelet runs. The node's taint evicts it,
    /// unless the pod tolerates the taint.
    pub fn from_not_ready_node(cluster: &Cluster, pod: &Pod, is_known: bool) -> Self {
        Self { is_deleted: !is_never_evicted(pod), ..Self::from_running_node(cluster, pod, is_known) }
    }

    /// Creates the departure of a pod that is deleted and that its kubelet ends. `is_known` means that all required
    /// objects of the cluster are known.
    pub fn from_running_node(cluster: &Cluster, pod: &Pod, is_known: bool) -> Self {
        let recreation = owner::recreation(cluster, pod);
        let unknown = match recreation {
            Recreation::Unknown => owner::unknown_text(cluster, pod),
            _ => Name::default(),
        };
        Self {
            recreation,
            not_needed: NotNeeded::find(cluster, pod, recreation),
            unknown,
            missing: if is_known { Gaps::default() } else { missing(cluster, pod) },
            keeps_running: true,
            is_deleted: true,
            is_gone: true,
            is_detached: true,
            volume: eviction_note::attached_once(cluster, pod),
            quota: None,
            created: None,
            resources: successor::successor(cluster, pod).resources.clone(),
            failed_job: FailedJob::default(),
        }
        .with_recreation(cluster, pod, recreation)
    }

    /// Sets how the pod's controller recreates the pod, and the consequences if the pod's Job fails.
    #[must_use]
    pub fn with_recreation(self, cluster: &Cluster, pod: &Pod, recreation: Recreation) -> Self {
        let failed_job = match recreation {
            Recreation::Never(NotRecreated::JobFails(why)) if why.is_of_job() => FailedJob::new(cluster, pod),
            _ => FailedJob::default(),
        };
        Self { recreation, failed_job, ..self }
    }

    /// Returns whether the pod can be replaced: its deletion starts, quotas admit a replacement, and its controller
    /// recreates such pods. The controller may still have enough pods without a replacement.
    pub fn is_replaced(&self) -> bool {
        let is_admitted = self.quota.as_ref().is_none_or(|refusal| refusal.admitted.is_some());
        self.is_deleted
            && is_admitted
            && self.not_needed.is_none()
            && match self.recreation {
                Recreation::Immediately => true,
                Recreation::WhenGone => self.is_gone,
                Recreation::OnSameNode | Recreation::Never(_) | Recreation::Unknown => false,
            }
    }

    /// Returns whether the pod is created again on its own node.
    pub fn comes_back(&self) -> bool {
        self.recreation == Recreation::OnSameNode && self.not_needed.is_none()
    }

    /// Returns the outcome, by the precedence of docs/outcomes.md. `replacement` is `None` if the controller has enough
    /// pods or if [no replacement is created](Self::is_replaced).
    pub fn decide(&self, pod: &Pod, replacement: Option<PlacedReplacement<'_>>) -> PodOutcome {
        // Outcomes that follow from how the pod is recreated.
        match self.recreation {
            Recreation::Never(NotRecreated::Finished) => return PodOutcome::Finished,
            _ if !self.is_deleted && self.keeps_running => {
                return PodOutcome::Stays { why: "nothing evicts it".into() };
            }
            Recreation::OnSameNode => {
                let unplaced = replacement.filter(|replacement| replacement.landing.has_nowhere_to_run());
                return match unplaced.filter(|_| self.not_needed.is_none()) {
                    Some(replacement) => self.landed(pod, replacement),
                    None => PodOutcome::on_same_node(self.not_needed),
                };
            }
            Recreation::Never(NotRecreated::NoOwner) if self.is_deleted => return PodOutcome::Lost,
            _ => {}
        }
        if !self.missing.is_empty() {
            return PodOutcome::Unknown { why: self.missing.to_string().into() };
        }
        match self.recreation {
            Recreation::Never(NotRecreated::JobFails(why)) if self.is_deleted => {
                return PodOutcome::for_failed_job(pod, why, self.failed_job.clone());
            }
            Recreation::Never(NotRecreated::RunFails) if self.is_deleted => {
                return PodOutcome::for_failed_run(pod);
            }
            Recreation::Never(_) if self.is_deleted => return PodOutcome::Lost,
            Recreation::Unknown if self.is_deleted => {
                return PodOutcome::Unknown { why: self.unknown.clone() };
            }
            Recreation::Immediately | Recreation::WhenGone if let Some(why) = self.not_needed => {
                return PodOutcome::NotRecreated(why);
            }
            recreation if !self.is_deleted => {
                return PodOutcome::Stuck(StuckReason::NotEvicted {
                    is_fenced: !tolerates_fencing(pod),
                    is_replaced_at_once: recreation == Recreation::Immediately,
                });
            }
            Recreation::WhenGone if !self.is_gone => {
                return PodOutcome::Stuck(StuckReason::for_old_pod(pod));
            }
            Recreation::Immediately
            | Recreation::WhenGone
            | Recreation::OnSameNode
            | Recreation::Never(_)
            | Recreation::Unknown => {}
        }
        match (&self.quota, replacement) {
            (Some(refusal), _) if refusal.admitted.is_none() => {
                PodOutcome::Refused(Box::new(refusal.clone()))
            }
            (_, None) => PodOutcome::NotRecreated(NotNeeded::EnoughPods),
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
                    |trace| placement_trace::cause(&trace.reasons, &self.resources.requests),
                ),
                why: why.clone(),
                help: trace.and_then(|trace| Some(trace.help.as_ref()?.lines())).unwrap_or_default(),
            },
            (Landing::Rejected { why }, _) => PodOutcome::Stuck(StuckReason::Rejected { why: why.clone() }),
            (_, Some(claim)) if !self.is_detached => {
                PodOutcome::Stuck(StuckReason::Volume { claim: claim.clone() })
            }
            (Landing::Node { .. }, _)
                if let Some((claim, node)) = trace.and_then(|trace| trace.shared_volume.clone()) =>
            {
                PodOutcome::Stuck(StuckReason::SharedVolume { claim, node })
            }
            (Landing::Node { node, .. }, _) if trace.is_some_and(|trace| trace.is_silent) => {
                PodOutcome::Stuck(StuckReason::SilentNode { node: node.clone() })
            }
            (Landing::Node { node, why }, volume) => {
                let among = trace
                    .and_then(|trace| trace.best.clone())
                    .unwrap_or_else(|| TiedNodes::from_nodes([node.clone()].into()));
                PodOutcome::Moves {
                    node: node.clone(),
                    why: why.clone(),
                    is_back: pod.node.as_ref() == Some(node) && among.len() <= 1,
                    among,
                    volume: volume.clone(),
                    quota: self.quota.clone().map(Box::new),
                    preempts: trace
                        .map(|trace| trace.victims().map(|victim| victim.pod.clone()).collect())
                        .unwrap_or_default(),
                    ready,
                }
            }
            (Landing::Unknown, _) => PodOutcome::Unknown {
                why: trace.map_or_else(|| "its placement is not computed".into(), PlacementTrace::why),
            },
        }
    }
}

/// Returns whether the taint of an unreachable node never evicts the pod (`getMinTolerationTime`,
/// docs/upstream/node-lifecycle.md).
pub fn is_never_evicted(pod: &Pod) -> bool {
    tolerates_forever(pod, UNREACHABLE)
}

/// Returns whether a pod tolerates the out-of-service taint without a limit, so that the taint does not evict it.
pub fn tolerates_fencing(pod: &Pod) -> bool {
    tolerates_forever(pod, OUT_OF_SERVICE)
}

/// Returns whether a pod tolerates a NoExecute taint forever. The taint has this key and no value.
pub fn tolerates_forever(pod: &Pod, key: &str) -> bool {
    let taint = Taint { key: key.into(), effect: TaintEffect::NoExecute, ..Taint::default() };
    tolerance(&pod.tolerations, [&taint]) == Tolerance::Forever
}

/// Returns the unknown kinds of the objects that decide whether a pod is recreated and where its volumes can be
/// reached.
pub(super) fn missing(cluster: &Cluster, pod: &Pod) -> Gaps {
    cluster.gaps_in(EvictionNote::needs_of_replacement(cluster, pod)).unknown()
}

impl PodOutcome {
    /// Returns whether the outcome already says what the note says: until when there is no replacement.
    pub fn says(&self, note: &EvictionNote) -> bool {
        *note == EvictionNote::WaitsForOldPod && self.kind() == OutcomeKind::Stuck
    }

    pub const fn kind(&self) -> OutcomeKind {
        match self {
            Self::Moves { preempts, .. } if !preempts.is_empty() => OutcomeKind::Preempts,
            Self::Moves { is_back: true, .. } => OutcomeKind::SameNode,
            Self::Moves { .. } => OutcomeKind::Moves,
            Self::Pending { .. } => OutcomeKind::Pending,
            Self::Refused(_) => OutcomeKind::Refused,
            Self::Stuck(_) => OutcomeKind::Stuck,
            Self::Lost | Self::FailsRun { .. } => OutcomeKind::Lost,
            Self::FailsJob { .. } => OutcomeKind::FailsJob,
            Self::Blocked { .. } => OutcomeKind::Blocked,
            Self::SameNode => OutcomeKind::SameNode,
            Self::Stays { .. } => OutcomeKind::Stays,
            Self::NotRecreated(_) => OutcomeKind::NotRecreated,
            Self::Finished => OutcomeKind::Finished,
            Self::Replaced { .. } => OutcomeKind::Replaced,
            Self::WaitsForOldPod => OutcomeKind::WaitsForOldPod,
            Self::Unknown { .. } => OutcomeKind::Unknown,
            Self::LeftOut => OutcomeKind::LeftOut,
        }
    }

    /// Returns the outcome of a pod that nothing evicts, because it tolerates the taints of its node without a limit.
    pub fn for_never_evicted(cluster: &Cluster, pod: &Pod) -> Self {
        let keeps_running = pod.node.as_ref().is_some_and(|node| has_running_kubelet(cluster, node));
        let departing = Departing::from_lost_node(cluster, pod, true);
        Departing { is_deleted: false, keeps_running, ..departing }.decide(pod, None)
    }

    /// Returns the outcome of a DaemonSet's pod or a static pod: it runs again on its node, unless it is not needed
    /// there.
    pub(super) fn on_same_node(not_needed: Option<NotNeeded>) -> Self {
        not_needed.map_or(Self::SameNode, Self::NotRecreated)
    }

    /// Returns the outcome after the plan or the forecast has deleted the Node object: pods that would be recreated on
    /// the same node are not recreated.
    #[must_use]
    pub(super) fn without_node(self) -> Self {
        self.unless_on_same_node(NotNeeded::NodeGone)
    }

    /// Replaces [`Self::SameNode`] by [`Self::NotRecreated`] with the reason `why`. Any other outcome stays unchanged.
    #[must_use]
    pub(super) fn unless_on_same_node(self, why: NotNeeded) -> Self {
        match self {
            Self::SameNode => Self::NotRecreated(why),
            outcome => outcome,
        }
    }

    pub(super) fn for_failed_run(pod: &Pod) -> Self {
        let owner = pod.owner.as_ref().map(|owner| format!("{} {}", owner.kind.as_str(), owner.name));
        Self::FailsRun { owner: owner.unwrap_or_default().into() }
    }

    pub(super) fn for_failed_job(pod: &Pod, why: JobFailure, takes: FailedJob) -> Self {
        let job = pod.owner.as_ref().map(|owner| owner.name.clone()).unwrap_or_default();
        Self::FailsJob { job, why, takes: Box::new(takes) }
    }

    /// Returns [`PodOutcome::Unknown`], the outcome of every pod, if nodes or pods are not known; otherwise `None`.
    pub fn for_unknown_cluster(cluster: &Cluster) -> Option<Self> {
        let missing = cluster.gaps([FeedKind::Nodes, FeedKind::Pods]).unknown();
        (!missing.is_empty()).then(|| Self::Unknown { why: missing.to_string().into() })
    }

    /// Returns the outcome in a few words, for places with little room.
    pub fn short(&self) -> String {
        match self {
            Self::Moves { node, is_back: true, .. } => format!("→ back to {node}"),
            Self::Moves { node, among, .. } => match among.len() {
                ..=1 => format!("→ {node}"),
                nodes => format!("→ any of {nodes} nodes"),
            },
            Self::Pending { cause, .. } => format!("→ Pending: {cause}"),
            Self::Refused(refusal) => format!("→ refused: quota {}", refusal.quota.name),
            Self::Stuck(StuckReason::OldPod | StuckReason::NotEvicted { .. }) => "stuck with its node".into(),
            Self::Stuck(StuckReason::Finalizers { .. }) => "stuck: held by finalizers".into(),
            Self::Stuck(StuckReason::Volume { .. }) => "stuck: volume held".into(),
            Self::Stuck(StuckReason::SharedVolume { .. }) => "stuck: volume shared".into(),
            Self::Stuck(StuckReason::LowerOrdinal { pod }) => format!("stuck behind {pod}"),
            Self::Stuck(StuckReason::SilentNode { node }) => format!("stuck: {node} is silent"),
            Self::Stuck(StuckReason::Rejected { .. }) => "stuck: rejected by its node".into(),
            Self::Lost => "lost".into(),
            Self::FailsRun { owner } => format!("fails {owner}"),
            Self::FailsJob { job, why, .. } if why.is_of_job() => format!("fails Job {job}"),
            Self::FailsJob { why, .. } => why.to_string(),
            Self::Blocked { why } => format!("blocked: {why}"),
            Self::SameNode => "→ the same node".into(),
            Self::Stays { .. } => "stays".into(),
            Self::NotRecreated(_) => "not recreated".into(),
            Self::Finished => "finished".into(),
            Self::Replaced { is_pending: true, .. } => "replaced: Pending".into(),
            Self::Replaced { hangs: false, .. } => "replaced".into(),
            Self::Replaced { hangs: true, .. } => "replaced; old pod hangs".into(),
            Self::WaitsForOldPod => "waits for the old pod".into(),
            Self::Unknown { .. } => "not known".into(),
            Self::LeftOut => "not worked out".into(),
        }
    }

    /// Returns the node of the replacement, if it is known.
    pub const fn node(&self) -> Option<&NodeName> {
        match self {
            Self::Moves { node, .. } => Some(node),
            _ => None,
        }
    }

    /// Returns the time at which the replacement is likely Ready, if it is known.
    pub const fn ready(&self) -> Option<Timestamp> {
        match self {
            Self::Moves { ready, .. } => *ready,
            _ => None,
        }
    }

    /// Returns the reasons for the outcome and what would help, one line each.
    pub fn reasons(&self) -> Vec<String> {
        match self {
            Self::Moves { why, volume, quota, .. } => {
                let volume = volume.iter().map(|claim| {
                    format!(
                        "starts once volume {claim} is detached from the old node, by force after {FORCED_DETACH}"
                    )
                });
                let quota = quota.iter().map(ToString::to_string);
                [why.to_string()].into_iter().chain(volume).chain(quota).collect()
            }
            Self::Refused(refusal) => vec![refusal.to_string()],
            Self::Pending { why, help, .. } => [why.to_string()].into_iter().chain(help.clone()).collect(),
            Self::FailsJob { why, takes, .. } => {
                [why.to_string()].into_iter().chain(takes.owner.as_ref().map(ToString::to_string)).collect()
            }
            Self::Stuck(_)
            | Self::Lost
            | Self::FailsRun { .. }
            | Self::Blocked { .. }
            | Self::SameNode
            | Self::Stays { .. }
            | Self::NotRecreated(_)
            | Self::Finished
            | Self::Replaced { .. }
            | Self::WaitsForOldPod
            | Self::Unknown { .. }
            | Self::LeftOut => Vec::new(),
        }
    }

    /// Returns what would let a node take the replacement; empty if the replacement is not Pending.
    pub fn help(&self) -> &[String] {
        match self {
            Self::Pending { help, .. } => help,
            _ => &[],
        }
    }
}

/// Formats the complete outcome.
impl fmt::Display for PodOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Moves { node, among, is_back, volume, quota, preempts, .. } => {
                write!(f, "→ {}{node}", if *is_back { "back to " } else { "" })?;
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
            Self::Stuck(StuckReason::Finalizers { names, hangs }) => {
                write!(f, "stuck Terminating: no replacement until its finalizers are removed ({names})")?;
                let until =
                    if *hangs { " and the node is back, deleted or tainted out-of-service" } else { "" };
                f.write_str(until)
            }
            Self::Stuck(StuckReason::NotEvicted { is_fenced, is_replaced_at_once }) => {
                let node = if *is_fenced { ", deleted or tainted out-of-service" } else { " or deleted" };
                let pod = if *is_replaced_at_once { "deleted" } else { "deleted by force" };
                write!(
                    f,
                    "stuck: it tolerates the taint, no replacement until the node is back{node}, or the pod is {pod}"
                )
            }
            Self::Stuck(StuckReason::Volume { claim }) => {
                write!(
                    f,
                    "stuck: volume {claim} is held until the node is back, deleted or tainted out-of-service"
                )
            }
            Self::Stuck(StuckReason::SharedVolume { claim, node }) => {
                write!(
                    f,
                    "stuck: ReadWriteOnce volume {claim} is attached to {node}, where another pod uses it"
                )
            }
            Self::Stuck(StuckReason::LowerOrdinal { pod }) => {
                write!(
                    f,
                    "stuck: its StatefulSet creates it once {pod} is Ready (podManagementPolicy: OrderedReady)"
                )
            }
            Self::Stuck(StuckReason::SilentNode { node }) => write!(
                f,
                "stuck: {node}, to which its replacement is bound, is silent: nothing starts there until its kubelet is back"
            ),
            Self::Stuck(StuckReason::Rejected { why }) => write!(f, "stuck: {why}"),
            Self::Lost => f.write_str("lost: no controller recreates it"),
            Self::FailsRun { owner } => write!(f, "lost: {owner} fails, it creates no second pod"),
            Self::FailsJob { job, why, takes } if why.is_of_job() => {
                write!(f, "fails Job {job} ({why})")?;
                match takes.elsewhere {
                    0 => Ok(()),
                    pods => {
                        let pods =
                            counted(pods, "pod of it on another node is", "pods of it on other nodes are");
                        write!(f, "; {pods} deleted, too")
                    }
                }
            }
            Self::FailsJob { job, why, .. } => write!(f, "{why} in Job {job}"),
            Self::SameNode => f.write_str("→ the same node, as soon as that is up"),
            Self::Stays { why } => write!(f, "stays: {why}"),
            Self::NotRecreated(why) => write!(f, "not recreated: {why}"),
            Self::Replaced { is_pending: true, .. } => f.write_str("replaced; its replacement is Pending"),
            Self::Replaced { hangs: false, .. } => f.write_str("replaced when its deletion started"),
            Self::Replaced { hangs: true, .. } => {
                f.write_str("replaced; old pod hangs until its kubelet is back")
            }
            Self::WaitsForOldPod => f.write_str("replaced when the old pod is gone"),
            Self::Unknown { why } => write!(f, "not known: {why}"),
            Self::LeftOut => f.write_str("not worked out: too many pods"),
            Self::Blocked { .. } | Self::Finished | Self::Pending { .. } => f.write_str(&self.short()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The node of a pod of a DaemonSet may be up: a drain leaves the pod alone, but a taint may evict it.
    #[test]
    fn a_pod_that_returns_to_its_node_is_not_said_to_come_from_a_node_that_is_down() {
        assert_eq!(PodOutcome::SameNode.to_string(), "→ the same node, as soon as that is up");
    }
}
