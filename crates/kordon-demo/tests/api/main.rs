//! The embedded API server as kordon, its agents and kubectl use it: through `kube::Client` in process, and over
//! plain HTTP on loopback.

mod deletion;
mod eviction;
mod faults;
mod fixture;
mod kubelets;
mod lists;
mod over_http;
mod watches;
mod writing;
