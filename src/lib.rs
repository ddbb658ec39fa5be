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
pub mod clock;

// The pure layers: a package of their own (`src/pure.rs`).
pub use kordon_pure::{
    cluster, counterfactual, engine, forecast, operation, ordered, placement, plan, pressure, time, timing,
    visible, why,
};
