//! The engine: its controllers on simulated clusters, and against recordings of the real ones.

#[path = "../common/mod.rs"]
mod common;
mod accuracy;
mod controllers;
mod drains;
mod lifecycle;
mod rankings;
mod sim;
mod simulation;
mod timing;
mod explanation;
mod explanation_needs;
mod vectors;
