//! Makes the plan of an action.

use super::{
    action::{Action, RemovalMode},
    cancellation::Cancellation,
    context::PlanContext,
    cordon, drain,
    environment::{Environment, TypicalEnvironment},
    gaps, metadata, node_deletion,
    placing_environment::PlacingEnvironment,
    plan::Plan,
    removal,
    rules::EvictionRules,
    silence, taint,
    targets::PlanError,
};
use crate::{cluster::Cluster, placement::Snapshot};
use kordon_time::Timestamp;

impl Plan {
    /// Makes the plan of an action. The plan has landings if `snapshot` is given and all nodes and pods are known. The
    /// snapshot must be of the same cluster. Nothing is promised of pods on a silent node.
    ///
    /// # Errors
    /// A named node or pod does not exist, or the outcome depends on objects that are not known.
    pub fn over(
        action: Action,
        cluster: &Cluster,
        snapshot: Option<Snapshot>,
        rules: impl Into<EvictionRules>,
        now: Timestamp,
    ) -> Result<Self, PlanError> {
        Self::over_until(&Cancellation::default(), action, cluster, snapshot, rules.into(), now)
    }

    /// Like [`Plan::over`]. If the work is cancelled, returns soon; the plan must then be discarded.
    pub(super) fn over_until(
        cancellation: &Cancellation,
        action: Action,
        cluster: &Cluster,
        snapshot: Option<Snapshot>,
        rules: EvictionRules,
        now: Timestamp,
    ) -> Result<Self, PlanError> {
        let without = silence::without_silent_kubelets(cluster, &rules, now);
        match snapshot.filter(|_| gaps::can_place(cluster)) {
            Some(snapshot) => {
                let placing = PlacingEnvironment::for_present(cluster, snapshot, &rules, now)
                    .until_cancelled(cancellation);
                let environment = placing.into_state().in_cluster(&without, now);
                Self::new(action, &without, &environment, rules, now)
            }
            None => {
                let environment = TypicalEnvironment { cluster: &without, now };
                Self::new(action, &without, &environment, rules, now)
            }
        }
    }

    /// Makes the plan of an action in an environment, which models kubelets, controllers and the scheduler.
    ///
    /// # Errors
    /// A named node or pod does not exist, or the outcome depends on objects that are not known.
    pub fn new<E: Environment>(
        action: Action,
        cluster: &Cluster,
        environment: &E,
        rules: impl Into<EvictionRules>,
        now: Timestamp,
    ) -> Result<Self, PlanError> {
        let context = PlanContext { cluster, environment, rules: rules.into(), now };
        match &action {
            Action::Cordon { nodes } => cordon::cordon(&action, nodes, &context),
            Action::Uncordon { nodes } => cordon::uncordon(&action, nodes, &context),
            Action::Taint { nodes, edits } => taint::plan(&action, nodes, edits, &context),
            Action::Metadata { nodes, edits } => metadata::plan(&action, nodes, edits, &context),
            Action::DeleteNode { nodes } => node_deletion::plan(&action, nodes, &context),
            Action::Drain { nodes, options } => drain::plan(&action, nodes, options, &context),
            Action::Evict { pods, options } => {
                removal::plan(&action, pods, *options, RemovalMode::Evict, &context)
            }
            Action::Delete { pods, options } => {
                removal::plan(&action, pods, *options, RemovalMode::Delete, &context)
            }
        }
    }
}
