//! Works out the plan of an action.

use super::{
    action::{Action, RemovalMode},
    cordon, drain,
    environment::{Environment, TypicalEnvironment},
    label,
    placing_environment::PlacingEnvironment,
    plan::Plan,
    rules::EvictionRules,
    taint,
    targets::PlanError,
};
use crate::{cluster::Cluster, engine::ServerVersion, placement::Snapshot, time::Timestamp};

impl Plan {
    /// Works an action out: with where pods land, by this snapshot of the same cluster, or without.
    ///
    /// # Errors
    /// A node or pod that is named is not there.
    pub fn over(
        action: Action,
        cluster: &Cluster,
        snapshot: Option<Snapshot>,
        version: ServerVersion,
        now: Timestamp,
    ) -> Result<Self, PlanError> {
        match snapshot {
            Some(snapshot) => {
                Self::new(action, cluster, &PlacingEnvironment::new(cluster, snapshot, now), version, now)
            }
            None => Self::new(action, cluster, &TypicalEnvironment { cluster, now }, version, now),
        }
    }

    /// Works an action out. `environment` says what others do meanwhile ([`PlacingEnvironment`], or [`TypicalEnvironment`] without a placement).
    ///
    /// # Errors
    /// A node or pod that is named is not there.
    pub fn new<S: Environment>(
        action: Action,
        cluster: &Cluster,
        environment: &S,
        version: ServerVersion,
        now: Timestamp,
    ) -> Result<Self, PlanError> {
        let rules = EvictionRules::of(version);
        match &action {
            Action::Cordon { nodes } => cordon::cordon(&action, cluster, nodes, &rules, now),
            Action::Uncordon { nodes } => cordon::uncordon(&action, cluster, nodes, environment, &rules, now),
            Action::Taint { nodes, edits } => {
                taint::plan(&action, cluster, nodes, edits, environment, &rules, now)
            }
            Action::Label { nodes, edits } => label::plan(&action, cluster, nodes, edits, &rules, now),
            Action::Drain { nodes, options } => {
                drain::plan(&action, cluster, nodes, options, environment, &rules, now)
            }
            Action::Evict { pods, options } => {
                drain::remove(&action, cluster, pods, *options, RemovalMode::Evict, environment, &rules, now)
            }
            Action::Delete { pods, options } => {
                drain::remove(&action, cluster, pods, *options, RemovalMode::Delete, environment, &rules, now)
            }
        }
    }
}
