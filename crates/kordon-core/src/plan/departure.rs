//! Pods that leave at known times, whatever their budgets allow.

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
    /// Predicted time at which the pod's node becomes Unknown, which makes the pod not Ready; `None` if not predicted.
    pub unready: Option<Timestamp>,
}
