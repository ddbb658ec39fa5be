//! An embedded cluster: API, kubelets, workloads, incidents.

#![warn(clippy::unwrap_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)]

pub mod api;
mod errors;
mod feed;
mod incidents;
mod kubelets;
mod objects;
mod quota;
mod random;
pub mod scenario;
mod scheduler;
mod seed;
mod workloads;
pub mod world;
mod writer;
