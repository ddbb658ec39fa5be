//! State of a Kubernetes cluster, models of its controllers and its scheduler, and predictions.
//!
//! No clock, no IO, no randomness, no async, no client types: time enters as an argument, and effects leave as values.
//! The package depends on no crate that provides any of these, and `tests/tidy/layers.rs` forbids the parts of the
//! standard library that do.
//!
//! Other programs may embed it: fill a [`Cluster`](cluster::Cluster) by [`Change`](cluster::Change)s, and drive an
//! [`Engine`](engine::Engine) over it. `examples/silent_node.rs` does so in sixty lines
//! (`cargo run -p kordon-core --example silent_node`). The API follows the needs of kordon and is not stable.
//!
//! The modules are listed top down. A module may use the modules below it, but not the modules above it.

#![warn(clippy::unwrap_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)]

pub mod counterfactual;
pub mod why;
pub mod timing;
pub mod forecast;
pub mod maintenance;
pub mod operation;
pub mod plan;
pub mod placement;
pub mod pressure;
pub mod engine;
pub mod cluster;
pub mod visible;

#[cfg(feature = "schema")]
kordon_time::text_schema!(cluster::NodeName, cluster::OperationId, engine::Why);
