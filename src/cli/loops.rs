//! Eviction loops, for reports.

use serde::Serialize;

use crate::model::EvictionLoop;
use kordon_core::cluster::NodeName;

/// A workload whose pods are evicted from a node, or rejected by it, and come back to it again and again.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct EvictionLoopReport {
    /// The pods' namespace.
    namespace: String,
    /// The workload of the pods. For pods of a Deployment, this is the Deployment, not its ReplicaSet.
    workload: String,
    /// The node.
    node: NodeName,
    /// Why the node evicts or rejects the pods: a condition, a taint, or the way in which the pods leave.
    cause: String,
    /// Number of pods that left in the last minute; 0 for a loop that has not begun.
    last_minute: usize,
    /// Approximate number of pods that leave in an hour; `null` if each leaves as soon as it has been bound.
    per_hour: Option<i64>,
    /// The eviction loop, described in words.
    pub text: String,
}

impl EvictionLoopReport {
    pub fn new(found: &EvictionLoop) -> Self {
        Self {
            namespace: found.workload.namespace.to_string(),
            workload: found.workload.name.to_string(),
            node: found.node.clone(),
            cause: found.cause.clone(),
            last_minute: found.last_minute,
            per_hour: found.per_hour,
            text: found.to_string(),
        }
    }
}
