//! Pods, with the fields that eviction, budgets, plans and the screen read.

use std::sync::Arc;

use super::{
    labels::Labels,
    names::{Key, Name, NodeName, Uid},
    node::{Condition, ConditionStatus},
    owner::Owner,
    pod_resources::PodResources,
    resources::Resources,
    scheduling::SchedulingSpec,
    table::{TableObject, Version},
    taint::Toleration,
};
use crate::time::{ClusterTime, Span};

/// A Pod, cut down to the fields that are read. Parts that are equal in many pods are shared.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pod {
    pub key: Key,
    pub uid: Uid,
    pub version: Version,
    pub created: ClusterTime,
    pub labels: Labels,
    /// The owner reference with `controller: true`.
    pub owner: Option<Owner>,
    /// `spec.nodeName`; none until it is scheduled.
    pub node: Option<NodeName>,
    /// In the order of `spec.tolerations`: the first match counts.
    pub tolerations: Arc<[Toleration]>,
    /// `spec.priority`.
    pub priority: i32,
    /// The sum over its containers as the scheduler counts it; `pods` is 1.
    pub requests: Resources,
    /// What it requests and is limited to in full; shared by pods in which it is equal.
    pub resources: Arc<PodResources>,
    /// The rest of the spec that the scheduler reads; shared by pods with equal specs.
    pub scheduling: Arc<SchedulingSpec>,
    /// `status.startTime`: when the kubelet accepted it.
    pub started: Option<ClusterTime>,
    /// `status.nominatedNodeName`: where the scheduler reserves resources for it after preemption.
    pub nominated: Option<NodeName>,
    /// `spec.terminationGracePeriodSeconds`.
    pub grace: Span,
    pub phase: Phase,
    /// `status.reason`: why it is in its phase (NodeLost, Evicted); usually empty.
    pub reason: Name,
    /// The PodScheduled condition, if that is not True; none for most pods.
    pub unscheduled: Option<Arc<PodUnscheduled>>,
    /// The Ready condition; none until the kubelet posts it.
    pub ready: Option<PodReady>,
    /// The reason of the DisruptionTarget condition, if that is True.
    pub disruption_target: Option<Name>,
    pub termination: Option<Termination>,
    /// Why it ended or is about to, beyond `reason` and `disruption_target`; none for most pods.
    pub ending: Option<Arc<PodEnding>>,
    /// `metadata.annotations` has `kubernetes.io/config.mirror`: the mirror pod of a static pod.
    pub mirror: bool,
    /// `metadata.finalizers`: they keep the object after its grace period.
    pub finalizers: Arc<[Name]>,
    pub storage: LocalStorage,
}

impl Pod {
    pub fn is_ready(&self) -> bool {
        self.ready.as_ref().is_some_and(|ready| ready.status == ConditionStatus::True)
    }

    /// Whether it waits for a node.
    pub fn is_unscheduled(&self) -> bool {
        self.node.is_none() && self.termination.is_none() && !self.is_finished()
    }

    /// Whether everything that is known of it but its version is the same: what has changed is an annotation, for example.
    pub fn differs_only_in_version(&self, other: &Self) -> bool {
        *self == Self { version: self.version, ..other.clone() }
    }

    /// Whether only what it and its kubelet say of its state differs: it takes the same room as before.
    pub fn differs_only_in_status(&self, other: &Self) -> bool {
        let Self { version, phase, reason, unscheduled, ready, disruption_target, ending, .. } = self.clone();
        let as_ours =
            Self { version, phase, reason, unscheduled, ready, disruption_target, ending, ..other.clone() };
        *self == as_ours && self.is_finished() == other.is_finished()
    }

    /// Whether it is Succeeded or Failed.
    pub fn is_finished(&self) -> bool {
        matches!(self.phase, Phase::Succeeded | Phase::Failed)
    }
}

impl TableObject for Pod {
    type Key = Key;
    fn key(&self) -> Key {
        self.key.clone()
    }
    fn version(&self) -> Version {
        self.version
    }
}

/// A PodScheduled condition that is not True.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodUnscheduled {
    /// Unschedulable, SchedulingGated or SchedulerError.
    pub reason: Name,
    /// The scheduler's words.
    pub message: Name,
    pub since: Option<ClusterTime>,
}

/// The Ready condition of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodReady {
    pub status: ConditionStatus,
    pub last_transition: Option<ClusterTime>,
}

impl From<&Condition> for PodReady {
    fn from(condition: &Condition) -> Self {
        Self { status: condition.status, last_transition: condition.last_transition }
    }
}

/// `status.phase`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    #[default]
    Pending,
    Running,
    Succeeded,
    Failed,
    Unknown,
}

impl Phase {
    pub fn parse(text: &str) -> Self {
        match text {
            "" | "Pending" => Self::Pending,
            "Running" => Self::Running,
            "Succeeded" => Self::Succeeded,
            "Failed" => Self::Failed,
            _ => Self::Unknown,
        }
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Running => "Running",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
            Self::Unknown => "Unknown",
        }
    }
}

/// A deletion that has started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Termination {
    /// `metadata.deletionTimestamp`: when the grace period ends.
    pub deadline: ClusterTime,
    /// `metadata.deletionGracePeriodSeconds`.
    pub grace: Span,
}

/// What the status of a pod says of why it ended or is about to, and of containers that the kernel killed for memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodEnding {
    /// `status.message`, shortened.
    pub message: Name,
    /// When the DisruptionTarget condition became True.
    pub disrupted: Option<ClusterTime>,
    /// Of its containers: how those of a finished pod ended, and those that were killed for memory.
    pub exits: Box<[ContainerExit]>,
}

/// How a container ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContainerExit {
    pub container: Name,
    /// Completed, Error, OOMKilled, …
    pub reason: Name,
    /// The exit code; 137 is SIGKILL.
    pub code: i32,
    pub at: Option<ClusterTime>,
    /// Whether it was started again, or is about to be: `lastState`, not `state`.
    pub restarted: bool,
}

impl ContainerExit {
    /// Whether the kernel killed it because there was no memory for it.
    pub fn is_oom_kill(&self) -> bool {
        self.reason == *"OOMKilled"
    }
}

/// Whether a pod has volumes whose data stays on the node or is deleted with the pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LocalStorage {
    /// An `emptyDir` on the node's disk.
    pub empty_dir: bool,
    /// An `emptyDir` with medium Memory.
    pub memory: bool,
    /// A `hostPath`.
    pub host_path: bool,
    /// A generic ephemeral volume: its claim is deleted with the pod.
    pub ephemeral: bool,
}
