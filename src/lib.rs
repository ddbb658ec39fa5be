//! kordon: an interactive terminal dashboard for Kubernetes node lifecycle, with the node lifecycle
//! controller inside.
//!
//! The modules below are listed top down: a module may use those under it, never those above it
//! (`tests/tidy.rs` holds this). `ARCHITECTURE.md` has the picture.

// Bad input is no reason to panic, and the terminal belongs to the screen; the command line's own output is
// the one exception to the latter.
#![warn(clippy::unwrap_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)]

pub mod cli;
pub mod run;
pub mod ui;
pub mod app;
pub mod model;
pub mod executor;
pub mod journal;
pub mod recording;
pub mod k8s;
pub mod demo;
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
pub mod clock;
pub mod time;
pub mod visible;
