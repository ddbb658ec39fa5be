//! Where the default scheduler would put a pod, whom it would displace, or why it leaves it pending.
//!
//! Filters say which nodes would do, scores which of them is best; both follow the default profile of
//! kube-scheduler, release by release ([`Rules`]). A [`Snapshot`] holds the cluster in a form that answers in a
//! fraction of a millisecond; a [`PodShape`] is what the scheduler reads of a pod; an [`Outcome`] is the answer.
//!
//! Ties are told as ties: upstream takes any of [`Placement::best`]. Not modelled: custom profiles, extenders,
//! claimed devices, gangs, the room that storage has left; see [`Reservation`].

mod columns;
mod crowds;
mod demands;
mod filter;
mod help;
mod ids;
mod images;
mod outcome;
mod preemption;
mod reason;
mod room;
mod rules;
mod score;
mod shape;
mod slack;
mod snapshot;
mod storage;
pub mod tether;

pub use help::{Constraint, Help, Lift, Shortage, Wanted};
pub use outcome::{Outcome, Placement, Scored, Scorer, Unschedulable};
pub use preemption::{Displacement, Hindrance, Preemption};
pub use reason::{Reason, Refusal, Remedy};
pub use room::{Load, Share};
pub use rules::{Balance, Rules};
pub use shape::{Obstacle, PodShape, Reservation};
pub use snapshot::Snapshot;
pub use tether::Tether;
