//! An embedded cluster: API, kubelets, workloads, incidents.

pub mod api;
