//! Workloads, and the cluster-wide objects that plans read with them: PriorityClasses and Namespaces.

use minicbor::{Decode, Encode};

use super::{
    encoding::EncodingContext,
    job::JobLimits,
    labels::{Labels, Selector},
    names::{Key, Name, Namespace},
    owner::{Owner, WorkloadKind},
    pod::Pod,
    reboot_lock::RebootLock,
    stateful_set::StatefulRules,
    table::{TableObject, Version},
    uid::Uid,
};

/// Label that distinguishes the pods of different templates of a Deployment.
pub const TEMPLATE_HASH: &str = "pod-template-hash";

/// A ReplicaSet, Deployment, StatefulSet, ReplicationController, DaemonSet or Job, cut down to the fields that plans
/// read.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct Workload {
    #[n(0)]
    pub kind: WorkloadKind,
    #[n(1)]
    pub key: Key,
    #[n(2)]
    pub uid: Uid,
    #[n(3)]
    pub version: Version,
    /// `spec.replicas`, or `spec.parallelism` of a Job. None if the kind has no such field.
    #[n(4)]
    pub replicas: Option<i32>,
    /// `spec.selector`; only read for DaemonSets.
    #[n(5)]
    pub selector: Option<Selector>,
    #[n(6)]
    pub owner: Option<Owner>,
    /// Whether a Job replaces a pod only after the old pod has finished (`podReplacementPolicy: Failed`).
    #[n(7)]
    pub replaces_only_failed: bool,
    #[n(8)]
    pub stage: WorkloadStage,
    /// The limits and counts of a Job; none for other kinds.
    #[n(9)]
    pub job: Option<Box<JobLimits>>,
    /// `spec.template` as a pod without a name; `None` for a kind that creates no pods itself, and for a workload that
    /// wants no pods.
    #[n(10)]
    pub template: Option<Box<Pod>>,
    /// How a StatefulSet creates its pods; none for other kinds.
    #[n(11)]
    pub stateful: Option<StatefulRules>,
    /// Whether a Deployment deletes its old pods before it creates new ones (`strategy: Recreate`), so that pods of two
    /// versions never run at the same time.
    #[n(12)]
    #[cbor(default)]
    pub is_recreated: bool,
    /// The nodes that hold kured's lock, from kured's DaemonSet; empty for all other workloads.
    #[n(13)]
    #[cbor(default)]
    pub reboot_locks: Vec<RebootLock>,
}

/// Stage of a workload: active, finished, or being deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum WorkloadStage {
    #[default]
    #[n(0)]
    Active,
    /// A Job that is complete or has failed. Its controller deletes the pods that still run.
    #[n(1)]
    Finished,
    /// The deletion of the workload itself has started.
    #[n(2)]
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
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct PriorityClass {
    #[n(0)]
    pub name: Name,
    #[n(1)]
    pub version: Version,
    #[n(2)]
    pub value: i32,
    #[n(3)]
    pub global_default: bool,
    /// Whether pods of this PriorityClass never preempt others (`preemptionPolicy: Never`).
    #[n(4)]
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
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct NamespaceObject {
    #[n(0)]
    pub name: Namespace,
    #[n(1)]
    pub version: Version,
    #[n(2)]
    pub labels: Labels,
    /// Whether the namespace is being deleted: its `status.phase` is Terminating.
    #[n(3)]
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
