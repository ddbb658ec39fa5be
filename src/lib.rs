//! kordon: an interactive terminal dashboard for Kubernetes node lifecycle, with the node lifecycle
//! controller inside.
//!
//! The modules are listed top down: a module may use those under it, never those above it (`tests/tidy` holds this). Under
//! them are four packages in `crates/`: `kordon-core` (what is known of a cluster, what its controllers do, and what will
//! happen), `kordon-demo` (the embedded cluster), `kordon-clock` and `kordon-time`. `ARCHITECTURE.md` has the picture.

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
