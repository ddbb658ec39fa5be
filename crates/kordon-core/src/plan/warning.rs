//! Warnings that an operator should read before a plan is applied.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use super::{
    budget::BudgetNumbers,
    claim_protection::released_claims,
    cordon_wait::CordonWait,
    gaps::PlanGap,
    job_failure::JobFailure,
    job_owner::JobOwner,
    outcome_kind::OutcomeCounts,
    owner::{self, OwnerLookup, Recreation},
    pod_group,
    switchover::{Switchover, role_of, switchover},
};
use crate::cluster::{
    Cluster, FeedKind, Key, LocalVolume, MaintenanceNotes, Name, Node, NodeName, OperationId, OwnerKind, Pod,
    UNSCHEDULABLE, WorkloadKind, ZoneKey, tolerates_no_schedule,
};
use kordon_time::{Span, Timestamp};

/// A warning about one pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PodWarning {
    /// The pod has an emptyDir on disk, whose data is lost.
    EmptyDirData,
    /// The pod has an emptyDir in memory, whose data is lost.
    MemoryData,
    /// The pod uses files of its node. Its replacement does not have these files on another node.
    HostPathData,
    /// The pod has a generic ephemeral volume, whose claim and data are deleted with the pod.
    EphemeralVolume,
    /// A claim of the pod is being deleted, and no other pod uses it. The claim and its data are deleted once the pod
    /// leaves.
    ClaimDeleted,
    /// The pod tolerates the cordon, so its replacement may land on the same node.
    MayReturn,
    /// The pod is the only replica of its workload. Until its replacement is Ready, the workload has no Ready pod.
    SingleReplica,
    /// All Ready pods of the pod's workload leave in this plan, and no budget prevents it.
    LastReady,
    /// The pod's priority is system-cluster-critical or higher.
    Critical,
    /// A finalizer keeps the pod's object beyond its grace period.
    HeldByFinalizer,
    /// The kubelet of the pod's node is down, so the pod stays Terminating.
    KubeletDown,
    /// The pod garbage collector removes the pod by force, because its node is out of service.
    RemovedByForce,
    /// A grace period of zero removes the pod's object while its containers may still run. Two pods with the same
    /// identity may then run at once.
    DuplicateIdentity,
    /// The pod's DaemonSet does not recreate the pod while the node has a taint that the pod does not tolerate.
    NotRecreatedWhileTainted,
    /// The kind of the pod's owner belongs to another project, whose operator is assumed to recreate the pod.
    OperatorRecreates,
    /// The pod's operator first moves the pod's role to a ready replica on another node.
    SwitchesOver,
    /// The pod's operator does not move the pod's role, because the other instances are not ready on other nodes.
    NoReplica,
    /// The pod's operator deletes the pod, the only instance, once the node is cordoned.
    OperatorRestarts,
    /// The pod's operator may deny the eviction by a webhook, and move the pod in its own way.
    OperatorDenies,
    /// The pod belongs to a group of pods, all of which restart if it leaves.
    RestartsGroup,
    /// The pod's workload has pods of several revisions, and the replacement may be of another revision than the pod.
    RolloutInProgress,
}

impl PodWarning {
    /// Returns whether the pod's data is lost with the pod.
    pub const fn loses_data(self) -> bool {
        matches!(self, Self::EmptyDirData | Self::MemoryData | Self::EphemeralVolume | Self::ClaimDeleted)
    }

    /// Returns a stable name for the warning.
    pub const fn word(self) -> &'static str {
        match self {
            Self::EmptyDirData => "emptyDirData",
            Self::MemoryData => "memoryData",
            Self::HostPathData => "hostPathData",
            Self::EphemeralVolume => "ephemeralVolume",
            Self::ClaimDeleted => "claimDeleted",
            Self::MayReturn => "mayReturnHere",
            Self::SingleReplica => "singleReplica",
            Self::LastReady => "lastReady",
            Self::Critical => "critical",
            Self::HeldByFinalizer => "hasFinalizers",
            Self::KubeletDown => "kubeletDown",
            Self::RemovedByForce => "removedByForce",
            Self::DuplicateIdentity => "duplicateIdentity",
            Self::NotRecreatedWhileTainted => "notRecreatedWhileTainted",
            Self::OperatorRecreates => "operatorRecreates",
            Self::SwitchesOver => "switchesOver",
            Self::NoReplica => "noReplica",
            Self::OperatorRestarts => "operatorRestarts",
            Self::OperatorDenies => "operatorDenies",
            Self::RestartsGroup => "restartsGroup",
            Self::RolloutInProgress => "rolloutInProgress",
        }
    }
}

impl fmt::Display for PodWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::EmptyDirData => "emptyDir data is lost",
            Self::MemoryData => "emptyDir data in memory is lost",
            Self::HostPathData => "hostPath data stays on the node",
            Self::EphemeralVolume => "its ephemeral volume is lost",
            Self::ClaimDeleted => {
                "a claim of it is being deleted and goes with it, and so does the volume unless its reclaimPolicy is \
                 Retain: copy the data first"
            }
            Self::MayReturn => "tolerates the cordon, may return to this node",
            Self::SingleReplica => "only replica",
            Self::LastReady => "last Ready pod of its workload",
            Self::Critical => "critical",
            Self::HeldByFinalizer => "held by a finalizer",
            Self::KubeletDown => "kubelet down",
            Self::RemovedByForce => "removed by force, by the pod garbage collector within 20s",
            Self::DuplicateIdentity => "grace 0: its identity may exist twice",
            Self::NotRecreatedWhileTainted => "its DaemonSet does not recreate it while the taint is set",
            Self::OperatorRecreates => "its operator is assumed to recreate it",
            Self::SwitchesOver => "its operator moves its role to a ready replica first",
            Self::NoReplica => "its operator needs a ready replica on another schedulable node",
            Self::OperatorRestarts => {
                "its operator deletes it once the node is cordoned: down until it is Ready again"
            }
            Self::OperatorDenies => "its operator may deny the eviction and move it itself",
            Self::RestartsGroup => "the other pods of its group restart with it",
            Self::RolloutInProgress => "rollout in progress",
        })
    }
}

/// What a Kubernetes operator does with its pods on a node that is cordoned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CordonAct {
    /// The operator moves the role of the pods to other pods.
    MovesRole,
    /// The operator deletes the pods. Each of them is the only instance of its database cluster.
    Restarts,
    /// The operator does nothing, because no other instance can take the role of the pods now.
    Nothing,
    /// It is not known which other instances there are.
    Unknown,
}

/// A warning about the plan as a whole.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Warning {
    /// A part of the plan depends on unknown or outdated objects.
    Unknown(PlanGap),
    /// The zone keeps no node that is Ready and schedulable.
    ZoneLosesLastReady {
        zone: ZoneKey,
    },
    /// The cluster keeps no node that is Ready and schedulable.
    NoSchedulableNode,
    ControlPlane {
        node: NodeName,
    },
    /// The kubelet of the node is down. Deleted pods stay Terminating until the kubelet is back or the Node object is
    /// deleted.
    KubeletDown {
        node: NodeName,
    },
    /// Pods that do not match `--pod-selector` stay, so the node is not empty after the drain.
    UnselectedRemain {
        node: NodeName,
        pods: usize,
    },
    /// The plan removes `pods` pods without checking their budgets. The evictions of `blocked` of these pods would be
    /// refused; `blocked` is `None` if budgets are not known.
    BudgetsIgnored {
        pods: usize,
        blocked: Option<usize>,
    },
    /// The node is cordoned at the end of the plan, but still has pods that cannot leave.
    DrainIncomplete {
        node: NodeName,
        pods: usize,
    },
    /// Replacements stay Pending. The first of them is the replacement of `pod`, which leaves when `node` is drained.
    CapacityExhausted {
        node: NodeName,
        pod: Key,
        why: Name,
    },
    /// Pods likely leave before the timeout, but may take longer.
    MayTimeOut {
        timeout: Span,
        pods: usize,
    },
    /// Pods come back to the drained node. The drain does not empty the node.
    ComesBack {
        node: NodeName,
        pods: usize,
        /// Shortest time from the departure of one of the pods to the creation of its replacement. It is the back-off
        /// for pods of Jobs.
        after: Span,
        /// Whether the scheduler places the pods on the node, because they tolerate the cordon. If false, the template
        /// of the pods names the node.
        are_placed: bool,
    },
    /// NoExecute taints evict pods whose replacements land on the same node and are evicted again.
    EvictedAgain {
        node: NodeName,
        pods: usize,
        /// Approximate number of pods that the taints evict in an hour; `None` if without a pause.
        per_hour: Option<i64>,
    },
    /// The drain of a node waits for the uncordon of another node.
    WaitsForUncordon(CordonWait),
    /// What the Kubernetes operator of these pods does once the node is cordoned: it moves the roles of the pods to
    /// other pods, deletes the pods, or does nothing because no other instance can take the roles. It is unknown if the
    /// other instances are not known.
    Switchover {
        node: NodeName,
        operator: &'static str,
        act: CordonAct,
        pods: usize,
    },
    /// A Job or an index of it fails, because its pods that leave or are preempted count as failed.
    JobFails {
        job: Key,
        why: JobFailure,
        /// Number of pods of the plan that are not replaced.
        pods: usize,
        /// Number of other pods of the Job, which the Job controller deletes.
        others: usize,
        /// The owner of the Job, if it has one and the whole Job fails.
        owner: Option<JobOwner>,
    },
    /// Replacements preempt pods on other nodes that then have nowhere to run. Budgets do not prevent a preemption.
    Preempts {
        /// Number of preempted pods, with those that run again elsewhere.
        pods: usize,
        /// The first of the pods that have nowhere to run, by name.
        pod: Key,
        /// Outcomes of the pods that have nowhere to run.
        outcomes: OutcomeCounts,
    },
    /// Pods of a LeaderWorkerSet group leave, so that the other pods of the group restart too.
    GroupRestarts {
        set: Key,
        index: Name,
        /// Whether the leader pod of the LeaderWorkerSet's group leaves.
        leads: bool,
        /// Number of pods of the group that the plan does not remove.
        others: usize,
    },
    /// A quota refuses replacements. It admits some of them once old pods are gone, and the others only if something
    /// else changes.
    QuotaExceeded {
        quota: Key,
        /// Use of the quota, for example `pods 10 of 10 used`.
        numbers: String,
        /// Number of replacements that the quota refuses. It admits `admitted` of them once old pods are gone.
        pods: usize,
        admitted: usize,
    },
    /// The numbers in the status of the budget differ from the numbers that follow from its pods.
    StatusDiffers {
        budget: Key,
        computed: [i32; 4],
        reported: [i32; 4],
    },
    /// The taint allows the forced removal of pods and the forced detachment of volumes while the node is not Ready.
    OutOfService {
        node: NodeName,
    },
    /// The deleted node is Ready. Its machine keeps running.
    MachineRuns {
        node: NodeName,
        /// Number of pods on the node that are neither static nor of a DaemonSet.
        pods: usize,
    },
    /// The pod owns pods that the plan does not remove. The garbage collector deletes the owned pods once their owner
    /// is gone.
    OwnedPodsDeleted {
        pod: Key,
        /// Number of pods that the garbage collector deletes.
        pods: usize,
    },
    /// The Node object stays after its deletion, because finalizers keep it.
    NodeHeld {
        node: NodeName,
        finalizers: Vec<Name>,
    },
    /// The node lifecycle controller adds and removes this taint, so a manual change does not last.
    ControllersTaint {
        node: NodeName,
        key: Name,
    },
    /// NoExecute taints evict no pods, because the controller that does this is disabled.
    TaintsDoNotEvict,
    /// kordon cordoned the node, and the intended end time of this cordon has not passed.
    CordonStands {
        node: NodeName,
        /// Text of the note of the cordon: who cordoned the node, why and until when.
        note: String,
    },
    /// kordon cordoned the node without an intended end time, or the intended end time of this cordon has passed.
    CordonNoted {
        node: NodeName,
        note: String,
    },
    /// An operation has claimed the node for a drain. `active` is true if the claim is still renewed.
    Claimed {
        node: NodeName,
        by: String,
        operation: OperationId,
        renewed: Timestamp,
        active: bool,
    },
    /// The node is in a maintenance. `active` is true if the maintenance is running.
    Maintained {
        node: NodeName,
        by: String,
        operation: OperationId,
        active: bool,
    },
}

impl Warning {
    pub fn status_differs(budget: &Key, computed: BudgetNumbers, reported: BudgetNumbers) -> Self {
        let row =
            |numbers: BudgetNumbers| [numbers.expected, numbers.desired, numbers.healthy, numbers.allowed];
        Self::StatusDiffers { budget: budget.clone(), computed: row(computed), reported: row(reported) }
    }

    /// Returns a stable name for the warning.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Unknown(_) => "unknown",
            Self::ZoneLosesLastReady { .. } => "zoneLosesLastReady",
            Self::NoSchedulableNode => "noSchedulableNode",
            Self::ControlPlane { .. } => "controlPlane",
            Self::KubeletDown { .. } => "kubeletDown",
            Self::UnselectedRemain { .. } => "unselectedRemain",
            Self::BudgetsIgnored { .. } => "budgetsIgnored",
            Self::DrainIncomplete { .. } => "partlyDrained",
            Self::CapacityExhausted { .. } => "capacityExhausted",
            Self::ComesBack { .. } => "comesBack",
            Self::MayTimeOut { .. } => "mayTimeOut",
            Self::EvictedAgain { .. } => "evictedAgain",
            Self::WaitsForUncordon(_) => "waitsForUncordon",
            Self::Switchover { .. } => "switchover",
            Self::JobFails { .. } => "jobFails",
            Self::Preempts { .. } => "preempts",
            Self::GroupRestarts { .. } => "groupRestarts",
            Self::QuotaExceeded { .. } => "quotaExceeded",
            Self::StatusDiffers { .. } => "statusDiffers",
            Self::OutOfService { .. } => "outOfService",
            Self::MachineRuns { .. } => "machineRuns",
            Self::OwnedPodsDeleted { .. } => "ownedPodsDeleted",
            Self::NodeHeld { .. } => "nodeHeld",
            Self::ControllersTaint { .. } => "controllersTaint",
            Self::TaintsDoNotEvict => "taintsDoNotEvict",
            Self::CordonStands { .. } => "cordonStands",
            Self::CordonNoted { .. } => "cordonNoted",
            Self::Claimed { .. } => "claimedByOther",
            Self::Maintained { .. } => "inMaintenance",
        }
    }
}

/// Returns warnings about what Kubernetes operators do with pods that have a role, once these nodes are cordoned.
pub fn of_switchovers(cluster: &Cluster, nodes: &[Arc<Node>], now: Timestamp) -> Vec<Warning> {
    let closed: BTreeSet<NodeName> = nodes.iter().map(|node| node.name.clone()).collect();
    let mut acts: BTreeMap<(&NodeName, &'static str, CordonAct), usize> = BTreeMap::new();
    for node in nodes.iter().filter(|node| !node.unschedulable) {
        for pod in cluster.pods_on(&node.name) {
            let (Some(role), Some(switchover)) = (role_of(pod), switchover(cluster, pod, &closed, now))
            else {
                continue;
            };
            let act = match switchover {
                Switchover::Moves { after, moves_them } if after.is_empty() || moves_them => {
                    CordonAct::MovesRole
                }
                Switchover::Restarts => CordonAct::Restarts,
                Switchover::Unknown => CordonAct::Unknown,
                Switchover::Moves { .. } | Switchover::NoReplica | Switchover::Overdue { .. } => {
                    CordonAct::Nothing
                }
            };
            *acts.entry((&node.name, role.operator, act)).or_default() += 1;
        }
    }
    let warning = |((node, operator, act), pods): ((&NodeName, _, _), _)| Warning::Switchover {
        node: node.clone(),
        operator,
        act,
        pods,
    };
    acts.into_iter().map(warning).collect()
}

/// Returns the warnings about a pod that the plan removes. `leaving` has all pods that leave. `unprotected` is true if
/// no budget protects the pod.
pub fn of_pod(
    cluster: &Cluster,
    pod: &Pod,
    leaving: &BTreeSet<Key>,
    unprotected: bool,
) -> BTreeSet<PodWarning> {
    let mut found = BTreeSet::new();
    let mut warn_if = |holds: bool, warning| {
        if holds {
            found.insert(warning);
        }
    };
    let runs = !pod.is_finished();
    warn_if(runs && pod.storage.has(LocalVolume::EmptyDir), PodWarning::EmptyDirData);
    warn_if(runs && pod.storage.has(LocalVolume::Memory), PodWarning::MemoryData);
    warn_if(runs && pod.storage.has(LocalVolume::HostPath), PodWarning::HostPathData);
    warn_if(pod.storage.has(LocalVolume::Ephemeral), PodWarning::EphemeralVolume);
    let loses_claim = !released_claims(cluster, pod, |other| leaving.contains(other)).is_empty();
    warn_if(loses_claim, PodWarning::ClaimDeleted);
    warn_if(runs && pod.is_critical(), PodWarning::Critical);
    warn_if(pod.is_held(), PodWarning::HeldByFinalizer);
    warn_if(runs && may_return(cluster, pod), PodWarning::MayReturn);
    warn_if(runs && owner::is_rolling_out(cluster, pod), PodWarning::RolloutInProgress);
    warn_if(runs && owner::assumed_operator(cluster, pod).is_some(), PodWarning::OperatorRecreates);
    warn_if(runs && pod_group::restarts_others(cluster, pod), PodWarning::RestartsGroup);
    if let Some(workload) = owner::workload(cluster, pod).filter(|_| pod.lives() && pod.is_ready()) {
        let is_scaled = !matches!(workload.kind, WorkloadKind::DaemonSet | WorkloadKind::Job);
        if is_scaled && workload.replicas == Some(1) {
            warn_if(true, PodWarning::SingleReplica);
        } else {
            let is_last = is_scaled && unprotected && all_ready_leave(cluster, pod, leaving);
            warn_if(is_last, PodWarning::LastReady);
        }
    }
    found
}

/// Returns whether all Ready pods of the pod's owner leave; false if not all pods of the owner are known.
fn all_ready_leave(cluster: &Cluster, pod: &Pod, leaving: &BTreeSet<Key>) -> bool {
    let Some(owner) = &pod.owner else { return false };
    if !owner::knows_pods(cluster, &pod.key.namespace, owner) {
        return false;
    }
    let stays = |pod: &Arc<Pod>| pod.is_ready() && pod.termination.is_none() && !leaving.contains(&pod.key);
    !cluster.pods_owned_by(&owner.uid).any(stays)
}

/// Returns whether the pod's replacement may land on the same node, although this node is cordoned.
fn may_return(cluster: &Cluster, pod: &Pod) -> bool {
    match owner::recreation(cluster, pod) {
        Recreation::OnSameNode => true,
        Recreation::Immediately | Recreation::WhenGone => {
            tolerates_no_schedule(&pod.tolerations, UNSCHEDULABLE)
        }
        Recreation::Never(_) | Recreation::Unknown => false,
    }
}

/// Returns whether the pod has an identity that its replacement takes over.
pub fn has_identity(pod: &Pod) -> bool {
    pod.owner.as_ref().is_some_and(|owner| owner.kind == OwnerKind::Workload(WorkloadKind::StatefulSet))
}

/// Returns whether the pod is managed by a DaemonSet that may still exist.
pub fn is_of_existing_daemonset(cluster: &Cluster, pod: &Pod) -> bool {
    let Some(owner) = &pod.owner else { return false };
    pod.is_of_daemon_set() && owner::find(cluster, &pod.key.namespace, owner) != OwnerLookup::Gone
}

impl Warning {
    /// The operation that has claimed the node of this warning, or the maintenance that has the node; `None` for other
    /// warnings.
    pub const fn holder(&self) -> Option<&OperationId> {
        match self {
            Self::Claimed { operation, .. } | Self::Maintained { operation, .. } => Some(operation),
            _ => None,
        }
    }
}

/// Returns a warning for each of these nodes that an operation has claimed for a drain, even if the claim is no longer
/// renewed.
pub fn of_claims<'a>(nodes: &'a [Arc<Node>], now: Timestamp) -> impl Iterator<Item = Warning> + 'a {
    let claimed = nodes.iter().filter_map(|node| Some((node, node.drain_claim.as_ref()?)));
    claimed.map(move |(node, claim)| Warning::Claimed {
        node: node.name.clone(),
        by: claim.by.clone(),
        operation: claim.operation.clone(),
        renewed: claim.renewed,
        active: claim.is_fresh(now),
    })
}

/// Returns a warning for each of these nodes that is in a maintenance, even if the maintenance was stopped.
pub fn of_maintenances(cluster: &Cluster, nodes: &[Arc<Node>], now: Timestamp) -> Vec<Warning> {
    if nodes.iter().all(|node| node.maintenance.is_none()) {
        return Vec::new();
    }
    let maintenances = MaintenanceNotes::all(cluster);
    let warning = |node: &Arc<Node>| {
        let notes = maintenances.iter().find(|notes| notes.nodes.contains_key(&node.name))?;
        let (by, operation) = (notes.by.clone(), notes.operation.clone());
        Some(Warning::Maintained { node: node.name.clone(), by, operation, active: notes.is_running(now) })
    };
    nodes.iter().filter_map(warning).collect()
}

/// Returns a warning for each of these nodes that kordon has cordoned.
pub fn of_cordons<'a>(nodes: &'a [Arc<Node>], now: Timestamp) -> impl Iterator<Item = Warning> + 'a {
    let noted = nodes.iter().filter_map(|node| Some((node, node.cordon()?)));
    noted.map(move |(node, cordon)| {
        let (name, note) = (node.name.clone(), cordon.text(now));
        if cordon.until.is_some_and(|_| !cordon.is_expired(now)) {
            Warning::CordonStands { node: name, note }
        } else {
            Warning::CordonNoted { node: name, note }
        }
    })
}

/// Returns the warnings about zones, the cluster and control plane nodes that a cordon of these nodes causes.
pub fn of_closing(cluster: &Cluster, nodes: &[Arc<Node>]) -> Vec<Warning> {
    let closing: BTreeSet<&NodeName> = nodes.iter().map(|node| &node.name).collect();
    let is_open = |node: &&Arc<Node>| node.is_ready() && !node.unschedulable;
    let stays = |node: &&Arc<Node>| is_open(node) && !closing.contains(&node.name);
    let mut warnings = Vec::new();
    if cluster.known(FeedKind::Nodes).is_known() && nodes.iter().any(|node| is_open(&node)) {
        if !cluster.nodes().iter().any(|node| stays(&node)) {
            warnings.push(Warning::NoSchedulableNode);
        }
        let zones: BTreeSet<ZoneKey> = nodes
            .iter()
            .filter(is_open)
            .map(|node| node.zone())
            .filter(|zone| *zone != ZoneKey::default())
            .collect();
        let loses = |zone: &ZoneKey| !cluster.nodes().iter().any(|node| stays(&node) && node.zone() == *zone);
        warnings.extend(zones.into_iter().filter(loses).map(|zone| Warning::ZoneLosesLastReady { zone }));
    }
    warnings.extend(of_control_plane(nodes));
    warnings
}

/// Returns a warning for each of these nodes that runs the control plane.
pub fn of_control_plane(nodes: &[Arc<Node>]) -> impl Iterator<Item = Warning> {
    let control_plane = nodes.iter().filter(|node| node.is_control_plane());
    control_plane.map(|node| Warning::ControlPlane { node: node.name.clone() })
}
