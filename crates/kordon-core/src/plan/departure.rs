//! Pods that leave at known times, whatever their budgets are.

use std::sync::Arc;

use crate::cluster::Pod;
use kordon_time::Timestamp;

/// A pod that leaves at a known time.
#[derive(Clone, Debug)]
pub struct Departure {
    pub pod: Arc<Pod>,
    /// Time at which the pod's deletion starts; for a pod that is already terminating, the start of the plan.
    pub leaves: Timestamp,
    /// Time at which the pod's object is gone; `None` means never.
    pub gone: Option<Timestamp>,
    /// Time at which its node becomes Unknown and the pod with it not ready, if that is predicted.
    pub unready: Option<Timestamp>,
}
