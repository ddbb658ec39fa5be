//! The harness of the tests that run against a real control plane.

mod cleanup;
pub mod component;
pub mod effect_watcher;
pub mod eventually;
pub mod forecast_checker;
pub mod incident_player;
pub mod kubelets;
pub mod objects;
pub mod observer;
pub mod plane;
pub mod proxy;
pub mod script;

use std::io::Write;

/// Prints a line to standard error even if the test passes; Rust's test harness captures the output of `println!`.
pub fn say(text: &str) {
    // The error is ignored: if standard error is closed, nobody reads the line.
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}
