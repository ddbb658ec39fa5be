//! Workloads, and the cluster-wide objects that plans read with them: PriorityClasses and Namespaces.

use super::{
    labels::{Labels, Selector},
    names::{Key, Name, Namespace, Uid},
    owner::{Owner, WorkloadKind},
    table::{TableObject, Version},
};

/// A ReplicaSet, Deployment, StatefulSet, ReplicationController, DaemonSet or Job, cut down to what plans read.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    pub kind: WorkloadKind,
    pub key: Key,
    pub uid: Uid,
    pub version: Version,
    /// `spec.replicas`; of a Job, `spec.parallelism`. None if the kind has none.
    pub replicas: Option<i32>,
    /// `spec.selector`; read for DaemonSets.
    pub selector: Option<Selector>,
    pub owner: Option<Owner>,
    /// Of a Job: whether a replacement waits until the old pod is finished (`podReplacementPolicy: Failed`).
    pub replaces_only_failed: bool,
    pub stage: WorkloadStage,
}

/// Whether a workload still wants its pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WorkloadStage {
    #[default]
    Active,
    /// A Job that is complete or has failed: it deletes the pods that still run.
    Finished,
    /// Its own deletion has started.
    Deleting,
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
