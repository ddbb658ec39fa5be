//! Who removed a pod, and why: weighs the evidence in its status, its Events, its node and its owner
//! (docs/reference/departures.md).

mod clues;
#[cfg(test)]
mod tests;

use std::fmt;

use clues::Clues;

use crate::cluster::{Cluster, ClusterEvent, ConditionStatus, Key, Pod};
use kordon_time::{ClusterTime, Timestamp};

/// Reasons of the condition DisruptionTarget. The reasons for evictions and those of the scheduler are defined
/// elsewhere.
pub const BY_COLLECTOR: &str = "DeletionByPodGC";
pub const BY_KUBELET: &str = "TerminationByKubelet";

/// The way in which a pod left or is leaving.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DepartureKind {
    /// The kubelet evicted the pod: the node was short of a resource.
    NodePressure,
    /// The kernel killed a container because memory ran out. This is not an eviction: the pod stays on its node, unless
    /// it is Failed.
    OomKill,
    /// The kubelet evicted the pod: the pod used more storage than its limit.
    StorageLimit,
    /// The kubelet did not admit the pod.
    Rejection,
    /// A NoExecute taint of the node evicted the pod.
    TaintEviction,
    /// A NoExecute taint of a device of the pod evicted the pod.
    DeviceTaintEviction,
    /// The pod made room for a pod of higher priority.
    Preemption,
    /// The pod's node no longer exists.
    GarbageCollection,
    /// The pod was deleted by force from a node with the out-of-service taint.
    OutOfService,
    /// The kubelet ended the pod before the machine was shut down.
    NodeShutdown,
    /// A container failed, or the pod exceeded its active deadline.
    Failure,
    /// The Eviction API evicted the pod, as in a drain.
    ApiEviction,
    /// The pod's owner had more pods than wanted.
    ScaleDown,
    /// A user or a controller deleted the pod.
    Deletion,
    /// The pod succeeded and belongs to a Job, or the pod's Job has finished.
    JobCompletion,
    /// All containers of the pod succeeded, and the pod belongs to no Job.
    Completion,
}

/// How well the evidence supports a kind of departure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DepartureCertainty {
    /// Only circumstances support the kind of departure, or equally good evidence contradicts it.
    Possible,
    /// Circumstances explain the departure well, or a component has stated its kind and other evidence contradicts that
    /// kind.
    Likely,
    /// The component that removed the pod has stated the kind of departure.
    Certain,
}

/// Source of evidence, the strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EvidenceSource {
    /// The condition DisruptionTarget.
    Condition,
    /// Phase, reason and message of the pod's status.
    Status,
    /// Exit codes and reasons of the pod's containers.
    Container,
    Event,
    /// The taints of the pod's node, or the absence of the node.
    Node,
    /// The pod's owner or namespace.
    Owner,
    /// A drain of the pod's node.
    Drain,
    /// The deletion itself, without any other evidence.
    Deletion,
}

/// Evidence for or against a kind of departure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DepartureEvidence {
    pub source: EvidenceSource,
    /// Whether the evidence supports the kind of the departure. If not, it supports another kind.
    pub agrees: bool,
    /// The evidence in words. Contains text from the cluster.
    pub text: String,
}

/// Who removed a pod and why, with the evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodDeparture {
    pub kind: DepartureKind,
    pub certainty: DepartureCertainty,
    /// Evidence for and against the kind of departure: the strongest first, contradicting evidence last. Never empty.
    pub evidence: Vec<DepartureEvidence>,
}

/// Whether the pod's object still exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodPresence {
    Present,
    /// The watch reported the pod's deletion. The last state of the pod is known.
    Gone,
    /// The pod was missing after a broken watch was restored. kordon did not observe the deletion.
    Missed,
}

impl PodDeparture {
    /// Classifies a pod that is terminating, finished or gone; `None` for a pod that stays.
    ///
    /// `events` are the Events about the pod and about its owner.
    pub fn new(pod: &Pod, presence: PodPresence, cluster: &Cluster, events: &[ClusterEvent]) -> Option<Self> {
        if pod.lives() && presence == PodPresence::Present {
            return None;
        }
        Clues::new(pod, presence, cluster, events).weigh()
    }

    /// Classifies a pod by its Events alone; `None` if the Events do not explain the departure.
    pub fn from_events(pod: &Key, events: &[ClusterEvent]) -> Option<Self> {
        Clues::from_events(pod, events).weigh()
    }

    /// The latest OOM kill of a container in a running pod, with its time. The container restarts, so the pod does not
    /// leave. OOM kills are often mistaken for evictions.
    pub fn oom_kill(pod: &Pod) -> Option<(Self, Option<ClusterTime>)> {
        if pod.termination.is_some() || pod.is_finished() {
            return None;
        }
        let exits = pod.ending.iter().flat_map(|ending| &ending.exits);
        let last = exits.filter(|exit| exit.is_oom_kill()).max_by_key(|exit| exit.at)?;
        let evidence = DepartureEvidence {
            source: EvidenceSource::Container,
            agrees: true,
            text: format!(
                "container {} ended with OOMKilled, exit code {}: it restarts on its node, the pod is not evicted",
                last.container, last.code
            ),
        };
        let (kind, certainty) = (DepartureKind::OomKill, DepartureCertainty::Certain);
        Some((Self { kind, certainty, evidence: vec![evidence] }, last.at))
    }

    /// The strongest evidence in words.
    pub fn reason(&self) -> &str {
        self.evidence.first().map_or("", |evidence| &evidence.text)
    }
}

/// The time at which a pod left: the start of its deletion, or the end of the pod if that was earlier; `None` if
/// unknown. A pod that its kubelet rejected has no containers; it ended when it became not Ready.
pub fn departed_at(pod: &Pod, cluster: &Cluster) -> Option<Timestamp> {
    let deleted = clues::deletion_began(pod);
    let disrupted = || pod.ending.as_ref()?.disrupted;
    let not_ready = || {
        let not_ready = pod.ready.as_ref().filter(|ready| ready.status != ConditionStatus::True)?;
        Some(cluster.stated_by_kubelet(pod, not_ready.last_transition?))
    };
    let finished = clues::finished_at(pod, cluster).or_else(disrupted).or_else(not_ready);
    let finished = finished.filter(|_| pod.is_finished());
    [deleted, finished].into_iter().flatten().min().map(|at| cluster.local(at))
}

impl DepartureKind {
    /// All kinds of departure. Kinds that need attention come first.
    pub const ALL: [Self; 16] = [
        Self::NodePressure,
        Self::OomKill,
        Self::StorageLimit,
        Self::Rejection,
        Self::TaintEviction,
        Self::DeviceTaintEviction,
        Self::Preemption,
        Self::GarbageCollection,
        Self::OutOfService,
        Self::NodeShutdown,
        Self::Failure,
        Self::ApiEviction,
        Self::ScaleDown,
        Self::Deletion,
        Self::JobCompletion,
        Self::Completion,
    ];

    /// Stable identifier of the kind of departure.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NodePressure => "nodePressureEviction",
            Self::OomKill => "oomKill",
            Self::StorageLimit => "storageLimitEviction",
            Self::Rejection => "admissionRejection",
            Self::TaintEviction => "taintEviction",
            Self::DeviceTaintEviction => "deviceTaintEviction",
            Self::Preemption => "preemption",
            Self::GarbageCollection => "podGarbageCollection",
            Self::OutOfService => "outOfService",
            Self::NodeShutdown => "nodeShutdown",
            Self::Failure => "failure",
            Self::ApiEviction => "apiEviction",
            Self::ScaleDown => "scaleDown",
            Self::Deletion => "deletion",
            Self::JobCompletion => "jobCompletion",
            Self::Completion => "completion",
        }
    }

    /// Name of the kind of departure for display, as used in the Kubernetes documentation.
    pub const fn title(self) -> &'static str {
        match self {
            Self::NodePressure => "node-pressure eviction",
            Self::OomKill => "OOM kill",
            Self::StorageLimit => "storage limit eviction",
            Self::Rejection => "admission rejection",
            Self::TaintEviction => "taint-based eviction",
            Self::DeviceTaintEviction => "device taint eviction",
            Self::Preemption => "preemption",
            Self::GarbageCollection => "pod garbage collection",
            Self::OutOfService => "out-of-service",
            Self::NodeShutdown => "node shutdown",
            Self::Failure => "failure",
            Self::ApiEviction => "API-initiated eviction",
            Self::ScaleDown => "scale-down",
            Self::Deletion => "deletion",
            Self::JobCompletion => "job completion",
            Self::Completion => "completion",
        }
    }
}

impl fmt::Display for DepartureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.title())
    }
}

impl DepartureCertainty {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Certain => "certain",
            Self::Likely => "likely",
            Self::Possible => "possible",
        }
    }

    /// The certainty that is one step lower; `Possible` stays `Possible`.
    const fn lowered(self) -> Self {
        match self {
            Self::Certain => Self::Likely,
            Self::Likely | Self::Possible => Self::Possible,
        }
    }
}

impl EvidenceSource {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Condition => "condition",
            Self::Status => "status",
            Self::Container => "container",
            Self::Event => "event",
            Self::Node => "node",
            Self::Owner => "owner",
            Self::Drain => "drain",
            Self::Deletion => "deletion",
        }
    }
}
