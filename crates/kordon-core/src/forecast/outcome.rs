//! Outcomes of pods that are evicted, by the rules of [`plan::outcome`](crate::plan::outcome).

use std::collections::BTreeMap;

use super::{Forecast, Succession};
use crate::{
    cluster::{Cluster, Key},
    plan::{Environment, PodOutcome, PreemptedFor, failover},
};
use kordon_time::Timestamp;

/// Outcomes of pods that leave their node, of pods that stay on a node that is down, and of preempted pods.
#[derive(Clone, Debug, Default)]
pub struct LeavingOutcomes {
    /// Outcomes of the pods that leave their node.
    pub by_pod: BTreeMap<Key, PodOutcome>,
    /// Outcomes of the pods on nodes that are down whose deletion does not begin within the forecast.
    pub staying: BTreeMap<Key, PodOutcome>,
    /// Pods on other nodes that are preempted for the placed replacements.
    pub preempted: BTreeMap<Key, PreemptedFor>,
}

impl Forecast {
    /// Returns the outcomes of the pods in `leaving`, which leave at the given times. Only the first `most`
    /// replacements are placed; the outcome of the other pods is [`PodOutcome::LeftOut`].
    pub fn outcomes<E: Environment>(
        &self,
        leaving: &BTreeMap<Key, Timestamp>,
        most: usize,
        cluster: &Cluster,
        environment: E,
    ) -> LeavingOutcomes {
        if let Some(outcome) = PodOutcome::for_unknown_cluster(cluster) {
            let by_pod = leaving.keys().map(|key| (key.clone(), outcome.clone())).collect();
            return LeavingOutcomes { by_pod, ..LeavingOutcomes::default() };
        }
        let succession: Succession = self.successors_of_first(most, leaving, cluster, environment);
        let preempted = failover::preempted(&succession.trace).map(|(replaced, victim)| {
            (victim.pod.clone(), PreemptedFor { replaced: replaced.clone(), victim: victim.clone() })
        });
        let mut outcomes = LeavingOutcomes { preempted: preempted.collect(), ..LeavingOutcomes::default() };
        for successor in succession.successors {
            if leaving.contains_key(&successor.of) {
                outcomes.by_pod.insert(successor.of, successor.outcome);
            } else if successor.evicted.is_none() {
                outcomes.staying.insert(successor.of, successor.outcome);
            }
        }
        outcomes
    }
}
