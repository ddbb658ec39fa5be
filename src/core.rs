//! All of kordon but its command line: clusters and what is known of them, the controller, the dashboard.
//!
//! A package of its own (`core/Cargo.toml`), so that a build may optimize it and take less time over the command line.
//! The modules are listed top down, as in `src/lib.rs`, which has them all under one name.

// Bad input is no reason to panic, and the terminal belongs to the screen.
#![warn(clippy::unwrap_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)]

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
    cluster, counterfactual, engine, forecast, operation, placement, plan, pressure, time, timing, visible,
    why,
};
