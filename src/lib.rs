//! kordon: an interactive terminal dashboard for Kubernetes node lifecycle, with the node lifecycle
//! controller inside.
//!
//! The modules below, and those of the two packages that they are made of, are listed top down: a module may use those under
//! it, never those above it (`tests/tidy.rs` holds this). `ARCHITECTURE.md` has the picture.

// Bad input is no reason to panic, and the terminal belongs to the screen; the command line's own output is
// the one exception to the latter.
#![warn(clippy::unwrap_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)]

pub mod cli;

// All else: a package of its own (`src/core.rs`).
pub use kordon_core::{app, clock, demo, executor, journal, k8s, model, recording, run, ui};
// The pure layers: a package of their own (`src/pure.rs`).
pub use kordon_core::{
    cluster, counterfactual, engine, forecast, operation, placement, plan, pressure, time, timing, visible,
    why,
};
