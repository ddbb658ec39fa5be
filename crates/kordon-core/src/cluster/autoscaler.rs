//! HorizontalPodAutoscalers, and which workloads they scale.

use super::{
    fetched_list::FetchedList,
    names::{Key, Name},
    owner::{Owner, WorkloadKind},
};

/// A HorizontalPodAutoscaler, cut down to the fields that decide how many pods its target has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Autoscaler {
    pub key: Key,
    /// `spec.scaleTargetRef.kind`
    pub target_kind: Name,
    /// `spec.scaleTargetRef.name`
    pub target: Name,
    /// `spec.minReplicas`; 1 if it is not set.
    pub min: i32,
    /// `spec.maxReplicas`
    pub max: i32,
    /// The object that created the autoscaler, such as a ScaledObject of KEDA; `None` if none is named.
    pub owner: Option<Owner>,
}

/// The autoscalers of a cluster. They are read only where a plan asks for them.
pub type KnownAutoscalers = FetchedList<Autoscaler>;

impl Autoscaler {
    /// Whether the autoscaler sets the replicas of this Deployment.
    pub fn scales(&self, deployment: &Key) -> bool {
        self.key.namespace == deployment.namespace
            && self.target_kind == *WorkloadKind::Deployment.as_str()
            && self.target == deployment.name
    }
}
