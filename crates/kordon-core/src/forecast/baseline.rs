//! The steps that a failure adds to a forecast, compared with the forecast without the failure.

use std::collections::{BTreeMap, BTreeSet};

use super::{Forecast, ForecastStep};
use crate::cluster::{Cluster, Key, NodeName};

impl Forecast {
    /// Removes the steps that the forecast without the failure (`baseline`) also predicts for the same time. Keeps all
    /// steps of the failing nodes.
    pub fn subtract(&mut self, baseline: &Self, failing: &BTreeSet<NodeName>) {
        let expected: BTreeSet<_> = baseline.steps.iter().map(|step| (step.at, &step.kind)).collect();
        let stays = |step: &ForecastStep| {
            failing.contains(step.kind.node()) || !expected.contains(&(step.at, &step.kind))
        };
        let before = self.deletions();
        self.steps.retain(stays);
        self.subtracted += before - self.deletions();
        self.by_node = by_node(&self.steps);
    }

    /// Number of all predicted deletions.
    pub(super) fn deletions(&self) -> usize {
        self.totals(self.made).deleted
    }

    /// The running pods on these nodes that the forecast does not delete, each with its node.
    pub fn staying(&self, cluster: &Cluster, nodes: &BTreeSet<NodeName>) -> Vec<(Key, NodeName)> {
        let mut staying = Vec::new();
        for node in nodes {
            let leaving: BTreeSet<&Key> = self.of_node(node).filter_map(|step| step.kind.pod()).collect();
            let stays = cluster.pods_on(node).filter(|pod| pod.lives() && !leaving.contains(&pod.key));
            staying.extend(stays.map(|pod| (pod.key.clone(), node.clone())));
        }
        staying
    }
}

/// The indices of each node's steps, sorted by time.
pub(super) fn by_node(steps: &[ForecastStep]) -> BTreeMap<NodeName, Vec<usize>> {
    let mut places: BTreeMap<NodeName, Vec<usize>> = BTreeMap::new();
    for (place, step) in steps.iter().enumerate() {
        places.entry(step.kind.node().clone()).or_default().push(place);
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{engine::Why, forecast::ForecastKind};
    use kordon_time::Timestamp;

    #[test]
    fn the_baseline_is_subtracted_and_each_node_is_still_found() {
        let step = |secs, kind| ForecastStep {
            at: Timestamp::from_secs(secs),
            kind,
            why: Why::default(),
            not_ready: 0,
            chance: None,
        };
        let unknown = |node: &str| ForecastKind::Unknown { node: node.into() };
        let of =
            |steps: Vec<ForecastStep>| Forecast { by_node: by_node(&steps), steps, ..Forecast::default() };
        let mut forecast = of(vec![
            step(1, unknown("a")),
            step(2, unknown("b")),
            step(3, unknown("b")),
            step(4, unknown("a")),
            step(5, unknown("c")),
        ]);
        let baseline = of(vec![
            step(1, unknown("a")),
            step(2, unknown("b")),
            step(5, unknown("c")),
            step(9, unknown("a")),
        ]);
        forecast.subtract(&baseline, &["c".into()].into());
        let left = |node: &str| forecast.of_node(&node.into()).map(|step| step.at).collect::<Vec<_>>();
        let at = |secs| vec![Timestamp::from_secs(secs)];
        assert_eq!((left("a"), left("b"), left("c")), (at(4), at(3), at(5)), "c is the failing node");
    }
}
