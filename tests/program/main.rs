//! The whole program: the command line, the dashboard and its screens.

mod approvals;
mod cursor;
mod dashboard_driver;
mod operations_cli;
mod operations_dashboard;
mod cli;
mod configuration;
#[path = "../common/mod.rs"]
mod common;
mod dashboard;
mod geometry;
mod harness;
mod histories;
mod hostile;
mod journals;
mod keys;
mod knowledge;
mod listings;
mod lying_server;
mod n_minus_one;
mod drain_counts;
mod drain_times;
mod evictions;
mod pending;
mod playbacks;
mod pressure;
mod recording_screen;
mod redraws;
mod replays;
mod scenario_frames;
mod requests;
mod screens;
mod dashboard_fixture;
mod terminal;
mod tuning;
mod verdict;
