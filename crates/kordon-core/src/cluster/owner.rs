//! Owners of objects.

use std::fmt;

use minicbor::{Decode, Encode};

use super::{encoding::EncodingContext, names::Name, uid::Uid};

/// The controlling owner of a pod, claim or workload.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct Owner {
    #[n(0)]
    pub kind: OwnerKind,
    #[n(1)]
    pub name: Name,
    #[n(2)]
    pub uid: Uid,
}

/// A workload kind that is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
#[cbor(index_only)]
pub enum WorkloadKind {
    #[n(0)]
    ReplicaSet,
    #[n(1)]
    Deployment,
    #[n(2)]
    StatefulSet,
    #[n(3)]
    ReplicationController,
    #[n(4)]
    DaemonSet,
    #[n(5)]
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
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub enum OwnerKind {
    #[n(0)]
    Workload(#[n(0)] WorkloadKind),
    /// A Node: the pod is a mirror pod.
    #[n(1)]
    Node,
    /// A kind of owner that kordon does not watch.
    #[n(2)]
    Other {
        #[n(0)]
        kind: Name,
        /// The API group; empty for the core group, `None` in recordings of older releases.
        #[n(1)]
        group: Option<Name>,
    },
}

impl OwnerKind {
    /// Returns the kind of an owner that kordon does not watch, from its name and API group.
    pub fn other(kind: impl Into<Name>, group: impl Into<Name>) -> Self {
        Self::Other { kind: kind.into(), group: Some(group.into()) }
    }

    /// Returns whether the owner has this kind and API group. In recordings of older releases, only the kind is
    /// compared, because the group is not known.
    pub fn is(&self, kind: &str, group: &str) -> bool {
        match self {
            Self::Other { kind: own, group: of } => {
                **own == *kind && of.as_ref().is_none_or(|of| **of == *group)
            }
            Self::Workload(_) | Self::Node => false,
        }
    }

    pub fn as_str(&self) -> &str {
        match self {
            Self::Workload(kind) => kind.as_str(),
            Self::Node => "Node",
            Self::Other { kind, .. } => kind,
        }
    }
}
