//! kordon: an interactive terminal dashboard for the Kubernetes node lifecycle, with a node lifecycle controller
//! inside.
//!
//! The modules are listed top down. A module may use those below it, never those above it; `tests/tidy` checks this.
//! Below them are four packages in `crates/`: `kordon-core` (the state of a cluster, the rules of its controllers, and
//! predictions), `kordon-demo` (the embedded cluster), `kordon-clock` and `kordon-time`. `ARCHITECTURE.md` has the
//! diagram.

// Invalid input must not cause a panic. Only the screen may write to the terminal, except that the command line prints
// its own output.
#![warn(clippy::unwrap_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)]

pub mod cli;
pub mod run;
pub mod ui;
pub mod app;
pub mod model;
pub mod executor;
pub mod journal;
pub mod recording;
pub mod objects;
pub mod k8s;
