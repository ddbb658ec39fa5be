//! What an operator should know before a plan is carried out.

use std::{collections::BTreeSet, fmt, sync::Arc};

use super::{
    budget::BudgetNumbers,
    owner::{self, OwnerLookup, Recreation},
    words::several,
};
use crate::{
    cluster::{
        Cluster, Key, Name, Node, NodeName, OperationId, OwnerKind, Pod, Taint, TaintEffect, WorkloadKind,
        ZoneKey,
    },
    time::Timestamp,
};

/// A warning about one pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PodWarning {
    /// An emptyDir on disk: its data is lost.
    EmptyDirData,
    /// An emptyDir in memory: its data is lost.
    MemoryData,
    /// Files of the node that it will not find elsewhere.
    HostPathData,
    /// A generic ephemeral volume: its claim and data go with the pod.
    EphemeralVolume,
    /// It tolerates the cordon, and its replacement may land on this very node.
    ComesBackHere,
    /// The only replica of its workload: there is none until its replacement is Ready.
    SingleReplica,
    /// With it, or with others of this plan, goes the last ready pod of its workload; no budget prevents that.
    LastReady,
    /// Of a priority from system-cluster-critical upwards.
    Critical,
    /// A finalizer holds the object, whatever its grace.
    Held,
    /// Its kubelet is silent: nobody confirms its end.
    KubeletSilent,
    /// A grace of zero removes the object while its containers may still run: two of one identity are possible.
    TwoOfAKind,
    /// Its DaemonSet does not bring it back while the taint stands.
    DaemonSetStaysAway,
}

impl PodWarning {
    /// Whether data is lost with it.
    pub const fn loses_data(self) -> bool {
        matches!(self, Self::EmptyDirData | Self::MemoryData | Self::EphemeralVolume)
    }

    /// A word for it, the same for ever.
    pub const fn word(self) -> &'static str {
        match self {
            Self::EmptyDirData => "emptyDirData",
            Self::MemoryData => "memoryData",
            Self::HostPathData => "hostPathData",
            Self::EphemeralVolume => "ephemeralVolume",
            Self::ComesBackHere => "comesBackHere",
            Self::SingleReplica => "singleReplica",
            Self::LastReady => "lastReady",
            Self::Critical => "critical",
            Self::Held => "held",
            Self::KubeletSilent => "kubeletSilent",
            Self::TwoOfAKind => "twoOfAKind",
            Self::DaemonSetStaysAway => "daemonSetStaysAway",
        }
    }
}

impl fmt::Display for PodWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::EmptyDirData => "emptyDir data is lost",
            Self::MemoryData => "emptyDir data in memory is lost",
            Self::HostPathData => "leaves its hostPath data behind",
            Self::EphemeralVolume => "its ephemeral volume is lost",
            Self::ComesBackHere => "tolerates the cordon and may come back here",
            Self::SingleReplica => "the only replica",
            Self::LastReady => "the last ready of its workload",
            Self::Critical => "critical",
            Self::Held => "held by a finalizer",
            Self::KubeletSilent => "its kubelet is silent",
            Self::TwoOfAKind => "grace 0: two of one identity are possible",
            Self::DaemonSetStaysAway => "its DaemonSet stays away while the taint stands",
        })
    }
}

/// A warning about the plan as a whole.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Warning {
    /// No ready and schedulable node is left in the zone.
    ZoneLosesLastReady {
        zone: ZoneKey,
    },
    /// No ready and schedulable node is left at all.
    NothingSchedulable,
    ControlPlane {
        node: NodeName,
    },
    /// Its kubelet is silent: pods that are deleted stay Terminating until it is back or the node object goes.
    KubeletSilent {
        node: NodeName,
    },
    /// Pods stay on the node that a person may take for drained.
    NotSelectedStay {
        node: NodeName,
        pods: usize,
    },
    /// Budgets are not asked about these pods; so many of them they would have held back.
    BudgetsIgnored {
        pods: usize,
        held: usize,
    },
    /// The node ends cordoned with pods on it that cannot go.
    HalfDrained {
        node: NodeName,
        pods: usize,
    },
    /// From the drain of this node on, replacements find no place.
    CapacityEnds {
        node: NodeName,
        pod: Key,
        why: Name,
    },
    /// The status of the budget is not what we work out.
    StatusDisagrees {
        budget: Key,
        ours: [i32; 4],
        told: [i32; 4],
    },
    /// Objects that decide over pods cannot be read.
    NotReadable {
        what: Name,
    },
    /// The taint lets pods of a node that is not ready be removed by force and its volumes be detached.
    OutOfService {
        node: NodeName,
    },
    /// The controller keeps this taint as it sees fit: what is written by hand does not last.
    ControllersTaint {
        node: NodeName,
        key: Name,
    },
    /// Somebody drains the node, or did when they were cut off.
    Marked {
        node: NodeName,
        by: String,
        operation: OperationId,
        renewed: Timestamp,
        at_work: bool,
    },
}

impl Warning {
    pub fn disagreement(budget: &Key, ours: BudgetNumbers, told: BudgetNumbers) -> Self {
        let row =
            |numbers: BudgetNumbers| [numbers.expected, numbers.desired, numbers.healthy, numbers.allowed];
        Self::StatusDisagrees { budget: budget.clone(), ours: row(ours), told: row(told) }
    }

    /// A word for it, the same for ever.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::ZoneLosesLastReady { .. } => "zoneLosesLastReady",
            Self::NothingSchedulable => "nothingSchedulable",
            Self::ControlPlane { .. } => "controlPlane",
            Self::KubeletSilent { .. } => "kubeletSilent",
            Self::NotSelectedStay { .. } => "notSelectedStay",
            Self::BudgetsIgnored { .. } => "budgetsIgnored",
            Self::HalfDrained { .. } => "halfDrained",
            Self::CapacityEnds { .. } => "capacityEnds",
            Self::StatusDisagrees { .. } => "statusDisagrees",
            Self::NotReadable { .. } => "notReadable",
            Self::OutOfService { .. } => "outOfService",
            Self::ControllersTaint { .. } => "controllersTaint",
            Self::Marked { .. } => "marked",
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ZoneLosesLastReady { zone } => {
                write!(f, "zone {zone} loses its last ready, schedulable node")
            }
            Self::NothingSchedulable => f.write_str("no ready, schedulable node is left in the cluster"),
            Self::ControlPlane { node } => write!(f, "{node} is a node of the control plane"),
            Self::KubeletSilent { node } => {
                write!(f, "the kubelet of {node} is silent: pods deleted there stay Terminating")
            }
            Self::NotSelectedStay { node, pods } => {
                let pods =
                    several(*pods, "pod that is not selected stays", "pods that are not selected stay");
                write!(f, "{pods} on {node}: it is not empty")
            }
            Self::BudgetsIgnored { pods, held } => {
                let pods = several(*pods, "pod", "pods");
                write!(f, "budgets are ignored: {held} of {pods} would have been held back")
            }
            Self::HalfDrained { node, pods } => {
                let pods = several(*pods, "pod", "pods");
                write!(f, "{node} ends cordoned with {pods} that cannot go")
            }
            Self::CapacityEnds { node, pod, why } => {
                write!(
                    f,
                    "no place is left when {node} is drained: the replacement of {pod} stays Pending ({why})"
                )
            }
            Self::StatusDisagrees { budget, ours, told } => write!(
                f,
                "the status of {budget} (expected, desired, healthy, allowed: {told:?}) is not what follows from \
                 its pods ({ours:?}); the more cautious of the two is taken"
            ),
            Self::NotReadable { what } => write!(f, "{what} cannot be read: what they decide is not known"),
            Self::OutOfService { node } => write!(
                f,
                "out-of-service lets pods of {node} be removed by force and their volumes be detached once it is not \
                 ready; only for a machine that is certainly off"
            ),
            Self::ControllersTaint { node, key } => {
                write!(
                    f,
                    "the node lifecycle controller keeps {key} on {node} as it sees fit: this does not last"
                )
            }
            Self::Marked { node, by, operation, at_work: true, .. } => {
                write!(f, "{node} is being drained by {by} (operation {operation})")
            }
            Self::Marked { node, by, operation, renewed, at_work: false } => write!(
                f,
                "{node} carries the mark of a drain by {by} (operation {operation}) that gave no sign since {}",
                renewed.to_time()
            ),
        }
    }
}

/// From here on a priority is a system's own (system-cluster-critical).
const CRITICAL: i32 = 2_000_000_000;

/// The key of the taint that mirrors a cordon.
pub(super) const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// Whether a pod's priority is a system's own.
pub fn is_critical(pod: &Pod) -> bool {
    pod.priority >= CRITICAL
}

/// What is to be known of a pod that leaves because of a drain, an eviction or a deletion. `leaving` are all pods
/// that do.
pub fn of_pod(
    cluster: &Cluster,
    pod: &Pod,
    leaving: &BTreeSet<Key>,
    unprotected: bool,
) -> BTreeSet<PodWarning> {
    let mut found = BTreeSet::new();
    let mut note = |holds: bool, warning| {
        if holds {
            found.insert(warning);
        }
    };
    let runs = !pod.is_finished();
    note(runs && pod.storage.empty_dir, PodWarning::EmptyDirData);
    note(runs && pod.storage.memory, PodWarning::MemoryData);
    note(runs && pod.storage.host_path, PodWarning::HostPathData);
    note(pod.storage.ephemeral, PodWarning::EphemeralVolume);
    note(runs && is_critical(pod), PodWarning::Critical);
    note(is_held(pod), PodWarning::Held);
    note(runs && comes_back_here(cluster, pod), PodWarning::ComesBackHere);
    if let Some(workload) = owner::workload(cluster, pod).filter(|_| runs && pod.is_ready()) {
        let scaled = !matches!(workload.kind, WorkloadKind::DaemonSet | WorkloadKind::Job);
        if scaled && workload.replicas == Some(1) {
            note(true, PodWarning::SingleReplica);
        } else {
            note(scaled && unprotected && takes_the_last(cluster, pod, leaving), PodWarning::LastReady);
        }
    }
    found
}

/// Whether a finalizer holds the object once its containers have ended.
pub fn is_held(pod: &Pod) -> bool {
    // The Job controller takes its own off by itself then.
    pod.finalizers.iter().any(|finalizer| **finalizer != *"batch.kubernetes.io/job-tracking")
}

/// Whether all ready pods of its owner leave.
fn takes_the_last(cluster: &Cluster, pod: &Pod, leaving: &BTreeSet<Key>) -> bool {
    let Some(owner) = &pod.owner else { return false };
    let stays = |pod: &Arc<Pod>| pod.is_ready() && pod.termination.is_none() && !leaving.contains(&pod.key);
    !cluster.pods_owned_by(&owner.uid).any(stays)
}

/// Whether its replacement tolerates the cordon of the node it is on.
fn comes_back_here(cluster: &Cluster, pod: &Pod) -> bool {
    let cordon = Taint { key: UNSCHEDULABLE.into(), effect: TaintEffect::NoSchedule, ..Taint::default() };
    match owner::recreation(cluster, pod) {
        Recreation::Here => true,
        Recreation::AtOnce(_) | Recreation::WhenGone(_) => {
            pod.tolerations.iter().any(|toleration| toleration.tolerates(&cordon))
        }
        Recreation::Never(_) => false,
    }
}

/// Whether a pod's identity may exist twice when its grace is zero.
pub fn has_identity(pod: &Pod) -> bool {
    pod.owner.as_ref().is_some_and(|owner| owner.kind == OwnerKind::Workload(WorkloadKind::StatefulSet))
}

/// Whether a pod is of a DaemonSet that is there.
pub fn is_of_living_daemonset(cluster: &Cluster, pod: &Pod) -> bool {
    let Some(owner) = &pod.owner else { return false };
    owner.kind == OwnerKind::Workload(WorkloadKind::DaemonSet)
        && owner::find(cluster, &pod.key.namespace, owner) != OwnerLookup::Gone
}

/// The marks of drains on these nodes, those that nobody renews any more included.
pub fn of_marks<'a>(nodes: &'a [Arc<Node>], now: Timestamp) -> impl Iterator<Item = Warning> + 'a {
    let marked = nodes.iter().filter_map(|node| Some((node, node.drain_claim.as_ref()?)));
    marked.map(move |(node, mark)| Warning::Marked {
        node: node.name.clone(),
        by: mark.by.clone(),
        operation: mark.operation.clone(),
        renewed: mark.renewed,
        at_work: mark.is_fresh(now),
    })
}

/// What closing these nodes to new pods means for zones and for the cluster.
pub fn of_closing(cluster: &Cluster, nodes: &[Arc<Node>]) -> Vec<Warning> {
    let closing: BTreeSet<&NodeName> = nodes.iter().map(|node| &node.name).collect();
    let open = |node: &&Arc<Node>| node.is_ready() && !node.unschedulable;
    let stays = |node: &&Arc<Node>| open(node) && !closing.contains(&node.name);
    let mut warnings = Vec::new();
    if nodes.iter().any(|node| open(&node)) {
        if !cluster.nodes().iter().any(|node| stays(&node)) {
            warnings.push(Warning::NothingSchedulable);
        }
        let zones: BTreeSet<ZoneKey> = nodes
            .iter()
            .filter(open)
            .map(|node| node.zone())
            .filter(|zone| *zone != ZoneKey::default())
            .collect();
        let loses = |zone: &ZoneKey| !cluster.nodes().iter().any(|node| stays(&node) && node.zone() == *zone);
        warnings.extend(zones.into_iter().filter(loses).map(|zone| Warning::ZoneLosesLastReady { zone }));
    }
    let rules = ["control-plane", "master"];
    let controls = |node: &&Arc<Node>| node.roles().any(|role| rules.contains(&role));
    warnings
        .extend(nodes.iter().filter(controls).map(|node| Warning::ControlPlane { node: node.name.clone() }));
    warnings
}
