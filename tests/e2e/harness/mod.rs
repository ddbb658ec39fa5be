//! What the tests share that run against a real control plane.
#![allow(dead_code, reason = "each test program uses its part")]

pub mod component;
pub mod eventually;
pub mod judge;
pub mod kubelets;
pub mod observer;
pub mod plane;
pub mod player;
pub mod script;
mod wipe;
pub mod witness;

use std::io::Write;

/// Says something even when the test passes: the test harness swallows what `println!` prints.
pub fn say(text: &str) {
    // Nobody to tell: then nobody misses it.
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}
