//! What the watches send to the loop: changes, and how the watches themselves fare.

use std::fmt;

use crate::{
    cluster::{Change, WorkloadKind},
    time::{Span, Timestamp},
};

/// One message of the watches.
#[derive(Clone, Debug)]
pub enum FeedEvent {
    /// Changes in the order in which one watch told them; batched, so that a list of 150,000 pods is some
    /// hundreds of messages.
    Changes(Vec<Change>),
    /// How a watch fares, sent whenever it changes state and at least once a second while it lists.
    Health(FeedKind, FeedHealth),
    /// The API server's clock minus ours, from its Date header; known to about a second.
    ClockDifference(Span),
    /// Something for the journal: a failure with its source and what is tried next.
    Trouble(String),
}

/// A watch, or the group of them that one kind needs.
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
    /// Whether it is only of use to those who know the pods.
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

/// How one watch fares.
#[derive(Clone, Debug, PartialEq)]
pub struct FeedHealth {
    pub state: FeedState,
    /// When anything last came over it, bookmarks included.
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
    /// Not asked for (`--no-pods`, which leaves out what only placement reads as well).
    Off,
    Connecting,
    /// Objects of the list so far, and how many are expected where the server said so.
    Listing {
        received: usize,
        expected: Option<usize>,
    },
    Live,
    /// Broken or silent for too long, in words; it is being tried again.
    Broken {
        since: Timestamp,
        error: String,
    },
    /// The server does not let us list it, in its own words; it is asked again now and then.
    Forbidden {
        error: String,
    },
}
