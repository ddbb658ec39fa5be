//! Who owns an object.

use std::fmt;

use super::names::{Name, Uid};

/// The controlling owner of a pod, claim or workload.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Owner {
    pub kind: OwnerKind,
    pub name: Name,
    pub uid: Uid,
}

/// A workload kind that is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WorkloadKind {
    ReplicaSet,
    Deployment,
    StatefulSet,
    ReplicationController,
    DaemonSet,
    Job,
}

impl WorkloadKind {
    pub const ALL: [Self; 6] = [
        Self::ReplicaSet,
        Self::Deployment,
        Self::StatefulSet,
        Self::ReplicationController,
        Self::DaemonSet,
        Self::Job,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ReplicaSet => "ReplicaSet",
            Self::Deployment => "Deployment",
            Self::StatefulSet => "StatefulSet",
            Self::ReplicationController => "ReplicationController",
            Self::DaemonSet => "DaemonSet",
            Self::Job => "Job",
        }
    }
}

impl fmt::Display for WorkloadKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The kind of a controlling owner.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OwnerKind {
    Workload(WorkloadKind),
    /// A Node: the pod is a mirror pod.
    Node,
    /// A kind that is not watched.
    Other(Name),
}

impl OwnerKind {
    pub fn as_str(&self) -> &str {
        match self {
            Self::Workload(kind) => kind.as_str(),
            Self::Node => "Node",
            Self::Other(kind) => kind,
        }
    }
}
