//! What is known of a Kubernetes cluster, what its controllers and its scheduler do, and what will happen.
//!
//! No clock, no IO, no randomness, no async, no client types: time enters as an argument, and effects leave as values. None of
//! that is among the dependencies of this package, so that nothing here can use it.
//!
//! The modules are listed top down: a module may use those under it, never those above it.

#![warn(clippy::unwrap_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)]

pub mod counterfactual;
pub mod why;
pub mod timing;
pub mod forecast;
pub mod operation;
pub mod plan;
pub mod placement;
pub mod pressure;
pub mod engine;
pub mod cluster;
pub mod visible;
