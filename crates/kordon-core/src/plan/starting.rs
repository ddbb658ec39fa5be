//! Pods that a removal does not remove but that soon count as healthy for its budgets. These are starting pods, which
//! usually replace pods that left shortly before, and terminating pods that are created again.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    budget,
    environment::{self, Bound, Environment, Estimate},
    failover,
    forced_removal::COLLECTED,
    landing::Landing,
    owner::{self, Recreation},
    rules::EvictionRules,
};
use crate::{
    cluster::{Budget, Cluster, Key, Pod, Scope, Taint},
    engine::{first_timer, no_execute},
};
use kordon_time::Timestamp;

/// A starting pod, which soon counts as healthy for its `budgets`.
#[derive(Clone, Debug)]
pub(super) struct StartingPod {
    pub pod: Arc<Pod>,
    /// Budgets whose numbers include the pod.
    pub budgets: Vec<Key>,
}

/// A pod on a lost node that leaves this node whether or not the plan is applied, so that its owner replaces it.
#[derive(Clone, Debug)]
pub(super) struct LostPod {
    pub pod: Arc<Pod>,
    /// Time from the start of the plan until the pod's deletion starts.
    pub after: Estimate,
}

/// What a removal waits for besides its own pods: its budgets, and pods of lower ordinals in StatefulSets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Awaited<'a> {
    pub cluster: &'a Cluster,
    /// Pods that the removal removes.
    pub removed: &'a BTreeMap<&'a Key, &'a Arc<Pod>>,
    pub budgets: &'a [&'a Arc<Budget>],
    pub rules: &'a EvictionRules,
}

impl<'a> Awaited<'a> {
    /// Returns the starting pods of the budgets, and the starting pods for which StatefulSets wait before they create
    /// removed pods again.
    pub fn starting(&self) -> Vec<StartingPod> {
        let mut starting: BTreeMap<&Key, StartingPod> = BTreeMap::new();
        for (pod, budget) in self.others().filter(|(pod, _)| is_starting(self.cluster, pod)) {
            let new = || StartingPod { pod: pod.clone(), budgets: Vec::new() };
            starting.entry(&pod.key).or_insert_with(new).budgets.extend(budget.cloned());
        }
        starting.into_values().collect()
    }

    /// Returns the terminating pods that their owners create again once they are gone.
    pub fn returning(&self) -> Vec<Arc<Pod>> {
        let returns = |pod: &&Arc<Pod>| failover::is_waited_for(self.cluster, pod);
        let pods = self.others().map(|(pod, _)| pod).filter(returns);
        pods.map(|pod| (&pod.key, pod.clone())).collect::<BTreeMap<_, _>>().into_values().collect()
    }

    /// Returns the pods that leave lost nodes. If the kubelet of a node is down, these are the pods that the node's
    /// taints evict at a known time; if the node does not exist, the pods that the pod garbage collector removes.
    pub fn evicted(&self, now: Timestamp) -> Vec<LostPod> {
        let evicted = |(pod, _): (&'a Arc<Pod>, Option<&'a Key>)| {
            let after = leaves_lost_node(self.cluster, pod, now)?;
            Some((&pod.key, LostPod { pod: pod.clone(), after }))
        };
        self.others().filter_map(evicted).collect::<BTreeMap<_, _>>().into_values().collect()
    }

    /// Returns the pods that the removal waits for but does not remove: the pods of each budget, with this budget, and
    /// the pods of lower ordinals, without a budget.
    fn others(&self) -> impl Iterator<Item = (&'a Arc<Pod>, Option<&'a Key>)> {
        let Self { cluster, removed, budgets, rules } = *self;
        let of_budget = move |budget: &'a Arc<Budget>| {
            budget::pods_of(cluster, budget, rules).map(|pod| (pod, Some(&budget.key)))
        };
        let lower = removed.values().flat_map(|pod| owner::created_after(cluster, pod));
        let lower = lower.filter_map(|lower| Some((lower.pod?, None)));
        let pods = budgets.iter().flat_map(move |budget| of_budget(budget)).chain(lower);
        pods.filter(|(pod, _)| !removed.contains_key(&pod.key))
    }
}

/// Returns the time until a pod is removed from its lost node, if its owner then replaces it. `None` if the pod stays
/// there, or if its owner waits until a kubelet confirms that the old pod has ended.
fn leaves_lost_node(cluster: &Cluster, pod: &Pod, now: Timestamp) -> Option<Estimate> {
    let name = pod.node.as_ref().filter(|_| pod.lives() && !pod.is_ready() && !pod.is_held())?;
    let recreation = owner::recreation(cluster, pod);
    let Some(node) = cluster.node(name) else {
        let is_missing = cluster.knows(&Scope::Node(name.clone()));
        let is_replaced = matches!(recreation, Recreation::Immediately | Recreation::WhenGone);
        return (is_missing && is_replaced).then_some(COLLECTED);
    };
    if environment::has_running_kubelet(cluster, name) || recreation != Recreation::Immediately {
        return None;
    }
    let taints: Vec<Taint> = no_execute(node);
    let since = taints.iter().map(|taint| Some((cluster.local(taint.time_added?), taint)));
    let timer = first_timer(&pod.tolerations, &since.collect::<Option<Vec<_>>>()?)?;
    Some(Estimate::exactly((timer.started + timer.span).since(now).or_zero()))
}

/// Returns whether the pod may soon become Ready, whatever its age is.
fn is_starting(cluster: &Cluster, pod: &Pod) -> bool {
    let runs = pod.node.as_ref().is_none_or(|node| environment::has_running_kubelet(cluster, node));
    let may_start = pod.unscheduled.is_none() && pod.trouble().is_none();
    !pod.is_ready() && pod.lives() && may_start && runs
}

/// Returns when a starting pod is likely Ready; `None` if the pod does not start, or is not expected to become Ready.
pub(crate) fn likely_ready<E: Environment>(
    cluster: &Cluster,
    pod: &Arc<Pod>,
    environment: &E,
    now: Timestamp,
) -> Option<Timestamp> {
    let starting = StartingPod { pod: pod.clone(), budgets: Vec::new() };
    is_starting(cluster, pod).then(|| starting.ready_at(cluster, environment, Bound::Likely, now))?
}

impl StartingPod {
    /// Returns when the pod is Ready; `None` if it is not expected to become Ready.
    ///
    /// The pod is expected to take as long as the other pods of its owner did, counted from its start
    /// (`environment::start_of`) or from the last restart of a container. If it has already taken longer than the
    /// slowest of them, it likely takes twice as long as that one, and possibly never becomes Ready. If it has taken
    /// longer than that too, it is no longer expected to become Ready.
    pub fn ready_at<E: Environment>(
        &self,
        cluster: &Cluster,
        environment: &E,
        bound: Bound,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let takes = environment.time_to_ready(&self.pod, &Landing::Unknown);
        let begun = environment::start_of(cluster, &self.pod);
        let restarted = self.pod.restarted().map(|at| cluster.stated_by_kubelet(&self.pod, at));
        let started = restarted.map_or(begun, |at| at.max(begun));
        let (started, longest) = (cluster.local(started), takes.latest?);
        let (overdue, given_up) = (started + longest, started + longest * 2);
        let expected = started + takes.at(bound)?;
        match bound {
            _ if given_up <= now => None,
            _ if expected > now => Some(expected),
            Bound::Soonest => Some(now),
            Bound::Likely => Some(if overdue > now { overdue } else { given_up }),
            Bound::Latest => None,
        }
    }
}
