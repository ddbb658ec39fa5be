//! An embedded cluster: API, kubelets, workloads, incidents.

#![warn(clippy::unwrap_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)]

pub mod api;
pub mod scenario;
pub mod world;
mod random;
mod feed;
mod incidents;
mod kubelets;
mod objects;
mod quota;
mod scheduler;
mod seed;
mod errors;
mod workloads;
mod writer;
