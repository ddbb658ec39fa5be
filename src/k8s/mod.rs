//! Communication with API servers: connect, watch, decode, write, access, errors.

pub mod access;
pub mod admission;
pub mod autoscalers;
pub mod cluster_id;
pub mod connect;
pub mod decode;
pub mod error;
pub mod exec;
pub mod feed;
pub mod kubeconfig;
pub mod kubelet;
pub mod leader_client;
pub mod leadership;
pub mod node_claims;
pub mod probe;
pub mod proxy;
pub mod requests;
pub mod scheduler_writes;
pub mod served;
pub mod server_clock;
pub mod settings;
pub mod transport;
pub mod validation;
pub mod watch;
pub mod webhook;
pub mod write;
