//! Placement of a pod by the default scheduler: the node, the pods it would preempt, or why the pod stays Pending.
//!
//! Filters decide which nodes are feasible, scores decide which of them is best. Both follow the default profile of
//! kube-scheduler, release by release ([`SchedulerRules`]). A [`Snapshot`] holds the cluster in a form in which a pod
//! is placed in a fraction of a millisecond. A [`SchedulingRequest`] is what the scheduler reads of a pod. A
//! [`SchedulingOutcome`] is the result.
//!
//! If several nodes are equally good, [`Placement::best`] has all of them: the scheduler takes any of them. Not
//! modelled: custom profiles, extenders, group scheduling, and the score of nodes by free storage capacity; see
//! [`Caveat`].

mod affinity_classes;
mod cluster_snapshot;
mod columns;
mod devices;
mod filter;
mod help;
mod ids;
mod images;
mod label_index;
mod no_node;
mod node_resources;
mod node_walk;
mod outcome;
mod pod_classes;
mod preemption;
mod presence;
mod reason;
mod rules;
mod scheduling_cycle;
mod scheduling_request;
mod score;
mod snapshot;
mod snapshot_lease;
mod storage;
pub mod volume_topology;

pub use cluster_snapshot::{ClusterSnapshot, SnapshotInProgress};
pub use help::{Constraint, Help, Lift, RequiredNode, Shortage, amounts};
pub use node_resources::{ResourceUse, Share};
pub use node_walk::{NoPercentage, PercentageOfNodesToScore, SchedulerOptions};
pub use outcome::{Placement, SchedulingOutcome, Scored, Scorer, TiedNodes, Unschedulable};
pub use preemption::{Hindrance, Preemption, PreemptionCandidate};
pub use reason::{NodeRefusal, Reason, Remedy};
pub use rules::{Balance, SchedulerRules};
pub use scheduling_request::{Caveat, Obstacle, SchedulingRequest};
pub use snapshot::Snapshot;
pub use snapshot_lease::SnapshotLease;
pub use volume_topology::VolumeTopology;
