//! Background job that computes the outcome of every evicted pod: [`Model::next_outcomes_job`], [`OutcomesJob::work`].

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    Model,
    eviction_outcomes::{EvictionOutcomes, OutcomesBasis},
    leaving::Leaving,
};
use kordon_core::{
    cluster::{Cluster, FeedKind, Key, Node, NodeName, Pod, ZoneKey},
    engine::ServerVersion,
    forecast::{Forecast, LeavingOutcomes},
    placement::ClusterSnapshot,
    plan::{
        Cancellation, EvictionRules, OutcomeKind, PlacingEnvironment, PodOutcome, budget,
        eviction::{self, EvictionDecision},
        pressure_failover,
    },
    pressure::EvictionOrder,
};
use kordon_time::Timestamp;

/// Copies of all inputs of the outcomes.
#[derive(Debug)]
pub struct OutcomesJob {
    cluster: Cluster,
    version: ServerVersion,
    forecast: Arc<Forecast>,
    leaving: Arc<Leaving>,
    /// The nodes whose kubelets evict pods under pressure, each with the order of the evictions.
    kubelets: Vec<(Arc<Node>, EvictionOrder)>,
    basis: OutcomesBasis,
    at: Timestamp,
}

/// Maximum number of node checks in a placement. Each pod takes one check of every node, so in a large cluster only the
/// first pods are placed.
const MAX_LOOKS: usize = 10_000_000;

impl Model {
    /// Returns the next outcomes to compute. `None` in three cases: the outcomes are up to date; no pod leaves, no node is
    /// down and no kubelet evicts; nodes or pods are unknown.
    pub fn next_outcomes_job(&self, now: Timestamp) -> Option<OutcomesJob> {
        let changes = self.plan_revision()?;
        let leaving = &self.views.leaving;
        let forecast = self.predictions.forecast();
        let down = forecast.map(|forecast| forecast.down.clone()).unwrap_or_default();
        let is_any_left = self.predictions.outcomes().is_some_and(|outcomes| !outcomes.staying.is_empty());
        let kubelets: Vec<_> = self.kubelet_orders().map(|(node, _, order)| (node.clone(), order)).collect();
        if leaving.first.is_none() && down.is_empty() && !is_any_left && kubelets.is_empty() {
            return None;
        }
        let paused: Option<BTreeSet<ZoneKey>> =
            forecast.map(|forecast| forecast.paused_zones().into_iter().cloned().collect());
        let paused = paused.unwrap_or_default();
        let by_node = |(node, order): &(Arc<Node>, EvictionOrder)| {
            let evicted: Vec<Key> = order.evicted().map(|pod| pod.key.clone()).collect();
            (node.name.clone(), (order.signal, evicted))
        };
        let basis = OutcomesBasis {
            changes,
            down,
            paused,
            leaving: leaving.changes.pods,
            kubelets: kubelets.iter().map(by_node).collect(),
        };
        if self.predictions.outcomes().is_some_and(|outcomes| outcomes.basis == basis) {
            return None;
        }
        Some(OutcomesJob {
            cluster: self.cluster.clone(),
            version: self.settings.version,
            forecast: forecast.cloned().unwrap_or_default(),
            leaving: leaving.clone(),
            kubelets,
            basis,
            at: now,
        })
    }

    /// Computes the outcomes of the leaving pods at once, unless they are up to date. `earlier` is as for
    /// [`OutcomesJob::work`].
    pub fn run_outcomes(&mut self, earlier: Option<ClusterSnapshot>, now: Timestamp) {
        if let Some(job) = self.next_outcomes_job(now) {
            self.set_outcomes(job.work(earlier, &Cancellation::default()));
        }
    }
}

impl OutcomesJob {
    /// Computes the outcomes. After a cancellation it returns early, and the result must be discarded. `earlier` is the
    /// snapshot of an earlier state. Updating this snapshot takes much less time and memory than building a new one.
    pub fn work(self, earlier: Option<ClusterSnapshot>, cancellation: &Cancellation) -> EvictionOutcomes {
        let Self { cluster, version, forecast, leaving, kubelets, basis, at } = self;
        let leaving: BTreeMap<Key, Timestamp> = leaving.pods().collect();
        let ClusterSnapshot { cluster, snapshot } = ClusterSnapshot::new(cluster, version, earlier);
        let by_kubelets = kubelets.iter().flat_map(|(node, order)| {
            let failover = pressure_failover(&cluster, snapshot.clone(), node, order, at);
            failover.pods.into_iter().map(|evicted| (evicted.pod.key.clone(), evicted.outcome))
        });
        let by_kubelets = by_kubelets.collect();
        let most = MAX_LOOKS / cluster.nodes().len().max(1);
        let environment = PlacingEnvironment::new(&cluster, snapshot, at).until_cancelled(cancellation);
        let LeavingOutcomes { by_pod, staying, preempted } =
            forecast.outcomes(&leaving, most, &cluster, environment);
        let refused = refused(&cluster, &leaving, version, at);
        let nowhere = nowhere(&cluster, &by_pod, &staying);
        EvictionOutcomes { at, basis, by_pod, staying, by_kubelets, preempted, nowhere, refused }
    }
}

/// Returns the pods of `by_pod` and `staying` that have nowhere to run, grouped by node.
fn nowhere(
    cluster: &Cluster,
    by_pod: &BTreeMap<Key, PodOutcome>,
    staying: &BTreeMap<Key, PodOutcome>,
) -> BTreeMap<NodeName, BTreeMap<Key, OutcomeKind>> {
    let mut nowhere: BTreeMap<NodeName, BTreeMap<Key, OutcomeKind>> = BTreeMap::new();
    let kinds = by_pod.iter().chain(staying).map(|(key, outcome)| (key, outcome.kind()));
    for (key, kind) in kinds.filter(|(_, kind)| kind.has_nowhere_to_run()) {
        if let Some(node) = cluster.pod(key).and_then(|pod| pod.node.clone()) {
            nowhere.entry(node).or_default().insert(key.clone(), kind);
        }
    }
    nowhere
}

/// Returns the pods whose eviction a budget would refuse; `None` if budgets are unknown. The evictions are simulated in
/// the order of their times, as if all happened now. Each eviction uses up one allowed disruption.
fn refused(
    cluster: &Cluster,
    leaving: &BTreeMap<Key, Timestamp>,
    version: ServerVersion,
    now: Timestamp,
) -> Option<BTreeSet<Key>> {
    if !cluster.gaps([FeedKind::Budgets]).unknown().is_empty() {
        return None;
    }
    let rules = EvictionRules::for_version(version);
    let mut pods: Vec<(Timestamp, &Arc<Pod>)> =
        leaving.iter().filter_map(|(key, at)| Some((*at, cluster.pod(key)?))).collect();
    pods.sort_by_key(|(at, _)| *at);
    let mut states = budget::states(cluster, pods.iter().map(|(_, pod)| *pod), &rules, now);
    let mut refused = BTreeSet::new();
    for (_, pod) in pods {
        match eviction::decision(cluster, pod, &states, &rules) {
            EvictionDecision::Free(_) => {}
            EvictionDecision::Costs { budget } => {
                if let Some(state) = states.get_mut(&budget) {
                    state.numbers.allowed -= 1;
                }
            }
            EvictionDecision::Blocked(block) => {
                if block.budget().is_some() {
                    refused.insert(pod.key.clone());
                }
            }
        }
    }
    Some(refused)
}
