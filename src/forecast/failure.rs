//! What a failure adds to what is coming anyway.

use std::collections::{BTreeMap, BTreeSet};

use super::{Forecast, ForecastKind, ForecastStep};
use crate::cluster::{Cluster, Key, NodeName};

impl Forecast {
    /// Leaves out what `anyway` tells at the same time; what comes to the failing nodes is told whether or not they
    /// are failing already.
    pub fn leave_out(&mut self, anyway: &Self, failing: &BTreeSet<NodeName>) {
        let comes_anyway: BTreeSet<_> = anyway.steps.iter().map(|step| (step.at, &step.what)).collect();
        let is_told = |step: &ForecastStep| {
            failing.contains(step.what.node()) || !comes_anyway.contains(&(step.at, &step.what))
        };
        self.steps.retain(is_told);
        self.by_node = by_node(&self.steps);
    }

    /// The pods of these nodes that run and are not deleted within the forecast.
    pub fn staying(&self, cluster: &Cluster, nodes: &BTreeSet<NodeName>) -> Vec<(Key, NodeName)> {
        let mut staying = Vec::new();
        for node in nodes {
            let leaving: BTreeSet<&Key> = self.of_node(node).filter_map(deleted).collect();
            let stays = cluster
                .pods_on(node)
                .filter(|pod| pod.termination.is_none() && !pod.is_finished() && !leaving.contains(&pod.key));
            staying.extend(stays.map(|pod| (pod.key.clone(), node.clone())));
        }
        staying
    }
}

/// Where in the steps each node comes, in order of time.
pub(super) fn by_node(steps: &[ForecastStep]) -> BTreeMap<NodeName, Vec<usize>> {
    let mut places: BTreeMap<NodeName, Vec<usize>> = BTreeMap::new();
    for (place, step) in steps.iter().enumerate() {
        places.entry(step.what.node().clone()).or_default().push(place);
    }
    places
}

fn deleted(step: &ForecastStep) -> Option<&Key> {
    match &step.what {
        ForecastKind::Deleted { pod, .. } | ForecastKind::Removed { pod, .. } => Some(pod),
        ForecastKind::Unknown { .. } | ForecastKind::NoExecute { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{engine::Why, time::Timestamp};

    #[test]
    fn what_comes_anyway_is_left_out_and_each_node_is_still_found() {
        let step = |secs, what| ForecastStep { at: Timestamp::from_secs(secs), what, why: Why::default() };
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
        let anyway = of(vec![
            step(1, unknown("a")),
            step(2, unknown("b")),
            step(5, unknown("c")),
            step(9, unknown("a")),
        ]);
        forecast.leave_out(&anyway, &["c".into()].into());
        let left = |node: &str| forecast.of_node(&node.into()).map(|step| step.at).collect::<Vec<_>>();
        let at = |secs| vec![Timestamp::from_secs(secs)];
        assert_eq!((left("a"), left("b"), left("c")), (at(4), at(3), at(5)), "c is what is asked about");
    }
}
