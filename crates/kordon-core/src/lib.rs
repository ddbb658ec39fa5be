//! State of a Kubernetes cluster, models of its controllers and its scheduler, and predictions.
//!
//! No clock, no IO, no randomness, no async, no client types: time enters as an argument, and effects leave as values.
//! The package depends on no crate that provides any of these, and `tests/tidy/layers.rs` forbids the parts of the
//! standard library that do.
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
