//! PodDisruptionBudgets as the disruption controller computes them and as the eviction subresource reads them
//! (docs/upstream/operator-actions.md#5).

use std::{collections::BTreeMap, sync::Arc};

use super::{
    owner::{self, OwnerLookup},
    rules::EvictionRules,
};
use crate::cluster::{
    Budget, BudgetStatus, Cluster, IntOrPercent, Key, Name, OwnerKind, Pod, Scope, Uid, UnhealthyPolicy,
    WorkloadKind,
};
use kordon_time::{Span, Timestamp};

/// Time for which a granted eviction counts as a disruption if the pod is not deleted (upstream `DeletionTimeout`).
pub const DISRUPTION_TIMEOUT: Span = Span::from_secs(120);

/// Expected pods, desired healthy pods, current healthy pods and allowed disruptions of a budget's status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BudgetNumbers {
    pub expected: i32,
    pub desired: i32,
    pub healthy: i32,
    pub allowed: i32,
}

impl BudgetNumbers {
    /// Returns the status numbers of a budget, with `allowed` computed from the other numbers (upstream
    /// `updatePdbStatus`).
    fn with_allowed(mut self) -> Self {
        let surplus = self.healthy.saturating_sub(self.desired).max(0);
        self.allowed = if self.expected > 0 { surplus } else { 0 };
        self
    }

    fn from_status(status: &BudgetStatus) -> Self {
        Self {
            expected: status.expected_pods,
            desired: status.desired_healthy,
            healthy: status.current_healthy,
            allowed: status.disruptions_allowed,
        }
    }
}

/// The reason why the disruption controller cannot sync a budget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BudgetUnsynced {
    /// The kind of a pod's owner has no scale.
    NoScale { kind: Name },
    /// The owner of this pod is gone.
    OwnerGone { pod: Key },
    /// The owner's scale is not known to kordon. The disruption controller may be able to read it.
    ScaleUnknown { kind: Name },
    /// kordon has not read the pods of the budget.
    PodsUnknown,
}

impl std::fmt::Display for BudgetUnsynced {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoScale { kind } => write!(f, "owners of kind {kind} have no scale"),
            Self::OwnerGone { pod } => write!(f, "the controller of pod {pod} is gone"),
            Self::ScaleUnknown { kind } => write!(f, "the scale of kind {kind} is unknown"),
            Self::PodsUnknown => f.write_str("its pods are unknown"),
        }
    }
}

/// Returns whether the disruption controller counts this pod for the budget.
pub fn selects(budget: &Budget, pod: &Pod, rules: &EvictionRules) -> bool {
    let is_empty = budget.selector.as_ref().is_some_and(|selector| selector.is_empty());
    budget.covers(pod) && (!is_empty || rules.empty_selector_selects)
}

/// Returns whether the eviction subresource checks this budget for this pod.
pub fn protects(budget: &Budget, pod: &Pod, rules: &EvictionRules) -> bool {
    let is_empty = budget.selector.as_ref().is_some_and(|selector| selector.is_empty());
    selects(budget, pod, rules) && (!is_empty || rules.empty_selector_protects)
}

/// Returns the pods that the disruption controller counts for a budget, by name.
pub fn pods_of<'a>(
    cluster: &'a Cluster,
    budget: &'a Budget,
    rules: &'a EvictionRules,
) -> impl Iterator<Item = &'a Arc<Pod>> {
    cluster.pods_in(&budget.key.namespace).filter(|pod| selects(budget, pod, rules))
}

/// Returns the numbers that the disruption controller writes into the status (upstream `trySync`,
/// `getExpectedPodCount`).
///
/// # Errors
/// - An owner of the budget's pods has no scale, is gone, or has a scale that is not known.
/// - The pods of the budget are not known.
pub fn numbers(
    cluster: &Cluster,
    budget: &Budget,
    rules: &EvictionRules,
    now: Timestamp,
) -> Result<BudgetNumbers, BudgetUnsynced> {
    if !knows_pods(cluster, budget) {
        return Err(BudgetUnsynced::PodsUnknown);
    }
    let expected = match (budget.max_unavailable, budget.min_available) {
        (Some(_), _) | (None, Some(IntOrPercent::Percent(_))) => scale(cluster, budget, rules)?,
        (None, Some(IntOrPercent::Int(_))) => {
            i32::try_from(pods_of(cluster, budget, rules).count()).unwrap_or(i32::MAX)
        }
        (None, None) => 0,
    };
    let desired = desired(budget, expected);
    let healthy = pods_of(cluster, budget, rules).filter(|pod| is_healthy(cluster, budget, pod, now)).count();
    let healthy = i32::try_from(healthy).unwrap_or(i32::MAX);
    Ok(BudgetNumbers { expected, desired, healthy, allowed: 0 }.with_allowed())
}

/// Returns how many pods must be healthy for a budget that expects `expected` pods.
fn desired(budget: &Budget, expected: i32) -> i32 {
    match (budget.max_unavailable, budget.min_available) {
        (Some(most), _) => expected.saturating_sub(most.scaled(expected)).max(0),
        (None, Some(least)) => least.scaled(expected),
        (None, None) => 0,
    }
}

/// Returns the status that the disruption controller writes next into a budget.
pub fn synced_status(
    cluster: &Cluster,
    budget: &Budget,
    rules: &EvictionRules,
    now: Timestamp,
) -> BudgetStatus {
    let before = budget.status.clone();
    match numbers(cluster, budget, rules, now) {
        Ok(numbers) => BudgetStatus {
            observed_generation: budget.generation,
            disruptions_allowed: numbers.allowed,
            current_healthy: numbers.healthy,
            desired_healthy: numbers.desired,
            expected_pods: numbers.expected,
            sync_failure: None,
            ..before
        },
        // If the sync fails, the disruption controller sets the allowed disruptions to 0 and keeps the other numbers
        // and the generation.
        Err(error) => {
            BudgetStatus { disruptions_allowed: 0, sync_failure: Some(error.to_string().into()), ..before }
        }
    }
}

/// Returns whether a pod counts as healthy (upstream `countHealthyPods`).
pub fn is_healthy(cluster: &Cluster, budget: &Budget, pod: &Pod, now: Timestamp) -> bool {
    let granted = budget.status.disrupted_pods.get(&pod.key.name);
    let is_disrupted = granted.is_some_and(|granted| now.since(cluster.local(*granted)) < DISRUPTION_TIMEOUT);
    pod.is_ready() && pod.termination.is_none() && !is_disrupted
}

/// Returns the sum of the scales of all distinct controllers of the budget's pods.
fn scale(cluster: &Cluster, budget: &Budget, rules: &EvictionRules) -> Result<i32, BudgetUnsynced> {
    let mut scales: BTreeMap<Uid, i32> = BTreeMap::new();
    for pod in pods_of(cluster, budget, rules) {
        if let Some((uid, replicas)) = scale_of(cluster, pod)? {
            scales.insert(uid, replicas);
        }
    }
    Ok(scales.values().fold(0, |sum, replicas| sum.saturating_add(*replicas)))
}

/// Returns the uid and the scale of the owner that counts for a pod: the Deployment of a ReplicaSet, otherwise the
/// pod's controller. `None` for a pod without a controller.
fn scale_of(cluster: &Cluster, pod: &Pod) -> Result<Option<(Uid, i32)>, BudgetUnsynced> {
    let Some(owner) = &pod.owner else { return Ok(None) };
    let gone = || BudgetUnsynced::OwnerGone { pod: pod.key.clone() };
    let unknown = || BudgetUnsynced::ScaleUnknown { kind: owner.kind.as_str().into() };
    let kind = match &owner.kind {
        OwnerKind::Workload(WorkloadKind::Job | WorkloadKind::DaemonSet) | OwnerKind::Node => {
            return Err(BudgetUnsynced::NoScale { kind: owner.kind.as_str().into() });
        }
        OwnerKind::Workload(kind) => *kind,
        OwnerKind::Other { .. } => return Err(unknown()),
    };
    let direct = match owner::find(cluster, &pod.key.namespace, owner) {
        OwnerLookup::Found(direct) => direct,
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
        Some(OwnerLookup::Found(deployment)) => deployment,
        Some(OwnerLookup::Unknown) => {
            return Err(BudgetUnsynced::ScaleUnknown { kind: WorkloadKind::Deployment.as_str().into() });
        }
        Some(OwnerLookup::Gone) | None => direct,
    };
    // The API server's default for `spec.replicas` is 1.
    Ok(Some((counts.uid.clone(), counts.replicas.unwrap_or(1))))
}

/// The state of a budget as the eviction subresource reads it, at present or later in a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct BudgetState {
    pub key: Key,
    pub numbers: BudgetNumbers,
    /// Whether the status belongs to an older spec. The eviction subresource then responds "still being processed".
    pub stale: bool,
    pub sync_failure: Option<Name>,
    pub policy: UnhealthyPolicy,
    /// Numbers in the budget's status, if they differ from the computed numbers. The smaller of the two values of
    /// `allowed` counts.
    pub reported: Option<BudgetNumbers>,
    /// Largest possible number of healthy pods: the scales of the owners, plus pods without a controller. `None` if
    /// unknown.
    pub max_healthy: Option<i32>,
    /// Whether neither minAvailable nor maxUnavailable is set. Then no disruption is ever allowed.
    pub unspecified: bool,
    /// Whether the budget requires all of its pods, so that adding pods does not help: minAvailable is 100 %, or
    /// maxUnavailable is 0.
    pub needs_all: bool,
    /// Whether a pod of the budget has a controller, which can be scaled up.
    pub has_controller: bool,
    /// Number of entries in `disruptedPods`. The eviction subresource limits this number.
    pub disrupted_pods: usize,
}

impl BudgetState {
    pub fn new(cluster: &Cluster, budget: &Budget, rules: &EvictionRules, now: Timestamp) -> Self {
        let status = BudgetNumbers::from_status(&budget.status);
        let is_assumed = budget.status.observed_generation == BudgetStatus::LAID_OVER;
        let stale = !is_assumed && budget.status.observed_generation < budget.generation;
        let (numbers, sync_failure, reported) = match numbers(cluster, budget, rules, now) {
            Ok(computed) => {
                let lower = BudgetNumbers { allowed: computed.allowed.min(status.allowed), ..computed };
                let numbers = if stale || is_assumed { computed } else { lower };
                let failed = budget.status.sync_failure.clone();
                (numbers, failed, (!stale && !is_assumed && computed != status).then_some(status))
            }
            Err(BudgetUnsynced::ScaleUnknown { .. } | BudgetUnsynced::PodsUnknown) => {
                (status, budget.status.sync_failure.clone(), None)
            }
            Err(error) => {
                let failed = budget.status.sync_failure.clone().unwrap_or_else(|| error.to_string().into());
                let reported = (status.allowed > 0).then_some(status);
                (BudgetNumbers { allowed: 0, ..status }, Some(failed), reported)
            }
        };
        Self {
            key: budget.key.clone(),
            numbers,
            stale,
            sync_failure,
            policy: if rules.unhealthy_policy { budget.unhealthy } else { UnhealthyPolicy::IfHealthyBudget },
            reported,
            max_healthy: max_healthy(cluster, budget, rules),
            unspecified: budget.min_available.is_none() && budget.max_unavailable.is_none(),
            needs_all: budget.min_available == Some(IntOrPercent::Percent(100))
                || matches!(budget.max_unavailable, Some(IntOrPercent::Int(0) | IntOrPercent::Percent(0))),
            has_controller: pods_of(cluster, budget, rules).any(|pod| pod.owner.is_some()),
            disrupted_pods: budget.status.disrupted_pods.len(),
        }
    }

    /// Returns whether the next sync of the disruption controller allows more disruptions than now. An eviction lowers
    /// the allowed disruptions at once; the controller raises them again when the replacement is Ready.
    pub fn lags(&self) -> bool {
        self.synced().allowed > self.numbers.allowed
    }

    /// Adds replicas to the workloads of the budget, or removes them if the number is negative. The next sync counts
    /// them.
    pub(super) fn scale_by(&mut self, budget: &Budget, replicas: i32) {
        self.numbers.expected = self.numbers.expected.saturating_add(replicas);
        self.numbers.desired = desired(budget, self.numbers.expected);
        self.max_healthy = self.max_healthy.map(|most| most.saturating_add(replicas));
    }

    /// Recomputes the allowed disruptions, as a sync of the disruption controller does.
    pub fn sync(&mut self) {
        self.numbers = self.synced();
    }

    /// Returns the numbers of the budget's status after the next sync of the disruption controller. They stay the same
    /// if the sync fails or if the status is of an older spec.
    fn synced(&self) -> BudgetNumbers {
        if self.sync_failure.is_none() && !self.stale { self.numbers.with_allowed() } else { self.numbers }
    }
}

/// Returns the states of the budgets that select any of these pods.
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

/// Returns whether all pods of a budget are known.
fn knows_pods(cluster: &Cluster, budget: &Budget) -> bool {
    let Some(selector) = budget.selector.as_ref().filter(|selector| !selector.is_invalid()) else {
        return true;
    };
    cluster.knows(&Scope::PodsWith(Some(budget.key.namespace.clone()), selector.clone()))
}

/// Returns the largest possible number of healthy pods: the scales of the owners, plus unmanaged pods that have neither
/// finished nor started to terminate.
fn max_healthy(cluster: &Cluster, budget: &Budget, rules: &EvictionRules) -> Option<i32> {
    if !knows_pods(cluster, budget) {
        return None;
    }
    let unmanaged = pods_of(cluster, budget, rules).filter(|pod| pod.owner.is_none() && pod.lives());
    let unmanaged = i32::try_from(unmanaged.count()).unwrap_or(i32::MAX);
    scale(cluster, budget, rules).ok().map(|scale| scale.saturating_add(unmanaged))
}
