//! The pure layers of kordon: what is known of a cluster, what its controllers do, and what will happen.
//!
//! No clock, no IO, no randomness, no async, no client types: time enters as an argument, and effects leave as values. They are
//! a package of their own (`pure/Cargo.toml`), so that none of them can use what is not among its dependencies.
//! The modules are listed top down, as in `src/lib.rs`, which has them all under one name.

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
pub mod time;
pub mod visible;
