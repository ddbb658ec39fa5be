//! Budgets as the disruption controller works them out, and as eviction finds them
//! (docs/upstream/operator-actions.md#5).

use std::{collections::BTreeMap, sync::Arc};

use super::{
    owner::{self, OwnerLookup},
    rules::EvictionRules,
};
use crate::{
    cluster::{
        Budget, BudgetStatus, Cluster, IntOrPercent, Key, Name, OwnerKind, Pod, Uid, UnhealthyPolicy,
        WorkloadKind,
    },
    time::{Span, Timestamp},
};

/// How long a granted eviction counts before the pod is seen to go (upstream `DeletionTimeout`).
pub const DISRUPTION_TIMEOUT: Span = Span::from_secs(120);

/// The four numbers of a budget's status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BudgetNumbers {
    pub expected: i32,
    pub desired: i32,
    pub healthy: i32,
    pub allowed: i32,
}

impl BudgetNumbers {
    /// With `allowed` as it follows from the others (upstream `updatePdbStatus`).
    fn settled(mut self) -> Self {
        let spare = self.healthy.saturating_sub(self.desired).max(0);
        self.allowed = if self.expected > 0 { spare } else { 0 };
        self
    }

    fn of(status: &BudgetStatus) -> Self {
        Self {
            expected: status.expected_pods,
            desired: status.desired_healthy,
            healthy: status.current_healthy,
            allowed: status.disruptions_allowed,
        }
    }
}

/// Why the disruption controller cannot work a budget out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BudgetUnsynced {
    /// The owner's kind has no scale.
    NoScale { kind: Name },
    /// The pod's owner is gone.
    OwnerGone { pod: Key },
    /// The owner's scale is not known to us; the controller may well read it.
    ScaleUnknown { kind: Name },
}

impl std::fmt::Display for BudgetUnsynced {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoScale { kind } => write!(f, "owners of kind {kind} have no scale"),
            Self::OwnerGone { pod } => write!(f, "the controller of pod {pod} is gone"),
            Self::ScaleUnknown { kind } => write!(f, "the scale of kind {kind} is not known"),
        }
    }
}

/// Whether the budget's selector means this pod. Unlike [`protects`], this is the controller's view.
pub fn selects(budget: &Budget, pod: &Pod, rules: &EvictionRules) -> bool {
    let is_empty = budget.selector.as_ref().is_some_and(|selector| selector.is_empty());
    budget.covers(pod) && (!is_empty || rules.empty_selector_selects)
}

/// Whether the eviction subresource asks this budget about this pod.
pub fn protects(budget: &Budget, pod: &Pod, rules: &EvictionRules) -> bool {
    let is_empty = budget.selector.as_ref().is_some_and(|selector| selector.is_empty());
    selects(budget, pod, rules) && (!is_empty || rules.empty_selector_protects)
}

/// The pods that a budget's selector means, by name.
pub fn pods_of<'a>(
    cluster: &'a Cluster,
    budget: &'a Budget,
    rules: &'a EvictionRules,
) -> impl Iterator<Item = &'a Arc<Pod>> {
    cluster.pods_in(&budget.key.namespace).filter(|pod| selects(budget, pod, rules))
}

/// What the disruption controller writes into the status (upstream `trySync`, `getExpectedPodCount`).
///
/// # Errors
/// It needs the scale of an owner that has none.
pub fn work_out(
    cluster: &Cluster,
    budget: &Budget,
    rules: &EvictionRules,
    now: Timestamp,
) -> Result<BudgetNumbers, BudgetUnsynced> {
    let (expected, desired) = match (budget.max_unavailable, budget.min_available) {
        (Some(max_healthy), _) => {
            let scale = scale(cluster, budget, rules)?;
            (scale, scale.saturating_sub(of_scale(max_healthy, scale)).max(0))
        }
        (None, Some(IntOrPercent::Percent(least))) => {
            let scale = scale(cluster, budget, rules)?;
            (scale, of_scale(IntOrPercent::Percent(least), scale))
        }
        (None, Some(IntOrPercent::Int(least))) => {
            let count = pods_of(cluster, budget, rules).count();
            (i32::try_from(count).unwrap_or(i32::MAX), least)
        }
        (None, None) => (0, 0),
    };
    let healthy = pods_of(cluster, budget, rules).filter(|pod| is_healthy(budget, pod, now)).count();
    let healthy = i32::try_from(healthy).unwrap_or(i32::MAX);
    Ok(BudgetNumbers { expected, desired, healthy, allowed: 0 }.settled())
}

/// The status that the disruption controller writes where it had `budget.status` before.
pub fn synced_status(
    cluster: &Cluster,
    budget: &Budget,
    rules: &EvictionRules,
    now: Timestamp,
) -> BudgetStatus {
    let before = budget.status.clone();
    match work_out(cluster, budget, rules, now) {
        Ok(numbers) => BudgetStatus {
            observed_generation: budget.generation,
            disruptions_allowed: numbers.allowed,
            current_healthy: numbers.healthy,
            desired_healthy: numbers.desired,
            expected_pods: numbers.expected,
            sync_failure: None,
            ..before
        },
        // Neither the numbers nor the generation are touched.
        Err(error) => {
            BudgetStatus { disruptions_allowed: 0, sync_failure: Some(error.to_string().into()), ..before }
        }
    }
}

/// Whether a pod counts as healthy (upstream `countHealthyPods`).
pub fn is_healthy(budget: &Budget, pod: &Pod, now: Timestamp) -> bool {
    let granted = budget.status.disrupted_pods.get(&pod.key.name);
    let is_promised = granted.is_some_and(|granted| now.since(*granted) < DISRUPTION_TIMEOUT);
    pod.is_ready() && pod.termination.is_none() && !is_promised
}

/// A number, or a share of the scale rounded up.
fn of_scale(value: IntOrPercent, scale: i32) -> i32 {
    match value {
        IntOrPercent::Int(number) => number,
        IntOrPercent::Percent(percent) => {
            let hundredths = i64::from(percent) * i64::from(scale);
            i32::try_from((hundredths + 99).div_euclid(100)).unwrap_or(i32::MAX)
        }
    }
}

/// The sum of the scales of the distinct controllers of a budget's pods.
fn scale(cluster: &Cluster, budget: &Budget, rules: &EvictionRules) -> Result<i32, BudgetUnsynced> {
    let mut scales: BTreeMap<Uid, i32> = BTreeMap::new();
    for pod in pods_of(cluster, budget, rules) {
        if let Some((uid, replicas)) = scale_of(cluster, pod)? {
            scales.insert(uid, replicas);
        }
    }
    Ok(scales.values().fold(0, |sum, replicas| sum.saturating_add(*replicas)))
}

/// Whose scale a pod counts into, and how much that is; none for a pod without a controller.
fn scale_of(cluster: &Cluster, pod: &Pod) -> Result<Option<(Uid, i32)>, BudgetUnsynced> {
    let Some(owner) = &pod.owner else { return Ok(None) };
    let gone = || BudgetUnsynced::OwnerGone { pod: pod.key.clone() };
    let unknown = || BudgetUnsynced::ScaleUnknown { kind: owner.kind.as_str().into() };
    let kind = match &owner.kind {
        OwnerKind::Workload(WorkloadKind::Job | WorkloadKind::DaemonSet) | OwnerKind::Node => {
            return Err(BudgetUnsynced::NoScale { kind: owner.kind.as_str().into() });
        }
        OwnerKind::Workload(kind) => *kind,
        OwnerKind::Other(_) => return Err(unknown()),
    };
    let direct = match owner::find(cluster, &pod.key.namespace, owner) {
        OwnerLookup::There(direct) => direct,
        OwnerLookup::Gone => return Err(gone()),
        OwnerLookup::Unknown => return Err(unknown()),
    };
    let deployment = direct
        .owner
        .as_ref()
        .filter(|above| {
            kind == WorkloadKind::ReplicaSet && above.kind == OwnerKind::Workload(WorkloadKind::Deployment)
        })
        .map(|above| owner::find(cluster, &pod.key.namespace, above));
    let counts = match deployment {
        Some(OwnerLookup::There(deployment)) => deployment,
        Some(OwnerLookup::Gone | OwnerLookup::Unknown) | None => direct,
    };
    // What the API server fills in for a scale that is not given.
    Ok(Some((counts.uid.clone(), counts.replicas.unwrap_or(1))))
}

/// A budget as eviction finds it, now or later in a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct BudgetState {
    pub key: Key,
    pub numbers: BudgetNumbers,
    /// The status speaks of an older spec: eviction answers "still being processed".
    pub stale: bool,
    pub sync_failure: Option<Name>,
    pub policy: UnhealthyPolicy,
    /// What the status says, where that is not what we work out; the smaller `allowed` counts.
    pub disagrees: Option<BudgetNumbers>,
    /// How many healthy pods there can be at most: scales, and pods without a controller. None where not known.
    pub max_healthy: Option<i32>,
    /// Neither minAvailable nor maxUnavailable is given: nothing may ever go.
    pub empty: bool,
    /// Entries of disruptedPods, as counted by eviction's own limit.
    pub promised: usize,
}

impl BudgetState {
    pub fn new(cluster: &Cluster, budget: &Budget, rules: &EvictionRules, now: Timestamp) -> Self {
        let told = BudgetNumbers::of(&budget.status);
        let stale = budget.status.observed_generation < budget.generation;
        let (numbers, sync_failure, disagrees) = match work_out(cluster, budget, rules, now) {
            Ok(ours) => {
                let numbers = BudgetNumbers { allowed: ours.allowed.min(told.allowed), ..ours };
                let numbers = if stale { ours } else { numbers };
                let failed = budget.status.sync_failure.clone();
                (numbers, failed, (!stale && ours != told).then_some(told))
            }
            Err(BudgetUnsynced::ScaleUnknown { .. }) => (told, budget.status.sync_failure.clone(), None),
            Err(error) => {
                let failed = budget.status.sync_failure.clone().unwrap_or_else(|| error.to_string().into());
                let disagrees = (told.allowed > 0).then_some(told);
                (BudgetNumbers { allowed: 0, ..told }, Some(failed), disagrees)
            }
        };
        Self {
            key: budget.key.clone(),
            numbers,
            stale,
            sync_failure,
            policy: if rules.unhealthy_policy { budget.unhealthy } else { UnhealthyPolicy::IfHealthyBudget },
            disagrees,
            max_healthy: most_healthy(cluster, budget, rules),
            empty: budget.min_available.is_none() && budget.max_unavailable.is_none(),
            promised: budget.status.disrupted_pods.len(),
        }
    }

    /// What the disruption controller makes of it once it has seen what happened.
    pub fn settle(&mut self) {
        if self.sync_failure.is_none() && !self.stale {
            self.numbers = self.numbers.settled();
        }
    }
}

/// The budgets that mean any of these pods, as they stand; each worked out once.
pub fn states<'a>(
    cluster: &Cluster,
    pods: impl IntoIterator<Item = &'a Arc<Pod>>,
    rules: &EvictionRules,
    now: Timestamp,
) -> BTreeMap<Key, BudgetState> {
    let mut states = BTreeMap::new();
    for pod in pods {
        for budget in cluster.budgets_of(pod).filter(|budget| selects(budget, pod, rules)) {
            states.entry(budget.key.clone()).or_insert_with(|| BudgetState::new(cluster, budget, rules, now));
        }
    }
    states
}

/// How many healthy pods a budget can ever have: the scales of its owners, and unmanaged pods that have not ended.
fn most_healthy(cluster: &Cluster, budget: &Budget, rules: &EvictionRules) -> Option<i32> {
    let bare = pods_of(cluster, budget, rules)
        .filter(|pod| pod.owner.is_none() && !pod.is_finished() && pod.termination.is_none());
    let bare = i32::try_from(bare.count()).unwrap_or(i32::MAX);
    scale(cluster, budget, rules).ok().map(|scale| scale.saturating_add(bare))
}
