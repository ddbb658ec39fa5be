//! The decision and the answer of the eviction subresource (docs/upstream/operator-actions.md#4).

use std::{collections::BTreeMap, sync::Arc};

use super::{
    budget::{self, BudgetNumbers, BudgetState},
    rules::EvictionRules,
};
use crate::cluster::{Budget, Cluster, Key, Name, Phase, Pod, UnhealthyPolicy};
use kordon_time::{Span, Timestamp};

/// The decision on the eviction of a pod.
#[derive(Clone, Debug, PartialEq)]
pub enum EvictionDecision {
    /// Allowed, without using a disruption.
    Free(FreeEviction),
    /// Allowed, using one disruption of this budget.
    Costs {
        budget: Key,
    },
    Blocked(EvictionBlock),
}

/// Why an eviction uses no disruption.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FreeEviction {
    NoBudget,
    Pending,
    Finished,
    Terminating,
    /// It is not Ready, and its budget always allows that.
    UnhealthyAllowed,
    /// It is not Ready, and its budget is met without it.
    HealthyBudget,
}

/// Why an eviction is refused for now.
#[derive(Clone, Debug, PartialEq)]
pub enum EvictionBlock {
    NamespaceTerminating,
    /// More than one budget: an error that a retry does not change.
    TwoBudgets {
        budgets: Vec<Key>,
    },
    /// The budget's status is of an older spec, or was never written.
    Stale {
        budget: Key,
    },
    /// The budget allows no disruption now.
    Exhausted {
        budget: Key,
        numbers: BudgetNumbers,
        sync_failure: Option<Name>,
    },
    /// The budget's policy for pods that are not Ready is unknown to kordon.
    UnknownPolicy {
        budget: Key,
    },
    /// `disruptionsAllowed` is negative, or more than 2000 granted evictions are unconfirmed.
    Broken {
        budget: Key,
        what: &'static str,
    },
}

impl EvictionBlock {
    /// The budgets that block: none, one, or several that protect one pod.
    pub fn budgets(&self) -> impl Iterator<Item = &Key> {
        let several: &[Key] = match self {
            Self::TwoBudgets { budgets } => budgets,
            _ => &[],
        };
        self.budget().into_iter().chain(several)
    }

    /// The budget that blocks.
    pub fn budget(&self) -> Option<&Key> {
        match self {
            Self::NamespaceTerminating | Self::TwoBudgets { .. } => None,
            Self::Stale { budget }
            | Self::Exhausted { budget, .. }
            | Self::UnknownPolicy { budget }
            | Self::Broken { budget, .. } => Some(budget),
        }
    }
}

/// How many unconfirmed evictions of a budget are allowed (upstream `MaxDisruptedPodSize`).
const MAX_DISRUPTED_PODS: usize = 2000;

/// What eviction reads of a pod.
#[derive(Clone, Copy, Debug)]
pub struct PodState {
    pub phase: Phase,
    pub ready: bool,
    pub terminating: bool,
    pub namespace_terminating: bool,
}

impl PodState {
    pub fn of(cluster: &Cluster, pod: &Pod) -> Self {
        let namespace = cluster.namespaces().get(&pod.key.namespace);
        Self {
            phase: pod.phase,
            ready: pod.is_ready(),
            terminating: pod.termination.is_some(),
            namespace_terminating: namespace.is_some_and(|namespace| namespace.terminating),
        }
    }
}

/// Whether the eviction of a pod depends on its budgets: they protect only pods that run.
pub fn asks_budgets(pod: &Pod) -> bool {
    pod.termination.is_none() && matches!(pod.phase, Phase::Running | Phase::Unknown)
}

/// The decision on a pod with these protecting budgets (upstream `EvictionREST.Create`).
pub fn decide(pod: PodState, budgets: &[&BudgetState]) -> EvictionDecision {
    if pod.namespace_terminating {
        return EvictionDecision::Blocked(EvictionBlock::NamespaceTerminating);
    }
    match pod.phase {
        _ if pod.terminating => return EvictionDecision::Free(FreeEviction::Terminating),
        Phase::Pending => return EvictionDecision::Free(FreeEviction::Pending),
        Phase::Succeeded | Phase::Failed => return EvictionDecision::Free(FreeEviction::Finished),
        Phase::Running | Phase::Unknown => {}
    }
    let budget = match budgets {
        [] => return EvictionDecision::Free(FreeEviction::NoBudget),
        [budget] => *budget,
        several => {
            let budgets = several.iter().map(|budget| budget.key.clone()).collect();
            return EvictionDecision::Blocked(EvictionBlock::TwoBudgets { budgets });
        }
    };
    let numbers = budget.numbers;
    if !pod.ready {
        match budget.policy {
            UnhealthyPolicy::AlwaysAllow => return EvictionDecision::Free(FreeEviction::UnhealthyAllowed),
            UnhealthyPolicy::IfHealthyBudget => {}
            UnhealthyPolicy::Invalid => {
                return EvictionDecision::Blocked(EvictionBlock::UnknownPolicy {
                    budget: budget.key.clone(),
                });
            }
        }
        if numbers.healthy >= numbers.desired && numbers.desired > 0 {
            return EvictionDecision::Free(FreeEviction::HealthyBudget);
        }
    }
    let key = budget.key.clone();
    if budget.stale {
        EvictionDecision::Blocked(EvictionBlock::Stale { budget: key })
    } else if numbers.allowed < 0 {
        EvictionDecision::Blocked(EvictionBlock::Broken {
            budget: key,
            what: "pdb disruptions allowed is negative",
        })
    } else if budget.disrupted_pods > MAX_DISRUPTED_PODS {
        let what = "DisruptedPods map too big - too many evictions not confirmed by PDB controller";
        EvictionDecision::Blocked(EvictionBlock::Broken { budget: key, what })
    } else if numbers.allowed == 0 {
        EvictionDecision::Blocked(EvictionBlock::Exhausted {
            budget: key,
            numbers,
            sync_failure: budget.sync_failure.clone(),
        })
    } else {
        EvictionDecision::Costs { budget: key }
    }
}

/// The budgets that eviction checks for a pod.
pub fn budgets_of<'a>(
    cluster: &'a Cluster,
    pod: &'a Pod,
    rules: &'a EvictionRules,
) -> impl Iterator<Item = &'a Budget> {
    cluster.budgets_of(pod).map(|budget| &**budget).filter(|budget| budget::protects(budget, pod, rules))
}

/// The answer to one request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EvictionAnswer {
    /// The HTTP status.
    pub code: u16,
    pub reason: Option<&'static str>,
    pub message: Option<String>,
    pub cause: Option<StatusCause>,
    /// The header Retry-After.
    pub retry_after: Option<Span>,
    /// The budget that refuses.
    pub budget: Option<Key>,
}

/// One of `details.causes`.
#[derive(Clone, Debug, PartialEq)]
pub struct StatusCause {
    pub reason: &'static str,
    pub message: String,
}

/// The answer on the cluster as it is: that of a dry run.
pub fn answer(cluster: &Cluster, pod: &Arc<Pod>, rules: &EvictionRules, now: Timestamp) -> EvictionAnswer {
    let states = budget::states(cluster, [pod], rules, now);
    EvictionAnswer::to(&decision(cluster, pod, &states, rules), rules)
}

/// The decision on a pod with its budgets in these states.
pub fn decision(
    cluster: &Cluster,
    pod: &Pod,
    states: &BTreeMap<Key, BudgetState>,
    rules: &EvictionRules,
) -> EvictionDecision {
    let budgets: Vec<&BudgetState> =
        budgets_of(cluster, pod, rules).filter_map(|budget| states.get(&budget.key)).collect();
    decide(PodState::of(cluster, pod), &budgets)
}

impl EvictionAnswer {
    /// The answer for a decision.
    pub fn to(decision: &EvictionDecision, rules: &EvictionRules) -> Self {
        let block = match decision {
            EvictionDecision::Free(_) | EvictionDecision::Costs { .. } => {
                return Self { code: 201, ..Self::default() };
            }
            EvictionDecision::Blocked(block) => block,
        };
        let budget = block.budget().cloned();
        let violated = "Cannot evict pod as it would violate the pod's disruption budget.";
        let refused = |message: String, retry_after| Self {
            code: 429,
            reason: Some("TooManyRequests"),
            message: Some(violated.into()),
            cause: Some(StatusCause { reason: "DisruptionBudget", message }),
            retry_after,
            budget: budget.clone(),
        };
        match block {
            EvictionBlock::NamespaceTerminating => Self {
                code: 403,
                reason: Some("Forbidden"),
                message: Some("the namespace is being terminated".into()),
                cause: Some(StatusCause {
                    reason: "NamespaceTerminating",
                    message: "the namespace is being terminated".into(),
                }),
                ..Self::default()
            },
            EvictionBlock::TwoBudgets { .. } => Self {
                code: 500,
                message: Some(
                    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
                        .into(),
                ),
                ..Self::default()
            },
            EvictionBlock::Stale { budget } => {
                let name = &budget.name;
                let text = format!("The disruption budget {name} is still being processed by the server.");
                refused(text, Some(Span::from_secs(10)))
            }
            EvictionBlock::Exhausted { budget, numbers, sync_failure } => {
                let name = &budget.name;
                let BudgetNumbers { desired, healthy, .. } = numbers;
                let text = match sync_failure {
                    Some(failure) if rules.reports_failed_sync => format!(
                        "The disruption budget {name} does not allow evicting pods currently because it failed sync: {failure}"
                    ),
                    _ if rules.reports_failed_sync && healthy > desired => {
                        format!("The disruption budget {name} does not allow evicting pods currently")
                    }
                    Some(_) | None => format!(
                        "The disruption budget {name} needs {desired} healthy pods and has {healthy} currently"
                    ),
                };
                refused(text, None)
            }
            EvictionBlock::UnknownPolicy { budget } => {
                let name = &budget.name;
                refused(format!("the unhealthyPodEvictionPolicy of {name} is unknown"), None)
            }
            EvictionBlock::Broken { what, .. } => Self {
                code: 403,
                reason: Some("Forbidden"),
                message: Some((*what).into()),
                budget: budget.clone(),
                ..Self::default()
            },
        }
    }
}
