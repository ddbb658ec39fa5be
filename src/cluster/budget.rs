//! PodDisruptionBudgets.

use std::collections::BTreeMap;

use super::{
    labels::Selector,
    names::{Key, Name, Uid},
    pod::Pod,
    table::{TableObject, Version},
};
use crate::time::ClusterTime;

/// A PodDisruptionBudget and its status.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Budget {
    pub key: Key,
    pub uid: Uid,
    pub version: Version,
    /// `metadata.generation`; the status is that of `observed_generation`.
    pub generation: i64,
    pub selector: Option<Selector>,
    pub min_available: Option<IntOrPercent>,
    pub max_unavailable: Option<IntOrPercent>,
    /// `unhealthyPodEvictionPolicy`.
    pub unhealthy: UnhealthyPolicy,
    pub status: BudgetStatus,
}

impl Budget {
    /// Whether the budget covers this pod: same namespace, selector matches.
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

/// What the disruption controller last wrote.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BudgetStatus {
    pub observed_generation: i64,
    pub disruptions_allowed: i32,
    pub current_healthy: i32,
    pub desired_healthy: i32,
    pub expected_pods: i32,
    /// Pods whose eviction was granted and that still exist, with the time of the grant.
    pub disrupted_pods: BTreeMap<Name, ClusterTime>,
    /// Why the disruption controller could not compute the status: the message of the condition DisruptionAllowed if
    /// its reason is SyncFailed.
    pub sync_failure: Option<Name>,
}

/// When pods that are not ready may be evicted (`unhealthyPodEvictionPolicy`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnhealthyPolicy {
    /// Only while the budget has enough healthy pods; also the default.
    #[default]
    IfHealthyBudget,
    AlwaysAllow,
    /// An unknown text: pods that are not ready count as not evictable.
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

/// A number, or a share of the expected pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntOrPercent {
    Int(i32),
    /// In percent.
    Percent(i32),
}
