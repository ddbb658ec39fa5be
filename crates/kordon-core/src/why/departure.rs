//! Who removed a pod, and why: what its status, Events, its node and its owner say of it, weighed
//! (docs/departures.md).

mod clues;
#[cfg(test)]
mod tests;

use std::fmt;

use clues::Clues;

use crate::cluster::{Cluster, ClusterEvent, Key, Pod};
use kordon_time::{ClusterTime, Timestamp};

/// Reasons of the condition DisruptionTarget, apart from those of taint eviction and of the scheduler.
pub const BY_API: &str = "EvictionByEvictionAPI";
pub const BY_COLLECTOR: &str = "DeletionByPodGC";
pub const BY_KUBELET: &str = "TerminationByKubelet";

/// The way in which a pod left, or began to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DepartureKind {
    /// Its kubelet evicted it: the node was short of a resource.
    NodePressure,
    /// The kernel killed a container for memory. That is no eviction: unless the pod is Failed, it stays on its node.
    OomKill,
    /// Its kubelet evicted it: it used more storage than its limit.
    StorageLimit,
    /// Its kubelet did not admit it.
    Rejection,
    /// By a NoExecute taint of its node.
    TaintEviction,
    /// In favour of a pod of higher priority.
    Preemption,
    /// Its node no longer exists.
    GarbageCollection,
    /// By force, from a node with the out-of-service taint.
    OutOfService,
    /// Its kubelet ended it before the machine was shut down.
    NodeShutdown,
    /// A container failed, or its time was over.
    Failure,
    /// By the Eviction API, as drains do.
    ApiEviction,
    /// Its owner had more pods than it wants.
    ScaleDown,
    /// By a user or a controller.
    Deletion,
    /// A pod of a Job that succeeded, or whose Job is over.
    JobCompletion,
    /// Another pod whose containers all succeeded.
    Completion,
}

/// How far the evidence supports a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DepartureCertainty {
    /// Nothing but circumstances speaks for it, or other evidence as good speaks against it.
    Possible,
    /// Circumstances explain it well, or evidence is contradicted.
    Likely,
    /// Who removed it has said so.
    Certain,
}

/// Where evidence comes from, the most telling first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EvidenceSource {
    /// The condition DisruptionTarget.
    Condition,
    /// Phase, reason and message of the status.
    Status,
    /// How its containers ended.
    Container,
    Event,
    /// Taints of its node, or that the node is gone.
    Node,
    /// Its owner or namespace.
    Owner,
    /// Who claims the node for a drain.
    Drain,
    /// That it was deleted, and nothing else.
    Deletion,
}

/// Something that speaks for a kind, or against it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DepartureEvidence {
    pub source: EvidenceSource,
    /// Whether it speaks for the kind; otherwise it speaks for another one.
    pub agrees: bool,
    /// In words. Contains text of the cluster.
    pub text: String,
}

/// Who removed a pod, why, and how that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodDeparture {
    pub kind: DepartureKind,
    pub certainty: DepartureCertainty,
    /// The most telling first; what contradicts comes last. Never empty.
    pub evidence: Vec<DepartureEvidence>,
}

/// Whether the object of a pod is still there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodPresence {
    Present,
    /// It was removed; what is known of it is as of then.
    Gone,
    /// It was missing when a broken watch was back: nobody saw its deletion.
    Missed,
}

impl PodDeparture {
    /// Classifies a pod that is terminating, finished or gone; none for one that stays.
    ///
    /// `events` are those about the pod, and those of its owner.
    pub fn of(pod: &Pod, presence: PodPresence, cluster: &Cluster, events: &[ClusterEvent]) -> Option<Self> {
        if pod.termination.is_none() && !pod.is_finished() && presence == PodPresence::Present {
            return None;
        }
        Clues::of(pod, presence, cluster, events).weigh()
    }

    /// Classifies a pod of which nothing but Events is left; none if they do not tell.
    pub fn from_events(pod: &Key, events: &[ClusterEvent]) -> Option<Self> {
        Clues::from_events(pod, events).weigh()
    }

    /// A container of a running pod that the kernel killed for memory and that is started again: no departure, but often
    /// taken for an eviction.
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

    /// The most telling evidence.
    pub fn reason(&self) -> &str {
        self.evidence.first().map_or("", |evidence| &evidence.text)
    }
}

/// When a pod left: when its deletion began, or when it finished before that; none if that is not known.
pub fn departed_at(pod: &Pod, cluster: &Cluster) -> Option<Timestamp> {
    let deleted = clues::deletion_began(pod);
    let finished = clues::finished_at(pod).or(pod.ending.as_ref().and_then(|ending| ending.disrupted));
    let finished = finished.filter(|_| pod.is_finished());
    [deleted, finished].into_iter().flatten().min().map(|at| cluster.local(at))
}

impl DepartureKind {
    /// Those that need attention first.
    pub const ALL: [Self; 15] = [
        Self::NodePressure,
        Self::OomKill,
        Self::StorageLimit,
        Self::Rejection,
        Self::TaintEviction,
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

    /// Its stable word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NodePressure => "nodePressureEviction",
            Self::OomKill => "oomKill",
            Self::StorageLimit => "storageLimitEviction",
            Self::Rejection => "admissionRejection",
            Self::TaintEviction => "taintEviction",
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

    /// Its name for people, as the Kubernetes documentation has it.
    pub const fn title(self) -> &'static str {
        match self {
            Self::NodePressure => "node-pressure eviction",
            Self::OomKill => "OOM kill",
            Self::StorageLimit => "storage limit eviction",
            Self::Rejection => "admission rejection",
            Self::TaintEviction => "taint-based eviction",
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

    /// One step down.
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
