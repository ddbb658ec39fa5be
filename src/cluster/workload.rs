//! Workloads: what owns pods, and what decides over them in passing.

use std::fmt;

use super::{
    labels::{Labels, Selector},
    names::{Key, Name, Namespace, Uid},
    pod::Owner,
    table::{TableObject, Version},
};

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

/// The kind of a pod's controlling owner.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OwnerKind {
    Workload(WorkloadKind),
    /// The Node itself: a mirror pod.
    Node,
    /// A kind that is not watched, by its name.
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

/// A ReplicaSet, Deployment, StatefulSet, ReplicationController, DaemonSet or Job, cut down to what plans read.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    pub kind: WorkloadKind,
    pub key: Key,
    pub uid: Uid,
    pub version: Version,
    /// `spec.replicas`; of a Job, `spec.parallelism`. None where the kind has none.
    pub replicas: Option<i32>,
    /// `spec.selector`; of interest for DaemonSets.
    pub selector: Option<Selector>,
    pub owner: Option<Owner>,
    /// Of a Job: whether a replacement waits until the old pod has ended (`podReplacementPolicy: Failed`).
    pub replaces_only_failed: bool,
}

impl TableObject for Workload {
    type Key = (WorkloadKind, Key);
    fn key(&self) -> Self::Key {
        (self.kind, self.key.clone())
    }
    fn version(&self) -> Version {
        self.version
    }
}

/// A PriorityClass.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PriorityClass {
    pub name: Name,
    pub version: Version,
    pub value: i32,
    pub global_default: bool,
    /// Whether `preemptionPolicy` is Never.
    pub never_preempts: bool,
}

impl TableObject for PriorityClass {
    type Key = Name;
    fn key(&self) -> Name {
        self.name.clone()
    }
    fn version(&self) -> Version {
        self.version
    }
}

/// A Namespace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NamespaceObject {
    pub name: Namespace,
    pub version: Version,
    pub labels: Labels,
    /// Whether `status.phase` is Terminating.
    pub terminating: bool,
}

impl TableObject for NamespaceObject {
    type Key = Namespace;
    fn key(&self) -> Namespace {
        self.name.clone()
    }
    fn version(&self) -> Version {
        self.version
    }
}
