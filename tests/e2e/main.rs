//! Tests on the real Kubernetes control plane: etcd, API server, controllers, scheduler and kubectl; only the kubelets
//! are simulated.

mod actions;
mod audit;
#[path = "../common/mod.rs"]
mod common;
mod contexts;
mod control_plane;
mod controller;
mod departures;
mod encodings;
mod faults;
mod forecasts;
mod harness;
mod kinds;
mod lifecycle;
mod maintenance;
mod outage;
mod outcomes;
mod placement;
mod recording;
mod soak;
mod tuning;
