//! An embedded cluster: API, kubelets, workloads, incidents.
//!
//! ```text
//!  world          seeds the API (seed), starts the agents, runs a scenario (scenario, incidents)
//!    |
//!    v
//!  agents         kubelets, workloads (the controllers) and scheduler, each in a task
//!    |      ^
//!    | JSON | changes
//!    v      |
//!  writer  feed
//!     \    /
//!   kube::Client
//!       |
//!      api        the server: in process, and over HTTP on loopback if asked
//! ```
//!
//! Of kordon's packages it depends on `kordon-time` and `kordon-clock` alone: a fake that shares code with what it
//! tests shares its bugs.

#![warn(clippy::unwrap_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)]

pub mod api;
mod errors;
mod feed;
mod incidents;
mod kubelets;
mod objects;
mod quota;
mod random;
pub mod scenario;
mod scheduler;
mod seed;
mod workloads;
pub mod world;
mod writer;
