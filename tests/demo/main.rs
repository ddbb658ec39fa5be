//! The demo cluster and the Kubernetes client, each tested with the other.

mod alerts;
#[path = "../common/mod.rs"]
mod common;
mod connect;
mod controller;
mod encodings;
mod promql;
mod proxies;
mod recordings;
mod scheduler;
mod tls;
mod watch;
mod world;
mod write;
