//! An embedded cluster: API, kubelets, workloads, incidents.

pub mod api;
pub mod scenario;
pub mod world;
mod chance;
mod feed;
mod kubelets;
mod objects;
mod seed;
mod troubles;
mod workloads;
mod writer;
