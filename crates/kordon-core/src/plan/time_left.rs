//! Time left of a removal in progress. It is computed by the same simulation as plans.

use std::collections::BTreeSet;

use super::{
    action::{DrainOptions, RemovalMode},
    context::PlanContext,
    environment::TypicalEnvironment,
    obstacle::RemovalObstacle,
    pod_plan::Window,
    prediction::Prediction,
    rules::EvictionRules,
    silence::without_silent_kubelets,
    simulation::{RemovalGroup, SimulationInput},
    surge::Surge,
    words,
};
use crate::cluster::{Cluster, NodeName};
use kordon_time::{Span, Timestamp};

/// When the rest of a removal in progress ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TimeLeft {
    /// The removal likely ends at `likely`, and at `latest` at the latest. `latest` is `None` if the removal possibly
    /// never ends.
    Ends { likely: Timestamp, latest: Option<Timestamp> },
    /// The removal does not end before this time. When it ends depends on budgets that are not known.
    NotBefore(Timestamp),
    /// The removal never ends unless something changes. The value is the obstacle, if it is known.
    Never(Option<RemovalObstacle>),
}

impl TimeLeft {
    /// Describes the time left: `done in ~35s (at most 1m4s)`.
    pub fn text(&self, now: Timestamp) -> String {
        // The time left is rounded down to whole seconds, because it changes continuously.
        let after = |at: Timestamp| Span::from_secs(at.since(now).or_zero().as_secs());
        match self {
            Self::Ends { likely, latest } => {
                format!("done {}", words::ends(Some(after(*likely)), latest.map(after)))
            }
            Self::NotBefore(at) => format!("done {}", words::not_before(after(*at))),
            Self::Never(Some(obstacle)) => format!("no ETA: {obstacle}"),
            Self::Never(None) => "no ETA".into(),
        }
    }
}

/// Returns when the rest of a removal ends. `groups` are the groups of pods whose removal has not ended, in order.
/// `surges` are the Deployments that are still to be scaled up. Ignores timeouts, and does not predict where pods land.
pub fn time_left(
    cluster: &Cluster,
    groups: Vec<RemovalGroup>,
    surges: Vec<Surge>,
    options: &DrainOptions,
    mode: RemovalMode,
    rules: EvictionRules,
    now: Timestamp,
) -> TimeLeft {
    let without = without_silent_kubelets(cluster, &rules, now);
    let environment = TypicalEnvironment { cluster: &without, now };
    let context = PlanContext { cluster: &without, environment: &environment, rules, now };
    let closed: BTreeSet<NodeName> = groups.iter().filter_map(|group| group.node.clone()).collect();
    let input = SimulationInput {
        groups,
        mode,
        grace: options.grace,
        timeout: None,
        skip_wait_for_delete: options.skip_wait_for_delete,
        parallel: options.parallel.max(1),
        retry: options.retry,
        closed,
        surges,
    };
    let prediction = Prediction::new(&context, input);
    let Window { likely, latest, .. } = prediction.removed();
    match likely {
        None => TimeLeft::Never(prediction.obstacle()),
        Some(at) if prediction.has_undecided() => TimeLeft::NotBefore(at),
        Some(likely) => TimeLeft::Ends { likely, latest },
    }
}
