//! An embedded cluster: API, kubelets, workloads, incidents.

pub mod api;
pub mod scenario;
pub mod world;
mod chance;
mod seed;
