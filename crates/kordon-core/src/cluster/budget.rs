//! PodDisruptionBudgets.

use std::collections::BTreeMap;

use minicbor::{Decode, Encode};

use super::{
    encoding::EncodingContext,
    labels::Selector,
    names::{Key, Name},
    owner::Owner,
    pod::Pod,
    table::{TableObject, Version},
    uid::Uid,
};
use kordon_time::ClusterTime;

/// A PodDisruptionBudget and its status.
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct Budget {
    #[n(0)]
    pub key: Key,
    #[n(1)]
    pub uid: Uid,
    #[n(2)]
    pub version: Version,
    /// `metadata.generation`. The status is outdated while its `observed_generation` is lower.
    #[n(3)]
    pub generation: i64,
    #[n(4)]
    pub selector: Option<Selector>,
    #[n(5)]
    pub min_available: Option<IntOrPercent>,
    #[n(6)]
    pub max_unavailable: Option<IntOrPercent>,
    /// `unhealthyPodEvictionPolicy`.
    #[n(7)]
    pub unhealthy: UnhealthyPolicy,
    #[n(8)]
    pub status: BudgetStatus,
    /// The controller that created the budget, and would undo a change of it; `None` for a budget that no controller
    /// owns.
    #[n(9)]
    #[cbor(default)]
    pub owner: Option<Owner>,
}

impl Budget {
    /// Whether the budget covers a pod: the namespace is the same, and the selector matches.
    pub fn covers(&self, pod: &Pod) -> bool {
        self.key.namespace == pod.key.namespace
            && self.selector.as_ref().is_some_and(|selector| selector.matches(&pod.labels))
    }
}

impl TableObject for Budget {
    type Key = Key;
    fn key(&self) -> Key {
        self.key.clone()
    }
    fn version(&self) -> Version {
        self.version
    }
}

/// The status that the disruption controller last wrote.
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct BudgetStatus {
    #[n(0)]
    pub observed_generation: i64,
    #[n(1)]
    pub disruptions_allowed: i32,
    #[n(2)]
    pub current_healthy: i32,
    #[n(3)]
    pub desired_healthy: i32,
    #[n(4)]
    pub expected_pods: i32,
    /// `status.disruptedPods`: pods that still exist after their eviction was granted, with the time of the grant.
    #[n(5)]
    pub disrupted_pods: BTreeMap<Name, ClusterTime>,
    /// The error with which the disruption controller failed to compute the status: the message of the condition
    /// DisruptionAllowed, if the reason of the condition is SyncFailed.
    #[n(6)]
    pub sync_failure: Option<Name>,
}

impl BudgetStatus {
    /// `observed_generation` of a budget that comes from `--with` and not from the cluster. The disruption controller
    /// is assumed to have synced such a budget.
    pub const LAID_OVER: i64 = -1;
}

/// When pods that are not ready may be evicted (`unhealthyPodEvictionPolicy`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum UnhealthyPolicy {
    /// Pods that are not ready may be evicted only while the budget has enough healthy pods. This is also the default.
    #[default]
    #[n(0)]
    IfHealthyBudget,
    #[n(1)]
    AlwaysAllow,
    /// An unknown policy: pods that are not ready cannot be evicted.
    #[n(2)]
    Invalid,
}

impl UnhealthyPolicy {
    pub fn parse(text: &str) -> Self {
        match text {
            "" | "IfHealthyBudget" => Self::IfHealthyBudget,
            "AlwaysAllow" => Self::AlwaysAllow,
            _ => Self::Invalid,
        }
    }
}

/// A number of pods or nodes, or a percentage of all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub enum IntOrPercent {
    #[n(0)]
    Int(#[n(0)] i32),
    /// A percentage.
    #[n(1)]
    Percent(#[n(0)] i32),
}

impl IntOrPercent {
    /// The number that the value stands for. A percentage is taken of `total` and rounded up.
    pub fn scaled(self, total: i32) -> i32 {
        match self {
            Self::Int(number) => number,
            Self::Percent(percent) => {
                let hundredths = i64::from(percent) * i64::from(total);
                i32::try_from((hundredths + 99).div_euclid(100)).unwrap_or(i32::MAX)
            }
        }
    }
}
