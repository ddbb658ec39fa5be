//! Inputs of a plan, apart from the action.

use super::rules::EvictionRules;
use crate::cluster::Cluster;
use kordon_time::Timestamp;

/// Inputs of a plan, apart from the action.
pub(super) struct PlanContext<'a, E> {
    pub cluster: &'a Cluster,
    /// Behaviour of kubelets, controllers and the scheduler while the plan is applied.
    pub environment: &'a E,
    pub rules: EvictionRules,
    pub now: Timestamp,
}
