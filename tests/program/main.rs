//! The whole program: the command line, the dashboard and its screens.

mod act;
mod acting;
mod cli;
#[path = "../common/mod.rs"]
mod common;
mod dashboard;
mod drain_times;
mod paper;
mod screens;
mod story;
mod terminal;
