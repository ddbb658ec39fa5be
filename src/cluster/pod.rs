//! Pods: what eviction, budgets and the screen read of them.

use std::sync::Arc;

use super::{
    labels::Labels,
    names::{Key, Name, NodeName, Uid},
    node::{Condition, ConditionStatus},
    resources::Resources,
    scheduling::SchedulingSpec,
    table::{TableObject, Version},
    taint::Toleration,
    workload::OwnerKind,
};
use crate::time::{Span, Timestamp};

/// A Pod, cut down to the fields that are read. Parts that many pods have alike are shared.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pod {
    pub key: Key,
    pub uid: Uid,
    pub version: Version,
    pub created: Timestamp,
    pub labels: Labels,
    /// The owner reference with `controller: true`.
    pub owner: Option<Owner>,
    /// `spec.nodeName`; none while it waits for the scheduler.
    pub node: Option<NodeName>,
    /// In the order of `spec.tolerations`, the first match counts.
    pub tolerations: Arc<[Toleration]>,
    /// `spec.priority`.
    pub priority: i32,
    /// The sum over its containers as the scheduler counts it; `pods` is 1.
    pub requests: Resources,
    /// What else of its spec the scheduler reads; one for all pods that have it alike.
    pub scheduling: Arc<SchedulingSpec>,
    /// `status.startTime`: when the kubelet took it up.
    pub started: Option<Timestamp>,
    /// `status.nominatedNodeName`: where the scheduler makes or keeps room for it.
    pub nominated: Option<NodeName>,
    /// `spec.terminationGracePeriodSeconds`.
    pub grace: Span,
    pub phase: Phase,
    /// `status.reason`: why it is in its phase (NodeLost, Evicted); empty mostly.
    pub reason: Name,
    /// The Ready condition; none until the kubelet posts it.
    pub ready: Option<PodReady>,
    /// The DisruptionTarget condition, where it is True: its reason.
    pub disruption_target: Option<Name>,
    pub termination: Option<Termination>,
    /// `metadata.annotations` has `kubernetes.io/config.mirror`: a static pod's shadow.
    pub mirror: bool,
    /// `metadata.finalizers`: what holds the object beyond its grace.
    pub finalizers: Arc<[Name]>,
    pub storage: LocalStorage,
}

impl Pod {
    pub fn is_ready(&self) -> bool {
        self.ready.as_ref().is_some_and(|ready| ready.status == ConditionStatus::True)
    }

    /// Whether it has ended for good (Succeeded or Failed).
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

/// The Ready condition of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodReady {
    pub status: ConditionStatus,
    pub last_transition: Option<Timestamp>,
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

/// Who owns a pod.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Owner {
    pub kind: OwnerKind,
    pub name: Name,
    pub uid: Uid,
}

/// A deletion that has begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Termination {
    /// `metadata.deletionTimestamp`: when the grace period ends.
    pub deadline: Timestamp,
    /// `metadata.deletionGracePeriodSeconds`.
    pub grace: Span,
}

/// Volumes of a pod whose data stays on the node, or dies with the pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LocalStorage {
    /// An `emptyDir` on the node's disk.
    pub empty_dir: bool,
    /// An `emptyDir` with medium Memory.
    pub memory: bool,
    /// A `hostPath`.
    pub host_path: bool,
    /// A generic ephemeral volume: its claim goes with the pod.
    pub ephemeral: bool,
}
