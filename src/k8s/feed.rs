//! What the watches send to the loop: changes, and the health of the watches.

use std::fmt;

use crate::{
    cluster::{Change, WorkloadKind},
    time::{Span, Timestamp},
};

/// A message of the watches.
#[derive(Clone, Debug)]
pub enum FeedEvent {
    /// Changes of one watch in their order. They are batched: a list of 150,000 pods is some hundreds of messages.
    Changes(Vec<Change>),
    /// The health of a watch, sent when its state changes and at least once a second while it lists.
    Health(FeedKind, FeedHealth),
    /// The API server's clock minus ours, from its Date header, to about a second.
    ClockDifference(Span),
    /// An error for the journal, with its source and what happens next.
    Trouble(String),
}

/// The kind of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FeedKind {
    Nodes,
    Leases,
    Pods,
    Budgets,
    Workloads(WorkloadKind),
    PriorityClasses,
    Namespaces,
    Services,
    Claims,
    Volumes,
    StorageClasses,
    CsiNodes,
    /// The Lease kube-system/kube-controller-manager.
    Leader,
}

impl FeedKind {
    pub const ALL: [Self; 18] = [
        Self::Nodes,
        Self::Leases,
        Self::Pods,
        Self::Budgets,
        Self::Workloads(WorkloadKind::ReplicaSet),
        Self::Workloads(WorkloadKind::Deployment),
        Self::Workloads(WorkloadKind::StatefulSet),
        Self::Workloads(WorkloadKind::ReplicationController),
        Self::Workloads(WorkloadKind::DaemonSet),
        Self::Workloads(WorkloadKind::Job),
        Self::PriorityClasses,
        Self::Namespaces,
        Self::Services,
        Self::Claims,
        Self::Volumes,
        Self::StorageClasses,
        Self::CsiNodes,
        Self::Leader,
    ];
}

impl fmt::Display for FeedKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Nodes => "nodes",
            Self::Leases => "leases",
            Self::Pods => "pods",
            Self::Budgets => "budgets",
            Self::Workloads(WorkloadKind::ReplicaSet) => "replicasets",
            Self::Workloads(WorkloadKind::Deployment) => "deployments",
            Self::Workloads(WorkloadKind::StatefulSet) => "statefulsets",
            Self::Workloads(WorkloadKind::ReplicationController) => "replicationcontrollers",
            Self::Workloads(WorkloadKind::DaemonSet) => "daemonsets",
            Self::Workloads(WorkloadKind::Job) => "jobs",
            Self::PriorityClasses => "priorityclasses",
            Self::Namespaces => "namespaces",
            Self::Services => "services",
            Self::Claims => "persistentvolumeclaims",
            Self::Volumes => "persistentvolumes",
            Self::StorageClasses => "storageclasses",
            Self::CsiNodes => "csinodes",
            Self::Leader => "controller lease",
        })
    }
}

impl FeedKind {
    /// Whether the kind is of no use without the pods.
    pub const fn serves_placement_alone(self) -> bool {
        match self {
            Self::Services | Self::Claims | Self::Volumes | Self::StorageClasses | Self::CsiNodes => true,
            Self::Nodes
            | Self::Leases
            | Self::Pods
            | Self::Budgets
            | Self::Workloads(_)
            | Self::PriorityClasses
            | Self::Namespaces
            | Self::Leader => false,
        }
    }
}

/// The health of one watch.
#[derive(Clone, Debug, PartialEq)]
pub struct FeedHealth {
    pub state: FeedState,
    /// When data was last received, including bookmarks.
    pub last_heard: Option<Timestamp>,
    /// Lists after the first.
    pub relists: u32,
    /// Requests made and bytes received since the start.
    pub requests: u64,
    pub bytes: u64,
}

/// What a watch is doing.
#[derive(Clone, Debug, PartialEq)]
pub enum FeedState {
    /// Not watched (`--no-pods`, which also leaves out the kinds that only placement reads).
    Off,
    Connecting,
    /// Objects of the list so far, and how many the server expects, if it said so.
    Listing {
        received: usize,
        expected: Option<usize>,
    },
    Live,
    /// Broken, or silent for too long. It is tried again.
    Broken {
        since: Timestamp,
        error: String,
    },
    /// The server forbids it, in its own words. It is tried again from time to time.
    Forbidden {
        error: String,
    },
}
