//! Outcomes of pods that are evicted, by the rules of [`plan::outcome`](crate::plan::outcome).

use std::collections::BTreeMap;

use super::{Forecast, Succession};
use crate::{
    cluster::{Cluster, Key},
    plan::{Environment, OutcomeCounts, PodOutcome},
};
use kordon_time::Timestamp;

impl Forecast {
    /// Returns the outcomes of the pods in `leaving`, which leave at the given times. Only the first `most`
    /// replacements are placed; the outcome of the other pods is [`PodOutcome::LeftOut`]. Also counts the outcomes of
    /// other pods that are preempted for the placed replacements.
    pub fn outcomes<E: Environment>(
        &self,
        leaving: &BTreeMap<Key, Timestamp>,
        most: usize,
        cluster: &Cluster,
        environment: E,
    ) -> (BTreeMap<Key, PodOutcome>, OutcomeCounts) {
        if let Some(outcome) = PodOutcome::for_unknown_cluster(cluster) {
            let outcomes = leaving.keys().map(|key| (key.clone(), outcome.clone())).collect();
            return (outcomes, OutcomeCounts::default());
        }
        let succession: Succession = self.successors_of_first(most, leaving, cluster, environment);
        let preempted = succession.counts().preempted;
        let is_asked = |key: &Key| leaving.contains_key(key);
        let successors = succession.successors.into_iter().filter(|successor| is_asked(&successor.of));
        (successors.map(|successor| (successor.of, successor.outcome)).collect(), preempted)
    }
}
