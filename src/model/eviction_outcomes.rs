//! What becomes of every pod that is evicted: worked out beside the loop ([`Model::next_outcomes_job`],
//! [`OutcomesJob::work`]), kept in [`Model::outcomes`] until something newer is known, and counted for title, verdict and
//! report.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    Model,
    eviction::{EvictionRow, EvictionState},
    leaving::Leaving,
};
use crate::{
    cluster::{Cluster, FeedKind, Key, NodeName, Pod, SortedWalk},
    engine::ServerVersion,
    forecast::{EvictionOutcome, Forecast, OutcomeClass, Unreplaced},
    placement::Snapshot,
    plan::{
        EvictionRules, PlacingEnvironment, budget,
        eviction::{self, EvictionDecision},
    },
    time::Timestamp,
};

/// What becomes of the pods that are evicted, at a moment.
#[derive(Clone, Debug)]
pub struct EvictionOutcomes {
    /// The time of the cluster state that it was worked out from.
    pub at: Timestamp,
    basis: OutcomesBasis,
    by_pod: BTreeMap<Key, EvictionOutcome>,
    /// The pods in whose place nothing runs, by their node.
    unreplaced: BTreeMap<NodeName, BTreeMap<Key, Unreplaced>>,
    /// The pods whose eviction a budget would refuse, the earlier ones granted; none if budgets are not known.
    refused: Option<BTreeSet<Key>>,
}

impl EvictionOutcomes {
    /// Those of the pods that leave.
    pub const fn by_pod(&self) -> &BTreeMap<Key, EvictionOutcome> {
        &self.by_pod
    }

    /// Why nothing runs in the place of a pod of a node.
    pub fn unreplaced(&self, node: &NodeName, pod: &Key) -> Option<Unreplaced> {
        self.unreplaced.get(node)?.get(pod).copied()
    }
}

/// What outcomes depend on: while it stays the same, so do they.
#[derive(Clone, Debug, PartialEq, Eq)]
struct OutcomesBasis {
    /// [`Model::plan_changes`].
    changes: u64,
    /// [`Forecast::down`].
    down: BTreeSet<NodeName>,
    /// [`LeavingChanges::pods`](super::leaving::LeavingChanges::pods).
    leaving: u64,
}

/// Copies of everything that outcomes are worked out from.
#[derive(Debug)]
pub struct OutcomesJob {
    cluster: Cluster,
    version: ServerVersion,
    forecast: Arc<Forecast>,
    leaving: Arc<Leaving>,
    basis: OutcomesBasis,
    at: Timestamp,
}

/// How many evictions there are of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EvictionCounts {
    /// Pods that leave: scheduled and predicted. The counts up to `working_out` add up to it.
    pub leaving: usize,
    pub moves: usize,
    pub pending: usize,
    /// Those whose replacement a quota refuses.
    pub refused: usize,
    /// Those that wait for their old node.
    pub stuck: usize,
    pub lost: usize,
    /// Those that run again on the same node, or whose controller needs no other.
    pub not_replaced: usize,
    pub not_known: usize,
    pub left_out: usize,
    pub working_out: usize,
    /// Evictions that a budget would refuse; none if budgets, or the outcomes, are not known.
    pub against_budgets: Option<usize>,
    pub terminating: usize,
    pub cancelled: usize,
    /// Pods that tolerate the taint without a limit.
    pub never: usize,
}

/// The most looks at nodes that placing may take: pods times nodes. With more pods, the first are placed.
const MAX_LOOKS: usize = 10_000_000;

impl Model {
    /// What becomes of a pod that is evicted; none for one that stays, and while it is worked out.
    pub fn outcome(&self, pod: &Key, row: &EvictionRow) -> Option<Cow<'_, EvictionOutcome>> {
        match row.state {
            EvictionState::Scheduled { .. } | EvictionState::Predicted { .. } => {
                self.outcomes.as_ref()?.by_pod.get(pod).map(Cow::Borrowed)
            }
            EvictionState::Terminating { .. } => {
                Some(Cow::Owned(EvictionOutcome::of_terminating(&self.cluster, self.cluster.pod(pod)?)))
            }
            EvictionState::Cancelled { .. } | EvictionState::Never => None,
        }
    }

    /// Whether a budget would refuse the eviction of a pod, which taint eviction ignores; none while that is not known.
    pub fn would_be_refused(&self, pod: &Key) -> Option<bool> {
        Some(self.outcomes.as_ref()?.refused.as_ref()?.contains(pod))
    }

    /// The next outcomes to work out; none while they are known, or nodes or pods are not.
    pub fn next_outcomes_job(&self, now: Timestamp) -> Option<OutcomesJob> {
        let changes = self.plan_revision()?;
        let leaving = &self.views.leaving;
        leaving.first?;
        let down = self.forecast.as_ref().map(|forecast| forecast.down.clone()).unwrap_or_default();
        let basis = OutcomesBasis { changes, down, leaving: leaving.changes.pods };
        if self.outcomes.as_ref().is_some_and(|outcomes| outcomes.basis == basis) {
            return None;
        }
        Some(OutcomesJob {
            cluster: self.cluster.clone(),
            version: self.settings.version,
            forecast: self.forecast.clone().unwrap_or_default(),
            leaving: leaving.clone(),
            basis,
            at: now,
        })
    }

    /// Works out at once what becomes of the pods that leave, where that is not known.
    pub fn run_outcomes(&mut self, now: Timestamp) {
        if let Some(job) = self.next_outcomes_job(now) {
            self.set_outcomes(job.work());
        }
    }

    /// Takes new outcomes, and returns those before.
    pub fn set_outcomes(&mut self, outcomes: EvictionOutcomes) -> Option<Arc<EvictionOutcomes>> {
        let before = self.outcomes.replace(Arc::new(outcomes));
        self.views.counts = EvictionCounts::of(&self.views.leaving.evictions, self.outcomes.as_deref());
        self.outcome_changes += 1;
        self.views.revision.evictions += 1;
        self.results += 1;
        before
    }
}

impl OutcomesJob {
    pub fn work(self) -> EvictionOutcomes {
        let Self { cluster, version, forecast, leaving, basis, at } = self;
        let leaving: BTreeMap<Key, Timestamp> = leaving.pods().collect();
        let snapshot = Snapshot::new(&cluster, version);
        let most = MAX_LOOKS / cluster.nodes().len().max(1);
        let environment = PlacingEnvironment::new(&cluster, snapshot, at);
        let by_pod = forecast.outcomes(&leaving, most, &cluster, environment);
        let refused = refused(&cluster, &leaving, version, at);
        let unreplaced = unreplaced(&cluster, &by_pod);
        EvictionOutcomes { at, basis, by_pod, unreplaced, refused }
    }
}

/// The pods in whose place nothing runs, by their node.
fn unreplaced(
    cluster: &Cluster,
    by_pod: &BTreeMap<Key, EvictionOutcome>,
) -> BTreeMap<NodeName, BTreeMap<Key, Unreplaced>> {
    let mut unreplaced: BTreeMap<NodeName, BTreeMap<Key, Unreplaced>> = BTreeMap::new();
    for (key, outcome) in by_pod {
        if let Some(why) = outcome.class().unreplaced()
            && let Some(node) = cluster.pod(key).and_then(|pod| pod.node.clone())
        {
            unreplaced.entry(node).or_default().insert(key.clone(), why);
        }
    }
    unreplaced
}

/// The pods whose eviction a budget would refuse now if all were asked for in order of time, each granted one using up a
/// disruption; none if budgets are not known.
fn refused(
    cluster: &Cluster,
    leaving: &BTreeMap<Key, Timestamp>,
    version: ServerVersion,
    now: Timestamp,
) -> Option<BTreeSet<Key>> {
    if !cluster.gaps([FeedKind::Budgets]).unknown().is_empty() {
        return None;
    }
    let rules = EvictionRules::of(version);
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

impl EvictionCounts {
    /// Counts evictions.
    pub(super) fn of(evictions: &BTreeMap<Key, EvictionRow>, outcomes: Option<&EvictionOutcomes>) -> Self {
        let mut counts = Self::default();
        let mut refused = 0;
        let refusals = outcomes.and_then(|outcomes| outcomes.refused.as_ref()).into_iter().flatten();
        let mut refusals = SortedWalk::new(refusals.map(|key| (key, ())));
        let mut by_pod = SortedWalk::new(outcomes.into_iter().flat_map(|outcomes| &outcomes.by_pod));
        for (key, row) in evictions {
            let of_state = match row.state {
                EvictionState::Scheduled { .. } | EvictionState::Predicted { .. } => {
                    refused += refusals.get(key).map_or(0, |()| 1);
                    let outcome = by_pod.get(key);
                    *counts.of_class(outcome.map(EvictionOutcome::class)) += 1;
                    &mut counts.leaving
                }
                EvictionState::Terminating { .. } => &mut counts.terminating,
                EvictionState::Cancelled { .. } => &mut counts.cancelled,
                EvictionState::Never => &mut counts.never,
            };
            *of_state += 1;
        }
        counts.against_budgets =
            outcomes.is_some_and(|outcomes| outcomes.refused.is_some()).then_some(refused);
        counts
    }

    /// The count of a class of outcomes; none is worked out now.
    const fn of_class(&mut self, class: Option<OutcomeClass>) -> &mut usize {
        match class {
            None => &mut self.working_out,
            Some(OutcomeClass::Moves) => &mut self.moves,
            Some(OutcomeClass::Unreplaced(Unreplaced::Pending)) => &mut self.pending,
            Some(OutcomeClass::Unreplaced(Unreplaced::Refused)) => &mut self.refused,
            Some(OutcomeClass::Unreplaced(Unreplaced::Stuck)) => &mut self.stuck,
            Some(OutcomeClass::Unreplaced(Unreplaced::Lost)) => &mut self.lost,
            Some(OutcomeClass::NotReplaced) => &mut self.not_replaced,
            Some(OutcomeClass::Unknown) => &mut self.not_known,
            Some(OutcomeClass::LeftOut) => &mut self.left_out,
        }
    }
}
