//! Starting pods: pods that are not Ready yet, but soon count as healthy for the budgets of a removal. They usually
//! replace pods that left shortly before. The removal itself does not remove them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    budget,
    environment::{self, Bound, Environment},
    landing::Landing,
    owner,
    rules::EvictionRules,
};
use crate::cluster::{Budget, Cluster, Key, Pod};
use kordon_time::Timestamp;

/// A starting pod.
#[derive(Clone, Debug)]
pub(super) struct StartingPod {
    pub pod: Arc<Pod>,
    /// Budgets whose numbers include the pod.
    pub budgets: Vec<Key>,
}

/// Returns the starting pods of these budgets, and those for which StatefulSets wait before they create `leaving`
/// pods again. Leaves out the pods in `removed`.
pub(super) fn pods<'a>(
    cluster: &'a Cluster,
    leaving: impl IntoIterator<Item = &'a Arc<Pod>>,
    budgets: impl IntoIterator<Item = &'a Arc<Budget>>,
    removed: &BTreeSet<&Key>,
    rules: &'a EvictionRules,
) -> Vec<StartingPod> {
    let mut starting: BTreeMap<&Key, StartingPod> = BTreeMap::new();
    for budget in budgets {
        let pods = budget::pods_of(cluster, budget, rules);
        for pod in pods.filter(|pod| is_starting(cluster, pod) && !removed.contains(&pod.key)) {
            let new = || StartingPod { pod: pod.clone(), budgets: Vec::new() };
            starting.entry(&pod.key).or_insert_with(new).budgets.push(budget.key.clone());
        }
    }
    let lower = leaving.into_iter().flat_map(|pod| owner::created_after(cluster, pod));
    for pod in lower.filter_map(|lower| lower.pod) {
        if is_starting(cluster, pod) && !removed.contains(&pod.key) {
            let new = || StartingPod { pod: pod.clone(), budgets: Vec::new() };
            starting.entry(&pod.key).or_insert_with(new);
        }
    }
    starting.into_values().collect()
}

/// Returns whether the pod may soon become Ready, whatever its age is.
fn is_starting(cluster: &Cluster, pod: &Pod) -> bool {
    let runs = pod.node.as_ref().is_none_or(|node| environment::has_running_kubelet(cluster, node));
    let may_start = pod.unscheduled.is_none() && pod.trouble().is_none();
    !pod.is_ready() && pod.lives() && may_start && runs
}

impl StartingPod {
    /// Returns when the pod is Ready; `None` if it is not expected to become Ready.
    ///
    /// A pod is expected to take as long as its siblings did. If it has already taken longer than all of them, it
    /// likely takes twice the longest of their times, and possibly never becomes Ready. If it has taken even longer, it
    /// is no longer expected to become Ready.
    pub fn ready_at<E: Environment>(
        &self,
        cluster: &Cluster,
        environment: &E,
        bound: Bound,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let takes = environment.time_to_ready(&self.pod, &Landing::Unknown);
        let (created, longest) = (cluster.local(self.pod.created), takes.latest?);
        let (overdue, given_up) = (created + longest, created + longest * 2);
        let expected = created + takes.at(bound)?;
        match bound {
            _ if given_up <= now => None,
            _ if expected > now => Some(expected),
            Bound::Soonest => Some(now),
            Bound::Likely => Some(if overdue > now { overdue } else { given_up }),
            Bound::Latest => None,
        }
    }
}
