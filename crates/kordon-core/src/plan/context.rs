//! What plans are computed from.

use super::rules::EvictionRules;
use crate::cluster::Cluster;
use kordon_time::Timestamp;

/// What a plan is computed from, beside the action.
pub(super) struct PlanContext<'a, E> {
    pub cluster: &'a Cluster,
    /// What others do meanwhile.
    pub environment: &'a E,
    pub rules: EvictionRules,
    pub now: Timestamp,
}
