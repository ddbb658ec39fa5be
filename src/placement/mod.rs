//! Where the default scheduler would put a pod, whom it would displace, or why it leaves it pending.
//!
//! Filters say which nodes would do, scores which of them is best; both follow the default profile of
//! kube-scheduler, release by release ([`SchedulerRules`]). A [`Snapshot`] holds the cluster in a form that answers in a
//! fraction of a millisecond; a [`SchedulingRequest`] is what the scheduler reads of a pod; an [`SchedulingOutcome`] is the answer.
//!
//! Ties are told as ties: upstream takes any of [`Placement::best`]. Not modelled: custom profiles, extenders,
//! claimed devices, gangs, the room that storage has left; see [`Caveat`].

mod columns;
mod pod_classes;
mod affinity_classes;
mod filter;
mod help;
mod ids;
mod images;
mod outcome;
mod preemption;
mod reason;
mod node_resources;
mod rules;
mod score;
mod scheduling_request;
mod trivial_fit;
mod snapshot;
mod storage;
pub mod volume_topology;

pub use help::{Constraint, Help, Lift, RequiredNode, Shortage};
pub use node_resources::{ResourceUse, Share};
pub use outcome::{Placement, SchedulingOutcome, Scored, Scorer, Unschedulable};
pub use preemption::{Displacement, Hindrance, Preemption};
pub use reason::{NodeRefusal, Reason, Remedy};
pub use rules::{Balance, SchedulerRules};
pub use scheduling_request::{Caveat, Obstacle, SchedulingRequest};
pub use snapshot::Snapshot;
pub use volume_topology::VolumeTopology;
